package gostory

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

// served has the port of a process that is a server for a test here.
const served = "LOCKSTEP_GOSTORY_PORT"

// TestServer is that server.
func TestServer(t *testing.T) {
	port := os.Getenv(served)
	if port == "" {
		t.Skip("n/a: another test starts it")
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatal(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
}

// A program that starts again has its folder, or a new one.
func TestAProgramStartsAgainWithItsDataOrWithout(t *testing.T) {
	var dirs []string
	p := StartProgram(t, os.Args[0], "go", func(dir, port string) *exec.Cmd {
		dirs = append(dirs, dir)
		cmd := exec.Command(os.Args[0], "-test.run=^TestServer$")
		cmd.Env = append(os.Environ(), served+"="+port)
		return cmd
	})
	p.Restart(true)
	p.Restart(false)
	if len(dirs) != 3 || dirs[0] != dirs[1] || dirs[1] == dirs[2] {
		t.Errorf("the folders were %v", dirs)
	}
}

// A test whose program is missing is skipped.
func TestATestNeedsItsProgram(t *testing.T) {
	skipped := false
	t.Run("", func(t *testing.T) {
		t.Cleanup(func() { skipped = t.Skipped() })
		StartProgram(t, "no-such-program", "a package", nil)
	})
	if !skipped {
		t.Error("it was not skipped")
	}
}
