package defect

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/trace"
)

// Cause is the part of a record that a finding comes of: the commands, the call, the
// fault or the interrupt, and when it took effect.
type Cause struct {
	Kind Kind  `json:"kind"`
	AtNs int64 `json:"at_ns"` // simulated time since the start
	// Op is the number of the operation, 0 for none.
	Op int `json:"op,omitempty"`
	// Msgs are the numbers of the messages, in the order of their sending.
	Msgs []int `json:"msgs,omitempty"`
	// Fault is the number of the fault, 0 for none.
	Fault int `json:"fault,omitempty"`
	// InReplay reports whether the record is that of the replay without the excuses of
	// the finding, and not that of the run.
	InReplay bool `json:"in_replay,omitempty"`
}

// String says the cause for people: what did it, when, and what is wrong with it.
func (c Cause) String() string {
	var what []string
	if n := len(c.Msgs); n > 0 {
		word := "message "
		if n > 1 {
			word = "messages "
		}
		what = append(what, word+listed(c.Msgs))
	} else if c.Op > 0 {
		what = append(what, fmt.Sprint("call ", c.Op))
	}
	if c.Fault > 0 {
		what = append(what, fmt.Sprint("fault ", c.Fault))
	}
	s := model.At(c.AtNs) + ": " + texts[c.Kind]
	if len(what) > 0 {
		s = strings.Join(what, ", ") + " at " + s
	}
	if c.InReplay {
		s += " (in the replay without the excuses)"
	}
	return s
}

// listed writes numbers as people do: 12, 14 and 17.
func listed(numbers []int) string {
	words := strings.Fields(strings.Trim(fmt.Sprint(numbers), "[]"))
	n := len(words)
	if n == 1 {
		return words[0]
	}
	return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
}

// ByCommands returns the cause that commands are. It took effect when the last of them
// ran, or was sent if it did not run.
func ByCommands(kind Kind, commands ...*trace.Command) *Cause {
	last := commands[len(commands)-1]
	c := &Cause{Kind: kind, AtNs: last.AtNs, Op: last.Op}
	if last.Executed != nil {
		c.AtNs = last.Executed.AtNs
	}
	for _, m := range commands {
		c.Msgs = append(c.Msgs, m.Msg)
	}
	slices.Sort(c.Msgs)
	return c
}

// ByCall returns the cause that the end of a call is, with its commands that have a
// script.
func ByCall(kind Kind, o *trace.Call) *Cause {
	c := &Cause{Kind: kind, AtNs: o.AtNs, Op: o.Op}
	if o.Return != nil {
		c.AtNs = o.Return.AtNs
	}
	for _, m := range o.Sent {
		if m.Script != "" {
			c.Msgs = append(c.Msgs, m.Msg)
		}
	}
	return c
}

// ByFault returns the cause that the beginning of a fault is.
func ByFault(kind Kind, f trace.Fault) *Cause {
	return &Cause{Kind: kind, AtNs: f.FromNs, Fault: f.Number}
}

// ByChange returns the cause that a change of the lock on the server is: the command or
// the fault that made it, or neither when a lease ended.
func ByChange(kind Kind, s *trace.Change) *Cause {
	c := &Cause{Kind: kind, AtNs: s.AtNs, Fault: s.Fault}
	if s.By != nil {
		c.Msgs = []int{s.By.Msg}
	}
	return c
}

// With adds a command to the cause.
func (c *Cause) With(m *trace.Command) *Cause {
	if m != nil && !slices.Contains(c.Msgs, m.Msg) {
		c.Msgs = append(c.Msgs, m.Msg)
		slices.Sort(c.Msgs)
	}
	return c
}
