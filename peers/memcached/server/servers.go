package server

import (
	"fmt"
	"time"

	"lockstep/locktest"
	"lockstep/sim"
)

// Servers returns n independent servers. It panics if n is below 1.
func Servers(n int) locktest.Servers {
	if n < 1 {
		panic(fmt.Sprintf("memcached: %d servers; a world needs one at least", n))
	}
	return servers(n)
}

type servers int

// Count implements locktest.Servers.
func (n servers) Count() int { return int(n) }

// Nodes implements locktest.Servers.
func (n servers) Nodes() []sim.Node {
	nodes := make([]sim.Node, n)
	for i := range nodes {
		nodes[i] = sim.Node{Addr: fmt.Sprintf("192.0.2.%d:11211", i+1), Server: New()}
	}
	return nodes
}

// Value is the State of a lock that keeps the value of its holder under its name, on the
// first server.
func Value(s locktest.Snapshot, lock string) *locktest.State {
	value, endsNs, ok := s.Server(0).(*Server).Item(int64(s.Now()), lock)
	if !ok {
		return nil
	}
	return &locktest.State{Owner: value, Expires: time.Duration(endsNs)}
}
