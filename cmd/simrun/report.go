package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"lockstep/linearizability"
	"lockstep/report"
	"lockstep/scenarios"
)

// storyLines is how many lines of a failing run simrun run shows.
const storyLines = 14

// pictureBytesMost is how much of a report porcupine's picture may take.
const pictureBytesMost = 700_000

func (a *app) report(args []string) (int, error) {
	var out string
	var text, mermaid bool
	var given *pflag.FlagSet
	files, err := flags("report", args, func(f *pflag.FlagSet) {
		f.StringVarP(&out, "out", "o", "", "")
		f.BoolVar(&text, "text", false, "")
		f.BoolVar(&mermaid, "mermaid", false, "")
		given = f
	})
	if err != nil {
		return 0, err
	}
	if text && mermaid {
		return 0, usagef("report: --text and --mermaid: give one of them")
	}
	rec, sc, lock, err := readRecording("report", files)
	if err != nil {
		return 0, err
	}
	toFile := !text && !mermaid || given.Changed("out")
	if !given.Changed("out") {
		out = strings.TrimSuffix(files[0], ".lockstep") + ".html"
	}
	var to *target
	if toFile {
		if to, err = newTarget(out, files[0]); err != nil {
			return 0, err
		}
	}
	v, why := a.again(rec, sc, lock)
	if why != "" {
		fmt.Fprintf(a.err, "simrun: %s is not the same again: %s\n", files[0], why)
		return exitUndecided, nil
	}
	r := reportOf(v, "go run ./cmd/simrun replay "+files[0])
	var page bytes.Buffer
	switch {
	case text:
		page.WriteString(report.Text(r))
	case mermaid:
		page.WriteString(report.Mermaid(r))
	default:
		if err := report.WriteHTML(&page, r, pictures(v)); err != nil {
			return 0, err
		}
	}
	if !toFile {
		_, err := a.out.Write(page.Bytes())
		return exitOK, err
	}
	if err := to.replace(page.Bytes()); err != nil {
		return 0, err
	}
	fmt.Fprintf(a.out, "%s\n", out)
	return exitOK, nil
}

// reportOf is a verdict as the reports take it.
func reportOf(v scenarios.Verdict, replay string) report.Run {
	return report.Run{
		Scenario: v.Scenario.Name, About: v.Scenario.About, Lock: v.Lock.Name, Seed: v.Seed, Verdict: string(v.Word), Expected: v.Expected,
		Why: v.Why, Replay: replay, Digest: v.Digest, Record: v.Played.Record, Findings: v.Findings,
	}
}

// pictures are porcupine's, of each lock of a run.
func pictures(v scenarios.Verdict) []report.Picture {
	var out []report.Picture
	for _, lock := range linearizability.Locks(v.Played.Record) {
		var b bytes.Buffer
		p := report.Picture{Lock: lock}
		switch err := linearizability.Picture(v.Played.Record, lock, &b); {
		case err != nil:
			p.Why = err.Error()
		case b.Len() > pictureBytesMost:
			p.Why = fmt.Sprintf("it would take %d bytes", b.Len())
		default:
			p.HTML = b.String()
		}
		out = append(out, p)
	}
	return out
}

var _ = errors.Is
var _ = os.Stat
var _ = filepath.Join
