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

// A kind is a set of effects of a command.
type kind uint16

const (
	reads      kind = 1 << iota // reads only one key, its first argument
	writes                      // changes only one key, its first argument
	deletes                     // deletes keys, its arguments
	keeps                       // is another command that does not change the data; the commands of a script count one by one
	blocks                      // may block its connection
	answers                     // this package answers or counts it
	scriptless                  // is not allowed in scripts
	listed                      // a look at the catalogue says whether the server has it
)

// is reports whether a command does one of these.
func (k kind) is(some kind) bool { return k&some != 0 }

// kinds has the kinds of commands by their names. All others have none.
var kinds = func() map[string]kind {
	all := map[string]kind{}
	for k, names := range map[kind]string{
		reads:      "GET STRLEN GETRANGE PTTL TTL TYPE HGET HEXISTS HLEN HKEYS HVALS HGETALL HMGET LINDEX LLEN LRANGE ZSCORE ZRANGE ZCARD ZRANK ZCOUNT SISMEMBER SCARD SMEMBERS",
		writes:     "SET SETNX SETEX PSETEX GETSET GETDEL INCR INCRBY DECR DECRBY APPEND PEXPIRE EXPIRE PEXPIREAT EXPIREAT PERSIST HSET HSETNX HMSET HDEL HINCRBY RPUSH LPUSH RPOP LPOP LREM LSET LTRIM LINSERT ZADD ZREM ZINCRBY SADD SREM",
		deletes:    "DEL UNLINK",
		keeps:      "EVAL EVALSHA SCRIPT EXISTS PUBLISH SPUBLISH SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE PING ECHO WAIT INFO MULTI HELLO CLIENT",
		blocks:     "BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP",
		answers:    "PUBLISH SPUBLISH SSUBSCRIBE SUNSUBSCRIBE WAIT INFO PUBSUB CLIENT CLUSTER READONLY READWRITE ASKING CONFIG FUNCTION FCALL FCALL_RO DELEX DELIFEQ DIGEST BLPOP BRPOP BRPOPLPUSH BLMOVE BLMPOP BZPOPMIN BZPOPMAX BZMPOP XREAD XREADGROUP",
		scriptless: "SSUBSCRIBE SUNSUBSCRIBE WAIT CONFIG FUNCTION FCALL FCALL_RO",
	} {
		for _, name := range strings.Fields(names) {
			all[name] |= k
		}
	}
	old := Release{name: "7.0", number: []int{7, 0}}
	for name := range all {
		if l := catalogue[name]; !old.has(l.since) || l.since.valkey == nil || containers[name] {
			all[name] |= listed
		}
	}
	return all
}()

// touchCommand notes which objects of the server a command touches. Only a world of Orders needs it.
func (s *Server) touchCommand(cmd string, args []string) {
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
	case len(args) > 0 && kinds[cmd].is(reads):
		all("key ", args[:1], false)
	case len(args) > 0 && kinds[cmd].is(writes):
		all("key ", args[:1], true)
	case cmd == "EXISTS":
		all("key ", args, false)
	case kinds[cmd].is(deletes):
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
