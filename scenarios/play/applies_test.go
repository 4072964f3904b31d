package play_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// lacking is a subject that is never played.
type lacking struct{}

func (lacking) Check() error { return nil }
func (lacking) Count() int   { return 3 }
func (lacking) New([]string, subject.ServerOptions) subject.World {
	return subject.World{Nodes: []sim.Node{{Server: clockless{}}, {Server: clockless{}}, {Server: limited{}}}}
}
func (lacking) Commands([]string) func([]string, sim.Author) sim.Command { return nil }

func TestAScenarioThatALockDoesNotOfferDoesNotApply(t *testing.T) {
	l := &subject.Subject{
		Name: "little", Servers: lacking{}, Keys: func(string) []string { return nil },
		Open:  func(*sim.Process, subject.Options) (lockimpl.Client, error) { return nil, context.Canceled },
		Lacks: subject.Lacks{Leases: true, SingleTry: true, ForceUnlock: true, State: true},
	}
	for _, c := range []struct{ steps, fault, want string }{
		{"lock: x", "", ""},
		{"try_lock: {name: x, wait: 1s}", "", ""},
		{"lock: {name: x, lease: 1s}", "", "the step lock does not apply: little takes no lease from its caller"},
		{"try_lock: x", "", "the step try_lock does not apply: little has no try that does not wait"},
		{"force_unlock: x", "", "the step force_unlock does not apply: little cannot be unlocked by force"},
		{"extend: x", "", "the step extend does not apply: little has no extension of a hold by its caller"},
		{"read: {name: x, locked: true}", "", "the step read does not apply: little does not say what the server holds for it"},
		{"repeat: {times: 2, steps: [force_unlock: x]}", "", "the step force_unlock does not apply"},
		{"lock: x, use: {resource: stock}", "", ""},
		{"lock: x, use: {resource: safe}", "", "the step use does not apply: little tells no fencing token, for which safe asks"},
		{"lock: x", "{at: 1s, server: restart, servers: [1, 3]}", ""},
		{"lock: x", "{at: 1s, server: restart, servers: 4}", "the fault does not apply: it strikes server 4, and little has 3"},
		{"lock: x", "{at: 1s, server: failover}", "the fault does not apply: server 3 of little has no replica; it has a restart"},
		{"lock: x", "{at: 1s, server: failover, servers: [1, 2]}", ""},
	} {
		text := "lockstep: 1\nname: s\nlocks: [little]\nprocesses: {a: {}}\nsteps: {a/1: [" + c.steps + "]}\n"
		if strings.Contains(c.steps, "use") {
			text += "resources: {stock: {start: 1}, safe: {start: 1, fence: x}}\n"
		}
		if c.fault != "" {
			text += "faults: [" + c.fault + "]\n"
		}
		sc, err := scenarios.Parse("s.yaml", []byte(text), scenarios.AnyLock)
		if err != nil {
			t.Fatal(err)
		}
		switch err := play.Applies(sc, l); {
		case c.want == "" && err != nil:
			t.Errorf("%s %s: %v", c.steps, c.fault, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "s.yaml:")):
			t.Errorf("%s %s: %v; want %s", c.steps, c.fault, err, c.want)
		}
		again, err := scenarios.Parse("again.yaml", []byte(sc.Write()), scenarios.AnyLock)
		if err != nil || again.Write() != sc.Write() {
			t.Errorf("written and read again: %v\n%s", err, sc.Write())
		}
		if len(sc.Faults) > 0 && (len(again.Faults) == 0 || len(again.Faults[0].Servers) != len(sc.Faults[0].Servers)) {
			t.Errorf("the servers are lost:\n%s", sc.Write())
		}
		if c.want != "" {
			func() {
				defer func() {
					if p, _ := recover().(string); !strings.Contains(p, c.want) {
						t.Errorf("Play panics with %q; want %s", p, c.want)
					}
				}()
				play.Play(nil, sc, l, sim.NewSeeded(1))
			}()
		}
	}
}

// misfit says why a scenario with a fault does not apply to a lock; "": it does.
func misfit(t *testing.T, l *subject.Subject, fault string) string {
	t.Helper()
	text := "lockstep: 1\nname: s\nlocks: [" + l.Name + "]\nprocesses: {a: {}}\nsteps: {a/1: [lock: x]}\nfaults: [" + fault + "]\n"
	sc, err := scenarios.Parse("s.yaml", []byte(text), scenarios.AnyLock)
	if err != nil {
		t.Fatal(err)
	}
	if err := play.Applies(sc, l); err != nil {
		return err.Error()
	}
	return ""
}

// A rule that answers a command with an error names none that Redis never refuses.
func TestARefusalOfWhatIsNeverRefusedDoesNotApply(t *testing.T) {
	l := scenariotest.Lock(t, "setnx-cad")
	for rule, want := range map[string]string{
		"{when: {command: MULTI}, do: error, with: BUSY}": "s.yaml:6: the fault does not apply: server 1 of setnx-cad never refuses MULTI",
		"{when: {command: MULTI}, do: drop}":              "",
		"{when: {command: EXEC}, do: error, with: BUSY}":  "",
		"{when: {process: a}, do: error, with: BUSY}":     "",
	} {
		if got := misfit(t, l, rule); got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}

// clockless is a server that is never played and has no wall clock, and clocked has one.
type clockless struct{ sim.Server }
type clocked struct{ sim.Server }

func (clockless) Parts() sim.Parts { return sim.Parts{Strike: strikes} }
func (clocked) Parts() sim.Parts {
	return sim.Parts{Strike: strikes, StepClock: func(int64, time.Duration, *sim.Effects) {}}
}

func strikes(int64, model.FaultSpec, *sim.Effects) {}

// limited is a server without a failover.
type limited struct{ sim.Server }

func (l limited) Parts() sim.Parts { return sim.Parts{Strike: strikes, Lacks: l.lacks} }

func (limited) lacks(f model.FaultSpec) string {
	if f.Server == model.ServerFailover {
		return "has no replica; it has a restart"
	}
	return ""
}

// mixed are two servers, of which the second has no wall clock.
type mixed struct{ lacking }

func (mixed) Count() int { return 2 }
func (mixed) New([]string, subject.ServerOptions) subject.World {
	return subject.World{Nodes: []sim.Node{{Addr: "192.0.2.1:1", Server: clocked{}}, {Addr: "192.0.2.2:1", Server: clockless{}}}}
}

func TestAStepOfAClockThatAServerDoesNotHaveDoesNotApply(t *testing.T) {
	l := &subject.Subject{Name: "little", Servers: mixed{}}
	for servers, want := range map[string]string{
		"":                  "s.yaml:6: the fault does not apply: server 2 of little has no wall clock",
		", servers: 2":      "s.yaml:6: the fault does not apply: server 2 of little has no wall clock",
		", servers: [1, 2]": "s.yaml:6: the fault does not apply: server 2 of little has no wall clock",
		", servers: 1":      "",
	} {
		if got := misfit(t, l, "{at: 1s, server: wall_clock, step: 1s"+servers+"}"); got != want {
			t.Errorf("%q: %q, want %q", servers, got, want)
		}
	}
}

// No built-in scenario expects an outcome of a lock on which it is not played.
func TestWhatIsExpectedIsPlayed(t *testing.T) {
	all, err := scenarios.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range all {
		for name := range sc.Expect {
			if err := play.Claims(sc, scenariotest.Lock(t, name)); err != nil {
				t.Errorf("%s expects an outcome on %s, and it is n/a: %v", sc.Name, name, err)
			}
		}
	}
}

// A scenario that asks about a property that a lock does not claim says nothing of the lock, even
// if it names the lock.
func TestWhatALockDoesNotClaimIsNotAsked(t *testing.T) {
	waived := model.Promises{model.JudgeHoldCount: {Waived: true, Source: "it has no re-entry to count"}}
	all := model.Traits{Fair: true, Deadlines: true}
	none := model.Traits{Uncounted: true, NoWatchdog: true}
	const twice = "lock: {name: x, want: granted}}, {try_lock: {name: x, wait: 0, want: granted}"
	for _, c := range []struct {
		steps, more string
		traits      model.Traits
		promises    model.Promises
		want        string
	}{
		{"lock: x", "reach: [renewed]", none, nil, "s.yaml: each run must reach renewed, and on other nothing renews a hold"},
		{"lock: x", "reach: [renewed]", model.Traits{Endless: true}, nil, "nothing renews a hold"},
		{"lock: x", "reach: [renewed]", all, nil, ""},
		{"extend: x", "reach: [renewed]", none, nil, ""},
		{"lock: x", "reach: [reentered]", none, nil, "s.yaml: each run must reach reentered, and on other there are no levels of a hold"},
		{"lock: x", "reach: [reentered]", model.Traits{NonReentrant: true}, nil, "there are no levels of a hold"},
		{"lock: x", "reach: [reentered]", all, nil, ""},
		{"lock: x", "reach: [waiter_evicted]", model.Traits{Fair: true}, nil, "waiters have no deadline"},
		{"lock: x", "reach: [waiter_evicted]", all, nil, ""},
		{"lock: x", "reach: [lease_expired, stale_unlock]", none, nil, ""},
		{"unlock: {name: x, want: still_held}", "", none, nil, "s.yaml:5: the step unlock gives up one level of several, and other counts no levels of a hold"},
		{"unlock: {name: x, want: [still_held, released]}", "", none, nil, ""},
		{"unlock: {name: x, want: still_held}", "", all, nil, ""},
		{twice, "", none, nil, "s.yaml:5: the step try_lock enters again, and other counts no levels of a hold"},
		{"repeat: {times: 2, steps: [{" + twice + "}]}", "", none, nil, "the step try_lock enters again, and other counts no levels of a hold"},
		{twice, "", all, nil, ""},
		{strings.Replace(twice, "wait: 0, want: granted", "wait: 0, want: busy", 1), "", none, nil, ""},
		{strings.Replace(twice, "name: x", "name: y", 1), "", none, nil, ""},
		{"lock: x", "expect: {named: {bug: [fifo]}}", none, nil, "s.yaml: the scenario is about fifo, which other does not promise"},
		{"lock: x", "expect: {named: {bug: [fifo]}}", all, nil, ""},
		{"lock: x", "expect: {named: {limit: [fifo, lease]}}", none, nil, ""},
		{"lock: x", "expect: {named: {bug: [hold-count]}}", all, waived, "the scenario is about hold-count, which other does not promise: it has no re-entry to count"},
		{"lock: x", "expect: {named: {not: [hold-count]}}", all, waived, ""},
	} {
		text := "lockstep: 1\nname: s\nlocks: [named]\nprocesses: {a: {}}\nsteps: {a/1: [{" + c.steps + "}]}\n" + c.more + "\n"
		sc, err := scenarios.Parse("s.yaml", []byte(text), scenarios.AnyLock)
		if err != nil {
			t.Fatal(err)
		}
		l := &subject.Subject{Name: "other", Traits: c.traits, Promises: c.promises}
		switch err := play.Claims(sc, l); {
		case c.want == "" && err != nil:
			t.Errorf("%s %s: %v", c.steps, c.more, err)
		case c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)):
			t.Errorf("%s %s: %v; want %s", c.steps, c.more, err, c.want)
		}
		l.Name = "named"
		breaks := strings.Contains(c.more, "lease") || c.want == "" // lease is a promise that it makes
		if err := play.Claims(sc, l); (err == nil) != breaks {
			t.Errorf("%s %s: a lock that the scenario names: %v", c.steps, c.more, err)
		}
	}
}
