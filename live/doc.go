// Package live plays a scenario against real servers in real time, and gives the record to the
// judges of the simulated world. It has the kind of server redis-server; other packages register
// others (see Kind).
//
// The program that calls Run is the parent. It starts the servers and one client per process
// of the scenario as child processes, strikes with the faults, and writes the record. A client
// is the same program (see Client): it opens the lock through the same adapter as in a world,
// plays the steps of its threads, and tells the parent what happens. Between each client and
// the server stands a proxy of the parent.
//
// The parent lets one request at a time pass to the servers. After each it looks at the server: see
// Observed, and for a redis-server it reads all keys in one script, and the log of MONITOR up to that script, which has the instant of each command
// and what it published. So the record has the order of the commands, and what each changed,
// as a world's has.
//
// All clocks are the monotonic clock of one machine. An instant that nobody could observe is
// known within bounds: a command ran after the parent sent it and before the reply came, and
// the server counts in whole milliseconds. The record is assembled several times, with such
// instants early and late, and a finding counts if it is in each (see judge.go).
//
// Live runs on Linux: the kernel ends the children when the parent is gone, whatever ended it.
package live
