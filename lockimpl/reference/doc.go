// Package reference is a small and correct lock on Redis. It is for Go programs that need not share their
// locks with a Redisson client. It is also the control group of the harness, in which no judge may find a
// bug.
//
// Both locks are reentrant and count their holds. NewLock makes one whose
// waiters compete; NewFairLock one that serves them in the order of their first
// tries.
//
// Acquire and TryAcquire give a handle on a hold, a Hold, whose owner no other hold has. Lock and
// Unlock name an owner by a number, for code that enters a lock again. Keys, errors and alarms are in docs/production.md.
//
//   - A request has a number. One that runs twice, or arrives after its caller
//     has moved on, has one effect and one answer: the server remembers the
//     newest number of each owner for a minute, and refuses requests that are
//     half a minute old. So each request without an answer is sent again, even by
//     go-redis itself. Each attempt of an acquire counts as a request: after its
//     answer no copy of it, or of an earlier attempt, takes the lock.
//   - The only clock is the server's. Wall clocks of clients are not read.
//   - A hold without lease is renewed until it is given up or the server says
//     that it is lost; errors only make it try again. A lease that was asked for
//     is exact: nothing shortens it, and only a re-entry of its owner
//     can make it longer.
//   - The context of a hold (HoldContext, Hold.Context) ends when the hold may have ended, at the latest.
//   - Each hold has a fencing token, greater than any before it, unless the clock of the server is set
//     back or an operator deletes the key of the token.
//   - Waiters are woken by a message, and ask again now and then in any case.
//     On the fair lock this keeps their places: the place of a dead waiter is free after
//     one heartbeat. A waiter that is in front when its time is up takes the lock if it
//     is free, since it has kept others from the lock.
//
// No lock with leases can promise two things, and these locks do not promise them either: that a holder is
// alone after it was stopped or cut off for longer than its lease, and that a server keeps a hold after a
// failover that lost acknowledged writes. Let the resource check Token if that matters. A server does not
// recognize a request, either, if a failover, an eviction or an operator made it forget the request while it
// was under way. An unlock that had run may then be answered as if it had not, and a waiter of the fair lock
// comes last.
package reference
