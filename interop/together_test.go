//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/realtime"
	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// member is one thread of the library or of the port, on one lock.
type member struct {
	name   string
	owner  string
	lock   func(ctx context.Context) error
	unlock func() error
}

// mixed makes two clients of the library and two of the port, with a thread each, and one lock for
// all of them.
func mixed(t *testing.T, server *Server, rel *redisson.Release, l *Library, kind, name string) []member {
	t.Helper()
	var all []member
	for i := range 2 {
		client := fmt.Sprintf("%s-%d", name, i)
		if _, err := l.Ask("client", Fields{"client", client, "address", server.Addr}); err != nil {
			t.Fatal(err)
		}
		thread, err := l.Ask("thread", Fields{"client", client, "thread", 1})
		if err != nil {
			t.Fatal(err)
		}
		call := func(op string) error {
			_, err := l.Ask("call", Fields{"client", client, "thread", 1, "op", op, "kind", kind, "lock", name})
			return err
		}
		all = append(all, member{
			fmt.Sprintf("library %d", i+1), thread.Owner(),
			func(context.Context) error { return call("lock") },
			func() error { return call("unlock") },
		})

		rdb := redis.NewClient(redisson.Options(&redis.Options{Addr: server.Addr, Protocol: 2}))
		c := redisson.NewClient(rdb, redisson.Config{Release: rel})
		t.Cleanup(func() {
			_ = c.Close()
			_ = rdb.Close()
		})
		get := c.GetLock
		if kind == fair {
			get = c.GetFairLock
		}
		lock, err := get(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, member{
			fmt.Sprintf("port %d", i+1), c.ID() + ":1",
			func(ctx context.Context) error { return lock.Lock(ctx, 1, lockimpl.LockOptions{}) },
			func() error { _, err := lock.Unlock(context.Background(), 1); return err },
		})
	}
	return all
}

// Java and Go contend for one lock. There are never two holders, and no update of the guarded
// counter is lost.
func TestTogetherOnlyOneIsInside(t *testing.T) {
	t.Parallel()
	const turns = 25
	eachTogether(t, func(t *testing.T, server *Server, rel *redisson.Release, l *Library, kind string) {
		members := mixed(t, server, rel, l, kind, "contended "+kind)
		guarded := "guarded " + kind
		ctx := context.Background()
		var inside, turnsDone atomic.Int32
		var contenders sync.WaitGroup
		for _, m := range members {
			contenders.Go(func() {
				rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
				defer func() { _ = rdb.Close() }()
				for range turns {
					if err := m.lock(ctx); err != nil {
						t.Errorf("%s: %v", m.name, err)
						return
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%s is one of %d inside", m.name, n)
					}
					n, err := rdb.Get(ctx, guarded).Int()
					if err != nil && !errors.Is(err, redis.Nil) {
						t.Error(err)
					}
					if err := rdb.Set(ctx, guarded, n+1, 0).Err(); err != nil {
						t.Error(err)
					}
					inside.Add(-1)
					if err := m.unlock(); err != nil {
						t.Errorf("%s: %v", m.name, err)
						return
					}
					turnsDone.Add(1)
				}
			})
		}
		contenders.Wait()
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
		defer func() { _ = rdb.Close() }()
		got, err := rdb.Get(ctx, guarded).Int()
		if want := turns * len(members); err != nil || got != want || int(turnsDone.Load()) != want {
			t.Errorf("%d turns of %d, the counter is %d (%v)", turnsDone.Load(), want, got, err)
		}
		t.Logf("redisson %s, %s: %d turns of %d clients", rel.Version, kind, got, len(members))
	})
}

// The message of a release wakes the waiter on the other side. A waiter makes no attempt between
// its second one and the message. The leases are far longer than the test. A fair lock serves its
// waiters in the order in which they came.
func TestTogetherReleasesWakeTheOtherSide(t *testing.T) {
	t.Parallel()
	eachTogether(t, func(t *testing.T, server *Server, rel *redisson.Release, l *Library, kind string) {
		realtime.Case(t, fmt.Sprintf("redisson %s, %s", rel.Version, kind), func(try int) string {
			if err := handOver(t, server, rel, l, kind, fmt.Sprintf("handed over %s %d", kind, try)); err != nil {
				return err.Error()
			}
			return ""
		})
	})
}

// handOver hands a lock from member to member.
func handOver(t *testing.T, server *Server, rel *redisson.Release, l *Library, kind, name string) error {
	members := mixed(t, server, rel, l, kind, name)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, m := range members { // the first use of a script may be sent twice
		if err := errors.Join(m.lock(ctx), m.unlock()); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	seen := attemptsOn(t, server, name)
	holder := members[0]
	if err := holder.lock(ctx); err != nil {
		return fmt.Errorf("%s: %w", holder.name, err)
	}
	before := map[string]int{}
	waiters := members[1:]
	if kind == plain {
		// A message wakes a waiter of every client: here one at a time.
		waiters = members[1:2]
	}
	type grant struct {
		member
		err error
	}
	granted := make(chan grant, len(members)) // has room for each grant after a failure
	wait := func(m member) error {
		before[m.owner] = seen.of(m.owner)
		go func() { granted <- grant{m, m.lock(ctx)} }()
		return until(m.name+" makes its second attempt", func() bool { return seen.of(m.owner) == before[m.owner]+2 })
	}
	pass := func(next member, mayWait ...member) error {
		time.Sleep(50 * time.Millisecond) // in which nobody may ask
		for _, m := range append(mayWait, next) {
			if n := seen.of(m.owner) - before[m.owner]; n != 2 {
				return fmt.Errorf("%s asked %d times before a message came, not twice", m.name, n)
			}
		}
		if err := holder.unlock(); err != nil {
			return fmt.Errorf("%s: %w", holder.name, err)
		}
		select {
		case got := <-granted:
			if got.err != nil {
				return fmt.Errorf("%s: %w", got.name, got.err)
			}
			if got.owner != next.owner {
				return fmt.Errorf("%s has the lock, and %s was next", got.name, next.name)
			}
		case <-time.After(5 * time.Second):
			return fmt.Errorf("%s did not wake: its lease would have been 30 s", next.name)
		}
		asked := func() int { return seen.of(next.owner) - before[next.owner] }
		if err := until(next.name+" is seen to ask", func() bool { return asked() > 2 }); err != nil {
			return err
		}
		if n := asked(); n != 3 {
			return fmt.Errorf("%s asked %d times, not once for the message", next.name, n-2)
		}
		holder = next
		return nil
	}
	if kind == plain {
		// Each in turn waits for the other side.
		for _, next := range []member{members[1], members[2], members[3], members[0]} {
			if err := wait(next); err != nil {
				return err
			}
			if err := pass(next); err != nil {
				return err
			}
		}
	} else {
		for _, m := range waiters {
			if err := wait(m); err != nil {
				return err
			}
		}
		for i, next := range waiters {
			if err := pass(next, waiters[i+1:]...); err != nil {
				return err
			}
		}
	}
	if err := holder.unlock(); err != nil {
		return fmt.Errorf("%s: %w", holder.name, err)
	}
	return nil
}

func eachTogether(t *testing.T, f func(t *testing.T, server *Server, rel *redisson.Release, l *Library, kind string)) {
	for _, rel := range releases(t) {
		t.Run(rel.Version, func(t *testing.T) {
			server := StartServer(t)
			l := StartLibrary(t, rel.Version)
			for _, kind := range []string{plain, fair} {
				t.Run(kind, func(t *testing.T) { f(t, server, rel, l, kind) })
			}
		})
	}
}

// until waits for a condition. It returns an error if the condition does not come.
func until(what string, ok func() bool) error {
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("waited in vain until %s", what)
		}
	}
	return nil
}

// attempted counts the attempts on one lock by owner.
type attempted struct {
	mu sync.Mutex
	by map[string]int
}

func (a *attempted) of(owner string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.by[owner]
}

// attemptsOn watches a server for attempts on a lock: scripts whose first key is its name, and that
// have no channel among their keys (such a script is an unlock).
func attemptsOn(t *testing.T, server *Server, name string) *attempted {
	t.Helper()
	a := &attempted{by: map[string]int{}}
	monitor(t, server, func(line string) {
		s, ok := parseScript(line)
		if !ok || s.keys[0] != name || slices.ContainsFunc(s.keys, func(k string) bool { return strings.Contains(k, "channel") }) {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, arg := range s.args {
			a.by[arg]++
		}
	})
	return a
}
