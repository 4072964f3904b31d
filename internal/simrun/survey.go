package simrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/explore"
	"lockstep/explore/survey"
	"lockstep/internal/counted"
	"lockstep/scenarios/subject"
)

// surveyBudget limits the runs that shrinking one failure of a survey takes.
const surveyBudget = 100

// surveyFlags are the options of simrun survey.
type surveyFlags struct {
	survey.Options
	locks, runsOf, again []string
	jobs                 int
	out                  string
	asJSON               bool
	tables, costs        bool
}

func (a *app) surveyCommand() *cobra.Command {
	o := surveyFlags{Options: survey.Options{Budget: surveyBudget}}
	c := a.command(guide{
		use: "survey", optionsOnly: true, short: "compare locks: which promises hold under which faults, and what an acquire costs",
		long: "Survey plays drawn schedules on each lock without faults, as many with each class of faults, and stories of known failures. It reports each promise as held, as a limit with its excuse, or as a bug with a recording. " +
			"It also measures an acquire. With --out it writes survey.md, survey.html, survey.jsonl and recordings.",
		examples: []string{"survey --lock setnx-del --runs 10"},
	}, func(in invocation) (int, error) { return a.survey(in, o) })
	f := c.Flags()
	lockFlag(f, &o.locks, "a `LOCK`; may be repeated; default: each lock, of a library the newest release")
	whole(f, &o.Runs, "runs", 300, atLeast(1), "runs of each class of faults; the stories take at least 100")
	whole(f, &o.Seconds, "seconds", 0, atLeast(0), "fewer runs for a lock whose runs take longer than this many seconds of a processor; 0: never")
	f.StringSliceVar(&o.runsOf, "runs-of", nil, "`LOCK=N`: N runs of each class of faults for LOCK; may be repeated")
	f.StringSliceVar(&o.again, "again", nil, "survey `LOCK` again, and keep the other locks of the survey in --out; may be repeated")
	o.Seed = 1
	f.Var(seed{&o.Seed}, "seed", "the seed, `N`")
	f.BoolVar(&o.tables, "tables", false, "play nothing; write the tables in --out anew from its survey.jsonl")
	f.BoolVar(&o.costs, "costs", false, "measure only the costs anew, and write the tables in --out with them")
	jobsFlag(f, &o.jobs)
	f.StringVar(&o.out, "out", "", "write the survey to `DIR`")
	jsonFlag(f, &o.asJSON, "an object per lock, one per line")
	a.progressFlag(f)
	return c
}

// survey compares locks. It prints, or writes to a folder, the promises of each lock, whether it
// keeps them, and its cost.
func (a *app) survey(in invocation, flags surveyFlags) (int, error) {
	if flags.tables || flags.costs {
		return a.surveyTables(in, flags.out, flags.costs)
	}
	names, own, again, jobs, dir, asJSON, o := flags.locks, flags.runsOf, flags.again, flags.jobs, flags.out, flags.asJSON, flags.Options
	var locks []*subject.Subject
	var err error
	var runsOf map[string]int
	s := survey.Survey{Command: strings.Join(append([]string{program(), "survey"}, in.args...), " "), Chosen: names, Options: o}
	if again != nil {
		if s, err = toSurveyAgain(again, dir); err == nil {
			locks, err = surveyed(again)
		}
		for _, value := range own { // the command that plays the whole survey like this
			s.Command += " --runs-of " + value
		}
	} else {
		locks, err = surveyed(names)
	}
	if err == nil {
		runsOf, err = ownRuns(own, locks)
	}
	switch i := slices.IndexFunc(fixedByASurvey, in.given.Changed); {
	case err != nil:
	case again != nil && i >= 0:
		err = fmt.Errorf("--again takes --%s from the survey in %s", fixedByASurvey[i], dir)
	}
	if err != nil {
		return 0, usageError{fmt.Errorf("survey: %w", err)}
	}
	release, err := a.folder(dir)
	if err != nil {
		return 0, usageError{fmt.Errorf("survey: %w", err)}
	}
	defer release()
	if again == nil && dir != "" {
		if err := replaceable(dir, locks, o); err != nil {
			return 0, usageError{fmt.Errorf("survey: %w", err)}
		}
	}
	stop, unregister := a.interruptible()
	defer unregister()
	if again != nil {
		err = a.surveyAgain(stop, &s, again, runsOf, jobs, dir)
	} else {
		s.Locks, err = a.surveyAll(stop, locks, o, runsOf, jobs, dir)
	}
	if stop.Err() != nil {
		return 0, interruptedError(goesOn(dir))
	}
	if err != nil {
		return 0, err
	}
	if dir != "" {
		if err := writeSurvey(dir, s); err != nil {
			return 0, err
		}
	}
	if asJSON {
		return exitOK, s.WriteJSON(a.out)
	}
	a.surveyText(s, dir)
	return exitOK, nil
}

// goesOn returns the words that say that the same command continues. The interrupted command plays
// lock after lock, and keeps the result of each in a folder. goesOn returns "" if there is no folder.
func goesOn(dir string) string {
	if dir == "" {
		return ""
	}
	return "; the locks that are done are kept, and the same command goes on"
}

// surveyed returns the locks with these names. Without names it returns every listed lock that
// is not replicated; of a lock with releases, only the newest.
func surveyed(names []string) ([]*subject.Subject, error) {
	var chosen []*subject.Subject
	for _, name := range names {
		l, err := findSimulated(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(chosen, l) {
			chosen = append(chosen, l)
		}
	}
	if names != nil {
		return chosen, nil
	}
	for _, l := range subject.All() {
		if newest, err := subject.Find(l.Family()); err == nil && newest == l || l.Release == "" && !l.Replicated {
			chosen = append(chosen, l)
		}
	}
	return chosen, nil
}

// ownRuns reads the values of --runs-of, each LOCK=N.
func ownRuns(values []string, locks []*subject.Subject) (map[string]int, error) {
	runs := map[string]int{}
	for _, value := range values {
		name, number, _ := strings.Cut(value, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--runs-of %s: want LOCK=N, with N at least 1", value)
		}
		if !slices.ContainsFunc(locks, func(l *subject.Subject) bool { return l.Name == name }) {
			return nil, fmt.Errorf("--runs-of %s: %s is not surveyed", value, name)
		}
		runs[name] = n
	}
	return runs, nil
}

// surveyAll surveys each lock in a process of its own, jobs processes at a time. A lock in
// runsOf has that number of runs, whatever time they take. If dir is not "", a lock that is
// done is kept there until all are.
func (a *app) surveyAll(stop context.Context, locks []*subject.Subject, o survey.Options, runsOf map[string]int, jobs int, dir string) ([]survey.Lock, error) {
	all := make([]survey.Lock, len(locks))
	problems := make([]error, len(locks))
	turn := make(chan int)
	var workers sync.WaitGroup
	for range min(jobs, len(locks)) {
		workers.Go(func() {
			for i := range turn {
				o := o
				if n, ok := runsOf[locks[i].Name]; ok {
					o.Runs, o.Seconds = n, 0
				}
				all[i], problems[i] = surveyKept(stop, locks[i].Name, o, dir)
			}
		})
	}
	for i, l := range locks {
		if stop.Err() != nil {
			break
		}
		a.advance("lock %d of %d: %s", i+1, len(locks), l.Name)
		select {
		case turn <- i:
		case <-stop.Done():
		}
	}
	close(turn)
	workers.Wait()
	a.status("")
	return all, errors.Join(problems...)
}

// surveyTask asks a process for the survey of one lock.
type surveyTask struct {
	Lock     string
	Options  survey.Options
	Versions explore.Versions
}

// surveyAnswer is the answer to a surveyTask. The JSON of a survey.Lock leaves out its recordings.
type surveyAnswer struct {
	Lock       survey.Lock
	Recordings map[string]string
}

// surveyingDir is the folder in which a survey keeps the locks that are done.
const surveyingDir = ".surveying"

// surveyKept returns the answer that an interrupted survey kept, or else surveys the lock.
func surveyKept(stop context.Context, lock string, o survey.Options, dir string) (survey.Lock, error) {
	if dir != "" {
		dir = filepath.Join(dir, surveyingDir)
	}
	answer, err := kept(dir, lock, surveyTask{lock, o, explore.CurrentVersions()}, func(task surveyTask) (surveyAnswer, error) {
		return surveyAway(stop, task)
	})
	answer.Lock.Recordings = answer.Recordings
	return answer.Lock, err
}

// kept returns the answer to a task that an interrupted command kept in a folder under this name.
// If there is none, or if it belongs to another task, kept calls ask and keeps the answer. If dir
// is "", it keeps nothing.
func kept[Task comparable, Answer any](dir, name string, task Task, ask func(Task) (Answer, error)) (Answer, error) {
	var done struct {
		Task   Task
		Answer Answer
	}
	file := filepath.Join(dir, name+".json")
	if text, err := os.ReadFile(file); dir != "" && err == nil && json.Unmarshal(text, &done) == nil && done.Task == task {
		return done.Answer, nil
	}
	answer, err := ask(task)
	if err != nil || dir == "" {
		return answer, err
	}
	done.Task, done.Answer = task, answer
	text, err := json.Marshal(done)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = renameio.WriteFile(file, text, 0o644)
	}
	return answer, err
}

// surveyCommand is the command with which simrun starts itself to survey one lock. It is not
// for users.
const surveyCommand = "survey-worker"

func surveyAway(stop context.Context, task surveyTask) (answer surveyAnswer, err error) {
	if err := away(stop, surveyCommand, task, &answer); err != nil {
		return answer, fmt.Errorf("survey of %s: %w", task.Lock, err)
	}
	return answer, nil
}

// away starts this program again with a command that takes a task, and reads its answer. The
// process has the environment of this one and the variables of env.
func away(stop context.Context, command string, task, answer any, env ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(stop, self, command, string(text))
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal goes to simrun alone
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, answer)
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, stderr.String())
	}
	return nil
}

// surveyor surveys one lock for another process.
func (a *app) surveyor(args []string) (int, error) {
	if len(args) != 1 {
		return 0, usagef("%s takes one task", surveyCommand)
	}
	var task surveyTask
	if err := json.Unmarshal([]byte(args[0]), &task); err != nil {
		return 0, usageError{err}
	}
	l, err := subject.Find(task.Lock)
	if err != nil {
		return 0, usageError{err}
	}
	lock, err := survey.Of(a.host, l, task.Options, processorTime)
	if err != nil {
		return 0, err
	}
	return exitOK, json.NewEncoder(a.out).Encode(surveyAnswer{lock, lock.Recordings})
}

// replaceable returns an error unless a survey of these locks may be written into a folder: it has no survey, or
// one that the new one repeats. Nothing else of the user's may be there under the names of a survey.
func replaceable(dir string, locks []*subject.Subject, o survey.Options) error {
	old, _, err := openSurvey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, surveyingDir)); err == nil {
			return nil // a survey began here, and nothing of the user's was in its way
		}
		for _, name := range []string{survey.MarkdownFile, survey.PageFile, survey.RecordingsDir} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return fmt.Errorf("%s would be overwritten, and there is no %s that says that a survey wrote it; name another folder", filepath.Join(dir, name), survey.LocksFile)
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	difference := ""
	switch lost := slices.IndexFunc(old.Locks, func(l survey.Lock) bool {
		return !slices.ContainsFunc(locks, func(s *subject.Subject) bool { return s.Name == l.Name })
	}); {
	case lost >= 0:
		difference = "it has " + old.Locks[lost].Name
	case old.Options.Runs != o.Runs:
		difference = fmt.Sprintf("its campaigns have %s, and not %d", counted.Of(old.Options.Runs, "run"), o.Runs)
	case old.Options.Seed != o.Seed:
		difference = fmt.Sprintf("it has seed %d, and not %d", old.Options.Seed, o.Seed)
	default:
		return nil
	}
	return fmt.Errorf("%s holds another survey (%s); name another folder, or remove it", dir, difference)
}

// writeSurvey writes a survey into a folder. Recordings that an earlier survey wrote are
// removed.
func writeSurvey(dir string, s survey.Survey) error {
	old, _, err := openSurvey(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, l := range slices.Concat(old.Locks, s.Locks) {
		if err := os.RemoveAll(filepath.Join(dir, survey.RecordingsDir, filepath.Base(l.Name))); err != nil {
			return err
		}
	}
	for _, l := range s.Locks {
		for name, text := range l.Recordings {
			file := filepath.Join(dir, filepath.FromSlash(survey.RecordingFile(l.Name, name)))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	if err := writeSurveyData(dir, s); err != nil {
		return err
	}
	if err := writeSurveyTables(dir, s); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, surveyingDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeSurveyData writes the file of a survey that is for programs.
func writeSurveyData(dir string, s survey.Survey) error {
	var b bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, survey.LocksFile), b.Bytes(), 0o644)
}

// writeSurveyTables writes the files of a survey that are for people.
func writeSurveyTables(dir string, s survey.Survey) error {
	for _, l := range PeersLocks {
		if !l.Live {
			s.OnlySimulated = append(s.OnlySimulated, l.Name)
		}
	}
	for _, f := range []struct {
		name  string
		write func(*bytes.Buffer) error
	}{
		{survey.MarkdownFile, func(b *bytes.Buffer) error { return s.WriteMarkdown(b) }},
		{survey.PageFile, func(b *bytes.Buffer) error { return s.WritePage(b) }},
	} {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return err
		}
		if err := renameio.WriteFile(filepath.Join(dir, f.name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// surveyText prints, per lock, the promises that were broken and the cost of an acquire.
func (a *app) surveyText(s survey.Survey, dir string) {
	for _, l := range s.Locks {
		var held []string
		fmt.Fprintf(a.out, "%s: %s\n", l.Name, l.About)
		fmt.Fprintf(a.out, "    %s\n", counted.Of(l.Judged(), "run"))
		for _, p := range survey.Promises {
			sum := l.Summary(p.Name)
			switch sum.Word {
			case survey.Held:
				held = append(held, p.Name)
			case survey.NotPromised, survey.NotJudged: // below, with the reasons
			default:
				word := string(sum.Word)
				fmt.Fprintf(a.out, "    %s %s%s\n", a.paint(word, fmt.Sprintf("%-9s", word)), p.Name, sum.Where())
			}
		}
		if len(held) > 0 {
			fmt.Fprint(a.out, wrap("held: "+strings.Join(held, ", "), "    ", 100))
		}
		for _, reason := range l.Reasons() {
			fmt.Fprint(a.out, wrap(reason, "    ", 100))
		}
		c := l.Cost
		fmt.Fprint(a.out, wrap(fmt.Sprintf("cost: an acquire takes %s, an unlock %s; a hand-over takes %s in %g ms; ten waiters send %g requests a second",
			exchangeText(c.Acquire), exchangeText(c.Unlock), counted.Of(c.HandOverMessages, "message"), c.HandOverMs, c.TenWaiters), "    ", 100))
		if l.Advice != "" {
			fmt.Fprint(a.out, wrap(l.Advice, "    ", 100))
		}
	}
	if dir != "" {
		fmt.Fprintf(a.out, "tables and recordings: %s\n", filepath.Join(dir, survey.MarkdownFile))
	}
}

// exchangeText returns the cost of a call for people.
func exchangeText(e survey.Exchange) string {
	trips := fmt.Sprintf("%g round trips", e.RoundTrips())
	if e.RoundTrips() == 1 {
		trips = "1 round trip"
	}
	return counted.Of(e.Requests, "request") + " in " + trips
}
