package server

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3"

	"lockstep/locktest"
	"lockstep/sim"
)

// replicas is the number of replicas of a cell (Burrows 2006, section 2.1).
const replicas = 5

// port is where a replica serves.
const port = 7050

// The time that a message between replicas takes, one way. They are in one data centre.
const (
	latencyMin = 200 * time.Microsecond
	latencyMax = 2 * time.Millisecond
)

const leader = raft.StateLeader

// Servers returns the replicas of one cell.
func Servers() locktest.Servers { return servers{} }

type servers struct{}

// Count implements locktest.Servers.
func (servers) Count() int { return replicas }

// Nodes implements locktest.Servers.
func (servers) Nodes() []sim.Node {
	c := &cell{sessionEnds: map[string]int64{}, delayEnds: map[string]int64{}}
	nodes := make([]sim.Node, replicas)
	for i := range nodes {
		r := &Replica{cell: c, id: uint64(i + 1), addr: fmt.Sprintf("192.0.2.%d:%d", i+1, port)}
		for j := range replicas {
			name := fmt.Sprintf("replica %d to %d", i+1, j+1)
			r.ways = append(r.ways, &sim.Way{Line: name, Stream: fmt.Sprintf("replicas/%d/%d", i+1, j+1), Min: latencyMin, Max: latencyMax})
		}
		c.replicas = append(c.replicas, r)
		nodes[i] = sim.Node{Addr: r.addr, Server: r}
	}
	return nodes
}

// cell has all replicas, for an observer outside the world. A replica reads only the addresses of
// the others from it. Everything else comes by messages.
type cell struct {
	replicas []*Replica
	// sessionEnds and delayEnds have the ends of sessions and of lock-delays that a master noted
	// last. They stay when the master is gone.
	sessionEnds, delayEnds map[string]int64
	flaws                  flaws
}

// boot lets the cell elect its first replica, in no time.
func (c *cell) boot() {
	type sent struct {
		to uint64
		e  envelope
	}
	var queue []sent
	settle := func(r *Replica) {
		r.raft.ready(0, func(to uint64, e envelope) { queue = append(queue, sent{to, e}) })
		for _, e := range r.raft.committed {
			r.db.applied = e.GetIndex()
		}
		r.raft.committed = nil
	}
	first := c.replicas[0]
	if err := first.raft.node.Campaign(); err != nil {
		panic(fmt.Sprintf("chubby: the first election: %v", err))
	}
	for settle(first); len(queue) > 0; {
		next := queue[0]
		queue = queue[1:]
		to := c.replicas[next.to-1]
		next.e.sentNs, next.e.echoNs = 0, 0
		to.raft.step(0, next.e)
		settle(to)
	}
	for i := range c.replicas[1:] {
		first.raft.answeredNs[uint64(i+2)] = 0
	}
}

// newest returns the database that has applied most of the log. It has every entry that some replica
// knows to be written by a majority.
func (c *cell) newest() *database {
	db := c.replicas[0].db
	for _, r := range c.replicas {
		if r.db.applied > db.applied {
			db = r.db
		}
	}
	return db
}

// observe notes the times in the memory of a master.
func (c *cell) observe(m *master) {
	for id, x := range m.sessions {
		c.sessionEnds[id] = x.endsNs
	}
	for name, at := range m.delays {
		c.delayEnds[name] = at
	}
}

// Hold is a lock as a State may read it.
type Hold struct {
	// Session is the session that holds the lock, the first one of several that share it; "":
	// none does.
	Session string
	// Delayed says that no session holds the lock, and that none can have it before Ends.
	Delayed    bool
	Sharers    int // the number of sessions that hold the lock
	Generation uint64
	// Ends is the time since the start at which the session ends unless it is kept alive, or at
	// which the lock-delay ends.
	Ends time.Duration
}

// Held returns the hold of a lock in the cell of a replica, as a majority has agreed upon it.
func Held(r sim.Server, name string) Hold {
	c := r.(*Replica).cell
	l := c.newest().locks[name]
	switch {
	case l == nil:
		return Hold{}
	case l.Delayed != "":
		return Hold{Delayed: true, Generation: l.Generation, Ends: time.Duration(c.delayEnds[name])}
	case len(l.Holders) == 0:
		return Hold{Generation: l.Generation}
	}
	who := l.Holders[0].Session
	return Hold{Session: who, Sharers: len(l.Holders), Generation: l.Generation, Ends: time.Duration(c.sessionEnds[who])}
}
