package bench

import (
	"fmt"
	"slices"
	"time"

	"lockstep/explore"
	"lockstep/internal/nearest"
)

// part is one of the measurements.
type part struct {
	name    string
	measure func(*bench) (section, error)
	asked   bool // it takes hours, and is measured only if Options.Only names it
}

var parts = []part{
	{"step", (*bench).step, false},
	{"schedule", (*bench).schedule, false},
	{"run", (*bench).run, false},
	{"hour", (*bench).hour, false},
	{"workers", (*bench).workers, false},
	{"memory", (*bench).memory, false},
	{"shrinking", (*bench).shrinking, false},
	{"real-time", (*bench).realTime, false},
	{"lock", (*bench).lock, false},
	{"growth", (*bench).growth, false},
	{"worlds", (*bench).worlds, false},
	{"hunt", (*bench).hunt, true},
}

// partNames returns the names of the parts, in order.
func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

// New returns the benchmarks with these settings.
func New(o Options) Benchmarks { return &bench{Options: o} }

// Check implements Benchmarks.
func (b *bench) Check() error {
	for _, name := range b.Only {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("there is no part %q; %s", name, nearest.Known(name, partNames()))
		}
	}
	if b.Rounds < 1 || b.Rounds > 1000 {
		return fmt.Errorf("%d rounds: from 1 to 1000", b.Rounds)
	}
	_, err := readReport(b.Kept)
	return err
}

type bench struct {
	Options
	// earlier has the figures that an earlier call left of the part that is measured now; nil: none.
	earlier *measurement
	// keep keeps what is measured so far of the part that is measured now. It may be nil.
	keep func(section, []hunted) error
	// once plays a hunt; nil: huntAway. Tests set it.
	once func(bugs []quarry, name string, seed uint64, limit time.Duration) ([]huntEnd, error)
	// hunter plays the hunts of the lock that is hunted now; nil: it is not started.
	hunter *hunter
}

// count returns n, or a small part of n if Quick is set.
func (b *bench) count(n int) int {
	if b.Quick {
		return max(2, n/20)
	}
	return n
}

// section is the part of the report about one measurement. It has exported fields because
// the data beside the page keep it.
type section struct {
	Title string     `json:"title"`
	Text  []string   `json:"text,omitempty"` // paragraphs
	Head  []string   `json:"head,omitempty"`
	Rows  [][]string `json:"rows,omitempty"`
	After []string   `json:"after,omitempty"` // paragraphs below the table
	Goals []goal     `json:"goals,omitempty"`
}

func (s *section) row(cells ...string) { s.Rows = append(s.Rows, cells) }

// unmeasured returns the section of a part that could not be measured.
func (s section) unmeasured(why string) section {
	s.After = append(s.After, "Not measured: "+why+".")
	return s
}

// goal is a figure with the value that is wanted of it.
type goal struct {
	What     string `json:"what"`
	Wanted   string `json:"wanted"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
	Short    string `json:"short,omitempty"` // by how much, and where the time goes, where it is not met
}

// atLeast and atMost return the goal that a number reaches a bound.
func atLeast(what string, wanted, got float64, measured, why string) goal {
	return goal{what, "at least " + digits(wanted), measured, got >= wanted, fmt.Sprintf("%.0f %% short. %s", 100*(1-got/wanted), why)}
}

func atMost(what string, wanted, got float64, unit, measured, why string) goal {
	return goal{what, "at most " + digits(wanted) + unit, measured, got <= wanted, fmt.Sprintf("%.0f %% over. %s", 100*(got/wanted-1), why)}
}

// chosen returns the parts to measure, in order.
func (b *bench) chosen() []part {
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool {
		return !slices.Contains(b.Only, p.name) && (len(b.Only) > 0 || p.asked)
	})
}

// Run implements Benchmarks.
func (b *bench) Run(each func(Report) error) error {
	if err := b.Check(); err != nil {
		return err
	}
	r, err := readReport(b.Kept)
	if err != nil {
		return err
	}
	r.command = b.Command
	for _, p := range b.chosen() {
		if b.Progress != nil {
			b.Progress(p.name)
		}
		m := measurement{Part: p.name, Command: b.Command, Begun: time.Now().UTC(), Versions: explore.CurrentVersions(), Machine: machine(), Quick: b.Quick, Rounds: b.Rounds}
		m.Loads[0] = load()
		spent := time.Duration(0) // by an earlier call
		if b.earlier = r.unfinished(m); b.earlier != nil {
			m.Begun, m.Loads[0], spent = b.earlier.Begun, b.earlier.Loads[0], b.earlier.Took
		}
		begun := time.Now()
		keep := func(s section, all []hunted, unfinished bool) error {
			m.Section, m.Hunted, m.Unfinished = s, all, unfinished
			m.Took, m.Loads[1] = spent+time.Since(begun), load()
			r.put(m)
			return each(r)
		}
		b.keep = func(s section, all []hunted) error { return keep(s, all, true) }
		s, err := p.measure(b)
		if err == nil {
			err = keep(s, m.Hunted, false)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
