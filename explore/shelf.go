package explore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// A Shelf is a folder with one recording per known defect and one per limit. The verdicts of several
// campaigns lead to it. A file is named after the defect or the limit that it shows.
type Shelf struct {
	Dir  string
	Host *sim.Host // replays the recordings of the shelf
}

// Add moves the recordings of known defects and of limits from the folder of a campaign to the shelf, and lets
// the verdicts of the campaign lead there. Of two recordings the shelf keeps the shorter one, and of two
// that are equally long the one whose text comes first. A recording of the shelf that no longer shows
// what it is named after gives way to any other.
func (s Shelf) Add(campaign string) error {
	t, err := readTold(campaign)
	if err != nil {
		return err
	}
	to, err := relative(campaign, s.Dir)
	if err != nil {
		return err
	}
	moved := map[string]string{}
	for _, g := range t.groups {
		name := g.Name()
		if name == "" || !slices.Contains(t.recordings(), g.Recording) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(campaign, filepath.FromSlash(g.Recording)))
		if err != nil {
			return err
		}
		if err := s.keep(name, text); err != nil {
			return err
		}
		moved[g.Recording] = to + "/" + name + recordingExt
	}
	if len(moved) == 0 {
		return nil
	}
	for file, link := range map[string]func(recording string) string{
		VerdictsFile: func(recording string) string { return fmt.Sprintf(`"recording":"%s"`, recording) },
		verdictsPage: func(recording string) string { return "](" + recording + ")" },
	} {
		if err := relink(filepath.Join(campaign, file), moved, link); err != nil {
			return err
		}
	}
	for old := range moved {
		if err := removeFile(campaign, old); err != nil {
			return err
		}
	}
	return nil
}

// recordingExt is the end of the name of a recording.
const recordingExt = ".lockstep"

// verdictsPage is the page that WriteTally writes beside VerdictsFile.
const verdictsPage = "verdicts.md"

// relative returns the path from one folder to another, with forward slashes.
func relative(from, to string) (string, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	to, err = filepath.Abs(to)
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(from, to)
	return filepath.ToSlash(rel), err
}

// relink lets the links of a file of WriteTally lead to the new places of recordings.
func relink(file string, moved map[string]string, link func(recording string) string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for old, place := range moved {
		text = bytes.ReplaceAll(text, []byte(link(old)), []byte(link(place)))
	}
	return renameio.WriteFile(file, text, 0o644)
}

// file returns the file of the shelf for a name.
func (s Shelf) file(name string) string { return filepath.Join(s.Dir, name+recordingExt) }

// keep puts a recording on the shelf unless a better one is there.
func (s Shelf) keep(name string, text []byte) error {
	old, err := os.ReadFile(s.file(name))
	if err == nil && !shorter(text, old) && s.Shows(name) == nil {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(s.file(name), text, 0o644)
}

// shorter reports whether a shelf prefers a recording to another.
func shorter(a, b []byte) bool {
	return len(a) < len(b) || len(a) == len(b) && bytes.Compare(a, b) < 0
}

// Shows returns nil if the recording of that name replays with its digest and shows the defect or the limit
// that it is named after.
func (s Shelf) Shows(name string) error {
	file := s.file(name)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	rec, sc, lock, err := play.ReadRecording(file, text)
	if err != nil {
		return err
	}
	v, diverged := play.Replay(s.Host, rec, sc, lock)
	if v.Digest() != rec.Digest || diverged != "" {
		return fmt.Errorf("%s: the recording has digest %.12s, the replay %.12s", file, rec.Digest, v.Digest())
	}
	named := failure.NewNamer(s.Host, v)
	for _, f := range v.Findings {
		if f.Verdict != judges.Broken {
			continue
		}
		if o, _ := failure.OriginOf(named, f); o.Name() == name {
			return nil
		}
	}
	return fmt.Errorf("%s: the run does not show %s", file, name)
}

// Names returns the names of the recordings of the shelf, in order.
func (s Shelf) Names() (names []string, err error) {
	files, err := filepath.Glob(s.file("*"))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), recordingExt))
	}
	return names, err
}

// Sweep removes the recordings to which the verdicts of none of the campaigns lead.
func (s Shelf) Sweep(campaigns []string) error {
	names, err := s.Names()
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, dir := range campaigns {
		t, err := readTold(dir)
		if err != nil {
			return err
		}
		for _, g := range t.groups {
			wanted[filepath.Join(dir, filepath.FromSlash(g.Recording))] = true
		}
	}
	for _, name := range names {
		if !wanted[s.file(name)] {
			if err := removeFile("", s.file(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// MissingRecordings returns the recordings to which the verdicts of a campaign lead and that are not there.
func MissingRecordings(dir string) (missing []string, err error) {
	t, err := readTold(dir)
	for _, g := range t.groups {
		file := filepath.Join(dir, filepath.FromSlash(g.Recording))
		if _, err := os.Stat(file); err != nil && g.Recording != "" && !slices.Contains(missing, file) {
			missing = append(missing, file)
		}
	}
	return missing, err
}
