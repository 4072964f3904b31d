// Package reference is a lock on Redis that is small and right. It is for Go programs that need not
// share their locks with a Redisson client. It is also the control group of the harness, in which no
// judge may find a bug.
//
// Both locks are reentrant and count their holds. NewLock makes one whose
// waiters compete; NewFairLock one that serves them in the order of their first
// tries.
//
// Acquire and TryAcquire give a handle on a hold, a Hold, whose owner no other hold has. Lock and
// Unlock name an owner by a number, for code that enters a lock again. Keys, errors and alarms are in docs/production.md.
//
//   - A request has a number. One that runs twice, or arrives when its caller
//     has moved on, has one effect and one answer: the server remembers the
//     newest number of each owner for a minute, and refuses requests that are
//     half a minute old. So whatever is not answered is sent again, also by
//     go-redis itself. Each attempt of an acquire counts as a request: after its
//     answer no copy of it, or of one before it, takes the lock.
//   - The only clock is the server's. Wall clocks of clients are not read.
//   - A hold without lease is renewed until it is given up or the server says
//     that it is lost; errors only make it try again. A lease that was asked for
//     is exact: nothing shortens it, and only the owner's own entering again
//     can make it longer.
//   - The context of a hold (HoldContext, Hold.Context) ends when the hold may have ended, at the latest.
//   - Each hold has a fencing token, greater than any before it.
//   - Waiters are woken by a message, and ask again now and then in any case.
//     On the fair lock that keeps their place: that of a dead one is free after
//     one heartbeat. One that is in front when its time is up takes the lock if it
//     is free, rather than have kept others from it for nothing.
//
// No lock with leases can promise two things, and these locks do not promise them either: that a
// holder is alone after it was stopped or cut off for longer than its lease, and that a server keeps a
// hold after a failover that lost acknowledged writes. Let the resource check Token if that matters.
// Nor does a server recognize a request that it was made to forget while the request was under way, by
// a failover, an eviction or an operator. An unlock that had run may then be answered as if it had
// not, and a waiter of the fair lock comes last.
package reference
