package locktest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// mendCalls says how to let the calls work.
const mendCalls = "Mend the lock, its adapter, or the options of its client, so that the call works when nothing fails"

// misfit returns a mistake in the subject that the run of a story shows; "": none. Each judge would
// accuse the lock of something else.
func (r *runner) misfit(v play.Verdict) string {
	if s := r.servers(); s.panicked != "" {
		return "its State panicked: " + s.panicked
	} else if s.ends != 0 {
		return fmt.Sprintf("it has no Lease, and its State shows a hold that ends at %v; give it the Lease, or return a negative Expires", s.ends)
	}
	if v.Played.Record == nil || v.Played.Record.Unstarted() != "" {
		return ""
	}
	sent, returned, granted, held, token := false, false, false, false, false
	failed := "" // the first error of an acquire
	var closed *model.Event
	for _, e := range v.Played.Record.Events {
		switch {
		case e.Kind == model.KindSend:
			sent = true
		case e.Kind == model.KindReturn && e.Outcome != model.Waiting:
			returned = true
			granted = granted || e.Outcome == model.Granted
			if e.Action.Acquires() {
				failed = cmp.Or(failed, e.Error)
			}
			token = token || e.Token > 0
		case e.Kind == model.KindState && e.State.Held():
			held = true
		case e.Kind == model.KindState && e.State != nil && e.State.ClosedMs != 0 && closed == nil:
			closed = &e
		}
	}
	switch {
	case v.Played.Steps >= storySteps:
		return fmt.Sprintf("the story %s did not end within %d steps; a story waits for leases, and a Lease of %v is too long for a lock that asks so often. Judge it with a shorter one", v.Scenario.Name, storySteps, r.s.Lease)
	case !sent && r.servers().astray.Load() != nil:
		return fmt.Sprintf("its client dials %s, where no server is, and nothing comes to the servers of the world; it must dial the addresses of Process.Addr", *r.servers().astray.Load())
	case returned && !sent && len(v.Played.Panics) == 0: // else the panic may have come before the first request
		return "its calls return, and it sends nothing to the servers of the world; its client must dial with Process.DialContext, as that of redistest.NewClient does"
	case len(v.Unsimulated) > 0: // what followed says nothing of the subject, either
		return ""
	case closed != nil && closed.State.ClosedMs*int64(time.Millisecond) < closed.AtNs:
		return fmt.Sprintf("its State says Closed at %.3fs, and its Expires is over then; Expires of a lock that is Closed is the time since the start at which somebody can have it again", time.Duration(closed.AtNs).Seconds())
	case granted && !held && r.servers().showsNameless() && v.Scenario.Name == story.Basic[0].Name:
		return "its Lock returns without an error, and its State returns a hold without an Owner; Owner must be the value that the lock wrote for the holder, or, if it writes none, another mark of the hold, such as its session or its revision"
	case granted && !held && r.s.State != nil && v.Scenario.Name == story.Basic[0].Name:
		return "its Lock returns without an error, and its State shows no hold; State must read the key that the lock writes, and a Lock that wrote none must return an error" + r.servers().keysText(story.LockName)
	case granted && !token && r.lock.Fenced && v.Scenario.Name == story.Basic[0].Name:
		return "its Lock returns without an error, and its Token then reports that the hold has none; Token must return the token that the lock was granted with, or the lock must have no method Token"
	}
	if len(v.Scenario.Faults) == 0 {
		if why := oneHoldOfTwo(v.Played.Trace); why != "" {
			return why
		}
	}
	if v.Scenario.Name == story.Basic[0].Name {
		if why := wrongExpires(v.Played.Record); why != "" {
			return why
		}
		if why := r.otherLease(v.Played.Record); why != "" {
			return why
		}
		if why := r.unsaid(v.Findings); why != "" {
			return why
		}
		if r.servers().silent.Load() {
			return "its Lost returns nil for a hold that was granted, and a nil channel can tell nobody that the hold is gone; Lost must return a channel that is closed then, or the lock must have no method Lost"
		}
		switch {
		case returned && !granted && failed != "":
			return fmt.Sprintf("in the story %s, in which nothing fails, no call was granted the lock; the first error is %q. %s", v.Scenario.Name, failed, mendCalls)
		case len(v.Service.Useless()) > 0:
			return fmt.Sprintf("in the story %s, in which nothing fails, %s. %s", v.Scenario.Name, sentence.Useless(v.Service.Useless()[0]), mendCalls)
		case closed != nil:
			return fmt.Sprintf("its State says Closed at %.3fs, and nothing had failed; a lock is Closed if nobody can have it for a while because its last holder failed", time.Duration(closed.AtNs).Seconds())
		}
	}
	return r.renewsUnsaid(v.Played.Record)
}

// oneHoldOfTwo says that one request began the holds of two locks, with the same Owner; "": none did.
func oneHoldOfTwo(run *trace.Run) string {
	if run == nil {
		return ""
	}
	began := map[int]*trace.Change{} // by the number of the request
	for _, lock := range run.Locks {
		for _, c := range run.Changes(lock) {
			if c.By == nil || !c.Started() {
				continue
			}
			if other := began[c.By.Msg]; other != nil && other.Lock != lock && other.After.Value == c.After.Value {
				return fmt.Sprintf("its State shows one hold as that of %s and that of %s, which one request began at %.3fs; it must read what the lock writes for the name that it is given", other.Lock, lock, time.Duration(c.AtNs).Seconds())
			}
			began[c.By.Msg] = c
		}
	}
	return ""
}

// heldUnasked says that State shows a hold in a world in which nobody has sent anything; "": it shows none.
func (r *runner) heldUnasked(h *sim.Host) string {
	servers := r.lock.Servers.New([]string{story.LockName}, subject.ServerOptions{})
	held := false
	sim.Run(h, sim.Config{Chooser: sim.NewSeeded(1), Nodes: servers.Nodes, Quiet: time.Second, Settle: time.Second, Drain: time.Second}, func(*sim.World) {
		held = servers.State != nil && servers.State(0, story.LockName).Held()
	})
	if !held {
		return ""
	}
	return fmt.Sprintf("its State shows a hold of %s at 0.000s, before any call asked for the lock; State must return nil for a lock that nobody holds", story.LockName)
}

// wrongExpires says that a hold of a run, in which nothing fails, was over when it began, or that its end comes nearer as time
// goes on; "": none does. A hold that goes on after its end may be that of a server which ends holds at its ticks.
func wrongExpires(rec *model.Record) string {
	const meaning = "Expires is the time since the start at which the hold ends, or negative if it has no end"
	last := map[string]model.Event{}
	for _, e := range rec.Events {
		if e.Kind != model.KindState {
			continue
		}
		before, s := last[e.Lock], e.State
		last[e.Lock] = e
		if !s.Held() || s.ExpiresMs < 0 {
			continue
		}
		now, ends := time.Duration(e.AtNs), time.Duration(s.ExpiresMs)*time.Millisecond
		if !before.State.Held() || before.State.Owner != s.Owner {
			if s.ExpiresMs < now.Milliseconds() {
				return fmt.Sprintf("its State shows a hold that begins at %.3fs and has the Expires %v, which was over then; %s", now.Seconds(), ends, meaning)
			}
			continue
		}
		since, sooner := now-time.Duration(before.AtNs), time.Duration(before.State.ExpiresMs)*time.Millisecond-ends
		if since > 100*time.Millisecond && (since-sooner).Abs() <= time.Millisecond {
			return fmt.Sprintf("its State shows the Expires %v at %.3fs, and %v at %.3fs, as if it were the rest of the lease; %s",
				ends+sooner, (now - since).Seconds(), ends, now.Seconds(), meaning)
		}
	}
	return ""
}

// otherLease says that the holds of a run, in which nothing fails, last for another time than the Lease;
// "": they do not. A fifth and a second more may be the margin of the lock, or the ticks of its server. So may be
// as much less of a lock that renews a session, which can be older than the hold. Another lock's hold that ends
// sooner lets its holder believe in what is gone.
func (r *runner) otherLease(rec *model.Record) string {
	longest, lease := longestHold(rec), r.s.Lease
	less := lease/20 + time.Second
	if r.s.Renewed {
		less = lease/5 + time.Second
	}
	if longest > 0 && lease > 0 && (longest-lease > lease/5+time.Second || lease-longest > less) {
		return fmt.Sprintf("its Lease is %v, and its State shows holds that last for %v; give it the Lease for which the lock asks", lease, longest.Round(10*time.Millisecond))
	}
	return ""
}

// unsaid says that a hold of a run, in which nothing fails, lasts for longer than the Lease, or that a key stays that is not
// Kept; "": neither. Each story would be accused of it again.
func (r *runner) unsaid(findings []judges.Finding) string {
	for _, f := range findings {
		if !isBug(f) || slices.Contains(r.o.Accept, inStory(story.Basic[0].Name, f.Judge)) {
			continue
		}
		switch d := f.Detail.(type) {
		case judges.LongLease:
			return fmt.Sprintf("its Lease is %v, and its State shows a hold that lasts for %v; give it the longest time for which the server keeps the hold of a holder that is gone: the lease for which the lock asks, and the tick of a server that ends leases at ticks, as zookeepertest.Lease adds it",
				r.s.Lease, d.Got)
		case judges.Leftover:
			if d.Key != "" {
				return fmt.Sprintf("the key %s stays when everybody has left and nothing has failed; name it in Kept if that is meant, and let the lock delete it if not", d.Key)
			}
		}
	}
	return ""
}

// renewsUnsaid says that a command which no call sent prolonged a hold, although the subject is not
// Renewed; "": none did, as far as the run shows. If calls of a process are under way, one of them may have sent what it sends for an
// unknown thread.
func (r *runner) renewsUnsaid(rec *model.Record) string {
	if r.s.Renewed {
		return ""
	}
	for _, by := range prolonging(rec) {
		if by.inCall {
			continue
		}
		said := fmt.Sprintf("it is not Renewed, and a command that no call sent (%s, sent at %.3fs) prolonged a hold; ", by.sent.Command, time.Duration(by.sent.AtNs).Seconds())
		if by.extended > 0 {
			return said + fmt.Sprintf("let Extend wait for its answer if it is that of the Extend which had returned at %.3fs, and set Renewed: true if it is a renewal", time.Duration(by.extended).Seconds())
		}
		return said + "set Renewed: true"
	}
	return ""
}

// A prolongation is a request that prolonged a hold, and that a call may have sent only if inCall.
type prolongation struct {
	sent     model.Event
	inCall   bool
	extended int64 // when the last extension in the process before it returned, in nanoseconds; 0: there was none
}

// prolonging returns the requests of a run that prolonged a hold and that no known call sent.
func prolonging(rec *model.Record) (out []prolongation) {
	sent, last := map[int]prolongation{}, map[string]*model.LockState{}
	calls, extending := map[string]int{}, map[string]int{} // under way, by process; a goroutine of the client may send for an extension
	extended := map[string]int64{}                         // by process
	for _, e := range rec.Events {
		switch e.Kind {
		case model.KindInvoke, model.KindReturn:
			n := map[model.Kind]int{model.KindInvoke: 1, model.KindReturn: -1}[e.Kind]
			calls[e.Process] += n
			if e.Action == model.ActExtend {
				extending[e.Process] += n
			}
			if e.Action == model.ActExtend && e.Kind == model.KindReturn {
				extended[e.Process] = e.AtNs
			}
		case model.KindSend:
			sent[e.Msg] = prolongation{e, extending[e.Process] > 0 || len(e.Owners) == 0 && calls[e.Process] > 0, extended[e.Process]}
		case model.KindState:
			before, by := last[e.Lock], sent[e.Msg]
			if e.Msg > 0 && by.sent.Op == 0 && before.Held() && e.State.Owner == before.Owner && e.State.ExpiresMs > before.ExpiresMs && before.ExpiresMs >= 0 {
				out = append(out, by)
			}
			last[e.Lock] = e.State
		}
	}
	return out
}

// renewsInALongHold is renewsUnsaid for one play of story.LongHold, whose holder makes no call while it holds the lock. A lock of
// which two plays differ is not played further, so a later story cannot show that the subject is wrong, too.
func (r *runner) renewsInALongHold(h *sim.Host) string {
	if r.s.Renewed || r.s.Lease == 0 {
		return ""
	}
	return r.renewsUnsaid(play.Play(h, story.LongHold.Scenario(r.told()), r.lock, sim.NewSeeded(1)).Record)
}
