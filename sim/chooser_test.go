package sim

import (
	"fmt"
	"slices"
	"testing"
)

func draws(c Chooser, stream string, k int, n uint64) []uint64 {
	var d []uint64
	for range k {
		d = append(d, c.Choose(stream, n))
	}
	return d
}

func TestSeededDrawsTheSameForASeedAndOthersForAnother(t *testing.T) {
	a := draws(NewSeeded(1), "latency/a", 50, 1000)
	equal(t, "again", fmt.Sprint(draws(NewSeeded(1), "latency/a", 50, 1000)), fmt.Sprint(a))
	for name, other := range map[string][]uint64{
		"another seed":   draws(NewSeeded(2), "latency/a", 50, 1000),
		"another stream": draws(NewSeeded(1), "latency/b", 50, 1000),
	} {
		if slices.Equal(a, other) {
			t.Errorf("%s draws the same", name)
		}
	}
	if seen := map[uint64]bool{}; true {
		for _, v := range draws(NewSeeded(3), "x", 200, 4) {
			seen[v] = true
		}
		equal(t, "choices met among 4", len(seen), 4)
	}
	equal(t, "of one choice", NewSeeded(9).Choose("x", 1), uint64(0))
}

func TestStreamsOfSeededAreIndependent(t *testing.T) {
	want := draws(NewSeeded(7), "kept", 20, 1<<40)
	for _, others := range []int{0, 1, 5} {
		c := NewSeeded(7)
		var got []uint64
		for range 20 {
			draws(c, "dropped", others, 100)
			got = append(got, c.Choose("kept", 1<<40))
		}
		equal(t, fmt.Sprintf("with %d draws of another stream between", others), fmt.Sprint(got), fmt.Sprint(want))
	}
}

// fixed makes the same choice each time.
type fixed uint64

func (f fixed) Choose(string, uint64) uint64 { return uint64(f) }

func TestRecorderKeepsWhatWasDrawnByStream(t *testing.T) {
	r := NewRecorder(NewSeeded(1))
	a, b := draws(r, "a", 3, 10), draws(r, "b", 2, 10)
	equal(t, "streams", len(r.Drawn), 2)
	equal(t, "a", fmt.Sprint(r.Drawn["a"]), fmt.Sprint(a))
	equal(t, "b", fmt.Sprint(r.Drawn["b"]), fmt.Sprint(b))
	defer func() {
		equal(t, "panic", fmt.Sprint(recover()), "sim: the chooser answered 10 for x, which has 10 choices")
	}()
	NewRecorder(fixed(10)).Choose("x", 10)
}

func TestReplayer(t *testing.T) {
	d := Decisions{"s": {3, 1, 4}}
	for _, c := range []struct {
		name     string
		replayer *Replayer
		stream   string
		n        uint64
		draws    int
		want     string
		diverged string
	}{
		{"repeats a stream", NewReplayer(d), "s", 10, 3, "[3 1 4]", ""},
		{"diverges at the end of a stream and goes on with 0", NewReplayer(d), "s", 10, 5, "[3 1 4 0 0]", "decision 4 of s is not in the recording"},
		{"diverges at a decision that does not fit", NewReplayer(d), "s", 3, 3, "[0 1 0]", "decision 1 of s is 3 in the recording, and only 0 to 2 are possible"},
		{"diverges at an unknown stream", NewReplayer(d), "other", 10, 2, "[0 0]", "decision 1 of other is not in the recording"},
		{"lenient: a stream begins again at its end", NewLenientReplayer(d), "s", 10, 5, "[3 1 4 3 1]", ""},
		{"lenient: a decision that does not fit wraps", NewLenientReplayer(d), "s", 3, 3, "[0 1 1]", ""},
		{"lenient: an unknown stream is 0", NewLenientReplayer(d), "other", 10, 2, "[0 0]", "decision 1 of other is not in the recording"},
	} {
		t.Run(c.name, func(t *testing.T) {
			equal(t, "draws", fmt.Sprint(draws(c.replayer, c.stream, c.draws, c.n)), c.want)
			equal(t, "diverged", c.replayer.Diverged(), c.diverged)
		})
	}
}
