package simrun

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// runFlags are the options of simrun run.
type runFlags struct {
	locks                   []string
	tag, seeds, out, format string
	asJSON, details         bool
}

func (a *app) runCommand() *cobra.Command {
	var o runFlags
	c := a.command(guide{
		use: "run [SCENARIO or FILE ...]", short: "run scenarios on locks, and say what was expected and what happened",
		long: "Run plays scenarios, each with all its seeds on each lock that it names. Of one scenario it prints a line for each lock: the verdict, and whether it was expected. " +
			"Where something broke it says why, and how to replay it. Of several scenarios it prints a line for each, and then each scenario and lock that was not as expected. " +
			"Without a name it plays all built-in scenarios.\n" +
			"With --out it also writes verdicts.md, verdicts.jsonl and a recording of each run that did not simply hold.",
		examples: []string{"run misdelete --lock setnx-del --seed 1", "run misdelete --lock redisson@4.7.0,setnx-del --seed 1..3 --json", "run misdelete --out results-of-mine"},
	}, func(in invocation) (int, error) { return a.run(in, o) })
	f := c.Flags()
	lockFlag(f, &o.locks, "play on `LOCK` in place of the locks of the scenario; may be repeated")
	tagFlag(f, &o.tag)
	seedFlag(f, &o.seeds, "", "the seeds, `N or A..B`; default: the scenario's own")
	f.StringVar(&o.out, "out", "", "write verdicts.md, verdicts.jsonl and recordings to `DIR`")
	oneOf(f, &o.format, "format", "", formats, "junit or github, in place of the table")
	jsonFlag(f, &o.asJSON, "one object per run, one per line")
	f.BoolVar(&o.details, "details", false, "list each scenario and lock with its findings, also for several scenarios")
	a.quietFlag(f, "only the summary and the results that were not as expected")
	c.ValidArgsFunction = scenariosOrFiles
	return c
}

func (a *app) run(in invocation, o runFlags) (int, error) {
	if err := checkFormat(o.format, o.asJSON); err != nil {
		return 0, err
	}
	table := !o.asJSON && o.format == ""
	var cases []report.Case
	pairs, err := choose(in.names, o.tag, o.locks, o.seeds)
	if err != nil {
		return 0, err
	}
	progress := a.newProgress(pairs)
	if o.format != "" && progress.total > casesMost {
		return 0, usagef("--format %s: all runs are kept until the last one; at most %d, and these are %d", o.format, casesMost, progress.total)
	}
	var results *results
	ctx, unregister := a.interrupts(func() { results.discard() })
	defer unregister()
	if o.out != "" {
		if results, err = openResults(o.out, in.args); err != nil {
			return 0, err
		}
		defer results.discard()
	}
	finished := pairs[:0:0]
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	var lines []byte // of the pairs that are listed one by one
	details := !a.quiet && (o.details || len(byScenario(pairs)) == 1)
	if table {
		progress.pace = paceElsewhere
	}
	if table && details {
		lines = a.captured(a.header)
	}
	for _, p := range pairs {
		err := a.play(ctx, p, progress, func(v play.Verdict) error {
			if results != nil {
				if err := results.verdict(p, v); err != nil {
					return err
				}
			}
			if o.asJSON {
				return enc.Encode(asObject(v, results.recordingOf(p, v)))
			}
			if o.format != "" {
				cases = append(cases, caseOf(v))
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		if len(p.kinds) == 0 { // interrupted
			break
		}
		if results != nil {
			results.add(p)
		}
		if table && (details || !p.asExpected()) {
			lines = append(lines, a.captured(func() { a.line(p) })...)
		}
		if o.asJSON {
			a.printed(exitCode([]*pair{p}))
		}
		p.forget()
		finished = append(finished, p)
	}
	part := ""
	code := exitCode(finished)
	if ctx.Err() != nil {
		part = fmt.Sprintf("interrupted after %d of %s", runsOf(finished), counted.Of(progress.total, "run"))
		if code == exitOK {
			code = exitUndecided
		}
	}
	if results != nil {
		if err := results.commit(part); err != nil {
			return 0, err
		}
	}
	if part != "" {
		kept := "nothing of it is kept without --out DIR"
		if o.out != "" {
			kept = "their verdicts are kept in " + o.out
		}
		a.say("simrun: %s; %s", part, kept)
	}
	if table && !a.quiet && !details {
		lines = append(a.captured(func() { a.scenarioLines(finished, len(lines) > 0) }), lines...)
	}
	if table {
		a.summary(finished, lines)
		if !a.quiet {
			a.next(finished, details, func(p *pair) string {
				if results == nil || results.kept[p] == "" {
					return ""
				}
				return filepath.Join(o.out, results.kept[p])
			})
		}
	} else if !o.asJSON {
		return code, a.writeCases(o.format, cases)
	}
	return code, nil
}

// choose returns the pairs to run. It finds unknown names before anything is run.
func choose(names []string, tag string, locks []string, seeds string) ([]*pair, error) {
	var chosen []*scenarios.Scenario
	var problems []error
	switch {
	case tag != "":
		tagged, err := scenarios.Tagged(tag)
		if err != nil {
			problems = append(problems, fmt.Errorf("--tag: %w", err))
		}
		chosen = tagged
	case len(names) == 0:
		all, err := scenarios.Builtin()
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, usagef("no built-in scenario names a lock of this program; name a scenario, or the file of one")
		}
		chosen = all
	}
	for _, name := range names {
		sc, err := findScenario(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		chosen = append(chosen, sc)
	}
	on, err := findLocks(locks)
	if err != nil {
		problems = append(problems, err)
	}
	var from, to uint64
	if seeds != "" {
		var err error
		if from, to, err = seedRange("--seed", seeds); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, usageError{errors.Join(problems...)}
	}
	var pairs []*pair
	for _, sc := range chosen {
		these := on
		if len(these) == 0 {
			if len(sc.Locks) == 0 {
				problems = append(problems, fmt.Errorf("this program has none of the locks that the built-in scenario %s names; name one of its own with --lock, or import locktest/redistest, which has them", sc.Name))
			}
			for _, name := range sc.Locks {
				l, err := subject.Find(name)
				if err != nil {
					return nil, err
				}
				if err := play.Applies(sc, l); err != nil {
					problems = append(problems, err)
				}
				these = append(these, l)
			}
		}
		for _, l := range these {
			if tag != "" && len(on) > 0 {
				if first, err := subject.Find(sc.Locks[0]); err != nil || first.Fair != l.Fair {
					continue // a fair lock plays only the scenarios about fair locks, and vice versa
				}
			}
			p := &pair{sc: sc, lock: l, from: sc.SeedFirst, to: sc.SeedLast}
			if seeds != "" {
				p.from, p.to = from, to
			}
			if p.some() && p.to-p.from >= scenarios.SeedsOfSome {
				problems = append(problems, fmt.Errorf("--seed %s: %s expects its outcome on %s of one seed, and the verdicts of all seeds wait for it in memory: at most %d seeds", seeds, sc.Name, l.Name, scenarios.SeedsOfSome))
			}
			pairs = append(pairs, p)
		}
	}
	if len(problems) > 0 {
		return nil, usageError{errors.Join(problems...)}
	}
	return pairs, nil
}

// findScenario finds a scenario by its name or file, or returns an error that says which other kind
// of file it is.
func findScenario(name string) (*scenarios.Scenario, error) {
	sc, err := scenarios.Find(name)
	var unread *scenarios.FileError
	if !errors.As(err, &unread) {
		return sc, err
	}
	if text, problem := os.ReadFile(name); problem == nil && !scenarioHead.Match(text) {
		err = kindOf(name, text, err)
	}
	return nil, err
}

// kindOf returns an error that names the command for a file that was given to another command, or err if no
// command reads such a file.
func kindOf(file string, text []byte, err error) error {
	switch {
	case play.IsRecording(text):
		return fmt.Errorf("%s is a recording; %s replay %s plays it", file, program(), quoted(file))
	case play.IsLive(text):
		return fmt.Errorf("%s is a live run; %s report %s draws it", file, program(), quoted(file))
	case scenarioHead.Match(text):
		return fmt.Errorf("%s is a scenario; %s run %s plays it", file, program(), quoted(file))
	}
	return err
}

// scenarioHead matches the line with which a scenario file begins, after comments.
var scenarioHead = regexp.MustCompile(`\A(?:[ \t]*(?:#.*)?\n)*lockstep:`)

// findLocks returns the locks of these names, each once.
func findLocks(names []string) (found []*subject.Subject, err error) {
	for _, name := range names {
		l, problem := subject.Find(name)
		if problem != nil {
			err = errors.Join(err, problem)
		} else if !slices.Contains(found, l) {
			found = append(found, l)
		}
	}
	return found, err
}

// findSimulated finds a lock that runs in a simulated world.
func findSimulated(name string) (*subject.Subject, error) {
	l, err := subject.Find(name)
	if err == nil && l.Port != nil {
		err = fmt.Errorf("%s runs on real servers only (%s live); %s stands for it in a simulated world", l.Name, program(), l.Port.Name)
	}
	return l, err
}

// seedRange reads the value of an option that takes one seed or several.
func seedRange(option, s string) (from, to uint64, err error) {
	first, last, isRange := strings.Cut(s, "..")
	from, err1 := strconv.ParseUint(first, 10, 64)
	to, err2 := from, error(nil)
	if isRange {
		to, err2 = strconv.ParseUint(last, 10, 64)
	}
	if err1 != nil || err2 != nil || to < from {
		return 0, 0, fmt.Errorf("%s %q: write one number, or two as in 1..100, the smaller first", option, s)
	}
	return from, to, nil
}

func (a *app) header() {
	fmt.Fprintf(a.out, "%-28s %-21s %-7s %-10s %s\n", "scenario", "lock", "seeds", "verdict", "expected")
}

// line prints the verdict of a pair, whether it was expected, and how to replay it.
func (a *app) line(p *pair) {
	w := p.worst()
	mark := "yes"
	if !p.asExpected() {
		mark = "NO: " + w.Expected
		if !w.Names() {
			mark += " (lock not named)"
		}
	} else if w.Expected != "held" && w.Expected != "" {
		mark = "yes: " + w.Expected
	}
	fmt.Fprintf(a.out, "%-28s %-21s %-7s %s %s\n", clip(p.sc.Name, 28), clip(p.lock.Name, 21), p.seeds(),
		a.paint(string(w.Word), fmt.Sprintf("%-10s", clip(string(w.Word), 10))), clip(mark, 29))
	a.why(w)
}

// why prints the first finding of each judge and the command that replays the run. If the
// verdict was not expected, it first prints a short story of the run.
func (a *app) why(v play.Verdict) {
	if !v.AsExpected {
		fmt.Fprint(a.out, shortStory(v))
	}
	if why := sentence.Verdict(v); why != "" {
		fmt.Fprint(a.out, wrap(why, "    ", 100))
	}
	if !v.AsExpected && !v.Names() && len(v.Findings) > 0 {
		fmt.Fprint(a.out, wrap(fmt.Sprintf("%s does not name the lock %s. Nothing is expected of such a lock but that it keeps its promises, and it did not:", v.Scenario.Name, v.Lock.Name), "    ", 100))
	}
	a.firstFindings(v)
	if len(v.Findings) > 0 || v.Why != "" && v.Word != play.VerdictNotApplicable {
		fmt.Fprintf(a.out, "    replay: %s\n", replayCommand(v))
	}
}

// firstFindings prints the first finding of each judge.
func (a *app) firstFindings(v play.Verdict) {
	told := map[string]int{}
	for _, f := range v.Findings {
		if told[f.Judge]++; told[f.Judge] > 1 {
			continue
		}
		label := f.Judge
		if f.Class == judges.ClassLimit {
			label += " (limit)"
		}
		fmt.Fprint(a.out, wrap(label+": "+sentence.Finding(f), "    ", 100))
		for _, e := range f.Excuses {
			if f.Class == judges.ClassLimit {
				fmt.Fprint(a.out, wrap("not promised here: "+sentence.Excuse(e), "      ", 100))
				break
			}
		}
	}
}

// replayCommand returns the command that plays a run again.
func replayCommand(v play.Verdict) string {
	return fmt.Sprintf("%s run %s --lock %s --seed %d", program(), v.Scenario.ShortName(), v.Lock.Name, v.Seed)
}

// summary prints how many runs were not as expected, then the lines, and last how to replay a
// run that was not as expected. After the lines of several pairs, which may take more than a
// screen, it prints the numbers once more.
func (a *app) summary(pairs []*pair, lines []byte) {
	odd := a.summaryLine(pairs)
	if len(lines) > 0 {
		fmt.Fprintf(a.out, "\n%s", lines)
	}
	again := len(lines) > 0 && len(pairs) > 1
	if again || odd != nil {
		fmt.Fprintln(a.out)
	}
	if again {
		a.summaryLine(pairs)
	}
	if odd != nil {
		fmt.Fprintf(a.out, "replay: %s\n", replayCommand(odd.worst()))
	}
}

// next prints the commands that say more about the pairs. shown reports whether the findings of each
// pair were printed, and recording returns the file of a recording of a pair, or "".
func (a *app) next(pairs []*pair, shown bool, recording func(*pair) string) {
	var commands []string
	several := len(byScenario(pairs)) > 1
	if several {
		commands = append(commands, program()+" list explains each scenario")
	}
	broke := func(p *pair) bool {
		word := p.worst().Word
		return word != play.VerdictHeld && word != play.VerdictNotApplicable
	}
	odd := slices.IndexFunc(pairs, func(p *pair) bool { return !p.asExpected() })
	i := odd
	if i < 0 {
		i = slices.IndexFunc(pairs, broke)
	}
	switch {
	case i < 0:
	case recording(pairs[i]) != "":
		commands = append(commands, fmt.Sprintf("%s replay %s shows a run", program(), quoted(recording(pairs[i]))))
	case several && !shown && odd < 0: // the summary has a command for an unexpected run
		commands = append(commands, fmt.Sprintf("%s run %s shows its findings on each lock", program(), quoted(pairs[i].sc.ShortName())))
	}
	if len(commands) > 0 {
		fmt.Fprintf(a.out, "next: %s\n", strings.Join(commands, ";\n      "))
	}
}

// byScenario returns the pairs of each scenario. The pairs of a scenario follow one another.
func byScenario(pairs []*pair) (all [][]*pair) {
	for i, p := range pairs {
		if i == 0 || pairs[i-1].sc != p.sc {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return all
}

// reasons returns why a scenario applies to none of its locks, each reason once.
func reasons(pairs []*pair) string {
	var all []string
	for _, p := range pairs {
		if why := p.worst().Lacks; !slices.Contains(all, why) {
			all = append(all, why)
		}
	}
	return strings.Join(all, "; ")
}

// mostFirst returns the keys of a count, the largest first.
func mostFirst(count map[string]int) []string {
	return slices.SortedFunc(maps.Keys(count), func(x, y string) int {
		return cmp.Or(cmp.Compare(count[y], count[x]), cmp.Compare(x, y))
	})
}

// scenarioLines prints a line per scenario: on how many locks it was played, the runs, whether
// all of them were as expected, and on how many locks each verdict came out. Scenarios that
// apply to none of the locks follow by the reason. If pairs follow, their header is the last
// line.
func (a *app) scenarioLines(pairs []*pair, pairsFollow bool) {
	fmt.Fprintf(a.out, "%-36s %5s %7s  %-8s  %s\n", "scenario", "locks", "runs", "expected", "verdicts by locks")
	lacking := map[string]int{} // the scenarios that apply to no lock, by the reason
	for _, locks := range byScenario(pairs) {
		mark := "yes"
		count := map[play.Word]int{}
		for _, p := range locks {
			count[p.worst().Word]++
			if !p.asExpected() {
				mark = "NO"
			}
		}
		if count[play.VerdictNotApplicable] == len(locks) {
			lacking[reasons(locks)]++
			continue
		}
		var verdicts []string
		for _, w := range bestFirst {
			if count[w] > 0 {
				verdicts = append(verdicts, fmt.Sprintf("%d %s", count[w], w))
			}
		}
		fmt.Fprintf(a.out, "%-36s %5d %7d  %-8s  %s\n", clip(locks[0].sc.Name, 36), len(locks), runsOf(locks), mark, strings.Join(verdicts, ", "))
	}
	for i, lacks := range mostFirst(lacking) {
		if i == 0 {
			fmt.Fprintf(a.out, "\nScenarios that are %s on each of these locks:\n", play.VerdictNotApplicable)
		}
		fmt.Fprintf(a.out, "    %s: %s\n", counted.Of(lacking[lacks], "scenario"), lacks)
	}
	if pairsFollow {
		fmt.Fprintln(a.out)
		a.header()
	}
}

// summaryLine prints how many runs of the pairs were not as expected, and returns the last pair
// that has such a run, or nil.
func (a *app) summaryLine(pairs []*pair) (last *pair) {
	var odd uint64
	na := 0
	for _, p := range pairs {
		if n := p.odd(); n > 0 {
			odd += n
			last = p
		}
		if p.worst().Word == play.VerdictNotApplicable {
			na++
		}
	}
	fmt.Fprintf(a.out, "%s of %s of scenario and lock; %d not as expected", counted.Of(runsOf(pairs), "run"), counted.Of(len(pairs)-na, "pair"), odd)
	if na > 0 {
		fmt.Fprintf(a.out, "; %s %s", counted.Of(na, "pair"), play.VerdictNotApplicable)
	}
	fmt.Fprintln(a.out)
	return last
}

// captured returns what print writes to stdout.
func (a *app) captured(print func()) []byte {
	var b bytes.Buffer
	stdout := a.out
	a.out = &b
	print()
	a.out = stdout
	return b.Bytes()
}

// An object is a run as --json prints it. Times are integers, and their names end with the
// unit. Users rely on the names and the meaning of the fields.
type object struct {
	Scenario   string          `json:"scenario"`
	Lock       string          `json:"lock"`
	Seed       uint64          `json:"seed"`
	Verdict    string          `json:"verdict"`
	Expected   string          `json:"expected"`
	AsExpected bool            `json:"as_expected"`
	Findings   []findingObject `json:"findings"`
	Reached    []string        `json:"reached"`
	Waits      waitsObject     `json:"waits"`
	Steps      int             `json:"steps"`
	SimNs      int64           `json:"sim_ns"`
	Digest     string          `json:"digest"`
	Recording  string          `json:"recording"`
}

// waitsObject sums up how long the calls that were granted a lock waited for it.
type waitsObject struct {
	Granted int   `json:"granted"`
	P50Ns   int64 `json:"p50_ns"`
	P90Ns   int64 `json:"p90_ns"`
	P99Ns   int64 `json:"p99_ns"`
	MaxNs   int64 `json:"max_ns"`
}

type findingObject struct {
	Judge   string     `json:"judge"`
	Finding string     `json:"finding"`
	Class   string     `json:"class,omitempty"`
	Why     string     `json:"why"`
	AtNs    int64      `json:"at_ns"`
	Ops     []opObject `json:"ops"`
}

type opObject struct {
	Process  string `json:"process"`
	Thread   int    `json:"thread"`
	Op       string `json:"op"`
	CallNs   int64  `json:"call_ns"`
	ReturnNs *int64 `json:"return_ns"` // null: it has not returned
}

func asObject(v play.Verdict, recording string) object {
	o := object{
		Scenario: v.Scenario.Name, Lock: v.Lock.Name, Seed: v.Seed, Verdict: string(v.Word), Expected: v.Expected,
		AsExpected: v.AsExpected, Findings: findingObjects(v.Findings), Reached: v.Reached, Waits: waitsObject(v.Waits),
		Steps: v.Played.Steps, SimNs: v.Played.SimNs, Digest: v.Digest(), Recording: recording,
	}
	if o.Reached == nil {
		o.Reached = []string{}
	}
	if why := sentence.Verdict(v); why != "" {
		finding := string(judges.Undecided)
		if v.Word == play.VerdictNotApplicable {
			finding = string(v.Word)
		}
		o.Findings = append(o.Findings, findingObject{Judge: string(v.Word), Finding: finding, Why: why, Ops: []opObject{}})
	}
	return o
}

func findingObjects(fs []judges.Finding) []findingObject {
	out := []findingObject{}
	for _, f := range fs {
		fo := findingObject{Judge: f.Judge, Finding: string(f.Verdict), Class: string(f.Class), Why: sentence.Finding(f), AtNs: f.AtNs, Ops: []opObject{}}
		for _, op := range f.Ops {
			oo := opObject{Process: op.Process, Thread: op.Thread, Op: op.Op, CallNs: op.CallNs}
			if op.ReturnNs >= 0 {
				oo.ReturnNs = &op.ReturnNs
			}
			fo.Ops = append(fo.Ops, oo)
		}
		out = append(out, fo)
	}
	return out
}

// A progress shows a line on a terminal if the runs take longer than a second. Elsewhere it
// prints a line at its pace, if it has one.
type progress struct {
	a           *app
	begun, told time.Time
	pace        time.Duration // 0: lines only on a terminal
	done, total uint64
	shown       bool
}

// newProgress returns the progress of runs on pairs. A scenario that does not apply has no run.
func (a *app) newProgress(pairs []*pair) *progress {
	p := &progress{a: a, begun: time.Now(), told: time.Now()}
	for _, x := range pairs {
		if play.Plays(x.sc, x.lock) != nil {
			continue
		}
		if more := x.to - x.from; more < math.MaxUint64-p.total {
			p.total += more + 1
		} else {
			p.total = math.MaxUint64
		}
	}
	return p
}

func (p *progress) show(x *pair, seed uint64) {
	switch {
	case p.a.quiet:
	case p.a.tty && time.Since(p.begun) > time.Second:
		fmt.Fprintf(p.a.err, "\r\x1b[K%d of %d runs: %s on %s, seed %d", p.done, p.total, x.sc.Name, x.lock.Name, seed)
		p.shown = true
	case !p.a.tty && p.pace > 0 && time.Since(p.told) >= p.pace:
		p.a.say("%d of %d runs", p.done, p.total)
		p.told = time.Now()
	}
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.a.err, "\r\x1b[K")
		p.shown = false
	}
}
