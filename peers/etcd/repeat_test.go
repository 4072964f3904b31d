package etcd_test

import (
	"testing"

	"lockstep/explore"
	"lockstep/locktest"
	"lockstep/peers/etcd"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// In these runs connections break while several threads wait. Requests that go on at one instant, watches
// that begin anew, and headers in the order of a map made some of them differ.
func TestDrawnRunsRepeat(t *testing.T) {
	h := sim.NewHost(t)
	if err := locktest.Register(h, etcd.Mutex); err != nil {
		t.Fatal(err)
	}
	l, err := subject.Find(etcd.Mutex.Name)
	if err != nil {
		t.Fatal(err)
	}
	plan := explore.Repetition{Lock: l.Name, SeedFirst: 1, SeedLast: 1, Drawn: 40}
	once, err := plan.Play(h, l)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.Play(h, l)
	if err != nil {
		t.Fatal(err)
	}
	r, err := explore.Compare(l.Name, once, again)
	if err != nil {
		t.Fatal(err)
	}
	if r.Drawn != [2]int{plan.Drawn, 0} {
		t.Errorf("%d of %d drawn runs differ: %v", r.Drawn[1], r.Drawn[0], r.Differing)
	}
}
