package evidence

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
	"lockstep/cli/livetest"
	"lockstep/explore/spread/queuetest"
	"lockstep/internal/filetest"
	"lockstep/lockimpl"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func TestEveryCommandHasItsHelp(t *testing.T) {
	withFarm(t)
	frametest.Help(t, testProgram())
}

func TestThePartsOfCommandsAreHidden(t *testing.T) {
	frametest.Hidden(t, testProgram(), killWorker, huntWorker, liveGuard)
}

func TestEveryNumberHasBounds(t *testing.T) {
	withFarm(t)
	if numbers := frametest.Bounds(t, testProgram()); numbers < 10 {
		t.Errorf("only %d numbers", numbers)
	}
}

func TestCommandsThatTakeLongHaveQuiet(t *testing.T) {
	frametest.Quiet(t, testProgram(), "agree", "upstream", "kill", "results", "bench", "site")
}

// Every example has options that its command takes.
func TestTheExamplesAreOfTheirCommands(t *testing.T) {
	withFarm(t)
	examples := 0
	for _, c := range frametest.Commands(t, testProgram()) {
		for line := range strings.SplitSeq(c.Example, "\n") {
			args, ok := strings.CutPrefix(line, "  go run ./cmd/evidence ")
			words := strings.Fields(args)
			if !ok || words[0] != c.Name() {
				t.Errorf("an example of %s is %q", c.Name(), line)
				continue
			}
			examples++
			if err := c.ParseFlags(words[1:]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if examples < 10 {
		t.Errorf("only %d examples", examples)
	}
}

// Each command has its row in the documents. The documents call commands of their program.
func TestTheDocumentsNameEveryCommand(t *testing.T) {
	withFarm(t)
	text := filetest.Read(t, "../../docs/commands.md")
	for _, c := range frametest.Commands(t, testProgram()) {
		if c.Name() != "completion" && c.Name() != "help" && !regexp.MustCompile(`(?m)^\|[^|]*`+"`"+c.Name()+"`").MatchString(text) {
			t.Errorf("no table of docs/commands.md has a row of %s", c.Name())
		}
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`cmd/evidence ([a-z]+)`)
	calls := 0
	root := (&frame.App{Program: testProgram(), Host: sim.NewHost(t)}).Root()
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		for _, m := range ours.FindAllStringSubmatch(filetest.Read(t, page), -1) {
			calls++
			if _, _, err := root.Find(m[1:]); err != nil {
				t.Errorf("%s: %s: %v", page, m[0], err)
			}
		}
	}
	if calls < 10 {
		t.Errorf("the documents call only %d commands", calls)
	}
}

// The commands of docs/judges.md do what they say.
func TestTheCommandsOfTheDocumentsRun(t *testing.T) {
	ran := 0
	for line := range strings.Lines(filetest.Read(t, "../../docs/judges.md")) {
		args, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./cmd/evidence ")
		if !ok {
			continue
		}
		ran++
		if code, out, stderr := call(t, strings.Fields(args)...); code != frame.ExitOK {
			t.Errorf("%s: exit %d\n%s%s", args, code, out, stderr)
		}
	}
	if ran == 0 {
		t.Error("no command was run")
	}
}

// evidence names the program that has a command which it lacks.
func TestACommandOfAnotherProgram(t *testing.T) {
	for args, want := range map[string]string{
		"run misdelete":             "evidence: run is a command of simrun: `go run ./cmd/simrun run`\n",
		"explore --lock x":          "evidence: explore is a command of simrun: `go run ./cmd/simrun explore`\n",
		"standing x.yaml --dir d":   "evidence: unknown command \"standing\"; the program in peers/ has it; in a clone of this project: (cd peers && go run ./cmd/evidence standing --help)\n",
		"killl":                     "evidence: unknown command \"killl\"; did you mean \"kill\"? go run ./cmd/evidence help lists the commands\n",
		"agree misdelete --lock x1": "does not play live",
	} {
		code, out, stderr := frametest.Call(t, testProgram(), strings.Fields(args)...)
		if code != frame.ExitUsage || out != "" || !strings.HasSuffix(stderr, want) && !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d\n%s%s; want %s", args, code, out, stderr, want)
		}
	}
}

func TestAMistakeIsAnsweredInASentence(t *testing.T) {
	setLive(t, &livetest.Player{Fails: errors.New("it was started")})
	for _, c := range []struct{ args, want string }{
		{"findings ../../docs", "findings: ../../docs is not the folder of a campaign, which explore --out DIR writes: it has no verdicts.jsonl"},
		{"kill unlock-by-anyon", `no planted bug is called "unlock-by-anyon"; did you mean "unlock-by-anyone"? go run ./cmd/simrun list --planted names them`},
		{"results ../../results --check --only verdcts", `--only verdcts: did you mean "verdicts"? known are verdicts, track-record, `},
		{"bench --only scedule", `there is no part "scedule"; did you mean "schedule"? known: step, `},
		{"kill --seeds 0", "kill: --seeds 0: from 1 to 1000000"},
		{"kill --seeds x", "kill: --seeds x: want a whole number"},
		{"kill --jobs 0", "kill: --jobs 0: from 1 to 1024"},
		{"agree misdelete --runs 0", "agree: --runs 0: from 1 to 10000"},
		{"agree misdelete --jobs 65", "agree: --jobs 65: from 1 to 64"},
		{"upstream --tries -1", "upstream: --tries -1: from 0 to 100"},
		{"upstream --jobs 0", "upstream: --jobs 0: from 1 to 64"},
		{"results --runs 0", "results: --runs 0: from 1 to 1000000000"},
		{"bench --rounds -1", "bench: --rounds -1: from 1 to 1000"},
		{"results --jobs x", "results: --jobs x: want a whole number"},
		{"findings evidence.go", "evidence.go is a file; findings takes the folders"},
		{"results evidence.go", "evidence.go is a file; results takes a folder"},
		{"kill nothing", `no planted bug is called "nothing"`},
		{"agree misdelete --lock chubby", "; chubby, of the program in peers/, is not possible live: no program starts its servers"},
		{"agree misdelete --lock redislock", "in a clone of this project: (cd peers && go run ./cmd/evidence agree misdelete --lock redislock)"},
	} {
		code, out, stderr := frametest.Call(t, testProgram(), strings.Fields(c.args)...)
		if code != frame.ExitUsage || out != "" || !strings.HasPrefix(stderr, "evidence: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d\n%s%s; want %s", c.args, code, out, stderr, c.want)
		}
	}
	if code, _, stderr := call(t, "results", "--check", t.TempDir()); code != frame.ExitUsage || !strings.Contains(stderr, " has no versions.json") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"kill", "unlock-by"}, "unlock-by-anyone\t"},
		{[]string{"upstream", "R-60"}, "R-6025\n"},
		{[]string{"bench", "--out", ""}, ":0\n"}, // a file of figures
	} {
		if _, out, _ := frametest.Call(t, testProgram(), append([]string{"__complete"}, c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("%v: %s; want %q", c.args, out, c.want)
		}
	}
}

// A second process is refused a folder until the first one ends.
func TestAFolderHasOneProcess(t *testing.T) {
	dir := t.TempDir()
	release, err := (&frame.App{Program: testProgram()}).Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if code, out, stderr := call(t, "results", dir); code != frame.ExitUsage || out != "" || !strings.Contains(stderr, "another process writes into the folder "+dir) {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}

// A planted bug is found by its judge. With --quiet the number of bugs that were found is printed.
func TestKill(t *testing.T) {
	const row = "| acquire-without-lease | redisson@4.7.0 | The key of a new hold has no time to live. | lease | 1 | 300 | 2 of 2 | lease 2 |"
	if code, out, stderr := call(t, "kill", "acquire-without-lease", "--seeds", "2"); code != frame.ExitOK || !strings.Contains(out, row) {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	if _, out, _ := call(t, "kill", "acquire-without-lease", "--seeds", "1", "--quiet"); out != "1 of 1 planted bug found with every seed\n" {
		t.Errorf("kill --quiet: %s", out)
	}
}

// No command takes a full disk for a defect of its own. A limit on the size of files takes the place of
// the full disk. The test runs in a process of its own, since go test keeps a log of this one in a file.
func TestADiskThatIsFull(t *testing.T) {
	const limited = "LOCKSTEP_TEST_LIMITED"
	if os.Getenv(limited) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestADiskThatIsFull$")
		cmd.Env = append(os.Environ(), limited+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "explore", "--lock", "setnx-del", "--faults", "pause", "--runs", "20", "--out", "campaign"); code > frame.ExitUnexpected {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, "run", "misdelete", "--lock", "setnx-del", "--out", "runs"); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	before := filetest.Contents(t, ".")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := limit
	small.Cur = 100
	for _, args := range [][]string{
		{"findings", "campaign", "-o", "out.md"},
		{"kill", "unlock-by-anyone", "--seeds", "1", "-o", "out.md"},
		{"results", "runs", "--only", "verdicts"},
	} {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := call(t, args...)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		if code != frame.ExitIO || strings.Count(stderr, "input or output failed: ") != 1 || strings.Count(stderr, "file too large") != 1 {
			t.Errorf("%v: exit %d, want %d and one sentence:\n%s", args, code, frame.ExitIO, stderr)
		}
	}
	for name, text := range filetest.Contents(t, ".") {
		if strings.HasPrefix(name, "runs/misdelete") && text != before[name] {
			t.Errorf("%s was changed", name)
		}
	}
}

// Each command that plays live says which program is missing before it simulates or plays a scenario.
func TestWhatTheMachineLacksIsToldFirst(t *testing.T) {
	fakeLibrary(t)
	opened := 0
	setnx, err := subject.Find("setnx-cad")
	if err != nil {
		t.Fatal(err)
	}
	l := *setnx
	l.Name, l.Unlisted = "counts-its-clients", true
	l.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
		opened++
		return setnx.Open(p, o)
	}
	subject.Register(&l)
	for _, args := range []string{"agree misdelete --lock counts-its-clients --runs 1", "upstream R-none"} {
		live := &livetest.Player{Lacks: livetest.Unusable(errors.New("there is no such program here; install it"))}
		setLive(t, live)
		code, _, stderr := call(t, strings.Fields(args)...)
		if code != frame.ExitUsage || !strings.Contains(stderr, "install it") || live.Runs > 0 || opened > 0 {
			t.Errorf("%s: exit %d after %d runs and %d simulated clients, %s", args, code, live.Runs, opened, stderr)
		}
	}
	setLive(t, &livetest.Player{})
	if code, _, stderr := call(t, "agree", "misdelete", "--lock", "counts-its-clients", "--runs", "1"); code != frame.ExitOK || opened == 0 {
		t.Errorf("exit %d after %d simulated clients, %s", code, opened, stderr)
	}
}

// withFarm gives the program the command standing, with a queue in memory, until the test ends.
func withFarm(t *testing.T) {
	t.Helper()
	means.Farm = &queuetest.Engine{Wait: time.Minute}
	t.Cleanup(func() { means.Farm = nil })
}
