package planted

import (
	"bytes"
	"net"
)

// rewriting replaces some of the bytes that are written by as many others.
type rewriting struct {
	net.Conn
	within, old, new string // only in writes that contain within
}

// Write implements net.Conn.
func (c rewriting) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.within)) {
		b = bytes.ReplaceAll(b, []byte(c.old), []byte(c.new))
	}
	return c.Conn.Write(b)
}

// deaf drops some of the messages that are published to it.
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
