package redis

import (
	"maps"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2"

	"lockstep/model"
	"lockstep/sim"
)

// Keyspace gives an observer the keys of the server. Absent keys, and keys of another
// type, read as empty.
type Keyspace interface {
	String(key string) (string, bool)
	Hash(key string) map[string]string
	List(key string) []string
	Set(key string) []string // its members in order
	SortedSet(key string) map[string]float64
	// ExpiresMs is the last millisecond since the start in which the key lives, as State.Expires of package
	// locktest wants it: a key that is set at 0 for 8 seconds gives 8000;
	// -1: it has no expiry, -2: there is no key.
	ExpiresMs(key string) int64
	// StartMs is the start of the run in Unix milliseconds.
	StartMs() int64
}

// StartMs implements Keyspace.
func (s *Server) StartMs() int64 {
	if s.shown != nil {
		return s.shown.StartMs()
	}
	return sim.EpochMs
}

// String implements Keyspace.
func (s *Server) String(key string) (string, bool) {
	v, err := s.m.Get(key)
	return v, err == nil
}

// Hash implements Keyspace.
func (s *Server) Hash(key string) map[string]string {
	fields, err := s.m.HKeys(key)
	if err != nil {
		return nil
	}
	h := make(map[string]string, len(fields))
	for _, f := range fields {
		h[f] = s.m.HGet(key, f)
	}
	return h
}

// List implements Keyspace.
func (s *Server) List(key string) []string {
	l, err := s.m.List(key)
	if err != nil {
		return nil
	}
	return slices.Clone(l) // miniredis returns its own list, which later commands change
}

// Set implements Keyspace.
func (s *Server) Set(key string) []string {
	members, err := s.m.SMembers(key)
	if err != nil {
		return nil
	}
	return slices.Sorted(slices.Values(members))
}

// SortedSet implements Keyspace.
func (s *Server) SortedSet(key string) map[string]float64 {
	z, err := s.m.SortedSet(key)
	if err != nil {
		return nil
	}
	return maps.Clone(z) // miniredis returns its own map, which later commands change
}

// words returns the words of a key's value: fields, members and entries, too.
func (s *Server) words(key string) (words []string) {
	switch s.m.Type(key) {
	case "string":
		v, _ := s.String(key)
		words = []string{v}
	case "hash":
		for field, v := range s.Hash(key) {
			words = append(words, field, v)
		}
	case "list":
		words = s.List(key)
	case "set":
		words = s.Set(key)
	case "zset":
		words = slices.Collect(maps.Keys(s.SortedSet(key)))
	case "stream":
		entries, _ := s.m.Stream(key)
		for _, e := range entries {
			words = append(words, e.Values...)
		}
	}
	slices.Sort(words)
	return words
}

// ExpiresMs implements Keyspace.
func (s *Server) ExpiresMs(key string) int64 {
	if !s.m.Exists(key) {
		return -2
	}
	ttl := s.m.TTL(key)
	if ttl <= 0 {
		return -1
	}
	return s.nowMs() + int64(ttl/time.Millisecond)
}

// snapshot is a copy of the data at an earlier instant.
type snapshot struct {
	keys      []saved
	libraries []*library
}

type saved struct {
	key, kind string
	expires   bool
	expiresMs int64 // by the server's wall clock, since the start
	str       string
	hash      map[string]string
	ends      map[string]int64 // of the fields that run out before the key, as expiresMs
	list      []string
	zset      map[string]float64
	stream    []miniredis.StreamEntry
}

// copyData copies the data as it is now.
func (s *Server) copyData() snapshot {
	snap := snapshot{libraries: s.libraries}
	for _, k := range s.m.Keys() {
		v, ok := s.copyKey(k)
		if !ok {
			s.out.Record(model.Event{Kind: model.KindDefect, Text: "a failover cannot copy key " + k + " of type " + v.kind})
		}
		snap.keys = append(snap.keys, v)
	}
	return snap
}

// copyKey copies a key. It reports false for a type that it does not know, and for a stream with groups.
func (s *Server) copyKey(k string) (v saved, ok bool) {
	v = saved{key: k, kind: s.m.Type(k)}
	if ms := s.ExpiresMs(k); ms >= 0 {
		v.expires, v.expiresMs = true, ms+s.ahead.Milliseconds()
	}
	switch v.kind {
	case "string":
		v.str, _ = s.String(k)
	case "hash":
		v.hash, v.ends = s.Hash(k), map[string]int64{}
		for f := range v.hash {
			if ttl := s.m.HTTL(k, f); ttl > 0 {
				v.ends[f] = s.nowMs() + int64(ttl/time.Millisecond) + s.ahead.Milliseconds()
			}
		}
	case "list":
		v.list = s.List(k)
	case "zset":
		v.zset = s.SortedSet(k)
	case "set":
		v.list = s.Set(k)
	case "stream":
		entries, _ := s.m.Stream(k)
		v.stream = slices.Clone(entries) // miniredis returns its own entries, which later commands move
		return v, s.run("XINFO", "GROUPS", k) == "*0\r\n"
	default:
		return v, false
	}
	return v, true
}

func (a snapshot) equal(b snapshot) bool {
	return slices.EqualFunc(a.keys, b.keys, saved.equal) && slices.Equal(a.libraries, b.libraries)
}

func (a saved) equal(b saved) bool {
	return a.key == b.key && a.kind == b.kind && a.expires == b.expires && a.expiresMs == b.expiresMs && a.str == b.str &&
		maps.Equal(a.hash, b.hash) && maps.Equal(a.ends, b.ends) && slices.Equal(a.list, b.list) && maps.Equal(a.zset, b.zset) &&
		slices.EqualFunc(a.stream, b.stream, func(x, y miniredis.StreamEntry) bool { return x.ID == y.ID && slices.Equal(x.Values, y.Values) })
}

// snapshot keeps a copy of the data for later failovers. The server calls it after every possible
// change.
func (s *Server) snapshot() {
	if s.keep == 0 {
		return
	}
	now := s.copyData()
	if n := len(s.history); n > 0 && s.history[n-1].equal(now) {
		return
	}
	if s.orders {
		s.out.Write(objHistory)
	}
	s.history = append(s.history, now)
	if extra := len(s.history) - s.keep - 1; extra > 0 {
		s.history = s.history[extra:]
	}
}

// failover restores the data before the last n writes. The script cache of the old master is lost,
// and so is its clock.
func (s *Server) failover(n int) {
	s.setClock()
	s.snapshot()
	s.setAhead(0)
	at := max(0, len(s.history)-1-n)
	s.restore(s.history[at])
	s.history = s.history[:at+1]
	s.flushScripts()
}

// restore makes the data that of a snapshot, without the keys and fields that have run out since.
func (s *Server) restore(data snapshot) {
	s.m.FlushAll()
	s.libraries, s.notify = data.libraries, notificationsOf(s.cfg.Notify) // a replica has the functions, and settings of its own
	until := func(ms int64) time.Duration { return time.Duration(ms-s.nowMs())*time.Millisecond - s.ahead }
	for _, v := range data.keys {
		left := until(v.expiresMs)
		if v.expires && left < 0 {
			continue
		}
		switch v.kind {
		case "string":
			_ = s.m.Set(v.key, v.str)
		case "hash":
			for f, x := range v.hash {
				end, ends := v.ends[f]
				if ends && until(end) < 0 {
					continue
				}
				s.m.HSet(v.key, f, x)
				if ends {
					s.m.HExpire(v.key, f, until(end)+time.Millisecond/2)
				}
			}
		case "list":
			_, _ = s.m.RPush(v.key, v.list...)
		case "set":
			_, _ = s.m.SAdd(v.key, v.list...)
		case "zset":
			for member, score := range v.zset {
				_, _ = s.m.ZAdd(v.key, score, member)
			}
		}
		for _, e := range v.stream {
			_, _ = s.m.XAdd(v.key, e.ID, e.Values)
		}
		if v.expires {
			s.m.SetTTL(v.key, left+time.Millisecond/2)
		}
	}
}

// flushScripts empties the script cache.
func (s *Server) flushScripts() {
	s.flushed, s.unloaded = true, nil
	s.run("SCRIPT", "FLUSH")
}

// Show makes At read the keys of another server, which is outside any world. From then on this server can
// do nothing else.
func (s *Server) Show(keys Keyspace) { s.shown = keys }

// Names returns the names of the keys in order.
func (s *Server) Names() []string { return s.m.Keys() }

// Note makes At read no keys. It returns a function that returns the names of the keys that were read
// since, each once.
func (s *Server) Note() (asked func() []string) {
	n := &noted{}
	s.Show(n)
	return func() []string { return n.names }
}

// noted is a Keyspace without keys that notes the names for which it is asked.
type noted struct{ names []string }

func (n *noted) note(key string) {
	if !slices.Contains(n.names, key) {
		n.names = append(n.names, key)
	}
}

// StartMs implements Keyspace.
func (*noted) StartMs() int64 { return sim.EpochMs }

// String implements Keyspace.
func (n *noted) String(key string) (string, bool) { n.note(key); return "", false }

// Hash implements Keyspace.
func (n *noted) Hash(key string) map[string]string { n.note(key); return nil }

// List implements Keyspace.
func (n *noted) List(key string) []string { n.note(key); return nil }

// Set implements Keyspace.
func (n *noted) Set(key string) []string { n.note(key); return nil }

// SortedSet implements Keyspace.
func (n *noted) SortedSet(key string) map[string]float64 { n.note(key); return nil }

// ExpiresMs implements Keyspace.
func (n *noted) ExpiresMs(key string) int64 { n.note(key); return -2 }

// At returns the keys as they are at an instant since the start, which is not before any
// instant that the server has seen.
func (s *Server) At(nowNs int64) Keyspace {
	if s.shown != nil {
		return s.shown
	}
	s.nowNs = nowNs
	s.setClock()
	return s
}
