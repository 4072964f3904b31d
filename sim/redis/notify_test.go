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

// changes are commands with and without events, one or more in a line. After each the subscriber says what it heard.
var changes = strings.Split(`SET k v
SET k v PX 100000
SET k v NX
SET k v XX GET
SET none v XX
SET new v NX GET
SETNX k v
SETNX fresh v
SETEX k 100 v
PSETEX k 100000 v
GETSET k w
MSET a 1 b 2
MSETNX a 1 c 2
MSETNX c 1 d 2
APPEND k x
INCR a;INCRBY a 2;DECR a;DECRBY a 3
INCRBYFLOAT a 1.5
SETRANGE k 1 abc
SETRANGE k 1 ""
GETDEL k
GETDEL none
GETEX a EX 100
GETEX a PERSIST
GETEX a PERSIST
GETEX a
DEL a b none
UNLINK c d
DEL none
SET k v;EXPIRE k 100;PEXPIRE k 100000;EXPIRE none 100
EXPIRE k 10 NX;EXPIRE k 200 GT;PERSIST k;PERSIST k
EXPIRE k -1
SET k v;PEXPIREAT k 1
SET k v;RENAME k l;RENAME l m;RENAMENX m n
COPY n o;COPY n o;COPY n o REPLACE
LPUSH q 1 2;RPUSH q 3;LPUSHX q 0;RPUSHX none 1
LSET q 0 x;LINSERT q BEFORE x y;LINSERT q BEFORE none y;LREM q 1 y;LREM q 1 none
LTRIM q 0 1;LPOP q;RPOP q;LPOP q
RPUSH q 1 2 3;LMOVE q r LEFT RIGHT;RPOPLPUSH q r;RPOPLPUSH q r;RPOPLPUSH q r
LPOP r 2;LTRIM r 5 6
LMPOP 2 none r LEFT;RPUSH r 1 2;LMPOP 2 none r RIGHT COUNT 5
RPUSH q 1;BLPOP q 0;RPUSH q 1 2;BLMOVE q r LEFT LEFT 0;BRPOP q 0
HSET h f 1;HSET h f 1;HMSET h g 2;HSETNX h f 1;HSETNX h i 1;HINCRBY h f 2;HINCRBYFLOAT h f 1.5;HDEL h f none;HDEL h none;HDEL h g i
SADD s 1 2;SADD s 1;SREM s 1 none;SREM s none;SMOVE s t 2;SMOVE s t 2;SPOP t;SPOP t
SADD s 1 2;SADD t 2 3;SINTERSTORE u s t;SUNIONSTORE u s t;SDIFFSTORE u s none;SINTERSTORE u s none;SINTERSTORE u s none
ZADD z 1 m;ZADD z 1 m;ZADD z 2 m;ZADD z NX 3 m;ZADD z INCR 1 m;ZINCRBY z 1 m;ZREM z m none;ZREM z m
ZADD z 1 m 2 n 3 o 4 p 5 q;ZPOPMIN z;ZPOPMAX z;ZREMRANGEBYSCORE z 2 2;ZREMRANGEBYRANK z 0 0;ZREMRANGEBYLEX z - +;ZPOPMIN z
ZADD z 1 m;BZPOPMIN z 0;ZADD z 1 m;ZMPOP 1 z MIN
ZADD z 1 m;ZUNIONSTORE y 1 z;ZINTERSTORE y 2 z none
XADD x 1-1 f v;XDEL x 1-1;XDEL x 1-1;XADD x 1-2 f v;XTRIM x MAXLEN 0;XTRIM x MAXLEN 0
MULTI;SET k v;DEL k;EXEC
MULTI;SET k v;DISCARD
EVAL "redis.call('set',KEYS[1],1,'px',50000) return redis.call('del',KEYS[1])" 1 k
EVAL "local r = redis r.call('set',KEYS[1],1) return r.call('del',KEYS[1])" 1 k
SET k v;GET k;EXISTS k;TTL k
LPUSH k 1
FLUSHALL
CONFIG SET notify-keyspace-events Kx$;SET k v;EXPIRE k 100;DEL k
CONFIG SET notify-keyspace-events Eg;SET k v;EXPIRE k 100;DEL k
CONFIG SET notify-keyspace-events AKEn;SET k v;SET k v;RPUSH q 1;HSET h f v
CONFIG SET notify-keyspace-events "";SET k v;CONFIG GET notify-keyspace-events`, "\n")

func TestKeyspaceNotificationsAreThoseOfRedis(t *testing.T) {
	list := []line{{"p", "CONFIG SET notify-keyspace-events AKE"}, {"s", "PSUBSCRIBE *"}}
	for _, change := range changes {
		list = append(list, line{"p", change}, line{"s", "PING"})
	}
	sameAsRedis(t, list, func(reply string) string { return reply })
	sameAsRedis(t, []line{
		{"p", "SELECT 3;CONFIG SET notify-keyspace-events AKE"}, {"s", "PSUBSCRIBE *"}, {"p", "SET k v;EXPIRE k 100;DEL k"}, {"s", "PING"},
		{"p", "SELECT 16;SELECT -1;SELECT;SELECT 3 4;SET k w;MULTI;SELECT 3;GET k;EXEC"}, {"s", "PING"},
	}, func(reply string) string { return reply })
}

// An expiry is published at the instant at which the key is gone, and one that falls into a stall when it ends.
func TestAnExpiryIsPublished(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults []model.FaultSpec
		want   string
	}{
		{"at its instant", nil, "expire@4ms expired@1.002s"},
		{"by an operator", []model.FaultSpec{{Kind: model.FaultKey, Key: "k", KeyDo: "expire", At: 500 * ms}}, "expire@4ms expired@501ms"},
		{"deleted by an operator", []model.FaultSpec{{Kind: model.FaultKey, Key: "k", KeyDo: "delete", At: 500 * ms}}, "expire@4ms del@501ms"},
		{"in a stall", []model.FaultSpec{{Kind: model.FaultServer, Server: model.ServerStall, At: 900 * ms, For: time.Second}}, "expire@4ms expired@1.901s"},
		{"after a restart, which sets the setting back", []model.FaultSpec{{Kind: model.FaultServer, Server: model.ServerRestart, KeepData: true, At: 500 * ms}}, "expire@4ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			var got []string
			s := newStage(c.faults...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				client.ConfigSet(ctx, "notify-keyspace-events", "Kgx")
				client.Set(ctx, "k", "v", time.Second-3*ms) // arrives at 3 ms, and is gone a millisecond after its time
				th.At(4 * time.Second)
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				got = listen(th, client, "__keyspace@0__:k", 3*time.Second)
			})
			r := s.run(sim.NewHost(t))
			equal(t, "received", fmt.Sprint(got), "["+c.want+"]")
			equal(t, "defects", len(pick(r, ofKind(model.KindDefect))), 0)
		})
	}
}

// The setting can be that of the subject.
func TestNotificationsFromTheStart(t *testing.T) {
	var got []string
	s := newStage().does("a/1", func(th *sim.Thread, client *redis.Client) {
		got = listen(th, client, "__keyevent@0__:del", 2*time.Second)
	}).does("b/1", func(th *sim.Thread, client *redis.Client) {
		th.At(time.Second)
		client.Set(context.Background(), "k", "v", 0)
		client.Del(context.Background(), "k")
	})
	s.Notify = "Eg"
	s.run(sim.NewHost(t))
	equal(t, "received", fmt.Sprint(got), "[k@1.004s]")
}
