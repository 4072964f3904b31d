package redistest_test

import (
	"context"
	"crypto/rand"
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
	patient := renewedSubject("waits for a lost renewal", func(l *watched) locktest.Lock { return l })
	patient.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &watched{lock: setnx{rdb: rdb, name: name}}
		}}, nil
	}
	wrong[patient.Name] = patient
	wrong["renews late"] = renewedSubject("renews late", func(l *watched) locktest.Lock { l.rest = lease * 7 / 8; return l })
}

// Each of these mistakes is found by the stories, without a drawn schedule.
func TestMistakesThatTheStoriesFind(t *testing.T) {
	for _, c := range []struct{ lock, story, finding string }{
		{"unlocks in two steps", "unlock-in-two-steps", "breaks misdelete: unlock of a/1 (DEL, "},
		{"waits in a try", "try-of-a-held-lock", "breaks want: b/1 "},
		{"has a value for each process", "two-threads-of-one-process", "breaks mutual-exclusion: b/1 was granted "},
		{"has a value for each process", "hold-of-another-thread", "breaks mutual-exclusion: b/1 was granted "},
	} {
		text, passed := outcome(t, t.TempDir(), c.lock, nil, "-test.run=^TestJudged$/stories")
		if passed {
			t.Errorf("%s passes:\n%s", c.lock, text)
		}
		mustContain(t, text, "--- FAIL: TestJudged/stories/"+c.story+" ", c.lock+" "+c.finding)
	}
}
