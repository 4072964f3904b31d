package reference

import (
	"regexp"
	"testing"

	"lockstep/internal/longtest"
	"lockstep/lockimpl/internal/luatest"
)

var equivalents = []luatest.Equivalent{
	{Scripts: "unlock|leave, plain", Line: "local stamp = time[1] * 1000000 + time[2]", Change: `deleted|"2" for "1"|"1000001"|"-" for "+"`,
		Why: "only an acquire draws a token, and only a forced unlock compares tokens"},
	{Scripts: "force_unlock", Line: "local owner, number = ARGV[1], tonumber(ARGV[2])", Change: `"2" for "1"`,
		Why: "it frees the lock whoever asks"},
	{Scripts: "unlock, plain|force_unlock, plain|leave, plain", Line: "local head",
		Why: "nobody queues for the plain lock"},
	{Scripts: "acquire, plain", Line: "if not holder and (not head or head == owner) then", Change: `"~=" for "=="`,
		Why: "nobody queues for the plain lock"},
	{Scripts: "leave, fair", Line: "if not holder and (not head or head == owner) then", Change: `"" for "not" at column 20`,
		Why: "only who is in front comes so far"},
	{Scripts: "acquire, plain", Line: "redis.call('zrem', KEYS[5], owner)",
		Why: "nobody queues for the plain lock"},
	{Scripts: "acquire, plain", Line: "redis.call('lrem', KEYS[4], 0, owner)",
		Why: "nobody queues for the plain lock"},
	{Scripts: "acquire", Line: "if redis.call('pttl', KEYS[1]) < lease then", Change: `"<=" for "<"`,
		Why: "it sets the time to live that there is"},
	{Scripts: "acquire", Line: "if redis.call('pttl', key) < place then", Change: `"<=" for "<"`,
		Why: "it sets the time to live that there is"},
	{Scripts: "renew", Line: "if redis.call('pttl', KEYS[1]) < tonumber(ARGV[3]) then", Change: `"<=" for "<"`,
		Why: "it sets the time to live that there is"},
	{Scripts: "unlock", Line: "if now + redis.call('pttl', KEYS[1]) > tonumber(ARGV[5]) then", Change: `">=" for ">"`,
		Why: "it sets the time to live that there is"},
	{Scripts: "acquire|leave, fair", Line: "local last = tonumber(redis.call('get', tokens) or 0)", Change: `"1" for "0"`,
		Why: "the clock is later than either"},
}

// loop matches a loop that a mutant may never leave.
var loop = regexp.MustCompile(`(?m)^( *while .*) do$`)

func leavesLoops(text string) string {
	return "local turns = 0\n" + loop.ReplaceAllString(text, "$1 do turns = turns + 1 if turns > 100 then error('endless') end")
}

// lastMillisecond returns a request that comes in the last millisecond in which it may run.
func lastMillisecond(c referenceCase) referenceCase {
	args := c.call.args
	c.what += ", in its last millisecond"
	c.call.args = func(now int64) []any {
		all := args(now)
		if len(all) > 3 { // a renewal has no such end
			all[2] = now
		}
		return all
	}
	return c
}

// Some state distinguishes each mutant of each script from the original.
func TestNoMutantOfAScriptSurvivesTheTableOfStates(t *testing.T) {
	mini := miniStage(t)
	mini.exact = true
	hunt := luatest.Hunt[referenceCase]{T: t, Equivalents: equivalents, Every: 20}
	if !longtest.Asked() {
		hunt.Sample = 60
		t.Logf("one mutant of %d; LOCKSTEP_LONG=1 plays all", hunt.Sample)
	}
	eachScript(func(s script, fair bool) {
		cases := append(casesOf(s, fair), lastMillisecond(casesOf(s, fair)[0]))
		kept := map[string]string{} // the effects of the original, in the cases that were needed
		original := func(c referenceCase) string {
			if _, ok := kept[c.what]; !ok {
				kept[c.what] = mini.play(t, s.text, c)
			}
			return kept[c.what]
		}
		var last, ends string // a mutant, and the same mutant with loops that end
		name := s.name + ", plain"
		if fair {
			name = s.name + ", fair"
		}
		hunt.Script(name, s.text, cases, func(mutant string, c referenceCase) bool {
			if mutant != last {
				last, ends = mutant, leavesLoops(mutant)
			}
			return mini.play(t, ends, c) != original(c)
		})
	})
	hunt.End()
}
