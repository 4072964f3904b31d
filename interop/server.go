package interop

import (
	"bufio"
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
	path, err := exec.LookPath("redis-server")
	if err != nil {
		Missing(t, "redis-server", "redis-server")
	}
	for range 3 { // somebody may take the port before Redis does
		if s := tryServer(t, path, args); s != nil {
			return s
		}
	}
	t.Fatal("redis-server did not start on any of three free ports; run it by hand to see why")
	return nil
}

func tryServer(t testing.TB, path string, args []string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
		"--databases", strconv.Itoa(databases), "--daemonize", "no",
		"--client-output-buffer-limit", "pubsub 0 0 0", // a slow observer misses nothing
	}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
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
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			<-drained
			_ = cmd.Wait()
		})
		return &Server{Addr: addr}
	}
	_ = cmd.Wait()
	return nil
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
