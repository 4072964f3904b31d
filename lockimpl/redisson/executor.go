package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisclient"
)

// errResponseTimeout: the command was written and not answered within the response timeout
// (RedisResponseTimeoutException).
var errResponseTimeout = errors.New("no response in time")

// reply is the outcome of a command: a value (nil for Redis's nil) or an error.
type reply struct {
	val any
	err error
}

// long returns the reply as a number; ok is false for nil.
func (r reply) long() (n int64, ok bool) {
	n, ok = r.val.(int64)
	return n, ok
}

// draw draws the delay before resend number attempt (from 0).
func (d Delay) draw(attempt int, o lockimpl.Owner, env lockimpl.Environment) time.Duration {
	if d.Min == 0 {
		return d.Fixed
	}
	full := d.Min << min(attempt, 30)
	if full > d.Max {
		full = d.Max
	}
	half := (full / 2).Truncate(time.Millisecond)
	return half + env.Jitter(o, full-half).Truncate(time.Millisecond)
}

// async runs a function as Redisson's executor does: in the background, also if the caller gives up.
func async(ctx context.Context, run func(context.Context) reply) <-chan reply {
	out := make(chan reply, 1)
	ctx = context.WithoutCancel(ctx) // an interrupt abandons the reply, not the command
	go func() { out <- run(ctx) }()
	return out
}

// commandAsync sends a plain command.
func (c *Client) commandAsync(ctx context.Context, args ...any) <-chan reply {
	return async(ctx, func(ctx context.Context) reply {
		return c.execute(ctx, 0, kindRead, func(ctx context.Context) attempt {
			val, err := c.rdb.Do(ctx, args...).Result()
			return attempt{val, err, c.response}
		})
	})
}

// evalScript runs a script with the release's resends.
func (c *Client) evalScript(ctx context.Context, o lockimpl.Owner, s Script, keys []string, args []any) reply {
	return c.execute(ctx, o, s.Kind, func(ctx context.Context) attempt {
		if c.waits() {
			return c.evalSynced(ctx, s, keys, args)
		}
		val, err := c.evalOnce(ctx, s, keys, args)
		return attempt{val, err, c.response}
	})
}

// attempt is the outcome of sending a command once.
type attempt struct {
	val any
	err error
	// response is how long the library waits for the answer.
	response time.Duration
}

// execute sends a command until it is answered or the release gives up. A command that never left is
// sent again in any case. A command whose reply was lost is sent again only where the table of
// releases says so.
func (c *Client) execute(ctx context.Context, o lockimpl.Owner, kind ScriptKind, send func(context.Context) attempt) reply {
	if c.closing.Err() != nil {
		return reply{err: lockimpl.ErrClosed}
	}
	mayHaveRun := false // any of the attempts, not only the last
	for n := 0; ; n++ {
		sent := time.Now()
		got := send(ctx)
		err := got.err
		if err == nil || errors.Is(err, redis.Nil) {
			return reply{val: got.val}
		}
		if errors.Is(err, ErrNotSynced) {
			return reply{err: err}
		}
		lost := redisclient.MayHaveRun(err)
		mayHaveRun = mayHaveRun || lost
		if lost {
			// The library does not notice the end of a connection. A command that was written to it
			// waits for the response timeout.
			err = fmt.Errorf("%w: %w", errResponseTimeout, err)
			if left := c.wheel.until(time.Until(sent.Add(got.response))); left > 0 {
				c.sleep(left)
			}
		}
		if c.closing.Err() != nil {
			return reply{err: unknownIf(mayHaveRun, lockimpl.ErrClosed)}
		}
		again, delay := c.again(kind, lost, err)
		if again == never || again == limited && n >= c.attempts {
			return reply{err: unknownIf(mayHaveRun, err)}
		}
		if !c.sleep(c.wheel.until(delay.draw(n, o, c.env))) {
			return reply{err: unknownIf(mayHaveRun, lockimpl.ErrClosed)}
		}
	}
}

// The decisions about a command that failed.
const (
	never = iota
	limited
	endlessly
)

// again returns whether the release sends a failed command again, and after which delay. The reply
// was lost, nothing was written, or the server refused to run the command.
func (c *Client) again(kind ScriptKind, lost bool, err error) (int, Delay) {
	var answered redis.Error
	switch {
	case lost && c.resends(kind):
		return limited, c.rel.ResendDelay
	case lost:
		return never, Delay{}
	case !errors.As(err, &answered):
		return limited, c.rel.RetryDelay
	case c.rel.LoadingForever && redis.HasErrorPrefix(err, "LOADING"):
		return endlessly, atOnce
	case slices.ContainsFunc(c.rel.Refusals, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) }):
		return limited, c.rel.RefusalDelay
	}
	return never, Delay{}
}

// sleep waits; false when the client was closed meanwhile.
func (c *Client) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.closing.Done():
		return false
	}
}

// unknownIf returns err, with ErrUnknownOutcome if the command may have run.
func unknownIf(mayHaveRun bool, err error) error {
	if !mayHaveRun {
		return err
	}
	return fmt.Errorf("%w: %w", lockimpl.ErrUnknownOutcome, err)
}

func (c *Client) evalOnce(ctx context.Context, s Script, keys []string, args []any) (any, error) {
	if !c.rel.ScriptCache {
		return c.rdb.Eval(ctx, s.Text, keys, args...).Result()
	}
	val, err := c.rdb.EvalSha(ctx, s.SHA, keys, args...).Result()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return val, err
	}
	if err := c.rdb.ScriptLoad(ctx, s.Text).Err(); err != nil {
		return nil, err
	}
	return c.rdb.EvalSha(ctx, s.SHA, keys, args...).Result()
}

// await is Future.get(). It returns the reply, or the error of an interrupt, after which the
// command goes on alone. An interrupt that came before ends the wait at once, as in all waits of
// Java.
func (c *Client) await(ctx context.Context, what string, r <-chan reply) (reply, error) {
	if c.rel.PatientReply {
		ctx = context.WithoutCancel(ctx)
	}
	abandoned := func() (reply, error) {
		return reply{}, fmt.Errorf("%s: %w: %w", what, lockimpl.ErrUnknownOutcome, context.Cause(ctx))
	}
	if ctx.Err() != nil {
		return abandoned() // select takes any of several ready cases
	}
	select {
	case got := <-r:
		if got.err != nil {
			return got, fmt.Errorf("%s: %w", what, got.err)
		}
		return got, nil
	case <-ctx.Done():
		return abandoned()
	}
}
