package bench

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"lockstep/scenarios/play"
	"lockstep/sim"
)

func TestLawIsTheExponentOfTheUpperHalf(t *testing.T) {
	for _, c := range []struct {
		name  string
		costs []float64
		want  float64
	}{
		{"linear", []float64{2, 20, 200, 2000, 20_000}, 1},
		{"square", []float64{3, 300, 30_000, 3e6, 3e8}, 2},
		{"a floor under the small ones does not count", []float64{5000, 5000, 200, 2000, 20_000}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := law([]int{1, 10, 100, 1000, 10_000}, c.costs); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("n^%v, want n^%v", got, c.want)
			}
		})
	}
}

func TestTheMedianOfRedisBenchmark(t *testing.T) {
	const said = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"EVALSHA f0a,b 1 floor","19841.27","0.048","0.040","0.047","0.055","0.079","0.239"
`
	if ns, err := p50Of(said); err != nil || ns != 47_000 {
		t.Errorf("%v ns, %v", ns, err)
	}
	for _, bad := range []string{"", "NOSCRIPT", strings.Replace(said, "p50", "p51", 1)} {
		if _, err := p50Of(bad); err == nil {
			t.Errorf("%q has a median", bad)
		}
	}
}

func TestRatiosAreThoseWithinARound(t *testing.T) {
	// The machine was ten times as slow in the second round.
	r := ratioIn([]float64{30, 330, 27}, []float64{10, 100, 10})
	if r != (ratio{3, 2.7, 3.3}) {
		t.Errorf("got %v", r)
	}
}

func TestTheTimeThatAProcessHasUsed(t *testing.T) {
	before := processorTime()
	got, err := usedBy(os.Getpid())
	if after := processorTime(); err != nil || got < before-20*time.Millisecond || got > after+20*time.Millisecond {
		t.Errorf("%v, error %v; getrusage says %v before and %v after", got, err, before, after)
	}
	if got, err := usedBy(1 << 22); err == nil { // no process has a greater number than this
		t.Errorf("a process that is not there has used %v", got)
	}
}

func TestLengths(t *testing.T) {
	for ns, want := range map[float64]string{5400: "5.40 µs", 12_345_678: "12.3 ms", 3e9: "3.00 s", 250: "250 ns"} {
		if got := span(ns); got != want {
			t.Errorf("%v ns is %s, want %s", ns, got, want)
		}
	}
}

func TestAGoalSaysByHowMuchItIsMissed(t *testing.T) {
	r := report{all: []measurement{{Section: section{Title: "S", Goals: []goal{
		atMost("a", 2, 3, "", "3.00", "Why a."), atLeast("b", 5, 4, "4.00", "Why b."), atMost("c", 20, 13, " ms", "13.0 ms", "Why c."),
	}}}}}
	var b strings.Builder
	if err := r.WritePage(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| a | at most 2.00 | 3.00 | **not met**: 50 % over. Why a. |",
		"| b | at least 5.00 | 4.00 | **not met**: 20 % short. Why b. |",
		"| c | at most 20.0 ms | 13.0 ms | met |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
}

// A call replaces the measurements of its own parts. The page has all of them, in the order of
// the parts, and each says when, where and how it was measured.
func TestAPageKeepsThePartsOfEarlierCalls(t *testing.T) {
	var data bytes.Buffer
	first := &report{}
	for _, m := range []measurement{
		{Part: "growth", Command: "bench", Machine: []string{"processor: old"}, Section: section{Title: "Growth", Rows: [][]string{{"a<b"}}, Head: []string{"n"}}},
		{Part: "step", Command: "bench", Begun: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), Machine: []string{"processor: old"}, Section: section{Title: "Step", After: []string{"figures of old"}}},
		{Part: "gone", Section: section{Title: "Gone"}},
	} {
		first.put(m)
	}
	if err := first.WriteData(&data); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	r.command = "bench --only step"
	r.put(measurement{Part: "step", Command: r.command, Begun: time.Date(2026, 5, 6, 7, 8, 0, 0, time.UTC), Took: 9 * time.Second, Rounds: 3, Machine: []string{"processor: new"}, Section: section{Title: "Step", After: []string{"now"}}})
	var page strings.Builder
	if err := r.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, want := range []string{
		"Written by `bench --only step`.", "Machine 1:\n\n* processor: new\n", "Machine 2:\n\n* processor: old\n", "Not measured: schedule, run,",
		"## Step\n\nMeasured on 6 May 2026, 07:08 UTC on machine 1 by `bench --only step` in 9s, 3 rounds;", "now", "## Growth\n\nMeasured on 1 January 0001, 00:00 UTC on machine 2 by `bench` in", "| a\\<b |",
	} {
		i := strings.Index(page.String()[at:], want)
		if i < 0 {
			t.Fatalf("no %q after byte %d of\n%s", want, at, &page)
		}
		at += i + len(want)
	}
	for _, unwanted := range []string{"figures of old", "Gone"} {
		if strings.Contains(page.String(), unwanted) {
			t.Errorf("%q is left in\n%s", unwanted, &page)
		}
	}
	if _, err := readReport(append(data.Bytes(), "{\"part\""...)); err == nil {
		t.Error("a line that was cut off is read")
	}
}

// A part for which something is missing says so, and the others go on.
func TestWithoutARedisServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := &bench{Options: Options{Rounds: 1, Quick: true}}
	for name, measure := range map[string]func() (section, error){"lock": b.lock, "real-time": b.realTime} {
		s, err := measure()
		if err != nil || len(s.Rows)+len(s.Goals) > 0 || strings.Join(s.After, "") != "Not measured: there is no redis-server here." {
			t.Errorf("%s: %v: %d rows, %d goals, %q", name, err, len(s.Rows), len(s.Goals), s.After)
		}
	}
}

// A measured run must be of the kind that its name says: a run with a broken promise, or with no
// grant, costs another amount.
func TestWhatIsMeasuredHolds(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range curves {
		for _, n := range c.sizes[:2] {
			v := play.Run(h, c.scenario(n), mustLock(c.lock), 1)
			if v.Word != play.VerdictHeld {
				t.Errorf("%s, %d: %s: %s", c.what, n, v.Word, v.Why)
			}
		}
	}
	if commands := Step(h, 10); commands != 15 {
		t.Errorf("ten locks and unlocks are %d commands, want 15: an unlock is two", commands)
	}
	for _, name := range stories {
		sc, l, err := story(name)
		if err != nil {
			t.Fatal(err)
		}
		if v := play.Run(h, sc, l, 1); v.Word != play.VerdictHeld {
			t.Errorf("%s: %s: %s", name, v.Word, v.Why)
		}
	}
}
