package play

import (
	"slices"
	"strings"
	"testing"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A run that differed once and never again is explained, too: one of the two records that differ is at
// hand.
func TestADifferenceThatDoesNotComeAgainIsExplained(t *testing.T) {
	sc, err := scenarios.Find("pause-past-lease")
	if err != nil {
		t.Fatal(err)
	}
	once, ever := scenariotest.Lock(t, "setnx-del"), scenariotest.Lock(t, "setnx-cad")
	h, opened, odd := sim.NewHost(t), 0, 0
	l := *ever
	l.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
		opened++
		if (opened-1)/len(sc.Processes)+1 == odd {
			return once.Open(p, o)
		}
		return ever.Open(p, o)
	}
	Run(h, sc, &l, 1)
	for name, play := range map[string]int{"the first play differs": 1, "the second differs": opened/len(sc.Processes) + 1, "none differs": 0} {
		t.Run(name, func(t *testing.T) {
			opened, odd = 0, play
			v := RunTwice(h.For(t), sc, &l, 1)
			if differs := v.Word == VerdictNondeterministic; differs != (play > 0) {
				t.Fatalf("the verdict is %s", v.Word)
			}
			for _, want := range []string{"; the records differ from event ", "\nwritten by "} {
				if strings.Contains(v.Why, want) != (play > 0) {
					t.Errorf("the verdict says %q, want %q: %t", v.Why, want, play > 0)
				}
			}
		})
	}
}

// A pause of random length comes first among the causes if the two records have the same event at two
// instants.
func TestAnEventThatMovedSuggestsAPause(t *testing.T) {
	record := func(events ...model.Event) sim.Result {
		rec := &model.Record{}
		for _, e := range events {
			rec.Add(e)
		}
		return sim.Result{Record: rec}
	}
	send := func(ns int64, command string) model.Event {
		return model.Event{Kind: model.KindSend, AtNs: ns, Process: "a", Thread: 1, Command: command}
	}
	const pause = "a pause of random length, since the two events differ only in their instant"
	for rule, c := range map[string]struct {
		then sim.Result
		want bool
	}{
		"another instant":                 {record(send(1, "GET"), send(3, "SET")), true},
		"another command":                 {record(send(1, "GET"), send(2, "DEL")), false},
		"another instant and command":     {record(send(1, "GET"), send(3, "DEL")), false},
		"the record has ended":            {record(send(1, "GET")), false},
		"one instant is that of the next": {record(send(1, "GET"), send(1, "SET"), send(2, "SET")), true},
	} {
		d, differ := differenceOf(record(send(1, "GET"), send(2, "SET")), c.then)
		if !differ || strings.HasPrefix(d.causes(false)[0], pause) != c.want || !sim.Overlaid && !strings.Contains(d.String(), "\n  "+d.causes(false)[0]+"\n") {
			t.Errorf("%s: differ %t, want the pause: %t\n%s", rule, differ, c.want, d)
		}
	}
}

// A cause that the overlay cures names it, and with the overlay it is none.
func TestTheCausesNameTheOverlayThatCuresThem(t *testing.T) {
	d := difference{moved: true}
	var cures []string
	for _, cause := range d.causes(false) {
		if strings.Contains(cause, "run the test with simrun test") {
			cures = append(cures, cause)
		}
	}
	if len(cures) != 4 {
		t.Errorf("%d causes name the overlay: %q", len(cures), cures)
	}
	for _, cause := range d.causes(true) {
		if strings.Contains(cause, "simrun test") || slices.Contains(cures, cause) {
			t.Errorf("with the overlay there still is %q", cause)
		}
	}
}
