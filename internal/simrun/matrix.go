package simrun

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/explore"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/model"
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

func (a *app) matrixCommand() *cobra.Command {
	var o matrixFlags
	c := a.command(guide{
		use: "matrix [SCENARIO or FILE ...]", short: "a table of scenarios by locks; without a name, of the track record",
		long: "Matrix plays scenarios and prints a table of the verdicts: scenarios by the releases of a lock, or by other locks. " +
			"Without a name and a tag it plays the track record, in a minute.",
		examples: []string{"matrix misdelete --seed 1", "matrix --lock redisson@3.43.0,redisson@4.7.0 --format markdown"},
	}, func(in invocation) (int, error) { return a.matrix(in, o) })
	f := c.Flags()
	lockFlag(f, &o.locks, "play on `LOCK` in place of the locks of the scenarios; may be repeated")
	tagFlag(f, &o.tag)
	seedFlag(f, &o.seeds, "", "the seeds, `N or A..B`; default: each scenario's own")
	oneOf(f, &o.format, "format", "text", matrixFormats, "text, json, markdown or html")
	jsonFlag(f, &o.asJSON, "one object per cell, as --format json")
	a.quietFlag(f, "in place of the table only the summary and the results that were not as expected")
	c.ValidArgsFunction = scenariosOrFiles
	return c
}

// matrix plays scenarios on locks and prints a table of the verdicts. If some scenarios are
// about the releases of a lock, the releases are the columns. Otherwise the locks are the rows.
// But if no lock plays all scenarios, the scenarios are the rows, with their locks by verdict.
func (a *app) matrix(in invocation, o matrixFlags) (int, error) {
	write := map[string]func(*app, *table) error{
		"text": (*app).matrixText, "json": (*app).matrixJSON, "markdown": (*app).matrixMarkdown, "html": (*app).matrixHTML,
	}[o.format]
	if o.asJSON {
		write = (*app).matrixJSON
	}
	if len(in.names) == 0 && o.tag == "" {
		o.tag = trackRecord
	}
	pairs, err := choose(in.names, o.tag, o.locks, o.seeds)
	if err != nil {
		return 0, err
	}
	different := sparse(pairs)
	if different && len(o.locks) == 0 {
		pairs = withNeighbours(pairs)
	}
	stop, release := a.interruptible()
	defer release()
	progress := a.newProgress(pairs)
	t := &table{command: strings.Join(append([]string{program() + " matrix"}, in.args...), " "), different: different}
	var odd []byte // lines of the pairs that were not as expected
	for _, p := range pairs {
		if err := a.play(stop, p, progress, nil); err != nil {
			return 0, err
		}
		if stop.Err() != nil {
			return 0, interruptedError(fmt.Sprintf(" after %d of %s; there is no table", runsOf(pairs), counted.Of(progress.total, "run")))
		}
		t.add(p)
		if a.quiet && !p.asExpected() {
			odd = append(odd, a.captured(func() { a.line(p) })...)
		}
		p.forget()
	}
	switch text := o.format == "text" && !o.asJSON; {
	case text && a.quiet:
		a.summary(pairs, odd)
		return exitCode(pairs), nil
	case text:
		a.summaryLine(pairs)
		fmt.Fprintln(a.out)
	}
	if err := write(a, t); err != nil {
		return 0, err
	}
	return exitCode(pairs), nil
}

// withNeighbours returns the pairs, and each scenario also with the locks of its collection to which it does
// not apply. So the table gives the reasons.
func withNeighbours(pairs []*pair) []*pair {
	locks := map[string][]*subject.Subject{} // by collection
	for _, p := range pairs {
		if c := p.sc.Collection(); !slices.Contains(locks[c], p.lock) {
			locks[c] = append(locks[c], p.lock)
		}
	}
	var all []*pair
	for i, p := range pairs {
		all = append(all, p)
		if i+1 < len(pairs) && pairs[i+1].sc == p.sc {
			continue
		}
		for _, l := range locks[p.sc.Collection()] {
			named := slices.ContainsFunc(pairs, func(other *pair) bool { return other.sc == p.sc && other.lock == l })
			if !named && play.Applies(p.sc, l) != nil {
				all = append(all, &pair{sc: p.sc, lock: l, from: p.from, to: p.to})
			}
		}
	}
	return all
}

// sparse reports whether no lock plays all scenarios.
func sparse(pairs []*pair) bool {
	played := map[string]int{} // scenarios by lock
	all := map[*scenarios.Scenario]bool{}
	for _, p := range pairs {
		played[p.lock.Name]++
		all[p.sc] = true
	}
	for _, n := range played {
		if n == len(all) {
			return false
		}
	}
	return true
}

// A table is a matrix with one cell per pair.
type table struct {
	command string
	// different reports that the scenarios are about different locks, and that no lock plays all of
	// them.
	different bool
	rows      []*scenarios.Scenario
	cells     []cell
}

type cell struct {
	*pair
	word     string // held, bug or limit; undecided or nondeterministic if it was not judged
	verdict  play.Verdict
	measured string // "" if nothing is measured
}

func (t *table) add(p *pair) {
	if len(t.rows) == 0 || t.rows[len(t.rows)-1] != p.sc {
		t.rows = append(t.rows, p.sc)
	}
	c := cell{pair: p, verdict: p.worst()}
	c.word = wordOf(c.verdict, play.About(p.sc))
	for _, k := range p.kinds {
		if k.shown == c.word && p.expected(k.first) == c.verdict.AsExpected {
			c.verdict = p.settled(k.first) // the first seed that shows it
			break
		}
	}
	if measure := measures[p.sc.Name]; measure != nil && c.verdict.Played.Record != nil {
		c.measured = measure(c.verdict.Played.Record)
	}
	c.verdict.Played.Record, c.verdict.Played.Trace = nil, nil
	t.cells = append(t.cells, c)
}

// wordOf returns the verdict that a run would have if only these judges counted. A run that is
// undecided, nondeterministic or not played keeps its verdict.
func wordOf(v play.Verdict, about []string) string {
	if v.Word == play.VerdictNotApplicable {
		return string(v.Word)
	}
	if broke := v.Word == play.VerdictBug || v.Word == play.VerdictLimit; len(about) == 0 || !broke && !v.AsExpected {
		return string(v.Word)
	}
	word := play.VerdictHeld
	for _, f := range v.Findings {
		switch {
		case f.Verdict != judges.Broken || !slices.Contains(about, f.Judge):
		case f.Class == judges.ClassBug:
			return string(play.VerdictBug)
		default:
			word = play.VerdictLimit
		}
	}
	return string(word)
}

// cell returns the cell of a scenario in a column; nil: none.
func (t *table) cell(sc *scenarios.Scenario, column string) *cell {
	for i := range t.cells {
		if c, _ := columnOf(t.cells[i].pair); t.cells[i].sc == sc && c == column {
			return &t.cells[i]
		}
	}
	return nil
}

// controlColumn is the column of the plain and the fair reference lock. It stands after the
// releases.
const controlColumn = "reference"

// columnOf returns the column of a pair. In a scenario about the releases of a lock, it is
// the release if the pair's lock has the same family, and controlColumn if the pair's lock is
// a control. Otherwise it is the name of the pair's lock, and own is true.
func columnOf(p *pair) (column string, own bool) {
	first, err := subject.Find(p.sc.Locks[0])
	ofReleases := err == nil && first.Release != ""
	switch {
	case ofReleases && p.lock.Release != "" && !p.lock.Replicated && model.Family(p.lock.Name) == model.Family(first.Name):
		return p.lock.Release, false
	case ofReleases && p.lock.Control:
		return controlColumn, false
	}
	return p.lock.Name, true
}

// columns returns the columns of the table: its releases, oldest first, and controlColumn.
// others are the locks without a column.
func (t *table) columns() (releases, others []string) {
	shared := map[string]bool{}
	for _, c := range t.cells {
		if column, own := columnOf(c.pair); !own {
			shared[column] = true
		} else if !slices.Contains(others, column) {
			others = append(others, column)
		}
	}
	others = slices.DeleteFunc(others, func(column string) bool { return shared[column] }) // the lock called reference
	for _, l := range subject.All() {
		if v := l.Release; shared[v] && !slices.Contains(releases, v) {
			releases = append(releases, v)
		}
	}
	if shared[controlColumn] {
		releases = append(releases, controlColumn)
	}
	return releases, others
}

// say returns the text of a cell: the verdict, and the first seed that shows it unless the
// verdict is held. If it is held and measured, say returns the measurement.
func (c *cell) say() string {
	if c == nil {
		return "–"
	}
	s := c.word
	if c.measured != "" && c.word == string(play.VerdictHeld) {
		return c.measured
	}
	if c.word != string(play.VerdictHeld) && c.word != string(play.VerdictNotApplicable) {
		s += fmt.Sprintf(" %d", c.verdict.Seed)
	}
	return s + c.mark()
}

// mark returns "!" if the verdict is not what the scenario expects.
func (c *cell) mark() string {
	if c.asExpected() {
		return ""
	}
	return "!"
}

// entry is a text of the table. Its word is the verdict that it is about; "" for none. A gap is
// the entry of a scenario and a lock that was not played.
type entry struct {
	word, text string
	gap        bool
}

// entry returns the entry of a cell. show may change its text.
func (c *cell) entry(show showing) entry {
	if c == nil {
		return entry{text: c.say(), gap: true}
	}
	return entry{word: c.word, text: show(c, c.say())}
}

// showing returns the text of a cell as the format of the table has it.
type showing func(c *cell, text string) string

func plainText(_ *cell, text string) string { return text }

// labels returns entries that are about no verdict.
func labels(texts ...string) []entry {
	var out []entry
	for _, text := range texts {
		out = append(out, entry{text: text})
	}
	return out
}

// grid returns the texts of the table: the head, then one row per scenario, or one row per
// lock if there are no columns of releases and some lock plays all scenarios. others are the
// locks that are in no row and no column.
func (t *table) grid(show showing) (grid [][]entry, others []string) {
	releases, others := t.columns()
	if len(releases) == 0 && t.different {
		return t.byVerdict(show), nil
	}
	if len(releases) == 0 {
		head := []string{"lock"}
		for _, sc := range t.rows {
			head = append(head, sc.Name)
		}
		grid = append(grid, labels(head...))
		for _, lock := range others {
			row := labels(lock)
			for _, sc := range t.rows {
				row = append(row, t.cell(sc, lock).entry(show))
			}
			grid = append(grid, row)
		}
		return grid, nil
	}
	grid = append(grid, labels(append([]string{"scenario", "lock"}, releases...)...))
	for _, sc := range t.rows {
		kind := "plain"
		if model.Family(sc.Locks[0]) == "redisson-fair" {
			kind = "fair"
		}
		row := labels(sc.Name, kind)
		for _, r := range releases {
			row = append(row, t.cell(sc, r).entry(show))
		}
		grid = append(grid, row)
	}
	return grid, others
}

// byVerdict returns the texts of a table of scenarios about different locks: per scenario, the
// locks that broke, the locks that held, and the locks to which it does not apply.
func (t *table) byVerdict(show showing) [][]entry {
	held, lacks := string(play.VerdictHeld), string(play.VerdictNotApplicable)
	head := []string{"scenario", "source", "broken", held, lacks}
	grid := [][]entry{labels(head...)}
	for _, sc := range t.rows {
		texts, words := map[string][]string{}, map[string]string{}
		for i := range t.cells {
			c := &t.cells[i]
			switch {
			case c.sc != sc:
			case c.word == lacks:
				texts[lacks] = append(texts[lacks], c.lock.Name)
			case c.word == held && c.asExpected():
				texts[held] = append(texts[held], c.lock.Name)
			case c.word == held:
				texts[held] = append(texts[held], show(c, c.lock.Name+c.mark()))
			default:
				words["broken"] = cmp.Or(words["broken"], c.word)
				texts["broken"] = append(texts["broken"], show(c, c.say())+" on "+c.lock.Name)
			}
		}
		row := labels(sc.Name, squeeze(sc.Source))
		for _, column := range head[2:] {
			row = append(row, entry{word: words[column], text: cmp.Or(strings.Join(texts[column], ", "), "–")})
		}
		grid = append(grid, row)
	}
	return grid
}

const (
	matrixKey = "held: what the scenario is about did not break. bug, limit: it broke; the number is the first seed that shows it. !: not what the scenario expects."
	// elsewhereKey explains a cell of a run that broke another promise.
	elsewhereKey = " held!: something broke that the scenario is not about; run shows it."
	// unnamedKey explains the cells of locks that a scenario does not name and to which it applies.
	unnamedKey = " –: not played, since the scenario does not name the lock."
)

// key explains the cells.
func (t *table) key() string {
	if releases, _ := t.columns(); len(releases) == 0 && t.different {
		return "held: what the scenario is about did not break. bug, limit: it broke; the number is the first seed that shows it. !: not what the scenario expects. " +
			"n/a: a lock of other scenarios here does not offer what the scenario asks for; the reason is below. –: none of these locks."
	}
	key := matrixKey
	if slices.ContainsFunc(t.cells, func(c cell) bool { return c.verdict.Word == play.VerdictNotApplicable }) {
		key += " n/a: the lock does not offer what the scenario asks for, or does not claim what it asks about; the reason is below."
	}
	if slices.ContainsFunc(t.cells, func(c cell) bool {
		return c.word == string(play.VerdictHeld) && c.verdict.Word != play.VerdictHeld && !c.asExpected()
	}) {
		key += elsewhereKey
	}
	if t.gaps() {
		key += unnamedKey
	}
	return key
}

// gaps reports whether the table has a cell of a scenario and a lock that was not played.
func (t *table) gaps() bool {
	grid, _ := t.grid(plainText)
	return slices.ContainsFunc(grid, func(row []entry) bool {
		return slices.ContainsFunc(row, func(e entry) bool { return e.gap })
	})
}

func (a *app) matrixText(t *table) error {
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
			line.WriteString(a.paint(e.word, padded) + " ")
		}
		fmt.Fprintln(a.out, strings.TrimRight(line.String(), " "))
	}
	for _, sc := range t.rows {
		for _, lock := range others {
			if c := t.cell(sc, lock); c != nil {
				fmt.Fprint(a.out, wrap(fmt.Sprintf("%s on %s: %s", sc.Name, lock, c.say()), "", 100))
			}
		}
	}
	for _, sc := range t.rows {
		for _, why := range t.lacking(sc) {
			fmt.Fprint(a.out, wrap(sc.Name+": "+why, "", 100))
		}
	}
	fmt.Fprint(a.out, "\n"+wrap(t.key(), "", 100))
	if last := t.odd(); last != nil {
		fmt.Fprintf(a.out, "replay: %s\n", replayCommand(last.verdict))
	}
	return nil
}

// odd returns the last cell whose verdict was not expected, or nil.
func (t *table) odd() *cell {
	for i := len(t.cells) - 1; i >= 0; i-- {
		if !t.cells[i].asExpected() {
			return &t.cells[i]
		}
	}
	return nil
}

func (a *app) matrixJSON(t *table) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	for _, c := range t.cells {
		if err := enc.Encode(asObject(c.verdict, c.recording())); err != nil {
			return err
		}
	}
	return nil
}

// recording returns the file in which `run --out` keeps the run, or "" if it does not keep
// it.
func (c *cell) recording() string {
	if (c.verdict.Word == play.VerdictHeld || c.verdict.Word == play.VerdictNotApplicable) && c.verdict.AsExpected {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d.lockstep", c.sc.Name, c.lock.Name, c.verdict.Seed)
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

func (a *app) matrixMarkdown(t *table) error {
	link := func(c *cell, text string) string {
		if c.recording() != "" {
			text = "[" + text + "](" + c.recording() + ")"
		}
		return text
	}
	grid, others := t.grid(link)
	fmt.Fprintf(a.out, "<!-- written by: %s -->\n%s# Scenarios by locks\n\nWritten by `%s`. %s\n\n", t.command, explore.CurrentVersions().Played().Comment(), t.command, t.key())
	for i, row := range grid {
		fmt.Fprint(a.out, "|")
		for _, e := range row {
			fmt.Fprintf(a.out, " %s |", e.text)
		}
		fmt.Fprintln(a.out)
		if i == 0 {
			fmt.Fprintf(a.out, "|%s\n", strings.Repeat("---|", len(row)))
		}
	}
	for _, sc := range t.rows {
		fmt.Fprintf(a.out, "\n## %s\n\n%s\n\nSource: %s.", sc.Name, squeeze(sc.About), sc.Source)
		if j := judgesNamed(sc); j != "" {
			fmt.Fprintf(a.out, " Judged by: %s.", j)
		}
		if len(sc.Reach) > 0 {
			fmt.Fprintf(a.out, " Each run reaches: %s.", strings.Join(sc.Reach, ", "))
		}
		for _, lock := range others {
			if c := t.cell(sc, lock); c != nil {
				fmt.Fprintf(a.out, " On `%s`: %s.", lock, link(c, c.say()))
			}
		}
		fmt.Fprintln(a.out)
		for _, why := range t.lacking(sc) {
			fmt.Fprintf(a.out, "\n%s.\n", why)
		}
		t.shown(a.out, sc)
	}
	return nil
}

// lacking returns the locks to which a scenario does not apply, each with the reason.
func (t *table) lacking(sc *scenarios.Scenario) (list []string) {
	for _, c := range t.cells {
		if c.sc == sc && c.word == string(play.VerdictNotApplicable) {
			list = append(list, fmt.Sprintf("n/a on %s: %s", c.lock.Name, sentence.Verdict(c.verdict)))
		}
	}
	return list
}

// shown writes the findings on the first lock that has findings, one per judge.
func (t *table) shown(w io.Writer, sc *scenarios.Scenario) {
	for _, c := range t.cells {
		if c.sc == sc && len(c.verdict.Findings) > 0 {
			fmt.Fprintf(w, "\nOn `%s`:\n\n", c.lock.Name)
			told := map[string]bool{}
			for _, f := range c.verdict.Findings {
				if !told[f.Judge] {
					told[f.Judge] = true
					fmt.Fprintf(w, "* **%s**: %s\n", f.Judge, strings.ReplaceAll(sentence.Finding(f), "|", "\\|"))
				}
			}
			return
		}
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

func (a *app) matrixHTML(t *table) error {
	grid, others := t.grid(plainText)
	fmt.Fprintf(a.out, `<!doctype html>
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
		fmt.Fprint(a.out, "<tr>")
		for _, e := range row {
			fmt.Fprintf(a.out, `<%s class="%s">%s</%s>`, tag, html.EscapeString(e.word), html.EscapeString(e.text), tag)
		}
		fmt.Fprintln(a.out, "</tr>")
	}
	fmt.Fprintln(a.out, "</table>")
	for _, sc := range t.rows {
		fmt.Fprintf(a.out, "<h2>%s</h2>\n<p>%s</p>\n<p>Source: %s.", sc.Name, html.EscapeString(squeeze(sc.About)), html.EscapeString(sc.Source))
		for _, lock := range others {
			if c := t.cell(sc, lock); c != nil {
				fmt.Fprintf(a.out, " On %s: %s.", html.EscapeString(lock), c.say())
			}
		}
		for _, why := range t.lacking(sc) {
			fmt.Fprintf(a.out, "<br>%s.", html.EscapeString(why))
		}
		fmt.Fprintln(a.out, "</p>")
	}
	fmt.Fprintln(a.out, "</html>")
	return nil
}
