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
	"slices"
	"strings"
	"time"

	"lockstep/model"
)

//go:embed assets/index.html
var indexHTML string

//go:embed assets/index.js
var indexJS string

var indexTemplate = template.Must(template.New("index").Parse(indexHTML))

// Index is a folder of results: runs of scenarios, or what a campaign found.
type Index struct {
	Title  string
	Runs   []IndexRun
	Groups []IndexGroup
	// Campaign is the sentence of a campaign; "" for a folder of runs.
	Campaign string
	Curve    []IndexPoint
	ran      int // of the campaign
	// Stamp changes when the folder does; "" for a page that does not ask.
	Stamp string
}

// Ran is how many runs of a campaign the index speaks of.
func (x Index) Ran() int { return x.ran }

// IndexRun is one line of the verdicts of simrun run.
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
	Recording string `json:"recording"` // relative to the folder; "": none
	// Link is where its report is, Waits how long its threads waited for locks;
	// both are filled in by whoever has them.
	Link, Waits string `json:"-"`
}

// Why is the first finding in words.
func (r IndexRun) Why() string {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Judge + ": " + r.Findings[0].Why
}

// IndexGroup is one kind of failure that a campaign found.
type IndexGroup struct {
	Group     string   `json:"group"`
	Judge     string   `json:"judge"`
	Class     string   `json:"class"`
	Op        string   `json:"op"`
	Faults    []string `json:"faults"`
	Defect    string   `json:"defect"`
	Runs      int      `json:"runs"`
	FirstSeed uint64   `json:"first_seed"`
	Size      int      `json:"size_events"`
	Why       string   `json:"why"`
	Recording string   `json:"recording"`

	Link string `json:"-"`
}

// IndexPoint is how many abstract states were known after so many runs.
type IndexPoint struct {
	Runs   int `json:"runs"`
	States int `json:"states"`
}

// ReadIndex reads the verdicts.jsonl of a folder; file is the name that errors
// carry. Lines of a kind that it does not know are an error with their number.
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
		x.Groups = append(x.Groups, g)
		return err
	case kind.Campaign != nil:
		var total struct {
			Runs    int          `json:"runs"`
			Missing int          `json:"missing"`
			Steps   int64        `json:"steps"`
			States  []IndexPoint `json:"states"`
		}
		err := json.Unmarshal(text, &total)
		x.Campaign = fmt.Sprintf("%s: %d runs, %d steps", *kind.Campaign, total.Runs, total.Steps)
		if total.Missing > 0 {
			x.Campaign += fmt.Sprintf(", %d runs missing", total.Missing)
		}
		x.Curve, x.ran = total.States, total.Runs
		return err
	case kind.Scenario != nil && kind.Lock != nil:
		var r IndexRun
		err := json.Unmarshal(text, &r)
		x.Runs = append(x.Runs, r)
		return err
	}
	return errors.New("neither a run nor a group nor the total of a campaign")
}

// WriteIndex writes an index as a page that needs nothing else.
func WriteIndex(w io.Writer, x Index) error {
	verdicts := map[string]int{}
	odd, waited := 0, false
	for _, r := range x.Runs {
		waited = waited || r.Waits != ""
		verdicts[r.Verdict]++
		if !r.AsExpected {
			odd++
		}
	}
	var counts []string
	for _, v := range []string{"held", "bug", "limit", "undecided", "nondeterministic"} {
		if verdicts[v] > 0 {
			counts = append(counts, fmt.Sprintf("%s %d %s", signs[v], verdicts[v], v))
		}
	}
	return indexTemplate.Execute(w, struct {
		Index
		Rows   []indexRow
		Total  int
		Counts string
		Waited bool
		Odd    int
		Signs  map[string]string
		Line   string
		Most   IndexPoint
		Style  template.CSS
		Script template.JS
	}{x, rows(x.Runs), len(x.Runs), strings.Join(counts, ", "), waited, odd, signs, polyline(x.Curve), last(x.Curve), template.CSS(pageCSS), template.JS(indexJS)})
}

// indexRow is seeds in a row that came to the same.
type indexRow struct {
	IndexRun
	last uint64
}

// Seeds are those of the row, as --seed takes them.
func (r indexRow) Seeds() string {
	if r.last == r.Seed {
		return fmt.Sprint(r.Seed)
	}
	return fmt.Sprintf("%d..%d", r.Seed, r.last)
}

// Sign stands beside the colour of the verdict.
func (r indexRow) Sign() string { return signs[r.Verdict] }

// rows puts what was not expected first, then bugs, limits, and what held.
func rows(runs []IndexRun) []indexRow {
	var out []indexRow
	for _, r := range runs {
		if n := len(out); n > 0 && r.Link == "" {
			o := &out[n-1]
			if o.Scenario == r.Scenario && o.Lock == r.Lock && o.Verdict == r.Verdict && o.AsExpected == r.AsExpected && o.last+1 == r.Seed {
				o.last = r.Seed
				continue
			}
		}
		out = append(out, indexRow{r, r.Seed})
	}
	rank := func(r indexRow) int {
		n := slices.Index([]string{"nondeterministic", "undecided", "bug", "limit"}, r.Verdict)
		if n < 0 {
			n = 4
		}
		if !r.AsExpected {
			n -= 10
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b indexRow) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

func last(c []IndexPoint) IndexPoint {
	if len(c) == 0 {
		return IndexPoint{}
	}
	return c[len(c)-1]
}

// polyline is a curve in a field of 800 by 140.
func polyline(c []IndexPoint) string {
	most := last(c)
	points := []string{"0,140"}
	for _, p := range c {
		points = append(points, fmt.Sprintf("%.1f,%.1f", 800*float64(p.Runs)/float64(max(most.Runs, 1)), 140-130*float64(p.States)/float64(max(most.States, 1))))
	}
	return strings.Join(points, " ")
}

// Waits says how long the grants of a run were waited for: the median and the
// longest; "" when there was none.
func Waits(rec *model.Record) string {
	called := map[int]int64{}
	var waits []time.Duration
	for _, e := range rec.Events {
		switch {
		case e.Kind == model.KindInvoke && e.Action.Acquires():
			called[e.Op] = e.AtNs
		case e.Kind == model.KindReturn && e.Outcome == model.Granted:
			waits = append(waits, time.Duration(e.AtNs-called[e.Op]))
		}
	}
	if len(waits) == 0 {
		return ""
	}
	slices.Sort(waits)
	middle, longest := waits[len(waits)/2], waits[len(waits)-1]
	return fmt.Sprintf("%s, at most %s", length(int64(middle)), length(int64(longest)))
}
