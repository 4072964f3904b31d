package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/internal/nearest"
	"lockstep/internal/quantity"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/live/upstream"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// upstreamFlags are the options of frame.Simrun upstream.
type upstreamFlags struct {
	release, out, results string
	runs, tries, jobs     int
	again, peers          bool
}

func upstreamCommand(a *frame.App) *cobra.Command {
	var o upstreamFlags
	c := a.Command(frame.Guide{
		Use: "upstream [DEFECT ...]", Short: "say which known defects the libraries themselves have",
		Long: "Upstream looks for the known defects of a release of Redisson on the Java library itself. It writes results/upstream.md, which lists them, and a report for each, with the outcome of a JUnit test. " +
			"It needs the Java library and Maven. With --peers it looks for the known defects of the locks of the program in peers/ on real servers, and writes a report for each defect of a library, with the outcome of a Go test. " +
			"The same command goes on where it ended. With --out it plays nothing, and writes the whole project of each test.",
		Examples: []string{"upstream", "upstream R-4818 --out reports-of-mine"},
	}, func(in frame.Invocation) (int, error) { return lookUpstream(a, in, o) })
	f := c.Flags()
	f.StringVar(&o.release, "release", library, "the `RELEASE` of Redisson")
	frame.Whole(f, &o.runs, "runs", 3, quantity.LiveRuns, "live runs of each defect")
	frame.Whole(f, &o.tries, "tries", 3, quantity.TestTries, "runs of the test of each defect; 0: write no test")
	frame.LiveJobsFlag(f, &o.jobs, "defects at a time")
	f.StringVar(&o.out, "out", "", "play nothing, and write the project of the test of each defect to a folder of `DIR`")
	f.StringVar(&o.results, "results", "results", "the `DIR` of the results: campaigns kept recordings of the defects there, and the table and the reports are written there")
	f.BoolVar(&o.again, "again", false, "play all anew")
	f.BoolVar(&o.peers, "peers", false, "the defects of the locks of the program in peers/; their table is upstream-peers.md")
	a.ProgressFlag(f)
	c.ValidArgsFunction = frame.Only(defectIDs)
	return c
}

// lookUpstream looks for the known defects of a release on the library itself, and writes for each that it
// finds a report for the issue tracker.
func lookUpstream(a *frame.App, in frame.Invocation, flags upstreamFlags) (int, error) {
	ids := in.Names
	if flags.peers && in.Given.Changed("release") {
		return 0, frame.Usagef("upstream: --release is of Redisson; --peers has the locks of peers/ as go.mod there has them")
	}
	name, release := upstreamName, flags.release
	if flags.peers {
		name, release = peersUpstream, ""
	}
	locks, err := upstreamLocks(a, release)
	if err != nil {
		return 0, err
	}
	if flags.out != "" {
		return upstreamProjects(a, in, flags, release, locks)
	}
	results, runs, tries, jobs := flags.results, flags.runs, flags.tries, flags.jobs
	out := filepath.Join(results, name)
	o, err := cli.LiveOptions(a, "", "")
	if err != nil {
		return 0, err
	}
	if err := cli.LiveReady(a, locks, o); err != nil {
		return 0, err
	}
	free, err := a.Folder(out)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("upstream: %w", err))
	}
	defer free()
	table := upstreamTable{by: upstreamVersions(), file: out + ".jsonl", text: out + ".md", folder: name, release: release}
	if err := table.read(); err != nil {
		return 0, frame.Usage(fmt.Errorf("upstream: %w", err))
	}
	args := func() []string { return append([]string{a.Called(), "upstream"}, table.args(in)...) }
	cases, err := upstreamCases(a, ids, release, locks, results)
	if err != nil {
		return 0, err
	}
	anew := len(ids) > 0 || flags.again
	if !anew { // go on where the last command ended; a defect that an older program looked for is played anew
		cases = slices.DeleteFunc(cases, func(c *upstreamCase) bool { return table.has(c.ID) })
	}
	ctx, stop := a.Interruptible()
	defer stop()
	runtime.GOMAXPROCS(runtime.NumCPU()) // nothing is simulated from here on
	begun, done := time.Now(), 0
	err = sideBySide(ctx, len(cases), jobs, "defect", func(i int) error {
		c := cases[i]
		c.Tries, c.Command = tries, flags.projectCommand(a, c.ID)
		if err := playLive(a, ctx, c, o, runs); err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
		if err := c.write(ctx, a.Live, filepath.Join(out, c.ID), tries); err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
		table.mu.Lock()
		defer table.mu.Unlock()
		done++
		a.Advance("%d of %d in %v; %s: %s", done, len(cases), time.Since(begun).Round(time.Second), c.ID, c.entry().summary())
		if err := table.put(c.entry()); err != nil {
			return err
		}
		return table.write(args())
	})
	kept := "; the defects that are done are kept"
	if !anew {
		kept += ", and the same command goes on"
	}
	if err := tableError(ctx, err, kept); err != nil {
		return 0, err
	}
	return frame.ExitOK, table.write(args())
}

// upstreamProjects writes the project of the test of each defect, and plays nothing.
func upstreamProjects(a *frame.App, in frame.Invocation, flags upstreamFlags, release string, locks []*subject.Subject) (int, error) {
	for _, option := range []string{"runs", "jobs", "again"} {
		if in.Given.Changed(option) {
			return 0, frame.Usagef("upstream: --out plays nothing, and takes no --%s", option)
		}
	}
	if flags.tries == 0 {
		return 0, frame.Usagef("upstream: --out writes a test, which needs --tries of 1 or more")
	}
	if a.Live == nil {
		return 0, frame.Usagef("upstream: this program does not play live, and has no library to write a test for")
	}
	if err := frame.OutputFolder("--out", flags.out); err != nil {
		return 0, err
	}
	cases, err := upstreamCases(a, in.Names, release, locks, flags.results)
	if err != nil {
		return 0, err
	}
	var without []string
	for _, c := range cases {
		c.Tries = flags.tries
		files, err := c.files()
		switch {
		case upstream.Inexpressible(err):
			without = append(without, fmt.Sprintf("%s: %v", c.ID, err))
			continue
		case err != nil:
			return 0, fmt.Errorf("%s: %w", c.ID, err)
		}
		if err := writeFiles(filepath.Join(flags.out, c.ID), files); err != nil {
			return 0, err
		}
		fmt.Fprintf(a.Out, "%s\n", filepath.Join(flags.out, c.ID))
	}
	if len(without) == len(cases) {
		return 0, frame.Usagef("upstream: there is no test to write: %s", strings.Join(without, "; "))
	}
	for _, why := range without {
		a.Complain("without a test: %s", why)
	}
	return frame.ExitOK, nil
}

// projectCommand returns the command that writes the project of the test of a defect.
func (f upstreamFlags) projectCommand(a *frame.App, id string) string {
	command := a.Called() + " upstream " + id
	switch {
	case f.peers:
		command += " --peers"
	case f.release != library:
		command += " --release " + f.release
	}
	return command + " --out DIR"
}

// files returns the project of the test of a defect, with its scenario. The error is upstream.ErrInexpressible if there is
// no such test.
func (c *upstreamCase) files() (map[string][]byte, error) {
	if c.Case == nil && c.lock == nil {
		return nil, fmt.Errorf("%w: %s", upstream.ErrInexpressible, c.reason)
	}
	if c.Case == nil && c.lock.Port == nil && c.Library == nil {
		return nil, fmt.Errorf("%w: %s", upstream.ErrInexpressible, noLibrary)
	}
	files, err := c.Project()
	if err == nil && c.Case == nil {
		files[storyFile] = []byte(c.Simulated.Scenario.Text)
	}
	return files, err
}

// noLibrary is the reason why a defect has no report and no test.
const noLibrary = "no library has this lock; it is a way to use the server"

// upstreamName is the name of the table of the library and of the folder of its reports, and peersUpstream is that
// of the locks of the program in peers/.
const upstreamName, peersUpstream = "upstream", "upstream-peers"

// reportFile and storyFile are the files of a defect in the folder of the reports.
const reportFile, storyFile = "report.md", "scenario.yaml"

// ownLive returns the locks of this program beside the built-in ones that live plays.
func ownLive(a *frame.App) (locks []*subject.Subject) {
	for _, name := range a.Own {
		if l, err := subject.Find(name); err == nil && !l.OnlySimulated {
			locks = append(locks, l)
		}
	}
	return locks
}

// upstreamLocks returns the locks whose defects upstream looks for: those of a release of Redisson, or
// without a release those of the program in peers/.
func upstreamLocks(a *frame.App, release string) ([]*subject.Subject, error) {
	if release != "" {
		return libraryOf(release)
	}
	locks := ownLive(a)
	if len(locks) == 0 {
		return nil, frame.Usagef("upstream: --peers is for the program in peers/; in a clone of this project: (cd peers && go run ./%s upstream --peers)", frame.FolderOf(a.Name))
	}
	return locks, nil
}

// An upstreamCase is a defect under way.
type upstreamCase struct {
	upstream.Report
	lock   *subject.Subject // of the library itself; nil: the defect is a Case
	defect *known.Defect    // nil: the defect is a Case
	source string           // of the scenario
	reason string           // why there is no folder, or no live run; "": there are both
}

// libraryLock and libraryFairLock are the families of the locks of the library itself.
const libraryLock, libraryFairLock = "redisson-java", "redisson-java-fair"

// libraryOf returns the locks of a release of the library itself.
func libraryOf(release string) (locks []*subject.Subject, err error) {
	for _, name := range []string{libraryLock, libraryFairLock} {
		l, err := subject.Find(name + "@" + release)
		if err != nil {
			return nil, frame.Usage(fmt.Errorf("upstream: %w", err))
		}
		locks = append(locks, l)
	}
	return locks, nil
}

// upstreamCases returns the defects with these IDs, or all defects of the release if there are no
// IDs. It simulates the scenarios that show them.
func upstreamCases(a *frame.App, ids []string, release string, locks []*subject.Subject, results string) (out []*upstreamCase, err error) {
	wanted := func(id string) bool { return len(ids) == 0 || slices.Contains(ids, id) }
	for i := range upstream.Cases {
		if x := &upstream.Cases[i]; wanted(x.ID) && release == upstream.CasesRelease {
			out = append(out, &upstreamCase{
				Report: upstream.Report{Defect: upstream.Defect{ID: x.ID, Title: x.Title, Story: x.Story, Release: release, Case: x}}, reason: x.Why,
			})
		}
	}
	for i := range known.All {
		d := &known.All[i]
		if !wanted(d.ID) {
			continue
		}
		on := slices.DeleteFunc(slices.Clone(locks), func(l *subject.Subject) bool { return !d.Applies(simulated(l)) })
		if len(on) == 0 {
			if len(ids) > 0 {
				where := "the program in peers/"
				if release != "" {
					where = "release " + release
				}
				return nil, frame.Usagef("upstream: no lock of %s that live plays has the defect %s", where, d.ID)
			}
			continue
		}
		a.Status("simulated: %s", d.ID)
		c := &upstreamCase{Report: upstream.Report{Defect: upstream.Defect{ID: d.ID, Title: d.Title, Story: d.Story, Issues: d.Issues, Release: release, Library: upstream.LibraryOf(d.ID)}}, defect: d}
		if err := show(a, c, d, on, results); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	a.Status("")
	for _, id := range ids {
		if !slices.ContainsFunc(out, func(c *upstreamCase) bool { return c.ID == id }) {
			return nil, frame.Usagef("upstream: there is no known defect %s; %sresults/upstream.md lists them", id, nearest.Hint(nearest.Near(id, defectIDs())))
		}
	}
	return out, nil
}

// defectIDs returns the IDs of all defects that upstream looks for in some release.
func defectIDs() (ids []string) {
	for i := range upstream.Cases {
		ids = append(ids, upstream.Cases[i].ID)
	}
	for i := range known.All {
		ids = append(ids, known.All[i].ID)
	}
	return ids
}

// seedsMost is how many seeds of a scenario are simulated in the search for a defect.
const seedsMost = 5

// show finds the scenario that shows a defect on a port, and that is possible live: its story, the
// row of the track record, or a scenario that a campaign kept.
func show(a *frame.App, c *upstreamCase, d *known.Defect, on []*subject.Subject, results string) error {
	type candidate struct {
		sc     *scenarios.Scenario
		source string
		kept   bool // by campaigns, perhaps with another lock
	}
	var all []candidate
	sc, err := upstream.Story(d.ID)
	if err != nil {
		return err
	}
	if sc != nil {
		all = append(all, candidate{sc, "story", false})
	}
	if d.Row != "" {
		sc, err := scenarios.Find(d.Row)
		if err != nil {
			return err
		}
		all = append(all, candidate{sc, d.Row, false})
	}
	for _, l := range on {
		sc, file, err := keptScenario(results, d.ID, l)
		if err != nil {
			return err
		}
		if sc != nil && !slices.ContainsFunc(all, func(x candidate) bool { return x.source == file }) {
			all = append(all, candidate{sc, file, true})
		}
	}
	c.reason = "no scenario of it is at hand"
	for _, x := range all {
		for _, l := range on {
			if !x.kept && !slices.Contains(x.sc.Locks, simulated(l).Name) {
				continue
			}
			if err := a.Live.Check(x.sc, l, play.LiveOptions{}); err != nil {
				c.reason = err.Error()
				continue
			}
			for n := range uint64(seedsMost) {
				v := play.Run(a.Host, x.sc, simulated(l), x.sc.SeedFirst+n)
				if f, ok := findingOf(a, v, d); ok {
					c.Simulated, c.Finding, c.lock, c.source, c.reason, c.Fair = v, f, l, x.source, "", l.Fair
					return nil
				}
			}
			c.reason = "a simulated run does not show it in " + x.source
		}
	}
	return nil
}

// keptScenario returns the scenario of the recording that campaigns kept of a defect, perhaps with another lock, and its file; nil:
// they kept none.
func keptScenario(results, id string, l *subject.Subject) (*scenarios.Scenario, string, error) {
	shelf := ownShelf
	if l.Port == nil {
		shelf = peersShelf
	}
	file := filepath.Join(results, shelf, id+".lockstep")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	_, sc, _, err := play.ReadRecording(file, text)
	return sc, file, err
}

// findingOf returns the finding of a run that is the defect. If there are several, it prefers one of
// a judge that the scenario expects.
func findingOf(a *frame.App, v play.Verdict, d *known.Defect) (found judges.Finding, ok bool) {
	named := known.NewNamer(a.Host, v, known.All)
	for _, f := range v.Findings {
		if f.Verdict != judges.Broken || f.Class != judges.ClassBug || named.Name(f).ID != d.ID {
			continue
		}
		if slices.Contains(v.Scenario.Expect[v.Lock.Name].Judges, f.Judge) {
			return f, true
		}
		if !ok {
			found, ok = f, true
		}
	}
	return found, ok
}

// entry returns the row of the table for a case.
func (c *upstreamCase) entry() upstreamEntry {
	e := upstreamEntry{Versions: upstreamVersions(), ID: c.ID, Title: c.Title, Issues: c.Issues, Release: c.Release, Scenario: c.source, Judge: c.Finding.Judge, Runs: c.Runs, Reproduced: c.Reproduced, Programs: c.Programs, Test: c.Test, Reason: c.reason}
	if c.lock != nil {
		e.Lock = c.lock.Name
	}
	e.Folder = c.Case != nil || c.seen() && (c.lock.Port != nil || c.Library != nil)
	if c.Runs == 0 {
		e.Programs = nil
	}
	return e
}
