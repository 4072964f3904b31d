package cli

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/explain"
	"lockstep/explore/failure"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// explainFlags are the options of simrun explain.
type explainFlags struct {
	judge          string
	mended, asJSON bool
}

func explainCommand(a *frame.App) *cobra.Command {
	var o explainFlags
	c := a.Command(frame.Guide{
		Use: "explain RECORDING", Short: "say why a run broke a promise: the events that matter, the lines, the commands",
		Long: "Explain plays the run of a recording again and prints the promise that broke, the events that led to it, the lines of code that sent the request, " +
			"how a right lock keeps the promise, and the commands that replay it, make it small, play it on real servers, and say whether a mend holds.\n" +
			"With --mended it plays the recording, its scenario with other seeds, and 200 drawn schedules with its kinds of faults at its moments. " +
			"The exit code is 1 if one of them breaks the promise.",
		Examples: []string{"explain results/misdelete/setnx-del/1.lockstep", "explain results/misdelete/setnx-del/1.lockstep --json"},
	}, func(in frame.Invocation) (int, error) { return explainRecording(a, in.Names, o) })
	f := c.Flags()
	frame.OneOf(f, &o.judge, "judge", "", model.Judges, "the judge whose finding is explained; default: the first that found a bug, else a limit")
	f.BoolVar(&o.mended, "mended", false, "play the recording and schedules near it, and say whether the promise is kept now")
	frame.JSONFlag(f, &o.asJSON, "one object")
	a.ProgressFlag(f)
	c.ValidArgsFunction = frame.Files("lockstep")
	return c
}

func explainRecording(a *frame.App, files []string, o explainFlags) (int, error) {
	use := toExplain
	if o.mended {
		use = toMend
	}
	rec, sc, lock, err := readRecording(use, files)
	if err != nil {
		return 0, err
	}
	if o.mended {
		return mendedRecording(a, files[0], rec, sc, lock, o)
	}
	v, why := playAgain(a, rec, sc, lock)
	if why != "" {
		a.Complain("%s is not the same again: %s", files[0], why)
		return frame.ExitUndecided, nil
	}
	finding, ok := failure.First(v, o.judge)
	if !ok {
		return 0, frame.Usagef("%s: %s, so there is nothing to explain", files[0], unbroken(v, o.judge))
	}
	v.ShowLimits(a.Host)
	finding, _ = failure.First(v, finding.Judge)
	x := explain.Of(a.Host, v, finding, files[0], "", explainCommands(a, files[0], o.judge))
	if o.asJSON {
		return frame.ExitOK, writeObject(a, x)
	}
	_, err = fmt.Fprint(a.Out, x.Text())
	return frame.ExitOK, err
}

// testReplay returns the command that replays the recording of a test with a further flag. Such a recording stands in the
// folder of the test's package, which may be of another module, at testdata/lockstep/TEST/; "": the file stands elsewhere.
func testReplay(file, flag string) string {
	const folder = "testdata/lockstep/"
	slashed := filepath.ToSlash(file)
	i := strings.LastIndex("/"+slashed, "/"+folder)
	if i < 0 {
		return ""
	}
	pkg, inside := path.Clean(slashed[:i]), slashed[i:]
	test := path.Dir(strings.TrimPrefix(inside, folder))
	if test == "." {
		return ""
	}
	command := fmt.Sprintf("go test . -run '^%s$' -lockstep.replay=%s", strings.ReplaceAll(test, "/", "$/^"), frame.Quoted(inside))
	if flag != "" {
		command += " " + flag
	}
	if pkg == "." {
		return command
	}
	return fmt.Sprintf("(cd %s && %s)", frame.Quoted(pkg), command)
}

// unbroken says that no promise is broken in a run, or not that of a judge.
func unbroken(v play.Verdict, judge string) string {
	if any, ok := failure.First(v, ""); ok {
		return fmt.Sprintf("%s is not broken in it; %s is", judge, any.Judge)
	}
	return "nothing is broken in it"
}

// explainCommands returns the commands about the failure in a recording that this program can play.
func explainCommands(a *frame.App, file, judge string) explain.Commands {
	call := frame.Simrun()
	file = frame.Quoted(file)
	of := ""
	if judge != "" {
		of = " --judge " + judge
	}
	c := explain.Commands{
		Replay: call + " replay " + file, Shrink: call + " shrink " + file + of, Page: call + " report " + file,
		Mended: call + " explain " + file + of + " --mended",
	}
	if a.Live != nil {
		c.Live = call + " live " + file
	}
	return c
}

func writeObject(a *frame.App, o any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(o)
}

// mendedRecording says whether a lock keeps the promise now that it broke in a recording.
func mendedRecording(a *frame.App, file string, rec *play.Recording, sc *scenarios.Scenario, lock *subject.Subject, o explainFlags) (int, error) {
	if rec.Verdict != play.VerdictBug && rec.Verdict != play.VerdictLimit {
		return 0, frame.Usagef("%s: nothing was broken in it, so nothing is to be mended", file)
	}
	sim.LimitMemory(frame.WorkerMemory)
	m := explain.Mended(a.Host, rec, sc, lock, file, o.judge, func(played, of int) { a.Status("%d of %d runs", played, of) })
	a.Status("")
	code := frame.ExitOK
	switch {
	case !m.Promised():
		return 0, frame.Usagef("%s: the lock keeps every promise in it now, and the recording does not say which promise it broke; name it with --judge", file)
	case m.Holds:
	case m.Broke():
		code = frame.ExitUnexpected
	default:
		code = frame.ExitUndecided
	}
	if o.asJSON {
		return code, writeObject(a, m)
	}
	_, err := fmt.Fprint(a.Out, m.Text())
	return code, err
}
