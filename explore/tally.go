package explore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"lockstep/explore/coverage"
	"lockstep/explore/failure"
	"lockstep/explore/strategy"
	"lockstep/internal/counted"
	"lockstep/internal/foreign"
	"lockstep/known"
	"lockstep/linearizability/judges"
)

// Fold merges groups whose smallest failures belong to one group. A failure that seemed to
// need a fault may do without the fault when it is smaller. small holds the smallest failure
// of each group. Fold returns the merged groups and their smallest failures.
func (o Tally) Fold(small []Shrunk) (Tally, []Shrunk) {
	at := map[string]int{}
	var groups []Found
	var kept []Shrunk
	for i, g := range o.Groups {
		g.Group, g.Origin = small[i].Group, small[i].Origin
		k, ok := at[g.key()]
		if !ok {
			at[g.key()] = len(groups)
			groups, kept = append(groups, g), append(kept, small[i])
			continue
		}
		into := &groups[k]
		// Count is the number of failures here, not of runs: a run that failed in two ways
		// counts twice.
		into.Count += g.Count
		if g.First.Index < into.First.Index {
			into.First = g.First
		}
		if small[i].Size < kept[k].Size {
			kept[k], into.Least, into.Group = small[i], g.Least, g.Group
		}
	}
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return groups[b].rank() - groups[a].rank() })
	o.Groups, small, o.Unfinished = nil, nil, 0
	for _, i := range order {
		o.Groups, small = append(o.Groups, groups[i]), append(small, kept[i])
		if kept[i].Unfinished {
			o.Unfinished++
		}
	}
	return o, small
}

// Total returns the result of the campaign in a sentence.
func (o Tally) Total() string {
	var bugs, limits, known int
	for _, g := range o.Groups {
		switch {
		case g.Class != judges.ClassBug:
			limits++
		case g.Defect != "":
			known++
		default:
			bugs++
		}
	}
	s := fmt.Sprintf("%s of %s, %s", counted.Of(o.Runs, "run"), o.Plan.Lock, counted.Of(o.Steps, "step"))
	if o.Plan.Seeds > 1 {
		s = fmt.Sprintf("%d runs of %s from %d seeds, %d steps", o.Runs, o.Plan.Lock, o.Plan.Seeds, o.Steps)
	}
	if o.Coverage != nil {
		s = fmt.Sprintf("%s: %s, %d steps", o.Plan.Lock, o.Coverage, o.Steps)
	}
	unjudged := o.Unjudged()
	switch {
	case bugs+known+limits == 0 && len(unjudged) == 0:
		s += "; every promise held in all of them"
	case bugs+known+limits == 0:
	default:
		s += fmt.Sprintf("; %s of bugs that have no name yet, %d of known defects, %s", counted.Of(bugs, "kind"), known, counted.Of(limits, "limit"))
	}
	for _, why := range unjudged {
		s += "; cannot be judged: " + why
	}
	if n := len(o.Odd); n > 0 {
		s += fmt.Sprintf("; %d undecided or not the same again (first seed %d: %s)", n, o.Odd[0].Seed, o.Odd[0].Why)
	}
	if n := len(o.Died); n > 0 {
		s += fmt.Sprintf("; the process ended in %s (first seed %d: %s)", counted.Of(n, "run"), o.Died[0].Seed, o.Died[0].Why)
	}
	if o.Coverage == nil {
		s += "; " + o.paid()
	}
	if o.Plan.Bounded() {
		s += "; " + o.bound()
	}
	if o.Ended != "" {
		s += "; " + o.Ended
	}
	if o.Missing > 0 {
		s += fmt.Sprintf("; incomplete: %d of %d runs were played", o.Runs, o.Plan.Runs)
	}
	if o.Unfinished > 0 {
		s += fmt.Sprintf("; incomplete: %d of %d failures are not as small as they may be", o.Unfinished, len(o.Groups))
	}
	return s
}

// bound returns the probability that a strategy guarantees for the runs that kept to their
// estimates.
func (o Tally) bound() string {
	if o.Within == 0 {
		return "no run kept to the decisions that " + o.Plan.Strategy + " expected, so there is no bound"
	}
	one := o.Plan.strategy().Bound(o.Actors, o.Estimate)
	s := fmt.Sprintf("%s with at most %d actors and %d decisions: a bug that needs %d orderings of messages is met with probability %.2g or more by a run in which it can be, and %.2g or more if it can be in all %d",
		o.Plan.Strategy, o.Actors, o.Estimate, o.Plan.Depth, one, -math.Expm1(float64(o.Within)*math.Log1p(-one)), o.Within)
	if more := o.Runs - len(o.Died) - o.Within; more > 0 {
		s += fmt.Sprintf(" (%d more runs had latencies that are exact, or more decisions than expected, and no bound)", more)
	}
	return s
}

// paid returns the number of states, and how many of them the second half of the runs found. The
// terms of docs/README.md define states and cells.
func (o Tally) paid() string {
	if len(o.Curve) == 0 {
		return "no states"
	}
	last := o.Curve[len(o.Curve)-1]
	half := 0
	for _, p := range o.Curve {
		if p.Runs <= last.Runs/2 {
			half = p.States
		}
	}
	s := fmt.Sprintf("%d states were met, %d of them only in the second half", last.States, last.States-half)
	if o.Cells != nil && o.Cells.Of > 0 {
		s += "; " + o.Cells.String()
	}
	return s
}

type jsonGroup struct {
	Group  string       `json:"group"`
	Judge  string       `json:"judge"`
	Class  judges.Class `json:"class"`
	Op     string       `json:"op"`
	Faults []string     `json:"faults"`
	failure.Origin
	// Cause is the part of the smallest run that shows the defect.
	Cause *known.Cause `json:"cause,omitempty"`
	Runs  int          `json:"runs"`
	// MedianRuns is the entry of Tally.Medians for the defect.
	MedianRuns int    `json:"median_runs,omitempty"`
	FirstSeed  uint64 `json:"first_seed"`
	Size       int    `json:"size_events"`
	Why        string `json:"why"`
	// Control is Shrunk.Control.
	Control judges.Control `json:"control,omitzero"`
	// Parting is Shrunk.Parting.
	Parting   string `json:"parting,omitempty"`
	Recording string `json:"recording,omitempty"`
	// Seeded is Shrunk.Seeded, and Unfinished is Shrunk.Unfinished.
	Seeded     bool `json:"seeded,omitempty"`
	Unfinished bool `json:"unfinished,omitempty"`
	TooLong    bool `json:"too_long,omitempty"` // Shrunk.TooLong
}

type jsonTotal struct {
	// Campaign is the command that makes the plan, for people.
	Campaign string         `json:"campaign"`
	Plan     *Plan          `json:"plan"`
	Versions *Versions      `json:"versions"` // the versions of the program that wrote the file
	Runs     int            `json:"runs"`
	Missing  int            `json:"missing"`
	Full     bool           `json:"full,omitempty"` // Tally.Full
	Groups   int            `json:"groups"`
	Verdicts map[string]int `json:"verdicts"`
	Steps    int64          `json:"steps"`
	SimNs    int64          `json:"sim_ns"`
	Died     int            `json:"died"`
	// Unfinished is Tally.Unfinished.
	Unfinished int                `json:"unfinished,omitempty"`
	Unjudged   []string           `json:"unjudged,omitempty"` // Tally.Unjudged
	States     []Point            `json:"states"`
	Cells      *coverage.Table    `json:"cells,omitempty"`
	Coverage   *strategy.Coverage `json:"coverage,omitempty"` // set by the exhaustive strategy
}

// WriteJSON writes one object per group and one with the totals. Each is a line.
func (o Tally) WriteJSON(w io.Writer, small []Shrunk) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for i, g := range o.Groups {
		s := small[i]
		err := enc.Encode(jsonGroup{
			Group: g.folder(), Judge: g.Judge, Class: g.Class, Op: g.Op, Faults: g.Faults, Origin: g.Origin, Cause: s.Cause, Runs: g.Count,
			MedianRuns: o.Medians[g.Defect], FirstSeed: g.First.Seed, Size: s.Size, Why: s.Why, Control: s.Control, Parting: s.Parting, Recording: g.Recording(s),
			Seeded: s.Seeded, Unfinished: s.Unfinished, TooLong: s.TooLong,
		})
		if err != nil {
			return err
		}
	}
	versions := o.Plan.Versions()
	return enc.Encode(jsonTotal{
		Campaign: o.Plan.String(), Plan: &o.Plan, Versions: &versions, Runs: o.Runs, Missing: o.Missing, Full: o.Full, Groups: len(o.Groups), Verdicts: o.Words,
		Steps: o.Steps, SimNs: o.SimNs, Died: len(o.Died), Unfinished: o.Unfinished, Unjudged: o.Unjudged(), States: o.Curve, Cells: o.Cells, Coverage: o.Coverage,
	})
}

// folder is where a group's files are.
func (f Found) folder() string { return f.Group.Folder(f.Origin) }

// Fingerprint names the group of a failure.
func (s Shrunk) Fingerprint() string { return s.Group.Folder(s.Origin) }

// Recording returns the file in which WriteTally keeps the recording of a group, or "" if
// there is no recording.
func (f Found) Recording(s Shrunk) string {
	switch {
	case s.Recording == "":
		return ""
	case s.Unfinished && s.Runs == 0:
		return foundFile(Failed{Group: s.Group, Origin: s.Origin}, s.Run)
	}
	return fmt.Sprintf("%s/%d%s", f.folder(), s.Seed, recordingExt)
}

// WriteTally writes verdicts.md, verdicts.jsonl and each group's recording into
// a folder. A recording holds its scenario, so there is no scenario file. program is the
// command that starts this program. WriteTally removes recordings that it wrote into the
// folder before and that are not among the groups now. Once no run and no failure is missing,
// it removes the recordings in FoundDir.
func WriteTally(dir, program string, o Tally, small []Shrunk) error {
	write := func(name string, text []byte) error {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return renameio.WriteFile(file, text, 0o644)
	}
	var md, lines bytes.Buffer
	command := program + " " + strings.Join(o.Plan.Args(), " ")
	fmt.Fprintf(&md, "<!-- written by: %s -->\n%s"+VerdictsTitle+"\nWritten by `%s`.\n\n%s.\n", command, o.Plan.Versions().Comment(), command, o.Total())
	if len(o.Groups) > 0 {
		fmt.Fprint(&md, "\n| class | broken | at | faults needed | runs | first seed | events | why | recording |\n|---|---|---|---|---|---|---|---|---|\n")
	}
	var before []string
	if told, err := readTold(dir); err == nil {
		before = told.recordings()
	}
	for i, g := range o.Groups {
		s := small[i]
		recording := "none"
		if name := g.Recording(s); name != "" {
			recording = fmt.Sprintf("[recording](%s)", name)
			if err := write(name, []byte(s.Recording)); err != nil {
				return err
			}
			before = slices.DeleteFunc(before, func(old string) bool { return old == name })
		}
		class, why := string(g.Class), s.Why
		if cause := s.CauseText(); cause != "" {
			why += "; cause: " + cause
		}
		if s.TooLong {
			why += "; " + s.Shrinking()
		}
		switch {
		case g.Defect != "":
			class += "; known: " + g.Defect + ", " + known.Title(g.Defect)
		case g.Excuse != "":
			class += ": " + s.Excused()
		}
		faults := strings.Join(g.Faults, ", ")
		switch {
		case g.Faults == nil:
			faults = g.FaultWords()
		case faults == "":
			faults = "none"
		}
		fmt.Fprintf(&md, "| %s | %s | %s | %s | %d | %d | %d | %s | %s |\n", class, g.Judge, g.Op, foreign.Cell(faults), g.Count, g.First.Seed, s.Size,
			foreign.Cell(why), recording)
	}
	fmt.Fprint(&md, "\n## New states\n\n| runs | states |\n|---|---|\n")
	for _, p := range o.Curve {
		fmt.Fprintf(&md, "| %d | %d |\n", p.Runs, p.States)
	}
	if o.Cells != nil && len(o.Cells.Rows) > 0 {
		fmt.Fprintf(&md, "\n## What the faults met\n\nA row is a kind of fault, and a column a moment of an operation. *3 of 24*: at this moment, such faults could meet 24 cells, each of which is an operation with an owner of the lock and its waiters, and met 3 of them. The first empty cells of each kind are below; `verdicts.jsonl` has all of them, as `never`.\n\n%s", o.Cells.Markdown())
	}
	if err := o.WriteJSON(&lines, small); err != nil {
		return err
	}
	if err := write(VerdictsFile, lines.Bytes()); err != nil {
		return err
	}
	if err := write(verdictsPage, md.Bytes()); err != nil {
		return err
	}
	for _, old := range before {
		if err := removeFile(dir, old); err != nil {
			return err
		}
	}
	if o.Missing > 0 || o.Unfinished > 0 {
		return nil
	}
	return removeFound(dir)
}

// removeFound removes what a campaign keeps in FoundDir, and the folders that it leaves empty.
func removeFound(dir string) error {
	found := filepath.Join(dir, FoundDir)
	for _, name := range []string{"run-*.lockstep", ".run-*.lockstep*"} { // the second is what a process was writing when it died
		files, err := filepath.Glob(filepath.Join(found, "*", name))
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := removeFile("", file); err != nil {
				return err
			}
		}
	}
	_ = os.Remove(found) // it stays if it has more files
	return nil
}
