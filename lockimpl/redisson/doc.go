// Package redisson is Redisson's lock in Go, release by release and faithful
// to the faults of each: the same keys, scripts' effects, argument order,
// replies, channels, the subscribe-then-retry loop, the shared subscription
// entries, the watchdog and the executor's resends. A release is a row of the
// table in release.go; nothing here repairs one.
//
// Owners are written as CLIENT:OWNER, as Redisson writes UUID:THREAD, so that
// a Java client and this one can contend for one lock.
//
// The end of a context takes the place of a Java thread's interrupt: it is noticed where
// Redisson notices an interrupt, and swallowed where Redisson swallows it.
package redisson
