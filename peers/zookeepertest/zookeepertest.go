// Package zookeepertest lets clients of github.com/go-zookeeper/zk run in a world, whatever lock uses
// them. A subject of package locktest gets its server, its sessions and its State from here.
//
// The runs of a session that only dials with [locktest.Process.DialContext] do not repeat. The library
// decides by chance which requests it still sends while the session is being closed, and whether a
// request that a caller hands over while a dial fails is sent later or fails, too. And simulated time
// does not pass if two goroutines close one connection. [Sessions] mends all this.
package zookeepertest

import (
	"cmp"
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"lockstep/locktest"
	"lockstep/peers/zookeeper/server"
)

// Servers returns one server.
func Servers() locktest.Servers { return server.Servers(1) }

// Lease returns the longest time for which a session of this timeout lasts after its client has sent
// something: the server ends sessions at ticks of its clock.
func Lease(timeout time.Duration) time.Duration { return timeout + server.Tick }

// RenewEvery returns the longest time between two renewals of a session of this timeout. The client
// waits two thirds of the timeout to hear from the server, and sends a ping after half of that time
// (go-zookeeper/zk 1.0.4, conn.go, lines 345, 346 and 763).
func RenewEvery(timeout time.Duration) time.Duration { return timeout * 2 / 3 / 2 }

// Node is a node of the server.
type Node = server.Node

// Children returns the children of a node in the order of their paths.
func Children(s locktest.Snapshot, path string) []Node {
	return s.Server(0).(*server.Server).Children(path)
}

// First returns the State of a lock for which each caller creates a sequential node. The node with the
// lowest number has the lock, and the others wait in the order of their numbers. Nodes that are not
// sequential do not count. parent returns the path of the node above them; nil: "/" and the name
// of the lock.
//
// The parent stays when everybody has left, so the subject lists its path in Kept.
func First(parent func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	parent = orName(parent)
	return func(s locktest.Snapshot, lock string) *locktest.State {
		nodes := slices.DeleteFunc(Children(s, parent(lock)), func(n Node) bool { return number(n) == "" })
		slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(number(a), number(b)) })
		var st *locktest.State
		for _, n := range nodes {
			if st != nil {
				st.Queue = append(st.Queue, owner(n))
				continue
			}
			st = &locktest.State{Owner: owner(n), Expires: ends(n)}
		}
		return st
	}
}

// Single returns the State of a lock that is held while one node exists. A hold is known by the session
// of the node. path returns the path of the node; nil: "/" and the name of the lock.
func Single(path func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	path = orName(path)
	return func(s locktest.Snapshot, lock string) *locktest.State {
		p := path(lock)
		above := p[:max(strings.LastIndexByte(p, '/'), 1)]
		for _, n := range Children(s, above) {
			if n.Path == p {
				return &locktest.State{Owner: session(n), Expires: ends(n)}
			}
		}
		return nil
	}
}

// orName returns path, or a function that puts a lock below the root by its name.
func orName(path func(lock string) string) func(lock string) string {
	if path == nil {
		return func(lock string) string { return "/" + lock }
	}
	return path
}

// owner returns a text by which a sequential node is known. The path of a node that the library protects
// has a part that was drawn for it. Another path may come again after the server has lost its data, but
// not for the same session.
func owner(n Node) string {
	if strings.Contains(n.Path, "/_c_") {
		return n.Path
	}
	return n.Path + " " + session(n)
}

func session(n Node) string { return strconv.FormatInt(n.Owner, 16) }

// ends returns the Expires of a hold by a node.
func ends(n Node) time.Duration {
	if n.Owner == 0 {
		return -1 // it is not ephemeral
	}
	return n.Ends
}

// number returns the ten digits with which the server ends the path of a sequential node, or "".
func number(n Node) string {
	digits := n.Path[max(len(n.Path)-10, 0):]
	if len(digits) < 10 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits
}

// Client has the sessions of a process.
type Client struct {
	p *locktest.Process

	mu     sync.Mutex // held for moments only
	all    []*Sessions
	closed bool
}

// NewClient returns a client of p. The caller closes it, or embeds it in a [locktest.Client], whose
// Close it then is.
func NewClient(p *locktest.Process) *Client { return &Client{p: p} }

// ForLock returns the sessions for the lock of one thread. The world takes what they send outside of
// calls for renewals of the thread's hold on that lock.
func (c *Client) ForLock(name string) *Sessions {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Sessions{c: c, lock: name, number: len(c.all)}
	c.all = append(c.all, s)
	return s
}

// Close closes the sessions that are open. No session begins after it.
func (c *Client) Close() error {
	c.mu.Lock()
	all := c.all
	c.closed = true
	c.mu.Unlock()
	for _, s := range all {
		s.Close()
	}
	return nil
}

// Sessions are the sessions of one thread for one lock, of which one is open at a time.
type Sessions struct {
	c      *Client
	lock   string
	number int // among those of the client

	mu   sync.Mutex  // held for moments only
	open *connection // nil: none
}

// connection is that of a session that is open, or is being closed.
type connection struct {
	*zk.Conn
	closing atomic.Bool
}

// quiet is the logger of a session.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// Connect returns the connection of the session that is open. If none is open, it begins a session of
// this timeout, and told hears the events of the session. told may be nil. Close of s ends the session;
// do not call Close of the connection. When the client is closed, the error is zk.ErrClosing.
func (s *Sessions) Connect(timeout time.Duration, told zk.EventCallback) (*zk.Conn, error) {
	s.c.mu.Lock()
	closed := s.c.closed
	s.c.mu.Unlock()
	if closed {
		return nil, zk.ErrClosing
	}
	if conn := s.Conn(); conn != nil {
		return conn, nil
	}
	begun := &connection{}
	var err error
	p := s.c.p
	p.Serves(s.lock, func() {
		begun.Conn, _, err = zk.Connect([]string{p.Addr(0)}, timeout, zk.WithLogger(quiet{}), zk.WithLogInfo(false),
			zk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
				c, err := p.DialContext(context.Background(), network, addr)
				if err != nil {
					// A real dial takes time to fail. Meanwhile the caller hands its request over. Without the
					// yield it would race with the library, which then fails the requests that it has.
					p.Sim().Yield(s.number)
				}
				return socket{c, &begun.closing}, err
			}),
			zk.WithEventCallback(told))
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.open = begun
	s.mu.Unlock()
	return begun.Conn, nil
}

// Conn returns the connection of the session that is open, or nil.
func (s *Sessions) Conn() *zk.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return nil
	}
	return s.open.Conn
}

// Close ends the session that is open, if there is one.
func (s *Sessions) Close() {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	if open == nil || !open.closing.CompareAndSwap(false, true) {
		return
	}
	open.Conn.Close()
	s.mu.Lock()
	s.open = nil
	s.mu.Unlock()
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
