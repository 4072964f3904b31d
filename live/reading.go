//go:build linux

package live

import (
	"fmt"

	"lockstep/model"
	"lockstep/scenarios/subject"
	simredis "lockstep/sim/redis"
)

// reading reads the state of a lock from the keys of the servers. It fills the simulated servers
// of the lock with the keys of the real servers, and asks them for the state.
type reading struct {
	servers []*simredis.Server // by node
	world   subject.World
}

// readingOf returns the reading of a lock. The error says why there is none.
func readingOf(l *subject.Subject, locks []string) (reading, error) {
	r := reading{world: l.Servers.New(locks, subject.ServerOptions{})}
	for _, n := range r.world.Nodes {
		server, ok := n.Server.(*simredis.Server)
		if !ok {
			return reading{}, fmt.Errorf("%s is no lock on Redis", l.Name)
		}
		r.servers = append(r.servers, server)
	}
	return r, nil
}

// learns reports whether the states name holders by values, so that the run must learn their threads.
func (r reading) learns() bool { return r.world.Lineage }

// state returns the state of a lock that the keys of each node show at an instant.
func (r reading) state(nowNs int64, keys []simredis.Keyspace, lock string) *model.LockState {
	for i, k := range keys {
		r.servers[i].Show(k)
	}
	if r.world.State != nil {
		return r.world.State(nowNs, lock)
	}
	return r.servers[0].State(nowNs, lock)
}
