package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lockstep/model"
)

// The processes of a trace beside those of the run.
const (
	traceOfRun    = "run"    // faults, findings, and times with two owners
	traceOfServer = "server" // the server of the locks, or all of its members
)

// traceBrief is the length of a slice that shows an instant, in nanoseconds. A viewer draws a flow from a
// slice to a slice, so the two ends of a message are slices.
const traceBrief = 1

// micros is a time in nanoseconds, which a trace has in microseconds.
type micros int64

func (t micros) MarshalJSON() ([]byte, error) {
	text := fmt.Sprintf("%d.%03d", t/1000, t%1000)
	return []byte(strings.TrimSuffix(text, ".000")), nil
}

// A traceEvent is an event of the Trace Event Format.
type traceEvent struct {
	Phase    string         `json:"ph"` // X: a slice; i: an instant; s and f: the ends of a flow; M: a name
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	AtNs     micros         `json:"ts"`
	LengthNs *micros        `json:"dur,omitempty"` // of a slice
	Process  int            `json:"pid"`
	Track    int            `json:"tid"`
	Flow     int            `json:"id,omitempty"`
	Binds    string         `json:"bp,omitempty"` // e: a flow ends in the slice around its instant
	Scope    string         `json:"s,omitempty"`  // of an instant
	Args     map[string]any `json:"args,omitempty"`

	// hop sorts the events of one instant: a request is sent before it runs, and runs before its answer
	// arrives.
	hop int
}

// A traceSlice is a slice of a track with the slices in it, or an instant.
type traceSlice struct {
	name, category string
	fromNs, toNs   int64
	args           map[string]any
	parts          []traceSlice // they do not overlap
	instant        bool
	begins, ends   int // flows; 0: none
	hop            int
}

// traceTracks has the slices of a process by the name of their track. A track with slices that overlap is
// drawn as several.
type traceTracks struct {
	process string
	names   []string
	slices  map[string][]traceSlice
}

func (t *traceTracks) add(track string, s traceSlice) {
	if t.slices[track] == nil {
		t.names = append(t.names, track)
	}
	t.slices[track] = append(t.slices[track], s)
}

// rows distributes the slices of a track to as few rows as have no slices that overlap.
func (t *traceTracks) rows(track string) (rows [][]traceSlice) {
	all := slices.Clone(t.slices[track])
	slices.SortStableFunc(all, func(a, b traceSlice) int { return cmp.Compare(a.fromNs, b.fromNs) })
	for _, s := range all {
		i := slices.IndexFunc(rows, func(row []traceSlice) bool { return row[len(row)-1].toNs <= s.fromNs })
		if i < 0 {
			i, rows = len(rows), append(rows, nil)
		}
		rows[i] = append(rows[i], s)
	}
	return rows
}

// Perfetto returns a run in the Trace Event Format, which ui.perfetto.dev opens.
func Perfetto(r Run) string {
	v := read(r).v
	var processes []*traceTracks
	of := func(process string) *traceTracks {
		i := slices.IndexFunc(processes, func(t *traceTracks) bool { return t.process == process })
		if i < 0 {
			i = len(processes)
			processes = append(processes, &traceTracks{process: process, slices: map[string][]traceSlice{}})
		}
		return processes[i]
	}
	run := of(traceOfRun)
	lanes := make([]*traceTracks, len(v.Lanes))
	for i, l := range v.Lanes {
		process := l.Process
		if l.Kind == laneServer {
			process = traceOfServer
		}
		lanes[i] = of(process)
	}
	v.traceCalls(lanes)
	v.traceBeliefs(lanes)
	v.traceMessages(lanes)
	v.traceHolds(of(traceOfServer))
	v.traceRun(run, of)
	return writeTrace(r, processes)
}

// traceCalls adds the calls of threads, and the times in which a thread uses a resource.
func (v *view) traceCalls(lanes []*traceTracks) {
	told := map[int]map[string]any{}
	for _, e := range v.Events {
		if e.Kind != string(model.KindInvoke) && e.Kind != string(model.KindReturn) {
			continue
		}
		if told[e.Op] == nil {
			told[e.Op] = map[string]any{}
		}
		told[e.Op][e.Kind] = e.Text
	}
	for _, o := range v.Ops {
		if o.Lane < 0 {
			continue
		}
		args := told[o.Op]
		args["call"], args["outcome"] = o.Op, cmp.Or(o.Outcome, "it never returned")
		lanes[o.Lane].add(v.Lanes[o.Lane].Name, traceSlice{name: o.Action + " " + o.Lock, category: "call", fromNs: o.FromNs, toNs: o.ToNs, args: args})
	}
	for _, u := range v.Uses {
		if u.Lane >= 0 {
			lanes[u.Lane].add(v.Lanes[u.Lane].Name+" uses", traceSlice{name: u.Name, category: "use", fromNs: u.FromNs, toNs: u.ToNs})
		}
	}
}

// traceBeliefs adds the times in which a thread believes to hold a lock.
func (v *view) traceBeliefs(lanes []*traceTracks) {
	for _, x := range v.Beliefs {
		args := map[string]any{}
		if x.LeaseNs > 0 {
			args["lease"] = at(x.LeaseNs)
		}
		if x.Overstayed {
			args["overstayed"] = true
		}
		lanes[x.Lane].add(x.Who+" believes", traceSlice{name: "holds " + x.Lock, category: "belief", fromNs: x.FromNs, toNs: x.ToNs, args: args})
	}
}

// traceMessages adds both ends of each message, with a flow for each direction in which it arrived.
func (v *view) traceMessages(lanes []*traceTracks) {
	for i := range v.Messages {
		m := &v.Messages[i]
		// A message has the number ID; its request is a flow with an odd number, and its answer with an even one.
		request, answer := 2*m.ID-1, 2*m.ID
		asked, answered := m.Exec >= 0 && m.Lane >= 0 && !m.Push, m.Exec >= 0 && m.Lane >= 0 && m.Done >= 0
		if m.Exec >= 0 {
			s := m.slice(m.Name, m.Exec, 1)
			if asked {
				s.ends = request
			}
			if answered {
				s.begins = answer
			}
			lanes[m.Server].add(cmp.Or(v.Lanes[m.Server].Lock, traceOfServer)+" commands", s)
		}
		if m.Lane < 0 {
			continue
		}
		var parts []traceSlice
		if !m.Push {
			s := m.slice("sends "+m.Name, m.Sent, 0)
			if asked {
				s.begins = request
			}
			parts = append(parts, s)
		}
		whole := m.slice(m.Name, m.Sent, 0)
		switch {
		case answered:
			s := m.slice("answer: "+m.Reply, m.Done, 2)
			if m.Push {
				s.name = "hears it"
			}
			s.ends = answer
			parts = append(parts, s)
		case m.Lost >= 0 && m.Why == model.LostUnwanted:
			parts = append(parts, m.slice("nobody waits for the "+m.Dir, m.Lost, 2))
		case m.Lost >= 0:
			whole.name += ", lost"
			parts = append(parts, m.slice(fmt.Sprintf("%s lost: %s", m.Dir, m.Why), m.Lost, 2))
		case m.Exec < 0:
			whole.name, whole.toNs = whole.name+", not executed", max(v.EndNs, whole.toNs)
		}
		if len(parts) == 0 {
			continue // a published message that is still on its way
		}
		for j := range parts {
			if j > 0 { // at the instant at which the message was sent
				parts[j].fromNs = max(parts[j].fromNs, parts[j-1].toNs)
				parts[j].toNs = parts[j].fromNs + traceBrief
			}
			whole.toNs = max(whole.toNs, parts[j].toNs)
		}
		whole.parts = parts
		lanes[m.Lane].add(v.Lanes[m.Lane].Name+" messages", whole)
	}
}

// slice returns the slice of an instant of a message.
func (m *message) slice(name string, at int64, hop int) traceSlice {
	args := map[string]any{"message": m.ID}
	for key, value := range map[string]string{"reply": m.Reply, "fault": m.Hit, "lost": string(m.Why)} {
		if value != "" {
			args[key] = value
		}
	}
	if m.Op > 0 {
		args["call"] = m.Op
	}
	return traceSlice{name: name, category: "message", fromNs: at, toNs: at + traceBrief, args: args, hop: hop}
}

// traceHolds adds the holds of each lock on the server, each with the states that it had.
func (v *view) traceHolds(server *traceTracks) {
	holds := map[string][]traceSlice{}
	for _, t := range v.Truth {
		if t.Owner == "" {
			continue
		}
		until := "without end"
		if t.ExpiresMs >= 0 {
			until = "until " + at(t.ExpiresMs*1e6)
		}
		state := traceSlice{name: fmt.Sprintf("×%d, %s", t.Count, until), category: "hold", fromNs: t.AtNs, toNs: t.ToNs, args: map[string]any{"owner": t.Owner}}
		if len(t.Queue) > 0 {
			var queue []string
			for _, n := range t.Queue {
				queue = append(queue, v.Names[n])
			}
			state.args["queue"] = queue
		}
		all := holds[t.Lock]
		if n := len(all); n == 0 || all[n-1].name != t.Owner || all[n-1].toNs != t.AtNs {
			all = append(all, traceSlice{name: t.Owner, category: "hold", fromNs: t.AtNs, args: map[string]any{"owner": t.Owner}})
		}
		last := &all[len(all)-1]
		last.toNs, last.parts = t.ToNs, append(last.parts, state)
		holds[t.Lock] = all
	}
	for _, l := range v.Locks {
		for _, s := range holds[l] {
			server.add(l+" held by", s)
		}
	}
}

// traceRun adds the faults, the findings, the times with two owners, and the ends of processes.
func (v *view) traceRun(run *traceTracks, of func(string) *traceTracks) {
	for _, f := range v.Findings {
		args := map[string]any{"class": f.Class, "why": f.Why}
		if f.Excuse != "" {
			args["excuse"] = f.Excuse
		}
		run.add("findings", traceSlice{name: f.Judge, category: "finding", fromNs: f.AtNs, toNs: f.AtNs, args: args, instant: true})
	}
	for _, o := range v.Overlaps {
		run.add("two owners", traceSlice{name: o.Lock + ": " + strings.Join(o.Who, " and "), category: "overlap", fromNs: o.FromNs, toNs: o.ToNs})
	}
	for _, f := range v.Faults {
		run.add("faults", traceSlice{name: f.Text, category: "fault", fromNs: f.FromNs, toNs: f.ToNs, instant: f.FromNs == f.ToNs})
	}
	for _, e := range v.Events {
		if e.Kind == string(model.KindHit) {
			run.add("faults", traceSlice{name: e.Text, category: "fault", fromNs: e.AtNs, toNs: e.AtNs, args: map[string]any{"message": e.Msg}, instant: true})
		}
	}
	for _, g := range v.Gone {
		of(g.Process).add(g.Process+" ends", traceSlice{name: g.How, category: "end", fromNs: g.AtNs, toNs: g.AtNs, instant: true})
	}
}

// writeTrace writes the names of the tracks, and then all events in order of time.
func writeTrace(r Run, processes []*traceTracks) string {
	var names, events []traceEvent
	name := func(phase string, process, track int, key string, value any) {
		names = append(names, traceEvent{Phase: "M", Name: phase, Process: process, Track: track, Args: map[string]any{key: value}})
	}
	track := len(processes) // viewers take the track with the number of its process for its main thread
	for i, t := range processes {
		process := i + 1
		name("process_name", process, 0, "name", t.process)
		name("process_sort_index", process, 0, "sort_index", i)
		slices.Sort(t.names)
		for _, n := range t.names {
			for j, row := range t.rows(n) {
				track++
				shown := n
				if j > 0 {
					shown = fmt.Sprintf("%s (%d)", n, j+1)
				}
				name("thread_name", process, track, "name", shown)
				name("thread_sort_index", process, track, "sort_index", track)
				for _, s := range row {
					events = s.events(events, process, track)
				}
			}
		}
	}
	slices.SortStableFunc(events, func(a, b traceEvent) int {
		return cmp.Or(cmp.Compare(a.AtNs, b.AtNs), cmp.Compare(a.hop, b.hop))
	})
	var b bytes.Buffer
	line := func(value any) []byte {
		b.Reset()
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			panic(err) // only texts and numbers
		}
		return bytes.TrimSpace(b.Bytes())
	}
	var out strings.Builder
	fmt.Fprintf(&out, "{\"displayTimeUnit\":\"ms\",\n\"otherData\":%s,\n\"traceEvents\":[", line(map[string]any{
		"scenario": r.Scenario, "lock": r.Lock, "seed": fmt.Sprint(r.Seed), "verdict": r.Verdict, "replay": r.Replay, "digest": r.Digest}))
	for i, e := range slices.Concat(names, events) {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "\n%s", line(e))
	}
	out.WriteString("\n]}\n")
	return out.String()
}

// events appends the events of a slice.
func (s *traceSlice) events(to []traceEvent, process, track int) []traceEvent {
	e := traceEvent{Name: s.name, Category: s.category, AtNs: micros(s.fromNs), Process: process, Track: track, hop: s.hop}
	flow := func(phase, binds string, number int) {
		if number > 0 {
			f := e
			f.Phase, f.Name, f.Flow, f.Binds = phase, "message", number, binds
			to = append(to, f)
		}
	}
	whole := e
	whole.Args = s.args
	if s.instant {
		whole.Phase, whole.Scope = "i", "t"
		return append(to, whole)
	}
	length := micros(s.toNs - s.fromNs)
	whole.Phase, whole.LengthNs = "X", &length
	to = append(to, whole)
	flow("f", "e", s.ends)
	flow("s", "", s.begins)
	for i := range s.parts {
		to = s.parts[i].events(to, process, track)
	}
	return to
}
