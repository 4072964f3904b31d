package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/quantity"
	"lockstep/scenarios/subject"
)

// RepeatabilityFile is the file that repeat writes.
const RepeatabilityFile = "repeatability.md"

// repeatingDir is the folder in which repeat keeps the locks that are done.
const repeatingDir = ".repeating"

// repeatProcessors are the numbers of processors with which the two processes start.
var repeatProcessors = [2]int{1, 8}

func repeatCommand(a *frame.App) *cobra.Command {
	var locks []string
	var dir, seeds string
	var jobs int
	plan := explore.Repetition{}
	c := a.Command(frame.Guide{
		Use: "repeat", OptionsOnly: true, Short: "play runs of locks twice, and say which records differ",
		Long: "Repeat plays runs of each lock twice, each time in another process, and says which records differ. They differ if a lock uses randomness that cannot be seeded. " +
			"It plays the scenarios that name the lock, and drawn runs. The exit code is 2 if a record differs.",
		Examples: []string{"repeat --lock setnx-del --runs 5 --seeds 1"},
	}, func(in frame.Invocation) (int, error) { return repeatRuns(a, in, plan, locks, seeds, jobs, dir) })
	f := c.Flags()
	frame.LockFlag(f, &locks, "a `LOCK`; may be repeated; default: each lock, of a library the newest release")
	frame.Whole(f, &plan.Drawn, "runs", 200, quantity.Drawn, "drawn runs of each lock")
	f.StringVar(&seeds, "seeds", "1..20", "the seeds of each scenario, `N or A..B`")
	frame.JobsFlag(f, &jobs)
	f.StringVar(&dir, "out", "", "write repeatability.md to `DIR`")
	a.ProgressFlag(f)
	return c
}

// repeatSeedsMost limits the seeds of a scenario, since the outcome of each run is kept in memory.
const repeatSeedsMost = 100_000

// repeatSeeds reads the value of --seeds.
func repeatSeeds(s string) (from, to uint64, err error) {
	from, to, err = frame.SeedRange("--seeds", s)
	if err == nil && to-from >= repeatSeedsMost {
		err = fmt.Errorf("--seeds %s: the outcome of each run is kept until the last run; at most %d seeds", s, repeatSeedsMost)
	}
	return from, to, err
}

// repeatRuns plays runs of locks twice, each time in another process, and reports which differ.
func repeatRuns(a *frame.App, in frame.Invocation, plan explore.Repetition, names []string, seeds string, jobs int, dir string) (int, error) {
	locks, err := surveyed(names)
	if err == nil {
		plan.SeedFirst, plan.SeedLast, err = repeatSeeds(seeds)
	}
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("repeat: %w", err))
	}
	release, err := a.Folder(dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("repeat: %w", err))
	}
	defer release()
	stop, unregister := a.Interruptible()
	defer unregister()

	command := frame.CommandInFiles(append([]string{"repeat"}, in.Args...)...)
	keep := ""
	if dir != "" {
		keep = filepath.Join(dir, repeatingDir)
	}
	var all []explore.Repeated
	var text bytes.Buffer
	var problems []error
	differ := 0
	for i, l := range locks {
		a.Advance("lock %d of %d: %s", i+1, len(locks), l.Name)
		plan.Lock = l.Name
		one, err := frame.Kept(keep, l.Name, played{plan, explore.CurrentVersions().Recorded()}, func(played) (explore.Repeated, error) {
			return repeated(stop, plan, jobs)
		})
		if stop.Err() != nil {
			a.Status("")
			return 0, frame.InterruptedError(" at " + l.Name + goesOn(dir))
		}
		if err != nil {
			problems = append(problems, err)
			if !errors.As(err, new(*frame.NotKeptError)) {
				one = explore.Repeated{Lock: l.Name, NotPlayed: err.Error()}
			}
		}
		all = append(all, one)
		differ += len(one.Differing)
	}
	a.Status("")
	if err := explore.WriteRepeatability(&text, command, repeatability(plan), all); err != nil {
		return 0, err
	}
	if _, err := a.Out.Write(text.Bytes()); err != nil {
		return 0, err
	}
	if dir != "" && len(problems) == 0 { // else the locks that are done are kept
		if err := frame.WriteFile(filepath.Join(dir, RepeatabilityFile), text.Bytes()); err != nil {
			return 0, err
		}
		if err := os.RemoveAll(keep); err != nil {
			return 0, err
		}
	}
	if differ > 0 {
		return frame.ExitUndecided, errors.Join(problems...)
	}
	return frame.ExitOK, errors.Join(problems...)
}

// repeatability explains the figures of repeat.
func repeatability(plan explore.Repetition) string {
	return fmt.Sprintf("Each run was played twice, in a process that started with GOMAXPROCS=%d and in one that started with GOMAXPROCS=%d. (While a world runs it has one processor.) "+
		"It differs if the digests of its two records do. The runs of scenarios are those of each scenario that names the lock, with the seeds %d to %d. "+
		"The %d drawn runs of each lock have the profile full and all faults that its servers know. Each is drawn anew.",
		repeatProcessors[0], repeatProcessors[1], plan.SeedFirst, plan.SeedLast, plan.Drawn)
}

// played names the runs of a lock and the versions of the program that plays them.
type played struct {
	Plan     explore.Repetition
	Versions explore.Versions
}

// repeatTask asks a process for the digests of runs, or for the reason why some of them differ.
type repeatTask struct {
	Plan    explore.Repetition
	Explain []explore.Repeatable
}

type repeatAnswer struct {
	Runs []explore.Repeatable
	Why  []string
}

// repeated plays the runs of a lock in two processes, jobs of them at a time.
func repeated(stop context.Context, plan explore.Repetition, jobs int) (explore.Repeated, error) {
	var answers [2]repeatAnswer
	var problems [2]error
	var both sync.WaitGroup
	turn := make(chan bool, jobs)
	for i, n := range repeatProcessors {
		both.Go(func() {
			turn <- true
			problems[i] = frame.Away(stop, repeatWorker, repeatTask{Plan: plan}, &answers[i], fmt.Sprintf("GOMAXPROCS=%d", n))
			<-turn
		})
	}
	both.Wait()
	if problems[0] != nil && problems[1] != nil && problems[0].Error() == problems[1].Error() {
		problems[1] = nil
	}
	if err := errors.Join(problems[:]...); err != nil {
		return explore.Repeated{}, fmt.Errorf("repeat %s: %w", plan.Lock, err)
	}
	out, err := explore.Compare(plan.Lock, answers[0].Runs, answers[1].Runs)
	if err != nil || len(out.Differing) == 0 {
		return out, err
	}
	var why repeatAnswer
	if err := frame.Away(stop, repeatWorker, repeatTask{plan, out.Differing}, &why); err != nil {
		return out, fmt.Errorf("repeat %s: %w", plan.Lock, err)
	}
	out.Why = why.Why
	return out, nil
}

// repeatWorker is the command with which simrun starts itself to play the runs of a lock. It
// is not for users.
const repeatWorker = "repeat-worker"

// serveRepeats plays the runs of one lock for another process.
func serveRepeats(a *frame.App) (int, error) {
	return frame.ServeTask(a, func(task repeatTask) (any, error) {
		l, err := subject.Find(task.Plan.Lock)
		if err != nil {
			return nil, frame.Usage(err)
		}
		var answer repeatAnswer
		if task.Explain != nil {
			answer.Why, err = task.Plan.Explain(a.Host, l, task.Explain)
		} else {
			answer.Runs, err = task.Plan.Play(a.Host, l)
		}
		return answer, err
	})
}
