package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/foreign"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
)

// VerdictsPage is the table of the verdicts of a folder, and verdictsTitle is its title.
const (
	VerdictsPage  = "verdicts.md"
	verdictsTitle = "# Verdicts\n"
)

// A results writes a folder of results. It writes all files into a temporary folder first,
// and then moves them to their places one by one.
type results struct {
	dir, tmp string
	command  string
	rows     []string
	file     *os.File      // explore.VerdictsFile in tmp
	lines    *bufio.Writer // to file
	files    []string      // recordings, relative to dir
	pairs    []*Pair
	kept     map[*Pair]string // the recording of a pair
}

func openResults(dir string, args []string) (*results, error) {
	if err := onlyVerdicts(dir); err != nil {
		return nil, frame.Usage(fmt.Errorf("--out: %w", err))
	}
	tmp, err := os.MkdirTemp(dir, ".writing-")
	if err != nil {
		return nil, frame.Unwritable("--out", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(tmp, explore.VerdictsFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, errors.Join(frame.Unwritable("--out", dir, err), os.RemoveAll(tmp))
	}
	command := frame.CommandInFiles(append([]string{"run"}, args...)...)
	return &results{dir: dir, tmp: tmp, command: command, file: file, lines: bufio.NewWriter(file), kept: map[*Pair]string{}}, nil
}

// onlyVerdicts returns an error if a folder has a file where the verdicts are to be written that the
// command run did not write.
func onlyVerdicts(dir string) error {
	return replaces(dir, "run", verdictsTitle, func(first []byte) bool {
		var o object
		return json.Unmarshal(first, &o) == nil && o.Scenario != "" && o.Lock != ""
	})
}

// onlyCampaigns is onlyVerdicts for the verdicts of campaigns.
func onlyCampaigns(dir string) error {
	return replaces(dir, "explore", explore.VerdictsTitle, func(first []byte) bool {
		var o struct{ Group, Campaign string }
		return json.Unmarshal(first, &o) == nil && o.Group+o.Campaign != ""
	})
}

// replaces returns an error if a folder has a page with another title, or lines of another kind, where a
// command is to write its verdicts.
func replaces(dir, command, title string, line func(first []byte) bool) error {
	own := map[string]func(text []byte) bool{
		VerdictsPage: func(text []byte) bool {
			return bytes.HasPrefix(text, []byte("<!-- written by: ")) && bytes.Contains(text, []byte(title))
		},
		explore.VerdictsFile: func(text []byte) bool {
			first, _, _ := bytes.Cut(text, []byte("\n"))
			return line(first)
		},
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (len(text) == 0 || own[name](text)) {
			continue
		}
		return errors.Join(fmt.Errorf("%s would be overwritten, and the command %s did not write it; name another folder", file, command), err)
	}
	return nil
}

// discard removes the files that commit has not moved. r may be nil.
func (r *results) discard() {
	if r != nil {
		_ = r.file.Close()
		_ = os.RemoveAll(r.tmp)
	}
}

// recordingOf returns the file of a run's recording, relative to the folder, or "" if there
// is none.
func (r *results) recordingOf(p *Pair, v play.Verdict) string {
	if r == nil {
		return ""
	}
	if kept := r.kept[p]; kept != "" && strings.HasSuffix(kept, fmt.Sprintf("/%d.lockstep", v.Seed)) {
		return kept
	}
	return ""
}

// verdict writes a verdict of a pair. It keeps a recording of the first run that broke a judge
// or was not as expected.
func (r *results) verdict(p *Pair, v play.Verdict) error {
	simple := (v.Word == play.VerdictHeld || v.Word == play.VerdictNotApplicable) && v.AsExpected
	if !simple && r.kept[p] == "" {
		file := filepath.ToSlash(filepath.Join(p.Scenario.Name, p.Lock.Name, fmt.Sprintf("%d.lockstep", v.Seed)))
		if err := r.record(file, v); err != nil {
			return err
		}
		r.kept[p] = file
	}
	enc := json.NewEncoder(r.lines)
	enc.SetEscapeHTML(false)
	return enc.Encode(asObject(v, r.recordingOf(p, v)))
}

// add writes the row of a pair whose verdicts are written.
func (r *results) add(p *Pair) {
	r.pairs = append(r.pairs, p)
	w := p.worst()
	var why []string
	told := map[string]bool{}
	for _, f := range w.Findings {
		if !told[f.Judge] {
			told[f.Judge] = true
			why = append(why, "**"+f.Judge+"**: "+foreign.Cell(sentence.Finding(f)))
		}
	}
	if lacks := sentence.Verdict(w); lacks != "" {
		why = append(why, foreign.Cell(lacks))
	}
	recording := ""
	if kept := r.kept[p]; kept != "" {
		recording = "[" + filepath.Base(kept) + "](" + kept + ")"
	}
	expected := "yes"
	if !p.asExpected() {
		expected = "**no**: " + w.Expected
	}
	r.rows = append(r.rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |", p.Scenario.Name, p.Lock.Name, p.seeds(), w.Word, expected, strings.Join(why, "<br>"), recording))
}

func (r *results) record(file string, v play.Verdict) error {
	path := filepath.Join(r.tmp, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := recordingText(v, "again:  "+frame.CommandInFiles(playAgainArgs(v)...))
	if err != nil {
		return err
	}
	r.files = append(r.files, file)
	return renameio.WriteFile(path, text, 0o644)
}

// recordingText returns the text of a recording file. Comments on top say what the run
// shows. The lines of more follow them.
func recordingText(v play.Verdict, more ...string) ([]byte, error) {
	comment := []string{
		fmt.Sprintf("Lockstep recording: scenario %s, lock %s, seed %d: %s", v.Scenario.Name, v.Lock.Name, v.Seed, v.Word),
	}
	for _, f := range v.Findings {
		comment = append(comment, f.Judge+": "+sentence.Finding(f))
	}
	if why := sentence.Verdict(v); why != "" {
		comment = append(comment, why)
	}
	comment = append(comment, "replay: "+frame.CommandInFiles("replay", "THIS_FILE"))
	var b bytes.Buffer
	err := v.Recording().Write(&b, append(comment, more...))
	return b.Bytes(), err
}

// commit moves everything to its place. If not everything was run, part says how far it came.
func (r *results) commit(part string) error {
	var md bytes.Buffer
	fmt.Fprintf(&md, "<!-- written by: %s -->\n%s"+verdictsTitle+"\nWritten by `%s`.\n", r.command, explore.CurrentVersions().Played().Comment(), r.command)
	if part != "" {
		fmt.Fprintf(&md, "\nThis is a part of what was asked for: %s.\n", part)
	}
	fmt.Fprint(&md, "\n| scenario | lock | seeds | verdict | as expected | why | recording |\n|---|---|---|---|---|---|---|\n")
	for _, row := range r.rows {
		fmt.Fprintln(&md, row)
	}
	if err := renameio.WriteFile(filepath.Join(r.tmp, VerdictsPage), md.Bytes(), 0o644); err != nil {
		return err
	}
	if err := errors.Join(r.lines.Flush(), r.file.Close()); err != nil {
		return err
	}
	for _, file := range r.files {
		if err := os.MkdirAll(filepath.Join(r.dir, filepath.Dir(file)), 0o755); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(r.tmp, file), filepath.Join(r.dir, file)); err != nil {
			return err
		}
	}
	// Remove recordings of these pairs that were written earlier and not this time.
	for _, p := range r.pairs {
		old, err := filepath.Glob(filepath.Join(r.dir, p.Scenario.Name, p.Lock.Name, "*.lockstep"))
		if err != nil {
			return err
		}
		for _, file := range old {
			if rel, err := filepath.Rel(r.dir, file); err == nil && filepath.ToSlash(rel) != r.kept[p] {
				if err := os.Remove(file); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range []string{explore.VerdictsFile, VerdictsPage} {
		if err := os.Rename(filepath.Join(r.tmp, name), filepath.Join(r.dir, name)); err != nil {
			return err
		}
	}
	v := explore.CurrentVersions().Played()
	if part != "" {
		v = explore.Versions{}.Played() // evidence results --check says that it must be written anew
	}
	return KeepVersions(r.dir, "verdicts", v)
}
