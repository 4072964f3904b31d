package sim

import (
	"path"
	"slices"
	"strings"

	"lockstep/model"
)

// rule is a fault on messages while it runs.
type rule struct {
	index   int // into the faults, from 1
	fault   model.FaultSpec
	matched int
	fired   bool
	over    bool
	held    []func()
}

// plan puts the faults on the schedule. Fault numbers in the record count from
// 1 in the order of the list.
func (w *World) plan(faults []model.FaultSpec) {
	for i, f := range faults {
		n := i + 1
		if f.Kind == model.FaultRule {
			r := &rule{index: n, fault: f}
			w.rules = append(w.rules, r)
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
		if f.Kind == model.FaultServer && f.Server == model.ServerFailover && w.cfg.Replicas == 0 {
			w.server.keep = max(w.server.keep, 1) + f.LoseLast
		}
		w.faultsDue++
		w.sched.add(int64(f.At), classFault, func() {
			w.moved = w.now()
			w.record(model.Event{Kind: model.KindFault, Fault: n, Process: first(f.Processes), Text: w.describe(f)})
			w.strike(f)
			if f.For == 0 {
				w.faultsDue--
				return
			}
			w.sched.add(w.now()+int64(f.For), classFault, func() {
				w.faultsDue--
				w.moved = w.now()
				w.record(model.Event{Kind: model.KindFaultEnd, Fault: n, Process: first(f.Processes), Text: f.String()})
			})
		})
	}
}

func first(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return ""
}

func (w *World) strike(f model.FaultSpec) {
	switch f.Kind {
	case model.FaultCrash:
		w.process(f.Processes[0]).crash()
	case model.FaultPause:
		w.process(f.Processes[0]).pause(int64(f.For))
	case model.FaultPartition:
		for _, name := range f.Processes {
			p := w.process(name)
			w.mu.Lock()
			p.cutUntil = max(p.cutUntil, w.now()+int64(f.For))
			w.mu.Unlock()
		}
	case model.FaultWallClock:
		p := w.process(f.Processes[0])
		w.mu.Lock()
		p.jump += f.Step
		w.mu.Unlock()
	case model.FaultKey:
		for _, k := range w.server.remove(f.Key) {
			if f.KeyDo == "expire" {
				w.record(model.Event{Kind: model.KindExpire, Key: k})
			}
		}
		w.server.snapshot()
		w.server.replicate()
		w.observe(0)
		w.server.planExpiry()
	case model.FaultServer:
		w.strikeServer(f)
	default:
		panic("sim: a fault of unknown kind " + string(f.Kind))
	}
}

func (w *World) strikeServer(f model.FaultSpec) {
	s := w.server
	s.setClock()
	switch f.Server {
	case model.ServerStall:
		w.stallTill = max(w.stallTill, w.now()+int64(f.For))
		return
	case model.ServerFlushScripts:
		s.flushScripts()
		return
	case model.ServerFailover:
		if len(s.replicas) > 0 {
			s.promote(s.candidate())
			break
		}
		s.failover(f.LoseLast)
	case model.ServerRestart:
		if !f.KeepData {
			s.m.FlushAll()
			s.writes++
		}
		s.flushScripts()
		s.resync()
	default:
		panic("sim: a server fault of unknown kind " + string(f.Server))
	}
	for _, c := range w.conns {
		w.sever(c)
	}
	w.observe(0)
	s.planExpiry()
}

func (w *World) partitioned(p *Process) bool { return !w.leaving && p.cutUntil > w.now() }

// meet lets the rules look at a message. pass sends it on with a delay, fail
// answers it with an error; a message that is neither is lost or held.
func (w *World) meet(m *message, dir string, pass func(delay int64), fail func(text string)) {
	w.passage(m, dir, func() { w.meetRules(m, dir, pass, fail) })
}

// passage lets a message go on unless one before it in its pipeline is lost or
// held.
func (w *World) passage(m *message, dir string, on func()) {
	switch p := m.pipe; {
	case p == nil:
		on()
	case m.behindLost(dir):
		w.lost(m, dir, model.LostBehindAnother)
	case p.held[dir] != nil && !p.held[dir].over:
		r := p.held[dir]
		r.held = append(r.held, func() { w.passage(m, dir, on) })
	default:
		on()
	}
}

func (w *World) meetRules(m *message, dir string, pass func(delay int64), fail func(text string)) {
	r := w.rule(m, dir)
	if r == nil {
		pass(0)
		return
	}
	w.record(model.Event{Kind: model.KindHit, Fault: r.index, Process: m.conn.p.cfg.Name, Op: m.op, Msg: m.id, Dir: dir,
		Script: m.cmd.Script, Owners: m.cmd.Owners, Locks: m.cmd.Locks, Text: r.fault.String(), Do: r.fault.Do})
	switch r.fault.Do {
	case "drop":
		w.lost(m, dir, model.LostDropped)
	case "delay":
		pass(int64(r.fault.For))
	case "hold":
		if m.pipe != nil {
			m.pipe.held[dir] = r
		}
		r.held = append(r.held, func() { pass(0) })
	case "reset":
		w.lost(m, dir, model.LostReset)
		w.sever(m.conn)
	case "error":
		fail(r.fault.With)
	}
}

// rule counts the message on every rule that matches it and gives the first
// that wants it.
func (w *World) rule(m *message, dir string) *rule {
	var found *rule
	if len(w.rules) > 0 {
		w.touch(objRules, true) // they count
	}
	for _, r := range w.rules {
		if !r.matches(w, m, dir) {
			continue
		}
		r.matched++
		when := r.fault.When
		fires := when.Nth == 0 && when.Every == 0 ||
			when.Nth > 0 && r.matched == when.Nth ||
			when.Every > 0 && r.matched%when.Every == 0
		if fires && found == nil {
			r.fired = true
			found = r
		}
	}
	return found
}

func (r *rule) matches(w *World, m *message, dir string) bool {
	f, when := r.fault, r.fault.When
	now := w.now()
	if r.over || w.calm || now < int64(f.From) || f.Until != nil && now >= int64(*f.Until) {
		return false
	}
	if when.Process != "" && when.Process != m.conn.p.cfg.Name {
		return false
	}
	if when.Direction != "" && (when.Direction == "request") != (dir == "request") {
		return false
	}
	if when.Script != "" && when.Script != m.cmd.Script {
		return false
	}
	if when.Command != "" && (dir == "push" || when.Command != m.name) {
		return false
	}
	if when.Channel != "" {
		channels := []string{m.ch}
		if name := m.name; strings.HasSuffix(name, "SUBSCRIBE") {
			channels = m.words[1:]
		} else if name == "PUBLISH" || name == "SPUBLISH" {
			channels = m.words[1:2]
		}
		if !slices.ContainsFunc(channels, func(ch string) bool {
			return ch != "" && glob(when.Channel, ch)
		}) {
			return false
		}
	}
	return true
}

// glob matches as Redis does: a * passes over slashes too.
func glob(pattern, name string) bool {
	plain := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(plain.Replace(pattern), plain.Replace(name))
	return err == nil && ok || pattern == name
}

// end lets go what the rule held.
func (r *rule) end(w *World) {
	if r.over {
		return
	}
	r.over = true
	if r.fired {
		w.record(model.Event{Kind: model.KindFaultEnd, Fault: r.index, Text: r.fault.String()})
	}
	held := r.held
	r.held = nil
	for _, f := range held {
		f()
	}
}
