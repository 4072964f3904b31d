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

// clockStep is a step of the wall clock of the server.
func clockStep(at, by time.Duration) model.FaultSpec {
	return model.FaultSpec{Kind: model.FaultServer, Server: model.ServerWallClock, At: at, Step: by}
}

// Times of keys are instants of the server's clock.
func TestTheWallClockOfAServer(t *testing.T) {
	epoch := sim.EpochMs
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		by     time.Duration
		before []any // at 0
		ask    string
		want   any           // at 2 s; nil: nothing
		ends   time.Duration // of the key; 0: never
	}{
		{"TIME forward", time.Minute, nil, "TIME", []any{fmt.Sprint(epoch/1000 + 62), "1000"}, 0},
		{"TIME backward", -time.Minute, nil, "TIME", []any{fmt.Sprint(epoch/1000 - 58), "1000"}, 0},
		{"what is left after a step forward", 3 * time.Second, []any{"SET", "k", "v", "PX", 8000}, "PTTL k", int64(3000), 5002 * ms},
		{"what is left after a step backward", -3 * time.Second, []any{"SET", "k", "v", "PX", 8000}, "PTTL k", int64(9000), 11002 * ms},
		{"the end of a key stays where it was", 3 * time.Second, []any{"SET", "k", "v", "PX", 8000}, "PEXPIRETIME k", int64(epoch + 8001), 5002 * ms},
		{"also when the clock goes back", -3 * time.Second, []any{"SET", "k", "v", "PX", 8000}, "PEXPIRETIME k", int64(epoch + 8001), 11002 * ms},
		{"a key whose time has passed is gone at once", 8 * time.Second, []any{"SET", "k", "v", "PX", 8000}, "GET k", nil, time.Second},
		{"in its last millisecond it lives", 7001 * ms, []any{"SET", "k", "v", "PX", 8000}, "GET k", nil, 1001 * ms},
		{"one millisecond further it does not", 7002 * ms, []any{"SET", "k", "v", "PX", 8000}, "GET k", nil, time.Second},
		{"a key without an end has none", time.Hour, []any{"SET", "k", "v"}, "PTTL k", int64(-1), 0},
		{"an instant that was named before", 3 * time.Second, []any{"SET", "k", "v", "PXAT", epoch + 9000}, "PTTL k", int64(9000 - 2001 - 3000), 6001 * ms},
		{"an instant that is named later", -time.Minute, []any{"SET", "k", "v"}, fmt.Sprintf("PEXPIREAT k %d", epoch+2001-60_000+4000), int64(1), 6002 * ms},
		{"an instant that has passed", time.Minute, []any{"SET", "k", "v"}, fmt.Sprintf("PEXPIREAT k %d", epoch+61_000), int64(1), 0},
		{"a length is a length", time.Minute, []any{"SET", "k", "v"}, "PEXPIRE k 4000", int64(1), 6002 * ms},
		{"a field of a hash", -3 * time.Second, []any{"EVAL", "redis.call('HSET', 'k', 'f', 'v', 'g', 'v') return redis.call('HEXPIRE', 'k', 8, 'FIELDS', 1, 'f')", "0"}, "HTTL k FIELDS 1 f", []any{int64(9)}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got any
			r := newStage(clockStep(time.Second, c.by)).does("a/1", func(th *sim.Thread, client *redis.Client) {
				if c.before != nil {
					if err := client.Do(ctx, c.before...).Err(); err != nil {
						t.Error(err)
					}
				}
				th.At(2 * time.Second)
				var words []any
				for _, w := range strings.Fields(c.ask) {
					words = append(words, w)
				}
				got = client.Do(ctx, words...).Val()
				th.At(time.Minute)
			}).run(sim.NewHost(t))
			equal(t, c.ask, fmt.Sprint(got), fmt.Sprint(c.want))
			var ends time.Duration
			for _, e := range pick(r, ofKind(model.KindExpire)) {
				ends = at(e)
			}
			equal(t, "the end of the key", ends, c.ends)
			equal(t, "the words of the fault", pick(r, ofKind(model.KindFault))[0].Text, fmt.Sprintf("wall clock of the server steps by %v", c.by))
		})
	}
}

// A script reads the clock of the server.
func TestAScriptReadsTheClockOfTheServer(t *testing.T) {
	var got string
	newStage(clockStep(time.Second, time.Hour)).does("a/1", func(th *sim.Thread, client *redis.Client) {
		th.At(2 * time.Second)
		got = fmt.Sprint(client.Eval(context.Background(), "return redis.call('TIME')[1]", nil).Val())
	}).run(sim.NewHost(t))
	equal(t, "TIME", got, fmt.Sprint(sim.EpochMs/1000+3602))
}

// The record has the state of a lock after the step, in simulated time.
func TestAStepMovesTheEndOfAHold(t *testing.T) {
	s := newStage(clockStep(time.Second, 3*time.Second), clockStep(2*time.Second, -5*time.Second))
	s.locks = []string{"k"}
	s.Observe = func(keys Keyspace, lock string) *model.LockState {
		owner, ok := keys.String(lock)
		if !ok {
			return &model.LockState{}
		}
		return &model.LockState{Owner: owner, Count: 1, ExpiresMs: keys.ExpiresMs(lock)}
	}
	r := s.does("a/1", func(th *sim.Thread, client *redis.Client) {
		client.Set(context.Background(), "k", "a", 8*time.Second)
		th.At(20 * time.Second)
	}).run(sim.NewHost(t))
	var got []string
	for _, e := range pick(r, ofKind(model.KindState)) {
		got = append(got, fmt.Sprintf("%v %s %d", at(e), e.State.Owner, e.State.ExpiresMs))
	}
	equal(t, "states", strings.Join(got, ", "), "1ms a 8001, 1s a 5001, 2s a 10001, 10.002s  0")
}

// A replica has a clock of its own, and the instant at which a key ends on the server.
func TestAReplicaHasItsOwnClock(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		faults []model.FaultSpec
		set    time.Duration
		want   time.Duration // the end of a key of 8 s
	}{
		{"a key that was set before the step ends when it should", []model.FaultSpec{clockStep(time.Second, 3*time.Second), failover(2 * time.Second)}, 0, 8002 * ms},
		{"a key that was set after it ends later by as much", []model.FaultSpec{clockStep(time.Second, 3*time.Second), failover(2 * time.Second)}, 1500 * ms, 12502 * ms},
		{"or earlier", []model.FaultSpec{clockStep(time.Second, -3*time.Second), failover(2 * time.Second)}, 1500 * ms, 6502 * ms},
		{"or at once", []model.FaultSpec{clockStep(time.Second, -time.Minute), failover(2 * time.Second)}, 1500 * ms, 0},
		{"the old clock comes back with the old server", []model.FaultSpec{clockStep(time.Second, 3*time.Second), failover(2 * time.Second), failover(3 * time.Second)}, 0, 5002 * ms},
		{"what ran out on the server runs out on the replica", []model.FaultSpec{clockStep(time.Second, 9*time.Second), failover(2 * time.Second)}, 0, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := replicated(1, ms, c.faults...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				th.At(c.set)
				client.Set(ctx, "k", "v", 8*time.Second)
				th.At(30 * time.Second)
				if n := client.Exists(ctx, "k").Val(); n != 0 {
					t.Error("the key is there to the end")
				}
			}).run(sim.NewHost(t))
			var ends time.Duration
			for _, e := range pick(r, ofKind(model.KindExpire)) {
				ends = at(e)
			}
			equal(t, "the end", ends, c.want)
		})
	}
}

// A failover of a server whose replicas are not simulated is to a server whose clock is
// right.
func TestAFailoverBringsAnotherClock(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		f := failover(2 * time.Second)
		var got string
		newStage(clockStep(time.Second, by), f).does("a/1", func(th *sim.Thread, client *redis.Client) {
			ctx := context.Background()
			client.Set(ctx, "k", "v", 2*time.Hour)
			th.At(3 * time.Second)
			client.Ping(ctx)
			got = fmt.Sprint(client.Time(ctx).Val().UnixMilli()-sim.EpochMs, " ", client.PTTL(ctx, "k").Val())
		}).run(sim.NewHost(t))
		equal(t, fmt.Sprintf("after %v, TIME and PTTL", by), got, "3001 1h59m56.998s")
	}
}
