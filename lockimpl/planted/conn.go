package planted

import (
	"bytes"
	"net"
)

// rewriting writes other bytes than it is given, as many.
type rewriting struct {
	net.Conn
	of, old, new string // only in what contains of
}

// Write implements net.Conn.
func (c rewriting) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.of)) {
		b = bytes.ReplaceAll(b, []byte(c.old), []byte(c.new))
	}
	return c.Conn.Write(b)
}

// deaf does not hear some of the messages that are published to it.
type deaf struct {
	net.Conn
	hears func(n int) bool // the n-th message of the client, from 1
	heard *int
}

// published begins a message to a subscriber.
var published = []byte("*3\r\n$7\r\nmessage\r\n")

// Read implements net.Conn.
func (c deaf) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !bytes.HasPrefix(b[:n], published) {
			return n, err
		}
		*c.heard++
		if c.hears(*c.heard) {
			return n, nil
		}
	}
}
