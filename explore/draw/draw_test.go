package draw

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/report/sentence"
	"lockstep/scenarios/scenariotest"

	"lockstep/explore/failure"
	"lockstep/internal/longtest"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

var profiles = []Profile{Simple, Full}

func TestParseClasses(t *testing.T) {
	for _, c := range []struct {
		names string
		want  []Class
		wrong string
	}{
		{names: "network,pause,network", want: []Class{ClassNetwork, ClassPause}},
		{names: "pause,all", want: Classes},
		{names: "none"},
		{names: "none,pause", wrong: `"none" stands for no class of faults; give it alone, or leave it out`},
		{names: "pause,none", wrong: `"none" stands for no class of faults; give it alone, or leave it out`},
		{names: "all,none", wrong: `"none" stands for no class of faults; give it alone, or leave it out`},
		{names: "all,nome", wrong: `unknown class of faults "nome"; did you mean "none"? known: network, crash, pause, partition, clock, server, operator, watchdog, interrupt, all, none`},
		{names: "nome", wrong: `unknown class of faults "nome"; did you mean "none"? known: network, crash, pause, partition, clock, server, operator, watchdog, interrupt, all, none`},
	} {
		got, err := ParseClasses(strings.Split(c.names, ","))
		if !slices.Equal(got, c.want) || (err == nil) != (c.wrong == "") || err != nil && err.Error() != c.wrong {
			t.Errorf("%s: %v, %v; want %v, %s", c.names, got, err, c.want, c.wrong)
		}
	}
}

// Mistakes of handles that share something show themselves only if a process has several threads.
func TestEachProfileHasSeveralThreadsInAProcess(t *testing.T) {
	l := scenariotest.Lock(t, "setnx-cad")
	for _, p := range Profiles {
		const n = 300
		several := 0
		for seed := range uint64(n) {
			sc := New(sim.NewSeeded(seed), l, p, Classes).Scenario
			if slices.ContainsFunc(sc.Processes, func(x scenarios.Process) bool { return x.Threads > 1 }) {
				several++
			}
		}
		if several < n/3 {
			t.Errorf("%s: %d of %d scenarios have a process with several threads, fewer than a third", p, several, n)
		}
	}
}

// classSets returns the sets of fault classes with which the tests draw.
func classSets() [][]Class {
	sets := [][]Class{nil, Classes}
	for _, c := range Classes {
		sets = append(sets, []Class{c})
	}
	return sets
}

// eachDraw draws n scenarios for every lock, profile and set of classes.
func eachDraw(n int, visit func(seed uint64, l *subject.Subject, p Profile, classes []Class, drawn Scenario)) {
	seed := uint64(0)
	for _, l := range subject.All() {
		for _, p := range profiles {
			for _, classes := range classSets() {
				for range n {
					seed++
					visit(seed, l, p, classes, New(sim.NewSeeded(seed), l, p, classes))
				}
			}
		}
	}
}

// stepKinds returns the kinds of steps in a scenario.
func stepKinds(sc *scenarios.Scenario) map[string]bool {
	found := map[string]bool{}
	for _, s := range sc.All() {
		found[string(s.Kind)] = true
	}
	return found
}

// kindOfDrawn returns the name of a fault's kind in the drawing.
func kindOfDrawn(f scenarios.Fault) string {
	switch f.Kind {
	case model.FaultRule:
		if f.When.Channel == "*" && f.When.Script == "" && f.When.Direction == "reply" && f.Do == "drop" {
			return "wakeup"
		}
		return f.Do
	case model.FaultServer:
		return string(f.Server)
	case model.FaultKey:
		return f.KeyDo
	}
	return string(f.Kind)
}

func TestWhatIsDrawnLoads(t *testing.T) {
	eachDraw(longtest.Size(t, 2, 20), func(seed uint64, l *subject.Subject, p Profile, classes []Class, drawn Scenario) {
		text := drawn.Write()
		sc := scenariotest.Parse(t, text)
		if again := New(sim.NewSeeded(seed), l, p, classes); !reflect.DeepEqual(again, drawn) {
			t.Fatalf("seed %d, drawn twice:\n%+v\n%+v", seed, drawn, again)
		}
		if !slices.Equal(sc.Locks, []string{l.Name}) || l.Replicated != (sc.Server.Replicas > 0) {
			t.Fatalf("seed %d is not for %s:\n%s", seed, l.Name, text)
		}
		for _, f := range sc.Faults {
			if !slices.ContainsFunc(ClassesOf(f), func(c Class) bool { return slices.Contains(classes, c) }) {
				t.Fatalf("seed %d: %s is of no class of %v", seed, f.String(), classes)
			}
		}
		if stepKinds(sc)["interrupt"] && !slices.Contains(classes, ClassInterrupt) {
			t.Fatalf("seed %d interrupts, and was asked for %v", seed, classes)
		}
		if !slices.Contains(classes, ClassClock) && slices.ContainsFunc(sc.Processes, func(p scenarios.Process) bool { return p.WallOffset != 0 || p.WallDriftPPM != 0 }) {
			t.Fatalf("seed %d has clocks that differ, and was asked for %v", seed, classes)
		}
		if p == Simple {
			simple(t, l, sc)
		}
		for _, knob := range []string{"profile " + string(p), "classes ", "processes with threads ", "lock names ", "latency " + sc.Latency.String(),
			"watchdog " + sc.Watchdog.String(), "calls ", "percent ", "faults ", "times ", fmt.Sprintf("%d faults", len(sc.Faults))} {
			if !strings.Contains(sc.About, knob) {
				t.Fatalf("seed %d: the about does not name %q: %s", seed, knob, sc.About)
			}
		}
	})
}

// A scenario declares the end of a resource only if every use of the resource is certain. A
// use is not certain if its call may end because an answer is late.
func TestAnEndIsDeclaredWhereItIsCertain(t *testing.T) {
	l := scenariotest.Lock(t, "redisson@4.7.0+replicas")
	for _, c := range []struct {
		what         string
		latency, lag scenarios.Range
		timeout      time.Duration // 0: the default
		classes      []Class
		certain      bool
	}{
		{what: "all in time", latency: span(1, 100), timeout: 300 * time.Millisecond, certain: true},
		{what: "an answer may be late", latency: span(1, 150), timeout: 300 * time.Millisecond},
		{what: "because replicas lag", latency: span(1, 50), lag: span(0, 100), timeout: 300 * time.Millisecond},
		{what: "the usual patience", latency: span(1, 200), lag: span(0, 1000), certain: true},
		{what: "which ends too", latency: span(1, 200), lag: span(0, 2000)},
		{what: "faults", latency: span(1, 1), classes: []Class{ClassPause}},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := newDrawer(sim.NewSeeded(1), l, Full, c.classes)
			d.sc.Latency, d.sc.Server = c.latency, scenarios.Server{Replicas: 1, Lag: c.lag}
			patient := scenarios.Process{Name: "a", Threads: 1}
			if c.timeout > 0 {
				patient.ClientOptions.ResponseTimeout = &c.timeout
			}
			d.sc.Processes = []scenarios.Process{{Name: "b", Threads: 1}, patient}
			use := scenarios.Step{Kind: scenarios.StepUse, Name: "stock1", Take: 2}
			d.sc.Threads = []scenarios.Script{{Process: "a", Thread: 1, Steps: []scenarios.Step{
				{Kind: scenarios.StepWithLock, Name: "x", Steps: []scenarios.Step{use}},
			}}}
			d.settleResources()
			if len(d.sc.Resources) != 1 || (d.sc.Resources[0].End != nil) != c.certain {
				t.Errorf("%v", d.sc.Resources)
			}
		})
	}
}

// simple fails the test if a scenario does not fit the profile simple.
func simple(t *testing.T, l *subject.Subject, sc *scenarios.Scenario) {
	t.Helper()
	for _, p := range sc.Processes {
		if p.Threads > 2 {
			t.Fatalf("%d threads in one client:\n%s", p.Threads, sc.Write())
		}
	}
	kinds := stepKinds(sc)
	for _, kind := range []scenarios.StepKind{scenarios.StepForceUnlock, scenarios.StepClose, scenarios.StepUse, scenarios.StepRepeat} {
		if kinds[string(kind)] {
			t.Fatalf("a step %s:\n%s", kind, sc.Write())
		}
	}
	for _, th := range sc.Threads {
		held := map[string]*scenarios.Duration{}
		var walk func([]scenarios.Step)
		walk = func(steps []scenarios.Step) {
			for _, s := range steps {
				switch s.Kind {
				case scenarios.StepUnlock:
					delete(held, s.Name)
				case scenarios.StepLock, scenarios.StepTryLock, scenarios.StepWithLock:
					if l.Fair && s.Wait != nil {
						t.Fatalf("a timed try on a fair lock:\n%s", sc.Write())
					}
					if lease, ok := held[s.Name]; ok && (lease == nil) != (s.Lease == nil) {
						t.Fatalf("lease and watchdog on one hold of %s/%d:\n%s", th.Process, th.Thread, sc.Write())
					}
					held[s.Name] = s.Lease
				}
				walk(s.Steps)
				if s.Kind == scenarios.StepWithLock {
					delete(held, s.Name)
				}
			}
		}
		walk(th.Steps)
	}
}

// Every kind of step and of fault is in some of the drawn scenarios and not in others. A
// kind that is in all would hide the failures that need its absence.
func TestDrawsAreASwarm(t *testing.T) {
	n := longtest.Size(t, 100, 300)
	steps := []string{"at", "sleep", "lock", "try_lock", "with_lock", "unlock", "force_unlock", "use", "interrupt", "repeat", "close"}
	all := []string{
		"drop", "delay", "hold", "reset", "error", "wakeup", "crash", "pause", "partition", "wall_clock",
		"restart", "failover", "flush_scripts", "stall", "delete", "expire",
	}
	for _, name := range []string{"redisson", "redisson-fair", "setnx-cad", "redisson@4.7.0+replicas"} {
		l := scenariotest.Lock(t, name)
		seen := map[string]int{}
		for seed := range uint64(n) {
			sc := New(sim.NewSeeded(seed), l, Full, Classes).Scenario
			found := stepKinds(sc)
			for _, f := range sc.Faults {
				found[kindOfDrawn(f)] = true
			}
			for kind := range found {
				seen[kind]++
			}
		}
		for _, kind := range append(slices.Clone(steps), all...) {
			if k := seen[kind]; k == 0 || k == n {
				t.Errorf("%s: %s is in %d of %d draws", name, kind, k, n)
			}
		}
	}
	l := scenariotest.Lock(t, "redisson")
	for _, c := range Classes {
		with := 0
		for seed := range uint64(n) {
			sc := New(sim.NewSeeded(seed), l, Full, []Class{c}).Scenario
			skewed := slices.ContainsFunc(sc.Processes, func(p scenarios.Process) bool { return p.WallOffset != 0 || p.WallDriftPPM != 0 })
			if len(sc.Faults) > 0 || stepKinds(sc)["interrupt"] || skewed {
				with++
			}
		}
		if with < n/3 || with == n {
			t.Errorf("class %s alone: %d of %d draws have a fault", c, with, n)
		}
	}
}

// Without faults, a simple workload shows only known defects.
func TestSimpleWorkloadsHold(t *testing.T) {
	h := sim.NewHost(t)
	n := longtest.Size[uint64](t, 10, 20)
	for _, l := range subject.All() {
		if l.Name == "none" {
			continue
		}
		for seed := range n {
			v := play.Run(h, New(sim.NewSeeded(seed), l, Simple, nil).Scenario, l, seed)
			for _, f := range v.Findings {
				if f.Verdict == judges.Undecided || f.Class == judges.ClassBug && failure.NewNamer(h, v).Name(f).ID == "" {
					t.Errorf("%s, seed %d: %s %s: %s\n%s", l.Name, seed, f.Judge, f.Verdict, sentence.Finding(f), v.Scenario.Write())
				}
			}
		}
	}
}

// rapid shrinks every decision to zero. The draw from zeros is a simple scenario.
func TestTheSimplestDraw(t *testing.T) {
	for _, p := range profiles {
		sc := New(zeros{}, scenariotest.Lock(t, "redisson"), p, Classes).Scenario
		if len(sc.Faults) > 0 || len(sc.Processes) != 2 || len(stepKinds(sc)) > 2 {
			t.Errorf("the simplest draw of profile %s:\n%s", p, sc.Write())
		}
	}
}

type zeros struct{}

func (zeros) Choose(string, uint64) uint64 { return 0 }

// A drawn error replaces the request. An error in place of a reply would follow a command
// that ran, and no server sends that.
func TestErrorsComeInPlaceOfCommands(t *testing.T) {
	l := scenariotest.Lock(t, "redisson@4.7.0")
	drawn := 0
	for seed := range uint64(300) {
		for _, f := range New(sim.NewSeeded(seed), l, Full, []Class{ClassNetwork, ClassWatchdog}).Scenario.Faults {
			if f.Do != "error" {
				continue
			}
			if drawn++; f.When.Direction != "request" {
				t.Errorf("seed %d: an error on %q", seed, f.When.Direction)
			}
		}
	}
	if drawn == 0 {
		t.Error("no error was drawn")
	}
}

// TestFaultsThatALockDoesNotMeet asks for classes of which no fault can strike.
func TestFaultsThatALockDoesNotMeet(t *testing.T) {
	for _, c := range []struct {
		lock  string
		class Class
		want  bool
	}{
		{"redisson@4.7.0", ClassWatchdog, true},
		{"setnx-del", ClassWatchdog, false}, // nothing renews it
		{"setnx-del", ClassOperator, true},
		{"setnx-del", ClassInterrupt, true},
	} {
		l, err := subject.Find(c.lock)
		if err != nil {
			t.Fatal(err)
		}
		if got := Meets(l, c.class); got != c.want {
			t.Errorf("%s meets faults of the class %s: %v; want %v", c.lock, c.class, got, c.want)
		}
	}
}

// TestOrderlyCallersForceNothing draws scenarios whose callers do all but two things.
func TestOrderlyCallersForceNothing(t *testing.T) {
	l, err := subject.Find("redisson@4.7.0")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[Profile]map[scenarios.StepKind]int{Orderly: {}, Full: {}}
	for profile, met := range kinds {
		for seed := range uint64(200) {
			for _, s := range New(sim.NewSeeded(seed), l, profile, nil).All() {
				met[s.Kind]++
			}
		}
	}
	for _, kind := range []scenarios.StepKind{scenarios.StepForceUnlock, scenarios.StepClose} {
		if kinds[Orderly][kind] > 0 || kinds[Full][kind] == 0 {
			t.Errorf("%v: %d steps of orderly callers, %d of full ones", kind, kinds[Orderly][kind], kinds[Full][kind])
		}
	}
	if kinds[Orderly][scenarios.StepUnlock] == 0 {
		t.Error("orderly callers unlock nothing")
	}
}
