package draw_test

import (
	"reflect"
	"slices"
	"testing"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	"lockstep/sim"
)

// A fault that is aimed at a moment of a run strikes there, and changes nothing before.
func TestAimedFaultsMeetTheirMoment(t *testing.T) {
	h := sim.NewHost(t)
	for _, name := range []string{"redisson@4.7.0", "redisson-fair@4.7.0", "setnx-cad"} {
		l := scenariotest.Lock(t, name)
		tried, met := 0, 0
		kinds := map[coverage.Kind]bool{}
		for seed := range uint64(longtest.Size(t, 3, 12)) {
			base := draw.New(sim.NewSeeded(seed), l, draw.Full, nil)
			run := play.Play(h, base.Scenario, l, sim.NewSeeded(seed))
			if run.Steps > 3000 {
				continue
			}
			openings := coverage.Openings(trace.New(run.Record))
			c := sim.NewSeeded(seed)
			for range 10 {
				if len(openings) == 0 {
					break
				}
				o := openings[c.Choose("test/opening", uint64(len(openings)))]
				some := draw.Kinds(l, draw.Classes, o.Moment)
				k := some[c.Choose("test/kind", uint64(len(some)))]
				if !draw.CanAim(o, k) {
					continue
				}
				aimed, ok := draw.Aim(c, base, l, draw.Full, draw.Classes, o, k)
				if !ok {
					t.Fatalf("seed %d: no scenario has %s at %+v", seed, k, o)
				}
				sc := aimed.Scenario
				if n := len(sc.Faults); n > 1 || n == 0 && k != coverage.Interrupt {
					t.Fatalf("%d faults", n)
				}
				then := play.Play(h, sc, l, sim.NewSeeded(seed))
				before, after := run.Record.Events, then.Record.Events
				for i := range before {
					if before[i].AtNs >= o.FromNs-10 {
						break
					}
					// Each timer of a world has a nanosecond of its own in its slot, and the fault has one.
					slot := int64(sim.Resolution)
					if i >= len(after) || before[i].AtNs/slot != after[i].AtNs/slot || before[i].Kind != after[i].Kind || before[i].Msg != after[i].Msg {
						t.Fatalf("seed %d, %s at %+v: event %d differs before the fault:\n%+v\n%+v\n%s", seed, k, o, i, before[i], after[i], aimed.Write())
					}
				}
				tried++
				kinds[k] = true
				want := o.Cell
				want.Fault = k
				if r := trace.New(then.Record); slices.Contains(coverage.Cells(r, coverage.Openings(r)), want.Code()) {
					met++
				}
			}
		}
		t.Logf("%s: %d of %d aimed faults of %d kinds met their moment", name, met, tried, len(kinds))
		if tried < longtest.Size(t, 20, 80) || met*10 < tried*8 || len(kinds) < longtest.Size(t, 6, 8) {
			t.Errorf("%s: %d of %d aimed faults of %d kinds met their moment", name, met, tried, len(kinds))
		}
	}
}

func TestKindsOfAMoment(t *testing.T) {
	l := scenariotest.Lock(t, "setnx-cad")
	network := []draw.Class{draw.ClassNetwork}
	if got := draw.Kinds(l, network, coverage.Waiting); len(got) > 0 {
		t.Errorf("%v while waiting, when no message is on its way", got)
	}
	if got := draw.Kinds(l, network, coverage.FromServer); !slices.Contains(got, coverage.Drop) || slices.Contains(got, coverage.Error) || slices.Contains(got, coverage.Crash) {
		t.Errorf("%v between effect and reply", got)
	}
	if got := draw.Kinds(l, []draw.Class{draw.ClassWatchdog}, coverage.ToServer); len(got) > 0 {
		t.Errorf("%v on a request, of the class watchdog", got)
	}
}

// A rule that holds the request after a gap, and those behind it, waits for the wanted action of others. Other rules
// strike that request alone.
func TestAHoldWaitsForTheActionOfOthers(t *testing.T) {
	l := scenariotest.Lock(t, "setnx-cad")
	network := []draw.Class{draw.ClassNetwork}
	for _, c := range []struct {
		state coverage.State
		rival string
		kind  coverage.Kind
		want  *model.Condition
	}{
		{coverage.AnotherCame, "b/1", coverage.Hold, &model.Condition{Granted: "b/1"}},
		{coverage.AnotherWent, "b/1", coverage.Hold, &model.Condition{Granted: "b/1", Ended: "x"}},
		{coverage.LeaseEnded, "", coverage.Hold, &model.Condition{Ended: "x"}},
		{coverage.AnotherCame, "", coverage.Hold, nil},
		{coverage.Nothing, "b/1", coverage.Hold, nil},
		{coverage.AnotherCame, "b/1", coverage.Delay, nil},
	} {
		o := coverage.Opening{
			Cell:    coverage.Cell{Op: coverage.Renewal, Moment: coverage.AfterFirst, State: c.state},
			Process: "a", Lock: "x", Rival: c.rival, FromNs: 1e9, ToNs: 2e9, Role: model.RoleRenew, Command: "PEXPIRE", Nth: 4,
		}
		aimed, ok := draw.Aim(sim.NewSeeded(1), draw.New(sim.NewSeeded(1), l, draw.Simple, nil), l, draw.Simple, network, o, c.kind)
		if !ok || len(aimed.Faults) != 1 {
			t.Fatalf("%+v: %v, %d faults", c, ok, len(aimed.Faults))
		}
		f := aimed.Faults[0]
		when := model.When{Process: "a", Direction: "request", Script: model.RoleRenew, Nth: 4}
		if c.want != nil {
			when.Nth, when.After = 0, 3
		}
		if !reflect.DeepEqual(f.Awaits, c.want) || f.When != when || (f.For > 0) != (c.kind == coverage.Delay) {
			t.Errorf("%+v: the fault is %s", c, f.FaultSpec)
		}
	}
	renewal := coverage.Opening{Cell: coverage.Cell{Op: coverage.Renewal, Moment: coverage.AfterFirst}, FromNs: 1e9, ToNs: 2e9}
	call := renewal
	call.Op, call.Thread = model.ActUnlock, "a/1"
	if draw.CanAim(renewal, coverage.Interrupt) || !draw.CanAim(call, coverage.Interrupt) || !draw.CanAim(renewal, coverage.Pause) || draw.CanAim(renewal, coverage.Hold) {
		t.Error("an interrupt is aimed at a renewal, or not at a call; or a pause is not, or a rule at no message")
	}
	if got := draw.Kinds(l, network, coverage.AfterFirst); !slices.Contains(got, coverage.Hold) || !slices.Contains(got, coverage.Error) || slices.Contains(got, coverage.Pause) {
		t.Errorf("%v between two requests", got)
	}
}

// An error is aimed at a command that a server can refuse, and a loss at any.
func TestNoErrorIsAimedAtWhatIsNeverRefused(t *testing.T) {
	l := scenariotest.Lock(t, "setnx-cad")
	network := []draw.Class{draw.ClassNetwork}
	for _, c := range []struct {
		command string
		kind    coverage.Kind
		want    bool
	}{
		{"MULTI", coverage.Error, false}, {"MULTI", coverage.Drop, true}, {"EXEC", coverage.Error, true},
	} {
		o := coverage.Opening{
			Cell:    coverage.Cell{Op: model.ActUnlock, Moment: coverage.ToServer},
			Process: "a", Lock: "x", FromNs: 1e9, ToNs: 2e9, Command: c.command, Nth: 1,
		}
		_, ok := draw.Aim(sim.NewSeeded(1), draw.New(sim.NewSeeded(1), l, draw.Simple, nil), l, draw.Simple, network, o, c.kind)
		if ok != c.want {
			t.Errorf("%s at %s is aimed: %v", c.kind, c.command, ok)
		}
	}
}
