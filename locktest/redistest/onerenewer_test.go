package redistest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// oneRenewer renews all holds of a process, each with its own value, in a goroutine that the first grant starts.
type oneRenewer struct {
	start   sync.Once
	ctx     context.Context
	round   chan struct{} // has room while nothing is renewed and no hold is given up
	holds   []*setnx
	forgets bool // it goes on to renew holds that were given up: a bug
	// pipe: it renews all holds by one pipeline, lets a hold be given up before the answers come, and drops a hold that the
	// server does not have. confuses: it matches the answers with the holds that are left when they come: a bug.
	pipe, confuses bool
}

func (w *oneRenewer) run() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-time.After(lease / 4):
		}
		w.round <- struct{}{}
		if w.pipe {
			w.renewAtOnce()
			<-w.round
			continue
		}
		for _, l := range w.holds {
			_ = l.rdb.Eval(w.ctx, compareAndExpire, []string{l.name}, l.value, lease.Milliseconds()).Err()
		}
		<-w.round
	}
}

// renewAtOnce is called in a round.
func (w *oneRenewer) renewAtOnce() {
	if len(w.holds) == 0 {
		return
	}
	pipe, sent, answers := w.holds[0].rdb.Pipeline(), slices.Clone(w.holds), []*redis.Cmd(nil)
	for _, l := range sent {
		answers = append(answers, pipe.Eval(w.ctx, compareAndExpire, []string{l.name}, l.value, lease.Milliseconds()))
	}
	<-w.round
	_, _ = pipe.Exec(w.ctx)
	w.round <- struct{}{}
	if w.confuses {
		sent = slices.Clone(w.holds)
	}
	for i, l := range sent[:min(len(sent), len(answers))] {
		if n, err := answers[i].Int(); n == 0 && err == nil {
			w.holds = slices.DeleteFunc(w.holds, func(x *setnx) bool { return x == l })
		}
	}
}

// heldInCommon is a lock whose hold a oneRenewer renews.
type heldInCommon struct {
	setnx
	w    *oneRenewer
	held *setnx
}

func (l *heldInCommon) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.setnx.TryLock(ctx)
	if ok {
		l.w.start.Do(func() { go l.w.run() })
		held := l.setnx
		l.held = &held
		l.w.round <- struct{}{}
		l.w.holds = append(l.w.holds, l.held)
		<-l.w.round
	}
	return ok, err
}

func (l *heldInCommon) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *heldInCommon) Unlock(ctx context.Context) error {
	l.w.round <- struct{}{}
	if !l.w.forgets {
		l.w.holds = slices.DeleteFunc(l.w.holds, func(x *setnx) bool { return x == l.held })
	}
	<-l.w.round
	return l.setnx.Unlock(ctx)
}

type inCommonClient struct {
	anyClient
	end context.CancelFunc
}

func (c inCommonClient) Close() error {
	c.end()
	return c.anyClient.Close()
}

func oneRenewerSubject(name string, kind *oneRenewer) locktest.Subject {
	s := subjectOf(name, false)
	s.Renewed, s.RenewEvery = true, lease/4
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		ctx, end := context.WithCancel(context.Background())
		w := &oneRenewer{ctx: ctx, round: make(chan struct{}, 1), forgets: kind.forgets, pipe: kind.pipe, confuses: kind.confuses}
		opt := redistest.Options(p, 0)
		opt.ReadTimeout = lease / 20
		return inCommonClient{anyClient{redis.NewClient(opt), func(rdb *redis.Client, name string) locktest.Lock {
			return &heldInCommon{setnx: setnx{rdb: rdb, name: name}, w: w}
		}}, end}, nil
	}
	return s
}

func init() {
	for name, kind := range map[string]*oneRenewer{
		"renews what was given up":       {forgets: true},
		"renews by a pipeline":           {pipe: true},
		"confuses the answers of a pipe": {pipe: true, confuses: true},
	} {
		wrong[name] = oneRenewerSubject(name, kind)
	}
}

// A renewal is of the hold whose value it carries, whichever thread's call started the goroutine that sends it.
func TestALockWithOneRenewer(t *testing.T) {
	locktest.Run(t, oneRenewerSubject("has one renewer", &oneRenewer{}), locktest.Options{Runs: longtest.Size(t, 20, 300)})
	text, passed := outcome(t, t.TempDir(), "renews what was given up", nil, "-lockstep.runs=8")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "renews what was given up breaks lease: a renewal of orders for a/1 was sent at ", "although its unlock had returned released")
	locktest.Run(t, wrong["renews by a pipeline"], locktest.Options{Runs: longtest.Size(t, 20, 300)})
}
