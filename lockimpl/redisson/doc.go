// Package redisson is Redisson's lock in Go, release by release and faithful
// to the faults of each: the same keys, scripts' effects, argument order,
// replies, channels, the subscribe-then-retry loop, the shared subscription
// entries, the watchdog and the executor's resends. A release is a row of the
// table in release.go; nothing here repairs one.
//
// Owners are written as CLIENT:OWNER, as Redisson writes UUID:THREAD, so that
// a Java client and this one can contend for one lock.
//
// What a Java thread's interrupt does, the end of a context does here: it is
// noticed where Redisson notices it, and swallowed where Redisson swallows it.
package redisson
