package sentence_test

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report/sentence"
)

// Each kind of finding has a sentence, which does not name the type of its values.
func TestEachDetailHasASentence(t *testing.T) {
	seen := map[string]string{}
	for _, d := range judges.Details {
		switch d.(type) {
		case judges.Unplaceable, judges.Unmet, judges.Defect: // its sentence consists of its values
			continue
		}
		got := sentence.Finding(judges.Finding{Facts: model.Facts{Lock: "orders", Thread: "a/1"}, Detail: d})
		name := fmt.Sprintf("%T", d)
		if len(strings.Fields(got)) < 4 || strings.Contains(got, "%!") || strings.Contains(got, "judges.") {
			t.Errorf("%s: %q", name, got)
		}
		if other := seen[got]; other != "" {
			t.Errorf("%s and %s have one sentence: %q", other, name, got)
		}
		seen[got] = name
	}
}

func TestADetailWithoutASentencePanics(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "struct {}") {
			t.Errorf("got %s, want the type of the detail", got)
		}
	}()
	_ = sentence.Finding(judges.Finding{Detail: struct{}{}})
}

// A doubt comes before the finding, and the result of a replay after it.
func TestWhatReplaysAndDoubtsAdd(t *testing.T) {
	f := judges.Finding{Convicted: true, Doubt: judges.Doubt{Uncertainty: 1_000_001}, Detail: judges.Defect{Text: "it broke"}, Excuses: []model.Excuse{
		{Fault: 2, Cause: model.Cause{Kind: model.CauseFaultAt, Fault: "pause of a", AtNs: 3e9}},
		{Cause: model.Cause{Kind: model.CauseOverstayed, Thread: "a/1", Lease: 1e9}}, // no replay can leave this cause out
		{Clocks: true, Cause: model.Cause{Kind: model.CauseClocks}},
		{Fault: 2, Cause: model.Cause{Kind: model.CauseFaultAt, Fault: "pause of a", AtNs: 3e9}},
	}}
	if got, want := sentence.Finding(f), "within the uncertainty of 2ms: it broke; it happens without pause of a at 3.000s and wall clocks that differ, too"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Convicted, f.Doubt = false, judges.Doubt{StoodStill: 300_400_000}
	if got, want := sentence.Finding(f), "the machine stood still for 300ms: it broke"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A run that was ended says for what it waited, if it did.
func TestARunThatWasEnded(t *testing.T) {
	f := judges.Finding{AtNs: 3e9, Detail: judges.Unended{Events: 500}}
	for want, change := range map[string]func(){
		"the run was ended at 3.000s, after 500 events, and the scenario was not over": func() {},
		"the run was ended at 3.000s, after 500 events, and the scenario was not over; b/1 had waited for orders since 1.000s": func() {
			f.Facts, f.Detail = model.Facts{Thread: "b/1", Lock: "orders"}, judges.Unended{Events: 500, FromNs: 1e9}
		},
		"the run was ended at 3.000s, after 500 events, and the scenario was not over; b/1 had waited since 1.000s for orders, which a/1 held with a lease until 90.000s": func() {
			f.Facts, f.Detail = model.Facts{Thread: "b/1", Lock: "orders"}, judges.Unended{Events: 500, FromNs: 1e9, Owner: "a/1", UntilNs: 90e9}
		},
		"the run was ended at 6307200000.000s, after 200 years, and the scenario was not over": func() { f.AtNs = 6307200000e9 },
	} {
		f.AtNs, f.Facts, f.Detail = 3e9, model.Facts{}, judges.Unended{Events: 500}
		if change(); sentence.Finding(f) != want {
			t.Errorf("got %q, want %q", sentence.Finding(f), want)
		}
	}
}

// Each kind has a sentence, and the sentence names the thread and the lock.
func TestEachPartingHasASentence(t *testing.T) {
	for _, kind := range []judges.PartingKind{judges.PartedLate, judges.PartedUnheard, judges.PartedExpired, judges.PartedByFault, judges.PartedBySelf, judges.PartedByClient,
		judges.PartedByUnlock, judges.PartedByExtend, judges.PartedByAnother, judges.PartedUnreleased, judges.PartedTold, judges.PartedByLoss} {
		got := sentence.Parting(judges.Parting{Kind: kind, AtNs: 2e9, Thread: "a/1", Lock: "orders"})
		if strings.Contains(got, "%!") || !strings.HasPrefix(got, "2.000s: ") || !strings.Contains(got, "a/1") || !strings.Contains(got, "orders") {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// An overlap says whose hold the server did not have, and nothing of it if its end is known.
func TestAnOverlapSaysWhoseHoldIsMissing(t *testing.T) {
	for _, c := range []struct {
		loser  string
		ending judges.Ending
		want   string
	}{
		{"a/1", judges.Ending{}, ": the server never knew of the hold of a/1"},
		{"b/1", judges.Ending{}, ": the server never knew of the hold of b/1"},
		{"a/1", judges.Ending{Cause: model.LossExpired, AtNs: 2e9}, ": its lease had ended at 2.000s"},
		{"a/1", judges.Ending{Cause: model.LossExpired, AtNs: 2e9, Unleased: true}, ": its session had ended at 2.000s"},
		{"b/1", judges.Ending{Cause: model.LossExpired, AtNs: 2e9}, "; the hold of b/1 was over by then: its lease had ended at 2.000s"},
	} {
		got := sentence.Finding(judges.Finding{Facts: model.Facts{Lock: "orders", Thread: c.loser}, AtNs: 3e9,
			Detail: judges.Overlap{Earlier: "a/1", EarlierNs: 1e9, Later: "b/1", Answer: model.Granted, Ending: c.ending}})
		if want := "b/1 was granted orders at 3.000s while a/1 believed to hold it since 1.000s" + c.want; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A lease of which no answer told has no end to name.
func TestATellingNamesTheLeaseThatIsKnown(t *testing.T) {
	for ended, want := range map[int64]string{
		30e9: "a/1 believed to hold l until 40.000s; the hold had ended at 30.002s, and the lease that a/1 knew of, counted from the request that it sent at 0.000s, at 30.000s",
		-1:   "a/1 believed to hold l until 40.000s; the hold had ended at 30.002s",
	} {
		f := judges.Finding{Facts: model.Facts{Lock: "l", Thread: "a/1"}, Detail: judges.ToldLate{BelievedNs: 40e9, LeaseNs: ended, EndedNs: 30.002e9}}
		if got := sentence.Finding(f); got != want {
			t.Errorf("%s\n\twant\n%s", got, want)
		}
	}
}

// A command without a role has its word in its place. If its threads are unknown, its role is a guess, and the command
// has its word and its process.
func TestASentenceNamesACommand(t *testing.T) {
	for _, c := range []struct {
		by               judges.Sender
		ended, misdelete string
	}{
		{judges.Sender{Role: model.RoleUnlock, Command: "DEL", Process: "b", Threads: []string{"b/1", "b/2"}}, "unlock of b/1, b/2 had", "unlock of b/1, b/2 (DEL, sent at 2.000s) ended"},
		{judges.Sender{Command: "DEL", Process: "b", Threads: []string{"b/1"}}, "DEL of b/1 had", "DEL of b/1 (DEL, sent at 2.000s) ended"},
		{judges.Sender{Role: model.RoleAcquire, Command: "DEL", Process: "b"}, "DEL of b had", "DEL of b (sent at 2.000s) ended"},
		{judges.Sender{Command: "DEL", Process: "b"}, "DEL of b had", "DEL of b (sent at 2.000s) ended"},
		{judges.Sender{Role: model.RoleUnlock, Command: "SEGMENT", Says: "DeleteRange orders", Process: "b", Threads: []string{"b/1"}}, "unlock of b/1 had", "unlock of b/1 (DeleteRange orders, sent at 2.000s) ended"},
		{judges.Sender{Command: "SEGMENT", Says: "DeleteRange orders", Process: "b"}, "DeleteRange orders of b had", "DeleteRange orders of b (sent at 2.000s) ended"},
	} {
		facts := model.Facts{Lock: "orders", Thread: "a/1"}
		overlap := judges.Overlap{Earlier: "a/1", Later: "b/1", Answer: model.Granted, Ending: judges.Ending{Cause: model.LossEnded, AtNs: 1e9, By: c.by}}
		if got, want := sentence.Finding(judges.Finding{Facts: facts, Detail: overlap}), "since 0.000s: "+c.ended+" ended it at 1.000s"; !strings.HasSuffix(got, want) {
			t.Errorf("%+v: got %q, want %q at its end", c.by, got, want)
		}
		did := judges.Misdelete{By: c.by, SentNs: 2e9, Change: judges.HoldEnded, Owner: "a/1"}
		if got, want := sentence.Finding(judges.Finding{Facts: facts, AtNs: 3e9, Detail: did}), c.misdelete+" the hold of a/1 on orders at 3.000s"; got != want {
			t.Errorf("%+v: got %q, want %q", c.by, got, want)
		}
	}
}

// Lengths of time have milliseconds, as instants have. Short ones have microseconds.
func TestLengthsOfTimeAreRounded(t *testing.T) {
	for bound, want := range map[int64]string{9_000_993_986: "9.001s", 9_000_400_000: "9s", 31_098_000_000: "31.098s", 99_999_400: "99.999ms", 2_000_400: "2ms"} {
		got := sentence.Finding(judges.Finding{Facts: model.Facts{Lock: "orders", Thread: "a/1"}, Detail: judges.Forgotten{Bound: judges.Bound{Ns: bound}}})
		if !strings.HasSuffix(got, "; the bound is "+want) {
			t.Errorf("a bound of %d ns: got %q, want %s", bound, got, want)
		}
	}
}
