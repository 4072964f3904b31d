package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/survey"
	"lockstep/scenarios/subject"
)

// toSurveyAgain reads the survey of a folder and checks that some of its locks can be surveyed
// again.
func toSurveyAgain(names []string, dir string) (survey.Survey, error) {
	if dir == "" {
		return survey.Survey{}, errors.New("--again needs --out, the folder of the survey")
	}
	s, v, err := OpenSurvey(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, fmt.Errorf("--again: there is no survey in %s", dir)
	case err != nil:
		return s, err
	}
	kept, err := SurveyLocks(s, names...)
	if err != nil {
		return s, fmt.Errorf("--again: %w", err)
	}
	now := explore.CurrentVersions()
	d := v.Raised(now, kept...).Difference(now)
	if missing := v.Missing(now); missing != "" {
		d = "without the version of: " + missing
	}
	if d != "" {
		return s, fmt.Errorf("--again: another program wrote %s (%s); survey all locks", filepath.Join(dir, survey.LocksFile), d)
	}
	for _, name := range names {
		if !slices.ContainsFunc(s.Locks, func(l survey.Lock) bool { return l.Name == name }) {
			return s, fmt.Errorf("--again %s: the survey in %s does not have it", name, dir)
		}
		if _, err := FindSimulated(name); err != nil {
			return s, err
		}
	}
	return s, nil
}

// surveyTables writes the tables of a survey anew, with costs after it has measured the costs of its
// locks anew. The tables say which program played the survey.
func surveyTables(a *frame.App, in frame.Invocation, dir string, costs bool) (int, error) {
	option, plays := "--tables", "nothing"
	if costs {
		option, plays = "--costs", "no schedules"
	}
	var others []string
	in.Given.Visit(func(f *pflag.Flag) {
		if "--"+f.Name != option && f.Name != "out" && f.Name != "quiet" {
			others = append(others, "--"+f.Name)
		}
	})
	switch {
	case dir == "":
		return 0, frame.Usagef("survey: %s needs --out, the folder of the survey", option)
	case len(others) > 0:
		return 0, frame.Usagef("survey: %s plays %s, and takes no %s", option, plays, strings.Join(others, ", "))
	}
	s, v, err := OpenSurvey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: there is no survey in %s", option, dir)
	}
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("survey: %w", err))
	}
	release, err := a.Folder(dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("survey: %w", err))
	}
	defer release()
	s.Versions = v
	if costs {
		if err := measureCosts(a, dir, s); err != nil {
			return 0, err
		}
	}
	return frame.ExitOK, writeSurveyTables(a, dir, s)
}

// measureCosts measures the costs of all locks of a survey, and writes its data.
func measureCosts(a *frame.App, dir string, s survey.Survey) error {
	for i := range s.Locks {
		l := &s.Locks[i]
		known, err := subject.Find(l.Name)
		if err != nil {
			return frame.Usage(fmt.Errorf("survey: %w", err))
		}
		a.Advance("lock %d of %d: %s", i+1, len(s.Locks), l.Name)
		if l.Cost, err = survey.Measure(a.Host, known); err != nil {
			return err
		}
	}
	a.Status("")
	return writeSurveyData(dir, s)
}

// fixedByASurvey are the options that --again takes from the survey.
var fixedByASurvey = []string{"lock", "runs", "seed", "seconds"}

// surveyAgain surveys some locks of a survey again, each with as many runs as it had, or as runsOf
// says. The other locks stay as they are.
func surveyAgain(a *frame.App, stop context.Context, s *survey.Survey, names []string, runsOf map[string]int, jobs int, dir string) error {
	var locks []*subject.Subject
	runs := map[string]int{}
	for i := range s.Locks {
		l := &s.Locks[i]
		if !slices.Contains(names, l.Name) {
			var err error
			if l.Recordings, err = readRecordings(dir, l); err != nil {
				return err
			}
			continue
		}
		known, err := subject.Find(l.Name)
		if err != nil {
			return err
		}
		locks = append(locks, known)
		runs[l.Name] = cmp.Or(runsOf[l.Name], l.Runs)
	}
	again, err := surveyAll(a, stop, locks, s.Options, runs, jobs, dir)
	for _, l := range again {
		if i := slices.IndexFunc(s.Locks, func(old survey.Lock) bool { return old.Name == l.Name }); i >= 0 {
			s.Locks[i] = l
		}
	}
	return err
}
