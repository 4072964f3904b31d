package known

import "lockstep/scenarios/subject"

// Version is the version of the list of defects. It is raised by hand whenever a finding
// gets another name, loses its name, or gets one for the first time. The defects that changed
// get it as their Since. Readers of results see whether an older version named them.
const Version = 13

// unkept is the version up to which nobody kept which defects changed.
const unkept = 4

// Newest returns the version of the list with the defects that are registered. Programs that
// register none have Version.
func Newest() int {
	v := Version
	for i := range All {
		v = max(v, All[i].Since)
	}
	return v
}

// VersionOf returns the oldest version of the list that names the findings of a lock as this
// one does.
func VersionOf(lock *subject.Subject) int {
	v := unkept
	for i := range All {
		if d := &All[i]; d.Applies(lock) {
			v = max(v, d.Since)
		}
	}
	return v
}
