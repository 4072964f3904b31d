package play_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// failing is a client whose calls of some kinds fail, before they ask a server.
type failing struct {
	lockimpl.Client
	locks, unlocks bool
}

func (c failing) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.Client.GetLock(name)
	return failingLock{l, c}, err
}

type failingLock struct {
	object
	of failing
}

type object = lockimpl.Lock

var (
	errLock   = errors.New("ERR unknown command 'TAKE'")
	errUnlock = errors.New("ERR unknown command 'FREE'")
)

func (l failingLock) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	if l.of.locks {
		return errLock
	}
	return l.object.Lock(ctx, o, opt)
}

func (l failingLock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if l.of.locks {
		return false, errLock
	}
	return l.object.TryLockTimed(ctx, o, opt)
}

func (l failingLock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	if l.of.unlocks {
		return lockimpl.Released, errUnlock
	}
	return l.object.Unlock(ctx, o)
}

// fails returns a lock whose calls of some kinds fail.
func fails(t *testing.T, locks, unlocks bool) *subject.Subject {
	l := *scenariotest.Lock(t, "setnx-cad")
	open := l.Open
	l.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
		c, err := open(p, o)
		return failing{c, locks, unlocks}, err
	}
	return &l
}

// doubtful is a client whose unlocks have an unknown outcome, after a pause. If works is set, they give the lock up first.
type doubtful struct {
	lockimpl.Client
	works bool
}

func (c doubtful) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.Client.GetLock(name)
	return doubtfulLock{l, c.works}, err
}

type doubtfulLock struct {
	object
	works bool
}

func (l doubtfulLock) Unlock(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
	if l.works {
		if _, err := l.object.Unlock(ctx, o); err != nil {
			return lockimpl.Released, err
		}
	}
	time.Sleep(2 * time.Second)
	return lockimpl.Released, fmt.Errorf("%w: the pool has no connection", lockimpl.ErrUnknownOutcome)
}

// A lease that ends during an unlock which does nothing is no effect of that unlock.
func TestAnUnlockOfUnknownOutcomeWorkedIfItEndedTheHold(t *testing.T) {
	const one = `
lockstep: 1
name: one
locks: [setnx-cad]
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 1s}}, {unlock: x}]
  b/1: [{at: 500ms}, {lock: {name: x, lease: 5s}}, {unlock: x}]
`
	for _, works := range []bool{false, true} {
		l := *scenariotest.Lock(t, "setnx-cad")
		open := l.Open
		l.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
			c, err := open(p, o)
			return doubtful{c, works}, err
		}
		v := play.Run(sim.NewHost(t), scenariotest.Parse(t, one), &l, 1)
		useless := v.Service.Useless()
		if works && len(useless) > 0 {
			t.Errorf("unlocks that work: %s", sentence.Useless(useless[0]))
		}
		if !works && (len(useless) != 1 || useless[0].Action != model.ActUnlock || useless[0].Asked == 0) {
			t.Errorf("unlocks that do nothing while the lease ends: useless are %v; want the unlocks", useless)
		}
	}
}

// A run in which no call was ever granted says nothing of the lock, whatever the judges find.
func TestARunWithoutAGrantIsUndecided(t *testing.T) {
	const two = `
lockstep: 1
name: two
locks: [setnx-cad]
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {sleep: 1s}, {unlock: x}]
  b/1: [{at: 500ms}, {try_lock: {name: x, wait: 4s}}, {unlock: x}]
`
	h := sim.NewHost(t)
	for _, c := range []struct {
		rule           string
		locks, unlocks bool
		text           string
		word           play.Word
		why            string
		denied         string // of the service of the run
		useless        string // the first kind of its calls that never worked
	}{
		{rule: "each acquire fails", locks: true, text: two, word: play.VerdictUndecided, why: `none of 2 acquires that ended before a fault was; the first error of lock is "ERR unknown command 'TAKE'"`},
		{rule: "a fault after them is no reason", locks: true, text: two + "faults: [{at: 9s, server: restart, keep_data: true}]\n", word: play.VerdictUndecided, why: "none of 2 acquires"},
		{rule: "a fault before them may be", locks: true, text: two + "faults: [{at: 0s, server: restart, keep_data: true}]\n", word: play.VerdictHeld},
		{rule: "each unlock fails", unlocks: true, text: two, word: play.VerdictHeld,
			denied:  `nobody ever got the lock after the hold of another was over: none of 1 acquire did before a fault; the first error of unlock is "ERR unknown command 'FREE'"`,
			useless: `no unlock ever worked: none of 1 that ended before a fault did; the first error is "ERR unknown command 'FREE'"`},
		{rule: "nothing fails", text: two, word: play.VerdictHeld},
	} {
		v := play.Run(h, scenariotest.Parse(t, c.text), fails(t, c.locks, c.unlocks), 1)
		if why := sentence.Verdict(v); v.Word != c.word || !strings.Contains(why, c.why) || (c.word == play.VerdictHeld) != (why == "") {
			t.Errorf("%s: %s, %q; want %s, %q", c.rule, v.Word, why, c.word, c.why)
		}
		if got := sentence.Denied(v.Service); c.denied != "" && !strings.Contains(got, c.denied) || c.denied == "" && c.why == "" && got != "" {
			t.Errorf("%s: %q; want %q", c.rule, got, c.denied)
		}
		useless := ""
		for _, k := range v.Service.Useless() {
			useless = sentence.Useless(k)
		}
		if useless != c.useless {
			t.Errorf("%s: %q; want %q", c.rule, useless, c.useless)
		}
	}
}
