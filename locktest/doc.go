// Package locktest judges anybody's lock. A test gives it a [Subject], which opens the
// lock in a process of a simulated world, and [Run] plays the lock under faults:
//
//	func TestOrders(t *testing.T) { locktest.Run(t, subject, locktest.Options{}) }
//
// The lock runs unmodified. Time, the network, the servers and every failure obey one
// seed. The judges look for two owners at a time, a lock that somebody else deleted, a
// lease that ended too early or too late, waiters that were forgotten or served out of
// order, and more.
//
// The package knows no server. Package lockstep/locktest/redistest has Redis servers for
// a Subject.
//
// # A lock that can be judged
//
//   - The lock reaches its servers through [Process.DialContext] and nothing else. A real
//     socket does not obey the simulated clock.
//   - It does not hold a sync.Mutex while it waits for a server or sleeps: simulated time
//     stands still until every goroutine waits in a way that the testing/synctest package
//     knows, and a mutex is not one. Run fails such a test with the stacks that block time.
//   - Chance of crypto/rand and of math/rand repeats. Chance of math/rand/v2's package
//     functions and of hash/maphash does not; use [Process.Rand] in its place.
package locktest
