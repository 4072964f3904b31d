package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
)

// commandsOf returns the commands for users.
func commandsOf(t *testing.T) []*cobra.Command {
	t.Helper()
	all := frametest.Commands(t, testProgram())
	if len(all) < 14 {
		t.Fatalf("only %d commands", len(all))
	}
	return all
}

// The help shows the commands first, then the exit codes, then a scenario. The help of a command
// shows only matters of that command.
func TestTheHelpBeginsWithTheCommands(t *testing.T) {
	_, help, _ := call(t, "help")
	rest := help
	for _, part := range []string{aboutSimrun + "\n\nUsage:", "\nScenarios:\n  list ", "\nFlags:", "\n\nExit codes:\n", "\n  74   ", "\n\nA scenario file, in short"} {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is missing, or not in this place:\n%s", part, help)
		}
		rest = after
	}
	if _, run, _ := call(t, "help", "run"); strings.Contains(run, "Exit codes") || strings.HasSuffix(run, "\n\n") || !strings.HasSuffix(run, "\n") {
		t.Errorf("the help of a command:\n%s", run)
	}
}

func TestEveryCommandHasItsHelp(t *testing.T) { frametest.Help(t, testProgram()) }

// The commands with which the program starts itself are no commands for users.
func TestThePartsOfCommandsAreHidden(t *testing.T) {
	frametest.Hidden(t, testProgram(), ExploreWorker, surveyWorker, repeatWorker, liveClient)
}

// A command or an option that the program of the maintainers has now is refused with its new call.
func TestACommandThatMovedNamesItsNewHome(t *testing.T) {
	for _, name := range []string{"agree", "bench", "findings", "kill", "results", "site", "upstream"} {
		for _, args := range [][]string{{name}, {name, "x"}, {name, "--no-such-option"}, {name, "--help"}, {"help", name}} {
			code, out, stderr := call(t, args...)
			if want := "simrun: simrun " + name + " is now `go run ./cmd/evidence " + name + "`\n"; code != frame.ExitUsage || out != "" || stderr != want {
				t.Errorf("%v: exit %d\n%s%s; want %s", args, code, out, stderr, want)
			}
		}
	}
	if _, _, help := call(t, "help"); strings.Contains(help, "kill") {
		t.Errorf("the help lists kill:\n%s", help)
	}
	withFarm(t)
	want := "farm: --standing x.yaml: it is now `go run ./cmd/evidence standing FILE --dir DIR`"
	if code, out, stderr := call(t, "farm", "--standing", "x.yaml", "--dir", "d"); code != frame.ExitUsage || out != "" || !strings.Contains(stderr, want) {
		t.Errorf("exit %d\n%s%s; want %s", code, out, stderr, want)
	}
}

// tooLong lists the beginnings of examples that the next test does not play: they take long, go on
// until an interrupt, need a server, or need folders of an earlier command.
var tooLong = []string{"serve", "survey", "live", "matrix --lock", "merge", "check", "test"}

// Every example is played, or at least has options that its command takes.
func TestTheExamplesWork(t *testing.T) {
	results, err := filepath.Abs("../results")
	if err != nil {
		t.Fatal(err)
	}
	all := commandsOf(t)
	t.Chdir(t.TempDir())
	if err := os.Symlink(results, "results"); err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, c := range all {
		for line := range strings.SplitSeq(c.Example, "\n") {
			args, ok := strings.CutPrefix(line, "  "+frame.Simrun()+" ")
			words := strings.Fields(args)
			if !ok || words[0] != c.Name() {
				t.Errorf("an example of %s is %q", c.Name(), line)
				continue
			}
			slow := false
			for _, prefix := range tooLong {
				slow = slow || strings.HasPrefix(args, prefix)
			}
			if slow {
				if err := c.ParseFlags(words[1:]); err != nil {
					t.Errorf("%s: %v", line, err)
				}
				continue
			}
			played++
			want := frame.ExitOK
			if strings.HasPrefix(args, "explore --lock setnx-del --faults pause") {
				want = frame.ExitUnexpected // it shows a bug
			}
			if a := callOnce(t, words...); a.code != want {
				t.Errorf("%s: exit %d\n%s%s", line, a.code, a.out, a.stderr)
			}
		}
	}
	if played < 15 {
		t.Errorf("only %d examples were played", played)
	}
}

// A recording and a scenario file are played without the name of the command, and take its options.
func TestAFileIsPlayedWithoutACommand(t *testing.T) {
	recording := filepath.Join("..", "results", "misdelete", "setnx-del", "1.lockstep")
	scenario := filepath.Join("..", "scenarios", "builtin", "misdelete.yaml")
	yml := filepath.Join(t.TempDir(), "mine.yml")
	text, err := os.ReadFile(scenario)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(yml, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, args string }{
		{"replay", recording},
		{"replay", recording + " --json"},
		{"replay", recording + " --scenario"},
		{"replay", recording + " " + recording},
		{"run", scenario + " --lock setnx-del --seed 1"},
		{"run", scenario + " --seed 1 --json " + yml},
		{"run", yml + " --lock setnx-del"},
		{"run", scenario + " " + recording},
		{"run", scenario + " --format junit"},
	} {
		args := strings.Fields(c.args)
		code, out, stderr := call(t, args...)
		wantCode, wantOut, wantErr := call(t, append([]string{c.command}, args...)...)
		if code != wantCode || out != wantOut || stderr != wantErr {
			t.Errorf("%s: exit %d\n%s%s\nwith %s: exit %d\n%s%s", c.args, code, out, stderr, c.command, wantCode, wantOut, wantErr)
		}
	}
	if code, out, _ := call(t, scenario, "--lock", "setnx-del", "--seed", "1"); code != frame.ExitOK || !strings.Contains(out, "yes: bug misdelete") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// A message is one line on stderr, names what may have been meant, and is not followed by a help text.
func TestAMistakeIsAnsweredInASentence(t *testing.T) {
	recording := filepath.Join("..", "results", "misdelete", "setnx-del", "1.lockstep")
	for _, c := range []struct{ args, want string }{
		{"explor --lock setnx-del", `unknown command "explor"; did you mean "explore"? go run ./cmd/simrun help lists the commands`},
		{"rn misdelete", `unknown command "rn"; did you mean "run"?`},
		{"history h.jsonl", `unknown command "history"; check judges a history; go run ./cmd/simrun help lists the commands`},
		{"rnu --bogus", `unknown command "rnu"; did you mean "run"?`},
		{"explode", `unknown command "explode"; did you mean "explore"?`},
		{"help surrvey", `unknown command "surrvey"; did you mean "survey"?`},
		{"help run misdelete", `unknown command "run misdelete"; `},
		{"misdelete", `unknown command "misdelete"; it is a scenario: go run ./cmd/simrun run misdelete`},
		{"misdelete --lock setnx-del", `unknown command "misdelete"; it is a scenario: go run ./cmd/simrun run misdelete`},
		{"../results", `unknown command "../results"; it is a folder: report and serve make pages of a folder of results; go run ./cmd/simrun help lists the commands`},
		{"list.go", `unknown command "list.go"; it is a file: run plays a scenario, replay a recording, and check judges a history; `},
		{"help " + recording, `unknown command "` + recording + `"; it is a file: run plays a scenario, `},
		{"no.lockstep", "there is no file no.lockstep; replay takes a recording"},
		{"no.yaml --quiet", "there is no file no.yaml; name a scenario, or the file of one"},
		{recording + " --tag x", "replay: unknown option --tag; replay knows --json, --scenario"},
		{"completion fihs", `completion: unknown shell "fihs"; did you mean "fish"? known: bash, zsh, fish, powershell`},
		{"completion", "completion takes a shell: bash, zsh, fish, powershell"},
		{"version --json", `version: unknown option --json; version has no options`},
		{"--seed 1 x.yaml", "unknown option --seed; simrun knows --version; the options of a command stand after its name, and the options for a file after the file"},
		{"replay ../scenarios/builtin/misdelete.yaml", "../scenarios/builtin/misdelete.yaml is a scenario; go run ./cmd/simrun run ../scenarios/builtin/misdelete.yaml plays it"},
		{"report ../scenarios/builtin/misdelete.yaml", "../scenarios/builtin/misdelete.yaml is a scenario; go run ./cmd/simrun run "},
		{"check ../scenarios/builtin/misdelete.yaml", "../scenarios/builtin/misdelete.yaml is a scenario; go run ./cmd/simrun run "},
		{"check " + recording, recording + " is a recording; go run ./cmd/simrun replay " + recording + " plays it"},
		{"replay list.go", "list.go:1:1: not a recording, which is a JSON object: "},
		{"report nowhere", "there is no file nowhere; report takes a recording, a file SEED.lockstep, or a folder of results"},
		{"version x", `version takes no argument, got "x"`},
		{"--versoin", `unknown option --versoin; did you mean "--version"?`},
		{"run misdelet", `no scenario "misdelet" and no such file; did you mean "misdelete"? go run ./cmd/simrun list names all `},
		{"run misdelete setnx-del", `no scenario "setnx-del" and no such file; setnx-del is a lock; --lock setnx-del chooses it`},
		{"run " + recording, recording + " is a recording; go run ./cmd/simrun replay " + recording + " plays it"},
		{"matrix " + recording, recording + " is a recording; go run ./cmd/simrun replay " + recording + " plays it"},
		{"explore --lock none --strategy exhaustive --scenario " + recording, recording + " is a recording; go run ./cmd/simrun replay " + recording + " plays it"},
		{"run --tag trak-record", `no scenario is tagged "trak-record"; did you mean "track-record"? known: `},
		{"run misdelete --lock setnx-dell", `unknown lock "setnx-dell"; did you mean "setnx-del"? go run ./cmd/simrun list names all `},
		{"explore --lock redisson@3.44.0", `unknown lock "redisson@3.44.0"; did you mean "redisson@3.43.0"? go run ./cmd/simrun list names all `},
		{"run misdelete --lock qqqqqqqq", `unknown lock "qqqqqqqq"; go run ./cmd/simrun list names all `},
		{"explore --lock etcd-mutex", `unknown lock "etcd-mutex"; the program in peers/ knows etcd-mutex; in a clone of this project: (cd peers && go run ./cmd/simrun explore --lock etcd-mutex)`},
		{"run ../scenarios/builtin/misdelete.yaml misdelete --lock=none,redislok --seed 1", `(cd peers && go run ./cmd/simrun run ../../scenarios/builtin/misdelete.yaml misdelete --lock=none,redislock --seed 1)`},
		{"run misdelete --lock etcd-mutex --out .", `(cd peers && go run ./cmd/simrun run misdelete --lock etcd-mutex --out .)`}, // a folder
		{"run misdelete --lock redislok", `unknown lock "redislok"; did you mean "redislock"? the program in peers/ knows redislock; in a clone of this project: (cd peers && go run ./cmd/simrun run misdelete --lock redislock)`},
		{"run misdelete --lock redsync", `unknown lock "redsync"; did you mean "redsync-1"? the program in peers/ knows redsync-1; `},
		{"run misdelete --lock redison", `unknown lock "redison"; did you mean "redisson"? go run ./cmd/simrun list names all `},
		{"survey setnx-del", `survey: "setnx-del" is no option; survey takes options only; name a lock with --lock`},
		{"explore", "--lock is missing; go run ./cmd/simrun list names the locks"},
		{"run --tag=", `run: --tag "": an empty tag; leave --tag out`},
		{"matrix --tag=", `matrix: --tag "": an empty tag; leave --tag out`},
		{"repeat --lock none --seeds 0..18446744073709551615", "--seeds 0..18446744073709551615: the outcome of each run is kept until the last run; at most 100000 seeds"},
		{"repeat --lock none --seeds 2..1", `--seeds "2..1": write one number`},
		{"explore --lock setnx-del --faults network,crush", `explore: --faults network,crush: did you mean "crash"? known are network, crash, `},
		{"explore --lock setnx-del --strategy exhaustiv", `explore: --strategy exhaustiv: did you mean "exhaustive"? known are plain, `},
		{"explore --lock setnx-del --profile fulll", `explore: --profile fulll: did you mean "full"? known are simple, orderly, full`},
		{"explore --lok setnx-del", `explore: unknown option --lok; did you mean "--lock"? explore knows --depth, `},
		{"explore -x", "explore: unknown option -x; explore knows --depth, "},
		{"explore --lock", "explore: --lock needs a value"},
		{"explore --=x", "explore: bad flag syntax: --=x; explore knows --depth, "},
		{"run --format juni", `run: --format juni: did you mean "junit"? known are junit, github`},
		{"matrix --format markdwon", `matrix: --format markdwon: did you mean "markdown"? known are text, json, markdown, html`},
		{"shrink " + recording + " --judge fiffo", `shrink: --judge fiffo: did you mean "fifo"? known are mutual-exclusion, `},
		{"check x --model fiar", `check: --model fiar: did you mean "fair"? known are reentrant, fair, fenced`},
	} {
		code, out, stderr := call(t, strings.Fields(c.args)...)
		if code != frame.ExitUsage || out != "" || !strings.HasPrefix(stderr, "simrun: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d\n%s%s; want %s", c.args, code, out, stderr, c.want)
		}
	}
}
