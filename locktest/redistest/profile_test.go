package redistest_test

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// sharing is a client whose handles share one table of values, by the name of the lock. So a thread gives up the
// hold of another thread of its process.
type sharing struct {
	anyClient
	values *sync.Map
}

func (c sharing) Lock(name string) (locktest.Lock, error) {
	return &shared{setnx{rdb: c.rdb, name: name}, c.values}, nil
}

type shared struct {
	setnx
	values *sync.Map
}

func (l *shared) Lock(ctx context.Context) error {
	err := l.setnx.Lock(ctx)
	if err == nil {
		l.values.Store(l.name, l.value)
	}
	return err
}

func (l *shared) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.setnx.TryLock(ctx)
	if ok {
		l.values.Store(l.name, l.value)
	}
	return ok, err
}

func (l *shared) Unlock(ctx context.Context) error {
	if value, ok := l.values.Load(l.name); ok {
		l.value = value.(string)
	}
	return l.setnx.Unlock(ctx)
}

func init() {
	s := subjectOf("shares its values", false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return sharing{anyClient{rdb: redis.NewClient(redistest.Options(p, 0))}, new(sync.Map)}, nil
	}
	wrong[s.Name] = s
}

// Drawn schedules show what the handles of a process share if the process has several threads, as some have in
// each profile. The log names the profile.
func TestAProfileWithThreadsShowsWhatHandlesShare(t *testing.T) {
	t.Parallel()
	const drawn = "-test.run=^TestJudged$/^explore$"
	for _, profile := range []string{"simple", "orderly"} {
		text, passed := outcome(t, t.TempDir(), "shares its values", nil, drawn, "-lockstep.faults=none", "-lockstep.profile="+profile)
		if passed {
			t.Errorf("%s: it passed:\n%s", profile, text)
		}
		mustContain(t, text, "40 schedules of shares its values with the profile "+profile+": ", "shares its values breaks misdelete: unlock of ", " ended the hold of ")
	}
}
