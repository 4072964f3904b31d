package evidence

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/renameio/v2"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/foreign"
	"lockstep/live/upstream"
)

// An upstreamEntry is a row of the table of upstream.
type upstreamEntry struct {
	Versions   explore.Versions  `json:"versions,omitzero"` // of the program that looked; zero: an older program
	ID         string            `json:"id"`
	Title      string            `json:"title"`
	Issues     []int             `json:"issues,omitempty"`
	Release    string            `json:"release"`
	Lock       string            `json:"lock,omitempty"`     // "": no scenario can show it
	Scenario   string            `json:"scenario,omitempty"` // the source of the scenario
	Judge      string            `json:"judge,omitempty"`
	Runs       int               `json:"runs"`
	Reproduced int               `json:"reproduced"` // of the runs
	Programs   []string          `json:"programs,omitempty"`
	Test       *upstream.TestRun `json:"test,omitempty"`
	Folder     bool              `json:"folder"`
	Reason     string            `json:"reason,omitempty"` // why something is missing
}

// summary is the outcome of an entry in short.
func (e upstreamEntry) summary() string {
	return strings.Join([]string{e.live(), e.test()}, "; ")
}

func (e upstreamEntry) live() string {
	if e.Runs == 0 {
		return "not played live"
	}
	return fmt.Sprintf("%d of %d", e.Reproduced, e.Runs)
}

func (e upstreamEntry) test() string {
	if e.Test == nil {
		return "no test"
	}
	text := fmt.Sprintf("%d of %d", e.Test.Failed, e.Test.Tries)
	if e.Test.Errors > 0 {
		text += fmt.Sprintf(", %d went wrong", e.Test.Errors)
	}
	return text
}

// upstreamTable is the table of upstream: a file with a line per defect, from which the text is
// written.
type upstreamTable struct {
	mu      sync.Mutex
	file    string
	text    string
	folder  string // of the reports, as the text names it
	release string
	by      explore.Versions // of this program
	entries []upstreamEntry
}

// upstreamVersions are the versions of this program on which an entry depends.
func upstreamVersions() explore.Versions {
	v := explore.CurrentVersions().Untold()
	v.Draw = explore.NotUsed
	return v
}

func (t *upstreamTable) read() error {
	text, err := os.ReadFile(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	for dec.More() {
		var e upstreamEntry
		if err := dec.Decode(&e); err != nil {
			return fmt.Errorf("%s is no table of upstream: %w", t.file, err)
		}
		if e.Release == t.release {
			t.entries = append(t.entries, e)
		}
	}
	return nil
}

// has reports whether this version of the program has looked for a defect.
func (t *upstreamTable) has(id string) bool {
	return slices.ContainsFunc(t.entries, func(e upstreamEntry) bool { return e.ID == id && e.Versions == t.by })
}

// put replaces the entry of a defect, and writes the file.
func (t *upstreamTable) put(e upstreamEntry) error {
	t.entries = slices.DeleteFunc(t.entries, func(x upstreamEntry) bool { return x.ID == e.ID })
	t.entries = append(t.entries, e)
	slices.SortFunc(t.entries, func(a, b upstreamEntry) int { return cmp.Compare(a.ID, b.ID) })
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, e := range t.entries {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return renameio.WriteFile(t.file, b.Bytes(), 0o666)
}

// args returns the arguments of the command that plays all defects of the table. The command that
// is under way may name only some of them.
func (t *upstreamTable) args(in frame.Invocation) []string {
	args := in.ArgsBut("again")
	if slices.ContainsFunc(t.entries, func(e upstreamEntry) bool { return !slices.Contains(in.Names, e.ID) }) {
		args = slices.DeleteFunc(args, func(x string) bool { return slices.Contains(in.Names, x) })
	}
	return args
}

// write writes the text with the command that wrote it.
func (t *upstreamTable) write(command []string) error {
	var b bytes.Buffer
	title := "Known defects on the library itself"
	if t.release == "" {
		title = "Known defects of other people's locks on real servers"
	}
	fmt.Fprintf(&b, "<!-- written by: %s -->\n# %s\n\n", strings.Join(command, " "), title)
	programs := map[string]bool{}
	seen, tested := 0, 0
	for _, e := range t.entries {
		for _, p := range e.Programs {
			programs[p] = true
		}
		if e.Reproduced > 0 || e.Test != nil && e.Test.Failed > 0 {
			seen++
		}
		if e.Test != nil && e.Test.Failed > 0 {
			tested++
		}
	}
	if t.release == "" {
		fmt.Fprintf(&b, "Each known defect of the locks in peers/ was looked for on real servers (%s), by the unmodified libraries. In a live run, each client is a process of its own behind a proxy, "+
			"and the cause of the defect must be found in its record. `upstream DEFECT --out DIR` writes its test, a Go test that needs nothing of this repository; a try shows the defect if it fails. "+
			"%d of %d defects were seen live, %d of them by a test. [docs/live.md](../docs/live.md) says more.\n\n",
			strings.Join(sortedNames(programs), ", "), seen, len(t.entries), tested)
	} else {
		fmt.Fprintf(&b, "Each known defect of release %s was looked for on the Java library itself, on %s. In a live run, each client is a JVM of its own behind a proxy, "+
			"and the judges must find what they find in the simulated run of the port. `upstream DEFECT --out DIR` writes its test, a JUnit test that needs nothing of this repository; a try shows the defect if it fails. "+
			"%d of %d defects were seen, %d of them by a test. A defect that was not seen is not called one of the library. [docs/live.md](../docs/live.md) says more.\n\n",
			t.release, strings.Join(sortedNames(programs), ", "), seen, len(t.entries), tested)
	}
	fmt.Fprintln(&b, "| defect | title | issues | live runs | tries of the test | report |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|")
	for _, e := range t.entries {
		var report []string
		if e.Folder {
			report = append(report, fmt.Sprintf("[%s](%s/%s/report.md)", e.ID, t.folder, e.ID))
		}
		if e.Reason != "" {
			report = append(report, e.Reason)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", e.ID, foreign.Own(e.Title), cmp.Or(upstream.Issues(e.Issues), "none known"), e.live(), e.test(), strings.Join(report, "; "))
	}
	return renameio.WriteFile(t.text, b.Bytes(), 0o666)
}
