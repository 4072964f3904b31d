package redis

import (
	"slices"
	"strings"

	mserver "github.com/alicebob/miniredis/v2/server"
)

// client answers the forms of CLIENT that miniredis does not know. It reports whether it answered.
func (s *Server) client(c *conn, args []string) bool {
	if len(args) == 0 {
		return false
	}
	sub, rest := strings.ToUpper(args[0]), args[1:]
	takes := map[string][2]int{"ID": {0, 0}, "SETINFO": {2, 2}, "NO-EVICT": {1, 1}, "NO-TOUCH": {1, 1}, "TRACKING": {1, many},
		"CACHING": {1, 1}, "TRACKINGINFO": {0, 0}, "GETREDIR": {0, 0}}
	n, known := takes[sub]
	switch {
	case !known:
		return false
	case len(rest) < n[0] || len(rest) > n[1]:
		c.peer.WriteError("ERR wrong number of arguments for 'client|" + strings.ToLower(sub) + "' command")
		return true
	}
	switch sub {
	case "ID":
		c.peer.WriteInt(int(c.id))
	case "SETINFO":
		if attribute := strings.ToUpper(rest[0]); attribute == "LIB-NAME" || attribute == "LIB-VER" {
			c.peer.WriteOK()
		} else {
			c.peer.WriteError("ERR Unrecognized option '" + rest[0] + "'")
		}
	case "NO-EVICT", "NO-TOUCH":
		if strings.EqualFold(rest[0], "ON") || strings.EqualFold(rest[0], "OFF") {
			c.peer.WriteOK()
		} else {
			c.peer.WriteError("ERR syntax error")
		}
	case "TRACKING":
		s.track(c, rest)
	case "CACHING":
		c.cache(rest)
	case "TRACKINGINFO":
		c.tracks.info(c.peer)
	case "GETREDIR":
		if c.tracks == nil {
			c.peer.WriteInt(-1)
		} else {
			c.peer.WriteInt(0)
		}
	}
	return true
}

// greet returns the reply to a HELLO that miniredis accepted, since miniredis would give its own
// name.
func (s *Server) greet(c *conn, words []string) []byte {
	server, version := s.cfg.Release.greeting()
	if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "SETNAME") }); i > 0 && i+1 < len(words) {
		c.peer.ClientName = words[i+1]
	}
	proto := 2
	if c.peer.Resp3 {
		proto = 3
	}
	c.peer.Block(func(w *mserver.Writer) {
		w.WriteMapLen(7)
		for _, field := range [][2]string{{"server", server}, {"version", version}} {
			w.WriteBulk(field[0])
			w.WriteBulk(field[1])
		}
		w.WriteBulk("proto")
		w.WriteInt(proto)
		w.WriteBulk("id")
		w.WriteInt(int(c.id))
		for _, field := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
			w.WriteBulk(field[0])
			w.WriteBulk(field[1])
		}
		w.WriteBulk("modules")
		w.WriteLen(0)
	})
	c.await()
	c.peer.Flush()
	return c.take()
}

// noCluster answers the commands for nodes of a cluster, which the server is not.
func noCluster(peer *mserver.Peer, cmd string, args []string) {
	if !takes(catalogue[cmd].arity, len(args)+1) {
		peer.WriteError("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
		return
	}
	peer.WriteError("ERR This instance has cluster support disabled")
}
