//go:build interop && linux

package java

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"lockstep/live"
	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "client" {
		if err := live.Client(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
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

// The library itself does in a live run what a scenario makes it do, and the record tells it
// in the words of the port.
func TestTheLibraryPlaysLive(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		redisserver.Missing(t, "redis-server", "redis-server")
	}
	for missing, pkg := range map[string]string{"java": "openjdk-17-jdk-headless", "mvn": "maven"} {
		if _, err := exec.LookPath(missing); err != nil {
			redisserver.Missing(t, missing, pkg)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"redisson-java@4.7.0", "redisson-java-fair@4.7.0", "redisson-java@3.4.2", "redisson-java-fair@3.12.4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			l, err := subject.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			text := manyCalls
			if l.Release == "3.4.2" { // where the watchdog timeout is no setting
				text = strings.Replace(text, "watchdog: 3s\n", "", 1)
			}
			sc, err := scenarios.Parse("calls.yaml", []byte(text), subject.Find)
			if err != nil {
				t.Fatal(err)
			}
			r, err := live.Run(context.Background(), sc, l, 1, live.Options{Program: []string{self, "client"}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Word == play.VerdictBug || r.Word == play.VerdictUndecided {
				t.Errorf("the verdict is %s: %s %v", r.Word, r.Why, r.Findings)
			}
			roles := map[model.Role]bool{}
			owners := map[string]bool{}
			executed := 0
			for _, e := range r.Played.Record.Events {
				switch e.Kind {
				case model.KindCheck:
					if !e.Met {
						t.Error(e.Text)
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
					t.Errorf("no request has the role %s", role)
				}
			}
			if l.Fair && !roles[model.RoleLeave] {
				t.Error("no request leaves the queue")
			}
			for owner := range owners {
				if owner != "" && !slices.Contains([]string{"a/1", "b/1", "c/1", "d/1"}, owner) {
					t.Errorf("%s is an owner, and no thread", owner)
				}
			}
			if executed < 6 {
				t.Errorf("%d acquires belong to a call, want one for each call at least", executed)
			}
		})
	}
}
