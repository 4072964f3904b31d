package sim

import (
	"hash/fnv"
	"time"
)

// seat says for whom a goroutine works, which goroutines and timers pass on to what they start. It means
// something in a program that is built with the overlay of package overlay, whose runtime has the same
// struct.
type seat struct {
	process *seatProcess // nil: for no process
	key     uint64       // of what the goroutine decides by chance; 0: it belongs to no world
	//lint:ignore U1000 the runtime of the overlay counts with them
	draws, picks, starts, timers uint64 // numbers of decisions so far
	draw                         bool   // the goroutine's draws from the standard library repeat
}

// seatProcess is the part of a process that the runtime of the overlay knows. Times are those of the bubble.
type seatProcess struct {
	pausedUntil         int64
	held                int64 // the number of timers that the pause has put off
	clock               bool  // the process has a wall clock of its own, which time.Now reads
	start, ahead, drift int64
	of                  *Process // not known to the runtime
}

// seatKey returns the key of the seat with a name. Seats with different names draw different numbers.
func (w *World) seatKey(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return mix(w.seats^h.Sum64()) | 1
}

// beginSeats makes the bubble of the caller, who is the scheduler, a world of the overlay.
func (w *World) beginSeats() {
	for _, p := range w.processes {
		w.seats = mix(w.seats ^ p.entropy)
	}
	overlayBegin(w.seats)
}

// runIn runs f in a seat.
func runIn(s seat, f func()) {
	if !Overlaid {
		f()
		return
	}
	overlaySwap(&s)
	defer overlaySwap(&s)
	f()
}

// sit gives the calling goroutine the seat of a process, with a name of its own.
func (p *Process) sit(name string) {
	if Overlaid {
		s := p.seatOf(name)
		overlaySwap(&s)
	}
}

func (p *Process) seatOf(name string) seat {
	return seat{process: &p.seat, key: p.w.seatKey(name), draw: true}
}

// Within runs f for the process: what f starts belongs to it. The function that sets a world up calls it
// for what opens a client.
func (p *Process) Within(f func()) {
	if p.dial != nil { // a process that is in no world
		f()
		return
	}
	runIn(p.seatOf(p.cfg.Name), f)
}

// setClocks gives the processes whose wall clocks differ from that of the world clocks of their own.
func (w *World) setClocks() {
	for _, p := range w.processes {
		p.seat.of = p
		p.seat.start, p.seat.ahead, p.seat.drift = w.start.UnixNano(), int64(p.cfg.Offset), p.cfg.DriftPPM
		p.seat.clock = p.seat.ahead != 0 || p.seat.drift != 0
	}
	for _, f := range w.cfg.Faults {
		if f.Step != 0 && len(f.Processes) > 0 {
			w.process(f.Processes[0]).seat.clock = true
		}
	}
}

// deadline returns the instant of the world that a deadline of the calling goroutine means. A process with a
// wall clock of its own counts from that.
func (p *Process) deadline(t time.Time) time.Time {
	if !p.seat.clock || t.IsZero() {
		return t
	}
	return p.w.start.Add(p.w.Now() + time.Until(t))
}
