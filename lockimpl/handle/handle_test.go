package handle_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/lockimpl"
	"lockstep/lockimpl/bare"
	"lockstep/lockimpl/handle"
)

var (
	background = context.Background()
	errRefused = errors.New("refused")
)

// unused is the methods of a lock that handles do not call.
type unused = lockimpl.Lock

// server is a lock in memory that takes the place of a lock on a server.
type server struct {
	unused
	owner   lockimpl.Owner // 0: the lock is free
	levels  int
	owners  lockimpl.Owner
	lease   time.Duration   // of the last acquire
	held    context.Context // of the present hold
	end     context.CancelCauseFunc
	fail    []error // errors of the next calls of Lock and Unlock; a call that gets ErrUnknownOutcome still runs
	unlocks []lockimpl.Owner
	blind   error // the error of HoldContext

	abandoned []lockimpl.Owner
}

func (s *server) Abandon(_ context.Context, o lockimpl.Owner) { s.abandoned = append(s.abandoned, o) }

func (s *server) Name() string { return "orders" }

func (s *server) NewOwner() lockimpl.Owner { s.owners--; return s.owners }

func (s *server) next(ctx context.Context, run func()) error {
	var err error
	if len(s.fail) > 0 {
		err, s.fail = s.fail[0], s.fail[1:]
	}
	if ctx.Err() != nil {
		err = errors.Join(lockimpl.ErrUnknownOutcome, context.Cause(ctx))
	}
	if err == nil || errors.Is(err, lockimpl.ErrUnknownOutcome) {
		run()
	}
	return err
}

func (s *server) take(o lockimpl.Owner, lease time.Duration) {
	s.owner, s.levels, s.lease = o, 1, lease
	s.held, s.end = context.WithCancelCause(background)
}

func (s *server) Lock(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
	if !opt.Interruptible {
		return errors.New("a context does not end the wait")
	}
	for s.owner != 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
	return s.next(ctx, func() { s.take(o, opt.Lease) })
}

func (s *server) TryLock(ctx context.Context, o lockimpl.Owner) (bool, error) {
	return s.TryLockTimed(ctx, o, lockimpl.TryOptions{})
}

func (s *server) TryLockTimed(_ context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	if s.owner != 0 {
		return false, nil
	}
	s.take(o, opt.Lease)
	return true, nil
}

func (s *server) Unlock(ctx context.Context, o lockimpl.Owner) (release lockimpl.Release, err error) {
	s.unlocks = append(s.unlocks, o)
	gone := s.owner != o
	err = s.next(ctx, func() {
		if gone {
			return
		}
		if s.levels--; s.levels > 0 {
			release = lockimpl.StillHeld
			return
		}
		release, s.owner = lockimpl.Released, 0
		s.end(context.Canceled)
	})
	if err == nil && gone {
		err = lockimpl.ErrNotHeld
	}
	return release, err
}

func (s *server) HoldContext(parent context.Context, o lockimpl.Owner) (context.Context, error) {
	if s.blind != nil {
		return nil, s.blind
	}
	if s.owner != o || o == 0 {
		return nil, lockimpl.ErrNotHeld
	}
	ctx, cancel := context.WithCancelCause(parent)
	held := s.held
	context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	return ctx, nil
}

// lose ends the hold without the owner's doing.
func (s *server) lose() { s.owner = 0; s.end(lockimpl.ErrHoldLost) }

func lockOf(t *testing.T, s *server) *handle.Lock {
	t.Helper()
	l, err := handle.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func acquire(t *testing.T, l *handle.Lock) *handle.Hold {
	t.Helper()
	h, err := l.Acquire(background)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// wraps checks that err wraps the wanted errors, and none of the others.
func wraps(t *testing.T, rule string, err error, want ...error) {
	t.Helper()
	if (err != nil) != (len(want) > 0) {
		t.Errorf("%s: %v, want %v", rule, err, want)
	}
	for _, e := range []error{lockimpl.ErrBusy, lockimpl.ErrReleased, lockimpl.ErrNotHeld, lockimpl.ErrHoldLost, lockimpl.ErrUnknownOutcome, lockimpl.ErrClosed, lockimpl.ErrInvalid, errRefused, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, e) != slices.Contains(want, e) {
			t.Errorf("%s: %v is %q: %v", rule, err, e, errors.Is(err, e))
		}
	}
}

func TestEachHoldHasAnOwnerOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		l := lockOf(t, s)
		h := acquire(t, l)
		first := s.owner
		_, err := l.TryAcquire(background)
		wraps(t, "the same goroutine tries again", err, lockimpl.ErrBusy)
		ctx, cancel := context.WithTimeout(background, 5*time.Second)
		defer cancel()
		_, err = l.Acquire(ctx)
		wraps(t, "it waits for itself", err, context.DeadlineExceeded)
		wraps(t, "it is released", h.Release(background))
		next, err := l.TryAcquire(background, handle.WithLease(time.Minute))
		wraps(t, "it is free", err)
		if s.owner == first || s.lease != time.Minute {
			t.Errorf("owner %d after %d, lease %v", s.owner, first, s.lease)
		}
		wraps(t, "the old handle", h.Release(background), lockimpl.ErrNotHeld, lockimpl.ErrReleased)
		wraps(t, "the new handle", next.Release(background))
	})
}

func TestTheContextOfAHoldSaysWhyItEnded(t *testing.T) {
	errParent := errors.New("the parent's")
	for rule, c := range map[string]struct {
		end  func(*server, *handle.Hold, context.CancelCauseFunc)
		want error
	}{
		"released":         {func(_ *server, h *handle.Hold, _ context.CancelCauseFunc) { _ = h.Release(background) }, lockimpl.ErrReleased},
		"lost":             {func(s *server, _ *handle.Hold, _ context.CancelCauseFunc) { s.lose() }, lockimpl.ErrHoldLost},
		"client closed":    {func(s *server, _ *handle.Hold, _ context.CancelCauseFunc) { s.end(lockimpl.ErrClosed) }, lockimpl.ErrClosed},
		"the parent ended": {func(_ *server, _ *handle.Hold, end context.CancelCauseFunc) { end(errParent) }, errParent},
		"a release fails": {func(s *server, h *handle.Hold, _ context.CancelCauseFunc) {
			s.fail = []error{errRefused}
			_ = h.Release(background)
		}, lockimpl.ErrReleased},
		"not ended": {func(*server, *handle.Hold, context.CancelCauseFunc) {}, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				wait, stop := context.WithCancel(background)
				h, err := lockOf(t, s).Acquire(wait)
				wraps(t, "acquire", err)
				stop() // it bounded the wait
				parent, end := context.WithCancelCause(background)
				defer end(nil)
				ctx := h.Context(parent)
				c.end(s, h, end)
				synctest.Wait()
				if got := context.Cause(ctx); got != c.want {
					t.Errorf("the cause is %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestAReleaseSaysWhatCameOfTheHold(t *testing.T) {
	ended, cancel := context.WithCancel(background)
	cancel()
	unknown, notHeld := lockimpl.ErrUnknownOutcome, lockimpl.ErrNotHeld
	for rule, c := range map[string]struct {
		before        func(*server)
		ctx           context.Context
		first, second []error
		sent          int
	}{
		"it is given up":              {ctx: background, second: []error{notHeld, lockimpl.ErrReleased}, sent: 1},
		"its context has ended":       {ctx: ended, second: []error{notHeld, lockimpl.ErrReleased}, sent: 1},
		"it was lost":                 {before: (*server).lose, ctx: background, first: []error{notHeld, lockimpl.ErrHoldLost}, second: []error{notHeld, lockimpl.ErrHoldLost}, sent: 1},
		"an acquire counted twice":    {before: func(s *server) { s.levels = 2 }, ctx: background, second: []error{notHeld, lockimpl.ErrReleased}, sent: 2},
		"its answer is lost":          {before: func(s *server) { s.fail = []error{unknown} }, ctx: background, first: []error{unknown}, second: []error{notHeld, unknown}, sent: 2},
		"nothing was sent":            {before: func(s *server) { s.fail = []error{errRefused} }, ctx: background, first: []error{errRefused}, sent: 2},
		"the client was closed":       {before: func(s *server) { s.fail = []error{lockimpl.ErrClosed} }, ctx: background, first: []error{lockimpl.ErrClosed}, sent: 2},
		"two answers are lost":        {before: func(s *server) { s.fail = []error{unknown, unknown} }, ctx: background, first: []error{unknown}, second: []error{unknown}, sent: 2},
		"it is lost after no request": {before: func(s *server) { s.lose(); s.fail = []error{errRefused} }, ctx: background, first: []error{errRefused}, second: []error{notHeld, lockimpl.ErrHoldLost}, sent: 2},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{}
				h := acquire(t, lockOf(t, s))
				if c.before != nil {
					c.before(s)
				}
				wraps(t, "the first", h.Release(c.ctx), c.first...)
				wraps(t, "the second", h.Release(background), c.second...)
				if len(s.unlocks) != c.sent {
					t.Errorf("%d unlocks were sent, want %d", len(s.unlocks), c.sent)
				}
			})
		})
	}
}

// After a failed call, nobody else could give up a hold that its owner got.
func TestTheOwnerOfAFailedAcquireIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{fail: []error{lockimpl.ErrUnknownOutcome, errRefused}}
		l := lockOf(t, s)
		for _, want := range []error{lockimpl.ErrUnknownOutcome, errRefused} {
			h, err := l.Acquire(background)
			wraps(t, "acquire", err, want)
			if h != nil || !slices.Equal(s.abandoned, []lockimpl.Owner{s.owners}) {
				t.Errorf("%v: %v, abandoned %v; the owner was %d", want, h, s.abandoned, s.owners)
			}
			s.abandoned, s.owner = nil, 0
		}
		acquire(t, l)
		_, err := l.TryAcquire(background)
		wraps(t, "try", err, lockimpl.ErrBusy)
		if s.abandoned != nil {
			t.Errorf("abandoned %v without an error", s.abandoned)
		}
	})
}

func TestALockWithoutWhatHandlesNeedIsRefused(t *testing.T) {
	_, err := handle.New(&server{blind: lockimpl.ErrInvalid})
	wraps(t, "its client watches no holds", err, lockimpl.ErrInvalid)
	plain, err := bare.NewClient(bare.SetNXDel, nil, "a").GetLock("orders")
	wraps(t, "a bare lock", err)
	_, err = handle.New(plain)
	wraps(t, "a bare lock", err, lockimpl.ErrInvalid)
}
