package gostory

import (
	"net"
	"testing"
	"time"
)

// Await waits until somebody accepts connections at an address.
func Await(t *testing.T, addr string) {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}
