package lockreport

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// A client that has seen more than the server never comes back.
//
// The server loses its data. The client of B has seen more than the server now has, is refused, and connects
// again every second. Its caller is never told.
//
// The rest of this file is what the test needs to open the library, to play the story and to check it.
func TestZKServerBehind(t *testing.T) {
	for try := range 3 {
		t.Run(fmt.Sprint(try+1), func(t *testing.T) {
			s := NewStory(t, zkClosing, 1)
			s.Client("a")
			s.Client("b")
			s.Thread("a/1", func(t *Thread) {
				t.Lock("x")
			})
			s.Thread("b/1", func(t *Thread) {
				t.At(500 * time.Millisecond)
				t.Lock("x")
			})
			s.Restart(3*time.Second, false)
			s.Play(20 * time.Second)
			s.AssertWaiterIsServed("x", "b/1", 11700*time.Millisecond)
		})
	}
}

// zkClosing is the lock of zk.NewLock for a caller that closes the session of 10 s after a Lock that failed.
var zkClosing = zkWith(true)

func zkWith(closing bool) Library {
	return Library{
		Serve: func(t *testing.T) Server {
			p := StartProgram(t, "java", "openjdk-17-jre-headless and zookeeper", func(dir, port string) *exec.Cmd {
				config := filepath.Join(dir, "zoo.cfg")
				text := fmt.Sprintf("tickTime=2000\ndataDir=%s/data\nclientPortAddress=127.0.0.1\nclientPort=%s\nadmin.enableServer=false\n", dir, port)
				if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return exec.Command("java", "-cp", "/usr/share/java/zookeeper.jar", "org.apache.zookeeper.server.ZooKeeperServerMain", config)
			})
			for begun := time.Now(); !zkServes(p.Addr()); time.Sleep(50 * time.Millisecond) {
				if time.Since(begun) > time.Minute {
					t.Fatal("the server is not ready; the test did not work")
				}
			}
			return p
		},
		Open: func(addrs []string) (func(name string) Lock, error) {
			begun, lost := make(chan struct{}), make(chan struct{})
			begin, lose := sync.OnceFunc(func() { close(begun) }), sync.OnceFunc(func() { close(lost) })
			c, events, err := zk.Connect(addrs, 10*time.Second, zk.WithLogger(quiet{}))
			if err != nil {
				return nil, err
			}
			go func() {
				had := false
				for e := range events {
					switch {
					case e.State == zk.StateHasSession:
						had = true
						begin()
					case e.State == zk.StateDisconnected && had:
						lose()
					}
				}
			}()
			<-begun
			return func(name string) Lock { return &node{c: c, name: name, closing: closing, lost: lost} }, nil
		},
	}
}

// zkServes reports whether a server serves. It accepts connections before, and a client that connects then waits for 67 s.
func zkServes(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(c, "srvr")
	text, _ := io.ReadAll(c)
	return strings.Contains(string(text), "Mode:")
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

type node struct {
	c       *zk.Conn
	name    string
	closing bool
	lost    chan struct{}
	lock    *zk.Lock
}

func (n *node) Lock(ctx context.Context) error {
	n.lock = zk.NewLock(n.c, "/"+n.name, zk.WorldACL(zk.PermAll))
	done := make(chan error, 1)
	go func() { done <- n.lock.Lock() }() // it takes no context
	select {
	case err := <-done:
		if err != nil && n.closing {
			n.c.Close()
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *node) Lost() <-chan struct{} { return n.lost }

// A Library is the lock that a story plays.
type Library struct {
	// Serve starts a server, which ends with the test.
	Serve func(t *testing.T) Server
	// Open opens a client of the servers at these addresses, and returns what makes its locks.
	Open func(addrs []string) (func(name string) Lock, error)
	// Lease is the time after which a hold ends that nobody renews; 0: the library renews holds.
	Lease time.Duration
}

// A Server is a program that the test starts.
type Server interface {
	Addr() string
	// Restart ends the program and starts it again at its address, with its data or without.
	Restart(keepData bool)
}

// A Lock is the lock of one name, for one thread. A Lock whose holder is told of a loss also has a method Lost,
// and one that can be prolonged has a method Extend.
type Lock interface {
	Lock(ctx context.Context) error
}

// A Story is some clients of some servers, and what their threads do. Instants are since its start.
type Story struct {
	t       *testing.T
	library Library
	servers []Server
	clients map[string]func(name string) Lock
	threads []*Thread
	through func(client string, server int, addr string) string // nil: clients connect to the servers themselves

	mu    sync.Mutex // guards the rest, the calls of all threads, and rules
	begun time.Time
}

// NewStory starts the servers of a story.
func NewStory(t *testing.T, library Library, servers int) *Story {
	s := &Story{t: t, library: library, clients: map[string]func(string) Lock{}, begun: time.Now()}
	for range servers {
		s.servers = append(s.servers, library.Serve(t))
	}
	return s
}

// Client opens a client.
func (s *Story) Client(name string) {
	s.t.Helper()
	var addrs []string
	for i, x := range s.servers {
		addr := x.Addr()
		if s.through != nil {
			addr = s.through(name, i+1, addr)
		}
		addrs = append(addrs, addr)
	}
	var err error
	if s.clients[name], err = s.library.Open(addrs); err != nil {
		s.t.Fatalf("client %s: %v; the test did not work", name, err)
	}
}

// Thread adds a thread, such as a/1, which is the first of client a. do is what it does.
func (s *Story) Thread(name string, do func(t *Thread)) {
	s.threads = append(s.threads, &Thread{s: s, name: name, do: do, locks: map[string]Lock{}})
}

// Play plays the story until all threads have ended, or for so long.
func (s *Story) Play(length time.Duration) {
	s.mu.Lock()
	s.begun = time.Now()
	s.mu.Unlock()
	var threads sync.WaitGroup
	for _, t := range s.threads {
		threads.Go(func() { t.do(t) })
	}
	done := make(chan struct{})
	go func() {
		threads.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(length):
	}
}

// now is the time since the start.
func (s *Story) now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since()
}

// since is now for a caller that has mu.
func (s *Story) since() time.Duration { return time.Since(s.begun).Round(time.Millisecond) }

// A Thread makes one call after the other.
type Thread struct {
	s     *Story
	name  string
	do    func(t *Thread)
	locks map[string]Lock
	// Story.mu guards the rest.
	calls  []*call
	cancel context.CancelFunc // ends the context of the call under way
}

// client is the name of the client of a thread.
func (t *Thread) client() string {
	name, _, _ := strings.Cut(t.name, "/")
	return name
}

// call is a call of the library.
type call struct {
	role string // acquire, unlock or renew
	lock string
	from time.Duration
	to   time.Duration
	over bool          // false: it is under way
	lost time.Duration // when the holder was told that it has lost the lock; 0: it was not
	err  error
}

func (c call) String() string {
	return fmt.Sprintf("%s of %s from %v to %v", c.role, c.lock, c.from, c.to)
}

// At waits for an instant.
func (t *Thread) At(d time.Duration) { time.Sleep(d - t.s.now()) }

// Lock waits for a lock, and reports whether it was granted.
func (t *Thread) Lock(name string) bool { return t.acquire(name, t.lock(name).Lock) }

// lock returns what the thread has of a lock.
func (t *Thread) lock(name string) Lock {
	if t.locks[name] == nil {
		t.locks[name] = t.s.clients[t.client()](name)
	}
	return t.locks[name]
}

func (t *Thread) acquire(name string, ask func(ctx context.Context) error) bool {
	c := t.call("acquire", name, ask)
	if l, ok := t.lock(name).(interface{ Lost() <-chan struct{} }); ok && c.err == nil {
		lost := l.Lost()
		go func() {
			<-lost
			t.s.mu.Lock()
			defer t.s.mu.Unlock()
			c.lost = t.s.since()
		}()
	}
	return c.err == nil
}

// call makes a call.
func (t *Thread) call(role, lock string, ask func(ctx context.Context) error) *call {
	ctx, cancel := context.WithCancel(t.s.t.Context())
	defer cancel()
	c := &call{role: role, lock: lock, from: t.s.now()}
	t.s.mu.Lock()
	t.calls, t.cancel = append(t.calls, c), cancel
	t.s.mu.Unlock()
	err := ask(ctx)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	c.to, c.err, c.over = t.s.since(), err, true
	return c
}

// hold is a time in which a thread believes that it has a lock.
type hold struct {
	thread string
	from   time.Duration
	to     time.Duration
}

// holds returns all holds of a lock. A hold goes from a call that succeeds to the next unlock, to the end of the lease,
// or to the instant at which the holder is told of a loss. A hold that goes on has its end in the future.
func (s *Story) holds(lock string) (all []hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const never = time.Hour
	for _, t := range s.threads {
		end := func(until time.Duration) {
			if n := len(all); n > 0 && all[n-1].thread == t.name {
				all[n-1].to = min(all[n-1].to, until)
			}
		}
		for _, c := range t.calls {
			switch {
			case c.lock != lock:
			case c.role == "unlock":
				end(c.from)
			case c.over && c.err == nil:
				end(c.to) // another hold begins
				all = append(all, hold{thread: t.name, from: c.to, to: never})
				if s.library.Lease > 0 {
					end(c.from + s.library.Lease)
				}
				if c.lost > 0 {
					end(c.lost)
				}
			}
		}
	}
	return all
}

// AssertWaiterIsServed fails if a thread waits for longer than the bound while nobody believes to have the lock.
func (s *Story) AssertWaiterIsServed(lock, thread string, bound time.Duration) {
	s.t.Helper()
	holds, now := s.holds(lock), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.threads {
		for _, c := range t.calls {
			if t.name != thread || c.role != "acquire" || c.lock != lock {
				continue
			}
			from, to := c.from, c.to
			if !c.over {
				to = now
			}
			for _, h := range holds {
				if h.from < to {
					from = max(from, h.to)
				}
			}
			if to-from > bound {
				s.t.Errorf("%s waited for %s from %v to %v, and nobody believed to have it", thread, lock, from, to)
			}
		}
	}
}

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

// Restart restarts servers, counted from 1; none: all.
func (s *Story) Restart(at time.Duration, keepData bool, servers ...int) {
	s.Thread("", func(t *Thread) {
		t.At(at)
		for i, x := range s.servers {
			if len(servers) == 0 || slices.Contains(servers, i+1) {
				x.Restart(keepData)
			}
		}
	})
}
