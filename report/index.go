package report

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"lockstep/internal/foreign"
	"lockstep/model"
)

//go:embed assets/index.html
var indexHTML string

//go:embed assets/index.js
var indexJS string

var indexTemplate = template.Must(template.Must(template.New("index").Parse(indexHTML)).Parse(cellsHTML))

// An Index holds the results of a folder: runs of scenarios, campaigns, and tables.
type Index struct {
	Title     string
	Runs      []IndexRun
	Campaigns []Campaign
	Tables    []Table
	// Links lead out of the index.
	Links []Link
	// Stamp changes when the folder changes. It is "" if the page does not ask for changes.
	Stamp string
}

// A Campaign is the result of a campaign, which may still be under way.
type Campaign struct {
	Name     string // of its folder; "" for the folder of the index
	Sentence string
	Ran      int // runs that were played
	Groups   []IndexGroup
	Curve    []IndexPoint
	Cells    *Cells // nil: the campaign has no table of cells
}

// An IndexRun is one line of the verdicts of simrun run.
type IndexRun struct {
	Scenario   string `json:"scenario"`
	Lock       string `json:"lock"`
	Seed       uint64 `json:"seed"`
	Verdict    string `json:"verdict"`
	Expected   string `json:"expected"`
	AsExpected bool   `json:"as_expected"`
	Findings   []struct {
		Judge string `json:"judge"`
		Why   string `json:"why"`
	} `json:"findings"`
	Waits     Waits  `json:"waits"`
	Recording string `json:"recording"` // relative to the folder; "": none
	// Link is the address of the run's report. The caller fills it in.
	Link string `json:"-"`
}

// Waits sums up how long those calls of a run waited that were granted a lock.
type Waits struct {
	Granted int   `json:"granted"`
	P50Ns   int64 `json:"p50_ns"`
	P90Ns   int64 `json:"p90_ns"`
	P99Ns   int64 `json:"p99_ns"`
	MaxNs   int64 `json:"max_ns"`
}

// Why returns the first finding in words.
func (r IndexRun) Why() string {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Judge + ": " + r.Findings[0].Why
}

// An IndexGroup is one kind of failure that a campaign found.
type IndexGroup struct {
	Group     string   `json:"group"`
	Judge     string   `json:"judge"`
	Class     string   `json:"class"`
	Op        string   `json:"op"`
	Faults    []string `json:"faults"`
	Defect    string   `json:"defect"`
	Excuse    string   `json:"excuse"`
	Runs      int      `json:"runs"`
	FirstSeed uint64   `json:"first_seed"`
	Size      int      `json:"size_events"`
	Why       string   `json:"why"`
	Recording string   `json:"recording"`
	// Parting describes the event that made server and clients disagree. It is set for
	// bugs without a name.
	Parting string `json:"parting"`
	// Cause is the part of the record that shows the defect, as its own JSON.
	Cause json.RawMessage `json:"cause"`

	Link  string `json:"-"`
	Known string `json:"-"` // the defect and its cause in words; the caller fills it in
}

// FaultWords returns the faults that the failure needs. They are not known before it is
// shrunk.
func (g IndexGroup) FaultWords() string {
	switch {
	case g.Faults == nil:
		return "not asked yet"
	case len(g.Faults) == 0:
		return "none"
	}
	return strings.Join(g.Faults, ", ")
}

// An IndexPoint is the number of states that were met up to a run.
type IndexPoint struct {
	Runs   int `json:"runs"`
	States int `json:"states"`
}

// ReadIndex reads the verdicts.jsonl of a folder. Errors carry the name file. A line of an
// unknown kind is an error that names the line.
func ReadIndex(in io.Reader, file string) (Index, error) {
	var x Index
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return x, fmt.Errorf("%s: %w", file, err)
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if bad := x.line(text); bad != nil {
				return x, fmt.Errorf("%s:%d: %w", file, n, bad)
			}
		}
		if err != nil {
			return x, nil
		}
	}
}

func (x *Index) line(text []byte) error {
	var kind struct {
		Scenario *string `json:"scenario"`
		Lock     *string `json:"lock"`
		Group    *string `json:"group"`
		Campaign *string `json:"campaign"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return fmt.Errorf("not a verdict: %w", err)
	}
	switch {
	case kind.Group != nil:
		var g IndexGroup
		err := json.Unmarshal(text, &g)
		c := x.campaign()
		c.Groups = append(c.Groups, g)
		return err
	case kind.Campaign != nil:
		var total struct {
			Runs    int          `json:"runs"`
			Missing int          `json:"missing"`
			Steps   int64        `json:"steps"`
			States  []IndexPoint `json:"states"`
			Cells   *Cells       `json:"cells"`
		}
		err := json.Unmarshal(text, &total)
		c := x.campaign()
		c.Sentence = fmt.Sprintf("%s: %d runs, %d steps", *kind.Campaign, total.Runs, total.Steps)
		if total.Missing > 0 {
			c.Sentence += fmt.Sprintf(", %d runs missing", total.Missing)
		}
		c.Curve, c.Ran, c.Cells = total.States, total.Runs, total.Cells
		return err
	case kind.Scenario != nil && kind.Lock != nil:
		var r IndexRun
		err := json.Unmarshal(text, &r)
		x.Runs = append(x.Runs, r)
		return err
	}
	return errors.New("neither a run nor a group nor the total of a campaign")
}

// campaign returns the campaign whose lines are being read.
func (x *Index) campaign() *Campaign {
	if len(x.Campaigns) == 0 {
		x.Campaigns = []Campaign{{}}
	}
	return &x.Campaigns[0]
}

// Add adds the index of a folder, which is "." or a subfolder. It puts the folder's name
// before the names of the recordings.
func (x *Index) Add(folder string, y Index) {
	below := func(recording *string) {
		if *recording != "" {
			*recording = path.Join(folder, *recording)
		}
	}
	for _, r := range y.Runs {
		below(&r.Recording)
		x.Runs = append(x.Runs, r)
	}
	for _, c := range y.Campaigns {
		if folder != "." {
			c.Name = folder
		}
		for i := range c.Groups {
			below(&c.Groups[i].Recording)
		}
		x.Campaigns = append(x.Campaigns, c)
	}
}

// A Table is a table beside the verdicts.
type Table struct {
	Title string
	Head  []string
	Rows  [][]TableCell
}

// A TableCell is the text of a cell. If the cell links to a recording, Recording is its
// file, and Link is the address of its report.
type TableCell struct {
	Text, Recording, Link string
}

// EachRecording calls do for every recording of a run, a group or a table. It passes the
// recording and a pointer to the link to its report.
func (x *Index) EachRecording(do func(recording string, link *string)) {
	for i := range x.Runs {
		if r := &x.Runs[i]; r.Recording != "" {
			do(r.Recording, &r.Link)
		}
	}
	for i := range x.Campaigns {
		groups := x.Campaigns[i].Groups
		for j := range groups {
			if g := &groups[j]; g.Recording != "" {
				do(g.Recording, &g.Link)
			}
		}
	}
	for i := range x.Tables {
		for _, row := range x.Tables[i].Rows {
			for j := range row {
				if c := &row[j]; c.Recording != "" {
					do(c.Recording, &c.Link)
				}
			}
		}
	}
}

// WriteIndex writes an index as a page that needs no other file.
func WriteIndex(w io.Writer, x Index) error {
	verdicts := map[string]int{}
	odd := 0
	for _, r := range x.Runs {
		verdicts[r.Verdict]++
		if !r.AsExpected {
			odd++
		}
	}
	var counts []string
	for _, v := range []string{"held", "bug", "limit", "undecided", "nondeterministic", "n/a"} {
		if verdicts[v] > 0 {
			counts = append(counts, fmt.Sprintf("%s %d %s", signs[v], verdicts[v], v))
		}
	}
	list := rows(x.Runs)
	return foreign.Page(w, indexTemplate, struct {
		Index
		Rows     []indexRow
		Matrices []matrix
		Waited   bool
		Total    int
		Counts   string
		Odd      int
		Signs    map[string]string
		Gaps     bool // a cell of the matrices is empty
		Style    template.CSS
		Script   template.JS
	}{
		x, list, matrices(list), slices.ContainsFunc(x.Runs, func(r IndexRun) bool { return r.Waits.Granted > 0 }),
		len(x.Runs), strings.Join(counts, ", "), odd, signs, gaps(matrices(list)), template.CSS(pageCSS + cellsCSS), template.JS(indexJS),
	})
}

// An indexRow stands for consecutive seeds with the same verdict.
type indexRow struct {
	IndexRun
	last uint64
	// ID identifies the row on the page.
	ID string
}

// Seeds returns the seeds of the row in the form that --seed takes.
func (r indexRow) Seeds() string {
	if r.last == r.Seed {
		return fmt.Sprint(r.Seed)
	}
	return fmt.Sprintf("%d..%d", r.Seed, r.last)
}

// Sign returns the sign that stands beside the colour of the verdict.
func (r indexRow) Sign() string { return signs[r.Verdict] }

// rank orders the rows. Unexpected verdicts come first. The order of the verdicts is
// nondeterministic, undecided, bug, limit, held.
func (r indexRow) rank() int {
	n := slices.Index([]string{"nondeterministic", "undecided", "bug", "limit"}, r.Verdict)
	if n < 0 {
		n = 4
	}
	if !r.AsExpected {
		n -= 10
	}
	return n
}

func rows(runs []IndexRun) []indexRow {
	var out []indexRow
	for _, r := range runs {
		if n := len(out); n > 0 && r.Link == "" {
			o := &out[n-1]
			if o.Scenario == r.Scenario && o.Lock == r.Lock && o.Verdict == r.Verdict && o.AsExpected == r.AsExpected && o.last+1 == r.Seed {
				o.last = r.Seed
				o.Waits = o.Waits.longer(r.Waits)
				continue
			}
		}
		out = append(out, indexRow{IndexRun: r, last: r.Seed})
	}
	slices.SortStableFunc(out, func(a, b indexRow) int { return cmp.Compare(a.rank(), b.rank()) })
	for i := range out {
		out[i].ID = fmt.Sprintf("r%d", i)
	}
	return out
}

// longer returns the greater of each figure of w and o.
func (w Waits) longer(o Waits) Waits {
	return Waits{max(w.Granted, o.Granted), max(w.P50Ns, o.P50Ns), max(w.P90Ns, o.P90Ns), max(w.P99Ns, o.P99Ns), max(w.MaxNs, o.MaxNs)}
}

// String returns the median wait and the longest.
func (w Waits) String() string {
	if w.Granted == 0 {
		return ""
	}
	return length(w.P50Ns) + ", at most " + length(w.MaxNs)
}

// Title returns all figures.
func (w Waits) Title() string {
	return fmt.Sprintf("of %d that were granted, half waited at most %s, 90%% %s, 99%% %s, all %s", w.Granted, length(w.P50Ns), length(w.P90Ns), length(w.P99Ns), length(w.MaxNs))
}

// Places returns the positions of the figures on a logarithmic scale, on which 0 is 10 µs
// and 100 is 1000 s.
func (w Waits) Places() [4]string {
	var out [4]string
	for i, ns := range []int64{w.P50Ns, w.P90Ns, w.P99Ns, w.MaxNs} {
		out[i] = fmt.Sprintf("%.1f", min(100, max(0, 100*math.Log10(float64(max(ns, 1))/1e4)/8)))
	}
	return out
}

// A matrix shows scenarios by the releases of one lock, or by locks without releases.
type matrix struct {
	Family  string
	Columns []string // locks
	Rows    []matrixRow
}

// Heads returns the heads of the columns: the releases, or the names of the locks.
func (m matrix) Heads() []string {
	var out []string
	for _, c := range m.Columns {
		if m.Family != otherLocks {
			_, c, _ = strings.Cut(c, "@")
			c, _, _ = strings.Cut(c, "+")
		}
		out = append(out, c)
	}
	return out
}

// variant returns the name of a lock without its release: FAMILY, or FAMILY+SETUP.
func variant(lock string) string {
	if _, more, ok := strings.Cut(lock, "+"); ok {
		return model.Family(lock) + "+" + more
	}
	return model.Family(lock)
}

type matrixRow struct {
	Scenario string
	Cells    []*indexRow // nil: not played
}

// Odd reports whether a cell has an unexpected verdict.
func (r matrixRow) Odd() bool {
	return slices.ContainsFunc(r.Cells, func(c *indexRow) bool { return c != nil && !c.AsExpected })
}

// gaps reports whether a scenario was not played on a lock that has a column.
func gaps(all []matrix) bool {
	return slices.ContainsFunc(all, func(m matrix) bool {
		return slices.ContainsFunc(m.Rows, func(r matrixRow) bool { return slices.Contains(r.Cells, nil) })
	})
}

// otherLocks is the title of the matrix of all locks that have no other release.
const otherLocks = "other locks"

// matrices returns one matrix per variant that has several releases, and one for all other
// locks. A cell shows the first row of the list with its scenario and its lock.
func matrices(list []indexRow) []matrix {
	locks := map[string][]string{}
	for _, r := range list {
		f := variant(r.Lock)
		if !slices.Contains(locks[f], r.Lock) {
			locks[f] = append(locks[f], r.Lock)
		}
	}
	var out []matrix
	rest := matrix{Family: otherLocks}
	for _, f := range slices.Sorted(maps.Keys(locks)) {
		slices.SortFunc(locks[f], byRelease)
		if len(locks[f]) == 1 {
			rest.Columns = append(rest.Columns, locks[f]...)
			continue
		}
		out = append(out, matrix{Family: f, Columns: locks[f]})
	}
	if len(rest.Columns) > 0 {
		out = append(out, rest)
	}
	for i := range out {
		out[i].fill(list)
	}
	return out
}

func (m *matrix) fill(list []indexRow) {
	at := map[string]*matrixRow{}
	for i := range list {
		r := &list[i]
		column := slices.Index(m.Columns, r.Lock)
		if column < 0 {
			continue
		}
		row := at[r.Scenario]
		if row == nil {
			row = &matrixRow{Scenario: r.Scenario, Cells: make([]*indexRow, len(m.Columns))}
			at[r.Scenario] = row
		}
		if row.Cells[column] == nil {
			row.Cells[column] = r
		}
	}
	for _, s := range slices.Sorted(maps.Keys(at)) {
		m.Rows = append(m.Rows, *at[s])
	}
}

// byRelease orders locks by name. It compares numbers in names by their value.
func byRelease(a, b string) int {
	number := func(s string) (n int, digits int) {
		for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' && digits < 9 {
			n = n*10 + int(s[digits]-'0')
			digits++
		}
		return n, digits
	}
	for a != "" && b != "" {
		n, i := number(a)
		m, j := number(b)
		switch {
		case i > 0 && j > 0 && n != m:
			return cmp.Compare(n, m)
		case i > 0 && j > 0:
			a, b = a[i:], b[j:]
		case a[0] != b[0]:
			return cmp.Compare(a[0], b[0])
		default:
			a, b = a[1:], b[1:]
		}
	}
	return cmp.Compare(len(a), len(b))
}

// Line returns the curve of new states as points in a field of 800 by 140.
func (c Campaign) Line() string {
	most := c.Most()
	points := []string{"0,140"}
	for _, p := range c.Curve {
		points = append(points, fmt.Sprintf("%.1f,%.1f", 800*float64(p.Runs)/float64(max(most.Runs, 1)), 140-130*float64(p.States)/float64(max(most.States, 1))))
	}
	return strings.Join(points, " ")
}

// Most returns the last point of the curve.
func (c Campaign) Most() IndexPoint {
	if len(c.Curve) == 0 {
		return IndexPoint{}
	}
	return c.Curve[len(c.Curve)-1]
}
