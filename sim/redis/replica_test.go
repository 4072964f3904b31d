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

const ms = time.Millisecond

// replicated is a stage whose server has replicas, each exactly lag away.
func replicated(n int, lag time.Duration, faults ...model.FaultSpec) *stage {
	s := newStage(faults...)
	s.Replicas, s.LagMin, s.LagMax = n, lag, lag
	s.client = func(o *redis.Options) { o.ReadTimeout = time.Minute }
	return s
}

// uneven puts each replica at a lag of its own, between 0 and 10 s.
func uneven(lags []time.Duration, faults ...model.FaultSpec) *stage {
	s := replicated(len(lags), 0, faults...)
	s.LagMax = 10 * time.Second
	picks := picks{}
	for i, lag := range lags {
		picks[fmt.Sprintf("lag/%d/write", i+1)] = uint64(lag / slot)
	}
	s.Chooser = picks
	return s
}

// picks is a chooser with a fixed number per stream; 0 for others.
type picks map[string]uint64

func (p picks) Choose(stream string, n uint64) uint64 { return p[stream] % n }

func failover(at time.Duration) model.FaultSpec {
	return model.FaultSpec{Kind: model.FaultServer, Server: "failover", At: at}
}

// await sends WAIT, and returns the answer and its time.
func await(th *sim.Thread, c *redis.Client, n int, timeout time.Duration) string {
	got, err := c.Wait(context.Background(), n, timeout).Result()
	if err != nil {
		return fmt.Sprintf("%s@%v", kindOf(err), clock(th))
	}
	return fmt.Sprintf("%d@%v", got, clock(th))
}

// A message takes 1 ms to the server or back, and a lag to a replica or back.
func TestWaitAnswersWithTheReplicasThatHaveAcknowledged(t *testing.T) {
	ctx := context.Background()
	set := func(th *sim.Thread, c *redis.Client) { c.Set(ctx, "k", clock(th), 0) }
	for _, c := range []struct {
		rule     string
		replicas int
		lag      time.Duration
		before   func(th *sim.Thread, c *redis.Client)
		count    int
		timeout  time.Duration
		want     string
	}{
		{"as soon as all have", 2, 5 * ms, set, 2, time.Second, "2@12ms"},
		{"as soon as one has, of one", 1, 5 * ms, set, 1, time.Second, "1@12ms"},
		{"as soon as as many as asked have", 3, 5 * ms, set, 2, time.Second, "2@12ms"},
		{"at once when they have already", 2, ms / 2, set, 1, time.Second, "2@4ms"},
		{"at once for none", 2, 5 * ms, set, 0, time.Second, "0@4ms"},
		{"when the time is over, with fewer", 2, 5 * ms, set, 3, time.Second, "2@1.004s"},
		{"when the time is over, with none", 2, 10 * time.Second, set, 1, time.Second, "0@1.004s"},
		{"a lag is one way, so half the time is not enough", 1, 600 * ms, set, 1, time.Second, "0@1.004s"},
		{"without a time for ever", 1, 5 * time.Second, set, 1, 0, "1@10.002s"},
		{"at once on a connection that has seen nothing", 2, time.Second, func(*sim.Thread, *redis.Client) {}, 2, time.Second, "2@2ms"},
		{"for a deletion", 1, 5 * ms, func(th *sim.Thread, c *redis.Client) {
			set(th, c)
			th.At(50 * ms)
			c.Del(ctx, "k")
		}, 1, time.Second, "1@62ms"},
		{"for what a script writes", 1, 5 * ms, func(th *sim.Thread, c *redis.Client) {
			c.Eval(ctx, "return redis.call('hincrby', 'h', 'f', 1)", nil)
		}, 1, time.Second, "1@12ms"},
		{"for a fresh time to live", 1, 5 * ms, func(th *sim.Thread, c *redis.Client) {
			c.Set(ctx, "k", 1, time.Minute)
			th.At(50 * ms)
			c.PExpire(ctx, "k", time.Minute)
		}, 1, time.Second, "1@62ms"},
		{"for a published message, which replicas get too", 1, 5 * ms, func(th *sim.Thread, c *redis.Client) {
			c.Publish(ctx, "ch", "x")
		}, 1, time.Second, "1@12ms"},
		{"not for a command that changes nothing", 1, 5 * ms, func(th *sim.Thread, c *redis.Client) {
			set(th, c)
			th.At(50 * ms)
			c.Get(ctx, "k")
			c.Del(ctx, "none")
		}, 1, time.Second, "1@56ms"},
		{"without replicas when the time is over", 0, 0, set, 1, 100 * ms, "0@104ms"},
		{"without replicas at once for none", 0, 0, set, 0, 100 * ms, "0@4ms"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got string
			replicated(c.replicas, c.lag).does("a/1", func(th *sim.Thread, client *redis.Client) {
				c.before(th, client)
				got = await(th, client, c.count, c.timeout)
			}).run(sim.NewHost(t))
			equal(t, "answer", got, c.want)
		})
	}
}

// Redis notes for each connection the end of the log at its last command, whoever wrote the log.
func TestWaitIsForTheWritesOfOthersToo(t *testing.T) {
	ctx := context.Background()
	var before, after string
	replicated(1, 50*ms).does("b/1", func(th *sim.Thread, c *redis.Client) {
		th.At(100 * ms)
		c.Set(ctx, "k", 1, 0) // arrives at 101 ms
	}).does("a/1", func(th *sim.Thread, c *redis.Client) {
		th.At(99 * ms)
		c.Get(ctx, "k") // at 100 ms
		before = await(th, c, 1, time.Second)
		c.Get(ctx, "k")
		after = await(th, c, 1, time.Second)
	}).run(sim.NewHost(t))
	equal(t, "a write after the connection's last command", before, "1@103ms")
	equal(t, "a write before it", after, "1@202ms")
}

func TestAWaitBlocksItsConnectionOnly(t *testing.T) {
	ctx := context.Background()
	var replies []string
	var other time.Duration
	r := replicated(2, 20*ms).does("a/1", func(th *sim.Thread, c *redis.Client) {
		cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Eval(ctx, "return redis.call('incr', 'n')", nil)
			p.Do(ctx, "wait", 2, 1000)
			p.Get(ctx, "n")
			p.Incr(ctx, "n")
			p.Do(ctx, "wait", 3, 100)
			p.Get(ctx, "n")
			return nil
		})
		replies = append(replies, fmt.Sprint(err))
		for _, cmd := range cmds {
			_, text, _ := strings.Cut(cmd.String(), ": ")
			replies = append(replies, text)
		}
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		th.At(10 * ms)
		c.Ping(ctx)
		other = clock(th)
	}).run(sim.NewHost(t))
	equal(t, "replies", strings.Join(replies, " "), "<nil> 1 2 1 2 2 2")
	equal(t, "another connection is served at", other, 12*ms)
	var got []string
	for _, e := range pick(r, func(e model.Event) bool { return e.Kind == model.KindExec && e.Process == "a" }) {
		got = append(got, fmt.Sprintf("%s@%v", e.Command, at(e)))
	}
	equal(t, "executed", strings.Join(got, " "), "EVAL@1ms WAIT@41ms GET@41ms INCR@41ms WAIT@141ms GET@141ms")
}

// A command that arrives while the commands behind a WAIT are released stays behind them.
func TestCommandsBehindAWaitKeepTheirOrder(t *testing.T) {
	h := sim.NewHost(t)
	for seed := range uint64(20) {
		s := replicated(1, 0, model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: 7 * ms, For: 3 * ms})
		s.Chooser, s.LatencyMin, s.LatencyMax, s.LagMax = sim.NewSeeded(seed), 0, ms, ms
		var want, executed []int
		s.does("a/1", func(th *sim.Thread, _ *redis.Client) {
			c, _ := dial(th)
			defer c.Close()
			for i := range 20 {
				_, _ = fmt.Fprint(c, "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$1\r\n0\r\n")
				want = append(want, 2*i+1, 2*i+2)
				th.Sleep(300 * time.Microsecond)
			}
			th.Sleep(time.Second)
		})
		for _, e := range pick(s.run(h), ofKind(model.KindExec)) {
			executed = append(executed, e.Msg)
		}
		equal(t, fmt.Sprint("executed, seed ", seed), fmt.Sprint(executed), fmt.Sprint(want))
	}
}

func TestAWaitWithinATransactionDoesNotWait(t *testing.T) {
	ctx := context.Background()
	var got, at string
	var n int64
	s := replicated(2, 5*ms)
	s.does("a/1", func(th *sim.Thread, c *redis.Client) {
		c.Set(ctx, "k", 0, 0) // under way to the replicas
		cmds, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, "k", 1, 0)
			p.Do(ctx, "wait", 1, 1000)
			p.Publish(ctx, "ch", "x")
			return nil
		})
		for _, cmd := range cmds {
			_, text, _ := strings.Cut(cmd.String(), ": ")
			got += text + " "
		}
		got += fmt.Sprint(err)
		at = clock(th).String()
		th.Do(func() { n = s.server.Published("ch") })
	}).run(sim.NewHost(t))
	equal(t, "replies", got, "OK 0 0 <nil>")
	equal(t, "answered at", at, "4ms")
	equal(t, "published", n, 1)
}

func TestFailoverPromotesTheReplicaWithMost(t *testing.T) {
	ctx := context.Background()
	sec := time.Second
	for _, c := range []struct {
		rule   string
		lags   []time.Duration
		faults []model.FaultSpec
		keys   string // the keys at 9 s, of k1 to k3, which were written at 1, 2 and 3 s
		texts  string
	}{
		{"what had reached it is there", []time.Duration{5 * ms}, []model.FaultSpec{failover(4 * sec)},
			"k1 k2 k3", "failover to replica 1, which has every write"},
		{"what had not is gone", []time.Duration{1500 * ms}, []model.FaultSpec{failover(4 * sec)},
			"k1 k2", "failover to replica 1, which lacks the last 1 writes"},
		{"nothing had", []time.Duration{5 * sec, 6 * sec}, []model.FaultSpec{failover(4 * sec)},
			"", "failover to replica 1, which lacks the last 3 writes"},
		{"the first of equals", []time.Duration{5 * ms, 5 * ms}, []model.FaultSpec{failover(4 * sec)},
			"k1 k2 k3", "failover to replica 1, which has every write"},
		{"the one that has most", []time.Duration{2500 * ms, 500 * ms, 1500 * ms}, []model.FaultSpec{failover(4 * sec)},
			"k1 k2 k3", "failover to replica 2, which has every write"},
		{"a second one, when the others have caught up", []time.Duration{2500 * ms, 500 * ms}, []model.FaultSpec{failover(4 * sec), failover(8 * sec)},
			"k1 k2 k3", "failover to replica 2, which has every write; failover to replica 1, which has every write"},
		{"a second one, before they have", []time.Duration{2500 * ms, 500 * ms}, []model.FaultSpec{failover(4 * sec), failover(4100 * ms)},
			"k1", "failover to replica 2, which has every write; failover to replica 1, which lacks the last 2 writes"},
		{"back to the server before", []time.Duration{2500 * ms}, []model.FaultSpec{failover(4 * sec), failover(4100 * ms)},
			"k1 k2 k3", "failover to replica 1, which lacks the last 2 writes; failover to replica 1, which was the server before and had not caught up"},
		{"writes of the server before are gone for good", []time.Duration{2500 * ms}, []model.FaultSpec{failover(4 * sec), failover(8 * sec)},
			"k1", "failover to replica 1, which lacks the last 2 writes; failover to replica 1, which has every write"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got string
			r := uneven(c.lags, c.faults...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				for i := range 3 {
					th.At(time.Duration(i+1) * sec)
					client.Set(ctx, fmt.Sprint("k", i+1), i, 0)
				}
				th.At(9 * sec)
				client.Ping(ctx) // on a connection that a failover cut
				keys, _ := client.Keys(ctx, "*").Result()
				got = strings.Join(keys, " ")
			}).run(sim.NewHost(t))
			equal(t, "keys", got, c.keys)
			var texts []string
			for _, e := range pick(r, ofKind(model.KindFault)) {
				texts = append(texts, e.Text)
			}
			equal(t, "faults", strings.Join(texts, "; "), c.texts)
		})
	}
}

// One replica is enough for WAIT 1, and one more failover is enough to lose a write that only this
// replica had.
func TestAnAcknowledgedWriteAndFailovers(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rule      string
		count     int
		failovers []model.FaultSpec
		want      string
	}{
		{"both have it, both failovers keep it", 2, []model.FaultSpec{failover(8 * time.Second), failover(8100 * ms)}, "2 v"},
		{"one has it, one failover keeps it", 1, []model.FaultSpec{failover(time.Second)}, "1 v"},
		{"one has it, a second failover loses it", 1, []model.FaultSpec{failover(time.Second), failover(1002 * ms)}, "1 nil"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got string
			uneven([]time.Duration{5 * time.Second, 5 * ms}, c.failovers...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				client.Set(ctx, "k", "v", 0)
				n := client.Wait(ctx, c.count, 20*time.Second).Val()
				th.At(9 * time.Second)
				client.Ping(ctx)
				v, err := client.Get(ctx, "k").Result()
				if err != nil {
					v = kindOf(err)
				}
				got = fmt.Sprint(n, " ", v)
			}).run(sim.NewHost(t))
			equal(t, "acknowledged by, value", got, c.want)
		})
	}
}

func TestAfterAFailover(t *testing.T) {
	ctx := context.Background()
	const script = "return 1"
	var cut, noscript error
	var wait, info, old, early string
	var listening int64
	s := replicated(2, 5*ms, failover(time.Second)).does("a/1", func(th *sim.Thread, c *redis.Client) {
		sub := c.SSubscribe(ctx, "ch")
		defer sub.Close()
		// Its short time to live reaches the replicas, but the longer one does not.
		c.Set(ctx, "short", 1, 100*ms)
		th.At(990 * ms)
		early = fmt.Sprint(c.Exists(ctx, "short").Val())
		th.At(time.Second + 10*ms)
		cut = c.Ping(ctx).Err()
		noscript = redis.NewScript(script).EvalSha(ctx, c, nil).Err()
		listening = c.SPublish(ctx, "ch", "x").Val()
		th.At(2 * time.Second)
		c.Set(ctx, "k", 1, 0)
		wait = await(th, c, 2, time.Second)
		info = c.Info(ctx, "replication").Val()
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		th.At(996 * ms)
		c.Set(ctx, "late", 1, 0)
		c.Wait(ctx, 1, time.Minute)
		th.At(1500 * ms)
		old = fmt.Sprint(c.Exists(ctx, "late").Val())
	})
	s.Scripts = []string{script}
	s.run(sim.NewHost(t))
	equal(t, "connections", kindOf(cut), "reset")
	equal(t, "scripts", kindOf(noscript), "NOSCRIPT No matching script. Please use EVAL.")
	equal(t, "subscriptions", listening, 0)
	equal(t, "a key that ran out before", early, "0")
	equal(t, "a write under way", old, "0")
	equal(t, "replicas acknowledge to the new server", wait, "2@2.012s")
	if !strings.Contains(info, "connected_slaves:2") {
		t.Errorf("INFO: %q", info)
	}
}

func TestAKeyRunsOutAtAReplicaToo(t *testing.T) {
	ctx := context.Background()
	var got int64
	replicated(1, 300*ms, failover(time.Second)).does("a/1", func(th *sim.Thread, c *redis.Client) {
		c.Set(ctx, "k", 1, 500*ms)
		th.At(400 * ms) // earlier writes reached the replica, and later ones will, but not
		th.At(800 * ms)
		c.Set(ctx, "k", 1, 0) // this one
		th.At(2 * time.Second)
		c.Ping(ctx)
		got = c.Exists(ctx, "k").Val()
	}).run(sim.NewHost(t))
	equal(t, "keys", got, 0)
}

func TestARestartAndItsReplicas(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rule     string
		keep     bool
		failover time.Duration
		want     string
	}{
		{"without its data, before that reached the replica, the replica still has it", false, 1100 * ms, "1"},
		{"without its data, the replica loses it too", false, 2 * time.Second, "0"},
		{"with its data, the replica gets it anew", true, 2 * time.Second, "1"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got string
			restart := model.FaultSpec{Kind: model.FaultServer, Server: "restart", KeepData: c.keep, At: time.Second}
			replicated(1, 400*ms, restart, failover(c.failover)).does("a/1", func(th *sim.Thread, client *redis.Client) {
				client.Set(ctx, "k", 1, 0)
				th.At(3 * time.Second)
				client.Ping(ctx)
				got = fmt.Sprint(client.Exists(ctx, "k").Val())
			}).run(sim.NewHost(t))
			equal(t, "keys", got, c.want)
		})
	}
}

func TestWhatAnOperatorDeletesIsDeletedAtTheReplicas(t *testing.T) {
	ctx := context.Background()
	var got int64
	replicated(1, 5*ms, model.FaultSpec{Kind: model.FaultKey, Key: "k*", KeyDo: "delete", At: time.Second}, failover(2*time.Second)).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			c.Set(ctx, "k", 1, 0)
			th.At(3 * time.Second)
			c.Ping(ctx)
			got = c.Exists(ctx, "k").Val()
		}).run(sim.NewHost(t))
	equal(t, "keys", got, 0)
}

func TestAWaitAndWhatHappensToItsConnection(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rule  string
		lag   time.Duration
		fault model.FaultSpec
		want  string // in the reply to the client
		lost  string // lost messages of WAIT and of the GET after it
		ran   string
	}{
		{"a restart ends it", 200 * ms, model.FaultSpec{Kind: model.FaultServer, Server: "restart", KeepData: true, At: 100 * ms}, "reset@100ms",
			"WAIT request connection reset, GET request connection reset", ""},
		{"a failover ends it", 200 * ms, failover(100 * ms), "reset@100ms",
			"WAIT request connection reset, GET request connection reset", ""},
		{"a crash ends it", 200 * ms, model.FaultSpec{Kind: model.FaultCrash, Processes: []string{"a"}, At: 100 * ms}, "",
			"WAIT request connection closed, GET request connection closed", ""},
		{"a client that gives up ends it", 2 * time.Second, model.FaultSpec{}, "timeout@1s",
			"WAIT request connection closed, GET request connection closed", ""},
		{"a partition loses its answer", 200 * ms, model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"a"}, At: 100 * ms, For: 500 * ms}, "reset@600ms",
			"WAIT reply partition, GET reply partition", "WAIT@401ms GET@401ms"},
		{"a pause delays its answer", 200 * ms, model.FaultSpec{Kind: model.FaultPause, Processes: []string{"a"}, At: 100 * ms, For: 500 * ms}, "1@600ms",
			"", "WAIT@401ms GET@401ms"},
		{"a stall delays it", 200 * ms, model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: 100 * ms, For: 500 * ms}, "1@601ms",
			"", "WAIT@600ms GET@600ms"},
		{"a stall delays the end of its time, and counts what arrived in it", 400 * ms, model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: 100 * ms, For: 800 * ms}, "1@901ms",
			"", "WAIT@900ms GET@900ms"},
		{"a stall delays the end of its time", 2 * time.Second, model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: 100 * ms, For: 800 * ms}, "0@901ms",
			"", "WAIT@900ms GET@900ms"},
		{"a rule may drop it", 200 * ms, model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Command: "WAIT", Direction: "request"}}, "reset@0s",
			"WAIT request dropped, GET request behind a lost one", ""},
		{"a rule may drop its answer", 200 * ms, model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Command: "WAIT", Direction: "reply"}}, "reset@401ms",
			"WAIT reply dropped, GET request connection reset", "WAIT@401ms"},
		{"a rule may answer it", 200 * ms, model.FaultSpec{Kind: model.FaultRule, Do: "error", With: "ERR no", When: model.When{Command: "WAIT", Direction: "request"}}, "ERR no@2ms",
			"", "GET@1ms"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got string
			var faults []model.FaultSpec
			if c.fault.Kind != "" {
				faults = append(faults, c.fault)
			}
			timeout := 700
			if c.want == "timeout@1s" {
				timeout = 5000
			}
			s := replicated(1, c.lag, faults...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				cmds, _ := client.Pipelined(ctx, func(p redis.Pipeliner) error {
					p.Set(ctx, "k", 1, 0)
					p.Do(ctx, "wait", 1, timeout)
					p.Get(ctx, "k")
					return nil
				})
				wait := cmds[1].(*redis.Cmd)
				text := fmt.Sprintf("%v@%v", wait.Val(), clock(th))
				if wait.Err() != nil {
					text = fmt.Sprintf("%s@%v", kindOf(wait.Err()), clock(th))
				}
				th.Do(func() { got = text }) // unless it is dead
			})
			s.client = func(o *redis.Options) { o.ReadTimeout = time.Second }
			var lost, ran []string
			names := map[int]string{}
			r := s.run(sim.NewHost(t))
			for _, e := range pick(r, func(e model.Event) bool { return e.Msg > 0 && e.Msg != 1 }) {
				switch e.Kind {
				case model.KindSend:
					names[e.Msg] = e.Command
				case model.KindLost:
					lost = append(lost, fmt.Sprint(names[e.Msg], " ", e.Dir, " ", e.Why))
				case model.KindExec:
					ran = append(ran, fmt.Sprintf("%s@%v", e.Command, at(e)))
				}
			}
			equal(t, "client", got, c.want)
			equal(t, "lost", strings.Join(lost, ", "), c.lost)
			equal(t, "executed", strings.Join(ran, " "), c.ran)
			for _, e := range pick(r, ofKind(model.KindDefect)) {
				t.Errorf("defect: %s", e.Text)
			}
		})
	}
}

// A WAIT without end is open when all leave; nothing of it is left then.
func TestAWaitThatNeverEndsIsLeft(t *testing.T) {
	r := replicated(1, 24*time.Hour).does("a/1", func(th *sim.Thread, c *redis.Client) {
		_ = operate(th, func(ctx context.Context) error {
			c.Set(ctx, "k", 1, 0)
			return c.Do(ctx, "wait", 1, 0).Err()
		})
	})
	r.client = func(o *redis.Options) { o.ReadTimeout = -1 }
	for _, e := range pick(r.run(sim.NewHost(t)), func(e model.Event) bool {
		return e.Kind == model.KindDefect || e.Kind == model.KindLeft && e.Key == "" || e.Kind == model.KindExec && e.Command == "WAIT"
	}) {
		t.Errorf("unwanted: %+v", e)
	}
}

func TestInfoTellsOfReplicas(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "role:master connected_slaves:2"},
		{[]string{"replication"}, "role:master connected_slaves:2"},
		{[]string{"Replication"}, "role:master connected_slaves:2"},
		{[]string{"server", "replication"}, "role:master connected_slaves:2"},
		{[]string{"everything"}, "role:master connected_slaves:2"},
		{[]string{"memory"}, ""},
	} {
		var got []string
		replicated(2, ms).does("a/1", func(th *sim.Thread, client *redis.Client) {
			text, err := client.Info(ctx, c.args...).Result()
			if err != nil {
				t.Error(err)
			}
			for line := range strings.SplitSeq(text, "\r\n") {
				if strings.HasPrefix(line, "role:") || strings.HasPrefix(line, "connected_slaves:") {
					got = append(got, line)
				}
			}
		}).run(sim.NewHost(t))
		equal(t, fmt.Sprint("INFO ", c.args), strings.Join(got, " "), c.want)
	}
}

func TestAnExactLagDrawsNothing(t *testing.T) {
	for _, c := range []struct {
		max  time.Duration
		want string
	}{
		{5 * ms, "lag/1/ack 0, lag/1/write 0, lag/2/ack 0, lag/2/write 0"},
		{6 * ms, "lag/1/ack 3, lag/1/write 3, lag/2/ack 3, lag/2/write 3"},
	} {
		s := replicated(2, 5*ms)
		s.LagMax = c.max
		drawn := sim.NewRecorder(sim.NewSeeded(1))
		s.Chooser = drawn
		s.does("a/1", func(th *sim.Thread, c *redis.Client) {
			for range 3 {
				c.Incr(context.Background(), "n")
			}
			th.Sleep(time.Second)
		}).run(sim.NewHost(t))
		var got []string
		for _, stream := range []string{"lag/1/ack", "lag/1/write", "lag/2/ack", "lag/2/write"} {
			got = append(got, fmt.Sprint(stream, " ", len(drawn.Drawn[stream])))
		}
		equal(t, "drawn", strings.Join(got, ", "), c.want)
	}
}

// synced is the crowd with replicas, WAITs, sharded channels and failovers.
func synced(chooser sim.Chooser) *stage {
	s := crowded(chooser, time.Microsecond)
	s.Replicas, s.LagMin, s.LagMax = 3, 0, 15*ms
	for i, f := range s.Faults {
		if f.Server == "failover" {
			s.Faults[i].LoseLast = 0
		}
	}
	s.Faults = append(s.Faults,
		model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: 150 * ms, For: 20 * ms},
		model.FaultSpec{Kind: model.FaultServer, Server: "restart", At: 300 * ms},
		model.FaultSpec{Kind: model.FaultRule, When: model.When{Command: "WAIT", Every: 6}, Do: "reset"},
		failover(505*ms))
	script := redis.NewScript("redis.call('spublish', 'sh', ARGV[1]) return redis.call('incr', KEYS[1])")
	for name, crowd := range s.bodies {
		s.bodies[name] = func(th *sim.Thread, c *redis.Client) {
			for range 8 {
				_ = operate(th, func(ctx context.Context) error {
					sub := c.SSubscribe(ctx, "sh")
					defer sub.Close()
					_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
						script.Eval(ctx, p, []string{"n"}, th.Name())
						p.Do(ctx, "wait", 2, 20)
						return nil
					})
					_, _ = sub.ReceiveTimeout(ctx, 5*ms)
					c.Info(ctx, "replication")
					return err
				})
			}
			crowd(th, c)
		}
	}
	return s
}

func TestAWorldWithReplicasRepeatsItsRecord(t *testing.T) {
	h := sim.NewHost(t)
	for seed := range uint64(10) {
		drawn := sim.NewRecorder(sim.NewSeeded(seed))
		first := synced(drawn).run(h)
		waits := 0
		for _, e := range pick(first, func(e model.Event) bool { return e.Command == "WAIT" && e.Kind == model.KindExec }) {
			if e.Reply != "0" {
				waits++
			}
		}
		if waits < 5 {
			t.Errorf("seed %d: only %d WAITs were acknowledged", seed, waits)
		}
		want := first.Record.Digest()
		equal(t, fmt.Sprint("digest of seed ", seed), synced(sim.NewSeeded(seed)).run(h).Record.Digest(), want)
		replayer := sim.NewReplayer(drawn.Drawn)
		equal(t, fmt.Sprint("digest of its decisions, seed ", seed), synced(replayer).run(h).Record.Digest(), want)
		equal(t, "diverged", replayer.Diverged(), "")
	}
}

// A connection is a stream: no command of a pipeline overtakes an earlier one, and none gets the
// answer to another.
func TestARuleOnOneCommandOfAPipeline(t *testing.T) {
	ctx := context.Background()
	until := 300 * ms
	for _, c := range []struct {
		rule  model.FaultSpec
		want  string
		ended time.Duration
		ran   int
	}{
		// go-redis gives every command of a pipeline the error that ended its reading.
		{model.FaultSpec{Do: "drop", When: model.When{Command: "INCR", Direction: "request", Nth: 2}}, "reset reset reset reset", 0, 0},
		{model.FaultSpec{Do: "drop", When: model.When{Command: "INCR", Direction: "reply", Nth: 2}}, "reset reset reset reset", ms, 4},
		{model.FaultSpec{Do: "error", With: "ERR no", When: model.When{Command: "INCR", Direction: "request", Nth: 2}}, "1 ERR no 2 3", 2 * ms, 3},
		{model.FaultSpec{Do: "error", With: "ERR no", When: model.When{Command: "INCR", Direction: "reply", Nth: 2}}, "1 ERR no 3 4", 2 * ms, 4},
		{model.FaultSpec{Do: "delay", For: 100 * ms, When: model.When{Command: "INCR", Direction: "request", Nth: 2}}, "1 2 3 4", 102 * ms, 4},
		{model.FaultSpec{Do: "delay", For: 100 * ms, When: model.When{Command: "INCR", Direction: "reply", Nth: 2}}, "1 2 3 4", 102 * ms, 4},
		{model.FaultSpec{Do: "hold", Until: &until, When: model.When{Command: "INCR", Direction: "request", Nth: 2}}, "1 2 3 4", 302 * ms, 4},
		{model.FaultSpec{Do: "hold", Until: &until, When: model.When{Command: "INCR", Direction: "reply", Nth: 2}}, "1 2 3 4", 301 * ms, 4},
		{model.FaultSpec{Do: "reset", When: model.When{Command: "INCR", Direction: "reply", Nth: 2}}, "reset reset reset reset", ms, 2},
	} {
		c.rule.Kind = model.FaultRule
		t.Run(c.rule.Do+" "+c.rule.When.Direction, func(t *testing.T) {
			var got []string
			var ended time.Duration
			s := newStage(c.rule).does("a/1", func(th *sim.Thread, client *redis.Client) {
				cmds, _ := client.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range 4 {
						p.Incr(ctx, "n")
					}
					return nil
				})
				for _, cmd := range cmds {
					text := fmt.Sprint(cmd.(*redis.IntCmd).Val())
					if cmd.Err() != nil {
						text = kindOf(cmd.Err())
					}
					got = append(got, text)
				}
				ended = clock(th)
			})
			s.client = func(o *redis.Options) { o.ReadTimeout = time.Second }
			r := s.run(sim.NewHost(t))
			equal(t, "replies", strings.Join(got, " "), c.want)
			equal(t, "ended", ended, c.ended)
			equal(t, "executed", len(pick(r, ofKind(model.KindExec))), c.ran)
		})
	}
}
