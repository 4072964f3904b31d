package redis

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/sim"
)

// hear collects the messages of a subscription until an instant.
func hear(th *sim.Thread, sub *redis.PubSub, until time.Duration) (got []string) {
	defer sub.Close()
	for clock(th) < until {
		m, err := sub.ReceiveTimeout(context.Background(), until-clock(th))
		if err != nil {
			break
		}
		switch m := m.(type) {
		case *redis.Subscription:
			got = append(got, fmt.Sprintf("%s %s %d@%v", m.Kind, m.Channel, m.Count, clock(th)))
		case *redis.Message:
			got = append(got, fmt.Sprintf("%s:%s@%v", m.Channel, m.Payload, clock(th)))
		}
	}
	return got
}

func TestAShardedMessageReachesItsSubscribers(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rule string
		send func(*redis.Client) string
		want string
	}{
		{"by SPUBLISH", func(c *redis.Client) string { return fmt.Sprint(c.SPublish(ctx, "ch", "x").Val()) }, "1"},
		{"by a script", func(c *redis.Client) string {
			return fmt.Sprint(c.Eval(ctx, "return redis.call(ARGV[1], KEYS[1], ARGV[2])", []string{"ch"}, "SPUBLISH", "x").Val())
		}, "1"},
		{"by a transaction", func(c *redis.Client) string {
			var n *redis.IntCmd
			_, _ = c.TxPipelined(ctx, func(p redis.Pipeliner) error { n = p.SPublish(ctx, "ch", "x"); return nil })
			return fmt.Sprint(n.Val())
		}, "1"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got []string
			var receivers string
			var counted int64
			s := newStage()
			r := s.
				does("a/1", func(th *sim.Thread, client *redis.Client) {
					got = hear(th, client.SSubscribe(ctx, "ch"), 2*time.Second)
				}).
				does("b/1", func(th *sim.Thread, client *redis.Client) {
					th.At(time.Second)
					receivers = c.send(client)
					th.Do(func() { counted = s.server.Published("ch") })
				}).run(sim.NewHost(t))
			equal(t, "received", strings.Join(got, ", "), "ssubscribe ch 1@2ms, ch:x@1.002s")
			equal(t, "receivers", receivers, c.want)
			equal(t, "counted", counted, 1)
			published := pick(r, ofKind(model.KindPublish))
			if len(published) != 1 || published[0].Channel != "ch" || published[0].Text != "x" || at(published[0]) != time.Second+oneWay {
				t.Errorf("recorded: %+v", published)
			}
		})
	}
}

func TestADiscardedTransactionPublishesNothing(t *testing.T) {
	ctx := context.Background()
	r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		conn := c.Conn()
		defer conn.Close()
		for _, cmd := range []string{"multi", "spublish ch x", "publish ch x", "discard"} {
			words := strings.Fields(cmd)
			args := make([]any, len(words))
			for i, w := range words {
				args[i] = w
			}
			conn.Do(ctx, args...)
		}
	}).run(sim.NewHost(t))
	equal(t, "published", len(pick(r, ofKind(model.KindPublish))), 0)
}

func TestShardedChannelsAreApartFromTheOthers(t *testing.T) {
	ctx := context.Background()
	var sharded, plain, pattern []string
	var n [2]int64
	newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		sharded = hear(th, c.SSubscribe(ctx, "ch"), 2*time.Second)
	}).does("a/2", func(th *sim.Thread, c *redis.Client) {
		plain = hear(th, c.Subscribe(ctx, "ch"), 2*time.Second)
	}).does("a/3", func(th *sim.Thread, c *redis.Client) {
		pattern = hear(th, c.PSubscribe(ctx, "*"), 2*time.Second)
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		th.At(time.Second)
		n = [2]int64{c.SPublish(ctx, "ch", "s").Val(), c.Publish(ctx, "ch", "p").Val()}
	}).withThreeThreads("a").run(sim.NewHost(t))
	equal(t, "receivers", n, [2]int64{1, 2})
	equal(t, "sharded", strings.Join(sharded, ", "), "ssubscribe ch 1@2ms, ch:s@1.002s")
	equal(t, "plain", strings.Join(plain, ", "), "subscribe ch 1@2ms, ch:p@1.004s")
	equal(t, "pattern", strings.Join(pattern, ", "), "psubscribe * 1@2ms, ch:p@1.004s")
}

// withThreeThreads gives a process three threads.
func (s *stage) withThreeThreads(process string) *stage {
	for i := range s.Processes {
		if s.Processes[i].Name == process {
			s.Processes[i].Threads = 3
		}
	}
	return s
}

func TestAShardedSubscriptionEnds(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rule  string
		fault []model.FaultSpec
		end   func(*redis.PubSub)
	}{
		{"by SUNSUBSCRIBE", nil, func(s *redis.PubSub) { _ = s.SUnsubscribe(ctx, "ch") }},
		{"by SUNSUBSCRIBE of all", nil, func(s *redis.PubSub) { _ = s.SUnsubscribe(ctx) }},
		{"with its connection", nil, func(s *redis.PubSub) { _ = s.Close() }},
		{"with its process", []model.FaultSpec{{Kind: model.FaultCrash, Processes: []string{"a"}, At: time.Second}}, func(*redis.PubSub) {}},
		{"with a restart", []model.FaultSpec{{Kind: model.FaultServer, Server: "restart", At: time.Second}}, func(*redis.PubSub) {}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var n [2]int64
			r := newStage(c.fault...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				sub := client.SSubscribe(ctx, "ch")
				_, _ = sub.Receive(ctx)
				th.At(time.Second)
				c.end(sub)
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				th.At(900 * ms)
				n[0] = client.SPublish(ctx, "ch", "x").Val()
				th.At(1100 * ms)
				client.Ping(ctx)
				n[1] = client.SPublish(ctx, "ch", "x").Val()
			}).run(sim.NewHost(t))
			equal(t, "receivers before and after", n, [2]int64{1, 0})
			equal(t, "left", len(pick(r, func(e model.Event) bool { return e.Kind == model.KindLeft && e.Channel != "" })), 0)
		})
	}
}

func TestAShardedSubscriptionThatIsLeftIsListed(t *testing.T) {
	s := newStage().does("a/1", func(th *sim.Thread, _ *redis.Client) {
		c, _ := dial(th) // and never closed
		_, _ = io.WriteString(c, spoken("SSUBSCRIBE b a"))
		read(th, c)
	})
	var got []string
	for _, e := range pick(s.run(sim.NewHost(t)), func(e model.Event) bool { return e.Kind == model.KindLeft && e.Channel != "" }) {
		got = append(got, e.Channel)
	}
	equal(t, "left", fmt.Sprint(got), "[a b]")
}

// go-redis subscribes again by itself after its connection was lost.
func TestASubscriberComesBackAfterAReset(t *testing.T) {
	ctx := context.Background()
	var got []string
	newStage(model.FaultSpec{Kind: model.FaultServer, Server: "restart", At: time.Second}).does("a/1", func(th *sim.Thread, c *redis.Client) {
		sub := c.SSubscribe(ctx, "ch")
		defer sub.Close()
		for m := range sub.ChannelWithSubscriptions() {
			switch m := m.(type) {
			case *redis.Subscription:
				got = append(got, m.Kind)
			case *redis.Message:
				got = append(got, m.Payload)
				return
			}
		}
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		th.At(20 * time.Second) // after its health checks
		c.Ping(ctx)
		c.SPublish(ctx, "ch", "x")
	}).run(sim.NewHost(t))
	equal(t, "received", strings.Join(got, " "), "ssubscribe ssubscribe x")
}

func TestARuleOnAShardedChannel(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rule  string
		fault model.FaultSpec
		want  string
		hits  int
	}{
		// Replies to commands that name the channel count, too: to SSUBSCRIBE, and to each SPUBLISH
		// before its message.
		{"drops a message", model.FaultSpec{Do: "drop", When: model.When{Channel: "c*", Direction: "reply", Nth: 3}}, "ssubscribe ch 1@2ms, ch:2@1.004s", 1},
		{"delays a message", model.FaultSpec{Do: "delay", For: time.Second, When: model.When{Channel: "ch", Direction: "reply", Nth: 5}}, "ssubscribe ch 1@2ms, ch:1@1.002s, ch:2@2.004s", 1},
		{"drops a publication", model.FaultSpec{Do: "drop", When: model.When{Channel: "ch", Command: "SPUBLISH", Direction: "request", Nth: 1}}, "ssubscribe ch 1@2ms, ch:2@1.502s", 1},
		{"drops a subscription", model.FaultSpec{Do: "drop", When: model.When{Channel: "ch", Command: "SSUBSCRIBE"}}, "", 1},
		{"on another channel does nothing", model.FaultSpec{Do: "drop", When: model.When{Channel: "d*"}}, "ssubscribe ch 1@2ms, ch:1@1.002s, ch:2@1.004s", 0},
	} {
		c.fault.Kind = model.FaultRule
		t.Run(c.rule, func(t *testing.T) {
			var got []string
			s := newStage(c.fault).does("a/1", func(th *sim.Thread, client *redis.Client) {
				got = hear(th, client.SSubscribe(ctx, "ch"), 3*time.Second)
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				th.At(time.Second)
				client.SPublish(ctx, "ch", 1)
				client.SPublish(ctx, "ch", 2)
			})
			s.client = func(o *redis.Options) { o.ReadTimeout = 500 * ms }
			r := s.run(sim.NewHost(t))
			equal(t, "received", strings.Join(got, ", "), c.want)
			equal(t, "hits", len(pick(r, ofKind(model.KindHit))), c.hits)
		})
	}
}

// talk has lines of two connections, in turn, about sharded channels, WAIT and INFO.
var talk = []line{
	{"s", "SSUBSCRIBE a"}, {"s", "SSUBSCRIBE a b"}, {"s", "SSUBSCRIBE"}, {"s", "ssubscribe c"},
	{"s", "PING"}, {"s", "GET k"}, {"s", "SPUBLISH a x"}, {"s", "INFO"}, {"s", "WAIT 0 0"},
	{"p", "SPUBLISH a m1"}, {"p", "SPUBLISH z m2"}, {"p", "PUBLISH a m3"}, {"p", "SPUBLISH a"}, {"p", "SPUBLISH a b c"},
	{"s", "SUBSCRIBE a"}, {"p", "PUBLISH a m4"}, {"p", "SPUBLISH a m5"}, {"s", "UNSUBSCRIBE a"}, {"s", "GET k"},
	{"p", "EVAL \"return redis.call('SPUBLISH',KEYS[1],ARGV[1])\" 1 b m6"},
	{"p", "MULTI;SPUBLISH a m7;SPUBLISH b m8;PUBLISH a m9;EXEC"}, {"p", "MULTI;SPUBLISH a m10;DISCARD"},
	{"p", "PUBSUB SHARDNUMSUB a z"}, {"p", "PUBSUB SHARDNUMSUB"}, {"p", "PUBSUB SHARDCHANNELS a*"}, {"p", "PUBSUB SHARDCHANNELS z"},
	{"p", "PUBSUB CHANNELS"},
	{"s", "SUNSUBSCRIBE z"}, {"s", "SUNSUBSCRIBE a a"}, {"p", "SPUBLISH a m11"}, {"s", "SUNSUBSCRIBE b"}, {"s", "SUNSUBSCRIBE"},
	{"s", "SUNSUBSCRIBE"}, {"s", "GET k"}, {"p", "SPUBLISH b m12"},
	{"p", "SUNSUBSCRIBE x"}, {"p", "EVAL \"return redis.pcall('SSUBSCRIBE','a')\" 0"},
	{"p", "WAIT 0 0"}, {"p", "WAIT -1 0"}, {"p", "WAIT 1 1"}, {"p", "WAIT 2 1;GET k;WAIT 1 1;PING"}, {"p", "WAIT 1"}, {"p", "WAIT x 1"},
	{"p", "WAIT 1 x"}, {"p", "WAIT 1 -1"}, {"p", "WAIT 1.5 1"}, {"p", "wait 0 0"},
	{"p", "MULTI;SET k v;WAIT 1 0;WAIT 0 0;EXEC"}, {"p", "EVAL \"return redis.pcall('WAIT',1,1)\" 0"},
	{"p", "INFO nonsense"}, {"s", "PING"},
}

// spoken returns the commands of a line as bytes, with a command that marks the end of the replies.
func spoken(line string) string {
	var b strings.Builder
	for _, cmd := range append(strings.Split(line, ";"), "PING end") {
		script := strings.Split(cmd, "\"") // a quoted word in the middle
		words := strings.Fields(script[0])
		if len(script) == 3 {
			words = append(append(words, script[1]), strings.Fields(script[2])...)
		}
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	return b.String()
}

// line has commands of one of two connections, s and p. They are written at once.
type line struct{ who, says string }

// converse sends lines on two connections, and returns the replies.
func converse(talk []line, dial func() (net.Conn, error)) (replies []string, err error) {
	conns := map[string]net.Conn{}
	for _, who := range []string{"s", "p"} {
		c, err := dial()
		if err != nil {
			return nil, err
		}
		defer c.Close()
		conns[who] = c
	}
	for _, line := range talk {
		c := conns[line.who]
		if _, err := io.WriteString(c, spoken(line.says)); err != nil {
			return replies, err
		}
		var got []byte
		for !strings.HasSuffix(string(got), "$3\r\nend\r\n") {
			buf := make([]byte, 4096)
			n, err := c.Read(buf)
			if err != nil {
				return replies, fmt.Errorf("%s after %q", err, got)
			}
			got = append(got, buf[:n]...)
		}
		replies = append(replies, string(got))
	}
	return replies, nil
}

// This package itself answers sharded channels, WAIT and INFO. A real Redis without replicas
// answers the same bytes.
func TestOurOwnCommandsAnswerAsRedisDoes(t *testing.T) {
	sameAsRedis(t, talk, func(reply string) string { return reply })
}

// sameAsRedis compares the replies of a real Redis and of the world's to the lines of talk. plain
// removes parts of a reply that may differ.
func sameAsRedis(t *testing.T, talk []line, plain func(string) string) {
	t.Helper()
	address := redisserver.Start(t, "redis-server").Addr
	want, err := converse(talk, func() (net.Conn, error) { return net.Dial("tcp", address) })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	newStage().does("a/1", func(th *sim.Thread, _ *redis.Client) {
		got, err = converse(talk, func() (net.Conn, error) { return dial(th) })
	}).run(sim.NewHost(t))
	if err != nil {
		t.Fatalf("line %d, %v: %v", len(got)+1, talk[len(got)], err)
	}
	for i, line := range talk {
		if plain(got[i]) != plain(want[i]) {
			t.Errorf("%s: %s\nhere:  %q\nRedis: %q", line.who, line.says, got[i], want[i])
		}
	}
}
