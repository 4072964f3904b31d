package sim

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
)

func testConfig(seed uint64) Config {
	return Config{
		Chooser: NewSeeded(seed), LatencyMin: 200 * time.Microsecond, LatencyMax: 2 * time.Millisecond,
		Processes: []ProcessConfig{{Name: "a", Threads: 2}, {Name: "b", Threads: 1}},
		Name:      func([]string) Command { return Command{} },
		Observe:   func(Keyspace, string) *model.LockState { return nil },
		Quiet:     time.Second, Settle: time.Second, Drain: time.Second,
	}
}

func TestSmoke(t *testing.T) {
	h := NewHost(t)
	var digests []string
	for i := range 20 {
		r := Run(h, testConfig(7), func(w *World) {
			for _, p := range w.processes {
				c := p.NewRedis(p.RedisOptions())
				p.OnClose(func() { c.Close() })
				for _, th := range p.Threads() {
					th.Start(func() {
						for range 3 {
							th.Call(Operation{Action: model.ActLock, Lock: "x"}, func(ctx context.Context) (model.Outcome, error) {
								err := c.Incr(ctx, "n").Err()
								sub := c.Subscribe(ctx, "ch")
								sub.Receive(ctx)
								c.Publish(ctx, "ch", "hello")
								sub.Receive(ctx)
								sub.Close()
								redis.NewScript("redis.call('publish','ch','x') return redis.call('incr', KEYS[1])").Run(ctx, c, []string{"n"})
								return model.Granted, err
							})
							th.Sleep(time.Second)
						}
					})
				}
			}
		})
		digests = append(digests, r.Record.Digest())
		if false {
			for _, e := range r.Record.Events {
				t.Logf("%+v", e)
			}
			t.Log(r.Steps, time.Duration(r.SimNs))
		}
		if digests[i] != digests[0] {
			t.Fatal("differs")
		}
	}
}
