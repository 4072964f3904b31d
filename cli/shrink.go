package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/explore/failure"
	"lockstep/explore/shrink"
	"lockstep/internal/counted"
	"lockstep/known"
	"lockstep/model"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// shrinkRuns limits the runs that simrun shrink plays for a recording.
const shrinkRuns = 2000

func shrinkCommand(a *frame.App) *cobra.Command {
	var out, judge string
	c := a.Command(frame.Guide{
		Use: "shrink RECORDING", Short: "find the smallest scenario that breaks the same judge",
		Long: "Shrink takes steps, threads and faults out of the scenario of a recording for as long as the failure is the same: the judge, bug or limit, the kind of call that broke it, " +
			"and the known defect or the excuse. The smaller run may reach the failure in another way. The result is a scenario file, or a recording if only certain decisions show the failure.",
		Examples: []string{"shrink results/misdelete/setnx-del/1.lockstep", "shrink results/misdelete/setnx-del/1.lockstep -o small.yaml"},
	}, func(in frame.Invocation) (int, error) { return shrinkRecording(a, in, out, judge) })
	f := c.Flags()
	f.StringVarP(&out, "out", "o", "", "write it to `FILE`")
	frame.OneOf(f, &judge, "judge", "", model.Judges, "the judge that must still say no; default: the first that found a bug, else a limit")
	c.ValidArgsFunction = frame.Files("lockstep")
	return c
}

func shrinkRecording(a *frame.App, in frame.Invocation, out, judge string) (int, error) {
	files := in.Names
	rec, sc, lock, err := readRecording(toShrink, files)
	if err != nil {
		return 0, err
	}
	if rec.Verdict == play.VerdictHeld {
		return 0, frame.Usagef("%s: nothing is broken in it, so there is nothing to shrink", files[0])
	}
	var to *frame.Target
	if in.Given.Changed("out") {
		if to, err = frame.NewTarget(out, files[0]); err != nil {
			return 0, err
		}
	}
	v, why := playAgain(a, rec, sc, lock)
	if why != "" {
		a.Complain("%s is not the same again: %s", files[0], why)
		return frame.ExitUndecided, nil
	}
	finding, ok := failure.First(v, judge)
	if !ok {
		what := "nothing is broken in it, so there is nothing to shrink"
		if any, ok := failure.First(v, ""); ok {
			what = fmt.Sprintf("%s is not broken in it; %s is", judge, any.Judge)
		}
		return 0, frame.Usagef("%s: %s", files[0], what)
	}
	f := failure.Failure{Verdict: v, Finding: finding}
	f.Seeded = play.Play(a.Host, sc, lock, sim.NewSeeded(rec.Seed)).Record.Digest() == v.Digest()
	small, phases := shrink.Shrink(a.Host, f, shrinkRuns, nil)

	text, what := []byte(small.Verdict.Scenario.Text), "a scenario: "+frame.Simrun()+" run "
	if !small.Seeded {
		what = "a recording, since only these decisions show it: " + frame.Simrun() + " replay "
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
		fmt.Fprintf(a.Out, "%s%-10s %5d runs  %s\n", mark, p.Name, p.Runs, p.Did)
	}
	fmt.Fprintf(a.Out, "%s%s (%s) in %s: %s, now %d\n", mark, finding.Judge, finding.Class, counted.Of(phases.Runs(), "run"), counted.Of(failure.Size(v), "event"), failure.Size(small.Verdict))
	origin, _ := failure.OriginOf(failure.NewNamer(a.Host, small.Verdict), small.Finding)
	for _, line := range []string{"it was: " + sentence.Finding(finding), "it is: " + sentence.Finding(small.Finding), sameOrigin(origin)} {
		fmt.Fprint(a.Out, report.Wrap(line, mark+"    ", 100))
	}
	if to == nil {
		_, err := a.Out.Write(text)
		return frame.ExitOK, err
	}
	if err := to.Replace(text); err != nil {
		return 0, err
	}
	fmt.Fprintf(a.Out, "%s%s\n", what, frame.Quoted(out))
	return frame.ExitOK, nil
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
