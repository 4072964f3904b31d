package explore

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// blamePoints is the number of points of a curve that are spread over the run. Further
// points close in on the decision.
const blamePoints = 20

// Blame says how probable a failure was after the first decisions of its run, and which
// decision made it inevitable.
type Blame struct {
	Finding judges.Finding
	Of      int // decisions of the run
	Runs    int // for each point
	// Points are in order of Kept. The last point keeps all decisions.
	Points []BlamePoint
	// From is the number of the decision after which every run failed. Numbers start at 1.
	// 0: every run failed even with no decision kept.
	From int
}

// BlamePoint is the result of keeping the first decisions of a run and drawing the rest
// anew.
type BlamePoint struct {
	Kept   int
	Failed int    // runs in which the same judge was broken, as the same class
	Stream string // of the last decision kept; "" if none was
	AtNs   int64  // when the last decision kept was drawn
}

// FindBlame finds the decision that made a failure inevitable. It keeps the first decisions
// of a run and draws the others anew, runs times for each of about 25 numbers of kept
// decisions. v is the verdict of the recording, and f is a finding of v. FindBlame calls
// progress after each point, unless progress is nil.
func FindBlame(h *sim.Host, rec *play.Recording, v play.Verdict, f judges.Finding, runs int, progress func(points int)) (Blame, error) {
	order := &drawnOrder{from: sim.NewReplayer(rec.Decisions)}
	again := play.PlayIn(h, v.Scenario, v.Lock, order, rec.Orders)
	if again.Record.Digest() != v.Digest() {
		return Blame{}, fmt.Errorf("the run was not the same again")
	}
	b := Blame{Finding: f, Of: len(order.drawn), Runs: runs}
	at := map[int]BlamePoint{}
	try := func(kept int) bool {
		if p, ok := at[kept]; ok {
			return p.Failed == runs
		}
		p := BlamePoint{Kept: kept}
		if kept > 0 {
			p.Stream, p.AtNs = order.drawn[kept-1].stream, order.drawn[kept-1].at
		}
		for n := range runs {
			c := &prefix{left: kept, kept: sim.NewReplayer(rec.Decisions), rest: sim.NewSeeded(seedOfRest(rec.Seed, kept, n))}
			run := play.Judge(h, v.Scenario, v.Lock, rec.Seed, play.PlayIn(h, v.Scenario, v.Lock, c, rec.Orders))
			if slices.ContainsFunc(run.Findings, func(g judges.Finding) bool {
				return g.Judge == f.Judge && g.Verdict == f.Verdict && g.Class == f.Class
			}) {
				p.Failed++
			}
		}
		at[kept] = p
		if progress != nil {
			progress(len(at))
		}
		return p.Failed == runs
	}
	// Decisions that were drawn after the failure explain nothing.
	last := 0
	for last < b.Of && order.drawn[last].at <= failure.Until(f) {
		last++
	}
	grid := []int{}
	for i := range blamePoints {
		grid = append(grid, last*i/blamePoints)
	}
	grid = slices.Compact(append(grid, last, b.Of))
	sure := len(grid) // from this point of the grid on every run failed
	for i := len(grid) - 1; i >= 0; i-- {
		if try(grid[i]) && sure == i+1 {
			sure = i
		}
	}
	if sure == len(grid) {
		return Blame{}, fmt.Errorf("%s is not broken by the run's own decisions", f.Judge)
	}
	b.From = grid[sure]
	if sure > 0 {
		for low := grid[sure-1]; b.From-low > 1; {
			if mid := (low + b.From) / 2; try(mid) {
				b.From = mid
			} else {
				low = mid
			}
		}
	}
	for _, p := range at {
		b.Points = append(b.Points, p)
	}
	slices.SortFunc(b.Points, func(a, b BlamePoint) int { return a.Kept - b.Kept })
	return b, nil
}

// seedOfRest returns the seed that draws the rest of the n-th run with that many decisions kept.
func seedOfRest(seed uint64, kept, n int) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "blame %d %d %d", seed, kept, n)
	return h.Sum64()
}

// String says which decision made the failure inevitable.
func (b Blame) String() string {
	i := slices.IndexFunc(b.Points, func(p BlamePoint) bool { return p.Kept == b.From })
	p := b.Points[i]
	if b.From == 0 {
		return fmt.Sprintf("%s is broken in all of %d runs with none of the %d decisions kept: the scenario leads to it under every schedule that was drawn.", b.Finding.Judge, b.Runs, b.Of)
	}
	before := b.Points[i-1]
	return fmt.Sprintf("Decision %d of %d (%s, at %.3fs) made it inevitable, as far as %d runs tell: with it %s is broken in all, with %d decisions in %d, with none in %d.",
		b.From, b.Of, p.Stream, time.Duration(p.AtNs).Seconds(), b.Runs, b.Finding.Judge, before.Kept, before.Failed, b.Points[0].Failed)
}

// drawnOrder records the order in which the decisions of all streams are drawn.
type drawnOrder struct {
	from  sim.Chooser
	drawn []drawn
}

type drawn struct {
	stream string
	at     int64 // simulated time
}

// Choose implements sim.Chooser. Within a world the clock is simulated.
func (o *drawnOrder) Choose(stream string, n uint64) uint64 {
	o.drawn = append(o.drawn, drawn{stream, time.Now().UnixNano() - sim.EpochMs*int64(time.Millisecond)})
	return o.from.Choose(stream, n)
}

// prefix repeats the first decisions and draws the others.
type prefix struct {
	left       int
	kept, rest sim.Chooser
}

// Choose implements sim.Chooser.
func (p *prefix) Choose(stream string, n uint64) uint64 {
	if p.left > 0 {
		p.left--
		return p.kept.Choose(stream, n)
	}
	return p.rest.Choose(stream, n)
}
