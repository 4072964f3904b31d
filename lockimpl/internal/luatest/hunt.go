package luatest

import (
	"slices"
	"strings"
	"testing"
)

// Equivalent names mutants that do the same as the original. Script and Change may list several
// prefixes of names or changes, separated by bars.
type Equivalent struct {
	Scripts string
	Line    string // the whole line
	Change  string // none: any
	Why     string
}

// matches reports whether the mutant of a script is one of these.
func (e Equivalent) matches(script string, m Mutant) bool {
	begins := func(either, text string) bool {
		return slices.ContainsFunc(strings.Split(either, "|"), func(one string) bool { return strings.HasPrefix(text, one) })
	}
	_, change, _ := strings.Cut(strings.TrimSuffix(m.What, ": "+e.Line), ", ")
	return begins(e.Scripts, script) && strings.HasSuffix(m.What, ": "+e.Line) && begins(e.Change, change)
}

// Hunt distinguishes the mutants of scripts from the originals by cases.
type Hunt[C any] struct {
	T           *testing.T
	Equivalents []Equivalent
	// An equivalent mutant is played in one of Every cases, to check that it is equivalent; 0 means
	// 1.
	Every int
	// Sample n takes every n-th mutant; 0 takes all. A sample need not contain every equivalent.
	Sample int

	excused         []bool
	mutants, played int
}

// Script fails the test for every mutant of a script that no case detects, and for every equivalent
// mutant that a case detects. differs plays a mutant's text in a case.
func (h *Hunt[C]) Script(name, text string, cases []C, differs func(mutant string, c C) bool) {
	h.T.Helper()
	if h.excused == nil {
		h.excused = make([]bool, len(h.Equivalents))
	}
	cases = slices.Clone(cases)
	for i, m := range Mutants(text) {
		if h.Sample > 1 && i%h.Sample > 0 {
			continue
		}
		h.mutants++
		e, step := slices.IndexFunc(h.Equivalents, func(e Equivalent) bool { return e.matches(name, m) }), 1
		if e >= 0 {
			h.excused[e], step = true, max(h.Every, 1)
		}
		killer := -1
		for i := 0; i < len(cases) && killer < 0; i += step {
			h.played++
			if differs(m.Text, cases[i]) {
				killer = i
			}
		}
		switch {
		case killer >= 0 && e >= 0:
			h.T.Errorf("%s: it is no equivalent: %s", name, m.What)
		case killer >= 0: // the case that detected this mutant may detect the next
			c := cases[killer]
			cases = slices.Insert(slices.Delete(cases, killer, killer+1), 0, c)
		case e < 0:
			h.T.Errorf("%s: no case tells this mutant: %s", name, m.What)
		}
	}
}

// End fails the test for every Equivalent that matched no mutant.
func (h *Hunt[C]) End() {
	h.T.Helper()
	for i, e := range h.Equivalents {
		if h.Sample <= 1 && (h.excused == nil || !h.excused[i]) {
			h.T.Errorf("no mutant is this equivalent: %+v", e)
		}
	}
	h.T.Logf("%d mutants, %d runs", h.mutants, h.played)
}
