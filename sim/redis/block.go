package redis

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/sim"
)

// Commands that may block do not come to miniredis, which would wait in simulated time and serve the clients in any
// order. The server tries such a command with the form that does not block, and lets the connection wait if that finds
// nothing. Whenever a command was executed that may have made one of the keys ready, the server tries again.

// blocked is a command that waits for one of its keys.
type blocked struct {
	conn *conn
	name string
	keys []string
	// try executes the command with these keys, on the connection of a client or of a script. It returns the
	// reply, or "" if the keys have nothing for the command.
	try func(peer *mserver.Peer, keys []string) (reply string)
	ns  int64 // the timeout; 0: none
}

// block answers a command that may block, or lets its connection wait.
func (s *Server) block(peer *mserver.Peer, cmd string, args []string) {
	if l := catalogue[cmd]; !takes(l.arity, len(args)+1) {
		peer.WriteError("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
		return
	}
	direct := peer == s.executing.conn.peer
	if !direct && !s.cfg.Release.tries() && catalogue[cmd].arity != -5 && !strings.HasPrefix(cmd, "X") {
		peer.WriteError("ERR This Redis command is not allowed from script")
		return
	}
	b, refusal := s.blocking(peer, cmd, args)
	if refusal != "" {
		peer.WriteError(refusal)
		return
	}
	if reply := b.try(peer, b.keys); reply != "" {
		peer.WriteRaw(reply)
		return
	}
	c := s.executing.conn
	switch {
	case peer != c.peer && b.ns >= 0 && !s.cfg.Release.tries():
		peer.WriteError("ERR " + strings.ToLower(cmd) + " command is not allowed with BLOCK option from scripts")
	case peer == c.peer && !s.inQueue && b.ns >= 0:
		b.conn, b.name = c, cmd
		c.blocked = b
		s.blocked = append(s.blocked, b)
		if b.ns > 0 {
			s.out.Plan(s.nowNs+b.ns, sim.ClassDeadline, func(nowNs int64, out *sim.Effects) { s.stopBlocking(nowNs, b, out) })
		}
	case cmd == "BLMOVE" || cmd == "BRPOPLPUSH":
		peer.WriteNull()
	default:
		peer.WriteRaw(nullArray(peer))
	}
}

// nullArray returns the reply of a command that found nothing.
func nullArray(peer *mserver.Peer) string {
	if peer.Resp3 {
		return "_\r\n"
	}
	return "*-1\r\n"
}

// blocking reads a command that may block. It returns an error of the command in its place.
func (s *Server) blocking(peer *mserver.Peer, cmd string, args []string) (b *blocked, refusal string) {
	b = &blocked{}
	last := len(args) - 1
	timeout := args[last]
	switch cmd {
	case "BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX":
		b.keys = args[:last]
		kind := "list"
		if strings.HasPrefix(cmd, "BZ") {
			kind = "zset"
		}
		b.try = func(peer *mserver.Peer, keys []string) string { return s.popFirst(peer, kind, cmd[1:], keys) }
	case "BLMOVE", "BRPOPLPUSH":
		from, to := "RIGHT", "LEFT"
		if cmd == "BLMOVE" {
			from, to = strings.ToUpper(args[2]), strings.ToUpper(args[3])
		}
		for _, side := range []string{from, to} {
			if side != "LEFT" && side != "RIGHT" {
				return nil, "ERR syntax error"
			}
		}
		b.keys = args[:1]
		b.try = func(peer *mserver.Peer, _ []string) string { return s.move(peer, args[0], args[1], from, to) }
	case "BLMPOP", "BZMPOP":
		timeout = args[0]
		n, err := strconv.Atoi(args[1])
		switch {
		case err != nil || n <= 0:
			return nil, "ERR numkeys should be greater than 0"
		case n > len(args)-3:
			return nil, "ERR syntax error"
		}
		b.keys = args[2 : 2+n]
		b.try = func(peer *mserver.Peer, keys []string) string {
			words := append(append([]string{cmd[1:], strconv.Itoa(len(keys))}, keys...), args[2+n:]...)
			if reply := s.runPart(peer, words...); !isNull(reply) {
				return reply
			}
			return ""
		}
	default:
		return s.reading(peer, cmd, args)
	}
	b.ns, refusal = timeoutOf(timeout)
	return b, refusal
}

// timeoutOf reads a timeout in seconds.
func timeoutOf(text string) (ns int64, refusal string) {
	seconds, err := strconv.ParseFloat(text, 64)
	switch ms := math.Ceil(seconds * 1000); {
	case err != nil || math.IsNaN(seconds) || strings.TrimSpace(text) != text:
		return 0, "ERR timeout is not a float or out of range"
	case seconds < 0:
		return 0, "ERR timeout is negative"
	case ms > float64(maxWaitMs):
		return 0, "ERR timeout is out of range"
	default:
		return int64(ms) * int64(time.Millisecond), ""
	}
}

// isNull reports whether a reply is that of a command that found nothing.
func isNull(reply string) bool {
	return reply == "$-1\r\n" || reply == "*-1\r\n" || reply == "_\r\n" || reply == "*0\r\n"
}

// popFirst takes an element from the first of the keys that has one.
func (s *Server) popFirst(peer *mserver.Peer, kind, pop string, keys []string) (reply string) {
	for _, key := range keys {
		switch is := s.quietly(peer, "TYPE", key); is {
		case "+none\r\n":
			continue
		case "+" + kind + "\r\n":
		default:
			return "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
		}
		popped := s.runPart(peer, pop, key)
		if kind == "list" {
			return "*2\r\n" + bulk(key) + popped
		}
		member, score, _ := strings.Cut(strings.TrimPrefix(popped, "*2\r\n"), "\r\n")
		text, score, _ := strings.Cut(score, "\r\n")
		return "*3\r\n" + bulk(key) + member + "\r\n" + text + "\r\n" + score
	}
	return ""
}

// move moves an element from one list to another.
func (s *Server) move(peer *mserver.Peer, source, target, from, to string) (reply string) {
	if source == target && s.quietly(peer, "TYPE", source) == "+list\r\n" && s.quietly(peer, "LLEN", source) == ":1\r\n" {
		return s.quietly(peer, "LINDEX", source, "0") // miniredis would forget the expiry of the list
	}
	if reply := s.runPart(peer, "LMOVE", source, target, from, to); !isNull(reply) {
		return reply
	}
	return ""
}

// bulk returns a bulk string.
func bulk(text string) string { return "$" + strconv.Itoa(len(text)) + "\r\n" + text + "\r\n" }

// reading reads an XREAD or an XREADGROUP. Its timeout is -1 without the option BLOCK.
func (s *Server) reading(peer *mserver.Peer, cmd string, args []string) (b *blocked, refusal string) {
	b = &blocked{ns: -1}
	words := []string{cmd}
	i := 0
	if cmd == "XREADGROUP" {
		words, i = append(words, args[:min(3, len(args))]...), 3
	}
	for ; i < len(args) && !strings.EqualFold(args[i], "STREAMS"); i++ {
		switch word := strings.ToUpper(args[i]); {
		case word == "BLOCK" && i+1 < len(args):
			i++
			ms, err := strconv.ParseInt(args[i], 10, 64)
			switch {
			case err != nil || ms > maxWaitMs:
				return nil, "ERR timeout is not an integer or out of range"
			case ms < 0:
				return nil, "ERR timeout is negative"
			}
			b.ns = ms * int64(time.Millisecond)
		case word == "COUNT" && i+1 < len(args):
			words = append(words, args[i], args[i+1])
			i++
		case word == "NOACK" && cmd == "XREADGROUP":
			words = append(words, args[i])
		case catalogue[cmd].has(s.cfg.Release, word):
			return nil, s.unsimulated(cmd + " with " + word)
		default:
			return nil, "ERR syntax error"
		}
	}
	if i >= len(args)-1 {
		return nil, "ERR syntax error"
	}
	streams := slices.Clone(args[i+1:])
	if len(streams)%2 != 0 {
		return nil, s.cfg.Release.unbalanced(cmd)
	}
	n := len(streams) / 2
	b.keys = streams[:n]
	for j, id := range streams[n:] {
		if id == "$" && cmd == "XREAD" {
			streams[n+j] = s.lastEntry(peer, streams[j])
		}
		if id != ">" && cmd == "XREADGROUP" {
			b.ns = -1 // entries that were delivered before are there at once, or never
		}
	}
	words = append(append(words, "STREAMS"), streams...)
	b.try = func(peer *mserver.Peer, _ []string) string {
		s.passing = true
		reply := s.runPart(peer, words...)
		if isNull(reply) {
			return ""
		}
		if peer.Resp3 {
			return pairs(reply)
		}
		return reply
	}
	return b, ""
}

// pairs returns an array of pairs as a map of RESP3.
func pairs(reply string) string {
	n, rest, ok := header(reply, '*')
	if !ok {
		return reply
	}
	var b strings.Builder
	b.WriteString("%" + strconv.Itoa(n) + "\r\n")
	for range n {
		pair := strings.TrimPrefix(rest, "*2\r\n")
		_, rest = parseReply(pair)
		_, rest = parseReply(rest)
		b.WriteString(pair[:len(pair)-len(rest)])
	}
	return b.String()
}

// lastEntry returns the id of the last entry of a stream.
func (s *Server) lastEntry(peer *mserver.Peer, key string) string {
	reply := s.quietly(peer, "XREVRANGE", key, "+", "-", "COUNT", "1")
	rest, ok := strings.CutPrefix(reply, "*1\r\n*2\r\n")
	if !ok {
		return "0-0"
	}
	id, _ := parseReply(rest)
	return id
}

// signal notes that a command has changed keys for which connections wait. Any word of a command may be a key.
func (s *Server) signal(args []string) {
	for _, arg := range args {
		if !slices.Contains(s.ready, arg) && slices.ContainsFunc(s.blocked, func(b *blocked) bool { return slices.Contains(b.keys, arg) }) {
			s.ready = append(s.ready, arg)
		}
	}
}

// serve answers the first connection that waits for a ready key and now finds something. Keys are served in the order in
// which they became ready, and connections in the order in which they began to wait.
func (s *Server) serve(nowNs int64, out *sim.Effects) {
	s.begin(nowNs, out)
	s.setClock()
	if s.orders {
		out.Write(sim.ObjectServer)
	}
	for ; len(s.ready) > 0; s.ready = s.ready[1:] {
		for _, b := range s.blocked {
			if !slices.Contains(b.keys, s.ready[0]) {
				continue
			}
			keys := b.keys
			if !s.cfg.Release.tries() {
				keys = s.ready[:1]
			}
			if reply := s.tryAgain(b, keys); reply != "" {
				b.leave(s)
				s.after()
				b.conn.seen = s.writes
				out.Changed = true
				out.Answer(b.conn.id, ReplyOf([]byte(reply)))
				out.Next(s.serve)
				return
			}
		}
	}
}

// tryAgain executes the command of a connection that waits. It returns the reply, or "" if the connection must wait on.
func (s *Server) tryAgain(b *blocked, keys []string) (reply string) {
	c := b.conn
	c.command = command{c, b.name, b.name}
	s.executing, s.wrote, s.woke = &c.command, false, true
	s.beginTracking()
	reply = b.try(c.peer, keys)
	s.executing = nil
	if strings.HasPrefix(reply, "-WRONGTYPE") && s.quietly(c.peer, "TYPE", keys[0]) != "+list\r\n" {
		reply = "" // a key of another type makes no connection ready
	}
	s.endTracking(c, reply != "")
	return reply
}

// stopBlocking answers a command whose timeout is over.
func (s *Server) stopBlocking(nowNs int64, b *blocked, out *sim.Effects) {
	s.begin(nowNs, out)
	switch {
	case b.conn.blocked != b:
		return // the command was answered, or its connection ended
	case s.stallTill > nowNs:
		out.Plan(s.stallTill, sim.ClassDeadline, func(nowNs int64, out *sim.Effects) { s.stopBlocking(nowNs, b, out) })
		return
	}
	if s.orders {
		out.Write(sim.ObjectServer)
	}
	b.leave(s)
	out.Answer(b.conn.id, ReplyOf([]byte(nullArray(b.conn.peer))))
}

// leave ends the wait of a command.
func (b *blocked) leave(s *Server) {
	b.conn.blocked = nil
	s.blocked = slices.DeleteFunc(s.blocked, func(o *blocked) bool { return o == b })
}
