// Package chubby judges a lock like that of Chubby: Burrows, The Chubby lock service for
// loosely-coupled distributed systems (OSDI 2006). Server and client are written after the paper, since
// neither is public.
//
// Each thread has a session of its own for each lock, as if it were a client. The holder no longer
// relies on the lock when its session is in jeopardy: the paper tells the application to quiesce then
// (section 2.8).
//
// The promises of the lock, with the sections of the paper: one client holds the lock in exclusive mode
// (2.4); a session ends when its lease of 12 s and the grace period of 45 s are over without a
// KeepAlive, and its locks end with it (2.8); no other client can have a lock that was lost by a
// failure during its lock-delay, a minute at most (2.4); the generation in a sequencer grows with each
// change from free to held, and a resource checks it (2.4); a fail-over keeps sessions and locks (2.9).
package chubby

import (
	"context"
	"errors"
	"net"
	"time"

	"lockstep/locktest"
	"lockstep/peers/chubby/client"
	"lockstep/peers/chubby/server"
)

// Lock has the longest lock-delay, a minute. No other client can have the lock of a failed holder
// before the minute is over.
var Lock = subject("chubby", "Chubby's kind: sessions, sequencers and a lock-delay of a minute", server.MaxLockDelay, server.Servers())

// WithoutDelay is the lock without a lock-delay.
var WithoutDelay = subject("chubby-without-delay", "Chubby's kind: sessions and sequencers, without a lock-delay", 0, server.Servers())

// recovery is the longest time that a fail-over takes for a client: two elections, the leases of
// the sessions for which the new master waits in vain, the lease after which a client looks for
// another master, and the time to ask one replica after the other.
const recovery = 2*server.Election + 2*server.SessionLease + 5*client.Patience

// closing is the time for which a handle tries to close a session if it does not know whether the
// session holds the lock. After that it leaves the session to its lease.
const closing = 2 * time.Second

// subject describes the lock. A hold ends by itself with its session. The paper promises no
// order among waiters.
func subject(name, about string, delay time.Duration, servers locktest.Servers) locktest.Subject {
	return locktest.Subject{
		Name: name, About: about, OnlySimulated: true, Servers: servers, Lease: server.SessionLease, Renewed: true, RenewEvery: server.SessionLease - server.AnswerBefore, Recovery: recovery, State: state,
		Policy: "Each thread has a session per lock, which goes on after an unlock, and which is closed after an acquire that failed or an unlock whose outcome is unknown.",
		Open: func(p *locktest.Process) (locktest.Client, error) {
			return &cell{p: p, delay: delay, closed: make(chan struct{})}, nil
		},
	}
}

// state returns the state that a majority of the replicas has agreed upon. An owner is a session.
func state(s locktest.Snapshot, lock string) *locktest.State {
	h := server.Held(s.Server(0), lock)
	if h.Session == "" && !h.Delayed {
		return nil
	}
	return &locktest.State{Owner: h.Session, Closed: h.Delayed, Expires: h.Ends, Token: int64(h.Generation)}
}

// cell is the client of a process.
type cell struct {
	p      *locktest.Process
	delay  time.Duration
	closed chan struct{} // closed when the process closes its client
}

// errClosed is the error of a call after the process has closed its client. Nothing was done.
var errClosed = errors.New("chubby: the client is closed")

func (c *cell) Lock(name string) (locktest.Lock, error) { return &lock{c: c, name: name}, nil }

func (c *cell) Close() error {
	close(c.closed)
	return nil
}

// isClosed reports whether the process has closed its client.
func (c *cell) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

type lock struct {
	c          *cell
	name       string
	session    *client.Session // nil: there is none
	generation uint64          // 0: not held, as far as the handle knows
}

// begin opens a session if there is none.
func (l *lock) begin(ctx context.Context) error {
	if l.c.isClosed() {
		return errClosed
	}
	if l.session != nil {
		select {
		case <-l.session.Done():
			l.session = nil
		default:
			return nil
		}
	}
	p := l.c.p
	keeps := func(f func()) { p.Keeps(l.name, func() { go f() }) }
	cfg := client.Config{Wait: p.Sim().Instant().Wait, Yield: p.Sim().Yield, Go: keeps, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		return p.DialContext(ctx, "tcp", addr)
	}}
	for i := range l.c.servers() {
		cfg.Replicas = append(cfg.Replicas, p.Addr(i))
	}
	s, err := client.New(ctx, cfg)
	if err != nil {
		return err
	}
	l.session = s
	keeps(func() {
		if l.c.isClosed() { // while the session was opened
			p.Sim().Yield(0) // the thread goes on first
		}
		select {
		case <-l.c.closed:
			_ = s.Close(closing)
		case <-s.Done():
		}
	})
	return l.session.Open(ctx, l.name, l.c.delay)
}

// servers is the number of replicas.
func (*cell) servers() int { return server.Servers().Count() }

// holds reports whether the handle has the lock, as far as the handle knows.
func (l *lock) holds() bool {
	if l.session == nil || l.generation == 0 {
		return false
	}
	select {
	case <-l.session.Done():
		return false
	default:
		return true
	}
}

// acquire takes the lock as take does. If the session may have the lock although its caller does
// not know, acquire closes it.
func (l *lock) acquire(ctx context.Context, take func(*client.Session) (uint64, error)) error {
	err := l.begin(ctx)
	if err == nil {
		l.generation, err = take(l.session)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrBusy):
		return locktest.ErrBusy
	case errors.Is(err, errClosed): // an earlier session, if there is one, is being closed
	case l.session != nil:
		l.close()
	}
	return err
}

// close closes the session. It reports whether the session is certainly closed, and so holds
// nothing.
func (l *lock) close() bool {
	s := l.session
	l.session, l.generation = nil, 0
	return s.Close(closing) == nil
}

// Lock implements locktest.Lock. If the handle already has the lock, Lock waits only for the end of
// the session: an acquire that fails closes the session, and would so give the lock up.
func (l *lock) Lock(ctx context.Context) error {
	if l.holds() {
		select {
		case <-l.session.Done():
		case <-ctx.Done():
			return locktest.ErrBusy
		}
	}
	return l.acquire(ctx, func(s *client.Session) (uint64, error) { return s.Acquire(ctx, l.name, false) })
}

// TryLock implements locktest.TryLocker.
func (l *lock) TryLock(ctx context.Context) (bool, error) {
	if l.holds() {
		return false, nil
	}
	err := l.acquire(ctx, func(s *client.Session) (uint64, error) { return s.TryAcquire(ctx, l.name, false) })
	return err == nil, err
}

func (l *lock) Unlock(ctx context.Context) error {
	if l.session == nil || l.generation == 0 {
		return locktest.ErrNotHeld
	}
	err := l.session.Release(ctx, l.name, l.generation)
	switch {
	case err == nil:
		l.generation = 0
	case errors.Is(err, client.ErrUnanswered):
		l.generation = 0
	case errors.Is(err, client.ErrExpired) && l.c.isClosed() && !l.close():
		return err // the client closes the session, and the master may not have heard of that
	case errors.Is(err, client.ErrNotHeld), errors.Is(err, client.ErrExpired):
		l.generation = 0
		return locktest.ErrNotHeld
	case l.close():
		return nil // the session has given it up
	}
	return err
}

// Lost implements locktest.Watched.
func (l *lock) Lost() <-chan struct{} { return l.session.Jeopardy() }

// Token implements locktest.Fenced: the generation of the lock.
func (l *lock) Token() (uint64, bool) { return l.generation, l.generation > 0 }
