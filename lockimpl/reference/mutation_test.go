package reference

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/lockimpl/internal/luatest"
)

// equivalents are mutants that do what the original does, with the reason: of
// some scripts, or of the plain lock's; of one line; and of some changes or all.
var equivalents = []struct {
	scripts, of, line, change, why string
}{
	{"unlock force_unlock leave", "", "local stamp = time[1] * 1000000 + time[2]", `deleted|"2" for "1"|"1000001"|"-" for "+"`, "only an acquire draws a token"},
	{"force_unlock", "", "local owner, number = ARGV[1], tonumber(ARGV[2])", `"2" for "1"`, "it frees the lock whoever asks"},
	{"unlock force_unlock leave", "plain", "local head", "", "nobody queues for the plain lock"},
	{"acquire", "plain", "if not holder and (not head or head == owner) then", `"~=" for "=="`, "nobody queues for the plain lock"},
	{"acquire", "plain", "redis.call('zrem', KEYS[5], owner)", "", "nobody queues for the plain lock"},
	{"acquire", "plain", "redis.call('lrem', KEYS[4], 0, owner)", "", "nobody queues for the plain lock"},
	{"acquire", "", "if redis.call('pttl', KEYS[1]) < lease then", `"<=" for "<"`, "it sets the time to live that there is"},
	{"acquire", "", "if redis.call('pttl', key) < place then", `"<=" for "<"`, "it sets the time to live that there is"},
	{"renew", "", "if redis.call('pttl', KEYS[1]) < tonumber(ARGV[3]) then", `"<=" for "<"`, "it sets the time to live that there is"},
	{"unlock", "", "if now + redis.call('pttl', KEYS[1]) > tonumber(ARGV[5]) then", `">=" for ">"`, "it sets the time to live that there is"},
	{"acquire", "", "local last = tonumber(redis.call('get', KEYS[3]) or 0)", `"1" for "0"`, "the clock is later than either"},
}

// equivalent is which of them a mutant of a script is; -1 for none.
func equivalent(s script, fair bool, m luatest.Mutant) int {
	return slices.IndexFunc(equivalents, func(e struct{ scripts, of, line, change, why string }) bool {
		return slices.Contains(strings.Fields(e.scripts), s.name) && !(e.of == "plain" && fair) &&
			strings.HasSuffix(m.What, ": "+e.line) &&
			slices.ContainsFunc(strings.Split(e.change, "|"), func(change string) bool { return strings.Contains(m.What, ", "+change) })
	})
}

// loop is one that a mutant may never leave.
var loop = regexp.MustCompile(`(?m)^( *while .*) do$`)

func leavesLoops(text string) string {
	return "local turns = 0\n" + loop.ReplaceAllString(text, "$1 do turns = turns + 1 if turns > 100 then error('endless') end")
}

// lastMillisecond is a request that comes in the last one in which it may run.
func lastMillisecond(c referenceCase) referenceCase {
	args := c.call.args
	c.what += ", in its last millisecond"
	c.call.args = func(now int64) []any {
		all := args(now)
		if len(all) > 3 { // not a renewal, which has no such end
			all[2] = now
		}
		return all
	}
	return c
}

// Each change of each script is told from the original by some state.
func TestNoMutantOfAScriptSurvivesTheTableOfStates(t *testing.T) {
	mini := miniStage(t)
	mini.exact = true
	mutants, played := 0, 0
	excused := make([]bool, len(equivalents))
	eachScript(func(s script, fair bool) {
		cases := append(casesOf(s, fair), lastMillisecond(casesOf(s, fair)[0]))
		kept := map[string]string{}
		for _, c := range cases {
			kept[c.what] = mini.play(t, s.text, c)
		}
		for _, m := range luatest.Mutants(s.text) {
			mutants++
			e, step := equivalent(s, fair, m), 1
			if e >= 0 {
				excused[e], step = true, 20 // one state in twenty is enough to see that it does the same
			}
			killer := -1
			for i := 0; i < len(cases) && killer < 0; i += step {
				played++
				if mini.play(t, leavesLoops(m.Text), cases[i]) != kept[cases[i].what] {
					killer = i
				}
			}
			switch {
			case killer >= 0 && e >= 0:
				t.Errorf("%s, fair %v: it is no equivalent: %s", s.name, fair, m.What)
			case killer >= 0: // what told this one may tell the next
				c := cases[killer]
				cases = slices.Insert(slices.Delete(cases, killer, killer+1), 0, c)
			case e < 0:
				t.Errorf("%s, fair %v: no state tells this mutant: %s", s.name, fair, m.What)
			}
		}
	})
	for i, e := range equivalents {
		if !excused[i] {
			t.Errorf("no mutant survives as equivalent: %+v", e)
		}
	}
	t.Logf("%d mutants, %d runs", mutants, played)
}
