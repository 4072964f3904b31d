package redis

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/sim"
)

// miniredis does not know CLIENT TRACKING. The world remembers the readers of each key, finds out
// which keys a command changed, and notifies their readers.

// invalidations is the channel of an invalidation in rules and in the record. Redis uses this name
// for clients of RESP2.
const invalidations = "__redis__:invalidate"

// tracks is the tracking of one connection.
type tracks struct {
	bcast         bool
	prefixes      []string // of bcast; none: every key
	optIn, optOut bool
	noLoop        bool
	caching       string // the argument of CLIENT CACHING for the next command: "YES", "NO" or ""
}

// tracking is the tracking of all connections.
type tracking struct {
	clients  []*conn            // the clients that track, by number
	readers  map[string][]*conn // by key, the clients that read it since it last changed, by number
	accesses []access           // accesses of the command that is being executed, in order
	// before is the data before the command that is being executed.
	before map[string]saved
}

// access is one access of a command to a key.
type access struct {
	key   string
	write bool
	// signals: the command counts as a change of the key even if it does not change the key. An
	// absent key counts only if makes is set, too.
	signals, makes bool
	flush          bool // every key is gone; key is empty
}

// accesses returns the accesses of a command to keys. For rare commands it may report writes that
// do not happen. This does no harm, since the data shows whether a key changed.
func accesses(cmd string, args []string) (list []access) {
	switch {
	case cmd == "FLUSHALL" || cmd == "FLUSHDB":
		return []access{{flush: true}}
	case len(args) > 0 && kinds[cmd].is(reads):
		return []access{{key: args[0]}}
	case cmd == "EXISTS" || cmd == "MGET":
		for _, key := range args {
			list = append(list, access{key: key})
		}
	case len(args) > 0 && kinds[cmd].is(writes):
		a := access{key: args[0], write: true}
		switch cmd {
		case "SET":
			has := func(option string) bool {
				return slices.ContainsFunc(args[min(2, len(args)):], func(arg string) bool { return strings.EqualFold(arg, option) })
			}
			a.signals, a.makes = !has("NX"), !has("NX") && !has("XX")
		case "SETEX", "PSETEX", "GETSET", "HSET", "HMSET":
			a.signals, a.makes = true, true
		case "PEXPIRE", "EXPIRE", "PEXPIREAT", "EXPIREAT":
			a.signals = len(args) == 2 // with NX, XX, GT or LT only a change of the data counts
		case "LSET":
			a.signals = true
		}
		return []access{a}
	case kinds[cmd].is(keeps):
	default:
		for _, key := range args {
			list = append(list, access{key: key, write: true})
		}
	}
	return list
}

// beginTracking notes the data before a command.
func (s *Server) beginTracking() {
	t := &s.tracking
	t.accesses, t.before = t.accesses[:0], nil
	if len(t.clients) > 0 {
		t.before = s.allData()
	}
}

// allData returns the data by key.
func (s *Server) allData() map[string]saved {
	data := map[string]saved{}
	for _, k := range s.m.Keys() {
		data[k], _ = s.copyKey(k)
	}
	return data
}

// noteAccess notes the accesses of a command to keys.
func (s *Server) noteAccess(cmd string, args []string) {
	if len(s.tracking.clients) > 0 {
		s.tracking.accesses = append(s.tracking.accesses, accesses(cmd, args)...)
	}
}

// ran reports whether a command with this reply may have run, at least in part.
func ran(name string, reply []byte) bool {
	switch name {
	case "EXEC":
		return len(reply) > 1 && reply[0] == '*' && reply[1] != '-'
	case "EVAL", "EVALSHA":
		return true
	}
	return len(reply) > 0 && reply[0] != '-'
}

// endTracking notifies the readers of the keys that a command of c changed, and notes the keys that
// it read. ran is false for a command that did not run.
func (s *Server) endTracking(c *conn, ran bool) {
	t := &s.tracking
	if t.before == nil {
		return
	}
	reads := c.remembers()
	if !ran {
		t.accesses = t.accesses[:0]
	}
	if slices.ContainsFunc(t.accesses, func(a access) bool { return a.flush }) {
		clear(t.readers)
		for _, to := range t.clients {
			to.invalidate(nil)
		}
		return
	}
	type span struct{ firstRead, lastRead, lastWrite int } // places among the accesses, from 1
	spans := map[string]*span{}
	after := s.allData()
	var keys, changed []string
	for i, a := range t.accesses {
		sp := spans[a.key]
		if sp == nil {
			sp = &span{}
			spans[a.key] = sp
			keys = append(keys, a.key)
		}
		if a.write {
			sp.lastWrite = i + 1
			continue
		}
		sp.lastRead = i + 1
		sp.firstRead = cmp.Or(sp.firstRead, i+1)
	}
	for _, k := range slices.Sorted(maps.Keys(after)) {
		if spans[k] == nil {
			keys = append(keys, k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(t.before)) {
		if _, there := after[k]; spans[k] == nil && !there {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		if !t.changed(k, after) {
			continue
		}
		changed = append(changed, k)
		if sp := spans[k]; reads && sp != nil && sp.firstRead > 0 && sp.firstRead < sp.lastWrite {
			t.remember(k, c)
		}
	}
	if s.orders && len(changed) > 0 {
		s.out.Read(sim.ObjectConns)
	}
	s.invalidate(changed, c)
	for k, sp := range spans {
		if reads && sp.lastRead > 0 && (sp.lastRead > sp.lastWrite || !slices.Contains(changed, k)) {
			t.remember(k, c)
		}
	}
}

// changed reports whether the command that was executed changed a key.
func (t *tracking) changed(key string, after map[string]saved) bool {
	was, before := t.before[key]
	is, there := after[key]
	if before != there || before && !was.equal(is) {
		return true
	}
	return slices.ContainsFunc(t.accesses, func(a access) bool { return a.key == key && a.signals && (there || a.makes) })
}

// remembers reports whether the server must remember the keys that c reads. It ends the effect of
// CLIENT CACHING.
func (c *conn) remembers() bool {
	t := c.tracks
	if t == nil {
		return false
	}
	caching := t.caching
	if c.multi == nil {
		t.caching = ""
	}
	switch {
	case t.bcast:
		return false
	case t.optIn:
		return caching == "YES"
	}
	return caching != "NO"
}

func byNumber(a, b *conn) int { return cmp.Compare(a.id, b.id) }

// remember notes that c read a key.
func (t *tracking) remember(key string, c *conn) {
	if i, found := slices.BinarySearchFunc(t.readers[key], c, byNumber); !found {
		if t.readers == nil {
			t.readers = map[string][]*conn{}
		}
		t.readers[key] = slices.Insert(t.readers[key], i, c)
	}
}

// invalidate notifies the readers of the keys, and forgets them. by is the connection that changed
// the keys; nil: none did.
func (s *Server) invalidate(keys []string, by *conn) {
	t := &s.tracking
	for _, k := range keys {
		for _, c := range t.readers[k] {
			if c != by || !c.tracks.noLoop {
				c.invalidate([]string{k})
			}
		}
		delete(t.readers, k)
	}
	for _, c := range t.clients {
		if !c.tracks.bcast || c == by && c.tracks.noLoop {
			continue
		}
		if mine := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return !c.tracks.covers(k) }); len(mine) > 0 {
			c.invalidate(mine)
		}
	}
}

// covers reports whether a key has one of the prefixes.
func (t *tracks) covers(key string) bool {
	return len(t.prefixes) == 0 || slices.ContainsFunc(t.prefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// invalidate writes that the keys have changed since c read them; nil: all keys have. A client of
// RESP2 gets nothing.
func (c *conn) invalidate(keys []string) {
	if !c.peer.Resp3 {
		return
	}
	c.peer.Block(func(w *mserver.Writer) {
		w.WritePushLen(2)
		w.WriteBulk("invalidate")
		if keys == nil {
			w.WriteNull()
		} else {
			w.WriteStrings(keys)
		}
	})
	c.peer.Flush()
}

// leave ends the tracking of c.
func (t *tracking) leave(c *conn) {
	c.tracks = nil
	same := func(o *conn) bool { return o == c }
	t.clients = slices.DeleteFunc(t.clients, same)
	for k, list := range t.readers {
		if list = slices.DeleteFunc(list, same); len(list) == 0 {
			delete(t.readers, k)
		} else {
			t.readers[k] = list
		}
	}
}

// track answers CLIENT TRACKING.
func (s *Server) track(c *conn, args []string) {
	t := &s.tracking
	const mode = " mode before disabling tracking for this client, and then re-enabling it with a different mode."
	on := len(args) > 0 && strings.EqualFold(args[0], "ON")
	if !on && (len(args) == 0 || !strings.EqualFold(args[0], "OFF")) {
		c.peer.WriteError("ERR syntax error")
		return
	}
	to := &tracks{}
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		switch option := strings.ToUpper(rest[0]); {
		case option == "REDIRECT":
			c.peer.WriteError(s.unsimulated("CLIENT TRACKING with REDIRECT"))
			return
		case option == "BCAST":
			to.bcast = true
		case option == "OPTIN":
			to.optIn = true
		case option == "OPTOUT":
			to.optOut = true
		case option == "NOLOOP":
			to.noLoop = true
		case option == "PREFIX" && len(rest) > 1:
			rest = rest[1:]
			to.prefixes = append(to.prefixes, rest[0])
		default:
			c.peer.WriteError("ERR syntax error")
			return
		}
	}
	was := c.tracks
	switch {
	case !on:
		t.leave(c)
		c.peer.WriteOK()
		return
	case !to.bcast && len(to.prefixes) > 0:
		c.peer.WriteError("ERR PREFIX option requires BCAST mode to be enabled")
		return
	case was != nil && was.bcast != to.bcast:
		c.peer.WriteError("ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.")
		return
	case to.bcast && (to.optIn || to.optOut):
		c.peer.WriteError("ERR OPTIN and OPTOUT are not compatible with BCAST")
		return
	case to.optIn && to.optOut:
		c.peer.WriteError("ERR You can't specify both OPTIN mode and OPTOUT mode")
		return
	case was != nil && (to.optIn && was.optOut || to.optOut && was.optIn):
		c.peer.WriteError("ERR You can't switch OPTIN/OPTOUT" + mode)
		return
	}
	if was != nil {
		to.prefixes = append(slices.Clone(was.prefixes), to.prefixes...)
	} else {
		i, _ := slices.BinarySearchFunc(t.clients, c, byNumber)
		t.clients = slices.Insert(t.clients, i, c)
	}
	c.tracks = to
	c.peer.WriteOK()
}

// cache answers CLIENT CACHING.
func (c *conn) cache(args []string) {
	t := c.tracks
	yes := len(args) == 1 && strings.EqualFold(args[0], "YES")
	switch {
	case t == nil:
		c.peer.WriteError("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case !yes && (len(args) != 1 || !strings.EqualFold(args[0], "NO")):
		c.peer.WriteError("ERR syntax error")
	case yes && !t.optIn:
		c.peer.WriteError("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case !yes && !t.optOut:
		c.peer.WriteError("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	default:
		t.caching = strings.ToUpper(args[0])
		c.peer.WriteOK()
	}
}

// info answers CLIENT TRACKINGINFO.
func (t *tracks) info(peer *mserver.Peer) {
	flags, redirect, prefixes := []string{"off"}, -1, []string(nil)
	if t != nil {
		flags, redirect, prefixes = []string{"on"}, 0, t.prefixes
		if t.bcast && len(prefixes) == 0 {
			prefixes = []string{""}
		}
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"bcast", t.bcast}, {"optin", t.optIn}, {"caching-yes", t.caching == "YES"},
			{"optout", t.optOut}, {"caching-no", t.caching == "NO"}, {"noloop", t.noLoop},
		} {
			if f.set {
				flags = append(flags, f.name)
			}
		}
	}
	peer.Block(func(w *mserver.Writer) {
		w.WriteMapLen(3)
		w.WriteBulk("flags")
		w.WriteSetLen(len(flags))
		for _, f := range flags {
			w.WriteBulk(f)
		}
		w.WriteBulk("redirect")
		w.WriteInt(redirect)
		w.WriteBulk("prefixes")
		w.WriteStrings(prefixes)
	})
}
