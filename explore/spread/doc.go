// Package spread plays the families of campaigns on many machines. A coordinator has the folder
// of a campaign. It puts its families as tasks into a queue, and writes their results into the
// folder. Workers take tasks from the queue, play them, and keep the results in it.
//
// The queue is not trusted. It may lose tasks and results, deliver them twice, and deliver them late:
// a family that is played twice has the same result, a result is looked at before it is taken, and a
// task without a result is offered again. The folder of a campaign decides whether the campaign is
// complete.
package spread
