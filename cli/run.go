package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/internal/counted"
	"lockstep/report"
	"lockstep/scenarios/play"
)

// runFlags are the options of simrun run.
type runFlags struct {
	locks                   []string
	tag, seeds, out, format string
	asJSON, details         bool
}

func runCommand(a *frame.App) *cobra.Command {
	var o runFlags
	c := a.Command(frame.Guide{
		Use: "run [SCENARIO or FILE ...]", Short: "run scenarios on locks, and say what was expected and what happened",
		Long: "Run plays scenarios, each with all its seeds on each lock that it names. Of one scenario it prints a line for each lock: the verdict, and whether it was expected. " +
			"Where something broke it says why, and how to replay it. Of several scenarios it prints a line for each, and then each scenario and lock that was not as expected. " +
			"Without a name it plays all built-in scenarios.\n" +
			"With --out it also writes verdicts.md, verdicts.jsonl and a recording of each run that did not simply hold.",
		Examples: []string{"run misdelete --lock setnx-del --seed 1", "run misdelete --lock redisson@4.7.0,setnx-del --seed 1..3 --json", "run misdelete --out results-of-mine"},
	}, func(in frame.Invocation) (int, error) { return runScenarios(a, in, o) })
	f := c.Flags()
	frame.LockFlag(f, &o.locks, "play on `LOCK` in place of the locks of the scenario; may be repeated")
	frame.TagFlag(f, &o.tag)
	frame.SeedFlag(f, &o.seeds, "", "the seeds, `N or A..B`; default: the scenario's own")
	f.StringVar(&o.out, "out", "", "write verdicts.md, verdicts.jsonl and recordings to `DIR`")
	frame.OneOf(f, &o.format, "format", "", formats, "junit or github, in place of the table")
	frame.JSONFlag(f, &o.asJSON, "one object per run, one per line")
	f.BoolVar(&o.details, "details", false, "list each scenario and lock with its findings, also for several scenarios")
	a.QuietFlag(f, "only the summary and the results that were not as expected")
	c.ValidArgsFunction = frame.ScenariosOrFiles
	return c
}

// runScenarios plays scenarios on locks.
func runScenarios(a *frame.App, in frame.Invocation, o runFlags) (int, error) {
	if err := checkFormat(o.format, o.asJSON); err != nil {
		return 0, err
	}
	pairs, err := Choose(in.Names, o.tag, o.locks, o.seeds)
	if err != nil {
		return 0, err
	}
	progress := newProgress(a, pairs)
	if o.format != "" && progress.total > casesMost {
		return 0, frame.Usagef("--format %s: all runs are kept until the last one; at most %d, and these are %d", o.format, casesMost, progress.total)
	}
	r := &running{a: a, o: o, table: !o.asJSON && o.format == "", details: !a.Quiet && (o.details || len(byScenario(pairs)) == 1), enc: json.NewEncoder(a.Out)}
	r.enc.SetEscapeHTML(false)
	ctx, unregister := a.Interrupts(func() { r.results.discard() })
	defer unregister()
	if o.out != "" {
		release, err := a.Folder(o.out)
		if err != nil {
			return 0, frame.Usage(fmt.Errorf("run: %w", err))
		}
		defer release()
		if r.results, err = openResults(o.out, in.Args); err != nil {
			return 0, err
		}
		defer r.results.discard()
	}
	if r.table {
		progress.pace = frame.PaceElsewhere
	}
	if r.table && r.details {
		r.lines = a.Captured(func() { printHeader(a) })
	}
	for _, p := range pairs {
		if err := PlayPair(a, ctx, p, progress, func(v play.Verdict) error { return r.verdict(p, v) }); err != nil {
			return 0, err
		}
		if len(p.kinds) == 0 { // interrupted
			break
		}
		r.played(p)
	}
	part, code := "", exitCode(r.finished)
	if ctx.Err() != nil {
		part = fmt.Sprintf("interrupted after %d of %s", runsOf(r.finished), counted.Of(progress.total, "run"))
		if code == frame.ExitOK {
			code = frame.ExitUndecided
		}
	}
	return code, r.conclude(part)
}

// running is a call of run under way.
type running struct {
	a        *frame.App
	o        runFlags
	table    bool // a table is printed, in place of JSON or another format
	details  bool // each pair is listed
	enc      *json.Encoder
	results  *results      // nil: they are not kept
	cases    []report.Case // for o.format
	lines    []byte        // of the pairs that are listed one by one
	finished []*Pair
}

// verdict keeps and prints a verdict of a pair.
func (r *running) verdict(p *Pair, v play.Verdict) error {
	if r.results != nil {
		if err := r.results.verdict(p, v); err != nil {
			return err
		}
	}
	if r.o.asJSON {
		return r.enc.Encode(asObject(v, r.results.recordingOf(p, v)))
	}
	if r.o.format != "" {
		r.cases = append(r.cases, caseOf(v))
	}
	return nil
}

// played notes that all seeds of a pair were played.
func (r *running) played(p *Pair) {
	if r.results != nil {
		r.results.add(p)
	}
	if r.table && (r.details || !p.asExpected()) {
		r.lines = append(r.lines, r.a.Captured(func() { printPair(r.a, p) })...)
	}
	if r.o.asJSON {
		r.a.Printed(exitCode([]*Pair{p}))
	}
	p.forget()
	r.finished = append(r.finished, p)
}

// conclude keeps the results and prints what is printed at the end. If not everything was run, part says
// how far it came.
func (r *running) conclude(part string) error {
	a := r.a
	if r.results != nil {
		if err := r.results.commit(part); err != nil {
			return err
		}
	}
	if part != "" {
		kept := "nothing of it is kept without --out DIR"
		if r.o.out != "" {
			kept = "their verdicts are kept in " + r.o.out
		}
		a.Warn("%s; %s", part, kept)
	}
	switch {
	case r.o.asJSON:
		return nil
	case !r.table:
		return writeCases(a, r.o.format, r.cases)
	case !a.Quiet && !r.details:
		r.lines = append(a.Captured(func() { printScenarios(a, r.finished, len(r.lines) > 0) }), r.lines...)
	}
	printSummary(a, r.finished, r.lines)
	if a.Quiet {
		return nil
	}
	printNext(a, r.finished, r.details, func(p *Pair) string {
		if r.results == nil || r.results.kept[p] == "" {
			return ""
		}
		return filepath.Join(r.o.out, r.results.kept[p])
	})
	return nil
}
