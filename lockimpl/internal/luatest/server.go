// Package luatest starts the servers on which tests of Lua scripts run.
package luatest

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// StartServer starts a server, such as redis-server, without persistence on a free
// loopback port, for the time of a test. Where there is none the test is skipped,
// or, with LOCKSTEP_REQUIRE=all, fails.
func StartServer(t *testing.T, program string) *redis.Client {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing := "no " + program + " to compare with: apt-get install " + program
		if os.Getenv("LOCKSTEP_REQUIRE") == "all" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	for range 3 { // somebody may take the port before Redis does
		if c := tryRedis(t, path); c != nil {
			return c
		}
	}
	t.Fatal(program + " did not start on any of three free ports")
	return nil
}

func tryRedis(t *testing.T, path string) *redis.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--daemonize", "no")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // ends when Redis does
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				for lines.Scan() {
				}
			}()
			c := redis.NewClient(&redis.Options{
				Addr: net.JoinHostPort("127.0.0.1", port), Protocol: 2, MaxRetries: -1, DisableIdentity: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() {
				_ = c.Close()
				_ = cmd.Process.Kill()
				<-drained
				_ = cmd.Wait()
				runtime.GC() // its timers are not for the bubbles
			})
			return c
		}
	}
	_ = cmd.Wait()
	return nil
}
