package interop

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Server is a redis-server of its own on loopback, without persistence. It
// ends with the test.
type Server struct {
	Addr string // host:port
}

// databases of a Server: enough for every party of a test.
const databases = 64

// StartServer starts a redis-server on a free port; args come after its own.
// Where there is none the test is skipped, see Missing.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	s, stop, err := NewServer(t.TempDir(), args...)
	if errors.Is(err, exec.ErrNotFound) {
		Missing(t, "redis-server", "redis-server")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// NewServer starts a redis-server on a free port, which works in dir and runs
// until stop is called; args come after its own. Without one in the path the
// error is exec.ErrNotFound.
func NewServer(dir string, args ...string) (s *Server, stop func(), err error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, nil, err
	}
	for range 3 { // somebody may take the port before Redis does
		if s, stop, err = tryServer(path, dir, args); s != nil || err != nil {
			return s, stop, err
		}
	}
	return nil, nil, errors.New("redis-server did not start on any of three free ports; run it by hand to see why")
}

// tryServer starts a redis-server; no server and no error: it ended at once.
func tryServer(path, dir string, args []string) (s *Server, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(path, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
		"--databases", strconv.Itoa(databases), "--daemonize", "no",
		"--client-output-buffer-limit", "pubsub 0 0 0", // a slow observer misses nothing
	}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // ends when Redis does
		if !strings.Contains(lines.Text(), "Ready to accept connections") {
			continue
		}
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			for lines.Scan() {
			}
		}()
		return &Server{Addr: addr}, func() {
			_ = cmd.Process.Kill()
			<-drained
			_ = cmd.Wait()
		}, nil
	}
	_ = cmd.Wait()
	return nil, nil, nil
}

// Version is what redis-server says of itself, such as 7.0.15.
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

// Missing skips the test for want of a program, and says how to install it;
// with LOCKSTEP_REQUIRE=all it fails.
func Missing(t testing.TB, program, debianPackage string) {
	t.Helper()
	text := fmt.Sprintf("no %s here: apt-get install %s", program, debianPackage)
	if os.Getenv("LOCKSTEP_REQUIRE") == "all" {
		t.Fatal(text)
	}
	t.Skip(text)
}
