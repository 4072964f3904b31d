package etcdtest_test

import (
	"context"
	"slices"
	"testing"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/etcdtest"
	"lockstep/scenarios/story"
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

// lax is a lock whose unlock asks whether there is a hold, and not whether it is its own.
type lax struct{ *lock }

func (l lax) Unlock(ctx context.Context) error {
	if l.revision == 0 {
		return locktest.ErrNotHeld
	}
	l.stop()
	r, err := l.c.Delete(ctx, l.name)
	if err != nil {
		return err
	}
	l.revision = 0
	_, _ = l.c.Revoke(ctx, l.lease)
	if r.Deleted == 0 {
		return locktest.ErrNotHeld
	}
	return nil
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
	for _, c := range []struct {
		name, story, judge string
		as                 func(*lock) locktest.Lock
	}{
		{"tells nobody", "holder-that-is-cut-off", "lease", func(l *lock) locktest.Lock { return mute{l} }},
		{"watches from now on", "release-after-request-2-of-a-waiter", "liveness", func(l *lock) locktest.Lock { return hasty{l} }},
		// The servers have no restart without their data, and lose it by an operator.
		{"frees any hold", "hold-of-another-thread", "mutual-exclusion", func(l *lock) locktest.Lock { return lax{l} }},
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
		broken := drawntest.Broken(t, s)
		if c.story == "" && broken != nil || c.story != "" && !slices.Contains(broken, c.story+" "+c.judge) {
			t.Errorf("the lock that %s breaks %q", c.name, broken)
		}
		if c.story != "" && !slices.ContainsFunc(story.Basic, func(s story.Story) bool { return s.Name == c.story }) {
			t.Errorf("there is no story %s", c.story)
		}
	}
}
