package explore

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"lockstep/report/sentence"
	"lockstep/scenarios/scenariotest"

	"pgregory.net/rapid"

	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/internal/longtest"
	"lockstep/linearizability/judges"
	"lockstep/lockimpl/redisson"
	"lockstep/model"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A rapidChooser draws a world's decisions from rapid, so that rapid shrinks a schedule as it
// shrinks a value.
type rapidChooser struct {
	t *rapid.T
	// stopped keeps the panic with which rapid ends a case, because a panic must not unwind
	// a bubble.
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

// playDrawn draws a scenario and its schedule, plays them, and judges the run.
func playDrawn(h *sim.Host, t *rapid.T, l *subject.Subject) play.Verdict {
	chooser := &rapidChooser{t: t}
	sc := draw.New(chooser, l, draw.Simple, simpleClasses).Scenario
	sc.SetFile("drawn.yaml")
	p := play.Play(h, sc, l, chooser)
	if chooser.stopped != nil {
		panic(chooser.stopped)
	}
	return play.Judge(h, sc, l, 0, p)
}

// simpleClasses lists the fault classes whose consequences the known defects cover.
var simpleClasses = []draw.Class{draw.ClassNetwork, draw.ClassCrash, draw.ClassPause, draw.ClassPartition, draw.ClassOperator}

// draws returns the number of cases that the suite draws for a lock. It draws most for the
// newest release, few for a lock with replicas, and none if replicas make no difference.
func draws(l *subject.Subject) int {
	newest := redisson.Releases[len(redisson.Releases)-1]
	rel, err := redisson.Find(l.Release)
	switch {
	case l.Name == "none":
		return 0 // the lock breaks its promises, which TestBrokenLocksAreFound checks
	case l.Replicated && err == nil && rel.Sync == redisson.SyncNone:
		return 0
	case l.Replicated:
		return 60
	case l.Release == newest.Version:
		return 400
	default:
		return 200
	}
}

func TestWhatIsPromisedHolds(t *testing.T) {
	h := sim.NewHost(t)
	locks := subject.All()
	for _, name := range []string{"reference-handle", "reference-fair-handle"} { // no list shows them
		locks = append(locks, scenariotest.Lock(t, name))
	}
	for _, l := range locks {
		n := draws(l)
		if n == 0 {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			h := h.For(t)
			if !checksGiven {
				_ = flag.Set("rapid.checks", strconv.Itoa(longtest.Size(t, n/16, n)))
			}
			rapid.Check(t, func(rt *rapid.T) {
				v := playDrawn(h, rt, l)
				for _, f := range v.Findings {
					if f.Verdict == judges.Undecided {
						fail(rt, t, v, f)
					}
					if f.Class == judges.ClassBug && failure.NewNamer(h, v).Name(f).ID == "" {
						fail(rt, t, v, f)
					}
				}
			})
		})
	}
}

// A lock of Redisson's that is taken by handles shows only the known defects of the lock.
func TestHandlesAddNoBug(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		lock  string
		draws uint64
	}{{"redisson-handle@4.7.0", 400}, {"redisson-fair-handle@4.7.0", 200}} {
		t.Run(c.lock, func(t *testing.T) {
			h, l := h.For(t), scenariotest.Lock(t, c.lock)
			held, released := 0, 0
			for seed := range longtest.Size(t, c.draws/8, c.draws) {
				v := play.Run(h, draw.New(sim.NewSeeded(seed), l, draw.Simple, simpleClasses).Scenario, l, seed)
				for _, f := range v.Findings {
					if f.Class != judges.ClassLimit && failure.NewNamer(h, v).Name(f).ID == "" {
						t.Errorf("seed %d: %s: %s\n%s", seed, f.Judge, sentence.Finding(f), v.Scenario.Write())
					}
				}
				for _, e := range v.Played.Record.Events {
					switch {
					case e.Kind == model.KindReturn && e.Outcome == model.Granted:
						held++
					case e.Kind == model.KindReturn && e.Outcome == model.Released:
						released++
					}
				}
			}
			if held < 20 || released < 10 {
				t.Errorf("%d grants and %d releases say little", held, released)
			}
		})
	}
}

// In a world without faults, the newest release shows only known defects, whatever its
// callers do.
func TestFullWorkloadsShowWhatIsKnown(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		lock  string
		draws uint64
	}{{"redisson@4.7.0", 250}, {"redisson-fair@4.7.0", 150}} {
		t.Run(c.lock, func(t *testing.T) {
			h, l := h.For(t), scenariotest.Lock(t, c.lock)
			named := 0
			for seed := range longtest.Size(t, c.draws/6, c.draws) {
				v := play.Run(h, draw.New(sim.NewSeeded(seed), l, draw.Full, nil).Scenario, l, seed)
				for _, f := range v.Findings {
					if f.Class == judges.ClassLimit {
						continue
					}
					if f.Verdict == judges.Undecided || failure.NewNamer(h, v).Name(f).ID == "" {
						t.Fatalf("seed %d: %s: %s\n%s", seed, f.Judge, sentence.Finding(f), v.Scenario.Write())
					}
					named++
				}
			}
			if named == 0 {
				t.Error("nothing was found")
			}
		})
	}
}

// fail fails the test with the finding, the text of the scenario, and the file of a recording.
func fail(rt *rapid.T, t *testing.T, v play.Verdict, f judges.Finding) {
	file := filepath.Join(os.TempDir(), "lockstep-"+strings.ReplaceAll(t.Name(), "/", "-")+".lockstep")
	if err := os.WriteFile(file, recorded(v, f), 0o644); err != nil {
		file = err.Error()
	}
	rt.Fatalf("%s %s: %s\n\nthe scenario, for go run ./cmd/simrun run FILE:\n\n%s\nthe very schedule: go run ./cmd/simrun replay %s",
		f.Judge, f.Verdict, sentence.Finding(f), v.Scenario.Write(), file)
}

// recorded returns the file of the recording of a finding.
func recorded(v play.Verdict, f judges.Finding) []byte {
	var b bytes.Buffer
	_ = v.Recording().Write(&b, []string{f.Judge + ": " + sentence.Finding(f)})
	return b.Bytes()
}

// The recording that fail writes plays the very schedule again.
func TestADrawnFailureIsRecorded(t *testing.T) {
	h, l, found := sim.NewHost(t), scenariotest.Lock(t, "none"), 0
	rapid.Check(t, func(rt *rapid.T) {
		v := playDrawn(h, rt, l)
		if len(v.Findings) == 0 {
			return
		}
		found++
		rec, sc, l, err := play.ReadRecording("a.lockstep", recorded(v, v.Findings[0]))
		if err != nil {
			rt.Fatal(err)
		}
		if again, diverged := play.Replay(h, rec, sc, l); diverged != "" || again.Digest() != v.Digest() {
			rt.Fatalf("digest %.12s, and again %.12s %s", v.Digest(), again.Digest(), diverged)
		}
	})
	if found == 0 {
		t.Error("nothing was found")
	}
}

// The same generator finds the bugs of locks that are wrong on purpose. Otherwise
// TestWhatIsPromisedHolds would show nothing.
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
			l := scenariotest.Lock(t, c.lock)
			for i := range c.draws {
				seed := uint64(i)
				sc := draw.New(sim.NewSeeded(seed), l, draw.Simple, simpleClasses).Scenario
				v := play.Run(h, sc, l, seed)
				for _, f := range v.Findings {
					if f.Judge == c.judge && f.Class == judges.ClassBug {
						t.Logf("found after %d draws: %s", i+1, sentence.Finding(f))
						return
					}
				}
			}
			t.Errorf("%s was not broken in %d draws", c.judge, c.draws)
		})
	}
}
