package sim

import (
	"fmt"
	"testing"
)

func TestZDiff(t *testing.T) {
	h := NewHost(t)
	n, diff := 0, 0
	for seed := range uint64(12) {
		a := busy(NewSeeded(seed)).run(h)
		for range 8 {
			b := busy(NewSeeded(seed)).run(h)
			n++
			if a.Record.Digest() != b.Record.Digest() {
				diff++
				if diff > 3 {
					continue
				}
				for i := range a.Record.Events {
					if fmt.Sprintf("%+v", a.Record.Events[i]) != fmt.Sprintf("%+v", b.Record.Events[i]) {
						t.Logf("SEED %d event %d of %d/%d", seed, i, len(a.Record.Events), len(b.Record.Events))
						for j := max(0, i-12); j < i; j++ {
							t.Logf("   %+v", a.Record.Events[j])
						}
						for j := i; j < min(len(a.Record.Events), i+6); j++ {
							t.Logf(" - %+v", a.Record.Events[j])
						}
						for j := i; j < min(len(b.Record.Events), i+6); j++ {
							t.Logf(" + %+v", b.Record.Events[j])
						}
						break
					}
				}
			}
		}
	}
	t.Logf("%d of %d differ", diff, n)
}
