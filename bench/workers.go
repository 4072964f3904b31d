package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
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
		Strategy: explore.DefaultStrategy, Seed: 1, Runs: 1 << 20}
}

// away is a worker and its process.
type away struct {
	explore.Player
	process *os.Process
}

func (b *bench) away() (away, error) {
	cmd := b.Worker()
	p, err := explore.Away(cmd, campaign())
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
		title: "Workers",
		text:  []string{fmt.Sprintf("Runs a second, by the clock, of `%s` on one worker and on two; both play the same %d runs.", campaign().String(), n*explore.FamilyRuns)},
		head:  []string{"", "runs a second", "ratio"},
		goals: []goal{atLeast("two workers against one", 1.8, r.median, r.String(),
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
		title: "Memory",
		text:  []string{fmt.Sprintf("The most memory that a worker had (VmHWM), after so many runs of `%s`.", campaign().String())},
		head:  []string{"runs", "peak", "by the clock"},
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
	s.goals = []goal{atMost(fmt.Sprintf("a worker's peak after %d runs against that after %d", runs[4], runs[2]), 1.1, r, "", digits(r),
		"The largest run so far sets it: nothing of a run is kept, but the collector sleeps while one is under way.")}
	return s, nil
}
