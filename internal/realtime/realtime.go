// Package realtime repeats the cases of tests that depend on real time. A stall of the machine or
// of a process can spoil one try of a case. It cannot spoil every try, unless the machine is always
// busy.
package realtime

import (
	"sync"
	"testing"
)

// Tries is how often a case is played before its difference counts.
const Tries = 4

// Case plays a case until a try gives no difference, and fails the test if each of Tries tries gives
// one. It logs the differences of the tries that do not count. The number of the try, from 0, belongs
// into the names that the case uses, so that a try does not meet the remains of an earlier try. Case
// reports whether a try gave no difference. It may be called from many goroutines, but not by play.
// First tries are played side by side; a repeated try is played alone, since other cases may have spoilt
// the first one.
func Case(t testing.TB, name string, play func(try int) (difference string)) bool {
	t.Helper()
	for try := range Tries {
		difference := played(try, play)
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

// trying is read-locked by first tries, which run together, and write-locked by a repeated try,
// which runs alone.
var trying sync.RWMutex

func played(try int, play func(int) string) string {
	if try == 0 {
		trying.RLock()
		defer trying.RUnlock()
	} else {
		trying.Lock()
		defer trying.Unlock()
	}
	return play(try)
}
