package bench

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"lockstep/bench/command"
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
	r := report{sections: []section{{title: "S", goals: []goal{
		atMost("a", 2, 3, "", "3.00", "Why a."), atLeast("b", 5, 4, "4.00", "Why b."), atMost("c", 20, 13, " ms", "13.0 ms", "Why c."),
	}}}}
	var b strings.Builder
	if err := r.Write(&b, "command"); err != nil {
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

// A part for which something is missing says so, and the others go on.
func TestWithoutARedisServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := &bench{command.Options{Rounds: 1, Quick: true}}
	for name, measure := range map[string]func() (section, error){"lock": b.lock, "real-time": b.realTime} {
		s, err := measure()
		if err != nil || len(s.rows)+len(s.goals) > 0 || strings.Join(s.after, "") != "Not measured: there is no redis-server here." {
			t.Errorf("%s: %v: %d rows, %d goals, %q", name, err, len(s.rows), len(s.goals), s.after)
		}
	}
}

// What is measured must be what its name says: a run that broke something, or
// came to nothing, costs another amount.
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
