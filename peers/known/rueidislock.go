package known

import (
	"slices"
	"time"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/model/trace"
)

// ownKey finds a call whose command took a key and had its answer lost. The same command was sent
// again, and found the key. The call was not granted by the instant of the harm.
func ownKey(c *defect.Case) *defect.Cause {
	for _, o := range c.CallsOn(c.Lock) {
		if !o.Action.Acquires() || o.AtNs > c.Until() || o.Outcome == model.Granted && o.ReturnedNs() <= c.Until() {
			continue
		}
		var lost *trace.Command
		for _, m := range o.Sent {
			switch {
			case m.Script != model.RoleAcquire || m.Executed == nil || m.Executed.AtNs > c.Until():
			case lost == nil && m.Lost != nil && m.Reply() == "OK":
				lost = m
			case lost != nil && m.Reply() == "nil" && slices.Equal(m.Args, lost.Args):
				return defect.ByCommands(defect.FoundItself, lost, m)
			}
		}
	}
	return nil
}

// behindOneKey finds the last attempt of a call, which found its key taken although no majority of
// the keys was, and the command that had set the key. The key is still there at the instant of the harm.
// A call that found its own key is another defect.
func behindOneKey(c *defect.Case) *defect.Cause {
	o := c.Call
	if o == nil || !o.Action.Acquires() || c.Record.Params.Parts < 2 || ownKey(c) != nil {
		return nil
	}
	var refused *trace.Command
	for _, m := range o.Sent {
		if m.Script == model.RoleAcquire && m.Executed != nil && m.Executed.AtNs <= c.Until() && !cleanUp(m) {
			refused = m
		}
	}
	if refused == nil || refused.Reply() != "nil" || refused.Before(c.Lock).Held() || c.StateAt(c.Lock, c.Until()).Held() {
		return nil
	}
	key := keyOf(refused.Args)
	set := 0 // the message that set the key
	for _, e := range c.Record.Events {
		switch {
		case e.AtNs > c.Until():
		case e.Kind == model.KindExpire && e.Key == key, e.Kind == model.KindFault && c.Record.Params.Fault(e.Fault).MayRemoveKeys():
			set = 0
		case e.Kind != model.KindExec || keyOf(e.Args) != key:
		case e.Script == model.RoleAcquire && e.Reply == "OK":
			set = e.Msg
		case e.Script == model.RoleUnlock && e.Reply == "1":
			set = 0
		}
	}
	for _, m := range c.CommandsOn(c.Lock) {
		if m.Msg == set {
			return defect.ByCommands(oneKeyTaken, m, refused)
		}
	}
	return nil
}

// keyOf returns the key of a script of rueidislock: its arguments are the number of keys, the key, the
// value and the end.
func keyOf(args []string) string {
	if len(args) < 2 {
		return ""
	}
	return args[1]
}

// tryNextAfter is the time after which rueidislock gives a try up.
const tryNextAfter = 20 * time.Millisecond

// pingEvery is the time after which rueidis asks an idle server whether it is still there.
const pingEvery = time.Second

// givenUp finds the last command of a waiting call that was refused, lost, or sent or answered late, or
// that deletes the key of a try that was given up. If there is none, it finds the message after which
// the call had no connection, or the partition in which the call began and sent nothing. The lock is
// free, and the call sends nothing for a second after its last command.
func givenUp(c *defect.Case) *defect.Cause {
	o := c.CallThat(func(o *trace.Call) bool {
		return o.Caller == c.Who && o.Action.Acquires() && o.AtNs <= c.AtNs && (o.Return == nil || o.Return.AtNs > c.AtNs)
	})
	if o == nil || c.Now().Held() {
		return nil
	}
	var failed *trace.Command
	last := o.AtNs
	for i, m := range o.Sent {
		switch {
		case m.AtNs > c.AtNs:
			if m.AtNs < last+int64(time.Second) {
				return nil
			}
		case m.Reply() == "nil" && m.RepliedNs >= 0 && m.RepliedNs-m.AtNs < int64(tryNextAfter): // the try found the key taken, and waits for it to change
			failed, last = nil, m.AtNs
		case m.Script == model.RoleAcquire && (cleanUp(m) || m.Lost != nil || m.Refused() || m.Executed == nil && len(m.Hits) > 0 || m.RepliedNs < 0 || i == 0 && m.AtNs-o.AtNs >= int64(tryNextAfter) || m.RepliedNs-m.AtNs >= int64(tryNextAfter)):
			failed, last = m, m.AtNs
		default:
			last = m.AtNs
		}
	}
	if failed != nil {
		return defect.ByCommands(gaveUpTry, failed)
	}
	if m := cutOff(c, o); m != nil {
		return defect.ByCommands(unconnected, m)
	}
	if len(o.Sent) > 0 {
		return nil
	}
	for _, f := range c.FaultsOn(o.Process, model.FaultPartition) {
		if f.FromNs <= o.AtNs && f.ToNs-o.AtNs >= int64(tryNextAfter) {
			return defect.ByFault(unconnected, f)
		}
	}
	return nil
}

// cleanUp reports whether a command of an acquire is the one that deletes the key of a try that was
// given up: its answer is a number. The command that takes the key is answered OK or nil.
func cleanUp(m *trace.Command) bool { return m.Reply() == "0" || m.Reply() == "1" }

// cutOff finds the request with which the client of a waiting call began a connection. It had no
// answer within TryNextAfter while the call waited, and the call has sent nothing since. Or it finds
// the last message of the client, which had no answer, so that the connection ended, and after which
// the client had no other. It was sent before the lock was free, or at the latest when the client
// looked at its connection next.
func cutOff(c *defect.Case, o *trace.Call) *trace.Command {
	idle := o.AtNs // since when the call waits for a free lock
	for _, s := range c.ChangesUpTo(c.Lock, c.AtNs) {
		if s.Ended() && !s.After.Held() {
			idle = max(idle, s.AtNs)
		}
	}
	sent := int64(-1)
	for _, m := range o.Sent {
		if m.AtNs <= c.AtNs {
			sent = m.AtNs
		}
	}
	var late, last *trace.Command
	for _, m := range c.CommandsFrom(o.Process) {
		if m.AtNs > c.AtNs {
			break
		}
		last = m
		answered := m.RepliedNs
		if answered < 0 {
			answered = c.AtNs
		}
		begins := m.Command == "HELLO" || m.Command == "CLIENT"
		if begins && m.AtNs > sent && answered-max(m.AtNs, o.AtNs) >= int64(tryNextAfter) {
			late = m
		}
	}
	if late == nil && last != nil && last.RepliedNs < 0 && last.AtNs > sent && last.AtNs <= idle+int64(pingEvery) {
		return last
	}
	return late
}

// deletedBefore finds the command that ended the hold, and that the holder's client sent outside
// any call.
func deletedBefore(c *defect.Case) *defect.Cause {
	for _, s := range c.Changes(c.Lock) {
		if s.Ended() && s.By != nil && s.By.Call == nil && s.MadeFor(s.Before.Owner) && c.HarmedBy(s) {
			return defect.ByChange(deletedFirst, s)
		}
	}
	return nil
}

// connects finds the command with which a connection begins, during the call that was late.
func connects(c *defect.Case) *defect.Cause {
	o := c.Call
	if o == nil {
		return nil
	}
	for _, m := range c.Commands {
		if m.Command == "HELLO" && m.Process == c.Process() && m.Executed != nil && o.AtNs <= m.AtNs && m.AtNs <= o.ReturnedNs() {
			return defect.ByCommands(connectedAnew, m)
		}
	}
	return nil
}
