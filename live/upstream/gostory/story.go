package gostory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Library is the lock that a story plays.
type Library struct {
	// Serve starts a server, which ends with the test.
	Serve func(t *testing.T) Server
	// Open opens a client of the servers at these addresses, and returns what makes its locks.
	Open func(addrs []string) (func(name string) Lock, error)
	// Lease is the time after which a hold ends that nobody renews; 0: the library renews holds.
	Lease time.Duration

	// The following are nil if no story needs them. Protocol is that of the servers. Refuse answers a request with an
	// error. Places counts the places that the server keeps for a lock. TimeToLive returns the time after which
	// the server ends the hold of a lock. Delete removes the keys that match a glob, as an operator does.
	Protocol   Protocol
	Refuse     func(text string) func(m *Message) bool
	Places     func(addr, lock string) (int, error)
	TimeToLive func(addr, lock string) (time.Duration, error)
	Delete     func(addr, glob string) error
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
	TryLock(ctx context.Context) error // ErrBusy: another has it
	Unlock(ctx context.Context) error  // ErrNotHeld: the caller does not have it
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

// Before reports whether an instant is to come.
func (t *Thread) Before(d time.Duration) bool { return t.s.now() < d }

// Sleep waits.
func (t *Thread) Sleep(d time.Duration) { time.Sleep(d) }

// Lock waits for a lock, and reports whether it was granted.
func (t *Thread) Lock(name string) bool { return t.acquire(name, t.lock(name).Lock) }

// TryLock asks for a lock once.
func (t *Thread) TryLock(name string) bool { return t.acquire(name, t.lock(name).TryLock) }

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

// Extend asks for more time.
func (t *Thread) Extend(name string) bool {
	l := t.lock(name).(interface {
		Extend(ctx context.Context) error
	})
	return t.call("renew", name, l.Extend).err == nil
}

// Interrupt ends the context of the call that is under way in another thread.
func (t *Thread) Interrupt(name string) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, other := range t.s.threads {
		if other.name == name && other.cancel != nil {
			other.cancel()
		}
	}
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
