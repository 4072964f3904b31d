// Package judges judges runs: the record of a run goes in, findings come out.
//
// A record has facts that no client can know, such as whether a command ran whose reply was lost.
// [Judge] asks every judge. Each judge is a function in a file of its own, which looks for one kind
// of broken promise in the indexed record. One of them settles the calls on each lock into a
// history and gives it to package linearizability. The promises of the lock, which package model
// derives from its traits, determine which findings count, and which circumstances excuse them.
//
// The judges know no simulator and no lock. They run nothing: only a replay without the excuse
// shows whether a finding with an excuse is still a bug.
package judges
