package known

import (
	"testing"

	"lockstep/scenarios/subject"
)

// A change of a defect makes the results of its own locks old, and of no other.
func TestTheVersionOfALock(t *testing.T) {
	newest := 0
	for _, d := range All {
		if d.Since > Version {
			t.Errorf("%s has changed at version %d of the list, and the list has %d", d.ID, d.Since, Version)
		}
		newest = max(newest, d.Since)
	}
	if newest != Version {
		t.Errorf("the list has version %d, and no defect has it as its Since: the newest is %d", Version, newest)
	}
	nobodys := &subject.Subject{Name: "a lock that no list knows"}
	if v := VersionOf(nobodys); v != unkept {
		t.Errorf("a lock without a known defect has version %d, want %d", v, unkept)
	}
	for _, d := range All {
		for _, lock := range subject.All() {
			if d.Applies(lock) && VersionOf(lock) < d.Since {
				t.Errorf("%s has version %d, and %s is of %d", lock.Name, VersionOf(lock), d.ID, d.Since)
			}
		}
	}
}
