package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/sim"
)

// Word is the verdict on a run.
type Word string

// The verdicts.
const (
	VerdictHeld             Word = "held"
	VerdictBug              Word = "bug"
	VerdictLimit            Word = "limit"
	VerdictUndecided        Word = "undecided"
	VerdictNondeterministic Word = "nondeterministic"
)

// Verdict is one run, judged.
type Verdict struct {
	Scenario *Scenario
	Lock     *Lock
	Seed     uint64
	Word     Word
	// Expected says what the file expects, in a few words.
	Expected   string
	AsExpected bool
	Findings   []linearizability.Finding
	Reached    []string
	Waits      linearizability.Waits
	// Why says what an undecided or nondeterministic run lacks; else "".
	Why    string
	Played Played
	Digest string
}

// Run plays one seed of a scenario on a lock and judges it.
func Run(h *sim.Host, sc *Scenario, l *Lock, seed uint64) Verdict {
	return Judge(h, sc, l, seed, Play(h, sc, l, sim.NewSeeded(seed)))
}

// RunTwice is Run, and again: digests that differ make it nondeterministic.
func RunTwice(h *sim.Host, sc *Scenario, l *Lock, seed uint64) Verdict {
	v := Run(h, sc, l, seed)
	again := Play(h, sc, l, sim.NewSeeded(seed)).Record.Digest()
	if again != v.Digest {
		v.Word, v.AsExpected = VerdictNondeterministic, false
		v.Why = fmt.Sprintf("two runs of seed %d gave different records: %.12s and %.12s", seed, v.Digest, again)
	}
	return v
}

// Judge judges what was played, with whatever decisions.
func Judge(h *sim.Host, sc *Scenario, l *Lock, seed uint64, p Played) Verdict {
	p.Trace = trace.New(p.Record)
	j := linearizability.Judge(p.Trace, sc.rules())
	convict(h, sc, l, p, &j)
	e := sc.Expect[l.Name]
	if e.Class == "" {
		e.Class = Held
	}
	v := Verdict{
		Scenario: sc, Lock: l, Seed: seed, Expected: e.String(), Findings: j.Findings, Reached: j.Reached, Waits: j.Waits,
		Played: p, Digest: p.Record.Digest(),
	}
	v.Word, v.Why = word(j)
	if missing := missing(append(slices.Clone(sc.Reach), e.Reach...), j.Reached); len(missing) > 0 && v.Word != VerdictUndecided {
		v.Word = VerdictUndecided
		v.Why = "the run did not reach " + strings.Join(missing, ", ")
	}
	v.AsExpected = v.Word != VerdictUndecided && e.met(v.Word, j)
	return v
}

func word(j linearizability.Judgement) (Word, string) {
	w, why := VerdictHeld, ""
	for _, f := range j.Findings {
		switch {
		case f.Verdict == linearizability.Undecided:
			if w != VerdictBug {
				w, why = VerdictUndecided, f.Judge+": "+f.Why
			}
		case f.Class == linearizability.ClassBug:
			w, why = VerdictBug, ""
		case w == VerdictHeld:
			w = VerdictLimit
		}
	}
	return w, why
}

func missing(want, got []string) []string {
	var out []string
	for _, w := range want {
		if !slices.Contains(got, w) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// met: the class is right and every judge named is broken.
func (e Expectation) met(w Word, j linearizability.Judgement) bool {
	all := true
	for _, judge := range e.Judges {
		broken, _ := j.Has(judge)
		if e.Class == Not && broken {
			return false
		}
		all = all && broken
	}
	switch e.Class {
	case Not:
		return true
	case Held:
		return w == VerdictHeld
	case Bug:
		return all && w == VerdictBug
	default:
		return all && w == VerdictLimit
	}
}

// String writes an expectation in a few words.
func (e Expectation) String() string {
	s := string(e.Class)
	if len(e.Judges) > 0 {
		s += " " + strings.Join(e.Judges, ", ")
	}
	if e.Some {
		s += " (some)"
	}
	return s
}

// convict makes bugs of the limits that do not vanish when the same decisions
// are replayed without what excuses them.
func convict(h *sim.Host, sc *Scenario, l *Lock, p Played, j *linearizability.Judgement) {
	replays := map[string]linearizability.Judgement{}
	for i := range j.Findings {
		f := &j.Findings[i]
		if f.Class != linearizability.ClassLimit {
			continue
		}
		without, names := sc.without(f.Excuses)
		if without == nil {
			continue // the caller's own doing; there is no fault to leave out
		}
		key := ExcuseKey(f.Excuses)
		again, ok := replays[key]
		if !ok {
			replay := sc.again(h, without, l, p, f.Excuses)
			again = linearizability.Judge(trace.New(replay.Record), without.rules())
			// What is broken there may have an excuse of its own.
			convict(h, without, l, replay, &again)
			replays[key] = again
		}
		if _, bug := again.Has(f.Judge); bug {
			f.Class = linearizability.ClassBug
			f.Convicted = true
			f.Why += "; it is so too without " + names
		}
	}
}

// ExcuseKey returns a key of the excuses that a replay leaves out. Findings with equal
// keys share a replay.
func ExcuseKey(excuses []model.Excuse) string {
	var faults []int
	clocks := false
	for _, e := range excuses {
		if e.Fault > 0 {
			faults = append(faults, e.Fault)
		}
		clocks = clocks || e.Clocks
	}
	slices.Sort(faults)
	return fmt.Sprint(slices.Compact(faults), clocks)
}

// Without plays v's decisions again without the excuses of a convicted finding, and
// judges what happens.
func (v Verdict) Without(h *sim.Host, f linearizability.Finding) Verdict {
	less, _ := v.Scenario.without(f.Excuses)
	return Judge(h, less, v.Lock, v.Seed, v.Scenario.again(h, less, v.Lock, v.Played, f.Excuses))
}

// again plays the decisions of a run of the scenario in less, which is the scenario
// without those excuses.
func (sc *Scenario) again(h *sim.Host, less *Scenario, l *Lock, p Played, excuses []model.Excuse) Played {
	return PlayIn(h, less, l, sim.NewLenientReplayer(p.Decisions), sc.ordersWithout(p.Orders, excuses))
}

// without is the scenario less what excuses; nil when nothing can be left out.
func (sc *Scenario) without(excuses []model.Excuse) (*Scenario, string) {
	drop := map[int]bool{}
	clocks := false
	var names []string
	for _, e := range excuses {
		if !e.Removable() {
			continue
		}
		names = append(names, e.Why)
		drop[e.Fault] = true
		clocks = clocks || e.Clocks
	}
	if len(names) == 0 {
		return nil, ""
	}
	slices.Sort(names)
	less := *sc
	less.Faults = nil
	for i, f := range sc.Faults {
		if drop[i+1] || clocks && f.Kind == model.FaultWallClock {
			continue
		}
		less.Faults = append(less.Faults, f)
	}
	if clocks {
		less.Processes = slices.Clone(sc.Processes)
		for i := range less.Processes {
			less.Processes[i].WallOffset, less.Processes[i].WallDriftPPM = 0, 0
		}
	}
	return &less, strings.Join(slices.Compact(names), " and ")
}

// ordersWithout is the world's mode, less the message that met something there
// when that excuses.
func (sc *Scenario) ordersWithout(o *sim.Orders, excuses []model.Excuse) *sim.Orders {
	if o != nil && slices.ContainsFunc(excuses, func(e model.Excuse) bool { return e.Fault == sim.FateFault(len(sc.Faults)) }) {
		return &sim.Orders{}
	}
	return o
}

func (sc *Scenario) rules() []linearizability.Resource {
	var out []linearizability.Resource
	for _, r := range sc.Resources {
		out = append(out, linearizability.Resource(r))
	}
	return out
}
