package redistest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// twoSteps is a setnx that compares the value and deletes the key in two commands.
type twoSteps struct{ setnx }

func (l *twoSteps) Unlock(ctx context.Context) error {
	switch value, err := l.rdb.Get(ctx, l.name).Result(); {
	case err == redis.Nil || err == nil && value != l.value:
		return locktest.ErrNotHeld
	case err != nil:
		return err
	}
	return l.rdb.Del(ctx, l.name).Err()
}

const (
	takeAgain = `local v = redis.call("get", KEYS[1]) if not v or v == ARGV[1] then redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) return 1 end return 0`
	takeFree  = `if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end return 0`
)

// loaded is a setnx that takes the lock by a script, which its client loads once.
type loaded struct {
	setnx
	digest *string
}

func (l *loaded) TryLock(ctx context.Context) (bool, error) {
	if *l.digest == "" {
		digest, err := l.rdb.ScriptLoad(ctx, takeFree).Result()
		if err != nil {
			return false, err
		}
		*l.digest = digest
	}
	value := rand.Text()
	n, err := l.rdb.EvalSha(ctx, *l.digest, []string{l.name}, value, lease.Milliseconds()).Int()
	if n == 1 {
		l.value = value
	}
	return n == 1, err
}

func (l *loaded) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

// regretful is a setnx that takes back what a try without an answer may have left, in two steps.
type regretful struct{ setnx }

func (l *regretful) TryLock(ctx context.Context) (bool, error) {
	value := rand.Text()
	ok, err := l.take(ctx, value)
	switch {
	case ok:
		l.value = value
	case err != nil:
		if left, _ := l.rdb.Get(ctx, l.name).Result(); left == value {
			l.rdb.Del(ctx, l.name)
		}
	}
	return ok, err
}

func (l *regretful) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

// patient is a setnx whose TryLock waits.
type patient struct{ setnx }

func (l *patient) TryLock(ctx context.Context) (bool, error) {
	err := l.Lock(ctx)
	return err == nil, err
}

// valued is a setnx that takes the same value for each hold.
type valued struct {
	setnx
	same string
}

func (l *valued) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.take(ctx, l.same)
	if ok {
		l.value = l.same
	}
	return ok, err
}

func (l *valued) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

// freed is a setnx whose client frees what it took when it is closed.
type freed struct{ setnx }

func (l *freed) Unlock(ctx context.Context) error {
	err := l.setnx.Unlock(ctx)
	if err == nil || errors.Is(err, locktest.ErrNotHeld) {
		l.value = ""
	}
	return err
}

// freedByClosing returns the subject of freed locks whose client frees each by calling free.
func freedByClosing(name string, free func(*freed) error) locktest.Subject {
	s := subjectOf(name, false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		var all []*freed
		c := anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			all = append(all, &freed{setnx{rdb: rdb, name: name}})
			return all[len(all)-1]
		}}
		return closing{c, func(c anyClient) error {
			for _, l := range all {
				if l.value != "" {
					_ = free(l)
				}
			}
			return c.rdb.Close()
		}}, nil
	}
	return s
}

func TestAClientThatFreesWhatItTook(t *testing.T) {
	locktest.Run(t, freedByClosing("frees its own by closing", func(l *freed) error { return l.Unlock(context.Background()) }), locktest.Options{})
}

func init() {
	add := func(name string, lock func() func(*redis.Client, string) locktest.Lock) {
		s := subjectOf(name, false)
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			return anyClient{redis.NewClient(redistest.Options(p, 0)), lock()}, nil
		}
		wrong[name] = s
	}
	add("unlocks in two steps", func() func(*redis.Client, string) locktest.Lock {
		return func(rdb *redis.Client, name string) locktest.Lock { return &twoSteps{setnx{rdb: rdb, name: name}} }
	})
	add("waits in a try", func() func(*redis.Client, string) locktest.Lock {
		return func(rdb *redis.Client, name string) locktest.Lock { return &patient{setnx{rdb: rdb, name: name}} }
	})
	add("has a value for each process", func() func(*redis.Client, string) locktest.Lock {
		value := rand.Text()
		return func(rdb *redis.Client, name string) locktest.Lock {
			return &valued{setnx{rdb: rdb, name: name}, value}
		}
	})
	wrong["renews twice in a lease until an error"] = renewedSubject("renews twice in a lease until an error",
		func(l *watched) locktest.Lock { l.once, l.rest = true, lease/2; return l })
	wrong["renews four times in a lease until an error"] = renewedSubject("renews four times in a lease until an error",
		func(l *watched) locktest.Lock { l.once, l.rest = true, lease/4; return l })
	wrong["tells after two errors"] = renewedSubject("tells after two errors", func(l *watched) locktest.Lock { l.again, l.quit = true, true; return telling{l} })
	patient := renewedSubject("waits for a lost renewal", func(l *watched) locktest.Lock { return l })
	patient.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &watched{lock: setnx{rdb: rdb, name: name}}
		}}, nil
	}
	wrong[patient.Name] = patient
	wrong["loads a script once"] = unrenewed("loads a script once", func() func(*redis.Client, string) locktest.Lock {
		digest := ""
		return func(rdb *redis.Client, name string) locktest.Lock {
			return &loaded{setnx{rdb: rdb, name: name}, &digest}
		}
	})
	s := subjectOf("takes back in two steps", false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		opt := redistest.Options(p, 0)
		opt.MaxRetries, opt.ReadTimeout = -1, lease/10
		return anyClient{redis.NewClient(opt), each(func(l setnx) locktest.Lock { return &regretful{l} })()}, nil
	}
	wrong[s.Name] = s
	s = freedByClosing("frees by closing", func(l *freed) error { return l.rdb.Del(context.Background(), l.name).Err() })
	wrong[s.Name] = s
	wrong["renews by taking again"] = renewedSubject("renews by taking again", func(l *watched) locktest.Lock { l.anew = true; return l })
	wrong["renews late"] = renewedSubject("renews late", func(l *watched) locktest.Lock { l.rest = lease * 7 / 8; return l })
}

// Each of these mistakes is found by the stories, without a drawn schedule.
func TestMistakesThatTheStoriesFind(t *testing.T) {
	for _, c := range []struct{ lock, story, finding string }{
		{"unlocks in two steps", "unlock-in-two-steps", "breaks misdelete: unlock of a/1 (DEL, "},
		{"waits in a try", "try-of-a-held-lock", "breaks want: b/1 "},
		{"has a value for each process", "two-threads-of-one-process", "breaks mutual-exclusion: b/1 was granted "},
		{"has a value for each process", "hold-of-another-thread", "breaks mutual-exclusion: b/1 was granted "},
		{"loads a script once", "lock-after-a-restart", "breaks want: a/1 "},
		{"takes back in two steps", "other-holder-before-request-3-after-a-lost-answer", "breaks m"},
		{"confuses the answers of a pipe", "unlock-beside-a-renewal-of-two-holds", "breaks lease: the hold of a/1 on stock ended with its lease "},
		{"frees by closing", "client-closed-after-the-lease", "breaks misdelete: DEL of a (sent at 7.500s) ended the hold of b/1 "},
		{"renews by taking again", "renewal-that-comes-after-the-unlock", "breaks liveness: b/1 waited for "},
	} {
		text, passed := outcome(t, t.TempDir(), c.lock, nil, "-test.run=^TestJudged$/stories")
		if passed {
			t.Errorf("%s passes:\n%s", c.lock, text)
		}
		mustContain(t, text, "--- FAIL: TestJudged/stories/"+c.story+" ", c.lock+" "+c.finding)
	}
}
