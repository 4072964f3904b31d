package strangers

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/explore/draw"
	"lockstep/locktest"
	"lockstep/sim"
)

var (
	fRenew = flag.String("s.renew", "", "")
	fWake  = flag.String("s.wake", "", "")
	fRuns  = flag.Int("s.runs", 30, "")
	fOnly  = flag.String("s.only", "", "")
	fSeed  = flag.Uint64("s.seed", 1, "")
	fSize  = flag.Int("s.size", 2, "")
	fProf  = flag.String("s.profiles", "simple,orderly,full", "")
	fName  = flag.String("stranger", "", "judge the stranger of this `NAME` as locktest.Run does, such as fresh+goroutine+waits")
)

func TestHunt(t *testing.T) {
	if os.Getenv("HUNT") == "" {
		t.Skip()
	}
	h := sim.NewHost(t)
	kinds := map[string]int{}
	list := Right(*fSize)
	if *fSize == 3 {
		two := map[Plumbing]bool{}
		for _, p := range Right(2) {
			two[p] = true
		}
		list = slices.DeleteFunc(list, func(p Plumbing) bool { return two[p] })
	}
	if *fOnly != "" {
		list = All()
	}
	for _, p := range list {
		if *fOnly != "" && p.String() != *fOnly || *fRenew != "" && !strings.Contains(*fRenew, string(p.Renewal)) || *fWake != "" && !strings.Contains(*fWake, string(p.Wake)) {
			continue
		}
		began := time.Now()
		l, err := register(h, p.Subject(Unchanged))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		show := func(a Accusation) bool {
			kinds[a.Judge]++
			if seen[a.Judge]++; seen[a.Judge] < 8 && !ignored(p, a) {
				fmt.Println("ALARM", a)
			}
			return true
		}
		tellStories(h, l, show)
		for _, profile := range strings.Split(*fProf, ",") {
			if _, err := drawRuns(h, l, draw.Profile(profile), *fSeed, *fRuns, func(a Accusation, _ int) bool { return show(a) }); err != nil {
				t.Error(err)
			}
		}
		fmt.Println("DONE", p, seen, time.Since(began).Round(time.Millisecond))
	}
	fmt.Println(kinds)
}

// TestStranger judges one stranger.
func TestStranger(t *testing.T) {
	if *fName == "" {
		t.Skip("no -stranger is given")
	}
	for _, p := range All() {
		for _, m := range append(p.Mutations(), Unchanged) {
			if s := p.Subject(m); s.Name == *fName {
				t.Run(*fName, func(t *testing.T) { locktest.Run(t, s, locktest.Options{Runs: 100}) })
				return
			}
		}
	}
	t.Fatalf("there is no stranger %q", *fName)
}

func TestMutantHunt(t *testing.T) {
	if os.Getenv("HUNT") == "" {
		t.Skip()
	}
	h := sim.NewHost(t)
	found, of := map[Mutation]int{}, map[Mutation]int{}
	for _, p := range Right(*fSize) {
		right, err := register(h, p.Subject(Unchanged))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.Mutations() {
			if *fOnly != "" && *fOnly != string(m) {
				continue
			}
			l, err := register(h, p.Subject(m))
			if err != nil {
				t.Fatal(err)
			}
			of[m]++
			var first *Accusation
			note := func(a Accusation) bool {
				if alone, err := a.alone(h, right); !alone || err != nil {
					return true
				}
				first = &a
				return false
			}
			tellStories(h, l, note)
			if first == nil {
				_, err = drawRuns(h, l, draw.Simple, 1, *fRuns, func(a Accusation, _ int) bool { return note(a) })
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

// ignored: false alarms that are known.
func ignored(p Plumbing, a Accusation) bool {
	switch {
	case a.Judge == "want" && strings.Contains(a.Why, "wanted [busy], got unknown"),
		strings.Contains(a.Why, "the bound is 1s"),
		strings.Contains(a.Why, "it had lost its place in the queue"),
		strings.Contains(a.Why, "call was over)"),
		p.Levels == Idempotent && (a.Judge == "mutual-exclusion" || strings.Contains(a.Why, " levels")),
		(p.Renewal == Ticker || p.Renewal == Timer || p.Renewal == Pipeline) && a.Judge == "linearizable":
		return true
	}
	return false
}
