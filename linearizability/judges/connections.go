package judges

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/trace"
)

// unanswered returns the times in which the call waited for the answer to a command of
// its own that a fault had met. What is lost once the call is over met no fault: a client that is closed
// leaves behind what it waits for.
func unanswered(o *trace.Call) []span {
	var out []span
	for i, m := range o.Sent {
		if (m.Lost == nil || m.Lost.AtNs > o.ReturnedNs()) && len(m.Hits) == 0 {
			continue
		}
		to := o.ReturnedNs()
		if m.RepliedNs >= 0 {
			to = m.RepliedNs
		} else if i+1 < len(o.Sent) {
			to = o.Sent[i+1].AtNs
		}
		out = append(out, span{m.AtNs, to})
	}
	return out
}

// connecting returns the times in which a fault held up the connections of a process.
func (r livenessJudge) connecting(process string) []span {
	var out []span
	for _, x := range r.heldConnections(process) {
		out = append(out, x.span)
	}
	return out
}

// behindHeldReplies returns the times in which a fault held up what the server sent on a connection of
// the call. A stream has an order, so whatever the server sends behind a reply that is late is late, too.
func (r livenessJudge) behindHeldReplies(o *trace.Call) []span {
	var out []span
	for _, m := range r.Hit {
		if m.Command != model.SegmentCommand || m.Process != o.Process || m.Executed == nil ||
			!slices.ContainsFunc(m.Hits, func(h *model.Event) bool { return h.Dir == "reply" }) ||
			!slices.ContainsFunc(o.Sent, func(own *trace.Command) bool { return own.Conn == m.Conn }) {
			continue
		}
		to := int64(math.MaxInt64)
		switch {
		case m.RepliedNs >= 0:
			to = m.RepliedNs
		case m.Lost != nil:
			to = m.Lost.AtNs
		}
		out = append(out, span{m.Executed.AtNs, to})
	}
	return out
}

// behindSiblings returns the times in which another call of the process waited for an answer that a fault held up, and the
// call had no request under way and sent none. The threads of a client may wait for one another: in a mutex, for a session
// that they share, or for the only connection.
func (r livenessJudge) behindSiblings(o *trace.Call) []span {
	var out []span
	for _, x := range r.Calls {
		if x == o || x.Process != o.Process || x.AtNs >= o.ReturnedNs() || x.ReturnedNs() <= o.AtNs {
			continue
		}
		for _, s := range append(unanswered(x), r.behindHeldReplies(x)...) {
			for _, m := range o.Sent {
				if m.AtNs < s.to {
					s.from = max(s.from, m.EndNs())
				}
			}
			if s.from < s.to {
				out = append(out, s)
			}
		}
	}
	return out
}

// heldConnection is a time in which faults held up a connection of a process.
type heldConnection struct {
	span
	faults    []int
	ungreeted bool // the client gave the connection up, since the greeting of the server did not come
}

// heldConnections returns the times in which a fault held up a request of the process that belongs
// to no call, such as the beginning of a connection or of a session, or ended its connection. Calls
// and renewals that are sent on the connection wait for it. A request that listens to a channel holds
// up only the messages of that channel, unless it is sent before any request of a call: calls wait until the client is open. A client that waits before it connects again has one
// connection, which any lost request ends.
func (r *run) heldConnections(process string) []heldConnection {
	var out []heldConnection
	called := false
	for _, m := range r.CommandsFrom(process) {
		called = called || m.Call != nil
		if m.Call != nil || called && m.Listens != model.ListensNot {
			continue
		}
		if m.LostWithConnection() { // whatever message the fault met
			out = append(out, heldConnection{span{m.AtNs, m.Lost.AtNs}, faultsThatMet(m), false})
			continue
		}
		if len(m.Hits) == 0 || m.Script != "" && (m.Lost == nil || r.Record.Params.Reconnect == 0) {
			continue
		}
		to := int64(math.MaxInt64)
		switch {
		case m.RepliedNs >= 0:
			to = m.RepliedNs
		case m.Lost != nil: // the client learns of the loss, or asks again, see ownDisturbances
			to = m.Lost.AtNs
		case m.Executed != nil && !slices.ContainsFunc(m.Hits, func(h *model.Event) bool { return h.Dir == "reply" }):
			to = m.Executed.AtNs // it needs no reply
		}
		out = append(out, heldConnection{span{m.AtNs, to}, faultsThatMet(m), false})
	}
	return append(out, r.lateGreetings(process)...)
}

// lateGreetings returns the times in which a fault held up a message that a server sends by itself
// and on no channel, such as its greeting. It begins a connection, or belongs to its stream.
func (r *run) lateGreetings(process string) []heldConnection {
	var out []heldConnection
	for i, e := range r.Pushes {
		if e.Kind != model.KindHit || e.Process != process {
			continue
		}
		for _, later := range r.Pushes[i+1:] {
			if later.Msg == e.Msg && (later.Kind == model.KindDeliver || later.Kind == model.KindLost) {
				if later.Channel == "" {
					out = append(out, heldConnection{span{e.AtNs, later.AtNs}, []int{e.Fault}, later.Kind == model.KindLost})
				}
				break
			}
		}
	}
	return out
}

// faultsThatMet returns the numbers of the faults that met a command.
func faultsThatMet(m *trace.Command) (faults []int) {
	for _, h := range m.Hits {
		faults = append(faults, h.Fault)
	}
	return faults
}
