//go:build linux

package live

import (
	"fmt"

	"lockstep/model"
	"lockstep/scenarios/subject"
	simredis "lockstep/sim/redis"
)

// reading is how a run reads the state of a lock from the keys of the server. It asks the
// simulated server of the lock, which shows the keys of the real one.
type reading struct {
	server *simredis.Server
	world  subject.World
}

// readingOf returns the reading of a lock. The error says why there is none.
func readingOf(l *subject.Subject, locks []string) (reading, error) {
	w := l.Servers.New(locks, subject.ServerOptions{})
	if len(w.Nodes) != 1 {
		return reading{}, fmt.Errorf("%s is on %d servers, and live has one redis-server", l.Name, len(w.Nodes))
	}
	server, ok := w.Nodes[0].Server.(*simredis.Server)
	if !ok {
		return reading{}, fmt.Errorf("%s is no lock on Redis", l.Name)
	}
	return reading{server, w}, nil
}

// learns reports whether states have values in the place of threads.
func (r reading) learns() bool { return r.world.Lineage }

// state returns the state of a lock by the keys at an instant.
func (r reading) state(nowNs int64, keys simredis.Keyspace, lock string) *model.LockState {
	r.server.Show(keys)
	if r.world.State != nil {
		return r.world.State(nowNs, lock)
	}
	return r.server.State(nowNs, lock)
}
