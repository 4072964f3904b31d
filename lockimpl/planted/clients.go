package planted

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"lockstep/lockimpl"
)

// This file has the bugs in clients. The numbers of arguments hold for redisson 4.7.0 and for the
// reference locks. The heads of their scripts name the arguments.

// changing changes one argument of the scripts of one kind.
func changing(script string, arg int, to func(any) any) func(Sender) Sender {
	return func(next Sender) Sender {
		return func(ctx context.Context, c Command) (any, error) {
			if c.Script == script {
				c.Args = slices.Clone(c.Args)
				c.Args[arg] = to(c.Args[arg])
			}
			return next(ctx, c)
		}
	}
}

// answering answers a script in place of the server where the bug says so.
func answering(script string, answer func(c Command) (reply any, instead bool)) func(Sender) Sender {
	return func(next Sender) Sender {
		return func(ctx context.Context, c Command) (any, error) {
			if c.Script == script {
				if reply, instead := answer(c); instead {
					return reply, nil
				}
			}
			return next(ctx, c)
		}
	}
}

// misreading changes how the client reads the answers to the scripts of one kind.
func misreading(script string, as func(reply any, err error) (any, error)) func(Sender) Sender {
	return func(next Sender) Sender {
		return func(ctx context.Context, c Command) (any, error) {
			reply, err := next(ctx, c)
			if c.Script == script {
				return as(reply, err)
			}
			return reply, err
		}
	}
}

// anonymous returns the owner CLIENT:OWNER without the part that distinguishes the client from
// others.
func anonymous(owner any) any {
	_, o, _ := strings.Cut(owner.(string), ":")
	return "client:" + o
}

// firstThread returns owner 1 of the same client.
func firstThread(owner any) any {
	client, _, _ := strings.Cut(owner.(string), ":")
	return client + ":1"
}

// sharedHandle sends every command as the first handle of its client.
func sharedHandle(next Sender) Sender {
	return func(ctx context.Context, c Command) (any, error) {
		if c.Script != "" && c.Script != "force_unlock" {
			client, _, _ := strings.Cut(c.Args[0].(string), ":")
			c.Args = slices.Clone(c.Args)
			c.Args[0] = client + ":hold-1"
		}
		return next(ctx, c)
	}
}

// unlocksAnew gives a new number to an unlock that is sent again.
func unlocksAnew(next Sender) Sender {
	return func(ctx context.Context, c Command) (any, error) {
		if c.Script == "unlock" && c.Attempt > 1 {
			c.Args = slices.Clone(c.Args)
			c.Args[1] = c.Args[1].(int64) + int64(c.Attempt)
		}
		return next(ctx, c)
	}
}

// roundedTo rounds a lease in ms to whole units.
func roundedTo(unit time.Duration, up bool) func(any) any {
	return func(ms any) any {
		lease := time.Duration(ms.(int64)) * time.Millisecond
		whole := lease.Truncate(unit)
		if up && whole < lease {
			whole += unit
		}
		return max(whole, time.Millisecond).Milliseconds()
	}
}

// sleepsFirst does not ask again once it listens. It sleeps for the time in the answer to the
// attempt before.
func sleepsFirst(next Sender) Sender {
	var mu sync.Mutex
	told := map[string]any{} // by owner, the answer to its call's first attempt
	return func(ctx context.Context, c Command) (any, error) {
		if c.Script != "acquire" || c.Attempt == 0 {
			return next(ctx, c)
		}
		owner := c.Args[1].(string)
		mu.Lock()
		reply, busy := told[owner]
		delete(told, owner)
		mu.Unlock()
		if busy && c.Attempt == 2 {
			return reply, nil
		}
		reply, err := next(ctx, c)
		if err == nil && reply != nil && c.Attempt == 1 {
			mu.Lock()
			told[owner] = reply
			mu.Unlock()
		}
		return reply, err
	}
}

// renewsLess sends one renewal of three.
func renewsLess() func(Command) (any, bool) {
	n := 0
	return func(c Command) (any, bool) {
		n++
		if n%3 == 0 {
			return nil, false
		}
		all := make([]any, len(c.Keys))
		for i := range all {
			all[i] = int64(1)
		}
		return all, true
	}
}

// renewsTheReleased sends an extra renewal a moment after each release.
func renewsTheReleased(next Sender) Sender {
	return func(ctx context.Context, c Command) (any, error) {
		reply, err := next(ctx, c)
		if c.Script == "unlock" && reply == int64(1) {
			renewal := Command{Script: "renew", Keys: c.Keys[:1], Args: []any{c.Args[1], c.Args[2]}, text: renewText}
			time.AfterFunc(10*time.Millisecond, func() { _, _ = next(context.Background(), renewal) })
		}
		return reply, err
	}
}

// twiceAsLong makes a timed try wait twice as long as its caller asked.
func twiceAsLong(l lockimpl.Lock) lockimpl.Lock {
	return altered{inner: l, timed: func(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
		opt.Wait *= 2
		return l.TryLockTimed(ctx, o, opt)
	}}
}

// grantedByError takes an acquire of unknown outcome for a grant.
func grantedByError(l lockimpl.Lock) lockimpl.Lock {
	return altered{inner: l, lock: func(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
		err := l.Lock(ctx, o, opt)
		if errors.Is(err, lockimpl.ErrUnknownOutcome) {
			return nil
		}
		return err
	}}
}

// grantedByTime takes the refusal of a timed try for a grant.
func grantedByTime(l lockimpl.Lock) lockimpl.Lock {
	return altered{inner: l, timed: func(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
		_, err := l.TryLockTimed(ctx, o, opt)
		return err == nil, err
	}}
}

// releasedByError takes a failed unlock for a release.
func releasedByError(l lockimpl.Lock) lockimpl.Lock {
	return altered{inner: l, unlock: func(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
		r, err := l.Unlock(ctx, o)
		if err != nil {
			return lockimpl.Released, nil
		}
		return r, nil
	}}
}

// failsUnknown reports that an acquire of unknown outcome did nothing.
func failsUnknown(l lockimpl.Lock) lockimpl.Lock {
	return altered{inner: l, lock: func(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
		err := l.Lock(ctx, o, opt)
		if errors.Is(err, lockimpl.ErrUnknownOutcome) {
			return errors.New("not locked")
		}
		return err
	}}
}

// remembersHolds lets an owner enter again without asking the server, for as
// long as it has not given the lock up.
func remembersHolds(l lockimpl.Lock) lockimpl.Lock {
	var mu sync.Mutex
	levels := map[lockimpl.Owner]int{}
	return altered{inner: l,
		lock: func(ctx context.Context, o lockimpl.Owner, opt lockimpl.LockOptions) error {
			mu.Lock()
			again := levels[o] > 0
			if again {
				levels[o]++
			}
			mu.Unlock()
			if again {
				return nil
			}
			err := l.Lock(ctx, o, opt)
			if err == nil {
				mu.Lock()
				levels[o] = 1
				mu.Unlock()
			}
			return err
		},
		unlock: func(ctx context.Context, o lockimpl.Owner) (lockimpl.Release, error) {
			mu.Lock()
			again := levels[o] > 1
			levels[o] = max(0, levels[o]-1)
			mu.Unlock()
			if again {
				return lockimpl.StillHeld, nil
			}
			return l.Unlock(ctx, o)
		}}
}

// wrongChannel listens to a channel on which nothing is published.
func wrongChannel() func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn {
		return rewriting{c, "subscribe", "redisson_lock__channel", "redisson_lock__chanmel"}
	}
}

// hearsEverySecond loses every other message, beginning with the first.
func hearsEverySecond() func(net.Conn) net.Conn {
	heard := 0
	return func(c net.Conn) net.Conn {
		return deaf{c, func(n int) bool { return n%2 == 0 }, &heard}
	}
}
