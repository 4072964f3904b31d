package strangers

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

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

var (
	fRenew = flag.String("s.renew", "", "")
	fRuns  = flag.Int("s.runs", 30, "")
	fOnly  = flag.String("s.only", "", "")
	fSeed  = flag.Uint64("s.seed", 1, "")
	fSize  = flag.Int("s.size", 2, "")
	fProf  = flag.String("s.profiles", "simple,orderly,full", "")
)

func TestHunt(t *testing.T) {
	if os.Getenv("HUNT") == "" {
		t.Skip()
	}
	h := sim.NewHost(t)
	kinds := map[string]int{}
	for _, p := range list() {
		if *fOnly != "" && p.String() != *fOnly {
			continue
		}
		if *fRenew != "" && !strings.Contains(*fRenew, string(p.Renewal)) {
			continue
		}
		began := time.Now()
		s := p.Subject(Unchanged)
		if err := locktest.Register(h, s); err != nil {
			t.Fatal(err)
		}
		l, err := subject.Find(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		told := story.Of(l, 0)
		words := map[play.Word]int{}
		show := func(where, judge, why string) {
			kinds[judge]++
			fmt.Printf("ALARM %s | %s | %s | %s\n", p, where, judge, why)
		}
		for _, st := range story.Basic {
			if st.Lacks(told) != "" {
				continue
			}
			sc := st.Scenario(told)
			if play.Applies(sc, l) != nil {
				continue
			}
			v := play.RunTwice(h, sc, l, 1)
			words[v.Word]++
			for _, f := range v.Findings {
				if f.Class == judges.ClassBug {
					show("story "+st.Name, f.Judge, sentence.Finding(f))
				}
			}
			if v.Word == play.VerdictNondeterministic || v.Word == play.VerdictUndecided {
				show("story "+st.Name, string(v.Word), sentence.Verdict(v))
			}
		}
		for _, profile := range strings.Split(*fProf, ",") {
			plan := explore.Plan{World: sim.Version, Lock: l.Name, Strategy: explore.StrategyTold, Seed: *fSeed, Runs: *fRuns, Profile: draw.Profile(profile), Faults: draw.Classes}
			player := explore.HereOn(h, plan, l, nil)
			for family := range plan.Families() {
				if err := player.Family(family, nil, func(r explore.Run) error {
					words[r.Word]++
					for _, f := range r.Failures {
						if f.Class == judges.ClassBug {
							show(fmt.Sprintf("%s run %d", profile, r.Index), f.Judge, f.Why)
						}
					}
					if r.Word == play.VerdictNondeterministic || r.Word == play.VerdictUndecided {
						show(fmt.Sprintf("%s run %d", profile, r.Index), string(r.Word), r.Why)
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		}
		fmt.Printf("DONE %s %v %v\n", p, words, time.Since(began).Round(time.Millisecond))
	}
	fmt.Println(kinds)
}

var fName = flag.String("stranger", "", "judge the stranger of this `NAME` as locktest.Run does, such as fresh+goroutine+waits")

// TestStranger judges one stranger.
func TestStranger(t *testing.T) {
	if *fName == "" {
		t.Skip("no -stranger is given")
	}
	for _, p := range All() {
		if p.String() == *fName {
			t.Run(*fName, func(t *testing.T) { locktest.Run(t, p.Subject(Unchanged), locktest.Options{Runs: 100}) })
			return
		}
	}
	t.Fatalf("there is no stranger %q", *fName)
}

func list() []Plumbing {
	if *fOnly != "" {
		return All()
	}
	return Right(*fSize)
}

func TestCount(t *testing.T) {
	t.Log(len(All()), len(Right(1)), len(Right(2)), len(Right(3)))
}

func TestMutantHunt(t *testing.T) {
	if os.Getenv("HUNT") == "" {
		t.Skip()
	}
	h := sim.NewHost(t)
	found, of := map[Mutation]int{}, map[Mutation]int{}
	for _, p := range Right(*fSize) {
		for _, m := range p.Mutations() {
			if *fOnly != "" && *fOnly != string(m) {
				continue
			}
			l, err := Register(h, p.Subject(m))
			if err != nil {
				t.Fatal(err)
			}
			of[m]++
			var first *Accused
			note := func(a Accused) bool {
				if ignored(p, a) {
					return true
				}
				first = &a
				return false
			}
			Stories(h, l, note)
			if first == nil {
				_, err = Drawn(h, l, draw.Simple, 1, *fRuns, func(_ int, a Accused) bool { return note(a) })
			}
			if err != nil {
				t.Error(err)
			}
			if first != nil {
				found[m]++
				fmt.Println("FOUND", *first)
			} else {
				fmt.Println("MISSED", l.Name)
			}
		}
	}
	for _, c := range changes {
		fmt.Println(c.Mutation, found[c.Mutation], of[c.Mutation])
	}
}

// ignored: false alarms of today.
func ignored(p Plumbing, a Accused) bool {
	switch {
	case a.Judge == "want" && strings.Contains(a.Why, "wanted [busy], got unknown"):
		return true
	case strings.Contains(a.Why, "the bound is 1s"):
		return true
	case strings.Contains(a.Why, "it had lost its place in the queue"):
		return true
	case strings.Contains(a.Why, "answered released, but the lock was free") && (p.Renewal == Ticker || p.Renewal == Timer || p.Renewal == Pipeline):
		return true
	case p.Renewal == Ticker || p.Renewal == Timer || p.Renewal == Pipeline:
		return a.Judge == "linearizable"
	}
	return false
}
