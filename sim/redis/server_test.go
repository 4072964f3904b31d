package redis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
)

// Redis removes a key when its clock is past the expiry, not when it reaches it.
func TestAKeyLivesThroughTheLastMillisecondOfItsExpiry(t *testing.T) {
	const set = 10 * time.Millisecond // when the key is set, server clock
	for _, c := range []struct {
		name string
		how  []any
		ends time.Duration // its last millisecond
	}{
		{"SET PX", []any{"set", "k", "v", "px", 5}, 15 * time.Millisecond},
		{"SET PX 1", []any{"set", "k", "v", "px", 1}, 11 * time.Millisecond},
		{"SET EX", []any{"set", "k", "v", "ex", 1}, 1010 * time.Millisecond},
		{"PSETEX", []any{"psetex", "k", 7, "v"}, 17 * time.Millisecond},
		{"PEXPIRE in a script", []any{"eval", "redis.call('hset', 'k', 'f', 1) redis.call('pexpire', 'k', 30) return redis.call('pttl', 'k')", 0}, 40 * time.Millisecond},
		{"SET PXAT", []any{"set", "k", "v", "pxat", sim.EpochMs + 20}, 20 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen []string
			var ttls []time.Duration
			s := newStage().does("a/1", func(th *sim.Thread, client *redis.Client) {
				ctx := context.Background()
				// In the middle of a millisecond of the server, since expiry counts whole
				// milliseconds.
				th.At(set + time.Millisecond/2 - oneWay)
				client.Do(ctx, c.how...)
				look := func(at time.Duration) {
					th.At(at - oneWay)
					ttls = append(ttls, client.PTTL(ctx, "k").Val())
				}
				if c.ends-set > 5*time.Millisecond {
					look(c.ends - 3*time.Millisecond)
				}
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				for _, at := range []time.Duration{c.ends, c.ends + time.Millisecond - 20*time.Microsecond, c.ends + time.Millisecond} {
					th.At(at - oneWay)
					go func() { client.PTTL(context.Background(), "k") }()
				}
				th.Sleep(10 * time.Millisecond)
			})
			r := s.run(sim.NewHost(t))
			for _, e := range pick(r, func(e model.Event) bool { return e.Kind == model.KindExec && e.Process == "b" }) {
				seen = append(seen, e.Reply)
			}
			equal(t, "PTTL first and last in the last millisecond, and after", strings.Join(seen, " "), "0 0 -2")
			for _, ttl := range ttls {
				equal(t, "PTTL 3 ms before", ttl, 3*time.Millisecond)
			}
			expired := pick(r, ofKind(model.KindExpire))
			if len(expired) != 1 {
				t.Fatalf("%d expiries, want 1", len(expired))
			}
			equal(t, "key", expired[0].Key, "k")
			equal(t, "expiry recorded, ns", expired[0].AtNs, int64(c.ends+time.Millisecond))
		})
	}
}

func TestTheTimeToLiveIsWholeMilliseconds(t *testing.T) {
	var got []string
	newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		ctx := context.Background()
		ask := func(words ...any) { got = append(got, fmt.Sprint(c.Do(ctx, words...).Val())) }
		ask("eval", "redis.call('set', 'k', 'v', 'px', 100) return redis.call('pttl', 'k')", 0)
		ask("pttl", "k") // 2 ms later
		th.Sleep(700 * time.Microsecond)
		ask("pttl", "k")         // 4.7 ms later
		ask("pexpire", "k", 200) // renewed
		ask("eval", "return redis.call('pttl', 'k')", 0)
		ask("persist", "k")
		ask("pttl", "k")
		ask("pttl", "none")
	}).run(sim.NewHost(t))
	equal(t, "replies", strings.Join(got, " "), "100 98 96 1 198 1 -1 -2")
}

func TestAKeyThatIsRenewedOrDeletedDoesNotExpire(t *testing.T) {
	r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		ctx := context.Background()
		c.Set(ctx, "renewed", 1, 100*time.Millisecond)
		c.Set(ctx, "deleted", 1, 100*time.Millisecond)
		th.At(50 * time.Millisecond)
		c.PExpire(ctx, "renewed", 100*time.Millisecond) // arrives at 51 ms
		c.Del(ctx, "deleted")
		th.At(time.Second)
	}).run(sim.NewHost(t))
	expired := pick(r, ofKind(model.KindExpire))
	if len(expired) != 1 || expired[0].Key != "renewed" || at(expired[0]) != 152*time.Millisecond {
		t.Errorf("expired: %+v", expired)
	}
}

func TestKeysThatRunOutTogetherAreRecordedInOrder(t *testing.T) {
	r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		_, _ = c.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
			for _, k := range []string{"c", "a", "b"} {
				p.Set(context.Background(), k, 1, 10*time.Millisecond)
			}
			return nil
		})
		th.Sleep(time.Second)
	}).run(sim.NewHost(t))
	var got string
	for _, e := range pick(r, ofKind(model.KindExpire)) {
		got += fmt.Sprint(e.Key, "@", e.AtNs, " ")
	}
	equal(t, "expired", got, "a@12000000 b@12000000 c@12000000 ")
}

func TestALocksStateIsRecordedWhenItChanges(t *testing.T) {
	s := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		ctx := context.Background()
		c.Set(ctx, "l", "a/1", 10*time.Millisecond)
		c.Get(ctx, "l")
		c.Set(ctx, "other", 1, 0)
		th.At(time.Second)
	})
	s.locks = []string{"l"}
	s.Observe = func(keys Keyspace, lock string) *model.LockState {
		owner, ok := keys.String(lock)
		if !ok {
			return &model.LockState{}
		}
		return &model.LockState{Owner: owner, Count: 1, ExpiresMs: keys.ExpiresMs(lock)}
	}
	var got []string
	for _, e := range pick(s.run(sim.NewHost(t)), ofKind(model.KindState)) {
		text := "free"
		if e.State.Held() {
			text = fmt.Sprintf("%s to %d by %d", e.State.Owner, e.State.ExpiresMs, e.Msg)
		}
		got = append(got, fmt.Sprintf("%v %s", at(e), text))
	}
	equal(t, "states", strings.Join(got, ", "), "1ms a/1 to 11 by 1, 12ms free")
}

// Events between commands also read the server's keys, and must read them by the clock of that
// instant.
func TestAnExpiryDoesNotMoveBetweenCommands(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int
		faults   []model.FaultSpec
	}{
		"a WAIT is answered":    {1, nil},
		"a restart keeps data":  {0, []model.FaultSpec{{Kind: model.FaultServer, Server: "restart", KeepData: true, At: 600 * ms}}},
		"a failover":            {0, []model.FaultSpec{failover(600 * ms)}},
		"a replica is promoted": {1, []model.FaultSpec{failover(600 * ms)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := replicated(c.replicas, 200*ms, c.faults...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				client.Set(context.Background(), "l", "a/1", time.Second)
				client.Wait(context.Background(), c.replicas, time.Second)
				th.At(2 * time.Second)
			})
			s.locks = []string{"l"}
			s.Observe = func(keys Keyspace, lock string) *model.LockState {
				owner, _ := keys.String(lock)
				return &model.LockState{Owner: owner, Count: 1, ExpiresMs: keys.ExpiresMs(lock)}
			}
			var got []string
			for _, e := range pick(s.run(sim.NewHost(t)), ofKind(model.KindState)) {
				got = append(got, fmt.Sprintf("%v %q to %d", at(e), e.State.Owner, e.State.ExpiresMs))
			}
			equal(t, "states", strings.Join(got, ", "), `1ms "a/1" to 1001, 1.002s "" to -2`)
		})
	}
}

func TestScriptsGivenAreInTheCacheFromTheStart(t *testing.T) {
	const text = "return ARGV[1]"
	var known, unknown error
	s := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		known = redis.NewScript(text).EvalSha(context.Background(), c, nil, 1).Err()
		unknown = redis.NewScript("return 2").EvalSha(context.Background(), c, nil).Err()
	})
	s.Scripts = []string{text}
	s.run(sim.NewHost(t))
	equal(t, "known", known, nil)
	equal(t, "unknown", kindOf(unknown), "NOSCRIPT No matching script. Please use EVAL.")
}

func TestAPublishIsRecordedAndReachesItsSubscribers(t *testing.T) {
	for _, c := range []struct {
		name string
		send func(*redis.Client)
	}{
		{"by PUBLISH", func(c *redis.Client) { c.Publish(context.Background(), "ch", "x") }},
		{"by a script", func(c *redis.Client) {
			redis.NewScript("return redis.call('publish', 'ch', 'x')").Eval(context.Background(), c, nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			r := newStage().
				does("a/1", func(th *sim.Thread, client *redis.Client) { got = listen(th, client, "ch", 2*time.Second) }).
				does("b/1", func(th *sim.Thread, client *redis.Client) { th.At(time.Second); c.send(client) }).
				run(sim.NewHost(t))
			equal(t, "received", fmt.Sprint(got), "[x@1.002s]")
			published := pick(r, ofKind(model.KindPublish))
			equal(t, "recorded", len(published), 1)
			equal(t, "channel", published[0].Channel, "ch")
			equal(t, "at", at(published[0]), time.Second+oneWay)
		})
	}
}

// Redis keeps a key that ends with this millisecond until the millisecond is over.
func TestASetWhoseKeyEndsAtOnce(t *testing.T) {
	const at = time.Second
	end := sim.EpochMs + at.Milliseconds()
	for _, c := range []struct {
		name string
		set  func(context.Context, *redis.Client) error
	}{
		{"PXAT", func(ctx context.Context, c *redis.Client) error {
			return c.Do(ctx, "set", "k", "v", "nx", "pxat", end).Err()
		}},
		{"EXAT", func(ctx context.Context, c *redis.Client) error {
			return c.Do(ctx, "set", "k", "v", "exat", end/1000).Err()
		}},
		{"in a script", func(ctx context.Context, c *redis.Client) error {
			return c.Eval(ctx, "return redis.call('set', KEYS[1], 'v', 'pxat', ARGV[1])", []string{"k"}, end).Err()
		}},
		{"in a script of miniredis", func(ctx context.Context, c *redis.Client) error {
			return c.Eval(ctx, "local r = redis return r.call('set', KEYS[1], 'v', 'pxat', ARGV[1])", []string{"k"}, end).Err()
		}},
		{"in a transaction", func(ctx context.Context, c *redis.Client) error {
			_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Do(ctx, "set", "k", "v", "pxat", end).Err() })
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			var seen []string
			newStage().does("a/1", func(th *sim.Thread, client *redis.Client) {
				client.Ping(ctx)
				th.At(at - oneWay + 100*time.Microsecond)
				if err := c.set(ctx, client); err != nil {
					t.Error(err)
				}
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				for _, when := range []time.Duration{at + 800*time.Microsecond, at + time.Millisecond} {
					th.At(when - oneWay)
					go func() { seen = append(seen, fmt.Sprint(client.Do(ctx, "pttl", "k").Val())) }()
				}
				th.Sleep(10 * time.Millisecond)
			}).run(sim.NewHost(t))
			equal(t, "PTTL at the end of the millisecond, and after", strings.Join(seen, " "), "0 -2")
		})
	}
}

// A SET that ends at once and does not apply leaves the key as it is.
func TestASetThatDoesNotApplyEndsNothing(t *testing.T) {
	var left time.Duration
	newStage().does("a/1", func(th *sim.Thread, client *redis.Client) {
		ctx := context.Background()
		client.Set(ctx, "k", "v", 0)
		th.At(time.Second - oneWay + 100*time.Microsecond)
		client.Do(ctx, "set", "k", "v", "nx", "pxat", sim.EpochMs+1000)
		th.At(2 * time.Second)
		left = client.PTTL(ctx, "k").Val()
	}).run(sim.NewHost(t))
	equal(t, "PTTL", left, -1)
}
