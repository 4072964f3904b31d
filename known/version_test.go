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

// A list that is registered makes the results of its own locks old, and of no other.
func TestAListIsRegistered(t *testing.T) {
	before := All
	defer func() { All = before }()
	theirs, ours := &subject.Subject{Name: "theirs"}, &subject.Subject{Name: "ours"}
	Register(Defect{ID: "THEIRS", Title: "wrong", Since: Version + 3, Applies: func(l *subject.Subject) bool { return l == theirs }})
	if Title("THEIRS") != "wrong" || VersionOf(theirs) != Version+3 || VersionOf(ours) != unkept || Newest() != Version+3 {
		t.Errorf("title %q, versions %d and %d, newest %d", Title("THEIRS"), VersionOf(theirs), VersionOf(ours), Newest())
	}
	if added := Registered(); len(added) != 1 || added[0].ID != "THEIRS" {
		t.Errorf("registered are %v", added)
	}
	defer func() {
		if recover() == nil {
			t.Error("two defects may have one ID")
		}
	}()
	Register(Defect{ID: "THEIRS"})
}
