package scenarios

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lockstep/linearizability"
	"lockstep/lockimpl/redisson"
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
	if l.topology != redisson.Single {
		fmt.Fprintf(&b, "server: {replicas: 2, lag: 0..%dms}\n", rapid.SampledFrom([]int{1, 20}).Draw(t, "lag"))
	}
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
	// A careful thread unlocks only what it was granted: a wrong answer to the
	// unlock of a free lock, which some releases give, hides others.
	careful := rapid.Bool().Draw(t, "careful")
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
			if lease == "" && !careful {
				take = "try_lock"
			}
		case 1:
			if !l.Fair {
				take, wait = "try_lock", ", wait: "+ms("wait", 6000)
			}
		}
		levels := 1
		if !l.Uncounted && !l.NonReentrant && rapid.IntRange(0, 3).Draw(t, "reenter") == 0 {
			levels = rapid.IntRange(2, 3).Draw(t, "levels")
		}
		if careful {
			indent := "    "
			for range levels {
				fmt.Fprintf(b, "%s- with_lock:\n%s    name: %s\n", indent, indent, name)
				for _, option := range []string{wait, lease} {
					if option != "" {
						fmt.Fprintf(b, "%s    %s\n", indent, strings.TrimPrefix(option, ", "))
					}
				}
				fmt.Fprintf(b, "%s    steps:\n", indent)
				indent += "      "
			}
			fmt.Fprintf(b, "%s- sleep: %s\n", indent, ms("hold", 6000))
			continue
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

// draws is how many cases the suite draws for a lock: most for the newest, few
// where there are replicas, none where they change nothing.
func draws(l *Lock) int {
	newest := redisson.Releases[len(redisson.Releases)-1]
	switch {
	case l.Name == "none":
		return 0 // promises everything and keeps nothing: TestBrokenLocksAreFound
	case l.topology != redisson.Single && l.rel.Sync == redisson.SyncNone:
		return 0
	case l.topology != redisson.Single:
		return 60
	case l.rel == newest:
		return 400
	default:
		return 200
	}
}

func TestWhatIsPromisedHolds(t *testing.T) {
	h := sim.NewHost(t)
	for _, l := range Locks {
		n := draws(l)
		if n == 0 {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			h := h.For(t)
			if !checksGiven {
				_ = flag.Set("rapid.checks", strconv.Itoa(n))
			}
			rapid.Check(t, func(rt *rapid.T) {
				v := playDrawn(h, rt, l)
				for _, f := range v.Findings {
					if f.Verdict == linearizability.Undecided {
						fail(rt, t, v, f)
					}
					if f.Class == linearizability.ClassBug && defectOf(h, v, f) == "" {
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
