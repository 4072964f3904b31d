package redis

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
)

// cached has lines of two connections, in turn, about RESP3, CLIENT and the keys that they have
// read. A PING after each line brings the messages that were pushed meanwhile.
var cached = []line{
	{"s", "HELLO 3 X"}, {"s", "HELLO 3 AUTH default"}, {"s", "CLIENT TRACKINGINFO"}, {"s", "HELLO 3"}, {"s", "HELLO 3 SETNAME n"}, {"s", "CLIENT GETNAME"},
	{"s", "GET k"}, {"s", "SET k v"}, {"s", "GET k"}, {"s", "HSET h f v"}, {"s", "HGETALL h"}, {"s", "SMEMBERS h2"}, {"s", "SADD h2 a"}, {"s", "SMEMBERS h2"},
	{"s", "ZADD z 1.5 a"}, {"s", "ZSCORE z a"}, {"s", "EVAL \"return {false,1,'a',{ok='fine'}}\" 0"}, {"s", "EVAL \"return redis.call('GET','none')\" 0"},
	{"s", "CLUSTER SLOTS"}, {"s", "CLIENT NO-EVICT ON"}, {"s", "CLIENT NO-EVICT X"},
	{"s", "CLIENT GETREDIR"}, {"s", "CLIENT TRACKINGINFO"}, {"s", "CLIENT CACHING YES"}, {"s", "CLIENT TRACKING"}, {"s", "CLIENT TRACKING X"},
	{"s", "CLIENT TRACKING ON PREFIX a"}, {"s", "CLIENT TRACKING ON OPTIN OPTOUT"}, {"s", "CLIENT TRACKING ON BCAST OPTIN"}, {"s", "CLIENT TRACKING ON NONSENSE"},

	// Every read counts.
	{"s", "CLIENT TRACKING ON"}, {"s", "CLIENT TRACKINGINFO"}, {"s", "CLIENT GETREDIR"}, {"s", "CLIENT TRACKING ON BCAST"}, {"s", "CLIENT CACHING NO"},
	{"s", "GET k"}, {"p", "SET k w"}, {"s", "PING"}, {"p", "SET k x"}, {"s", "PING"},
	{"s", "GET k"}, {"p", "GET k"}, {"s", "PING"}, {"p", "SET k y NX"}, {"s", "PING"}, {"p", "DEL none"}, {"s", "PING"}, {"p", "DEL k"}, {"s", "PING"},
	{"s", "GET absent"}, {"p", "SET absent v NX"}, {"s", "PING"}, {"s", "EXISTS absent k"}, {"p", "PEXPIRE absent 100000"}, {"s", "PING"},
	{"s", "GET absent"}, {"p", "PEXPIRE none 100000"}, {"s", "PING"}, {"p", "PEXPIREAT absent 4000000000000"}, {"s", "PING"},
	{"s", "GET absent"}, {"p", "PEXPIREAT absent 4000000000000"}, {"s", "PING"}, {"s", "TTL none"}, {"p", "PEXPIRE absent -1"}, {"s", "PING"},
	{"s", "SET k own"}, {"s", "GET k"}, {"s", "SET k own"}, {"s", "PING"}, {"s", "MGET k h3"}, {"p", "SET h3 v"}, {"s", "PING"}, {"p", "INCR n"}, {"s", "GET n"}, {"p", "INCR n"}, {"s", "PING"},
	{"s", "HGET h f"}, {"p", "HSET h f v"}, {"s", "PING"}, {"s", "HGET h f"}, {"p", "HSETNX h f w"}, {"s", "PING"}, {"p", "HDEL h nothing"}, {"s", "PING"}, {"p", "HDEL h f"}, {"s", "PING"},

	// Scripts and transactions read and write on behalf of their sender.
	{"s", "EVAL \"redis.call('SET',KEYS[1],'a') return redis.call('GET',KEYS[1])\" 1 k"}, {"s", "PING"}, {"p", "SET k b"}, {"s", "PING"},
	{"s", "EVAL \"redis.call('GET',KEYS[1]) return redis.call('DEL',KEYS[1])\" 1 k"}, {"s", "PING"}, {"p", "SET k b"}, {"s", "PING"},
	{"s", "EVAL \"redis.call('SET',KEYS[1],'a','NX') return redis.call('GET',KEYS[1])\" 1 k"}, {"s", "PING"}, {"p", "DEL k"}, {"s", "PING"},
	{"s", "MULTI;GET k;GET n;EXEC"}, {"p", "MULTI;SET k 1;SET n 2;EXEC"}, {"s", "PING"}, {"s", "MULTI;GET k;DISCARD"}, {"p", "SET k 3"}, {"s", "PING"},
	{"s", "GET k"}, {"s", "MULTI;SET k 4;GET k;EXEC"}, {"s", "PING"},

	// A flush notifies every client of every key.
	{"p", "FLUSHALL"}, {"s", "PING"}, {"s", "FLUSHALL"}, {"s", "PING"}, {"s", "CLIENT TRACKING OFF"}, {"s", "GET k"}, {"p", "SET k 1"}, {"s", "PING"},

	// Tracking without one's own changes, tracking on demand, and exceptions from tracking.
	{"s", "CLIENT TRACKING ON NOLOOP"}, {"s", "GET k"}, {"s", "SET k 2"}, {"s", "PING"}, {"p", "SET k 3"}, {"s", "PING"}, {"s", "GET k"}, {"p", "SET k 3"}, {"s", "PING"}, {"s", "CLIENT TRACKING OFF"},
	{"s", "CLIENT TRACKING ON OPTIN"}, {"s", "CLIENT CACHING NO"}, {"s", "GET k;CLIENT CACHING YES;CLIENT TRACKINGINFO;GET n;GET m"}, {"p", "MSET k 4 n 4 m 4"}, {"s", "PING"},
	{"s", "CLIENT CACHING YES;MULTI;GET k;PTTL n;EXEC;GET m"}, {"p", "SET k 1"}, {"s", "PING"}, {"p", "SET n 1"}, {"s", "PING"}, {"p", "SET m 1"}, {"s", "PING"},
	{"s", "CLIENT TRACKING ON OPTOUT"}, {"s", "CLIENT TRACKING OFF"},
	{"s", "CLIENT TRACKING ON OPTOUT NOLOOP"}, {"s", "CLIENT TRACKINGINFO"}, {"s", "CLIENT CACHING YES"}, {"s", "CLIENT CACHING NO;GET k;GET n"}, {"p", "SET k 1"}, {"p", "SET n 1"}, {"s", "PING"}, {"s", "CLIENT TRACKING OFF"},

	// Tracking by prefix, whatever the client has read.
	{"s", "CLIENT TRACKING ON BCAST PREFIX k PREFIX m"}, {"s", "CLIENT TRACKINGINFO"}, {"p", "SET ka 1"}, {"s", "PING"}, {"p", "SET n 1"}, {"s", "PING"}, {"p", "DEL none ka"}, {"s", "PING"},
	{"p", "FLUSHDB"}, {"s", "PING"}, {"s", "CLIENT TRACKING OFF"}, {"s", "CLIENT TRACKING ON BCAST NOLOOP"}, {"s", "CLIENT TRACKINGINFO"}, {"s", "SET ka 1"}, {"s", "PING"}, {"p", "SET ka 1"}, {"s", "PING"},
	{"s", "CLIENT TRACKING OFF"}, {"s", "CLIENT TRACKINGINFO"},

	// A client of RESP3 may subscribe and still send commands.
	{"s", "SSUBSCRIBE c"}, {"p", "SPUBLISH c m"}, {"s", "GET n"}, {"s", "PING"},

	// A client of RESP2 gets no notification.
	{"p", "CLIENT TRACKING ON"}, {"p", "GET n"}, {"s", "SET n 5"}, {"p", "PING"},
}

// numbers matches the release and the connection's number in the reply to HELLO.
var numbers = regexp.MustCompile(`(\$7\r\nversion\r\n)\$\d+\r\n[^\r]*|(\$2\r\nid\r\n):\d+`)

func TestTrackingAnswersAsRedisDoes(t *testing.T) {
	sameAsRedis(t, cached, func(reply string) string { return numbers.ReplaceAllString(reply, "$1$2") })
}

// push is the message that key k changed.
const push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"

// A client learns of a key that a fault or the end of its lease removes, as soon as the network
// permits. A stream that lost a message is reset as soon as its client can be told.
func TestAnInvalidationPassesTheNetwork(t *testing.T) {
	drop := model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Channel: invalidations}}
	hold := model.FaultSpec{Kind: model.FaultRule, Do: "hold", When: model.When{Channel: invalidations}, Until: new(3 * time.Second)}
	for _, c := range []struct {
		name   string
		faults []model.FaultSpec
		want   string // what the client reads, and when
		fate   string // of the push
	}{
		{"the lease ends", nil, push + "@2.003s", "deliver"},
		{"an operator deletes the key", []model.FaultSpec{{Kind: model.FaultKey, Key: "k", KeyDo: "delete", At: time.Second}}, push + "@1.001s", "deliver"},
		{"the server stalls", []model.FaultSpec{{Kind: model.FaultServer, Server: "stall", At: time.Second, For: 2 * time.Second}}, push + "@3.001s", "deliver"},
		{"the server restarts", []model.FaultSpec{{Kind: model.FaultServer, Server: "restart", At: time.Second}}, "read tcp: connection reset by peer@1s", ""},
		{"a rule drops it", []model.FaultSpec{drop}, "read tcp: connection reset by peer@2.002s", "lost dropped"},
		{"a rule holds it", []model.FaultSpec{hold}, push + "@3.001s", "deliver"},
		{"a partition", []model.FaultSpec{{Kind: model.FaultPartition, Processes: []string{"a"}, At: time.Second, For: 4 * time.Second}}, "read tcp: connection reset by peer@5s", "lost partition"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			r := newStage(c.faults...).does("a/1", func(th *sim.Thread, _ *redis.Client) {
				conn, err := dial(th)
				if err != nil {
					t.Error(err)
					return
				}
				read := func(more string) string {
					_, _ = io.WriteString(conn, more)
					buf := make([]byte, 4096)
					n, err := conn.Read(buf)
					if err != nil {
						return err.Error()
					}
					return string(buf[:n])
				}
				read(spoken("HELLO 3"))
				_ = conn.SetReadDeadline(time.Now().Add(2 * ms))
				for !strings.Contains(got, "timeout") {
					got = read("")
				}
				_ = conn.SetReadDeadline(time.Time{})
				read("*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nPX\r\n$4\r\n1996\r\n")
				read("*3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n")
				read("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
				got = read("")
				got = fmt.Sprintf("%s@%v", got, clock(th))
			}).run(sim.NewHost(t))
			equal(t, "read", got, c.want)
			var fates []string
			for _, e := range pick(r, func(e model.Event) bool { return e.Dir == "push" && e.Kind != model.KindHit }) {
				equal(t, "channel", e.Channel, invalidations)
				fates = append(fates, strings.TrimSpace(string(e.Kind)+" "+string(e.Why)))
			}
			equal(t, "fate", strings.Join(fates, ", "), c.fate)
		})
	}
}

// A connection does not continue after the loss of a message, so the reply to a later command is never
// taken for the reply to an earlier one. In RESP2 it ends when there is a later command.
func TestAConnectionEndsWithItsFirstLoss(t *testing.T) {
	for _, c := range []struct{ name, first, want string }{
		{"RESP2", "PING 1", ""},
		{"RESP3", "HELLO 3", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			drop := model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Direction: "reply", Command: "ECHO", Nth: 1}}
			newStage(drop).does("a/1", func(th *sim.Thread, _ *redis.Client) {
				conn, err := dial(th)
				if err != nil {
					t.Error(err)
					return
				}
				all := make(chan string)
				go func() {
					text, _ := io.ReadAll(conn)
					all <- string(text)
				}()
				_, _ = io.WriteString(conn, spoken(c.first))
				th.Sleep(10 * ms)
				_, _ = io.WriteString(conn, "*2\r\n$4\r\nECHO\r\n$1\r\n2\r\n")
				th.Sleep(time.Millisecond)
				_, _ = io.WriteString(conn, "*2\r\n$4\r\nECHO\r\n$1\r\n3\r\n")
				th.Sleep(10 * ms)
				_ = conn.Close()
				_, got, _ = strings.Cut(<-all, "end\r\n")
			}).run(sim.NewHost(t))
			equal(t, "read after the first reply", got, c.want)
		})
	}
}
