package play

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
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
	// VerdictNotApplicable says that the scenario was not played, see Applies and Claims.
	VerdictNotApplicable Word = "n/a"
)

// Verdict is the judgement on one run.
type Verdict struct {
	Scenario *scenarios.Scenario
	Lock     *subject.Subject
	Seed     uint64
	Word     Word
	// Expected says what the file expects, in a few words.
	Expected   string
	AsExpected bool
	Findings   []judges.Finding
	Reached    []string
	Waits      judges.Waits
	// Service says what the lock did for its callers before the first fault. A run is undecided if it
	// is Broken and shows no bug.
	Service Service
	// Unsimulated is what the servers of the world met and do not simulate, and the real ones have. The
	// run says nothing from then on: later findings are left out, and without an earlier bug it is
	// undecided.
	Unsimulated []string
	// Why says what an undecided or nondeterministic run lacks, or why a scenario does
	// not apply; else "". It is also "" if a finding leaves the run undecided, see Doubtful, or if
	// Service or Unsimulated does.
	Why string
	// Unmet are the rules, in words, that kept a message for something that did not happen. Run sets it,
	// and a run that would be held is undecided then: what the scenario is about did not come.
	Unmet []string
	// Lacks is the reason why a scenario does not apply, see Misfit.
	Lacks  string
	Played Played
	// replays are the replays that convicted a finding, by ExcuseKey.
	replays map[string]Played
}

// Digest returns the digest of the run's record, or "" if the scenario was not played.
func (v Verdict) Digest() string {
	if v.Played.Record == nil {
		return ""
	}
	return v.Played.Record.Digest()
}

// Writers plays the run again and returns the code that wrote each message, by the number of the
// message. It returns nil if the run is not the same again.
func (v Verdict) Writers(h *sim.Host) map[int][]sim.Site {
	again := PlayIn(h.Traced(), v.Scenario, v.Lock, sim.NewReplayer(v.Played.Decisions), v.Played.Orders)
	if again.Record.Digest() != v.Digest() {
		return nil
	}
	return again.Writers
}

// Names reports whether the scenario names the lock. If it does not, the lock is expected to keep
// its promises.
func (v Verdict) Names() bool { return slices.Contains(v.Scenario.Locks, v.Lock.Expected()) }

// Run plays one seed of a scenario on a lock and judges it. It does not play a scenario that does
// not apply to the lock, nor one that asks about a property that the lock does not claim.
func Run(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, seed uint64) Verdict {
	mustPass(l.Check())
	if err := Plays(sc, l); err != nil {
		return NotApplicable(sc, l, seed, err)
	}
	p := playIn(h, sc, l, sim.NewSeeded(seed), nil)
	if h.Stopped() {
		return Verdict{Scenario: sc, Lock: l, Seed: seed, Word: VerdictUndecided, Why: "the run was stopped"}
	}
	v := Judge(h, sc, l, seed, p)
	if v.Word != VerdictBug && v.Service.Broken() { // among drawn runs, another may show that the lock works
		v.Word, v.AsExpected = VerdictUndecided, false
	}
	if v.Unmet = unmet(p.Record); len(v.Unmet) > 0 && v.Word == VerdictHeld {
		v.Word, v.AsExpected = VerdictUndecided, false
		v.Why = "a message was kept to the end by " + strings.Join(v.Unmet, ", and by ") + ", which did not happen"
	}
	return v
}

// unmet returns the rules that met a message and waited for something that did not happen, in words.
func unmet(rec *model.Record) (rules []string) {
	waits := map[int]bool{}
	for _, e := range rec.Events {
		switch e.Kind {
		case model.KindHit:
			waits[e.Fault] = true
		case model.KindFaultEnd:
			delete(waits, e.Fault)
		}
		if e.Kind == model.KindCalm { // now the other rules end
			break
		}
	}
	for i, f := range rec.Params.Faults {
		if f.Awaits != nil && waits[i+1] {
			rules = append(rules, f.String())
		}
	}
	return rules
}

// NotApplicable is the verdict on a scenario that was not played, with the reason.
func NotApplicable(sc *scenarios.Scenario, l *subject.Subject, seed uint64, reason error) Verdict {
	v := Verdict{Scenario: sc, Lock: l, Seed: seed, Word: VerdictNotApplicable, AsExpected: true, Why: reason.Error()}
	var m *Misfit
	if errors.As(reason, &m) {
		v.Lacks = m.Lacks
	}
	return v
}

// RunTwice runs twice. If the digests differ, the verdict is nondeterministic. If a server did not start, it is undecided.
func RunTwice(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, seed uint64) Verdict {
	v := Run(h, sc, l, seed)
	if v.Word == VerdictNotApplicable || h.Stopped() || v.Played.Record.Unstarted() != "" {
		return v
	}
	second := Play(h, sc, l, sim.NewSeeded(seed)).Result
	if why := second.Record.Unstarted(); why != "" {
		v.Word, v.AsExpected, v.Why = VerdictUndecided, false, notLocks(why)
		return v
	}
	if once, again := v.Digest(), second.Record.Digest(); again != once && !h.Stopped() {
		v.Word, v.AsExpected = VerdictNondeterministic, false
		v.Why = fmt.Sprintf("two runs of seed %d gave different records: %.12s and %.12s", seed, once, again)
		if where := Explain(h, sc, l, func() sim.Chooser { return sim.NewSeeded(seed) }, v.Played.Result, second); where != "" {
			v.Why += "; " + where
		}
	}
	return v
}

// Judge judges a run that was played with any decisions.
func Judge(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, seed uint64, p Played) Verdict {
	p.Trace = trace.New(p.Record)
	j := judges.Judge(p.Trace, Rules(sc))
	j.Findings = faithful(p.Record, j.Findings)
	replays := convict(h, sc, l, p, &j, nil)
	contrast(h, sc, l, p, &j)
	v := Decide(sc, l, seed, p, j)
	v.replays = replays
	return v
}

// faithful returns the findings about what happened before a server met what it does not simulate, and before
// the lock panicked.
func faithful(rec *model.Record, found []judges.Finding) []judges.Finding {
	i := slices.IndexFunc(rec.Events, func(e model.Event) bool { return e.Kind == model.KindUnsimulated || e.Kind == model.KindDefect })
	if i < 0 {
		return found
	}
	at := rec.Events[i].AtNs
	return slices.DeleteFunc(found, func(f judges.Finding) bool {
		return f.Judge != judges.JudgeHarness && (f.AtNs >= at || slices.ContainsFunc(f.Ops, func(o judges.OpRef) bool { return o.ReturnNs >= at }))
	})
}

// Breaks reports whether a run breaks the promise of a judge, whatever the cause. It asks this judge
// alone, and plays no replays.
func Breaks(sc *scenarios.Scenario, p Played, judge string) bool {
	broken, _ := judges.JudgeBy([]string{judge}, trace.New(p.Record), Rules(sc)).Has(judge)
	return broken
}

// Decide makes the verdict on a run from the findings of the judges.
func Decide(sc *scenarios.Scenario, l *subject.Subject, seed uint64, p Played, j judges.Judgement) Verdict {
	e := sc.Expect[l.Expected()]
	if e.Class == "" {
		e.Class = scenarios.Held
	}
	if !slices.Contains(sc.Locks, l.Expected()) { // the author wants these answers of other locks
		j.Findings = slices.DeleteFunc(slices.Clone(j.Findings), func(f judges.Finding) bool { return f.Judge == model.JudgeWant })
	}
	v := Verdict{
		Scenario: sc, Lock: l, Seed: seed, Expected: e.String(), Findings: j.Findings, Reached: j.Reached, Waits: j.Waits,
		Service: serviceOf(p.Trace), Unsimulated: p.Record.Unsimulated(), Played: p,
	}
	if why := p.Record.Unstarted(); why != "" {
		v.Word, v.Why = VerdictUndecided, notLocks(why)
		return v
	}
	v.Word = word(j)
	if v.Word != VerdictBug && len(v.Unsimulated) > 0 {
		v.Word = VerdictUndecided
	}
	if missing := missing(append(slices.Clone(sc.Reach), e.Reach...), j.Reached); len(missing) > 0 && v.Word != VerdictUndecided {
		v.Word = VerdictUndecided
		v.Why = "the run did not reach " + strings.Join(missing, ", ")
	}
	v.AsExpected = v.Word != VerdictUndecided && met(e, v.Word, j)
	return v
}

// notLocks says that a server did not start.
func notLocks(why string) string {
	return why + ". This is of the machine, and not of the lock; run it again"
}

func word(j judges.Judgement) Word {
	w := VerdictHeld
	for _, f := range j.Findings {
		switch {
		case f.Class == judges.ClassBug:
			return VerdictBug
		case f.Verdict == judges.Undecided:
			w = VerdictUndecided
		case w == VerdictHeld:
			w = VerdictLimit
		}
	}
	return w
}

// Doubtful returns the last of the findings that leave the run undecided. It reports false
// if none does; then Why says what the run lacks.
func (v Verdict) Doubtful() (judges.Finding, bool) {
	if v.Word == VerdictUndecided && v.Why == "" && len(v.Unsimulated) == 0 {
		for _, f := range slices.Backward(v.Findings) {
			if f.Verdict == judges.Undecided {
				return f, true
			}
		}
	}
	return judges.Finding{}, false
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

// met reports whether the class is right and all named judges are broken.
func met(e scenarios.Expectation, w Word, j judges.Judgement) bool {
	all := true
	for _, judge := range e.Judges {
		broken, _ := j.Has(judge)
		if e.Class == scenarios.Not && broken {
			return false
		}
		all = all && broken
	}
	switch e.Class {
	case scenarios.Not:
		return true
	case scenarios.Held:
		return w == VerdictHeld
	case scenarios.Bug:
		return all && w == VerdictBug
	default:
		return all && w == VerdictLimit
	}
}

// convict turns a limit into a bug if it remains when the same decisions are replayed
// without its excuses. It returns the replays that convicted a finding, by ExcuseKey. asked is
// that of Convict.
func convict(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, p Played, j *judges.Judgement, asked []judges.Finding) map[string]Played {
	played := map[string]Played{}
	Convict(sc, j, asked, func(less *scenarios.Scenario, excuses []model.Excuse, asked []judges.Finding) judges.Judgement {
		replay := replayWithout(h, sc, less, l, p, excuses)
		var names []string
		for _, f := range asked {
			names = append(names, f.Judge)
		}
		again := judges.JudgeBy(names, trace.New(replay.Record), Rules(less))
		again.Findings = faithful(replay.Record, again.Findings)
		// A finding of the replay may have an excuse of its own.
		convict(h, less, l, replay, &again, asked)
		played[ExcuseKey(excuses)] = replay
		return again
	})
	convicted := map[string]Played{}
	for _, f := range j.Findings {
		if f.Convicted {
			key := ExcuseKey(f.Excuses)
			convicted[key] = played[key]
		}
	}
	return convicted
}

// Convict is for the judgement of a run of sc. It turns a limit into a bug if a finding like it is a bug in
// the run of less, which is sc without the excuses of the limit. again plays and judges that
// run. A replay is asked only about the findings that may be convicted by it: if asked is not nil,
// Convict finds out only which findings like these are bugs.
func Convict(sc *scenarios.Scenario, j *judges.Judgement, asked []judges.Finding, again func(less *scenarios.Scenario, excuses []model.Excuse, asked []judges.Finding) judges.Judgement) {
	matters := func(f judges.Finding) bool {
		return f.Class == judges.ClassLimit && (asked == nil || slices.ContainsFunc(asked, f.Alike))
	}
	inDoubt := map[string][]judges.Finding{} // the limits that matter, by the key of their excuses
	for _, f := range j.Findings {
		if matters(f) {
			key := ExcuseKey(f.Excuses)
			inDoubt[key] = append(inDoubt[key], f)
		}
	}
	replays := map[string]judges.Judgement{}
	for i := range j.Findings {
		f := &j.Findings[i]
		if !matters(*f) || asked != nil && j.HasBugLike(*f) {
			continue
		}
		without := removeExcuses(sc, f.Excuses)
		if without == nil {
			continue // a caller is the excuse, so there is no fault to leave out
		}
		key := ExcuseKey(f.Excuses)
		replay, ok := replays[key]
		if !ok {
			replay = again(without, f.Excuses, inDoubt[key])
			replays[key] = replay
		}
		if replay.HasBugLike(*f) {
			f.Class = judges.ClassBug
			f.Convicted = true
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

// Without returns what happens to v's decisions without the excuses of a convicted finding. It
// plays them again unless a replay that convicted the finding is at hand.
func (v Verdict) Without(h *sim.Host, f judges.Finding) Verdict {
	less := removeExcuses(v.Scenario, f.Excuses)
	replay, ok := v.replays[ExcuseKey(f.Excuses)]
	if !ok {
		replay = replayWithout(h, v.Scenario, less, v.Lock, v.Played, f.Excuses)
	}
	return Judge(h, less, v.Lock, v.Seed, replay)
}

// replayWithout plays the decisions of a run of sc again in less. less is sc without the
// excuses.
func replayWithout(h *sim.Host, sc, less *scenarios.Scenario, l *subject.Subject, p Played, excuses []model.Excuse) Played {
	return PlayIn(h, less, l, sim.NewLenientReplayer(p.Decisions), ordersWithout(sc, p.Orders, excuses))
}

// removeExcuses returns the scenario without the faults that excuse a finding. It returns
// nil when there is no such fault.
func removeExcuses(sc *scenarios.Scenario, excuses []model.Excuse) *scenarios.Scenario {
	drop := map[int]bool{}
	clocks := false
	for _, e := range excuses {
		if !e.Removable() {
			continue
		}
		drop[e.Fault] = true
		clocks = clocks || e.Clocks
	}
	if len(drop) == 0 {
		return nil
	}
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
	return &less
}

// ordersWithout returns the world's mode. If a message that the chooser lost or delayed excuses the
// finding, the chooser of that mode may do so no more.
func ordersWithout(sc *scenarios.Scenario, o *sim.Orders, excuses []model.Excuse) *sim.Orders {
	if o != nil && slices.ContainsFunc(excuses, func(e model.Excuse) bool { return e.Fault == sim.FateFault(len(sc.Faults)) }) {
		return &sim.Orders{}
	}
	return o
}

// Rules returns the rules of the resources, for the judges.
func Rules(sc *scenarios.Scenario) []judges.Resource {
	var out []judges.Resource
	for _, r := range sc.Resources {
		out = append(out, judges.Resource{Name: r.Name, Start: r.Start, NeverBelow: r.NeverBelow, End: r.End})
	}
	return out
}
