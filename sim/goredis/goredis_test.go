package goredis

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

const addr = "192.0.2.1:6379"

// incr adds one to a number, as an operation of its own.
func incr(th *sim.Thread, c *redis.Client, timeout time.Duration) {
	th.Call(sim.Operation{}, func(ctx context.Context) (model.Outcome, error) {
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		if err := c.Incr(ctx, "n").Err(); err != nil {
			return model.Failed, err
		}
		return model.Granted, nil
	})
}

// A timer of one bubble in go-redis's pool would kill the next bubble that takes it out, so each case is
// played twice.
func TestAWaitForAConnectionLeavesNoTimer(t *testing.T) {
	for _, c := range []struct {
		name    string
		wait    func(*sim.Thread, *redis.Client) // of the second thread
		timeout time.Duration                    // of the pool
	}{
		{"that was granted", func(th *sim.Thread, c *redis.Client) { incr(th, c, 0) }, time.Minute},
		{"that took too long", func(th *sim.Thread, c *redis.Client) { incr(th, c, 0) }, 100 * time.Millisecond},
		{"that the caller gave up", func(th *sim.Thread, c *redis.Client) { incr(th, c, 100*time.Millisecond) }, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := sim.NewHost(t)
			for range 2 {
				res := sim.Run(h, sim.Config{
					Chooser: sim.NewSeeded(1), LatencyMin: time.Second, LatencyMax: time.Second,
					Nodes:     []sim.Node{{Addr: addr, Server: simredis.New(simredis.Config{})}},
					Processes: []sim.ProcessConfig{{Name: "a", Threads: 2}},
					Name:      func([]string, sim.Author) sim.Command { return sim.Command{} },
					Quiet:     30 * time.Second, Settle: time.Second, Drain: time.Second,
				}, func(w *sim.World) {
					p := w.Process("a")
					opt := Options(p, addr)
					opt.PoolSize, opt.PoolTimeout = 1, c.timeout
					client := NewClient(p, opt)
					p.OnClose(func() { _ = client.Close() })
					p.Threads()[0].Start(func() { incr(p.Threads()[0], client, 0) })
					p.Threads()[1].Start(func() { c.wait(p.Threads()[1], client) })
				})
				returned := 0
				for _, e := range res.Record.Events {
					if e.Kind == model.KindReturn {
						returned++
					}
				}
				if returned != 2 {
					t.Fatalf("%d calls returned", returned)
				}
			}
		})
	}
}
