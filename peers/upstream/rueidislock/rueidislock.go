// Package rueidislock opens rueidislock for the stories of package upstream.
package rueidislock

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	. "lockstep/live/upstream/gostory"
)

// rueidislockWith is rueidislock's locker with so many keys of which a majority counts, and so much time for each
// try; 0: the default.
func rueidislockWith(majority int32, tryNextAfter time.Duration) Library {
	return Library{
		Serve: ServeRedis,
		Open: func(addrs []string) (func(name string) Lock, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{
				KeyMajority: majority, TryNextAfter: tryNextAfter, NoLoopTracking: true,
				ClientOption: rueidis.ClientOption{InitAddress: addrs, ForceSingleClient: true},
			})
			return func(name string) Lock { return &locked{l: l, name: name} }, err
		},
		Protocol: Resp, Refuse: Refuse,
	}
}

type locked struct {
	l      rueidislock.Locker
	name   string
	lost   context.Context
	unlock context.CancelFunc
}

// take asks for a hold, which must not end with the context of the call.
func (h *locked) take(ctx context.Context, with func(context.Context, string) (context.Context, context.CancelFunc, error)) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	lost, unlock, err := with(own, h.name)
	stop()
	if err == nil {
		h.lost, h.unlock = lost, unlock
	}
	return err
}

func (h *locked) Lock(ctx context.Context) error { return h.take(ctx, h.l.WithContext) }

func (h *locked) TryLock(ctx context.Context) error {
	err := h.take(ctx, h.l.TryWithContext)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return ErrBusy
	}
	return err
}

func (h *locked) Unlock(context.Context) error {
	if h.unlock == nil {
		return ErrNotHeld
	}
	h.unlock()
	h.unlock = nil
	return nil
}

func (h *locked) Lost() <-chan struct{} { return h.lost.Done() }

// libraryOf returns the lock of a name.
func libraryOf(lock string) Library {
	switch lock {
	case "rueidislock-2":
		return rueidislockWith(2, 0)
	case "rueidislock-patient":
		return rueidislockWith(1, time.Second)
	}
	return rueidislockWith(1, 0)
}

var _ = libraryOf
