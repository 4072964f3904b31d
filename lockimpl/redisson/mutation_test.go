package redisson

import (
	"testing"

	"lockstep/internal/longtest"
	"lockstep/lockimpl/internal/luatest"
)

var equivalents = []luatest.Equivalent{
	{Scripts: "fair_acquire_scored_last", Line: "local deadline = last and last ~= ARGV[2] and redis.call('zscore', KEYS[3], last)", Change: `"3" for "2"`,
		Why: "whether the last waiter is the caller does not matter: a caller with a deadline was answered above, and one without has none to read here"},
}

// Some state of the table distinguishes each mutant of each script from the original, so a script
// with one mistake fails TestGoldenAnswersOfScripts.
func TestNoMutantOfAScriptSurvivesTheTableOfStates(t *testing.T) {
	mini, kept := miniStage(t), golden(t)
	hunt := luatest.Hunt[scriptCase]{T: t, Equivalents: equivalents}
	if !longtest.Asked() { // miniredis keeps each text for ever, and each garbage collection scans it
		hunt.Sample = 25
		t.Logf("one mutant of %d; LOCKSTEP_LONG=1 plays all", hunt.Sample)
	}
	for _, s := range distinctScripts() {
		hunt.Script(variant(s), s.Text, casesOf(t, s), func(mutant string, c scriptCase) bool {
			return mini.play(t, mutant, c).text(exact) != kept[variant(s)][c.what]
		})
	}
	hunt.End()
}
