// Package linearizability judges histories of locks: [Stream] and [ReadHistory]
// read a history, [Check] and [Checker] judge it, [Picture] and [PictureOf] draw it.
// The judges of whole runs are in package judges, and one of them asks this one.
//
// It knows no simulator and no code under test, and sees only histories. Package model defines
// correct behaviour of a lock. This package searches its state machines. The one idea: overlapping
// calls of a lock are right if they can be put into some order, each at an instant between its call
// and its return, that is right for a lock called by one caller at a time. Time enters the order as
// the ends of leases, which are steps that the search adds.
//
// A verdict has three values. The third, [Undecided], says that a limit stopped the search. It must
// not be counted as ok or as broken.
package linearizability
