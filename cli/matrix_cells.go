package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

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
	*Pair
	word     string // held, bug or limit; undecided or nondeterministic if it was not judged
	verdict  play.Verdict
	measured string // "" if nothing is measured
}

func (t *table) add(p *Pair) {
	if len(t.rows) == 0 || t.rows[len(t.rows)-1] != p.Scenario {
		t.rows = append(t.rows, p.Scenario)
	}
	c := cell{Pair: p, verdict: p.worst()}
	c.word = WordOf(c.verdict, play.About(p.Scenario))
	for _, k := range p.kinds {
		if k.shown == c.word && p.expected(k.first) == c.verdict.AsExpected {
			c.verdict = p.settled(k.first) // the first seed that shows it
			break
		}
	}
	if measure := measures[p.Scenario.Name]; measure != nil && c.verdict.Played.Record != nil {
		c.measured = measure(c.verdict.Played.Record)
	}
	c.verdict.Played.Record, c.verdict.Played.Trace = nil, nil
	t.cells = append(t.cells, c)
}

// WordOf returns the verdict that a run would have if only these judges counted. A run that is
// undecided, nondeterministic or not played keeps its verdict.
func WordOf(v play.Verdict, about []string) string {
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
		if c, _ := columnOf(t.cells[i].Pair); t.cells[i].Scenario == sc && c == column {
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
func columnOf(p *Pair) (column string, own bool) {
	first, err := subject.Find(p.Scenario.Locks[0])
	ofReleases := err == nil && first.Release != ""
	switch {
	case ofReleases && p.Lock.Release != "" && !p.Lock.Replicated && model.Family(p.Lock.Name) == model.Family(first.Name):
		return p.Lock.Release, false
	case ofReleases && p.Lock.Control:
		return controlColumn, false
	}
	return p.Lock.Name, true
}

// columns returns the columns of the table: its releases, oldest first, and controlColumn.
// others are the locks without a column.
func (t *table) columns() (releases, others []string) {
	shared := map[string]bool{}
	for _, c := range t.cells {
		if column, own := columnOf(c.Pair); !own {
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
			case c.Scenario != sc:
			case c.word == lacks:
				texts[lacks] = append(texts[lacks], c.Lock.Name)
			case c.word == held && c.asExpected():
				texts[held] = append(texts[held], c.Lock.Name)
			case c.word == held:
				texts[held] = append(texts[held], show(c, c.Lock.Name+c.mark()))
			default:
				words["broken"] = cmp.Or(words["broken"], c.word)
				texts["broken"] = append(texts["broken"], show(c, c.say())+" on "+c.Lock.Name)
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

// lastUnexpected returns the last cell whose verdict was not expected, or nil.
func (t *table) lastUnexpected() *cell {
	for i := len(t.cells) - 1; i >= 0; i-- {
		if !t.cells[i].asExpected() {
			return &t.cells[i]
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
	return fmt.Sprintf("%s/%s/%d.lockstep", c.Scenario.Name, c.Lock.Name, c.verdict.Seed)
}
