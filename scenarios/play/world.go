package play

import (
	"strconv"

	"lockstep/sim"
)

// thread is a thread of a world.
type thread struct {
	*sim.Thread
	w *sim.World
}

// Interrupt implements Thread.
func (t thread) Interrupt(name string) {
	process, n := splitThread(name)
	t.Thread.Interrupt(t.w.Process(process).Threads()[n-1])
}

// place is a world as the place of a scenario.
type place struct {
	*sim.World
	published func(channel string) int64 // see subject.World
}

// Published implements Place.
func (p place) Published(channel string) int64 {
	if p.published == nil {
		return 0
	}
	return p.published(channel)
}

func splitThread(name string) (process string, n int) {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			n, _ = strconv.Atoi(name[i+1:])
			return name[:i], n
		}
	}
	return name, 0
}
