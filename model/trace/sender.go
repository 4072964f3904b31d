package trace

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"lockstep/model"
)

// holding is a hold's lock and its owner.
type holding struct{ lock, owner string }

// values has the values by which servers mark the holders of locks, for a lock that writes a value
// of its own choice. A request that carries such a value is about that hold, whichever goroutine
// wrote the request and whichever call was under way then.
type values map[string][]holding

// valuesOf reads the values out of the states of a record. A value that several threads of a lock
// have held with, such as a constant, says nothing about its sender and is left out.
func valuesOf(rec *model.Record) values {
	if !rec.Params.PerGrant {
		return nil
	}
	all := values{}
	for i := range rec.Events {
		e := &rec.Events[i]
		if e.Kind != model.KindState || !e.State.Held() || e.State.Value == "" || e.State.Value == e.State.Owner {
			continue
		}
		h := holding{e.Lock, e.State.Owner}
		if !slices.Contains(all[e.State.Value], h) {
			all[e.State.Value] = append(all[e.State.Value], h)
		}
	}
	for value, holds := range all {
		all[value] = slices.DeleteFunc(slices.Clone(holds), func(h holding) bool { // DeleteFunc moves what it keeps
			return slices.ContainsFunc(holds, func(other holding) bool { return other.lock == h.lock && other.owner != h.owner })
		})
	}
	return all
}

// carried returns the holds whose values are among the words of a request, in order.
// A value may also be a part of a word, as in JSON, between characters that are neither letters nor
// digits.
func (v values) carried(words []string) []holding {
	var out []holding
	for _, word := range words {
		if holds, ok := v[word]; ok {
			out = append(out, holds...)
			continue
		}
		for value, holds := range v {
			if len(value) < len(word) && within(word, value) {
				out = append(out, holds...)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.lock, b.lock), cmp.Compare(a.owner, b.owner))
	})
	return slices.Compact(out)
}

// within reports whether a word contains a value between characters that are neither letters nor digits.
func within(word, value string) bool {
	for i := range len(word) - len(value) + 1 {
		end := i + len(value)
		if word[i:end] == value && (i == 0 || !letter(word[i-1])) && (end == len(word) || !letter(word[end])) {
			return true
		}
	}
	return false
}

func letter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c >= 0x80
}

// attribute notes for whom a command speaks. The goroutine that wrote it says so first, then the values
// that it carries, and then the call that was the only one under way. A command with another thread's value in
// a call of its own stays its caller's: it has read the value. A value of a hold that is not there may also
// be the one with which another thread of the process asks, if a call of the process is under way.
func (m *Command) attribute(v values, call *Call) {
	m.Script, m.Owners, m.Locks, m.Call = m.Event.Script, m.Event.Owners, m.Event.Locks, call
	if v == nil {
		return
	}
	args := m.Args
	switch {
	case m.Command == model.SegmentCommand:
		args = nil // its size is no word
	case m.Program != "" && len(args) > 0:
		args = args[1:] // without the number of keys
	}
	all := v.carried(slices.Concat(args, m.Asked))
	for _, h := range all {
		if !slices.ContainsFunc(all, func(now holding) bool { // an old value of a lock beside that of its hold
			return now.lock == h.lock && now.owner != h.owner && m.run.StateAt(h.lock, m.AtNs).Owner == now.owner
		}) {
			m.carried = append(m.carried, h)
		}
	}
	if !m.Guessed && len(m.Owners) > 0 {
		return
	}
	own := func(h holding) bool { return h.owner == call.Caller }
	held := func(h holding) bool { return m.run.StateAt(h.lock, m.AtNs).Owner == h.owner }
	switch {
	case m.Guessed && slices.ContainsFunc(m.carried, own):
	case slices.ContainsFunc(m.carried, held), len(m.carried) > 0 && !m.run.asks(m.Process, ""):
		m.Call, m.Owners, m.Locks, m.Script = nil, nil, nil, model.RoleRenew
		for _, h := range m.carried {
			m.Owners, m.Locks = append(m.Owners, h.owner), append(m.Locks, h.lock)
		}
	case m.Guessed:
		m.Owners = nil // its process is known, and its thread is not
		if m.run.asks(call.Process, call.Caller) {
			m.Call = nil
		}
	}
}

// asks reports whether a call of a process is under way, but for those of one thread, as far as the record was read.
func (r *Run) asks(process, but string) bool {
	for thread, calls := range r.threads {
		if thread != but && model.ProcessOf(thread) == process && calls[len(calls)-1].Return == nil {
			return true
		}
	}
	return false
}

// Names reports whether a command carries the name of a lock or the value of a hold on it. A renewal that does neither
// is of something that several holds of its process have in common, such as a session. A command whose words are unknown may name each.
func (m *Command) Names(lock string) bool {
	return len(m.Args) == 0 || slices.ContainsFunc(m.carried, func(h holding) bool { return h.lock == lock }) || m.Spells(lock)
}

// Spells reports whether a word of a command has the name of a lock in it.
func (m *Command) Spells(lock string) bool {
	return slices.ContainsFunc(m.Args, func(word string) bool { return within(word, lock) })
}

// Form returns the name and the words of a command without the values of holds. Of a command that runs a program it
// has the digest of the program in place of the name, since a client sends the text or the digest.
func (m *Command) Form() string {
	var form strings.Builder
	form.WriteString(cmp.Or(m.Program, m.Command))
	for _, word := range m.Args {
		form.WriteByte(0)
		if _, ok := m.run.values[word]; !ok {
			form.WriteString(word)
		}
	}
	return form.String()
}

// SpeaksFor reports whether a command speaks for a thread. A request without a known thread and
// without a value of a hold, and a renewal of an unknown thread, speak for each thread of their process.
func (m *Command) SpeaksFor(thread string) bool {
	if len(m.Threads) == 0 && (m.Guessed || m.Event.Script == model.RoleRenew) {
		return m.Process == model.ProcessOf(thread)
	}
	return slices.Contains(m.Threads, thread)
}

// renews reports whether a change moved the end of a hold and did nothing else to it.
func (c *Change) renews() bool {
	return c.Before.Held() && !c.Started() && !c.Ended() && c.Before.Count == c.After.Count && c.Before.ExpiresMs != c.After.ExpiresMs
}

// shortens reports whether a change moved the end of a hold to an earlier instant.
func (c *Change) shortens() bool {
	return c.After.ExpiresMs >= 0 && (c.Before.ExpiresMs < 0 || c.After.ExpiresMs < c.Before.ExpiresMs)
}

// nameRenewals gives the role of a renewal to each command that only put off the end of a hold although
// its goroutine works for no thread, or its thread was in an unlock or in a call of another lock, and takes it out of that call.
func (r *Run) nameRenewals() {
	for _, m := range r.Commands {
		if len(m.Changes) == 0 || m.Call == nil || m.Call.Action == model.ActExtend ||
			slices.ContainsFunc(m.Changes, func(c *Change) bool { return !c.renews() || c.shortens() }) ||
			!m.Guessed && m.Call.Action != model.ActUnlock && slices.ContainsFunc(m.Changes, func(c *Change) bool { return c.Lock == m.Call.Lock }) {
			continue
		}
		call := m.Call
		m.Script, m.Call = model.RoleRenew, nil
		call.Sent = slices.DeleteFunc(call.Sent, func(other *Command) bool { return other == m })
		call.Changes = slices.DeleteFunc(call.Changes, func(c *Change) bool { return c.By == m })
	}
}

// findAnonymous notes the processes in which the client writes the requests of several threads in one goroutine. A
// call shows it if no request of the call explains its answer, but a request of another thread does, and that thread's
// own call has another answer. So does a grant that only a hold of an unknown thread explains, and an unlock of unknown
// outcome that sent nothing, while such a request ended its hold.
func (r *Run) findAnonymous() {
	if !r.Record.Params.PerGrant {
		return
	}
	for _, o := range r.Calls {
		if slices.Contains(r.Anonymous, o.Process) {
			continue
		}
		foreign := r.unlockedBesides(o)
		for _, c := range r.ChangesWithin(o.Lock, o.AtNs, o.ReturnedNs()) {
			foreign = foreign || o.Outcome == model.Granted && c.Started() && c.By != nil && c.By.Process == o.Process && model.ProcessOf(c.After.Owner) == ""
			if o.Return == nil || !c.answers(o) {
				continue
			}
			if m := c.By; m == nil || m.SpeaksFor(o.Caller) {
				foreign = false
				break // the call explains its answer, or nobody knows what does
			}
			foreign = foreign || c.By.foreignTo(o, c)
		}
		if foreign {
			r.Anonymous = append(r.Anonymous, o.Process)
		}
	}
	slices.Sort(r.Anonymous)
}

// unlockedBesides reports whether a request that was sent during an unlock, and counts as that of another thread of its process,
// ended the hold, while the unlock sent nothing and did not say what became of it.
func (r *Run) unlockedBesides(o *Call) bool {
	if o.Action != model.ActUnlock || len(o.Sent) > 0 || o.Return != nil && o.Outcome != model.Unknown {
		return false
	}
	return slices.ContainsFunc(r.ChangesWithin(o.Lock, o.AtNs, math.MaxInt64), func(c *Change) bool {
		m := c.By
		return m != nil && o.AtNs <= m.AtNs && m.AtNs <= o.ReturnedNs() && c.Before.Owner == o.Caller && c.Ended() && !m.SpeaksFor(o.Caller) && m.foreignTo(o, c)
	})
}

// foreignTo reports whether a command counts as that of another thread of a call's process, whose call does not
// answer with a change that the command made. A command that ends one hold may hand the lock to the next waiter.
func (m *Command) foreignTo(o *Call, c *Change) bool {
	switch {
	case m.Process != o.Process || len(m.Threads) == 0:
		return false
	case o.Outcome == model.Granted:
		return !c.Before.Held() && (m.Call == nil || m.Call.Lock != c.Lock || m.Call.Outcome != model.Granted)
	}
	return slices.Contains(m.carried, holding{c.Lock, o.Caller})
}

// answers reports whether a change may be what a call answered: a hold of its process that began, or its own hold
// that went on or ended.
func (c *Change) answers(o *Call) bool {
	switch o.Outcome {
	case model.Granted:
		return c.Started() && model.ProcessOf(c.After.Owner) == o.Process
	case model.Extended:
		return c.Before.Owner == o.Caller && c.renews()
	case model.Released, model.StillHeld:
		return c.Before.Owner == o.Caller && (c.Ended() || c.Gain(o.Caller) < 0)
	}
	return false
}
