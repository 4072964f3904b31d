package shrink

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// bloated lists failures of known kinds in scenarios with many parts that have nothing to do with
// them.
var bloated = []struct {
	name, lock, judge string
	class             judges.Class
	seed              uint64
	group             string
	text              string
}{
	{"an unlock deletes another's hold after a pause", "setnx-del", "misdelete", judges.ClassBug, 3, "misdelete.bug.unlock.pause", `lockstep: 1
name: late
about: A thread is paused past its lease and unlocks.
locks: [setnx-del, setnx-cad]
network: {latency: 200us..7ms}
resources: {stock: {start: 100}, other: {start: 7}}
processes: {a: {threads: 3}, b: {threads: 2, wall_clock: {offset: 20ms}}, c: {}, d: {threads: 4, client: {pool_size: 5}}}
steps:
  a/1:
    - sleep: 130ms
    - repeat:
        times: 3
        steps:
          - with_lock: {name: orders, lease: 3750ms, unlock: always, steps: [{use: {resource: stock, take: 2, for: 1s}}, {sleep: 20ms}]}
          - sleep: 77ms
    - try_lock: {name: other, lease: 3s}
  a/2: [{lock: spare}, {sleep: 1s}, {unlock: spare}, {read: {name: spare, locked: false}}]
  a/3: [{at: 3s}, {try_lock: {name: orders, wait: 4s, lease: 2s}}, {unlock: orders}]
  b/*:
    - at: 1s
    - with_lock: {name: orders, lease: 10s, steps: [{use: {resource: stock, take: 1, for: 4s}}]}
  c/1: [{lock: orders}, {sleep: 200ms}, {unlock: orders}, close]
  d/*: [{sleep: 400ms}, {try_lock: other}, {use: {resource: other}}, {unlock: other}]
faults:
  - {at: 500ms, pause: c, for: 100ms}
  - {at: 600ms, pause: a, for: 5300ms}
  - {when: {process: d, script: acquire, direction: reply, nth: 2}, do: delay, for: 30ms}
  - {at: 9s, partition: [b, c], for: 400ms}
  - {at: 30s, crash: d}
seeds: 1..20
`},
	{"an unlock waits for another's hold", "setnx-del", "misdelete", judges.ClassBug, 1, "misdelete.bug.unlock.late-request-of-unlock", `lockstep: 1
name: kept
locks: [setnx-del]
processes: {a: {threads: 3}, b: {threads: 3}, c: {}, d: {}}
steps:
  a/1: [{lock: spare}, {sleep: 1s}, {unlock: spare}]
  a/2: [{lock: {name: orders, lease: 3s}}, {sleep: 1s}, {unlock: orders}]
  a/3: [{at: 2s}, {try_lock: orders}]
  b/1: [{lock: other}, {unlock: other}]
  b/2: [{at: 500ms}, {lock: {name: orders, lease: 10s}}, {sleep: 2s}, {unlock: orders}]
  b/3: [{at: 20s}, {lock: spare}, {unlock: spare}]
  c/1: [{at: 100ms}, {lock: other}, {sleep: 1s}, {unlock: other}]
  d/1: [{at: 100ms}, {lock: spare}, {unlock: spare}]
faults:
  - {when: {process: a, script: unlock, direction: request}, do: hold, until: {granted: b/2, ended: orders, executed: {process: c, script: unlock}}}
  - {when: {process: c, direction: reply, after: 2}, do: delay, for: 5ms}
  - {when: {process: d, direction: request}, do: hold, until: {granted: c}}
`},
	{"one unlock takes two levels", "redisson@3.21.3", "hold-count", judges.ClassBug, 5, "hold-count.bug.unlock.lost-reply-of-unlock", `lockstep: 1
name: twice
locks: [redisson@3.21.3]
processes: {a: {threads: 2}, b: {threads: 3}, c: {threads: 2}}
steps:
  a/1:
    - repeat: {times: 2, steps: [{sleep: 120ms}, {lock: {name: orders, lease: 60s}}, {lock: {name: orders, lease: 50s}}, {sleep: 2s}, {unlock: orders}, {sleep: 3s}, {unlock: orders}]}
  a/2: [{sleep: 3s}, {with_lock: {name: spare, steps: [{sleep: 2s}]}}]
  b/*: [{at: 1s}, {try_lock: {name: orders, wait: 20s, lease: 9s}}, {sleep: 1s}, {unlock: orders}]
  c/1: [{at: 4s}, {lock: orders}, {sleep: 12s}, {unlock: orders}]
  c/2: [{lock: spare}, {sleep: 500ms}, {unlock: spare}]
faults:
  - {when: {process: c, script: renew, direction: reply, every: 3}, do: delay, for: 15ms}
  - {when: {process: a, script: unlock, direction: reply, nth: 1}, do: drop}
  - {when: {process: b, channel: "*", direction: reply, nth: 3}, do: drop}
  - {at: 40s, server: flush_scripts}
  - {at: 50s, pause: b, for: 1s}
`},
	{"one failed renewal ends the watchdog", "redisson@3.21.3", "lease", judges.ClassBug, 2, "lease.bug.acquire.refused-request-of-renew", `lockstep: 1
name: renewal
locks: [redisson@3.21.3]
watchdog: 27s
processes: {a: {threads: 2}, b: {threads: 2}, c: {client: {retry_attempts: 2}}}
steps:
  a/1: [{sleep: 1200ms}, {lock: orders}, {sleep: 70s}, {unlock: orders}, {lock: orders}, {unlock: orders}]
  a/2: [{sleep: 2s}, {lock: spare}, {sleep: 4s}, {unlock: spare}]
  b/1: [{at: 2s}, {lock: {name: orders, lease: 40s}}, {sleep: 30s}, {unlock: orders}]
  b/2: [{at: 3s}, {try_lock: {name: orders, wait: 20s}}, {unlock: orders}]
  c/1: [{at: 30s}, {try_lock: orders}, {try_lock: spare}, {unlock: spare}]
faults:
  - {when: {process: a, script: renew, direction: request, nth: 2}, do: error, with: "ERR injected"}
  - {at: 5s, pause: c, for: 2s}
  - {when: {process: b, script: acquire, direction: request, nth: 1}, do: delay, for: 40ms}
  - {at: 80s, server: stall, for: 100ms}
`},
	{"a waiter of the fair lock sleeps on an old lease", "redisson-fair@3.12.4", "liveness", judges.ClassBug, 1, "liveness.bug.acquire.no-fault", `lockstep: 1
name: sleeper
locks: [redisson-fair@3.12.4, redisson-fair@4.7.0]
processes: {a: {}, b: {threads: 2}, c: {}, d: {}}
steps:
  a/1: [{lock: {name: orders, lease: 30s}}, {at: 2200ms}, {unlock: orders}, {sleep: 40s}, {lock: orders}, {unlock: orders}]
  b/1: [{at: 500ms}, {lock: {name: orders, lease: 1100ms}}, {sleep: 60s}]
  b/2: [{at: 300ms}, {lock: {name: spare, lease: 1s}}, {unlock: spare}]
  c/1: [{at: 1s}, {lock: {name: orders, lease: 1s}}, {unlock: orders}]
  d/1: [{at: 90s}, {lock: {name: orders, lease: 5s}}, {unlock: orders}]
faults:
  - {at: 100s, pause: a, for: 3s}
  - {when: {process: d, script: unlock, direction: reply}, do: delay, for: 20ms}
`},
	{"no lock at all", "none", "mutual-exclusion", judges.ClassBug, 1, "mutual-exclusion.bug.acquire.no-fault", `lockstep: 1
name: nothing
locks: [none]
resources: {stock: {start: 40, never_below: 0, end: 28}}
processes: {a: {threads: 6}, b: {threads: 6}}
steps:
  a/*: [{with_lock: {name: orders, steps: [{use: {resource: stock, for: 2s}}]}}]
  b/*: [{sleep: 100ms}, {with_lock: {name: orders, steps: [{use: {resource: stock, for: 2s}}]}}]
faults:
  - {at: 1s, pause: a, for: 200ms}
  - {at: 20s, crash: b}
`},
	{"the holder pauses past its lease", "redisson@4.7.0", "mutual-exclusion", judges.ClassLimit, 1, "mutual-exclusion.limit.acquire.pause", `lockstep: 1
name: pause
locks: [redisson@4.7.0]
processes: {a: {threads: 2}, b: {}, c: {}}
steps:
  a/1: [{sleep: 200ms}, {lock: {name: orders, lease: 4s}}, {sleep: 2s}, {unlock: orders}]
  a/2: [{lock: spare}, {sleep: 2s}, {unlock: spare}]
  b/1: [{at: 1s}, {lock: {name: orders, lease: 9s}}, {sleep: 4s}, {unlock: orders}]
  c/1: [{at: 2s}, {lock: {name: orders, lease: 9s}}, {sleep: 4s}, {unlock: orders}]
faults:
  - {at: 900ms, pause: a, for: 20s}
  - {at: 40s, pause: b, for: 1s}
`},
	{"a limit in a run that has a bug too", "redisson@3.21.3", "mutual-exclusion", judges.ClassLimit, 1, "mutual-exclusion.limit.acquire.pause", `lockstep: 1
name: both
locks: [redisson@3.21.3]
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: {name: orders, lease: 4s}}, {sleep: 2s}, {unlock: orders}]
  b/1: [{at: 1s}, {lock: {name: orders, lease: 9s}}, {sleep: 4s}, {unlock: orders}]
  c/1: [{lock: spare}, {lock: spare}, {sleep: 2s}, {unlock: spare}, {sleep: 30s}, {unlock: spare}]
faults:
  - {at: 900ms, pause: a, for: 20s}
  - {when: {process: c, script: unlock, direction: reply, nth: 1}, do: drop}
`},
}

func fails(t *testing.T, h *sim.Host, text, lock, judge string, class judges.Class, seed uint64) failure.Failure {
	t.Helper()
	sc, err := scenarios.Parse("my.yaml", []byte(text), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	l, err := subject.Find(lock)
	if err != nil {
		t.Fatal(err)
	}
	v := play.Run(h, sc, l, seed)
	f, ok := failure.First(v, judge)
	if !ok || f.Class != class {
		t.Fatalf("%s is not broken as a %s: %+v", judge, class, v.Findings)
	}
	return failure.Failure{Verdict: v, Finding: f, Seeded: true}
}

func TestWhatIsPlantedBecomesSmall(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range bloated {
		t.Run(c.name, func(t *testing.T) {
			h := h.For(t)
			f := fails(t, h, c.text, c.lock, c.judge, c.class, c.seed)
			small, phases := Shrink(h, f, 2000, nil)
			t.Logf("%d runs, %d events, now %d\n%s", phases.Runs(), failure.Size(f.Verdict), failure.Size(small.Verdict), small.Verdict.Scenario.Text)
			if n := failure.Size(small.Verdict); n > 20 || n > failure.Size(f.Verdict) {
				t.Errorf("%d events", n)
			}
			if small.Verdict.Word != play.Word(c.class) {
				t.Errorf("a run with a %s became one with a %s", c.class, small.Verdict.Word)
			}
			if !small.Seeded || small.Finding.Judge != c.judge || small.Finding.Class != c.class {
				t.Errorf("it is %s (%s) now, seeded %v", small.Finding.Judge, small.Finding.Class, small.Seeded)
			}
			saysWhatItShows(t, h, small)
			smallest(t, h, small)

			again, _ := Shrink(h, small, 2000, nil)
			if was, is := small.Verdict.Scenario.Text, again.Verdict.Scenario.Text; was != is {
				t.Errorf("shrunk again it is\n%s", is)
			}
			// Shrinking keeps the group, since a failure of another group is another bug.
			bare, n := WithoutFaults(h, f, nil)
			smallBare, _ := WithoutFaults(h, small, nil)
			was, is := bare.Group(), smallBare.Group()
			if was.Key() != is.Key() {
				t.Errorf("group %s became %s", was, is)
			}
			if was.Key() != c.group {
				t.Errorf("group %s in %d runs, want %s", was.Key(), n, c.group)
			}
		})
	}
}

// saysWhatItShows fails the test unless the scenario's file says what it shows and every seed
// comes out as the file expects.
func saysWhatItShows(t *testing.T, h *sim.Host, f failure.Failure) {
	t.Helper()
	sc, err := scenarios.Parse("small.yaml", []byte(f.Verdict.Scenario.Text), subject.Find)
	if err != nil {
		t.Fatalf("%v\n%s", err, f.Verdict.Scenario.Text)
	}
	if sc.Expect[f.Verdict.Lock.Name].Class == "" || len(sc.Locks) != 1 || sc.About == "" {
		t.Errorf("it does not say what it shows:\n%s", sc.Text)
	}
	for seed := sc.SeedFirst; seed <= sc.SeedLast; seed++ {
		if v := play.Run(h, sc, f.Verdict.Lock, seed); !v.AsExpected {
			t.Errorf("seed %d is a %s, %s, and not %s", seed, v.Word, v.Why, v.Expected)
		}
	}
}

// smallest fails the test if the scenario still fails the same way without one of its steps,
// faults, processes or threads.
func smallest(t *testing.T, h *sim.Host, f failure.Failure) {
	t.Helper()
	whole := f.Verdict.Scenario
	for _, of := range []cuts{stepCuts, faultCuts, processCuts, threadCuts} {
		for i := range of(whole.Clone()) {
			less := whole.Clone()
			of(less)[i]()
			less.Tidy()
			if !less.Complete() || less.Write() == whole.Write() { // a process keeps at least one thread
				continue
			}
			v := play.Run(h, less, f.Verdict.Lock, f.Verdict.Seed)
			if g, ok := failure.First(v, f.Finding.Judge); ok && g.Class == f.Finding.Class {
				t.Errorf("it is broken without more:\n%s", less.Write())
			}
		}
	}
}

func TestShrinkingIsTheSameEveryTime(t *testing.T) {
	h := sim.NewHost(t)
	c := bloated[1]
	f := fails(t, h, c.text, c.lock, c.judge, c.class, c.seed)
	one, n := Shrink(h, f, 2000, nil)
	two, m := Shrink(h, f, 2000, nil)
	if one.Verdict.Scenario.Text != two.Verdict.Scenario.Text || one.Verdict.Digest() != two.Verdict.Digest() || n.Runs() != m.Runs() {
		t.Errorf("%d runs:\n%s\n%d runs:\n%s", n.Runs(), one.Verdict.Scenario.Text, m.Runs(), two.Verdict.Scenario.Text)
	}
}

func TestTheBudgetIsKept(t *testing.T) {
	h := sim.NewHost(t)
	c := bloated[0]
	f := fails(t, h, c.text, c.lock, c.judge, c.class, c.seed)
	for _, budget := range []int{-1, 0, 1, 6, 7, 8, 20, 60} {
		small, phases := Shrink(h, f, budget, nil)
		runs := phases.Runs()
		if runs > max(0, budget) {
			t.Errorf("%d runs of %d", runs, budget)
		}
		if g, ok := failure.First(small.Verdict, c.judge); !ok || g.Class != c.class {
			t.Errorf("after %d runs it is not broken", runs)
		}
		if runs > 0 {
			saysWhatItShows(t, h, small)
		} else if small.Verdict.Scenario != f.Verdict.Scenario {
			t.Error("it changed without a run")
		}
	}
}

// The failure of between needs a late reply and a still later release.
const between = `lockstep: 1
name: between
locks: [setnx-get-del]
network: {latency: 1ms..40ms}
processes: {a: {}, b: {threads: 2}, c: {}}
steps:
  a/1: [{lock: {name: orders, lease: 1s}}, {at: 993ms}, {unlock: orders}]
  b/1: [{at: 957ms}, {lock: {name: orders, lease: 10s}}, {sleep: 1s}, {unlock: orders}]
  b/2: [{lock: spare}, {unlock: spare}]
  c/1: [{at: 3s}, {lock: spare}, {unlock: spare}]
`

func TestDecisionsOfTheirOwn(t *testing.T) {
	h := sim.NewHost(t)
	const seed = 172 // the first seed that shows the failure
	f := fails(t, h, between, "setnx-get-del", "misdelete", judges.ClassBug, seed)
	f.Seeded = false

	t.Run("a seed can say it", func(t *testing.T) {
		small, _ := Shrink(h.For(t), f, 2000, nil)
		if !small.Seeded {
			t.Error("it was not found")
		}
		saysWhatItShows(t, h.For(t), small)
	})
	t.Run("none can", func(t *testing.T) {
		h := h.For(t)
		s := newShrinker(h, f, 2000)
		s.seeds = 0
		small, phases := s.shrink()
		if small.Seeded || small.Finding.Judge != "misdelete" {
			t.Fatalf("%v %s", small.Seeded, small.Finding.Judge)
		}
		rec := small.Verdict.Recording()
		var b bytes.Buffer
		if err := rec.Write(&b, nil); err != nil {
			t.Fatal(err)
		}
		rec, sc, l, err := play.ReadRecording("small.lockstep", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		v, diverged := play.Replay(h, rec, sc, l)
		if diverged != "" || v.Digest() != small.Verdict.Digest() || !v.AsExpected {
			t.Errorf("%s; %s is a %s", diverged, v.Digest(), v.Word)
		}
		drawn, before := 0, 0
		for _, values := range rec.Decisions {
			for _, n := range values {
				if n > 0 {
					drawn++
				}
			}
		}
		for _, values := range f.Verdict.Played.Decisions {
			before += len(values)
		}
		t.Logf("%v\n%s%v", phases, sc.Text, rec.Decisions)
		if drawn > 5 || before < 20 {
			t.Errorf("%d decisions of %d are left", drawn, before)
		}
		s = newShrinker(h, small, 2000)
		s.seeds = 0
		again, _ := s.shrink()
		if again.Verdict.Digest() != small.Verdict.Digest() {
			t.Errorf("shrunk again it is\n%s%v", again.Verdict.Scenario.Text, again.Verdict.Played.Decisions)
		}
	})
}

// Shrinking keeps the calls and times on which an author's expectation rests.
func TestAClaimKeepsItsCalls(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct{ name, lock, judge, text, kept, gone string }{
		{"a want", "redisson@3.12.4", "want", `lockstep: 1
name: claim
locks: [redisson@3.12.4]
processes: {a: {threads: 2}, b: {}}
steps:
  a/1:
    - lock: {name: orders, lease: 60s, want: granted}
    - lock: {name: orders, lease: 60s, want: granted}
    - unlock: {name: orders, want: still_held}
    - read: {name: orders, holds: 1}
    - sleep: 5s
  a/2: [{sleep: 1s}]
  b/1: [{lock: {name: spare, want: granted}}, {unlock: spare}]
faults:
  - {when: {process: a, script: unlock, direction: reply, nth: 1}, do: drop}
  - {at: 4s, pause: b, for: 1s}
`, "sleep: 5s", "want: granted"},
		{"the end of a resource that another process uses", "redisson@4.7.0", "workload", `lockstep: 1
name: claim
locks: [redisson@4.7.0]
resources: {stock: {start: 3, end: 0}}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: orders}, {use: {resource: stock, for: 1s}}, {unlock: orders}]
  b/1: [{lock: orders}, {use: {resource: stock, for: 1s}}, {unlock: orders}]
faults:
  - {at: 4s, pause: b, for: 1s}
`, "b/1", "pause"},
		{"the end of a resource", "redisson@4.7.0", "workload", `lockstep: 1
name: claim
locks: [redisson@4.7.0]
resources: {stock: {start: 4, end: 1}}
processes: {a: {threads: 2}, b: {}}
steps:
  a/*: [{lock: orders}, {use: {resource: stock, for: 1s}}, {unlock: orders}]
  b/1: [{sleep: 1s}]
faults:
  - {at: 4s, pause: b, for: 1s}
`, "use: {resource: stock, take: 1, for: 1s}", "pause"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := h.For(t)
			f := fails(t, h, c.text, c.lock, c.judge, judges.ClassBug, 1)
			small, _ := Shrink(h, f, 500, nil)
			if text := small.Verdict.Scenario.Text; !strings.Contains(text, c.kept) || strings.Contains(text, c.gone) {
				t.Errorf("want %q kept and %q gone:\n%s", c.kept, c.gone, text)
			}
			saysWhatItShows(t, h, small)
		})
	}
}

func TestWhatDoesNotShowItselfStays(t *testing.T) {
	h := sim.NewHost(t)
	c := bloated[0]
	f := fails(t, h, c.text, c.lock, c.judge, c.class, c.seed)
	f.Finding.Judge = "fifo"
	small, phases := Shrink(h, f, 500, nil)
	if small.Verdict.Scenario != f.Verdict.Scenario || phases.Runs() != 1 {
		t.Errorf("after %d runs it is\n%s", phases.Runs(), small.Verdict.Scenario.Text)
	}
}

// An edited scenario is one that the loader reads as it is, as long as it has steps.
func TestEditedScenariosAreWrittenAsTheyAre(t *testing.T) {
	all, err := scenarios.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range bloated {
		sc, err := scenarios.Parse("bloated.yaml", []byte(c.text), subject.Find)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, sc)
	}
	locks := subject.All()
	edits := []cuts{processCuts, threadCuts, stepCuts, claimCuts, unwrappings, faultCuts, needCuts, narrowings, (*scenarios.Scenario).Options, (*scenarios.Scenario).Wants}
	rapid.Check(t, func(t *rapid.T) {
		sc := rapid.SampledFrom(all).Draw(t, "built-in").Clone()
		if rapid.Bool().Draw(t, "drawn") {
			l := rapid.SampledFrom(locks).Draw(t, "lock")
			sc = draw.New(sim.NewSeeded(rapid.Uint64().Draw(t, "seed")), l, draw.Full, draw.Classes).Scenario
		}
		for range rapid.IntRange(1, 8).Draw(t, "edits") {
			before := sc.Clone()
			i := rapid.IntRange(0, len(edits)).Draw(t, "edit")
			if i < len(edits) {
				parts := edits[i](sc)
				if len(parts) == 0 {
					continue
				}
				// The functions of unwrappings and narrowings are called one by one.
				first := rapid.IntRange(0, len(parts)-1).Draw(t, "first")
				last := first
				if i != 4 && i != 7 {
					last = rapid.IntRange(first, len(parts)-1).Draw(t, "last")
				}
				for _, remove := range slices.Backward(parts[first : last+1]) {
					remove()
				}
			} else if parts := sc.Amounts(); len(parts) > 0 {
				a := rapid.SampledFrom(parts).Draw(t, "amount")
				below, near := amount{a.N, a.Time}.rounder()
				a.Set(rapid.SampledFrom(append(below, near...)).Draw(t, "number").n)
			}
			sc.Tidy()
			if !sc.Complete() {
				sc = before
				continue
			}
			sc.SetFile("edited.yaml")
			read, err := scenarios.Parse(sc.File, []byte(sc.Text), scenarios.AnyLock)
			if err != nil || !reflect.DeepEqual(read, sc) {
				t.Fatalf("edited:\n%+v\nread:\n%+v, %v\n%s", sc, read, err, sc.Text)
			}
		}
	})
}

func TestAmounts(t *testing.T) {
	for a, digits := range map[amount]int64{
		{0, false}: 0, {0, true}: 0, {int64(10 * time.Second), true}: 1, {int64(1500 * time.Millisecond), true}: 2, {int64(2 * time.Minute), true}: 2,
		{int64(-250 * time.Millisecond), true}: 2, {100, false}: 1, {34, false}: 2, {int64(1001 * time.Microsecond), true}: 4,
	} {
		if a.digits() != digits {
			t.Errorf("%s has %d digits, want %d", a, a.digits(), digits)
		}
	}
	for _, n := range []int64{1, -1, 7, math.MaxInt64, math.MinInt64 + 1} {
		below, near := amount{n, true}.rounder()
		for _, b := range append(below, near...) {
			if b.n != 0 && (b.n < 0) != (n < 0) {
				t.Errorf("%d is made %d", n, b.n)
			}
		}
	}
}

// A candidate whose run was ended early is not kept: played again without a limit, it is
// another run.
func TestARunThatWasEndedEarlyIsNotKept(t *testing.T) {
	h := sim.NewHost(t)
	c := bloated[0]
	f := fails(t, h, c.text, c.lock, c.judge, c.class, c.seed)
	for most, want := range map[int]bool{f.Verdict.Played.Steps / 8: false, 2 * f.Verdict.Played.Steps: true} {
		limited := *h
		limited.MostSteps = most
		s := newShrinker(&limited, f, 30)
		if small, _ := s.shrink(); (small.Verdict.Scenario != f.Verdict.Scenario) != want {
			t.Errorf("at most %d steps of %d: made smaller, %v", most, f.Verdict.Played.Steps, !want)
		}
	}
}

func TestTheBoundOfARun(t *testing.T) {
	for steps, want := range map[int]int{10: longRun, 1000: 4000, 15_000: LongestRun, LongestRun: 2 * LongestRun} {
		if got := mostSteps(steps); got != want {
			t.Errorf("a failure of %d steps: at most %d; want %d", steps, got, want)
		}
	}
}

// The runs that are cached for other shrinkers are bounded by their steps.
func TestTheCacheOfRunsIsBounded(t *testing.T) {
	of := func(steps int) play.Verdict {
		return play.Verdict{Played: play.Played{Result: sim.Result{Steps: steps}}}
	}
	s := &shrinker{played: map[string]play.Verdict{"a": of(playedMost - 20), "b": of(10)}}
	if !s.hasRoom(of(10)) || s.hasRoom(of(11)) {
		t.Errorf("room for 10 steps: %v, and for 11: %v", s.hasRoom(of(10)), s.hasRoom(of(11)))
	}
}
