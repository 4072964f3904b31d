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
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"lockstep/locktest"
	"lockstep/peers/zookeeper/server"
)

// timeout is the timeout of a session. The session ends up to a tick later.
const timeout = 10 * time.Second

// ping is the interval at which the client renews its session. It waits two thirds of the timeout
// to hear from the server, and sends a ping after half of that time (go-zookeeper/zk 1.0.4,
// conn.go, lines 345, 346 and 763).
const ping = timeout * 2 / 3 / 2

// Lock is the lock as its documentation shows it: a failed call is tried again in the same session.
// Nothing tells a holder that its session has ended, and nothing ends a wait.
var Lock = subject("zookeeper", "ZooKeeper: the Lock of go-zookeeper/zk", false)

// Closing is the lock for callers that close the session after a failed call, so that its nodes
// end, and that give a hold up as soon as the connection is lost.
var Closing = subject("zookeeper-closing", "ZooKeeper: the Lock of go-zookeeper/zk, in a session that ends with the first failure", true)

func subject(name, about string, closing bool) locktest.Subject {
	return locktest.Subject{
		Name: name, About: about, Servers: server.Servers(1), Lease: timeout + server.Tick, Renewed: true, RenewEvery: ping, State: first,
		Kept:     func(lock string) []string { return []string{"/" + lock} },
		Open:     func(p *locktest.Process) (locktest.Client, error) { return &client{p: p, closing: closing}, nil },
		Promises: locktest.Promises{NotWaitBound: "Lock takes no context and no time: nothing ends its wait"},
	}
}

// first is the State of a lock. The holder is the child with the lowest number, and the others wait
// in the order of their numbers. This is the state of the server, whether or not the clients know
// it.
func first(s locktest.Snapshot, lock string) *locktest.State {
	nodes := s.Server(0).(*server.Server).Children("/" + lock)
	slices.SortFunc(nodes, func(a, b server.Node) int { return cmp.Compare(number(a.Path), number(b.Path)) })
	var out *locktest.State
	for _, n := range nodes {
		if out == nil {
			out = &locktest.State{Owner: n.Path, Expires: n.Ends}
			continue
		}
		out.Queue = append(out.Queue, n.Path)
	}
	return out
}

// number returns the number with which the server ends the name of a sequential node.
func number(path string) string { return path[strings.LastIndexByte(path, '-')+1:] }

type client struct {
	p       *locktest.Process
	closing bool
	locks   []*lock
}

func (c *client) Lock(name string) (locktest.Lock, error) {
	l := &lock{c: c, name: name, number: len(c.locks)}
	c.locks = append(c.locks, l)
	if c.closing {
		return told{l}, nil
	}
	return l, nil
}

func (c *client) Close() error {
	for _, l := range c.locks {
		l.close()
	}
	return nil
}

type lock struct {
	c      *client
	name   string
	number int // among the locks of the client
	conn   *zk.Conn
	zk     *zk.Lock // made anew for each acquire
	link   *link    // of the session
	// closing is set while the session is being closed.
	closing *atomic.Bool
}

// socket is a connection that carries only the request to close once the session is being closed.
// The library decides by chance whether it still sends other requests then. In either case it tells
// the caller that the connection is closed.
type socket struct {
	net.Conn
	closing *atomic.Bool
}

func (s socket) Write(b []byte) (int, error) {
	const opClose = 0xfffffff5 // -11, after the length and the number of the request
	if s.closing.Load() && len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) != opClose {
		return len(b), nil
	}
	return s.Conn.Write(b)
}

// close ends the session.
func (l *lock) close() {
	if l.conn != nil && l.closing.CompareAndSwap(false, true) {
		l.conn.Close()
		l.conn, l.zk = nil, nil
	}
}

// quiet is the logger of a session.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// open begins a session.
func (l *lock) open() (err error) {
	p, link, closing := l.c.p, &link{lost: make(chan struct{})}, new(atomic.Bool)
	l.link, l.closing = link, closing
	p.Serves(l.name, func() {
		l.conn, _, err = zk.Connect([]string{p.Addr(0)}, timeout, zk.WithLogger(quiet{}), zk.WithLogInfo(false),
			zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
				conn, err := p.DialContext(context.Background(), network, addr)
				if err != nil {
					// A real dial takes time to fail. Meanwhile the caller hands its request over. Without the
					// yield it would race with the library, which then fails the requests that it has.
					p.Sim().Yield(l.number)
				}
				return socket{conn, closing}, err
			}),
			zk.WithEventCallback(func(e zk.Event) { link.became(e.State) }))
	})
	return err
}

func (l *lock) Lock(context.Context) error {
	if l.conn == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	l.zk = zk.NewLock(l.conn, "/"+l.name, zk.WorldACL(zk.PermAll))
	return l.zk.Lock()
}

func (l *lock) Unlock(context.Context) error {
	if l.zk == nil {
		return locktest.ErrNotHeld
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

// became notes a state of the session.
func (k *link) became(s zk.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case s == zk.StateHasSession:
		k.up = true
	case s == zk.StateDisconnected && k.up:
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
		l.close()
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
