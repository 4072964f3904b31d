package judges

import "lockstep/model"

// Version is the version of the judges. It is raised by hand whenever they find something else in
// the same record. Results name the version that wrote them.
const Version = 11

// VersionOf returns the oldest version of the judges that find the same as these ones in the records
// of a lock with those traits. Version 9 changed what judges find if a lock tells its holders of the
// loss of a hold, version 10 if its server may grant a second entry without counting it, or if it
// counts entries and its unlock does not say whether one is left, and version 11 if a call on a closed client
// may wait and send nothing. No trait says that a client does so. The
// clients of etcd's lock and of one other lock do. The condition below covers them: fair locks with a hold for each grant, and
// locks without a watchdog whose holders extend their lease. In up to 1 000 drawn runs of each other lock, with
// all faults and the profiles orderly and full, no such call waits too long. A new version belongs here, with the locks
// to which it matters.
func VersionOf(t model.Traits) int {
	switch {
	case t.PerGrant && (t.Fair || t.Extends && t.NoWatchdog):
		return 11
	case t.Uncounted != t.PerGrant && !t.NonReentrant:
		return 10
	case t.Watched:
		return 9
	}
	return 8
}
