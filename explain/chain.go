package explain

import (
	"slices"
	"time"

	"lockstep/explore/failure"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

// A chain is the events that led to a finding: the calls and requests of the finding, the holds that they
// met, the grants of these holds, and the faults, losses and lease ends that made it possible.
type chain struct {
	run     *trace.Run
	finding judges.Finding
	until   int64                    // the instant after which nothing belongs to the chain
	index   map[*model.Event]int     // of the events of the record
	states  map[*model.LockState]int // the index of the event that has the state
	// after has the events of the chain, by index, each with the indexes of those of which it is the consequence.
	after map[int][]int
	// broke is the request that broke the promise; nil: none is known.
	broke *trace.Command
	call  *trace.Call // the call of broke, or the call that broke the promise without a request; nil: none
}

// chainOf returns the chain of a finding. cause is the evidence of its known defect; it may be nil.
func chainOf(run *trace.Run, f judges.Finding, cause *known.Cause) *chain {
	c := &chain{run: run, finding: f, until: failure.Until(f), index: map[*model.Event]int{}, states: map[*model.LockState]int{}, after: map[int][]int{}}
	for i := range run.Record.Events {
		e := &run.Record.Events[i]
		c.index[e] = i
		if e.Kind == model.KindState && e.State != nil {
			c.states[e.State] = i
		}
	}
	if f.Judge == model.JudgeTraffic { // it is about the second that begins there
		c.until += int64(time.Second)
	}
	c.findBreaker()
	c.addFinding()
	c.addParting()
	if cause != nil && !cause.InReplay {
		for _, msg := range cause.Msgs {
			if m := run.Command(msg); m != nil {
				c.command(m)
			}
		}
		if o := run.Call(cause.Op); o != nil {
			c.called(o)
		}
	}
	return c
}

// events returns the indexes of the events of the chain, in the order of the record. No event is the consequence of
// a later one.
func (c *chain) events() (list []int) {
	for i := range c.after {
		list = append(list, i)
	}
	slices.Sort(list)
	return list
}

// add adds an event with the events of which it is the consequence; -1 stands for none. It reports whether the event is new.
// An event after the finding is not added.
func (c *chain) add(i int, because ...int) bool {
	if i < 0 || c.run.Record.Events[i].AtNs > c.until {
		return false
	}
	_, known := c.after[i]
	list := c.after[i]
	for _, b := range because {
		if b >= 0 && b < i && !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	slices.Sort(list)
	c.after[i] = list
	return !known
}

// findBreaker finds the request that broke the promise, and its call.
func (c *chain) findBreaker() {
	f := c.finding
	ops := c.calls()
	if d, ok := f.Detail.(judges.Forgotten); ok { // it waits on, after the last answer that came in time
		for _, m := range c.run.CommandsOn(f.Lock) {
			if m.Executed != nil && m.Executed.AtNs <= d.FromNs+d.Bound.Ns && m.SpeaksFor(f.Thread) {
				c.broke, c.call = m, m.Call
			}
		}
		return
	}
	if d, ok := f.Detail.(judges.Overlap); ok {
		for _, x := range c.run.ChangesWithin(f.Lock, d.Ending.AtNs, d.Ending.AtNs) {
			if x.Ended() && x.By != nil && (d.Ending.Cause == model.LossEnded || d.Ending.Cause == model.LossForced) { // it let the other in
				c.broke, c.call = x.By, x.By.Call
				return
			}
		}
		ops = slices.DeleteFunc(ops, func(o *trace.Call) bool { return o.Caller != d.Later })
	}
	for _, x := range c.run.ChangesWithin(f.Lock, f.AtNs, f.AtNs) {
		if x.By != nil {
			c.broke, c.call = x.By, x.By.Call
		}
	}
	for _, m := range c.run.Commands {
		if c.broke == nil && len(ops) == 0 && m.AtNs == f.AtNs && slices.Contains(m.Threads, f.Thread) {
			c.broke, c.call = m, m.Call // it was the sending that broke the promise
		}
	}
	for _, o := range ops {
		if c.broke == nil {
			c.broke, c.call = decisive(o, c.until), o
		}
	}
}

// calls returns the calls that the finding names, in its order.
func (c *chain) calls() (list []*trace.Call) {
	for _, ref := range c.finding.Ops {
		if o := callOf(c.run, []judges.OpRef{ref}); o != nil {
			list = append(list, o)
		}
	}
	return list
}

// decisive returns the request of a call, sent up to an instant, that decided its answer: the last one that changed
// the lock, or else the last one that the server ran, or else the last one; nil if the call sent none.
func decisive(o *trace.Call, until int64) *trace.Command {
	var ran, last *trace.Command
	for _, m := range slices.Backward(o.Sent) {
		if m.AtNs > until {
			continue
		}
		if len(m.Changes) > 0 {
			return m
		}
		if ran == nil && m.Executed != nil && !m.UnknownScript() {
			ran = m
		}
		if last == nil {
			last = m
		}
	}
	if ran != nil {
		return ran
	}
	return last
}

// addFinding adds the calls, the request and the holds of the finding.
func (c *chain) addFinding() {
	f := c.finding
	if c.broke != nil {
		c.command(c.broke)
		for _, x := range c.broke.Changes {
			c.change(x)
		}
	}
	for _, o := range c.calls() {
		c.called(o)
	}
	for _, x := range c.run.ChangesWithin(f.Lock, f.AtNs, f.AtNs) {
		c.change(x)
	}
	for _, h := range c.run.HoldsOf(f.Lock, f.Thread, f.AtNs, f.AtNs) {
		c.hold(h)
	}
	for _, ns := range moments(f.Detail) {
		for _, x := range c.run.ChangesWithin(f.Lock, ns, ns) {
			c.change(x)
		}
		for _, m := range c.run.CommandsOn(f.Lock) {
			if m.AtNs == ns && m.SpeaksFor(f.Thread) {
				c.command(m)
			}
		}
		for _, h := range c.run.Holds(f.Lock) {
			if h.Within(ns, ns) {
				c.hold(h)
			}
		}
		for _, x := range c.run.Faults {
			if x.FromNs == ns {
				c.fault(x.Number, ns)
			}
		}
	}
	if c.broke != nil && f.Judge == model.JudgeMisdelete { // the hold of the sender had ended
		for _, who := range c.broke.Threads {
			if h := c.lastHold(f.Lock, who, f.AtNs); h != nil && h.Ended != nil {
				c.change(h.Ended)
			}
		}
	}
	if len(f.Ops) == 0 {
		for _, who := range append(slices.Clone(f.Threads), f.Thread) {
			c.thread(who)
		}
	}
	for i := range c.run.Record.Events {
		e := &c.run.Record.Events[i]
		switch about := e.Process == "" || e.ThreadName() == f.Thread || e.Thread == 0; {
		case e.AtNs > f.AtNs:
			return
		case e.AtNs < f.AtNs:
		case e.Kind == model.KindTold && about, e.Kind == model.KindCheck && !e.Met && e.Check == f.Check, e.Kind == model.KindLeft,
			e.Kind == model.KindResource && about, e.Kind == model.KindDefect:
			c.add(i)
		}
	}
}

// thread adds the last actions of a thread before a finding that names no call: its last call, its last hold, its last
// read and write of the resource of the finding, and the end of its process.
func (c *chain) thread(who string) {
	f, lock := c.finding, c.finding.Lock
	var last *trace.Call
	for _, o := range c.run.Calls {
		if o.Caller == who && o.AtNs <= f.AtNs {
			last = o
		}
	}
	if last != nil {
		c.called(last)
		lock = last.Lock
	}
	if h := c.lastHold(lock, who, f.AtNs); h != nil {
		c.hold(h)
		if h.Ended != nil && h.Ended.AtNs <= f.AtNs {
			c.change(h.Ended)
		}
	}
	resource, _ := f.Detail.(judges.WrongResource)
	done := map[string]bool{} // by phase
	for i := len(c.run.Record.Events) - 1; i >= 0; i-- {
		e := &c.run.Record.Events[i]
		switch {
		case e.AtNs > f.AtNs:
		case e.Kind == model.KindResource && e.ThreadName() == who && e.Key == resource.Name && !done[e.Phase]:
			done[e.Phase] = true
			c.add(i)
		case e.Kind == model.KindClose && e.Process == model.ProcessOf(who),
			e.Kind == model.KindFault && c.run.Record.Params.Fault(e.Fault).Kind == model.FaultCrash && e.Process == model.ProcessOf(who):
			c.add(i)
		}
	}
}

// moments returns the instants of a finding beside its own, at which its lock changed or a request was sent.
func moments(detail judges.Detail) []int64 {
	switch d := detail.(type) {
	case judges.Overlap:
		return []int64{d.Ending.AtNs}
	case judges.Overtaken:
		return []int64{d.FirstNs, d.EvictedNs}
	case judges.UndoneGrant:
		return []int64{d.GrantNs, d.SentNs, d.EndNs}
	case judges.ShortExtension:
		return []int64{d.SentNs}
	case judges.Unasked:
		return []int64{d.SentNs, d.OverNs}
	case judges.ToldLate:
		return []int64{d.SentNs, d.EndedNs}
	case judges.Misled:
		return []int64{d.HeldNs}
	case judges.Forgotten:
		return []int64{d.FromNs}
	}
	return nil
}

// lastHold returns the last hold of a thread that began before an instant; nil if there is none.
func (c *chain) lastHold(lock, who string, before int64) (last *trace.Hold) {
	for _, h := range c.run.HoldsOf(lock, who, 0, before) {
		last = h
	}
	return last
}

// addParting adds the event at which server and clients began to disagree.
func (c *chain) addParting() {
	p, ok := judges.PartingOf(c.run, c.finding)
	if !ok || p.Kind == judges.Agreed {
		return
	}
	for _, x := range c.run.ChangesWithin(p.Lock, p.AtNs, p.AtNs) {
		c.change(x)
	}
	for i := range c.run.Record.Events {
		e := &c.run.Record.Events[i]
		if e.AtNs == p.AtNs && (e.Kind == model.KindLost && e.Dir == "push" && p.Kind == judges.PartedByLoss || e.Kind == model.KindTold && e.ThreadName() == p.Thread) {
			c.add(i)
		}
	}
	for _, h := range c.run.HoldsOf(p.Lock, p.Thread, p.AtNs, p.AtNs) {
		c.hold(h)
	}
}

// called adds a call with its decisive request, and its return if it belongs to the time of the finding. It returns
// the index of the call.
func (c *chain) called(o *trace.Call) int {
	i := c.index[o.Event]
	if !c.add(i) {
		return i
	}
	because := []int{i}
	if m := decisive(o, c.until); m != nil {
		because = append(because, c.command(m))
		for _, x := range m.Changes {
			if x.Lock == o.Lock {
				because = append(because, c.change(x))
			}
		}
	}
	c.harmed(o.Process, o.AtNs, min(o.ReturnedNs(), c.until))
	if o.Return != nil && o.ReturnedNs() <= c.until {
		c.add(c.index[o.Return], because...)
	}
	return i
}

// command adds a request: its call, its sending, the faults that met it, and its run on the server. It returns the index of
// the last of these events up to the finding.
func (c *chain) command(m *trace.Command) int {
	sent := c.index[m.Event]
	last := sent
	if m.Executed != nil && m.Executed.AtNs <= c.until {
		last = c.index[m.Executed]
	}
	if !c.add(sent) {
		return last
	}
	if m.Call != nil {
		c.add(sent, c.called(m.Call))
		c.harmed(m.Process, m.Call.AtNs, m.AtNs)
	} else {
		for _, lock := range m.Locks {
			for _, who := range m.Threads {
				if h := c.lastHold(lock, who, m.AtNs); h != nil {
					c.add(sent, c.change(h.Began))
				}
			}
		}
	}
	before := sent
	for _, e := range m.Hits {
		if i := c.index[e]; e.AtNs <= c.until && c.add(i, before) && i > before {
			before = i
		}
	}
	if m.Executed != nil && m.Executed.AtNs <= c.until {
		c.add(last, before, sent)
	}
	if m.Lost != nil && m.Lost.AtNs <= c.until && m.Lost.Why != model.LostUnwanted {
		c.add(c.index[m.Lost], before, last)
	}
	return last
}

// change adds a change of a lock with its cause and the hold that it met. It returns the index of the change.
func (c *chain) change(x *trace.Change) int {
	i, ok := c.states[x.After]
	if !ok {
		i = slices.IndexFunc(c.run.Record.Events, func(e model.Event) bool {
			return e.Kind == model.KindState && e.State == nil && e.Lock == x.Lock && e.AtNs == x.AtNs
		})
	}
	if !c.add(i) {
		return i
	}
	switch {
	case x.By != nil:
		c.add(i, c.command(x.By))
	case x.Fault > 0:
		c.add(i, c.fault(x.Fault, x.AtNs))
	default:
		c.add(i, c.lapse(i))
	}
	for _, h := range c.run.Holds(x.Lock) {
		if h.Ended == x || slices.Contains(h.Moved, x) {
			c.add(i, c.change(h.Began))
			if h.Ended == x {
				c.hold(h)
			}
		}
	}
	return i
}

// lapse adds the end of a key that was the reason for the change with that index, and returns its index; -1 if
// there is none.
func (c *chain) lapse(change int) int {
	events := c.run.Record.Events
	for i := change - 1; i >= 0 && events[i].AtNs == events[change].AtNs; i-- {
		if events[i].Kind == model.KindExpire {
			c.add(i)
			return i
		}
	}
	return -1
}

// hold adds the grant of a hold, the last change of its lease, and, if the lease ran out, the faults that kept its owner from
// renewing it.
func (c *chain) hold(h *trace.Hold) {
	began := c.change(h.Began)
	for _, x := range slices.Backward(h.Moved) {
		if x.AtNs <= c.until {
			c.add(c.change(x), began)
			break
		}
	}
	to := min(h.ToNs(), c.until)
	lapsed := h.Ended != nil && h.Ended.By == nil
	if !lapsed {
		return
	}
	process := model.ProcessOf(h.Owner)
	c.harmed(process, h.FromNs(), to)
	for _, m := range c.run.CommandsFrom(process) {
		if m.Script == model.RoleRenew && m.SpeaksFor(h.Owner) && slices.Contains(m.Locks, h.Lock) && h.FromNs() <= m.AtNs && m.AtNs <= to && (m.Lost != nil || len(m.Hits) > 0 || m.Failed()) {
			c.command(m)
		}
	}
	if died := c.run.GoneNs(process); died <= to {
		for i := range c.run.Record.Events {
			if e := &c.run.Record.Events[i]; e.Kind == model.KindClose && e.Process == process {
				c.add(i)
			}
		}
	}
}

// harmed adds the faults that lasted within a time and struck a process or a server.
func (c *chain) harmed(process string, fromNs, toNs int64) {
	for _, f := range c.run.Faults {
		if f.Spec.Kind == model.FaultRule || f.Spec.Kind == model.FaultFate || f.FromNs > toNs || f.ToNs < fromNs {
			continue
		}
		if f.Spec.Names(process) || f.Process == process || f.Process == "" && len(f.Spec.Processes) == 0 {
			c.fault(f.Number, f.FromNs)
		}
	}
}

// fault adds the beginning of a fault, and returns its index; -1 if the record does not have it.
func (c *chain) fault(number int, atNs int64) int {
	i := slices.IndexFunc(c.run.Record.Events, func(e model.Event) bool {
		return e.Kind == model.KindFault && e.Fault == number && e.AtNs <= atNs
	})
	c.add(i)
	return i
}
