//go:build !lockstep_overlay

package sim

import "time"

// Overlaid reports that the program was built with the overlay of package overlay. In its worlds a goroutine
// that waits for a mutex lets time pass, all chance of the standard library repeats, and time.Now and the
// timers of a process have its wall clock and its pauses.
const Overlaid = false

// OverlayVersion is the version of the overlay with which the program was built; 0: without one.
const OverlayVersion = 0

func overlayBegin(uint64) {}

func overlaySwap(*seat) {}

// since returns the time of the world since its start.
func since(start time.Time) time.Duration { return time.Since(start) }
