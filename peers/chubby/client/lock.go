package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockstep/peers/chubby/server"
)

var (
	// ErrBusy says that a try did not get the lock, and that nothing is left behind.
	ErrBusy = errors.New("chubby: the lock is busy")
	// ErrNotHeld says that the session does not have the lock.
	ErrNotHeld = errors.New("chubby: the lock is not held")
)

// ID is the name of the session.
func (s *Session) ID() string { return s.id }

// Open makes the file of a lock if there is none, with the lock-delay delay, a minute at most.
func (s *Session) Open(ctx context.Context, lock string, delay time.Duration) error {
	return s.done(ctx, server.Request{Do: server.Open, Lock: lock, Delay: delay})
}

// SetLockDelay sets how long a lock stays closed to others after it was lost by a failure.
func (s *Session) SetLockDelay(ctx context.Context, lock string, delay time.Duration) error {
	return s.done(ctx, server.Request{Do: server.SetLockDelay, Lock: lock, Delay: delay})
}

// Acquire waits until the session has the lock, and returns its generation. If ctx ends
// before, or the call fails, the session may have the lock.
func (s *Session) Acquire(ctx context.Context, lock string, shared bool) (generation uint64, err error) {
	return s.acquire(ctx, server.Request{Do: server.Acquire, Lock: lock, Shared: shared})
}

// TryAcquire is Acquire that does not wait. It returns ErrBusy if the session cannot have the lock
// now.
func (s *Session) TryAcquire(ctx context.Context, lock string, shared bool) (generation uint64, err error) {
	return s.acquire(ctx, server.Request{Do: server.Acquire, Lock: lock, Shared: shared, Try: true})
}

func (s *Session) acquire(ctx context.Context, q server.Request) (uint64, error) {
	s.mu.Lock()
	s.number++
	q.Session, q.Number = s.id, s.number
	s.mu.Unlock()
	reply, err := s.call(ctx, q, nil)
	switch {
	case err != nil:
		return 0, err
	case reply.Error == server.Busy:
		return 0, ErrBusy
	}
	return reply.Generation, failure(q, reply)
}

// Release gives up the hold with this generation. It returns ErrNotHeld if the session does not
// have it.
func (s *Session) Release(ctx context.Context, lock string, generation uint64) error {
	return s.done(ctx, server.Request{Do: server.Release, Lock: lock, Generation: generation})
}

// GetSequencer describes a lock that the session has, for others to check.
func (s *Session) GetSequencer(ctx context.Context, lock string) (server.Sequencer, error) {
	q := server.Request{Do: server.GetSequencer, Session: s.id, Lock: lock}
	reply, err := s.call(ctx, q, nil)
	if err == nil {
		err = failure(q, reply)
	}
	if err != nil {
		return server.Sequencer{}, err
	}
	return *reply.Sequencer, nil
}

// CheckSequencer reports whether the hold that the sequencer describes still exists.
func (s *Session) CheckSequencer(ctx context.Context, q server.Sequencer) (valid bool, err error) {
	reply, err := s.call(ctx, server.Request{Do: server.CheckSequencer, Sequencer: &q}, nil)
	return reply.Valid, err
}

// done makes a call whose reply only says that it is done.
func (s *Session) done(ctx context.Context, q server.Request) error {
	q.Session = s.id
	reply, err := s.call(ctx, q, nil)
	if err != nil {
		return err
	}
	return failure(q, reply)
}

// failure returns the error of a reply.
func failure(q server.Request, r server.Reply) error {
	switch r.Error {
	case "":
		return nil
	case server.NotHeld:
		return ErrNotHeld
	}
	return fmt.Errorf("chubby: %s of %s: %s", q.Do, q.Lock, r.Error)
}
