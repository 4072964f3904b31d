package redisson

import (
	"slices"
	"strings"
	"testing"

	"lockstep/lockimpl/internal/luatest"
)

// equivalents are mutants that do what the original does, with the reason.
var equivalents = []struct{ script, line, change, why string }{
	{"fair_acquire_scored_last", "local deadline = last and last ~= ARGV[2] and redis.call('zscore', KEYS[3], last)", `"3" for "2"`,
		"whether the last waiter is the caller does not matter: a caller with a deadline was answered above, and one without has none to read here"},
}

// Each change of each script is told from the original by some state of the
// table: a script in which one thing is wrong fails TestGoldenAnswersOfScripts.
func TestNoMutantOfAScriptSurvivesTheTableOfStates(t *testing.T) {
	mini, kept := miniStage(t), golden(t)
	mutants, played := 0, 0
	excused := make([]bool, len(equivalents))
	for _, s := range distinctScripts() {
		cases := casesOf(t, s)
		for _, m := range luatest.Mutants(s.Text) {
			mutants++
			killer := slices.IndexFunc(cases, func(c scriptCase) bool {
				played++
				return mini.play(t, m.Text, c).text(exact) != kept[variant(s)][c.what]
			})
			if killer >= 0 { // what told this one may tell the next
				c := cases[killer]
				cases = slices.Insert(slices.Delete(cases, killer, killer+1), 0, c)
				continue
			}
			e := slices.IndexFunc(equivalents, func(e struct{ script, line, change, why string }) bool {
				return strings.HasPrefix(s.Name, e.script) && strings.HasSuffix(m.What, ": "+e.line) && strings.Contains(m.What, ", "+e.change)
			})
			if e < 0 {
				t.Errorf("%s: no state tells this mutant: %s", variant(s), m.What)
				continue
			}
			excused[e] = true
		}
	}
	for i, e := range equivalents {
		if !excused[i] {
			t.Errorf("no mutant survives as equivalent: %+v", e)
		}
	}
	t.Logf("%d mutants, %d runs", mutants, played)
}
