package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestEveryEventHasAnInstantOfItsOwn(t *testing.T) {
	var s schedule
	for range 3 * room {
		for _, c := range []Class{classStep, ClassDelivery, classFault, classExpiry} {
			s.add(3*slotNs+17, c, func() {})
		}
	}
	last, order := int64(-1), classExpiry
	for len(s.events) > 0 {
		e, at := s.next(0)
		if at <= last || e.class < order {
			t.Fatalf("class %d at %d ns after class %d at %d ns", e.class, at, order, last)
		}
		last, order = at, e.class
		s.pop(at)
	}
}

// The scheduler does not wake for a deadline that is stale. All other events happen at the same instants
// as if it did, and each stale one is counted.
func TestStaleDeadlinesAreSkipped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type add struct {
			slot  int64
			class Class
			set   int // of a deadline: 0 is stale from the start, and 1 from the half on
		}
		adds := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) add {
			return add{rapid.Int64Range(0, 6).Draw(t, "slot"), Class(rapid.IntRange(0, int(classStep)).Draw(t, "class")), rapid.IntRange(0, 2).Draw(t, "set")}
		}), 1, 40).Draw(t, "events")
		// Each event adds the next one, and the first ones are there from the start.
		start := rapid.IntRange(1, 10).Draw(t, "start")
		wakes := rapid.SliceOfN(rapid.Int64Range(0, 7*slotNs), 0, 5).Draw(t, "wakes")
		play := func(skips bool) (instants []int64, steps int) {
			s := schedule{}
			sock := &socket{p: &Process{}, setAt: 1}
			now, left := int64(0), adds
			more := func() {
				if len(left) == 0 {
					return
				}
				a := left[0]
				left = left[1:]
				e := s.add(max(now, a.slot*slotNs), a.class, nil)
				if a.class == ClassDeadline && a.set < 2 {
					e.run = func() {}
					if skips {
						e.deadline, e.set = sock, uint64(a.set)
					}
				}
			}
			for range start {
				more()
			}
			wakes := slices.Sorted(slices.Values(wakes))
			for {
				if now > 3*slotNs {
					sock.setAt = 2
				}
				e, at := s.next(now)
				steps += s.takePassed()
				if len(wakes) > 0 && (e == nil || wakes[0] < at) { // somebody posts something
					now = max(now, wakes[0])
					wakes = wakes[1:]
					more()
					continue
				}
				if e == nil {
					now += slotNs * 100 // time passes the last stale ones
					_, _ = s.next(now)
					return instants, steps + s.takePassed()
				}
				now = max(now, at)
				steps++
				if s.pop(now) == nil {
					instants = append(instants, now)
					more()
				}
			}
		}
		want, wantSteps := play(false)
		got, steps := play(true)
		if !slices.Equal(got, want) || steps != wantSteps {
			t.Fatalf("%d steps, at %v\nwant %d, at %v", steps, got, wantSteps, want)
		}
	})
}
