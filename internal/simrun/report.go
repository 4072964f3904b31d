package simrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/explore"
	"lockstep/explore/coverage"
	"lockstep/explore/failure"
	"lockstep/explore/survey"
	"lockstep/internal/counted"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// pictureBytesMost limits the size of one of porcupine's pictures in a report.
const pictureBytesMost = 700_000

// reportOptions are the options of simrun report.
type reportOptions struct {
	out                  string
	toFile               bool // -o was given
	text, mermaid, blame bool
	runs                 int
}

func (a *app) reportCommand() *cobra.Command {
	var o reportOptions
	c := a.command(guide{
		use: "report RECORDING or DIR", short: "a page that shows what happened and why it is wrong; or an index of results",
		long: "Report writes the page of a recording: what each thread did and believed, what the server held, which messages were lost, and why the judge says no. " +
			"For a folder of results it writes an index and the page of each recording.",
		examples: []string{
			"report results/misdelete/setnx-del/1.lockstep -o report.html", "report results/misdelete/setnx-del/1.lockstep --text",
			"report results/misdelete/setnx-del/1.lockstep --mermaid",
		},
	}, func(in invocation) (int, error) { return a.report(in, o) })
	f := c.Flags()
	f.StringVarP(&o.out, "out", "o", "", "the `FILE` of the page, or the folder of the index")
	f.BoolVar(&o.text, "text", false, "write text in place of the page")
	f.BoolVar(&o.mermaid, "mermaid", false, "write a sequence diagram in place of the page")
	f.BoolVar(&o.blame, "blame", false, "also say which decision made the failure inevitable")
	whole(f, &o.runs, "runs", 20, bounds{1, 1_000_000}, "with --blame: runs for each decision that is tried")
	a.progressFlag(f)
	c.ValidArgsFunction = files("lockstep", "live")
	return c
}

func (a *app) report(in invocation, o reportOptions) (int, error) {
	names, given := in.names, in.given
	o.toFile = given.Changed("out")
	switch {
	case len(names) != 1:
		return 0, usagef("report takes one recording or one folder of results, got %d", len(names))
	case o.text && o.mermaid:
		return 0, usagef("report: --text and --mermaid: give one of them")
	case o.mermaid && o.blame:
		return 0, usagef("report: --mermaid and --blame: a diagram has no curve")
	case given.Changed("runs") && !o.blame:
		return 0, usagef("report: --runs belongs to --blame")
	}
	if info, err := os.Stat(names[0]); err == nil && info.IsDir() {
		if o.text || o.mermaid || o.blame {
			return 0, usagef("report: --text, --mermaid and --blame are for a recording, and %s is a folder", names[0])
		}
		return a.reportFolder(names[0], o)
	}
	return a.reportRun(names, o)
}

// reportRun writes the report of one recording.
func (a *app) reportRun(files []string, o reportOptions) (int, error) {
	if text, err := os.ReadFile(files[0]); err == nil && play.IsLive(text) {
		return a.reportLive(files[0], text, o)
	}
	rec, sc, lock, err := readRecording("report", files)
	if err != nil {
		return 0, err
	}
	to, err := o.target(sc.Name, lock.Name, rec.Seed, files[0])
	if err != nil {
		return 0, err
	}
	v, why := a.again(rec, sc, lock)
	if why != "" {
		fmt.Fprintf(a.err, "simrun: %s is not the same again: %s\n", files[0], why)
		return exitUndecided, nil
	}
	r := a.explained(v, program()+" replay "+files[0])
	if o.blame {
		if r.Blame, err = a.blame(rec, v, files[0], o.runs); err != nil {
			return 0, err
		}
	}
	return a.draw(r, v, o, to)
}

// target returns the file of a report. It returns nil if the report goes to the output.
func (o *reportOptions) target(scenario, lock string, number uint64, file string) (*target, error) {
	if !o.toFile {
		o.out = fileName(fmt.Sprintf("%s-%s-%d.html", scenario, lock, number))
	}
	if (o.text || o.mermaid) && !o.toFile {
		return nil, nil
	}
	return newTarget(o.out, file)
}

// reportLive writes the report of a live recording. The findings in the file are not judged again.
func (a *app) reportLive(file string, text []byte, o reportOptions) (int, error) {
	if o.blame {
		return 0, usagef("report: --blame: %s is a live run, which had no decisions", file)
	}
	run, err := play.ReadLive(file, text)
	if err != nil {
		return 0, usageError{err}
	}
	to, err := o.target(run.Scenario.Name, run.Lock.Name, run.Seed, file)
	if err != nil {
		return 0, err
	}
	r := reportOf(run.Verdict, "")
	r.About = fmt.Sprintf("%s Played live by %s, each instant within %v.", r.About, strings.Join(run.Programs, ", "), sentence.Uncertainty(run.Played.Record.Params.Uncertainty))
	return a.draw(r, run.Verdict, o, to)
}

// draw writes a report.
func (a *app) draw(r report.Run, v play.Verdict, o reportOptions, to *target) (int, error) {
	var b bytes.Buffer
	switch {
	case o.text:
		b.WriteString(report.Text(r))
	case o.mermaid:
		b.WriteString(report.Mermaid(r))
	default:
		if err := report.WriteHTML(&b, r, pictures(v)); err != nil {
			return 0, err
		}
	}
	if to == nil {
		_, err := a.out.Write(b.Bytes())
		return exitOK, err
	}
	if err := to.replace(b.Bytes()); err != nil {
		return 0, err
	}
	if !o.text && !o.mermaid && r.Blame != nil {
		fmt.Fprint(a.out, wrap(r.Blame.Sentence, "", 100))
	}
	fmt.Fprintln(a.out, o.out)
	return exitOK, nil
}

// fileName replaces the characters that a file's name may not contain on some systems.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, s)
}

// blame finds the decision that made the first finding inevitable.
func (a *app) blame(rec *play.Recording, v play.Verdict, file string, runs int) (*report.Curve, error) {
	f, ok := failure.First(v, "")
	if !ok {
		return nil, usagef("%s: nothing is broken in it, so no decision is to blame", file)
	}
	b, err := explore.FindBlame(a.host, rec, v, f, runs, func(points int) { a.status("%d of about 25 points", points) })
	a.status("")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	c := &report.Curve{Judge: f.Judge, Of: b.Of, Runs: b.Runs, Sentence: b.String()}
	for _, p := range b.Points {
		c.Points = append(c.Points, report.CurvePoint(p))
	}
	return c, nil
}

// reportOf converts a verdict to the run that a report shows.
func reportOf(v play.Verdict, replay string) report.Run {
	return report.Run{
		Scenario: v.Scenario.Name, About: v.Scenario.About, Lock: v.Lock.Name, Seed: v.Seed, Verdict: string(v.Word), Expected: v.Expected,
		Why: sentence.Verdict(v), Replay: replay, Digest: v.Digest(), Record: v.Played.Record, Findings: v.Findings,
	}
}

// explained is reportOf with the cause of the first finding.
func (a *app) explained(v play.Verdict, replay string) report.Run {
	r := reportOf(v, replay)
	r.Cause = a.cause(v)
	return r
}

// cause describes the known defect that a run's first finding shows, or the event that made server and clients
// disagree before it. It returns "" if nobody knows the cause.
func (a *app) cause(v play.Verdict) string {
	f, ok := failure.First(v, "")
	if !ok {
		return ""
	}
	n := failure.NewNamer(a.host, v)
	origin, cause := failure.OriginOf(n, f)
	if origin.Defect == "" {
		return failure.PartingOf(n, f)
	}
	text := defectText(origin.Defect)
	if cause != nil {
		text += "; " + cause.String()
	}
	var others []string // the judges whose findings have another cause
	for _, g := range v.Findings {
		if o, _ := failure.OriginOf(n, g); g.Class == judges.ClassBug && o.Defect != origin.Defect && !slices.Contains(others, g.Judge) {
			others = append(others, g.Judge)
		}
	}
	if len(others) > 0 {
		text += fmt.Sprintf(". This is the cause of the finding of %s, and not of that of %s", f.Judge, strings.Join(others, " and "))
	}
	return text
}

// defectText names a known defect.
func defectText(id string) string { return "a known defect: " + id + ", " + known.Title(id) }

// pictures returns one picture per lock of a run. Porcupine draws them.
func pictures(v play.Verdict) []report.Picture {
	out := []report.Picture{}
	for _, lock := range v.Played.Trace.Locks {
		var b bytes.Buffer
		p := report.Picture{Lock: lock}
		switch err := judges.Picture(v.Played.Trace, lock, &b); {
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

// killsFile has the rows of the table of planted bugs and of the judges that find them.
const killsFile = "kill-table" + killRowsEnding

// indexDepth is the number of levels of subfolders that an index includes.
const indexDepth = 2

// indexed returns the files from which the index of a folder is made, sorted.
func indexed(root *os.Root) []string {
	var out []string
	for _, name := range []string{explore.VerdictsFile, explore.RunsFile, killsFile, survey.LocksFile} {
		for range indexDepth + 1 {
			found, err := fs.Glob(root.FS(), name)
			if err != nil {
				panic(fmt.Sprintf("a bad pattern: %s: %v", name, err))
			}
			out = append(out, found...)
			name = "*/" + name
		}
	}
	slices.Sort(out)
	return out
}

// readIndex reads a folder of results and its subfolders. It includes campaigns under way.
func readIndex(root *os.Root, dir string) (report.Index, error) {
	x := report.Index{Title: "Lockstep: " + filepath.Base(dir)}
	seen := map[string]bool{}
	for _, file := range indexed(root) {
		folder := path.Dir(file)
		if path.Base(file) == killsFile {
			table, err := readKillTable(root, file)
			if err != nil {
				return x, usageError{fmt.Errorf("%s: %w", file, err)}
			}
			x.Tables = append(x.Tables, table)
		}
		if path.Base(file) == survey.LocksFile {
			tables, err := readSurvey(root, file)
			if err != nil {
				return x, usageError{fmt.Errorf("%s: %w", file, err)}
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
		return x, usagef("%s holds no results: neither %s nor a campaign; %s run --out DIR and %[3]s explore --out DIR write such folders", dir, explore.VerdictsFile, program())
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
	t := report.Table{Title: "Planted bugs", Head: killHead}
	f, err := root.Open(file)
	if err != nil {
		return t, err
	}
	defer func() { _ = f.Close() }()
	rows, err := readKills(f)
	for _, k := range rows {
		t.Rows = append(t.Rows, tableRow(k.cells()))
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
	f, err := root.Open(file)
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
	f, err := root.Open(name)
	if err == nil {
		x, err = report.ReadIndex(f, filepath.Join(dir, filepath.FromSlash(name)))
		_ = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return x, usageError{err}
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
	c := &report.Cells{Met: t.Met, Of: t.Of}
	for _, r := range t.Rows {
		row := report.CellRow{Fault: string(r.Fault), Lacks: r.Lacks}
		for _, e := range r.Entries {
			row.Entries = append(row.Entries, report.CellEntry{Moment: string(e.Moment), Cannot: e.Cannot})
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
		c.Grid = append(c.Grid, report.Situation{Op: string(s.Op), State: string(s.State), Moment: string(s.Moment), Met: words(s.Met), Never: words(s.Never)})
	}
	return c
}

// reportFolder writes an index of a folder and a report of each of its recordings. It writes
// them into another folder.
func (a *app) reportFolder(dir string, o reportOptions) (int, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, usagef("report: %w", err)
	}
	defer func() { _ = root.Close() }()
	x, err := readIndex(root, dir)
	if err != nil {
		return 0, err
	}
	if !o.toFile {
		o.out = filepath.Base(filepath.Clean(dir)) + "-report"
	}
	if o.out == "" {
		return 0, usagef("-o needs a folder")
	}
	if err := outputFolder("-o", o.out); err != nil {
		return 0, err
	}
	index, err := newTarget(filepath.Join(o.out, "index.html"), "")
	if err != nil {
		return 0, err
	}
	ctx, stop := a.interruptible()
	defer stop()
	all := map[string]bool{}
	x.EachRecording(func(recording string, _ *string) { all[recording] = true })
	var shared bytes.Buffer
	if err := report.WriteShared(&shared); err != nil {
		return 0, err
	}
	if err := a.writeInto(o.out, report.SharedFile, shared.Bytes()); err != nil {
		return 0, err
	}
	written := map[string]bool{}
	pace := a.paced()
	reports, foreign := 0, 0
	var bad []error
	x.EachRecording(func(recording string, link *string) {
		if ctx.Err() != nil {
			return
		}
		page := strings.TrimSuffix(recording, ".lockstep") + ".html"
		if ok, tried := written[recording]; tried && !ok {
			return
		} else if !tried {
			pace.tell(func(time.Time) string {
				return fmt.Sprintf("%d of %d reports; now %s", len(written), len(all), recording)
			})
			err := a.reportInto(root, dir, recording, o.out, page)
			written[recording] = err == nil
			switch {
			case errors.As(err, new(unknownLockError)):
				foreign++
				return
			case err != nil:
				bad = append(bad, err)
				return
			}
			reports++
		}
		*link = href(page)
	})
	a.status("")
	if ctx.Err() != nil {
		return 0, interruptedError(fmt.Sprintf(" after %s; there is no index", counted.Of(len(written), "report")))
	}
	var b bytes.Buffer
	if err := report.WriteIndex(&b, x); err != nil {
		return 0, err
	}
	if err := index.replace(b.Bytes()); err != nil {
		return 0, err
	}
	fmt.Fprintf(a.out, "%s, with %s\n", filepath.Join(o.out, "index.html"), counted.Of(reports, "report"))
	if len(bad) > 0 {
		fmt.Fprintf(a.err, "simrun: without a report:\n%v\n", errors.Join(bad...))
	}
	if foreign > 0 {
		fmt.Fprintf(a.err, "simrun: without a report: %s of locks that this program does not know\n", counted.Of(foreign, "recording"))
	}
	if len(bad)+foreign > 0 {
		return exitUndecided, nil
	}
	return exitOK, nil
}

// href returns the link from the index to a page.
func href(page string) string {
	var parts []string
	for _, p := range strings.Split(page, "/") {
		parts = append(parts, strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(p))
	}
	return "./" + strings.Join(parts, "/")
}

// reportInto writes the report of one recording of a folder.
func (a *app) reportInto(root *os.Root, dir, recording, out, page string) error {
	if !filepath.IsLocal(filepath.FromSlash(page)) {
		return fmt.Errorf("%s: not in the folder", recording)
	}
	r, drawn, err := a.runOf(root, dir, recording)
	if err != nil {
		return err
	}
	up := strings.Repeat("../", strings.Count(page, "/"))
	var b bytes.Buffer
	if err := report.WritePage(&b, r, drawn, up+report.SharedFile, report.Link{Text: "all runs", To: up + "index.html"}); err != nil {
		return err
	}
	return a.writeInto(out, page, b.Bytes())
}

// writeInto replaces a file of a folder, and makes the folders that it lies in.
func (a *app) writeInto(out, name string, text []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	to, err := newTarget(file, "")
	if err != nil {
		return err
	}
	return to.replace(text)
}

// An unknownLockError is the error of a recording of a lock that this program does not know.
type unknownLockError struct{ error }

func (e unknownLockError) Unwrap() error { return e.error }

// runOf plays a recording of a folder again. It returns the run for a report, and porcupine's
// pictures of it. It reads no file outside the folder.
func (a *app) runOf(root *os.Root, dir, recording string) (report.Run, []report.Picture, error) {
	text, err := root.ReadFile(path.Clean(recording))
	if err != nil {
		return report.Run{}, nil, err
	}
	file := filepath.Join(dir, filepath.FromSlash(recording))
	unknown := false
	rec, sc, lock, err := play.ReadRecordingOf(file, text, func(name string) (*subject.Subject, error) {
		lock, err := subject.Find(name)
		unknown = unknown || err != nil
		return lock, err
	})
	if unknown {
		return report.Run{}, nil, unknownLockError{err}
	}
	if err != nil {
		return report.Run{}, nil, err
	}
	v, why := a.again(rec, sc, lock)
	if why != "" {
		return report.Run{}, nil, fmt.Errorf("%s is not the same again: %s", file, why)
	}
	return a.explained(v, program()+" replay "+file), pictures(v), nil
}
