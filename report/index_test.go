package report_test

import (
	"bytes"
	"strings"
	"testing"

	"lockstep/report"
)

// An empty cell of a table says why it is empty. The page explains the sign where it has one.
func TestAnEmptyCellOfTheIndexSaysWhy(t *testing.T) {
	const said, cell = "a scenario that was not played on the lock, since it does not name the lock", `title="not played: the scenario does not name the lock">–</td>`
	run := func(scenario, lock string) report.IndexRun {
		return report.IndexRun{Scenario: scenario, Lock: lock, Seed: 1, Verdict: "held", AsExpected: true}
	}
	full := []report.IndexRun{run("one", "x"), run("one", "y"), run("two", "x"), run("two", "y")}
	for _, c := range []struct {
		runs []report.IndexRun
		want bool
	}{{full, false}, {full[:3], true}} {
		var b bytes.Buffer
		if err := report.WriteIndex(&b, report.Index{Runs: c.runs}); err != nil {
			t.Fatal(err)
		}
		if page := b.String(); strings.Contains(page, said) != c.want || strings.Contains(page, cell) != c.want {
			t.Errorf("explained: want %v\n%s", c.want, page)
		}
	}
}
