package cli

import (
	"strings"

	"lockstep/cli/frame"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
)

// formats lists the formats of simrun run besides its table.
var formats = []string{"junit", "github"}

func checkFormat(format string, asJSON bool) error {
	if format != "" && asJSON {
		return frame.Usagef("--format %s and --json: give one of them", format)
	}
	return nil
}

// casesMost limits the runs of a format that needs all of them at once.
const casesMost = 100_000

// caseOf returns a run in the form in which it is written for other programs.
func caseOf(v play.Verdict) report.Case {
	file := v.Scenario.File
	if strings.HasPrefix(file, "builtin/") {
		file = "scenarios/" + file
	}
	c := report.Case{
		Scenario: v.Scenario.Name, File: file, Lock: v.Lock.Name, Seed: v.Seed, Verdict: string(v.Word), Expected: v.Expected,
		AsExpected: v.AsExpected, Replay: commandToReplay(v),
	}
	if v.Word == play.VerdictNotApplicable {
		c.Text = sentence.Verdict(v)
	}
	if !v.AsExpected {
		if why := sentence.Verdict(v); why != "" {
			c.Text = why + "\n"
		}
		for _, f := range v.Findings {
			c.Text += f.Judge + ": " + sentence.Finding(f) + "\n"
		}
		c.Text += shortStory(v)
	}
	return c
}

func writeCases(a *frame.App, format string, cases []report.Case) error {
	if format == "junit" {
		return report.WriteJUnit(a.Out, cases)
	}
	return report.WriteGitHub(a.Workflow, cases)
}

// storyEvents limits the events that simrun run shows of a failing run.
const storyEvents = 12

// shortStory returns the events that led a failing run to its first finding.
func shortStory(v play.Verdict) string {
	if v.Played.Record == nil {
		return ""
	}
	return report.Shortened(reportOf(v, ""), storyEvents)
}
