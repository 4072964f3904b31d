package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/coverage"
	"lockstep/explore/survey"
	"lockstep/known"
	"lockstep/report"
)

// killsFile has the rows of the table of planted bugs and of the judges that find them.
const killsFile = "kill-table" + KillRowsEnding

// indexDepth is the number of levels of subfolders that an index includes.
const indexDepth = 2

// indexed returns the files from which the index of a folder is made, sorted. It opens nothing but folders, since it may
// meet a FIFO.
func indexed(root *os.Root) (out []string) {
	names := []string{explore.VerdictsFile, explore.RunsFile, killsFile, survey.LocksFile}
	folders := []string{"."}
	for range indexDepth + 1 {
		var below []string
		for _, folder := range folders {
			entries, _ := fs.ReadDir(root.FS(), folder) // one that cannot be read has no results
			for _, e := range entries {
				name, isDir := path.Join(folder, e.Name()), e.IsDir()
				if e.Type() == fs.ModeSymlink {
					info, err := root.Stat(name)
					isDir = err == nil && info.IsDir()
				}
				if isDir {
					below = append(below, name)
				} else if slices.Contains(names, e.Name()) {
					out = append(out, name)
				}
			}
		}
		folders = below
	}
	slices.Sort(out)
	return out
}

// ReadIndex reads a folder of results and its subfolders. It includes campaigns under way.
func ReadIndex(root *os.Root, dir string) (report.Index, error) {
	x := report.Index{Title: "Lockstep: " + filepath.Base(dir)}
	seen := map[string]bool{}
	for _, file := range indexed(root) {
		folder := path.Dir(file)
		if path.Base(file) == killsFile {
			table, err := readKillTable(root, file)
			if err != nil {
				return x, frame.Usage(fmt.Errorf("%s: %w", file, err))
			}
			x.Tables = append(x.Tables, table)
		}
		if path.Base(file) == survey.LocksFile {
			tables, err := readSurvey(root, file)
			if err != nil {
				return x, frame.Usage(fmt.Errorf("%s: %w", file, err))
			}
			x.Tables = append(tables, x.Tables...)
		}
		if seen[folder] {
			continue
		}
		seen[folder] = true
		y, err := readResults(root, dir, folder)
		if err != nil {
			return x, err
		}
		x.Add(folder, y)
	}
	for i := range x.Campaigns {
		for j := range x.Campaigns[i].Groups {
			nameDefect(&x.Campaigns[i].Groups[j])
		}
	}
	if len(x.Runs)+len(x.Campaigns)+len(x.Tables) == 0 {
		return x, frame.Usagef("%s holds no results: neither %s nor a campaign; %s run --out DIR and %[3]s explore --out DIR write such folders", dir, explore.VerdictsFile, frame.Simrun())
	}
	return x, nil
}

// nameDefect fills in the text of a group's known defect and of its cause.
func nameDefect(g *report.IndexGroup) {
	if g.Defect == "" {
		return
	}
	g.Known = g.Defect
	if title := known.Title(g.Defect); title != "" {
		g.Known += ": " + title
	}
	var cause known.Cause
	if len(g.Cause) > 0 && json.Unmarshal(g.Cause, &cause) == nil {
		g.Known += "; cause: " + cause.String()
	}
}

// readKillTable reads the table of planted bugs.
func readKillTable(root *os.Root, file string) (report.Table, error) {
	t := report.Table{Title: "Planted bugs", Head: KillHead}
	f, err := openFound(root, file)
	if err != nil {
		return t, err
	}
	defer func() { _ = f.Close() }()
	rows, err := readKills(f)
	for _, k := range rows {
		t.Rows = append(t.Rows, tableRow(k.Cells()))
	}
	return t, err
}

// tableRow returns a row of cells without links.
func tableRow(texts []string) (row []report.TableCell) {
	for _, text := range texts {
		row = append(row, report.TableCell{Text: text})
	}
	return row
}

// readSurvey reads the tables of a survey. Its recordings lie in the folder of the file.
func readSurvey(root *os.Root, file string) ([]report.Table, error) {
	f, err := openFound(root, file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	s, _, err := survey.Read(f)
	if err != nil {
		return nil, err
	}
	kept := report.Table{Title: "Survey of locks: which promises hold", Head: []string{"lock", "runs"}}
	for _, p := range survey.Promises {
		kept.Head = append(kept.Head, p.Name)
	}
	costs := report.Table{Title: "Survey of locks: what an acquire costs", Head: survey.CostHead}
	for _, l := range s.Locks {
		row := []report.TableCell{{Text: l.Name}, {Text: strconv.Itoa(l.Judged())}}
		for _, p := range survey.Promises {
			sum := l.Summary(p.Name)
			cell := report.TableCell{Text: sum.String()}
			if sum.Recording != "" {
				cell.Recording = path.Join(path.Dir(file), survey.RecordingFile(l.Name, sum.Recording))
			}
			row = append(row, cell)
		}
		kept.Rows = append(kept.Rows, row)
		costs.Rows = append(costs.Rows, tableRow(l.CostRow()))
	}
	return []report.Table{kept, costs}, nil
}

// readResults reads the verdicts of one folder. If its campaign has played more runs since,
// it reads the campaign instead.
func readResults(root *os.Root, dir, folder string) (report.Index, error) {
	var x report.Index
	name := path.Join(folder, explore.VerdictsFile)
	f, err := openFound(root, name)
	if err == nil {
		x, err = report.ReadIndex(f, filepath.Join(dir, filepath.FromSlash(name)))
		_ = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return x, frame.Usage(err)
	}
	ran := 0
	for _, c := range x.Campaigns {
		ran += c.Ran
	}
	// readCampaign does not read through root, so check that its files are in root.
	if within(root, path.Join(folder, explore.RunsFile)) && within(root, path.Join(folder, explore.PlanFile)) {
		if running, ok := readCampaign(filepath.Join(dir, filepath.FromSlash(folder))); ok && running.Runs != ran {
			return indexOf(running), nil
		}
	}
	return x, nil
}

// openFound opens a file of a folder that nobody named. It must be regular, since opening another one, such as a FIFO, may
// not end.
func openFound(root *os.Root, file string) (*os.File, error) {
	if _, err := root.Stat(file); err != nil {
		return nil, err
	}
	if !within(root, file) {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	return root.Open(file)
}

// within reports whether file is a regular file of the folder. A link that leads out of the
// folder is not.
func within(root *os.Root, file string) bool {
	info, err := root.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

// readCampaign sums up the runs that a campaign has played so far.
func readCampaign(dir string) (explore.Tally, bool) {
	p, runs, err := explore.Merge([]string{dir})
	if err != nil {
		return explore.Tally{}, false
	}
	return explore.Sum(p, runs), true
}

// indexOf returns the index of a campaign under way. Its failures have not been shrunk and
// have no recordings.
func indexOf(o explore.Tally) report.Index {
	c := report.Campaign{Sentence: o.Plan.String() + ", under way: " + o.Total(), Ran: o.Runs}
	if o.Cells != nil {
		c.Cells = cellsOf(*o.Cells)
	}
	for _, p := range o.Curve {
		c.Curve = append(c.Curve, report.IndexPoint(p))
	}
	for _, g := range o.Groups {
		c.Groups = append(c.Groups, report.IndexGroup{
			Judge: g.Judge, Class: string(g.Class), Op: g.Op, Faults: g.Faults, Defect: g.Defect, Excuse: g.Excuse, Runs: g.Count, FirstSeed: g.First.Seed, Size: g.Size, Why: g.Why,
		})
	}
	return report.Index{Campaigns: []report.Campaign{c}}
}

// cellsOf returns the table of cells in the form of the page.
func cellsOf(t coverage.Table) *report.Cells {
	c := &report.Cells{Met: t.Met, Of: t.Of, Untried: t.Untried}
	for _, r := range t.Rows {
		row := report.CellRow{Fault: string(r.Fault), Lacks: r.Lacks}
		for _, e := range r.Entries {
			row.Entries = append(row.Entries, report.CellEntry{Moment: string(e.Moment), Cannot: e.Cannot, Gap: e.Gap})
		}
		c.Rows = append(c.Rows, row)
	}
	words := func(kinds []coverage.Kind) (words []string) {
		for _, k := range kinds {
			words = append(words, string(k))
		}
		return words
	}
	for _, s := range t.Grid {
		c.Grid = append(c.Grid, report.Situation{Op: string(s.Op), State: string(s.State), Moment: string(s.Moment), Gap: s.Gap, Met: words(s.Met), Never: words(s.Never)})
	}
	return c
}
