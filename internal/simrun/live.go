package simrun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// Live plays scenarios on real servers; nil: this program does not.
var Live LivePlayer

// LivePlayer plays scenarios on real servers. Errors that have a method Unusable are bad input,
// and nothing was played.
type LivePlayer interface {
	// Check reports why a scenario cannot be played on a lock.
	Check(sc *scenarios.Scenario, l *subject.Subject, o LiveOptions) error
	// Ready reports what the machine lacks for runs on these locks.
	Ready(locks []*subject.Subject, o LiveOptions) error
	Run(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, number uint64, o LiveOptions) (play.LiveRun, error)
	// Folder makes a temporary folder that a later program removes if this one is killed.
	Folder() (dir string, free func(), err error)
	// Spawn starts a command whose process ends with this one, however this one ends.
	Spawn(*exec.Cmd) error
	// Client is the program of a process that Run starts.
	Client(in io.Reader, out io.Writer) error
}

// LiveOptions are the settings of a live run.
type LiveOptions struct {
	Program []string // of a client: this program with clientCommand
	Address string   // of a server that already runs; "": none
	Servers string   // the group that the servers form; "": the scenario and the lock decide
	Keep    string   // the folder for the logs of the processes; "": they are removed
	// Tell, if not nil, is called when a run begins another activity.
	Tell func(doing string)
}

// clientCommand is the hidden command that plays one process of a scenario for live.
const clientCommand = "live-client"

func (a *app) client(args []string) (int, error) {
	if Live == nil || len(args) > 0 {
		return 0, usagef("%s is a part of live; call simrun live", clientCommand)
	}
	return exitOK, Live.Client(os.Stdin, os.Stdout)
}

// runsMost bounds --runs of live and agree.
const runsMost = 10_000

// liveFlags are the options of simrun live.
type liveFlags struct {
	locks                            []string
	tag, out, keep, address, servers string
	runs                             int
	asJSON                           bool
}

func (a *app) liveCommand() *cobra.Command {
	var l liveFlags
	c := a.command(guide{
		use: "live SCENARIO, FILE or RECORDING ...", short: "play scenarios on real servers, in real time",
		long: "Live plays scenarios in real time, each process of a scenario as a process of the machine, and gives the record to the judges of the simulated world. " +
			"It starts the servers of the lock: redis-server, and for the locks of the program in peers/ also etcd, NATS, ZooKeeper, Memcached and MariaDB. " +
			"The locks redisson-java@R and redisson-java-fair@R are the Java library itself.",
		examples: []string{"live misdelete --lock setnx-del", "live misdelete --lock redisson-java@4.7.0 --runs 3 --out live-runs"},
	}, func(in invocation) (int, error) { return a.live(in, l) })
	f := c.Flags()
	lockFlag(f, &l.locks, "play on `LOCK` in place of the locks of the scenario; may be repeated")
	tagFlag(f, &l.tag)
	whole(f, &l.runs, "runs", 1, bounds{1, runsMost}, "how often each scenario is played")
	f.StringVar(&l.out, "out", "", "write each run to `DIR`, for report")
	f.StringVar(&l.keep, "keep", "", "leave the logs of the processes in `DIR`; without =DIR, in the folder for temporary files")
	f.Lookup("keep").NoOptDefVal = os.TempDir()
	f.StringVar(&l.servers, "servers", "", "play on `SERVERS` that know of one another: redis-sentinel or redis-cluster")
	f.StringVar(&l.address, "address", "", "use the empty server at `ADDRESS`; no fault strikes it")
	jsonFlag(f, &l.asJSON, "one object per run, one per line")
	a.quietFlag(f, "only the summary and the results that were not as expected")
	c.ValidArgsFunction = scenariosOrFiles
	return c
}

// live plays scenarios on real servers.
func (a *app) live(in invocation, l liveFlags) (int, error) {
	names, tag, locks, runs, out, asJSON := in.names, l.tag, l.locks, l.runs, l.out, l.asJSON
	if len(names) == 0 && tag == "" {
		return 0, usagef("live plays in real time: name the scenarios, or a --tag")
	}
	o, err := liveOptions(l.address, l.keep)
	o.Servers = l.servers
	if err != nil {
		return 0, err
	}
	pairs, err := liveChoice(names, tag, locks)
	if err != nil {
		return 0, realServerError{err}
	}
	if err := livePossible(pairs, o); err != nil {
		return 0, err
	}
	if err := liveReady(locksOf(pairs), o); err != nil {
		return 0, err
	}
	if out != "" {
		if err := outputFolder("--out", out); err != nil {
			return 0, err
		}
	}
	runtime.GOMAXPROCS(runtime.NumCPU()) // nothing is simulated from here on
	ctx, stop := a.interruptible()
	defer stop()
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	var odd []byte // with --quiet: lines of the pairs that were not as expected
	if !asJSON && !a.quiet {
		fmt.Fprintf(a.out, "%-28s %-21s %-7s %-10s %s\n", "scenario", "lock", "runs", "verdict", "expected")
	}
	for _, p := range pairs {
		var all []play.LiveRun
		if err := play.Claims(p.sc, p.lock); err != nil {
			v := play.NotApplicable(p.sc, p.lock, p.from, err)
			p.add(v)
			if !asJSON {
				a.line(p)
			} else if err := enc.Encode(liveObjectOf(play.LiveRun{Verdict: v}, "")); err != nil {
				return 0, err
			}
			continue
		}
		for n := 1; n <= runs; n++ {
			r, err := a.liveRun(ctx, p, n, runs, o)
			if err != nil {
				return 0, liveError(ctx, err)
			}
			p.add(r.Verdict)
			all = append(all, r)
		}
		for i := range all {
			all[i].Verdict = p.settled(all[i].Verdict)
			file := ""
			if out != "" {
				if file, err = writeLive(out, all[i]); err != nil {
					return 0, err
				}
			}
			if asJSON {
				if err := enc.Encode(liveObjectOf(all[i], file)); err != nil {
					return 0, err
				}
			}
		}
		switch {
		case asJSON:
		case !a.quiet:
			a.liveLine(p, all)
		case !p.asExpected():
			odd = append(odd, a.captured(func() { a.liveLine(p, all) })...)
		}
		if asJSON || !a.quiet {
			a.printed(exitCode([]*pair{p}))
		}
		p.forget()
	}
	if a.quiet && !asJSON {
		a.summaryLine(pairs)
		if len(odd) > 0 {
			fmt.Fprintf(a.out, "\n%s", odd)
		}
	}
	return exitCode(pairs), nil
}

// liveRun plays run n of a pair, and reports on stderr the run, the time since its start, and its
// activity.
func (a *app) liveRun(ctx context.Context, p *pair, n, of int, o LiveOptions) (play.LiveRun, error) {
	var doing atomic.Value
	doing.Store("")
	o.Tell = func(what string) { doing.Store(": " + what) }
	line := func(passed time.Duration) string {
		return fmt.Sprintf("%s on %s, run %d of %d, for %v%s", p.sc.Name, p.lock.Name, n, of, passed.Round(time.Second), doing.Load())
	}
	begun := time.Now()
	a.status("%s", line(0))
	telling, stop := context.WithCancel(ctx)
	var told sync.WaitGroup
	told.Go(func() {
		a.paced().each(telling, func(now time.Time) string { return line(now.Sub(begun)) })
	})
	r, err := Live.Run(ctx, p.sc, p.lock, uint64(n), o)
	stop()
	told.Wait()
	a.status("")
	return r, err
}

// liveChoice returns the pairs that live plays. If no lock is named, the scenario of a recording is
// played on the lock of the recording.
func liveChoice(names []string, tag string, locks []string) (pairs []*pair, err error) {
	var others []string
	for _, name := range names {
		if filepath.Ext(name) != ".lockstep" {
			others = append(others, name)
			continue
		}
		rec, sc, lock, err := readRecording("live", []string{name})
		if err != nil {
			return nil, err
		}
		on := []*subject.Subject{lock}
		if len(locks) > 0 {
			if on, err = findLocks(locks); err != nil {
				return nil, usageError{err}
			}
		}
		for _, l := range on {
			pairs = append(pairs, &pair{sc: sc, lock: l, from: rec.Seed, to: rec.Seed})
		}
	}
	if len(others) == 0 && tag == "" {
		return pairs, nil
	}
	chosen, err := choose(others, tag, locks, "")
	return append(pairs, chosen...), err
}

// liveOptions checks the options of a live run.
func liveOptions(address, keep string) (o LiveOptions, err error) {
	if Live == nil {
		return o, usagef("this program does not play live. On Linux, cmd/simrun of Lockstep does, with the built-in locks on Redis and the Java library")
	}
	if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
		return o, usagef("--address %s: want HOST:PORT", address)
	}
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	if keep != "" {
		if err := outputFolder("--keep", keep); err != nil {
			return o, err
		}
	}
	return LiveOptions{Program: []string{self, clientCommand}, Address: address, Keep: keep}, nil
}

// livePossible returns an error that names each pair that cannot be played live.
func livePossible(pairs []*pair, o LiveOptions) error {
	var problems []error
	for _, p := range pairs {
		if err := Live.Check(p.sc, p.lock, o); err != nil {
			if !slices.ContainsFunc(problems, func(p error) bool { return p.Error() == err.Error() }) { // several locks may have the same problem
				problems = append(problems, err)
			}
		}
	}
	if len(problems) > 0 {
		return usageError{errors.Join(problems...)}
	}
	return nil
}

// liveReady returns an error that names what the machine lacks for live runs on locks. It comes
// before a scenario is simulated or played.
func liveReady(locks []*subject.Subject, o LiveOptions) error {
	if err := Live.Ready(locks, o); err != nil {
		return liveError(context.Background(), err)
	}
	return nil
}

// locksOf returns the locks of the pairs that are played.
func locksOf(pairs []*pair) (locks []*subject.Subject) {
	for _, p := range pairs {
		if play.Claims(p.sc, p.lock) == nil && !slices.Contains(locks, p.lock) {
			locks = append(locks, p.lock)
		}
	}
	return locks
}

// unusable is the error of a live run that cannot begin because of its input.
type unusable interface {
	error
	Unusable()
}

// liveError gives the error of a live run the type that determines the exit code.
func liveError(ctx context.Context, err error) error {
	var bad unusable
	switch {
	case errors.As(err, &bad):
		return usageError{err}
	case ctx.Err() != nil:
		return interruptedError("; a run that did not end is not judged")
	case err == nil || failedIO(err):
		return err
	}
	return unplayedError{err}
}

// tally says how often each verdict came, the most frequent first.
func tally(p *pair) string {
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
func (a *app) liveLine(p *pair, all []play.LiveRun) {
	w := p.worst()
	mark := "yes"
	if !p.asExpected() {
		mark = "NO: " + w.Expected
	} else if w.Expected != "held" {
		mark = "yes: " + w.Expected
	}
	fmt.Fprintf(a.out, "%-28s %-21s %-7d %s %s\n", clip(p.sc.Name, 28), clip(p.lock.Name, 21), len(all),
		a.paint(string(w.Word), fmt.Sprintf("%-10s", clip(string(w.Word), 10))), clip(mark, 29))
	if len(all) > 1 {
		fmt.Fprint(a.out, wrap(tally(p), "    ", 100))
	}
	if !w.AsExpected {
		fmt.Fprint(a.out, shortStory(w))
	}
	if why := sentence.Verdict(w); why != "" {
		fmt.Fprint(a.out, wrap(why, "    ", 100))
	}
	a.firstFindings(w)
	for _, r := range all {
		if r.Note != "" {
			fmt.Fprint(a.out, wrap(fmt.Sprintf("run %d was %s", r.Seed, r.Note), "    ", 100))
		}
		if r.Logs != "" {
			fmt.Fprintf(a.out, "    logs of run %d: %s\n", r.Seed, r.Logs)
		}
	}
	params := all[0].Played.Record.Params
	fmt.Fprintf(a.out, "    %s, each instant within %v\n", strings.Join(all[0].Programs, ", "), sentence.Uncertainty(params.Uncertainty))
}

// writeLive writes a run as DIR/SCENARIO/LOCK/RUN.live, and returns the name of the file.
func writeLive(dir string, r play.LiveRun) (string, error) {
	file := filepath.Join(dir, fileName(r.Scenario.Name), fileName(r.Lock.Name), fmt.Sprintf("%d.live", r.Seed))
	return file, writeLiveFile(file, r)
}

func writeLiveFile(file string, r play.LiveRun) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return usageError{err}
	}
	var b bytes.Buffer
	comment := []string{
		fmt.Sprintf("%s on %s: %s. A live run, by %s.", r.Scenario.Name, r.Lock.Name, r.Word, strings.Join(r.Programs, ", ")),
		"It has no decisions and cannot be played again. Draw it: " + program() + " report " + file,
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
