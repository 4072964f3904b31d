package redistest_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// oneWriter does the work of all threads of a process in one goroutine, which the first call starts. Nobody tells the
// world whose request each is.
type oneWriter struct {
	start sync.Once
	works chan func()
	over  chan struct{}
}

func (w *oneWriter) do(work func() error) error {
	w.start.Do(func() {
		go func() {
			for {
				select {
				case f := <-w.works:
					f()
				case <-w.over:
					return
				}
			}
		}()
	})
	done := make(chan error, 1)
	select {
	case w.works <- func() { done <- work() }:
		return <-done
	case <-w.over:
		return redis.ErrClosed
	}
}

// relayed is a lock whose requests a oneWriter sends.
type relayed struct {
	extended
	w *oneWriter
}

func (l *relayed) TryLock(ctx context.Context) (ok bool, err error) {
	err = l.w.do(func() (err error) {
		ok, err = l.extended.TryLock(ctx)
		return err
	})
	return ok, err
}

func (l *relayed) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *relayed) Extend(ctx context.Context) error {
	return l.w.do(func() error { return l.extended.Extend(ctx) })
}

func (l *relayed) Unlock(ctx context.Context) error {
	return l.w.do(func() error { return l.extended.Unlock(ctx) })
}

type relayedClient struct {
	anyClient
	w *oneWriter
}

func (c relayedClient) Close() error {
	close(c.w.over)
	return c.anyClient.Close()
}

func oneWriterSubject(name string, exists bool) locktest.Subject {
	s := subjectOf(name, false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		w := &oneWriter{works: make(chan func()), over: make(chan struct{})}
		return relayedClient{anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &relayed{extended{setnx{rdb: rdb, name: name, exists: exists}, compareAndExpire}, w}
		}}, w}, nil
	}
	return s
}

func init() {
	wrong["has one writer"] = oneWriterSubject("has one writer", false)
	wrong["has one writer and looks first"] = oneWriterSubject("has one writer and looks first", true)
}

// A right lock passes whose client writes the requests of several threads in one goroutine, and each judge is asked, since
// values say whose holds are. A wrong one is found.
func TestAClientWithOneWriter(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "has one writer", nil, "-lockstep.runs=20", "-test.v=false")
	if !passed || strings.Contains(text, "Renewed") {
		t.Errorf("it failed, or was told to renew:\n%s", text)
	}
	if strings.Contains(text, "were not asked") {
		t.Errorf("a judge was not asked:\n%s", text)
	}
	text, passed = outcome(t, t.TempDir(), "has one writer and looks first", nil, "-lockstep.runs=40")
	if passed {
		t.Errorf("it passed:\n%s", text)
	}
	mustContain(t, text, "has one writer and looks first breaks mutual-exclusion: ")
	// The writer sends nothing while it waits for the answer to another thread, which a fault may put off.
	locktest.Run(t, wrong["has one writer"], locktest.Options{Runs: longtest.Size(t, 20, 300), Profile: "full", Accept: []string{"liveness.bug.acquire.agreed"}})
}
