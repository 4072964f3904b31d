package strangers

import (
	"strings"
	"testing"

	"lockstep/sim"
)

var plain = Plumbing{Value: Fresh, Renewal: Goroutine, Stop: Waits, Release: Script, Wake: Poll, Retry: Once, Taking: Direct, Levels: Flat, Servers: 1}

// A mutant counts once something breaks it that does not break the right lock, and says what.
func TestWhatBreaksAMutant(t *testing.T) {
	h := sim.NewHost(t)
	shared := plain
	shared.Value, shared.Renewal, shared.Stop = Process, Never, ""
	for _, c := range []struct {
		Plumbing
		Mutation
		want string
	}{
		{plain, ConstantValue, "the story "},
		{plain, RenewsInTwo, "the story other-holder-before-request-2-of-a-renewal"},
		{shared, TurnKept, "witness/turn-kept.yaml"},
	} {
		right, err := register(h, c.Subject(Unchanged))
		if err != nil {
			t.Fatal(err)
		}
		lock, err := register(h, c.Subject(c.Mutation))
		if err != nil {
			t.Fatal(err)
		}
		x := mutant{Mutation: c.Mutation}
		find := func(a Accusation) bool {
			alone, err := a.alone(h, right)
			if err != nil {
				t.Error(err)
			}
			if alone {
				x.Witness = a.Where
			}
			return !alone
		}
		if tellStories(h, lock, find); x.Witness == "" {
			err = x.seekWitness(h, lock, find)
		}
		if err != nil || !strings.HasPrefix(x.Witness, c.want) {
			t.Errorf("%s: %q breaks it, %v; want %s", c.Mutation, x.Witness, err, c.want)
		}
	}
}

// What a measurement kept is read by one of the same options, and the page counts it.
func TestTheTableCountsWhatWasKept(t *testing.T) {
	o := Options{Size: 1, Runs: 10, Explore: 20, Dir: t.TempDir()}
	for _, p := range Right(o.Size) {
		r := result{Versions: versions(), Explore: o.Explore, Plumbing: p, Runs: 30}
		if p.Wake == Head {
			r.Accused = []Accusation{{Lock: p.String(), Where: "the story late-unlock", Judge: "fifo", Why: "it came late"}}
			r.Mutants = []mutant{
				{"found", AlwaysReleased, "the story late-unlock", true, true},
				{"late", LeaverStays, "run 300", false, true},
				{"missed", ForgottenAfterError, "witness/x.yaml", false, false},
				{"unbroken", NotHeldAfterRetry, "", false, false},
			}
		}
		if err := o.write(r); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	whole, err := Table(&b, nil, o) // nothing is left to measure
	if err != nil || !whole {
		t.Fatalf("%v, %v", whole, err)
	}
	for _, want := range []string{
		"| wake-up head | 1 | 30 | 1 | 3 | 1 (33 %) | 2 (66 %) |", "| leaver-stays | tidy | 1 | 1 | 0 | 1 |", "| not-held-after-retry | linearizable | 1 | 0 | 0 | 0 |",
		"* `late`: not by default; run 300 breaks it\n", "* `missed`: only witness/x.yaml breaks it\n", "the story late-unlock, `fifo`: it came late\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, b.String())
		}
	}
	o.Explore++
	if _, ok, err := o.read(plain); ok || err != nil {
		t.Errorf("a result of other options counts: %v", err)
	}
	for i, p := range Right(o.Size) {
		if _, ok, err := o.read(p); ok || err != nil {
			t.Errorf("result %d of other options counts: %v", i, err)
		}
	}
}
