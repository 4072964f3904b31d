// Package client is a client library for the cell of package server, after Burrows, The Chubby
// lock service for loosely-coupled distributed systems (OSDI 2006), section 2.8. There is no
// public one.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"lockstep/peers/chubby/server"
)

const (
	// Grace is the time for which the client tries to keep a session whose lease may be over. Calls
	// block meanwhile.
	Grace = 45 * time.Second
	// retry is how long the client waits before it asks the next replica.
	retry = 500 * time.Millisecond
	// Patience is how long a client in jeopardy waits for the answer of one replica.
	Patience = 2 * time.Second
)

// The ranks of goroutines that yield.
const (
	rankKeepAlive = iota
	rankCall
	rankCloseCall
	rankClose // the time for Close is over
)

// ErrExpired says that the session is over. Its locks are lost.
var ErrExpired = errors.New("chubby: the session has expired")

// ErrUnanswered is an ErrExpired of a call that had asked and had no answer. The cell may have done what
// the call asked for.
var ErrUnanswered = fmt.Errorf("%w, and the call had no answer", ErrExpired)

// Config says how a client reaches the replicas.
type Config struct {
	Replicas []string
	Dial     func(ctx context.Context, addr string) (net.Conn, error)
	// Wait lets a goroutine that a timer woke continue at an instant that no other session has.
	Wait func()
	// Yield lets everything else that can happen at this instant happen first. Goroutines of the process that
	// yield at one instant continue one by one, in the order of their ranks.
	Yield func(rank int)
	// Go starts the goroutine that keeps a session alive.
	Go func(func())
}

// Session is a session with the cell. It keeps itself alive until it is closed or expires.
type Session struct {
	cfg Config
	id  string
	// ctx ends with the session.
	ctx context.Context
	end context.CancelFunc
	// keeping ends when no further KeepAlive must be sent.
	keeping context.Context
	leave   context.CancelFunc

	mu       sync.Mutex // held for moments only; never over a call
	master   int        // the last known master
	epoch    uint64
	leaseEnd time.Time
	timer    *time.Timer   // of the jeopardy, and then of the end of the grace period
	due      time.Time     // when the timer fires
	then     func()        // what happens then; nil: it has happened
	jeopardy chan struct{} // closed when the lease may be over
	safe     chan struct{} // closed unless the session is in jeopardy
	calls    *line         // for all requests but KeepAlives
	asking   bool          // a request is on calls
	number   uint64        // of the last acquire
	closed   chan struct{} // closed when Close has ended; nil: it has not begun
	closing  error         // what Close returned
}

// line is a connection that carries one request at a time.
type line struct {
	net.Conn
	master int
}

// New opens a session. It tries until ctx ends.
func New(ctx context.Context, cfg Config) (*Session, error) {
	own, end := context.WithCancel(context.Background())
	s := &Session{cfg: cfg, ctx: own, end: end, jeopardy: make(chan struct{}), safe: make(chan struct{})}
	s.keeping, s.leave = context.WithCancel(own)
	close(s.safe)
	sent := time.Now()
	reply, err := s.call(ctx, server.Request{Do: server.OpenSession}, &sent)
	if err != nil {
		end()
		s.hangUp()
		return nil, err
	}
	s.id, s.epoch = reply.Session, reply.Epoch
	s.extend(sent.Add(reply.Held + reply.Lease))
	s.cfg.Go(s.keepAlive)
	return s, nil
}

// Jeopardy returns a channel that is closed when the lease of the session may be over. A holder
// that relies on a lock of the session must stop then. It learns later whether the session is safe,
// or has expired and so Done is closed. Once the session is safe, Jeopardy returns a new channel.
func (s *Session) Jeopardy() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jeopardy
}

// Done returns a channel that is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// extend gives the session a lease, and lets blocked calls continue.
func (s *Session) extend(end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || !end.After(time.Now()) {
		return
	}
	s.leaseEnd = end
	select {
	case <-s.jeopardy:
		s.jeopardy = make(chan struct{})
		close(s.safe)
	default:
	}
	s.after(end, s.endangerLocked)
}

// after lets f run at an instant, and cancels the function of an earlier call.
func (s *Session) after(at time.Time, f func()) {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.due, s.then = at, f
	s.timer = time.AfterFunc(time.Until(at), s.wake)
}

// wake lets a goroutine that a timer woke continue. Several timers of a session may fire at one instant,
// since the grace period is a multiple of the pause before a retry. The end of the lease or of the grace
// period comes first then, whichever of the goroutines does.
func (s *Session) wake() {
	s.cfg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.then; f != nil && s.ctx.Err() == nil && !time.Now().Before(s.due) {
		s.then = nil
		f()
	}
}

// endangerLocked begins the grace period. The caller holds s.mu.
func (s *Session) endangerLocked() {
	close(s.jeopardy)
	s.safe = make(chan struct{})
	s.hangUpLocked()
	s.after(s.leaseEnd.Add(Grace), s.overLocked)
}

// overLocked ends the session. The caller holds s.mu.
func (s *Session) overLocked() {
	if s.ctx.Err() != nil {
		return
	}
	s.end()
	if s.timer != nil {
		s.timer.Stop()
	}
	select {
	case <-s.jeopardy:
	default:
		close(s.jeopardy)
	}
	s.hangUpLocked()
}

func (s *Session) endSession() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overLocked()
}

// hangUp ends the connection for calls, so that a waiting call looks for the master again.
func (s *Session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangUpLocked()
}

func (s *Session) hangUpLocked() {
	if s.calls != nil {
		_ = s.calls.Close()
		s.calls = nil
	}
}

// keepAlive keeps the session alive until it is over or is being closed.
func (s *Session) keepAlive() {
	var l *line
	drop := func() {
		if l != nil {
			_ = l.Close()
			l = nil
		}
	}
	defer drop()
	lost := false // the last KeepAlive was not answered
	for s.keeping.Err() == nil {
		s.mu.Lock()
		q := server.Request{Do: server.KeepAlive, Session: s.id, Epoch: s.epoch, Lost: lost}
		until := s.leaseEnd
		s.mu.Unlock()
		if now := time.Now(); !until.After(now) {
			until = now.Add(Patience)
		}
		if l == nil {
			l = s.dial(s.keeping, rankKeepAlive)
		}
		if l == nil {
			s.pause(s.keeping)
			continue
		}
		sent, conn := time.Now(), l // drop changes l
		stop := context.AfterFunc(s.keeping, func() { _ = conn.Close() })
		_ = l.SetReadDeadline(until)
		reply, err := ask(l, q)
		stop()
		switch {
		case s.keeping.Err() != nil:
		case err != nil || reply.Error == server.Refused:
			lost = true
			from := l.master
			drop()
			s.tryNext(from)
			s.pause(s.keeping)
		case reply.Error == server.NotMaster:
			from := l.master
			drop()
			if !s.follow(from, reply.Master) {
				s.pause(s.keeping)
			}
		case reply.Error == server.WrongEpoch:
			s.mu.Lock()
			s.epoch = reply.Epoch
			s.mu.Unlock()
		case reply.Error != "":
			s.endSession()
		default:
			lost = false
			s.confirm(l.master)
			s.extend(sent.Add(reply.Held + reply.Lease))
		}
	}
}

// confirm notes which replica is the master. A call that waits for another replica looks for the
// master again.
func (s *Session) confirm(master int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.master = master
	if s.calls != nil && s.calls.master != master {
		s.hangUpLocked()
	}
}

// tryNext makes the client try the replica after the one that did not answer, unless the client has
// found the master meanwhile.
func (s *Session) tryNext(from int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.master == from {
		s.master = (s.master + 1) % len(s.cfg.Replicas)
	}
}

// follow makes the client try the replica that another replica names as the master. It reports
// false if that replica names none.
func (s *Session) follow(from int, addr string) bool {
	for i, replica := range s.cfg.Replicas {
		if replica == addr {
			s.mu.Lock()
			s.master = i
			s.mu.Unlock()
			return true
		}
	}
	s.tryNext(from)
	return false
}

// pause waits before another try.
func (s *Session) pause(ctx context.Context) {
	timer := time.NewTimer(retry)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.wake()
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// dial connects with the replica that the client takes for the master. If that cannot be reached, dial
// returns nil, and the client tries the next one from then on. Goroutines that dial at one instant try the
// same replica.
func (s *Session) dial(ctx context.Context, rank int) *line {
	s.mu.Lock()
	master := s.master
	s.mu.Unlock()
	conn, err := s.cfg.Dial(ctx, s.cfg.Replicas[master])
	if err != nil {
		s.cfg.Yield(rank)
		s.tryNext(master)
		return nil
	}
	return &line{conn, master}
}

// ask sends a request and waits for its reply.
func ask(l *line, q server.Request) (server.Reply, error) {
	if _, err := l.Write(server.Encode(q)); err != nil {
		return server.Reply{}, err
	}
	return server.ReadReply(l)
}

// call asks the master, until it answers, ctx ends, the session is over or somebody closes it. In
// jeopardy it blocks, unless it closes the session. It sets sent, unless that is nil, to the instant
// at which it sent the request that was answered.
func (s *Session) call(ctx context.Context, q server.Request, sent *time.Time) (server.Reply, error) {
	rank := rankCall
	if q.Do == server.CloseSession {
		rank = rankCloseCall
	}
	for tried := false; ; tried = true {
		s.mu.Lock()
		safe := s.safe
		s.mu.Unlock()
		if q.Do != server.CloseSession {
			select {
			case <-safe:
			case <-ctx.Done():
			case <-s.keeping.Done():
			}
		}
		switch {
		case ctx.Err() != nil:
			return server.Reply{}, context.Cause(ctx)
		case s.ctx.Err() == nil && (s.keeping.Err() == nil || q.Do == server.CloseSession):
		case tried:
			return server.Reply{}, ErrUnanswered
		default:
			return server.Reply{}, ErrExpired
		}
		l := s.line(ctx, rank)
		if l == nil {
			s.pause(ctx)
			continue
		}
		s.mu.Lock()
		q.Epoch = s.epoch
		s.mu.Unlock()
		if sent != nil {
			*sent = time.Now()
		}
		stop := context.AfterFunc(ctx, func() { _ = l.Close() })
		s.setAsking(true)
		reply, err := ask(l, q)
		s.setAsking(false)
		if !stop() {
			s.drop(l)
			continue // ctx has ended
		}
		switch {
		case err != nil:
			s.drop(l)
			if s.keeping.Err() == nil || q.Do == server.CloseSession { // else Close may have hung up, and asks the master next
				s.tryNext(l.master)
			}
			s.pause(ctx)
		case reply.Error == server.NotMaster:
			s.drop(l)
			if !s.follow(l.master, reply.Master) {
				s.pause(ctx)
			}
		case reply.Error == server.WrongEpoch:
			s.mu.Lock()
			s.epoch = max(s.epoch, reply.Epoch)
			s.mu.Unlock()
		case reply.Error == server.Refused:
			return reply, errors.New("chubby: the call was refused")
		case reply.Error == server.Expired:
			s.endSession()
			return reply, ErrExpired
		case reply.Error == server.NotHeld && tried && q.Do == server.Release:
			return server.Reply{}, nil // an earlier try gave it up
		default:
			return reply, nil
		}
	}
}

// line returns the connection for calls, or nil if the replica cannot be reached.
func (s *Session) line(ctx context.Context, rank int) *line {
	s.mu.Lock()
	l := s.calls
	s.mu.Unlock()
	if l != nil {
		return l
	}
	if l = s.dial(ctx, rank); l == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		_ = l.Close()
	}
	s.calls = l
	return l
}

func (s *Session) setAsking(asking bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = asking
}

// drop gives up a connection for calls.
func (s *Session) drop(l *line) {
	_ = l.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == l {
		s.calls = nil
	}
}

// Close gives up all locks of the session and ends it. Nothing keeps the session alive from then
// on, and a call that is under way returns ErrExpired. If the master does not confirm this within the
// time within, the session ends with its lease, and its locks are lost as by a failure. Another Close
// waits for the first.
func (s *Session) Close(within time.Duration) error {
	s.mu.Lock()
	first := s.closed == nil
	if first {
		s.closed = make(chan struct{})
		s.leave()
		if s.asking {
			s.hangUpLocked()
		}
	}
	s.mu.Unlock()
	if !first {
		<-s.closed
		return s.closing
	}
	defer close(s.closed)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.AfterFunc(within, func() {
		s.cfg.Wait()
		s.cfg.Yield(rankClose)
		cancel()
	})
	defer timer.Stop()
	_, s.closing = s.call(ctx, server.Request{Do: server.CloseSession, Session: s.id}, nil)
	s.endSession()
	return s.closing
}
