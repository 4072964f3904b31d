package judges

import (
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// Claim is a statement of a finding about the servers of a lock, or about the answer of a call. The record
// of the run says whether it is true.
type Claim struct {
	Kind   ClaimKind
	Lock   string
	Thread string // process/thread
	// FromNs and ToNs are the first and the last instant for which it is made. A claim is true if it is
	// true at one of them.
	FromNs, ToNs int64
	Levels       int           // of ClaimHeld, for which 0 says nothing, and of ClaimCounted
	ExpiresMs    int64         // of ClaimHeld: the end of the lease; 0: it does not say
	Token        int64         // of ClaimBegan and ClaimAnswered; 0: it does not say
	Outcome      model.Outcome // of ClaimAnswered
}

// ClaimKind is a kind of claims.
type ClaimKind string

// The kinds of claims.
const (
	ClaimFree     ClaimKind = "free"     // nobody held the lock, and it was not closed
	ClaimClosed   ClaimKind = "closed"   // nobody held the lock, and nobody could take it
	ClaimHeld     ClaimKind = "held"     // the servers held the lock for the thread
	ClaimNotHeld  ClaimKind = "not-held" // they did not
	ClaimCounted  ClaimKind = "counted"  // they counted exactly that many levels of the thread
	ClaimBegan    ClaimKind = "began"    // a hold of the thread began
	ClaimEnded    ClaimKind = "ended"    // a hold of the thread ended
	ClaimQueued   ClaimKind = "queued"   // the thread stood in the queue
	ClaimAnswered ClaimKind = "answered" // a call of the thread returned the outcome
)

// claimed collects the claims of a finding.
type claimed struct {
	f   Finding
	all []Claim
}

func (x *claimed) add(c Claim) {
	c.Lock = x.f.Lock
	if c.ToNs == 0 {
		c.ToNs = c.FromNs
	}
	x.all = append(x.all, c)
}

func (x *claimed) at(kind ClaimKind, who string, ns int64) {
	x.add(Claim{Kind: kind, Thread: who, FromNs: ns})
}

func (x *claimed) answered(who string, outcome model.Outcome, ns int64) {
	x.add(Claim{Kind: ClaimAnswered, Thread: who, FromNs: ns, Outcome: outcome})
}

// ending adds the claims about the end of a hold.
func (x *claimed) ending(who string, e Ending) {
	switch e.Cause {
	case model.LossExpired, model.LossRemoved, model.LossForced, model.LossEnded:
		x.at(ClaimEnded, who, e.AtNs)
	}
}

// unplaceable adds the claims about an answer that the servers do not allow.
func (x *claimed) unplaceable(d Unplaceable) {
	refused := d.Reason.Refused
	if refused == nil {
		return
	}
	op := refused.Op
	answer := model.Outcome(op.Outcome)
	if answer == model.AnswerRenewed { // the word of a history
		answer = model.Extended
	}
	x.answered(x.f.Thread, answer, *op.ReturnNs)
	state := Claim{Kind: ClaimFree, FromNs: op.CallNs, ToNs: max(d.RanNs, *op.ReturnNs)}
	switch s := refused.State; {
	case s.Owner != "":
		state.Kind, state.Thread, state.Levels = ClaimHeld, s.Owner, s.Count
	case d.Closed:
		state.Kind = ClaimClosed
	}
	x.add(state)
}

// Claims returns what a finding says of the servers and of answers. Its sentence says the same.
func (f Finding) Claims() []Claim {
	x := &claimed{f: f}
	who, at := f.Thread, f.AtNs
	switch d := f.Detail.(type) {
	case Overlap:
		x.answered(d.Later, d.Answer, at)
		if who == d.Later {
			x.at(ClaimNotHeld, who, at)
		}
		x.ending(who, d.Ending)
	case Misdelete:
		switch d.Change {
		case HoldEnded:
			x.at(ClaimEnded, d.Owner, at)
		case HoldCounted:
			x.add(Claim{Kind: ClaimHeld, Thread: d.Owner, FromNs: at, Levels: d.Levels})
		default:
			x.at(ClaimHeld, d.Owner, at)
		}
	case Unplaceable:
		x.unplaceable(d)
	case Miscount:
		x.add(Claim{Kind: ClaimCounted, Thread: who, FromNs: at, Levels: d.Counted})
	case Overtaken:
		x.at(ClaimBegan, d.By, at)
	case Endless:
		x.add(Claim{Kind: ClaimHeld, Thread: who, FromNs: at, ExpiresMs: -1})
	case LongLease:
		x.add(Claim{Kind: ClaimHeld, Thread: who, FromNs: at, ExpiresMs: at/millisecond + int64(d.Got)/millisecond})
	case OutlivesOwner:
		x.at(ClaimHeld, who, at)
	case Unrenewed:
		x.at(ClaimEnded, who, at)
	case UndoneGrant:
		x.at(ClaimBegan, who, d.GrantNs)
		x.at(ClaimEnded, who, d.EndNs)
	case Unasked:
		x.at(ClaimBegan, who, at)
	case ShortExtension:
		x.answered(who, model.Extended, at)
		x.add(Claim{Kind: ClaimHeld, Thread: who, FromNs: at, ExpiresMs: d.EndNs / millisecond})
	case Untold:
		x.at(ClaimNotHeld, who, at)
	case ToldLate:
		x.at(ClaimEnded, who, d.EndedNs)
		x.at(ClaimNotHeld, who, at)
	case Misled:
		x.at(ClaimHeld, who, d.HeldNs)
		x.at(ClaimHeld, who, at)
	case LateRenewal:
		if d.Call != "" {
			x.answered(who, d.Outcome, d.ReturnNs)
		}
	case RepeatedToken:
		x.add(Claim{Kind: ClaimBegan, Thread: who, FromNs: at, Token: d.Token})
	case StaleToken:
		x.add(Claim{Kind: ClaimAnswered, Thread: who, FromNs: at, Outcome: model.Granted, Token: int64(d.Token)})
	case Ghost:
		x.at(ClaimQueued, who, at)
		if d.Call != "" {
			x.answered(who, d.Outcome, d.ReturnNs)
		}
	case Abandoned:
		x.at(ClaimQueued, who, at)
	case TornQueue:
		for _, waiter := range d.Queue {
			x.at(ClaimQueued, waiter, at)
		}
	case WrongResource:
		if d.Together != nil && d.Together.Ending != nil && f.Loss != nil {
			x.f.Lock = f.Loss.Lock
			x.ending(f.Loss.Thread, *d.Together.Ending)
		}
	}
	return x.all
}

// Untrue returns the claims of a finding that the record of its run contradicts. A finding has none.
func Untrue(t *trace.Run, f Finding) []Claim {
	return slices.DeleteFunc(f.Claims(), func(c Claim) bool { return c.holds(t) })
}

// holds reports whether a claim is true in a run.
func (c Claim) holds(t *trace.Run) bool {
	changes := t.ChangesWithin(c.Lock, c.FromNs, c.ToNs)
	state := func(ok func(*model.LockState) bool) bool {
		return ok(t.StateAt(c.Lock, c.FromNs)) || slices.ContainsFunc(changes, func(x *trace.Change) bool { return ok(x.Before) || ok(x.After) })
	}
	switch c.Kind {
	case ClaimFree:
		return state(func(s *model.LockState) bool { return !s.Held() && s.ClosedMs == 0 })
	case ClaimClosed:
		return state(func(s *model.LockState) bool { return !s.Held() && s.ClosedMs > 0 })
	case ClaimHeld:
		return state(func(s *model.LockState) bool {
			return s.Owner == c.Thread && (c.Levels == 0 || s.Count == c.Levels) && (c.ExpiresMs == 0 || s.ExpiresMs == c.ExpiresMs)
		})
	case ClaimCounted:
		return state(func(s *model.LockState) bool { return trace.Levels(s, c.Thread) == c.Levels })
	case ClaimNotHeld:
		return state(func(s *model.LockState) bool { return s.Owner != c.Thread })
	case ClaimQueued:
		return state(func(s *model.LockState) bool { return slices.Contains(s.Queue, c.Thread) })
	case ClaimBegan:
		return slices.ContainsFunc(changes, func(x *trace.Change) bool {
			return x.Started() && x.After.Owner == c.Thread && (c.Token == 0 || (fencingJudge{newRun(t)}).tokenOf(x) == c.Token)
		})
	case ClaimEnded:
		return slices.ContainsFunc(changes, func(x *trace.Change) bool { return x.Ended() && x.Before.Owner == c.Thread })
	case ClaimAnswered:
		return slices.ContainsFunc(t.CallsOn(c.Lock), func(o *trace.Call) bool {
			return o.Caller == c.Thread && o.Return != nil && o.Return.AtNs == c.FromNs && o.Return.Outcome == c.Outcome && (c.Token == 0 || int64(o.Return.Token) == c.Token)
		})
	}
	panic("judges: nothing compares a claim of the kind " + string(c.Kind))
}
