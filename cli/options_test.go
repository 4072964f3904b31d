package cli

import (
	"errors"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
	"lockstep/cli/livetest"
)

// Each value that makes no sense is refused in a sentence before anything starts.
func TestNonsenseIsRefused(t *testing.T) {
	setLive(t, &livetest.Player{Fails: errors.New("it was started")})
	for _, c := range []struct{ args, want string }{
		{"explore --lock setnx-del --time -5s", "explore: --time -5s: too short: at least 1ms"},
		{"explore --lock setnx-del --time 0", "explore: --time 0: too short: at least 1ms"},
		{"explore --lock setnx-del --time 5", "explore: --time 5: not a duration, since it has no unit; write 5s, 5ms or 5us"},
		{"explore --lock setnx-del --time 9999999999999h", "explore: --time 9999999999999h: too long: at most 87600h, ten years"},
		{"explore --lock setnx-del --time=", `explore: --time "": not a duration; write 1500ms, 2s or 1m30s`},
		{"explore --lock setnx-del --strategy tapct --depth 0", "explore: --depth 0: from 1 to 1000"},
		{"explore --lock setnx-del --runs -1", "explore: --runs -1: from 1 to 1000000000"},
		{"explore --lock setnx-del --faults none,pause", `explore: "none" stands for no class of faults; give it alone, or leave it out`},
		{"explore --lock setnx-del --runs 1e3", "explore: --runs 1e3: want a whole number"},
		{"explore --lock setnx-del --runs 99999999999999999999", "explore: --runs 99999999999999999999: from 1 to 1000000000"},
		{"explore --lock setnx-del --steps -1", "explore: --steps -1: from 0 to 1000000000000000"},
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
		{"live misdelete --runs -1", "live: --runs -1: from 1 to 10000"},
		{"survey --runs 0", "survey: --runs 0: from 1 to 1000000000"},
		{"survey --seconds -1", "survey: --seconds -1: from 0 to 1000000000"},
		{"survey --seed -1", "survey: --seed -1: want a whole number from 0 to 18446744073709551615"},
		{"survey --seed 99999999999999999999", "survey: --seed 99999999999999999999: want a whole number from 0 to 18446744073709551615"},
		{"survey --lock setnx-del --runs-of setnx-del=x", "survey: --runs-of setnx-del=x: want LOCK=N, with N from 1 to 1000000000"},
		{"repeat --runs -1", "repeat: --runs -1: from 0 to 1000000000"},
		{"repeat --seeds x", `"x": write one number, or two as in 1..100, the smaller first`},
		{"check x --drift-ppm 1000000", "check: --drift-ppm 1000000: from 0 to 999999"},
		{`run misdelete --lock a"b`, `run: --lock a"b: want names with commas between them`},
		{"list --json=perhaps", "list: --json perhaps: want true or false"},
	} {
		code, out, stderr := call(t, strings.Fields(c.args)...)
		if code != frame.ExitUsage || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) ||
			strings.Contains(stderr, "strconv") || strings.Contains(stderr, "parse error") {
			t.Errorf("%s: exit %d\n%s%s; want %s", c.args, code, out, stderr, c.want)
		}
	}
}

// No option takes a number or a duration without bounds.
func TestEveryNumberHasBounds(t *testing.T) {
	if numbers := frametest.Bounds(t, testProgram()); numbers < 10 {
		t.Errorf("only %d numbers", numbers)
	}
}

// An empty text, such as an unset variable of a shell, is no value of an option.
func TestAnEmptyOptionIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{"run", "misdelete", "--out", ""}, {"explore", "--lock", "setnx-del", "--out="}, {"report", "x", "-o", ""}, {"check", "x", "--out", ""},
	} {
		code, out, stderr := call(t, args...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, " is empty; leave it out, or give it a value") {
			t.Errorf("%q: exit %d, %q, %q", args, code, out, stderr)
		}
	}
}
