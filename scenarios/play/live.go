package play

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"reflect"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// LiveRun is a run of a scenario on real servers in real time, judged. The seed of its verdict
// is the number of the run, from 1.
type LiveRun struct {
	Verdict
	// Programs are the programs that played, each with its version.
	Programs []string
	// Logs is the folder with the logs of the processes; "" if they were removed.
	Logs string
	// Note says what the reader of the verdict should know, such as that the run was played
	// twice; "": nothing.
	Note string
}

// LivePlayer plays scenarios on real servers. Errors that have a method Unusable are bad input,
// and nothing was played.
type LivePlayer interface {
	// Check reports why a scenario cannot be played on a lock.
	Check(sc *scenarios.Scenario, l *subject.Subject, o LiveOptions) error
	// Ready reports what the machine lacks for runs on these locks.
	Ready(locks []*subject.Subject, o LiveOptions) error
	Run(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, number uint64, o LiveOptions) (LiveRun, error)
	// Folder makes a temporary folder that a later program removes if this one is killed.
	Folder() (dir string, free func(), err error)
	// Spawn starts a command whose process ends with this one, however this one ends.
	Spawn(*exec.Cmd) error
	// Client is the program of a process that Run starts.
	Client(in io.Reader, out io.Writer) error
}

// LiveOptions are the settings of a live run.
type LiveOptions struct {
	// Program is the command of a client: a program that calls LivePlayer.Client.
	Program []string
	// Address is a server that somebody else runs; "": the run starts one. The server must be
	// empty. The keys of the run have a prefix, and the run removes no other keys.
	Address string
	// Servers names the group that the servers form: onredis.Sentinel or onredis.Cluster. "": the
	// scenario and the lock decide.
	Servers string
	// Keep is the folder in which the run leaves the logs of its processes; "": it keeps none.
	Keep string
	// Tell is called with a text when the run begins another part of its work; nil: nobody listens.
	Tell func(doing string)
}

// Report calls Tell, if somebody listens.
func (o LiveOptions) Report(doing string) {
	if o.Tell != nil {
		o.Tell(doing)
	}
}

// liveFormat is the version of the file format of a live recording.
const liveFormat = 3

// LiveRecording is a live run as a file: lines that begin with # for people, then one JSON
// object. A live run has no decisions and cannot be played again, so the file has its events.
type LiveRecording struct {
	Format     int           `json:"lockstep_live"`
	Programs   []string      `json:"programs"`
	Lock       string        `json:"lock"`
	Run        uint64        `json:"run"`
	Verdict    Word          `json:"verdict"`
	Expected   string        `json:"expected"`
	AsExpected bool          `json:"as_expected"`
	Why        string        `json:"why,omitempty"`
	Note       string        `json:"note,omitempty"`
	File       string        `json:"file"`
	Scenario   string        `json:"scenario"`
	Params     model.Params  `json:"params"`
	Findings   []liveFinding `json:"findings"`
	Reached    []string      `json:"reached"`
	Events     []liveEvent   `json:"events"`
}

// liveFinding is a finding in a file: Rule names the type of its detail.
type liveFinding struct {
	judges.Finding
	Rule   string
	Detail json.RawMessage
}

// ruleOf names the type of a detail.
func ruleOf(d judges.Detail) string { return reflect.TypeOf(d).Name() }

// MarshalJSON implements json.Marshaler.
func (f liveFinding) MarshalJSON() ([]byte, error) {
	type plain liveFinding // without this method
	var err error
	f.Rule = ruleOf(f.Finding.Detail)
	f.Detail, err = json.Marshal(f.Finding.Detail)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plain(f))
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *liveFinding) UnmarshalJSON(text []byte) error {
	type plain liveFinding
	if err := strictly(text, (*plain)(f)); err != nil {
		return err
	}
	for _, d := range judges.Details {
		if ruleOf(d) == f.Rule {
			of := reflect.New(reflect.TypeOf(d))
			err := strictly(f.Detail, of.Interface())
			f.Finding.Detail = of.Elem().Interface()
			return err
		}
	}
	return fmt.Errorf("there is no rule %q", f.Rule)
}

// strictly decodes JSON that has no field that v does not know.
func strictly(text []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}

// liveEvent is an event with the facts that a digest leaves out.
type liveEvent struct {
	model.Event
	Facts liveFacts `json:"facts,omitzero"`
}

type liveFacts struct {
	Check    *model.Check    `json:"check,omitempty"`
	Do       string          `json:"do,omitempty"`
	Listens  model.Listening `json:"listens,omitempty"`
	Channels []string        `json:"channels,omitempty"`
	Answer   model.Answer    `json:"answer,omitempty"`
	Program  string          `json:"program,omitempty"`
}

// Recording makes the recording of a live run.
func (r LiveRun) Recording() *LiveRecording {
	v := r.Verdict
	out := &LiveRecording{
		Format: liveFormat, Programs: r.Programs, Lock: v.Lock.Name, Run: v.Seed, Verdict: v.Word, Expected: v.Expected, AsExpected: v.AsExpected,
		Why: v.Why, Note: r.Note, File: v.Scenario.File, Scenario: v.Scenario.Text, Params: v.Played.Record.Params, Findings: []liveFinding{}, Reached: v.Reached,
	}
	for _, f := range v.Findings {
		out.Findings = append(out.Findings, liveFinding{Finding: f})
	}
	for _, e := range v.Played.Record.Events {
		out.Events = append(out.Events, liveEvent{e, liveFacts{e.Check, e.Do, e.Listens, e.Channels, e.Answer, e.Program}})
	}
	return out
}

// Write writes a live recording, with comment lines on top.
func (r *LiveRecording) Write(w io.Writer, comment []string) error {
	return writeLine(w, comment, r)
}

// IsLive reports whether a file is a live recording.
func IsLive(text []byte) bool {
	return bytes.HasPrefix(withoutComment(text), []byte(`{"lockstep_live":`))
}

func withoutComment(text []byte) []byte {
	for len(text) > 0 && text[0] == '#' {
		_, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
	}
	return text
}

// ReadLive reads a live recording whose lock is registered. The verdict is the one in the
// file. Errors are *scenarios.FileError.
func ReadLive(file string, text []byte) (LiveRun, error) {
	fail := func(format string, args ...any) (LiveRun, error) {
		line, column := position(text, len(text)-len(withoutComment(text)))
		return LiveRun{}, &scenarios.FileError{File: file, Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
	}
	var r LiveRecording
	if err := strictly(withoutComment(text), &r); err != nil {
		return fail("not a live recording: %v", err)
	}
	if r.Format != liveFormat {
		return fail("live recording format %d; this program reads format %d", r.Format, liveFormat)
	}
	if len(r.Events) == 0 {
		return fail("the live recording has no event, so it shows nothing of its verdict %q; simrun live SCENARIO --out DIR writes another", r.Verdict)
	}
	l, err := subject.Find(r.Lock)
	if err != nil {
		return fail("%v", err)
	}
	sc, err := scenarios.Parse(r.File, []byte(r.Scenario), anyLock(subject.Find))
	if err != nil {
		return fail("the scenario in the recording: %v", err)
	}
	rec := &model.Record{Params: r.Params}
	for _, x := range r.Events {
		e, f := x.Event, x.Facts
		e.Check, e.Do, e.Listens, e.Channels, e.Answer, e.Program = f.Check, f.Do, f.Listens, f.Channels, f.Answer, f.Program
		rec.Add(e)
	}
	v := Verdict{
		Scenario: sc, Lock: l, Seed: r.Run, Word: r.Verdict, Expected: r.Expected, AsExpected: r.AsExpected, Why: r.Why,
		Reached: r.Reached,
	}
	for _, f := range r.Findings {
		v.Findings = append(v.Findings, f.Finding)
	}
	v.Played.Record = rec
	v.Played.Trace = trace.New(rec)
	return LiveRun{Verdict: v, Programs: r.Programs, Note: r.Note}, nil
}
