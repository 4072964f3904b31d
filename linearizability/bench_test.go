package linearizability

import (
	"fmt"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lockstep/model"
)

// porcupineTime limits the time for which porcupine looks for an order of one history.
const porcupineTime = 10 * time.Second

// BenchmarkCheck prints a line per history, with the time of Check (ms/check), which asks the
// monitor first, and the time of porcupine alone (ms/porcupine). stopped is 1 if porcupine met its
// limit of time, and 2 if it met its limit of memory; its time then means nothing. The histories
// have only plain holds, acquires and releases, for which the monitor is exact. Halfway through a
// broken history, an owner is granted a lock that another holds.
func BenchmarkCheck(b *testing.B) {
	for _, broken := range []bool{false, true} {
		for _, clients := range []int{5, 10, 20, 50} {
			for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
				kind, want := "valid", OK
				if broken {
					kind, want = "broken", Broken
				}
				b.Run(fmt.Sprintf("%s/clients=%d/ops=%d", kind, clients, n), func(b *testing.B) {
					ops := contending(clients, n, false, true)
					if broken {
						tooEarly(b, ops)
					}
					began := time.Now()
					for b.Loop() {
						if v := Check(ops, Options{}).Verdict(); v != want {
							b.Fatalf("%s, and it is %s", v, want)
						}
					}
					b.ReportMetric(float64(time.Since(began).Milliseconds())/float64(b.N), "ms/check")
					took, stopped := alone(b, ops, want)
					b.ReportMetric(float64(took.Milliseconds()), "ms/porcupine")
					b.ReportMetric(stopped, "stopped")
				})
			}
		}
	}
}

// tooEarly makes a history broken: halfway, the next owner is granted the lock before its holder
// gives it up.
func tooEarly(b *testing.B, ops []Op) {
	for i := len(ops) / 2; i < len(ops); i++ {
		if ops[i].Op == OpRelease {
			late := *ops[i].ReturnNs + 20_000_000
			ops[i].CallNs, ops[i].ReturnNs = late, &late
			// Its thread continues only then.
			for j := i + 1; j < len(ops); j++ {
				if ops[j].owner() == ops[i].owner() {
					ops[j].CallNs = max(ops[j].CallNs, late)
					if *ops[j].ReturnNs < late {
						ops[j].ReturnNs = &late
					}
				}
			}
			return
		}
	}
	b.Fatal("nothing to break")
}

// alone checks a history by porcupine, without the monitor.
func alone(b *testing.B, ops []Op, want Verdict) (took time.Duration, stopped float64) {
	spec, _ := model.SpecNamed(model.Specs[0])
	h := history{lock: ops[0].Lock, ops: sorted(ops), spec: spec, opt: Options{StepLimit: 1 << 60}, free: spec.Init()}
	began := time.Now()
	s := h.newSearch(forever)
	calls := make([]porcupine.Operation, len(s.entries))
	for i, e := range s.entries {
		calls[i] = porcupine.Operation{Input: e, Call: e.call, Return: e.ret}
	}
	answer := porcupine.CheckOperationsTimeout(s.model(), calls, porcupineTime)
	took = time.Since(began)
	switch {
	case s.stopped:
		return took, 2
	case answer == porcupine.Unknown:
		return took, 1
	case answer == porcupine.Ok != (want == OK):
		b.Fatalf("porcupine says %s, and it is %s", answer, want)
	}
	return took, 0
}
