package simrun

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"lockstep/explore"
	"lockstep/internal/counted"
)

// The least time between two lines of progress, on a terminal and elsewhere. The lines of a campaign
// come more often, since they have news.
const (
	paceOnTerminal = time.Second
	paceElsewhere  = 15 * time.Second
	paceOfCampaign = 5 * time.Second // elsewhere
)

// say prints a line to stderr, above the line of progress.
func (a *app) say(format string, args ...any) {
	if a.brief {
		return
	}
	a.speech.Lock()
	defer a.speech.Unlock()
	line := fmt.Sprintf(format, args...)
	if a.tty {
		line = "\r\x1b[K" + line
	}
	fmt.Fprintln(a.err, line)
}

// status shows a line of progress if stderr is a terminal. An empty line clears it.
func (a *app) status(format string, args ...any) {
	if !a.tty || a.quiet {
		return
	}
	a.speech.Lock()
	defer a.speech.Unlock()
	fmt.Fprintf(a.err, "\r\x1b[K"+format, args...)
}

// advance tells progress at once: in the line of a terminal, and elsewhere in a line of its own.
func (a *app) advance(format string, args ...any) {
	switch {
	case a.quiet:
	case a.tty:
		a.status(format, args...)
	default:
		a.say(format, args...)
	}
}

// A pacer tells progress on stderr: every second in one line of a terminal, and elsewhere in
// a line now and then. Its methods may be called at the same time.
type pacer struct {
	a         *app
	elsewhere time.Duration // the pace where there is no terminal
	mu        sync.Mutex
	shown     time.Time
}

// paced returns a pacer that says nothing at first.
func (a *app) paced() *pacer { return &pacer{a: a, elsewhere: paceElsewhere, shown: time.Now()} }

// tell prints the line of this instant, unless a line was printed just now.
func (p *pacer) tell(line func(now time.Time) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := cmp.Or(p.a.pace, p.elsewhere)
	if p.a.tty {
		pace = cmp.Or(p.a.pace, paceOnTerminal)
	}
	now := time.Now()
	if p.a.quiet || now.Sub(p.shown) < pace {
		return
	}
	p.shown = now
	if p.a.tty {
		p.a.status("%s", line(now))
	} else {
		p.a.say("%s", line(now))
	}
}

// each tells line at the pace of p until ctx ends, also while nothing comes to an end. It must
// not be used while this process plays.
func (p *pacer) each(ctx context.Context, line func(now time.Time) string) {
	tick := time.NewTicker(cmp.Or(p.a.pace, paceOnTerminal))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.tell(line)
		case <-ctx.Done():
			return
		}
	}
}

// exploreProgress tells on stderr how far a campaign is: every second in one line of a
// terminal, and elsewhere in a line now and then.
type exploreProgress struct {
	mu    sync.Mutex
	a     *app
	limit time.Duration // --time; 0: none
	begun time.Time
	pace  *pacer
	runs  explore.Progress
	// shrinking is set once failures are made small, which began at the instant since.
	shrinking *explore.ShrinkProgress
	since     time.Time
	first     int // failures that were small when it began
	cells     int // that the last line told as met
}

func (a *app) tellProgress(limit time.Duration) *exploreProgress {
	t := &exploreProgress{a: a, limit: limit, begun: time.Now(), pace: a.paced()}
	t.pace.elsewhere = paceOfCampaign
	return t
}

// played notes the progress of the runs.
func (t *exploreProgress) played(p explore.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs = p
}

// progress returns the progress of the runs.
func (t *exploreProgress) progress() explore.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runs
}

// made notes how many failures are small.
func (t *exploreProgress) made(p explore.ShrinkProgress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shrinking == nil {
		t.since, t.first = time.Now(), p.Done
	}
	t.shrinking = &p
}

// show prints the progress, unless it was printed just now.
func (t *exploreProgress) show() {
	t.pace.tell(t.line)
}

// line returns the line of progress at an instant. The cells that it calls new are those since
// the line before.
func (t *exploreProgress) line(now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.runs
	rate := float64(p.Played) / now.Sub(t.begun).Seconds()
	runs := fmt.Sprintf("%d of %d runs", p.Runs, p.Of)
	if p.Of == 0 {
		runs = fmt.Sprintf("%d schedules", p.Runs)
	}
	known := counted.Of(p.States, "state")
	if p.CellsOf > 0 {
		known = fmt.Sprintf("%d of %d cells met, %d of them new", p.CellsMet, p.CellsOf, p.CellsMet-t.cells)
		t.cells = p.CellsMet
	}
	known += ", " + counted.Of(p.Groups, "kind") + " of failure"
	if p.Died > 0 {
		known += fmt.Sprintf(", %d died", p.Died)
	}
	if s := t.shrinking; s != nil {
		left := ""
		if done := s.Done - t.first; done > 0 {
			left = more(now.Sub(t.since) / time.Duration(done) * time.Duration(s.Of-s.Done))
		}
		return fmt.Sprintf("making failure %d of %d small, %d done%s; %s, %s", s.Begun, s.Of, s.Done, t.within(left, now), runs, known)
	}
	left := ""
	if p.Of > 0 && p.Played > 0 {
		left = more(time.Duration(float64(p.Of-p.Runs) / rate * float64(time.Second)))
	}
	return fmt.Sprintf("playing: %s, %.0f a second%s; %s", runs, rate, t.within(left, now), known)
}

// more says how long something may take.
func more(d time.Duration) string { return fmt.Sprintf(", about %v more", d.Round(time.Second)) }

// within adds what is left of --time to the words about the time that is left.
func (t *exploreProgress) within(left string, now time.Time) string {
	if t.limit == 0 {
		return left
	}
	return fmt.Sprintf("%s, %v at most", left, max(0, t.limit-now.Sub(t.begun)).Round(time.Second))
}

func (t *exploreProgress) clear() { t.a.status("") }

// shrinkTime returns the part of a limit of time that is needed to make the failures small
// that were found so far, if a run of shrinking takes as long as a run took. It is at most half
// of the limit.
func shrinkTime(limit, spent time.Duration, p explore.Progress) time.Duration {
	if p.Played == 0 {
		return 0
	}
	perRun := float64(spent) / float64(p.Played)
	return time.Duration(min(float64(limit)/2, perRun*shrinkBudget*float64(p.Groups)))
}

// endInTime calls end when no more time of the limit is left than it takes to make small what
// was found. It returns at the end of ctx.
func endInTime(ctx context.Context, limit time.Duration, progress func() explore.Progress, end func()) {
	begun := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if spent := time.Since(begun); spent >= limit-shrinkTime(limit, spent, progress()) {
				end()
				return
			}
		}
	}
}
