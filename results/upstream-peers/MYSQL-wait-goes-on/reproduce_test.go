package lockreport

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
)

// A wait for a user lock that was given up goes on.
//
// A gives up its wait. The driver closes the connection, and the server goes on with the statement.
//
// The rest of this file is what the test needs to open the library, to play the story and to check it.
func TestMYSQLWaitGoesOn(t *testing.T) {
	for try := range 3 {
		t.Run(fmt.Sprint(try+1), func(t *testing.T) {
			s := NewStory(t, userLock, 1)
			s.Client("a")
			s.Client("b")
			s.Thread("a/1", func(t *Thread) {
				t.At(2 * time.Second)
				t.LockWithin("x", 1500*time.Millisecond)
			})
			s.Thread("b/1", func(t *Thread) {
				t.At(500 * time.Millisecond)
				t.Lock("x")
				t.Sleep(8 * time.Second)
				t.Unlock("x")
			})
			s.Play(8 * time.Second)
			s.AssertNoGhost("x", "a/1", userLockPlaces)
		})
	}
}

// userLock is GET_LOCK and RELEASE_LOCK on a connection of its own.
var userLock = Library{
	Serve: func(t *testing.T) Server {
		return StartProgram(t, "mariadbd", "mariadb-server", func(dir, port string) *exec.Cmd {
			data := "--datadir=" + filepath.Join(dir, "data")
			install := exec.Command("mariadb-install-db", "--no-defaults", "--user=root", data, "--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=4M")
			if out, err := install.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v; the test did not work", out, err)
			}
			return exec.Command("mariadbd", "--no-defaults", "--user=root", data, "--innodb-log-file-size=4M", "--skip-name-resolve",
				"--bind-address=127.0.0.1", "--port="+port, "--socket="+filepath.Join(dir, "socket"), "--pid-file="+filepath.Join(dir, "pid"))
		})
	},
	Open: func(addrs []string) (func(name string) Lock, error) {
		db, err := openDB(addrs[0])
		return func(name string) Lock { return &session{db: db, name: name} }, err
	},
}

func openDB(addr string) (*sql.DB, error) {
	return sql.Open("mysql", "root@tcp("+addr+")/?interpolateParams=true")
}

type session struct {
	db   *sql.DB
	name string
	conn *sql.Conn
}

func (s *session) Lock(ctx context.Context) error { return s.acquire(ctx, 60) }

func (s *session) acquire(ctx context.Context, seconds int) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	var got bool
	if err := c.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", s.name, seconds).Scan(&got); err != nil {
		return err // the driver has closed the connection
	}
	if !got {
		_ = c.Close()
		return ErrBusy
	}
	s.conn = c
	return nil
}

func (s *session) Unlock(ctx context.Context) error {
	if s.conn == nil {
		return ErrNotHeld
	}
	defer func() { _ = s.conn.Close() }()
	var released bool
	if err := s.conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", s.name).Scan(&released); err != nil {
		return err
	}
	if !released {
		return ErrNotHeld
	}
	return nil
}

// userLockPlaces counts the connections that have a user lock or wait for one. There is one lock.
func userLockPlaces(addr, lock string) (n int, err error) {
	db, err := openDB(addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	err = db.QueryRow("SELECT (IS_USED_LOCK(?) IS NOT NULL) + COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'", lock).Scan(&n)
	return n, err
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

// LockWithin waits for a lock for so long at most.
func (t *Thread) LockWithin(name string, wait time.Duration) bool {
	return t.acquire(name, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		return t.lock(name).Lock(ctx)
	})
}

// Unlock gives a lock up.
func (t *Thread) Unlock(name string) bool {
	return t.call("unlock", name, t.lock(name).Unlock).err == nil
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

// AssertNoGhost fails if the server keeps more places for a lock than threads have it or wait for it, for a whole second.
// A thread has returned from its last call and does not have the lock.
func (s *Story) AssertNoGhost(lock, thread string, places func(addr, lock string) (int, error)) {
	s.t.Helper()
	var n int
	var in []string
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		var err error
		if n, err = places(s.servers[0].Addr(), lock); err != nil {
			s.t.Fatalf("%v; the test did not work", err)
		}
		if in = s.interested(lock); n <= len(in) || slices.Contains(in, thread) {
			return
		}
	}
	s.t.Errorf("at %v the server has %d places for %s, but %s has returned, and the threads that have %s or wait for it are %q", s.now(), n, lock, thread, lock, in)
}

// interested returns the threads that have a lock or wait for it.
func (s *Story) interested(lock string) (names []string) {
	now := s.now()
	for _, h := range s.holds(lock) {
		if h.from <= now && now < h.to {
			names = append(names, h.thread)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.threads {
		if n := len(t.calls); n > 0 && !t.calls[n-1].over && t.calls[n-1].lock == lock && !slices.Contains(names, t.name) {
			names = append(names, t.name)
		}
	}
	return names
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
