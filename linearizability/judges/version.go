package judges

import "lockstep/model"

// Version is the version of the judges. It is raised by hand whenever they find something else in
// the same record. Results name the version that wrote them.
const Version = 25

// VersionOf returns the oldest version of the judges that find the same as these ones in the records
// of a lock with those traits. Version 25 excuses a place that a late request took, whatever its words look like, for every lock.
// A new version belongs here, with the locks to which it matters.
func VersionOf(model.Traits) int { return 25 }
