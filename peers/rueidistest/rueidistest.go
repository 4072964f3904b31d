// Package rueidistest lets clients of github.com/redis/rueidis run in a world, whatever lock uses
// them. rueidis writes the commands of all goroutines in a goroutine of its own.
package rueidistest

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"

	"lockstep/locktest"
)

// Options returns the options with which a client of p reaches server i, counted from 0. Three
// differ from the defaults. With ForceSingleClient the client does not ask whether the server is a
// cluster. DialCtxFn reaches the world. RetryDelay has the mean of the default and no jitter.
func Options(p *locktest.Process, i int) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{p.Addr(i)}, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return p.DialContext(ctx, "tcp", addr)
		},
		RetryDelay: func(attempts int, cmd rueidis.Completed, _ error) time.Duration {
			time.Sleep(min(time.Second, 3<<min(20, attempts)*time.Microsecond/2))
			p.Asks(cmd.Commands()...) // goroutines that waited equally long continue in turn
			return 0
		},
	}
}

// Builder returns a function that makes the clients of p, for an option such as ClientBuilder of
// rueidislock. Their methods Do and DoMulti tell the world which goroutine asks.
func Builder(p *locktest.Process) func(rueidis.ClientOption) (rueidis.Client, error) {
	return func(o rueidis.ClientOption) (rueidis.Client, error) {
		c, err := rueidis.NewClient(o)
		if c == nil {
			return nil, err
		}
		return client{c, p}, nil // a client that is not connected connects later
	}
}

type client struct {
	rueidis.Client
	p *locktest.Process
}

// Do implements rueidis.Client.
func (c client) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.p.Asks(cmd.Commands()...)
	return c.Client.Do(ctx, cmd)
}

// DoMulti implements rueidis.Client.
func (c client) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	for _, cmd := range multi {
		c.p.Asks(cmd.Commands()...)
	}
	return c.Client.DoMulti(ctx, multi...)
}
