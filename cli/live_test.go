package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/cli/livetest"
	"lockstep/lockimpl"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func setLive(t *testing.T, f *livetest.Player) {
	f.Host = sim.NewHost(t)
	means.Live = f
	t.Cleanup(func() { means.Live = nil })
}

// A command that is interrupted while it plays live judges no run that did not end. Its exit code is
// not that of bad input, but that of a bug if it printed one before.
func TestAnInterruptOfALiveCommand(t *testing.T) {
	surprise := surprising(t)
	const notJudged, again = "simrun: interrupted; a run that did not end is not judged\n", "; the results so far follow. Interrupt again to end at once\n"
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"live misdelete --lock setnx-del --runs 3", frame.ExitUndecided, notJudged},
		{"live " + surprise + " misdelete --lock setnx-cad", frame.ExitUnexpected, notJudged},
		{"live " + surprise + " misdelete --lock setnx-cad --json", frame.ExitUnexpected, notJudged},
		{"live " + surprise + " misdelete --lock setnx-cad --quiet", frame.ExitUndecided, notJudged}, // prints nothing before the end
		{"explore --live --lock reference --time 1h --jobs 1", frame.ExitUndecided, again},
	} {
		live := &livetest.Player{Stopped: 2}
		setLive(t, live)
		code, _, stderr := call(t, strings.Fields(c.args)...)
		if code != c.code || live.Runs != 2 || !strings.HasSuffix(stderr, c.says) {
			t.Errorf("%s: exit %d after %d runs, %q; want exit %d, and the end %q", c.args, code, live.Runs, stderr, c.code, c.says)
		}
	}
}

// For a recording, live plays its scenario, on its lock or on the locks that are named.
func TestLivePlaysTheScenarioOfARecording(t *testing.T) {
	const recording = "../results/misdelete/setnx-del/1.lockstep"
	for _, c := range []struct {
		args  []string
		want  string
		lines int
	}{
		{nil, "misdelete                    setnx-del             2       bug", 1},
		{[]string{"--lock", "setnx-cad"}, "misdelete                    setnx-cad             2       held", 1},
		{[]string{"misdelete", "--lock", "setnx-cad"}, "misdelete                    setnx-cad             2       held", 2},
	} {
		live := &livetest.Player{}
		setLive(t, live)
		code, out, stderr := call(t, append([]string{"live", recording, "--runs", "2"}, c.args...)...)
		if code != frame.ExitOK || strings.Count(out, c.want) != c.lines {
			t.Errorf("%v: exit %d, %d runs\n%s%s", c.args, code, live.Runs, out, stderr)
		}
	}
	if code, _, stderr := call(t, "live", recording, "--lock", "setnx-cat"); code != frame.ExitUsage || !strings.Contains(stderr, "setnx-cad") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// A command that plays live does not send its user to the program in peers/ for a lock that live
// does not play there either.
func TestTheHintForALockThatIsNotPossibleLive(t *testing.T) {
	setLive(t, &livetest.Player{})
	const not, there = " is not possible live: no program starts its servers\n", "in a clone of this project: (cd peers && go run ./cmd/simrun "
	for _, c := range []struct{ args, want string }{
		{"live misdelete --lock chubby", "; chubby, of the program in peers/," + not},
		{"live misdelete --lock chubby", "; chubby, of the program in peers/," + not},
		{"live ../results/misdelete/setnx-del/1.lockstep --lock chubby", "; chubby, of the program in peers/," + not},
		{"live misdelete --lock redislock", there},
		{"explore --live --time 1s --lock chubby", not},
		{"live misdelete --lock etcd-mutex", there},
		{"run misdelete --lock etcd-mutex", there},
	} {
		if code, _, stderr := call(t, strings.Fields(c.args)...); code != frame.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s; want %s", c.args, code, stderr, c.want)
		}
	}
}

func TestLiveAsJSON(t *testing.T) {
	setLive(t, &livetest.Player{})
	dir := t.TempDir()
	code, out, stderr := call(t, "live", "misdelete", "--lock", "setnx-del", "--runs", "2", "--json", "--out", dir)
	if code != frame.ExitOK || stderr != "" {
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
	live := &livetest.Player{}
	setLive(t, live)
	for _, args := range [][]string{{}, {"--json"}} {
		code, out, stderr := call(t, append([]string{"live", "one-failed-renewal-ends-it", "--lock", "setnx-cad", "--runs", "2"}, args...)...)
		if code != frame.ExitOK || !strings.Contains(out, "n/a") || !strings.Contains(squeeze(out), "on setnx-cad nothing renews a hold") || live.Runs != 0 {
			t.Errorf("%v: exit %d, %d runs, %s\n%s", args, code, live.Runs, stderr, out)
		}
	}
}

func TestALiveRecordingIsDrawn(t *testing.T) {
	setLive(t, &livetest.Player{})
	dir := t.TempDir()
	if code, _, stderr := call(t, "live", "misdelete", "--lock", "setnx-del", "--out", dir); code != frame.ExitOK {
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
	if code, _, stderr := call(t, "replay", file); code != frame.ExitUsage || !strings.Contains(stderr, "cannot be played again") {
		t.Errorf("replay: exit %d, %s", code, stderr)
	}
	if code, _, stderr := call(t, "run", file); code != frame.ExitUsage || stderr != "simrun: "+file+" is a live run; go run ./cmd/simrun report "+file+" draws it\n" {
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
		{"another format", strings.Replace(string(text), `"lockstep_live":3`, `"lockstep_live":2`, 1), "format 2"},
		{"an unknown lock", strings.Replace(string(text), `"lock":"setnx-del","run"`, `"lock":"nobody","run"`, 1), "nobody"},
	} {
		bad := filepath.Join(dir, "bad.live")
		if err := os.WriteFile(bad, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := call(t, "report", bad, "--text"); code != frame.ExitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit %d, %s; want %d and %q", c.rule, code, stderr, frame.ExitUsage, c.want)
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
		live *livetest.Player
		args string
		code int
		want string // on stdout or stderr
	}{
		{"as expected", &livetest.Player{}, "live misdelete --lock setnx-del", frame.ExitOK, "run 1 was played twice"},
		{"not as expected", &livetest.Player{}, "live " + surprise, frame.ExitUnexpected, "NO: held"},
		{"several runs", &livetest.Player{}, "live misdelete --lock setnx-cad --runs 3", frame.ExitOK, "held 3 of 3"},
		{"nothing named", &livetest.Player{}, "live", frame.ExitUsage, "name the scenarios"},
		{"no run", &livetest.Player{}, "live misdelete --runs 0", frame.ExitUsage, "--runs 0"},
		{"not possible", &livetest.Player{Refuses: "setnx-cad"}, "live misdelete --lock setnx-cad", frame.ExitUsage, ":7: not possible live: a reason"},
		{"something is missing", &livetest.Player{Fails: livetest.Unusable(errors.New("there is no server"))}, "live misdelete --lock setnx-cad", frame.ExitUsage, "there is no server"},
		{"a run that cannot be played", &livetest.Player{Fails: errors.New("the server died")}, "live misdelete --lock setnx-cad", frame.ExitIO, "simrun: the server died"},
		{"a hidden command", nil, "live-client", frame.ExitUsage, "call simrun live"},
		{"a program without live", nil, "live misdelete", frame.ExitUsage, "this program does not play live"},
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

// Each command that plays live says which program is missing before it simulates or plays a scenario.
func TestWhatTheMachineLacksIsToldFirst(t *testing.T) {
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
		"live misdelete --lock counts-its-clients", "explore --live --lock counts-its-clients --time 1h",
	} {
		live := &livetest.Player{Lacks: livetest.Unusable(errors.New("there is no such program here; install it"))}
		setLive(t, live)
		code, _, stderr := call(t, strings.Fields(args)...)
		if code != frame.ExitUsage || !strings.Contains(stderr, "install it") || live.Runs > 0 || opened > 0 {
			t.Errorf("%s: exit %d after %d runs and %d simulated clients, %s", args, code, live.Runs, opened, stderr)
		}
	}
	setLive(t, &livetest.Player{})
	if code, _, stderr := call(t, "live", "misdelete", "--lock", "counts-its-clients"); code == frame.ExitUsage || opened == 0 {
		t.Errorf("exit %d after %d simulated clients, %s", code, opened, stderr)
	}
}
