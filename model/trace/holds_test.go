package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"lockstep/model"
)

// The table of holds says the same of a stretch of time as the states at each instant of it.
func TestTheTableOfHoldsAgreesWithTheStates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const end = 30
	for round := range 2000 {
		rec := &model.Record{}
		var at [end + 1]string // the owner after each instant
		owner := ""
		for now := range int64(end) {
			if next := []string{"", "a/1", "b/1", owner}[rng.IntN(4)]; next != owner {
				owner = next
				s := &model.LockState{}
				if owner != "" {
					s = &model.LockState{Owner: owner, Count: 1, ExpiresMs: -1}
				}
				rec.Add(model.Event{AtNs: now, Kind: model.KindState, Lock: "x", State: s})
			}
			at[now] = owner
		}
		at[end] = owner
		r := New(rec)
		from := rng.Int64N(end)
		to := from + rng.Int64N(end-from)
		for _, who := range []string{"a/1", "b/1"} {
			// A hold is there from the instant of its beginning to that of its end, both included.
			var want []string
			held, free := false, false
			for now := from; now <= to; now++ {
				before := ""
				if now > 0 {
					before = at[now-1]
				}
				held = held || at[now] != who && at[now] != "" || before != who && before != ""
				free = free || at[now] != who
			}
			for now := int64(0); now <= to; now++ {
				if at[now] != who || now > 0 && at[now-1] == who {
					continue
				}
				last := slices.IndexFunc(at[now:], func(o string) bool { return o != who })
				if last < 0 || now+int64(last) >= from {
					want = append(want, fmt.Sprint(who, " from ", now))
				}
			}
			var got []string
			for _, h := range r.HoldsOf("x", who, from, to) {
				got = append(got, fmt.Sprint(h.Owner, " from ", h.FromNs()))
			}
			if !slices.Equal(got, want) || r.HeldWithin("x", from, to, who) != held || r.FreeWithin("x", who, from, to) != free {
				t.Fatalf("round %d, owners %q, %s in [%d, %d]: holds %v, want %v; held by others %t, want %t; free of it %t, want %t",
					round, at, who, from, to, got, want, r.HeldWithin("x", from, to, who), held, r.FreeWithin("x", who, from, to), free)
			}
		}
	}
}
