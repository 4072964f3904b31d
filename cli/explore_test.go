package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/explore/strategy"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
	"lockstep/internal/quantity"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func TestExploreRefusesBadInput(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "--lock is missing"},
		{"--lock setnx-dell", "setnx-del"},
		{"--lock setnx-del extra", `"extra" is no option`},
		{"--lock setnx-del --faults pauze", "known are network, crash, pause"},
		{"--lock setnx-del --profile wild", "known are simple, orderly, full"},
		{"--lock setnx-del --strategy luck", "known are plain, told, tapct, exhaustive"},
		{"--lock setnx-del --strategy exhaustive --jobs 2", "--jobs does not belong to --strategy exhaustive"},
		{"--lock setnx-del --strategy exhaustive --faults pause", "write them into a scenario"},
		{"--lock setnx-del --strategy exhaustive --scenario nowhere", "nowhere"},
		{"--lock setnx-del --strategy exhaustive --runs 0", "--runs 0: from 1 to 1000000000"},
		{"--strategy exhaustive", "--lock is missing"},
		{"--lock setnx-del --strategy exhaustive --out " + file, "file"},
		{"--lock setnx-del --scenario misdelete", "--scenario belongs to --strategy exhaustive"},
		{"--lock setnx-del --depth 2", "--depth belongs to --strategy tapct"},
		{"--lock setnx-del --runs 0", "--runs 0: from 1 to 1000000000"},
		{"--lock setnx-del --steps -1", "--steps -1"},
		{"--lock setnx-del --jobs 0", "--jobs 0: from 1"},
		{"--lock setnx-del --shard 3/2 --out " + dir, "write I/N"},
		{"--lock setnx-del --shard 1", "write I/N"},
		{"--lock setnx-del --shard 1/2", "--shard needs --out"},
		{"--lock setnx-del --runs 5 --out " + file, "file"},
		{"--lock setnx-del --runs many", "--runs many: want a whole number"},
		{"--lock setnx-del --time soon", "--time soon: not a duration"},
		{"--lock setnx-del --time -5s", "--time -5s: too short: at least 1ms"},
		{"--lock setnx-del --time 0s", "--time 0s: too short: at least 1ms"},
		{"--lock setnx-del --strategy exhaustive --time -5s", "--time -5s: too short: at least 1ms"},
		{"--lock setnx-del --strategy tapct --depth 0", "--depth 0: from 1 to 1000"},
		{"--lock setnx-del --strategy tapct --depth -1", "--depth -1: from 1 to 1000"},
		{"--lock setnx-del --runs -3", "--runs -3: from 1 to 1000000000"},
		{"--lock setnx-del --lock none", "--lock none: only one can be given, and setnx-del is given, too"},
		{"--lock setnx-del --steps 99999999999999999999", "from 0 to 1000000000000000"},
	} {
		code, out, stderr := call(t, append([]string{"explore"}, strings.Fields(c.args)...)...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "strconv") {
			t.Errorf("explore %s: exit %d, %q, %q; want %q", c.args, code, out, stderr, c.want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"", "merge takes the folders"},
		{dir, dir + " is not the folder of a campaign, which explore --out DIR writes: it has no campaign.json"},
		{filepath.Join(dir, "nothing"), "there is no folder "},
	} {
		code, _, stderr := call(t, append([]string{"merge"}, strings.Fields(c.args)...)...)
		if code != frame.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("merge %s: exit %d, %q; want %q", c.args, code, stderr, c.want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("something was written: %v", left)
	}
}

type foundGroup struct {
	Group, Judge, Class, Recording string
	Seeded                         bool
	Runs                           int
	FirstSeed                      uint64 `json:"first_seed"`
	Size                           int    `json:"size_events"`
}

// scenarioOf writes the scenario of a recording into a file, as a user does.
func scenarioOf(t *testing.T, recording string) string {
	t.Helper()
	code, out, stderr := call(t, "replay", recording, "--scenario")
	if code != frame.ExitOK {
		t.Fatalf("replay %s --scenario: exit %d\n%s", recording, code, stderr)
	}
	file := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// pauses is a campaign of several families of runs, which tests play on other numbers of
// processes and with interruptions. A long test has one family more.
func pauses(t *testing.T) (args []string, runs int) {
	t.Helper()
	runs = longtest.Size(t, 120, 220)
	return []string{"explore", "--lock", "setnx-del", "--faults", "pause", "--runs", strconv.Itoa(runs)}, runs
}

// pausesPlayed holds what the campaign pauses prints as JSON and the contents of its folder, played by one
// process and without an interruption, once a test has asked for it.
var pausesPlayed struct {
	out    string
	folder map[string]string
}

// playPauses writes the folder of the campaign pauses, and returns what it prints. The
// campaign is played once for all tests.
func playPauses(t *testing.T) (folder, out string) {
	t.Helper()
	folder = t.TempDir()
	if pausesPlayed.folder == nil {
		args, _ := pauses(t)
		code, out, stderr := call(t, append(args, "--json", "--jobs", "1", "--out", folder)...)
		if code != frame.ExitUnexpected {
			t.Fatalf("exit %d\n%s%s", code, out, stderr)
		}
		pausesPlayed.out, pausesPlayed.folder = out, filetest.Contents(t, folder)
		return folder, out
	}
	filetest.WriteContents(t, folder, pausesPlayed.folder)
	return folder, pausesPlayed.out
}

// explore finds the same on one process, on three, and in shards. Each recording replays,
// and the scenario of each seeded one runs as expected.
func TestExploreFindsTheSameOnAnyNumberOfProcesses(t *testing.T) {
	args, runs := pauses(t)
	args = append(args, "--json")
	one, first := playPauses(t)
	two := t.TempDir()
	if _, again, _ := call(t, append(slices.Clone(args), "--jobs", "3", "--out", two)...); again != first {
		t.Errorf("with three processes:\n%s\nwith one:\n%s", again, first)
	}
	if _, resumed, _ := call(t, append(slices.Clone(args), "--out", one)...); resumed != first {
		t.Errorf("asked again, and all played:\n%s", resumed)
	}

	for name := range filetest.Contents(t, one) {
		if strings.HasSuffix(name, ".yaml") {
			t.Errorf("%s: the recording beside it holds the scenario", name)
		}
	}
	lines := strings.Split(strings.TrimSpace(first), "\n")
	misdelete := false
	for _, line := range lines[:len(lines)-1] {
		var g foundGroup
		if err := json.Unmarshal([]byte(line), &g); err != nil {
			t.Fatal(err)
		}
		misdelete = misdelete || g.Judge == "misdelete"
		if g.Class == "bug" && (g.Size > 20 || !g.Seeded) {
			t.Errorf("%s has %d events, seeded: %v", g.Group, g.Size, g.Seeded)
		}
		if code, out, _ := call(t, "replay", filepath.Join(one, g.Recording)); code != frame.ExitOK {
			t.Errorf("replay of %s: exit %d\n%s", g.Recording, code, out)
		}
		if g.Seeded {
			if code, out, _ := call(t, "run", scenarioOf(t, filepath.Join(one, g.Recording))); code != frame.ExitOK {
				t.Errorf("run of the scenario of %s: exit %d\n%s", g.Recording, code, out)
			}
		}
	}
	if !misdelete {
		t.Error("the misdelete was not found")
	}

	var shards []string
	for _, shard := range []string{"1/2", "2/2"} {
		dir := t.TempDir()
		shards = append(shards, dir)
		if code, out, stderr := call(t, append(slices.Clone(args), "--shard", shard, "--out", dir)...); code != frame.ExitOK {
			t.Fatalf("shard %s: exit %d\n%s%s", shard, code, out, stderr)
		}
	}
	if _, merged, stderr := call(t, "merge", shards[0], shards[1], "--json"); merged != first {
		t.Errorf("merged:\n%s%s", merged, stderr)
	}
	for args, want := range map[string]string{
		shards[0] + " " + shards[0]:                         "merge: the folder " + shards[0] + " is named twice",
		shards[0] + " " + shards[1] + " --out " + shards[0]: "is the folder of a shard",
	} {
		if code, _, stderr := call(t, append([]string{"merge"}, strings.Fields(args)...)...); code != frame.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("merge %s: exit %d, %q; want %q", args, code, stderr, want)
		}
	}
	code, part, stderr := call(t, "merge", shards[1])
	if want := "these shards of the campaign are missing: 1/2\n"; !strings.Contains(stderr, want) {
		t.Errorf("a shard alone: %q; want %q", stderr, want)
	}
	played := min(100, runs-100) // the shard has the second family of a hundred runs
	if code != frame.ExitUnexpected || !strings.Contains(squeeze(part), fmt.Sprintf("incomplete: %d of %d runs were played", played, runs)) {
		t.Errorf("a shard alone: exit %d\n%s", code, part)
	}
}

// A campaign that ends with its time did its task. It says how far it came and how to go on. A
// shard is not done: merge wants the rest of its runs.
func TestExploreStopsInTime(t *testing.T) {
	played := func(t *testing.T, pattern, text string) int {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in %s", pattern, text)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	args := []string{"explore", "--lock", "setnx-cad", "--runs", "100000", "--jobs", "1", "--time", "100ms"}
	for _, c := range []struct {
		name   string
		more   []string
		stderr string
		code   int
		shard  bool
	}{
		{"without a folder", nil, `simrun: --time ended it after (\d+) of 100000 runs\. Nothing of it was kept: with --out DIR it is, and the same command goes on from there\n$`, frame.ExitOK, false},
		{"with a folder", []string{"--out", t.TempDir()}, `simrun: --time ended it after (\d+) of 100000 runs\. The same command goes on from there\n$`, frame.ExitOK, false},
		{"a shard", []string{"--out", t.TempDir(), "--shard", "1/2"}, `simrun: --time ended it after (\d+) of 50000 runs\. The same command goes on from there\n$`, frame.ExitUndecided, true},
	} {
		code, out, stderr := call(t, append(slices.Clone(args), c.more...)...)
		n := played(t, c.stderr, stderr)
		if n == 0 { // on this machine a second is too short
			c.code = frame.ExitUndecided
		}
		if code != c.code {
			t.Errorf("%s: exit %d, want %d\n%s%s", c.name, code, c.code, out, stderr)
		}
		if c.shard {
			continue
		}
		if here := played(t, `incomplete: (\d+) of 100000 runs were played`, squeeze(out)); here != n {
			t.Errorf("%s: %d runs on stdout and %d on stderr", c.name, here, n)
		}
	}
}

// Whether a campaign that was cut short is undecided depends on why it was.
func TestTheExitCodeOfACampaignThatWasCutShort(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      explore.Tally
		inTime bool
		want   int
	}{
		{"the time was over", explore.Tally{Runs: 5, Missing: 3}, true, frame.ExitOK},
		{"the time was over, and failures are not small", explore.Tally{Runs: 5, Unfinished: 1}, true, frame.ExitOK},
		{"the time was over before a run", explore.Tally{Missing: 3}, true, frame.ExitUndecided},
		{"the time was over, and a run is undecided", explore.Tally{Runs: 5, Missing: 3, Odd: []explore.Run{{}}}, true, frame.ExitUndecided},
		{"the time was over, and there is a bug", explore.Tally{Runs: 5, Missing: 3, Groups: []explore.Found{{Failed: explore.Failed{Group: failure.Group{Class: judges.ClassBug}}}}}, true, frame.ExitUnexpected},
		{"the time was over before all schedules", explore.Tally{Runs: 5, Coverage: &strategy.Coverage{}}, true, frame.ExitUndecided},
		{"interrupted", explore.Tally{Runs: 5, Missing: 3}, false, frame.ExitUndecided},
		{"interrupted, and failures are not small", explore.Tally{Runs: 5, Unfinished: 1}, false, frame.ExitUndecided},
		{"played to its end", explore.Tally{Runs: 5}, false, frame.ExitOK},
	} {
		if got := tallyCode(c.o, c.inTime); got != c.want {
			t.Errorf("%s: exit %d, want %d", c.name, got, c.want)
		}
	}
}

func TestTheWordsOfWhatWasNotTried(t *testing.T) {
	if got := notTried(explore.Tally{}, "dir"); got != "" {
		t.Errorf("without cells it says %q", got)
	}
	cells := coverage.Table{Rows: []coverage.Row{{Fault: coverage.Pause}}, Grid: []coverage.Situation{{Op: "lock", State: coverage.Free, Moment: coverage.Waiting, Met: []coverage.Kind{coverage.Pause}}}}
	o := explore.Tally{Cells: &cells}
	if got := notTried(o, "dir"); got != "" {
		t.Errorf("of a full table it says %q", got)
	}
	for range untriedMost + 1 {
		cells.Grid = append(cells.Grid, coverage.Situation{Op: "unlock", State: coverage.Own, Moment: coverage.ToServer, Never: []coverage.Kind{coverage.Pause}})
	}
	const cell = "no pause met an unlock between request and effect, with the lock held by the thread"
	for dir, where := range map[string]string{"": "--out DIR writes a table, and --json has all", "dir": "table: " + filepath.Join("dir", "verdicts.md")} {
		want := "not tried: " + strings.Join(slices.Repeat([]string{cell}, untriedMost), "; ") + "; and 1 more (" + where + ")"
		if got := notTried(o, dir); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

func TestTheWordsOfWhatShrinkingCosts(t *testing.T) {
	const want = "4 of 5 failures small, each within 600 runs of smaller scenarios, 10s at most; a failure of a run of more than 40000 steps stays as it was found"
	if got := shrinkingCost(explore.ShrinkProgress{Done: 1, Begun: 2, Of: 5}, frame.Means{}.ShrinkBudget(), ", 10s at most"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The output tells a user who kept nothing how to get a recording to replay. With --quiet it leaves
// out limits.
func TestATallySaysHowAFailureIsPlayedAgain(t *testing.T) {
	found := func(class judges.Class) (explore.Tally, []explore.Shrunk) {
		f := explore.Found{}
		f.Class, f.Judge = class, "misdelete"
		return explore.Tally{Groups: []explore.Found{f}}, []explore.Shrunk{{Recording: "{}"}}
	}
	const hint = "The same command with --out DIR writes a recording of each failure.\n"
	for _, c := range []struct {
		rule  string
		class judges.Class
		dir   string
		quiet bool
		want  string
	}{
		{"without a folder", judges.ClassBug, "", false, hint},
		{"with a folder", judges.ClassBug, "d", false, "replay: go run ./cmd/simrun replay d/"},
		{"a bug with --quiet", judges.ClassBug, "", true, hint},
		{"a limit with --quiet", judges.ClassLimit, "", true, ""},
	} {
		var out bytes.Buffer
		o, small := found(c.class)
		printTally((&frame.App{Program: testProgram(), Out: &out, Quiet: c.quiet}), o, small, c.dir)
		if said := strings.Contains(out.String(), hint); said != (c.want == hint) || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s:\n%s", c.rule, &out)
		}
	}
}

func TestTheWordsOfACampaignThatWasCutShort(t *testing.T) {
	o := explore.Tally{Plan: explore.Plan{Runs: 90}, Runs: 50, Missing: 40, Unfinished: 1, Groups: make([]explore.Found, 3)}
	if got, want := cutShort(o, "interrupted", true), "interrupted after 50 of 90 runs, with 1 of 3 failures not made small yet. The same command goes on from there"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	o.Missing = 0
	if got, want := cutShort(o, "--time ended it", false), "--time ended it after all 50 runs, with 1 of 3 failures not made small yet. "+
		"Nothing of it was kept: with --out DIR it is, and the same command goes on from there"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A campaign that is interrupted prints its failures so far, as they were found. The same command goes
// on, also after the process was killed, and at the end the folder is the same to the byte as without
// an interruption.
func TestAnInterruptedCampaignEndsTheSame(t *testing.T) {
	args, _ := pauses(t)
	args = append(args, "--out")
	dir, _ := playPauses(t)
	want := filetest.Contents(t, dir)
	for _, c := range []struct {
		name   string
		signal os.Signal
		after  string // the line of stderr
		code   int
		found  bool // no failure is small when the signal comes
	}{
		{"while it plays", os.Interrupt, "found after ", frame.ExitUnexpected, true},
		{"while it makes failures small", syscall.SIGTERM, "making ", frame.ExitUnexpected, false},
		{"killed", os.Kill, "found after ", -1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], append(slices.Clone(args), dir)...)
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var told []string
			for lines := bufio.NewScanner(stderr); lines.Scan(); {
				told = append(told, lines.Text())
				limit := strings.Contains(lines.Text(), "): limit ") // it may be found first, and the exit code is that of a bug
				if c.after != "" && strings.HasPrefix(lines.Text(), c.after) && !limit {
					c.after = ""
					_ = cmd.Process.Signal(c.signal)
				}
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Fatalf("exit %d\n%s%s", code, strings.Join(told, "\n"), &out)
			}
			if c.found && !strings.Contains(out.String(), "as it was found") {
				t.Errorf("it tells no failure as it was found:\n%s", &out)
			}
			recordings := 0
			for name := range filetest.Contents(t, dir) {
				if strings.HasSuffix(name, ".lockstep") {
					recordings++
					if code, out, stderr := call(t, "replay", filepath.Join(dir, name)); code != frame.ExitOK {
						t.Errorf("replay of %s: exit %d\n%s%s", name, code, out, stderr)
					}
				}
			}
			if recordings == 0 {
				t.Error("no recording was written")
			}
			if code, _, stderr := call(t, append(slices.Clone(args), dir)...); code != frame.ExitUnexpected {
				t.Fatalf("exit %d\n%s", code, stderr)
			}
			if got := filetest.Contents(t, dir); !maps.Equal(got, want) {
				t.Errorf("the folders differ: %v, and %v without an interruption", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
				for name, text := range want {
					if got[name] != text {
						t.Errorf("%s:\n%.2000s\nwant\n%.2000s", name, got[name], text)
					}
				}
			}
		})
	}
}

// A campaign that goes on first says what its folder has, unless it is quiet.
func TestACampaignThatGoesOnSaysWhatItHas(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ args, says string }{
		{"--runs 20", ""},
		{"--runs 30", "20 of 30 runs were played before and are in " + dir + ", with 3 kinds of failure\n"},
		{"--runs 30", "30 of 30 runs were played before and are in " + dir + ", with 3 kinds of failure\n"},
		{"--runs 30 --quiet", ""},
	} {
		args := append(strings.Fields("explore --lock setnx-del --out "+dir), strings.Fields(c.args)...)
		code, _, stderr := call(t, args...)
		if code != frame.ExitUnexpected || !strings.HasPrefix(stderr, c.says) || strings.Contains(stderr, "before") != (c.says != "") {
			t.Errorf("%s: exit %d, %s\nwant it to begin with %q", c.args, code, stderr, c.says)
		}
	}
}

// The first interrupt ends the context. The second one cleans up and ends the program. The exit code
// is that of a bug if the command printed one.
func TestASecondInterruptDoesNotWait(t *testing.T) {
	for _, c := range []struct{ printed, code int }{{frame.ExitOK, frame.ExitUndecided}, {frame.ExitUnexpected, frame.ExitUnexpected}} {
		var stderr strings.Builder
		exited, cleaned := make(chan int, 1), false
		asked := make(chan time.Time)
		a := &frame.App{Program: testProgram(), Err: &stderr, Exit: func(code int) { exited <- code }, Now: func() time.Time { return <-asked }}
		a.Printed(c.printed)
		first := time.Unix(1, 0)
		stop, release := a.Interrupts(func() { cleaned = true })
		interrupt := func() {
			t.Helper()
			if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
		interrupt()
		asked <- first
		<-stop.Done()
		interrupt() // a second signal of the same interrupt
		asked <- first.Add(time.Second / 2)
		if cleaned {
			t.Error("the first interrupt cleaned up")
		}
		interrupt()
		asked <- first.Add(2 * time.Second)
		if code := <-exited; code != c.code || !cleaned {
			t.Errorf("exit %d, want %d; cleaned up: %v\n%s", code, c.code, cleaned, &stderr)
		}
		release()
	}
}

// A second process is refused a folder until the first one ends, however it ends.
func TestAFolderHasOneProcess(t *testing.T) {
	dir := t.TempDir()
	a := &frame.App{Program: testProgram(), Err: io.Discard}
	release, err := a.Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Folder(dir); err != nil {
		t.Errorf("a command of the same program: %v", err)
	} else {
		again()
	}
	args := []string{"explore", "--lock", "setnx-cad", "--runs", "1", "--out", dir}
	for _, args := range [][]string{
		args, append(slices.Clone(args[:3]), "--strategy", "exhaustive", "--out", dir), {"survey", "--lock", "setnx-cad", "--out", dir}, {"repeat", "--lock", "setnx-cad", "--out", dir},
		{"run", "misdelete", "--lock", "setnx-cad", "--out", dir}, {"report", filepath.Join("..", "results"), "-o", dir},
	} {
		code, out, stderr := call(t, args...)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, "another process writes into the folder "+dir) {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, stderr)
		}
	}
	if left := filetest.Contents(t, dir); len(left) != 0 {
		t.Errorf("the refused process wrote %v", slices.Sorted(maps.Keys(left)))
	}
	release()
	if code, _, stderr := call(t, args...); code != frame.ExitOK {
		t.Errorf("afterwards: exit %d\n%s", code, stderr)
	}
}

// A run with which two workers die is not played again, and says how the last one ended.
func TestAKilledProcessTakesOneRunWithIt(t *testing.T) {
	p := explore.Plan{World: sim.Version, Lock: "setnx-cad", Profile: draw.Simple, Strategy: explore.StrategyPlain, Seed: 1, Runs: 6}
	started := 0
	c := explore.Campaign{Plan: p, Of: 1, Jobs: 1, Dir: t.TempDir(), Stop: t.Context(), Player: func() (explore.Player, error) {
		if started++; started > 2 {
			return Player(t.Context(), p)
		}
		return explore.Away(exec.Command("false"), p)
	}}
	if _, complete, err := c.Run(); !complete || err != nil {
		t.Fatal(complete, err)
	}
	_, runs, err := explore.Merge([]string{c.Dir})
	if err != nil {
		t.Fatal(err)
	}
	o := explore.Sum(p, runs)
	if len(o.Died) != 1 || o.Died[0].Index != 0 || o.Runs != 6 || !strings.Contains(o.Died[0].Why, "exit status 1") {
		t.Errorf("%d runs, died %+v", o.Runs, o.Died)
	}
	if code := tallyCode(o, false); code != frame.ExitDefect {
		t.Errorf("exit %d", code)
	}
}

// A failure that is not met again, as that of a lock which asks the machine for chance, costs the
// campaign one run, which is reported as nondeterministic.
func TestAFailureThatIsNotMetAgain(t *testing.T) {
	dir := t.TempDir()
	args := []string{"explore", "--lock", "setnx-cad", "--runs", "5", "--out", dir}
	if code, out, stderr := call(t, args...); code != frame.ExitOK {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	file := filepath.Join(dir, explore.RunsFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := subject.Find("setnx-cad")
	if err != nil {
		t.Fatal(err)
	}
	_, drawn := explore.Plan{Profile: draw.Simple, Seed: 1}.Draw(0, l)
	scenario, err := json.Marshal(drawn.Text)
	if err != nil {
		t.Fatal(err)
	}
	failure := `,"failures":[{"judge":"misdelete","class":"bug","op":"unlock","faults":["pause"],"why":"it did once","size_events":3}],"scenario":` + string(scenario) + "}\n"
	once := strings.Replace(string(text), "}\n", failure, 1)
	if err := os.WriteFile(file, []byte(once), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, args...)
	for _, want := range []string{"every promise held", "1 undecided or not the same again", "broke misdelete when it was first played, and does not now"} {
		if one := strings.Join(strings.Fields(out), " "); !strings.Contains(one, want) {
			t.Errorf("%q:\n%s%s", want, out, stderr)
		}
	}
	if code != frame.ExitUndecided {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// An exhaustive search covers all schedules of two clients, or says that it did not. A
// schedule that fails becomes a scenario that shows the failure alone.
func TestExploreCoversASmallCase(t *testing.T) {
	small := []string{"explore", "--lock", "setnx-del", "--faults", "network", "--strategy", "exhaustive"}
	code, out, stderr := call(t, small...)
	if code != frame.ExitOK || !strings.HasPrefix(out, "setnx-del: covered all ") || !strings.Contains(out, "of them with one message lost)") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
	code, out, _ = call(t, append(slices.Clone(small), "--runs", "5")...)
	if code != frame.ExitUndecided || !strings.Contains(out, "5 schedules") || !strings.Contains(out, "not all") {
		t.Errorf("of a few: exit %d\n%s", code, out)
	}
	dir := t.TempDir()
	code, out, stderr = call(t, "explore", "--lock", "redisson@3.21.3", "--faults", "network", "--strategy", "exhaustive", "--runs", "60", "--out", dir, "--json")
	if code != frame.ExitUnexpected {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	var g foundGroup
	if err := json.Unmarshal([]byte(out[:strings.Index(out, "\n")]), &g); err != nil {
		t.Fatal(err)
	}
	if !g.Seeded {
		t.Fatalf("its scenario alone does not show it: %s", out)
	}
	for _, want := range []string{`--strategy exhaustive --runs 60"`, `"missing":0,`, `"coverage":{"schedules":56,"disturbed":44,"how":"lost","pruned":4,`, `"complete":false}`} {
		if !strings.Contains(out, want) {
			t.Errorf("the JSON does not say %s:\n%s", want, out)
		}
	}
	if code, out, stderr := call(t, "run", scenarioOf(t, filepath.Join(dir, g.Recording))); code != frame.ExitOK {
		t.Errorf("run: exit %d\n%s%s", code, out, stderr)
	}
	if code, out, stderr := call(t, "replay", filepath.Join(dir, g.Recording)); code != frame.ExitOK {
		t.Errorf("replay: exit %d\n%s%s", code, out, stderr)
	}
}

// An exhaustive search covers a user's own scenario.
func TestExploreCoversAScenario(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	text := "lockstep: 1\nname: mine\nabout: Two take one.\nlocks: [none]\nresources: {r: {start: 1, never_below: 0}}\nprocesses: {a: {}, b: {}}\n" +
		"steps:\n  a/1: [{with_lock: {name: x, steps: [{use: {resource: r, take: 1, for: 0}}]}}]\n" +
		"  b/1: [{with_lock: {name: x, steps: [{use: {resource: r, take: 1, for: 0}}]}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t, "explore", "--lock", "none", "--strategy", "exhaustive", "--scenario", file, "--out", filepath.Join(dir, "out"))
	if code != frame.ExitUnexpected || !strings.Contains(out, "workload at use") || !strings.Contains(out, "covered all") {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	for _, line := range strings.Split(out, "\n") {
		if _, recording, ok := strings.Cut(line, "simrun replay "); ok && strings.Contains(line, "workload") {
			if code, out, stderr := call(t, "replay", recording); code != frame.ExitOK || !strings.Contains(out, "workload (bug)") {
				t.Errorf("replay %s: exit %d\n%s%s", recording, code, out, stderr)
			}
		}
	}
}

func TestExploreTellsTheBound(t *testing.T) {
	code, out, stderr := call(t, "explore", "--lock", "setnx-cad", "--strategy", "tapct", "--depth", "2", "--runs", "40")
	if code != frame.ExitOK || !strings.Contains(strings.Join(strings.Fields(out), " "), "tapct with at most 4 actors and 200 decisions: a bug that needs 2 orderings of messages is met") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}

// A full campaign ends before its runs are played, and says so. With --keep-going it plays them.
func TestExploreEndsWhenItIsFull(t *testing.T) {
	for _, c := range []struct {
		more string
		full bool
	}{{"", true}, {"--keep-going", false}} {
		args := strings.Fields("explore --lock none --faults operator --runs 400 --json " + c.more)
		_, out, stderr := call(t, args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var total struct {
			Runs, Missing int
			Full          bool
			Plan          explore.Plan
			Cells         coverage.Table
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &total); err != nil {
			t.Fatalf("%v\n%s%s", err, out, stderr)
		}
		if total.Full != c.full || total.Runs < 400 != c.full || total.Missing != 0 || total.Plan.Settled > 0 != c.full || total.Cells.Met != total.Cells.Of || len(total.Cells.Grid) == 0 {
			t.Errorf("%s: %+v", c.more, total)
		}
	}
}

// A file of another program in the folder is bad input, and stays as it is.
func TestACampaignRefusesAFileThatHasNoRuns(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, explore.RunsFile)
	if err := os.WriteFile(file, []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, "explore", "--lock", "none", "--runs", "1", "--out", dir)
	if want := "holds another campaign (runs.jsonl:1 is no run: "; code != frame.ExitUsage || !strings.Contains(stderr, want) {
		t.Errorf("exit %d, %s; want exit %d and %q", code, stderr, frame.ExitUsage, want)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// A campaign plays with the greatest numbers that its options take.
func TestTheGreatestNumbersAreTaken(t *testing.T) {
	runs, orderings, shards := fmt.Sprint(quantity.Runs.Most), fmt.Sprint(quantity.Orderings.Most), fmt.Sprint(quantity.Shards.Most)
	for _, args := range [][]string{
		{"--runs", runs, "--time", "100ms"},
		{"--runs", runs, "--shard", shards + "/" + shards, "--out", filepath.Join(t.TempDir(), "shard"), "--time", "100ms"},
		{"--runs", "2", "--strategy", "tapct", "--depth", orderings},
		{"--runs", "2", "--steps", fmt.Sprint(quantity.Steps.Most), "--time", quantity.Longest.String()},
	} {
		args = append([]string{"explore", "--lock", "setnx-cad", "--jobs", "1"}, args...)
		code, out, stderr := call(t, args...)
		none := strings.Contains(out, ": 0 of ") || strings.HasPrefix(out, "0 runs")
		late := strings.Contains(stderr, "--time ended it after 0 of "+runs+" runs") // on a busy machine
		if code != frame.ExitOK && code != frame.ExitUndecided || none && !late || strings.Contains(stderr, "defect") {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, stderr)
		}
	}
}
