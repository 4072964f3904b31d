package redis

import (
	"bufio"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2/proto"
	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/sim"
)

// bufferSize is less than the default of 4 KiB. A run makes dozens of connections and
// answers little on each.
const bufferSize = 512

// conn is the server's side of a client's connection. It is a Peer of miniredis.
type conn struct {
	id      sim.ConnID
	peer    *mserver.Peer
	pushing *pushing
	command command // the last command that was executed

	subscribes bool
	shards     []string     // the sharded channels with a subscription of this connection, in order
	multi      *transaction // nil outside of MULTI and EXEC
	watches    bool         // a key is watched
	database   int          // the number of the database that the connection has selected
	seen       int64        // the number of writes up to the connection's last command
	waits      *wait        // the WAIT that blocks the connection, or nil
	blocked    *blocked     // the command that waits for a key, or nil
	tracks     *tracks      // the tracking of keys for the connection, or nil if it is off

	mu  sync.Mutex
	buf []byte // the bytes that miniredis wrote and take has not returned
	// awaited is set while execute waits for a reply, which comes in buf.
	awaited bool
}

// pushing lists the connections to which miniredis wrote without a request. It writes from the
// scheduler and from a goroutine per subscriber.
type pushing struct {
	some atomic.Bool // the list is not empty
	mu   sync.Mutex
	list []*conn
}

// Open is sim.Parts.Open.
func (s *Server) Open(id sim.ConnID) {
	c := &conn{id: id, pushing: &s.pushing}
	c.peer = mserver.NewPeer(bufio.NewWriterSize(c, bufferSize))
	s.conns[id] = c
}

// Write implements io.Writer for the connection's Peer.
func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	fresh := len(c.buf) == 0 && !c.awaited
	c.buf = append(c.buf, b...)
	c.mu.Unlock()
	if fresh {
		c.pushing.mu.Lock()
		c.pushing.list = append(c.pushing.list, c)
		c.pushing.some.Store(true)
		c.pushing.mu.Unlock()
	}
	return len(b), nil
}

// await announces that miniredis writes a reply and that take will return it.
func (c *conn) await() {
	c.mu.Lock()
	c.awaited = true
	c.mu.Unlock()
}

// take returns the bytes that miniredis wrote since the last take.
func (c *conn) take() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.buf
	c.buf, c.awaited = nil, false
	return b
}

// Pushed is sim.Parts.Pushed.
func (s *Server) Pushed(list []sim.Push) []sim.Push {
	if !s.pushing.some.Load() {
		return list
	}
	s.pushing.mu.Lock()
	defer s.pushing.mu.Unlock()
	for _, c := range s.pushing.list {
		list = c.pushed(list)
	}
	s.pushing.list = s.pushing.list[:0]
	s.pushing.some.Store(false)
	return list
}

// pushed appends the messages that miniredis wrote to list.
func (c *conn) pushed(list []sim.Push) []sim.Push {
	for text := string(c.take()); text != ""; {
		if channel, rest, ok := readPush(text); ok {
			list = append(list, sim.Push{Conn: c.id, Channel: channel, Bytes: []byte(text[:len(text)-len(rest)])})
			text = rest
			continue
		}
		words, rest, ok := readCommand(text)
		if !ok { // some messages hold more than texts, such as the end of a subscription
			raw, err := proto.Read(bufio.NewReader(strings.NewReader(text)))
			if err != nil {
				break
			}
			rest = text[len(raw):]
			words, _ = proto.ReadStrings(raw)
		}
		if len(words) >= 3 {
			list = append(list, sim.Push{Conn: c.id, Channel: words[len(words)-2], Bytes: []byte(text[:len(text)-len(rest)])})
		}
		text = rest
	}
	return list
}
