package play

import (
	"cmp"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// Service says what a lock did for its callers before anything disturbed them. It is about one run
// or about several. Promises are kept by a lock that never grants anything, too, so a service
// without a grant shows nothing about them.
type Service struct {
	Asked   int `json:"asked,omitempty"`   // acquires that ended
	Granted int `json:"granted,omitempty"` // of these, those that were granted
	Failed  int `json:"failed,omitempty"`  // of these, those that ended with an error
	// Followers are the acquires that ended after the hold of another thread on the lock was over, and
	// HandedOver are those of them that were granted.
	Followers  int `json:"followers,omitempty"`
	HandedOver int `json:"handed_over,omitempty"`
	// Contended are the calls of Lock that came while another thread held the lock, and Impatient are those of them that
	// ended without the lock before the hold did. Impatience is the error of the first one; "": it had none.
	Contended  int    `json:"contended,omitempty"`
	Impatient  int    `json:"impatient,omitempty"`
	Impatience string `json:"impatience,omitempty"`
	// Threads is the largest number of threads of one process.
	Threads int `json:"threads,omitempty"`
	// Kinds are the kinds of calls, other than those that wait for the lock, that should have worked, in the order of
	// their actions: unlocks and extensions of a hold, single tries, and re-entries.
	Kinds []CallKind `json:"kinds,omitempty"`
	// Errors are the first errors of each kind of call, in the order in which they came, if the
	// service of a run is Denied.
	Errors []CallError `json:"errors,omitempty"`
}

// Reentry is the action of a CallKind: an acquire by the thread that has the lock.
const Reentry model.Action = "second lock of a holder"

// CallKind counts the calls of an action, those of them that worked, and those of these that said so. Text is the error
// of the first one that did not; "": it had none.
type CallKind struct {
	Action model.Action `json:"action"`
	Asked  int          `json:"asked"`
	Worked int          `json:"worked,omitempty"`
	Told   int          `json:"told,omitempty"`
	Text   string       `json:"text,omitempty"`
}

// CallError is the error of a call.
type CallError struct {
	Action model.Action `json:"action"`
	Text   string       `json:"text"`
}

// Denied reports whether no acquire was granted, or none after the hold of another thread. A service
// that says so of a single run may have had bad luck, such as two tries at the same instant that kept
// each other from a majority.
func (s Service) Denied() bool {
	return s.Asked > 0 && s.Granted == 0 || s.Followers > 0 && s.HandedOver == 0
}

// Broken reports whether each acquire ended with an error.
func (s Service) Broken() bool { return s.Asked > 0 && s.Failed == s.Asked }

// Add adds the service of other runs.
func (s *Service) Add(o Service) {
	s.Asked += o.Asked
	s.Granted += o.Granted
	s.Failed += o.Failed
	s.Followers += o.Followers
	s.HandedOver += o.HandedOver
	s.Contended += o.Contended
	s.Impatient += o.Impatient
	s.Impatience = cmp.Or(s.Impatience, o.Impatience)
	s.Threads = max(s.Threads, o.Threads)
	for _, k := range o.Kinds {
		s.count(k)
	}
	for _, e := range o.Errors {
		s.note(e)
	}
}

// Untold returns the kinds of calls that worked and never said so.
func (s Service) Untold() []CallKind {
	return slices.DeleteFunc(slices.Clone(s.Kinds), func(k CallKind) bool { return k.Worked == 0 || k.Told > 0 })
}

// Useless returns the kinds of calls that never worked.
func (s Service) Useless() []CallKind {
	return slices.DeleteFunc(slices.Clone(s.Kinds), func(k CallKind) bool { return k.Worked > 0 })
}

// count adds calls of a kind.
func (s *Service) count(k CallKind) {
	i, ok := slices.BinarySearchFunc(s.Kinds, k.Action, func(known CallKind, a model.Action) int { return cmp.Compare(known.Action, a) })
	s.Kinds = slices.Clone(s.Kinds) // a copy of s may have it, too
	if !ok {
		s.Kinds = slices.Insert(s.Kinds, i, k)
		return
	}
	known := &s.Kinds[i]
	known.Asked, known.Worked, known.Told, known.Text = known.Asked+k.Asked, known.Worked+k.Worked, known.Told+k.Told, cmp.Or(known.Text, k.Text)
}

// note adds an error if it is the first one of its kind of call.
func (s *Service) note(e CallError) {
	if !slices.ContainsFunc(s.Errors, func(known CallError) bool { return known.Action == e.Action }) {
		s.Errors = append(slices.Clip(s.Errors), e)
	}
}

// serviceOf returns the service in a run.
func serviceOf(r *trace.Run) Service {
	var s Service
	for _, p := range r.Record.Params.Processes {
		s.Threads = max(s.Threads, p.Threads)
	}
	until := disturbedNs(r)
	byLock := map[string][]held{}
	for _, lock := range r.Locks {
		var holds []held
		for _, o := range r.CallsOn(lock) {
			if o.Action.Acquires() && o.Outcome == model.Granted && o.ReturnedNs() < until {
				holds = append(holds, held{o.Caller, o.AtNs, o.ReturnedNs(), holdOver(r, lock, o)})
			}
		}
		byLock[lock] = holds
		for _, o := range r.CallsOn(lock) {
			ended := o.Return != nil && o.ReturnedNs() < until
			if !o.Action.Acquires() || !ended && (o.Outcome != model.Waiting || until < r.LeaveNs) {
				continue
			}
			if follows(holds, o, time.Second+r.Record.Params.Waits) {
				s.Followers++
				if o.Outcome == model.Granted {
					s.HandedOver++
				}
			}
			if !ended {
				continue
			}
			if i := slices.IndexFunc(holds, func(h held) bool { return h.who != o.Caller && h.granted <= o.AtNs && o.AtNs < h.to }); i >= 0 && o.Action == model.ActLock {
				s.Contended++
				if o.Outcome != model.Granted && o.ReturnedNs() < holds[i].to {
					s.Impatient++
					s.Impatience = cmp.Or(s.Impatience, o.Return.Error)
				}
			}
			s.Asked++
			switch o.Outcome {
			case model.Granted:
				s.Granted++
			case model.Failed, model.Unknown:
				s.Failed++
			}
		}
	}
	for _, o := range r.Calls {
		if o.Return != nil && o.ReturnedNs() < until {
			if worked, ok := shouldWork(r, o, byLock[o.Lock]); ok {
				k := CallKind{Action: o.Action, Asked: 1, Text: o.Return.Error}
				if o.Action.Acquires() && holdsAt(byLock[o.Lock], o) {
					k.Action = Reentry
				}
				if worked {
					k.Worked = 1
				}
				if worked && o.Outcome != model.Unknown {
					k.Told = 1
				}
				s.count(k)
			}
		}
	}
	if s.Denied() {
		for _, o := range r.Calls {
			if o.Return != nil && o.ReturnedNs() < until && o.Return.Error != "" {
				s.note(CallError{o.Action, o.Return.Error})
			}
		}
	}
	return s
}

// held is the hold of a thread by its calls: from the call that was granted, at the instant granted, until the hold is over.
type held struct {
	who               string
	from, granted, to int64
}

// holdsAt reports whether the thread of a call had the lock all the time that the call took.
func holdsAt(holds []held, o *trace.Call) bool {
	return slices.ContainsFunc(holds, func(h held) bool { return h.who == o.Caller && h.granted <= o.AtNs && o.ReturnedNs() <= h.to })
}

// shouldWork reports whether a call worked. It reports ok if the call should have: a single try of a free lock is
// granted, unless it races with other acquires. A holder that may take its lock again is granted it. An unlock or an extension
// of a hold of its thread has an effect, whatever it answers.
// The effect is a change that a request of its process made: a lease may also end during a call that does nothing.
func shouldWork(r *trace.Run, o *trace.Call, holds []held) (worked, ok bool) {
	if p := r.Record.Params; o.Action.Acquires() && !p.NonReentrant && (!p.Uncounted || p.Idempotent) && holdsAt(holds, o) {
		return o.Outcome == model.Granted, true
	}
	switch o.Action {
	case model.ActTryLock:
		return o.Outcome == model.Granted, !slices.ContainsFunc(r.CallsOn(o.Lock), func(x *trace.Call) bool {
			return x != o && x.Action.Acquires() && x.AtNs <= o.ReturnedNs() && o.AtNs <= x.ReturnedNs()
		}) && !slices.ContainsFunc(holds, func(h held) bool { return h.from < o.AtNs && o.AtNs <= h.to })
	case model.ActUnlock, model.ActExtend:
		worked = o.Outcome == model.Released || o.Outcome == model.StillHeld || o.Outcome == model.Extended
		there := r.StateAt(o.Lock, o.AtNs).Owner == o.Caller
		if o.Outcome == model.Unknown { // a library need not tell
			worked = slices.ContainsFunc(r.ChangesWithin(o.Lock, o.AtNs, o.ReturnedNs()), func(c *trace.Change) bool {
				return c.Before.Owner == o.Caller && c.By != nil && c.By.Process == o.Process
			})
		}
		return worked, (there || o.Outcome != model.Unknown) &&
			slices.ContainsFunc(holds, func(h held) bool { return h.who == o.Caller && h.from <= o.AtNs && o.AtNs <= h.to })
	}
	return false, false
}

// follows reports whether a call could have had the lock after the hold of another thread: it was under way when
// that hold was over and nobody held the lock. A call that waits and is not granted must have waited from then
// on for longer than a waiter may need.
func follows(holds []held, o *trace.Call, need time.Duration) bool {
	free := trace.Never
	for _, h := range holds {
		if h.who != o.Caller {
			free = min(free, h.to)
		}
	}
	if o.Outcome == model.Granted {
		return free <= o.ReturnedNs()
	}
	free = max(free, o.AtNs)
	for again := true; again; {
		again = false
		for _, h := range holds {
			if h.from <= free && free < h.to {
				free, again = h.to, true
			}
		}
	}
	if o.Action == model.ActTryLock || o.Action == model.ActLock && o.Return != nil {
		need = 0
	}
	return free < trace.Never && free+int64(need) <= o.ReturnedNs()
}

// holdOver returns the instant at which a granted hold is over, by the calls of its thread: when the first
// unlock after it returned, or when its lease ends, if nothing renews it.
func holdOver(r *trace.Run, lock string, granted *trace.Call) int64 {
	p := r.Record.Params
	end := trace.Never
	lease := granted.LeaseNs
	if lease == 0 && p.NoWatchdog && !p.Endless {
		lease = int64(p.Watchdog)
	}
	if lease > 0 {
		end = granted.ReturnedNs() + lease
	}
	for _, o := range r.CallsOn(lock) {
		if o.Caller == granted.Caller && o.Action == model.ActUnlock && o.AtNs >= granted.ReturnedNs() && o.Return != nil {
			return min(end, o.ReturnedNs())
		}
	}
	return end
}

// disturbedNs returns the instant at which the first fault, interrupt or close of a client met a run; Never
// if none did before all left.
func disturbedNs(r *trace.Run) int64 {
	first := trace.Never
	for _, f := range r.Faults {
		first = min(first, f.FromNs)
	}
	for _, m := range r.Hit {
		for _, h := range m.Hits {
			first = min(first, h.AtNs)
		}
	}
	for _, e := range r.Pushes {
		if e.Kind == model.KindHit {
			first = min(first, e.AtNs)
		}
	}
	for _, o := range r.Calls {
		first = min(first, o.InterruptedNs)
	}
	for _, e := range r.Closes {
		if e.AtNs < r.LeaveNs {
			first = min(first, e.AtNs)
		}
	}
	return first
}
