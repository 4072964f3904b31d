package simrun

import (
	"strings"

	"lockstep/report"
	"lockstep/scenarios/play"
)

// formats lists the formats of simrun run besides its table.
var formats = []string{"junit", "github"}

func checkFormat(format string, asJSON bool) error {
	if format != "" && asJSON {
		return usagef("--format %s and --json: give one of them", format)
	}
	return nil
}

// cases returns the runs of a pair in the form in which they are written for other
// programs.
func (p *pair) cases() []report.Case {
	var out []report.Case
	for _, v := range p.verdicts {
		file := v.Scenario.File
		if strings.HasPrefix(file, "builtin/") {
			file = "scenarios/" + file
		}
		c := report.Case{
			Scenario: v.Scenario.Name, File: file, Lock: v.Lock.Name, Seed: v.Seed, Verdict: string(v.Word), Expected: v.Expected,
			AsExpected: v.AsExpected, Replay: replayCommand(v),
		}
		if v.Word == play.VerdictNotApplicable {
			c.Text = v.Why
		}
		if !v.AsExpected {
			if v.Why != "" {
				c.Text = v.Why + "\n"
			}
			for _, f := range v.Findings {
				c.Text += f.Judge + ": " + f.Why + "\n"
			}
			c.Text += shortStory(v)
		}
		out = append(out, c)
	}
	return out
}

func (a *app) writeCases(format string, cases []report.Case) error {
	if format == "junit" {
		return report.WriteJUnit(a.out, cases)
	}
	return report.WriteGitHub(a.out, cases)
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
