package bench

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// cost is the cost of one unit of a workload.
type cost struct {
	cpu, wall time.Duration
	bytes     float64
	allocs    float64
}

// workload does some work and returns the number of its units.
type workload func() (units float64)

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func measured(f workload) cost {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu, begun := processorTime(), time.Now()
	units := f()
	wall, used := time.Since(begun), processorTime()-cpu
	runtime.ReadMemStats(&after)
	return cost{
		cpu: time.Duration(float64(used) / units), wall: time.Duration(float64(wall) / units),
		bytes: float64(after.TotalAlloc-before.TotalAlloc) / units, allocs: float64(after.Mallocs-before.Mallocs) / units,
	}
}

// inTurn measures the workloads one after the other, rounds times. It returns the
// costs of each workload by round.
func inTurn(rounds int, all ...workload) [][]cost {
	costs := make([][]cost, len(all))
	for range rounds {
		for i, f := range all {
			costs[i] = append(costs[i], measured(f))
		}
	}
	return costs
}

// median returns the median of the values that of returns.
func median[T any](list []T, of func(T) float64) float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = of(v)
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func cpuOf(c cost) float64  { return float64(c.cpu) }
func wallOf(c cost) float64 { return float64(c.wall) }

// ratio returns the cost of a divided by that of b, by round.
type ratio struct{ median, least, most float64 }

func ratioOf(a, b []cost, of func(cost) float64) ratio {
	var x, y []float64
	for i := range a {
		x, y = append(x, of(a[i])), append(y, of(b[i]))
	}
	return ratioIn(x, y)
}

// ratioIn compares the costs of the same round.
func ratioIn(a, b []float64) ratio {
	var all []float64
	for i := range a {
		all = append(all, a[i]/b[i])
	}
	return ratio{median(all, func(x float64) float64 { return x }), slices.Min(all), slices.Max(all)}
}

// String returns the median with the least and the greatest of the rounds.
func (r ratio) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", r.median, r.least, r.most) }

// span formats a duration with three digits.
func span(ns float64) string {
	for _, unit := range []struct {
		of   float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if ns >= unit.of {
			return digits(ns/unit.of) + " " + unit.name
		}
	}
	return digits(ns) + " ns"
}

// digits formats a number with three digits.
func digits(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// size formats a number of bytes.
func size(b float64) string {
	switch {
	case b >= 1<<20:
		return digits(b/(1<<20)) + " MiB"
	case b >= 1<<10:
		return digits(b/(1<<10)) + " KiB"
	default:
		return digits(b) + " B"
	}
}
