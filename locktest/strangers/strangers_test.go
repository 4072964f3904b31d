package strangers

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"lockstep/explore/draw"
	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/sim"
)

var stranger = flag.String("stranger", "", "judge the stranger of this `NAME`, such as fresh+goroutine+waits, as a test of one's own does")

// TestStranger judges one lock, right or not, by locktest.Run, which shows its failures and keeps recordings of them.
func TestStranger(t *testing.T) {
	if *stranger == "" {
		t.Skip("no -stranger is given")
	}
	for _, p := range All() {
		for _, m := range append(p.Mutations(), Unchanged) {
			if s := p.Subject(m); s.Name == *stranger {
				t.Run(s.Name, func(t *testing.T) { locktest.Run(t, s, locktest.Options{}) })
				return
			}
		}
	}
	t.Fatalf("there is no stranger %q; its name is as TestNoRightLockIsAccused logs it with -v", *stranger)
}

// No judge accuses a right lock. The command strangers plays a thousand runs per profile.
func TestNoRightLockIsAccused(t *testing.T) {
	h := sim.NewHost(t)
	for _, p := range Right(longtest.Size(t, 1, 2)) {
		t.Log(p)
		lock, err := register(h, p.Subject(Unchanged))
		if err != nil {
			t.Fatal(err)
		}
		accuse := func(a Accusation) bool {
			t.Error(a)
			return true
		}
		tellStories(h, lock, accuse)
		for _, profile := range draw.Profiles {
			if _, err := drawRuns(h, lock, profile, 1, longtest.Size(t, 8, 40), func(a Accusation, _ int) bool { return accuse(a) }); err != nil {
				t.Error(err)
			}
		}
	}
}

// Each mutation is one that some plumbing can have, and each scenario for mutants is about one.
func TestMutationsAreKnown(t *testing.T) {
	var met []Mutation
	for _, p := range Right(2) {
		met = append(met, p.Mutations()...)
	}
	for _, c := range changes {
		if !slices.Contains(met, c.Mutation) {
			t.Errorf("no plumbing has the mutation %s", c.Mutation)
		}
	}
	files, err := witnesses.ReadDir("witness")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, _, _ := strings.Cut(f.Name(), ".")
		if !slices.ContainsFunc(changes, func(c change) bool { return string(c.Mutation) == name }) {
			t.Errorf("witness/%s is about no mutation", f.Name())
		}
	}
}

// The plumbings are right by the rules, each has its own name, and each choice is in one of them.
func TestRight(t *testing.T) {
	names := map[string]bool{}
	for _, p := range All() {
		if names[p.String()] {
			t.Errorf("two plumbings are %s", p)
		}
		names[p.String()] = true
	}
	for size, least := range map[int]int{1: 6, 2: 18, 3: 54} {
		right := Right(size)
		if len(right) < least {
			t.Errorf("%d plumbings have each right combination of %d choices; a renewal alone needs %d", len(right), size, least)
		}
		for _, p := range right {
			if why := p.Wrong(); why != "" {
				t.Errorf("%s: %s", p, why)
			}
		}
	}
	if why := (Plumbing{Value: Handle, Renewal: Never, Release: Script, Wake: Poll, Retry: ByClient, Taking: Direct, Levels: Flat, Servers: 1}).Wrong(); why == "" {
		t.Error("a value of the handle with retries is called right")
	}
}
