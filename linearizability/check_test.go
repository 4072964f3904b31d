package linearizability

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"lockstep/model"
)

// parse reads a history in the short form of these tests: a line an operation,
//
//	a/1 acquire 0..2 granted lease=10 token=3
//
// with times in milliseconds, on lock l unless lock= names another. Facts that only a record has are
// written expires=7, never and evicted.
func parse(t *testing.T, text string) []Op {
	t.Helper()
	var ops []Op
	for line := range strings.Lines(strings.TrimSpace(text)) {
		words := strings.Fields(line)
		if len(words) < 3 {
			t.Fatalf("not an operation: %q", line)
		}
		ms := func(s string) int64 {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return n
		}
		ns := func(s string) *int64 { n := ms(s) * 1e6; return &n }
		op := Op{Lock: "l", Op: words[1]}
		process, thread, _ := strings.Cut(words[0], "/")
		op.Process = process
		if thread != "" {
			op.Thread = int(ms(thread))
		}
		call, ret, closed := strings.Cut(words[2], "..")
		op.CallNs = *ns(call)
		if closed && ret != "" {
			op.ReturnNs = ns(ret)
		}
		for _, w := range words[3:] {
			key, value, _ := strings.Cut(w, "=")
			number := func() *int64 { n := ms(value); return &n }
			switch key {
			case "lock":
				op.Lock = value
			case "lease":
				op.LeaseMs = number()
			case "token":
				op.Token = number()
			case "arrived":
				op.ArrivedNs = ns(value)
			case "count":
				op.Count = number()
			case "expires":
				op.ExpireNs = ns(value)
			case "never":
				op.NeverExpires = true
			case "evicted":
				op.Evicted = true
			case "watchdog":
				op.Watchdog = true
			default:
				op.Outcome = w
			}
		}
		ops = append(ops, op)
	}
	return ops
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		rule    string
		spec    string
		drift   int64
		history string
		why     string // empty: linearizable
	}{
		{rule: "an empty lock answers nobody holds", history: `
			a/1 is_locked 0..1 false
			a/1 hold_count 2..3 ok count=0
			a/1 release 4..5 not_held
			a/1 renew 6..7 not_held lease=5
			a/1 force_release 8..9 not_held`},
		{rule: "holds follow each other", history: `
			a/1 acquire 0..1 granted
			a/1 release 2..3 released
			b/1 acquire 2..5 granted
			b/1 release 6..7 released`},
		{rule: "two owners at once", history: `
			a/1 acquire 0..1 granted
			b/1 acquire 2..3 granted
			a/1 release 4..5 released`,
			why: "b/1 acquire (0.002s..0.003s) answered granted, but a/1 held the lock at least from 0.001s to 0.004s"},
		{rule: "two owners at once, never released", history: `
			a/1 acquire 0..1 granted
			b/1 acquire 2..3 granted`,
			why: "b/1 acquire (0.002s..0.003s) answered granted, but a/1 held the lock at least from 0.001s on"},
		{rule: "calls at one instant are concurrent", history: `
			a/1 acquire 0..1 granted
			b/1 acquire 0..4 granted
			a/1 release 4..5 released`},
		{rule: "a hold of no length in the middle of another", history: `
			a/1 acquire 0..1 granted
			b/1 acquire 2..3 granted
			b/1 release 3..6 released
			a/1 release 4..5 released`, why: "b/1 acquire"},
		{rule: "two threads of a process are two owners", history: `
			a/1 acquire 0..1 granted
			a/2 release 2..3 released`, why: "a/2 release (0.002s..0.003s) answered released, but the lock was held by a/1"},
		{rule: "locks are judged one by one", history: `
			a/1 acquire 0..1 granted lock=m
			b/1 acquire 2..3 granted lock=n`},

		{rule: "re-entry counts levels", history: `
			a/1 acquire 0..1 granted
			a/1 acquire 2..3 granted
			a/1 hold_count 4..5 ok count=2
			a/1 release 6..7 still_held
			a/1 release 8..9 released
			b/1 acquire 10..11 granted`},
		{rule: "still_held needs a second level", history: `
			a/1 acquire 0..1 granted
			a/1 release 2..3 still_held`, why: "but the lock was held by a/1 with 1 level"},
		{rule: "released needs the last level", history: `
			a/1 acquire 0..1 granted
			a/1 acquire 2..3 granted
			a/1 release 4..5 released`, why: "but the lock was held by a/1 with 2 levels"},
		{rule: "a retried command that ran twice shows as a level too many", history: `
			a/1 acquire 0..1 granted
			a/1 hold_count 2..3 ok count=2`, why: "answered 2, but the lock was held by a/1 with 1 level"},
		{rule: "the count is the caller's own", history: `
			a/1 acquire 0..1 granted
			b/1 hold_count 2..3 ok count=1`, why: "b/1 hold_count"},

		{rule: "busy needs another owner", history: `
			a/1 acquire 0..1 busy`, why: "but the lock was free"},
		{rule: "busy is wrong for the owner itself", history: `
			a/1 acquire 0..1 granted
			a/1 acquire 2..3 busy`, why: "but the lock was held by a/1"},
		{rule: "busy is right while another holds", history: `
			a/1 acquire 0..1 granted
			b/1 acquire 2..3 busy`},
		{rule: "a read sees the hold", history: `
			a/1 acquire 0..1 granted
			b/1 is_locked 2..3 false`, why: "answered false"},
		{rule: "a failed operation took no effect", history: `
			a/1 acquire 0..1 failed
			b/1 acquire 2..3 granted
			b/1 release 4..5 failed
			a/1 acquire 6..7 busy`},

		{rule: "anybody may force a release", history: `
			a/1 acquire 0..1 granted
			b/1 force_release 2..3 released
			a/1 release 4..5 not_held
			b/1 force_release 6..7 not_held`},
		{rule: "a lost key frees the lock, within its interval", history: `
			a/1 acquire 0..1 granted
			- lost 2..6
			b/1 acquire 3..4 granted
			a/1 release 7..8 not_held`},
		{rule: "a lost key frees the lock once", history: `
			a/1 acquire 0..1 granted
			- lost 2..3
			b/1 acquire 4..5 granted
			c/1 acquire 6..7 granted`, why: "c/1 acquire"},

		{rule: "a lease ends not before its call plus the lease", history: `
			a/1 acquire 0..2 granted lease=10
			b/1 acquire 3..9 granted`, why: "b/1 acquire (0.003s..0.009s) answered granted, but a/1 held the lock at least from 0.002s to 0.010s"},
		{rule: "a lease may end at its call plus the lease", history: `
			a/1 acquire 0..2 granted lease=10
			b/1 acquire 3..10 granted`},
		{rule: "a lease may last to its return plus the lease", history: `
			a/1 acquire 0..2 granted lease=10
			b/1 acquire 12..12 busy`},
		{rule: "a lease lasts no longer than its return plus the lease", history: `
			a/1 acquire 0..2 granted lease=10
			b/1 acquire 13..14 busy`, why: "b/1 acquire (0.013s..0.014s) answered busy, but the lock was free"},
		{rule: "drift lets a lease end sooner", drift: 100_000, history: `
			a/1 acquire 0..2 granted lease=10
			b/1 acquire 3..9 granted`},
		{rule: "drift lets a lease last longer", drift: 100_000, history: `
			a/1 acquire 0..2 granted lease=10
			b/1 acquire 13..14 busy`},
		{rule: "drift has its bound", drift: 100_000, history: `
			a/1 acquire 0..2 granted lease=10
			b/1 acquire 14..15 busy`, why: "b/1 acquire"},
		{rule: "a release after the lease is told so", history: `
			a/1 acquire 0..1 granted lease=5
			a/1 release 10..11 not_held`},
		{rule: "a release after the lease ends nobody else's hold", history: `
			a/1 acquire 0..1 granted lease=5
			b/1 acquire 10..11 granted
			a/1 release 12..13 released`, why: "a/1 release (0.012s..0.013s) answered released, but the lock was held by b/1"},
		{rule: "after the lease a release may come after an acquire of the same instant", history: `
			a/1 acquire 0..1 granted lease=1
			a/1 release 1..3 released
			a/1 acquire 3..4 granted
			b/1 acquire 5..6 granted`},
		{rule: "an acquire without a lease has no expiry", history: `
			a/1 acquire 0..1 granted
			b/1 acquire 1000000..1000001 busy`},
		{rule: "a renewal starts its own lease", history: `
			a/1 acquire 0..1 granted lease=10
			a/1 renew 8..9 renewed lease=10
			b/1 acquire 12..17 busy
			b/1 acquire 20..21 granted`},
		{rule: "a renewal may shorten the lease", history: `
			a/1 acquire 0..1 granted lease=100
			a/1 renew 2..3 renewed lease=5
			b/1 acquire 9..10 granted`},
		{rule: "a renewal by somebody else is told so", history: `
			a/1 acquire 0..1 granted lease=10
			b/1 renew 2..3 renewed lease=10`, why: "b/1 renew"},
		{rule: "re-entry starts its own lease", history: `
			a/1 acquire 0..1 granted lease=10
			a/1 acquire 5..6 granted lease=10
			b/1 acquire 12..14 busy
			b/1 acquire 17..18 granted`},
		{rule: "re-entry without a lease ends expiry", history: `
			a/1 acquire 0..1 granted lease=10
			a/1 acquire 5..6 granted
			b/1 acquire 1000..1001 busy`},
		{rule: "an expired lease takes all levels", history: `
			a/1 acquire 0..1 granted lease=10
			a/1 acquire 2..3 granted lease=10
			b/1 acquire 20..21 granted`},
		{rule: "still_held without a lease lets the running one go on", history: `
			a/1 acquire 0..1 granted lease=10
			a/1 acquire 2..3 granted lease=10
			a/1 release 8..9 still_held
			b/1 acquire 14..15 busy`, why: "b/1 acquire"},
		{rule: "still_held with a lease starts a new one", history: `
			a/1 acquire 0..1 granted lease=10
			a/1 acquire 2..3 granted lease=10
			a/1 release 8..9 still_held lease=10
			b/1 acquire 14..15 busy`},
		{rule: "a lease shorter than its own call may end before it returns", history: `
			a/1 acquire 0..20 granted lease=5
			b/1 acquire 5..6 granted`},
		{rule: "a lease does not end before its operation took effect", history: `
			b/1 acquire 0..1 granted
			a/1 acquire 0..20 granted lease=5
			b/1 release 18..19 released
			c/1 acquire 26..27 busy`, why: "c/1 acquire"},

		{rule: "a watchdog keeps the lease", history: `
			a/1 acquire 0..1 granted watchdog lease=10
			b/1 acquire 1000..1001 busy`},
		{rule: "a hold with a watchdog does not expire", history: `
			a/1 acquire 0..1 granted watchdog lease=10
			b/1 acquire 1000..1001 granted`, why: "but a/1 held the lock at least from 0.001s on"},
		{rule: "a crash ends the watchdog, and the lease within its length", history: `
			a/1 acquire 0..1 granted watchdog lease=10
			b/1 acquire 100..105 busy
			a crash 100
			b/1 acquire 106..110 granted`},
		{rule: "after a crash the lease lasts no longer", history: `
			a/1 acquire 0..1 granted watchdog lease=10
			a crash 100
			b/1 acquire 111..112 busy`, why: "b/1 acquire (0.111s..0.112s) answered busy, but the lock was free"},
		{rule: "the crash of another process ends nothing", history: `
			a/1 acquire 0..1 granted watchdog lease=10
			c crash 100
			b/1 acquire 200..201 granted`, why: "b/1 acquire"},

		{rule: "an unknown acquire may have taken effect", history: `
			a/1 acquire 0.. unknown
			b/1 acquire 5..6 busy`},
		{rule: "an unknown acquire may never take effect", history: `
			a/1 acquire 0.. unknown
			b/1 acquire 5..6 granted
			b/1 release 7..8 released
			c/1 acquire 9..10 granted`},
		{rule: "an unknown acquire may take effect late", history: `
			a/1 acquire 0.. unknown
			b/1 acquire 5..6 granted
			b/1 release 7..8 released
			c/1 acquire 9..10 busy`},
		{rule: "an unknown acquire takes effect once", history: `
			a/1 acquire 0.. unknown
			b/1 acquire 5..6 busy
			a/1 release 7..8 released
			b/1 acquire 9..10 busy`, why: "b/1 acquire (0.009s..0.010s) answered busy, but the lock was free"},
		{rule: "an unknown release may have taken effect", history: `
			a/1 acquire 0..1 granted
			a/1 release 2.. unknown
			b/1 acquire 3..4 granted`},
		{rule: "an unknown release does not take effect before its call", history: `
			a/1 acquire 0..1 granted
			b/1 acquire 2..3 granted
			a/1 release 4.. unknown`, why: "b/1 acquire"},
		{rule: "an unknown release takes one level", history: `
			a/1 acquire 0..1 granted
			a/1 acquire 2..3 granted
			a/1 release 4.. unknown
			b/1 acquire 5..6 granted`, why: "b/1 acquire"},
		{rule: "the lease of an unknown acquire has a first instant and no last", history: `
			a/1 acquire 0.. unknown lease=10
			b/1 acquire 500..501 busy
			b/1 acquire 502..503 granted`},
		{rule: "the lease of an unknown acquire does not end sooner", history: `
			a/1 acquire 0.. unknown lease=10
			b/1 acquire 2..3 busy
			b/1 acquire 4..9 granted`, why: "b/1 acquire (0.004s..0.009s) answered granted, but the lock was held by a/1"},
		{rule: "an unknown renewal may prolong the lease without end", history: `
			a/1 acquire 0..1 granted lease=10
			a/1 renew 5.. unknown lease=10
			b/1 acquire 300..301 busy`},
		{rule: "an unknown force_release may have taken effect", history: `
			a/1 acquire 0..1 granted
			z/1 force_release 2.. unknown
			b/1 acquire 3..4 granted
			a/1 release 5..6 not_held`},

		{rule: "a record knows when a lease ended", history: `
			a/1 acquire 0..5 granted lease=10 expires=12
			b/1 acquire 11..11 granted`, why: "but a/1 held the lock"},
		{rule: "a lease that ended by the record is over", history: `
			a/1 acquire 0..5 granted lease=10 expires=12
			b/1 acquire 13..14 busy`, why: "but the lock was free"},
		{rule: "a lease that never ran out by the record holds", history: `
			a/1 acquire 0..5 granted lease=10 never
			b/1 acquire 100..101 busy`},

		{rule: "the plain lock knows no order", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted arrived=3
			c/1 acquire 2..8 granted arrived=4
			a/1 release 5..6 released
			c/1 release 9..10 released`},
		{rule: "holds are given out in order of arrival", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted arrived=3
			c/1 acquire 2..8 granted arrived=4
			a/1 release 5..6 released
			c/1 release 9..10 released`, why: "c/1 acquire (0.002s..0.008s) answered granted, but b/1 arrived before it (0.003s, itself 0.004s) and still waited"},
		{rule: "the order is the server's, not that of the calls", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted arrived=4
			c/1 acquire 3..8 granted arrived=3
			a/1 release 5..6 released
			c/1 release 9..10 released`},
		{rule: "equal arrivals are in no order", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted arrived=4
			c/1 acquire 3..8 granted arrived=4
			a/1 release 5..6 released
			c/1 release 9..10 released`},
		{rule: "without an arrival there is no order", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted
			c/1 acquire 2..8 granted arrived=4
			a/1 release 5..6 released
			c/1 release 9..10 released`},
		{rule: "nobody waits for who was evicted", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted arrived=3 evicted
			c/1 acquire 2..8 granted arrived=4
			a/1 release 5..6 released
			c/1 release 9..10 released`},
		{rule: "nobody waits for who gave up", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..4 busy arrived=3
			c/1 acquire 2..8 granted arrived=4
			a/1 release 5..6 released`},
		{rule: "nobody waits for an unknown acquire", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2.. unknown arrived=3
			c/1 acquire 2..8 granted arrived=4
			a/1 release 5..6 released`},
		{rule: "re-entry need not wait", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted arrived=3
			a/1 acquire 4..5 granted arrived=4
			a/1 release 6..7 still_held
			a/1 release 8..9 released`},
		{rule: "busy is right while somebody waits", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted arrived=3
			a/1 release 4..5 released
			c/1 acquire 6..7 busy arrived=6`},
		{rule: "on the plain lock busy needs a holder", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 9..20 granted arrived=9
			a/1 release 4..5 released
			c/1 acquire 6..7 busy arrived=6`, why: "c/1 acquire (0.006s..0.007s) answered busy, but the lock was free"},
		{rule: "who has not arrived does not wait", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 granted arrived=10
			a/1 release 4..5 released
			c/1 acquire 6..7 busy arrived=6`, why: "but the lock was free and no other acquire waited"},
		{rule: "who failed at last may have waited before", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..20 failed arrived=3
			a/1 release 4..5 released
			c/1 acquire 6..7 busy arrived=6`},
		{rule: "nobody waits for who failed at last", spec: "fair", history: `
			a/1 acquire 0..1 granted arrived=0
			b/1 acquire 2..30 failed arrived=3
			a/1 release 4..5 released
			c/1 acquire 6..7 busy arrived=6
			d/1 acquire 8..9 granted arrived=8
			d/1 release 10..11 released
			c/1 acquire 12..13 busy arrived=12`},
		{rule: "an acquire takes effect no sooner than it arrives", spec: "fair", history: `
			a/1 acquire 0..9 granted arrived=5
			b/1 is_locked 2..3 true`, why: "b/1 is_locked"},

		{rule: "tokens grow", spec: "fenced", history: `
			a/1 acquire 0..1 granted token=3
			a/1 release 2..3 released
			b/1 acquire 4..5 granted token=7`},
		{rule: "a token is given out once", spec: "fenced", history: `
			a/1 acquire 0..1 granted token=3
			a/1 release 2..3 released
			b/1 acquire 4..5 granted token=3`, why: "b/1 acquire (0.004s..0.005s) answered granted with token 3, but its token 3 is not greater than 3, which was given out before"},
		{rule: "a token after an expiry is greater too", spec: "fenced", history: `
			a/1 acquire 0..1 granted token=3 lease=5
			b/1 acquire 10..11 granted token=2`, why: "its token 2 is not greater than 3"},
		{rule: "re-entry keeps its token", spec: "fenced", history: `
			a/1 acquire 0..1 granted token=3
			a/1 acquire 2..3 granted token=3`},
		{rule: "a hold without a token is not judged by it", spec: "fenced", history: `
			a/1 acquire 0..1 granted token=3
			a/1 release 2..3 released
			b/1 acquire 4..5 granted
			b/1 release 6..7 released
			c/1 acquire 8..9 granted token=4`},
		{rule: "the other locks do not look at tokens", history: `
			a/1 acquire 0..1 granted token=3
			a/1 release 2..3 released
			b/1 acquire 4..5 granted token=3`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r := Check(parse(t, c.history), Options{Spec: c.spec, DriftPPM: c.drift})
			want := OK
			if c.why != "" {
				want = Broken
			}
			if r.Verdict() != want {
				t.Fatalf("%s, want %s: %+v", r.Verdict(), want, r)
			}
			for _, l := range r.Locks {
				if c.why != "" && !strings.Contains(Sentence(l.Reason, model.Seconds), c.why) {
					t.Errorf("why is %q, want %q in it", Sentence(l.Reason, model.Seconds), c.why)
				}
				if (l.Verdict == OK) != (l.First == nil && l.Reason == (Reason{}) && l.Prefix == l.Ops) {
					t.Errorf("verdict and explanation do not fit: %+v", l)
				}
			}
		})
	}
}

func TestResultsAreInOrderOfLocks(t *testing.T) {
	r := Check(parse(t, `
		a/1 acquire 0..1 granted lock=z
		b/1 acquire 2..3 granted lock=b
		b/1 release 4..5 not_held lock=b
		c/1 acquire 6..7 failed lock=m`), Options{})
	var got []string
	for _, l := range r.Locks {
		got = append(got, fmt.Sprintf("%s %s %d/%d", l.Lock, l.Verdict, l.Prefix, l.Ops))
	}
	if want := "b broken 1/2; m ok 0/0; z ok 1/1"; strings.Join(got, "; ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, "; "), want)
	}
}

func TestStoppedSearchIsUndecided(t *testing.T) {
	history := `
		a/1 acquire 0..1 granted lease=5
		b/1 is_locked 2..3 true
		a/1 release 4..5 released`
	r := Check(parse(t, history), Options{StepLimit: 2})
	l := r.Locks[0]
	if r.Verdict() != Undecided || l.First != nil || l.Steps != 2 || *l.Limit != (Limit{Steps: 2}) {
		t.Errorf("two steps for three operations: %+v", l)
	}
	if r := Check(parse(t, history), Options{}); r.Verdict() != OK {
		t.Errorf("without the limit: %+v", r)
	}
}

func TestBrokenOutweighsUndecided(t *testing.T) {
	r := Result{Locks: []LockResult{{Verdict: Undecided}, {Verdict: Broken}, {Verdict: OK}}}
	if r.Verdict() != Broken {
		t.Errorf("got %s", r.Verdict())
	}
	if r := (Result{Locks: []LockResult{{Verdict: OK}, {Verdict: Undecided}}}); r.Verdict() != Undecided {
		t.Errorf("got %s", r.Verdict())
	}
	if r := Check(nil, Options{}); r.Verdict() != OK {
		t.Errorf("the empty history: %s", r.Verdict())
	}
}

func TestSumsDoNotOverflow(t *testing.T) {
	const far = 1<<63 - 1
	for _, lease := range []int64{1, far / 1_000_000, far} {
		for _, call := range []int64{-far, 0, far - 10} {
			ret := call + 1
			ops := []Op{
				{Process: "a", Thread: 1, Lock: "l", Op: OpAcquire, CallNs: call, ReturnNs: &ret, Outcome: "granted", LeaseMs: &lease},
				{Process: "a", Thread: 1, Lock: "l", Op: OpHoldCount, CallNs: ret + 1, ReturnNs: new(ret + 2), Outcome: "ok", Count: new(int64(1))},
			}
			for _, ppm := range []int64{0, 1, 1_000_000, far} {
				if r := Check(ops, Options{DriftPPM: ppm}); r.Verdict() != OK {
					t.Errorf("lease %d at %d, drift %d: %+v", lease, call, ppm, r.Locks)
				}
			}
		}
	}
}

func TestMonitor(t *testing.T) {
	for _, c := range []struct {
		rule, history string
		convicts      bool
		exact         bool
	}{
		{"plain holds are decided", "a/1 acquire 0..1 granted\na/1 release 2..3 released\nb/1 acquire 2..4 granted", false, true},
		{"plain holds that overlap convict", "a/1 acquire 0..1 granted\nb/1 acquire 1..2 granted\na/1 release 3..4 released", true, true},
		{"no time between a release and the next acquire", "a/1 acquire 0..1 granted\na/1 release 2..3 released\na/1 acquire 3..4 granted\nb/1 acquire 5..6 granted", true, true},
		{"the same with a lease", "a/1 acquire 0..1 granted lease=9\na/1 release 2..3 released\na/1 acquire 3..4 granted lease=9\nb/1 acquire 5..6 granted", true, false},
		{"the same when the lease may have ended before", "a/1 acquire 0..1 granted lease=1\na/1 release 1..3 released\na/1 acquire 3..4 granted\nb/1 acquire 5..6 granted", false, false},
		{"an overlap convicts beside a read", "a/1 acquire 0..1 granted\nb/1 acquire 1..2 granted\nc/1 is_locked 3..4 true", true, false},
		{"a hold that is entered again lasts to its last release", "a/1 acquire 0..1 granted\na/1 acquire 2..3 granted\na/1 release 4..5 still_held\nb/1 acquire 6..7 granted\na/1 release 8..9 released", true, true},
		{"and no longer", "a/1 acquire 0..1 granted\na/1 acquire 2..3 granted\na/1 release 4..5 still_held\na/1 release 6..7 released\nb/1 acquire 6..8 granted", false, true},
		{"levels that do not fit are handed over", "a/1 acquire 0..1 granted\na/1 release 2..3 still_held", false, false},
		{"a read is handed over", "a/1 acquire 0..1 granted\nc/1 is_locked 3..4 false", false, false},
		{"busy without a reason is handed over", "a/1 acquire 0..1 granted\na/1 release 2..3 released\nb/1 acquire 4..5 busy", false, false},
		{"busy beside a hold", "a/1 acquire 0..1 granted\na/1 release 2..3 released\nb/1 acquire 3..5 busy", false, true},
		{"busy before a hold that may begin sooner", "a/1 acquire 0..9 granted\nb/1 acquire 1..2 busy", false, true},
		{"busy between two holds, the first of which may last", "a/1 acquire 0..1 granted\na/1 release 2..5 released\nb/1 acquire 3..4 busy\nc/1 acquire 6..7 granted", false, true},
		{"busy for the owner of the only hold", "a/1 acquire 0..1 granted\na/1 release 2..3 released\na/1 acquire 4..5 busy", false, false},
		{"busy at the instant of another call of its thread", "b/1 acquire 0..1 granted\na/1 acquire 0..1 busy\na/1 acquire 1..2 busy", false, false},
		{"busy before two holds overlap", "b/1 acquire 0..1 busy\na/1 acquire 2..3 granted\nc/1 acquire 4..5 granted", true, false},
		{"a lease clips a hold", "a/1 acquire 0..1 granted lease=3\nb/1 acquire 2..3 granted", false, false},
		{"within the lease an overlap convicts", "a/1 acquire 0..1 granted lease=4\nb/1 acquire 2..3 granted", true, false},
		{"a shorter renewal clips a hold", "a/1 acquire 0..1 granted lease=100\na/1 renew 1..2 renewed lease=2\nb/1 acquire 2..3 granted", false, false},
		{"an unknown renewal clips a hold", "a/1 renew 0.. unknown lease=2\na/1 acquire 0..1 granted\nb/1 acquire 2..3 granted", false, false},
		{"a renewal proves a hold", "a/1 acquire 0.. unknown lease=100\na/1 renew 1..2 renewed lease=5\nb/1 acquire 3..4 granted", true, false},
		{"an unknown release clips a hold", "a/1 acquire 0..1 granted\na/1 release 2.. unknown\nb/1 acquire 2..3 granted", false, false},
		{"an older unknown release leaves nothing sure", "a/1 release 0.. unknown\na/1 acquire 1..2 granted\nb/1 acquire 3..4 granted", false, false},
		{"somebody else's unknown release ends nothing", "c/1 release 0.. unknown\na/1 acquire 1..2 granted\nb/1 acquire 3..4 granted", true, false},
		{"a forced release clips a hold", "a/1 acquire 0..1 granted\nc/1 force_release 2..9 released\nb/1 acquire 3..4 granted", false, false},
		{"a forced release before it ends nothing", "c/1 acquire 0..1 granted\nc/1 force_release 2..3 released\na/1 acquire 4..5 granted\nb/1 acquire 6..7 granted", true, false},
		{"a lost key clips a hold", "a/1 acquire 0..1 granted\n- lost 2..9\nb/1 acquire 3..4 granted", false, false},
		{"still_held ends no hold", "a/1 acquire 0..1 granted\na/1 acquire 2..3 granted\na/1 release 4..5 still_held\nb/1 acquire 6..7 granted", true, true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			ops := parse(t, c.history)
			h := &history{lock: "l", ops: sorted(ops)}
			got, exact := h.monitor()
			if (got != nil) != c.convicts || exact != c.exact {
				t.Errorf("convicts %v, exact %v; want %v, %v", got != nil, exact, c.convicts, c.exact)
			}
		})
	}
}

// The histories that, as the comment of monitor.go says, the monitor hands over.
func TestWhatTheMonitorHandsOver(t *testing.T) {
	for _, c := range []struct{ what, spec, history string }{
		{"busy", "reentrant", "a/1 acquire 0..1 granted\na/1 release 2..3 released\nb/1 acquire 4..5 busy"},
		{"a read", "reentrant", "a/1 acquire 0..1 granted\nb/1 is_locked 2..3 false"},
		{"not held", "reentrant", "a/1 acquire 0..1 granted\na/1 release 2..3 not_held"},
		{"a lease", "reentrant", "a/1 acquire 0..1 granted lease=10\nb/1 acquire 11..12 granted\na/1 release 13..14 released"},
		{"something forced", "reentrant", "a/1 acquire 0..1 granted\nc/1 force_release 2..3 released\na/1 release 4..5 released"},
		{"something lost", "reentrant", "a/1 acquire 0..1 granted\n- lost 2..3\na/1 release 4..5 released"},
		{"an unknown outcome", "reentrant", "a/1 acquire 0..1 granted\na/1 release 2.. unknown\nb/1 acquire 4..5 granted\na/1 release 6..7 released"},
		{"tokens", "fenced", "a/1 acquire 0..1 granted token=2\na/1 release 2..3 released\nb/1 acquire 4..5 granted token=1"},
		{"arrivals", "fair", "a/1 acquire 0..1 granted arrived=0\nb/1 acquire 2..9 granted arrived=2\nc/1 acquire 3..6 granted arrived=3\na/1 release 4..5 released\nc/1 release 7..8 released"},
	} {
		t.Run(c.what, func(t *testing.T) {
			ops := parse(t, c.history)
			spec, _ := model.SpecNamed(c.spec)
			h := &history{lock: "l", ops: sorted(ops), spec: spec, opt: Options{}, free: spec.Init()}
			if got, exact := h.monitor(); got != nil || exact {
				t.Errorf("the monitor says %v, exact %v", got, exact)
			}
			if v := Check(ops, Options{Spec: c.spec}).Verdict(); v != Broken {
				t.Errorf("the search says %s", v)
			}
		})
	}
}

func ExampleCheck() {
	h, err := ReadHistory(strings.NewReader(`
{"process":"a","thread":1,"lock":"orders","op":"acquire","call_ns":0,"return_ns":1200000,"outcome":"granted","lease_ms":1000}
{"process":"b","thread":1,"lock":"orders","op":"acquire","call_ns":500000000,"return_ns":1500000000,"outcome":"granted","lease_ms":30000}
{"process":"a","thread":1,"lock":"orders","op":"release","call_ns":2104000000,"return_ns":2106000000,"outcome":"released"}
`[1:]), "history.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range Check(h.Ops, Options{Spec: "reentrant"}).Locks {
		fmt.Println(l.Lock, l.Verdict)
		fmt.Println(Sentence(l.Reason, model.Seconds))
	}
	// Output:
	// orders broken
	// a/1 release (2.104s..2.106s) answered released, but the lock was held by b/1
}

// The caller decides how instants are written.
func TestInstantsAreWrittenAsAsked(t *testing.T) {
	ret := int64(5_000_123)
	ops := []Op{
		{Process: "a", Thread: 1, Lock: "x", Op: OpAcquire, CallNs: 1, ReturnNs: &ret, Outcome: model.AnswerGranted},
		{Process: "b", Thread: 1, Lock: "x", Op: OpAcquire, CallNs: 7_000_456, ReturnNs: new(int64), Outcome: model.AnswerGranted},
	}
	*ops[1].ReturnNs = 8_000_789
	for _, c := range []struct {
		at   func(int64) string
		want string
	}{
		{model.Seconds, "b/1 acquire (0.007000456s..0.008000789s) answered granted, but a/1 held the lock at least from 0.005000123s on"},
		{model.At, "b/1 acquire (0.007s..0.008s) answered granted, but a/1 held the lock at least from 0.005s on"},
	} {
		r := Check(ops, Options{})
		if len(r.Locks) != 1 || Sentence(r.Locks[0].Reason, c.at) != c.want {
			t.Errorf("%+v; want %s", r.Locks, c.want)
		}
	}
}
