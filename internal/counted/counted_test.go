package counted_test

import (
	"testing"

	"lockstep/internal/counted"
)

func TestOf(t *testing.T) {
	for n, want := range map[int]string{0: "0 runs", 1: "1 run", 2: "2 runs"} {
		if got := counted.Of(n, "run"); got != want {
			t.Errorf("Of(%d) is %q, want %q", n, got, want)
		}
	}
}
