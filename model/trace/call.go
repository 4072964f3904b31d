package trace

import "lockstep/model"

// Call is an operation that a thread called. The event is its invocation.
type Call struct {
	*model.Event
	Caller        string        // process/thread
	Return        *model.Event  // nil if the call was still open when all left, or when the record ends
	Outcome       model.Outcome // "" if the record ends before, Waiting if the call was open when all left
	Sent          []*Command    // the commands that it sent, in order
	Changes       []*Change     // the changes of its lock that its commands made, in order
	InterruptedNs int64         // when an interrupt met it first, or Never

	endNs int64
}

func (o *Call) callers() []string { return []string{o.Caller} }

// ReturnedNs returns when the call returned. It is the instant at which all left
// for a call that was open then, and Never for one without an end in the record.
func (o *Call) ReturnedNs() int64 { return o.endNs }

// WaitsUntilNs returns when the wait that the caller asked for ends, or Never.
func (o *Call) WaitsUntilNs() int64 {
	if o.WaitNs < 0 {
		return Never
	}
	return o.AtNs + o.WaitNs
}

// Answer returns the outcome that the call returned. Outcome is StillHeld if an unlock left a level, and the answer may
// not say so.
func (o *Call) Answer() model.Outcome {
	if o.Return != nil {
		return o.Return.Outcome
	}
	return o.Outcome
}

// First returns the command in that role that the server executed first, which
// need not be the one that was sent first; nil if it executed none.
func (o *Call) First(role model.Role) *Command {
	var first *Command
	for _, m := range o.Sent {
		if m.Executed != nil && m.Script == role && (first == nil || m.Executed.AtNs < first.Executed.AtNs) {
			first = m
		}
	}
	return first
}

// Command is a command of a process: it was sent, and perhaps executed and
// answered. The event is its sending.
type Command struct {
	*model.Event
	Script      model.Role     // its role, by its effect where that is known
	Owners      []string       // the owners that it acts for, each on the lock with its index in Locks
	Locks       []string       // the locks that it acts on
	Call        *Call          // the call that sent it; nil for one of a watchdog
	Threads     []string       // the threads for which it speaks; its caller if it names none
	Executed    *model.Event   // nil if the server did not execute it, or did not know the script
	RepliedNs   int64          // when its own reply arrived; -1: never
	DeliveredNs int64          // when its process had all replies that it waited for, the reply to Wait included; -1: never
	Lost        *model.Event   // nil if neither the request nor the reply was lost
	Hits        []*model.Event // the hits of faults' rules, on it or on a message that it arrived behind
	Wait        *Command       // the WAIT that was sent with it; nil if there was none
	WaitOf      *Command       // of a WAIT, the command that it was sent with
	Changes     []*Change      // the changes that it made, of any lock, in order

	run      *Run
	carried  []holding // the holds whose values it carries
	executed int       // the index of Executed in the record
}

// deliver notes that the reply arrived.
func (m *Command) deliver(atNs int64) {
	m.RepliedNs = atNs
	if m.Wait == nil {
		m.DeliveredNs = atNs
	}
	if m.WaitOf != nil {
		m.WaitOf.DeliveredNs = atNs
	}
}

// requestEndNs returns when the request arrived or was lost; Never if the record does not say.
func (m *Command) requestEndNs() int64 {
	switch {
	case m.Executed != nil:
		return m.Executed.AtNs
	case m.Lost != nil:
		return m.Lost.AtNs
	}
	return Never
}

// LostWithConnection reports whether the request or the reply was lost because its connection ended, or
// because a message before it in its pipeline was lost.
func (m *Command) LostWithConnection() bool {
	return m.Lost != nil && LostWithConnection(m.Lost)
}

// LostWithConnection reports whether an event is the loss of a message because its connection ended, or
// because a message before it on the connection was lost.
func LostWithConnection(e *model.Event) bool {
	return e.Kind == model.KindLost && (e.Why == model.LostReset || e.Why == model.LostBehindAnother)
}

// EndNs returns when the reply arrived, or when it or the request was lost; Never if the record
// does not say.
func (m *Command) EndNs() int64 {
	switch {
	case m.RepliedNs >= 0:
		return m.RepliedNs
	case m.Lost != nil:
		return m.Lost.AtNs
	}
	return Never
}

// Reply returns what the server answered; "" if it did not execute the command.
func (m *Command) Reply() string {
	if m.Executed == nil {
		return ""
	}
	return m.Executed.Reply
}

// Refused reports whether the server executed the command and answered an error.
func (m *Command) Refused() bool { return m.Executed != nil && m.Executed.Answer == model.Refused }

// Failed reports whether the process has no answer to the command, or an error, or
// no replica had the command in time.
func (m *Command) Failed() bool {
	return m.Executed == nil || m.DeliveredNs < 0 || m.Refused() || m.Wait != nil && (m.Wait.Failed() || m.Wait.Reply() == "0")
}

// UnknownScript reports whether the server answered that it does not know the
// script.
func (m *Command) UnknownScript() bool {
	return m.Script != "" && m.Executed == nil && m.RepliedNs >= 0
}

// Change returns the first change of a lock that the command made; nil if it made
// none.
func (m *Command) Change(lock string) *Change {
	for _, c := range m.Changes {
		if c.Lock == lock {
			return c
		}
	}
	return nil
}

// leavesALevel reports whether the last change that the commands of an unlock made so far took a level of
// its caller's hold, and left another.
func (o *Call) leavesALevel() bool {
	if o.Action != model.ActUnlock || len(o.Changes) == 0 {
		return false
	}
	c := o.Changes[len(o.Changes)-1]
	return c.Before.Owner == o.Caller && c.After.Owner == o.Caller && c.After.Count < c.Before.Count
}

// Before returns what the server held of a lock just before it executed the
// command; the free lock if it did not execute it.
func (m *Command) Before(lock string) *model.LockState {
	if c := m.Change(lock); c != nil {
		return c.Before
	}
	if m.Executed == nil {
		return free
	}
	changes := m.run.Changes(lock)
	if n := countBefore(changes, m.executed); n > 0 {
		return changes[n-1].After
	}
	return free
}

// After returns what the server held of a lock just after it executed the command;
// the free lock if it did not execute it.
func (m *Command) After(lock string) *model.LockState {
	for i := len(m.Changes) - 1; i >= 0; i-- {
		if c := m.Changes[i]; c.Lock == lock {
			return c.After
		}
	}
	return m.Before(lock)
}

// MovedLevels reports whether the command changed how often a thread holds a lock.
func (m *Command) MovedLevels(lock, thread string) bool {
	return len(m.Changes) > 0 && Levels(m.Before(lock), thread) != Levels(m.After(lock), thread)
}
