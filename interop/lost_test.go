//go:build interop

package interop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisson"
)

// lostResponse returns the response timeout of these tests. It is chosen so that a delay before a
// resend without the response timeout cannot be mistaken for one that includes it.
func lostResponse(rel *redisson.Release) time.Duration {
	if rel.RetryDelay.Min != 0 {
		return 2500 * time.Millisecond
	}
	return 900 * time.Millisecond
}

// loss is one failure, and the call that meets it.
type loss struct {
	name   string
	kind   string
	before []move // undisturbed
	move   move   // the call
	// strike decides what happens to the n-th sending of the command, from 0.
	strike func(n int) Verdict
	// hits picks the command by name and number of keys; 0 keys: any.
	hits func(words []string) bool
	// wait is how long to watch after the call's result.
	wait time.Duration
}

func evals(keys int) func([]string) bool {
	return func(words []string) bool {
		return len(words) > 2 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") && words[2] == strconv.Itoa(keys)
	}
}

func reads(words []string) bool { return words[0] == "EXISTS" || words[0] == "exists" }

// firstN loses the first n.
func firstN(n int, v Verdict) func(int) Verdict {
	return func(i int) Verdict {
		if i < n {
			return v
		}
		return Verdict{}
	}
}

// keysOf returns the number of keys of a script, by kind and operation.
func keysOf(rel *redisson.Release, kind, op string) int {
	latch := 0
	if rel.Unlock.Name == "unlock_latch" {
		latch = 1
	}
	switch {
	case kind == "plain" && (op == "lock" || op == "try_lock"):
		return 1
	case kind == "plain" && op == "unlock":
		return 2 + latch
	case kind == "plain" && op == "force_unlock":
		return 2
	case kind == "fair" && (op == "lock" || op == "try_lock"):
		return 3
	case kind == "fair" && op == "leave":
		return 2
	case kind == "fair" && op == "unlock":
		return 4 + latch
	case kind == "fair" && op == "force_unlock":
		return 4
	}
	panic("interop: no script for " + kind + " " + op)
}

func losses(rel *redisson.Release) []loss {
	var all []loss
	late := Verdict{Delay: lostResponse(rel) + 500*time.Millisecond}
	faults := []struct {
		name  string
		v     Verdict
		times int
	}{
		{"answer lost once", Verdict{Drop: true}, 1},
		{"answer lost each time", Verdict{Drop: true}, 99},
		{"answer late once", late, 1},
		{"connection cut after it", Verdict{Cut: true}, 1},
		{"connection cut after it each time", Verdict{Cut: true}, 99},
		{"connection cut before it", Verdict{CutBefore: true}, 1},
		{"answered with an error", Verdict{Error: "ERR made up"}, 1},
		{"answered LOADING once", Verdict{Error: "LOADING Redis is loading the dataset in memory"}, 1},
		{"answered LOADING each time", Verdict{Error: "LOADING Redis is loading the dataset in memory"}, 99},
		{"answered READONLY once", Verdict{Error: "READONLY You can't write against a read only replica."}, 1},
		{"answered BUSY once", Verdict{Error: "BUSY Redis is busy running a script."}, 1},
		{"answered TRYAGAIN once", Verdict{Error: "TRYAGAIN Multiple keys request during rehashing of slot"}, 1},
		{"answered CLUSTERDOWN once", Verdict{Error: "CLUSTERDOWN The cluster is down"}, 1},
	}
	hold := []move{{thread: 1, op: "lock"}}
	for _, f := range faults {
		add := func(kind, what string, before []move, m move, hits func([]string) bool) {
			all = append(all, loss{
				name: fmt.Sprintf("%s %s, %s", kind, what, f.name), kind: kind,
				before: before, move: m, strike: firstN(f.times, f.v), hits: hits,
			})
		}
		add("plain", "acquire", nil, move{thread: 1, op: "lock"}, evals(keysOf(rel, "plain", "lock")))
		add("plain", "unlock", append(hold, hold...), move{thread: 1, op: "unlock"}, evals(keysOf(rel, "plain", "unlock")))
		if strings.Contains(f.name, "answered") && f.times == 1 && !strings.Contains(f.name, "READONLY") {
			continue // the first two show the same
		}
		add("plain", "force unlock", hold, move{thread: 1, op: "force_unlock"}, evals(keysOf(rel, "plain", "force_unlock")))
		add("plain", "read", hold, move{thread: 1, op: "is_locked"}, reads)
		add("fair", "leave", hold, move{thread: 2, op: "try_lock", with: Fields{"wait", 200}}, evals(2))
	}
	return all
}

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			lib := StartLibrary(t, rel.Version)
			servers := []*Server{StartServer(t), StartServer(t)}
			set := settings{response: lostResponse(rel), idle: 6} // a resend finds a connection that waits for nothing
			if rel.Watchdog != redisson.WatchdogTimer {
				set.watchdog = noWatchdog
			}
			all := slices.DeleteFunc(losses(rel), func(x loss) bool { return !chosen(x.name) })
			for i, p := range []player{
				newLibraryPlayer(t, lib, StartProxy(t, servers[0].Addr), set, 3), newPortPlayer(t, rel, StartProxy(t, servers[1].Addr), set),
			} {
				warm(t, p, i)
			}
			var mu sync.Mutex
			agreed, known := 0, 0
			var done sync.WaitGroup
			enough := make(chan bool, 24) // many at once, since they mostly wait
			for i, x := range all {
				done.Go(func() {
					enough <- true
					defer func() { <-enough }()
					var want, got string
					why := knownLoss(rel, x.name)
					if !realtime.Case(t, x.name, func(try int) string {
						lock := fmt.Sprintf("lost%d.%d", i, try)
						var both sync.WaitGroup
						both.Go(func() {
							want = suffer(t, rel, newLibraryPlayer(t, lib, StartProxy(t, servers[0].Addr), set, 3), x, lock, lostResponse(rel))
						})
						both.Go(func() {
							got = suffer(t, rel, newPortPlayer(t, rel, StartProxy(t, servers[1].Addr), set), x, lock, lostResponse(rel))
						})
						both.Wait()
						if want == got || why != "" {
							return ""
						}
						return bothSides(want, got)
					}) {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if want != got {
						known++
						t.Logf("%s, known: %s:\n%s", x.name, why, bothSides(want, got))
						return
					}
					agreed++
					t.Logf("%s:\n  both:    %s", x.name, got)
				})
			}
			done.Wait()
			t.Logf("redisson %s: %d losses of %d agree, %d are known to differ", rel.Version, agreed, len(all), known)
		})
	}
}

// knownLoss returns the reason for a known difference of the port; "" if there must be none.
func knownLoss(rel *redisson.Release, name string) string {
	if rel.Version == "4.7.0" && strings.Contains(name, "lost once") {
		return "the resend takes the same connection, on which it waits behind the lost answer"
	}
	return ""
}

// warm makes a server load all scripts, so that the lost command is never the one that asks for a
// script.
func warm(t *testing.T, p player, i int) {
	for _, kind := range []string{"plain", "fair"} {
		for _, m := range []move{
			{thread: 1, op: "lock"}, {thread: 2, op: "try_lock"}, {thread: 2, op: "try_lock", with: Fields{"wait", 1}},
			{thread: 1, op: "unlock"}, {thread: 1, op: "force_unlock"},
		} {
			await(t, p.do(m.thread, m.op, append(Fields{"kind", kind, "lock", fmt.Sprintf("warm%d", i)}, m.with...)))
		}
	}
}

// suffer makes the call and returns its outcome: how often the command was sent and after which
// delays, the result, and the state that remains. response is the time for which the library waits
// for an answer to the command.
func suffer(t *testing.T, rel *redisson.Release, p player, x loss, lock string, response time.Duration) string {
	do := func(m move) string {
		r := await(t, p.do(m.thread, m.op, append(Fields{"kind", x.kind, "lock", lock}, m.with...)))
		if m.op == "force_unlock" && rel.Version == "3.4.2" && (r == "ok" || r == "true" || r == "false") {
			r = "done" // a method without a result
		}
		return r
	}
	for _, m := range x.before {
		if r := do(m); r != "ok" {
			return "before: " + r
		}
	}
	via := p.proxies()[0]
	via.Quiet(30*time.Millisecond, time.Second)
	var times []time.Duration
	via.Rule(func(s Sent) Verdict {
		if !x.hits(s.Words) {
			return Verdict{}
		}
		times = append(times, s.At)
		return x.strike(len(times) - 1)
	})
	result := do(x.move)
	time.Sleep(x.wait + 50*time.Millisecond)
	via.Rule(nil)
	var b strings.Builder
	fmt.Fprintf(&b, "sent %d times", len(times))
	for i := 1; i < len(times); i++ {
		fmt.Fprintf(&b, ", %s", delayName(rel, response, i-1, times[i]-times[i-1]))
	}
	fmt.Fprintf(&b, "; %s; %s", result, lostState(via.target, lock))
	return b.String()
}

// delayName names the parts of a delay before a resend, with a tolerance for a busy machine and the
// library's timers, which have ticks of 100 ms.
func delayName(rel *redisson.Release, response time.Duration, attempt int, d time.Duration) string {
	shortest, longest := rel.RetryDelay.Fixed, rel.RetryDelay.Fixed
	if least := rel.RetryDelay.Min; least != 0 {
		longest = min(least<<attempt, rel.RetryDelay.Max)
		shortest = longest / 2
	}
	const late = 390 * time.Millisecond
	in := func(from, to time.Duration) bool { return d >= from-60*time.Millisecond && d <= to+late }
	switch {
	case in(0, 0):
		return "at once"
	case rel.RetryDelay.Min == 0 && in(response, response):
		return "after the response timeout"
	case in(shortest, longest):
		return "after a delay"
	case in(response+shortest, response+longest):
		return "after the response timeout and a delay"
	}
	return "after " + d.Round(10*time.Millisecond).String()
}

// lostState returns the state of the lock on the server.
func lostState(addr, lock string) string {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	ctx := context.Background()
	counts := rdb.HVals(ctx, lock).Val()
	queue := rdb.LLen(ctx, redisson.QueueName(lock)).Val()
	latches := rdb.Keys(ctx, "*latch*{"+lock+"}*").Val()
	slices.Sort(counts)
	return fmt.Sprintf("counts %v, %d queued, %d latches", counts, queue, len(latches))
}
