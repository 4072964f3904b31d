package simrun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"lockstep/lockimpl"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// fakeLive plays live runs in the simulated world, so that the command line can be tested without
// servers.
type fakeLive struct {
	host    *sim.Host
	mu      sync.Mutex
	runs    int
	after   int    // the number of runs after which it fails; 0: it does not
	other   string // the lock that it plays in place of each lock; "": none
	refuses string
	lacks   error // what the machine lacks
	fails   error
	stopped int // this process is interrupted while it plays that run, numbered from 1; 0: none
}

type unusableError struct{ error }

func (unusableError) Unusable() {}

func (f *fakeLive) Check(sc *scenarios.Scenario, l *subject.Subject, _ LiveOptions) error {
	if l.Name == f.refuses {
		return unusableError{errors.New(sc.File + ":7: not possible live: a reason")}
	}
	return nil
}

func (f *fakeLive) Ready([]*subject.Subject, LiveOptions) error { return f.lacks }

func (f *fakeLive) Run(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, number uint64, _ LiveOptions) (play.LiveRun, error) {
	f.mu.Lock() // one world at a time
	defer f.mu.Unlock()
	f.runs++
	if f.runs == f.stopped {
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		<-ctx.Done()
		return play.LiveRun{}, ctx.Err()
	}
	if f.fails != nil || f.after > 0 && f.runs > f.after {
		return play.LiveRun{}, cmp.Or(f.fails, errors.New("the machine is gone"))
	}
	if l.Port != nil { // a library runs on real servers only
		l = l.Port
	}
	v := play.Run(f.host, sc, l, number)
	if f.other != "" {
		l, _ = subject.Find(f.other)
		v = play.Run(f.host, sc, l, number)
	}
	return play.LiveRun{Verdict: v, Programs: []string{"fake-server 1.2.3"}, Note: "played twice, because of a reason"}, nil
}

func (*fakeLive) Folder() (dir string, free func(), err error) {
	dir, err = os.MkdirTemp("", "fake-")
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

func (*fakeLive) Spawn(cmd *exec.Cmd) error { return cmd.Start() }

func (*fakeLive) Client(io.Reader, io.Writer) error { return nil }

func setLive(t *testing.T, f *fakeLive) {
	f.host = sim.NewHost(t)
	Live = f
	t.Cleanup(func() { Live = nil })
}

// A command that is interrupted while it plays live judges no run that did not end. Its exit code is
// not that of bad input, but that of a bug if it printed one before.
func TestAnInterruptOfALiveCommand(t *testing.T) {
	table := filepath.Join(t.TempDir(), "agreement.md")
	surprise := surprising(t)
	const notJudged, again = "simrun: interrupted; a run that did not end is not judged\n", "; the results so far follow. Interrupt again to end at once\n"
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"live misdelete --lock setnx-del --runs 3", exitUndecided, notJudged},
		{"live " + surprise + " misdelete --lock setnx-cad", exitUnexpected, notJudged},
		{"live " + surprise + " misdelete --lock setnx-cad --json", exitUnexpected, notJudged},
		{"live " + surprise + " misdelete --lock setnx-cad --quiet", exitUndecided, notJudged}, // prints nothing before the end
		{"agree misdelete --lock setnx-del --runs 3 --jobs 1", exitUndecided, notJudged},
		{"agree misdelete --lock setnx-del --runs 3 --jobs 1 -o " + table, exitUndecided, "simrun: interrupted; the runs that are done are kept, and the same command goes on\n"},
		{"explore --live --lock reference --time 1h --jobs 1", exitUndecided, again},
	} {
		live := &fakeLive{stopped: 2}
		setLive(t, live)
		code, _, stderr := call(t, strings.Fields(c.args)...)
		if code != c.code || live.runs != 2 || !strings.HasSuffix(stderr, c.says) {
			t.Errorf("%s: exit %d after %d runs, %q; want exit %d, and the end %q", c.args, code, live.runs, stderr, c.code, c.says)
		}
	}
	// The next call goes on, since the first run is kept.
	live := &fakeLive{}
	setLive(t, live)
	if code, _, stderr := call(t, "agree", "misdelete", "--lock", "setnx-del", "--runs", "3", "--jobs", "1", "-o", table); code != exitOK || live.runs != 2 {
		t.Errorf("exit %d after %d runs, %s", code, live.runs, stderr)
	}
}

// For a recording, live plays its scenario, on its lock or on the locks that are named.
func TestLivePlaysTheScenarioOfARecording(t *testing.T) {
	const recording = "../../results/misdelete/setnx-del/1.lockstep"
	for _, c := range []struct {
		args  []string
		want  string
		lines int
	}{
		{nil, "misdelete                    setnx-del             2       bug", 1},
		{[]string{"--lock", "setnx-cad"}, "misdelete                    setnx-cad             2       held", 1},
		{[]string{"misdelete", "--lock", "setnx-cad"}, "misdelete                    setnx-cad             2       held", 2},
	} {
		live := &fakeLive{}
		setLive(t, live)
		code, out, stderr := call(t, append([]string{"live", recording, "--runs", "2"}, c.args...)...)
		if code != exitOK || strings.Count(out, c.want) != c.lines {
			t.Errorf("%v: exit %d, %d runs\n%s%s", c.args, code, live.runs, out, stderr)
		}
	}
	if code, _, stderr := call(t, "live", recording, "--lock", "setnx-cat"); code != exitUsage || !strings.Contains(stderr, "setnx-cad") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// A command that plays live does not send its user to the program in peers/ for a lock that live
// does not play there either.
func TestTheHintForALockThatIsNotPossibleLive(t *testing.T) {
	setLive(t, &fakeLive{})
	const not, there = " is not possible live: no program starts its servers\n", "in a clone of this project: (cd peers && go run ./cmd/simrun "
	for _, c := range []struct{ args, want string }{
		{"live misdelete --lock chubby", "; chubby, of the program in peers/," + not},
		{"live misdelete --lock chubby", "; chubby, of the program in peers/," + not},
		{"live ../../results/misdelete/setnx-del/1.lockstep --lock chubby", "; chubby, of the program in peers/," + not},
		{"live misdelete --lock redislock", there},
		{"agree misdelete --lock chubby", not},
		{"agree misdelete --lock redislock", there},
		{"explore --live --time 1s --lock chubby", not},
		{"live misdelete --lock etcd-mutex", there},
		{"run misdelete --lock etcd-mutex", there},
	} {
		if code, _, stderr := call(t, strings.Fields(c.args)...); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s; want %s", c.args, code, stderr, c.want)
		}
	}
}

func TestLiveAsJSON(t *testing.T) {
	setLive(t, &fakeLive{})
	dir := t.TempDir()
	code, out, stderr := call(t, "live", "misdelete", "--lock", "setnx-del", "--runs", "2", "--json", "--out", dir)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want one per run", len(lines))
	}
	var o liveObject
	dec := json.NewDecoder(strings.NewReader(lines[1]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&o); err != nil {
		t.Fatal(err)
	}
	if o.Verdict != "bug" || !o.AsExpected || o.Run != 2 || o.RealNs == 0 || o.Programs[0] != "fake-server 1.2.3" || o.Note == "" ||
		o.Recording != filepath.Join(dir, "misdelete", "setnx-del", "2.live") {
		t.Errorf("got %+v", o)
	}
}

func TestALiveRowThatALockDoesNotClaimIsNotPlayed(t *testing.T) {
	live := &fakeLive{}
	setLive(t, live)
	for _, args := range [][]string{{}, {"--json"}} {
		code, out, stderr := call(t, append([]string{"live", "one-failed-renewal-ends-it", "--lock", "setnx-cad", "--runs", "2"}, args...)...)
		if code != exitOK || !strings.Contains(out, "n/a") || !strings.Contains(squeeze(out), "on setnx-cad nothing renews a hold") || live.runs != 0 {
			t.Errorf("%v: exit %d, %d runs, %s\n%s", args, code, live.runs, stderr, out)
		}
	}
	// Both commands leave it out, and say why.
	code, out, stderr := call(t, "agree", "misdelete", "one-failed-renewal-ends-it", "--lock", "setnx-cad", "--runs", "1", "--jobs", "1")
	if code != exitOK || live.runs != 1 || !strings.Contains(squeeze(out), "one-failed-renewal-ends-it on setnx-cad: builtin/track-record/one-failed-renewal-ends-it.yaml: each run must reach renewed") {
		t.Errorf("agree: exit %d, %d runs, %s\n%s", code, live.runs, stderr, out)
	}
}

func TestALiveRecordingIsDrawn(t *testing.T) {
	setLive(t, &fakeLive{})
	dir := t.TempDir()
	if code, _, stderr := call(t, "live", "misdelete", "--lock", "setnx-del", "--out", dir); code != exitOK {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	file := filepath.Join(dir, "misdelete", "setnx-del", "1.live")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# misdelete on setnx-del: bug. A live run, by fake-server 1.2.3.\n") || !play.IsLive(text) {
		t.Errorf("the file begins %q", text[:80])
	}
	code, drawn, stderr := call(t, "report", file, "--text")
	for _, want := range []string{"Played live by fake-server 1.2.3, each instant within ", "ended the hold of b/1", "misdelete (bug)"} {
		if !strings.Contains(squeeze(drawn), want) {
			t.Errorf("exit %d, %s; the report lacks %q:\n%s", code, stderr, want, drawn)
		}
	}
	if code, _, stderr := call(t, "replay", file); code != exitUsage || !strings.Contains(stderr, "cannot be played again") {
		t.Errorf("replay: exit %d, %s", code, stderr)
	}
	if code, _, stderr := call(t, "run", file); code != exitUsage || stderr != "simrun: "+file+" is a live run; go run ./cmd/simrun report "+file+" draws it\n" {
		t.Errorf("run: exit %d, %s", code, stderr)
	}
	// The file has the same events as the run.
	run, err := play.ReadLive(file, text)
	if err != nil {
		t.Fatal(err)
	}
	sc, _ := scenarios.Find("misdelete")
	l, _ := subject.Find("setnx-del")
	want := play.Run(sim.NewHost(t), sc, l, 1)
	again := play.Judge(sim.NewHost(t), sc, l, 1, play.Played{Result: run.Played.Result})
	if run.Digest() != want.Digest() || len(again.Findings) != len(want.Findings) || strings.Join(again.Reached, " ") != strings.Join(want.Reached, " ") {
		t.Errorf("the record in the file has digest %s, %d findings and reached %v; want %s, %d and %v",
			run.Digest(), len(again.Findings), again.Reached, want.Digest(), len(want.Findings), want.Reached)
	}
	for _, c := range []struct{ rule, text, want string }{
		{"cut off", string(text[:len(text)/2]), "not a live recording"},
		{"without an event", string(text[:bytes.Index(text, []byte(`"events":[`))]) + `"events":[]}`, `has no event, so it shows nothing of its verdict "bug"`},
		{"another format", strings.Replace(string(text), `"lockstep_live":2`, `"lockstep_live":1`, 1), "format 1"},
		{"an unknown lock", strings.Replace(string(text), `"lock":"setnx-del","run"`, `"lock":"nobody","run"`, 1), "nobody"},
	} {
		bad := filepath.Join(dir, "bad.live")
		if err := os.WriteFile(bad, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := call(t, "report", bad, "--text"); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s; want %d and %q", c.rule, code, stderr, exitUsage, c.want)
		}
	}
}

// surprising writes a scenario whose verdict is not as expected, and returns its file.
func surprising(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "surprise.yaml")
	text := "lockstep: 1\nname: surprise\nlocks: [setnx-cad]\nprocesses: {a: {}}\nsteps: {a/1: [lock: {name: x, want: error}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestLiveExitCodes(t *testing.T) {
	surprise := surprising(t)
	for _, c := range []struct {
		rule string
		live *fakeLive
		args string
		code int
		want string // on stdout or stderr
	}{
		{"as expected", &fakeLive{}, "live misdelete --lock setnx-del", exitOK, "run 1 was played twice"},
		{"not as expected", &fakeLive{}, "live " + surprise, exitUnexpected, "NO: held"},
		{"several runs", &fakeLive{}, "live misdelete --lock setnx-cad --runs 3", exitOK, "held 3 of 3"},
		{"nothing named", &fakeLive{}, "live", exitUsage, "name the scenarios"},
		{"no run", &fakeLive{}, "live misdelete --runs 0", exitUsage, "--runs 0"},
		{"not possible", &fakeLive{refuses: "setnx-cad"}, "live misdelete --lock setnx-cad", exitUsage, ":7: not possible live: a reason"},
		{"something is missing", &fakeLive{fails: unusableError{errors.New("there is no server")}}, "live misdelete --lock setnx-cad", exitUsage, "there is no server"},
		{"a run that cannot be played", &fakeLive{fails: errors.New("the server died")}, "live misdelete --lock setnx-cad", exitIO, "simrun: the server died"},
		{"a hidden command", nil, "live-client", exitUsage, "call simrun live"},
		{"a program without live", nil, "live misdelete", exitUsage, "this program does not play live"},
		{"both worlds agree", &fakeLive{}, "agree misdelete --lock setnx-del --runs 2", exitOK, "2 of 2 live runs agree"},
		{"they do not", &fakeLive{other: "setnx-del"}, "agree misdelete --lock setnx-cad --runs 2", exitOK, "| misdelete | setnx-cad | held | bug: misdelete, linearizable (2 of 2) | **0 of 2** |"},
		{"a named pair that is not possible", &fakeLive{refuses: "setnx-cad"}, "agree misdelete --lock setnx-cad", exitUsage, "not possible live"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if c.live != nil {
				setLive(t, c.live)
			}
			code, out, stderr := call(t, strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(out+stderr, c.want) {
				t.Errorf("exit %d, want %d with %q\n%s%s", code, c.code, c.want, out, stderr)
			}
		})
	}
}

// A command that ended early goes on with the runs that it has, even if it was killed while it
// wrote one. Runs of another scenario with the same name do not count.
func TestAgreeGoesOn(t *testing.T) {
	dir := t.TempDir()
	file, table := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "agreement.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := "lockstep: 1\nname: t\nlocks: [setnx-cad]\nprocesses: {a: {}}\nsteps: {a/1: [lock: {name: x}, unlock: x]}\n"
	write(text)
	command := []string{"agree", file, "--runs", "5", "--jobs", "1", "-o", table}
	play := func(f *fakeLive) (int, string) {
		t.Helper()
		setLive(t, f)
		code, _, stderr := call(t, command...)
		return code, stderr
	}
	if code, stderr := play(&fakeLive{after: 2}); code != exitIO || !strings.Contains(stderr, "the machine is gone") {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	kept := filepath.Join(dir, "agreement.jsonl")
	half, err := os.OpenFile(kept, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := half.WriteString(`{"scenario":"t","text":`); err != nil {
		t.Fatal(err)
	}
	_ = half.Close()
	rest := &fakeLive{}
	if code, stderr := play(rest); code != exitOK || rest.runs != 3 {
		t.Errorf("exit %d, %s; %d runs were played, want the other 3", code, stderr, rest.runs)
	}
	all, err := os.ReadFile(table)
	if err != nil || !strings.Contains(string(all), "5 of 5 live runs agree") || !strings.Contains(string(all), "Run 5 of t on setnx-cad was") {
		t.Errorf("%v: the table is\n%s", err, all)
	}
	none := &fakeLive{}
	if code, stderr := play(none); code != exitOK || none.runs != 0 {
		t.Errorf("exit %d, %s; %d runs were played again", code, stderr, none.runs)
	}
	write(text + "about: another\n")
	anew := &fakeLive{}
	if code, stderr := play(anew); code != exitOK || anew.runs != 5 {
		t.Errorf("exit %d, %s; %d runs of another file were played, want 5", code, stderr, anew.runs)
	}
	if err := os.WriteFile(kept, []byte("{\"x\":1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, stderr := play(&fakeLive{}); code != exitUsage || !strings.Contains(stderr, "line 1 is no run of agree") {
		t.Errorf("a file of somebody else: exit %d, %s", code, stderr)
	}
}

// The runs of a scenario are played anew in place of the kept ones, and the table names the command
// without --again.
func TestAgreePlaysAScenarioAnew(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "agreement.md")
	kept := filepath.Join(dir, "agreement.jsonl")
	command := []string{"agree", "misdelete", "pause-past-lease", "--lock", "setnx-cad", "--runs", "2", "--jobs", "1", "-o", table}
	setLive(t, &fakeLive{other: "setnx-del"}) // differs in misdelete
	if code, _, stderr := call(t, command...); code != exitOK || !strings.Contains(read(t, table), "**0 of 2**") {
		t.Fatalf("exit %d, %s\n%s", code, stderr, read(t, table))
	}
	before := strings.Split(strings.TrimSpace(read(t, kept)), "\n")
	for _, again := range [][]string{{"--again", "misdelete"}, {"--again=misdelete"}} {
		anew := &fakeLive{}
		setLive(t, anew)
		if code, _, stderr := call(t, append(slices.Clone(command), again...)...); code != exitOK || anew.runs != 2 {
			t.Errorf("%v: exit %d, %s; %d runs, want those of misdelete", again, code, stderr, anew.runs)
		}
		text := read(t, table)
		if !strings.Contains(text, "| misdelete | setnx-cad | held | held (2 of 2) | 2 of 2 |") || !strings.HasPrefix(text, "<!-- "+program()+" "+strings.Join(command, " ")+" -->\n") {
			t.Errorf("%v: the table is\n%s", again, text)
		}
		after := strings.Split(strings.TrimSpace(read(t, kept)), "\n")
		if len(before) != 4 || len(after) != 4 || after[0] != before[2] || after[1] != before[3] || !strings.Contains(after[2], `"outcome":"held"`) {
			t.Errorf("%v: the runs were\n%s\nand are\n%s", again, strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	}
	none := &fakeLive{}
	setLive(t, none)
	if code, _, stderr := call(t, command...); code != exitOK || none.runs != 0 {
		t.Errorf("exit %d, %s; %d runs were played again", code, stderr, none.runs)
	}
	for _, c := range []struct{ args, want string }{
		{"agree misdelete --lock setnx-cad --again misdelete", "give the -o"},
		{"agree misdelete --lock setnx-cad --again inventory -o " + table, "--again inventory: this command does not play that scenario"},
	} {
		if code, _, stderr := call(t, strings.Fields(c.args)...); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s; want %q", c.args, code, stderr, c.want)
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
	for _, args := range []string{
		"live misdelete --lock counts-its-clients", "agree misdelete --lock counts-its-clients --runs 1",
		"upstream R-none", "explore --live --lock counts-its-clients --time 1h",
	} {
		live := &fakeLive{lacks: unusableError{errors.New("there is no such program here; install it")}}
		setLive(t, live)
		code, _, stderr := call(t, strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(stderr, "install it") || live.runs > 0 || opened > 0 {
			t.Errorf("%s: exit %d after %d runs and %d simulated clients, %s", args, code, live.runs, opened, stderr)
		}
	}
	setLive(t, &fakeLive{})
	if code, _, stderr := call(t, "agree", "misdelete", "--lock", "counts-its-clients", "--runs", "1"); code != exitOK || opened == 0 {
		t.Errorf("exit %d after %d simulated clients, %s", code, opened, stderr)
	}
}
