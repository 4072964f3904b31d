package gostory

import (
	"net"
	"os/exec"
	"testing"
	"time"
)

// A Program is a server that runs in a process of its own.
type Program struct {
	t       *testing.T
	addr    string
	dir     string // of its data
	command func(dir, port string) *exec.Cmd
	running *exec.Cmd
}

// StartProgram starts a server that ends with the test. It skips the test if the machine lacks the program.
func StartProgram(t *testing.T, program, pkg string, command func(dir, port string) *exec.Cmd) *Program {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%v; install %s", err, pkg)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	p := &Program{t: t, addr: l.Addr().String(), dir: t.TempDir(), command: command}
	p.start()
	t.Cleanup(p.end)
	return p
}

// Addr is the address of the program.
func (p *Program) Addr() string { return p.addr }

func (p *Program) start() {
	_, port, _ := net.SplitHostPort(p.addr)
	p.running = p.command(p.dir, port)
	if err := p.running.Start(); err != nil {
		p.t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", p.addr)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(begun) > time.Minute {
			p.t.Fatalf("%v; the test did not work", err)
		}
	}
}

func (p *Program) end() {
	_ = p.running.Process.Kill()
	_ = p.running.Wait()
}

// Restart ends the program and starts it again, with the data that it had or without.
func (p *Program) Restart(keepData bool) {
	p.end()
	if !keepData {
		p.dir = p.t.TempDir()
	}
	p.start()
}
