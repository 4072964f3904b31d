// Package oneprocessor gives a test binary one processor, which costs less processor time than
// several: nearly all that its goroutines do is to wait for each other.
package oneprocessor

import (
	"runtime"
	"runtime/debug"
)

// Set sets GOMAXPROCS to 1 for good, and lets garbage grow before it is collected. It does
// nothing under the race detector, whose run is there to have goroutines side by side.
func Set() {
	if underRaceDetector {
		return
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)
}
