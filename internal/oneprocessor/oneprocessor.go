// Package oneprocessor gives a test binary one processor, which costs less processor time than
// several, since its goroutines mostly wait for each other.
package oneprocessor

import (
	"runtime"
	"runtime/debug"
)

// Set sets GOMAXPROCS to 1 for the rest of the process, and lets garbage grow before it is
// collected. It does nothing under the race detector, which needs goroutines that run side by side.
func Set() {
	if underRaceDetector {
		return
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
}
