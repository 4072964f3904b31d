//go:build interop && linux

package java

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/internal/realtime"
	"lockstep/live"
	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "client":
			if err := live.Client(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case "parent": // the test kills it
			if _, err := playCalls("redisson-java@4.7.0"); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			return
		}
	}
	os.Exit(m.Run())
}

// playCalls plays manyCalls once.
func playCalls(lock string) (play.LiveRun, error) {
	text := manyCalls
	if strings.HasSuffix(lock, "@3.4.2") { // it has no setting for the watchdog timeout
		text = strings.Replace(text, "watchdog: 3s\n", "", 1)
	}
	sc, err := scenarios.Parse("calls.yaml", []byte(text), subject.Find)
	if err != nil {
		return play.LiveRun{}, err
	}
	return playOnce(sc, lock)
}

// playOnce plays a scenario once.
func playOnce(sc *scenarios.Scenario, lock string) (play.LiveRun, error) {
	self, err := os.Executable()
	if err != nil {
		return play.LiveRun{}, err
	}
	l, err := subject.Find(lock)
	if err != nil {
		return play.LiveRun{}, err
	}
	return live.Run(context.Background(), sc, l, 1, live.Options{Program: []string{self, "client"}})
}

// needPrograms skips a test without the programs that it runs.
func needPrograms(t *testing.T) {
	t.Helper()
	for _, p := range [][2]string{{"redis-server", "redis-server"}, {"java", "openjdk-17-jdk-headless"}, {"mvn", "maven"}} {
		if _, err := exec.LookPath(p[0]); err != nil {
			redisserver.Missing(t, p[0], p[1])
		}
	}
}

// manyCalls has calls of each kind, a lease that runs out, a pause and a crash.
const manyCalls = `lockstep: 1
name: calls
locks: [redisson@4.7.0, redisson-fair@4.7.0]
watchdog: 3s
processes: {a: {}, b: {}, c: {}, d: {}}
steps:
  a/1:
    - lock: {name: orders, lease: 10s, want: granted}
    - lock: {name: orders, lease: 10s, want: granted}
    - at: 1500ms
    - unlock: {name: orders, want: still_held}
    - unlock: {name: orders, want: released}
  b/1:
    - at: 500ms
    - lock: {name: orders, lease: 1s, want: granted}
    - at: 3500ms
    - unlock: {name: orders, want: not_held}
  c/1:
    - at: 900ms
    - try_lock: {name: orders, want: busy}
    - try_lock: {name: orders, wait: 200ms, lease: 10s, want: busy}
    - at: 1900ms
    - lock: {name: orders, lease: 10s, want: granted}
    - at: 4500ms
    - force_unlock: orders
  d/1:
    - at: 4700ms
    - lock: {name: orders, want: granted}
faults:
  - {at: 2200ms, pause: a, for: 500ms}
  - {at: 5s, crash: d}
`

// In a live run the library itself plays the steps of a scenario, and the record describes them in
// the words of the port.
func TestTheLibraryPlaysLive(t *testing.T) {
	needPrograms(t)
	for _, name := range []string{"redisson-java@4.7.0", "redisson-java-fair@4.7.0", "redisson-java@3.4.2", "redisson-java-fair@3.12.4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of its time is waiting
			realtime.Case(t, name, func(int) string {
				r, err := playCalls(name)
				if err != nil {
					return err.Error()
				}
				return strings.Join(oddities(r), "\n")
			})
		})
	}
}

// oddities lists the mistakes in a run of manyCalls.
func oddities(r play.LiveRun) (odd []string) {
	add := func(format string, args ...any) { odd = append(odd, fmt.Sprintf(format, args...)) }
	if r.Word == play.VerdictBug || r.Word == play.VerdictUndecided {
		add("the verdict is %s: %s %v", r.Word, r.Why, r.Findings)
	}
	roles := map[model.Role]bool{}
	owners := map[string]bool{}
	executed := 0
	for _, e := range r.Played.Record.Events {
		switch e.Kind {
		case model.KindCheck:
			if !e.Met {
				add("%s", e.Text)
			}
		case model.KindState:
			owners[e.State.Owner] = true
		case model.KindExec:
			roles[e.Script] = true
			if e.Script == model.RoleAcquire && e.Op > 0 {
				executed++
			}
		}
	}
	for _, role := range []model.Role{model.RoleAcquire, model.RoleUnlock, model.RoleForceUnlock} {
		if !roles[role] {
			add("no request has the role %s", role)
		}
	}
	if r.Lock.Fair && !roles[model.RoleLeave] {
		add("no request leaves the queue")
	}
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if owner != "" && !slices.Contains([]string{"a/1", "b/1", "c/1", "d/1"}, owner) {
			add("%s is an owner, and no thread", owner)
		}
	}
	if executed < 6 {
		add("%d acquires belong to a call, want one for each call at least", executed)
	}
	return odd
}

// A connection that has lost a reply does not go on: the library would take the answer to its next
// request for the lost one, or keep that request behind it.
func TestWhatFollowsALostReplyIsNotTakenForIt(t *testing.T) {
	needPrograms(t)
	for _, c := range []struct {
		scenario, lock string
		want           model.Outcome
	}{
		{"unlock-reply-lost", "redisson-java@4.7.0", model.Released},
		{"acquire-reply-lost", "redisson-java@3.12.4", model.StillHeld},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			sc, err := scenarios.Find(c.scenario)
			if err != nil {
				t.Fatal(err)
			}
			realtime.Case(t, c.scenario, func(int) string {
				r, err := playOnce(sc, c.lock)
				if err != nil {
					return err.Error()
				}
				var last model.Outcome // of the unlocks of a
				for _, e := range r.Played.Record.Events {
					if e.Kind == model.KindReturn && e.Process == "a" && e.Action == model.ActUnlock {
						last = e.Outcome
					}
				}
				if last != c.want {
					return fmt.Sprintf("the last unlock of a is %s, want %s; the verdict is %s: %s %v", last, c.want, r.Word, r.Why, r.Findings)
				}
				return ""
			})
		})
	}
}

// A program that is killed leaves no JVM, and its folder is removed by the next one. The program is
// killed at ten moments, from its start to the end of the scenario.
func TestNoJVMOutlivesTheProgram(t *testing.T) {
	needPrograms(t)
	if _, err := build("4.7.0"); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	most := 0
	for i := range 10 {
		mark := fmt.Sprintf("LOCKSTEP_JAVA_TEST=%d-%d", os.Getpid(), i)
		cmd := exec.Command(self, "parent")
		cmd.Env = append(os.Environ(), mark, "TMPDIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 900 * time.Millisecond) // real time; then the program is killed
		n := len(marked(mark))
		most = max(most, n)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for end := time.Now().Add(20 * time.Second); len(marked(mark)) > 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("killed after %d ms with %d processes, %v are left", i*900, n, marked(mark))
			}
		}
	}
	if most <= 6 { // on a busy machine some JVMs start later than the last moment
		t.Errorf("%d processes were killed at most; four clients, a server and the program are 6, and no JVM ran", most)
	}
	t.Setenv("TMPDIR", dir)
	_, free, err := live.Folder()
	if err != nil {
		t.Fatal(err)
	}
	free()
	left, err := filepath.Glob(filepath.Join(dir, "lockstep-live-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v: %v are left", err, left)
	}
}

// marked returns the processes whose environment has the mark.
func marked(mark string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range all {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), mark) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
