package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// worldsFaults are the faults that every server has.
var worldsFaults = []draw.Class{draw.ClassNetwork, draw.ClassPause}

// worlds measures the runs per second of each lock of the module peers, beside two locks of
// this module. The program of that module plays them as a worker of a campaign.
func (b *bench) worlds() (section, error) {
	n := b.count(40)
	s := section{
		Title: "Worlds per second",
		Text: []string{fmt.Sprintf("Runs a second of one processor, by processor time: %d drawn runs of each lock, with network faults and pauses, played and judged as in a campaign. "+
			"The start of the process is not in it.", n)},
		Head: []string{"lock", "a run", "runs a second", "simulated time of a run"},
	}
	dir, err := os.MkdirTemp("", "lockstep-worlds-")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "simrun")
	build := exec.Command("go", "build", "-o", program, "./cmd/simrun")
	build.Dir = filepath.Join(b.Root, "peers")
	if out, err := build.CombinedOutput(); err != nil {
		return s.unmeasured(fmt.Sprintf("building the program of peers: %v %s", err, firstOf(out))), nil
	}
	locks, err := locksOf(program)
	if err != nil {
		return s, err
	}
	for _, lock := range locks {
		if b.Progress != nil {
			b.Progress("worlds of " + lock)
		}
		cost, simulated, err := b.runsOf(program, lock, n)
		if err != nil {
			return s, fmt.Errorf("%s: %w", lock, err)
		}
		s.row(lock, span(float64(cost)), digits(float64(time.Second)/float64(cost)), digits(simulated.Seconds())+" s")
	}
	return s, nil
}

// locksOf returns the locks that a program knows and this one does not, and two of this one.
func locksOf(program string) ([]string, error) {
	out, err := exec.Command(program, "list", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("%s list: %w", program, err)
	}
	locks := []string{plainLock, "reference"}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var l struct{ Lock string }
		if err := dec.Decode(&l); err != nil {
			return nil, fmt.Errorf("%s list: %w", program, err)
		}
		if _, unknown := subject.Find(l.Lock); l.Lock != "" && unknown != nil {
			locks = append(locks, l.Lock)
		}
	}
	return locks, nil
}

// runsOf returns the processor time of a run of a lock, and its simulated time, each the mean
// of n runs.
func (b *bench) runsOf(program, lock string, n int) (cost, simulated time.Duration, err error) {
	cmd := b.Worker()
	cmd.Path, cmd.Args[0] = program, program
	plan := explore.Plan{World: sim.Version, Lock: lock, Faults: slices.Clone(worldsFaults), Profile: draw.Simple, Strategy: explore.StrategyPlain, Seed: 1, Runs: n + 1}
	player, err := explore.Away(cmd, plan)
	if err != nil {
		return 0, 0, err
	}
	defer player.Close()
	runs := 0
	var before time.Duration
	err = player.Family(0, nil, func(r explore.Run) (err error) {
		if runs++; runs == 1 { // the process has started, and is warm
			before, err = usedBy(cmd.Process.Pid)
			return err
		}
		simulated += time.Duration(r.SimNs)
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	after, err := usedBy(cmd.Process.Pid)
	if err == nil && runs != n+1 {
		err = fmt.Errorf("%d runs; want %d", runs, n+1)
	}
	return (after - before) / time.Duration(n), simulated / time.Duration(n), err
}

// usedBy returns the processor time of another process so far, of all its threads, in
// nanoseconds. The clock of a process has the number ^pid<<3 | 2 (clock_getcpuclockid(3)).
func usedBy(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("the processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
