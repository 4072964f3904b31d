package explore

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"lockstep/explore/draw"
	"lockstep/internal/foreign"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A Repetition says which runs of a lock are played twice: each registered scenario that names
// the lock, with each of the seeds, and drawn runs with all faults on the profile full. Each is
// drawn anew, so that one that differs makes no other differ.
type Repetition struct {
	Lock      string `json:"lock"`
	SeedFirst uint64 `json:"seed_first"`
	SeedLast  uint64 `json:"seed_last"`
	Drawn     int    `json:"drawn"`
}

// Repeatable is a run of a Repetition. Scenario is its name for people, and "" for a drawn run.
type Repeatable struct {
	Scenario string `json:"scenario,omitempty"`
	Seed     uint64 `json:"seed"`
	// Index is the number of a drawn run.
	Index  int    `json:"index"`
	Digest string `json:"digest"` // of its record
}

// name returns the name of the run for people.
func (r Repeatable) name() string {
	if r.Scenario == "" {
		return fmt.Sprintf("drawn run %d", r.Index)
	}
	return fmt.Sprintf("%s, seed %d", r.Scenario, r.Seed)
}

// plan returns the plan of the drawn runs.
func (r Repetition) plan() Plan {
	return Plan{World: sim.Version, Lock: r.Lock, Faults: slices.Clone(draw.Classes), Profile: draw.Full, Strategy: StrategyPlain, Seed: r.SeedFirst, Runs: r.Drawn}
}

// each calls f with each run and its scenario.
func (r Repetition) each(l *subject.Subject, f func(Repeatable, *scenarios.Scenario) error) error {
	all, err := scenarios.All()
	if err != nil {
		return err
	}
	for _, sc := range all {
		if !slices.Contains(sc.Locks, l.Name) || play.Applies(sc, l) != nil {
			continue
		}
		for seed := r.SeedFirst; ; seed++ { // SeedLast may be the largest number
			if err := f(Repeatable{Scenario: sc.ShortName(), Seed: seed}, sc); err != nil {
				return err
			}
			if seed == r.SeedLast {
				break
			}
		}
	}
	plan := r.plan()
	for i := range r.Drawn {
		seed, sc := plan.Draw(i, l)
		if err := f(Repeatable{Seed: seed, Index: i}, sc); err != nil {
			return err
		}
	}
	return nil
}

// Play plays each run once and returns the runs with their digests.
func (r Repetition) Play(h *sim.Host, l *subject.Subject) (all []Repeatable, err error) {
	err = r.each(l, func(one Repeatable, sc *scenarios.Scenario) error {
		rec := play.Play(h, sc, l, sim.NewSeeded(one.Seed)).Record
		if why := rec.Unstarted(); why != "" {
			return errors.New(why)
		}
		one.Digest = rec.Digest()
		all = append(all, one)
		return nil
	})
	return all, err
}

// Explain plays each of these runs again until two records differ, and returns per run
// where they do, and whose code made the difference. The text is "" for a run whose records
// are the same every time.
func (r Repetition) Explain(h *sim.Host, l *subject.Subject, runs []Repeatable) ([]string, error) {
	why := make([]string, len(runs))
	err := r.each(l, func(one Repeatable, sc *scenarios.Scenario) error {
		i := slices.IndexFunc(runs, func(other Repeatable) bool { return other.name() == one.name() })
		if i >= 0 {
			why[i] = play.Explain(h, sc, l, func() sim.Chooser { return sim.NewSeeded(one.Seed) })
		}
		return nil
	})
	return why, err
}

// Repeated says how a lock repeats.
type Repeated struct {
	Lock string `json:"lock"`
	// Stories and Drawn are the numbers of runs of scenarios, and of drawn ones. Of each,
	// the second number counts those that differ.
	Stories [2]int `json:"stories"`
	Drawn   [2]int `json:"drawn"`
	// Differing are the runs that differ, as they were played first.
	Differing []Repeatable `json:"differing,omitempty"`
	Digests   []string     `json:"digests,omitempty"` // of the same runs, played again
	Why       []string     `json:"why,omitempty"`     // of each; "": not known

	NotPlayed string `json:"-"` // why there are no runs; "": there are
}

// Compare compares two plays of a Repetition. It returns an error if they are not of the same
// runs, which happens when a run draws another scenario.
func Compare(lock string, once, again []Repeatable) (out Repeated, err error) {
	out.Lock = lock
	if len(once) != len(again) {
		return out, fmt.Errorf("%s: %d runs, and %d when they are played again", lock, len(once), len(again))
	}
	for i, a := range once {
		b := again[i]
		if a.name() != b.name() || a.Seed != b.Seed {
			return out, fmt.Errorf("%s: run %d is %s, and %s when it is played again", lock, i, a.name(), b.name())
		}
		count := &out.Stories
		if a.Scenario == "" {
			count = &out.Drawn
		}
		count[0]++
		if a.Digest != b.Digest {
			count[1]++
			out.Differing, out.Digests = append(out.Differing, a), append(out.Digests, b.Digest)
		}
	}
	return out, nil
}

// whysShown is the number of differing runs of a lock of which WriteRepeatability says where their
// records differ. Hundreds of runs may differ for one reason.
const whysShown = 5

// WriteRepeatability writes for people how locks repeat. command wrote it, and how says in a
// sentence what the two plays of a run are.
func WriteRepeatability(w io.Writer, command, how string, all []Repeated) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- written by: %s -->\n%s# Repeatability\n\nWritten by `%s`. %s\n\n", command, CurrentVersions().Recorded().Comment(), command, how)
	b.WriteString("| lock | runs of scenarios | that differ | drawn runs | that differ |\n|---|---|---|---|---|\n")
	var sum Repeated
	for _, r := range all {
		if why, _, _ := strings.Cut(r.NotPlayed, "\n"); why != "" {
			fmt.Fprintf(&b, "| `%s` | not played: %s | | | |\n", r.Lock, foreign.Cell(why))
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d | %d |\n", r.Lock, r.Stories[0], r.Stories[1], r.Drawn[0], r.Drawn[1])
		for i := range 2 {
			sum.Stories[i] += r.Stories[i]
			sum.Drawn[i] += r.Drawn[i]
		}
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | %d |\n", sum.Stories[0], sum.Stories[1], sum.Drawn[0], sum.Drawn[1])
	for _, r := range all {
		for i, one := range r.Differing {
			if i == 0 {
				fmt.Fprintf(&b, "\n## %s\n", r.Lock)
			}
			fmt.Fprintf(&b, "\n%s: %.12s and %.12s.", one.name(), one.Digest, r.Digests[i])
			if one.Scenario == "" {
				fmt.Fprintf(&b, " Its seed is %d.", one.Seed)
			}
			switch {
			case i >= whysShown:
				b.WriteString("\n")
			case i < len(r.Why) && r.Why[i] != "":
				fmt.Fprintf(&b, "\n\n```text\n%s\n```\n", r.Why[i])
			default:
				b.WriteString(" The same process does not show the difference in eleven plays.\n")
			}
			if i == whysShown-1 && len(r.Differing) > whysShown {
				b.WriteString("\nWhere the records of the others differ is left out.\n")
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
