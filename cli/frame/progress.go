package frame

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// The least time between two lines of progress, on a terminal and elsewhere.
const (
	paceOnTerminal = time.Second
	PaceElsewhere  = 15 * time.Second
)

// Say prints a line to stderr, above the line of progress.
func (a *App) Say(format string, args ...any) {
	if a.brief {
		return
	}
	a.speech.Lock()
	defer a.speech.Unlock()
	line := fmt.Sprintf(format, args...)
	if a.TTY {
		line = clearLine + line
	}
	fmt.Fprintln(a.Err, line)
}

// Status shows a line of progress if stderr is a terminal. An empty line clears it.
func (a *App) Status(format string, args ...any) {
	if !a.TTY || a.Quiet {
		return
	}
	a.speech.Lock()
	defer a.speech.Unlock()
	fmt.Fprintf(a.Err, clearLine+format, args...)
}

// Advance reports progress at once: on a terminal in the line of progress, and elsewhere in a new
// line.
func (a *App) Advance(format string, args ...any) {
	switch {
	case a.Quiet:
	case a.TTY:
		a.Status(format, args...)
	default:
		a.Say(format, args...)
	}
}

// A Pacer reports progress on stderr: on a terminal every second in one line, and elsewhere now and
// then in a new line. Its methods may be called at the same time.
type Pacer struct {
	a         *App
	Elsewhere time.Duration // the pace if stderr is no terminal
	mu        sync.Mutex
	shown     time.Time
}

// Paced returns a pacer whose first line comes after its pace.
func (a *App) Paced() *Pacer { return &Pacer{a: a, Elsewhere: PaceElsewhere, shown: time.Now()} }

// Tell prints the line for this instant, unless a line was printed a moment ago.
func (p *Pacer) Tell(line func(now time.Time) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := cmp.Or(p.a.Pace, p.Elsewhere)
	if p.a.TTY {
		pace = cmp.Or(p.a.Pace, paceOnTerminal)
	}
	now := time.Now()
	if p.a.Quiet || now.Sub(p.shown) < pace {
		return
	}
	p.shown = now
	if p.a.TTY {
		p.a.Status("%s", line(now))
	} else {
		p.a.Say("%s", line(now))
	}
}

// Each prints the line at the pace of p until ctx ends, even while no run ends. It must not be used
// while this process plays a world.
func (p *Pacer) Each(ctx context.Context, line func(now time.Time) string) {
	tick := time.NewTicker(cmp.Or(p.a.Pace, paceOnTerminal))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.Tell(line)
		case <-ctx.Done():
			return
		}
	}
}

// More says how long something may take.
func More(d time.Duration) string { return fmt.Sprintf(", about %v more", d.Round(time.Second)) }
