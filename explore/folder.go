package explore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// The files in the folder of a campaign: the plan, the runs, and the result, which other
// folders of results have too.
const (
	PlanFile     = "campaign.json"
	RunsFile     = "runs.jsonl"
	VerdictsFile = "verdicts.jsonl"
)

// VerdictsTitle is the title of the page about a campaign.
const VerdictsTitle = "# What was found\n"

// shardFile is the content of PlanFile.
type shardFile struct {
	Plan
	Shard int `json:"shard"`
	Of    int `json:"of"`
	// Judges, Names, Draw and Stories are Versions of the program that plays, beside Plan.World. A
	// program of other versions does not continue the campaign. Stories is 0 if none are told.
	Judges  int `json:"judges"`
	Names   int `json:"names"`
	Draw    int `json:"draw"`
	Stories int `json:"stories,omitempty"`
}

func (c Campaign) file() shardFile {
	v := c.Plan.Versions()
	return shardFile{c.Plan, c.Shard, c.Of, v.Judges, v.Names, v.Draw, max(v.Stories, 0)}
}

// versions are the versions of the program that played.
func (s shardFile) versions() Versions {
	v := Versions{s.World, s.Judges, s.Names, s.Draw, s.Stories}
	if s.Strategy != StrategyTold {
		return v.Untold()
	}
	return v
}

// OtherCampaignError says that a folder holds the runs of another campaign.
type OtherCampaignError struct{ Dir, Difference string }

func (e *OtherCampaignError) Error() string {
	return fmt.Sprintf("%s holds another campaign (%s); name another folder, or remove it", e.Dir, e.Difference)
}

// open makes the folder, or reads the runs that an earlier start left there. whole is the
// offset at which the last whole line ends. The earlier start may have asked for fewer
// runs, or for another end of a full campaign, since a run depends only on the runs before it
// in its family.
func (c *Campaign) open() (runs []Run, whole int64, err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, 0, err
	}
	runs, whole, err = readRuns(c.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, err
	}
	mine := c.file()
	old, err := readPlan(c.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && whole > 0:
		return nil, 0, &OtherCampaignError{c.Dir, fmt.Sprintf("%d runs in %s, and no %s that says of what", len(runs), RunsFile, PlanFile)}
	case errors.Is(err, os.ErrNotExist):
		return nil, 0, mine.write(c.Dir)
	case err != nil:
		return nil, 0, err
	}
	more, err := c.continues(old)
	if more && err == nil {
		err = mine.write(c.Dir)
	}
	return runs, whole, err
}

// continues returns an OtherCampaignError if this campaign does not go on with an older one. more
// reports whether it asks for more runs than that, or for another end.
func (c *Campaign) continues(old shardFile) (more bool, err error) {
	mine := c.file()
	more = mine.Runs > old.Runs || mine.Settled != old.Settled
	if more {
		old.Runs, old.Settled = max(mine.Runs, old.Runs), mine.Settled
	}
	if d := mine.difference(old); d != "" {
		return false, &OtherCampaignError{c.Dir, d}
	}
	return more, nil
}

// Claim makes the folder, and writes PlanFile, which says of which campaign the folder is, unless the folder
// has runs or a plan.
func (c *Campaign) Claim() error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{PlanFile, RunsFile} {
		if _, err := os.Stat(filepath.Join(c.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.file().write(c.Dir)
}

// Disclaim removes the folder if it has nothing but what Claim wrote, and else returns an error.
func (c *Campaign) Disclaim() error {
	left, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	if len(left) == 1 && left[0].Name() == PlanFile {
		if err := os.Remove(filepath.Join(c.Dir, PlanFile)); err != nil {
			return err
		}
	}
	return os.Remove(c.Dir) // which must be empty
}

// Fits returns an OtherCampaignError if Dir has another campaign. It writes nothing.
func (c *Campaign) Fits() error {
	old, err := readPlan(c.Dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	_, err = c.continues(old)
	return err
}

func (s shardFile) write(dir string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, PlanFile), append(text, '\n'), 0o644)
}

func (s shardFile) difference(o shardFile) string {
	if d := s.Plan.difference(o.Plan); d != "" {
		return d
	}
	if d := o.versions().Difference(s.versions()); d != "" {
		return d
	}
	if s.Shard != o.Shard || s.Of != o.Of {
		return fmt.Sprintf("shard %d/%d there, %d/%d here", o.Shard+1, o.Of, s.Shard+1, s.Of)
	}
	return ""
}

// difference returns the first difference to another plan; "": there is none.
func (p Plan) difference(o Plan) string {
	for _, d := range []struct {
		what        string
		here, there any
	}{
		{"world version", p.World, o.World},
		{"lock", p.Lock, o.Lock},
		{"faults", fmt.Sprint(p.Faults), fmt.Sprint(o.Faults)},
		{"profile", p.Profile, o.Profile},
		{"strategy", p.Strategy, o.Strategy},
		{"depth", p.Depth, o.Depth},
		{"seed", p.seeds(), o.seeds()},
		{"runs", p.Runs, o.Runs},
		{"steps", p.Steps, o.Steps},
		{"settled", p.Settled, o.Settled},
	} {
		if d.here != d.there {
			return fmt.Sprintf("%s %v there, %v here", d.what, d.there, d.here)
		}
	}
	return ""
}

// missingError is the error of a file that explore writes and that a folder lacks. Its text does not
// have the words of package os.
type missingError struct {
	dir string
	err *fs.PathError
}

func (e *missingError) Error() string {
	return fmt.Sprintf("%s is not the folder of a campaign, which explore --out DIR writes: it has no %s", e.dir, filepath.Base(e.err.Path))
}

func (e *missingError) Unwrap() error { return e.err }

// noCampaign explains the error of a file that explore writes and that a folder lacks.
func noCampaign(dir string, err error) error {
	var path *fs.PathError
	if errors.Is(err, fs.ErrNotExist) && errors.As(err, &path) {
		return &missingError{dir, path}
	}
	return err
}

func readPlan(dir string) (shardFile, error) {
	var s shardFile
	file := filepath.Join(dir, PlanFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return s, noCampaign(dir, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, &OtherCampaignError{dir, fmt.Sprintf("%s is no plan: %v", PlanFile, err)}
	}
	return s, nil
}

// readRuns reads the runs of a folder. whole is the offset at which the last whole line
// ends.
func readRuns(dir string) (runs []Run, whole int64, err error) {
	file := filepath.Join(dir, RunsFile)
	in, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = in.Close() }()
	lines := bufio.NewReaderSize(in, 1<<20)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return runs, whole, nil
		}
		if err != nil {
			return nil, 0, err
		}
		var read struct {
			Run
			Knobs json.RawMessage // of an older program
		}
		words := json.NewDecoder(bytes.NewReader(line))
		words.DisallowUnknownFields() // a damaged name of a field would leave the field out
		if err := words.Decode(&read); err != nil {
			return nil, 0, &OtherCampaignError{dir, fmt.Sprintf("%s:%d is no run: %.200v", RunsFile, n, err)}
		}
		r := read.Run
		if r.Text != "" { // another process plays it
			if _, err := r.scenario(); err != nil {
				return nil, 0, &OtherCampaignError{dir, fmt.Sprintf("%s:%d: %v", RunsFile, n, err)}
			}
		}
		runs = append(runs, r)
		whole += int64(len(line))
	}
}
