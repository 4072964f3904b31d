package redis

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/sim"
)

// The objects of a Redis server that a command may touch, besides keys and channels.
const (
	objScripts = "scripts"
	objWrites  = "writes"  // the number of writes so far
	objHistory = "history" // the writes that a failover may lose
)

// objAck returns the name of the object that records which replicas have acknowledged a
// write.
func objAck(write int64) string { return fmt.Sprintf("ack of write %d", write) }

// reading and writing are the commands that read or write only one key, their first argument.
var (
	reading = words("GET STRLEN GETRANGE PTTL TTL TYPE HGET HEXISTS HLEN HKEYS HVALS HGETALL HMGET LINDEX LLEN LRANGE ZSCORE ZRANGE ZCARD ZRANK ZCOUNT SISMEMBER SCARD SMEMBERS")
	writing = words("SET SETNX SETEX PSETEX GETSET GETDEL INCR INCRBY DECR DECRBY APPEND PEXPIRE EXPIRE PEXPIREAT EXPIREAT PERSIST HSET HSETNX HMSET HDEL HINCRBY RPUSH LPUSH RPOP LPOP LREM LSET LTRIM LINSERT ZADD ZREM ZINCRBY SADD SREM")
)

// keeping are further commands that do not change the data. The commands that a script
// executes count one by one.
var keeping = words("EVAL EVALSHA SCRIPT EXISTS PUBLISH SPUBLISH SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE PING ECHO WAIT INFO MULTI HELLO CLIENT")

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// touchCommand notes which objects of the server a command touches.
func (s *Server) touchCommand(cmd string, args []string) {
	if !s.orders {
		return
	}
	touch := func(object string, write bool) {
		if write {
			s.out.Write(object)
		} else {
			s.out.Read(object)
		}
	}
	all := func(kind string, names []string, write bool) {
		for _, name := range names {
			touch(kind+name, write)
		}
	}
	switch {
	case len(args) > 0 && reading[cmd]:
		all("key ", args[:1], false)
	case len(args) > 0 && writing[cmd]:
		all("key ", args[:1], true)
	case cmd == "EXISTS":
		all("key ", args, false)
	case cmd == "DEL" || cmd == "UNLINK":
		all("key ", args, true)
	case cmd == "EVALSHA":
		touch(objScripts, false)
	case cmd == "EVAL" && len(args) > 0:
		touch(objScripts, s.newScript(args[0]))
	case cmd == "SCRIPT" && len(args) == 2 && strings.EqualFold(args[0], "LOAD"):
		touch(objScripts, s.newScript(args[1]))
	case cmd == "PUBLISH" && len(args) > 0 || cmd == "SPUBLISH" && len(args) > 0:
		touch(sim.ObjectConns, false)
		all("channel ", args[:1], true)
	case len(args) > 0 && slices.Contains([]string{"SUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "SUNSUBSCRIBE"}, cmd):
		// The order of the subscribers does not matter. Only a PUBLISH reads them.
		touch(sim.ObjectConns, false)
		all("channel ", args, false)
	case cmd == "PING" || cmd == "ECHO":
	case cmd == "WAIT":
		// The order of two waiting commands does not matter.
		if s.lags {
			touch(objAck(s.executing.conn.seen), false)
		}
	case cmd == "INFO": // INFO touches nothing, see info
	default:
		touch(sim.ObjectServer, true)
	}
}

// newScript reports whether a script may be missing from the cache. The scripts of the
// Config are in the cache until a flush.
func (s *Server) newScript(text string) bool {
	return s.flushed || !slices.Contains(s.cfg.Scripts, text)
}
