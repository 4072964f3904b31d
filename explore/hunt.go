package explore

import (
	"slices"

	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Kill says how soon a campaign finds a planted bug.
type Kill struct {
	// Runs is the number of runs until the judge that must find the bug finds it. It is 0
	// if the judge does not find it in the whole campaign.
	Runs int `json:"runs"`
	// First lists the judges that were broken in the first run that showed the bug.
	// FirstRuns is the number of runs until then.
	First     []string `json:"first,omitempty"`
	FirstRuns int      `json:"first_runs,omitempty"`
	// Run is the run in which the judge found the bug, and Failed is its failure.
	Run    Run    `json:"-"`
	Failed Failed `json:"-"`
}

// baseSeeds is the number of seeds with which the lock without the bug must keep the promise
// that the lock with the bug broke.
const baseSeeds = 4

// Hunt plays the runs of a plan in order until the judge finds the bug that is planted in
// the plan's lock. A finding counts only if the lock without the bug does not have it in the
// same scenario, with the same seed and the seeds after it. Hunt ends early once expired
// reports true; nil: it does not.
func Hunt(h *sim.Host, p Plan, judge string, expired func() bool) (k Kill, err error) {
	l, err := subject.Find(p.Lock)
	if err != nil {
		return k, err
	}
	err = p.each(h, l, func(r Run) (bool, error) {
		shown, err := p.shows(h, l, r)
		if len(shown) > 0 && k.FirstRuns == 0 {
			k.FirstRuns = r.Index + 1
			for _, failed := range shown {
				k.First = append(k.First, failed.Judge)
			}
			slices.Sort(k.First)
			k.First = slices.Compact(k.First)
		}
		if i := slices.IndexFunc(shown, func(f Failed) bool { return f.Judge == judge }); i >= 0 {
			k.Runs, k.Run, k.Failed = r.Index+1, r, shown[i]
		}
		return k.Runs == 0 && (expired == nil || !expired()), err
	})
	return k, err
}

// each plays the runs of a plan in order, and calls do after each until it reports false. The
// run has its scenario, and Text.
func (p Plan) each(h *sim.Host, l *subject.Subject, do func(Run) (bool, error)) error {
	var f *family
	tellings := p.tellings(l)
	for index := range p.Runs {
		if index%FamilyRuns == 0 {
			f = newFamily(tellings)
		}
		stories, _ := p.stories(tellings, index/FamilyRuns)
		r, err := p.play(h, l, p.next(index, f.runs, stories), f)
		if err != nil {
			return err
		}
		kept := f.add(r)
		kept.drawn, kept.Text, kept.Aimed = r.drawn, r.Text, r.Aimed
		r = kept
		if more, err := do(r); err != nil || !more {
			return err
		}
	}
	return nil
}

// Bug is a bug of a lock that a campaign can meet: that of a known defect, or of a judge and
// an operation if it has no name.
type Bug struct {
	Lock, Judge, Op string
	failure.Origin
}

// shownBy reports whether a failure is the bug.
func (b Bug) shownBy(f Failed) bool {
	if f.Class != judges.ClassBug {
		return false
	}
	if b.Defect != "" {
		return f.Defect == b.Defect
	}
	return f.Judge == b.Judge && f.Op == b.Op && f.Origin == b.Origin
}

// BugsOf returns the bugs that a run of a lock shows, each once.
func BugsOf(h *sim.Host, v play.Verdict) (bugs []Bug) {
	for _, x := range sightings(h, v) {
		if x.Class != judges.ClassBug {
			continue
		}
		b := Bug{Lock: v.Lock.Name, Origin: x.Origin}
		if x.Defect == "" {
			b.Judge, b.Op = x.Judge, x.Op
		}
		if !slices.Contains(bugs, b) {
			bugs = append(bugs, b)
		}
	}
	return bugs
}

// Seek plays the runs of a plan in order until each of the bugs was met, or expired reports true.
// It calls met when a run first shows a bug, with the index of the bug and the number of runs so far.
func Seek(h *sim.Host, p Plan, bugs []Bug, met func(bug, runs int), expired func() bool) error {
	l, err := subject.Find(p.Lock)
	if err != nil {
		return err
	}
	open := make([]int, len(bugs)) // the bugs that were not met
	for i := range open {
		open[i] = i
	}
	return p.each(h, l, func(r Run) (bool, error) {
		open = slices.DeleteFunc(open, func(i int) bool {
			shown := slices.ContainsFunc(r.Failures, bugs[i].shownBy)
			if shown {
				met(i, r.Index+1)
			}
			return shown
		})
		return len(open) > 0 && !expired(), nil
	})
}

// shows returns the failures of a run that the planted bug caused.
func (p Plan) shows(h *sim.Host, l *subject.Subject, r Run) (out []Failed, err error) {
	for _, f := range r.Failures {
		if f.Class == judges.ClassBug {
			out = append(out, f)
		}
	}
	sc := r.drawn.Clone()
	sc.Locks = []string{l.Unplanted().Name}
	for range baseSeeds {
		if len(out) == 0 {
			break
		}
		v := p.judge(h, l.Unplanted(), sc, r.Seed, p.chooser(r.Seed, r.Estimate))
		out = slices.DeleteFunc(out, func(f Failed) bool {
			return slices.ContainsFunc(v.Findings, func(b judges.Finding) bool { return b.Judge == f.Judge && b.Class == judges.ClassBug })
		})
		r.Seed++
	}
	return out, nil
}
