package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// Two independent servers: one process uses both. A fault strikes the server that it names, or both
// if it names none.
func TestTwoIndependentServers(t *testing.T) {
	addrs := []string{"192.0.2.1:6379", "192.0.2.2:6379"}
	at := func(f model.FaultSpec) []model.FaultSpec {
		f.At = time.Second
		return []model.FaultSpec{f}
	}
	partition := model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"a"}, For: time.Second}
	restart := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart}
	failover := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerFailover, LoseLast: 1}
	expire := model.FaultSpec{Kind: model.FaultKey, Key: "k", KeyDo: "expire"}
	step := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerWallClock, Step: time.Hour}
	on := func(f model.FaultSpec, nodes ...string) []model.FaultSpec {
		f.Nodes = nodes
		return at(f)
	}
	for _, c := range []struct {
		name   string
		faults []model.FaultSpec
		want   [2]string // of the first GET after the fault, and of the next
	}{
		{"no fault", nil, [2]string{"one one", "two two"}},
		{"a partition from one", on(partition, addrs[1]), [2]string{"one one", "timeout unreachable"}},
		{"a partition from both", at(partition), [2]string{"timeout unreachable", "timeout unreachable"}},
		{"one restarts", on(restart, addrs[0]), [2]string{"reset nil", "two two"}},
		{"both restart", at(restart), [2]string{"reset nil", "reset nil"}},
		{"one fails over", on(failover, addrs[1]), [2]string{"one one", "reset nil"}},
		{"a key of one is expired", on(expire, addrs[0]), [2]string{"nil nil", "two two"}},
		{"a key of both is expired", at(expire), [2]string{"nil nil", "nil nil"}},
		{"the clock of one steps", on(step, addrs[1]), [2]string{"one one", "nil nil"}},
		{"the clocks of both step", at(step), [2]string{"nil nil", "nil nil"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got [2]string
			s := newStage(c.faults...)
			s.Processes = []sim.ProcessConfig{{Name: "a", Threads: 2}}
			for i, addr := range addrs {
				s.Nodes = append(s.Nodes, sim.Node{Addr: addr, Locks: []string{fmt.Sprint("lock", i)}, Server: New(Config{
					Observe: func(keys Keyspace, _ string) *model.LockState {
						owner, _ := keys.String("k")
						return &model.LockState{Owner: owner}
					},
				})})
			}
			r := sim.Run(sim.NewHost(t), s.Config, func(w *sim.World) {
				p := w.Process("a")
				var clients []*redis.Client
				for _, addr := range addrs {
					opt := goredis.Options(p, addr)
					opt.ReadTimeout = 100 * ms
					clients = append(clients, goredis.NewClient(p, opt))
				}
				p.OnClose(func() {
					for _, client := range clients {
						_ = client.Close()
					}
				})
				for i, th := range p.Threads() {
					th.Start(func() {
						ctx := context.Background()
						clients[i].Set(ctx, "k", []string{"one", "two"}[i], time.Minute)
						th.At(1100 * ms)
						first := answer(clients[i].Get(ctx, "k"))
						got[i] = first + " " + answer(clients[i].Get(ctx, "k"))
					})
				}
			})
			equal(t, "of the first", got[0], c.want[0])
			equal(t, "of the second", got[1], c.want[1])
			seen := map[string]string{}
			for _, e := range pick(r, ofKind(model.KindState)) {
				if seen[e.Lock] == "" {
					seen[e.Lock] = e.State.Owner
				}
			}
			equal(t, "states", fmt.Sprint(seen), "map[lock0:one lock1:two]")
		})
	}
}

// answer returns the value of a GET, or its failure.
func answer(cmd *redis.StringCmd) string {
	if cmd.Err() != nil {
		return kindOf(cmd.Err())
	}
	return cmd.Val()
}
