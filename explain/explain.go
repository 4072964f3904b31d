// Package explain explains a failure to people in a hurry and to programs that mend locks: the promise
// that broke, the events that led to it, the lines of code, and how to find out whether a mend holds.
package explain

import (
	"cmp"
	"slices"
	"strings"

	"lockstep/explore/failure"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Format is the version of the form of an Explanation as JSON. It is raised by hand when a field goes or gets another
// meaning. docs/json.md describes the fields.
const Format = 1

// An Explanation says why a run broke a promise. Users rely on the names and the meaning of the fields in JSON.
type Explanation struct {
	Format    int      `json:"explain"`
	Recording string   `json:"recording"`
	Lock      string   `json:"lock"`
	Scenario  string   `json:"scenario"`
	Seed      uint64   `json:"seed"`
	Promise   Promise  `json:"promise"`
	Cause     Cause    `json:"cause"`
	Events    []Event  `json:"events"`
	Call      *Call    `json:"call"`    // null: no call broke the promise
	Request   *Request `json:"request"` // null: no request broke the promise
	Kept      Kept     `json:"kept"`
	Also      []Also   `json:"also"` // the further promises that the run broke, each once
	Commands  Commands `json:"commands"`

	run    report.Run
	events []int
}

// A Promise is the promise that the run broke.
type Promise struct {
	Judge  string `json:"judge"`
	Class  string `json:"class"` // bug or limit
	Text   string `json:"text"`  // the promise
	Why    string `json:"why"`   // how it was broken
	Excuse string `json:"excuse"`
	AtNs   int64  `json:"at_ns"`
	Lock   string `json:"lock"`
	Thread string `json:"thread"`
}

// A Cause is where the failure begins. Each field may be empty.
type Cause struct {
	Defect  string `json:"defect"`  // the ID of the known defect
	Parting string `json:"parting"` // how server and clients began to disagree, as a fingerprint has it
	Text    string `json:"text"`
}

// An Event is an event that led to the failure.
type Event struct {
	Event int    `json:"event"` // its number in the record, from 1
	AtNs  int64  `json:"at_ns"`
	Kind  string `json:"kind"`
	Lane  string `json:"lane"` // the thread, or the server of a lock; "": all
	Text  string `json:"text"`
	// After has the numbers of those events of which it is the consequence. They come before it in the list.
	After []int `json:"after"`
	// Breaks marks the events of the request that broke the promise.
	Breaks bool `json:"breaks"`
}

// A Call is the call that broke the promise.
type Call struct {
	Thread  string `json:"thread"`
	Action  string `json:"action"`
	Lock    string `json:"lock"`
	CallNs  int64  `json:"call_ns"`
	Outcome string `json:"outcome"`
	Site    *Site  `json:"site"` // the line of the program that called the lock; null: not known
}

// A Request is the request that broke the promise.
type Request struct {
	Msg  int    `json:"msg"`
	Name string `json:"name"`
	// Args are the arguments, without the text of a script; of a segment that nobody could read, its size.
	Args   []string `json:"args"`
	SentNs int64    `json:"sent_ns"`
	// Victim is the owner of a hold that the request ended or changed, although it was not sent for that owner; "": none.
	Victim string `json:"victim"`
	Site   *Site  `json:"site"`  // the line that sent it; null: not known, as when a goroutine of the client wrote it
	Stack  []Site `json:"stack"` // of the lock, the innermost place first
}

// A Site is a place in the code.
type Site struct {
	Function string `json:"function"`
	File     string `json:"file"`
	Line     int    `json:"line"`
}

// Kept has the remedies: a lock that keeps the promise, and a hint.
type Kept struct {
	Control *Control `json:"control"` // null: no such lock is known
	Hint    string   `json:"hint"`
}

// A Control is a lock that kept the promise in the same scenario: a right lock of the same kind, or one that the scenario
// expects to hold.
type Control struct {
	Lock   string `json:"lock"`
	Seed   uint64 `json:"seed"`
	Answer string `json:"answer"` // of the call that broke the promise
	// Request is the request that decided the answer; "": none did.
	Request string `json:"request"`
	Text    string `json:"text"`
}

// Also is a further promise that the run broke.
type Also struct {
	Judge string `json:"judge"`
	Class string `json:"class"`
	Why   string `json:"why"`
	AtNs  int64  `json:"at_ns"`
}

// Commands are the commands about a failure; "" stands for a command that there is not.
type Commands struct {
	Replay string `json:"replay"`
	Shrink string `json:"shrink"`
	Live   string `json:"live"`
	Page   string `json:"page"`
	// Mended plays the recording, its neighbours and schedules with its cause, and says whether the promise is kept.
	Mended string `json:"mended"`
}

// Of explains a finding of a run. It plays the run again to find the lines of code, and the controls of the lock.
// hint is a hint that the caller knows, before that of Hint.
func Of(h *sim.Host, v play.Verdict, f judges.Finding, recording, hint string, commands Commands) Explanation {
	run := v.Played.Trace
	namer := failure.NewNamer(h, v)
	origin, evidence := failure.OriginOf(namer, f)
	c := chainOf(run, f, evidence)
	x := Explanation{
		Format: Format, Recording: recording, Lock: v.Lock.Name, Scenario: v.Scenario.Name, Seed: v.Seed,
		Promise: Promise{
			Judge: f.Judge, Class: string(f.Class), Text: sentence.Promise(f.Judge), Why: sentence.Finding(f), Excuse: sentence.NotPromised(f),
			AtNs: f.AtNs, Lock: f.Lock, Thread: f.Thread,
		},
		Cause:    Cause{Defect: origin.Defect, Parting: origin.Parted, Text: CauseOf(namer, f)},
		Kept:     Kept{Hint: cmp.Or(hint, Hint(f, run))},
		Also:     also(v, f),
		Commands: commands,
		run: report.Run{
			Scenario: v.Scenario.Name, Lock: v.Lock.Name, Seed: v.Seed, Verdict: string(v.Word), Record: v.Played.Record, Findings: []judges.Finding{f},
		},
		events: c.events(),
	}
	breaks, shown := c.breaking(), map[int]bool{}
	for _, s := range report.Steps(x.run, x.events) {
		e := Event{Event: s.Event + 1, AtNs: s.AtNs, Kind: string(v.Played.Record.Events[s.Event].Kind), Lane: s.Lane, Text: s.Text, After: []int{}, Breaks: slices.Contains(breaks, s.Event)}
		for _, i := range c.after[s.Event] {
			if shown[i] {
				e.After = append(e.After, i+1)
			}
		}
		shown[s.Event] = true
		x.Events = append(x.Events, e)
	}
	x.Call, x.Request = c.callAndRequest(h, v)
	if c.call != nil && f.Class == judges.ClassBug { // the excuse of a limit says what the controls show
		if kept, ok := v.KeptBy(h, f, func(l *subject.Subject) bool { return flawed(l, f.Judge) }); ok {
			x.Kept.Control = controlOf(kept, run, c.call)
		}
	}
	return x
}

// Where returns the call and the request that broke the promise of a finding, with their lines of code; nil for one
// that nobody knows. It plays the run again.
func Where(h *sim.Host, v play.Verdict, f judges.Finding) (*Call, *Request) {
	return chainOf(v.Played.Trace, f, nil).callAndRequest(h, v)
}

func (c *chain) callAndRequest(h *sim.Host, v play.Verdict) (call *Call, request *Request) {
	sites, called := sites(h, v, c.broke)
	if o := c.call; o != nil {
		call = &Call{Thread: o.Caller, Action: string(o.Action), Lock: o.Lock, CallNs: o.AtNs, Outcome: string(o.Answer())}
		if n := len(sites); n > 0 && called {
			call.Site = &sites[n-1]
		}
	}
	if m := c.broke; m != nil {
		request = &Request{Msg: m.Msg, Name: nameOf(m), Args: []string{}, SentNs: m.AtNs, Stack: sites}
		if request.Name == m.Command { // else it says more than the size of a segment
			request.Args = append(request.Args, m.Args...)
		}
		if len(sites) > 0 {
			request.Site = &sites[0]
		}
		for _, x := range m.Changes {
			if who := x.Before.Owner; who != "" && !x.MadeFor(who) && (x.Ended() || x.After.Owner == who) {
				request.Victim = who
			}
		}
	}
	return call, request
}

// flawed reports whether a lock has a known defect that a judge can see, so that it shows no way to keep the promise.
func flawed(l *subject.Subject, judge string) bool {
	return slices.ContainsFunc(known.All, func(d known.Defect) bool { return slices.Contains(d.Judges, judge) && d.Applies(l) })
}

// breaking returns the indexes of the events of the request that broke the promise, and of the changes that it made.
func (c *chain) breaking() (list []int) {
	m := c.broke
	if m == nil {
		return nil
	}
	list = append(list, c.index[m.Event])
	if m.Executed != nil {
		list = append(list, c.index[m.Executed])
	}
	for _, x := range m.Changes {
		if i, ok := c.states[x.After]; ok {
			list = append(list, i)
		}
	}
	return list
}

// CauseOf says where a finding begins: its known defect, or the event at which server and clients began to disagree;
// "" if nobody knows.
func CauseOf(n *known.Namer, f judges.Finding) string {
	origin, cause := failure.OriginOf(n, f)
	if origin.Defect == "" {
		return failure.PartingOf(n, f)
	}
	text := DefectText(origin.Defect)
	if cause != nil {
		text += "; " + cause.String()
	}
	return text
}

// also returns the first finding of each other judge that found a broken promise.
func also(v play.Verdict, f judges.Finding) []Also {
	list := []Also{}
	for _, g := range v.Findings {
		if g.Verdict == judges.Broken && g.Judge != f.Judge && !slices.ContainsFunc(list, func(a Also) bool { return a.Judge == g.Judge }) {
			list = append(list, Also{g.Judge, string(g.Class), sentence.Finding(g), g.AtNs})
		}
	}
	return list
}

// sites returns the places of the lock from which a request was sent, the innermost first, and whether the goroutine
// of the caller sent it.
func sites(h *sim.Host, v play.Verdict, m *trace.Command) (list []Site, called bool) {
	list = []Site{}
	if m == nil {
		return list, false
	}
	places := v.Writers(h)[m.Msg]
	for _, s := range sim.LockSites(places) {
		list = append(list, Site(s))
	}
	return list, sim.OfThread(places)
}

// controlOf describes a run of a control that kept the promise: how it answered the call that broke it.
func controlOf(kept play.Verdict, run *trace.Run, broke *trace.Call) *Control {
	c := &Control{Lock: kept.Lock.Name, Seed: kept.Seed}
	nth := 0
	for _, o := range run.CallsOn(broke.Lock) {
		if o.Caller == broke.Caller && o.Action == broke.Action && o.AtNs <= broke.AtNs {
			nth++
		}
	}
	c.Text = kept.Lock.Name + " keeps the promise on the same steps"
	for _, o := range kept.Played.Trace.CallsOn(broke.Lock) {
		if o.Caller != broke.Caller || o.Action != broke.Action {
			continue
		}
		if nth--; nth > 0 {
			continue
		}
		c.Answer = string(o.Answer())
		c.Text += "; there the call " + string(o.Action) + " of " + o.Caller + " at " + model.At(o.AtNs) + " answers " + string(o.Answer())
		if m := decisive(o, o.ReturnedNs()); m != nil {
			c.Request = nameOf(m)
			c.Text += ", after the request " + c.Request
		}
		break
	}
	return c
}

// nameOf returns the name of a request. A segment has the name that the server or its author gives it.
func nameOf(m *trace.Command) string { return cmp.Or(m.Says, strings.Join(m.Asked, " "), m.Command) }

// DefectText names a known defect.
func DefectText(id string) string { return "a known defect: " + id + ", " + known.Title(id) }
