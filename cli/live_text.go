package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"lockstep/cli/frame"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
)

// tally says how often each verdict came, the most frequent first.
func tally(p *Pair) string {
	count := map[play.Word]uint64{}
	var words []play.Word
	for _, k := range p.kinds {
		if !slices.Contains(words, k.word) {
			words = append(words, k.word)
		}
		count[k.word] += k.runs
	}
	slices.SortStableFunc(words, func(x, y play.Word) int { return cmp.Compare(count[y], count[x]) })
	var parts []string
	for _, w := range words {
		parts = append(parts, fmt.Sprintf("%s %d of %d", w, count[w], p.runs))
	}
	return strings.Join(parts, ", ")
}

// liveLine prints the verdicts of the runs of a pair.
func liveLine(a *frame.App, p *Pair, all []play.LiveRun) {
	w := p.worst()
	mark := "yes"
	if !p.asExpected() {
		mark = "NO: " + w.Expected
	} else if w.Expected != "held" {
		mark = "yes: " + w.Expected
	}
	fmt.Fprintf(a.Out, "%-28s %-21s %-7d %s %s\n", report.Clip(p.Scenario.Name, 28), report.Clip(p.Lock.Name, 21), len(all),
		a.Paint(string(w.Word), fmt.Sprintf("%-10s", report.Clip(string(w.Word), 10))), report.Clip(mark, 29))
	if len(all) > 1 {
		fmt.Fprint(a.Out, report.Wrap(tally(p), "    ", 100))
	}
	if !w.AsExpected {
		fmt.Fprint(a.Out, shortStory(w))
	}
	if why := sentence.Verdict(w); why != "" {
		fmt.Fprint(a.Out, report.Wrap(why, "    ", 100))
	}
	printFindings(a, w)
	for _, r := range all {
		if r.Note != "" {
			fmt.Fprint(a.Out, report.Wrap(fmt.Sprintf("run %d was %s", r.Seed, r.Note), "    ", 100))
		}
		if r.Logs != "" {
			fmt.Fprintf(a.Out, "    logs of run %d: %s\n", r.Seed, r.Logs)
		}
	}
	params := all[0].Played.Record.Params
	fmt.Fprintf(a.Out, "    %s, each instant within %v\n", strings.Join(all[0].Programs, ", "), sentence.Uncertainty(params.Uncertainty))
}

// WriteLive writes a run as DIR/SCENARIO/LOCK/RUN.live, and returns the name of the file.
func WriteLive(dir string, r play.LiveRun) (string, error) {
	file := filepath.Join(dir, fileName(r.Scenario.Name), fileName(r.Lock.Name), fmt.Sprintf("%d.live", r.Seed))
	return file, writeLiveFile(file, r)
}

func writeLiveFile(file string, r play.LiveRun) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return frame.Usage(err)
	}
	var b bytes.Buffer
	comment := []string{
		fmt.Sprintf("%s on %s: %s. A live run, by %s.", r.Scenario.Name, r.Lock.Name, r.Word, strings.Join(r.Programs, ", ")),
		"It has no decisions and cannot be played again. Draw it: " + frame.CommandInFiles("report", file),
	}
	if r.Note != "" {
		comment = append(comment, "It was "+r.Note+".")
	}
	if err := r.Recording().Write(&b, comment); err != nil {
		return err
	}
	return renameio.WriteFile(file, b.Bytes(), 0o666)
}

// A liveObject is a live run as --json prints it. It has the fields of an object, except for the
// fields that only a simulated run has.
type liveObject struct {
	Scenario      string          `json:"scenario"`
	Lock          string          `json:"lock"`
	Run           uint64          `json:"run"`
	Verdict       string          `json:"verdict"`
	Expected      string          `json:"expected"`
	AsExpected    bool            `json:"as_expected"`
	Findings      []findingObject `json:"findings"`
	Reached       []string        `json:"reached"`
	Waits         waitsObject     `json:"waits"`
	RealNs        int64           `json:"real_ns"`
	UncertaintyNs int64           `json:"uncertainty_ns"`
	Programs      []string        `json:"programs"`
	Note          string          `json:"note"`
	Recording     string          `json:"recording"`
}

func liveObjectOf(r play.LiveRun, file string) liveObject {
	o := asObject(r.Verdict, file)
	uncertainty := int64(0)
	if rec := r.Played.Record; rec != nil {
		uncertainty = int64(rec.Params.Uncertainty)
	}
	return liveObject{
		Scenario: o.Scenario, Lock: o.Lock, Run: o.Seed, Verdict: o.Verdict, Expected: o.Expected, AsExpected: o.AsExpected, Findings: o.Findings,
		Reached: o.Reached, Waits: o.Waits, RealNs: o.SimNs, UncertaintyNs: uncertainty, Programs: r.Programs, Note: r.Note, Recording: file,
	}
}
