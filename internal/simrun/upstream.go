package simrun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/internal/nearest"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/live/upstream"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// upstreamFlags are the options of simrun upstream.
type upstreamFlags struct {
	release, out, results string
	runs, tries, jobs     int
	again, peers          bool
}

func (a *app) upstreamCommand() *cobra.Command {
	var o upstreamFlags
	c := a.command(guide{
		use: "upstream [DEFECT ...]", short: "say which known defects the libraries themselves have",
		long: "Upstream looks for the known defects of a release of Redisson on the Java library itself. It writes results/upstream.md, which lists them, and a report for each, with the outcome of a JUnit test. " +
			"It needs the Java library and Maven. With --peers it looks for the known defects of the locks of the program in peers/ on real servers, and writes a report for each defect of a library, with the outcome of a Go test. " +
			"The same command goes on where it ended. With --out it plays nothing, and writes the whole project of each test.",
		examples: []string{"upstream", "upstream R-4818 --out reports-of-mine"},
	}, func(in invocation) (int, error) { return a.upstream(in, o) })
	f := c.Flags()
	f.StringVar(&o.release, "release", library, "the `RELEASE` of Redisson")
	whole(f, &o.runs, "runs", 3, bounds{1, runsMost}, "live runs of each defect")
	whole(f, &o.tries, "tries", 3, bounds{0, 100}, "runs of the test of each defect; 0: write no test")
	liveJobsFlag(f, &o.jobs, "defects at a time")
	f.StringVar(&o.out, "out", "", "play nothing, and write the project of the test of each defect to a folder of `DIR`")
	f.StringVar(&o.results, "results", "results", "the `DIR` of the results: campaigns kept recordings of the defects there, and the table and the reports are written there")
	f.BoolVar(&o.again, "again", false, "play all anew")
	f.BoolVar(&o.peers, "peers", false, "the defects of the locks of the program in peers/; their table is upstream-peers.md")
	a.progressFlag(f)
	c.ValidArgsFunction = only(defectIDs)
	return c
}

// upstream looks for the known defects of a release on the library itself, and writes for each that it
// finds a report for the issue tracker.
func (a *app) upstream(in invocation, flags upstreamFlags) (int, error) {
	ids := in.names
	if flags.peers && in.given.Changed("release") {
		return 0, usagef("upstream: --release is of Redisson; --peers has the locks of peers/ as go.mod there has them")
	}
	name, locksOf, release := upstreamName, libraryOf, flags.release
	if flags.peers {
		name, locksOf, release = peersUpstream, peersLive, ""
	}
	locks, err := locksOf(release)
	if err != nil {
		return 0, err
	}
	if flags.out != "" {
		return a.upstreamProjects(in, flags, release, locks)
	}
	results, runs, tries, jobs := flags.results, flags.runs, flags.tries, flags.jobs
	out := filepath.Join(results, name)
	o, err := liveOptions("", "")
	if err != nil {
		return 0, err
	}
	if err := liveReady(locks, o); err != nil {
		return 0, err
	}
	free, err := a.folder(out)
	if err != nil {
		return 0, usageError{fmt.Errorf("upstream: %w", err)}
	}
	defer free()
	table := upstreamTable{by: upstreamVersions(), file: out + ".jsonl", text: out + ".md", folder: name, release: release}
	if err := table.read(); err != nil {
		return 0, usageError{fmt.Errorf("upstream: %w", err)}
	}
	args := func() []string { return table.args(in) }
	cases, err := a.upstreamCases(ids, release, locks, results)
	if err != nil {
		return 0, err
	}
	anew := len(ids) > 0 || flags.again
	if !anew { // go on where the last command ended; a defect that an older program looked for is played anew
		cases = slices.DeleteFunc(cases, func(c *upstreamCase) bool { return table.has(c.ID) })
	}
	ctx, stop := a.interruptible()
	defer stop()
	runtime.GOMAXPROCS(runtime.NumCPU()) // nothing is simulated from here on
	begun, done := time.Now(), 0
	err = sideBySide(ctx, len(cases), jobs, "defect", func(i int) error {
		c := cases[i]
		c.Tries, c.Command = tries, flags.projectCommand(c.ID)
		if err := a.playLive(ctx, c, o, runs); err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
		if err := c.write(ctx, filepath.Join(out, c.ID), tries); err != nil {
			return fmt.Errorf("%s: %w", c.ID, err)
		}
		table.mu.Lock()
		defer table.mu.Unlock()
		done++
		a.advance("%d of %d in %v; %s: %s", done, len(cases), time.Since(begun).Round(time.Second), c.ID, c.entry().summary())
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
	return exitOK, table.write(args())
}

// upstreamProjects writes the project of the test of each defect, and plays nothing.
func (a *app) upstreamProjects(in invocation, flags upstreamFlags, release string, locks []*subject.Subject) (int, error) {
	for _, option := range []string{"runs", "jobs", "again"} {
		if in.given.Changed(option) {
			return 0, usagef("upstream: --out plays nothing, and takes no --%s", option)
		}
	}
	if flags.tries == 0 {
		return 0, usagef("upstream: --out writes a test, which needs --tries of 1 or more")
	}
	if Live == nil {
		return 0, usagef("upstream: this program does not play live, and has no library to write a test for")
	}
	if err := outputFolder("--out", flags.out); err != nil {
		return 0, err
	}
	cases, err := a.upstreamCases(in.names, release, locks, flags.results)
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
		fmt.Fprintf(a.out, "%s\n", filepath.Join(flags.out, c.ID))
	}
	if len(without) == len(cases) {
		return 0, usagef("upstream: there is no test to write: %s", strings.Join(without, "; "))
	}
	for _, why := range without {
		fmt.Fprintf(a.err, "simrun: without a test: %s\n", why)
	}
	return exitOK, nil
}

// projectCommand returns the command that writes the project of the test of a defect.
func (f upstreamFlags) projectCommand(id string) string {
	command := program() + " upstream " + id
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

// peersLive returns the locks of the program in peers/ that live plays.
func peersLive(string) (locks []*subject.Subject, err error) {
	for _, x := range PeersLocks {
		if !x.Live {
			continue
		}
		l, err := subject.Find(x.Name)
		if err != nil {
			return nil, usageError{fmt.Errorf("upstream: %w", err)}
		}
		locks = append(locks, l)
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
			return nil, usageError{fmt.Errorf("upstream: %w", err)}
		}
		locks = append(locks, l)
	}
	return locks, nil
}

// upstreamCases returns the defects with these IDs, or all defects of the release if there are no
// IDs. It simulates the scenarios that show them.
func (a *app) upstreamCases(ids []string, release string, locks []*subject.Subject, results string) (out []*upstreamCase, err error) {
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
				return nil, usagef("upstream: no lock of %s that live plays has the defect %s", where, d.ID)
			}
			continue
		}
		a.status("simulated: %s", d.ID)
		c := &upstreamCase{Report: upstream.Report{Defect: upstream.Defect{ID: d.ID, Title: d.Title, Story: d.Story, Issues: d.Issues, Release: release, Library: upstream.LibraryOf(d.ID)}}, defect: d}
		if err := a.show(c, d, on, results); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	a.status("")
	for _, id := range ids {
		if !slices.ContainsFunc(out, func(c *upstreamCase) bool { return c.ID == id }) {
			return nil, usagef("upstream: there is no known defect %s; %sresults/upstream.md lists them", id, nearest.Hint(nearest.Near(id, defectIDs())))
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
func (a *app) show(c *upstreamCase, d *known.Defect, on []*subject.Subject, results string) error {
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
			if err := Live.Check(x.sc, l, LiveOptions{}); err != nil {
				c.reason = err.Error()
				continue
			}
			for n := range uint64(seedsMost) {
				v := play.Run(a.host, x.sc, simulated(l), x.sc.SeedFirst+n)
				if f, ok := a.findingOf(v, d); ok {
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
func (a *app) findingOf(v play.Verdict, d *known.Defect) (found judges.Finding, ok bool) {
	named := known.NewNamer(a.host, v, known.All)
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

// playLive plays the scenario on the library itself.
func (a *app) playLive(ctx context.Context, c *upstreamCase, o LiveOptions, runs int) error {
	if c.lock == nil {
		if text, err := exec.CommandContext(ctx, "redis-server", "--version").Output(); err == nil {
			c.Programs = []string{string(bytes.TrimSpace(text))}
		}
		return nil
	}
	for n := 1; n <= runs; n++ {
		r, err := Live.Run(ctx, c.Simulated.Scenario, c.lock, uint64(n), o)
		if err != nil {
			return err
		}
		c.Runs, c.Programs = n, r.Programs
		shown := false
		if c.lock.Port != nil {
			shown = upstream.Shows(r.Verdict, c.Finding)
		} else {
			// The code is the same in both worlds, so the cause of the defect must be in the live run itself.
			var f judges.Finding
			if f, shown = a.findingOf(r.Verdict, c.defect); shown && c.Live == nil {
				c.Shown = &f
			}
		}
		if shown {
			c.Reproduced++
			if c.Live == nil {
				c.Live = &r
			}
		}
	}
	return nil
}

// write runs the test of a defect, and writes the folder of its report. Each defect that was seen on the library has
// a folder.
func (c *upstreamCase) write(ctx context.Context, dir string, tries int) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	tested := c.Library != nil && c.Library.Source != nil && c.Runs > 0 && tries > 0 // the test may show the defect although no run did
	if c.Case == nil && c.Reproduced == 0 && !tested {
		c.reason = cmp.Or(c.reason, unseen)
		return nil
	}
	if c.lock != nil && c.lock.Port == nil && c.Library == nil {
		c.reason = noLibrary
		return nil
	}
	project, err := c.files()
	switch {
	case upstream.Inexpressible(err):
		c.reason = err.Error()
	case err != nil:
		return err
	case tries > 0 && project["pom.xml"] != nil:
		c.Test, err = runMaven(ctx, project)
	case tries > 0 && project["go.mod"] != nil:
		c.Test, err = runGo(ctx, project)
	}
	if err != nil && !upstream.Inexpressible(err) {
		return err
	}
	if c.Case == nil && !c.seen() {
		c.reason = cmp.Or(c.reason, unseen)
		return nil
	}
	files := map[string][]byte{reportFile: c.Text()}
	if c.Case == nil {
		files[storyFile] = []byte(c.Simulated.Scenario.Text)
	}
	return writeFiles(dir, files)
}

// unseen is the reason why a defect has no report.
const unseen = "the library was not seen to do it"

// seen reports whether a run or a try showed the defect.
func (c *upstreamCase) seen() bool { return c.Reproduced > 0 || c.Test != nil && c.Test.Failed > 0 }

func writeFiles(dir string, files map[string][]byte) error {
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := renameio.WriteFile(file, text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// runMaven plays the test of a project, in a folder that is removed. However this program ends, no
// process remains: Maven, which plays the test in its own JVM, ends with this program, and
// redis-server ends with the JVM.
func runMaven(ctx context.Context, project map[string][]byte) (*upstream.TestRun, error) {
	dir, path, free, err := guardedProject(project, "redis-server")
	if err != nil {
		return nil, err
	}
	defer free()
	var out bytes.Buffer
	for _, mode := range []string{"-o", "-U"} { // use what Maven has before fetching anything
		cmd := exec.CommandContext(ctx, "mvn", mode, "-q", "-B", "-DforkCount=0", "test")
		cmd.Env = append(os.Environ(), path)
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, time.Minute
		out.Reset()
		err := Live.Spawn(cmd)
		if err == nil {
			err = cmd.Wait()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r, e := readSurefire(os.DirFS(dir))
		if e != nil {
			return nil, e
		}
		if r.Tries > 0 { // the error of Maven means that a test failed
			return r, nil
		}
		if err == nil {
			return nil, errors.New("maven ran no test")
		}
	}
	return nil, fmt.Errorf("maven: %s", out.String())
}

// guardedProject writes the project of a test to a place where it may be played, and returns the folder and the
// PATH of its processes. A server that is found on this PATH ends with this program; a server that the
// machine lacks is left out. free removes the folder and the PATH.
func guardedProject(project map[string][]byte, servers ...string) (dir, path string, free func(), err error) {
	folder, free, err := Live.Folder()
	if err != nil {
		return "", "", nil, err
	}
	defer func() {
		if err != nil {
			free()
		}
	}()
	dir, programs := filepath.Join(folder, "test"), filepath.Join(folder, "programs")
	if err = writeFiles(dir, project); err != nil {
		return "", "", nil, err
	}
	if err = os.Mkdir(programs, 0o777); err != nil {
		return "", "", nil, err
	}
	for _, server := range servers {
		if err = guarded(programs, server); err != nil && !errors.Is(err, exec.ErrNotFound) {
			return "", "", nil, err
		}
	}
	return dir, "PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"), free, nil
}

// runGo plays the test of a Go module in a folder that is removed.
func runGo(ctx context.Context, module map[string][]byte) (*upstream.TestRun, error) {
	dir, path, free, err := guardedProject(module, "redis-server", "mariadbd", "java")
	if err != nil {
		return nil, err
	}
	defer free()
	var out bytes.Buffer
	for _, args := range [][]string{{"mod", "tidy"}, {"test", "-count=1", "-json", "."}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", path)
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, time.Minute
		out.Reset()
		err := Live.Spawn(cmd)
		if err == nil {
			err = cmd.Wait()
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && args[0] == "mod":
			return nil, fmt.Errorf("go mod tidy: %w: %s", err, out.String())
		}
	}
	return readGoTest(out.Bytes())
}

// readGoTest reads the tries of a test, which are its subtests, from the output of go test -json. A try that shows
// the defect has the attribute upstream.ShownAttribute. A try that fails without it says nothing of the defect.
func readGoTest(out []byte) (*upstream.TestRun, error) {
	r := &upstream.TestRun{}
	shown := map[string]string{}
	for line := range bytes.Lines(out) {
		var e struct{ Action, Test, Key, Value string }
		if json.Unmarshal(line, &e) != nil || !strings.Contains(e.Test, "/") {
			continue
		}
		switch e.Action {
		case "attr":
			if e.Key == upstream.ShownAttribute {
				shown[e.Test] = cmp.Or(shown[e.Test], e.Value)
			}
		case "pass":
			r.Tries++
		case "fail":
			r.Tries++
			if shown[e.Test] == "" {
				r.Errors++
				continue
			}
			r.Failed++
			r.Message = cmp.Or(r.Message, shown[e.Test])
		}
	}
	if r.Tries == 0 {
		return nil, fmt.Errorf("go test played nothing: %s", out)
	}
	return r, nil
}

// readSurefire reads the files that Maven wrote about the tests.
func readSurefire(dir fs.FS) (*upstream.TestRun, error) {
	files, err := fs.Glob(dir, "target/surefire-reports/TEST-*.xml")
	if err != nil {
		return nil, err
	}
	r := &upstream.TestRun{}
	for _, name := range files {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		var suite struct {
			Cases []struct {
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
				Error *struct {
					Message string `xml:"message,attr"`
				} `xml:"error"`
			} `xml:"testcase"`
		}
		if err := xml.Unmarshal(text, &suite); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range suite.Cases {
			r.Tries++
			switch {
			case c.Failure != nil:
				r.Failed++
				r.Message = cmp.Or(r.Message, c.Failure.Message)
			case c.Error != nil:
				r.Errors++
			}
		}
	}
	return r, nil
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
