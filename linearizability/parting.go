package linearizability

import (
	"cmp"
	"fmt"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// Parting is where the server and the clients first disagreed about who holds a lock,
// before something broke: one of them took the lock for held by a thread, and the other
// did not. The zero value says that they agreed.
type Parting struct {
	Kind   PartingKind
	AtNs   int64 // simulated time since the start
	Thread string
	Lock   string
	Msg    int // the number of the command that parted them; 0: none did
	Fault  int // the number of the fault, of PartedByFault
}

// PartingKind says how server and clients part.
type PartingKind string

// The kinds of partings.
const (
	Agreed           PartingKind = ""
	PartedLate       PartingKind = "late-request-of-acquire"         // a request of an acquire ran when its call was over
	PartedUnheard    PartingKind = "unheard-grant"                   // the server granted a hold, and the call ended without it
	PartedExpired    PartingKind = "lease-ended"                     // a lease ended while its owner believed in the hold
	PartedByFault    PartingKind = "fault"                           // a fault took the hold
	PartedBySelf     PartingKind = "hold-ended-by-its-own-call"      // a command of the acquire that returned with the hold ended it
	PartedByClient   PartingKind = "hold-ended-by-its-own-client"    // a command that its client sent outside of calls, such as a renewal, ended the hold
	PartedByUnlock   PartingKind = "hold-ended-by-an-old-unlock"     // an unlock that the owner had called before the hold ended it
	PartedByExtend   PartingKind = "hold-ended-by-its-own-extension" // a command of an extension that its owner had called ended the hold
	PartedByAnother  PartingKind = "hold-ended-by-another"           // another thread's command ended the hold
	PartedUnreleased PartingKind = "unlock-without-effect"           // an unlock returned, and the hold stayed
	PartedTold       PartingKind = "told-of-a-hold-that-stays"       // a thread was told that its hold is gone, and the server still held it
	PartedByLoss     PartingKind = "lost-message"                    // a published message did not reach the waiter
)

// String says the parting for people.
func (p Parting) String() string {
	of := fmt.Sprintf("%s: ", model.At(p.AtNs))
	switch p.Kind {
	case PartedLate:
		return of + fmt.Sprintf("a request of %s came when its call was over, and the server gave %s a hold on %s of which nobody knows", p.Thread, p.Thread, p.Lock)
	case PartedUnheard:
		return of + fmt.Sprintf("the server held %s for %s, whose call had ended without the grant", p.Lock, p.Thread)
	case PartedExpired:
		return of + fmt.Sprintf("the lease of %s on %s ended while it believed to hold it", p.Thread, p.Lock)
	case PartedByFault:
		return of + fmt.Sprintf("a fault took %s from %s, which believed to hold it", p.Lock, p.Thread)
	case PartedBySelf:
		return of + fmt.Sprintf("%s believed to hold %s, and a command of the very call that took it had ended the hold", p.Thread, p.Lock)
	case PartedByClient:
		return of + fmt.Sprintf("%s believed to hold %s, and a command that its client sent outside of calls had ended the hold", p.Thread, p.Lock)
	case PartedByUnlock:
		return of + fmt.Sprintf("%s believed to hold %s, and an unlock that it had called before had ended the hold", p.Thread, p.Lock)
	case PartedByExtend:
		return of + fmt.Sprintf("%s believed to hold %s, and a command with which it extended the hold had ended it", p.Thread, p.Lock)
	case PartedByAnother:
		return of + fmt.Sprintf("%s believed to hold %s, and a command of another thread had ended the hold", p.Thread, p.Lock)
	case PartedUnreleased:
		return of + fmt.Sprintf("an unlock of %s by %s had returned, and the server still held it for %s", p.Lock, p.Thread, p.Thread)
	case PartedTold:
		return of + fmt.Sprintf("%s was told that its hold on %s is gone, and the server still held it", p.Thread, p.Lock)
	case PartedByLoss:
		return of + fmt.Sprintf("a message that was to wake a waiter for %s was lost", p.Lock)
	}
	return "server and clients agreed about who held the lock"
}

// PartingOf returns where server and clients parted before a finding. It reports false
// for a finding about no lock.
func PartingOf(t *trace.Run, f Finding) (Parting, bool) {
	if !slices.Contains(t.Locks, f.Lock) {
		return Parting{}, false
	}
	if f.Form == model.FormUndone {
		return Parting{Kind: PartedBySelf, AtNs: f.AtNs, Thread: f.Thread, Lock: f.Lock}, true
	}
	r := &run{t}
	apart := r.apart(f.Lock)
	if f.Judge == model.JudgeTraffic || f.Judge == model.JudgeWaitBound {
		// How a thread waits is its own affair.
		apart = slices.DeleteFunc(apart, func(d disagreement) bool { return d.Thread != f.Thread })
	}
	if f.Form == model.FormForgotten {
		apart = append(apart, r.unwoken(f)...)
	}
	slices.SortStableFunc(apart, func(a, b disagreement) int { return cmp.Compare(a.AtNs, b.AtNs) })
	// Go back from the finding over disagreements that touch. An answer that has no place
	// in the history may be wrong at any time of its call.
	var first Parting
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

// disagreement is a time in which server and clients disagree.
type disagreement struct {
	Parting
	toNs int64
}

// apart returns the times in which server and clients disagree about who holds a lock.
func (r *run) apart(lock string) []disagreement {
	changes := r.Changes(lock)
	beliefs := r.beliefs(lock)
	var out []disagreement
	// A thread believes to hold the lock, and the server does not hold it for the thread.
	for _, b := range beliefs {
		i := slices.IndexFunc(changes, func(c *trace.Change) bool { return c.AtNs > b.from })
		if i < 0 {
			i = len(changes)
		}
		j := slices.IndexFunc(changes[i:], func(c *trace.Change) bool { return c.Before.Owner == b.who && c.Ended() })
		end := (*trace.Change)(nil)
		if r.StateAt(lock, b.from).Owner != b.who {
			for _, c := range slices.Backward(changes[:i]) {
				if c.Before.Owner == b.who && c.Ended() {
					end = c
					break
				}
			}
		} else if j >= 0 {
			end = changes[i+j]
		}
		if end == nil || end.AtNs >= b.to {
			continue
		}
		out = append(out, disagreement{Parting{Kind: r.partedBy(b, end), AtNs: max(end.AtNs, b.from), Thread: b.who, Lock: lock, Msg: msgOf(end), Fault: end.Fault}, b.to})
	}
	// The server holds the lock for a thread that does not believe to hold it.
	for _, c := range changes {
		o := c.Call()
		if o == nil || !c.Started() || c.After.Owner != o.Caller {
			continue
		}
		to := r.LeaveNs
		if end := r.endOf(c); end != nil {
			to = end.AtNs
		}
		d := disagreement{Parting{AtNs: max(c.AtNs, o.ReturnedNs()), Thread: o.Caller, Lock: lock, Msg: c.By.Msg}, to}
		i := slices.IndexFunc(beliefs, func(b belief) bool { return b.first == o && b.from >= c.AtNs })
		switch {
		case i >= 0 && beliefs[i].end != nil:
			unlock := beliefs[i].end
			d.Kind, d.AtNs, d.Msg = PartedUnreleased, unlock.ReturnedNs(), 0
			for _, m := range unlock.Sent {
				d.Msg = m.Msg
			}
		case i >= 0 && beliefs[i].told != nil:
			d.Kind, d.AtNs, d.Msg = PartedTold, beliefs[i].told.AtNs, 0
		case i >= 0:
			continue
		case c.AtNs > o.ReturnedNs():
			d.Kind = PartedLate
		default:
			d.Kind = PartedUnheard
		}
		if d.AtNs < d.toNs {
			out = append(out, d)
		}
	}
	return out
}

// partedBy says what ended a hold in which a thread believed.
func (r *run) partedBy(b belief, end *trace.Change) PartingKind {
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

func msgOf(c *trace.Change) int {
	if c.By == nil {
		return 0
	}
	return c.By.Msg
}

// unwoken returns the losses of published messages on their way to the process of the
// waiter of a finding.
func (r *run) unwoken(f Finding) []disagreement {
	var out []disagreement
	for _, e := range r.Pushes {
		if e.Kind == model.KindLost && e.Why != model.LostUnwanted && e.Process == model.ProcessOf(f.Thread) {
			out = append(out, disagreement{Parting{Kind: PartedByLoss, AtNs: e.AtNs, Thread: f.Thread, Lock: f.Lock, Msg: e.Msg}, f.AtNs})
		}
	}
	return out
}
