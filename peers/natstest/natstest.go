// Package natstest lets clients of github.com/nats-io/nats.go run in a world, whatever lock on the
// key-value store uses them. A subject of package locktest gets its server, its connections and its
// State from here.
//
// A connection that only dials with [locktest.Process.DialContext] does not run in a world. When it is
// lost, nats.go connects again while it holds a mutex for which its callers wait, and simulated time does
// not pass then. A [Client] makes new connections in place of lost ones.
package natstest

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"lockstep/locktest"
	"lockstep/peers/nats/server"
	"lockstep/sim"
)

// Bucket is a bucket of the key-value store.
type Bucket = server.Bucket

// Servers returns one server that has this bucket before clients connect: the real NATS, unmodified.
func Servers(bucket Bucket) locktest.Servers { return server.Servers(bucket) }

// Entry is the value of a key, with its revision and its end.
type Entry = server.Entry

// Get returns the entry of a key of the bucket; false: there is none. While the server is down, it
// returns the entry that the key had before.
func Get(s locktest.Snapshot, key string) (Entry, bool) {
	return sim.Streaming(s.Server(0)).(*server.Server).Entry(key)
}

// Value returns the State of a lock that is held while one key exists. A hold is known by the value of
// the key. key returns the key of a lock; nil: the name of the lock.
func Value(key func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	if key == nil {
		key = func(lock string) string { return lock }
	}
	return func(s locktest.Snapshot, lock string) *locktest.State {
		e, ok := Get(s, key(lock))
		if !ok {
			return nil
		}
		st := &locktest.State{Owner: e.Value, Expires: -1}
		if !e.Ends.IsZero() {
			st.Expires = s.Now() + time.Until(e.Ends)
		}
		return st
	}
}

// Client has the connections of a process.
type Client struct {
	p      *locktest.Process
	bucket string

	mu     sync.Mutex // held for moments only
	closed bool
	all    []*Connection
}

// NewClient returns a client of p for a bucket of this name. The caller closes it, or embeds it in a
// [locktest.Client], whose Close it then is.
func NewClient(p *locktest.Process, bucket string) *Client {
	return &Client{p: p, bucket: bucket}
}

// ForLock returns the connection for the lock of one thread. The world takes what it sends outside of
// calls for renewals of the thread's hold on that lock.
func (c *Client) ForLock(name string) *Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &Connection{client: c, lock: name, closed: c.closed}
	c.all = append(c.all, k)
	return k
}

// Close closes the connections. Calls of KeyValue then fail.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	all := c.all
	c.mu.Unlock()
	for _, k := range all {
		k.close()
	}
	return nil
}

// Connection is the connection of one thread for one lock. It is made when it is asked for, and again
// when it was lost.
type Connection struct {
	client *Client
	lock   string

	mu     sync.Mutex // held for moments only
	link   *link      // the newest one
	closed bool
}

// link is a connection of the client library, which does not reconnect by itself.
type link struct {
	p     *locktest.Process
	ready chan struct{} // closed when the rest is there
	nc    *nats.Conn
	kv    jetstream.KeyValue
	err   error

	mu     sync.Mutex // held for moments only
	socket net.Conn   // nil: not dialled yet
	over   bool       // no call waits for it any more
}

// Dial implements nats.CustomDialer.
func (k *link) Dial(network, addr string) (net.Conn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return nil, errGivenUp
	}
	c, err := k.p.DialContext(context.Background(), network, addr)
	k.socket = c
	return c, err
}

var errGivenUp = errors.New("nobody waits for the connection any more")

// giveUp ends a link, so that it sends nothing more for a call that is over.
func (k *link) giveUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	if k.socket != nil {
		_ = k.socket.Close()
	}
}

// connect begins a connection.
func (c *Connection) connect() *link {
	k := &link{p: c.client.p, ready: make(chan struct{})}
	go c.client.p.Serves(c.lock, func() {
		defer close(k.ready)
		if k.nc, k.err = nats.Connect("nats://"+c.client.p.Addr(0), nats.SetCustomDialer(k), nats.NoReconnect()); k.err != nil {
			return
		}
		js, err := jetstream.New(k.nc)
		if err == nil {
			k.kv, err = js.KeyValue(context.Background(), c.client.bucket)
		}
		if k.err = err; err != nil {
			k.nc.Close()
		}
	})
	return k
}

// ended reports whether a link can no longer be used.
func (k *link) ended() bool {
	select {
	case <-k.ready:
		return k.err != nil || k.nc.IsClosed()
	default:
		return false
	}
}

var errClosed = errors.New("the client is closed")

// KeyValue returns the bucket on a connection that is open. It waits for a new connection, until ctx
// ends, if there is none. So a lock calls it before each request, and does not keep the result.
func (c *Connection) KeyValue(ctx context.Context) (jetstream.KeyValue, error) {
	// Otherwise the select below would choose by chance between a ready connection and the end of
	// the call.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	if c.link == nil || c.link.ended() {
		c.link = c.connect()
	}
	k := c.link
	c.mu.Unlock()
	select {
	case <-k.ready:
		return k.kv, k.err
	case <-ctx.Done():
		k.giveUp()
		return nil, ctx.Err()
	}
}

// close ends the connection, and with it the requests under way.
func (c *Connection) close() {
	c.mu.Lock()
	c.closed = true
	k := c.link
	c.mu.Unlock()
	if k != nil {
		<-k.ready
		if k.nc != nil {
			k.nc.Close()
		}
	}
}
