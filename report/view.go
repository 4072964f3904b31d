package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/report/sentence"
)

// builder makes the view of a run. It walks through the events of the record, and then
// adds the facts that only the whole run shows.
type builder struct {
	run      Run
	trace    *trace.Run
	v        *view
	lanes    map[string]int // by name
	names    map[string]int // -> index of v.Names
	msgs     map[int]int    // number -> index of v.Messages
	spoken   map[string]int64
	channels map[string][]string       // channel -> the locks that it belongs to
	hears    map[string]map[int]string // channel -> connection -> process
	ranOut   map[int64]bool            // the instants at which a key ran out
	changes  map[string]int            // by lock, the changes that the record had so far
	using    map[string]int            // thread and resource -> index of v.Uses
	index    int                       // in the record, of the event that is added
}

func build(r Run) *view {
	b := read(r)
	b.fold()
	b.v.Decimals = clockOf(b.v.Events)
	b.moments()
	b.v.placeAll()
	return b.v
}

// read makes the view of a run in which nothing is folded.
func read(r Run) *builder {
	b := &builder{
		run: r, trace: trace.New(r.Record), lanes: map[string]int{}, names: map[string]int{}, msgs: map[int]int{},
		spoken: map[string]int64{}, channels: map[string][]string{}, hears: map[string]map[int]string{}, using: map[string]int{}, changes: map[string]int{}, ranOut: map[int64]bool{},
	}
	b.v = &view{Scenario: r.Scenario, Lock: r.Lock, Verdict: r.Verdict, Total: len(r.Record.Events), Blame: r.Blame}
	b.plan()
	b.learnChannels()
	b.callsAndFaults()
	for i := range r.Record.Events {
		b.index = i
		b.event(&r.Record.Events[i])
	}
	b.close()
	b.findings()
	return b
}

// plan makes the lanes. Each process has a lane per thread and a lane for its watchdog.
// The lanes of the server follow, one per lock.
func (b *builder) plan() {
	b.v.Locks = b.trace.Locks
	alone := map[string]bool{}
	for _, m := range b.trace.Commands {
		alone[m.Process] = alone[m.Process] || m.Op == 0
	}
	add := func(l lane) {
		b.lanes[l.Name] = len(b.v.Lanes)
		b.v.Lanes = append(b.v.Lanes, l)
	}
	for _, p := range b.run.Record.Params.Processes {
		if p.Skew >= time.Millisecond {
			b.v.clocks = append(b.v.clocks, fmt.Sprintf("the wall clock of %s is up to %s wrong", p.Name, p.Skew.Round(time.Millisecond)))
		}
		for n := 1; n <= p.Threads; n++ {
			add(lane{Name: model.ThreadName(p.Name, n), Process: p.Name, Kind: laneThread})
		}
		if !b.run.Record.Params.NoWatchdog || alone[p.Name] {
			add(lane{Name: p.Name + " watchdog", Process: p.Name, Kind: laneWatchdog})
		}
	}
	for _, l := range b.v.Locks {
		add(lane{Name: "server: " + l, Kind: laneServer, Lock: l})
	}
	if len(b.v.Locks) == 0 {
		add(lane{Name: "server", Kind: laneServer})
	}
}

// callsAndFaults makes the bars of the calls and of the faults.
func (b *builder) callsAndFaults() {
	for _, o := range b.trace.Calls {
		x := bar{Op: o.Op, Lane: b.thread(o.Event), Action: string(o.Action), Lock: o.Lock, Outcome: string(o.Outcome), FromNs: o.AtNs, ToNs: -1, Open: o.Return == nil}
		if o.Outcome != "" {
			x.ToNs = o.ReturnedNs()
		}
		b.v.Ops = append(b.v.Ops, x)
	}
	for _, f := range b.trace.Faults {
		b.v.Faults = append(b.v.Faults, fault{Text: f.Text, Processes: f.Spec.Processes, FromNs: f.FromNs, ToNs: f.ToNs})
	}
}

func (b *builder) thread(e *model.Event) int {
	if i, ok := b.lanes[e.ThreadName()]; ok {
		return i
	}
	return -1
}

// server returns the lane of the first of these locks.
func (b *builder) server(locks []string) int {
	for _, l := range locks {
		if i, ok := b.lanes["server: "+l]; ok {
			return i
		}
	}
	return slices.IndexFunc(b.v.Lanes, func(l lane) bool { return l.Kind == laneServer })
}

// addressed returns the lane of the server that a command goes to.
func (b *builder) addressed(e *model.Event) int {
	if e.Listens != model.ListensNot && len(e.Channels) > 0 {
		return b.hearing(e.Channels[0])
	}
	return b.server(e.Locks)
}

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

// change returns the next change of a lock, which the record has next.
func (b *builder) change(lock string) *trace.Change {
	c := b.trace.Changes(lock)[b.changes[lock]]
	b.changes[lock]++
	return c
}

// changed reports whether a message changed the server's state of a lock.
func (b *builder) changed(m *message) bool {
	sent := b.trace.Command(m.ID)
	return sent != nil && len(sent.Changes) > 0
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

func (b *builder) add(e *model.Event, lane int, text string) *event {
	locks := e.Locks
	if e.Lock != "" {
		locks = []string{e.Lock}
	}
	process := e.Process
	if lane >= 0 && process == "" {
		process = b.v.Lanes[lane].Process
	}
	b.v.Events = append(b.v.Events, event{AtNs: e.AtNs, Kind: string(e.Kind), Lane: lane, Process: process, Locks: locks, Op: e.Op, Msg: e.Msg, Text: Clip(text, textMost), index: b.index})
	return &b.v.Events[len(b.v.Events)-1]
}

// returned says how a call ended: the outcome, or the error of a call that failed or does not know what it did.
func returned(e *model.Event) string {
	switch {
	case e.Outcome == model.Unknown && e.Error != "":
		return e.Error // lockimpl.ErrUnknownOutcome says that the outcome is unknown, and what it wraps says why
	case e.Outcome == model.Failed && e.Error != "":
		return fmt.Sprintf("%s: %s", e.Outcome, e.Error)
	}
	return string(e.Outcome)
}

func (b *builder) event(e *model.Event) {
	v := b.v
	switch e.Kind {
	case model.KindInvoke:
		b.add(e, b.thread(e), fmt.Sprintf("calls %s %s%s", e.Action, e.Lock, terms(e)))
	case model.KindReturn:
		text := fmt.Sprintf("%s %s: %s", e.Action, e.Lock, returned(e))
		if e.Token > 0 {
			text += fmt.Sprintf(", token %d", e.Token)
		}
		b.add(e, b.thread(e), text)
	case model.KindSend, model.KindExec, model.KindDeliver, model.KindLost, model.KindHit, model.KindPublish:
		b.traffic(e)
	case model.KindState:
		s := e.State
		h := hold{Lock: e.Lock, AtNs: e.AtNs, Owner: s.Owner, Count: s.Count, ExpiresMs: s.ExpiresMs}
		for _, who := range s.Queue {
			h.Queue = append(h.Queue, b.name(who))
			due, ok := s.Deadlines[who]
			if !ok {
				due = -1
			}
			if s.Deadlines != nil {
				h.DueMs = append(h.DueMs, due)
			}
		}
		v.Truth = append(v.Truth, h)
		x := b.add(e, b.server([]string{e.Lock}), held(s))
		if c := b.change(e.Lock); c.Started() || c.Ended() {
			x.turn = true
			if call := c.Call(); call != nil {
				x.by = call.Op
			}
		}
	case model.KindExpire:
		b.ranOut[e.AtNs] = true
		b.add(e, b.server(nil), "key "+e.Key+" ran out")
	case model.KindFault:
		spec := b.run.Record.Params.Fault(e.Fault)
		if spec.Kind == model.FaultCrash {
			v.Gone = append(v.Gone, gone{e.Process, e.AtNs, goneDied})
		}
		b.deafen(e.AtNs, func(_ int, process string) bool {
			return spec.EndsConnections() || spec.Kind == model.FaultCrash && spec.Names(process)
		})
		b.add(e, -1, "fault: "+e.Text)
	case model.KindFaultEnd:
		b.add(e, -1, "over: "+e.Text)
	case model.KindUse:
		b.use(e)
	case model.KindResource:
		if e.Phase == "refused" {
			b.add(e, b.thread(e), e.Key+" refuses "+e.Text)
			break
		}
		b.add(e, b.thread(e), fmt.Sprintf("%ss %s: %d", e.Phase, e.Key, e.Value))
	case model.KindCheck:
		if !e.Met {
			b.add(e, b.thread(e), "NOT MET: "+e.Text).check = e.Check
		}
	case model.KindCalm:
		b.add(e, -1, "calm: every fault is over")
	case model.KindLeave:
		b.add(e, -1, "all leave")
	case model.KindClose:
		v.Gone = append(v.Gone, gone{e.Process, e.AtNs, goneClosed})
		b.deafen(e.AtNs, func(_ int, process string) bool { return process == e.Process })
		b.add(e, b.client(e.Process, 0, ""), "client closed")
	case model.KindTold:
		b.add(e, b.thread(e), "learns that its hold on "+e.Lock+" is gone")
	case model.KindLeft:
		what := cmp.Or(e.Key, e.Channel, e.Text)
		if e.Goroutine != nil {
			what = sentence.Goroutine(e.Goroutine)
		}
		b.add(e, b.server(nil), "left over: "+what)
	case model.KindUnsimulated:
		b.add(e, b.server(nil), "does not simulate "+e.Command)
	case model.KindDefect:
		if e.Limit > 0 {
			b.add(e, -1, fmt.Sprintf("the run is ended after %d events", e.Limit))
			break
		}
		b.add(e, -1, "DEFECT: "+e.Text)
	}
}

// name returns the index of a name in the list of names. A queue is long and changes
// often, so the view keeps a queue as indices.
func (b *builder) name(who string) int {
	i, ok := b.names[who]
	if !ok {
		i = len(b.v.Names)
		b.names[who] = i
		b.v.Names = append(b.v.Names, who)
	}
	return i
}

func (b *builder) use(e *model.Event) {
	key := fmt.Sprint(e.ThreadName(), " ", e.Key)
	switch e.Phase {
	case "start":
		b.using[key] = len(b.v.Uses)
		b.v.Uses = append(b.v.Uses, use{Lane: b.thread(e), Name: e.Key, FromNs: e.AtNs, ToNs: -1})
		b.add(e, b.thread(e), "begins to use "+e.Key)
	case "interrupt":
		b.add(e, b.thread(e), "interrupts "+e.Text)
	default:
		if i, ok := b.using[key]; ok {
			b.v.Uses[i].ToNs = e.AtNs
			delete(b.using, key)
		}
		what := "ends its use of "
		switch e.Phase {
		case "sold_out":
			what = "finds too little of "
		case "refused":
			what = "gives up its use of "
		}
		b.add(e, b.thread(e), what+e.Key)
	}
}

func (b *builder) traffic(e *model.Event) {
	v := b.v
	script, owners, locks := e.Script, e.Owners, e.Locks
	if m := b.trace.Command(e.Msg); m != nil {
		script, owners, locks = m.Script, m.Owners, m.Locks // by the effect of the command, not by its sender
	}
	command := e.Command
	if says := cmp.Or(e.Says, strings.Join(e.Asked, " ")); says != "" {
		command = Clip(says, 60)
	}
	name := cmp.Or(string(script), command)
	if script != "" && command != "" && !e.Program {
		name = string(script) + " (" + command + ")"
	}
	switch {
	case e.Kind == model.KindSend:
		b.msgs[e.Msg] = len(v.Messages)
		v.Messages = append(v.Messages, message{ID: e.Msg, Lane: b.client(e.Process, e.Op, script), Server: b.addressed(e), Name: Clip(name, 40), Locks: locks, Op: e.Op,
			Sent: e.AtNs, Exec: -1, Done: -1, Lost: -1, segment: e.Command == model.SegmentCommand})
		b.add(e, v.Messages[len(v.Messages)-1].Lane, "sends "+name+about(e)).quiet = true
		return
	case e.Kind == model.KindPublish:
		b.spoken[e.Channel] = e.AtNs
		to := strings.Join(b.listeners(e.Channel), ", ")
		b.add(e, b.hearing(e.Channel), fmt.Sprintf("publishes %q on %s, to %s", e.Text, e.Channel, cmp.Or(to, "nobody")))
		return
	}
	i, known := b.msgs[e.Msg]
	if !known {
		if e.Dir != "push" {
			return
		}
		i = len(v.Messages)
		b.msgs[e.Msg] = i
		sent, ok := b.spoken[e.Channel]
		if !ok {
			sent = e.AtNs
		}
		v.Messages = append(v.Messages, message{ID: e.Msg, Lane: b.client(e.Process, 0, ""), Server: b.hearing(e.Channel), Name: "wake-up", Sent: sent, Exec: sent, Done: -1, Lost: -1, Push: true})
	}
	m := &v.Messages[i]
	switch e.Kind {
	case model.KindExec:
		if m.Exec < 0 {
			m.Exec = e.AtNs
		}
		m.Reply = Clip(e.Reply, 60)
		b.listen(e)
		who := strings.Join(owners, ", ")
		if who == "" {
			who = e.Process
		}
		text := name + " of " + who + about(e)
		if size := strings.Join(e.Args, " "); command == model.SegmentCommand && size != "" {
			text = fmt.Sprintf("%s (%s) of %s", cmp.Or(string(script), command), size, who)
		}
		if e.Reply != "" {
			text += " → " + e.Reply
		}
		b.add(e, m.Server, text).quiet = script == "" && e.Listens != model.ListensNot
	case model.KindDeliver:
		m.Done = e.AtNs
		if m.Push && e.Channel == "" { // a segment that answers none
			b.add(e, m.Lane, "hears the server")
			return
		}
		if m.Push {
			b.add(e, m.Lane, "hears the wake-up on "+e.Channel)
			return
		}
		b.add(e, m.Lane, fmt.Sprintf("answer of %s: %s", m.Name, m.Reply)).quiet = true
	case model.KindLost:
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
	case model.KindHit:
		m.Hit = Clip(e.Text, 80)
		b.add(e, m.Lane, fmt.Sprintf("fault met the %s of %s: %s", e.Dir, m.Name, e.Text))
	}
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

func terms(e *model.Event) string {
	s := ""
	if e.WaitNs > 0 {
		s += ", waits " + at(e.WaitNs)
	}
	if e.LeaseNs > 0 {
		s += ", lease " + at(e.LeaseNs)
	}
	return s
}

// at formats an instant in seconds.
func at(ns int64) string { return model.At(ns) }

func held(s *model.LockState) string {
	text := "free"
	if s.Held() {
		text = fmt.Sprintf("held by %s ×%d, ", s.Owner, s.Count)
		if s.ExpiresMs < 0 {
			text += "without end"
		} else {
			text += "until " + at(s.ExpiresMs*1e6)
		}
	} else if s.ClosedMs > 0 {
		text = "closed until " + at(s.ClosedMs*1e6)
	}
	if len(s.Queue) > 0 {
		text += "; queue " + strings.Join(s.Queue, ", ")
	}
	return text
}

// close ends the bars that are still open, and adds beliefs and overlaps.
func (b *builder) close() {
	v, events := b.v, b.run.Record.Events
	if len(events) > 0 {
		v.FromNs, v.EndNs = events[0].AtNs, events[len(events)-1].AtNs
	}
	for i := range v.Ops {
		if o := &v.Ops[i]; o.ToNs < 0 {
			o.ToNs = v.EndNs
			for _, g := range v.Gone {
				if o.Lane >= 0 && g.Process == v.Lanes[o.Lane].Process && g.AtNs >= o.FromNs {
					o.ToNs = min(o.ToNs, g.AtNs)
				}
			}
		}
	}
	for i := range v.Uses {
		if v.Uses[i].ToNs < 0 {
			v.Uses[i].ToNs = v.EndNs
		}
	}
	next := map[string]int{}
	for i := range v.Truth {
		t := &v.Truth[i]
		t.ToNs = v.EndNs
		if j, ok := next[t.Lock]; ok {
			v.Truth[j].ToNs = t.AtNs
		}
		next[t.Lock] = i
	}
	for _, x := range judges.Beliefs(b.trace) {
		l, ok := b.lanes[x.Thread]
		if !ok {
			continue
		}
		v.Beliefs = append(v.Beliefs, band{Lane: l, Who: x.Thread, Lock: x.Lock, FromNs: x.FromNs, ToNs: x.ToNs, LeaseNs: x.LeaseNs, Overstayed: x.Overstayed})
	}
	v.Overlaps = overlaps(v.Beliefs)
}

// overlaps returns the times in which two threads believe that they hold the same lock.
func overlaps(beliefs []band) []overlap {
	byStart := slices.Clone(beliefs)
	slices.SortStableFunc(byStart, func(a, b band) int {
		return cmp.Or(cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.FromNs, b.FromNs))
	})
	var out []overlap
	var open []band // the beliefs in holds of the same lock that may still last
	for _, x := range byStart {
		open = slices.DeleteFunc(open, func(o band) bool { return o.Lock != x.Lock || o.ToNs <= x.FromNs })
		for _, o := range open {
			if o.Who != x.Who {
				out = append(out, overlap{Lock: x.Lock, Who: []string{o.Who, x.Who}, FromNs: x.FromNs, ToNs: min(o.ToNs, x.ToNs)})
			}
		}
		open = append(open, x)
	}
	return out
}

func (b *builder) findings() {
	for _, f := range byWeight(b.run.Findings) {
		x := finding{Judge: f.Judge, Class: classOf(f), Why: sentence.Finding(f), AtNs: f.AtNs, Event: -1, Ops: []int{}, Locks: []string{}, check: f.Check}
		for _, ref := range f.Ops {
			for _, o := range b.v.Ops {
				if b.v.Lanes[max(o.Lane, 0)].Name == model.ThreadName(ref.Process, ref.Thread) && o.FromNs == ref.CallNs && o.Action == ref.Op {
					x.Ops = append(x.Ops, o.Op)
					x.Locks = append(x.Locks, o.Lock)
				}
			}
		}
		x.throughNs = f.AtNs
		if _, ok := f.Detail.(judges.Unplaceable); ok {
			b.addAnswer(&x)
		}
		if _, ok := f.Detail.(judges.Traffic); ok {
			b.addCounted(&x)
		}
		x.Excuse = sentence.NotPromised(f)
		slices.Sort(x.Locks)
		x.Locks = slices.Compact(x.Locks)
		if len(x.Locks) == 0 && len(b.v.Locks) == 1 {
			x.Locks = b.v.Locks
		}
		b.v.Findings = append(b.v.Findings, x)
	}
}

// addAnswer adds to a finding about an answer the instant at which the last call of the finding returned.
func (b *builder) addAnswer(x *finding) {
	for _, o := range b.v.Ops {
		if slices.Contains(x.Ops, o.Op) {
			x.throughNs = max(x.throughNs, o.ToNs)
		}
	}
}

// addCounted marks the messages that a finding of traffic counts, and adds to the finding the instant at
// which the server ran the last of them.
func (b *builder) addCounted(x *finding) {
	for _, op := range x.Ops {
		for _, c := range judges.Counted(b.trace, b.trace.Call(op), x.AtNs) {
			m := &b.v.Messages[b.msgs[c.Msg]]
			m.counted = true
			x.throughNs = max(x.throughNs, m.Exec)
		}
	}
}

// place returns the index of the line at which the list shows a finding. Among the lines
// at the finding's instant, place prefers the return of a call that the finding names,
// then the want that was not met, then a change of the lock, then the last line. If there
// is no line at that instant, place returns the last line before it.
func (v *view) place(f finding) int {
	end, _ := slices.BinarySearchFunc(v.Events, f.AtNs+1, func(e event, t int64) int { return cmp.Compare(e.AtNs, t) })
	best, rank := end-1, 0
	for i := end - 1; i >= 0 && v.Events[i].AtNs == f.AtNs; i-- {
		e, r := &v.Events[i], 0
		switch {
		case e.Kind == string(model.KindReturn) && slices.Contains(f.Ops, e.Op):
			r = 3
		case e.check != nil && e.check == f.check:
			r = 2
		case e.Kind == string(model.KindState):
			r = 1
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

// placeAll places the findings. A finding that was cut away has no line.
func (v *view) placeAll() {
	for i := range v.Findings {
		f := &v.Findings[i]
		f.Event = v.place(*f)
		for _, g := range v.Cuts {
			if g.FromNs < f.AtNs && f.AtNs < g.ToNs {
				f.Event = -1
			}
		}
	}
}

// cut keeps as many lines around the findings as a browser can show.
func (v *view) cut() {
	of := map[string]int{}
	all := len(v.Findings)
	v.Findings = slices.DeleteFunc(v.Findings, func(f finding) bool {
		of[f.Judge]++
		return of[f.Judge] > findingsMost
	})
	v.More = all - len(v.Findings)
	v.Overlaps = v.Overlaps[:min(len(v.Overlaps), overlapsMost)]
	if len(v.Events) <= eventsMost {
		return
	}
	// The lines before a finding explain most of it.
	around := []int{0}
	for _, f := range v.Findings[:min(len(v.Findings), 8)] {
		if f.Event >= 0 {
			around = append(around, f.Event)
		}
	}
	keep := make([]bool, len(v.Events))
	each := eventsMost / len(around)
	for _, i := range around {
		for j := max(0, i-each*3/4); j < min(len(v.Events), i+each/4); j++ {
			keep[j] = true
		}
	}
	var events []event
	last := int64(math.MinInt64)
	left := 0
	for i, e := range v.Events {
		if !keep[i] {
			left++
			continue
		}
		if left > 0 {
			v.Cuts = append(v.Cuts, gap{FromNs: max(last, v.FromNs), ToNs: e.AtNs, Events: left})
			v.Left += left
			left = 0
		}
		last = e.AtNs
		events = append(events, e)
	}
	if left > 0 {
		v.Cuts = append(v.Cuts, gap{FromNs: last, ToNs: v.EndNs + 1, Events: left})
		v.Left += left
	}
	v.Events = events
	hidden := func(from, to int64) bool {
		return slices.ContainsFunc(v.Cuts, func(g gap) bool { return g.FromNs < from && to < g.ToNs })
	}
	v.Ops = slices.DeleteFunc(v.Ops, func(o bar) bool { return hidden(o.FromNs, o.ToNs) })
	v.Beliefs = slices.DeleteFunc(v.Beliefs, func(x band) bool { return hidden(x.FromNs, x.ToNs) })
	v.Overlaps = slices.DeleteFunc(v.Overlaps, func(x overlap) bool { return hidden(x.FromNs, x.ToNs) })
	v.Truth = slices.DeleteFunc(v.Truth, func(x hold) bool { return hidden(x.AtNs, x.ToNs) })
	v.Uses = slices.DeleteFunc(v.Uses, func(x use) bool { return hidden(x.FromNs, x.ToNs) })
	v.Messages = slices.DeleteFunc(v.Messages, func(m message) bool { return hidden(m.Sent, max(m.Sent, m.Exec, m.Done, m.Lost)) })
	v.Subs = slices.DeleteFunc(v.Subs, func(x audience) bool { return hidden(x.AtNs, x.AtNs) })
	v.Faults = slices.DeleteFunc(v.Faults, func(x fault) bool { return hidden(x.FromNs, x.ToNs) })
	v.placeAll()
}
