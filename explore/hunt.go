package explore

import (
	"slices"

	"lockstep/linearizability/judges"
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
// same scenario, with the same seed and the seeds after it.
func Hunt(h *sim.Host, p Plan, judge string) (k Kill, err error) {
	l, err := subject.Find(p.Lock)
	if err != nil {
		return k, err
	}
	var f *family
	for index := range p.Runs {
		if index%FamilyRuns == 0 {
			f = newFamily()
		}
		r, err := p.play(h, l, p.next(index, f.runs), f)
		if err != nil {
			return k, err
		}
		drawn := r.Scenario
		shown, err := p.shows(h, l, r)
		if err != nil {
			return k, err
		}
		r = f.add(r)
		r.Scenario = drawn
		if len(shown) > 0 && k.FirstRuns == 0 {
			k.FirstRuns = index + 1
			for _, failed := range shown {
				k.First = append(k.First, failed.Judge)
			}
			slices.Sort(k.First)
			k.First = slices.Compact(k.First)
		}
		if i := slices.IndexFunc(shown, func(f Failed) bool { return f.Judge == judge }); i >= 0 {
			k.Runs, k.Run, k.Failed = index+1, r, shown[i]
			return k, nil
		}
	}
	return k, nil
}

// shows returns the failures of a run that the planted bug caused.
func (p Plan) shows(h *sim.Host, l *subject.Subject, r Run) (out []Failed, err error) {
	for _, f := range r.Failures {
		if f.Class == judges.ClassBug {
			out = append(out, f)
		}
	}
	sc, err := r.scenario()
	if err != nil {
		return nil, err
	}
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
