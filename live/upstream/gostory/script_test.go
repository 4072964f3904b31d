package gostory

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slot is a lock in memory: who takes its token has it.
type slot chan struct{}

func (l slot) Lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l slot) TryLock(context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
		return ErrBusy
	}
}

func (l slot) Unlock(context.Context) error {
	select {
	case <-l:
		return nil
	default:
		return ErrNotHeld
	}
}

func (l slot) Extend(context.Context) error { return nil }

// A script makes the calls that it names, at their instants, and its check looks at them.
func TestAScriptIsPlayed(t *testing.T) {
	const text = `{"tries": 1, "servers": 1, "length_ms": 5000, "locks": ["x"], "clients": [{"name": "a"}, {"name": "b"}], "threads": [
		{"name": "a/1", "steps": [
			{"do": "acquire", "lock": "x", "steps": [{"do": "sleep", "ms": 100}, {"do": "extend", "lock": "x"}, {"do": "unlock", "lock": "x"}]},
			{"do": "repeat", "until_ms": 350, "steps": [{"do": "sleep", "ms": 100}, {"do": "unlock", "lock": "x"}]}]},
		{"name": "b/1", "steps": [
			{"do": "at", "ms": 20}, {"do": "repeat", "times": 2, "steps": [{"do": "acquire", "lock": "x", "try": true, "steps": [{"do": "unlock", "lock": "x"}]}]},
			{"do": "acquire", "lock": "x", "wait_ms": 30}, {"do": "acquire", "lock": "x"}]},
		{"name": "b/2", "steps": [{"do": "at", "ms": 60}, {"do": "interrupt", "thread": "b/1"}]}],
		"faults": [{"do": "delete", "at_ms": 40, "key": "x*"}],
		"check": {"that": "a call is not", "thread": "b/1", "call": 3, "outcome": "busy"}}`
	synctest.Test(t, func(t *testing.T) {
		var x Script
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			t.Fatal(err)
		}
		lock, deleted := make(slot, 1), ""
		s := NewStory(t, Library{
			Serve: func(*testing.T) Server { return nowhere{} },
			Open:  func([]string) (func(string) Lock, error) { return func(string) Lock { return lock }, nil },
			Delete: func(_, glob string) error {
				deleted += glob
				return nil
			},
		}, x.Servers)
		x.play(s)
		var got []string
		for _, thread := range s.threads {
			for _, c := range thread.calls {
				got = append(got, fmt.Sprintf("%s %v: %v", thread.name, c, c.err))
			}
		}
		want := []string{
			"a/1 acquire of x from 0s to 0s: <nil>", "a/1 renew of x from 100ms to 100ms: <nil>", "a/1 unlock of x from 100ms to 100ms: <nil>",
			"a/1 unlock of x from 200ms to 200ms: not held", "a/1 unlock of x from 300ms to 300ms: not held", "a/1 unlock of x from 400ms to 400ms: not held",
			"b/1 acquire of x from 20ms to 20ms: busy", "b/1 acquire of x from 20ms to 20ms: busy",
			"b/1 acquire of x from 20ms to 50ms: context deadline exceeded", "b/1 acquire of x from 50ms to 60ms: context canceled",
		}
		if !slices.Equal(got, want) {
			t.Errorf("the calls are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if deleted != "x*" {
			t.Errorf("deleted is %q, want x* once", deleted)
		}
		if s.now() != 400*time.Millisecond {
			t.Errorf("the story took %v, and all threads have ended at 400ms", s.now())
		}
	})
}
