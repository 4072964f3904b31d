// Package sim is the world: a bubble of simulated time in which unmodified clients talk to servers
// over a simulated network, and every latency, fault and order of events is drawn from one Chooser.
// It knows no lock and no server: a server implements Server, and the Config says what the words of
// a request mean.
//
// The one idea: the root goroutine of a testing/synctest bubble is the scheduler. It waits until
// every other goroutine is durably blocked, gathers the messages that they sent in a stable order,
// and then lets exactly one event happen.
//
// Nothing here may read the wall clock, global chance, or the order of a map or of goroutines.
// docs/design.md lists the traps, and how the world avoids each.
package sim
