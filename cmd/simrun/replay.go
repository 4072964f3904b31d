package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/scenarios"
)

func (a *app) replay(args []string) (int, error) {
	asJSON := false
	files, err := flags("replay", args, func(f *pflag.FlagSet) { f.BoolVar(&asJSON, "json", false, "") })
	if err != nil {
		return 0, err
	}
	rec, sc, lock, err := readRecording("replay", files)
	if err != nil {
		return 0, err
	}
	v, why := a.again(rec, sc, lock)
	same := why == ""
	if !same {
		v.Word, v.AsExpected, v.Why = scenarios.VerdictNondeterministic, false, why
	}
	if asJSON {
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(asObject(v, files[0])); err != nil {
			return 0, err
		}
	} else {
		a.story(v)
	}
	if !same {
		return exitUndecided, nil
	}
	return exitOK, nil
}

// readRecording reads the one recording that a command was given.
func readRecording(command string, files []string) (*scenarios.Recording, *scenarios.Scenario, *scenarios.Lock, error) {
	if len(files) != 1 {
		return nil, nil, nil, usagef("%s takes one recording, got %d", command, len(files))
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, nil, nil, usagef("read the recording: %w", err)
	}
	rec, sc, lock, err := scenarios.ReadRecording(files[0], text)
	if err != nil {
		var other *scenarios.WrongWorldError
		if errors.As(err, &other) {
			return nil, nil, nil, usagef("%w; try: go run ./cmd/simrun run %s --lock %s --seed %d", err, other.Recording.ScenarioName(), other.Recording.Lock, other.Recording.Seed)
		}
		return nil, nil, nil, usageError{err}
	}
	return rec, sc, lock, nil
}

// again plays a recording; why says how the run differs, "" when it does not.
func (a *app) again(rec *scenarios.Recording, sc *scenarios.Scenario, lock *scenarios.Lock) (v scenarios.Verdict, why string) {
	v, diverged := scenarios.Replay(a.host, rec, sc, lock)
	if v.Digest != rec.Digest || diverged != "" {
		why = fmt.Sprintf("the recording has digest %.12s, the replay %.12s", rec.Digest, v.Digest)
		if diverged != "" {
			why += "; " + diverged
		}
	}
	return v, why
}

// story prints a run as text: a line an event that a reader of the findings
// needs, and the findings at the end.
func (a *app) story(v scenarios.Verdict) {
	fmt.Fprintf(a.out, "%s on %s, seed %d: %s (digest %.12s)\n\n", v.Scenario.Name, v.Lock.Name, v.Seed, a.paint(string(v.Word), string(v.Word)), v.Digest)
	for i := range v.Played.Record.Events {
		if what := tell(&v.Played.Record.Events[i]); what != "" {
			e := &v.Played.Record.Events[i]
			fmt.Fprintf(a.out, "%12s  %s\n", model.At(e.AtNs), clip(what, 86))
		}
	}
	fmt.Fprintln(a.out)
	if len(v.Findings) == 0 && v.Why == "" {
		fmt.Fprintln(a.out, "no judge found anything")
	}
	if v.Why != "" {
		fmt.Fprint(a.out, wrap(v.Why, "", 100))
	}
	for _, f := range v.Findings {
		class := string(f.Class)
		if f.Verdict == linearizability.Undecided {
			class = "undecided"
		}
		fmt.Fprint(a.out, wrap(fmt.Sprintf("%s (%s): %s", f.Judge, class, f.Why), "", 100))
	}
}

// tell says an event in a line; "" for what a reader can do without.
func tell(e *model.Event) string {
	who := e.ThreadName()
	switch e.Kind {
	case model.KindInvoke:
		return fmt.Sprintf("%-6s calls %s %s%s", who, e.Action, e.Lock, terms(e))
	case model.KindReturn:
		return fmt.Sprintf("%-6s %s %s: %s", who, e.Action, e.Lock, e.Outcome)
	case model.KindExec:
		what := e.Script
		if what == "" {
			what = e.Command
		}
		return fmt.Sprintf("server %s of %s → %s", what, e.Process, e.Reply)
	case model.KindState:
		s := e.State
		if !s.Held() {
			return fmt.Sprintf("server %s is free%s", e.Lock, queue(s))
		}
		until := "without end"
		if s.ExpiresMs >= 0 {
			until = "until " + model.At(s.ExpiresMs*1e6)
		}
		return fmt.Sprintf("server %s is held by %s, count %d, %s%s", e.Lock, s.Owner, s.Count, until, queue(s))
	case model.KindExpire:
		return "server key " + e.Key + " ran out"
	case model.KindLost:
		return fmt.Sprintf("lost   %s of %s: %s %s%s", e.Dir, e.Process, e.Why, e.Script, e.Channel)
	case model.KindFault:
		return "fault  " + e.Text
	case model.KindFaultEnd:
		return "healed " + e.Text
	case model.KindHit:
		return fmt.Sprintf("fault  %s: %s %s of %s", e.Text, e.Dir, e.Script, e.Process)
	case model.KindUse:
		return fmt.Sprintf("%-6s %s %s%s", who, e.Phase, e.Key, e.Text)
	case model.KindResource:
		return fmt.Sprintf("%-6s %s %s: %d", who, e.Phase, e.Key, e.Value)
	case model.KindCheck:
		if !e.Met {
			return fmt.Sprintf("%-6s NOT MET %s", who, e.Text)
		}
	case model.KindCalm:
		return "calm: every fault is over"
	case model.KindLeave:
		return "all leave"
	case model.KindClose:
		return e.Process + " closes its client"
	case model.KindDefect:
		return "DEFECT " + e.Text
	}
	return ""
}

func terms(e *model.Event) string {
	s := ""
	if e.WaitNs > 0 {
		s += " wait " + model.At(e.WaitNs)
	}
	if e.LeaseNs > 0 {
		s += " lease " + model.At(e.LeaseNs)
	}
	return s
}

func queue(s *model.LockState) string {
	if len(s.Queue) == 0 {
		return ""
	}
	return fmt.Sprintf("; queue %v", s.Queue)
}
