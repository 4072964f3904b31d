package server

import (
	"io"
	"net"
	"os/exec"

	"lockstep/peers/external"
)

// launch starts the real program at an address, and returns when it serves.
func launch(path, addr string, log io.Writer, start func(*exec.Cmd) error) (*external.Process, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	// It stays the user that it is: the kernel forgets to end a process with its parent when the
	// process becomes another user.
	cmd := exec.Command(path, "-l", "127.0.0.1", "-p", port, "-U", "0", "-u", "root", "-o", "no_lru_maintainer")
	return external.Launch(cmd, log, start, func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}
