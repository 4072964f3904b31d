package scenarios

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/sim"
)

// rapidChooser draws a world's decisions from rapid, so that rapid shrinks a
// schedule as it shrinks a value.
type rapidChooser struct {
	t *rapid.T
	// stopped keeps rapid's panic: it means "enough of this case" and must not
	// unwind a bubble.
	stopped any
}

func (c *rapidChooser) Choose(stream string, n uint64) (v uint64) {
	if c.stopped != nil {
		return 0
	}
	defer func() {
		if r := recover(); r != nil {
			c.stopped = r
		}
	}()
	return rapid.Uint64Range(0, n-1).Draw(c.t, stream)
}

// drawScenario writes a scenario of the profile simple: one thread a client,
// leases and watchdog not mixed on one hold, no timed try on the fair lock.
func drawScenario(t *rapid.T, l *Lock) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lockstep: 1\nname: drawn\nlocks: [%s]\n", l.Name)
	switch {
	case l.Fair:
		// Behind a dead waiter the next one asks again without a pause: a slow
		// network keeps such a run short.
		b.WriteString("network: {latency: 5ms..20ms}\n")
	case rapid.Bool().Draw(t, "exact"):
		b.WriteString("network: {latency: 0}\n")
	}
	// Not below the response timeout: one lost reply would outlast the lease.
	watchdog := rapid.SampledFrom([]string{"30s", "15s"}).Draw(t, "watchdog")
	fmt.Fprintf(&b, "watchdog: %s\n", watchdog)
	n := rapid.IntRange(2, 4).Draw(t, "processes")
	names := []string{"a", "b", "c", "d"}[:n]
	b.WriteString("processes: {")
	for i, p := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		if l.Fair {
			// Shorter than the release's 300 s for the same reason; longer than any
			// hold, so that no living waiter loses its place.
			b.WriteString(p + ": {client: {fair_wait: 40s}}")
			continue
		}
		b.WriteString(p + ": {}")
	}
	b.WriteString("}\nsteps:\n")
	for _, p := range names {
		fmt.Fprintf(&b, "  %s/1:\n", p)
		drawSteps(t, &b, l)
	}
	drawFaults(t, &b, names)
	return b.String()
}

func drawSteps(t *rapid.T, b *strings.Builder, l *Lock) {
	ms := func(label string, max int) string {
		return fmt.Sprintf("%dms", rapid.IntRange(0, max).Draw(t, label))
	}
	for range rapid.IntRange(1, 3).Draw(t, "sections") {
		fmt.Fprintf(b, "    - sleep: %s\n", ms("gap", 3000))
		name := rapid.SampledFrom([]string{"x", "x", "x", "y"}).Draw(t, "name")
		lease := ""
		if rapid.Bool().Draw(t, "leased") {
			lease = fmt.Sprintf(", lease: %dms", rapid.IntRange(500, 8000).Draw(t, "lease"))
		}
		take := "lock"
		wait := ""
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			if lease == "" {
				take = "try_lock"
			}
		case 1:
			if !l.Fair {
				take, wait = "try_lock", ", wait: "+ms("wait", 6000)
			}
		}
		levels := 1
		if !l.Uncounted && rapid.IntRange(0, 3).Draw(t, "reenter") == 0 {
			levels = 2
		}
		for range levels {
			fmt.Fprintf(b, "    - %s: {name: %s%s%s}\n", take, name, wait, lease)
		}
		fmt.Fprintf(b, "    - sleep: %s\n", ms("hold", 6000))
		for range levels {
			fmt.Fprintf(b, "    - unlock: %s\n", name)
		}
		if rapid.IntRange(0, 9).Draw(t, "unlock twice") == 0 {
			fmt.Fprintf(b, "    - unlock: %s\n", name)
		}
	}
}

func drawFaults(t *rapid.T, b *strings.Builder, names []string) {
	n := rapid.IntRange(0, 3).Draw(t, "faults")
	if n == 0 {
		return
	}
	b.WriteString("faults:\n")
	for range n {
		p := rapid.SampledFrom(names).Draw(t, "who")
		at := rapid.IntRange(0, 12_000).Draw(t, "at")
		long := rapid.IntRange(1, 12_000).Draw(t, "for")
		script := rapid.SampledFrom([]string{"acquire", "unlock", "renew"}).Draw(t, "script")
		dir := rapid.SampledFrom([]string{"request", "reply"}).Draw(t, "direction")
		nth := rapid.IntRange(1, 3).Draw(t, "nth")
		switch rapid.IntRange(0, 8).Draw(t, "fault") {
		case 0:
			fmt.Fprintf(b, "  - {at: %dms, crash: %s}\n", at, p)
		case 1:
			fmt.Fprintf(b, "  - {at: %dms, pause: %s, for: %dms}\n", at, p, long)
		case 2:
			fmt.Fprintf(b, "  - {at: %dms, partition: [%s], for: %dms}\n", at, p, long)
		case 3:
			fmt.Fprintf(b, "  - {when: {process: %s, script: %s, direction: %s, nth: %d}, do: drop}\n", p, script, dir, nth)
		case 4:
			fmt.Fprintf(b, "  - {when: {process: %s, script: %s, direction: %s, nth: %d}, do: delay, for: %dms}\n", p, script, dir, nth, long)
		case 5:
			fmt.Fprintf(b, "  - {when: {process: %s, script: %s, direction: %s, nth: %d}, do: reset}\n", p, script, dir, nth)
		case 6:
			fmt.Fprintf(b, "  - {when: {process: %s, script: %s, direction: request, nth: %d}, do: error, with: \"ERR injected\"}\n", p, script, nth)
		case 7:
			fmt.Fprintf(b, "  - {at: %dms, key: x, do: delete}\n", at)
		case 8:
			fmt.Fprintf(b, "  - {when: {process: %s, channel: \"*\", direction: reply, every: %d}, do: drop}\n", p, nth)
		}
	}
}

// playDrawn draws a scenario and its schedule, and judges it.
func playDrawn(h *sim.Host, t *rapid.T, l *Lock) Verdict {
	text := drawScenario(t, l)
	sc, err := Parse("drawn.yaml", []byte(text), canonical)
	if err != nil {
		t.Fatalf("the drawn scenario does not load: %v\n%s", err, text)
	}
	chooser := &rapidChooser{t: t}
	p := Play(h, sc, l, chooser)
	if chooser.stopped != nil {
		panic(chooser.stopped)
	}
	return Judge(h, sc, l, 0, p)
}

// knownDefects are what a release is known to do wrong on this profile, one by
// one: on which locks, which judges, and the circumstance without which the
// finding is not this defect.
var knownDefects = []struct {
	name   string
	locks  []string
	judges []string
	is     func(f linearizability.Finding, v Verdict) bool
}{
	{
		"DEL takes whatever hold is there when it arrives, and what follows from it",
		[]string{"setnx-del", "setnx-get-del"},
		model.Judges,
		func(f linearizability.Finding, v Verdict) bool {
			// Without the fault that hid it, the DEL comes to light in the replay.
			return strings.Contains(f.Why, "it is so too without") || slices.ContainsFunc(v.Findings, func(f linearizability.Finding) bool { return f.Judge == model.JudgeMisdelete })
		},
	},
	{
		"one string has no room to count a second entry",
		[]string{"string-reentrant"},
		[]string{model.JudgeLinearizable, model.JudgeHoldCount, model.JudgeMutualExclusion},
		func(f linearizability.Finding, v Verdict) bool {
			return slices.Contains(v.Reached, "reentered")
		},
	},
	{
		"a free fair lock can be unlocked by anyone (by design of every release)",
		[]string{"redisson-fair@3.43.0", "redisson-fair@4.7.0"},
		[]string{model.JudgeLinearizable},
		func(f linearizability.Finding, v Verdict) bool { return unlockedFree(v) },
	},
	{
		"a re-entered hold leaves its thread in the watchdog's queue after the last unlock (3.37.0 to 3.43.0)",
		[]string{"redisson@3.43.0", "redisson-fair@3.43.0"},
		[]string{model.JudgeLease},
		func(f linearizability.Finding, v Verdict) bool {
			grants := 0
			return (strings.Contains(f.Why, "renewal") || strings.Contains(f.Why, "got a lease")) && happened(v, f, func(e *model.Event) bool {
				if e.Kind == model.KindReturn && e.Outcome == model.Granted && e.LeaseNs == 0 {
					grants++
				}
				return grants > 1
			})
		},
	},
	{
		"an unlock that failed stops the renewal although the hold stays (every release since 3.8.1)",
		[]string{"redisson@3.43.0", "redisson@4.7.0", "redisson-fair@3.43.0", "redisson-fair@4.7.0"},
		[]string{model.JudgeLease, model.JudgeMutualExclusion},
		func(f linearizability.Finding, v Verdict) bool {
			return strings.Contains(f.Why, "lease") && happened(v, f, func(e *model.Event) bool {
				return e.Kind == model.KindReturn && e.Action == model.ActUnlock && (e.Outcome == model.Failed || e.Outcome == model.Unknown)
			})
		},
	},
	{
		"a waiter of the fair lock sleeps on the time to live of a hold that was given up (scenario fair-sleeps-on-an-old-lease)",
		[]string{"redisson-fair@3.43.0", "redisson-fair@4.7.0"},
		[]string{model.JudgeLiveness},
		func(f linearizability.Finding, v Verdict) bool {
			return happened(v, linearizability.Finding{AtNs: f.AtNs}, func(e *model.Event) bool { return e.Kind == model.KindExpire })
		},
	},
	{
		"lock() that ends with an error keeps its place in the queue, and its thread comes back to it (acquireFailed is not called)",
		[]string{"redisson-fair@3.43.0", "redisson-fair@4.7.0"},
		[]string{model.JudgeFIFO, model.JudgeLinearizable, model.JudgeLiveness},
		func(f linearizability.Finding, v Verdict) bool {
			return happened(v, linearizability.Finding{AtNs: f.AtNs}, func(e *model.Event) bool {
				return e.Kind == model.KindReturn && e.Action.Acquires() && (e.Outcome == model.Failed || e.Outcome == model.Unknown)
			})
		},
	},
	{
		"a renewal that was lost or late, or could not leave, is sent again although the lock was unlocked meanwhile (every release that resends)",
		[]string{"redisson@3.43.0", "redisson@4.7.0", "redisson-fair@3.43.0", "redisson-fair@4.7.0"},
		[]string{model.JudgeLease},
		func(f linearizability.Finding, v Verdict) bool {
			return strings.Contains(f.Why, "renewal") && happened(v, f, func(e *model.Event) bool {
				return (e.Kind == model.KindLost || e.Kind == model.KindHit) && e.Script == "renew" || e.Kind == model.KindFault && strings.HasPrefix(e.Text, "partition")
			})
		},
	},
	{
		"an unlock that was given up as unknown arrives later and takes a level of a later hold of its thread (an owner is client and thread, not one acquisition)",
		[]string{"redisson@3.43.0", "redisson@4.7.0", "redisson-fair@3.43.0", "redisson-fair@4.7.0", "setnx-cad", "setnx-del", "setnx-get-del", "string-reentrant"},
		[]string{model.JudgeMutualExclusion, model.JudgeHoldCount},
		func(f linearizability.Finding, v Verdict) bool {
			return happened(v, f, func(e *model.Event) bool {
				return e.Kind == model.KindReturn && e.Action == model.ActUnlock && e.Outcome == model.Unknown
			})
		},
	},
	{
		"one failed renewal ends the watchdog (issue 5698, up to 3.43.0)",
		[]string{"redisson@3.43.0", "redisson-fair@3.43.0"},
		[]string{model.JudgeLease, model.JudgeMutualExclusion},
		func(f linearizability.Finding, v Verdict) bool {
			return strings.Contains(f.Why, "lease") && happened(v, f, func(e *model.Event) bool {
				return e.Kind == model.KindHit && e.Script == "renew" || e.Kind == model.KindLost && e.Script == "renew"
			})
		},
	},
}

// happened says whether an event of that kind, by the one whom the finding is
// about, stands in the record before it.
func happened(v Verdict, f linearizability.Finding, is func(*model.Event) bool) bool {
	for i := range v.Played.Record.Events {
		e := &v.Played.Record.Events[i]
		if e.AtNs > f.AtNs {
			return false
		}
		if is(e) && (e.Kind == model.KindState || len(f.Ops) == 0 || e.Process == f.Ops[0].Process) {
			return true
		}
	}
	return false
}

// unlockedFree says whether an unlock was answered 1 and changed nothing.
func unlockedFree(v Verdict) bool {
	changed := map[int]bool{}
	for _, e := range v.Played.Record.Events {
		if e.Kind == model.KindState {
			changed[e.Msg] = true
		}
	}
	return slices.ContainsFunc(v.Played.Record.Events, func(e model.Event) bool {
		return e.Kind == model.KindExec && e.Script == "unlock" && e.Reply == "1" && !changed[e.Msg]
	})
}

// defectOf names the known defect that a finding is; "" when it is none.
func defectOf(v Verdict, f linearizability.Finding) string {
	for _, d := range knownDefects {
		if slices.Contains(d.locks, v.Lock.Name) && slices.Contains(d.judges, f.Judge) && d.is(f, v) {
			return d.name
		}
	}
	return ""
}

func TestWhatIsPromisedHolds(t *testing.T) {
	h := sim.NewHost(t)
	for _, l := range Locks {
		if l.Name == "none" {
			continue // promises everything and keeps nothing: TestBrokenLocksAreFound
		}
		t.Run(l.Name, func(t *testing.T) {
			h := h.For(t)
			rapid.Check(t, func(rt *rapid.T) {
				v := playDrawn(h, rt, l)
				for _, f := range v.Findings {
					if f.Verdict == linearizability.Undecided {
						fail(rt, t, v, f)
					}
					if f.Class == linearizability.ClassBug && defectOf(v, f) == "" {
						fail(rt, t, v, f)
					}
				}
			})
		})
	}
}

// fail prints what was found, the scenario as a file, and a recording.
func fail(rt *rapid.T, t *testing.T, v Verdict, f linearizability.Finding) {
	var b bytes.Buffer
	_ = v.Recording().Write(&b, []string{f.Judge + ": " + f.Why})
	file := filepath.Join(os.TempDir(), "lockstep-"+strings.ReplaceAll(t.Name(), "/", "-")+".lockstep")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		file = err.Error()
	}
	rt.Fatalf("%s %s: %s\n\nthe scenario, for go run ./cmd/simrun run FILE:\n\n%s\nthe very schedule: go run ./cmd/simrun replay %s",
		f.Judge, f.Verdict, f.Why, v.Scenario.Text, file)
}

// The same generator on the locks that are wrong on purpose: what is promised
// must be seen to break, or the test above shows nothing.
func TestBrokenLocksAreFound(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		lock, judge string
		draws       int
	}{
		{"none", model.JudgeMutualExclusion, 50},
		{"setnx-del", model.JudgeMisdelete, 1000},
	} {
		t.Run(c.lock, func(t *testing.T) {
			h := h.For(t)
			l := mustFind(t, c.lock)
			gen := rapid.Custom(func(rt *rapid.T) string { return drawScenario(rt, l) })
			for i := range c.draws {
				sc, err := Parse("drawn.yaml", []byte(gen.Example(i)), canonical)
				if err != nil {
					t.Fatal(err)
				}
				v := Run(h, sc, l, uint64(i))
				for _, f := range v.Findings {
					if f.Judge == c.judge && f.Class == linearizability.ClassBug {
						t.Logf("found after %d draws: %s", i+1, f.Why)
						return
					}
				}
			}
			t.Errorf("%s was not broken in %d draws", c.judge, c.draws)
		})
	}
}
