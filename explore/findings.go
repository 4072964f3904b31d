package explore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockstep/explore/failure"
	"lockstep/internal/counted"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/report/sentence"
	"lockstep/scenarios"
)

// retold holds the contents of the verdicts.jsonl of one campaign.
type retold struct {
	dir    string // relative to the page, with forward slashes, for links
	groups []jsonGroup
	total  jsonTotal
}

// recordings returns the files of the recordings of failures that were made smaller, relative
// to the folder of the campaign.
func (t retold) recordings() (files []string) {
	for _, g := range t.groups {
		if filepath.IsLocal(filepath.FromSlash(g.Recording)) && !strings.HasPrefix(g.Recording, FoundDir+"/") {
			files = append(files, g.Recording)
		}
	}
	return files
}

// readTold reads the verdicts.jsonl that WriteTally wrote into dir.
func readTold(dir string) (retold, error) {
	t := retold{}
	file := filepath.Join(dir, VerdictsFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return t, noCampaign(dir, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for n := 1; lines.Scan(); n++ {
		if t.total.Campaign != "" {
			return t, fmt.Errorf("%s:%d: something follows the totals of the campaign", file, n)
		}
		var g jsonGroup
		var total jsonTotal
		if err := errors.Join(json.Unmarshal(lines.Bytes(), &g), json.Unmarshal(lines.Bytes(), &total)); err != nil {
			return t, fmt.Errorf("%s:%d: not what explore writes: %w", file, n, err)
		}
		switch {
		case total.Campaign != "":
			t.total = total
		case g.Judge != "":
			t.groups = append(t.groups, g)
		default:
			return t, fmt.Errorf("%s:%d: neither a group nor the totals of a campaign", file, n)
		}
	}
	if t.total.Campaign == "" {
		return t, fmt.Errorf("%s: the totals of the campaign are missing: it was cut off, or is not one of explore", file)
	}
	if t.total.Plan == nil {
		return t, fmt.Errorf("%s: the plan of the campaign is missing", file)
	}
	return t, lines.Err()
}

// ReadCampaign returns the plan of the campaign whose results a folder holds, and the
// versions of the program that wrote them.
func ReadCampaign(dir string) (Plan, Versions, error) {
	t, err := readTold(dir)
	if err != nil {
		return Plan{}, noVersions, err
	}
	if t.total.Versions == nil {
		return *t.total.Plan, noVersions, nil
	}
	return *t.total.Plan, *t.total.Versions, nil
}

// WriteFindings writes the findings of campaigns as Markdown. It reads them from the
// folders that WriteTally wrote. A table of the campaigns comes first. Then come the bugs
// without a name, the known defects, and the limits. Each known defect appears once, with
// its story and the places where it was met. Links are relative to base.
func WriteFindings(w io.Writer, base string, dirs []string) error {
	all, err := readAll(base, dirs)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "| campaign | runs | steps | kinds without a name | known defects | limits |\n|---|---|---|---|---|---|\n")
	m := meetings{places: map[string][]string{}, medians: map[string][]string{}, rows: map[string][]string{}}
	m.record, _ = scenarios.Tagged(trackRecord) // an error: this program has no such track record
	for _, t := range all {
		m.add(&b, t)
	}
	if len(m.rows) > 0 && slices.ContainsFunc(all, func(t retold) bool { return t.total.Coverage == nil }) {
		if err := writeRows(&b, m.rows); err != nil {
			return err
		}
	}
	list := func(head string, where []string) {
		if len(where) > 0 {
			fmt.Fprintf(&b, "\n%s\n\n%s", head, strings.Join(where, ""))
		}
	}
	list("## Without a name", m.unnamed)
	for _, d := range known.All {
		if where := m.places[d.ID]; len(where) > 0 {
			row := "It is no row of the track record."
			if d.Row != "" {
				row = fmt.Sprintf("It is the row `%s` of the track record.", d.Row)
			}
			if medians := m.medians[d.ID]; len(medians) > 0 {
				row += fmt.Sprintf(" Runs until it was met (median of %d parts of the campaign): %s.", parts, strings.Join(medians, ", "))
			}
			list(fmt.Sprintf("## %s: %s\n\n%s %s", d.ID, d.Title, d.Story, row), where)
			delete(m.places, d.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.places)) {
		return fmt.Errorf("the campaigns know a defect that this program does not know: %s; run them again", id)
	}
	list("## Limits\n\nBroken where it is not promised: the faults named excuse it, and without them it vanishes.", m.limits)
	_, err = w.Write(b.Bytes())
	return err
}

// readAll reads campaigns, in the order of their names. base is the folder of the links.
func readAll(base string, dirs []string) (all []retold, err error) {
	if base, err = filepath.Abs(base); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		t, err := readTold(dir)
		if err != nil {
			return nil, err
		}
		from, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(base, from)
		if err != nil {
			return nil, err
		}
		t.dir = filepath.ToSlash(rel)
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b retold) int { return strings.Compare(a.total.Campaign, b.total.Campaign) })
	return all, nil
}

// meetings says where and how soon campaigns met defects and limits.
type meetings struct {
	record          []*scenarios.Scenario
	places          map[string][]string // by defect
	medians         map[string][]string // by defect, the median of the runs until it was met
	rows            map[string][]string // by row of the track record, the campaigns that met it
	unnamed, limits []string            // places
}

// add adds a campaign, and writes its row of the table.
func (m *meetings) add(b *bytes.Buffer, t retold) {
	var bare, limit int
	defects := map[string]bool{}
	for _, g := range t.groups {
		where := g.listLine(t)
		switch {
		case g.Class != judges.ClassBug:
			limit++
			m.limits = append(m.limits, where)
		case g.Defect == "":
			bare++
			m.unnamed = append(m.unnamed, where)
		default:
			m.places[g.Defect] = append(m.places[g.Defect], where)
			if g.MedianRuns > 0 && !defects[g.Defect] {
				m.medians[g.Defect] = append(m.medians[g.Defect], fmt.Sprintf("%d on %s", g.MedianRuns, t.total.Plan.Lock))
			}
			if row := known.Row(g.Defect); isRow(m.record, row) && !defects[g.Defect] {
				m.rows[row] = append(m.rows[row], fmt.Sprintf("`%s`: %s", strings.Join(t.total.Plan.subject(), " "), g.soon(t)))
			}
			defects[g.Defect] = true
		}
	}
	runs := fmt.Sprint(t.total.Runs)
	if t.total.Coverage != nil {
		runs = t.total.Coverage.String()
	}
	fmt.Fprintf(b, "| [`%s`](%s/verdicts.md) | %s | %d | %d | %d | %d |\n", t.total.Campaign, t.dir, runs, t.total.Steps, bare, len(defects), limit)
}

// trackRecord is the tag of the track record whose rows the table of writeRows has.
const trackRecord = "track-record"

// isRow reports whether a scenario is a row of that track record. Another track record, such as
// that of a module with locks of its own, has no such table.
func isRow(record []*scenarios.Scenario, row string) bool {
	return slices.ContainsFunc(record, func(sc *scenarios.Scenario) bool { return sc.Name == row })
}

// writeRows writes a table with each row of the track record. The table names the
// campaigns that met the row without a script, as met lists them by row. For a row that no
// campaign met, it gives the known reason, if there is one.
func writeRows(b *bytes.Buffer, met map[string][]string) error {
	all, err := scenarios.Tagged(trackRecord)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n## The track record, without a script\n\n%d of %d rows were found by these campaigns. "+
		"The figure is how many runs it took, in the median of %d parts of the campaign, or in how many of all it was met.\n\n| row | found |\n|---|---|\n",
		len(met), len(all), parts)
	for _, sc := range all {
		found := strings.Join(met[sc.Name], "<br>")
		if found == "" {
			found = "not found"
			if why := known.OutOfReach[sc.Name]; why != "" {
				found += ": " + why
			}
		}
		fmt.Fprintf(b, "| %s | %s |\n", sc.Name, found)
	}
	return nil
}

// soon says how often the campaign met the defect of the group. It gives the median
// number of runs until the defect was met. Without a median it gives the number of runs
// that met it.
func (g jsonGroup) soon(t retold) string {
	if g.MedianRuns > 0 {
		return counted.Of(g.MedianRuns, "run")
	}
	return fmt.Sprintf("in %d of %d", g.Runs, t.total.Runs)
}

// listLine returns a line of a list. The line says where a group was met.
func (g jsonGroup) listLine(t retold) string {
	faults := failure.Group{Faults: g.Faults}.FaultWords()
	if g.Excuse != "" {
		faults = fmt.Sprintf("%s (%s)", faults, sentence.Join(g.Excuse, sentence.Control(g.Control)))
	}
	shown := causeText(g.Cause, g.Parting)
	if shown != "" {
		shown = "; cause: " + shown
	}
	events := counted.Of(g.Size, "event")
	switch place := path.Join(t.dir, g.Recording); {
	case g.Recording == "":
	case filepath.IsLocal(filepath.FromSlash(g.Recording)):
		events = fmt.Sprintf("[%s](%s)", events, place)
	default: // the recording of a shelf may be of another campaign
		events += fmt.Sprintf(" ([recording](%s))", place)
	}
	if g.Unfinished {
		events += ", not as small as they may be"
	}
	if g.TooLong {
		events += ", too many to be made fewer"
	}
	return fmt.Sprintf("* %s: %s at %s, with %s: %d of %d runs; %s: %s%s\n", t.total.Plan.Lock, g.Judge, g.Op, faults, g.Runs, t.total.Runs,
		events, g.Why, shown)
}
