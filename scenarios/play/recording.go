package play

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"lockstep/internal/foreign"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// recordingFormat is the version of the file format.
const recordingFormat = 1

// strategyRandom is the strategy of decisions that a seed draws.
const strategyRandom = "random"

// Recording is a run that can be played again. Its file has comment lines that begin
// with #, for people, and then one JSON object.
type Recording struct {
	Format int `json:"lockstep_recording"`
	// World is the world version in which the decisions give the digest.
	World    int    `json:"world"`
	Lock     string `json:"lock"`
	Strategy string `json:"strategy"`
	Seed     uint64 `json:"seed"`
	Verdict  Word   `json:"verdict"`
	Digest   string `json:"digest"` // of the record: hex SHA-256
	// File is where the scenario came from; Scenario is its text.
	File      string        `json:"file"`
	Scenario  string        `json:"scenario"`
	Decisions sim.Decisions `json:"decisions"` // by stream
	// Orders is the mode of the world; nil for a world with latencies.
	Orders *sim.Orders `json:"orders,omitempty"`
	// Overlay is the version of the overlay of the standard library with which the run was made; 0: without one.
	Overlay int `json:"overlay,omitempty"`
}

// OtherOverlayError reports a recording of a program that was built with another overlay of the standard
// library, or without one, so that the same decisions give another record.
type OtherOverlayError struct {
	File       string
	Made, Here int // versions of the overlay; 0: without one
}

// Error says which program can play the recording.
func (e *OtherOverlayError) Error() string {
	switch {
	case e.Here == 0:
		return fmt.Sprintf("%s: the recording was made with the overlay of the standard library, and this program is built without it", e.File)
	case e.Made == 0:
		return fmt.Sprintf("%s: the recording was made without the overlay of the standard library, and this program is built with it, "+
			"so that pauses and wall clocks, of which its scenario has some, do something else", e.File)
	}
	return fmt.Sprintf("%s: the recording was made with version %d of the overlay of the standard library, and this program has version %d; make it anew", e.File, e.Made, e.Here)
}

// overlayMatters reports whether a scenario has something that happens differently with the overlay, although no
// lock draws chance or waits for a mutex.
func overlayMatters(sc *scenarios.Scenario) bool {
	return slices.ContainsFunc(sc.Processes, func(p scenarios.Process) bool { return p.WallOffset != 0 || p.WallDriftPPM != 0 }) ||
		slices.ContainsFunc(sc.Faults, func(f scenarios.Fault) bool { return f.Kind == model.FaultPause || f.Kind == model.FaultWallClock })
}

// WrongWorldError reports a recording of another world version.
type WrongWorldError struct {
	File      string
	World     int
	Recording *Recording
	Loads     bool // its lock and its scenario are still known
}

// Error says what can still be done with the recording.
func (e *WrongWorldError) Error() string {
	return fmt.Sprintf("%s: recorded in world version %d, and this program's is %d: the same decisions give another record. "+
		"Its scenario may still show the same: it is %s, lock %s, seed %d", e.File, e.World, sim.Version, e.Recording.File, e.Recording.Lock, e.Recording.Seed)
}

// Recording returns the recording of a verdict.
func (v Verdict) Recording() *Recording {
	return &Recording{
		Format: recordingFormat, World: sim.Version, Lock: v.Lock.Name, Strategy: cmp.Or(v.Played.Strategy, strategyRandom), Seed: v.Seed, Verdict: v.Word,
		Digest: v.Digest(), File: v.Scenario.File, Scenario: v.Scenario.Text, Decisions: v.Played.Decisions,
		Orders: v.Played.Orders, Overlay: sim.OverlayVersion,
	}
}

// Write writes a recording, with comment lines on top.
func (r *Recording) Write(w io.Writer, comment []string) error { return writeLine(w, comment, r) }

// writeLine writes a value as one line of JSON, with comment lines on top.
func writeLine(w io.Writer, comment []string, value any) error {
	var b bytes.Buffer
	for _, line := range comment {
		b.WriteString(foreign.Commented(line))
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// RecordingMost limits the file of a recording, in bytes. The longest ones are those of live runs, with some
// hundred bytes per event.
const RecordingMost = 256 << 20

// IsRecording reports whether a file is a recording of any format.
func IsRecording(text []byte) bool {
	return bytes.HasPrefix(withoutComment(text), []byte(`{"lockstep_recording":`))
}

// ReadRecording reads a recording, its scenario and its lock, which is registered. Errors
// are *scenarios.FileError, *OtherOverlayError, or *WrongWorldError for one that is whole but of another world.
func ReadRecording(file string, text []byte) (*Recording, *scenarios.Scenario, *subject.Subject, error) {
	return ReadRecordingOf(file, text, func(name string) (*subject.Subject, error) {
		l, err := subject.Find(name)
		if err != nil {
			err = fmt.Errorf("%w. A recording of a test is played by the test, with -lockstep.replay", err)
		}
		return l, err
	})
}

// ReadRecordingOf is ReadRecording with a function that finds a lock by its name. With a *WrongWorldError that
// Loads it returns the recording, too: its decisions make another run now.
func ReadRecordingOf(file string, text []byte, find func(name string) (*subject.Subject, error)) (*Recording, *scenarios.Scenario, *subject.Subject, error) {
	const again = "a test that finds the failure writes its recording again, and so does simrun run --out DIR"
	fail := func(offset int, format string, args ...any) (*Recording, *scenarios.Scenario, *subject.Subject, error) {
		line, column := position(text, offset)
		err := &scenarios.FileError{File: file, Line: line, Column: column, Msg: fmt.Sprintf(format, args...)}
		for _, arg := range args {
			if cause, ok := arg.(error); ok {
				err.Cause = cause
			}
		}
		return nil, nil, nil, err
	}
	begin := 0
	for begin < len(text) && text[begin] == '#' {
		end := bytes.IndexByte(text[begin:], '\n')
		if end < 0 {
			end = len(text) - begin - 1
		}
		begin += end + 1
	}
	if len(bytes.TrimSpace(text[begin:])) == 0 {
		what := "the file is empty"
		if begin > 0 {
			what = "the file ends before the recording begins"
		}
		return fail(begin, "%s; %s", what, again)
	}
	if IsLive(text) {
		return fail(begin, "this is a live run, which has no decisions and cannot be played again; simrun report draws it")
	}
	dec := json.NewDecoder(bytes.NewReader(text[begin:]))
	dec.DisallowUnknownFields()
	var r Recording
	if err := dec.Decode(&r); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
			return fail(len(text), "the recording is cut off: the JSON object that begins at byte %d does not end; %s", begin, again)
		case errors.As(err, &syntax):
			return fail(begin+int(syntax.Offset)-1, "not a recording, which is a JSON object: %v", err)
		case errors.As(err, &kind):
			return fail(begin+int(kind.Offset)-1, "not a recording: %s cannot be a %s", kind.Field, kind.Value)
		}
		return fail(begin, "not a recording: %v", err)
	}
	if rest := bytes.TrimSpace(text[begin+int(dec.InputOffset()):]); len(rest) > 0 {
		return fail(begin+int(dec.InputOffset()), "something follows the recording's JSON object; remove it")
	}
	if r.Format != recordingFormat {
		return fail(begin, "recording format %d; this program reads format %d", r.Format, recordingFormat)
	}
	l, findErr := find(r.Lock)
	sc, parseErr := scenarios.Parse(r.File, []byte(r.Scenario), anyLock(find))
	switch {
	case r.World != sim.Version:
		return &r, sc, l, &WrongWorldError{File: file, World: r.World, Recording: &r, Loads: findErr == nil && parseErr == nil}
	case findErr != nil:
		return fail(begin, "%v", findErr)
	case parseErr != nil:
		return fail(begin, "the scenario in the recording: %v", firstOf(parseErr))
	case r.Overlay != sim.OverlayVersion && (r.Overlay != 0 || overlayMatters(sc)):
		return nil, nil, nil, &OtherOverlayError{File: file, Made: r.Overlay, Here: sim.OverlayVersion}
	}
	return &r, sc, l, nil
}

// firstOf returns the first of the errors of a scenario. Nobody mends the scenario of a recording by hand.
func firstOf(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()[0]
	}
	return err
}

// anyLock returns a function that finds the locks of the scenario of a recording. The scenario may name
// locks that only another program has. A rule that was drawn may name a command that no server of the
// lock knows, so the locks that it finds have only their names.
func anyLock(find func(name string) (*subject.Subject, error)) func(name string) (*subject.Subject, error) {
	return func(name string) (*subject.Subject, error) {
		if l, err := find(name); err == nil {
			name = l.Name
		}
		return scenarios.AnyLock(name)
	}
}

// position returns the line and the column of a byte offset, both from 1.
func position(text []byte, offset int) (line, column int) {
	offset = max(0, min(offset, len(text)))
	before := text[:offset]
	return bytes.Count(before, []byte("\n")) + 1, offset - bytes.LastIndexByte(before, '\n')
}

// Replay plays a recording. diverged says where the run asked for a decision that
// was not recorded. It is "" if the run asked for none.
func Replay(h *sim.Host, r *Recording, sc *scenarios.Scenario, l *subject.Subject) (v Verdict, diverged string) {
	replayer := sim.NewReplayer(r.Decisions)
	p := PlayIn(h, sc, l, replayer, r.Orders)
	p.Strategy = r.Strategy
	return Judge(h, sc, l, r.Seed, p), replayer.Diverged()
}

// ScenarioName returns the name of the scenario of a recording, even if the scenario
// itself cannot be read any more.
func (r *Recording) ScenarioName() string {
	return cmp.Or(scenarios.NameIn(r.Scenario), r.File)
}
