//go:build linux

package java

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/live"
	"lockstep/lockimpl/redisson"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// The port's scripts call the same commands as the library's. So the roles of the port's scripts,
// which are known, test roleOf.
func TestScriptsAreRecognizedByTheirCommands(t *testing.T) {
	for _, rel := range redisson.Releases {
		for _, s := range rel.Scripts() {
			if got := roleOf(s.Text); got != model.Role(s.Kind) {
				t.Errorf("redisson %s: the role of a script is %q, not %q:\n%s", rel.Version, got, s.Kind, s.Text)
			}
		}
	}
	if got := roleOf("return redis.call('get', KEYS[1])"); got != "" {
		t.Errorf("the role of a script of no lock is %q", got)
	}
}

func TestTheLibraryStandsBesideItsPort(t *testing.T) {
	for name, port := range map[string]string{
		"redisson-java@3.4.2": "redisson@3.4.2", "redisson-java": "redisson@4.7.0", "redisson-java-fair@3.21.3": "redisson-fair@3.21.3",
	} {
		l, err := subject.Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if l.Port == nil || l.Port.Name != port || l.Expected() != port {
			t.Errorf("the port of %s is not %s", name, port)
		}
		if l.Traits != l.Port.Traits || l.Library != l.Port.Library || l.Release != l.Port.Release {
			t.Errorf("%s is not the lock that its port is of", name)
		}
	}
	for _, l := range subject.All() {
		if l.Port != nil {
			t.Errorf("%s is listed, but runs in no simulated world", l.Name)
		}
	}
}

func TestAWatchdogThatIsNoSetting(t *testing.T) {
	sc, err := scenarios.Parse("watchdog.yaml", []byte("lockstep: 1\nname: watchdog\nlocks: [redisson@3.4.2]\nwatchdog: 3s\nprocesses: {a: {}}\nsteps: {a/1: [lock: x]}\n"), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"redisson-java@3.4.2": "redisson-java@3.4.2 always has 30s", "redisson-java@3.11.0": "", "redisson@3.4.2": ""} {
		l, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		err = live.Check(sc, l, live.Options{})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %q", name, got, want)
		}
	}
}

func TestAFairWaitThatIsNoSetting(t *testing.T) {
	sc, err := scenarios.Parse("wait.yaml", []byte("lockstep: 1\nname: wait\nlocks: [redisson-fair@4.7.0]\nprocesses: {a: {client: {fair_wait: 3s}}}\nsteps: {a/1: [lock: x]}\n"), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"redisson-java-fair@3.43.0": "redisson-java-fair@3.43.0 has no such setting", "redisson-java-fair@4.7.0": "", "redisson-fair@3.43.0": ""} {
		l, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		err = live.Check(sc, l, live.Options{})
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %q", name, got, want)
		}
	}
}
