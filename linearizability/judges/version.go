package judges

import "lockstep/model"

// Version is the version of the judges. It is raised by hand whenever they find something else in
// the same record. Results name the version that wrote them.
const Version = 24

// VersionOf returns the oldest version of the judges that find the same as these ones in the records
// of a lock with those traits. Version 24 excuses a renewal that waits behind that of another hold, for every lock.
// A new version belongs here, with the locks to which it matters.
func VersionOf(model.Traits) int { return 24 }
