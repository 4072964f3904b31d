// Package bench measures what runs cost, and writes it down: the world against
// the floor under it, scripts against miniredis's own, one worker against two,
// simulated time against real time, the locks against other people's on a real
// server, and how cost grows. What is compared is measured in turn, within one
// call, so that whatever else the machine does meets both.
//
// Processor time is what counts where one process does the work: on a machine
// that others use it says more than the clock. Nothing here is part of a run,
// and no verdict depends on it.
package bench
