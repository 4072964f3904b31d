package sim

import "testing"

// Who asks why two runs differ wants to hear of the lock, whatever path this module has.
func TestWritersAreOfOtherPackages(t *testing.T) {
	outer := func(f func()) { f() }
	outer(func() {
		outer(func() {
			if list := writers(); len(list) != 0 {
				t.Errorf("functions of this package and of the standard library are named: %v", list)
			}
		})
	})
}
