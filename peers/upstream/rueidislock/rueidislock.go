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
		Open: func(addrs []string) (Client, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{
				KeyMajority: majority, TryNextAfter: tryNextAfter, NoLoopTracking: true,
				ClientOption: rueidis.ClientOption{InitAddress: addrs, ForceSingleClient: true},
			})
			return locker{l}, err
		},
		Split: Resp,
	}
}

type locker struct{ rueidislock.Locker }

func (l locker) Lock(name string) Lock { return &hold{l: l.Locker, name: name} }

type hold struct {
	l      rueidislock.Locker
	name   string
	lost   context.Context
	unlock context.CancelFunc
}

// take asks for a hold, which must not end with the context of the call.
func (h *hold) take(ctx context.Context, with func(context.Context, string) (context.Context, context.CancelFunc, error)) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	lost, unlock, err := with(own, h.name)
	stop()
	if err == nil {
		h.lost, h.unlock = lost, unlock
	}
	return err
}

func (h *hold) Lock(ctx context.Context) error { return h.take(ctx, h.l.WithContext) }

func (h *hold) TryLock(ctx context.Context) error {
	err := h.take(ctx, h.l.TryWithContext)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return ErrBusy
	}
	return err
}

func (h *hold) Unlock(context.Context) error {
	if h.unlock == nil {
		return ErrNotHeld
	}
	h.unlock()
	h.unlock = nil
	return nil
}

func (h *hold) Lost() <-chan struct{} { return h.lost.Done() }

var _ = rueidislockWith
