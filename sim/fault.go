package sim

import (
	"path"
	"slices"
	"strings"

	"lockstep/model"
)

// rule is a fault on messages while it runs.
type rule struct {
	index   int // of the fault in the list, from 1
	fault   model.FaultSpec
	matched int
	fired   bool
	over    bool
	held    []func()
	// awaited is what the rule waits for and what has not happened yet; nil: it waits for nothing.
	// executed is the number of requests that awaited.Executed has matched.
	awaited  *model.Condition
	executed int
}

// plan puts the faults on the schedule. In the record, faults have numbers from 1, in the order of
// the list.
func (w *World) plan(faults []model.FaultSpec) {
	w.forgets = slices.ContainsFunc(faults, model.FaultSpec.MayRemoveKeys)
	for i, f := range faults {
		n := i + 1
		if f.Kind == model.FaultRule {
			r := &rule{index: n, fault: f}
			w.rules = append(w.rules, r)
			if f.Awaits != nil {
				awaited := *f.Awaits
				r.awaited = &awaited
				w.waiting = append(w.waiting, r)
			}
			if f.Until != nil {
				w.faultsDue++
				w.sched.add(int64(*f.Until), classFault, func() {
					w.faultsDue--
					w.moved = w.now()
					r.end(w)
				})
			}
			continue
		}
		w.faultsDue++
		w.sched.add(int64(f.At), classFault, func() {
			w.moved = w.now()
			w.record(&model.Event{Kind: model.KindFault, Fault: n, Process: onlyName(f.Processes), Text: w.describe(f)})
			w.strike(f, len(w.rec.Events)-1)
			if f.For == 0 {
				w.faultsDue--
				return
			}
			w.sched.add(w.now()+int64(f.For), classFault, func() {
				w.faultsDue--
				w.moved = w.now()
				w.record(&model.Event{Kind: model.KindFaultEnd, Fault: n, Process: onlyName(f.Processes), Text: f.String()})
			})
		})
	}
}

func onlyName(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return ""
}

// strike lets a fault strike, whose event has the index at in the record.
func (w *World) strike(f model.FaultSpec, at int) {
	switch f.Kind {
	case model.FaultCrash:
		w.process(f.Processes[0]).crash()
	case model.FaultPause:
		w.process(f.Processes[0]).pause(int64(f.For))
	case model.FaultPartition:
		for _, name := range f.Processes {
			p := w.process(name)
			w.mu.Lock()
			for _, n := range w.struck(f) {
				p.cutUntil[n.index] = max(p.cutUntil[n.index], w.now()+int64(f.For))
			}
			w.mu.Unlock()
		}
	case model.FaultWallClock:
		p := w.process(f.Processes[0])
		w.mu.Lock()
		p.jump += f.Step
		p.seat.ahead += int64(f.Step)
		w.mu.Unlock()
	case model.FaultKey, model.FaultServer:
		if f.Server == model.ServerIsolate {
			w.isolate(f)
			return
		}
		for _, n := range w.struck(f) {
			n.strike(f, at)
		}
	default:
		panic("sim: a fault of unknown kind " + string(f.Kind))
	}
}

// happened tells the rules that wait for something what has happened. A rule for which all has happened
// ends in an event of its own at this instant.
func (w *World) happened(change func(r *rule, c *model.Condition)) {
	if w.calm {
		return
	}
	w.touch(objRules, true)
	w.waiting = slices.DeleteFunc(w.waiting, func(r *rule) bool {
		if w.now() < int64(r.fault.From) {
			return false
		}
		change(r, r.awaited)
		if *r.awaited != (model.Condition{}) {
			return false
		}
		w.faultsDue++
		w.sched.add(w.now(), classFault, func() {
			w.faultsDue--
			w.moved = w.now()
			r.end(w)
		})
		return true
	})
}

// heard tells the rules that wait for something of an event of the record.
func (w *World) heard(e *model.Event) {
	switch {
	case e.Kind == model.KindReturn && e.Outcome == model.Granted:
		w.happened(func(_ *rule, c *model.Condition) {
			if c.Granted == e.Process || c.Granted == model.ThreadName(e.Process, e.Thread) {
				c.Granted = ""
			}
		})
	case e.Kind == model.KindPublish:
		w.happened(func(_ *rule, c *model.Condition) {
			if c.Published != "" && Match(c.Published, e.Channel) {
				c.Published = ""
			}
		})
	case e.Kind == model.KindExec:
		w.happened(func(r *rule, c *model.Condition) {
			if c.Executed == nil || !w.executes(r, c.Executed, e) {
				return
			}
			if r.executed++; r.executed >= c.Executed.Nth {
				c.Executed = nil
			}
		})
	}
}

// executes reports whether the servers executed a request that matches when, at a server of the rule.
func (w *World) executes(r *rule, when *model.When, e *model.Event) bool {
	passing := Passing{Process: e.Process, Dir: "request", Script: e.Script, Command: e.Command, Channels: e.Channels, Node: w.conns[e.Conn-1].node.Addr}
	return Meets(&model.FaultSpec{Nodes: r.fault.Nodes, When: *when}, e.AtNs, &passing)
}

// strike lets a fault strike the node's server.
func (n *node) strike(f model.FaultSpec, at int) {
	w := n.w
	if f.Server == model.ServerStall {
		n.stallTill = max(n.stallTill, w.now()+int64(f.For))
	}
	n.call(func(nowNs int64, out *Effects) {
		if f.StepsServerClock() {
			n.parts.StepClock(nowNs, f.Step, out)
		} else {
			n.parts.Strike(nowNs, f, out)
			if e := &w.rec.Events[at]; !w.over {
				e.Removed = append(e.Removed, w.carriers(out.removed)...)
			}
		}
	})
	if f.EndsConnections() {
		for _, c := range w.conns {
			if c.node == n {
				w.sever(c)
			}
		}
	}
	n.look(nil)
}

// carriers returns the numbers of the executed requests that carried one of these words.
func (w *World) carriers(words []string) (numbers []int) {
	for _, m := range w.ran {
		if slices.ContainsFunc(words, m.request.carries) {
			numbers = append(numbers, m.id)
		}
	}
	return numbers
}

// partitioned reports whether no message passes between the ends of c.
func (w *World) partitioned(c *conn) bool {
	return !w.leaving && c.p.cutUntil[c.node.index] > w.now()
}

// meet sends a message on, unless an earlier one of its pipeline or its connection is held, or a rule does something
// else with it. A request that a rule has refused, and its answer, meet no other rule.
func (w *World) meet(m *message, dir string) {
	for _, p := range m.lines() {
		if r := p.held[way(dir)]; r != nil && !r.over {
			r.held = append(r.held, func() {
				if w.passes(m, dir, waiting) {
					w.meet(m, dir)
				}
			})
			return
		}
	}
	var r *rule
	if m.refused == "" {
		r = w.rule(m, dir)
	}
	if r == nil {
		w.pass(m, dir, 0)
		return
	}
	w.record(&model.Event{Kind: model.KindHit, Fault: r.index, Process: m.conn.p.cfg.Name, Op: m.op, Msg: m.id, Dir: dir,
		Script: m.cmd.Script, Owners: m.cmd.Owners, Locks: m.cmd.Locks, Text: r.fault.String(), Do: r.fault.Do})
	switch r.fault.Do {
	case "drop":
		w.lost(m, dir, model.LostDropped)
	case "delay":
		w.pass(m, dir, int64(r.fault.For))
	case "hold":
		for _, p := range m.lines() {
			p.held[way(dir)] = r
		}
		r.held = append(r.held, func() { w.pass(m, dir, 0) })
	case "half_open":
		for _, p := range m.lines() {
			p.held[way(dir)] = r
		}
		r.held = append(r.held, func() {
			w.lost(m, dir, model.LostReset)
			w.sever(m.conn)
		})
	case "reset":
		w.lost(m, dir, model.LostReset)
		w.sever(m.conn)
	case "error":
		w.refuse(m, dir, r.fault.With)
	}
}

// rule counts the message on every rule that matches it and returns the first rule that
// fires.
func (w *World) rule(m *message, dir string) *rule {
	if len(w.rules) == 0 {
		return nil
	}
	w.touch(objRules, true) // rules count messages
	passing := Passing{
		Process: m.conn.p.cfg.Name, Dir: dir, Script: m.cmd.Script, Command: m.request.Name, Node: m.conn.node.Addr,
		Channel: m.channel, Channels: m.request.Channels,
	}
	var found *rule
	for _, r := range w.rules {
		if r.over || w.calm || !Meets(&r.fault, w.now(), &passing) || r.fault.Do == "error" && !m.refusable(dir) {
			continue
		}
		r.matched++
		if Fires(r.fault.When, r.matched) && found == nil {
			r.fired = true
			found = r
		}
	}
	return found
}

// Passing has the facts about a message that the rules of faults use.
type Passing struct {
	Process  string
	Dir      string // request, reply or push
	Script   model.Role
	Command  string   // upper case
	Node     string   // the address of the server
	Channel  string   // the channel of a push
	Channels []string // the channels that the request names
}

// Meets reports whether a fault of kind FaultRule matches a message at an instant. It does
// not count matches, see Fires.
func Meets(f *model.FaultSpec, nowNs int64, m *Passing) bool {
	when := &f.When
	if nowNs < int64(f.From) || f.Until != nil && nowNs >= int64(*f.Until) {
		return false
	}
	if when.Process != "" && when.Process != m.Process {
		return false
	}
	if when.Direction != "" && (when.Direction == "request") != (m.Dir == "request") {
		return false
	}
	if when.Script != "" && when.Script != m.Script {
		return false
	}
	if when.Command != "" && (m.Dir == "push" || when.Command != m.Command) {
		return false
	}
	if len(f.Nodes) > 0 && !slices.Contains(f.Nodes, m.Node) {
		return false
	}
	if when.Channel != "" {
		wanted := func(channel string) bool { return channel != "" && Match(when.Channel, channel) }
		return wanted(m.Channel) || slices.ContainsFunc(m.Channels, wanted)
	}
	return true
}

// Fires reports whether a rule acts on its n-th match; matched is the number, from 1.
func Fires(when model.When, matched int) bool {
	return when.Nth == 0 && when.Every == 0 && matched > when.After ||
		when.Nth > 0 && matched == when.Nth ||
		when.Every > 0 && matched%when.Every == 0
}

// Match reports whether a name matches a glob of a fault. A * also matches slashes.
func Match(glob, name string) bool {
	plain := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(plain.Replace(glob), plain.Replace(name))
	return err == nil && ok || glob == name
}

// end ends the rule and releases the messages that it held.
func (r *rule) end(w *World) {
	if r.over {
		return
	}
	r.over = true
	if r.fired {
		text := r.fault.String()
		if r.awaited != nil && *r.awaited != (model.Condition{}) {
			text += ", which has not happened"
		}
		w.record(&model.Event{Kind: model.KindFaultEnd, Fault: r.index, Text: text})
	}
	held := r.held
	r.held = nil
	for _, f := range held {
		f()
	}
}
