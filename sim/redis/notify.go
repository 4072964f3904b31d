package redis

import (
	"fmt"
	"slices"
	"strings"

	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/model"
	"lockstep/sim"
)

// notifications are the classes of keyspace notifications that are on, and the channels to which they go.
type notifications uint16

const (
	notifyKeyspace notifications = 1 << iota // K
	notifyKeyevent                           // E
	notifyGeneric                            // g
	notifyString                             // $
	notifyList                               // l
	notifySet                                // s
	notifyHash                               // h
	notifyZset                               // z
	notifyExpired                            // x
	notifyEvicted                            // e
	notifyStream                             // t
	notifyMiss                               // m
	notifyModule                             // d
	notifyNew                                // n

	notifyAll = notifyGeneric | notifyString | notifyList | notifySet | notifyHash | notifyZset | notifyExpired | notifyEvicted | notifyStream | notifyModule
)

// notificationLetters are the letters of the setting notify-keyspace-events, in the order of the constants.
const notificationLetters = "KEg$lshzxetmdn"

// notificationsOf reads the setting. A letter that Redis does not know is ignored.
func notificationsOf(text string) (n notifications) {
	for _, letter := range text {
		if letter == 'A' {
			n |= notifyAll
		} else if i := strings.IndexRune(notificationLetters, letter); i >= 0 {
			n |= 1 << i
		}
	}
	return n
}

// CheckNotify returns an error if a value of notify-keyspace-events has an unknown letter.
func CheckNotify(text string) error {
	if i := strings.IndexFunc(text, func(r rune) bool { return r != 'A' && !strings.ContainsRune(notificationLetters, r) }); i >= 0 {
		return fmt.Errorf("%q is no value of notify-keyspace-events: %q is not one of the letters A%s", text, text[i:i+1], notificationLetters)
	}
	return nil
}

// String returns the value that CONFIG GET shows.
func (n notifications) String() string {
	text := ""
	if n&notifyAll == notifyAll {
		text, n = "A", n&^(notifyAll|notifyNew) // Redis does not show n behind A
	}
	for _, letter := range "g$lshzxetdnKEm" {
		if n&(1<<strings.IndexRune(notificationLetters, letter)) != 0 {
			text += string(letter)
		}
	}
	return text
}

// publishEvent publishes an event of a key to the channels that the setting names.
func (s *Server) publishEvent(peer *mserver.Peer, class notifications, event, key string) {
	if s.notify&class == 0 {
		return
	}
	database := s.database()
	for _, c := range []struct {
		kind          notifications
		channel, text string
	}{{notifyKeyspace, "__keyspace@" + database + "__:" + key, event}, {notifyKeyevent, "__keyevent@" + database + "__:" + event, key}} {
		if s.notify&c.kind == 0 {
			continue
		}
		s.woke = true
		s.published[c.channel]++
		s.out.Record(model.Event{Kind: model.KindPublish, Channel: c.channel, Text: c.text})
		if s.orders {
			s.out.Read(sim.ObjectConns)
			s.out.Write("channel " + c.channel)
		}
		s.quietly(peer, "PUBLISH", c.channel, c.text)
	}
}

// publishGone publishes that keys have run out, or that an operator has deleted them.
func (s *Server) publishGone(keys []string, class notifications, event string) {
	for _, key := range keys {
		s.publishEvent(mserver.NewPeer(nil), class, event, key)
	}
}

// happening is the event that a command causes.
type happening struct {
	class notifications
	event string // "": see happenings
	when  outcome
}

// outcome is the condition under which a command causes its event.
type outcome int

const (
	unlessError outcome = iota
	ifCounted           // the reply is a number above 0
	ifFound             // the reply is not nil
	ifChanged           // the sorted set has changed
)

// happenings has the events of commands whose first argument is the key. Those with empty events and those of other
// commands are in events.
var happenings = map[string]happening{
	"SET": {notifyString, "", unlessError}, "SETEX": {notifyString, "", unlessError}, "PSETEX": {notifyString, "", unlessError},
	"SETNX": {notifyString, "set", ifCounted}, "GETSET": {notifyString, "set", unlessError}, "MSET": {notifyString, "", unlessError},
	"MSETNX": {notifyString, "", ifCounted}, "APPEND": {notifyString, "append", unlessError}, "INCR": {notifyString, "incrby", unlessError},
	"DECR": {notifyString, "incrby", unlessError}, "INCRBY": {notifyString, "incrby", unlessError}, "DECRBY": {notifyString, "incrby", unlessError},
	"INCRBYFLOAT": {notifyString, "incrbyfloat", unlessError}, "SETRANGE": {notifyString, "setrange", ifCounted}, "SETBIT": {notifyString, "setbit", unlessError},
	"GETDEL": {notifyGeneric, "", ifFound}, "GETEX": {notifyGeneric, "", ifFound}, "DEL": {notifyGeneric, "", ifCounted}, "UNLINK": {notifyGeneric, "", ifCounted},
	"EXPIRE": {notifyGeneric, "", ifCounted}, "PEXPIRE": {notifyGeneric, "", ifCounted}, "EXPIREAT": {notifyGeneric, "", ifCounted}, "PEXPIREAT": {notifyGeneric, "", ifCounted},
	"PERSIST": {notifyGeneric, "persist", ifCounted}, "RENAME": {notifyGeneric, "", unlessError}, "RENAMENX": {notifyGeneric, "", ifCounted}, "COPY": {notifyGeneric, "", ifCounted},
	"RESTORE": {notifyGeneric, "restore", unlessError},
	"LPUSH":   {notifyList, "lpush", unlessError}, "RPUSH": {notifyList, "rpush", unlessError}, "LPUSHX": {notifyList, "lpush", ifCounted}, "RPUSHX": {notifyList, "rpush", ifCounted},
	"LPOP": {notifyList, "lpop", ifFound}, "RPOP": {notifyList, "rpop", ifFound}, "LSET": {notifyList, "lset", unlessError}, "LTRIM": {notifyList, "ltrim", ifFound},
	"LREM": {notifyList, "lrem", ifCounted}, "LINSERT": {notifyList, "linsert", ifCounted}, "LMOVE": {notifyList, "", ifFound}, "RPOPLPUSH": {notifyList, "", ifFound}, "LMPOP": {notifyList, "", ifFound},
	"HSET": {notifyHash, "hset", unlessError}, "HMSET": {notifyHash, "hset", unlessError}, "HSETNX": {notifyHash, "hset", ifCounted}, "HINCRBY": {notifyHash, "hincrby", unlessError},
	"HINCRBYFLOAT": {notifyHash, "hincrbyfloat", unlessError}, "HDEL": {notifyHash, "hdel", ifCounted},
	"SADD": {notifySet, "sadd", ifCounted}, "SREM": {notifySet, "srem", ifCounted}, "SPOP": {notifySet, "spop", ifFound}, "SMOVE": {notifySet, "", ifCounted},
	"SINTERSTORE": {notifySet, "sinterstore", ifCounted}, "SUNIONSTORE": {notifySet, "sunionstore", ifCounted}, "SDIFFSTORE": {notifySet, "sdiffstore", ifCounted},
	"ZADD": {notifyZset, "", ifChanged}, "ZINCRBY": {notifyZset, "zincr", unlessError}, "ZREM": {notifyZset, "zrem", ifCounted}, "ZREMRANGEBYSCORE": {notifyZset, "zremrangebyscore", ifCounted},
	"ZREMRANGEBYRANK": {notifyZset, "zremrangebyrank", ifCounted}, "ZREMRANGEBYLEX": {notifyZset, "zremrangebylex", ifCounted}, "ZPOPMIN": {notifyZset, "zpopmin", ifFound},
	"ZPOPMAX": {notifyZset, "zpopmax", ifFound}, "ZMPOP": {notifyZset, "", ifFound}, "ZUNIONSTORE": {notifyZset, "zunionstore", ifCounted}, "ZINTERSTORE": {notifyZset, "zinterstore", ifCounted},
	"XADD": {notifyStream, "xadd", ifFound}, "XDEL": {notifyStream, "xdel", ifCounted}, "XTRIM": {notifyStream, "xtrim", ifCounted},
}

// keyEvent is an event of a key.
type keyEvent struct {
	class      notifications
	event, key string
}

// events returns the events of a command that has had its outcome. before and after say which of its words were keys.
func events(cmd string, args []string, reply string, before, after map[string]bool) []keyEvent {
	list := ownEvents(cmd, args, reply, before, after)
	switch cmd {
	case "DEL", "UNLINK", "GETDEL", "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "RENAME", "RENAMENX", "SMOVE":
		return list // with the keys that it removed
	}
	for _, key := range args {
		if before[key] && !after[key] {
			list = append(list, keyEvent{notifyGeneric, "del", key})
		}
	}
	return list
}

// ownEvents returns the events of what a command is for.
func ownEvents(cmd string, args []string, reply string, before, after map[string]bool) (list []keyEvent) {
	h := happenings[cmd]
	add := func(class notifications, event, key string) { list = append(list, keyEvent{class, event, key}) }
	side := func(i int) string { return strings.ToLower(args[i][:1]) }
	has := func(words ...string) bool {
		return slices.ContainsFunc(args[1:], func(arg string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(arg, w) })
		})
	}
	switch cmd {
	case "SET":
		args = append([]string{args[0]}, args[2:]...)
		if has("NX") && before[args[0]] || has("XX") && !before[args[0]] {
			return nil
		}
		if add(h.class, "set", args[0]); has("EX", "PX", "EXAT", "PXAT") {
			add(notifyGeneric, "expire", args[0])
		}
	case "SETEX", "PSETEX":
		add(h.class, "set", args[0])
		add(notifyGeneric, "expire", args[0])
	case "MSET", "MSETNX":
		for i := 0; i < len(args); i += 2 {
			add(h.class, "set", args[i])
		}
	case "DEL", "UNLINK", "GETDEL":
		for i, key := range args {
			if before[key] && !slices.Contains(args[:i], key) {
				add(h.class, "del", key)
			}
		}
	case "GETEX":
		switch {
		case !after[args[0]]:
			add(h.class, "del", args[0])
		case has("PERSIST"):
			add(h.class, "persist", args[0])
		case len(args) > 1:
			add(h.class, "expire", args[0])
		}
	case "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT":
		add(h.class, map[bool]string{true: "expire", false: "del"}[after[args[0]]], args[0])
	case "RENAME", "RENAMENX":
		add(h.class, "rename_from", args[0])
		add(h.class, "rename_to", args[1])
	case "COPY":
		add(h.class, "copy_to", args[1])
	case "RPOPLPUSH":
		add(h.class, "lpush", args[1])
		add(h.class, "rpop", args[0])
	case "LMOVE":
		add(h.class, side(3)+"push", args[1])
		add(h.class, side(2)+"pop", args[0])
	case "LMPOP":
		add(h.class, map[bool]string{true: "lpop", false: "rpop"}[has("LEFT")], firstWord(reply))
	case "ZMPOP":
		add(h.class, map[bool]string{true: "zpopmin", false: "zpopmax"}[has("MIN")], firstWord(reply))
	case "SMOVE":
		add(h.class, "srem", args[0])
		if before[args[0]] && !after[args[0]] {
			add(notifyGeneric, "del", args[0])
		}
		add(h.class, "sadd", args[1])
	case "ZADD":
		add(h.class, map[bool]string{true: "zincr", false: "zadd"}[has("INCR")], args[0])
	default:
		if after[args[0]] || !strings.HasSuffix(cmd, "STORE") {
			add(h.class, h.event, args[0])
		}
	}
	return list
}

// firstWord returns the first word of a reply that is a list.
func firstWord(reply string) string {
	_, rest, _ := strings.Cut(reply, "\r\n")
	word, _ := parseReply(rest)
	return word
}

// follow lets miniredis execute a command, publishes its events, and answers in its place if an option is not simulated.
// It reports false for the many commands about which there is nothing to do but to execute them.
func (s *Server) follow(peer *mserver.Peer, k kind, cmd string, args []string) bool {
	if s.notify == 0 && k != 0 {
		return false
	}
	h, notifies := happenings[cmd]
	notifies = notifies && s.notify != 0 && len(args) > 0
	var missing []string
	if l := catalogue[cmd]; k == 0 && l != nil {
		missing = l.missing(s.cfg.Release, args)
	}
	stores := k == 0 && strings.HasSuffix(cmd, "STORE") && len(args) > 0
	if !notifies && len(missing) == 0 && !stores {
		return false
	}
	there := func() map[string]bool {
		found := map[string]bool{}
		for _, arg := range args {
			found[arg] = found[arg] || s.quietly(peer, "EXISTS", arg) == ":1\r\n"
		}
		return found
	}
	var before map[string]bool
	var was string
	look := func() string { return "" } // at what a change of the key shows in
	switch {
	case h.when == ifChanged:
		look = func() string { return s.quietly(peer, "ZRANGE", args[0], "0", "-1", "WITHSCORES") }
	case cmd == "GETEX" && strings.EqualFold(args[len(args)-1], "PERSIST"):
		look = func() string { return s.quietly(peer, "EXPIRETIME", args[0]) }
	}
	if notifies {
		before, was = there(), look()
	}
	s.passing = true
	reply := s.runPart(peer, append([]string{cmd}, args...)...)
	if len(missing) > 0 && strings.HasPrefix(reply, "-") {
		peer.WriteError(s.unsimulated(cmd + " with " + missing[0]))
		return true
	}
	if stores && reply == ":0\r\n" {
		s.quietly(peer, "DEL", args[0]) // miniredis would keep an empty key
	}
	peer.WriteRaw(reply)
	if !notifies || strings.HasPrefix(reply, "-") {
		return true
	}
	after := there()
	n, number := strings.CutPrefix(reply, ":")
	switch {
	case h.when == ifCounted && (!number || n[0] == '-' || n == "0\r\n") && !(strings.HasSuffix(cmd, "STORE") && before[args[0]]):
	case h.when == ifFound && isNull(reply), cmd == "LTRIM" && !before[args[0]], cmd == "SETRANGE" && args[len(args)-1] == "":
	case was != "" && was == look():
	default:
		s.publishEvents(peer, cmd, args, reply, before, after)
	}
	return true
}

// publishEvents publishes the events of a command.
func (s *Server) publishEvents(peer *mserver.Peer, cmd string, args []string, reply string, before, after map[string]bool) {
	for _, e := range events(cmd, args, reply, before, after) {
		if !before[e.key] && after[e.key] && e.class != notifyGeneric {
			s.publishEvent(peer, notifyNew, "new", e.key)
		}
		s.publishEvent(peer, e.class, e.event, e.key)
	}
}
