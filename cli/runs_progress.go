package cli

import (
	"fmt"
	"math"
	"time"

	"lockstep/cli/frame"
	"lockstep/scenarios/play"
)

// A progress shows a line on a terminal if the runs take longer than a second. Elsewhere it
// prints a line at its pace, if it has one.
type progress struct {
	a           *frame.App
	begun, told time.Time
	pace        time.Duration // 0: lines only on a terminal
	done, total uint64
	shown       bool
}

// NoProgress returns a progress of runs on pairs that a command reports itself.
func NoProgress(a *frame.App) *progress { return &progress{a: a} }

// newProgress returns the progress of runs on pairs. A scenario that does not apply has no run.
func newProgress(a *frame.App, pairs []*Pair) *progress {
	p := &progress{a: a, begun: time.Now(), told: time.Now()}
	for _, x := range pairs {
		if play.Plays(x.Scenario, x.Lock) != nil {
			continue
		}
		if more := x.To - x.From; more < math.MaxUint64-p.total {
			p.total += more + 1
		} else {
			p.total = math.MaxUint64
		}
	}
	return p
}

func (p *progress) show(x *Pair, seed uint64) {
	switch {
	case p.a.Quiet:
	case p.a.TTY && time.Since(p.begun) > time.Second:
		fmt.Fprintf(p.a.Err, "\r\x1b[K%d of %d runs: %s on %s, seed %d", p.done, p.total, x.Scenario.Name, x.Lock.Name, seed)
		p.shown = true
	case !p.a.TTY && p.pace > 0 && time.Since(p.told) >= p.pace:
		p.a.Say("%d of %d runs", p.done, p.total)
		p.told = time.Now()
	}
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.a.Err, "\r\x1b[K")
		p.shown = false
	}
}
