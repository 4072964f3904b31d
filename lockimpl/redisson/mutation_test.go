package redisson

import (
	"slices"
	"strings"
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

// On a script of one line of each kind, each mutant of luatest has the change that it names.
func TestTheMutantsOfALineOfEachKind(t *testing.T) {
	var got []string
	const text = "-- a comment == 1\nif not (a == 0 and -1 > b - c) then\n    call('x == 1', KEYS[1])\nend\n"
	for _, m := range luatest.Mutants(text) {
		got = append(got, strings.ReplaceAll(m.Text, "\n", "|"))
	}
	want := []string{
		"-- a comment == 1||    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if  (a == 0 and -1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a ~= 0 and -1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 1 and -1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 or -1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and 1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -2 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -1 <= b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -1 >= b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -1 > b + c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -1 > b - c) then||end|",
		"-- a comment == 1|if not (a == 0 and -1 > b - c) then|    call('x == 1', KEYS[2])|end|",
		"-- a comment == 1|if not (a == 0 and -1 > b - c) then|    call('x == 1', KEYS[1])||",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
