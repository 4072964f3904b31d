package proxy

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A Settle says when a request counts as answered if the proxy does not know the protocol.
type Settle struct {
	// First is how long the server may take to send the first bytes of an answer. Bytes that come
	// later are a push.
	First time.Duration
	// Quiet is the time without bytes that ends an answer.
	Quiet time.Duration
	// Most is how long an answer may take altogether.
	Most time.Duration
	// Stands, if not nil, reports whether the server is paused. While it is, the time of First does
	// not end.
	Stands func() bool
}

// frameMost is the greatest number of bytes in a frame.
const frameMost = 1 << 26

// Frame returns the frame of bytes that a client writes at once. A proxy with a Settle reads
// frames: the number of bytes in four bytes, most significant first, and then the bytes.
func Frame(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b))), b...)
}

// ReadFrame reads what Frame wrote.
func ReadFrame(in *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > frameMost {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	raw := make([]byte, n)
	_, err := io.ReadFull(in, raw)
	return raw, err
}

// upBytes carries frames to the server, one at a time: the handler lets the next one pass when
// Answered has told it of the answer to the one before.
func (c *Conn) upBytes() {
	defer c.close()
	in := bufio.NewReaderSize(c.client, 1<<16)
	for {
		raw, err := ReadFrame(in)
		if err != nil {
			c.shut.Store(true)
			c.finish()
			return
		}
		m := &Message{Conn: c, Raw: raw, Index: c.requests}
		c.requests++
		f := c.proxy.o.Handler.Request(m)
		switch {
		case f.Cut:
			c.Reset()
			return
		case f.Drop:
			continue
		}
		c.mu.Lock()
		gone := c.severed
		select {
		case <-c.gone:
			gone = true
		default:
		}
		if gone {
			c.mu.Unlock()
			if !f.Free {
				c.unanswered(m)
			}
			continue
		}
		if !f.Free {
			c.queue = append(c.queue, m)
			c.askedAt = time.Now()
			c.settles = c.askedAt.Add(c.proxy.o.Settle.First)
			_ = c.server.SetReadDeadline(c.settles)
		}
		c.mu.Unlock()
		if _, err := c.server.Write(raw); err != nil && !c.isSevered() {
			return
		}
	}
}

// downBytes reads the server. The bytes that come between a request and the instant at which its
// answer has settled are the reply. All other bytes are a push.
func (c *Conn) downBytes() {
	buf := make([]byte, 1<<16)
	for {
		n, err := c.server.Read(buf)
		now := time.Now()
		var m *Message
		c.mu.Lock()
		if len(c.queue) > 0 {
			m = c.queue[0]
		}
		ended := err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
		if m != nil && n > 0 {
			m.reply = append(m.reply, buf[:n]...)
			m.Came = now
			c.settles = earlier(now.Add(c.proxy.o.Settle.Quiet), c.askedAt.Add(c.proxy.o.Settle.Most))
		}
		settled := m != nil && (ended || !now.Before(c.settles))
		if stands := c.proxy.o.Settle.Stands; settled && !ended && len(m.reply) == 0 && stands != nil && stands() {
			settled, c.settles = false, now.Add(c.proxy.o.Settle.First)
		}
		switch {
		case settled:
			c.queue = c.queue[1:]
			_ = c.server.SetReadDeadline(time.Time{})
		case m != nil:
			_ = c.server.SetReadDeadline(c.settles)
		default:
			_ = c.server.SetReadDeadline(time.Time{})
		}
		severed := c.severed
		c.mu.Unlock()
		ok := true
		switch {
		case settled && ended && len(m.reply) == 0:
			c.unanswered(m)
		case settled:
			if f := c.proxy.o.Handler.Answered(m, m.reply); len(m.reply) > 0 {
				ok = c.send(m.reply, f)
			}
			select {
			case c.served <- struct{}{}:
			default:
			}
		case m == nil && n > 0:
			raw := append([]byte(nil), buf[:n]...)
			ok = c.send(raw, c.proxy.o.Handler.Pushed(c, "", raw))
		}
		switch {
		case ended && severed:
			<-c.gone
			return
		case ended:
			c.send(nil, Fate{Close: true}) // the client first gets the parcels that are on their way
			<-c.gone
			return
		case !ok:
			c.close()
			return
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
