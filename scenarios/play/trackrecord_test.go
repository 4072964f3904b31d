package play

import (
	"slices"
	"testing"
	"time"

	"lockstep/scenarios/scenariotest"

	"lockstep/linearizability/judges"
	"lockstep/lockimpl/redisson"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// rowJudge is the judge that a scenario of the track record is about.
func rowJudge(sc *scenarios.Scenario) string {
	for _, name := range sc.Locks {
		if e := sc.Expect[name]; len(e.Judges) > 0 {
			return e.Judges[0]
		}
	}
	return ""
}

// For every bug there is a lock on which the same steps hold, or a note that there is
// none. No reference lock has a bug.
func TestTheTrackRecordIsWhole(t *testing.T) {
	rows, err := scenarios.Tagged("track-record")
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range rows {
		if rowJudge(sc) == "" {
			t.Errorf("%s names no judge: give a lock that has the bug {bug: [JUDGE]} under expect", sc.Name)
		}
		shows, holds, control := false, false, false
		for _, name := range sc.Locks {
			e := sc.Expect[name]
			if scenariotest.Lock(t, name).Control {
				control = true
				if e.Class == scenarios.Bug || e.Class == scenarios.Limit {
					t.Errorf("%s breaks on %s", sc.Name, name)
				}
				continue
			}
			shows = shows || e.Class == scenarios.Bug || e.Class == scenarios.Limit
			holds = holds || e.Class != scenarios.Bug && e.Class != scenarios.Limit
		}
		if !shows {
			t.Errorf("%s shows its bug on no lock: a row needs one with {bug: [JUDGE]} or {limit: [JUDGE]} under expect", sc.Name)
		}
		switch alone := sc.Name == "fair-waiter-without-score"; {
		case alone && holds:
			t.Errorf("%s holds on a lock now: it is no longer one of those that hold on none", sc.Name)
		case !alone && !holds:
			t.Errorf("%s holds on no lock, so that nothing tells its bug from a mistake in its steps: name one on which it holds", sc.Name)
		}
		switch inapplicable := sc.Name == "fair-third-waiter-shares-deadline"; {
		case inapplicable && control:
			t.Errorf("%s is played on a reference lock now: it is no longer one that is not", sc.Name)
		case !inapplicable && !control:
			t.Errorf("%s is not played on a reference lock: add reference (or reference-fair) to its locks", sc.Name)
		}
	}
}

// Undoing the one change that repaired a bug changes the row of that bug, and no other.
func TestUndoingARepairTurnsItsRow(t *testing.T) {
	release := func(version string) *redisson.Release {
		r, err := redisson.Find(version)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rows, err := scenarios.Tagged("track-record")
	if err != nil {
		t.Fatal(err)
	}
	h := sim.NewHost(t)
	broken := func(l *subject.Subject) map[string]bool {
		cells := map[string]bool{}
		for _, sc := range rows {
			if scenariotest.Lock(t, sc.Locks[0]).Fair != l.Fair {
				continue
			}
			v := Run(h, sc, l, sc.SeedFirst)
			judge := rowJudge(sc)
			cells[sc.Name] = slices.ContainsFunc(v.Findings, func(f judges.Finding) bool { return f.Judge == judge })
		}
		return cells
	}
	as := map[string]map[string]bool{} // of each unchanged release
	for _, c := range []struct {
		lock, row string
		undo      func(*redisson.Release)
	}{
		{"redisson@3.11.0", "unlock-of-a-free-lock", func(r *redisson.Release) { r.Unlock = release("3.4.2").Unlock }},
		{"redisson@3.4.2", "unlock-reply-lost", func(r *redisson.Release) { r.Resend = []redisson.ScriptKind{redisson.KindUnlock} }},
		{"redisson@4.7.0", "acquire-reply-lost", func(r *redisson.Release) { r.Resend = append(slices.Clip(r.Resend), redisson.KindAcquire) }},
		{"redisson@3.11.0", "failed-unlock-renewed-forever", func(r *redisson.Release) { r.StopsRenewal = r.StopsRenewal[:2] }},
		{"redisson@3.21.3", "key-removed-then-never-renewed", func(r *redisson.Release) { r.Watchdog = redisson.WatchdogEntry }},
		{"redisson@3.11.0", "interrupted-lock-returns-unlocked", func(r *redisson.Release) { r.LockReturnsInterrupted = true }},
		{"redisson@3.4.2", "interrupted-trylock-renewed-forever", func(r *redisson.Release) { r.PatientReply = false }},
		{"redisson@3.43.0", "partial-unlock-stretches-the-lease", func(r *redisson.Release) { r.LeaseField = redisson.FieldUntilUnlock }},
		{"redisson-fair@3.11.0", "fair-deadline-drift", func(r *redisson.Release) { r.FairLeave = release("3.4.2").FairLeave }},
		{"redisson-fair@3.12.4", "fair-third-waiter-shares-deadline", func(r *redisson.Release) { r.FairAcquire = release("3.11.0").FairAcquire }},
		{"redisson@4.7.0", "one-failed-renewal-ends-it", func(r *redisson.Release) {
			r.Watchdog, r.Renew = redisson.WatchdogEntryDropped, release("3.43.0").Renew
		}},
		{"redisson-fair@3.43.0", "fair-head-sleeps-past-expiry", func(r *redisson.Release) { r.FairAcquire = release("3.21.3").FairAcquire }},
		{"redisson-fair@4.7.0", "fair-ghost-after-reply-timeout", func(r *redisson.Release) { r.FalseOnTimeout = false }},
	} {
		t.Run(c.row, func(t *testing.T) {
			l := scenariotest.Lock(t, c.lock)
			if as[c.lock] == nil {
				as[c.lock] = broken(l)
			}
			for row, was := range as[c.lock] {
				if row == c.row && was {
					t.Errorf("%s has the bug as it is", c.lock)
				}
			}
			undone, err := builtin.WithRelease(c.lock, c.undo)
			if err != nil {
				t.Fatal(err)
			}
			for row, is := range broken(undone) {
				want := as[c.lock][row] || row == c.row
				if c.row == "fair-third-waiter-shares-deadline" && row == "fair-dead-waiters-add-up" {
					want = false // deadlines that are shared do not add up: one repair made the other's limit
				}
				if is != want {
					t.Errorf("%s without the repair of %s: %s is broken: %v; want %v (a repair undone turns its own row and no other: is it the same bug?)",
						c.lock, c.row, row, is, want)
				}
			}
		})
	}
}

// The story of the drift is the same whether a release passes or not. Two waiters die,
// one behind the other, and the third waits for both.
func TestTheDriftIsTold(t *testing.T) {
	h := sim.NewHost(t)
	sc, err := scenarios.Find("fair-deadline-drift")
	if err != nil {
		t.Fatal(err)
	}
	for lock, until := range map[string]time.Duration{
		"redisson-fair@3.4.2": 184 * time.Second, "redisson-fair@3.12.4": 24 * time.Second, "redisson-fair@4.7.0": 15 * time.Second,
	} {
		t.Run(lock, func(t *testing.T) {
			l, err := subject.Find(lock)
			if err != nil {
				t.Fatal(err)
			}
			const seed = 3
			var waiting []string
			var got time.Duration
			for _, e := range Play(h.For(t), sc, l, sim.NewSeeded(seed)).Record.Events {
				switch {
				case e.Kind == model.KindState && e.AtNs < int64(12*time.Second):
					waiting = e.State.Queue
				case e.Kind == model.KindReturn && e.Process == "d" && e.Outcome == model.Granted:
					got = time.Duration(e.AtNs)
				}
			}
			if want := []string{"b/1", "c/1"}; !slices.Equal(waiting, want) {
				t.Errorf("at its crash the queue had %v, want %v", waiting, want)
			}
			if got.Round(time.Second) != until {
				t.Errorf("d got the lock at %v, want %v", got, until)
			}
		})
	}
}
