package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/sim"
)

// campaign is the plan that the workers play.
func campaign() explore.Plan {
	return explore.Plan{World: sim.Version, Lock: plainLock, Faults: []draw.Class{draw.ClassNetwork}, Profile: draw.Simple,
		Strategy: explore.StrategyPlain, Seed: 1, Runs: 1 << 20}
}

// away is a worker in another process.
type away struct {
	explore.Player
	process *os.Process
}

func (b *bench) away() (away, error) { return b.awayFor(campaign()) }

func (b *bench) awayFor(plan explore.Plan) (away, error) {
	cmd := b.Worker()
	p, err := explore.Away(cmd, plan)
	if err != nil {
		return away{}, err
	}
	return away{p, cmd.Process}, nil
}

// play plays the families [from, to) on a worker, and returns the number of runs.
func (a away) play(from, to int) (runs int, err error) {
	for number := from; number < to; number++ {
		err := a.Family(number, nil, func(explore.Run) error {
			runs++
			return nil
		})
		if err != nil {
			return runs, fmt.Errorf("family %d: %w", number, err)
		}
	}
	return runs, nil
}

func (b *bench) workers() (section, error) {
	n := max(1, b.count(4*explore.FamilyRuns)/explore.FamilyRuns)
	var all []away
	for range 2 {
		a, err := b.away()
		if err != nil {
			return section{}, err
		}
		defer a.Close()
		if _, err := a.play(0, 1); err != nil { // warm
			return section{}, err
		}
		all = append(all, a)
	}
	var problems []error
	// Every worker plays the same runs, so that two play twice as many.
	on := func(some ...away) workload {
		return func() float64 {
			var done sync.WaitGroup
			failed := make([]error, len(some))
			for i, a := range some {
				done.Go(func() { _, failed[i] = a.play(0, n) })
			}
			done.Wait()
			problems = append(problems, failed...)
			return float64(n * explore.FamilyRuns * len(some))
		}
	}
	costs := inTurn(b.Rounds, on(all[0]), on(all...))
	if err := errors.Join(problems...); err != nil {
		return section{}, err
	}
	r := ratioOf(costs[0], costs[1], wallOf)
	s := section{
		Title: "Workers",
		Text:  []string{fmt.Sprintf("Runs a second, by the clock, of `%s` on one worker and on two; both play the same %d runs.", campaign().String(), n*explore.FamilyRuns)},
		Head:  []string{"", "runs a second", "ratio"},
		Goals: []goal{atLeast("two workers against one", 1.8, r.median, r.String(),
			"A worker plays families of runs and asks nobody meanwhile. What two take from each other was not found: the same two as programs of their own, without a campaign, would tell.")},
	}
	for i, name := range []string{"one worker", "two workers"} {
		against := ""
		if i == 1 {
			against = r.String()
		}
		s.row(name, digits(1e9/median(costs[i], wallOf)), against)
	}
	return s, nil
}

// peak returns the most memory that a process has had so far.
func peak(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if rest, ok := bytes.CutPrefix(lines.Bytes(), []byte("VmHWM:")); ok {
			kib, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimSuffix(rest, []byte("kB")))), 64)
			return kib * 1024, err
		}
	}
	return 0, errors.New("the system does not tell how much memory a process has had")
}

func (b *bench) memory() (section, error) {
	first, last := max(1, b.count(1000)/explore.FamilyRuns), max(2, b.count(10_000)/explore.FamilyRuns)
	s := section{
		Title: "Memory",
		Text:  []string{fmt.Sprintf("The most memory that a worker had (VmHWM), after so many runs of `%s`.", campaign().String())},
		Head:  []string{"runs", "peak", "by the clock"},
	}
	a, err := b.away()
	if err != nil {
		return s, err
	}
	defer a.Close()
	begun := time.Now()
	var peaks []float64
	from, runs := 0, []int{0}
	for _, to := range []int{max(1, first/10), first, (first + last) / 2, last} {
		n, err := a.play(from, to)
		if err != nil {
			return s, err
		}
		from, runs = to, append(runs, runs[len(runs)-1]+n)
		most, err := peak(a.process.Pid)
		if err != nil {
			return s.unmeasured(err.Error()), nil
		}
		peaks = append(peaks, most)
		s.row(strconv.Itoa(runs[len(runs)-1]), size(most), span(float64(time.Since(begun))))
	}
	r := peaks[3] / peaks[1]
	s.Goals = []goal{atMost(fmt.Sprintf("a worker's peak after %d runs against that after %d", runs[4], runs[2]), 1.1, r, "", digits(r),
		"The largest run so far sets it: nothing of a run is kept, but the collector sleeps while one is under way.")}
	return s, nil
}

// shrinkingMost is the most memory that a process may have while it makes a failure small.
const shrinkingMost = 512 << 20

// shrunkBudget limits the runs that making one failure small takes, as in a campaign.
const shrunkBudget = 600

// shrinking measures how much memory a worker needs to make a failure small. Long runs need most.
func (b *bench) shrinking() (section, error) {
	n, failures := b.count(1000), b.count(20)/2
	plan := explore.Plan{World: sim.Version, Lock: fairLock, Faults: draw.Classes, Profile: draw.Full, Strategy: explore.StrategyPlain, Seed: 1, Runs: n}
	s := section{
		Title: "Memory of making failures small",
		Text: []string{fmt.Sprintf("The most memory that a worker had (VmHWM) when it made a failure small, each in a worker of its own: "+
			"the %d longest runs of `%s` that failed.", failures, plan.String())},
		Head: []string{"steps of the run", "events", "made small in runs", "events then", "peak"},
	}
	var failed []explore.Run
	for number := range plan.Families() {
		a, err := b.awayFor(plan)
		if err != nil {
			return s, err
		}
		err = a.Family(number, nil, func(r explore.Run) error {
			if len(r.Failures) > 0 {
				failed = append(failed, r)
			}
			return nil
		})
		a.Close()
		if err != nil {
			return s, err
		}
	}
	slices.SortStableFunc(failed, func(x, y explore.Run) int { return cmp.Compare(y.Steps, x.Steps) })
	var most float64
	for _, r := range failed[:min(failures, len(failed))] {
		_, sc := plan.Draw(r.Index, mustLock(plan.Lock)) // a worker keeps it only of small failures
		r.Text = sc.Text
		a, err := b.awayFor(plan)
		if err != nil {
			return s, err
		}
		small, err := a.Shrink(explore.ShrinkTask{Run: r, Failed: r.Failures[0], Budget: shrunkBudget, Program: "simrun"})
		if err == nil {
			var used float64
			if used, err = peak(a.process.Pid); err != nil {
				a.Close()
				return s.unmeasured(err.Error()), nil
			}
			most = max(most, used)
			s.row(strconv.FormatInt(r.Steps, 10), strconv.Itoa(r.Failures[0].Size), strconv.Itoa(small.Runs), strconv.Itoa(small.Size), size(used))
		}
		a.Close()
		if err != nil {
			return s, fmt.Errorf("run %d: %w", r.Index, err)
		}
	}
	s.Goals = []goal{atMost("the most memory of a worker that makes a failure small", shrinkingMost/(1<<20), most/(1<<20), " MiB", size(most),
		"A longer run needs more: its record, the smallest one so far and the one that is played are in memory.")}
	return s, nil
}
