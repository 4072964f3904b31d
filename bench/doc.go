// Package bench measures the cost of runs and writes a report. It compares the
// world with the fastest that its parts allow, scripts with those of miniredis,
// one worker with two, simulated time with real time, and the locks with other
// people's on a real server. It also measures how cost grows. The sides of a
// comparison are measured in turn within one call, so that other load on the
// machine meets them all.
//
// Where one process does the work, the figures are processor time. On a shared
// machine it says more than the clock. Nothing here is part of a run, and no
// verdict depends on it.
package bench
