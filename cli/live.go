package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/internal/quantity"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// liveClient is the hidden command that plays one process of a scenario for live.
const liveClient = "live-client"

func serveClient(a *frame.App, args []string) (int, error) {
	if a.Live == nil || len(args) > 0 {
		return 0, frame.Usagef("%s is a part of live; call simrun live", liveClient)
	}
	return frame.ExitOK, a.Live.Client(os.Stdin, os.Stdout)
}

// liveFlags are the options of simrun live.
type liveFlags struct {
	locks                            []string
	tag, out, keep, address, servers string
	runs                             int
	asJSON                           bool
}

func liveCommand(a *frame.App) *cobra.Command {
	var l liveFlags
	c := a.Command(frame.Guide{
		Use: "live SCENARIO, FILE or RECORDING ...", Short: "play scenarios on real servers, in real time",
		Long: "Live plays scenarios in real time, each process of a scenario as a process of the machine, and gives the record to the judges of the simulated world. " +
			"It starts the servers of the lock: redis-server, and for the locks of the program in peers/ also etcd, NATS, ZooKeeper, Memcached and MariaDB. " +
			"The locks redisson-java@R and redisson-java-fair@R are the Java library itself.",
		Examples: []string{"live misdelete --lock setnx-del", "live misdelete --lock redisson-java@4.7.0 --runs 3 --out live-runs"},
	}, func(in frame.Invocation) (int, error) { return playLiveScenarios(a, in, l) })
	f := c.Flags()
	frame.LockFlag(f, &l.locks, "play on `LOCK` in place of the locks of the scenario; may be repeated")
	frame.TagFlag(f, &l.tag)
	frame.Whole(f, &l.runs, "runs", 1, quantity.LiveRuns, "how often each scenario is played")
	f.StringVar(&l.out, "out", "", "write each run to `DIR`, for report")
	f.StringVar(&l.keep, "keep", "", "leave the logs of the processes in `DIR`; without =DIR, in the folder for temporary files")
	f.Lookup("keep").NoOptDefVal = os.TempDir()
	f.StringVar(&l.servers, "servers", "", "play on `SERVERS` that know of one another: redis-sentinel or redis-cluster")
	f.StringVar(&l.address, "address", "", "use the empty server at `ADDRESS`; no fault strikes it")
	frame.JSONFlag(f, &l.asJSON, "one object per run, one per line")
	a.QuietFlag(f, "only the summary and the results that were not as expected")
	c.ValidArgsFunction = frame.ScenariosOrFiles
	return c
}

// playLiveScenarios plays scenarios on real servers.
func playLiveScenarios(a *frame.App, in frame.Invocation, l liveFlags) (int, error) {
	names, tag, locks, runs, out, asJSON := in.Names, l.tag, l.locks, l.runs, l.out, l.asJSON
	if len(names) == 0 && tag == "" {
		return 0, frame.Usagef("live plays in real time: name the scenarios, or a --tag")
	}
	o, err := LiveOptions(a, l.address, l.keep)
	o.Servers = l.servers
	if err != nil {
		return 0, err
	}
	pairs, err := liveChoice(names, tag, locks)
	if err != nil {
		return 0, frame.OnRealServer(err)
	}
	if err := livePossible(a, pairs, o); err != nil {
		return 0, err
	}
	if err := LiveReady(a, LocksOf(pairs), o); err != nil {
		return 0, err
	}
	if out != "" {
		release, err := a.Folder(out)
		if err != nil {
			return 0, frame.Usage(fmt.Errorf("live: %w", err))
		}
		defer release()
	}
	runtime.GOMAXPROCS(runtime.NumCPU()) // nothing is simulated from here on
	ctx, stop := a.Interruptible()
	defer stop()
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	var odd []byte // with --quiet: lines of the pairs that were not as expected
	head := sync.OnceFunc(func() {
		if !a.Quiet {
			fmt.Fprintf(a.Out, "%-28s %-21s %-7s %-10s %s\n", "scenario", "lock", "runs", "verdict", "expected")
		}
	})
	for _, p := range pairs {
		if err := play.Claims(p.Scenario, p.Lock); err != nil {
			v := play.NotApplicable(p.Scenario, p.Lock, p.From, err)
			p.add(v)
			if !asJSON {
				head()
				printPair(a, p)
			} else if err := enc.Encode(liveObjectOf(play.LiveRun{Verdict: v}, "")); err != nil {
				return 0, err
			}
			continue
		}
		all, err := liveRuns(a, ctx, p, runs, o)
		if err != nil {
			return 0, LiveError(ctx, err)
		}
		if err := l.write(all, enc); err != nil {
			return 0, err
		}
		switch {
		case asJSON:
		case !a.Quiet:
			head()
			liveLine(a, p, all)
		case !p.asExpected():
			odd = append(odd, a.Captured(func() { liveLine(a, p, all) })...)
		}
		if asJSON || !a.Quiet {
			a.Printed(exitCode([]*Pair{p}))
		}
		p.forget()
	}
	if a.Quiet && !asJSON {
		printTotals(a, pairs)
		if len(odd) > 0 {
			fmt.Fprintf(a.Out, "\n%s", odd)
		}
	}
	return exitCode(pairs), nil
}

// write keeps runs in the folder of --out, and prints them with --json.
func (l liveFlags) write(all []play.LiveRun, enc *json.Encoder) error {
	for _, r := range all {
		file := ""
		if l.out != "" {
			var err error
			if file, err = WriteLive(l.out, r); err != nil {
				return err
			}
		}
		if l.asJSON {
			if err := enc.Encode(liveObjectOf(r, file)); err != nil {
				return err
			}
		}
	}
	return nil
}

// liveRuns plays the runs of a pair, and returns them with the verdicts that they have together.
func liveRuns(a *frame.App, ctx context.Context, p *Pair, runs int, o play.LiveOptions) (all []play.LiveRun, err error) {
	for n := 1; n <= runs; n++ {
		r, err := liveRun(a, ctx, p, n, runs, o)
		if err != nil {
			return nil, err
		}
		p.add(r.Verdict)
		all = append(all, r)
	}
	for i := range all {
		all[i].Verdict = p.settled(all[i].Verdict)
	}
	return all, nil
}

// liveRun plays run n of a pair, and reports on stderr the run, the time since its start, and its
// activity.
func liveRun(a *frame.App, ctx context.Context, p *Pair, n, of int, o play.LiveOptions) (play.LiveRun, error) {
	var doing atomic.Value
	doing.Store("")
	o.Tell = func(what string) { doing.Store(": " + what) }
	line := func(passed time.Duration) string {
		return fmt.Sprintf("%s on %s, run %d of %d, for %v%s", p.Scenario.Name, p.Lock.Name, n, of, passed.Round(time.Second), doing.Load())
	}
	begun := time.Now()
	a.Status("%s", line(0))
	telling, stop := context.WithCancel(ctx)
	var told sync.WaitGroup
	told.Go(func() {
		a.Paced().Each(telling, func(now time.Time) string { return line(now.Sub(begun)) })
	})
	r, err := a.Live.Run(ctx, p.Scenario, p.Lock, uint64(n), o)
	stop()
	told.Wait()
	a.Status("")
	return r, err
}

// liveChoice returns the pairs that live plays. If no lock is named, the scenario of a recording is
// played on the lock of the recording.
func liveChoice(names []string, tag string, locks []string) (pairs []*Pair, err error) {
	var others []string
	for _, name := range names {
		if filepath.Ext(name) != ".lockstep" {
			others = append(others, name)
			continue
		}
		rec, sc, lock, err := readRecording(toLive, []string{name})
		if err != nil {
			return nil, err
		}
		on := []*subject.Subject{lock}
		if len(locks) > 0 {
			if on, err = FindLocks(locks); err != nil {
				return nil, frame.Usage(err)
			}
		}
		for _, l := range on {
			pairs = append(pairs, &Pair{Scenario: sc, Lock: l, From: rec.Seed, To: rec.Seed})
		}
	}
	if len(others) == 0 && tag == "" {
		return pairs, nil
	}
	chosen, err := Choose(others, tag, locks, "")
	return append(pairs, chosen...), err
}
