package strangers

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// starter is the hook of the client for Hook.
type starter struct{}

// startedHold is the key of the hold in the context of an acquire.
type startedHold struct{}

func (starter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (starter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (starter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if h, ok := ctx.Value(startedHold{}).(*hold); ok && err == nil {
			if reply, ok := cmd.(*redis.Cmd); ok {
				if n, err := reply.Int(); err == nil && n > 0 {
					h.c.start(h.keep)
				}
			}
		}
		return err
	}
}

// dispatcher is the hook of the client for Dispatched.
type dispatcher struct{ c *client }

func (dispatcher) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d dispatcher) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return d.c.inDispatched(func() error { return next(ctx, cmd) })
	}
}

func (d dispatcher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return d.c.inDispatched(func() error { return next(ctx, cmds) })
	}
}

// job is a request for the dispatcher.
type job struct {
	f    func() error
	done chan error
}

// inDispatched runs f in a goroutine that the dispatcher starts, and waits for it.
func (c *client) inDispatched(f func() error) error {
	j := job{f, make(chan error, 1)}
	select {
	case c.jobs <- j:
		return <-j.done
	case <-c.ctx.Done():
		return redis.ErrClosed
	}
}

// dispatch starts the goroutines of requests.
func (c *client) dispatch() {
	for {
		select {
		case j := <-c.jobs:
			if !c.start(func() { j.done <- j.f() }) {
				j.done <- redis.ErrClosed
			}
		case <-c.ctx.Done():
			return
		}
	}
}
