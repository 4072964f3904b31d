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

// guard does work while nobody else does. The context of work ends when this is no longer certain.
// The token is the number of the hold, or 0 if the lock does not number its holds.
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

// locked guards work by a lock without lease: the watchdog renews the hold as long as the process
// lives. The end of ctx ends the wait for the lock, but not the work.
func locked(l lockimpl.Lock, acquire func(context.Context, lockimpl.Owner) (int64, error)) guard {
	return func(ctx context.Context, o lockimpl.Owner, work func(context.Context, int64) error) error {
		token, err := acquire(ctx, o)
		if errors.Is(err, lockimpl.ErrUnknownOutcome) {
			// The call may have acquired the lock. Without an unlock its hold would be renewed for
			// as long as the client lives. (A command that was under way when ctx ended may even
			// run after this unlock; then the client is closed.)
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
			return err // its text says that already
		case errors.Is(undo, lockimpl.ErrNotHeld):
			// The hold was over before its context ended.
			return errors.Join(err, fmt.Errorf("%w: %w", lockimpl.ErrHoldLost, undo))
		}
		return errors.Join(err, undo)
	}
}

// giveUp unlocks, even if everything else is being cancelled.
func giveUp(l lockimpl.Lock, o lockimpl.Owner) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := l.Unlock(ctx, o)
	return err
}
