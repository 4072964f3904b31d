package judges

import "lockstep/model"

// Version is the version of the judges. It is raised by hand whenever they find something else in
// the same record. Results name the version that wrote them.
const Version = 9

// VersionOf returns the oldest version of the judges that find the same as these ones in the records
// of a lock with those traits. Version 9 changed what judges find if a lock tells its holders of the
// loss of a hold. A new version belongs here, with the locks to which it matters.
func VersionOf(t model.Traits) int {
	if t.Watched {
		return 9
	}
	return 8
}
