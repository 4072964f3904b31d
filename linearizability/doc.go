// Package linearizability holds the judges and the readers of foreign
// histories: a record or a history goes in, findings come out.
//
// The judges know no simulator and never look at the code under test; what a
// lock did is all that they see. What a lock should do is the business of
// package model, whose state machines they search. The one idea: a lock whose
// calls overlap is right if some order of its calls, each placed between its
// call and its return, is right one call at a time; time itself enters that
// order as the ends of leases, which are steps of the judge's own.
//
// [Read] reads a history, [Check] judges it. A verdict has three values, and
// the third, [Undecided], says that the search was stopped: it is neither held
// nor broken and must not be counted as either.
package linearizability
