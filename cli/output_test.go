package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockstep/cli/frame"
	"lockstep/internal/bad"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// full is a device without free space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Text that does not reach the output is an error of the system, for each command.
func TestAnOutputThatFails(t *testing.T) {
	dir := t.TempDir()
	history := filepath.Join(dir, "history.jsonl")
	if err := os.WriteFile(history, []byte(`{"process":"a","thread":1,"lock":"x","op":"acquire","call_ns":0,"return_ns":10,"outcome":"granted"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join("..", "results", "misdelete", "setnx-del", "1.lockstep")
	for _, args := range [][]string{
		{"help"}, {"list"}, {"list", "--json"}, {"check", history}, {"check", history, "--json"},
		{"run", "misdelete", "--lock", "setnx-del"}, {"run", "misdelete", "--lock", "setnx-del", "--json"},
		{"run", "misdelete", "--lock", "setnx-del", "--format", "junit"}, {"matrix", "misdelete", "--lock", "setnx-del"},
		{"replay", recording}, {"report", recording, "--text"}, {"shrink", recording},
	} {
		var stderr bytes.Buffer
		a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Out: full{}, Err: &stderr}
		code := a.Run(args)
		if want := "simrun: input or output failed: the output: no space left on device\n"; code != frame.ExitIO || stderr.String() != want {
			t.Errorf("%v: exit %d, %q; want %d and %q", args, code, stderr.String(), frame.ExitIO, want)
		}
	}
	// A usage error prints nothing on the output, and stays what it is.
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Out: full{}, Err: &bytes.Buffer{}}
	if code := a.Run([]string{"run", "no-such-scenario"}); code != frame.ExitUsage {
		t.Errorf("bad input: exit %d", code)
	}
}

// No command takes a full disk for a defect of simrun, and each reports it once. A limit on the
// size of files takes the place of the full disk. The test runs in a process of its own, since go
// test keeps a log of this one in a file.
func TestADiskThatIsFull(t *testing.T) {
	const limited = "LOCKSTEP_TEST_LIMITED"
	if os.Getenv(limited) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestADiskThatIsFull$")
		campaign, _ := playPauses(t)
		cmd.Env = append(os.Environ(), limited+"="+campaign)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	t.Chdir(t.TempDir())
	args, _ := pauses(t)
	filetest.WriteContents(t, "campaign", filetest.Contents(t, os.Getenv(limited)))
	if code, _, stderr := call(t, "run", "misdelete", "--lock", "setnx-del", "--out", "runs"); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	two := `{"process":"a","thread":1,"lock":"x","op":"acquire","call_ns":0,"return_ns":10,"outcome":"granted"}` + "\n" +
		`{"process":"b","thread":1,"lock":"x","op":"acquire","call_ns":20,"return_ns":30,"outcome":"granted"}` + "\n"
	if err := os.WriteFile("two.jsonl", []byte(two), 0o644); err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join("runs", "misdelete", "setnx-del", "1.lockstep")
	before := filetest.Contents(t, ".")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"run", "misdelete", "--lock", "setnx-del", "--out", "out"},
		append(args, "--out", "out"),
		{"explore", "--lock", "setnx-del", "--strategy", "exhaustive", "--out", "out"},
		{"merge", "campaign", "--out", "out"},
		{"report", recording, "-o", "out.html"},
		{"report", "runs", "-o", "out"},
		{"shrink", recording, "-o", "out.yaml"},
		{"check", "two.jsonl", "--out", "out"},
		{"survey", "--lock", "none", "--runs", "11", "--seconds", "100", "--jobs", "1", "--out", "out"},
		{"repeat", "--lock", "none", "--runs", "1", "--jobs", "1", "--seeds", "1..1", "--out", "out"},
	}
	sizes := []uint64{100, 0, 1, 1000, 3000, 10_000, 100_000}
	bad.Counted(t, "full disks", len(commands)*len(sizes))
	if !longtest.Asked() {
		sizes = sizes[:1]
	}
	for _, args := range commands {
		outputs := func() map[string]string {
			all := filetest.Contents(t, ".")
			maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasPrefix(name, "out") })
			for name := range all {
				if err := os.RemoveAll(strings.SplitN(name, "/", 2)[0]); err != nil {
					t.Fatal(err)
				}
			}
			return all
		}
		for _, size := range sizes {
			small := limit
			small.Cur = size
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
				t.Fatal(err)
			}
			code, out, stderr := call(t, args...)
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				t.Fatal(err)
			}
			full := code == frame.ExitIO && strings.Count(stderr, "input or output failed: ") == 1 && strings.Count(stderr, "file too large") == 1
			if !full && (size <= 100 || code > frame.ExitUnexpected) {
				t.Errorf("%v, %d bytes: exit %d, want %d and one sentence:\n%s", args, size, code, frame.ExitIO, stderr)
			}
			if keeps := args[0] == "survey" || args[0] == "repeat"; keeps && (!strings.Contains(out, "none") || code == frame.ExitIO && strings.Count(stderr, " out/") != 1) {
				t.Errorf("%v, %d bytes: the result is not printed, or the file not named:\n%s%s", args, size, out, stderr)
			}
			for name, text := range outputs() {
				switch ends := strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "</html>"); {
				case strings.Contains(name, ".writing-"):
					t.Errorf("%v, %d bytes: a temporary file stayed: %s", args, size, name)
				case !ends && text != "" && name != "out/runs.jsonl" && name != "out/shrunk.jsonl": // which go on after their last whole line
					t.Errorf("%v, %d bytes: half of a file: %s has %d bytes", args, size, name, len(text))
				}
			}
		}
	}
	for name, text := range filetest.Contents(t, ".") {
		if strings.HasPrefix(name, "runs/misdelete") && text != before[name] {
			t.Errorf("%s was changed", name)
		}
	}
}

// afterLines is an output that calls do once, after some lines.
type afterLines struct {
	bytes.Buffer
	lines int
	do    func()
}

func (o *afterLines) Write(text []byte) (int, error) {
	n, err := o.Buffer.Write(text)
	if o.lines -= bytes.Count(text, []byte("\n")); o.lines <= 0 && o.do != nil {
		o.do()
		o.do = nil
	}
	return n, err
}

// An interrupt ends a run of any number of seeds with everything that was played until then.
// The results say that they are a part.
func TestAnInterruptedRunKeepsWhatItPlayed(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Chdir(t.TempDir())
			out := &afterLines{lines: 3, do: func() { _ = syscall.Kill(os.Getpid(), signal) }}
			var stderr bytes.Buffer
			a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Out: out, Err: &stderr}
			code := a.Run([]string{"run", "misdelete", "--lock", "setnx-del", "--seed", "1..18446744073709551615", "--json", "--out", "r"})
			kept := filetest.Contents(t, "r")
			lines := strings.Split(strings.TrimSpace(kept["verdicts.jsonl"]), "\n")
			for i, line := range lines {
				var o object
				if err := json.Unmarshal([]byte(line), &o); err != nil || o.Seed != uint64(i+1) {
					t.Fatalf("line %d: %v in %s", i+1, err, line)
				}
			}
			if code != frame.ExitUndecided || kept["verdicts.jsonl"] != out.String() || len(lines) < 3 {
				t.Errorf("exit %d; kept %d lines and printed\n%s%s", code, len(lines), out, &stderr)
			}
			part := fmt.Sprintf("interrupted after %d of 18446744073709551615 runs", len(lines))
			if !strings.Contains(kept["verdicts.md"], "\nThis is a part of what was asked for: "+part+".\n") || !strings.Contains(stderr.String(), part+"; their verdicts are kept in r\n") {
				t.Errorf("nothing says %q:\n%s%s", part, kept["verdicts.md"], &stderr)
			}
			if !strings.Contains(kept["verdicts.md"], fmt.Sprintf("| misdelete | setnx-del | 1..%d | bug | yes |", len(lines))) || kept["misdelete/setnx-del/1.lockstep"] == "" {
				t.Errorf("kept\n%s", kept["verdicts.md"])
			}
			for name := range kept {
				if strings.Contains(name, ".writing-") {
					t.Errorf("a temporary file stayed: %s", name)
				}
			}
			if !strings.Contains(kept["versions.json"], `"world": 0`) {
				t.Errorf("the versions of a part are said to be those of the whole: %s", kept["versions.json"])
			}
		})
	}
}

// Without --out an interrupted run says that nothing is kept. A scenario that does not apply to a
// lock is not counted as a run, neither among the runs that were played nor in the total.
func TestAnInterruptedRunWithoutAFolderKeepsNothing(t *testing.T) {
	out := &afterLines{lines: 3, do: func() { _ = syscall.Kill(os.Getpid(), syscall.SIGINT) }}
	var stderr bytes.Buffer
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Out: out, Err: &stderr}
	code := a.Run([]string{"run", "crashed-watchdog", "misdelete", "--lock", "setnx-cad", "--seed", "1..1000000", "--json"})
	played := strings.Count(out.String(), `"verdict":"held"`)
	want := fmt.Sprintf("simrun: interrupted after %d of 1000000 runs; nothing of it is kept without --out DIR\n", played)
	if code != frame.ExitUndecided || played < 2 || strings.Count(out.String(), `"verdict":"n/a"`) != 1 || !strings.HasSuffix(stderr.String(), want) {
		t.Errorf("exit %d\n%s%s; want %s", code, out, &stderr, want)
	}
}

// A pair keeps one verdict of each kind, however many seeds it has.
func TestAPairKeepsOneVerdictOfEachKind(t *testing.T) {
	sc, err := scenarios.Find("misdelete")
	if err != nil {
		t.Fatal(err)
	}
	l, err := subject.Find("setnx-del")
	if err != nil {
		t.Fatal(err)
	}
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Err: &bytes.Buffer{}}
	p := &Pair{Scenario: sc, Lock: l, From: 3, To: 12}
	var seeds []uint64
	if err := PlayPair(a, context.Background(), p, &progress{a: a}, func(v play.Verdict) error {
		seeds = append(seeds, v.Seed)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(seeds) != "[3 4 5 6 7 8 9 10 11 12]" || p.runs != 10 || len(p.kinds) != 1 || p.kinds[0].first.Seed != 3 || p.seeds() != "3..12" || p.unexpectedRuns() != 0 {
		t.Errorf("told of seeds %v; %d runs of %d kinds, seeds %s, %d not as expected", seeds, p.runs, len(p.kinds), p.seeds(), p.unexpectedRuns())
	}
	// An error of the function each ends the pair.
	failed := errors.New("no more")
	if err := PlayPair(a, context.Background(), &Pair{Scenario: sc, Lock: l, From: 1, To: 1 << 60}, &progress{a: a}, func(play.Verdict) error { return failed }); err != failed {
		t.Errorf("got %v", err)
	}
	// An interrupt ends the run under way, which is not reported.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := 0
	cut := &Pair{Scenario: sc, Lock: l, From: 1, To: 3}
	if err := PlayPair(a, endAfter(ctx, cancel, &asked, 1), cut, &progress{a: a}, func(v play.Verdict) error {
		t.Errorf("told of seed %d: %s", v.Seed, v.Word)
		return nil
	}); err != nil || cut.runs != 0 {
		t.Errorf("interrupted: %v, %d runs", err, cut.runs)
	}
}

// The progress does not count a pair that does not apply.
func TestTheProgressCountsTheRunsThatArePlayed(t *testing.T) {
	pairs, err := Choose([]string{"crashed-watchdog", "misdelete"}, "", []string{"setnx-cad"}, "1..3")
	if err != nil {
		t.Fatal(err)
	}
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Err: &bytes.Buffer{}}
	progress := newProgress(a, pairs)
	for _, p := range pairs {
		if err := PlayPair(a, context.Background(), p, progress, nil); err != nil {
			t.Fatal(err)
		}
	}
	if progress.done != 3 || progress.total != 3 || runsOf(pairs) != 3 {
		t.Errorf("%d of %d runs, and the pairs have %d; want 3", progress.done, progress.total, runsOf(pairs))
	}
}

// With `in: some` the verdicts of all seeds wait until one is as expected. If none is, all of them
// are unexpected.
func TestOneSeedIsEnoughWhereAFileSaysSo(t *testing.T) {
	sc, err := scenarios.Parse("late.yaml", []byte("lockstep: 1\nname: late\nlocks: [setnx-del]\nprocesses: {a: {}}\nsteps: {a/1: [{lock: x}, {unlock: x}]}\n"+
		"expect: {setnx-del: {bug: [misdelete], in: some}}\n"), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	l, err := subject.Find("setnx-del")
	if err != nil {
		t.Fatal(err)
	}
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Err: &bytes.Buffer{}}
	told := func(ctx context.Context, p *Pair) (all []bool) {
		if err := PlayPair(a, ctx, p, &progress{a: a}, func(v play.Verdict) error {
			all = append(all, v.AsExpected)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	p := &Pair{Scenario: sc, Lock: l, From: 1, To: 3}
	if all := told(context.Background(), p); fmt.Sprint(all) != "[false false false]" || p.unexpectedRuns() != 3 || exitCode([]*Pair{p}) != frame.ExitUnexpected {
		t.Errorf("no seed shows it: %v, %d not as expected", all, p.unexpectedRuns())
	}
	met := &Pair{Scenario: sc, Lock: l, From: 1, To: 3}
	v := play.Run(a.Host, sc, l, 1)
	v.AsExpected = true
	met.add(v)
	if all := told(context.Background(), met); fmt.Sprint(all) != "[true true true]" || met.unexpectedRuns() != 0 || exitCode([]*Pair{met}) != frame.ExitOK {
		t.Errorf("a seed shows it: %v, %d not as expected", all, met.unexpectedRuns())
	}
	// An interrupt comes before a seed is as expected, so the pair has no verdict.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cut := &Pair{Scenario: sc, Lock: l, From: 1, To: 3}
	n := 0
	if all := told(endAfter(ctx, cancel, &n, 2), cut); len(all) != 0 || cut.runs != 0 {
		t.Errorf("interrupted: %v, %d runs", all, cut.runs)
	}
}

// endAfter returns a context that ends when its method Err has been called a number of times.
func endAfter(ctx context.Context, cancel func(), asked *int, times int) context.Context {
	return countedContext{ctx, func() {
		if *asked++; *asked > times {
			cancel()
		}
	}}
}

type countedContext struct {
	context.Context
	asked func()
}

func (c countedContext) Err() error {
	c.asked()
	return c.Context.Err()
}
