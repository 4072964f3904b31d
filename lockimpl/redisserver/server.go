// Package redisserver starts real servers, for tests of locks and for
// measurements of them.
package redisserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Server is a server of its own on loopback, without persistence.
type Server struct {
	Addr string // host:port
}

// Start starts a server, such as redis-server, on a free port, for the time of a test; args come
// after its own. Without the program the test is skipped, see Missing.
func Start(t testing.TB, program string, args ...string) *Server {
	t.Helper()
	s, stop, err := New(program, t.TempDir(), args...)
	if errors.Is(err, exec.ErrNotFound) {
		Missing(t, program, program)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// New starts a server on a free port, which works in dir and runs until stop is
// called; args come after its own. Without the program in the path the error is
// exec.ErrNotFound.
func New(program, dir string, args ...string) (s *Server, stop func(), err error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, nil, err
	}
	for range 3 { // another program may take the port before Redis does
		if s, stop, err = try(path, dir, args); s != nil || err != nil {
			return s, stop, err
		}
	}
	return nil, nil, fmt.Errorf("%s did not start on any of three free ports; run it by hand to see why", program)
}

// try starts a server on a free port; it returns neither a server nor an error if the server ended
// at once.
func try(path, dir string, args []string) (s *Server, stop func(), err error) {
	addr, err := FreeAddr()
	if err != nil {
		return nil, nil, err
	}
	cmd, over, err := Launch(path, dir, addr, io.Discard, (*exec.Cmd).Start, args...)
	if cmd == nil || err != nil {
		return nil, nil, err
	}
	return &Server{Addr: addr}, func() {
		_ = cmd.Process.Kill()
		<-over
	}, nil
}

// FreeAddr returns an address on loopback whose port was free a moment ago.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Launch runs a server at an address, which works in dir, and returns when it serves. It
// writes what the server says to log; args come after its own. start starts the command. The
// channel is closed when the process has ended. Launch returns no command and no error if the
// server ended at once.
func Launch(path, dir, addr string, log io.Writer, start func(*exec.Cmd) error, args ...string) (cmd *exec.Cmd, over <-chan struct{}, err error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command(path, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir, "--daemonize", "no",
		"--client-output-buffer-limit", "pubsub 0 0 0", // a slow observer misses nothing
	}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := start(cmd); err != nil {
		return nil, nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // ends with Redis
		fmt.Fprintln(log, lines.Text())
		if !strings.Contains(lines.Text(), "Ready to accept connections") {
			continue
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for lines.Scan() {
				fmt.Fprintln(log, lines.Text())
			}
			_ = cmd.Wait()
		}()
		return cmd, ended, nil
	}
	_ = cmd.Wait()
	return nil, nil, nil
}

// Version is the server's version as it reports it, such as 7.0.15.
func (s *Server) Version() (string, error) {
	c, err := net.DialTimeout("tcp", s.Addr, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if _, err := fmt.Fprint(c, "INFO server\r\n"); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "redis_version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", fmt.Errorf("%s does not tell its version: %w", s.Addr, lines.Err())
}

// Missing skips the test since a program is missing, and says how to install it. With
// LOCKSTEP_REQUIRE=all it fails the test.
func Missing(t testing.TB, program, debianPackage string) {
	t.Helper()
	text := fmt.Sprintf("no %s here: apt-get install %s", program, debianPackage)
	if os.Getenv("LOCKSTEP_REQUIRE") == "all" {
		t.Fatal(text)
	}
	t.Skip(text)
}
