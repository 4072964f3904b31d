package locktest

import (
	"testing"
	"time"
)

// RunFor is Run for a test that meets its -timeout after so long by the clock of now.
func RunFor(t *testing.T, s Subject, o Options, now func() time.Time, timeout time.Duration) {
	t.Helper()
	run(t, s, o, callerOfRun(), newTimeLimit(now, now().Add(timeout), timeout))
}
