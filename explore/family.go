package explore

import (
	"maps"
	"slices"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/model/trace"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// family is the state of a family that is being played.
type family struct {
	reached
	runs []Run
	best map[string]int // by group: the smallest failure so far
	// last is the index of the run that this process played last, and openings are the
	// openings of that run; -1: it has played none. told has the openings of the stories.
	last     int
	openings []coverage.Opening
	told     map[int][]coverage.Opening
	// tellings are the stories of the campaign. All its families share them.
	tellings []telling
}

// reached has the states and the cells of some runs.
type reached struct {
	states map[uint64]bool
	cells  map[int]bool
	open   map[int]bool // cells that a fault could have filled
}

func newReached() reached {
	return reached{map[uint64]bool{}, map[int]bool{}, map[int]bool{}}
}

func (x reached) note(r Run) {
	for _, s := range r.States {
		x.states[s] = true
	}
	for _, c := range r.Cells {
		x.cells[c] = true
	}
	for _, c := range r.Open {
		x.open[c] = true
	}
}

func newFamily(tellings []telling) *family {
	return &family{reached: newReached(), best: map[string]int{}, told: map[int][]coverage.Opening{}, last: -1, tellings: tellings}
}

// openingsOf returns the openings of the run at which a task aims, whose scenario is base. It
// plays the run again if another process played it.
func (f *family) openingsOf(h *sim.Host, p Plan, l *subject.Subject, t task, base draw.Scenario) []coverage.Opening {
	if f.last == t.from {
		return f.openings
	}
	if o, known := f.told[t.from]; known {
		return o
	}
	base.SetFile(runFile(t.from))
	o := coverage.Openings(trace.New(play.Play(h, base.Scenario, l, p.chooser(t.seed, t.estimate)).Record))
	if _, story := p.telling(f.tellings, t.from); story {
		f.told[t.from] = o
	}
	return o
}

// mostAimed is the largest number of faults that one run aims. Only the first one is sure
// to strike where it was aimed: it changes the run, so that the others may strike elsewhere.
const mostAimed = 3

// aimable returns the kinds of faults of the plan by the moments at which they can strike.
func (p Plan) aimable(l *subject.Subject) map[coverage.Moment][]coverage.Kind {
	kinds := map[coverage.Moment][]coverage.Kind{}
	for _, m := range coverage.AllMoments {
		kinds[m] = draw.Kinds(l, p.Faults, m)
	}
	return kinds
}

// openCells returns the codes of the cells that faults of the plan could have filled in the run
// that was played last, sorted.
func (f *family) openCells(l *subject.Subject, p Plan) []int {
	kinds := p.aimable(l)
	open := map[int]bool{}
	type room struct {
		situation                 int
		message, instant, ofACall bool
	}
	seen := map[room]bool{} // in a long run, most openings are like one before
	for _, o := range f.openings {
		r := room{o.Code(), draw.CanAim(o, coverage.Drop), draw.CanAim(o, coverage.Pause), draw.CanAim(o, coverage.Interrupt)}
		if seen[r] {
			continue
		}
		seen[r] = true
		for _, k := range kinds[o.Moment] {
			if draw.CanAim(o, k) {
				open[coverage.Struck(r.situation, k)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(open))
}

// aim draws a scenario that adds to base faults that fill cells which no run of the family
// met. It reports false if it adds none. About half of the faults strike between two requests.
func (f *family) aim(c sim.Chooser, l *subject.Subject, p Plan, t task, base draw.Scenario, openings []coverage.Opening) (s draw.Scenario, ok bool) {
	var gaps, others targets
	kinds := p.aimable(l)
	for _, o := range openings {
		of := &others
		if o.Moment.IsGap() {
			of = &gaps
		}
		for _, k := range kinds[o.Moment] {
			if !draw.CanAim(o, k) {
				continue
			}
			struck := o
			struck.Fault = k
			for _, struck.State = range o.May(k) {
				if !f.cells[struck.Code()] {
					of.add(struck)
				}
			}
		}
	}
	s = base
	for range 1 + c.Choose("explore/aims", mostAimed) {
		of, places := &others, t.best(others.cells)
		if len(gaps.cells) > 0 && (len(places) == 0 || c.Choose("explore/gap", 2) == 1) {
			of, places = &gaps, t.inGap(c, gaps.cells)
		}
		if len(places) == 0 {
			break
		}
		o := of.take(c, places[c.Choose("explore/cell", uint64(len(places)))])
		if more, added := draw.Aim(c, s, l, p.Profile, p.Faults, o, o.Fault); added {
			s, ok = more, true
		}
	}
	return s, ok
}

// targets are cells that no run of a family met, each with the openings in which a fault may fill it. The
// openings have the state of the cell, and its fault.
type targets struct {
	cells []coverage.Cell
	at    map[coverage.Cell][]coverage.Opening
}

func (t *targets) add(o coverage.Opening) {
	if t.at == nil {
		t.at = map[coverage.Cell][]coverage.Opening{}
	}
	if t.at[o.Cell] == nil {
		t.cells = append(t.cells, o.Cell)
	}
	t.at[o.Cell] = append(t.at[o.Cell], o)
}

// take draws an opening of the cell with an index, and removes the cell.
func (t *targets) take(c sim.Chooser, i int) coverage.Opening {
	openings := t.at[t.cells[i]]
	t.cells = slices.Delete(t.cells, i, i+1)
	return openings[c.Choose("explore/opening", uint64(len(openings)))]
}

// inGap draws one of the gaps, and returns the places of its cells at which a run aims first. Some gaps have
// many cells, since much can come between, and the others are as dangerous.
func (t task) inGap(c sim.Chooser, empty []coverage.Cell) (places []int) {
	gap := func(c coverage.Cell) coverage.Cell { return coverage.Cell{Op: c.Op, Moment: c.Moment} }
	var gaps []coverage.Cell
	for _, e := range empty {
		if g := gap(e); !slices.Contains(gaps, g) {
			gaps = append(gaps, g)
		}
	}
	g := gaps[c.Choose("explore/which", uint64(len(gaps)))]
	mine := false
	for i, e := range empty {
		if gap(e) != g || mine && !t.prefers(e) {
			continue
		}
		if !mine && t.prefers(e) {
			mine, places = true, nil
		}
		places = append(places, i)
	}
	return places
}

// aimFamilies is the number of families that share the cells among them: each aims at a part of
// the cells first, so that families that know nothing of each other fill different ones.
const aimFamilies = 16

// prefers reports whether the cell is one at which the family aims first.
func (t task) prefers(c coverage.Cell) bool {
	return c.Code()%aimFamilies == t.index/FamilyRuns%aimFamilies
}

// best returns the places of the cells at which a run aims first. A situation that is new to
// the family comes before others, since it may not come again soon.
func (t task) best(empty []coverage.Cell) (places []int) {
	most := 0
	for i, c := range empty {
		rank := 0
		if slices.Contains(t.fresh, c.Situation().Code()) {
			rank += 2
		}
		if t.prefers(c) {
			rank++
		}
		if rank > most {
			most, places = rank, nil
		}
		if rank == most {
			places = append(places, i)
		}
	}
	return places
}

// add adds the next run to the family, and returns the part of it that is kept.
func (f *family) add(r Run) Run {
	r.States = slices.DeleteFunc(r.States, func(s uint64) bool { return f.states[s] })
	r.Cells = slices.DeleteFunc(r.Cells, func(c int) bool { return f.cells[c] })
	r.Open = slices.DeleteFunc(r.Open, func(c int) bool { return f.open[c] })
	if !slices.ContainsFunc(r.Failures, f.smallest) && !r.unjudged() {
		r.Text, r.Aimed = "", 0
	}
	r.drawn = nil
	f.addKept(r)
	f.runs[len(f.runs)-1].Recording = ""
	return r
}

// addKept adds a run of which only the kept part is known.
func (f *family) addKept(r Run) {
	f.note(r)
	for _, failed := range r.Failures {
		if f.smallest(failed) {
			f.best[failed.key()] = failed.Size
		}
	}
	f.runs = append(f.runs, r)
}

// smallest reports whether no earlier failure of the group was as small.
func (f *family) smallest(failed Failed) bool {
	size, seen := f.best[failed.key()]
	return !seen || failed.Size < size
}
