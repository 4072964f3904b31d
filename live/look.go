//go:build linux

package live

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lockstep/model"
	simredis "lockstep/sim/redis"
)

// alone runs f while no request is at a node, with mu held.
func (s *session) alone(n *node, f func()) {
	n.turn <- struct{}{}
	s.mu.Lock()
	f()
	s.mu.Unlock()
	<-n.turn
}

// lookAtAll looks at every node that runs and takes writes. If there are several, it leaves out the nodes
// that a fault has stalled, since they would hold up the others. It reports whether it left out none.
func (s *session) lookAtAll() (all bool) {
	all = true
	s.mu.Lock()
	masters := s.masters()
	s.mu.Unlock()
	for _, n := range masters {
		s.mu.Lock()
		away := n.stalled > 0 && len(masters) > 1 || n.down
		s.mu.Unlock()
		if away {
			all = false
			continue
		}
		s.alone(n, func() {
			if !n.down {
				s.look(nil, look{node: n.index, fromNs: s.now()})
			}
		})
	}
	return all
}

// keys returns the keys of each node at the last look at it. Guarded by mu.
func (s *session) keys() []map[string]key {
	all := make([]map[string]key, len(s.nodes))
	missing := len(s.serving)
	for _, l := range slices.Backward(s.looks) {
		if all[l.node] == nil && !l.blind && slices.Contains(s.serving, l.node) {
			all[l.node] = l.keys
			if missing--; missing == 0 {
				break
			}
		}
	}
	return all
}

// byServer returns the keys of each simulated server, from the keys of the nodes. The nodes of a cluster
// are one simulated server. While a slot moves, several nodes may have a key; then the last node counts.
func (s *session) byServer(keys []map[string]key) []map[string]key {
	if s.group == nil {
		return keys
	}
	all := make([]map[string]key, len(s.reading.servers))
	for i, n := range s.nodes {
		if keys[i] == nil {
			continue
		}
		if all[n.world] == nil {
			all[n.world] = map[string]key{}
		}
		maps.Copy(all[n.world], keys[i])
	}
	return all
}

// keysAt returns the keys of each node without the keys that have ended by an instant. Guarded by mu.
func (s *session) keysAt(nowNs int64) []map[string]key {
	all := s.keys()
	for i, on := range all {
		all[i] = maps.Clone(on)
		maps.DeleteFunc(all[i], func(_ string, k key) bool { return k.endMs >= 0 && s.goneNs(k) <= nowNs })
	}
	return all
}

// keysOf returns the keys of each node after a look that is not in s.looks yet. Guarded by mu.
func (s *session) keysOf(l look) []map[string]key {
	all := s.keys()
	all[l.node] = l.keys
	return all
}

// keyspaces gives the keys of each node to the reader of a lock's state.
func (s *session) keyspaces(keys []map[string]key) []simredis.Keyspace {
	out := make([]simredis.Keyspace, len(keys))
	for i, k := range keys {
		out[i] = keyspace{k, s.startMs}
	}
	return out
}

// read reads the state of a lock from the keys of each node at an instant. The state has values in the
// place of threads. Guarded by mu.
func (s *session) read(atNs int64, keys []map[string]key, lock string) *model.LockState {
	return s.reading.state(atNs, s.keyspaces(s.byServer(keys)), s.prefix+lock)
}

// present returns the state of a lock at the last look. Guarded by mu.
func (s *session) present(lock string) *model.LockState {
	if s.bytes {
		return s.named(lock, s.viewed[lock])
	}
	at := s.looks[len(s.looks)-1].readNs
	return s.named(lock, s.read(at, s.keysAt(at), lock))
}

// look reads the keys of a node after something may have changed them, and adds l to the looks.
// The caller has the turn and mu. look releases mu while it reads.
func (s *session) look(m *message, l look) {
	if n := s.nodes[l.node]; n.member != nil && (n.redis.rdb == nil || n.down) {
		s.lookAway(m, l)
		return
	}
	if s.bytes {
		s.view(m, l)
		return
	}
	s.mu.Unlock()
	keys, seen, wallNs, err := s.nodes[l.node].redis.look(s.glob())
	read := s.now()
	s.mu.Lock()
	if err != nil {
		s.failed = errors.Join(s.failed, err)
		return
	}
	keys = s.namesIn(keys)
	at := wallNs - s.startMs*1e6
	l.msg, l.keys, l.readNs = m, keys, min(at, read)
	s.learn(m, l)
	// The wall clock of the machine may step or be slewed, and with it the server's.
	s.skewNs = max(s.skewNs, at-read, l.fromNs-at)
	if l.toNs == 0 {
		l.toNs = read
	}
	ends := map[string]bool{} // whether the last command with a key gave it an end
	for _, w := range seen {
		w.words = s.names(w.words)
		at := w.wallNs - s.startMs*1e6
		if len(w.words) > 1 {
			ends[w.words[1]] = strings.EqualFold(w.words[0], "PEXPIRE") || strings.EqualFold(w.words[0], "SET") && len(w.words) > 3
		}
		if m != nil && !m.request.Blocks && l.atNs == 0 && !w.script && slices.Equal(w.words, m.request.Words) {
			if l.atNs = at; w.database != "0" && s.failed == nil {
				s.failed = fmt.Errorf("the client of the lock selects database %s, and a live run reads database 0; give the client database 0", w.database)
			}
		}
		if len(w.words) == 3 && !ofSentinels(w.words[1]) && (strings.EqualFold(w.words[0], "PUBLISH") || strings.EqualFold(w.words[0], "SPUBLISH")) {
			s.published[w.words[1]]++
			l.published = append(l.published, model.Event{Kind: model.KindPublish, Channel: w.words[1], Text: w.words[2]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ends)) {
		if _, there := keys[name]; ends[name] && !there {
			l.missed = append(l.missed, name)
		}
	}
	if m != nil {
		m.look = len(s.looks)
	}
	s.looks = append(s.looks, l)
	if l.serving != nil {
		s.serving = l.serving
	}
	s.gapNs = max(s.gapNs, lengthOutside(l.fromNs, read, s.nodes[l.node].stalls))
	s.nextEnd = 0
	for _, keys := range s.keys() {
		for _, k := range keys {
			if at := s.goneNs(k); k.endMs >= 0 && (s.nextEnd == 0 || at < s.nextEnd) {
				s.nextEnd = at
			}
		}
	}
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// goneNs returns the first instant at which a key with an end is no longer there.
func (s *session) goneNs(k key) int64 { return (k.endMs + 1 - s.startMs) * 1e6 }

// watchEnds looks whenever a key has ended, until stop is closed.
func (s *session) watchEnds(stop <-chan struct{}) {
	for {
		s.mu.Lock()
		next := s.nextEnd
		s.mu.Unlock()
		var due <-chan time.Time
		if next > 0 {
			due = time.After(time.Duration(next-s.now()) + time.Millisecond)
		}
		select {
		case <-stop:
			return
		case <-s.poke:
		case <-due:
			if !s.lookAtAll() {
				time.Sleep(20 * time.Millisecond) // before it looks at the others again
			}
		}
	}
}
