// Package goredis lets go-redis clients live in a world: their options, the hook that ties commands
// to operations, and the answers to what go-redis does besides its callers. The clients themselves
// run unmodified.
package goredis

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/sim"
)

// silent drops the messages that go-redis logs, since failures to dial are intended in a partition.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// bufferSize is less than go-redis's default of 32 KiB, since a run makes dozens of connections and
// sends little. Longer texts are sent in pieces, at the same instant.
const bufferSize = 512

// Options are the options with which a go-redis client of p lives in the world and
// talks to the node at addr. The caller may set pool, timeouts and retries. The
// caller must not set MinIdleConns: nameless goroutines would dial.
func Options(p *sim.Process, addr string) *redis.Options {
	probes := p.Instant()
	return &redis.Options{
		Addr: addr,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := p.DialContext(ctx, network, addr)
			if err != nil && isProbe() {
				probes.Wait()
				return p.DialContext(ctx, network, addr)
			}
			return conn, err
		},
		DialerRetries:            1,
		MaxRetries:               -1,
		Protocol:                 2,
		DisableIdentity:          true,
		ReadBufferSize:           bufferSize,
		WriteBufferSize:          bufferSize,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// isProbe reports whether the dial under way is one with which go-redis's pool finds out whether to
// dial again. After as many failures as its size, the pool probes once a second. A probe begins at
// the instant of a failure, and so does the next try of the failed caller, so the probe needs an
// instant of its own. Nobody waits for a probe, so it may take time. Only the stack of its caller
// distinguishes it from other dials.
func isProbe() bool {
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, ".tryDial") {
			return true
		}
		if !more {
			return false
		}
	}
}

// NewClient makes a go-redis client of p.
func NewClient(p *sim.Process, opt *redis.Options) *redis.Client {
	c := redis.NewClient(opt)
	c.AddHook(noteHook{p})
	return c
}

// NewFailoverClient makes a go-redis client of p that asks the sentinels at addrs for the master with
// that name. opt are the Options of any address. A world has no sentinels: the client is for real ones.
func NewFailoverClient(p *sim.Process, opt *redis.Options, master string, addrs []string) *redis.Client {
	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: master, SentinelAddrs: addrs,
		Dialer: opt.Dialer, DialerRetries: opt.DialerRetries, MaxRetries: opt.MaxRetries, MinRetryBackoff: opt.MinRetryBackoff, MaxRetryBackoff: opt.MaxRetryBackoff,
		Protocol: opt.Protocol, DisableIdentity: opt.DisableIdentity, ReadTimeout: opt.ReadTimeout, WriteTimeout: opt.WriteTimeout,
		PoolSize: opt.PoolSize, ReadBufferSize: opt.ReadBufferSize, WriteBufferSize: opt.WriteBufferSize,
	})
	c.AddHook(noteHook{p})
	return c
}

// NewClusterClient makes a go-redis client of p for the cluster whose nodes are at addrs. opt are the
// Options of any address. A world has no cluster: the client is for a real one.
func NewClusterClient(p *sim.Process, opt *redis.Options, addrs []string) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:     addrs,
		NewClient: func(node *redis.Options) *redis.Client { return NewClient(p, node) },
		Dialer:    opt.Dialer, DialerRetries: opt.DialerRetries, MaxRetries: opt.MaxRetries, MinRetryBackoff: opt.MinRetryBackoff, MaxRetryBackoff: opt.MaxRetryBackoff,
		Protocol: opt.Protocol, DisableIdentity: opt.DisableIdentity, ReadTimeout: opt.ReadTimeout, WriteTimeout: opt.WriteTimeout,
		PoolSize: opt.PoolSize, ReadBufferSize: opt.ReadBufferSize, WriteBufferSize: opt.WriteBufferSize,
		MaintNotificationsConfig: opt.MaintNotificationsConfig,
	})
}

// noteHook ties commands to operations: it sees the context that a lock passed, and the words of
// the command that will soon arrive on a connection.
type noteHook struct{ p *sim.Process }

func (noteHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h noteHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer h.p.Sending(ctx, words(cmd))()
		return next(ctx, cmd)
	}
}

func (h noteHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			defer h.p.Sending(ctx, words(cmd))()
		}
		return next(ctx, cmds)
	}
}

// words writes a command in the form for Process.Sending.
func words(cmd redis.Cmder) string {
	b := make([]byte, 0, 256)
	for i, a := range cmd.Args() {
		if i > 0 {
			b = append(b, 0)
		}
		switch a := a.(type) {
		case string:
			b = append(b, a...)
		case int:
			b = strconv.AppendInt(b, int64(a), 10)
		case int64:
			b = strconv.AppendInt(b, a, 10)
		default:
			b = fmt.Append(b, a)
		}
	}
	return string(b)
}
