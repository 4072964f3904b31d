package judges

import (
	"cmp"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// Parting is the event by which the server and the clients first disagreed about the holder of a
// lock, before a promise was broken: one side took the lock for held by a thread, and the other did
// not.
type Parting struct {
	Kind   PartingKind
	AtNs   int64 // simulated time since the start; no meaning if Kind is Agreed
	Thread string
	Lock   string
	Fault  int // the number of the fault, of PartedByFault
	// Unleased is Ending.Unleased, of PartedExpired.
	Unleased bool
}

// PartingKind says how server and clients part.
type PartingKind string

// The kinds of partings. docs/locktest.md explains them, and fingerprints have them.
const (
	Agreed           PartingKind = "agreed"
	PartedLate       PartingKind = "late-request-of-acquire"
	PartedUnheard    PartingKind = "unheard-grant"
	PartedClosed     PartingKind = "grant-of-a-closed-client"
	PartedExpired    PartingKind = "lease-ended"
	PartedByFault    PartingKind = "fault"
	PartedBySelf     PartingKind = "hold-ended-by-its-own-call"
	PartedByClient   PartingKind = "hold-ended-by-its-own-client"
	PartedByUnlock   PartingKind = "hold-ended-by-an-old-unlock"
	PartedByExtend   PartingKind = "hold-ended-by-its-own-extension"
	PartedByAnother  PartingKind = "hold-ended-by-another"
	PartedUnreleased PartingKind = "unlock-without-effect"
	PartedTold       PartingKind = "told-of-a-hold-that-stays"
	PartedByLoss     PartingKind = "lost-message"
)

// PartingKinds are all kinds of partings.
var PartingKinds = []PartingKind{
	Agreed, PartedLate, PartedUnheard, PartedClosed, PartedExpired, PartedByFault, PartedBySelf, PartedByClient, PartedByUnlock, PartedByExtend, PartedByAnother, PartedUnreleased, PartedTold,
	PartedByLoss,
}

// PartingOf returns the parting of server and clients before a finding. It reports false for a
// finding about no lock.
func PartingOf(t *trace.Run, f Finding) (Parting, bool) {
	if !slices.Contains(t.Locks, f.Lock) {
		return Parting{}, false
	}
	s := sides{newRun(t)}
	apart := s.apart(f.Lock)
	if f.Judge == model.JudgeTraffic || f.Judge == model.JudgeWaitBound {
		// The way in which a thread waits depends only on this thread.
		apart = slices.DeleteFunc(apart, func(d disagreement) bool { return d.Thread != f.Thread })
	}
	if f.Form == model.FormForgotten {
		apart = append(apart, s.unwoken(f)...)
	}
	slices.SortStableFunc(apart, func(a, b disagreement) int { return cmp.Compare(a.AtNs, b.AtNs) })
	// Go back from the finding over disagreements that touch. An answer that has no place
	// in the history may be wrong at any time of its call.
	first := Parting{Kind: Agreed}
	from, to := f.AtNs, f.AtNs
	if f.Judge == model.JudgeLinearizable {
		for _, o := range f.Ops {
			to = max(to, o.ReturnNs)
		}
	}
	for _, d := range slices.Backward(apart) {
		if d.AtNs <= to && from <= d.toNs {
			first, from, to = d.Parting, min(from, d.AtNs), max(from, d.AtNs)
		}
	}
	return first, true
}

// sides compares the server with the clients.
type sides struct{ *run }

// disagreement is a time in which server and clients disagree.
type disagreement struct {
	Parting
	toNs int64
}

// apart returns the times in which the server and a client name different holders of a lock.
func (r sides) apart(lock string) []disagreement {
	changes := r.Changes(lock)
	beliefs := r.beliefs(lock)
	var out []disagreement
	// A thread believes to hold the lock, but the server does not hold it for the thread.
	for _, b := range beliefs {
		kept := r.grantsKept(b.first)
		if len(kept) == 0 {
			continue // the record does not show the hold
		}
		if end := r.EndOf(kept[0]); end != nil && end.AtNs < b.to {
			at := max(end.AtNs, b.from)
			out = append(out, disagreement{Parting{Kind: r.partedBy(b, end), AtNs: at, Thread: b.who, Lock: lock, Fault: end.Fault, Unleased: r.unleased(end)}, b.to})
		}
	}
	// The server holds the lock for a thread that does not believe to hold it.
	for _, c := range changes {
		o := c.Call()
		if o == nil || !c.Started() || c.After.Owner != o.Caller {
			continue
		}
		to := r.LeaveNs
		if end := r.EndOf(c); end != nil {
			to = end.AtNs
		}
		d := disagreement{Parting{AtNs: max(c.AtNs, o.ReturnedNs()), Thread: o.Caller, Lock: lock}, to}
		i := slices.IndexFunc(beliefs, func(b belief) bool { return b.first == o && b.from >= c.AtNs })
		switch {
		case i >= 0 && beliefs[i].end != nil:
			d.Kind, d.AtNs = PartedUnreleased, beliefs[i].end.ReturnedNs()
		case i >= 0 && beliefs[i].told != nil:
			d.Kind, d.AtNs = PartedTold, beliefs[i].told.AtNs
		case i >= 0:
			continue
		case c.AtNs > o.ReturnedNs():
			d.Kind = PartedLate
		case o.Outcome == model.Granted && r.goneAt(o.Caller) <= o.ReturnedNs():
			d.Kind = PartedClosed
		default:
			d.Kind = PartedUnheard
		}
		if d.AtNs < d.toNs {
			out = append(out, d)
		}
	}
	return out
}

// partedBy returns the kind of event that ended a hold in which a thread believed.
func (r sides) partedBy(b belief, end *trace.Change) PartingKind {
	o := end.Call()
	switch {
	case end.Fault > 0:
		return PartedByFault
	case o == nil && end.By == nil:
		return PartedExpired
	case o == nil && end.MadeFor(b.who):
		return PartedByClient
	case o == nil || o.Caller != b.who:
		return PartedByAnother
	case o.Action.Acquires():
		return PartedBySelf
	case o.Action == model.ActExtend:
		return PartedByExtend
	}
	return PartedByUnlock
}

// unwoken returns the losses of published messages on their way to the process of the
// waiter of a finding.
func (r sides) unwoken(f Finding) []disagreement {
	var out []disagreement
	for _, e := range r.Pushes {
		if e.Kind == model.KindLost && e.Why != model.LostUnwanted && e.Process == model.ProcessOf(f.Thread) {
			out = append(out, disagreement{Parting{Kind: PartedByLoss, AtNs: e.AtNs, Thread: f.Thread, Lock: f.Lock}, f.AtNs})
		}
	}
	return out
}
