package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"lockstep/cli/frame"
	"lockstep/explain"
	"lockstep/explore"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/report"
)

// writeResult prints the result of a campaign. It also writes the result to dir, unless dir is "". If it
// cannot write there, it prints the result nevertheless.
func writeResult(a *frame.App, o explore.Tally, small []explore.Shrunk, dir string, asJSON bool) (err error) {
	if dir != "" {
		if err = explore.WriteTally(dir, frame.SimrunInFiles(), o, small); err != nil {
			dir = ""
		}
	}
	if asJSON {
		return errors.Join(err, o.WriteJSON(a.Out, small))
	}
	printTally(a, o, small, dir)
	return err
}

// tallyCode returns the exit code of a campaign. A campaign that ended with its time did its task
// if it played a run. An exhaustive search did not.
func tallyCode(o explore.Tally, inTime bool) int {
	switch {
	case len(o.Died) > 0:
		return frame.ExitDefect
	case slices.ContainsFunc(o.Groups, func(g explore.Found) bool { return g.Class == "bug" }):
		return frame.ExitUnexpected
	case len(o.Odd) > 0 || len(o.Unjudged()) > 0 || o.Coverage != nil && !o.Coverage.Complete:
		return frame.ExitUndecided
	case (o.Missing > 0 || o.Unfinished > 0) && (!inTime || o.Runs == 0):
		return frame.ExitUndecided
	}
	return frame.ExitOK
}

// untriedMost is the number of sentences about cells that were not tried.
const untriedMost = 3

// notTried names some cells that the faults of a campaign never met, and the file that has all. It
// returns "" if they met all cells, or there are none.
func notTried(o explore.Tally, dir string) string {
	if o.Cells == nil {
		return ""
	}
	text := o.Cells.NotTried(untriedMost)
	switch {
	case text == "":
		return ""
	case dir == "":
		return text + " (--out DIR writes a table, and --json has all)"
	}
	return fmt.Sprintf("%s (table: %s)", text, filepath.Join(dir, VerdictsPage))
}

// printTally prints the totals of a campaign, the failures that it found, and what it did not try.
func printTally(a *frame.App, o explore.Tally, small []explore.Shrunk, dir string) {
	fmt.Fprint(a.Out, report.Wrap(o.Total(), "", 100))
	unkept := false // a failure that is printed has no recording
	for i, g := range o.Groups {
		if a.Quiet && g.Class != judges.ClassBug {
			continue
		}
		word := string(g.Class)
		cause := ""
		switch {
		case g.Defect != "":
			cause = ", " + explain.DefectText(g.Defect)
		case g.Excuse != "":
			cause = ", excused: " + small[i].Excused()
		}
		fmt.Fprintf(a.Out, "%s %s at %s, with %s\n", a.Paint(word, fmt.Sprintf("%-5s", word)), g.Judge, g.Op, g.FaultWords())
		fmt.Fprint(a.Out, report.Wrap(fmt.Sprintf("%d of %d runs, first seed %d; %s %s%s",
			g.Count, o.Runs, g.First.Seed, counted.Of(small[i].Size, "event"), small[i].Shrinking(), cause), "    ", 100))
		fmt.Fprint(a.Out, report.Wrap(small[i].Why, "    ", 100))
		if cause := small[i].CauseText(); cause != "" {
			fmt.Fprint(a.Out, report.Wrap("cause: "+cause, "    ", 100))
		}
		switch recording := g.Recording(small[i]); {
		case recording == "":
		case dir == "":
			unkept = true
		default:
			fmt.Fprintf(a.Out, "    replay: %s\n", frame.Command("replay", filepath.Join(dir, recording)))
		}
	}
	if unkept {
		fmt.Fprintln(a.Out, "The same command with --out DIR writes a recording of each failure.")
	}
	if text := notTried(o, dir); text != "" && !a.Quiet {
		fmt.Fprint(a.Out, report.Wrap(text, "", 100))
	}
	if len(o.Plan.Faults) == 0 && !a.Quiet {
		fmt.Fprintln(a.Out, "No faults were played: --faults names those that you fear, and --faults all plays every kind.")
	}
}
