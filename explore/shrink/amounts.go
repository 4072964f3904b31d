package shrink

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"lockstep/scenarios"
)

// amount is a number of a scenario, in nanoseconds where it is a time.
type amount struct {
	n    int64
	time bool
}

func (a amount) String() string {
	d := time.Duration(a.n)
	switch {
	case !a.time:
		return strconv.FormatInt(a.n, 10)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	case d%time.Millisecond == 0:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d%time.Microsecond == 0:
		return fmt.Sprintf("%dus", d/time.Microsecond)
	}
	return d.String()
}

// digits returns the number of digits that a reader has to look at.
func (a amount) digits() int64 {
	s := strings.TrimRight(strings.Trim(a.String(), "-nums"), "0")
	return int64(len(s))
}

// rounder returns the amounts to try in place of one: smaller ones from 0 up, whole
// seconds, and neighbours with fewer digits.
func (a amount) rounder() (below, near []amount) {
	unit := int64(1)
	if a.time {
		unit = int64(time.Second)
		if abs(a.n) < unit {
			unit = int64(time.Millisecond)
		}
	}
	sign := int64(1)
	if a.n < 0 {
		sign = -1
	}
	below = append(below, amount{0, a.time})
	for decade := unit; decade < abs(a.n); decade *= 10 {
		for _, lead := range []int64{1, 2, 3, 4, 5, 6, 8} {
			if decade*lead < abs(a.n) {
				below = append(below, amount{sign * decade * lead, a.time})
			}
		}
		if decade > math.MaxInt64/100 {
			break
		}
	}
	beside := func(grain int64) (out []amount) {
		down := a.n / grain * grain
		out = append(out, amount{down, a.time})
		if abs(down) <= math.MaxInt64-grain {
			out = append(out, amount{down + sign*grain, a.time})
		}
		return out
	}
	for grain := unit; grain < abs(a.n) && grain < math.MaxInt64/20; grain *= 10 {
		near = append(beside(grain), near...)
	}
	if a.time && abs(a.n) > int64(time.Second) {
		for _, grain := range []time.Duration{100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond} {
			near = append(near, beside(int64(grain))...)
		}
	}
	return below, near
}

// amounts makes times and numbers rounder and smaller.
func (s *shrinker) amounts() {
	for i := 0; s.left > 0; i++ {
		all := s.best.sc.Amounts()
		if i >= len(all) {
			return
		}
		if all[i].N != 0 {
			s.makeRounder(i, amount{all[i].N, all[i].Time})
		}
		// A number that need not be written any more is no amount.
		i -= len(all) - len(s.best.sc.Amounts())
	}
}

// makeRounder makes the i-th amount of the best scenario rounder and smaller.
func (s *shrinker) makeRounder(i int, a amount) {
	put := func(b amount) bool {
		set := false
		sc := s.changed(s.best.sc, func(sc *scenarios.Scenario) { set = sc.Amounts()[i].Set(b.n) })
		ok := set && s.consider(sc, s.best.seed, s.best.decisions)
		if ok {
			s.times++
		}
		return ok
	}
	below, near := a.rounder()
	if put(below[0]) {
		return
	}
	// Find the smallest amount that fails, if all larger ones do.
	lo, hi := 1, len(below)
	for lo < hi {
		mid := (lo + hi) / 2
		if put(below[mid]) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if hi < len(below) || a.digits() <= 1 {
		return
	}
	for _, b := range near {
		if b.digits() < a.digits() && put(b) {
			return
		}
	}
}
