package simrun

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Each value that makes no sense is refused in a sentence before anything starts.
func TestNonsenseIsRefused(t *testing.T) {
	setLive(t, &fakeLive{fails: errors.New("it was started")})
	for _, c := range []struct{ args, want string }{
		{"explore --lock setnx-del --time -5s", "explore: --time -5s: too short: at least 1ms"},
		{"explore --lock setnx-del --time 0", "explore: --time 0: too short: at least 1ms"},
		{"explore --lock setnx-del --time 5", "explore: --time 5: not a duration, since it has no unit; write 5s, 5ms or 5us"},
		{"explore --lock setnx-del --time 9999999999999h", "explore: --time 9999999999999h: not a duration; write 1500ms, 2s or 1m30s"},
		{"explore --lock setnx-del --time=", `explore: --time "": not a duration; write 1500ms, 2s or 1m30s`},
		{"explore --lock setnx-del --strategy tapct --depth 0", "explore: --depth 0: at least 1"},
		{"explore --lock setnx-del --runs -1", "explore: --runs -1: at least 1"},
		{"explore --lock setnx-del --faults none,pause", `explore: "none" stands for no class of faults; give it alone, or leave it out`},
		{"explore --lock setnx-del --runs 1e3", "explore: --runs 1e3: want a whole number"},
		{"explore --lock setnx-del --runs 99999999999999999999", "explore: --runs 99999999999999999999: want a whole number from 1 to 9223372036854775807"},
		{"explore --lock setnx-del --steps -1", "explore: --steps -1: at least 0"},
		{"explore --lock setnx-del --jobs 0", "explore: --jobs 0: from 1 to 1024"},
		{"explore --lock setnx-del --jobs -4", "explore: --jobs -4: from 1 to 1024"},
		{"explore --lock setnx-del --jobs many", "explore: --jobs many: want a whole number"},
		{"explore --lock setnx-del --seed x", `explore: --seed "x": write one number, or two as in 1..100, the smaller first`},
		{"explore --lock setnx-del --shard 5/3 --out o", `explore: --shard "5/3": write I/N, as in 1/8 for the first of eight`},
		{"explore --lock setnx-del --shard 0/3 --out o", `explore: --shard "0/3": write I/N`},
		{"explore --lock setnx-del --shard x/y --out o", `explore: --shard "x/y": write I/N`},
		{"explore --lock setnx-del --shard 3 --out o", `explore: --shard "3": write I/N`},
		{"explore --live --lock setnx-del --time 1h --jobs 65", "explore --live: --jobs 65: from 1 to 64"},
		{"run misdelete --seed x", `--seed "x": write one number, or two as in 1..100, the smaller first`},
		{"run misdelete --seed -1", `--seed "-1": write one number`},
		{"run misdelete --seed 1..", `--seed "1..": write one number`},
		{"run misdelete --seed 99999999999999999999", `--seed "99999999999999999999": write one number`},
		{"matrix misdelete --seed x", `--seed "x": write one number`},
		{"report x --blame --runs 0", "report: --runs 0: from 1 to 1000000"},
		{"kill --seeds 0", "kill: --seeds 0: at least 1"},
		{"kill --seeds x", "kill: --seeds x: want a whole number"},
		{"kill --jobs 0", "kill: --jobs 0: from 1 to 1024"},
		{"live misdelete --runs -1", "live: --runs -1: from 1 to 10000"},
		{"agree misdelete --runs 0", "agree: --runs 0: from 1 to 10000"},
		{"agree misdelete --jobs 65", "agree: --jobs 65: from 1 to 64"},
		{"upstream --tries -1", "upstream: --tries -1: from 0 to 100"},
		{"upstream --jobs 0", "upstream: --jobs 0: from 1 to 64"},
		{"survey --runs 0", "survey: --runs 0: at least 1"},
		{"survey --seconds -1", "survey: --seconds -1: at least 0"},
		{"survey --seed -1", "survey: --seed -1: want a whole number from 0 to 18446744073709551615"},
		{"survey --seed 99999999999999999999", "survey: --seed 99999999999999999999: want a whole number from 0 to 18446744073709551615"},
		{"survey --lock setnx-del --runs-of setnx-del=x", "survey: --runs-of setnx-del=x: want LOCK=N, with N at least 1"},
		{"repeat --runs -1", "repeat: --runs -1: at least 0"},
		{"repeat --seeds x", `"x": write one number, or two as in 1..100, the smaller first`},
		{"results --runs 0", "results: --runs 0: at least 1"},
		{"bench --rounds -1", "bench: --rounds -1: from 1 to 1000"},
		{"check x --drift-ppm 1000000", "check: --drift-ppm 1000000: from 0 to 999999"},
		{`run misdelete --lock a"b`, `run: --lock a"b: want names with commas between them`},
		{"list --json=perhaps", "list: --json perhaps: want true or false"},
	} {
		code, out, stderr := call(t, strings.Fields(c.args)...)
		if code != exitUsage || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) ||
			strings.Contains(stderr, "strconv") || strings.Contains(stderr, "parse error") {
			t.Errorf("%s: exit %d\n%s%s; want %s", c.args, code, out, stderr, c.want)
		}
	}
}

// No option takes a number or a duration without bounds.
func TestEveryNumberHasBounds(t *testing.T) {
	numbers := 0
	for _, c := range commandsOf(t) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch kind := f.Value.Type(); kind {
			case "int", "int64", "float64", "duration", "count":
				t.Errorf("%s --%s is a plain %s", c.Name(), f.Name, kind)
			case "N", "D":
				numbers++
			}
		})
	}
	if numbers < 15 {
		t.Errorf("only %d numbers", numbers)
	}
}

// An option that takes tags may be repeated, and takes no empty one.
func TestTagsMayBeRepeated(t *testing.T) {
	var all []string
	for _, text := range []string{"stories", "fenced", ""} {
		if err := (tags{&all}).Set(text); (err != nil) != (text == "") {
			t.Errorf("--tag %q: %v", text, err)
		}
	}
	if got := (tags{&all}).String(); got != "stories,fenced" {
		t.Errorf("the tags are %s", got)
	}
	setLive(t, &fakeLive{})
	pairs, _, err := playableInBoth(nil, []string{"track-record", "six-properties"}, []string{"setnx-del"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"track-record", "six-properties"} {
		if !slices.ContainsFunc(pairs, func(p *pair) bool { return p.sc.Tag() == tag }) {
			t.Errorf("no pair is tagged %s", tag)
		}
	}
}
