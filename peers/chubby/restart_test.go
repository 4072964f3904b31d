package chubby_test

import (
	"os"
	"testing"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/locktest"
	"lockstep/peers/chubby"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// The scenarios of this package are of both its locks, and each test plays those of its own.
func TestMain(m *testing.M) {
	subject.Elsewhere(chubby.Lock.Name, chubby.WithoutDelay.Name)
	os.Exit(m.Run())
}

// In this run of a campaign a master restarts between the extension of a lease and its answer.
func TestAMasterRestartsBeforeItAnswers(t *testing.T) {
	h := sim.NewHost(t)
	l, err := subject.Find(chubby.Lock.Name)
	if err != nil { // no other test has registered it
		if err = locktest.Register(h, chubby.Lock); err == nil {
			l, err = subject.Find(chubby.Lock.Name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	plan := explore.Plan{World: sim.Version, Lock: l.Name, Faults: draw.Classes, Profile: draw.Simple, Strategy: explore.StrategyPlain, Seed: 1, Seeds: 50}
	seed, sc := plan.Draw(18416, l)
	if v := play.Run(h, sc, l, seed); v.Word != play.VerdictHeld {
		t.Errorf("%s: %v", v.Word, v.Findings)
	}
}
