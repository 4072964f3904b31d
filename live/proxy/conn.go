package proxy

import (
	"bufio"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection of a client.
type Conn struct {
	ID int // counts the connections of the proxy from 1

	proxy          *Proxy
	client, server net.Conn
	out            chan parcel
	gone           chan struct{} // closed when the connection has ended
	once           sync.Once
	shut           atomic.Bool   // the client has closed it
	served         chan struct{} // gets a value when a reply came, if there is room

	mu       sync.Mutex
	queue    []*Message                 // the requests that have no reply yet
	channels map[string]map[string]bool // the channels that the client listens to, by kind of subscription
	listens  bool                       // the client has subscribed
	stream   bool                       // the server sends a stream, and no more replies
	severed  bool                       // see Proxy.Sever
	requests int
	askedAt  time.Time // when the present request went to the server, if there is a Settle
	settles  time.Time // when its answer counts as complete, unless more bytes come
}

// parcel has bytes for the client, and their fate.
type parcel struct {
	raw  []byte
	fate Fate
}

// ClientAddr is the address from which the client connected.
func (c *Conn) ClientAddr() string { return c.client.RemoteAddr().String() }

// Reset ends the connection at both sides, at the client's side with a TCP reset.
func (c *Conn) Reset() {
	if tcp, ok := c.client.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	c.close()
}

func (c *Conn) close() {
	c.once.Do(func() { close(c.gone) })
	_ = c.client.Close()
	_ = c.server.Close()
}

// Gone returns a channel that is closed when the connection has ended.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// unanswered tells the handler that a request will get no reply.
func (c *Conn) unanswered(m *Message) {
	if m.forged != nil {
		m.forged.done(false, time.Now())
		return
	}
	c.proxy.o.Handler.Unanswered(m)
}

// carryRequests carries requests to the server.
func (c *Conn) carryRequests() {
	defer c.close()
	in := bufio.NewReaderSize(c.client, 1<<16)
	for {
		raw, words, err := ReadRequest(in)
		if err != nil {
			c.shut.Store(true)
			c.finish()
			return
		}
		m := &Message{Conn: c, Words: words, Raw: raw, Index: c.requests}
		c.requests++
		f := c.proxy.o.Handler.Request(m)
		switch {
		case f.Cut:
			c.Reset()
			return
		case f.Drop:
			continue
		case f.Error != "":
			m.forged = &f
		}
		c.mu.Lock()
		select {
		case <-c.gone:
			c.mu.Unlock()
			c.unanswered(m)
			return
		default:
		}
		if c.severed {
			c.mu.Unlock()
			c.unanswered(m)
			continue
		}
		m.need = c.replies(m)
		if m.Is("PSYNC") || m.Is("MONITOR") {
			c.stream = true
		}
		stream := c.stream
		if !stream {
			c.queue = append(c.queue, m)
		}
		c.mu.Unlock()
		switch {
		case stream:
			c.unanswered(m)
		case m.forged != nil:
			c.flush()
			continue
		}
		if _, err := c.server.Write(raw); err != nil && !c.isSevered() {
			return
		}
	}
}

func (c *Conn) isSevered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.severed
}

// finish waits, after the client has closed the connection, for the replies to the requests that
// the server still has.
func (c *Conn) finish() {
	t := time.NewTimer(c.proxy.o.Patience)
	defer t.Stop()
	for {
		c.mu.Lock()
		left := len(c.queue)
		c.mu.Unlock()
		if left == 0 || c.proxy.o.Patience == 0 {
			return
		}
		select {
		case <-c.served:
		case <-c.gone:
			return
		case <-t.C:
			return
		}
	}
}

// replies returns how many replies a request gets. Guarded by mu.
func (c *Conn) replies(m *Message) int {
	kind, begins := listening(m.Words[0])
	if kind == "" || m.forged != nil {
		return 1
	}
	names := m.Words[1:]
	if c.channels[kind] == nil {
		c.channels[kind] = map[string]bool{}
	}
	n := max(1, len(names))
	switch {
	case begins:
		c.listens = true
		for _, name := range names {
			c.channels[kind][name] = true
		}
	case len(names) == 0:
		n = max(1, len(c.channels[kind]))
		clear(c.channels[kind])
	default:
		for _, name := range names {
			delete(c.channels[kind], name)
		}
	}
	return n
}

// listening returns the kind of subscription that a command begins or ends; or "" if it does
// neither.
func listening(command string) (kind string, begins bool) {
	command = strings.ToUpper(command)
	for _, kind := range []string{"", "P", "S"} {
		switch command {
		case kind + "SUBSCRIBE":
			return kind + "SUBSCRIBE", true
		case kind + "UNSUBSCRIBE":
			return kind + "SUBSCRIBE", false
		}
	}
	return "", false
}

// readReplies reads the server.
func (c *Conn) readReplies() {
	defer c.close()
	in := bufio.NewReaderSize(c.server, 1<<16)
	for {
		raw, err := ReadReply(in)
		if err != nil {
			if c.isSevered() {
				<-c.gone
			}
			return
		}
		if !c.take(raw) {
			return
		}
	}
}

// take handles a value that the server sent. It reports false when the connection is to end.
func (c *Conn) take(raw []byte) bool {
	c.mu.Lock()
	stream := c.stream
	channel, push := pushed(raw)
	push = push && (c.listens || raw[0] == '>') // the reply of a script may look like a push
	var m *Message
	if !push && !stream && len(c.queue) > 0 {
		m = c.queue[0]
		m.reply = append(m.reply, raw...)
		if m.need--; m.need > 0 {
			c.mu.Unlock()
			return true
		}
		c.queue = c.queue[1:]
	}
	c.mu.Unlock()
	var f Fate
	switch {
	case m != nil:
		raw = m.reply
		f = c.proxy.o.Handler.Answered(m, raw)
	case push:
		f = c.proxy.o.Handler.Pushed(c, channel, raw)
	}
	ok := c.send(raw, f)
	c.flush()
	select {
	case c.served <- struct{}{}:
	default:
	}
	return ok
}

// send applies a fate to bytes for the client, and queues them for carry. It reports false when
// the connection is to end.
func (c *Conn) send(raw []byte, f Fate) bool {
	switch {
	case f.Cut:
		f.done(false, time.Now())
		c.Reset()
		return false
	case f.Drop:
		f.done(false, time.Now())
		return true
	case f.Error != "":
		raw = []byte("-" + f.Error + "\r\n")
	case f.Instead != nil:
		raw = f.Instead
	}
	select {
	case c.out <- parcel{raw, f}:
		return true
	case <-c.gone:
		f.done(false, time.Now())
		return false
	}
}

// carry writes the parcels to the client in their order, each when it is due.
func (c *Conn) carry() {
	defer c.close()
	for {
		select {
		case x := <-c.out:
			x.fate = x.fate.final()
			if !c.wait(x.fate) {
				x.fate.done(false, time.Now())
				c.drain()
				return
			}
			switch {
			case x.fate.Cut:
				x.fate.done(false, time.Now())
				c.Reset()
				c.drain()
				return
			case x.fate.Close:
				c.drain()
				return
			case x.fate.Drop:
				x.fate.done(false, time.Now())
				continue
			}
			if c.shut.Load() { // the client no longer reads
				x.fate.done(false, time.Now())
				continue
			}
			at := time.Now()
			_, err := c.client.Write(x.raw)
			x.fate.done(err == nil, at)
			if err != nil {
				c.drain()
				return
			}
		case <-c.gone:
			c.drain()
			return
		}
	}
}

// drain ends the connection, and gives up its parcels.
func (c *Conn) drain() {
	c.close()
	for {
		select {
		case x := <-c.out:
			x.fate.done(false, time.Now())
		default:
			return
		}
	}
}

// wait waits until a message may go on. It reports false when the connection has ended.
func (c *Conn) wait(f Fate) bool {
	if d := time.Until(f.NotBefore); d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.gone:
			return false
		}
	}
	if f.Until != nil {
		select {
		case <-f.Until:
		case <-c.gone:
			return false
		}
	}
	return true
}

// flush sends the forged replies whose turn it is.
func (c *Conn) flush() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 || c.queue[0].forged == nil {
			c.mu.Unlock()
			return
		}
		m := c.queue[0]
		c.queue = slices.Delete(c.queue, 0, 1)
		c.mu.Unlock()
		if !c.send(nil, *m.forged) {
			return
		}
	}
}
