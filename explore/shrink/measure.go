package shrink

import (
	"math"

	"lockstep/model"
	"lockstep/scenarios"
)

// The places of the parts of a measure.
const (
	inProcesses = iota + 1
	inThreads
	inSteps
	inFaults
	inWide
	inWidth
	inEvents
	inFields
	inDigits
	inTotal
	inDrawn
)

// shape returns the part of a measure that is known before a candidate is played.
func shape(sc *scenarios.Scenario, recording bool) []int64 {
	var threads, steps int64
	for _, p := range sc.Processes {
		threads += int64(p.Threads)
	}
	for _, st := range sc.All() {
		steps++
		if st.Kind == scenarios.StepWithLock {
			steps++ // it locks and unlocks
		}
	}
	var only, wide int64
	for _, f := range sc.Faults {
		if f.Kind == model.FaultRule && f.When.Nth == 0 {
			wide++
		}
	}
	if recording {
		only = 1
	}
	width := sc.Latency.Max - sc.Latency.Min + sc.Server.Lag.Max - sc.Server.Lag.Min
	return []int64{only, int64(len(sc.Processes)), threads, steps, int64(len(sc.Faults)), wide, int64(width)}
}

// details returns the part of a measure that comes after the number of events.
func details(c *candidate) []int64 {
	var digits, total int64
	for _, a := range c.sc.Amounts() {
		digits += amount{a.N, a.Time}.digits()
		total = add(total, abs(a.N))
	}
	var drawn, sum int64
	for _, values := range c.decisions {
		for _, v := range values {
			if v > 0 {
				drawn++
				sum = add(sum, int64(min(v, math.MaxInt64)))
			}
		}
	}
	return []int64{int64(len(c.sc.Options())), digits, total, drawn, sum, int64(min(c.seed, math.MaxInt64)), int64(len(c.sc.Text))}
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func abs(n int64) int64 {
	if n < 0 {
		return -max(n, -math.MaxInt64)
	}
	return n
}
