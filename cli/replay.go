package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/internal/input"
	"lockstep/overlay"
	"lockstep/report"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func replayCommand(a *frame.App) *cobra.Command {
	var asJSON, scenario bool
	c := a.Command(frame.Guide{
		Use: "replay RECORDING", Short: "run a recording again, and print the whole run",
		Long: "Replay plays the run of a recording again, checks that it is the same to the last event, and prints it in columns, one for each thread. " +
			"If the run is another, the exit code is 2.",
		Examples: []string{"replay results/misdelete/setnx-del/1.lockstep", "replay results/misdelete/setnx-del/1.lockstep --scenario"},
	}, func(in frame.Invocation) (int, error) { return replayRecording(a, in.Names, scenario, asJSON) })
	f := c.Flags()
	f.BoolVar(&scenario, "scenario", false, "print the scenario file that the recording holds, and play nothing")
	frame.JSONFlag(f, &asJSON, "the verdict as an object")
	c.ValidArgsFunction = frame.Files("lockstep")
	return c
}

func replayRecording(a *frame.App, files []string, scenario, asJSON bool) (int, error) {
	if scenario && asJSON {
		return 0, frame.Usagef("replay: --scenario prints a scenario file and plays nothing, so there is no --json of it")
	}
	rec, sc, lock, err := readRecording(toReplay, files)
	var other *play.WrongWorldError
	if scenario && errors.As(err, &other) { // the scenario does not depend on the world version
		rec, err = other.Recording, nil
	}
	if err != nil {
		return 0, err
	}
	if scenario {
		_, err := io.WriteString(a.Out, rec.Scenario)
		return frame.ExitOK, err
	}
	v, why := playAgain(a, rec, sc, lock)
	same := why == ""
	if asJSON {
		enc := json.NewEncoder(a.Out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(asObject(v, files[0])); err != nil {
			return 0, err
		}
	} else {
		fmt.Fprint(a.Out, report.Text(explained(a, v, "")))
	}
	if !same {
		return frame.ExitUndecided, nil
	}
	return frame.ExitOK, nil
}

// use is how a command uses a recording, and how a test does so that made it.
type use struct {
	command string
	does    string // to the recording
	flag    string // of the test, beside -lockstep.replay; "": none
}

var (
	toReplay  = use{"replay", "replay it", ""}
	toExplain = use{"explain", "explain it", "-lockstep.explain=text"}
	toMend    = use{"explain", "see whether it is mended", "-lockstep.mended"}
	toShrink  = use{"shrink", "a test makes the schedules that it draws small by itself; replay it", ""}
	toReport  = use{"report", "write its page", "-lockstep.report=pages"}
	toLive    = use{"live", "play it on real servers", "-lockstep.live=3"}
)

// readRecording reads the one recording that a command takes.
func readRecording(u use, files []string) (*play.Recording, *scenarios.Scenario, *subject.Subject, error) {
	command := u.command
	if len(files) != 1 {
		return nil, nil, nil, frame.Usagef("%s takes one recording, got %d", command, len(files))
	}
	takes := command + " takes a recording, a file SEED.lockstep"
	if command == "report" {
		takes += ", or a folder of results"
	}
	text, err := input.Read(files[0], takes, play.RecordingMost)
	if err != nil {
		return nil, nil, nil, frame.Usage(err)
	}
	rec, sc, lock, err := play.ReadRecording(files[0], text)
	if err != nil {
		var other *play.WrongWorldError
		if errors.As(err, &other) {
			return nil, nil, nil, frame.Usagef("%w; try: %s > scenario.yaml, and then %s --seed %d", err, frame.Command("replay", files[0], "--scenario"), frame.Command("run", "scenario.yaml", "--lock", other.Recording.Lock), other.Recording.Seed)
		}
		var overlaid *play.OtherOverlayError
		if errors.As(err, &overlaid) {
			return nil, nil, nil, frame.Usagef("%w; if a test made it: %s test -run TEST -lockstep.replay=%s; else build this program with the overlay: go run -overlay \"$(%s overlay)\" -tags %s ./cmd/simrun replay %s",
				err, frame.Simrun(), frame.Quoted(files[0]), frame.Simrun(), overlay.Tag, frame.Quoted(files[0]))
		}
		var unknown *subject.UnknownError
		if errors.As(err, &unknown) {
			if test := testReplay(files[0], u.flag); test != "" {
				return nil, nil, nil, frame.Usagef("%s is of the lock %q, which a test judges; %s with: %s", files[0], unknown.Name, u.does, test)
			}
		}
		if !play.IsRecording(text) && !play.IsLive(text) { // for a live recording the error below says more
			err = kindOf(files[0], text, err)
		}
		return nil, nil, nil, frame.Usage(err)
	}
	return rec, sc, lock, nil
}

// playAgain replays a recording. If the replay differs from it, why and the verdict say how; otherwise
// why is "". If a second replay equals the first one, the runs repeat, so the code has changed
// since the recording.
func playAgain(a *frame.App, rec *play.Recording, sc *scenarios.Scenario, lock *subject.Subject) (v play.Verdict, why string) {
	sim.LimitMemory(frame.WorkerMemory)
	v, diverged := play.Replay(a.Host, rec, sc, lock)
	if v.Digest() == rec.Digest && diverged == "" {
		return v, ""
	}
	why = fmt.Sprintf("the recording has digest %.12s, the replay %.12s", rec.Digest, v.Digest())
	word := play.VerdictNondeterministic
	if second, again := play.Replay(a.Host, rec, sc, lock); second.Digest() == v.Digest() && again == diverged {
		word = play.VerdictUndecided
		why = fmt.Sprintf("%s changed since it was recorded, or a package that it is built with, or somebody edited the recording: two replays agree with each other; %s", lock.Name, why)
	} else {
		why += fmt.Sprintf(", and another replay %.12s", second.Digest())
		if where := rec.Explain(a.Host, sc, lock, v.Played.Result, second.Played.Result); where != "" {
			why += "; " + where
		}
	}
	if diverged != "" {
		why += "; " + diverged
	}
	v.Word, v.AsExpected, v.Why = word, false, why
	return v, why
}
