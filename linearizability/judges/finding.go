package judges

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// Class distinguishes a broken promise of the lock from a limit, which it never promised to
// overcome.
type Class string

// The classes.
const (
	ClassBug   Class = "bug"
	ClassLimit Class = "limit"
)

// Verdict says whether a promise is broken, or whether the judge cannot decide it.
type Verdict string

// The verdicts. Undecided means that the promise may be broken or kept: the search for
// an order of a history met its limit, or the harness contradicts itself.
const (
	Broken    Verdict = "broken"
	Undecided Verdict = "undecided"
)

// Finding is one result of a judge: a broken promise, or a promise that it could not decide.
type Finding struct {
	Judge   string
	Verdict Verdict
	Class   Class // of a broken promise
	AtNs    int64
	Ops     []OpRef
	// Excuses are the circumstances under which the promise does not hold. The finding is a limit
	// if it vanishes without them.
	Excuses []model.Excuse
	// Convicted reports whether a replay without the excuses also broke the promise, which makes
	// the finding a bug.
	Convicted bool
	// Control says what the controls of the lock show about the limit. If it is ControlKept, the
	// finding is a bug.
	Control Control
	// Doubt is why a broken promise of a live run is undecided; zero for all others.
	Doubt Doubt
	model.Facts
	Detail Detail
}

// Doubt says why it is unknown whether a promise was broken in a live run. One field is set.
type Doubt struct {
	Uncertainty time.Duration // the instants of the record are not known more exactly
	StoodStill  time.Duration // the time for which the machine stood still
}

// OpRef names an operation of the record.
type OpRef struct {
	Process  string
	Thread   int
	Op       string
	CallNs   int64
	ReturnNs int64 // -1: still open
}

// Judgement has the results of all judges for one run.
type Judgement struct {
	Findings []Finding // by judge in the order of model.Judges, then by instant
	Reached  []string  // in the order of model.Reachable
	Waits    Waits
}

// Resource is the rule of a resource for the judge workload.
type Resource struct {
	Name       string
	Start      int64
	NeverBelow *int64
	End        *int64
}

// A judge finds where one promise is broken in a run. It has the rules that no other judge needs.
type judge interface{ judge() []Finding }

// judgesOf returns the judges of a run by the names of their findings, in the order in which they judge.
func judgesOf(r *run, resources []Resource) []namedJudge {
	return []namedJudge{
		{model.JudgeMutualExclusion, exclusionJudge{r}},
		{model.JudgeMisdelete, misdeleteJudge{r}},
		{model.JudgeLinearizable, answerJudge{r}},
		{model.JudgeHoldCount, countJudge{r}},
		{model.JudgeFIFO, fifoJudge{r}},
		{model.JudgeLease, leaseJudge{r}},
		{model.JudgeLiveness, livenessJudge{r}},
		{model.JudgeWaitBound, waitBoundJudge{r}},
		{model.JudgeFencing, fencingJudge{r}},
		{model.JudgeTraffic, trafficJudge{r}},
		{model.JudgeTidy, tidyJudge{r}},
		{model.JudgeWant, wantJudge{r}},
		{JudgeHarness, harnessJudge{r}},
		{model.JudgeWorkload, workloadJudge{r, resources}},
	}
}

type namedJudge struct {
	name string
	judge
}

// NeedThreads are the judges that need to know for which thread a process sends a request. They are not asked
// about a run with anonymous processes, see [trace.Run].
var NeedThreads = []string{
	model.JudgeMutualExclusion, model.JudgeMisdelete, model.JudgeLinearizable, model.JudgeHoldCount, model.JudgeFIFO, model.JudgeLease,
	model.JudgeLiveness, model.JudgeFencing, model.JudgeTraffic, model.JudgeTidy,
}

// Judge returns the findings of each judge in a run. It leaves out findings about promises
// that the lock does not make. A finding with excuses is a limit until a replay without
// them shows that it is a bug.
func Judge(t *trace.Run, resources []Resource) Judgement {
	j := JudgeBy(nil, t, resources)
	r := newRun(t)
	j.Reached, j.Waits = r.reached(), waitsOf(t)
	return j
}

// JudgeBy returns the findings of the judges with these names; nil: of all judges. It does not say what
// the run reached.
func JudgeBy(names []string, t *trace.Run, resources []Resource) Judgement {
	r := newRun(t)
	var found []Finding
	for _, row := range judgesOf(r, resources) {
		if len(t.Anonymous) > 0 && slices.Contains(NeedThreads, row.name) {
			continue
		}
		if names == nil || slices.Contains(names, row.name) {
			found = append(found, row.judge.judge()...)
		}
	}
	return Judgement{Findings: classed(r.Record.Params, found)}
}

// JudgeLinearizable returns the findings of the judge linearizable.
func JudgeLinearizable(t *trace.Run) []Finding {
	return classed(t.Record.Params, answerJudge{newRun(t)}.judge())
}

// classed returns the findings about promises that the lock makes, with their classes, in
// their order.
func classed(params model.Params, found []Finding) (out []Finding) {
	for _, f := range found {
		if f.Judge != JudgeHarness && !slices.Contains(model.Judges, f.Judge) {
			panic("judges: a finding of " + f.Judge + ", which is not in model.Judges")
		}
		if f.Verdict == Broken {
			promise, ok := params.Promise(f.Judge)
			if !ok {
				continue // the lock does not promise it
			}
			f.Class = ClassBug
			f.Excuses = promise.Admit(f.Excuses)
			if len(f.Excuses) > 0 {
				f.Class = ClassLimit
			}
		}
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(model.Judges, a.Judge), slices.Index(model.Judges, b.Judge)),
			cmp.Compare(a.AtNs, b.AtNs))
	})
	return out
}

// Alike reports whether two findings say the same of the same thread and lock, at whatever instant and for
// whatever reason.
func (f Finding) Alike(g Finding) bool {
	return f.Judge == g.Judge && f.Form == g.Form && f.Lock == g.Lock && f.Thread == g.Thread && reflect.TypeOf(f.Detail) == reflect.TypeOf(g.Detail)
}

// HasBugLike reports whether a finding like f is a bug of the run.
func (j Judgement) HasBugLike(f Finding) bool {
	return slices.ContainsFunc(j.Findings, func(g Finding) bool { return g.Class == ClassBug && g.Alike(f) })
}

// Has reports whether the promise of a judge is broken in the run, and whether that is a bug.
func (j Judgement) Has(judge string) (broken, bug bool) {
	for _, f := range j.Findings {
		if f.Judge == judge && f.Verdict == Broken {
			broken = true
			bug = bug || f.Class == ClassBug
		}
	}
	return broken, bug
}
