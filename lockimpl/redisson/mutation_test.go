package redisson

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mutant is a script with one thing changed.
type mutant struct {
	what string // the line and the change
	text string
}

// tokens of Lua, as far as the scripts use it. Comments and strings are
// tokens, so that nothing is changed inside them.
var luaToken = regexp.MustCompile(`--[^\n]*|'[^']*'|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|==|~=|<=|>=|\.\.|\S`)

var turnedRound = map[string][]string{
	"==": {"~="}, "~=": {"=="}, ">": {"<=", ">="}, "<": {">=", "<="}, ">=": {"<", ">"}, "<=": {">", "<"},
	"and": {"or"}, "or": {"and"}, "not": {""}, "true": {"false"}, "false": {"true"}, "+": {"-"},
}

// mutantsOf changes a script once at every place: a line deleted, a comparison
// turned round or moved by one, and and or, true and false swapped, a not or a minus dropped,
// a sum made a difference, a number one greater.
func mutantsOf(text string) (all []mutant) {
	start := 0
	for i, line := range strings.SplitAfter(text, "\n") {
		code := strings.TrimSpace(line)
		if code != "" && !strings.HasPrefix(code, "--") {
			add := func(what, changed string) {
				all = append(all, mutant{fmt.Sprintf("line %d, %s: %s", i+1, what, code), text[:start] + changed + text[start+len(line):]})
			}
			add("deleted", "\n")
			for _, at := range luaToken.FindAllStringIndex(line, -1) {
				token := line[at[0]:at[1]]
				changes := turnedRound[token]
				if n, err := strconv.Atoi(token); err == nil {
					changes = []string{strconv.Itoa(n + 1)}
				}
				if token == "-" {
					changes = []string{""} // a sign
					if line[at[1]] == ' ' {
						changes = []string{"+"} // a difference
					}
				}
				for _, instead := range changes {
					add(fmt.Sprintf("%q for %q at column %d", instead, token, at[0]+1), line[:at[0]]+instead+line[at[1]:])
				}
			}
		}
		start += len(line)
	}
	return all
}

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
		for _, m := range mutantsOf(s.Text) {
			mutants++
			killer := slices.IndexFunc(cases, func(c scriptCase) bool {
				played++
				return mini.play(t, m.text, c).text(exact) != kept[variant(s)][c.what]
			})
			if killer >= 0 { // what told this one may tell the next
				c := cases[killer]
				cases = slices.Insert(slices.Delete(cases, killer, killer+1), 0, c)
				continue
			}
			e := slices.IndexFunc(equivalents, func(e struct{ script, line, change, why string }) bool {
				return strings.HasPrefix(s.Name, e.script) && strings.HasSuffix(m.what, ": "+e.line) && strings.Contains(m.what, ", "+e.change)
			})
			if e < 0 {
				t.Errorf("%s: no state tells this mutant: %s", variant(s), m.what)
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

// The changes are what they say: on a script of one line of each sort.
func TestMutantsOf(t *testing.T) {
	var got []string
	const text = "-- a comment == 1\nif not (a == 0 and -1 > b - c) then\n    call('x == 1', KEYS[1])\nend\n"
	for _, m := range mutantsOf(text) {
		got = append(got, strings.ReplaceAll(m.text, "\n", "|"))
	}
	same(t, "mutants", got, []string{
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
	})
}
