package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/trace"
)

// hearing returns the lane of the lock that a channel belongs to.
func (b *builder) hearing(channel string) int { return b.server(b.channels[channel]) }

// learnChannels finds the locks that each channel belongs to. These are the locks of the
// command that published on the channel. If no such command names a lock, it is the lock
// of the call that first listened to the channel.
func (b *builder) learnChannels() {
	var published []string // the channels on which the next executed command published
	for i := range b.run.Record.Events {
		switch e := &b.run.Record.Events[i]; e.Kind {
		case model.KindPublish:
			published = append(published, e.Channel)
		case model.KindExec:
			for _, channel := range published {
				if len(e.Locks) > 0 {
					b.channels[channel] = e.Locks
				}
			}
			published = nil
		}
	}
	for _, m := range b.trace.Commands {
		for _, channel := range m.Channels {
			if m.Listens != model.ListensNot && m.Call != nil && b.channels[channel] == nil {
				b.channels[channel] = []string{m.Call.Lock}
			}
		}
	}
}

// conn returns the connection on which a message was sent. It returns 0 for a published
// message.
func (b *builder) conn(msg int) int {
	if m := b.trace.Command(msg); m != nil {
		return m.Conn
	}
	return 0
}

// client returns the lane of the thread whose call sent a message. A message that no call
// sent belongs to the lane of the watchdog. In a process with one thread or without a
// watchdog, it belongs to the first thread, except for the renewals of a watchdog.
func (b *builder) client(process string, op int, role model.Role) int {
	if o := b.trace.Call(op); o != nil {
		return b.thread(o.Event)
	}
	dog, ok := b.lanes[process+" watchdog"]
	if _, more := b.lanes[model.ThreadName(process, 2)]; ok && (more || role == model.RoleRenew) {
		return dog
	}
	return slices.IndexFunc(b.v.Lanes, func(l lane) bool { return l.Process == process })
}

// message adds what happened to a message.
func (b *builder) message(e *model.Event) {
	switch m := b.messageOf(e); {
	case m == nil:
	case e.Kind == model.KindExec:
		b.execution(e, m)
	case e.Kind == model.KindDeliver:
		m.Done = e.AtNs
		switch {
		case !m.Push:
			b.add(e, m.Lane, fmt.Sprintf("answer of %s: %s", m.Name, m.Reply)).quiet = true
		case e.Channel == "": // a segment that answers none
			b.add(e, m.Lane, "hears the server")
		default:
			b.add(e, m.Lane, "hears the wake-up on "+e.Channel)
		}
	case e.Kind == model.KindLost:
		m.Lost, m.Dir, m.Why = e.AtNs, e.Dir, e.Why
		if conn := b.conn(e.Msg); conn > 0 && e.Why == model.LostReset {
			b.deafen(e.AtNs, func(c int, _ string) bool { return c == conn })
		}
		if e.Why == model.LostUnwanted {
			x := b.add(e, m.Lane, fmt.Sprintf("nobody waits for the %s of %s any more", e.Dir, m.Name))
			x.Kind, x.quiet = "late", true
			return
		}
		b.add(e, m.Lane, lostText(m)+b.untilNextRenewal(m))
	case e.Kind == model.KindHit:
		m.Hit = Clip(e.Text, 80)
		b.add(e, m.Lane, fmt.Sprintf("fault met the %s of %s: %s", e.Dir, m.Name, e.Text))
	}
}

// messageOf returns the message that an event is about, and adds it if it is a push of which there was no event
// before. It returns nil if the record does not have the message.
func (b *builder) messageOf(e *model.Event) *message {
	i, known := b.msgs[e.Msg]
	if !known {
		if e.Dir != "push" {
			return nil
		}
		sent, ok := b.spoken[e.Channel]
		if !ok {
			sent = e.AtNs
		}
		i = b.addMessage(message{ID: e.Msg, Lane: b.client(e.Process, 0, ""), Server: b.hearing(e.Channel), Name: "wake-up", Sent: sent, Exec: sent, Done: -1, Lost: -1, Push: true})
	}
	return &b.v.Messages[i]
}

// addMessage returns the index of the message that it adds.
func (b *builder) addMessage(m message) int {
	i := len(b.v.Messages)
	b.msgs[m.ID] = i
	b.v.Messages = append(b.v.Messages, m)
	return i
}

// effect returns the role, the owners and the locks of a command: by its effect, where that is known, and not by its
// sender.
func (b *builder) effect(e *model.Event) (script model.Role, owners, locks []string) {
	if m := b.trace.Command(e.Msg); m != nil {
		return m.Script, m.Owners, m.Locks
	}
	return e.Script, e.Owners, e.Locks
}

// commandName names a command by its role and its words.
func commandName(e *model.Event, script model.Role) string {
	command := e.Command
	if says := cmp.Or(e.Says, strings.Join(e.Asked, " ")); says != "" {
		command = Clip(says, 60)
	}
	if script != "" && command != "" && e.Program == "" {
		return string(script) + " (" + command + ")"
	}
	return cmp.Or(string(script), command)
}

// request adds a request that is sent.
func (b *builder) request(e *model.Event) {
	script, _, locks := b.effect(e)
	name, lane := commandName(e, script), b.client(e.Process, e.Op, script)
	b.addMessage(message{ID: e.Msg, Lane: lane, Server: b.addressed(e), Name: Clip(name, 40), Locks: locks, Op: e.Op,
		Sent: e.AtNs, Exec: -1, Done: -1, Lost: -1, segment: e.Command == model.SegmentCommand})
	b.add(e, lane, "sends "+name+about(e)).quiet = true
}

// publication adds a message that a server publishes.
func (b *builder) publication(e *model.Event) {
	b.spoken[e.Channel] = e.AtNs
	to := strings.Join(b.listeners(e.Channel), ", ")
	b.add(e, b.hearing(e.Channel), fmt.Sprintf("publishes %q on %s, to %s", e.Text, e.Channel, cmp.Or(to, "nobody")))
}

// execution adds the execution of a request.
func (b *builder) execution(e *model.Event, m *message) {
	if m.Exec < 0 {
		m.Exec = e.AtNs
	}
	m.Reply = Clip(e.Reply, 60)
	b.listen(e)
	script, owners, _ := b.effect(e)
	who := cmp.Or(strings.Join(owners, ", "), e.Process)
	text := commandName(e, script) + " of " + who + about(e)
	if size := strings.Join(e.Args, " "); e.Command == model.SegmentCommand && len(e.Asked) == 0 && e.Says == "" && size != "" {
		text = fmt.Sprintf("%s (%s) of %s", cmp.Or(string(script), e.Command), size, who)
	}
	if e.Reply != "" {
		text += " → " + e.Reply
	}
	b.add(e, m.Server, text).quiet = script == "" && (e.Listens != model.ListensNot || m.segment && b.housekeeping(e))
}

// housekeeping reports whether a request is of no call and changed nothing, such as a PING of HTTP/2.
func (b *builder) housekeeping(e *model.Event) bool {
	m := b.trace.Command(e.Msg)
	return m != nil && m.Call == nil && len(m.Changes) == 0
}

// untilNextRenewal says when the renewal after a lost one is sent, as a clause; "" for other messages.
// A client that waits for an answer sends none meanwhile, which no event shows.
func (b *builder) untilNextRenewal(m *message) string {
	lost := b.trace.Command(m.ID)
	if lost == nil || lost.Call != nil || lost.Script != model.RoleRenew {
		return ""
	}
	after, _ := slices.BinarySearchFunc(b.trace.Commands, lost.AtNs+1, func(c *trace.Command, t int64) int { return cmp.Compare(c.AtNs, t) })
	for _, c := range b.trace.Commands[after:] {
		// Once the hold is gone, a renewal on a stream is about no lock, and is known by its words.
		same := slices.Equal(c.Locks, lost.Locks) && slices.Equal(c.Threads, lost.Threads) || len(c.Asked) > 0 && slices.Equal(c.Asked, lost.Asked)
		if c.Call == nil && c.Script == model.RoleRenew && c.Process == lost.Process && same {
			return "; the next is sent at " + at(c.AtNs)
		}
	}
	return "; no other is sent after it"
}

func lostText(m *message) string {
	what := "the " + m.Dir + " of " + m.Name
	if m.Push {
		what = "a wake-up"
	}
	return fmt.Sprintf("LOST: %s (%s)", what, m.Why)
}

// listen updates the subscriptions of connections to channels after the server executed a
// command.
func (b *builder) listen(e *model.Event) {
	if e.Listens == model.ListensNot {
		return
	}
	for _, ch := range e.Channels {
		if b.hears[ch] == nil {
			b.hears[ch] = map[int]string{}
		}
		if e.Listens == model.ListenStart {
			b.hears[ch][b.conn(e.Msg)] = e.Process
		} else {
			delete(b.hears[ch], b.conn(e.Msg))
		}
		b.v.Subs = append(b.v.Subs, audience{Channel: ch, AtNs: e.AtNs, Who: b.listeners(ch)})
	}
}

// deafen ends the subscriptions of the connections for which gone reports true.
func (b *builder) deafen(at int64, gone func(conn int, process string) bool) {
	for _, ch := range slices.Sorted(maps.Keys(b.hears)) {
		before := len(b.hears[ch])
		maps.DeleteFunc(b.hears[ch], gone)
		if len(b.hears[ch]) < before {
			b.v.Subs = append(b.v.Subs, audience{Channel: ch, AtNs: at, Who: b.listeners(ch)})
		}
	}
}

// listeners returns the names of the processes that are subscribed to a channel now.
func (b *builder) listeners(channel string) []string {
	return slices.Compact(slices.Sorted(maps.Values(b.hears[channel])))
}

func about(e *model.Event) string {
	if e.Script == "" && e.Listens != model.ListensNot {
		return " " + strings.Join(e.Channels, " ")
	}
	return ""
}
