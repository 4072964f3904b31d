package explore

import (
	"strconv"
	"strings"
	"time"

	"lockstep/model"
)

// trace is a record as the known defects read it.
type trace struct {
	rec      *model.Record
	calls    []*call
	commands []*command // in the order in which they were sent
	states   map[string][]change
	locks    map[string]bool
	threads  map[string]bool
}

type call struct {
	model.Event // its invoke
	who         string
	ret         *model.Event // nil: none
	sent        []*command
}

type command struct {
	model.Event   // its send
	exec          *model.Event
	replied       int64    // when its own answer came; -1: never
	delivered     int64    // when the client had all that it waited for, the answer to wait too; -1: never
	wait          *command // the WAIT that was sent with it; nil: none
	script        *command // of a WAIT: what it was sent with
	before, after model.LockState
}

// took: the command changed the thread's levels.
func (m *command) took(who string) bool {
	levels := func(s model.LockState) int {
		if s.Owner != who {
			return 0
		}
		return s.Count
	}
	return levels(m.before) != levels(m.after)
}

// told is how long the answer to an attempt says to wait.
func (m *command) told() time.Duration {
	ms, _ := strconv.ParseInt(m.reply(), 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// failed: no answer, or an error, or no replica had it in time.
func (m *command) failed() bool {
	return m.exec == nil || m.delivered < 0 || strings.HasPrefix(m.reply(), "(error)") || m.wait != nil && (m.wait.failed() || m.wait.reply() == "0")
}

func (m *command) reply() string {
	if m.exec == nil {
		return ""
	}
	return m.exec.Reply
}

// change is a state event with what was before.
type change struct {
	*model.Event
	before model.LockState
}

func traceOf(rec *model.Record) *trace {
	t := &trace{rec: rec, states: map[string][]change{}, locks: map[string]bool{}, threads: map[string]bool{}}
	last := map[string]model.LockState{}
	commands := map[int]*command{}
	for i := range rec.Events {
		e := &rec.Events[i]
		m := commands[e.Msg]
		switch e.Kind {
		case model.KindInvoke:
			t.calls = append(t.calls, &call{Event: *e, who: e.ThreadName()})
			t.locks[e.Lock], t.threads[e.ThreadName()] = true, true
		case model.KindReturn:
			if e.Outcome != model.Waiting {
				t.calls[e.Op-1].ret = e
			}
		case model.KindSend:
			m = &command{Event: *e, replied: -1, delivered: -1}
			commands[e.Msg] = m
			if n := len(t.commands); n > 0 && m.Command == "WAIT" && t.commands[n-1].Process == m.Process && t.commands[n-1].Conn == m.Conn {
				m.script = t.commands[n-1]
				m.script.wait = m
			}
			t.commands = append(t.commands, m)
			if e.Op > 0 {
				t.calls[e.Op-1].sent = append(t.calls[e.Op-1].sent, m)
			}
		case model.KindExec:
			if m != nil && !e.NotRun() {
				m.exec = e
				if len(m.Locks) > 0 {
					m.before = last[m.Locks[0]]
					m.after = m.before
				}
			}
		case model.KindDeliver:
			if m != nil {
				m.replied = e.AtNs
				if m.wait == nil {
					m.delivered = e.AtNs
				}
				if m.script != nil {
					m.script.delivered = e.AtNs
				}
			}
		case model.KindState:
			t.states[e.Lock] = append(t.states[e.Lock], change{e, last[e.Lock]})
			last[e.Lock] = *e.State
			if m != nil {
				m.after = *e.State
			}
		}
	}
	return t
}

func (t *trace) stateAt(lock string, at int64) model.LockState {
	var s model.LockState
	for _, c := range t.states[lock] {
		if c.AtNs <= at {
			s = *c.State
		}
	}
	return s
}
