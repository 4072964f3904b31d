package evidence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/cli/livetest"
)

// The table counts the runs in which the judge of a bug finds a bug: with the bug, and without it.
func TestTheAgreementOfPlantedBugs(t *testing.T) {
	const story = "[a-hold](../live/planted/stories/a-hold.yaml)"
	for _, c := range []struct {
		rule string
		live *livetest.Player
		args string
		want []string
	}{
		{"both worlds agree", &livetest.Player{}, "acquire-without-lease planted/renewal-goes-on", []string{
			"The judge names 2 of 2 planted bugs in each live run. It finds none live on the lock without the bug.\n",
			"in real time on fake-server 1.2.3.",
			"| acquire-without-lease | redisson@4.7.0 | " + story + " | lease | 5 of 5 | 0 of 5 | 2 of 2 | 0 of 2 |\n",
			"| renewal-goes-on | redisson@4.7.0 | " + story + " | lease | 5 of 5 | 0 of 5 | 2 of 2 | 0 of 2 |\n",
		}},
		{"the bug is not seen live", &livetest.Player{Other: "redisson@4.7.0"}, "acquire-without-lease", []string{
			"The judge names 0 of 1 planted bug in each live run. It finds none",
			"| lease | 5 of 5 | 0 of 5 | **0 of 2** | 0 of 2 |\n",
			"* Run 2 of acquire-without-lease came to this: held, and was played twice, because of a reason.\n",
		}},
		{"another bug is seen live", &livetest.Player{Other: "planted/fair-leave-keeps-the-place"}, "waits-twice-as-long", []string{
			"| wait-bound | 5 of 5 | 0 of 5 | **0 of 2** | 0 of 2 |\n", "* Run 1 of waits-twice-as-long came to this: bug: ",
		}},
		{"the lock without the bug has it, too", &livetest.Player{Other: "planted/renewal-goes-on"}, "acquire-without-lease", []string{
			"in each live run. For 1 it finds a bug live on the lock without the bug, too.\n", "| 2 of 2 | **2 of 2** |\n",
		}},
		{"it is not possible live", &livetest.Player{Refuses: "planted/acquire-without-lease"}, "acquire-without-lease renewal-goes-on", []string{
			"The judge names 1 of 2 planted bugs in each live run; 1 are not possible live. It",
			"| lease | 5 of 5 | 0 of 5 | not possible live: live/planted/stories/a-hold.yaml:7: not possible live: a reason |  |\n",
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			setLive(t, c.live)
			code, out, stderr := call(t, append([]string{"agree", "--planted", "--runs", "2", "--jobs", "1"}, strings.Fields(c.args)...)...)
			if code != frame.ExitOK {
				t.Fatalf("exit %d, %s", code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("want %q in\n%s", want, out)
				}
			}
		})
	}
}

// Bugs of one story share the runs of the lock without a bug. The same command goes on.
func TestTheAgreementOfPlantedBugsGoesOn(t *testing.T) {
	table := filepath.Join(t.TempDir(), "planted.md")
	command := []string{"agree", "--planted", "acquire-without-lease", "renewal-goes-on", "--runs", "2", "--jobs", "1", "-o", table}
	setLive(t, &livetest.Player{After: 3})
	if code, _, stderr := call(t, command...); code != frame.ExitIO || !strings.Contains(stderr, "the machine is gone") {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	rest := &livetest.Player{}
	setLive(t, rest)
	if code, _, stderr := call(t, command...); code != frame.ExitOK || rest.Runs != 3 {
		t.Errorf("exit %d, %s; %d runs were played, want 3 of 6", code, stderr, rest.Runs)
	}
	if text, err := os.ReadFile(table); err != nil || strings.Count(string(text), "| 2 of 2 | 0 of 2 |\n") != 2 {
		t.Errorf("%v: the table is\n%s", err, text)
	}
}

func TestTheAgreementOfPlantedBugsRefuses(t *testing.T) {
	setLive(t, &livetest.Player{})
	for _, c := range []struct{ args, want string }{
		{"acquire-without-least", "did you mean \"acquire-without-lease\""},
		{"--lock reference", "it has no --lock"},
		{"--tag track-record", "it has no --lock"},
		{"--again a-hold", "it has no --lock"},
	} {
		if code, _, stderr := call(t, append([]string{"agree", "--planted"}, strings.Fields(c.args)...)...); code != frame.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s; want %q", c.args, code, stderr, c.want)
		}
	}
}
