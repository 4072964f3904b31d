package redistest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// queued is a setnx for which the threads of a process first take a channel of their own.
type queued struct {
	of    setnx
	gate  chan struct{}
	stays bool // the channel stays taken if the lease was over: a bug
}

func (l *queued) Lock(ctx context.Context) error {
	select {
	case l.gate <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := l.of.Lock(ctx)
	if err != nil {
		<-l.gate
	}
	return err
}

func (l *queued) Unlock(ctx context.Context) error {
	if l.of.value == "" {
		return locktest.ErrNotHeld
	}
	err := l.of.Unlock(ctx)
	l.of.value = ""
	if !l.stays || !errors.Is(err, locktest.ErrNotHeld) {
		<-l.gate
	}
	return err
}

func init() {
	for key, stays := range map[string]bool{"queued": false, "queued, and stays so": true} {
		s := subjectOf("queued", false)
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			gates := map[string]chan struct{}{}
			return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
				if gates[name] == nil {
					gates[name] = make(chan struct{}, 1)
				}
				return &queued{of: setnx{rdb: rdb, name: name}, gate: gates[name], stays: stays}
			}}, nil
		}
		wrong[key] = s
	}
}

// A failure stays the same while it is made small: a lock that never comes free after a refused unlock does not
// become one whose waiter waits for itself, as each waiter of this lock may. So its recording is no failure
// once the lock is mended.
func TestARecordingOfABugHoldsOnceTheBugIsMended(t *testing.T) {
	dir := t.TempDir()
	text, passed := outcome(t, dir, "queued, and stays so", nil, "-lockstep.runs=100", "-test.run=TestJudged/explore")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "queued breaks liveness: ", ": not_held\n")
	files, err := filepath.Glob(filepath.Join(dir, "testdata/lockstep/TestJudged/*.lockstep"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: no recording:\n%s", err, text)
	}
	for _, file := range files {
		recording, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(recording), "unlock") && !strings.Contains(string(recording), "with_lock") {
			t.Errorf("nobody unlocks in %s:\n%s", file, recording)
		}
	}
	text, passed = outcome(t, dir, "queued", nil, "-lockstep.runs=1", "-test.run=TestJudged/recording")
	if !passed {
		t.Errorf("the mended lock fails:\n%s", text)
	}
	mustContain(t, text, "queued holds in the schedule that broke it before")
	text, passed = outcome(t, dir, "queued, and stays so", nil, "-lockstep.runs=1", "-test.run=TestJudged/recording")
	if passed {
		t.Errorf("the lock with the bug passes:\n%s", text)
	}
}
