package redistest_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/explain"
	"lockstep/internal/bad"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
	"lockstep/sim"
)

// A lock that keeps what it promises passes, and each story that applies is played.
func TestSetNX(t *testing.T) {
	t.Parallel()
	locktest.Run(t, setnxSubject, locktest.Options{Runs: 50})
}

// A second test of the same binary, in parallel.
func TestSetNXBeside(t *testing.T) {
	t.Parallel()
	locktest.Run(t, setnxSubject, locktest.Options{Runs: 50, Seed: 2, Profile: "full", Faults: "network,pause"})
}

// An Open that asks a server takes simulated time, and may fail. The calls wait for it.
func TestOpenMayAskAServer(t *testing.T) {
	s := subjectOf("asks in Open", false)
	open, failed := s.Open, 0
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		opt := redistest.Options(p, 0)
		opt.DialTimeout, opt.ReadTimeout = time.Second, time.Second
		rdb := redis.NewClient(opt)
		defer rdb.Close()
		if err := rdb.Ping(context.Background()).Err(); err != nil {
			failed++
			return nil, err
		}
		return open(p)
	}
	locktest.Run(t, s, locktest.Options{Runs: 100, Faults: "network,partition"})
	if failed == 0 {
		t.Error("no Open failed in any schedule")
	}
}

// A State sees every server. Value takes no minority for a holder.
func TestOnFiveServers(t *testing.T) {
	s := subjectOf("first of five", false)
	s.Servers = redistest.Servers(5)
	s.State = func(snap locktest.Snapshot, lock string) *locktest.State {
		if snap.Servers() != 5 {
			t.Errorf("%d servers", snap.Servers())
		}
		if majority := redistest.Value(nil)(snap, lock); majority != nil {
			t.Errorf("one server of five has a value, and Value takes %q for the holder", majority.Owner)
		}
		if v, ok := redistest.Keys(snap, 0).String(lock); ok {
			return &locktest.State{Owner: v, Expires: time.Duration(redistest.Keys(snap, 0).ExpiresMs(lock)) * time.Millisecond}
		}
		return nil
	}
	locktest.Run(t, s, locktest.Options{Runs: 20})
}

// An Open that waits for ever is told once if its process lives, and not at all if the process crashed meanwhile: nobody can
// end it then. Goroutines of a client that was opened are left over in any case.
func TestAnOpenThatDoesNotReturn(t *testing.T) {
	const never, goroutine = "Open of process a had not returned", "there still was a goroutine"
	for _, c := range []struct {
		fault, want string
		without     []string
	}{
		{"{at: 1ms, crash: a}", "", []string{never, goroutine}},
		{"{at: 1ms, partition: a, for: 9s}", never, []string{goroutine}},
		{"{at: 5s, crash: a}", goroutine, []string{never}},
	} {
		dir := t.TempDir()
		scenario := "lockstep: 1\nname: one\nlocks: [waits in Open for its first answer]\nnetwork: {latency: 1ms}\nprocesses: {a: {}, b: {}}\n" +
			"steps: {a/1: [{sleep: 1s}], b/1: [{at: 6s}, {lock: x}, {unlock: x}]}\nfaults: [" + c.fault + "]\n"
		if err := os.WriteFile(filepath.Join(dir, "one.yaml"), []byte(scenario), 0o600); err != nil {
			t.Fatal(err)
		}
		text, _ := outcome(t, dir, "waits in Open for its first answer", []string{judged + "_SCENARIOS=one.yaml"}, "-test.run=TestJudged/scenario")
		mustContain(t, text, c.want, "/scenario/one")
		for _, out := range c.without {
			if strings.Contains(text, out) {
				t.Errorf("%s: %q is in\n%s", c.fault, out, text)
			}
		}
	}
}

// The tests that must fail run in a process of their own: this binary, with the name of
// the subject in the environment.
const judged = "LOCKSTEP_TEST_SUBJECT"

// TestJudged judges the subject that a test of this file asks for.
func TestJudged(t *testing.T) {
	s, ok := wrong[os.Getenv(judged)]
	if !ok {
		t.Skip("n/a: another test runs this one")
	}
	o := locktest.Options{Runs: 40}
	if accept := os.Getenv(judged + "_ACCEPT"); accept != "" {
		o.Accept = strings.Split(accept, ",")
	}
	o.Scenarios = os.Getenv(judged + "_SCENARIOS")
	locktest.Run(t, s, o)
	t.Run("after it", func(*testing.T) {})
}

// outcome runs TestJudged on a subject in dir and returns what it prints.
func outcome(t *testing.T, dir, subject string, env []string, args ...string) (text string, passed bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"-test.run=^TestJudged$", "-test.v", "-lockstep.hang=500ms"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GITHUB_ACTIONS=", judged+"="+subject), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// silent tells nobody that an unlock found nothing to free.
type silent struct{ setnx }

func (l *silent) Unlock(ctx context.Context) error {
	if err := l.setnx.Unlock(ctx); !errors.Is(err, locktest.ErrNotHeld) {
		return err
	}
	return nil
}

// A failure that a test mends, and not the lock, says so. It is shown at the line that asks for the
// judging.
func TestAnUnlockThatFreedNothingAndDoesNotTell(t *testing.T) {
	t.Parallel()
	text, passed := outcome(t, t.TempDir(), "does not tell that it freed nothing", nil, "-lockstep.runs=5", "-lockstep.faults=none")
	if passed {
		t.Errorf("it passed:\n%s", text)
	}
	mustContain(t, text, "breaks linearizable: orders: a/1 release", "hint: Unlock returned nil, which says that it freed the lock; if it found nothing to free, it must return locktest.ErrNotHeld")
	if strings.Contains(text, " run.go:") {
		t.Errorf("a line of Lockstep is named:\n%s", text)
	}
	text, _ = outcome(t, t.TempDir(), "exists-then-set", nil, "-lockstep.runs=20")
	mustContain(t, text, "breaks 2 promises. Read the failures above in this order:\n", "mutual-exclusion: story.slow-network.mutual-exclusion and 3 more\n")
	if strings.Contains(text, "hint: ") {
		t.Errorf("a hint about another failure:\n%s", text)
	}
}

// busyEarly answers that the lock is busy if the context has ended.
type busyEarly struct{ setnx }

func (l *busyEarly) Lock(ctx context.Context) error {
	if ctx.Err() != nil {
		return locktest.ErrBusy
	}
	return l.setnx.Lock(ctx)
}

// swallows is a setnx whose Unlock tells nobody of a request that failed.
type swallows struct{ setnx }

func (l *swallows) Unlock(ctx context.Context) error {
	if err := l.setnx.Unlock(ctx); errors.Is(err, locktest.ErrNotHeld) {
		return err
	}
	return nil
}

// The hint is about the answer of the adapter that the run refutes, and about what the run shows of
// the call.
func TestAnAnswerThatTheRunRefutesHasAHint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want []string
		not  string
	}{
		"is busy before it asks": {[]string{"-lockstep.runs=20", "-lockstep.faults=none"},
			[]string{"answered busy, but the lock was free", "hint: ErrBusy, or a TryLock that returns false and no error, says that the lock was held at some time during the call; this call sent no request, so it must return the error that ended it"},
			"ErrNotHeld"},
		"swallows the errors of Unlock": {[]string{"-lockstep.runs=1", "-lockstep.faults=none"}, []string{
			"hint: Unlock returned nil, although the answer to its request did not arrive; it must return the error of the request", // of a story, as the next
			"hint: Unlock returned nil, although no request of it reached a server; it must return the error of the request, or locktest.ErrNotHeld if the handle holds nothing",
		}, "if it found nothing to free"},
	} {
		text, passed := outcome(t, t.TempDir(), name, nil, c.args...)
		if passed {
			t.Errorf("it passed:\n%s", text)
		}
		mustContain(t, text, c.want...)
		if strings.Contains(text, c.not) {
			t.Errorf("a hint about another mistake:\n%s", text)
		}
	}
}

func mustContain(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// The text of a failure is a contract: docs/locktest.md has it.
func TestAFailureSaysWhatWhenAndHowToReplay(t *testing.T) {
	dir := t.TempDir()
	text, passed := outcome(t, dir, "exists-then-set", nil, "-lockstep.report=pages")
	if passed {
		t.Fatalf("the lock is wrong, and the test passed:\n%s", text)
	}
	const fingerprint = "mutual-exclusion.bug.acquire.hold-ended-by-another"
	file := filepath.Join("testdata", "lockstep", "TestJudged", fingerprint+".lockstep")
	mustContain(t, text, "exists-then-set breaks mutual-exclusion: ", "made small to 6 events", "lock orders: granted",
		"fingerprint: "+fingerprint, "replay:      go test lockstep/locktest/redistest -run '^TestJudged$' -lockstep.replay="+file, "recording:   "+file,
		"page:        "+filepath.Join(dir, "pages", fingerprint+".html"))
	page, err := os.ReadFile(filepath.Join(dir, "pages", fingerprint+".html"))
	if err != nil || !strings.Contains(string(page), "exists-then-set") {
		t.Errorf("the page: %v", err)
	}

	// No failure is in more schedules than have a bug, and a second run shows each failure once,
	// with its recording.
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	bugs := regexp.MustCompile(`schedules of exists-then-set with the profile simple: .*?(\d+) bug`).FindStringSubmatch(text)
	for _, m := range regexp.MustCompile(`(\d+) of \d+ schedules do`).FindAllStringSubmatch(text, -1) {
		if number(m[1]) > number(bugs[1]) {
			t.Errorf("a failure is in %s schedules, and a bug in %s", m[1], bugs[1])
		}
	}
	second, _ := outcome(t, dir, "exists-then-set", nil, "-lockstep.runs=200")
	mustContain(t, second, "here too; the failure "+fingerprint+" is shown above")
	if n := strings.Count(second, "fingerprint: "+fingerprint+"\n"); n != 1 {
		t.Errorf("it is shown %d times:\n%s", n, second)
	}

	// The command that it names shows the same, and nothing else.
	again, passed := outcome(t, dir, "exists-then-set", nil, "-lockstep.replay="+file)
	if passed || strings.Contains(again, "stories") {
		t.Errorf("the replay:\n%s", again)
	}
	// A lock of which two replays differ is not said to hold in the schedule that broke it before.
	differs, passes := outcome(t, dir, "exists-then-set, by chance", nil, "-lockstep.replay="+file)
	if want := "exists-then-set is nondeterministic: the schedule of " + file + " gives different records, the records differ from event "; passes || !strings.Contains(differs, want) || strings.Contains(differs, "Keep the recording") {
		t.Errorf("want %q:\n%s", want, differs)
	}
	needs := `-lockstep.live needs a player: set Options.Live of the test to live.Player(), of the package "lockstep/live"`
	if runtime.GOOS != "linux" {
		needs = "-lockstep.live needs Linux"
	}
	if live, _ := outcome(t, dir, "exists-then-set", nil, "-lockstep.replay="+file, "-lockstep.live=1"); !strings.Contains(live, needs) || strings.Contains(live, " breaks ") {
		t.Errorf("it does not say what a live run needs before it plays anything:\n%s", live)
	}
	misspelt := strings.Replace(file, "exclusion", "exlusion", 1)
	if text, _ := outcome(t, dir, "exists-then-set", nil, "-lockstep.replay="+misspelt); !strings.Contains(text, "there is no file "+misspelt+`; did you mean "`+file+`"? `) {
		t.Errorf("it does not know a recording that is misspelt:\n%s", text)
	}
	sentence := regexp.MustCompile(`exists-then-set breaks mutual-exclusion: .*`)
	if first, second := sentence.FindAllString(text, -1), sentence.FindString(again); second == "" || !strings.Contains(strings.Join(first, "\n"), second) {
		t.Errorf("the replay says %q, and the failure said %q", second, first)
	}

	// The recording is a test from now on. While it fails, it alone is played, unless a flag asks for more.
	again, _ = outcome(t, dir, "exists-then-set", nil)
	mustContain(t, again, "--- FAIL: TestJudged/recording/"+fingerprint, "drawn schedules are played when no recording in testdata/lockstep/TestJudged fails")
	if strings.Contains(again, "TestJudged/stories") || strings.Contains(again, "TestJudged/explore") {
		t.Errorf("the recording fails, and more is played:\n%s", again)
	}
	again, _ = outcome(t, dir, "exists-then-set", nil, "-lockstep.runs=1")
	mustContain(t, again, "--- FAIL: TestJudged/recording/"+fingerprint, "--- FAIL: TestJudged/stories", " TestJudged/explore")

	// So is a recording of an older world, as far as its decisions still go.
	recorded, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	older := regexp.MustCompile(`"world":\d+`).ReplaceAll(recorded, []byte(`"world":1`))
	if err := os.WriteFile(filepath.Join(dir, file), older, 0o644); err != nil || string(older) == string(recorded) {
		t.Fatalf("%v; the recording is\n%s", err, recorded)
	}
	again, _ = outcome(t, dir, "exists-then-set", nil, "-lockstep.runs=1")
	mustContain(t, again, "--- FAIL: TestJudged/recording/"+fingerprint)
	again, passed = outcome(t, dir, "exists-then-set, mended", nil, "-lockstep.replay="+file)
	if !passed {
		t.Errorf("the lock is mended, and the replay of an older world failed:\n%s", again)
	}
	mustContain(t, again, "holds in a schedule near the one that broke it before (it was recorded in world version 1, and this one is ")
	if err := os.WriteFile(filepath.Join(dir, file), recorded, 0o644); err != nil {
		t.Fatal(err)
	}

	// A lock that panics instead is not said to hold.
	again, passed = outcome(t, dir, "exists-then-set, with panics", nil, "-lockstep.replay="+file)
	if passed || strings.Contains(again, "Keep the recording") {
		t.Errorf("the lock panics, and the recording says:\n%s", again)
	}
	mustContain(t, again, "the lock panicked at 0.000s in Lock(\"orders\") of thread a/1: the adapter's own panic")

	// Once the lock is right, the recording passes and says so.
	again, passed = outcome(t, dir, "exists-then-set, mended", nil)
	if !passed {
		t.Errorf("the lock is mended, and the test failed:\n%s", again)
	}
	mustContain(t, again, "holds in the schedule that broke it before", "Keep the recording: it is a test now. If this test was wrong then, and not the lock, you may delete it",
		"--- PASS: TestJudged/stories", "--- PASS: TestJudged/explore")
}

// A failure does not overwrite a recording in which the lock holds now, although both have one fingerprint.
func TestARecordingInWhichTheLockHoldsStays(t *testing.T) {
	t.Parallel()
	const fingerprint = "mutual-exclusion.bug.acquire.hold-ended-by-another"
	dir := t.TempDir()
	recordings := filepath.Join(dir, "testdata", "lockstep", "TestJudged")
	outcome(t, dir, "exists-then-set, without the errors of Unlock", nil, "-test.run=^TestJudged$/^stories$/^pause-past-the-lease$")
	held, first := filepath.Join(recordings, fingerprint+".lockstep"), filepath.Join(recordings, "story.pause-past-the-lease.linearizable.lockstep")
	if err := os.Rename(first, held); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(held)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := outcome(t, dir, "exists-then-set", nil, "-lockstep.runs=5")
	after, err := os.ReadFile(held)
	if err != nil || string(after) != string(before) {
		t.Errorf("the recording is another one, %v:\n%s", err, text)
	}
	mustContain(t, text, "--- PASS: TestJudged/recording/"+fingerprint+" ", "fingerprint: "+fingerprint+"\n", fingerprint+"~2.lockstep\n")
	again, _ := outcome(t, dir, "exists-then-set", nil, "-lockstep.runs=5")
	mustContain(t, again, "--- FAIL: TestJudged/recording/"+fingerprint+"~2 ", "here too; the failure "+fingerprint+" is shown above")
}

// A renewal that names no value belongs to the hold whose key it names: a lock whose renewals are lost may lose its hold.
func TestALostRenewalWithoutAValueExcusesTheLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const scenario = `lockstep: 1
name: lost-renewals
about: Each renewal of the hold is lost, and its lease ends.
locks: [renews by PEXPIRE]
network: {latency: 1ms}
processes: {a: {}}
steps: {a/1: [{lock: {name: orders}}, sleep: 9s]}
faults: [{when: {direction: request, script: renew}, until: 20s, do: drop}]
expect: {renews by PEXPIRE: held}
`
	if err := os.WriteFile(filepath.Join(dir, "lost.yaml"), []byte(scenario), 0o644); err != nil {
		t.Fatal(err)
	}
	text, _ := outcome(t, dir, "renews by PEXPIRE", []string{judged + "_SCENARIOS=lost.yaml"}, "-test.run=^TestJudged$/^scenario$")
	mustContain(t, text, "--- PASS: TestJudged/scenario/lost ")
}

// A story that fails as an earlier one did, and with the same bugs, is told in short. Nothing of it is lost: its
// recording shows it whole, and so does its subtest alone. A story that fails for another cause is whole, as
// TestAnAnswerThatTheRunRefutesHasAHint checks.
func TestAStoryThatFailsAsAnEarlierOneIsShort(t *testing.T) {
	t.Parallel()
	const subject, timeline = "does not tell that it freed nothing", "unlock orders: released"
	dir := t.TempDir()
	text, passed := outcome(t, dir, subject, nil, "-lockstep.runs=1", "-lockstep.faults=none")
	told, _, _ := strings.Cut(text, "=== RUN   TestJudged/explore")
	short := regexp.MustCompile(`breaks linearizable: orders: .*\s+(?:hint: .*\s+)?as in the story pause-past-the-lease, which is shown above\s+fingerprint: story\.(\S+)\.linearizable\s+replay: .*\s+recording: +(\S+)`).FindAllStringSubmatch(told, -1)
	if passed || strings.Count(told, "the story ") < len(short)+2 || strings.Count(told, "hint: ") < 3 || len(short) < 3 {
		t.Fatalf("%d stories are short; want at least 3, and two whole, whose causes differ:\n%s", len(short), text)
	}
	second, _ := outcome(t, dir, subject, nil, "-lockstep.runs=1", "-lockstep.faults=none")
	second, _, _ = strings.Cut(second, "=== RUN   TestJudged/stories")
	if again := strings.Count(second, "as in the story pause-past-the-lease, which is shown above\n"); again != len(short) {
		t.Errorf("of the recordings of these stories %d are short, want %d:\n%s", again, len(short), second)
	}
	for _, m := range short {
		again, _ := outcome(t, dir, subject, nil, "-lockstep.replay="+m[2])
		mustContain(t, again, "hint: ", timeline)
		alone, _ := outcome(t, t.TempDir(), subject, nil, "-test.run=^TestJudged$/^stories$/^"+m[1]+"$")
		mustContain(t, alone, "hint: ", "the story "+m[1]+": ", timeline)
	}
}

// A failure that is gone when it has been made small is not shown as if it had been seen. It fails the test.
func TestAFailureThatDoesNotRepeatWhenItIsSmallIsNoResult(t *testing.T) {
	const gone = "exists-then-set is nondeterministic: a failure of mutual-exclusion, first found in schedule number 1, does not repeat when the schedule is played again, "
	for subject, how := range map[string]string{
		"exists-then-set, mended while it is made small":    "although further plays of this schedule were all the same\n",
		"exists-then-set, by chance while it is made small": "the records differ from event ",
	} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text, passed := outcome(t, dir, subject, nil, "-lockstep.runs=5", "-test.run=^TestJudged$/^explore$")
			mustContain(t, text, gone+how, "broke misdelete when it was first played, and does not now", "--- FAIL: TestJudged/explore")
			_, explored, _ := strings.Cut(text, "=== RUN   TestJudged/explore")
			if passed || strings.Contains(explored, "fingerprint: ") {
				t.Errorf("it passed, or shows a failure:\n%s", text)
			}
			kept, err := filepath.Glob(filepath.Join(dir, "testdata", "lockstep", "TestJudged", "mutual-exclusion.*"))
			if err != nil || len(kept) > 0 {
				t.Errorf("it keeps a recording that shows nothing: %v, %v", kept, err)
			}
		})
	}
}

// A GitHub workflow shows a failure at the line that judges the lock.
func TestAWorkflowIsToldOfAFailure(t *testing.T) {
	_, here, _, _ := runtime.Caller(0)
	if !filepath.IsAbs(here) {
		t.Skip("n/a: with -trimpath the place is looked for in the folder of the package, where these tests do not run; peers/ci_test.go does")
	}
	source, err := os.ReadFile("run_test.go")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(source), "\tlocktest.Run(t, s, o)\n")
	at := fmt.Sprintf("file=redistest/run_test.go,line=%d,", strings.Count(before, "\n")+1)
	workflow := []string{"GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + filepath.Dir(filepath.Dir(here))}
	for _, c := range []struct {
		name, subject string
		runs          string
		env           []string
		want          []string
	}{
		{"a bug", "exists-then-set", "5", workflow, []string{"::error " + at + "title=exists-then-set breaks mutual-exclusion::", "%0Afingerprint: mutual-exclusion.bug.acquire.hold-ended-by-another%0Areplay: go test "}},
		{"no verdict", "draws from math/rand/v2", "3", workflow, []string{"::error " + at + "title=locktest::draws from math/rand/v2 is nondeterministic: "}},
		{"another workspace", "exists-then-set", "1", []string{"GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=" + t.TempDir()}, []string{"::error title=exists-then-set breaks mutual-exclusion::"}},
		{"no workflow", "exists-then-set", "1", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text, _ := outcome(t, t.TempDir(), c.subject, c.env, "-lockstep.runs="+c.runs)
			var lines []string
			for line := range strings.Lines(text) {
				if strings.HasPrefix(strings.TrimSpace(line), "::") {
					lines = append(lines, line)
				}
			}
			mustContain(t, strings.Join(lines, ""), c.want...)
			if c.want == nil && len(lines) > 0 {
				t.Errorf("it prints annotations: %v", lines)
			}
		})
	}
}

func TestAcceptedFindingsFailNothing(t *testing.T) {
	dir := t.TempDir()
	text, _ := outcome(t, dir, "exists-then-set", nil, "-lockstep.runs=4")
	var known []string
	for _, m := range regexp.MustCompile(`fingerprint: (\S+)`).FindAllStringSubmatch(text, -1) {
		known = append(known, m[1])
	}
	if len(known) == 0 {
		t.Fatalf("no fingerprint in:\n%s", text)
	}
	text, passed := outcome(t, t.TempDir(), "exists-then-set", []string{judged + "_ACCEPT=" + strings.Join(append(known, "tidy.bug.run.never"), ",")}, "-lockstep.runs=4")
	if !passed {
		t.Errorf("all findings are accepted, and the test failed:\n%s", text)
	}
	mustContain(t, text, "accepted, "+known[0], "the accepted finding tidy.bug.run.never did not occur")
}

// A fingerprint that no failure can have is told before anything is played.
func TestAnAcceptedFingerprintIsChecked(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "exists-then-set, mended", []string{judged + "_ACCEPT=trafic.bug.acquire.agreed"}, "-lockstep.runs=1")
	if passed || strings.Contains(text, "TestJudged/") {
		t.Errorf("it passed, or something was played:\n%s", text)
	}
	mustContain(t, text, "run_test.go:", `Options.Accept has "trafic.bug.acquire.agreed": unknown judge "trafic"; did you mean "traffic"?`)
}

// A scenario that does not name the lock of the test fails the test, unless it is of a known lock.
func TestAScenarioOfAnUnknownLockIsNotSkipped(t *testing.T) {
	const lock = "exists-then-set"
	for _, c := range []struct{ locks, expect, want string }{
		{`setnx-del`, "", ""},
		{`exists-then-sat`, "", `names the lock "exists-then-sat", which is unknown, and not the lock of this test, "` + lock + `"; name this lock in locks, or leave`},
		{`setnx-del, another`, "", `names the lock "another", which is unknown`},
		{`exists-then-sat`, `expect: {` + lock + `: held}`, `expect has "` + lock + `", and locks has exists-then-sat; name the same lock in both`},
	} {
		file := filepath.Join(t.TempDir(), "one.yaml")
		scenario := "lockstep: 1\nname: one\nlocks: [" + c.locks + "]\nprocesses: {a: {}}\nsteps: {a/1: [{lock: x}, {unlock: x}]}\n" + c.expect
		if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
			t.Fatal(err)
		}
		text, passed := outcome(t, t.TempDir(), lock+", mended", []string{judged + "_SCENARIOS=" + file}, "-lockstep.runs=1", "-test.run=TestJudged/scenario")
		if passed != (c.want == "") || !strings.Contains(text, "/scenario/one") {
			t.Errorf("%s: passed: %v\n%s", c.locks, passed, text)
		}
		mustContain(t, text, c.want)
	}
}

func TestOneScheduleIsNotSeveral(t *testing.T) {
	text, _ := outcome(t, t.TempDir(), "exists-then-set, mended", nil, "-lockstep.runs=1", "-test.run=TestJudged/explore")
	mustContain(t, text, " 1 schedule of exists-then-set with the profile simple: ")
}

// A glob that matches nothing is told before anything is played.
func TestABadGlobOfScenariosIsToldFirst(t *testing.T) {
	for glob, want := range map[string]string{
		"testdata/[": `Options.Scenarios is "testdata/[": syntax error in pattern`,
		"nothing/*":  `Options.Scenarios is "nothing/*": no file matches`,
	} {
		text, passed := outcome(t, t.TempDir(), "exists-then-set, mended", []string{judged + "_SCENARIOS=" + glob}, "-lockstep.runs=1")
		if passed {
			t.Errorf("%s: it passed:\n%s", glob, text)
		}
		mustContain(t, text, "run_test.go:", want)
		if strings.Contains(text, "TestJudged/") {
			t.Errorf("%s: something was played:\n%s", glob, text)
		}
	}
}

// A sentence says what is wrong with a subject, and the tests after it go on.
func TestWrongSubjectsAreExplained(t *testing.T) {
	wants := map[string][]string{
		"draws from math/rand/v2":                        {"is nondeterministic: ", "the records differ from event ", `"kind":"send"`, reflect.TypeFor[setnx]().PkgPath() + ".", "math/rand/v2", "check the stop channel", "docs/locktest.md, When the lock is nondeterministic"},
		"panics":                                         {"panics", "the adapter's own panic"},
		"panics in Unlock":                               {" schedules of panics in Unlock, number 1 the first, are undecided: the lock panicked at ", " in Unlock(\"orders\") of thread ", ": the adapter's own panic; the place is shown above\n", "of thread a/1: the adapter's own panic\n", ".(*panicsLater).Unlock\n", "run_test.go:", "hint: Unlock is also called by a thread that holds nothing, and after a Lock that failed"},
		"does not open":                                  {`does not open cannot be opened: no licence`},
		"opens nothing":                                  {"opens nothing cannot be opened: neither a client nor an error came from Open"},
		"gives no lock":                                  {"gives no lock cannot be opened: the client gives neither a lock "},
		"has no Open":                                    {`subject "has no Open" has no Open; give it a function that makes the client of a process`},
		"has no servers":                                 {`subject "has no servers" has no Servers; give it redistest.Servers(1)`},
		"has 0 servers":                                  {"run_test.go:", `subject "has 0 servers" has 0 servers; give it at least one, such as by redistest.Servers(1)`},
		"has -1 servers":                                 {"run_test.go:", `subject "has -1 servers" has -1 servers; give it at least one, such as by redistest.Servers(1)`},
		"has servers of no release":                      {"run_test.go:", `subject "has servers of no release" has wrong Servers: no server of release "6.9" is simulated; name one of "7.0", "7.2"`},
		"has servers with no notifications":              {`has wrong Servers: "KEQ" is no value of notify-keyspace-events: "Q" is not one of the letters AKEg$lshzxetmdn`},
		"has no State":                                   {`subject "has no State" has no State, without which most judges cannot be asked`, "say in NoState why"},
		"has a State and says why it has none":           {`has a State and says in NoState why it has none`},
		"is renewed without a lease":                     {`is Renewed and has no Lease; give it the Lease that is renewed`},
		"renews and does not renew":                      {`has a RenewEvery and is not Renewed; set Renewed, or take RenewEvery away`},
		"renews too seldom":                              {`has the RenewEvery 6s; give it a time of its Lease of 5s at most, or 0 for a third of it`},
		"has a negative lease":                           {`has the negative Lease -1s; give it the time after which a hold ends`},
		"has a negative reconnect":                       {`has the negative Reconnect -1s; give it the longest wait of a client before it connects again`},
		"has negative parts":                             {`has -1 Parts; give it the number of keys of a hold`},
		"State reads another key":                        {"State reads another key cannot be judged: its Lock returns without an error, and its State shows no hold; State must read the key that the lock writes, and a Lock that wrote none must return an error. The servers had the key orders, and State read another:orders\n"},
		"State reads another key of a lock with two":     {". The servers had the keys orders, orders:count, and State read another:orders, another:orders:count\n"},
		"Lock does nothing":                              {"and a Lock that wrote none must return an error\n"},
		"State names no owner":                           {"State names no owner cannot be judged: its Lock returns without an error, and its State returns a hold without an Owner; Owner must be the value that the lock wrote for the holder, or"},
		"State names no owner of a hold without end":     {"its State returns a hold without an Owner"},
		"tells no token":                                 {"tells no token cannot be judged: its Lock returns without an error, and its Token then reports that the hold has none"},
		"State reads another key, and never returns nil": {"its State shows no hold; State must read the key that the lock writes, and a Lock that wrote none must return an error. The servers had the key orders, and State read another:orders\n"},
		"has another lease":                              {"has another lease cannot be judged: its Lease is 1m0s, and its State shows holds that last for 5s; give it the Lease for which the lock asks"},
		"has a short lease":                              {"has a short lease cannot be judged: its Lease is 3s, and its State shows holds that last for 5s"},
		"renews unsaid":                                  {"renews unsaid cannot be judged: it is not Renewed, and a command that no call sent (EVAL, sent at ", "prolonged a hold; set Renewed: true"},
		"State panics":                                   {"State panics cannot be judged: its State panicked: locktest: there is no server 3; they count from 0, and the subject has 1 server", "secondServer"},
		"State shows an end":                             {"it has no Lease, and its State shows a hold that ends at 5s; give it the Lease, or return a negative Expires"},
		"State asks through a client":                    {"State asks through a client cannot be judged: the world stood still for ", "its State does not return; State must read the servers that it is given, such as by redistest.Keys, and ask nobody through a client"},
		"State is Closed when it is free":                {"State is Closed when it is free cannot be judged: its State says Closed at 0.", "s, and nothing had failed; a lock is Closed if nobody can have it for a while because its last holder failed"},
		"State is Closed without an end":                 {"State is Closed without an end cannot be judged: its State says Closed at 0.", "s, and its Expires is over then; Expires of a lock that is Closed is the time since the start at which somebody can have it again"},
		"Lost returns nil":                               {"Lost returns nil cannot be judged: its Lost returns nil for a hold that was granted, and a nil channel can tell nobody that the hold is gone"},
		"State always shows a hold":                      {"State always shows a hold cannot be judged: its State shows a hold of orders at 0.000s, before any call asked for the lock; State must return nil for a lock that nobody holds"},
		"State says that there is no end":                {"breaks lease: the hold of a/1 on orders has no time to live since 0.000s", "hint: State shows no hold of this run with an end; if the server ends one by itself, State must return the end in Expires"},
		"State shows no end":                             {"State shows no end cannot be judged: its State shows a hold that begins at 0.", " and has the Expires 0s, which was over then; Expires is the time since the start at which the hold ends, or negative"},
		"uses an unknown command, and no State fits":     {"cannot be judged: a server of the world met LCS, which it does not simulate and the real one has"},
		"dials a host name":                              {"dials a host name cannot be judged: its calls return, and it sends nothing to the servers of the world; its client must dial with Process.DialContext"},
		"asks nobody":                                    {"asks nobody cannot be judged: its calls return, and it sends nothing to the servers of the world; its client must dial with Process.DialContext"},
		"dials a server that is not there":               {"dials a server that is not there cannot be judged: its client dials nobody:2379, where no server is, and nothing comes to the servers of the world; it must dial the addresses of Process.Addr"},
		"gives a nil handle":                             {"gives a nil handle is undecided: the lock panicked at 0.000s in Lock(\"orders\") of thread a/1: ", ".(*setnx).Lock\n", "subjects_test.go:"},
		"asks for a server too many":                     {"asks for a server too many cannot be opened: its Open panicked: locktest: there is no server 1; they count from 0, and the subject has 1 server"},
		"holds a mutex over calls":                       {"the world stood still", "put a channel in its place", "a goroutine [sync.Mutex.Lock] in\n", ".(*guarded).Lock\n", "run_test.go:", "One of them may hold the mutex"},
	}
	bad.Counted(t, "subjects of a test", len(wants))
	for name, want := range wants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, passed := outcome(t, t.TempDir(), name, nil, "-lockstep.runs=5")
			if passed {
				t.Errorf("it passed:\n%s", text)
			}
			mustContain(t, text, want...)
			if strings.Contains(text, "harness:") || strings.Contains(text, " run.go:") || strings.Contains(text, "sim.(*Thread)") {
				t.Errorf("it shows code of Lockstep:\n%s", text)
			}
			if strings.Contains(text, "goroutine 1 [") || !strings.Contains(text, "FAIL: TestJudged") {
				t.Errorf("the binary ended:\n%s", text)
			}
		})
	}
}

// tallying is a setnx that counts its calls in a key which stays.
type tallying struct{ setnx }

func (l *tallying) Lock(ctx context.Context) error {
	if err := l.rdb.Incr(ctx, l.name+":count").Err(); err != nil {
		return err
	}
	return l.setnx.Lock(ctx)
}

// idle is a setnx that says it has the lock, and took none.
type idle struct{ setnx }

func (l *idle) Lock(ctx context.Context) error {
	l.rdb.Get(ctx, l.name)
	return nil
}

// gated is a setnx of which one goroutine of a client at a time asks the server.
type gated struct {
	setnx
	gate chan struct{}
}

func (l *gated) Lock(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) (bool, error) {
		l.gate <- struct{}{}
		defer func() { <-l.gate }()
		return l.TryLock(ctx)
	})
}

// onlyClient is a client of all processes of all worlds.
var (
	onlyOnce   sync.Once
	onlyClient *redis.Client
)

// unclosed is a client that leaves its connections open when its process ends, as one that others use does.
type unclosed struct{ anyClient }

func (unclosed) Close() error { return nil }

// Go itself ends a program whose client outlives a world. The table of refusals has the words of Go, and names the cause.
func TestAClientInAPackageVariable(t *testing.T) {
	const words = "fatal error: receive on synctest channel from outside bubble"
	text, passed := outcome(t, t.TempDir(), "keeps its client in a package variable", nil, "-lockstep.runs=5")
	if passed || !strings.Contains(text, words) {
		t.Errorf("the test passed: %v, with\n%s\nwant %q", passed, text, words)
	}
	page, err := os.ReadFile("../../docs/first-hour.md")
	if err != nil || !strings.Contains(string(page), "| `"+words+"` |") {
		t.Errorf("docs/first-hour.md has no row %q: %v", words, err)
	}
	if text, passed := outcome(t, t.TempDir(), "is not asked for traffic", nil, "-lockstep.runs=5"); !passed || strings.Contains(text, "bubble") {
		t.Errorf("a client that each Open makes anew: passed %v, with\n%s", passed, text)
	}
}

// Simulated time passes while a goroutine waits for the channel that stands in the place of a mutex.
func TestAChannelInThePlaceOfAMutex(t *testing.T) {
	s := subjectOf("gated", false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		gate := make(chan struct{}, 1)
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &gated{setnx{rdb: rdb, name: name}, gate}
		}}, nil
	}
	locktest.Run(t, s, locktest.Options{Runs: 20, Profile: "full", Faults: "none"})
}

// The remedy for a subject that is wrong comes before the search for a difference between two runs.
func TestARenewalIsSaidBeforeWhatDiffers(t *testing.T) {
	text, _ := outcome(t, t.TempDir(), "renews unsaid, by chance", nil, "-lockstep.runs=1")
	mustContain(t, text, "renews unsaid, by chance cannot be judged: it is not Renewed, and a command that no call sent (EVAL, sent at ", "renews unsaid, by chance is nondeterministic: ")
	if strings.Index(text, "set Renewed: true") > strings.Index(text, "is nondeterministic: ") {
		t.Errorf("the remedy comes last:\n%s", text)
	}
}

// A client whose Open panics late gives errors that repeat.
func TestAnOpenThatPanicsLateRepeats(t *testing.T) {
	text, _ := outcome(t, t.TempDir(), "panics in an Open that asks", nil, "-lockstep.runs=3")
	if strings.Contains(text, "nondeterministic") {
		t.Errorf("it is nondeterministic:\n%s", text)
	}
	const panicked = "in Lock(\"orders\") of thread a/1: its Open panicked: the adapter's own panic"
	told, drawn, _ := strings.Cut(text, "=== RUN   TestJudged/explore")
	mustContain(t, told, panicked)
	mustContain(t, drawn, "3 undecided", panicked, "--- FAIL: TestJudged")
}

// The inputs that Fuzz begins with hold for a lock that is right.
func FuzzSetNX(f *testing.F) { locktest.Fuzz(f, setnxSubject) }

// FuzzJudged fuzzes the subject that a test of this file asks for.
func FuzzJudged(f *testing.F) {
	s, ok := wrong[os.Getenv(judged)]
	if !ok {
		f.Skip("n/a: another test runs this one")
	}
	locktest.Fuzz(f, s)
}

// A lock that is wrong is found by them, and an input can be given by hand.
func TestFuzzFindsAWrongLock(t *testing.T) {
	dir := t.TempDir()
	text, passed := outcome(t, dir, "exists-then-set", nil, "-test.run=^FuzzJudged$")
	if passed {
		t.Fatalf("the lock is wrong, and no input shows it:\n%s", text)
	}
	mustContain(t, text, "exists-then-set breaks ", "an input of the fuzzer does", "fingerprint: fuzz.", "--- FAIL: FuzzJudged/seed#")
	m := regexp.MustCompile(`-lockstep.replay=(\S+)`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no command replays it:\n%s", text)
	}
	again, passed := outcome(t, dir, "exists-then-set", nil, "-test.run=^FuzzJudged$", m[0])
	if passed || strings.Count(again, "--- FAIL: FuzzJudged/seed#") != 1 {
		t.Errorf("the replay:\n%s", again)
	}
	mustContain(t, again, "it was recorded in "+m[1])
}

// A test explains its recordings as simrun does, with its own commands. It says of a mend whether it holds.
func TestATestExplainsItsRecordings(t *testing.T) {
	dir := t.TempDir()
	outcome(t, dir, "exists-then-set", nil)
	file := filepath.Join("testdata", "lockstep", "TestJudged", "mutual-exclusion.bug.acquire.hold-ended-by-another.lockstep")
	command := "go test"
	if sim.Overlaid {
		command = "simrun test"
	}
	replay := command + " lockstep/locktest/redistest -run '^TestJudged$' -lockstep.replay=" + file
	text, passed := outcome(t, dir, "exists-then-set", nil, "-lockstep.replay="+file, "-lockstep.explain=text")
	if passed {
		t.Errorf("the lock is wrong, and the test passed:\n%s", text)
	}
	mustContain(t, text, "exists-then-set breaks mutual-exclusion (bug) in ", "promise: at any instant, at most one thread believes that it holds the lock", "request: ", "subjects_test.go:",
		"replay:  "+replay+"\n", "mended?: "+replay+" -lockstep.mended\n", "page:    "+replay+" -lockstep.report=pages\n")
	if strings.Contains(text, "live:  ") || strings.Contains(text, "shrink:") {
		t.Errorf("the test has no player, and names a command for it:\n%s", text)
	}

	object := func(text string, into any) {
		t.Helper()
		line := regexp.MustCompile(`(?m)^\{"explain":1,.*$`).FindString(text)
		if err := json.Unmarshal([]byte(line), into); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
	}
	var x explain.Explanation
	text, passed = outcome(t, dir, "exists-then-set", nil, "-lockstep.replay="+file, "-lockstep.explain=json")
	object(text, &x)
	if passed || x.Lock != "exists-then-set" || x.Recording != file || x.Promise.Judge != "mutual-exclusion" || x.Request == nil || len(x.Events) == 0 || x.Commands.Replay != replay {
		t.Errorf("the test passed: %v; the object is %+v", passed, x)
	}

	for name, holds := range map[string]bool{"exists-then-set": false, "exists-then-set, mended": true} {
		text, passed := outcome(t, dir, name, nil, "-lockstep.replay="+file, "-lockstep.mended")
		want := "does not keep the promise of mutual-exclusion"
		if holds {
			want = "keeps the promise of mutual-exclusion"
		}
		if mustContain(t, text, want, "recording   1 run", "neighbours  20 runs", "drawn       200 runs"); passed != holds {
			t.Errorf("%s: the test passed is %v:\n%s", name, passed, text)
		}
	}
}

// A mistake is shown whole once, in at most 60 lines, and what is shown later refers to it.
func TestAMistakeIsShownWholeOnce(t *testing.T) {
	text, _ := outcome(t, t.TempDir(), "exists-then-set", nil)
	failures := regexp.MustCompile(`(?s)exists-then-set breaks \S+: .*?\n *recording: `).FindAllString(text, -1)
	whole, short := map[string]int{}, 0
	for _, f := range failures {
		if n := strings.Count(f, "\n") + 1; n > 60 {
			t.Errorf("a failure has %d lines:\n%s", n, f)
		}
		if strings.Contains(f, "which is shown above") {
			short++
			continue
		}
		m := regexp.MustCompile(`request: [^\n]*?, (\S+:\d+) in `).FindStringSubmatch(f)
		if m == nil {
			t.Errorf("a failure does not name the line of its request:\n%s", f)
			continue
		}
		whole[m[1]]++
	}
	if len(failures) < 3 || short == 0 || len(whole) == 0 {
		t.Errorf("%d failures, %d of them short, and whole %v:\n%s", len(failures), short, whole, text)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	wants := map[string]string{
		"-lockstep.faults=network,gremlins": `-lockstep.faults is "network,gremlins": unknown class of faults "gremlins"; known: network, `,
		"-lockstep.faults=network, crush":   `unknown class of faults "crush"; did you mean "crash"?`,
		"-lockstep.faults=netwrok":          `did you mean "network"?`,
		"-lockstep.runs=-1":                 "-lockstep.runs=-1: from 1 to 1000000000",
		"-lockstep.runs=0":                  "-lockstep.runs=0: from 1 to 1000000000",
		"-lockstep.runs=abc":                "-lockstep.runs=abc: want a whole number",
		"-lockstep.seed=-1":                 "-lockstep.seed=-1: want a whole number from 0 to 18446744073709551615",
		"-lockstep.hang=-1s":                "-lockstep.hang=-1s: too short: at least 1ms",
		"-lockstep.hang=x":                  "-lockstep.hang=x: not a duration; write 1500ms, 2s or 1m30s",
		"-lockstep.profile=orderley":        `-lockstep.profile: unknown profile "orderley"; did you mean "orderly"? known: simple, orderly, full`,
		"-lockstep.profile=":                `-lockstep.profile: unknown profile ""; known: simple, orderly, full`,
		"-lockstep.replay=":                 "-lockstep.replay is empty; give it a recording",
		"-lockstep.live=0":                  "-lockstep.live=0: from 1 to 1000000000",
		"-lockstep.live=":                   "-lockstep.live=: want a whole number",
		"-lockstep.live=3":                  "-lockstep.live plays the recording that -lockstep.replay names; give it one",
		"-lockstep.explain=text":            "-lockstep.explain and -lockstep.mended are about the recording that -lockstep.replay names; give it one",
		"-lockstep.mended":                  "-lockstep.explain and -lockstep.mended are about the recording that -lockstep.replay names; give it one",
		"-lockstep.explain=html":            "-lockstep.explain=html: known are text and json",
		"-lockstep.explain=":                "-lockstep.explain=: known are text and json",
		"-lockstep.replay=no/such.lockstep": "there is no file no/such.lockstep; -lockstep.replay takes a recording",
		"-lockstep.replay=.":                ". is a folder; -lockstep.replay takes a recording, such as testdata/lockstep/TEST/FINGERPRINT.lockstep",
	}
	bad.Counted(t, "flags of a test", len(wants))
	for arg, want := range wants {
		text, passed := outcome(t, t.TempDir(), "exists-then-set, mended", nil, arg)
		if passed {
			t.Errorf("%s is taken:\n%s", arg, text)
		}
		mustContain(t, text, want)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	builtin, err := filepath.Abs(filepath.Join("..", "..", "results", "misdelete", "setnx-del", "1.lockstep"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(builtin)
	if err != nil {
		t.Fatal(err)
	}
	renamed := filepath.Join(t.TempDir(), "renamed.lockstep")
	if err := os.WriteFile(renamed, []byte(strings.ReplaceAll(string(text), "setnx-del", "another")), 0o600); err != nil {
		t.Fatal(err)
	}
	for arg, want := range map[string]string{
		"-lockstep.replay=" + renamed:              `the recording is of the lock "another", and the test's is "exists-then-set"; name the subject as before, or delete the recording`,
		"-lockstep.replay=" + builtin:              `the recording is of the lock "setnx-del", and the test's is "exists-then-set"; simrun replay ` + builtin + " plays it, since that lock is built in",
		"-lockstep.report=":                        "-lockstep.report is empty; give it a folder",
		"-lockstep.report=" + file:                 "-lockstep.report is " + file + ", which is a file; give it a folder",
		"-lockstep.report=" + file + "/new/folder": "-lockstep.report: stat " + file,
	} {
		text, passed := outcome(t, t.TempDir(), "exists-then-set, mended", nil, arg)
		if passed {
			t.Errorf("%s is taken:\n%s", arg, text)
		}
		mustContain(t, text, want)
	}
	if flag.Lookup("lockstep.seed") == nil {
		t.Error("there is no flag lockstep.seed")
	}
}

var setnxSubject = subjectOf("setnx", false)

// wrong are subjects with something wrong, by name.
var wrong = map[string]locktest.Subject{}

func init() {
	add := func(name string, change func(*locktest.Subject)) {
		s := subjectOf(name, false)
		if change != nil {
			change(&s)
		}
		wrong[name] = s
	}
	wrong["exists-then-set"] = subjectOf("exists-then-set", true)
	mended := subjectOf("exists-then-set", false)
	wrong["exists-then-set, mended"] = mended
	open := func(lock func(rdb *redis.Client, name string) locktest.Lock) func(*locktest.Subject) {
		return func(s *locktest.Subject) {
			s.Open = func(p *locktest.Process) (locktest.Client, error) {
				return anyClient{redis.NewClient(redistest.Options(p, 0)), lock}, nil
			}
		}
	}
	add("draws from math/rand/v2", open(func(rdb *redis.Client, name string) locktest.Lock { return &unseeded{setnx{rdb: rdb, name: name}} }))
	chance := wrong["draws from math/rand/v2"]
	chance.Name = "exists-then-set"
	wrong["exists-then-set, by chance"] = chance
	// A campaign of 5 runs without the stories is over with the 15th opening, and its failures are not small before the 60th.
	changing := func(later locktest.Subject) locktest.Subject {
		s, opened := subjectOf("exists-then-set", true), 0
		first := s.Open
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			if opened++; opened > 35 {
				return later.Open(p)
			}
			return first(p)
		}
		return s
	}
	wrong["exists-then-set, mended while it is made small"] = changing(mended)
	wrong["exists-then-set, by chance while it is made small"] = changing(chance)
	add("panics", open(func(*redis.Client, string) locktest.Lock { return panics{} }))
	add("panics in Unlock", open(func(rdb *redis.Client, name string) locktest.Lock { return &panicsLater{setnx{rdb: rdb, name: name}} }))
	panicking := subjectOf("exists-then-set", false)
	open(func(*redis.Client, string) locktest.Lock { return panics{} })(&panicking)
	wrong["exists-then-set, with panics"] = panicking
	add("gives no lock", open(func(*redis.Client, string) locktest.Lock { return nil }))
	add("holds a mutex over calls", open(func(rdb *redis.Client, name string) locktest.Lock { return &guarded{setnx{rdb: rdb, name: name}} }))
	wrong["renews by PEXPIRE"] = renewedSubject("renews by PEXPIRE", func(l *watched) locktest.Lock { l.bare = true; return l })
	wrong["renews until an error"] = renewedSubject("renews until an error", func(l *watched) locktest.Lock { l.once = true; return l })
	wrong["never renews and tells"] = renewedSubject("never renews and tells", func(l *watched) locktest.Lock { l.idle = true; return telling{l} })
	wrong["tells after an error"] = renewedSubject("tells after an error", func(l *watched) locktest.Lock { l.quit = true; return telling{l} })
	wrong["gives up at half of the lease"] = renewedSubject("gives up at half of the lease", func(l *watched) locktest.Lock { return timid{l} })
	wrong["tells nothing"] = renewedSubject("tells nothing", func(l *watched) locktest.Lock { return mute{watched: l} })
	wrong["Lost returns nil"] = renewedSubject("Lost returns nil", func(l *watched) locktest.Lock { return mute{l, true} })
	wrong["draws its token too early"] = fencedSubject("draws its token too early", true, false)
	wrong["tells no token"] = fencedSubject("tells no token", false, true)
	wrong["extends nothing"] = extendedSubject("extends nothing", "")
	wrong["extends another's hold"] = extendedSubject("extends another's hold", anybodysExpire)
	wrong["takes it by extending it"] = extendedSubject("takes it by extending it", setAgain)
	add("marks every hold with 1", open(func(rdb *redis.Client, name string) locktest.Lock { return &constant{setnx{rdb: rdb, name: name}} }))
	add("does not tell that it freed nothing", open(func(rdb *redis.Client, name string) locktest.Lock { return &silent{setnx{rdb: rdb, name: name}} }))
	quiet := wrong["does not tell that it freed nothing"]
	quiet.Name = "exists-then-set"
	wrong["exists-then-set, without the errors of Unlock"] = quiet
	add("is busy before it asks", open(func(rdb *redis.Client, name string) locktest.Lock { return &busyEarly{setnx{rdb: rdb, name: name}} }))
	add("swallows the errors of Unlock", open(func(rdb *redis.Client, name string) locktest.Lock { return &swallows{setnx{rdb: rdb, name: name}} }))
	wrong["endless"] = endlessSubject("endless", false)
	wrong["keeps every hold"] = endlessSubject("keeps every hold", true)
	add("is renewed without a lease", func(s *locktest.Subject) { s.Lease, s.Renewed = 0, true })
	add("renews and does not renew", func(s *locktest.Subject) { s.RenewEvery = time.Second })
	add("renews too seldom", func(s *locktest.Subject) { s.Renewed, s.RenewEvery = true, s.Lease+time.Second })
	add("does not open", func(s *locktest.Subject) {
		s.Open = func(*locktest.Process) (locktest.Client, error) { return nil, errLicence }
	})
	add("opens nothing", func(s *locktest.Subject) {
		s.Open = func(*locktest.Process) (locktest.Client, error) { return nil, nil }
	})
	add("opens some processes", func(s *locktest.Subject) {
		open := s.Open
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			if p.Name() == "b" {
				return nil, errLicence
			}
			return open(p)
		}
	})
	add("keeps its client in a package variable", func(s *locktest.Subject) {
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			onlyOnce.Do(func() { onlyClient = redis.NewClient(redistest.Options(p, 0)) })
			return unclosed{anyClient{onlyClient, func(rdb *redis.Client, name string) locktest.Lock { return &setnx{rdb: rdb, name: name} }}}, nil
		}
	})
	add("waits in Open for its first answer", func(s *locktest.Subject) {
		open := s.Open
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			answered := make(chan struct{})
			rdb := redistest.NewClient(p, 0)
			p.OnClose(func() { _ = rdb.Close() })
			go func() {
				if rdb.Ping(context.Background()).Err() == nil {
					close(answered)
				}
				select {}
			}()
			<-answered
			return open(p)
		}
	})
	add("never opens", func(s *locktest.Subject) {
		s.Open = func(*locktest.Process) (locktest.Client, error) { select {} }
	})
	add("panics in Open", func(s *locktest.Subject) {
		s.Open = func(*locktest.Process) (locktest.Client, error) { panic("the adapter's own panic") }
	})
	add("panics in an Open that asks", func(s *locktest.Subject) {
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			time.Sleep(time.Second)
			if p.Name() == "probe" {
				return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock { return &setnx{rdb: rdb, name: name} }}, nil
			}
			panic("the adapter's own panic")
		}
	})
	add("waits for a mutex in Open", func(s *locktest.Subject) {
		s.Open = func(*locktest.Process) (locktest.Client, error) {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
			return nil, errLicence
		}
	})
	add("never gives a lock", open(func(*redis.Client, string) locktest.Lock { select {} }))
	add("panics instead of a lock", open(func(*redis.Client, string) locktest.Lock { panic("the adapter's own panic") }))
	add("has no Open", func(s *locktest.Subject) { s.Open = nil })
	add("has no servers", func(s *locktest.Subject) { s.Servers = nil })
	add("has 0 servers", func(s *locktest.Subject) { s.Servers = redistest.Servers(0) })
	add("has -1 servers", func(s *locktest.Subject) { s.Servers = redistest.Servers(-1) })
	add("has servers of no release", func(s *locktest.Subject) { s.Servers = redistest.Servers(1, redistest.Release("6.9")) })
	add("has servers with no notifications", func(s *locktest.Subject) { s.Servers = redistest.Servers(1, redistest.Notify("KEQ")) })
	add("has no State", func(s *locktest.Subject) { s.State = nil })
	add("is not asked for traffic", func(s *locktest.Subject) { s.Promises.NotTraffic = "it asks often" })
	add("says why it has no State", func(s *locktest.Subject) { s.State, s.NoState = nil, "nobody can read the server" })
	add("has a State and says why it has none", func(s *locktest.Subject) { s.NoState = "nobody can read the server" })
	add("State reads another key", func(s *locktest.Subject) {
		s.State = redistest.Value(func(lock string) string { return "another:" + lock })
	})
	add("State reads another key of a lock with two", func(s *locktest.Subject) {
		open(func(rdb *redis.Client, name string) locktest.Lock { return &tallying{setnx{rdb: rdb, name: name}} })(s)
		s.State = func(at locktest.Snapshot, lock string) *locktest.State {
			keys := redistest.Keys(at, 0)
			if keys.Hash("another:"+lock) == nil && len(keys.List("another:"+lock+":count")) == 0 {
				return nil
			}
			return &locktest.State{Owner: lock}
		}
	})
	add("Lock does nothing", open(func(rdb *redis.Client, name string) locktest.Lock { return &idle{setnx{rdb: rdb, name: name}} }))
	add("State names no owner", func(s *locktest.Subject) {
		s.State = func(at locktest.Snapshot, lock string) *locktest.State {
			if state := redistest.Value(nil)(at, lock); state != nil {
				return &locktest.State{Expires: state.Expires}
			}
			return nil
		}
	})
	add("State names no owner of a hold without end", func(s *locktest.Subject) {
		s.State = func(at locktest.Snapshot, lock string) *locktest.State {
			if redistest.Value(nil)(at, lock) != nil {
				return &locktest.State{Expires: -1}
			}
			return nil
		}
	})
	add("State reads another key, and never returns nil", func(s *locktest.Subject) {
		s.State = func(at locktest.Snapshot, lock string) *locktest.State {
			return &locktest.State{Expires: time.Duration(redistest.Keys(at, 0).ExpiresMs("another:"+lock)) * time.Millisecond}
		}
	})
	add("State asks through a client", func(s *locktest.Subject) {
		var rdb *redis.Client
		open := s.Open
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			rdb = redis.NewClient(redistest.Options(p, 0))
			p.OnClose(func() { rdb.Close() })
			return open(p)
		}
		s.State = func(_ locktest.Snapshot, lock string) *locktest.State {
			return &locktest.State{Owner: rdb.Get(context.Background(), lock).Val()}
		}
	})
	add("State is Closed when it is free", func(s *locktest.Subject) {
		value := s.State
		s.State = func(sn locktest.Snapshot, lock string) *locktest.State {
			if st := value(sn, lock); st != nil {
				return st
			}
			return &locktest.State{Closed: true, Expires: sn.Now() + time.Hour}
		}
	})
	add("State is Closed without an end", func(s *locktest.Subject) {
		value := s.State
		s.State = func(sn locktest.Snapshot, lock string) *locktest.State {
			if st := value(sn, lock); st != nil {
				return st
			}
			return &locktest.State{Closed: true}
		}
	})
	add("has another lease", func(s *locktest.Subject) { s.Lease = time.Minute })
	add("says a little more than its lease", func(s *locktest.Subject) { s.Lease = lease + 1200*time.Millisecond })
	add("says a lot more than its lease", func(s *locktest.Subject) { s.Lease = lease + 2*time.Second })
	add("says hardly more than its lease", func(s *locktest.Subject) { s.Lease = lease + 200*time.Millisecond })
	add("says hardly less than its lease", func(s *locktest.Subject) { s.Lease = lease - 200*time.Millisecond })
	add("says less than its lease", func(s *locktest.Subject) { s.Lease = lease - 500*time.Millisecond })
	for _, name := range []string{"counts its holds", "counts its holds, and says so"} {
		add(name, func(s *locktest.Subject) {
			open(func(rdb *redis.Client, name string) locktest.Lock { return &tallying{setnx{rdb: rdb, name: name}} })(s)
			if strings.HasSuffix(name, "says so") {
				s.Kept = func(lock string) []string { return []string{lock + ":count"} }
			}
		})
	}
	add("says that it renews", func(s *locktest.Subject) { s.Renewed = true })
	named := subjectOf("names another owner", true)
	value := named.State
	named.State = func(snap locktest.Snapshot, lock string) *locktest.State {
		state := value(snap, lock)
		if state != nil {
			state.Owner = "owner of " + state.Owner
		}
		return state
	}
	wrong[named.Name] = named
	add("has a short lease", func(s *locktest.Subject) { s.Lease = 3 * time.Second })
	unsaid := renewedSubject("renews unsaid", func(l *watched) locktest.Lock { return l })
	unsaid.Renewed = false
	wrong[unsaid.Name] = unsaid
	chancy := renewedSubject("renews unsaid, by chance", func(l *watched) locktest.Lock { return echoes{l} })
	chancy.Renewed = false
	wrong[chancy.Name] = chancy
	add("State panics", func(s *locktest.Subject) { s.State = secondServer })
	add("State shows an end", func(s *locktest.Subject) { s.Lease = 0 })
	add("State always shows a hold", func(s *locktest.Subject) {
		s.State = func(locktest.Snapshot, string) *locktest.State { return &locktest.State{Owner: "x", Expires: -1} }
	})
	add("State says that there is no end", func(s *locktest.Subject) {
		s.State = func(at locktest.Snapshot, lock string) *locktest.State {
			if state := redistest.Value(nil)(at, lock); state != nil {
				return &locktest.State{Owner: state.Owner, Expires: -1}
			}
			return nil
		}
	})
	add("State shows no end", func(s *locktest.Subject) {
		s.State = func(at locktest.Snapshot, lock string) *locktest.State {
			if state := redistest.Value(nil)(at, lock); state != nil {
				return &locktest.State{Owner: state.Owner}
			}
			return nil
		}
	})
	add("uses an unknown command, and no State fits", func(s *locktest.Subject) {
		open(func(rdb *redis.Client, name string) locktest.Lock {
			return &unsimulated{setnx{rdb: rdb, name: name}}
		})(s)
		s.State = redistest.Value(func(lock string) string { return "another:" + lock })
	})
	add("dials a host name", func(s *locktest.Subject) {
		s.Open = func(*locktest.Process) (locktest.Client, error) { // nothing listens on that port
			return anyClient{redis.NewClient(&redis.Options{Addr: "localhost:1", MaxRetries: -1}), func(rdb *redis.Client, name string) locktest.Lock { return &setnx{rdb: rdb, name: name} }}, nil
		}
	})
	add("asks nobody", open(func(*redis.Client, string) locktest.Lock { return asksNobody{} }))
	add("dials a server that is not there", func(s *locktest.Subject) {
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			rdb := redis.NewClient(&redis.Options{Addr: "nobody:2379", Dialer: p.DialContext, MaxRetries: -1})
			return anyClient{rdb, func(rdb *redis.Client, name string) locktest.Lock { return dialsForEver{rdb: rdb} }}, nil
		}
	})
	add("gives a nil handle", open(func(*redis.Client, string) locktest.Lock { return (*setnx)(nil) }))
	add("asks for a server too many", func(s *locktest.Subject) {
		s.Open = func(p *locktest.Process) (locktest.Client, error) { return nil, errors.New(p.Addr(1)) }
	})
	add("has a negative reconnect", func(s *locktest.Subject) { s.Reconnect = -time.Second })
	add("has a negative lease", func(s *locktest.Subject) { s.Lease = -time.Second })
	add("has negative parts", func(s *locktest.Subject) { s.Parts = -1 })
}

// secondServer asks for a server that is not there.
func secondServer(s locktest.Snapshot, _ string) *locktest.State {
	s.Server(3)
	return nil
}

type asksNobody struct{}

func (asksNobody) Lock(context.Context) error   { return nil }
func (asksNobody) Unlock(context.Context) error { return nil }

// dialsForEver asks its server again until it answers.
type dialsForEver struct {
	asksNobody
	rdb *redis.Client
}

func (l dialsForEver) Lock(ctx context.Context) error {
	for l.rdb.Ping(ctx).Err() != nil {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
	return nil
}

type licence struct{}

func (licence) Error() string { return "no licence" }

var errLicence error = licence{}

type anyClient struct {
	rdb  *redis.Client
	lock func(*redis.Client, string) locktest.Lock
}

func (c anyClient) Lock(name string) (locktest.Lock, error) { return c.lock(c.rdb, name), nil }

func (c anyClient) Close() error { return c.rdb.Close() }

// unseeded takes its value from a source that cannot be seeded.
type unseeded struct{ setnx }

func (l *unseeded) Lock(ctx context.Context) error {
	l.value = strconv.FormatUint(rand.Uint64(), 16)
	ok, err := l.take(ctx, l.value)
	if err == nil && !ok {
		return locktest.ErrBusy
	}
	return err
}

// echoes is a watched that sends something that cannot be seeded.
type echoes struct{ *watched }

func (l echoes) Lock(ctx context.Context) error {
	if err := l.lock.rdb.Echo(ctx, rand.Uint64()).Err(); err != nil {
		return err
	}
	return l.watched.Lock(ctx)
}

// panicsLater is a setnx whose Unlock panics.
type panicsLater struct{ setnx }

func (*panicsLater) Unlock(context.Context) error { panic("the adapter's own panic") }

type panics struct{}

func (panics) Lock(context.Context) error   { panic("the adapter's own panic") }
func (panics) Unlock(context.Context) error { return nil }

// guarded holds one mutex of the program while it asks the server.
type guarded struct{ setnx }

var guard sync.Mutex

func (l *guarded) Lock(ctx context.Context) error {
	guard.Lock()
	defer guard.Unlock()
	return l.setnx.Lock(ctx)
}
