package scenarios

import (
	"testing"
	"time"

	"lockstep/model"
)

// Readers of a report tell faults apart by their words, so no two faults may have the same words.
func TestEveryServerFaultHasItsOwnWords(t *testing.T) {
	seen := map[string]string{}
	for _, row := range serverTable {
		words := model.FaultSpec{Kind: model.FaultServer, Server: row.does, For: time.Second}.String()
		if other := seen[words]; other != "" {
			t.Errorf("%s and %s are both told as %q", other, row.does, words)
		}
		seen[words] = string(row.does)
	}
}
