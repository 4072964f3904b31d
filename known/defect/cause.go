package defect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/model"
	"lockstep/model/trace"
)

// A Cause is the part of a record that led to a finding: commands, a call, a fault or an
// interrupt, with the instant at which it took effect.
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

// String describes the cause for people. It names the messages, the call or the fault, the
// instant, and the kind.
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

// listedMost is the number of messages that a sentence lists.
const listedMost = 8

// listed writes numbers as in "12, 14 and 17", and counts those beyond listedMost.
func listed(numbers []int) string {
	var words []string
	for _, n := range numbers[:min(len(numbers), listedMost)] {
		words = append(words, strconv.Itoa(n))
	}
	if more := len(numbers) - listedMost; more > 0 {
		words = append(words, fmt.Sprint(more, " more"))
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// ByCommands returns a cause that consists of commands. It took effect when the last of them
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

// ByCall returns a cause that consists of a call and its commands that run scripts. It took
// effect when the call returned, or began if it did not return.
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

// ByFault returns a cause that consists of a fault. It took effect when the fault began.
func ByFault(kind Kind, f trace.Fault) *Cause {
	return &Cause{Kind: kind, AtNs: f.FromNs, Fault: f.Number}
}

// ByChange returns a cause that consists of a change of the lock on the server. It names the
// command or the fault that made the change, or neither if a lease ended.
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
