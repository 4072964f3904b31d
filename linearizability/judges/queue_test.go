package judges

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lockstep/model"
)

// TestTheQueueBeforeAndAfterAChange compares with the plain definitions.
func TestTheQueueBeforeAndAfterAChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		thread := rapid.SampledFrom([]string{"a/1", "a/2", "b/1", "b/2", "c/1"})
		queue := rapid.SliceOfN(thread, 0, 6)
		before, after := queue.Draw(t, "before"), queue.Draw(t, "after")
		var want []string
		times := map[string]int{}
		for _, who := range before {
			times[who]++
		}
		for _, who := range after {
			if times[who]--; times[who] < 0 {
				want = append(want, who)
			}
		}
		if got := entered(before, after); !slices.Equal(got, want) {
			t.Errorf("from %q to %q, %q entered; want %q", before, after, got, want)
		}
		s := &model.LockState{Queue: after, Deadlines: rapid.MapOfN(thread, rapid.Just(int64(1)), 0, 5).Draw(t, "deadlines")}
		if waiting, timed := membersOf(s); isTorn(s) == slices.Equal(waiting, timed) {
			t.Errorf("%q with the deadlines %q: torn is %v", after, timed, isTorn(s))
		}
	})
}
