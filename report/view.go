package report

import (
	"cmp"
	"fmt"
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
		x := bar{Op: o.Op, Lane: b.thread(o.Event), Action: string(o.Action), Lock: o.Lock, Outcome: string(o.Answer()), FromNs: o.AtNs, ToNs: -1, Open: o.Return == nil}
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
	case model.KindSend:
		b.request(e)
	case model.KindPublish:
		b.publication(e)
	case model.KindExec, model.KindDeliver, model.KindLost, model.KindHit:
		b.message(e)
	case model.KindState:
		b.state(e)
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
			b.add(e, -1, "the run is ended after "+sentence.Limit(e.Limit, e.AtNs))
			break
		}
		b.add(e, -1, "DEFECT: "+e.Text)
	}
}

// state adds a change of a lock.
func (b *builder) state(e *model.Event) {
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
	b.v.Truth = append(b.v.Truth, h)
	x := b.add(e, b.server([]string{e.Lock}), held(s))
	if c := b.change(e.Lock); c.Started() || c.Ended() {
		x.turn = true
		if call := c.Call(); call != nil {
			x.by = call.Op
		}
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
