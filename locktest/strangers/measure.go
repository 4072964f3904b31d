package strangers

import (
	"errors"
	"fmt"
	"slices"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/linearizability/judges"
	"lockstep/locktest"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Accusation is a finding of a bug, or the verdict of a run that cannot be judged.
type Accusation struct {
	Lock  string
	Where string // such as "the story late-unlock" or "run 17 of seed 1, profile full"
	Judge string // or the verdict
	Why   string

	scenario string
	seed     uint64
}

func (a Accusation) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", a.Lock, a.Where, a.Judge, a.Why)
}

// register makes a lock known to scenarios, and returns it as the rest of Lockstep has it.
func register(h *sim.Host, s locktest.Subject) (*subject.Subject, error) {
	if l, err := subject.Find(s.Name); err == nil {
		return l, nil
	}
	if err := locktest.Register(h, s); err != nil {
		return nil, err
	}
	return subject.Find(s.Name)
}

// tellStories plays the stories that apply to a lock, as locktest.Run does, and calls each with what they show. It ends when
// each returns false.
func tellStories(h *sim.Host, l *subject.Subject, each func(Accusation) bool) {
	told := story.Of(l, 0)
	for _, st := range story.Basic {
		if st.Lacks(told) != "" {
			continue
		}
		sc := st.Scenario(told)
		if play.Applies(sc, l) == nil && !accuse(play.RunTwice(h, sc, l, sc.SeedFirst), "the story "+st.Name, each) {
			return
		}
	}
}

func accuse(v play.Verdict, where string, each func(Accusation) bool) bool {
	text := v.Scenario.Write()
	for _, f := range v.Findings {
		if f.Class == judges.ClassBug && f.Verdict != judges.Undecided && !each(Accusation{v.Lock.Name, where, f.Judge, sentence.Finding(f), text, v.Seed}) {
			return false
		}
	}
	if v.Word == play.VerdictNondeterministic || v.Word == play.VerdictUndecided && len(v.Unmet) == 0 { // else the lock does not do what the story is about
		return each(Accusation{v.Lock.Name, where, string(v.Word), sentence.Verdict(v), text, v.Seed})
	}
	return true
}

// errEnough ends a family.
var errEnough = errors.New("strangers: enough was found")

// drawRuns plays runs that are drawn with all faults, and calls each with what they show and the number of runs so far. It
// ends when each returns false. It returns the number of runs that were played.
func drawRuns(h *sim.Host, l *subject.Subject, profile draw.Profile, seed uint64, runs int, each func(Accusation, int) bool) (played int, err error) {
	plan := explore.Plan{World: sim.Version, Lock: l.Name, Strategy: explore.DefaultStrategy, Seed: seed, Runs: runs, Profile: profile, Faults: draw.Classes}
	player := explore.HereOn(h, plan, l, nil)
	defer player.Close()
	var service play.Service // of all runs: in a single one, no call may have had the time to be granted
	for family := range plan.Families() {
		err := player.Family(family, nil, func(r explore.Run) error {
			played++
			service.Add(r.Service)
			a := Accusation{Lock: l.Name, Where: fmt.Sprintf("run %d of seed %d, profile %s", r.Index, seed, profile), scenario: r.Text, seed: r.Seed}
			for _, f := range r.Failures {
				if a.Judge, a.Why = f.Judge, f.Why; f.Class == judges.ClassBug && !each(a, played) {
					return errEnough
				}
			}
			if a.Judge, a.Why = string(r.Word), r.Why; (r.Word == play.VerdictNondeterministic || r.Word == play.VerdictUndecided && !r.TooLong()) && !each(a, played) {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return played, nil
		}
		if err != nil {
			return played, err
		}
	}
	if why := sentence.Denied(service); why != "" {
		each(Accusation{Lock: l.Name, Where: fmt.Sprintf("runs of seed %d, profile %s", seed, profile), Judge: string(play.VerdictUndecided), Why: why}, played)
	}
	return played, nil
}

// alone reports whether the right lock is not accused by the same judge in the same scenario.
func (a Accusation) alone(h *sim.Host, right *subject.Subject) (bool, error) {
	if a.scenario == "" { // a smaller run of its group was asked before
		return false, nil
	}
	sc, err := scenarios.Parse("accused.yaml", []byte(a.scenario), scenarios.AnyLock)
	if err != nil {
		return false, err
	}
	sc.Locks = []string{right.Name}
	v := play.Run(h, sc, right, a.seed)
	return !slices.ContainsFunc(v.Findings, func(f judges.Finding) bool {
		return f.Judge == a.Judge && f.Class == judges.ClassBug
	}), nil
}
