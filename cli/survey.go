package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/survey"
	"lockstep/internal/counted"
	"lockstep/internal/quantity"
	"lockstep/report"
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

func surveyCommand(a *frame.App) *cobra.Command {
	o := surveyFlags{Options: survey.Options{Budget: surveyBudget}}
	c := a.Command(frame.Guide{
		Use: "survey", OptionsOnly: true, Short: "compare locks: which promises hold under which faults, and what an acquire costs",
		Long: "Survey plays drawn schedules on each lock without faults, as many with each class of faults, and stories of known failures. It reports each promise as held, as a limit with its excuse, or as a bug with a recording. " +
			"It also measures an acquire. With --out it writes survey.md, survey.html, survey.jsonl and recordings.",
		Examples: []string{"survey --lock setnx-del --runs 10"},
	}, func(in frame.Invocation) (int, error) { return compareLocks(a, in, o) })
	f := c.Flags()
	frame.LockFlag(f, &o.locks, "a `LOCK`; may be repeated; default: each lock, of a library the newest release")
	frame.Whole(f, &o.Runs, "runs", 300, quantity.Runs, "runs of each class of faults; the stories take at least 100")
	frame.Whole(f, &o.Seconds, "seconds", 0, quantity.Seconds, "fewer runs for a lock whose runs take longer than this many seconds of a processor; 0: never")
	f.StringSliceVar(&o.runsOf, "runs-of", nil, "`LOCK=N`: N runs of each class of faults for LOCK; may be repeated")
	f.StringSliceVar(&o.again, "again", nil, "survey `LOCK` again, and keep the other locks of the survey in --out; may be repeated")
	o.Seed = 1
	frame.OneSeed(f, &o.Seed, "seed", "the seed, `N`")
	f.BoolVar(&o.tables, "tables", false, "play nothing; write the tables in --out anew from its survey.jsonl")
	f.BoolVar(&o.costs, "costs", false, "measure only the costs anew, and write the tables in --out with them")
	frame.JobsFlag(f, &o.jobs)
	f.StringVar(&o.out, "out", "", "write the survey to `DIR`")
	frame.JSONFlag(f, &o.asJSON, "an object per lock, one per line")
	a.ProgressFlag(f)
	return c
}

// compareLocks compares locks. It prints, or writes to a folder, the promises of each lock, whether it
// keeps them, and its cost.
func compareLocks(a *frame.App, in frame.Invocation, flags surveyFlags) (int, error) {
	if flags.tables || flags.costs {
		return surveyTables(a, in, flags.out, flags.costs)
	}
	names, own, again, jobs, dir, asJSON, o := flags.locks, flags.runsOf, flags.again, flags.jobs, flags.out, flags.asJSON, flags.Options
	var locks []*subject.Subject
	var err error
	var runsOf map[string]int
	s := survey.Survey{Command: frame.CommandInFiles(append([]string{"survey"}, in.Args...)...), Chosen: names, Options: o}
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
	switch i := slices.IndexFunc(fixedByASurvey, in.Given.Changed); {
	case err != nil:
	case again != nil && i >= 0:
		err = fmt.Errorf("--again takes --%s from the survey in %s", fixedByASurvey[i], dir)
	}
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("survey: %w", err))
	}
	release, err := a.Folder(dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("survey: %w", err))
	}
	defer release()
	if again == nil && dir != "" {
		if err := replaceable(dir, locks, o); err != nil {
			return 0, frame.Usage(fmt.Errorf("survey: %w", err))
		}
	}
	stop, unregister := a.Interruptible()
	defer unregister()
	if again != nil {
		err = surveyAgain(a, stop, &s, again, runsOf, jobs, dir)
	} else {
		s.Locks, err = surveyAll(a, stop, locks, o, runsOf, jobs, dir)
	}
	if stop.Err() != nil {
		return 0, frame.InterruptedError(goesOn(dir))
	}
	if err == nil && dir != "" {
		if err = writeSurvey(a, dir, s); err != nil {
			err = frame.NotKept(err)
		}
	}
	if err != nil && (dir == "" || errors.As(err, new(*frame.NotKeptError))) { // else they are kept
		s.Locks = slices.DeleteFunc(s.Locks, func(l survey.Lock) bool { return l.Name == "" })
		if asJSON {
			err = errors.Join(err, s.WriteJSON(a.Out))
		} else {
			printSurvey(a, s, "")
		}
	}
	if err != nil {
		return 0, err
	}
	if asJSON {
		return frame.ExitOK, s.WriteJSON(a.Out)
	}
	printSurvey(a, s, dir)
	return frame.ExitOK, nil
}

// goesOn returns the words that say that the same command continues. The interrupted command keeps what is
// done in a folder. goesOn returns "" if there is no folder.
func goesOn(dir string) string {
	if dir == "" {
		return ""
	}
	return "; what is done is kept, and the same command goes on"
}

// surveyed returns the locks with these names. Without names it returns every listed lock that
// is not replicated; of a lock with releases, only the newest.
func surveyed(names []string) ([]*subject.Subject, error) {
	var chosen []*subject.Subject
	for _, name := range names {
		l, err := FindSimulated(name)
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
		n, err := quantity.Whole(number, quantity.Runs)
		if err != nil {
			return nil, fmt.Errorf("--runs-of %s: want LOCK=N, with N %v", value, quantity.Runs)
		}
		if !slices.ContainsFunc(locks, func(l *subject.Subject) bool { return l.Name == name }) {
			return nil, fmt.Errorf("--runs-of %s: %s is not surveyed", value, name)
		}
		runs[name] = int(n)
	}
	return runs, nil
}

// surveyAll surveys locks, each part in a process of its own, jobs processes at a time. A lock in
// runsOf has that number of runs, whatever time they take. If dir is not "", a part that is
// done is kept there until all are. With an error come the locks of which a part is done.
func surveyAll(a *frame.App, stop context.Context, locks []*subject.Subject, o survey.Options, runsOf map[string]int, jobs int, dir string) ([]survey.Lock, error) {
	parts := survey.Parts()
	surveys := make([]surveyedLock, len(locks))
	for i, l := range locks {
		s := &surveys[i]
		*s = surveyedLock{lock: l, options: o, parts: make([]survey.Part, len(parts)), problems: make([]error, len(parts))}
		if n, ok := runsOf[l.Name]; ok {
			s.options.Runs, s.options.Seconds = n, 0
		}
	}
	ask := func(s *surveyedLock, part string) (surveyAnswer, error) {
		return surveyKept(stop, surveyTask{s.lock.Name, part, s.options, explore.CurrentVersions()}, dir)
	}
	frame.SideBySide(stop, jobs, len(surveys), func(i int) {
		if s := &surveys[i]; s.options.Seconds > 0 {
			answer, err := ask(s, "")
			if err == nil || errors.As(err, new(*frame.NotKeptError)) { // the parts are not kept, either, and say so
				s.options = answer.Options
			} else {
				s.unfit = err
			}
		}
	})
	frame.SideBySide(stop, jobs, len(surveys)*len(parts), func(i int) {
		s, part := &surveys[i/len(parts)], i%len(parts)
		if part == 0 {
			a.Advance("lock %d of %d: %s", i/len(parts)+1, len(surveys), s.lock.Name)
		}
		if s.unfit == nil {
			var answer surveyAnswer
			answer, s.problems[part] = ask(s, parts[part])
			s.parts[part] = answer.Part
		}
	})
	a.Status("")
	var all []survey.Lock
	var problems []error
	for i := range surveys {
		l, err := surveys[i].sum(parts)
		all, problems = append(all, l), append(problems, err)
	}
	return all, errors.Join(problems...)
}

// surveyedLock is a lock whose survey is under way.
type surveyedLock struct {
	lock     *subject.Subject
	options  survey.Options
	unfit    error         // why the options are not known
	parts    []survey.Part // by the index of the part
	problems []error       // likewise
}

// sum returns the survey of the lock. The error names the parts that are missing, and says why the first of them
// is. Without any part the survey has no name.
func (s *surveyedLock) sum(parts []string) (survey.Lock, error) {
	err := s.unfit
	var missing []string
	var notKept *frame.NotKeptError
	for i, problem := range s.problems {
		if problem == nil || errors.As(problem, &notKept) {
			continue
		}
		missing = append(missing, parts[i])
		s.parts[i] = survey.NotPlayed(parts[i], problem.Error())
		err = cmp.Or(err, problem)
	}
	if err != nil {
		err = fmt.Errorf("survey of %s: %w", strings.Join(append([]string{s.lock.Name}, missing...), ", "), err)
	}
	if notKept != nil {
		err = errors.Join(err, notKept)
	}
	if s.unfit != nil || len(missing) == len(parts) {
		return survey.Lock{}, err
	}
	return survey.Sum(s.lock, s.options.Runs, s.parts), err
}

// printSurvey prints, per lock, the promises that were broken and the cost of an acquire.
func printSurvey(a *frame.App, s survey.Survey, dir string) {
	for _, l := range s.Locks {
		var held []string
		fmt.Fprintf(a.Out, "%s: %s\n", l.Name, l.About)
		fmt.Fprintf(a.Out, "    %s\n", counted.Of(l.Judged(), "run"))
		for _, p := range survey.Promises {
			sum := l.Summary(p.Name)
			switch sum.Word {
			case survey.Held:
				held = append(held, p.Name)
			case survey.NotPromised, survey.NotJudged: // below, with the reasons
			default:
				word := string(sum.Word)
				fmt.Fprintf(a.Out, "    %s %s%s\n", a.Paint(word, fmt.Sprintf("%-9s", word)), p.Name, sum.Where())
			}
		}
		if len(held) > 0 {
			fmt.Fprint(a.Out, report.Wrap("held: "+strings.Join(held, ", "), "    ", 100))
		}
		for _, reason := range l.Reasons() {
			fmt.Fprint(a.Out, report.Wrap(reason, "    ", 100))
		}
		if c := l.Cost; c != (survey.Cost{}) {
			fmt.Fprint(a.Out, report.Wrap(fmt.Sprintf("cost: an acquire takes %s, an unlock %s; a hand-over takes %s in %g ms; ten waiters send %g requests a second",
				exchangeText(c.Acquire), exchangeText(c.Unlock), counted.Of(c.HandOverMessages, "message"), c.HandOverMs, c.TenWaiters), "    ", 100))
		}
		if l.Advice != "" {
			fmt.Fprint(a.Out, report.Wrap(l.Advice, "    ", 100))
		}
		if l.Policy != "" {
			fmt.Fprint(a.Out, report.Wrap("policy: "+l.Policy, "    ", 100))
		}
	}
	if dir != "" {
		fmt.Fprintf(a.Out, "tables and recordings: %s\n", filepath.Join(dir, survey.MarkdownFile))
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
