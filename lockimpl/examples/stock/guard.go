package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// guard does work while nobody else does. The context that work gets ends when
// that is no longer sure. The token numbers the hold where the lock does, else
// it is 0.
type guard func(ctx context.Context, o lockimpl.Owner, work func(ctx context.Context, token int64) error) error

var guardNames = []string{"plain", "fair", "fenced", "none"}

// checkGuard says what is wrong with a name before anything is connected.
func checkGuard(name string, release *redisson.Release) error {
	if !slices.Contains(guardNames, name) {
		return fmt.Errorf("unknown lock %q; known: %s", name, strings.Join(guardNames, ", "))
	}
	if name == "fenced" && release.Fenced == nil {
		return fmt.Errorf("-lock fenced: redisson %s has none here; leave out -release", release.Version)
	}
	return nil
}

func newGuard(name string, client *redisson.Client, key string) (guard, error) {
	switch name {
	case "plain":
		l, err := client.GetLock(key)
		return locked(l, withoutToken(l)), err
	case "fair":
		l, err := client.GetFairLock(key)
		return locked(l, withoutToken(l)), err
	case "fenced":
		l, err := client.GetFencedLock(key)
		return locked(l, func(ctx context.Context, o lockimpl.Owner) (int64, error) {
			return l.LockAndGetToken(ctx, o, lockimpl.LockOptions{Interruptible: true})
		}), err
	default:
		return unguarded, nil
	}
}

func unguarded(ctx context.Context, _ lockimpl.Owner, work func(context.Context, int64) error) error {
	return work(context.WithoutCancel(ctx), 0)
}

func withoutToken(l lockimpl.Lock) func(context.Context, lockimpl.Owner) (int64, error) {
	return func(ctx context.Context, o lockimpl.Owner) (int64, error) {
		return 0, l.Lock(ctx, o, lockimpl.LockOptions{Interruptible: true})
	}
}

// locked guards work by a lock without lease: the watchdog renews the hold as
// long as the process lives. The end of ctx ends the waiting for the lock, and
// not the work.
func locked(l lockimpl.Lock, acquire func(context.Context, lockimpl.Owner) (int64, error)) guard {
	return func(ctx context.Context, o lockimpl.Owner, work func(context.Context, int64) error) error {
		token, err := acquire(ctx, o)
		if errors.Is(err, lockimpl.ErrUnknownOutcome) {
			// It may have acquired: without an unlock the hold would be renewed
			// for as long as the client lives. (It may even run after this unlock,
			// if it was under way when ctx ended; the client is closed then.)
			if undo := giveUp(l, o); undo != nil && !errors.Is(undo, lockimpl.ErrNotHeld) {
				err = errors.Join(err, undo)
			}
		}
		if err != nil {
			return err
		}
		held, err := redisson.HoldContext(context.WithoutCancel(ctx), l, o)
		if err == nil {
			err = work(held, token)
		}
		undo := giveUp(l, o)
		switch {
		case errors.Is(undo, lockimpl.ErrNotHeld) && errors.Is(err, lockimpl.ErrHoldLost):
			return err // it says so already
		case errors.Is(undo, lockimpl.ErrNotHeld):
			// The hold was over before its context could tell.
			return errors.Join(err, fmt.Errorf("%w: %w", lockimpl.ErrHoldLost, undo))
		}
		return errors.Join(err, undo)
	}
}

// giveUp unlocks, also when everything else is being cancelled.
func giveUp(l lockimpl.Lock, o lockimpl.Owner) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := l.Unlock(ctx, o)
	return err
}
