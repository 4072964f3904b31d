package judges

import (
	"reflect"
	"slices"
	"testing"

	"lockstep/model"
	"lockstep/model/trace"
)

// The record contradicts what is not so, whatever the kind of the claim.
func TestTheRecordContradictsAWrongClaim(t *testing.T) {
	run := trace.New(recordOf(t, fairLock, `
		0    a/1 takes
		10   b/1 invoke lock
		10   b/1 send acquire
		11   b/1 exec acquire -> a/1 1 30001 queue=b/1
		12   b/1 deliver acquire
		1000 a/1 invoke unlock
		1000 a/1 send unlock
		1001 a/1 exec unlock -> free
		1002 a/1 deliver unlock
		1002 a/1 return released
		9000 server leave`))
	at := func(c Claim) Claim {
		c.Lock, c.ToNs = "l", c.FromNs
		return c
	}
	const s = int64(1e9)
	a := run.CallsOn("l")[0]
	end := run.Changes("l")[len(run.Changes("l"))-1]
	for _, c := range []struct {
		claim Claim
		want  bool
	}{
		{Claim{Kind: ClaimHeld, Thread: "a/1", FromNs: s / 2, Levels: 1}, true},
		{Claim{Kind: ClaimHeld, Thread: "a/1", FromNs: s / 2, Levels: 2}, false},
		{Claim{Kind: ClaimHeld, Thread: "b/1", FromNs: s / 2}, false},
		{Claim{Kind: ClaimHeld, Thread: "a/1", FromNs: s / 2, ExpiresMs: -1}, false},
		{Claim{Kind: ClaimNotHeld, Thread: "a/1", FromNs: s / 2}, false},
		{Claim{Kind: ClaimNotHeld, Thread: "b/1", FromNs: s / 2}, true},
		{Claim{Kind: ClaimFree, FromNs: s / 2}, false},
		{Claim{Kind: ClaimFree, FromNs: 2 * s}, true},
		{Claim{Kind: ClaimClosed, FromNs: 2 * s}, false},
		{Claim{Kind: ClaimCounted, Thread: "a/1", FromNs: s / 2, Levels: 1}, true},
		{Claim{Kind: ClaimCounted, Thread: "a/1", FromNs: s / 2}, false},
		{Claim{Kind: ClaimCounted, Thread: "a/1", FromNs: 2 * s}, true},
		{Claim{Kind: ClaimQueued, Thread: "b/1", FromNs: s / 2}, true},
		{Claim{Kind: ClaimQueued, Thread: "a/1", FromNs: s / 2}, false},
		{Claim{Kind: ClaimBegan, Thread: "a/1", FromNs: run.Changes("l")[0].AtNs}, true},
		{Claim{Kind: ClaimBegan, Thread: "a/1", FromNs: run.Changes("l")[0].AtNs, Token: 7}, false},
		{Claim{Kind: ClaimBegan, Thread: "a/1", FromNs: s / 2}, false},
		{Claim{Kind: ClaimEnded, Thread: "a/1", FromNs: end.AtNs}, true},
		{Claim{Kind: ClaimEnded, Thread: "b/1", FromNs: end.AtNs}, false},
		{Claim{Kind: ClaimAnswered, Thread: "a/1", FromNs: a.ReturnedNs(), Outcome: model.Granted}, true},
		{Claim{Kind: ClaimAnswered, Thread: "a/1", FromNs: a.ReturnedNs(), Outcome: model.Unknown}, false},
		{Claim{Kind: ClaimAnswered, Thread: "b/1", FromNs: a.ReturnedNs(), Outcome: model.Granted}, false},
	} {
		if got := at(c.claim).holds(run); got != c.want {
			t.Errorf("%+v: the record says %v, want %v", at(c.claim), got, c.want)
		}
	}
	wrong := Finding{Judge: model.JudgeLease, AtNs: 2 * s, Facts: model.Facts{Lock: "l", Thread: "a/1"}, Detail: Misled{HeldNs: s / 2}}
	if got := Untrue(run, wrong); len(got) != 1 || got[0].Kind != ClaimHeld || got[0].FromNs != 2*s {
		t.Errorf("of a hold that is over the record contradicts %v, want the hold at 2 s", got)
	}
}

// Each detail with a fact about the servers makes a claim; the others are about time, keys and steps.
func TestDetailsMakeClaims(t *testing.T) {
	var without []any
	for _, d := range Details {
		if _, ok := d.(Unplaceable); ok {
			continue // it needs an operation
		}
		if f := (Finding{AtNs: 1, Facts: model.Facts{Lock: "l", Thread: "a/1"}, Detail: d}); len(f.Claims()) == 0 {
			without = append(without, d)
		}
	}
	want := []any{LateRenewal{}, Stuck{}, Forgotten{}, LateReturn{}, Traffic{}, Leftover{}, TornQueue{}, Unmet{}, Defect{}, WrongResource{}}
	if !slices.EqualFunc(without, want, func(a, b any) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }) {
		t.Errorf("these details make no claim: %T", without)
	}
}
