package judges

import "lockstep/model"

// Version is the version of the judges. It is raised by hand whenever they find something else in
// the same record. Results name the version that wrote them.
const Version = 13

// VersionOf returns the oldest version of the judges that find the same as these ones in the records
// of a lock with those traits. Version 12 compares answers with the holds of the servers, for every lock.
// Version 13 compares the instant at which a thread is told of the end of its hold with the lease that it
// knows. A new version belongs here, with the locks to which it matters.
func VersionOf(t model.Traits) int {
	if t.Watched {
		return 13
	}
	return 12
}
