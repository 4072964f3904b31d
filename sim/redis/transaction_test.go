package redis

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/sim"
)

// readOnly is the error of a replica.
const readOnly = "READONLY You can't write against a read only replica."

// A rule refuses a request in a transaction as redis-server does which is a replica at that moment. A star marks the
// refused request.
func TestARefusedTransactionAnswersAsRedisDoes(t *testing.T) {
	server := redisserver.Start(t, "redis-server")
	for name, e := range map[string]exchange{
		"a command that is queued": {"a: MULTI", "*a: SET k v", "a: GET k", "a: EXEC", "a: MULTI", "a: GET k", "a: EXEC"},
		"EXEC":                     {"a: WATCH k", "a: MULTI", "a: SET k v", "*a: EXEC", "b: SET k w", "a: MULTI", "a: GET k", "a: EXEC"},
		"EXEC of a dirty one":      {"a: MULTI", "a: SET k v", "a: GET", "*a: EXEC", "a: GET k"},
		"a command before MULTI":   {"*a: SET k v", "a: MULTI", "a: SET k v", "a: EXEC"},
	} {
		t.Run(name, func(t *testing.T) {
			var here, onRedis exchange
			rule := model.FaultSpec{Kind: model.FaultRule, Do: "error", With: readOnly, When: model.When{Direction: "request", Nth: 1}}
			for _, line := range e {
				line, refused := strings.CutPrefix(line, "*")
				here = append(here, line)
				if !refused {
					onRedis = append(onRedis, line)
					continue
				}
				rule.When.Command = strings.Fields(line)[1]
				onRedis = append(onRedis, "r: REPLICAOF 127.0.0.1 1", line, "r: REPLICAOF NO ONE")
			}
			want := slices.DeleteFunc(onRedis.onRedis(t, server.Addr), func(reply string) bool { return strings.HasPrefix(reply, "r") })
			var got []string
			var err error
			newStage(rule).does("a/1", func(th *sim.Thread, _ *redis.Client) {
				got, err = here.talks(func() (net.Conn, error) { return dial(th) }, nil)
			}).run(sim.NewHost(t))
			equal(t, "error", err, nil)
			equal(t, "answers", strings.Join(got, ""), strings.Join(want, ""))
			equal(t, "refused", strings.Count(strings.Join(got, ""), readOnly), 1)
		})
	}
}

// Redis executes a command in every state if COMMAND says so. AUTH and HELLO may be wrong all the same.
func TestWhichCommandsRedisNeverRefuses(t *testing.T) {
	server := redisserver.Start(t, "redis-server")
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	commands, err := client.Command(context.Background()).Result()
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{})
	for _, name := range s.Commands() {
		c := commands[strings.ToLower(name)]
		if c == nil || name == "AUTH" || name == "HELLO" {
			continue // a later release has it
		}
		always := true
		for _, flag := range []string{"loading", "stale", "allow_busy"} {
			always = always && slices.Contains(c.Flags, flag)
		}
		equal(t, name+" can be refused", s.Refuses(name), !always)
	}
}

// A transaction of a client executes all of its commands or none, whichever of them a rule refuses. The rule counts no
// MULTI.
func TestARefusalInATransactionOfAClient(t *testing.T) {
	const aborted = "EXECABORT Transaction discarded because of"
	for nth, want := range []string{1: aborted + " previous errors.", 2: aborted + " previous errors.", 3: aborted + ": BUSY", 4: "ok"} {
		if nth == 0 {
			continue
		}
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			rule := model.FaultSpec{Kind: model.FaultRule, Do: "error", With: "BUSY", When: model.When{Process: "a", Direction: "request", Nth: nth}}
			var got string
			left := int64(-1)
			newStage(rule).does("a/1", func(_ *sim.Thread, client *redis.Client) {
				_, err := client.TxPipelined(context.Background(), func(p redis.Pipeliner) error {
					p.Set(context.Background(), "k", 1, 0)
					p.Set(context.Background(), "l", 1, 0)
					return nil
				})
				got = kindOf(err)
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				th.At(time.Second)
				left = client.Exists(context.Background(), "k", "l").Val()
			}).run(sim.NewHost(t))
			equal(t, "error", got, want)
			equal(t, "keys", left, map[bool]int64{true: 2}[want == "ok"])
		})
	}
}
