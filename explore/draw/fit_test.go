package draw

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// several says that there are five servers. Scenarios are drawn for them and not played.
type several struct{ subject.Servers }

func (several) Count() int { return 5 }

// A scenario that is drawn for a lock applies to it, even if the lock lacks parts of a
// scenario. Faults strike some of several servers.
func TestDrawnScenariosApply(t *testing.T) {
	base := scenariotest.Lock(t, "setnx-cad")
	little := *base
	little.Name, little.Servers = "little", several{base.Servers}
	little.Lacks = subject.Lacks{Leases: true, SingleTry: true, ForceUnlock: true, State: true}
	leases, struck := 0, map[int]int{} // by the number of servers
	steps := map[bool]int{}            // of the clocks of servers, by whether they go forward
	for seed := range uint64(300) {
		for _, profile := range []Profile{Simple, Full} {
			drawn := New(sim.NewSeeded(seed), &little, profile, Classes)
			sc, err := scenarios.Parse("drawn.yaml", []byte(drawn.Write()), scenarios.AnyLock)
			if err != nil {
				t.Fatalf("%v\n%s", err, drawn.Write())
			}
			if err := play.Applies(sc, &little); err != nil {
				t.Fatalf("%v\n%s", err, drawn.Write())
			}
			for _, f := range sc.Faults {
				struck[len(f.Servers)]++
				if f.StepsServerClock() {
					steps[f.Step > 0]++
				}
				if !slices.IsSorted(f.Servers) {
					t.Errorf("the servers %v", f.Servers)
				}
			}
			leases += strings.Count(New(sim.NewSeeded(seed), base, profile, Classes).Write(), "lease: ")
		}
	}
	if leases == 0 {
		t.Error("no lock is drawn a lease: the test shows nothing")
	}
	if steps[true] == 0 || steps[false] == 0 {
		t.Errorf("clocks of servers step forward and backward %v times", steps)
	}
	for _, n := range []int{0, 1, 2, 3} {
		if struck[n] == 0 {
			t.Errorf("no fault strikes %d servers (0: all): %v", n, struck)
		}
	}
}

// A lock with extensions is drawn some, and a lock without is drawn none.
func TestExtensionsAreDrawnForLocksThatHaveThem(t *testing.T) {
	base := scenariotest.Lock(t, "setnx-cad")
	extends := *base
	extends.Extends = true
	drawn := map[Profile]int{}
	for seed := range uint64(100) {
		for _, profile := range []Profile{Simple, Full} {
			scenario := New(sim.NewSeeded(seed), &extends, profile, Classes)
			if !strings.Contains(scenario.Write(), "- extend: ") {
				continue
			}
			drawn[profile]++
			if strings.Contains(New(sim.NewSeeded(seed), base, profile, Classes).Write(), "extend") {
				t.Fatal("an extension is drawn for a lock without")
			}
		}
	}
	if drawn[Simple] == 0 || drawn[Full] == 0 {
		t.Errorf("extensions are drawn in %v of 100 scenarios", drawn)
	}
}

// The clock of a server steps only in a campaign of a lock on several servers, and only
// with the class.
func TestOnlySeveralServersHaveClocksThatStep(t *testing.T) {
	one := scenariotest.Lock(t, "setnx-cad")
	many := *one
	many.Servers = several{one.Servers}
	for _, c := range []struct {
		name    string
		lock    *subject.Subject
		classes []Class
		drawn   bool
	}{
		{"one server", one, Classes, false},
		{"several", &many, []Class{ClassClock}, true},
		{"several, of other classes", &many, []Class{ClassServer, ClassOperator}, false},
	} {
		n := 0
		for seed := range uint64(200) {
			sc, err := scenarios.Parse("drawn.yaml", []byte(New(sim.NewSeeded(seed), c.lock, Full, c.classes).Write()), scenarios.AnyLock)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range sc.Faults {
				if f.StepsServerClock() {
					n++
				}
			}
		}
		if n > 0 != c.drawn {
			t.Errorf("%s: %d steps are drawn", c.name, n)
		}
	}
}

// poor is a server that has a stall, a restart that loses its data, and rules on messages
// that have no names and that nobody else answers. It has no other fault.
type poor struct{ sim.Server }

func (p poor) Parts() sim.Parts {
	return sim.Parts{Strike: func(int64, model.FaultSpec, *sim.Effects) {}, Refusal: func(string) []byte { return nil }, Lacks: p.lacks}
}

func (poor) lacks(f model.FaultSpec) string {
	if f.Server == model.ServerStall || f.Server == model.ServerRestart && !f.KeepData ||
		f.Kind == model.FaultRule && f.Do != "error" && f.When.Command == "" && f.When.Channel == "" {
		return ""
	}
	return "has a stall, a restart without its data, and a few rules"
}

type poorServers struct{ subject.Servers }

func (poorServers) New([]string, subject.ServerOptions) subject.World {
	return subject.World{Nodes: []sim.Node{{Server: poor{}}}}
}

// A campaign does not draw the faults that a server lacks, and draws the others.
func TestFaultsThatAServerLacksAreNotDrawn(t *testing.T) {
	lock := *scenariotest.Lock(t, "setnx-cad")
	lock.Name, lock.Servers = "poor", poorServers{lock.Servers}
	drawn, rules := map[model.ServerFault]int{}, map[string]int{}
	for seed := range longtest.Size[uint64](t, 100, 300) {
		drew := New(sim.NewSeeded(seed), &lock, Full, Classes)
		sc, err := scenarios.Parse("drawn.yaml", []byte(drew.Write()), scenarios.AnyLock)
		if err != nil {
			t.Fatalf("%v\n%s", err, drew.Write())
		}
		if err := play.Applies(sc, &lock); err != nil {
			t.Fatalf("%v\n%s", err, drew.Write())
		}
		for _, f := range sc.Faults {
			drawn[f.Server]++
			rules[f.Do]++
		}
	}
	if drawn[model.ServerStall] == 0 || drawn[model.ServerRestart] == 0 || rules["drop"] == 0 || rules["hold"] == 0 {
		t.Errorf("drawn were %v and %v", drawn, rules)
	}
}

// A rule that answers a command with an error names none that the servers never refuse, and other rules do.
func TestNoRefusalOfWhatIsNeverRefusedIsDrawn(t *testing.T) {
	lock := *scenariotest.Lock(t, "setnx-cad")
	lock.Campaign.Commands = []string{"MULTI", "EXEC"}
	named := map[string]int{}
	for seed := range uint64(200) {
		drew := New(sim.NewSeeded(seed), &lock, Full, []Class{ClassNetwork})
		if err := play.Applies(drew.Scenario, &lock); err != nil {
			t.Fatalf("%v\n%s", err, drew.Write())
		}
		for _, f := range drew.Faults {
			named[strings.TrimSpace(f.Do+" "+f.When.Command)]++
		}
	}
	for _, rule := range []string{"error EXEC", "error", "drop MULTI", "drop EXEC"} {
		if named[rule] == 0 {
			t.Errorf("no rule %s is drawn: %v", rule, named)
		}
	}
}

// ServerFaults names each fault that the servers of a lock have, and none that they lack.
func TestTheFaultsThatServersHaveAreNamed(t *testing.T) {
	lock := *scenariotest.Lock(t, "setnx-cad")
	if got, want := ServerFaults(&lock), []string{"restart with data", "restart without data", "failover", "script flush", "stall"}; !slices.Equal(got, want) {
		t.Errorf("a Redis server has %q, want %q", got, want)
	}
	lock.Servers = poorServers{lock.Servers}
	if got, want := ServerFaults(&lock), []string{"restart without data", "stall"}; !slices.Equal(got, want) {
		t.Errorf("the poor server has %q, want %q", got, want)
	}
}

// told is a server that knows these commands and no others.
type told struct {
	sim.Server
	commands []string
}

// Parts implements sim.Server. Without commands the server does not tell them.
func (s told) Parts() sim.Parts {
	p := s.Server.Parts()
	p.StepClock, p.Drawing, p.Commands = nil, nil, nil
	if s.commands != nil {
		p.Commands = func() []string { return s.commands }
	}
	return p
}

type toldServers struct {
	subject.Servers
	server sim.Server
}

func (s toldServers) New([]string, subject.ServerOptions) subject.World {
	return subject.World{Nodes: []sim.Node{{Server: s.server}}}
}

// drawn is a server that says what campaigns draw for it.
type drawn struct {
	told
	drawing sim.Drawing
}

func (d drawn) Parts() sim.Parts {
	p := d.told.Parts()
	p.Drawing = func() sim.Drawing { return d.drawing }
	return p
}

// commandsDrawn draws scenarios for a lock and counts the commands that their rules name.
func commandsDrawn(t *testing.T, l *subject.Subject) map[string]int {
	t.Helper()
	met := map[string]int{}
	for seed := range longtest.Size[uint64](t, 120, 400) {
		drew := New(sim.NewSeeded(seed), l, Full, []Class{ClassNetwork})
		sc, err := scenarios.Parse("drawn.yaml", []byte(drew.Write()), func(string) (*subject.Subject, error) { return l, nil })
		if err != nil {
			t.Fatalf("%v\n%s", err, drew.Write())
		}
		for _, f := range sc.Faults {
			if f.When.Command != "" {
				met[f.When.Command]++
			}
		}
	}
	return met
}

// A rule names a command that the lock's client sends and its servers know, or else any
// command that they know, or none.
func TestTheServersSayWhichCommandsAreDrawn(t *testing.T) {
	base := scenariotest.Lock(t, "setnx-cad")
	redis := base.Servers.New(nil, subject.ServerOptions{}).Nodes[0].Server
	for _, c := range []struct {
		rule   string
		server sim.Server
		sent   []string // nil: a subject that does not say
		want   []string
	}{
		{"a client of Redis sends these", redis, nil, []string{"DEL", "EVAL", "EVALSHA", "SUBSCRIBE", "UNSUBSCRIBE"}},
		{"unless the subject says others", redis, []string{"GET", "WAIT"}, []string{"GET", "SUBSCRIBE", "WAIT"}},
		{"a server that says nothing of clients", told{redis, []string{"ADD", "DEL"}}, nil, []string{"ADD", "DEL"}},
		{"one that says what it does not know", drawn{told{redis, []string{"ADD", "DEL"}}, sim.Drawing{Commands: []string{"DEL", "EVAL"}}}, nil, []string{"DEL"}},
		{"one whose waiters listen", drawn{told{redis, []string{"ADD", "DEL", "HEAR"}}, sim.Drawing{Commands: []string{"DEL"}, Listen: "HEAR"}}, nil, []string{"DEL", "HEAR"}},
		{"a server that knows others", told{redis, []string{"ADD", "CAS"}}, nil, []string{"ADD", "CAS"}},
		{"a server that does not tell", told{redis, nil}, nil, nil},
	} {
		lock := *base
		lock.Servers, lock.Campaign.Commands = toldServers{base.Servers, c.server}, c.sent
		if got := slices.Sorted(maps.Keys(commandsDrawn(t, &lock))); !slices.Equal(got, c.want) {
			t.Errorf("%s: drawn are %v, want %v", c.rule, got, c.want)
		}
	}
}

// The drawing for a lock on Redis stays the same to the byte as long as Version does, so that the
// campaigns of results/ can be played again.
func TestWhatIsDrawnForALockOnRedisStays(t *testing.T) {
	lock := *scenariotest.Lock(t, "setnx-cad")
	lock.Campaign = subject.Campaign{ShortWaits: true, NoReentry: true}
	sum := sha256.New()
	for seed := range uint64(200) {
		_, _ = fmt.Fprintln(sum, New(sim.NewSeeded(seed), &lock, Full, Classes).Write())
	}
	if got, want := fmt.Sprintf("%x", sum.Sum(nil)[:8]), "cf2101b1a2f3ea20"; got != want {
		t.Errorf("the same seeds draw other scenarios: raise Version, then put %s here", got)
	}
}
