package cli

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
	"lockstep/internal/bad"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
)

// answered calls simrun with an input, whose end it awaits.
func answered(t *testing.T, name string, args ...string) (a bad.Answer) {
	t.Helper()
	bad.Ends(name, func() { a.Code, a.Out, a.Errors = call(t, args...) })
	return a
}

// tryFiles gives each input as a file to one of the commands in turn, in which FILE and DIR stand for the file and a
// folder for results. check returns what is wrong with an answer besides what no answer may be.
func tryFiles(t *testing.T, kind, file string, inputs []bad.Input, lines int, commands []string, check func(command string, a bad.Answer) error) {
	t.Helper()
	bad.Counted(t, kind, len(inputs))
	dir := t.TempDir()
	step := 1
	if !longtest.Asked() {
		step = 3
	}
	for i := 0; i < len(inputs); i += step {
		in, command := inputs[i], commands[i/step%len(commands)]
		name := filepath.Join(dir, file)
		filetest.Write(t, name, in.Text)
		out := filepath.Join(t.TempDir(), "out")
		args := strings.Fields(strings.NewReplacer("FILE", name, "DIR", out).Replace(command))
		a := answered(t, command+": "+in.Name, args...)
		err := a.Check(lines, frame.ExitOK, frame.ExitUnexpected, frame.ExitUndecided, frame.ExitUsage)
		if err == nil {
			err = check(command, a)
		}
		if err == nil && filetest.Read(t, name) != in.Text {
			err = fmt.Errorf("the input was changed")
		}
		for left := range filetest.Contents(t, filepath.Dir(out)) {
			if strings.Contains(left, ".writing-") {
				err = fmt.Errorf("%s was left behind", left)
			}
		}
		if err != nil {
			t.Errorf("%s: %s: %v\n%v", command, in.Name, err, a)
		}
	}
}

func TestDamagedRecordings(t *testing.T) {
	whole := filetest.Read(t, filepath.Join("..", "results", "misdelete", "setnx-del", "1.lockstep"))
	other := filetest.Read(t, filepath.Join("..", "results", "unlock-reply-lost", "redisson@3.21.3", "1.lockstep"))
	begin := strings.Index(whole, "{")
	inputs := append(bad.Flipped(whole, 60), bad.Cut(whole, 30)...)
	inputs = append(inputs, bad.Spliced(whole, other, 15)...)
	for _, in := range bad.Fields(whole[begin:]) {
		inputs = append(inputs, bad.Input{Name: in.Name, Text: whole[:begin] + in.Text + "\n"})
	}
	commands := []string{"replay FILE", "explain FILE", "shrink FILE", "report FILE --text", "report FILE --format perfetto", "explain FILE --json", "report FILE -o DIR", "replay FILE --json", "FILE", "explain FILE --mended"}
	tryFiles(t, "damaged recordings", "a.lockstep", inputs, 2, commands, func(command string, a bad.Answer) error {
		if head, _, _ := strings.Cut(a.Out, "\n"); a.Code == frame.ExitOK && command == "replay FILE" && !strings.Contains(head, ": bug (digest ") {
			return fmt.Errorf("the bug is gone")
		}
		return nil
	})
}

// base is a scenario that the lock of many code bases breaks.
const base = `lockstep: 1
name: base
about: Two processes take one lock.
source: a test
locks: [setnx-del]
network: {latency: 1ms..5ms}
resources:
  stock: {start: 100, never_below: 0}
processes:
  a: {threads: 2}
  b: {}
steps:
  a/1:
    - lock: {name: orders, lease: 3s, want: granted}
    - sleep: 5s
    - unlock: {name: orders}
  a/2:
    - repeat: {times: 3, steps: [sleep: 10ms, {try_lock: {name: x, lease: 1s}}, {unlock: x}]}
  b/1:
    - at: 4s
    - lock: {name: orders, lease: 10s}
    - use: {resource: stock, take: 1, for: 4s}
    - unlock: {name: orders}
faults:
  - {at: 2s, pause: b, for: 100ms}
  - {when: {command: SET, nth: 2}, do: delay, for: 10ms}
expect:
  setnx-del: {bug: [misdelete]}
seeds: 1
`

// lines returns a scenario without each of its lines in turn, with each line twice, and with other values.
func lines(text string) (all []bad.Input) {
	whole := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	values := []string{"null", "[]", "{}", "-1", "1e99", "99999999999999999999", "''", "\"\\e[2J\\n::error::x\"", "&a [*a]", "!!binary x", "87600h", "0s", "-5s", "1ns", "yes", "*no", "{a: [b, {c: d}]}", "|\n  x", "0x7fffffffffffffff"}
	for i, line := range whole {
		with := func(what string, replaced ...string) {
			all = append(all, bad.Input{Name: fmt.Sprintf("line %d %s", i+1, what), Text: strings.Join(slices.Concat(whole[:i], replaced, whole[i+1:]), "")})
		}
		with("missing")
		with("twice", line, line)
		with("indented", "  "+line)
		if key, _, ok := strings.Cut(line, ":"); ok {
			for j := range 3 {
				value := values[(3*i+j)%len(values)]
				with("with "+value, key+": "+value+"\n")
			}
		}
	}
	return all
}

// costly are scenarios that are legal, or almost, and ask for much.
func costly() (all []bad.Input) {
	head := func(processes string) string {
		return "lockstep: 1\nname: costly\nabout: much\nsource: a test\nlocks: [setnx-del]\nprocesses: " + processes + "\nsteps:\n"
	}
	add := func(name, text string) { all = append(all, bad.Input{Name: name, Text: text}) }
	one := head("{a: {}}") + "  a/1:\n"
	add("a lease of ten years", one+"    - lock: {name: x, lease: 87600h}\n    - sleep: 87600h\n    - unlock: x\n")
	add("a waiter behind a lease of a year", head("{a: {}, b: {}}")+"  a/1: [{lock: {name: x, lease: 8760h}}]\n  b/1: [{at: 1s}, {lock: {name: x, lease: 1s}}, {unlock: x}]\n")
	add("a billion repetitions", one+"    - repeat: {times: 1000000000, steps: [{lock: x}, {unlock: x}]}\n")
	add("repetitions of nothing", one+"    - repeat: {times: 1000000000, steps: []}\n")
	add("repetitions of a sleep of 1 ns", one+"    - repeat: {until: 8760h, steps: [sleep: 1ns]}\n")
	add("3000 threads", head("{a: {threads: 3000}}")+"  a/3000: [{lock: x}, {unlock: x}]\n")
	deep := strings.Repeat("{repeat: {times: 10, steps: [", 12) + "{lock: x}, {unlock: x}" + strings.Repeat("]}}", 12)
	add("repetitions in repetitions", one+"    - "+deep+"\n")
	add("a process 10 000 times", head("{"+strings.Repeat("p: {}, ", 10_000)+"a: {}}")+"  a/1: [{lock: x}]\n")
	add("20 000 steps", one+strings.Repeat("    - sleep: 1ms\n", 20_000))
	add("a name of 1 MB", strings.Replace(one, "costly", strings.Repeat("n", 1<<20), 1)+"    - lock: x\n")
	add("a lock with a name of 1 MB", one+"    - lock: "+strings.Repeat("x", 1<<20)+"\n")
	add("10 000 faults", one+"    - lock: x\nfaults:\n"+strings.Repeat("  - {at: 1s, pause: a, for: 1s}\n", 10_000))
	add("all seeds", one+"    - lok: x\nseeds: 0..18446744073709551615\n")
	add("aliases of aliases", "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c]\ne: [*d, *d, *d, *d, *d, *d, *d]\n")
	add("a comment of 1 MB", one+"    - lock: x # "+strings.Repeat("c", 1<<20)+"\n")
	return all
}

func TestDamagedScenarios(t *testing.T) {
	other := filetest.Read(t, filepath.Join("..", "scenarios", "builtin", "misdelete.yaml"))
	inputs := append(bad.Flipped(base, 40), bad.Cut(base, 20)...)
	inputs = slices.Concat(inputs, bad.Spliced(base, other, 10), lines(base), costly())
	commands := []string{"run FILE", "run FILE --json", "FILE", "run FILE --out DIR", "run FILE --format junit", "explore --lock setnx-del --strategy exhaustive --runs 3 --jobs 1 --scenario FILE", "matrix FILE --format markdown"}
	tryFiles(t, "damaged scenarios", "a.yaml", inputs, 20, commands, func(string, bad.Answer) error { return nil })
}

// history returns lines of a history in which two threads hold a lock at one time.
func history() string {
	var b strings.Builder
	for i := range 8 {
		at := i * 100
		fmt.Fprintf(&b, `{"process":"a","thread":1,"lock":"x","op":"acquire","call_ns":%d,"return_ns":%d,"outcome":"granted","lease_ms":5,"watchdog":true,"token":%d,"arrived_ns":%d}`+"\n", at, at+10, i+1, at+3)
		fmt.Fprintf(&b, `{"process":"b","thread":1,"lock":"x","op":"acquire","call_ns":%d,"return_ns":%d,"outcome":"busy"}`+"\n", at+20, at+30)
		fmt.Fprintf(&b, `{"process":"a","thread":1,"lock":"x","op":"release","call_ns":%d,"return_ns":%d,"outcome":"released"}`+"\n", at+40, at+50)
	}
	b.WriteString(`{"process":"b","thread":2,"lock":"x","op":"acquire","call_ns":900,"outcome":"unknown"}` + "\n")
	b.WriteString(`{"process":"a","thread":1,"lock":"x","op":"acquire","call_ns":1000,"return_ns":1010,"outcome":"granted"}` + "\n")
	b.WriteString(`{"process":"b","thread":1,"lock":"x","op":"acquire","call_ns":1020,"return_ns":1030,"outcome":"granted"}` + "\n")
	return b.String()
}

const edn = `{:type :invoke, :f :acquire, :process 0, :time 10}
{:type :ok, :f :acquire, :process 0, :time 20, :value 1}
{:type :invoke, :f :acquire, :process 1, :time 25}
{:type :invoke, :f :release, :process 0, :time 30}
{:type :info, :f :release, :process 0, :time 40, :error "timeout"}
{:type :fail, :f :acquire, :process 1, :time 50}
`

func TestDamagedHistories(t *testing.T) {
	first, _, _ := strings.Cut(history(), "\n")
	inputs := slices.Concat(bad.Flipped(history(), 60), bad.Cut(history(), 20), bad.Spliced(history(), edn, 10), bad.Flipped(edn, 40), bad.Cut(edn, 12))
	for _, in := range bad.Fields(first) {
		inputs = append(inputs, bad.Input{Name: in.Name, Text: in.Text + "\n" + history()})
	}
	inputs = append(inputs,
		bad.Input{Name: "a call of each nanosecond", Text: strings.Repeat(first+"\n", 20_000)},
		bad.Input{Name: "a name of 1 MB", Text: strings.Replace(history(), `"a"`, `"`+strings.Repeat("n", 1<<20)+`"`, 1)},
		bad.Input{Name: "blanks", Text: strings.Repeat("\n \t", 1<<20)},
		bad.Input{Name: "EDN in EDN", Text: strings.Repeat("[", 100_000) + edn},
		bad.Input{Name: "a tag of EDN", Text: "#inst \"2026-01-01\"\n#jepsen.history.Op " + edn},
	)
	commands := []string{"check FILE", "check FILE --json", "check FILE --model fair", "check FILE --out DIR", "check FILE --model fenced --drift-ppm 999999"}
	tryFiles(t, "damaged histories", "a.history", inputs, 2, commands, func(string, bad.Answer) error { return nil })
}

// The test damages the files of a campaign, one at a time. A campaign that is refused stays as it is. One
// whose last runs are cut off goes on, and ends with the same results.
func TestDamagedCampaigns(t *testing.T) {
	args := []string{"explore", "--lock", "setnx-del", "--faults", "pause", "--runs", "20", "--jobs", "1", "--json"}
	dir := t.TempDir()
	_, first, _ := call(t, append(args, "--out", dir)...)
	whole := filetest.Contents(t, dir)
	var inputs []bad.Input // by the name of the file and a blank
	for _, file := range []string{"campaign.json", "runs.jsonl", "shrunk.jsonl", "verdicts.jsonl"} {
		text := whole[file]
		if len(text) < 100 {
			t.Fatalf("%s has %d bytes", file, len(text))
		}
		damaged := append(bad.Flipped(text, 12), bad.Cut(text, 6)...)
		if file == "campaign.json" || file == "runs.jsonl" {
			damaged = append(damaged, bad.Spliced(text, whole["verdicts.md"], 3)...)
		}
		for _, in := range damaged {
			inputs = append(inputs, bad.Input{Name: file + " " + in.Name, Text: in.Text})
		}
	}
	bad.Counted(t, "damaged campaigns", len(inputs))
	step := 1
	if !longtest.Asked() {
		step = 13
	}
	for i := 0; i < len(inputs); i += step {
		in := inputs[i]
		file, what, _ := strings.Cut(in.Name, " ")
		dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
		filetest.WriteContents(t, dir, whole)
		filetest.Write(t, filepath.Join(dir, file), in.Text)
		before := filetest.Contents(t, dir)
		command := [][]string{append(args, "--out", dir), {"report", dir, "-o", out}, {"merge", dir, "--out", out}}[i/step%3]
		a := answered(t, in.Name, command...)
		err := a.Check(2, frame.ExitOK, frame.ExitUnexpected, frame.ExitUndecided, frame.ExitUsage)
		after := filetest.Contents(t, dir)
		if err == nil && (command[0] != "explore" || a.Code == frame.ExitUsage) && !maps.Equal(before, after) {
			err = errors.New("the folder was changed")
		}
		if err == nil && command[0] == "explore" && file == "runs.jsonl" && strings.HasPrefix(what, "only the first") && a.Out != first {
			err = errors.New("it comes to something else")
		}
		if err != nil {
			t.Errorf("%s: %s: %v\n%v", command[0], in.Name, err, a)
		}
	}
}

// calls returns command lines that make no sense.
func calls(t *testing.T) (all [][]string) {
	dir := t.TempDir()
	long := strings.Repeat("x", 5000)
	at := func(name string) string { return filepath.Join(dir, name) }
	filetest.Write(t, at("file"), "text\n")
	for link, to := range map[string]string{"loop": "loop", "dangling": "no", "zero": "/dev/zero"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("a.lockstep"), 0o755); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	files := []string{
		at("no"), dir, at("a.lockstep"), at("file"), at("file/x"), at("loop"), at("dangling"), at("zero"), at("socket"), at(long), "", " ", ".", "..", "/dev/null", "/dev/zero", "/dev/full",
		"/proc/self/mem", "\x00", "\x1b[2J", "\xff\xfe", "::error::x", "-", "--", "*", "~", "a\u202eb",
	}
	for _, command := range []string{"replay", "explain", "shrink", "report", "run", "matrix", "check", "merge", "explore --lock setnx-del --strategy exhaustive --scenario", "FILE"} {
		for _, file := range files {
			if command == "check" && file == "-" || strings.HasPrefix(command, "run") && file == "--" || command == "matrix" && file == "--" || command == "FILE" && (file == "-" || file == "--") {
				continue // the standard input, the end of the options, and the help
			}
			if command == "FILE" {
				all = append(all, []string{file})
			} else {
				all = append(all, append(strings.Fields(command), file))
			}
		}
	}
	for _, c := range frametest.Commands(t, testProgram()) {
		if slices.Contains([]string{"test", "help", "completion"}, c.Name()) {
			continue // they take words of other programs, or of everybody
		}
		all = append(all, []string{c.Name(), "--nope"}, []string{c.Name(), "-z"}, []string{c.Name(), "--nope=1", "x"}, []string{c.Name(), "no\nsuch"})
		c.Flags().VisitAll(func(f *pflag.Flag) {
			values := []string{"\x1b[2J"}
			switch f.Value.Type() {
			case "bool":
				values = append(values, "perhaps", "２")
			case "N", "D":
				values = append(values, "", "x", "-1", "1e3", "１２", "99999999999999999999999h", "NaN", "1 2")
			default:
				values = append(values, "")
			}
			for _, value := range values {
				if f.Name != "help" || value != "" {
					all = append(all, []string{c.Name(), "--" + f.Name + "=" + value})
				}
			}
		})
	}
	return all
}

func TestBadCalls(t *testing.T) {
	all := calls(t)
	bad.Counted(t, "calls", len(all))
	t.Chdir(t.TempDir())
	for _, args := range all {
		name := fmt.Sprintf("%.200q", args)
		a := answered(t, name, args...)
		err := a.Check(2, frame.ExitUsage, frame.ExitIO)
		if a.Code == frame.ExitIO && !slices.Contains(args, "/proc/self/mem") {
			err = errors.New("reading failed")
		}
		if err != nil {
			t.Errorf("%s: %v\n%v", name, err, a)
		}
	}
	if left := filetest.Contents(t, "."); len(left) > 0 {
		t.Errorf("files were written: %v", left)
	}
}
