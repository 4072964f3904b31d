// Package judges judges runs: the record of a run goes in, findings come out.
//
// A record has what no client can know, such as whether the command of a lost
// reply ran. [Judge] asks every judge. Each judge is a function in a file of its
// own, which looks for one kind of broken promise in the indexed record. One of
// them settles the calls on each lock into a history and gives it to package
// linearizability. The promises of the lock, which package model derives from
// its traits, say which findings count, and which circumstances excuse them.
//
// The judges know no simulator and no lock. They run nothing: whether a finding
// with an excuse is a bug all the same, a replay without the excuse has to show.
package judges
