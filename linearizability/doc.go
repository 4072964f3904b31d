// Package linearizability judges histories of locks: [Stream] and [ReadHistory]
// read a history, [Check] and [Checker] judge it, [Picture] and [PictureOf] draw it.
// The judges of whole runs are in package judges, and one of them asks this one.
//
// It knows no simulator and no code under test; a history is all that it sees. Package model defines
// correct behaviour of a lock. Its state machines are searched here. The one idea: a lock whose calls
// overlap is right if some order of its calls, each placed between its call and its return, is right
// one call at a time. Time enters that order as the ends of leases, which are steps that the search
// adds.
//
// A verdict has three values. The third, [Undecided], says that the search was
// stopped: it is neither ok nor broken and must not be counted as either.
package linearizability
