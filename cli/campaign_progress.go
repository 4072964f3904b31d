package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/counted"
)

// paceOfCampaign is the least time between two lines of a campaign if stderr is no terminal. They come
// more often than others, since they report new states and failures.
const paceOfCampaign = 5 * time.Second

// exploreProgress reports the progress of a campaign by a pacer.
type exploreProgress struct {
	mu    sync.Mutex
	a     *frame.App
	limit time.Duration // --time; 0: none
	begun time.Time
	pace  *frame.Pacer
	runs  explore.Progress
	// shrinking is set when the campaign begins to make failures small, at the instant since.
	shrinking *explore.ShrinkProgress
	since     time.Time
	first     int // failures that were already small at since
	cells     int // number of met cells in the last line, or of an earlier call
}

func tellProgress(a *frame.App, limit time.Duration) *exploreProgress {
	t := &exploreProgress{a: a, limit: limit, begun: time.Now(), pace: a.Paced()}
	t.pace.Elsewhere = paceOfCampaign
	return t
}

// played notes the progress of the runs.
func (t *exploreProgress) played(p explore.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runs = p; p.Played == 0 { // the runs of an earlier call
		t.cells = p.CellsMet
	}
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
	t.pace.Tell(t.line)
}

// line returns the line of progress at an instant. It calls a cell new if neither the line before nor
// an earlier call of the command counted it.
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
	left := time.Duration(-1) // nobody knows
	if s := t.shrinking; s != nil {
		if done := s.Done - t.first; done > 0 {
			left = now.Sub(t.since) / time.Duration(done) * time.Duration(s.Of-s.Done)
		}
		return fmt.Sprintf("making failure %d of %d small, %d done%s; %s, %s", s.Begun, s.Of, s.Done, t.within(left, now), runs, known)
	}
	if p.Of > 0 && p.Played > 0 {
		left = time.Duration(float64(p.Of-p.Runs) / rate * float64(time.Second))
	}
	return fmt.Sprintf("playing: %s, %.0f a second%s; %s", runs, rate, t.within(left, now), known)
}

// within says how long something may take. left is an estimate of it, and negative if nobody knows.
// --time may end it sooner.
func (t *exploreProgress) within(left time.Duration, now time.Time) string {
	about := ""
	if left >= 0 {
		about = frame.More(left)
	}
	if t.limit == 0 {
		return about
	}
	most := max(0, t.limit-now.Sub(t.begun)).Round(time.Second)
	switch {
	case most == 0:
		return ", --time is over"
	case left.Round(time.Second) >= most:
		return fmt.Sprintf(", %v at most", most)
	}
	return fmt.Sprintf("%s, %v at most", about, most)
}

func (t *exploreProgress) clear() { t.a.Status("") }

// playedPerFailure is the number of runs of a campaign that take as long as making a failure small. It was 60 in a campaign
// on redisson@4.7.0, and 110 on redisson-fair@4.7.0, of 200 runs each with all faults and profile full.
const playedPerFailure = 100

// shrinkTime returns the part of a limit of time that making the failures so far small will take. It is at most
// half of the limit.
func shrinkTime(limit, spent time.Duration, p explore.Progress) time.Duration {
	if p.Played == 0 {
		return 0
	}
	perRun := float64(spent) / float64(p.Played)
	return time.Duration(min(float64(limit)/2, perRun*playedPerFailure*float64(p.Groups)))
}

// endInTime calls end when the rest of the limit is only enough to make the failures small. It
// returns at the end of ctx.
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
