package simrun

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/explore/failure"
	"lockstep/explore/shrink"
	"lockstep/internal/counted"
	"lockstep/known"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// shrinkRuns limits the runs that simrun shrink plays for a recording.
const shrinkRuns = 2000

func (a *app) shrinkCommand() *cobra.Command {
	var out, judge string
	c := a.command(guide{
		use: "shrink RECORDING", short: "find the smallest scenario that breaks the same judge",
		long: "Shrink takes steps, threads and faults out of the scenario of a recording for as long as the failure is the same: the judge, bug or limit, the kind of call that broke it, " +
			"and the known defect or the excuse. The smaller run may reach the failure in another way. The result is a scenario file, or a recording if only certain decisions show the failure.",
		examples: []string{"shrink results/misdelete/setnx-del/1.lockstep", "shrink results/misdelete/setnx-del/1.lockstep -o small.yaml"},
	}, func(in invocation) (int, error) { return a.shrink(in, out, judge) })
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "", "write it to `FILE`")
	oneOf(f, &judge, "judge", "", model.Judges, "the judge that must still say no; default: the first that found a bug, else a limit")
	c.ValidArgsFunction = files("lockstep")
	return c
}

func (a *app) shrink(in invocation, out, judge string) (int, error) {
	files := in.names
	rec, sc, lock, err := readRecording("shrink", files)
	if err != nil {
		return 0, err
	}
	if rec.Verdict == play.VerdictHeld {
		return 0, usagef("%s: nothing is broken in it, so there is nothing to shrink", files[0])
	}
	var to *target
	if in.given.Changed("out") {
		if to, err = newTarget(out, files[0]); err != nil {
			return 0, err
		}
	}
	v, why := a.again(rec, sc, lock)
	if why != "" {
		fmt.Fprintf(a.err, "simrun: %s is not the same again: %s\n", files[0], why)
		return exitUndecided, nil
	}
	finding, ok := failure.First(v, judge)
	if !ok {
		what := "nothing is broken in it, so there is nothing to shrink"
		if any, ok := failure.First(v, ""); ok {
			what = fmt.Sprintf("%s is not broken in it; %s is", judge, any.Judge)
		}
		return 0, usagef("%s: %s", files[0], what)
	}
	f := failure.Failure{Verdict: v, Finding: finding}
	f.Seeded = play.Play(a.host, sc, lock, sim.NewSeeded(rec.Seed)).Record.Digest() == v.Digest()
	small, phases := shrink.Shrink(a.host, f, shrinkRuns, nil)

	text, what := []byte(small.Verdict.Scenario.Text), "a scenario: "+program()+" run "
	if !small.Seeded {
		what = "a recording, since only these decisions show it: " + program() + " replay "
		if text, err = recordingText(small.Verdict); err != nil {
			return 0, err
		}
	}
	// On stdout the file follows these lines, so they are comments of the file.
	mark := ""
	if to == nil {
		mark = "# "
	}
	for _, p := range phases {
		fmt.Fprintf(a.out, "%s%-10s %5d runs  %s\n", mark, p.Name, p.Runs, p.Did)
	}
	fmt.Fprintf(a.out, "%s%s (%s) in %s: %s, now %d\n", mark, finding.Judge, finding.Class, counted.Of(phases.Runs(), "run"), counted.Of(failure.Size(v), "event"), failure.Size(small.Verdict))
	origin, _ := failure.OriginOf(failure.NewNamer(a.host, small.Verdict), small.Finding)
	for _, line := range []string{"it was: " + sentence.Finding(finding), "it is: " + sentence.Finding(small.Finding), sameOrigin(origin)} {
		fmt.Fprint(a.out, wrap(line, mark+"    ", 100))
	}
	if to == nil {
		_, err := a.out.Write(text)
		return exitOK, err
	}
	if err := to.replace(text); err != nil {
		return 0, err
	}
	fmt.Fprintf(a.out, "%s%s\n", what, out)
	return exitOK, nil
}

// sameOrigin describes the origin that a failure and its smaller form have in common, besides the
// judge.
func sameOrigin(o failure.Origin) string {
	switch {
	case o.Defect != "":
		return "the same known defect: " + o.Defect + ", " + known.Title(o.Defect)
	case o.Excuse != "":
		return "the same excuse: " + o.Excuse
	}
	return "before and after a bug that has no name"
}

// A target is a file that is replaced completely or not at all.
type target struct{ file string }

// newTarget checks before any run that file can be written. It refuses the file that the
// command reads, from.
func newTarget(file, from string) (*target, error) {
	t := &target{file}
	switch info, err := os.Stat(file); {
	case file == "":
		return nil, usagef("-o needs a file")
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, usagef("-o: %w", err)
	case info.IsDir():
		return nil, usagef("-o %s is a folder; give a file", file)
	case !info.Mode().IsRegular():
		return nil, usagef("-o %s is no ordinary file; without -o the result goes to stdout", file)
	default:
		if read, err := os.Stat(from); err == nil && os.SameFile(info, read) {
			return nil, usagef("-o %s is the recording itself; name another file", file)
		}
		// Replace the file that a link names, not the link.
		if t.file, err = filepath.EvalSymlinks(file); err != nil {
			return nil, usagef("-o: %w", err)
		}
	}
	if err := inputFolder(filepath.Dir(t.file), "-o takes a file in a folder that exists"); err != nil {
		return nil, err
	}
	tmp, err := renameio.TempFile("", t.file)
	if err != nil {
		return nil, unwritable("-o", file, err)
	}
	return t, tmp.Cleanup()
}

func (t *target) replace(text []byte) error {
	return renameio.WriteFile(t.file, text, 0o644, renameio.WithExistingPermissions())
}
