package redis

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/sim"
)

// An exchange is a list of lines. "a: GET k" sends a command on connection a and reads the reply, "a& BLPOP k 0" sends a
// command that waits, and "a?" reads its reply.
type exchange []string

// talks plays an exchange on connections that dial opens, and returns the replies. waiting is called after a command that
// waits has been sent.
func (e exchange) talks(dial func() (net.Conn, error), waiting func(n int)) (replies []string, err error) {
	type end struct {
		net.Conn
		*bufio.Reader
	}
	conns, blocked := map[string]end{}, 0
	for _, line := range e {
		who, how, text := line[:1], line[1], strings.TrimSpace(line[2:])
		c, ok := conns[who]
		if !ok {
			raw, err := dial()
			if err != nil {
				return nil, err
			}
			defer raw.Close()
			c = end{raw, bufio.NewReader(raw)}
			conns[who] = c
		}
		switch {
		case how == '!':
			c.Conn.Close()
			delete(conns, who)
			blocked--
			waiting(blocked)
			continue
		case how != '?':
			if _, err := io.WriteString(c, encoded(text)); err != nil {
				return replies, err
			}
		}
		if how == '&' {
			blocked++
			waiting(blocked)
			continue
		}
		if how == '?' {
			blocked--
		}
		reply, err := proto.Read(c.Reader)
		if err != nil {
			return replies, fmt.Errorf("%s: %w", line, err)
		}
		replies = append(replies, line+" => "+reply)
	}
	return replies, nil
}

// encoded returns a command whose words are apart by spaces; "_" stands for a space within a word.
func encoded(text string) string {
	words := strings.Fields(text)
	out := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		out += bulk(strings.ReplaceAll(w, "_", " "))
	}
	return out
}

// onRedis plays an exchange on a real server.
func (e exchange) onRedis(t *testing.T, addr string) []string {
	t.Helper()
	control, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	r := bufio.NewReader(control)
	ask := func(words string) string {
		if _, err := io.WriteString(control, encoded(words)); err != nil {
			t.Fatal(err)
		}
		reply, err := proto.Read(r)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	ask("FLUSHALL")
	ask("FUNCTION FLUSH")
	replies, err := e.talks(func() (net.Conn, error) { return net.Dial("tcp", addr) }, func(n int) {
		for !strings.Contains(ask("INFO clients"), fmt.Sprintf("blocked_clients:%d\r\n", n)) {
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return replies
}

// inTheWorld plays an exchange on a server of the world.
func (e exchange) inTheWorld(t *testing.T, release Release) (replies []string, r sim.Result) {
	t.Helper()
	var err error
	s := newStage().does("a/1", func(th *sim.Thread, _ *redis.Client) {
		replies, err = e.talks(func() (net.Conn, error) { return dial(th) }, func(int) { th.Sleep(10 * time.Millisecond) })
	})
	s.Release = release
	r = s.run(sim.NewHost(t))
	if err != nil {
		t.Fatalf("%v after %q", err, replies)
	}
	return replies, r
}

// sameAsRealRedis compares what an exchange says in the world and on redis-server.
func sameAsRealRedis(t *testing.T, server *redisserver.Server, e exchange) {
	t.Helper()
	version, err := server.Version()
	if err != nil {
		t.Fatal(err)
	}
	release, err := ParseRelease(version[:strings.LastIndex(version, ".")])
	if err != nil {
		t.Fatal(err)
	}
	want := e.onRedis(t, server.Addr)
	got, _ := e.inTheWorld(t, release)
	number := regexp.MustCompile(`id\r\n:\d+`) // of a connection, in the answer to HELLO
	for i := range want {
		if i >= len(got) || number.ReplaceAllString(got[i], "") != number.ReplaceAllString(want[i], "") {
			t.Errorf("here:  %q\nRedis: %q", got[min(i, len(got)-1)], want[i])
		}
	}
}

var waitsForKeys = map[string]exchange{
	"one waiter":                                {"a& BLPOP k 0", "b: RPUSH k 1 2", "a?", "b: LRANGE k 0 -1", "b: TYPE k"},
	"in the order of arrival":                   {"a& BLPOP k 0", "c& BRPOP k 0", "d& BLPOP k 0", "b: RPUSH k 1 2", "a?", "c?", "b: RPUSH k 3", "d?", "b: EXISTS k"},
	"after a transaction":                       {"a& BLPOP k 0", "b: MULTI", "b: RPUSH k 1", "b: LPUSH k 0", "b: LLEN k", "b: EXEC", "a?", "b: LRANGE k 0 -1"},
	"after a transaction that empties the list": {"a& BLPOP k 0", "b: MULTI", "b: RPUSH k 1", "b: LPOP k", "b: EXEC", "b: RPUSH k 2", "a?"},
	"after a script":                            {"a& BLPOP k l 0", "b: EVAL redis.call('rpush','l',1)_redis.call('rpush','k',2)_return_redis.call('llen','l') 0", "a?", "b: LRANGE k 0 -1", "b: LRANGE l 0 -1"},
	"keys in the order of the script":           {"a& BLPOP k 0", "c& BLPOP l 0", "d& BLPOP k l 0", "b: EVAL redis.call('rpush','l',1,2)_redis.call('rpush','k',3,4)_return_1 0", "a?", "c?", "d?", "b: KEYS *"},
	"another type":                              {"a& BLPOP k 0", "b: SET k v", "b: DEL k", "b: ZADD k 1 m", "b: DEL k", "b: RPUSH k 1", "a?"},
	"the wrong type at once":                    {"b: SET k v", "a: BLPOP k 0", "a: BLPOP none k 0", "a: BZPOPMIN k 0", "a: BLMOVE k l LEFT LEFT 0", "a: BLMPOP 0 1 k LEFT", "a: BZMPOP 0 1 k MIN"},
	"at once": {"b: RPUSH k 1 2 3", "b: ZADD z 1 m 2 n 3 o", "a: BLPOP none k 0", "a: BRPOP k 0", "a: BLMOVE k l LEFT RIGHT 0", "a: BRPOPLPUSH l k 0", "a: BLMPOP 0 2 none k LEFT COUNT 2",
		"a: BZPOPMIN none z 0", "a: BZPOPMAX z 0", "a: BZMPOP 0 1 z MAX COUNT 5", "a: EXISTS k z"},
	"a chain of lists":         {"a& BLMOVE k l LEFT LEFT 0", "c& BLPOP l 0", "b: RPUSH k 1", "a?", "c?", "b: KEYS *"},
	"a target of another type": {"b: SET l v", "a& BLMOVE k l LEFT LEFT 0", "c& BLPOP k 0", "b: RPUSH k 1", "a?", "c?"},
	"a list onto itself":       {"b: RPUSH k 1", "b: PEXPIRE k 100000", "a: BLMOVE k k LEFT RIGHT 0", "b: PERSIST k"},
	"who hangs up":             {"a& BLPOP k 0", "c& BLPOP k 0", "a!", "b: RPUSH k 1", "c?", "b: EXISTS k"},
	"sorted sets":              {"a& BZPOPMIN z 0", "c& BZPOPMAX z 0", "d& BZMPOP 0 1 z MIN COUNT 2", "b: ZADD z 1.5 m 2 n 3 o 4 p", "a?", "c?", "d?", "b: EXISTS z"},
	"several elements":         {"a& BLMPOP 0 2 k l RIGHT COUNT 2", "b: RPUSH l 1 2 3", "a?", "b: LRANGE l 0 -1"},
	"by another name":          {"a& BLPOP k 0", "b: RPUSH l 1 2", "b: RENAME l k", "a?", "b: LRANGE k 0 -1"},
	"moved":                    {"a& BLPOP k 0", "b: RPUSH l 1", "b: LMOVE l k LEFT LEFT", "a?", "b: KEYS *"},
	"timeouts": {"a: BLPOP k 0.05", "a: BLMOVE k l LEFT RIGHT 0.05", "a: BRPOPLPUSH k l 0.01", "a: BLMPOP 0.01 1 k LEFT", "a: BZPOPMIN k 0.01", "a: BZMPOP 0.01 1 k MIN",
		"a: XREAD BLOCK 5 STREAMS k $", "b: XGROUP CREATE s g $ MKSTREAM", "a: XREADGROUP GROUP g c BLOCK 5 STREAMS s >"},
	"timeouts in RESP3":                    {"a: HELLO 3 SETNAME a", "a: BLPOP k 0.05", "a: BLMOVE k l LEFT RIGHT 0.05", "a: XREAD BLOCK 5 STREAMS k $"},
	"RESP3":                                {"a: HELLO 3 SETNAME a", "a& BZPOPMIN z 0", "b: ZADD z 1.5 m 2 n", "a?", "a: BZPOPMAX z 0", "a& XREAD COUNT 2 BLOCK 0 STREAMS s t 0 0", "b: XADD t 1-1 f v", "a?"},
	"nothing waits in a transaction":       {"a: MULTI", "a: BLPOP k 0", "a: BLMOVE k l LEFT LEFT 0", "a: BRPOPLPUSH k l 0", "a: BLMPOP 0 1 k LEFT", "a: BZPOPMIN z 0", "a: BZMPOP 0 1 z MIN", "a: XREAD BLOCK 0 STREAMS s $", "a: EXEC"},
	"some find something in a transaction": {"a: MULTI", "a: RPUSH k 1 2", "a: BLPOP k 0", "a: BLMOVE k l LEFT LEFT 0", "a: EXEC"},
	"bad input": {"a: BLPOP k", "a: BLPOP k x", "a: BLPOP k -1", "a: BLMOVE k l UP LEFT 0", "a: BLMOVE k l LEFT LEFT x", "a: BLMPOP 0 0 k LEFT", "a: BLMPOP 0 x k LEFT", "a: BLMPOP 0 1 k UP",
		"a: BLMPOP 0 3 k LEFT", "a: BZMPOP 0 1 k LEFT", "a: BLMPOP -1 1 k LEFT", "a: BLMPOP 0 1 k LEFT COUNT 0", "a: BRPOPLPUSH k l", "a: XREAD BLOCK x STREAMS s $", "a: XREAD BLOCK -1 STREAMS s $",
		"a: XREAD BLOCK 0 STREAMS s", "a: XREAD BLOCK 0 STREAMS s t $", "a: XREAD FOO 1 STREAMS s $", "a: XREAD COUNT", "a: BLPOP k nan", "a: BLPOP"},
	"streams": {"a& XREAD BLOCK 0 STREAMS s $", "c& XREAD BLOCK 0 COUNT 1 STREAMS none s $ 0-0", "b: XADD s 1-1 f v", "a?", "c?", "a: XREAD COUNT 1 STREAMS s 0", "a& XREAD BLOCK 0 STREAMS s $", "b: XADD s 1-2 f w", "a?"},
	"groups":  {"b: XGROUP CREATE s g $ MKSTREAM", "a& XREADGROUP GROUP g c BLOCK 0 STREAMS s >", "c& XREADGROUP GROUP g d BLOCK 0 STREAMS s >", "b: XADD s 1-1 f v", "a?", "b: XADD s 1-2 f w", "c?", "a: XREADGROUP GROUP g c BLOCK 0 STREAMS s 0"},
}

func TestCommandsThatWaitAnswerAsRedisDoes(t *testing.T) {
	server := redisserver.Start(t, "redis-server")
	for name, e := range waitsForKeys {
		t.Run(name, func(t *testing.T) { sameAsRealRedis(t, server, e) })
	}
}

// A timeout is an instant of the schedule, counted from the arrival of the command.
func TestAWaitEndsAtItsTimeout(t *testing.T) {
	ctx := context.Background()
	for name, do := range map[string]func(*redis.Client) error{
		"BLPOP": func(c *redis.Client) error { return c.BLPop(ctx, 2*time.Second, "k").Err() },
		"XREAD": func(c *redis.Client) error {
			return c.XRead(ctx, &redis.XReadArgs{Streams: []string{"k", "$"}, Block: 2 * time.Second}).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			var ended time.Duration
			newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
				err = do(c)
				ended = clock(th)
			}).run(sim.NewHost(t))
			equal(t, "error", err, error(redis.Nil))
			equal(t, "ended", ended, 2*time.Second+2*oneWay)
		})
	}
}

// Requests behind a command that waits are answered after it.
func TestCommandsBehindOneThatWaits(t *testing.T) {
	var order []string
	r := newStage().does("a/1", func(th *sim.Thread, _ *redis.Client) {
		c, err := dial(th)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, encoded("BLPOP k 0")+encoded("GET v"))
		for in := bufio.NewReader(c); len(order) < 2; {
			reply, err := proto.Read(in)
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, fmt.Sprintf("%q@%v", reply, clock(th)))
		}
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		th.At(time.Second)
		c.Set(context.Background(), "v", "later", 0)
		c.RPush(context.Background(), "k", 1)
	}).run(sim.NewHost(t))
	equal(t, "replies", strings.Join(order, " "), `"*2\r\n$1\r\nk\r\n$1\r\n1\r\n"@1.004s "$5\r\nlater\r\n"@1.004s`)
	var executed []string
	for _, e := range pick(r, ofKind(model.KindExec)) {
		executed = append(executed, e.Command)
	}
	equal(t, "executed", strings.Join(executed, " "), "SET RPUSH BLPOP GET")
}
