package lockreport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	rs "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// With WithSetNXOnExtend an extension sets the keys of a hold that is lost.
//
// The lease of A ends. B has the lock and gives it up, and then A extends its own. The extension sets the keys
// that are not there, and A is not told that another had the lock.
//
// The rest of this file is what the test needs to open the library, to play the story and to check it.
func TestREDSYNCSetOnExtend(t *testing.T) {
	for try := range 3 {
		t.Run(fmt.Sprint(try+1), func(t *testing.T) {
			s := NewStory(t, redsyncWith(redsync.WithSetNXOnExtend()), 5)
			s.Client("a")
			s.Client("b")
			s.Thread("a/1", func(t *Thread) {
				t.Lock("x")
				t.At(10 * time.Second)
				t.Extend("x")
				t.Sleep(1 * time.Second)
				t.Unlock("x")
			})
			s.Thread("b/1", func(t *Thread) {
				t.At(8500 * time.Millisecond)
				t.Lock("x")
				t.Sleep(500 * time.Millisecond)
				t.Unlock("x")
			})
			s.Play(14 * time.Second)
			s.AssertCallFails("a/1", 2)
		})
	}
}

// redsyncWith is redsync's mutex with options.
func redsyncWith(options ...redsync.Option) Library {
	return Library{
		Serve: ServeRedis,
		Open: func(addrs []string) (func(name string) Lock, error) {
			var pools []rs.Pool
			for _, addr := range addrs {
				pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})))
			}
			r := redsync.New(pools...)
			return func(name string) Lock { return mutex{r.NewMutex(name, options...)} }, nil
		},
		Lease: 8 * time.Second,
	}
}

type mutex struct{ *redsync.Mutex }

func (m mutex) Lock(ctx context.Context) error { return busy(m.LockContext(ctx)) }

func (m mutex) Unlock(ctx context.Context) error {
	_, err := m.UnlockContext(ctx)
	if errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return ErrNotHeld
	}
	return err
}

func (m mutex) Extend(ctx context.Context) error {
	ok, err := m.ExtendContext(ctx)
	if !ok && err == nil {
		return ErrNotHeld
	}
	return err
}

// busy translates the answer of servers that another has the lock.
func busy(err error) error {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return ErrBusy
	}
	return err
}

// ServeRedis starts redis-server, which keeps no data.
func ServeRedis(t *testing.T) Server {
	return StartProgram(t, "redis-server", "redis-server", func(_, port string) *exec.Cmd {
		return exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	})
}

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
}

// A Lock is the lock of one name, for one thread. A Lock whose holder is told of a loss also has a method Lost,
// and one that can be prolonged has a method Extend.
type Lock interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error // ErrNotHeld: the caller does not have it
}

// ErrBusy is the answer of a lock that another has.
var ErrBusy = errors.New("busy")

// ErrNotHeld is the answer of a lock that the caller does not have.
var ErrNotHeld = errors.New("not held")

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

// Sleep waits.
func (t *Thread) Sleep(d time.Duration) { time.Sleep(d) }

// Lock waits for a lock, and reports whether it was granted.
func (t *Thread) Lock(name string) bool { return t.acquire(name, t.lock(name).Lock) }

// Unlock gives a lock up.
func (t *Thread) Unlock(name string) bool {
	return t.call("unlock", name, t.lock(name).Unlock).err == nil
}

// Extend asks for more time.
func (t *Thread) Extend(name string) bool {
	l := t.lock(name).(interface {
		Extend(ctx context.Context) error
	})
	return t.call("renew", name, l.Extend).err == nil
}

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

// AssertCallFails fails if the n-th call of a thread, counted from 1, succeeds.
func (s *Story) AssertCallFails(thread string, n int) {
	s.t.Helper()
	if c := s.nth(thread, n); c.over && c.err == nil {
		s.t.Errorf("call %d of %s (%v) succeeded", n, thread, c)
	}
}

// nth returns the n-th call of a thread, counted from 1. A call that is under way has its end now.
func (s *Story) nth(thread string, n int) call {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.threads {
		if t.name == thread && len(t.calls) >= n {
			c := *t.calls[n-1]
			if !c.over {
				c.to = s.since()
			}
			return c
		}
	}
	s.t.Fatalf("%s has not made call %d; the test did not work", thread, n)
	return call{}
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
