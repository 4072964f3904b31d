//go:build interop

package interop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"lockstep/lockimpl/redisson"
)

// ruleStories tell rules of the client that mutants of the port broke and no
// other comparison noticed; see docs/fidelity.md.
var ruleStories = []story{
	{name: "two locks of two threads are both renewed", tell: func(s *stage) {
		if s.rel.Watchdog == redisson.WatchdogTimer {
			return // its watchdog's timeout is no setting: 30 s
		}
		s.call(1, "lock")
		other := s.lock + "other"
		s.note("2 lock of another: %s", await(s.t, s.p.do(2, "lock", Fields{"kind", "plain", "lock", other})))
		time.Sleep(2 * s.watchdog)
		s.state()
		s.note("the other: %v", s.rdb.HVals(context.Background(), other).Val())
	}},
	{name: "a message that comes while the waiter asks", set: settings{watchdog: 4 * keptBack, idle: 6}, tell: func(s *stage) {
		s.call(2, "lock")
		s.strikeAttempt(1, 2, Verdict{Delay: keptBack})
		c := s.begin(1, "lock")
		time.Sleep(keptBack / 3)
		// Not by an unlock, whose answer may have to wait behind the one kept back.
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
	// 3.21.3 gives up after 3 s, which the port does not; see docs/fidelity.md.
	{name: "a subscription that is not acknowledged", set: settings{watchdog: 9 * time.Second, idle: 6}, tell: func(s *stage) {
		if s.rel.Version == "3.21.3" {
			return
		}
		s.call(2, "lock")
		s.via.Rule(func(c Sent) Verdict {
			if subscribes(c.Words[0]) {
				return Verdict{Hold: 20 * time.Second}
			}
			return Verdict{}
		})
		c := s.begin(1, "lock")
		select {
		case <-c: // releases word the error differently
			s.note("back within six seconds")
		case <-time.After(6 * time.Second):
			select {
			case <-c:
				s.note("back within nine seconds")
			case <-time.After(3 * time.Second):
				s.note("not back within nine seconds")
			}
		}
	}},
	{name: "a wait for a lock that does not expire", tell: func(s *stage) {
		s.call(2, "lock", "lease", 60000)
		s.rdb.Persist(context.Background(), s.lock)
		c := s.begin(1, "lock")
		time.Sleep(keptBack / 2)
		s.note("attempts while it waits: %d", s.countRenewals(keptBack/2))
		s.call(2, "unlock")
		s.result("after the unlock", c, keptBack)
	}},
	{name: "a wait after an interrupt", tell: func(s *stage) {
		s.call(2, "lock", "lease", 60000)
		s.begin(1, "lock")
		time.Sleep(keptBack / 2)
		from := len(s.via.Sent(0))
		s.p.interrupt(1)
		time.Sleep(keptBack / 2)
		s.note("attempts after the interrupt: %d", s.attemptsSince(from))
	}},
	{name: "a late answer in the loop of a timed tryLock", set: settings{response: 600 * time.Millisecond, attempts: -1}, tell: func(s *stage) {
		s.call(2, "lock", "lease", 60000)
		s.strikeAttempt(1, 2, Verdict{Delay: keptBack})
		s.call(1, "try_lock", "wait", 9000)
	}},
	{name: "a hundred and twenty locks to renew", tell: func(s *stage) {
		if s.rel.Watchdog != redisson.WatchdogTask {
			return // a renewal names one lock
		}
		for i := range 120 {
			await(s.t, s.p.do(1, "lock", Fields{"kind", "plain", "lock", fmt.Sprint(s.lock, ".", i)}))
		}
		from := len(s.via.Sent(0))
		time.Sleep(2 * s.watchdog)
		most := 0
		for _, c := range s.via.Sent(from) {
			if len(c.Words) > 2 && slices.Contains([]string{"EVAL", "EVALSHA", "eval", "evalsha"}, c.Words[0]) {
				n, _ := strconv.Atoi(c.Words[2])
				most = max(most, n)
			}
		}
		s.note("most locks of one renewal: %d", most)
	}},
	{name: "the timer of two holds, and after an unlock that failed", tell: func(s *stage) {
		if s.rel.Watchdog != redisson.WatchdogTimer {
			return // others set no timer of ten seconds
		}
		s.call(1, "lock")
		s.call(1, "lock")
		s.call(2, "unlock")
		s.note("renewals in eleven seconds: %d", s.countRenewals(11*time.Second))
	}},
}

// strikeAttempt lets the n-th attempt (from 1) of a thread meet a fault.
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

// attemptsSince counts scripts of one key.
func (s *stage) attemptsSince(from int) (n int) {
	for _, c := range s.via.Sent(from) {
		if evals(1)(c.Words) {
			n++
		}
	}
	return n
}

// TestRules: what a mutant of the port was seen to break.
func TestRules(t *testing.T) { tellStories(t, ruleStories, "") }
