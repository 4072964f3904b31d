package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/failure"
	"lockstep/internal/input"
	"lockstep/internal/quantity"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
)

// reportOptions are the options of simrun report.
type reportOptions struct {
	out                  string
	toFile               bool // -o was given
	format               string
	text, mermaid, blame bool
	runs                 int
}

// The formats of a report. All but the page go to the output if no file is named.
const (
	formatPage     = "page"
	formatText     = "text"
	formatMermaid  = "mermaid"
	formatPerfetto = "perfetto"
)

var reportFormats = []string{formatPage, formatText, formatMermaid, formatPerfetto}

func reportCommand(a *frame.App) *cobra.Command {
	var o reportOptions
	c := a.Command(frame.Guide{
		Use: "report RECORDING or DIR", Short: "a page that shows what happened and why it is wrong; or an index of results",
		Long: "Report writes the page of a recording: what each thread did and believed, what the server held, which messages were lost, and why the judge says no. " +
			"For a folder of results it writes an index and the page of each recording.",
		Examples: []string{
			"report results/misdelete/setnx-del/1.lockstep -o report.html", "report results/misdelete/setnx-del/1.lockstep --text",
			"report results/misdelete/setnx-del/1.lockstep --format perfetto -o trace.json",
		},
	}, func(in frame.Invocation) (int, error) { return writeReport(a, in, o) })
	f := c.Flags()
	f.StringVarP(&o.out, "out", "o", "", "the `FILE` of the report, or the folder of the index")
	frame.OneOf(f, &o.format, "format", formatPage, reportFormats, "page, text, mermaid (a sequence diagram) or perfetto (a trace that ui.perfetto.dev opens)")
	f.BoolVar(&o.text, formatText, false, "as --format text")
	f.BoolVar(&o.mermaid, formatMermaid, false, "as --format mermaid")
	f.BoolVar(&o.blame, "blame", false, "also say which decision made the failure inevitable")
	frame.Whole(f, &o.runs, "runs", 20, quantity.BlameRuns, "with --blame: runs for each decision that is tried")
	a.ProgressFlag(f)
	c.ValidArgsFunction = frame.Files("lockstep", "live")
	return c
}

func writeReport(a *frame.App, in frame.Invocation, o reportOptions) (int, error) {
	names, given := in.Names, in.Given
	o.toFile = given.Changed("out")
	var formats []string
	for _, option := range []string{"format", formatText, formatMermaid} {
		if given.Changed(option) {
			formats = append(formats, "--"+option)
		}
	}
	switch {
	case o.text:
		o.format = formatText
	case o.mermaid:
		o.format = formatMermaid
	}
	switch {
	case len(names) != 1:
		return 0, frame.Usagef("report takes one recording or one folder of results, got %d", len(names))
	case len(formats) > 1:
		return 0, frame.Usagef("report: %s: give one of them", strings.Join(formats, " and "))
	case o.blame && o.format != formatPage && o.format != formatText:
		return 0, frame.Usagef("report: --blame: a report as %s has no curve", o.format)
	case given.Changed("runs") && !o.blame:
		return 0, frame.Usagef("report: --runs belongs to --blame")
	}
	if info, err := os.Stat(names[0]); err == nil && info.IsDir() {
		if o.format != formatPage || o.blame {
			return 0, frame.Usagef("report: --format, --text, --mermaid and --blame are for a recording, and %s is a folder", names[0])
		}
		return reportFolder(a, names[0], o)
	}
	return reportRun(a, names, o)
}

// reportRun writes the report of one recording.
func reportRun(a *frame.App, files []string, o reportOptions) (int, error) {
	if play.IsLive(input.Head(files[0])) {
		text, err := input.Read(files[0], "report takes a recording", play.RecordingMost)
		if err != nil {
			return 0, frame.Usage(err)
		}
		return reportLive(a, files[0], text, o)
	}
	rec, sc, lock, err := readRecording(toReport, files)
	if err != nil {
		return 0, err
	}
	to, err := o.target(sc.Name, lock.Name, rec.Seed, files[0])
	if err != nil {
		return 0, err
	}
	v, why := playAgain(a, rec, sc, lock)
	if why != "" {
		a.Complain("%s is not the same again: %s", files[0], why)
		return frame.ExitUndecided, nil
	}
	r := explained(a, v, frame.CommandInFiles("replay", files[0]))
	if o.blame {
		if r.Blame, err = findBlame(a, rec, v, files[0], o.runs); err != nil {
			return 0, err
		}
	}
	return writeRun(a, r, v, o, to)
}

// target returns the file of a report. It returns nil if the report goes to the output.
func (o *reportOptions) target(scenario, lock string, number uint64, file string) (*frame.Target, error) {
	if !o.toFile {
		o.out = fileName(fmt.Sprintf("%s-%s-%d.html", scenario, lock, number))
	}
	if o.format != formatPage && !o.toFile {
		return nil, nil
	}
	return frame.NewTarget(o.out, file)
}

// reportLive writes the report of a live recording. The findings in the file are not judged again.
func reportLive(a *frame.App, file string, text []byte, o reportOptions) (int, error) {
	if o.blame {
		return 0, frame.Usagef("report: --blame: %s is a live run, which had no decisions", file)
	}
	run, err := play.ReadLive(file, text)
	if err != nil {
		return 0, frame.Usage(err)
	}
	to, err := o.target(run.Scenario.Name, run.Lock.Name, run.Seed, file)
	if err != nil {
		return 0, err
	}
	r := reportOf(run.Verdict, "")
	r.About = fmt.Sprintf("%s Played live by %s, each instant within %v.", r.About, strings.Join(run.Programs, ", "), sentence.Uncertainty(run.Played.Record.Params.Uncertainty))
	return writeRun(a, r, run.Verdict, o, to)
}

// writeRun writes a report.
func writeRun(a *frame.App, r report.Run, v play.Verdict, o reportOptions, to *frame.Target) (int, error) {
	var b bytes.Buffer
	switch o.format {
	case formatText:
		b.WriteString(report.Text(r))
	case formatMermaid:
		b.WriteString(report.Mermaid(r))
	case formatPerfetto:
		b.WriteString(report.Perfetto(r))
	default:
		if err := report.WriteHTML(&b, r, pictures(v)); err != nil {
			return 0, err
		}
	}
	if to == nil {
		_, err := a.Out.Write(b.Bytes())
		return frame.ExitOK, err
	}
	if err := to.Replace(b.Bytes()); err != nil {
		return 0, err
	}
	if o.format == formatPage && r.Blame != nil {
		fmt.Fprint(a.Out, report.Wrap(r.Blame.Sentence, "", 100))
	}
	fmt.Fprintln(a.Out, o.out)
	return frame.ExitOK, nil
}

// findBlame finds the decision that made the first finding inevitable.
func findBlame(a *frame.App, rec *play.Recording, v play.Verdict, file string, runs int) (*report.Curve, error) {
	f, ok := failure.First(v, "")
	if !ok {
		return nil, frame.Usagef("%s: nothing is broken in it, so no decision is to blame", file)
	}
	b, err := explore.FindBlame(a.Host, rec, v, f, runs, func(points int) { a.Status("%d of about 25 points", points) })
	a.Status("")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := &report.Curve{Judge: f.Judge, Of: b.Of, Runs: b.Runs, Sentence: b.String()}
	for _, p := range b.Points {
		c.Points = append(c.Points, report.CurvePoint(p))
	}
	return c, nil
}
