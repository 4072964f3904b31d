// Package spread plays the families of campaigns on many machines. A coordinator has the folder of a
// campaign. It puts the families of the campaign as tasks into a queue, and writes their results into
// the folder. Workers take tasks from the queue, play them, and put the results into the queue.
//
// The queue is not trusted. It may lose tasks and results, deliver them twice, and deliver them late:
// a family that is played twice has the same result, the coordinator checks a result before it
// accepts it, and it offers a task without a result again. The folder of a campaign decides whether
// the campaign is complete.
package spread
