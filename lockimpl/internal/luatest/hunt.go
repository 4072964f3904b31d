package luatest

import (
	"slices"
	"strings"
	"testing"
)

// Equivalent says which mutants do what the original does. Of scripts and changes
// there may be several, with a bar between; each is how a name or a change begins.
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

// Hunt tells the mutants of scripts from their originals, by cases.
type Hunt[C any] struct {
	T           *testing.T
	Equivalents []Equivalent
	// Every is how many cases there are for one in which an equivalent is played, to
	// see that it is one; 0 is 1.
	Every int
	// Sample n takes every n-th mutant; 0 takes all. A sample need not contain every equivalent.
	Sample int

	excused         []bool
	mutants, played int
}

// Script fails the test for every mutant of a script that no case tells, and for
// every equivalent that one does. differs plays a mutant's text in a case.
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
		case killer >= 0: // what told this one may tell the next
			c := cases[killer]
			cases = slices.Insert(slices.Delete(cases, killer, killer+1), 0, c)
		case e < 0:
			h.T.Errorf("%s: no case tells this mutant: %s", name, m.What)
		}
	}
}

// End fails the test for every Equivalent that there was none of.
func (h *Hunt[C]) End() {
	h.T.Helper()
	for i, e := range h.Equivalents {
		if h.Sample <= 1 && (h.excused == nil || !h.excused[i]) {
			h.T.Errorf("no mutant is this equivalent: %+v", e)
		}
	}
	h.T.Logf("%d mutants, %d runs", h.mutants, h.played)
}
