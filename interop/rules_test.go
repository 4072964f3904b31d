//go:build interop

package interop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisson"
)

// ruleStories show rules of the client that no other comparison proved: a mutant
// that breaks the rule passed them. See rules.md.
var ruleStories = []story{
	{name: "two locks of two threads are both renewed", tell: func(s *stage) {
		if s.rel.Watchdog == redisson.WatchdogTimer {
			return // its watchdog timeout is always 30 s
		}
		s.call(1, "lock")
		other := s.lock + "other"
		s.note("2 lock of another: %s", await(s.t, s.p.do(2, "lock", Fields{"kind", "plain", "lock", other})))
		from := len(s.via.Sent(0))
		time.Sleep(2 * s.watchdog)
		s.state()
		s.note("the other: %v", s.rdb.HVals(context.Background(), other).Val())
		// A second timer would double their number.
		s.note("at most eight renewals of both together: %v", len(s.batches(from)) <= 8)
	}},
	{name: "a message that comes while the waiter asks", set: settings{watchdog: 4 * keptBack, idle: 6}, tell: func(s *stage) {
		s.call(2, "lock")
		s.strikeAttempt(1, 2, Verdict{Delay: keptBack})
		c := s.begin(1, "lock")
		s.asked(1, 2)
		// No unlock is used here, since its answer may have to wait behind the one that is kept
		// back.
		s.rdb.Del(context.Background(), s.lock)
		s.rdb.Publish(context.Background(), redisson.ChannelName(s.lock), 0)
		if !s.result("before the answer", c, keptBack/3) {
			s.result("after the answer", c, keptBack)
		}
	}},
	{name: "time that passed before the wait", set: settings{watchdog: 4 * keptBack, idle: 6}, tell: func(s *stage) {
		s.call(2, "lock")
		s.strikeAttempt(1, 1, Verdict{Delay: keptBack / 2})
		c := s.begin(1, "try_lock", "wait", int(3*keptBack/2/time.Millisecond))
		if !s.result("within two thirds of its time", c, 4*keptBack/3-keptBack/6) {
			s.result("within its time", c, keptBack)
		}
	}},
	{name: "a wait for a lock that does not expire", tell: func(s *stage) {
		s.call(2, "lock", "lease", 60000)
		s.rdb.Persist(context.Background(), s.lock)
		c := s.begin(1, "lock")
		s.asked(1, 2)
		s.note("attempts while it waits: %d", s.countRenewals(keptBack/2))
		s.call(2, "unlock")
		s.result("after the unlock", c, keptBack)
	}},
	{name: "a wait after an interrupt", tell: func(s *stage) {
		s.call(2, "lock", "lease", 60000)
		s.begin(1, "lock")
		s.asked(1, 2)
		time.Sleep(keptBack / 4) // until the call waits
		from := len(s.via.Sent(0))
		s.p.interrupt(1)
		time.Sleep(keptBack / 2)
		s.note("attempts after the interrupt: %d", s.attemptsSince(from))
	}},
	{name: "a negative lease", set: settings{watchdog: time.Minute}, tell: func(s *stage) {
		s.call(1, "lock", "lease", -5)
		s.state()
	}},
	{name: "an unlock of a client that sends nothing again", set: settings{attempts: -1}, tell: func(s *stage) {
		s.call(1, "lock")
		s.call(1, "unlock")
		s.state()
	}},
	{name: "a late answer in the loop of a timed tryLock", set: settings{response: 600 * time.Millisecond, attempts: -1}, tell: func(s *stage) {
		s.call(2, "lock", "lease", 60000)
		s.strikeAttempt(1, 2, Verdict{Delay: keptBack})
		s.call(1, "try_lock", "wait", 9000)
	}},
	{name: "a hundred and twenty locks to renew", set: settings{watchdog: 4500 * time.Millisecond}, tell: func(s *stage) {
		if s.rel.Watchdog != redisson.WatchdogTask {
			return // a renewal names one lock
		}
		for i := range 120 {
			await(s.t, s.p.do(1, "lock", Fields{"kind", "plain", "lock", fmt.Sprint(s.lock, ".", i)}))
		}
		from := len(s.via.Sent(0))
		time.Sleep(s.watchdog)
		most := 0
		for _, r := range s.batches(from) {
			most = max(most, r.locks)
		}
		s.note("most locks of one renewal: %d", most)
		// The renewal that is struck is the first of its tick.
		struck := func(v Verdict) []batch {
			s.strike(most, 1, v)
			from := len(s.via.Sent(0))
			time.Sleep(s.watchdog)
			all := s.batches(from)
			first := slices.IndexFunc(all, func(b batch) bool { return b.locks == most })
			if first < 0 || len(all) < first+3 {
				s.note("too few renewals: %v", all)
				return nil
			}
			return all[first : first+3]
		}
		if r := struck(Verdict{Error: "ERR made up"}); r != nil {
			s.note("locks of a renewal that failed and of the next two: %d, %d, %d", r[0].locks, r[1].locks, r[2].locks)
		}
		if r := struck(Verdict{Delay: keptBack / 2}); r != nil {
			s.note("locks of a renewal with a late answer and of the next: %d, %d; sent before the answer: %v",
				r[0].locks, r[1].locks, r[1].at-r[0].at < keptBack/4)
		}
	}},
	{name: "a renewal whose answer is lost", set: settings{watchdog: 9 * time.Second, response: 600 * time.Millisecond, idle: 6}, tell: func(s *stage) {
		if s.rel.Watchdog == redisson.WatchdogTimer {
			return // such a release sends nothing again
		}
		s.call(1, "lock")
		s.strike(1, 1, Verdict{Drop: true})
		from := len(s.via.Sent(0))
		const period = 3 * time.Second
		time.Sleep(2 * period) // the longest delay before it is sent again is 1.5 s
		all := scriptsOf(s.via.Sent(from))
		s.note("sent again within a period: %v", len(all) > 1 && all[1].At-all[0].At < period)
	}},
	{name: "the timer of two holds, and after an unlock that failed", tell: func(s *stage) {
		if s.rel.Watchdog != redisson.WatchdogTimer {
			return // only this one sets a timer of ten seconds
		}
		s.call(1, "lock")
		s.call(1, "lock")
		s.call(2, "unlock")
		s.note("renewals in nine seconds: %d", s.countRenewals(9*time.Second))
		s.note("renewals in two more: %d", s.countRenewals(2*time.Second))
	}},
	{name: "the timer after a forceUnlock", tell: func(s *stage) {
		if s.rel.Watchdog != redisson.WatchdogTimer {
			return
		}
		s.call(1, "lock")
		<-s.begin(2, "force_unlock") // a method without a result
		s.note("renewals in eleven seconds: %d", s.countRenewals(11*time.Second))
	}},
	{name: "the lease of a renewal, after an attempt with a lease", tell: func(s *stage) {
		if s.rel.Watchdog != redisson.WatchdogTimer {
			return
		}
		s.call(1, "lock")
		s.call(1, "lock", "lease", 120_000)
		s.note("renewals in eleven seconds: %d", s.countRenewals(11*time.Second))
		s.note("more than a minute to live: %v", s.rdb.PTTL(context.Background(), s.lock).Val() > time.Minute)
	}},
}

// batch is a renewal of several locks.
type batch struct {
	locks int
	at    time.Duration
}

// batches returns the scripts of several locks that were sent after the first from messages.
func (s *stage) batches(from int) (all []batch) {
	for _, c := range scriptsOf(s.via.Sent(from)) {
		if n, _ := strconv.Atoi(c.Words[2]); n > 1 {
			all = append(all, batch{n, c.At})
		}
	}
	return all
}

// strikeAttempt lets a fault meet the n-th attempt of a thread, from 1.
func (s *stage) strikeAttempt(thread, n int, v Verdict) {
	owner, sent := s.p.owner(thread), 0
	s.via.Rule(func(c Sent) Verdict {
		if evals(1)(c.Words) && slices.Contains(c.Words, owner) {
			if sent++; sent == n {
				return v
			}
		}
		return Verdict{}
	})
}

// asked waits until a thread has sent its n-th attempt.
func (s *stage) asked(thread, n int) {
	owner := s.p.owner(thread)
	eventually(s.t, "an attempt to be sent", func(context.Context) bool {
		sent := 0
		for _, c := range s.via.Sent(0) {
			if evals(1)(c.Words) && slices.Contains(c.Words, owner) {
				sent++
			}
		}
		return sent >= n
	})
}

// attemptsSince counts the scripts of one key that were sent after the first from messages.
func (s *stage) attemptsSince(from int) (n int) {
	for _, c := range s.via.Sent(from) {
		if evals(1)(c.Words) {
			n++
		}
	}
	return n
}

// TestRules compares port and library in ruleStories and lateSubscriptions.
func TestRules(t *testing.T) { tellStories(t, slices.Concat(ruleStories, lateSubscriptions()), "") }

// lateSubscriptions are stories of a SUBSCRIBE that reaches the server late, or not while
// anybody waits.
func lateSubscriptions() []story {
	type call struct {
		op   string
		wait int // in milliseconds
	}
	lock, try := call{op: "lock"}, func(wait int) call { return call{"try_lock", wait} }
	tell := func(late, response time.Duration, calls ...call) story {
		return story{name: fmt.Sprintf("subscribed after %v, response timeout %v: %v", late, response, calls),
			set: settings{watchdog: time.Minute, response: response, idle: 6}, tell: func(s *stage) {
				if s.rel.Version == "3.12.4" && slices.Equal(calls, []call{lock, try(12000)}) {
					return // the library's try ends with a NullPointerException
				}
				s.call(2, "lock")
				var first atomic.Bool
				s.via.Rule(func(c Sent) Verdict {
					if subscribes(c.Words[0]) && first.CompareAndSwap(false, true) {
						return Verdict{Hold: late}
					}
					return Verdict{}
				})
				begin := time.Now()
				threads := []int{1, 3}
				back := make([]string, len(calls))
				var waiting sync.WaitGroup
				for i, c := range calls {
					time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second)))
					got := s.begin(threads[i], c.op, "wait", c.wait)
					waiting.Go(func() {
						result := await(s.t, got)
						back[i] = fmt.Sprintf("%s after %v", result, time.Since(begin).Round(time.Second/2))
					})
				}
				time.Sleep(time.Until(begin.Add(10 * time.Second)))
				s.call(2, "unlock")
				waiting.Wait()
				s.note("%s", strings.Join(back, ", "))
			}}
	}
	return []story{
		tell(4*time.Second, 3*time.Second, lock),
		tell(4*time.Second, 3*time.Second, try(3500)),
		tell(4*time.Second, 3*time.Second, try(5000)),
		tell(4*time.Second, 3*time.Second, try(12000)),
		tell(20*time.Second, 3*time.Second, lock, lock),
		tell(20*time.Second, 3*time.Second, lock, try(12000)),
		tell(20*time.Second, 3*time.Second, try(12000), lock),
		tell(20*time.Second, 3*time.Second, try(12000), try(12000)),
		tell(20*time.Second, 2*time.Second, lock),
	}
}

// TestLostBesideReplicas compares how often and when a script is sent again if WAIT follows
// each script. The response timeout is longer then, by the second for which WAIT waits.
func TestLostBesideReplicas(t *testing.T) {
	t.Parallel()
	for _, rel := range redisson.Releases {
		if rel.Sync == redisson.SyncNone {
			continue
		}
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			lib := StartLibrary(t, rel.Version)
			sides := make([]func() player, 2)
			for i := range sides {
				master, replica := startReplicated(t)
				sides[i] = func() player {
					via := StartProxy(t, master.Addr)
					set := settings{
						response: lostResponse(rel), idle: 6, watchdog: noWatchdog,
						topology: redisson.Replicated, replicas: []*Proxy{StartProxy(t, replica.Addr)},
					}
					if i == 0 {
						return newLibraryPlayer(t, lib, via, set, 3)
					}
					return newPortPlayer(t, rel, via, set)
				}
				warm(t, sides[i](), i)
			}
			compared := 0
			for i, x := range losses(rel) {
				if x.name != "plain acquire, connection cut after it" && x.name != "plain unlock, connection cut after it" {
					continue
				}
				compared++
				realtime.Case(t, x.name, func(try int) string {
					var both sync.WaitGroup
					var outcome [2]string
					for k, begin := range sides {
						both.Go(func() {
							outcome[k] = suffer(t, rel, begin(), x, fmt.Sprintf("beside%d.%d", i, try), lostResponse(rel)+time.Second)
						})
					}
					both.Wait()
					if outcome[0] != outcome[1] {
						return bothSides(outcome[0], outcome[1])
					}
					t.Logf("%s:\n  both:    %s", x.name, outcome[1])
					return ""
				})
			}
			if compared != 2 {
				t.Errorf("%d calls were compared, not 2", compared)
			}
		})
	}
}
