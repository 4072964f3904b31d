package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockstep/bench/command"
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
func New(o command.Options) command.Benchmarks { return &bench{o} }

// Check implements command.Benchmarks.
func (b *bench) Check() error {
	for _, name := range b.Only {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("there is no part %q; %s", name, nearest.Known(name, partNames()))
		}
	}
	if b.Rounds < 1 || b.Rounds > 1000 {
		return fmt.Errorf("%d rounds: from 1 to 1000", b.Rounds)
	}
	return nil
}

type bench struct{ command.Options }

// count returns n, or a small part of n if Quick is set.
func (b *bench) count(n int) int {
	if b.Quick {
		return max(2, n/20)
	}
	return n
}

// section is the part of the report about one measurement.
type section struct {
	title string
	text  []string // paragraphs
	head  []string
	rows  [][]string
	after []string // paragraphs below the table
	goals []goal
}

func (s *section) row(cells ...string) { s.rows = append(s.rows, cells) }

// unmeasured returns the section of a part that could not be measured.
func (s section) unmeasured(why string) section {
	s.after = append(s.after, "Not measured: "+why+".")
	return s
}

// goal is a figure with the value that is wanted of it.
type goal struct {
	what, wanted, measured string
	met                    bool
	short                  string // by how much, and where the time goes, where it is not met
}

// atLeast and atMost return the goal that a number reaches a bound.
func atLeast(what string, wanted, got float64, measured, why string) goal {
	return goal{what, "at least " + digits(wanted), measured, got >= wanted, fmt.Sprintf("%.0f %% short. %s", 100*(1-got/wanted), why)}
}

func atMost(what string, wanted, got float64, unit, measured, why string) goal {
	return goal{what, "at most " + digits(wanted) + unit, measured, got <= wanted, fmt.Sprintf("%.0f %% over. %s", 100*(got/wanted-1), why)}
}

// report holds what was measured, as a document.
type report struct {
	begun, ended time.Time
	loads        [2]string // before and after
	machine      []string
	quick        bool
	rounds       int
	sections     []section
	missing      []string // parts that were not reached yet
}

// chosen returns the parts to measure, in order.
func (b *bench) chosen() []part {
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool {
		return !slices.Contains(b.Only, p.name) && (len(b.Only) > 0 || p.asked)
	})
}

// Run implements command.Benchmarks.
func (b *bench) Run(each func(command.Report) error) error {
	if err := b.Check(); err != nil {
		return err
	}
	r := &report{begun: time.Now(), machine: machine(), quick: b.Quick, rounds: b.Rounds}
	r.loads[0] = load()
	chosen := b.chosen()
	for i, p := range chosen {
		if b.Progress != nil {
			b.Progress(p.name)
		}
		s, err := p.measure(b)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		r.sections = append(r.sections, s)
		r.ended, r.loads[1] = time.Now(), load()
		r.missing = nil
		for _, later := range chosen[i+1:] {
			r.missing = append(r.missing, later.name)
		}
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

// Write implements command.Report.
func (r *report) Write(w io.Writer, again string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- written by: %s -->\n# What it costs\n\nWritten by `%s` in %v, %d rounds. ", again, again, r.ended.Sub(r.begun).Round(time.Second), r.rounds)
	b.WriteString("What is compared was measured in turn, in this one call; figures are medians of the rounds, ratios medians of the ratios within a round, " +
		"with the least and the greatest behind them. Processor time, unless a column says otherwise. [docs/performance.md](../docs/performance.md) says where it goes.\n\n")
	for _, line := range r.machine {
		fmt.Fprintf(&b, "* %s\n", line)
	}
	fmt.Fprintf(&b, "* load of the machine before and after (1 minute; what this call runs itself is in the second): %s, %s\n", r.loads[0], r.loads[1])
	if r.quick {
		b.WriteString("\n**Measured with --quick: good for a look, too little for a comparison.**\n")
	}
	if len(r.missing) > 0 {
		fmt.Fprintf(&b, "\n**Stopped before %s.**\n", strings.Join(r.missing, ", "))
	}
	var goals [][]string
	for _, s := range r.sections {
		for _, g := range s.goals {
			verdict := "met"
			if !g.met {
				verdict = "**not met**: " + g.short
			}
			goals = append(goals, []string{g.what, g.wanted, g.measured, verdict})
		}
	}
	if len(goals) > 0 {
		b.WriteString("\n## Goals\n\n")
		grid(&b, []string{"figure", "goal", "measured", ""}, goals)
	}
	for _, s := range r.sections {
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, p := range s.text {
			fmt.Fprintf(&b, "\n%s\n", p)
		}
		if len(s.rows) > 0 {
			b.WriteString("\n")
			grid(&b, s.head, s.rows)
		}
		for _, p := range s.after {
			fmt.Fprintf(&b, "\n%s\n", p)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func grid(b *strings.Builder, head []string, rows [][]string) {
	line := func(cells []string) {
		escaped := make([]string, len(cells))
		for i, c := range cells {
			escaped[i] = strings.ReplaceAll(cmp.Or(c, " "), "|", "\\|")
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(escaped, " | "))
	}
	line(head)
	fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", len(head)))
	for _, row := range rows {
		line(row)
	}
}
