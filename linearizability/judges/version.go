package judges

import "lockstep/model"

// Version is the version of the judges. It is raised by hand whenever they find something else in
// the same record. Results name the version that wrote them.
const Version = 10

// VersionOf returns the oldest version of the judges that find the same as these ones in the records
// of a lock with those traits. Version 9 changed what judges find if a lock tells its holders of the
// loss of a hold, and version 10 if its server may grant a second entry without counting it, or if it
// counts entries and its unlock does not say whether one is left. A new version belongs here, with the
// locks to which it matters.
func VersionOf(t model.Traits) int {
	switch {
	case t.Uncounted != t.PerGrant && !t.NonReentrant:
		return 10
	case t.Watched:
		return 9
	}
	return 8
}
