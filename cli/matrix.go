package cli

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/counted"
	"lockstep/internal/foreign"
	"lockstep/model"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// trackRecord is the tag of the scenarios that matrix shows if no scenario is named.
const trackRecord = "track-record"

// matrixFormats are the formats of a matrix.
var matrixFormats = []string{"text", "json", "markdown", "html"}

// matrixFlags are the options of simrun matrix.
type matrixFlags struct {
	locks              []string
	tag, seeds, format string
	asJSON             bool
}

func matrixCommand(a *frame.App) *cobra.Command {
	var o matrixFlags
	c := a.Command(frame.Guide{
		Use: "matrix [SCENARIO or FILE ...]", Short: "a table of scenarios by locks; without a name, of the track record",
		Long: "Matrix plays scenarios and prints a table of the verdicts: scenarios by the releases of a lock, or by other locks. " +
			"Without a name and a tag it plays the track record, in a minute.",
		Examples: []string{"matrix misdelete --seed 1", "matrix --lock redisson@3.43.0,redisson@4.7.0 --format markdown"},
	}, func(in frame.Invocation) (int, error) { return writeMatrix(a, in, o) })
	f := c.Flags()
	frame.LockFlag(f, &o.locks, "play on `LOCK` in place of the locks of the scenarios; may be repeated")
	frame.TagFlag(f, &o.tag)
	frame.SeedFlag(f, &o.seeds, "", "the seeds, `N or A..B`; default: each scenario's own")
	frame.OneOf(f, &o.format, "format", "text", matrixFormats, "text, json, markdown or html")
	frame.JSONFlag(f, &o.asJSON, "one object per cell, as --format json")
	a.QuietFlag(f, "in place of the table only the summary and the results that were not as expected")
	c.ValidArgsFunction = frame.ScenariosOrFiles
	return c
}

// writeMatrix plays scenarios on locks and prints a table of the verdicts. If some scenarios are
// about the releases of a lock, the releases are the columns. Otherwise the locks are the rows.
// But if no lock plays all scenarios, the scenarios are the rows, with their locks by verdict.
func writeMatrix(a *frame.App, in frame.Invocation, o matrixFlags) (int, error) {
	write := map[string]func(*frame.App, *table) error{
		"text": matrixText, "json": matrixJSON, "markdown": matrixMarkdown, "html": matrixHTML,
	}[o.format]
	if o.asJSON {
		write = matrixJSON
	}
	if len(in.Names) == 0 && o.tag == "" {
		o.tag = trackRecord
	}
	pairs, err := Choose(in.Names, o.tag, o.locks, o.seeds)
	if err != nil {
		return 0, err
	}
	different := sparse(pairs)
	if different && len(o.locks) == 0 {
		pairs = withNeighbours(pairs)
	}
	stop, release := a.Interruptible()
	defer release()
	progress := newProgress(a, pairs)
	t := &table{command: frame.CommandInFiles(append([]string{"matrix"}, in.Args...)...), different: different}
	var odd []byte // lines of the pairs that were not as expected
	for _, p := range pairs {
		if err := PlayPair(a, stop, p, progress, nil); err != nil {
			return 0, err
		}
		if stop.Err() != nil {
			return 0, frame.InterruptedError(fmt.Sprintf(" after %d of %s; there is no table", runsOf(pairs), counted.Of(progress.total, "run")))
		}
		t.add(p)
		if a.Quiet && !p.asExpected() {
			odd = append(odd, a.Captured(func() { printPair(a, p) })...)
		}
		p.forget()
	}
	switch text := o.format == "text" && !o.asJSON; {
	case text && a.Quiet:
		printSummary(a, pairs, odd)
		return exitCode(pairs), nil
	case text:
		printTotals(a, pairs)
		fmt.Fprintln(a.Out)
	}
	if err := write(a, t); err != nil {
		return 0, err
	}
	return exitCode(pairs), nil
}

// withNeighbours returns the pairs, and each scenario also with the locks of its collection to which it does
// not apply. So the table gives the reasons.
func withNeighbours(pairs []*Pair) []*Pair {
	locks := map[string][]*subject.Subject{} // by collection
	for _, p := range pairs {
		if c := p.Scenario.Collection(); !slices.Contains(locks[c], p.Lock) {
			locks[c] = append(locks[c], p.Lock)
		}
	}
	var all []*Pair
	for i, p := range pairs {
		all = append(all, p)
		if i+1 < len(pairs) && pairs[i+1].Scenario == p.Scenario {
			continue
		}
		for _, l := range locks[p.Scenario.Collection()] {
			named := slices.ContainsFunc(pairs, func(other *Pair) bool { return other.Scenario == p.Scenario && other.Lock == l })
			if !named && play.Applies(p.Scenario, l) != nil {
				all = append(all, &Pair{Scenario: p.Scenario, Lock: l, From: p.From, To: p.To})
			}
		}
	}
	return all
}

// sparse reports whether no lock plays all scenarios.
func sparse(pairs []*Pair) bool {
	played := map[string]int{} // scenarios by lock
	all := map[*scenarios.Scenario]bool{}
	for _, p := range pairs {
		played[p.Lock.Name]++
		all[p.Scenario] = true
	}
	for _, n := range played {
		if n == len(all) {
			return false
		}
	}
	return true
}

func matrixText(a *frame.App, t *table) error {
	grid, others := t.grid(plainText)
	widths := make([]int, len(grid[0]))
	for _, row := range grid {
		for i, e := range row {
			widths[i] = max(widths[i], len([]rune(e.text)))
		}
	}
	for _, row := range grid {
		var line strings.Builder
		for i, e := range row {
			padded := e.text + strings.Repeat(" ", widths[i]-len([]rune(e.text)))
			line.WriteString(a.Paint(e.word, padded) + " ")
		}
		fmt.Fprintln(a.Out, strings.TrimRight(line.String(), " "))
	}
	for _, sc := range t.rows {
		for _, lock := range others {
			if c := t.cell(sc, lock); c != nil {
				fmt.Fprint(a.Out, report.Wrap(fmt.Sprintf("%s on %s: %s", sc.Name, lock, c.say()), "", 100))
			}
		}
	}
	for _, sc := range t.rows {
		for _, why := range t.lacking(sc) {
			fmt.Fprint(a.Out, report.Wrap(sc.Name+": "+why, "", 100))
		}
	}
	fmt.Fprint(a.Out, "\n"+report.Wrap(t.key(), "", 100))
	if last := t.lastUnexpected(); last != nil {
		fmt.Fprintf(a.Out, "replay: %s\n", commandToReplay(last.verdict))
	}
	return nil
}

func matrixJSON(a *frame.App, t *table) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	for _, c := range t.cells {
		if err := enc.Encode(asObject(c.verdict, c.recording())); err != nil {
			return err
		}
	}
	return nil
}

// judgesNamed returns the judges that the expectations of a scenario name.
func judgesNamed(sc *scenarios.Scenario) string {
	var names []string
	for _, judge := range model.Judges {
		for _, e := range sc.Expect {
			if slices.Contains(e.Judges, judge) && !slices.Contains(names, judge) {
				names = append(names, judge)
			}
		}
	}
	return strings.Join(names, ", ")
}

func matrixMarkdown(a *frame.App, t *table) error {
	link := func(c *cell, text string) string {
		if c.recording() != "" {
			text = "[" + text + "](" + c.recording() + ")"
		}
		return text
	}
	grid, others := t.grid(link)
	fmt.Fprintf(a.Out, "<!-- written by: %s -->\n%s# Scenarios by locks\n\nWritten by `%s`. %s\n\n", t.command, explore.CurrentVersions().Played().Comment(), t.command, t.key())
	for i, row := range grid {
		fmt.Fprint(a.Out, "|")
		for _, e := range row {
			fmt.Fprintf(a.Out, " %s |", e.text)
		}
		fmt.Fprintln(a.Out)
		if i == 0 {
			fmt.Fprintf(a.Out, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	for _, sc := range t.rows {
		fmt.Fprintf(a.Out, "\n## %s\n\n%s\n\nSource: %s.", sc.Name, foreign.Cell(squeeze(sc.About)), foreign.Cell(sc.Source))
		if j := judgesNamed(sc); j != "" {
			fmt.Fprintf(a.Out, " Judged by: %s.", j)
		}
		if len(sc.Reach) > 0 {
			fmt.Fprintf(a.Out, " Each run reaches: %s.", strings.Join(sc.Reach, ", "))
		}
		for _, lock := range others {
			if c := t.cell(sc, lock); c != nil {
				fmt.Fprintf(a.Out, " On `%s`: %s.", lock, link(c, c.say()))
			}
		}
		fmt.Fprintln(a.Out)
		for _, why := range t.lacking(sc) {
			fmt.Fprintf(a.Out, "\n%s.\n", foreign.Cell(why))
		}
		t.shown(a.Out, sc)
	}
	return nil
}

// lacking returns the locks to which a scenario does not apply, each with the reason.
func (t *table) lacking(sc *scenarios.Scenario) (list []string) {
	for _, c := range t.cells {
		if c.Scenario == sc && c.word == string(play.VerdictNotApplicable) {
			list = append(list, fmt.Sprintf("n/a on %s: %s", c.Lock.Name, sentence.Verdict(c.verdict)))
		}
	}
	return list
}

// shown writes the findings on the first lock that has findings, one per judge.
func (t *table) shown(w io.Writer, sc *scenarios.Scenario) {
	for _, c := range t.cells {
		if c.Scenario == sc && len(c.verdict.Findings) > 0 {
			fmt.Fprintf(w, "\nOn `%s`:\n\n", c.Lock.Name)
			told := map[string]bool{}
			for _, f := range c.verdict.Findings {
				if !told[f.Judge] {
					told[f.Judge] = true
					fmt.Fprintf(w, "* **%s**: %s\n", f.Judge, foreign.Cell(sentence.Finding(f)))
				}
			}
			return
		}
	}
}

func matrixHTML(a *frame.App, t *table) error {
	grid, others := t.grid(plainText)
	fmt.Fprintf(a.Out, `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Scenarios by locks</title>
<style>body{font-family:sans-serif;max-width:70em;margin:2em auto}td,th{padding:.2em .6em;text-align:left}.bug{background:#f8d0d0}.limit{background:#f8e8c0}.held{background:#d8f0d8}</style>
<h1>Scenarios by locks</h1>
<p>Written by <code>%s</code>. %s</p>
<table>
`, html.EscapeString(t.command), html.EscapeString(t.key()))
	for i, row := range grid {
		tag := "td"
		if i == 0 {
			tag = "th"
		}
		fmt.Fprint(a.Out, "<tr>")
		for _, e := range row {
			fmt.Fprintf(a.Out, `<%s class="%s">%s</%s>`, tag, html.EscapeString(e.word), html.EscapeString(e.text), tag)
		}
		fmt.Fprintln(a.Out, "</tr>")
	}
	fmt.Fprintln(a.Out, "</table>")
	for _, sc := range t.rows {
		fmt.Fprintf(a.Out, "<h2>%s</h2>\n<p>%s</p>\n<p>Source: %s.", sc.Name, html.EscapeString(squeeze(sc.About)), html.EscapeString(sc.Source))
		for _, lock := range others {
			if c := t.cell(sc, lock); c != nil {
				fmt.Fprintf(a.Out, " On %s: %s.", html.EscapeString(lock), c.say())
			}
		}
		for _, why := range t.lacking(sc) {
			fmt.Fprintf(a.Out, "<br>%s.", html.EscapeString(why))
		}
		fmt.Fprintln(a.Out, "</p>")
	}
	fmt.Fprintln(a.Out, "</html>")
	return nil
}
