package linearizability

import (
	"math/rand/v2"
	"slices"
	"testing"

	"lockstep/model"
)

// contend returns the history of 20 threads, which contending makes.
func contend(n int, lease bool) []Op { return contending(20, n, lease, false) }

// contending returns the history of threads that contend for one correct lock: all wait while one
// works. Most block; unless plain is set, some only look or try once. Leases last a second, or far
// longer than the history.
func contending(threads, n int, lease, plain bool) []Op {
	rng := rand.New(rand.NewPCG(1, 2))
	var ops []Op
	names := []string{"a", "b", "c", "d", "e"}
	at := func(ns int64) *int64 { return &ns }
	type thread struct {
		process string
		number  int
		call    int64 // of the acquire that waits
		arrived int64
	}
	var queue []thread
	for i := range threads {
		call := rng.Int64N(1_000_000)
		queue = append(queue, thread{names[i%5], 1 + i/5, call, call + rng.Int64N(400_000)})
	}
	slices.SortFunc(queue, func(a, b thread) int { return int(a.arrived - b.arrived) })
	now, token := int64(2_000_000), int64(0)
	for len(ops) < n {
		// The head gets the lock, works, and goes to the end of the queue.
		th := queue[0]
		queue = queue[1:]
		token++
		granted := now + rng.Int64N(100_000)
		got := granted + rng.Int64N(300_000)
		acquire := Op{Process: th.process, Thread: th.number, Lock: "orders", Op: OpAcquire, CallNs: th.call, ReturnNs: at(got),
			Outcome: model.AnswerGranted, Token: at(token), ArrivedNs: at(th.arrived)}
		if lease {
			ms := int64(1000)
			if rng.IntN(2) == 0 {
				ms = 3_600_000
			}
			acquire.LeaseMs = &ms
		}
		ops = append(ops, acquire)
		t := got + rng.Int64N(1_000_000)
		if lease && rng.IntN(4) == 0 {
			ms := int64(1000)
			ret := t + rng.Int64N(300_000)
			ops = append(ops, Op{Process: th.process, Thread: th.number, Lock: "orders", Op: OpRenew, CallNs: t, ReturnNs: at(ret),
				Outcome: model.AnswerRenewed, LeaseMs: &ms})
			t = ret
		}
		also := rng.IntN(6)
		if plain {
			also = 2
		}
		switch also {
		case 0: // somebody looks
			ret := t + rng.Int64N(300_000)
			ops = append(ops, Op{Process: "z", Thread: len(ops), Lock: "orders", Op: OpIsLocked, CallNs: t, ReturnNs: at(ret), Outcome: "true"})
			t = ret + 1
		case 1: // somebody tries
			ret := t + rng.Int64N(300_000)
			ops = append(ops, Op{Process: "y", Thread: len(ops), Lock: "orders", Op: OpAcquire, CallNs: t, ReturnNs: at(ret), Outcome: "busy", ArrivedNs: at(t)})
			t = ret
		}
		released := t + rng.Int64N(300_000)
		back := released + rng.Int64N(300_000)
		ops = append(ops, Op{Process: th.process, Thread: th.number, Lock: "orders", Op: OpRelease, CallNs: t, ReturnNs: at(back), Outcome: model.AnswerReleased})
		now = released
		arrived := max(back, queue[len(queue)-1].arrived) + 1 + rng.Int64N(1000)
		queue = append(queue, thread{th.process, th.number, back, arrived})
	}
	slices.SortStableFunc(ops, func(a, b Op) int { return int(a.CallNs - b.CallNs) })
	return ops
}

func TestLargeValidHistoryIsAccepted(t *testing.T) {
	for _, spec := range model.Specs {
		for _, lease := range []bool{false, true} {
			r := Check(contend(5000, lease), Options{Spec: spec}).Locks[0]
			if r.Verdict != OK || r.Prefix != r.Ops {
				t.Errorf("%s, leases %v: %+v", spec, lease, r)
			}
			t.Logf("%s, leases %v: %d operations in %d steps", spec, lease, r.Ops, r.Steps)
		}
	}
}

func TestLargeBrokenHistoryEnds(t *testing.T) {
	for _, c := range []struct {
		rule string
		want Verdict // empty: broken, or the limit
		harm func(ops []Op)
	}{
		{"two owners: the release comes too late", Broken, func(ops []Op) {
			for i := len(ops) / 2; ; i++ {
				if ops[i].Op == OpRelease {
					ops[i].CallNs += 20_000_000
					*ops[i].ReturnNs += 20_000_000
					return
				}
			}
		}},
		{"a reader sees a free lock in the middle of a hold", "", func(ops []Op) {
			for i := len(ops) / 2; ; i++ {
				if ops[i].Op == OpIsLocked {
					ops[i].Outcome = "false"
					return
				}
			}
		}},
		{"a release is told that it does not hold", "", func(ops []Op) {
			for i := len(ops) - 50; ; i++ {
				if ops[i].Op == OpRelease {
					ops[i].Outcome = model.AnswerNotHeld
					return
				}
			}
		}},
	} {
		for _, spec := range model.Specs {
			for _, lease := range []bool{false, true} {
				ops := contend(5000, lease)
				c.harm(ops)
				r := Check(ops, Options{Spec: spec}).Locks[0]
				t.Logf("%s, %s, leases %v: %s after %d steps, prefix %d: %s", c.rule, spec, lease, r.Verdict, r.Steps, r.Prefix, Sentence(r.Reason, model.Seconds))
				if r.Verdict == OK || c.want != "" && r.Verdict != c.want {
					t.Errorf("%s, %s, leases %v: %s, want %s", c.rule, spec, lease, r.Verdict, c.want)
				}
			}
		}
	}
}

func BenchmarkCheckLeases(b *testing.B) {
	ops := contend(5000, true)
	for _, spec := range model.Specs {
		b.Run(spec, func(b *testing.B) {
			for b.Loop() {
				if v := Check(ops, Options{Spec: spec}).Verdict(); v != OK {
					b.Fatal(v)
				}
			}
		})
	}
}

func BenchmarkCheckRead(b *testing.B) {
	ops := contend(5000, false)
	i := len(ops) / 2
	for ops[i].Op != OpIsLocked {
		i++
	}
	ops[i].Outcome = model.AnswerFalse
	for b.Loop() {
		if Check(ops, Options{}).Verdict() == OK {
			b.Fatal("a broken history was accepted")
		}
	}
}

// The checker keeps only the operations of a long history since the lock was last certainly free,
// and nothing of threads that have ended.
func TestALongHistoryIsForgotten(t *testing.T) {
	for _, spec := range model.Specs {
		for _, lease := range []bool{false, true} {
			ops := contend(60_000, lease)
			c := NewChecker(Options{Spec: spec})
			most, owners := 0, 0
			for i := range ops {
				c.Add(&ops[i])
				l := c.locks["orders"]
				most, owners = max(most, len(l.ops)), max(owners, len(l.owners))
			}
			r := c.Result().Locks[0]
			t.Logf("%s, leases %v: %s, at most %d operations and %d owners were kept", spec, lease, r.Verdict, most, owners)
			if r.Verdict != OK || r.Ops != len(ops) || r.Prefix != len(ops) || most > 2*stretchMin || owners > stretchMin {
				t.Errorf("%s, leases %v: %+v", spec, lease, r)
			}
		}
	}
}
