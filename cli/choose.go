package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"lockstep/cli/frame"
	"lockstep/internal/input"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// Choose returns the pairs to run. It finds unknown names before anything is run.
func Choose(names []string, tag string, locks []string, seeds string) ([]*Pair, error) {
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
			return nil, frame.Usagef("no built-in scenario names a lock of this program; name a scenario, or the file of one")
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
	on, err := FindLocks(locks)
	if err != nil {
		problems = append(problems, err)
	}
	var from, to uint64
	if seeds != "" {
		var err error
		if from, to, err = frame.SeedRange("--seed", seeds); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) > 0 {
		return nil, frame.Usage(errors.Join(problems...))
	}
	var pairs []*Pair
	for _, sc := range chosen {
		these := on
		if len(these) == 0 {
			var err error
			if these, err = ownLocks(sc); err != nil {
				problems = append(problems, err)
			}
		}
		for _, l := range these {
			if tag != "" && len(on) > 0 {
				if first, err := subject.Find(sc.Locks[0]); err != nil || first.Fair != l.Fair {
					continue // a fair lock plays only the scenarios about fair locks, and vice versa
				}
			}
			p := &Pair{Scenario: sc, Lock: l, From: sc.SeedFirst, To: sc.SeedLast}
			if seeds != "" {
				p.From, p.To = from, to
			}
			if p.some() && p.To-p.From >= scenarios.SeedsOfSome {
				problems = append(problems, fmt.Errorf("--seed %s: %s expects its outcome on %s of one seed, and the verdicts of all seeds wait for it in memory: at most %d seeds", seeds, sc.Name, l.Name, scenarios.SeedsOfSome))
			}
			pairs = append(pairs, p)
		}
	}
	if len(problems) > 0 {
		return nil, frame.Usage(errors.Join(problems...))
	}
	return pairs, nil
}

// ownLocks returns the locks that a scenario names. The error names each to which it does not apply.
func ownLocks(sc *scenarios.Scenario) (locks []*subject.Subject, err error) {
	if len(sc.Locks) == 0 {
		err = fmt.Errorf("this program has none of the locks that the built-in scenario %s names; name one of its own with --lock, or import locktest/redistest, which has them", sc.Name)
	}
	for _, name := range sc.Locks {
		l, unknown := subject.Find(name)
		if unknown != nil {
			return nil, errors.Join(err, unknown)
		}
		err = errors.Join(err, play.Applies(sc, l))
		locks = append(locks, l)
	}
	return locks, err
}

// findScenario finds a scenario by its name or file, or returns an error that says which other kind
// of file it is.
func findScenario(name string) (*scenarios.Scenario, error) {
	sc, err := scenarios.Find(name)
	var unread *scenarios.FileError
	if !errors.As(err, &unread) {
		return sc, err
	}
	if text := input.Head(name); text != nil && !scenarioHead.Match(text) {
		err = kindOf(name, text, err)
	}
	return nil, err
}

// kindOf returns an error that names the command for a file that was given to another command, or err if no
// command reads such a file.
func kindOf(file string, text []byte, err error) error {
	switch {
	case play.IsRecording(text):
		return fmt.Errorf("%s is a recording; %s plays it", file, frame.Command("replay", file))
	case play.IsLive(text):
		return fmt.Errorf("%s is a live run; %s draws it", file, frame.Command("report", file))
	case scenarioHead.Match(text):
		return fmt.Errorf("%s is a scenario; %s plays it", file, frame.Command("run", file))
	}
	return err
}

// scenarioHead matches the line with which a scenario file begins, after comments.
var scenarioHead = regexp.MustCompile(`\A(?:[ \t]*(?:#.*)?\n)*lockstep:`)

// FindLocks returns the locks of these names, each once.
func FindLocks(names []string) (found []*subject.Subject, err error) {
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

// FindSimulated finds a lock that runs in a simulated world.
func FindSimulated(name string) (*subject.Subject, error) {
	l, err := subject.Find(name)
	if err == nil && l.Port != nil {
		err = fmt.Errorf("%s runs on real servers only (%s live); %s stands for it in a simulated world", l.Name, frame.Simrun(), l.Port.Name)
	}
	return l, err
}

// commandToReplay returns the command that plays a run again.
func commandToReplay(v play.Verdict) string {
	return frame.Command(playAgainArgs(v)...)
}

func playAgainArgs(v play.Verdict) []string {
	return []string{"run", v.Scenario.ShortName(), "--lock", v.Lock.Name, "--seed", strconv.FormatUint(v.Seed, 10)}
}
