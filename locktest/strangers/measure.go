package strangers

import (
	"fmt"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/linearizability/judges"
	"lockstep/locktest"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Accused is a finding of a bug, or a run that cannot be judged.
type Accused struct {
	Lock  string
	Where string // such as "the story late-unlock" or "run 17, profile full"
	Judge string // or the verdict of a run that cannot be judged
	Why   string
}

func (a Accused) String() string {
	return fmt.Sprintf("%s: %s: %s: %s", a.Lock, a.Where, a.Judge, a.Why)
}

// Register makes a stranger known to scenarios, and returns it as the rest of Lockstep has it.
func Register(h *sim.Host, s locktest.Subject) (*subject.Subject, error) {
	if l, err := subject.Find(s.Name); err == nil {
		return l, nil
	}
	if err := locktest.Register(h, s); err != nil {
		return nil, err
	}
	return subject.Find(s.Name)
}

// Stories plays the stories that apply to a lock, as locktest.Run does. It ends when each returns false.
func Stories(h *sim.Host, l *subject.Subject, each func(Accused) bool) {
	told := story.Of(l, 0)
	for _, st := range story.Basic {
		if st.Lacks(told) != "" {
			continue
		}
		sc := st.Scenario(told)
		if play.Applies(sc, l) != nil {
			continue
		}
		v := play.RunTwice(h, sc, l, sc.SeedFirst)
		if !accuse(v, "the story "+st.Name, each) {
			return
		}
	}
}

func accuse(v play.Verdict, where string, each func(Accused) bool) bool {
	for _, f := range v.Findings {
		if f.Class == judges.ClassBug && !each(Accused{v.Lock.Name, where, f.Judge, sentence.Finding(f)}) {
			return false
		}
	}
	if v.Word == play.VerdictNondeterministic || v.Word == play.VerdictUndecided {
		return each(Accused{v.Lock.Name, where, string(v.Word), sentence.Verdict(v)})
	}
	return true
}

// Drawn plays runs that are drawn with all faults. It calls each for each of their bugs, and ends when each returns false.
// It returns the number of runs that were played.
func Drawn(h *sim.Host, l *subject.Subject, profile draw.Profile, seed uint64, runs int, each func(run int, a Accused) bool) (played int, err error) {
	plan := explore.Plan{World: sim.Version, Lock: l.Name, Strategy: explore.DefaultStrategy, Seed: seed, Runs: runs, Profile: profile, Faults: draw.Classes}
	player := explore.HereOn(h, plan, l, nil)
	defer player.Close()
	more := true
	for family := 0; family < plan.Families() && more; family++ {
		err = player.Family(family, nil, func(r explore.Run) error {
			played++
			where := fmt.Sprintf("run %d of seed %d, profile %s", r.Index, seed, profile)
			for _, f := range r.Failures {
				more = more && (f.Class != judges.ClassBug || each(r.Index, Accused{l.Name, where, f.Judge, f.Why}))
			}
			if r.Word == play.VerdictNondeterministic || r.Word == play.VerdictUndecided && !r.TooLong() {
				more = more && each(r.Index, Accused{l.Name, where, string(r.Word), r.Why})
			}
			if !more {
				return errEnough
			}
			return nil
		})
		if err != nil && more {
			return played, err
		}
	}
	return played, nil
}

var errEnough = fmt.Errorf("enough")
