package explore

import (
	"strings"
	"testing"

	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func TestARepetitionPlaysScenariosAndDrawnRuns(t *testing.T) {
	l, err := subject.Find("setnx-cad")
	if err != nil {
		t.Fatal(err)
	}
	h, plan := sim.NewHost(t), Repetition{Lock: l.Name, SeedFirst: 3, SeedLast: 4, Drawn: 3}
	once, err := plan.Play(h, l)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.Play(h, l)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compare(l.Name, once, again)
	if err != nil || r.Drawn != [2]int{3, 0} || r.Stories[0] < 4 || r.Stories[0]%2 != 0 || r.Stories[1] != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRunsThatDiffer(t *testing.T) {
	once := []Repeatable{{Scenario: "late", Seed: 1, Digest: "a"}, {Scenario: "late", Seed: 2, Digest: "b"}, {Seed: 7, Index: 0, Digest: "c"}, {Seed: 8, Index: 1, Digest: "d"}}
	again := append([]Repeatable(nil), once...)
	again[1].Digest, again[3].Digest = "x", "y"
	r, err := Compare("mine", once, again)
	if err != nil || r.Stories != [2]int{2, 1} || r.Drawn != [2]int{2, 1} {
		t.Fatalf("%+v, %v", r, err)
	}
	r.Why = []string{"", "the records differ from event 3 on"}
	var b strings.Builder
	if err := WriteRepeatability(&b, "simrun repeat", "Played twice.", []Repeated{r}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `mine` | 2 | 1 | 2 | 1 |\n| all | 2 | 1 | 2 | 1 |", "late, seed 2: b and x. The same process", "drawn run 1: d and y. Its seed is 8.", "the records differ from event 3 on\n```",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if _, err := Compare("mine", once, again[1:]); err == nil {
		t.Error("plays of different numbers of runs are compared")
	}
	again[0].Seed = 5
	if _, err := Compare("mine", once, again); err == nil {
		t.Error("plays of different runs are compared")
	}
}

func TestOnlySomeReasonsAreWritten(t *testing.T) {
	r := Repeated{Lock: "mine", Drawn: [2]int{10, whysShown + 2}}
	for i := range whysShown + 2 {
		r.Differing = append(r.Differing, Repeatable{Seed: uint64(i), Index: i, Digest: "a"})
		r.Digests, r.Why = append(r.Digests, "b"), append(r.Why, "the records differ")
	}
	for _, c := range []struct{ differ, whys, leftOut int }{{whysShown + 2, whysShown, 1}, {whysShown, whysShown, 0}, {2, 2, 0}} {
		one := r
		one.Differing = r.Differing[:c.differ]
		var b strings.Builder
		if err := WriteRepeatability(&b, "simrun repeat", "Played twice.", []Repeated{one}); err != nil {
			t.Fatal(err)
		}
		if runs, whys, leftOut := strings.Count(b.String(), "\ndrawn run "), strings.Count(b.String(), "the records differ\n"), strings.Count(b.String(), "is left out"); runs != c.differ || whys != c.whys || leftOut != c.leftOut {
			t.Errorf("%d runs, %d reasons, left out is said %d times; want %+v in\n%s", runs, whys, leftOut, c, &b)
		}
	}
}
