// Package live plays a scenario against real servers in real time, and gives the record to the
// judges of the simulated world. It has the kind of server redis-server; other packages register
// others (see Kind).
//
// The program that calls Run is the parent. It starts the servers and one client per process of the scenario
// as child processes, makes the faults happen, and writes the record. A client is the same program (see
// Client): it opens the lock through the same adapter as in a simulated world, plays the steps of its
// threads, and reports to the parent what happens. A proxy in the parent stands between each client and the
// server.
//
// The parent lets one request at a time pass to the servers, and looks at the server after each (see
// Observed). From a redis-server it reads all keys in one script, and the log of MONITOR up to that script.
// The log has the instant of each command and what the command published. So the record has the order of the
// commands and what each one changed, as the record of a simulated world has.
//
// All clocks are the monotonic clock of one machine. An instant that nobody could observe is known within
// bounds: a command ran after the parent sent it and before the reply came, and the server counts in whole
// milliseconds. The record is assembled several times, with such instants as early and as late as the bounds
// allow. A finding counts only if the judges find it in every assembly (see judge.go).
//
// Live runs on Linux: the kernel ends the children when the parent is gone, whatever ended it.
package live
