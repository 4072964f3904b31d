// Package realtime repeats the cases of tests that depend on real time. A machine or a process that
// stalls can blur one try of a case. It cannot blur each of several, unless it never runs freely.
package realtime

import "testing"

// Tries is how often a case is played before its difference counts.
const Tries = 4

// Case plays a case until a try gives no difference, and fails the test if each of Tries tries
// gives one. It logs the differences of the tries that do not count. The number of the try, from 0,
// is for the names that the case uses: a try meets nothing that an earlier try left. Case reports
// whether a try gave no difference. It may be called from many goroutines.
func Case(t testing.TB, name string, play func(try int) (difference string)) bool {
	t.Helper()
	for try := range Tries {
		difference := play(try)
		if difference == "" {
			return true
		}
		if try == Tries-1 {
			t.Errorf("%s: it differs in each of %d tries, at last:\n%s", name, Tries, difference)
			return false
		}
		t.Logf("%s: try %d of %d differs, and is repeated:\n%s", name, try+1, Tries, difference)
	}
	return false
}
