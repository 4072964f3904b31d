//go:build linux

package topology

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Front listens at the address by which the other servers know a server. It carries bytes between
// them and the server. On a connection that replicates, it delays each piece of bytes by the lag,
// in both directions. All other connections pass without a delay.
type Front struct {
	l      net.Listener
	target string
	all    sync.WaitGroup

	mu       sync.Mutex
	min, max time.Duration
	open     map[*carriage]bool
	closed   bool // it accepts no connection
	over     bool
}

// newFront begins to listen on a free port, for a server at the address target.
func newFront(target string) (*Front, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &Front{l: l, target: target, open: map[*carriage]bool{}}
	f.all.Go(f.accept)
	return f, nil
}

// Addr is the address of the front.
func (f *Front) Addr() string { return f.l.Addr().String() }

// lag delays the replication from now on. The delay of each piece of bytes is drawn between least
// and most.
func (f *Front) lag(least, most time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.min, f.max = least, most
}

// cut ends all connections, and accepts none until join. What is under way is lost.
func (f *Front) cut() {
	f.mu.Lock()
	f.closed = true
	var open []*carriage
	for c := range f.open {
		open = append(open, c)
	}
	f.mu.Unlock()
	for _, c := range open {
		c.end()
		<-c.over // nothing more arrives
	}
}

// join accepts connections again.
func (f *Front) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = false
}

// close ends the front.
func (f *Front) close() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	_ = f.l.Close()
	f.cut()
	f.all.Wait()
}

func (f *Front) accept() {
	for {
		client, err := f.l.Accept()
		if err != nil {
			return
		}
		f.all.Go(func() { f.carry(client) })
	}
}

// carry carries the bytes of a connection until it ends.
func (f *Front) carry(client net.Conn) {
	f.mu.Lock()
	closed := f.closed || f.over
	f.mu.Unlock()
	if closed {
		_ = client.Close()
		return
	}
	server, err := net.Dial("tcp", f.target)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &carriage{front: f, client: client, server: server, gone: make(chan struct{}), over: make(chan struct{})}
	f.mu.Lock()
	if f.closed || f.over {
		f.mu.Unlock()
		c.end()
		return
	}
	f.open[c] = true
	f.mu.Unlock()
	var ways sync.WaitGroup
	ways.Go(func() { c.pass(client, server) })
	ways.Go(func() { c.pass(server, client) })
	ways.Wait()
	f.mu.Lock()
	delete(f.open, c)
	f.mu.Unlock()
	close(c.over)
}

// carriage is a connection through a front.
type carriage struct {
	front          *Front
	client, server net.Conn
	once           sync.Once
	gone           chan struct{} // closed to end the connection
	over           chan struct{} // closed when nothing more passes

	mu         sync.Mutex
	replicates bool
}

func (c *carriage) end() {
	c.once.Do(func() { close(c.gone) })
	_ = c.client.Close()
	_ = c.server.Close()
}

// piece is a piece of bytes that goes on at an instant.
type piece struct {
	at    time.Time
	bytes []byte
}

// psync is the command by which a replica asks for replication.
var psync = []byte("PSYNC")

// pass carries the bytes of one direction until one of the two ends closes.
func (c *carriage) pass(from, to net.Conn) {
	line := make(chan piece, 4096)
	var writer sync.WaitGroup
	writer.Go(func() { c.write(to, line) })
	defer writer.Wait()
	defer close(line)
	buffer := make([]byte, 1<<16)
	var last time.Time
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			b := bytes.Clone(buffer[:n])
			at := time.Now().Add(c.delay(b))
			if at.Before(last) { // the pieces keep their order
				at = last
			}
			last = at
			select {
			case line <- piece{at, b}:
			case <-c.gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// delay draws the delay of a piece.
func (c *carriage) delay(b []byte) time.Duration {
	c.mu.Lock()
	if !c.replicates && bytes.Contains(b, psync) {
		c.replicates = true
	}
	replicates := c.replicates
	c.mu.Unlock()
	if !replicates {
		return 0
	}
	f := c.front
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.max <= f.min {
		return f.min
	}
	return f.min + rand.N(f.max-f.min+1)
}

// write writes the pieces when their time has come, and then ends the connection.
func (c *carriage) write(to net.Conn, line <-chan piece) {
	defer c.end()
	for p := range line {
		if d := time.Until(p.at); d > 0 {
			t := time.NewTimer(d)
			select {
			case <-t.C:
			case <-c.gone:
				t.Stop()
				return
			}
		}
		if _, err := to.Write(p.bytes); err != nil {
			return
		}
	}
}
