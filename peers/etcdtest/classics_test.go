package etcdtest_test

import (
	"context"
	"slices"
	"testing"

	"lockstep/linearizability/judges"
	"lockstep/locktest"
	"lockstep/peers/etcdtest"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// mute is a lock that never tells its holder of a loss.
type mute struct{ *lock }

func (mute) Lost() <-chan struct{} { return make(chan struct{}) }

// hasty is a lock whose waiter watches the key from the watch on, and not from the answer that refused it.
type hasty struct{ *lock }

func (l hasty) Lock(ctx context.Context) error {
	for {
		taken, err := l.try(ctx)
		if err == nil && taken > 0 {
			err = l.wait(ctx, 0)
		}
		if err != nil || taken == 0 {
			return err
		}
	}
}

type changed struct {
	*etcdtest.Client
	as func(*lock) locktest.Lock
}

func (c changed) Lock(name string) (locktest.Lock, error) {
	return c.as(&lock{c: c.ForLock(name), name: name}), nil
}

// A story finds each of these failures. It finds none in the lock without it.
func TestEachClassicFailureHasAStory(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		name, story, judge string
		as                 func(*lock) locktest.Lock
	}{
		{"tells nobody", "holder-that-is-cut-off", "lease", func(l *lock) locktest.Lock { return mute{l} }},
		{"watches from now on", "release-after-request-2-of-a-waiter", "liveness", func(l *lock) locktest.Lock { return hasty{l} }},
		{"has no failure", "", "", func(l *lock) locktest.Lock { return l }},
	} {
		s := orders
		s.Name = c.name
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			client, err := etcdtest.NewClient(p)
			if err != nil {
				return nil, err
			}
			return changed{client, c.as}, nil
		}
		if err := locktest.Register(h, s); err != nil {
			t.Fatal(err)
		}
		l, err := subject.Find(c.name)
		if err != nil {
			t.Fatal(err)
		}
		of, found := story.Of(l, 0), false
		for _, st := range story.Basic {
			if st.Lacks(of) != "" || play.Applies(st.Scenario(of), l) != nil || c.story != "" && st.Name != c.story {
				continue
			}
			for _, f := range play.Run(h, st.Scenario(of), l, 1).Findings {
				found = found || f.Judge == c.judge && f.Class == judges.ClassBug
				if c.story == "" && f.Class == judges.ClassBug {
					t.Errorf("%s breaks %s in %s", c.name, f.Judge, st.Name)
				}
			}
		}
		if found != (c.story != "") {
			t.Errorf("%s finds in %s that it breaks %s: %t", c.story, c.name, c.judge, found)
		}
		if c.story != "" && !slices.ContainsFunc(story.Basic, func(s story.Story) bool { return s.Name == c.story }) {
			t.Errorf("there is no story %s", c.story)
		}
	}
}
