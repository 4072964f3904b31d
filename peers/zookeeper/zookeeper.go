// Package zookeeper judges the lock of github.com/go-zookeeper/zk, unmodified.
//
// Each thread has a session of its own for each lock. A lock makes an ephemeral node with a number,
// waits until the node before it is gone, and has the lock when it is the first. The session keeps
// the node: its client sends pings, and its nodes end with the session.
//
// The promises of the lock, with their sources:
//
//   - At no time do two clients think that they hold the lock: ZooKeeper 3.8, "ZooKeeper Recipes and
//     Solutions", section Locks. A session ends by the server's clock, so that the recipe cannot keep
//     this promise for a client that is paused for longer than its session (limit).
//   - A hold ends with its session: the nodes of the session are ephemeral ("ZooKeeper Programmer's
//     Guide", sections "Ephemeral Nodes" and "ZooKeeper Sessions"). The client renews the session.
//   - Lock waits until it has the lock or an error occurs, and Unlock of a lock that is not held is
//     refused with ErrNotLocked (go-zookeeper/zk 1.0.4, lock.go, lines 53 to 54 and 148 to 149).
//   - The removal of a node wakes one client, and nobody polls (the recipe): little traffic.
//   - The recipe promises no token, and the library gives none.
package zookeeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"lockstep/locktest"
	"lockstep/peers/zookeepertest"
)

// timeout is the timeout of a session. The session ends up to a tick later.
const timeout = 10 * time.Second

// Lock is the lock as its documentation shows it: a failed call is tried again in the same session.
// Nothing tells a holder that its session has ended, and nothing ends a wait.
var Lock = subject("zookeeper", "ZooKeeper: the Lock of go-zookeeper/zk", false,
	"Each thread has a session per lock that lasts as long as its client, nothing is tried again, and after a call that failed the session goes on and the caller may call again.")

// Closing is the lock for callers that close the session after a failed call, so that its nodes
// end, and that give a hold up as soon as the connection is lost.
var Closing = subject("zookeeper-closing", "ZooKeeper: the Lock of go-zookeeper/zk, in a session that ends with the first failure", true,
	"Each thread has a session per lock, which goes on after an unlock, and which is closed after an acquire or an unlock that failed, and the adapter, not the library, tells a holder when its connection is lost.")

func subject(name, about string, closing bool, policy string) locktest.Subject {
	return locktest.Subject{
		Name: name, About: about, Policy: policy, Servers: zookeepertest.Servers(), Lease: zookeepertest.Lease(timeout), Renewed: true, RenewEvery: zookeepertest.RenewEvery(timeout),
		State: zookeepertest.First(nil),
		Kept:  func(lock string) []string { return []string{"/" + lock} },
		Open: func(p *locktest.Process) (locktest.Client, error) {
			return client{zookeepertest.NewClient(p), closing}, nil
		},
		Promises: locktest.Promises{NotWaitBound: "Lock takes no context and no time: nothing ends its wait"},
	}
}

type client struct {
	*zookeepertest.Client
	closing bool
}

func (c client) Lock(name string) (locktest.Lock, error) {
	l := &lock{sessions: c.ForLock(name), name: name}
	if c.closing {
		return told{l}, nil
	}
	return l, nil
}

type lock struct {
	sessions *zookeepertest.Sessions
	name     string
	zk       *zk.Lock // of the newest acquire
	link     *link    // of the newest session
}

func (l *lock) Lock(context.Context) error {
	if l.sessions.Conn() == nil {
		l.link = &link{lost: make(chan struct{})}
	}
	conn, err := l.sessions.Connect(timeout, l.link.became)
	if err != nil {
		return err
	}
	l.zk = zk.NewLock(conn, "/"+l.name, zk.WorldACL(zk.PermAll))
	return l.zk.Lock()
}

func (l *lock) Unlock(context.Context) error {
	if l.zk == nil || l.sessions.Conn() == nil {
		return locktest.ErrNotHeld // the session was closed
	}
	err := l.zk.Unlock()
	if errors.Is(err, zk.ErrNotLocked) || errors.Is(err, zk.ErrNoNode) {
		return locktest.ErrNotHeld
	}
	return err
}

// link tells the holder when the connection of its session is lost.
type link struct {
	mu   sync.Mutex    // held for moments only
	up   bool          // there is a connection with a session
	lost chan struct{} // closed when the connection was lost
	over bool          // lost is closed
}

// became notes the state of the session after an event.
func (k *link) became(e zk.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case e.State == zk.StateHasSession:
		k.up = true
	case e.State == zk.StateDisconnected && k.up:
		k.up = false
		if !k.over {
			k.over = true
			close(k.lost)
		}
	}
}

// begin begins a hold. A connection that was lost before the hold does not end it.
func (k *link) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.up && k.over {
		k.lost, k.over = make(chan struct{}), false
	}
}

// told is a lock whose session ends with the first failure.
type told struct{ *lock }

func (l told) Lock(ctx context.Context) error {
	if err := l.lock.Lock(ctx); err != nil {
		return l.ended(err)
	}
	l.link.begin()
	return nil
}

func (l told) Unlock(ctx context.Context) error {
	err := l.lock.Unlock(ctx)
	if errors.Is(err, locktest.ErrNotHeld) {
		return err
	}
	return l.ended(err)
}

// ended closes the session if err says that a call has failed.
func (l told) ended(err error) error {
	if err != nil {
		l.sessions.Close()
	}
	return err
}

// Lost implements locktest.Watched.
func (l told) Lost() <-chan struct{} {
	if l.link == nil {
		return nil // it was never asked for
	}
	l.link.mu.Lock()
	defer l.link.mu.Unlock()
	return l.link.lost
}
