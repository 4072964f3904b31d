// Package redisson is Redisson's lock in Go, release by release, with the faults of each. It has
// the same keys, effects of scripts, order of arguments, replies and channels, the loop that
// subscribes and then tries again, the shared subscription entries, the watchdog, and the
// executor's resends. A release is a row of the table in release.go. Nothing here repairs a
// release.
//
// Owners are written as CLIENT:OWNER, as Redisson writes UUID:THREAD, so that
// a Java client and this one can contend for one lock.
//
// The end of a context takes the place of a Java thread's interrupt: the port notices it where
// Redisson notices an interrupt, and ignores it where Redisson swallows one.
package redisson
