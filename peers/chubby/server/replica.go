// Package server is a cell of five replicas for worlds of package locktest, after Burrows, The
// Chubby lock service for loosely-coupled distributed systems (OSDI 2006). There is no public
// program to compare it with, so its tests compare it with the paper.
//
// # The cell
//
// Each replica is a server of the world with an address, a clock and a disk of its own. The
// replicas agree upon sessions and locks by raft (go.etcd.io/raft). The leader that has a lease
// is the master, and serves clients. It alone has the times of sessions and of lock-delays, in
// memory. A new master gives all of them their whole length anew.
//
// # The protocol
//
// A frame is its length in four bytes, the highest first, and JSON: a Request or a Reply. A
// connection carries one request at a time, so a client keeps one connection for its KeepAlives and
// another for its calls. A replica that is not the master answers NotMaster, and names the master
// if it knows it. A call of a session carries the epoch of the master for which it is meant. A new
// master answers WrongEpoch to calls that are for an earlier master, and keeps calls waiting until
// each session has sent a KeepAlive, or has expired (section 2.9).
//
// Other parts of the paper are left out: access control, the contents of files and their
// cache, directories, and events. A client learns of a fail-over by the epoch, and of a lock by
// the answer to its Acquire.
package server

import (
	"math"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/sim"
)

// Replica is one of the replicas of a cell. It implements sim.Server.
type Replica struct {
	cell *cell
	id   uint64 // from 1
	addr string
	ways []*sim.Way // to each replica, by its index

	raft *consensus
	db   *database // on disk
	// master is the replica's memory while it is the master; nil: it is not.
	master    *master
	commands  uint64 // the number of commands that it has proposed
	stalledNs int64  // the end of the last stall
	// applying says that an event is planned that applies the next entry.
	applying bool
	// life counts the restarts of the program.
	life int
	// known has the instant at which a follower first knew of each session. Only the flaw
	// expiresByItself uses it.
	known map[string]int64
}

// Parts implements sim.Server. Only the subject of a lock can read its state. A replica sends nothing
// to a client without a request.
func (r *Replica) Parts() sim.Parts {
	return sim.Parts{
		Close: r.Close, Receive: r.Receive, Next: r.Next, Tick: r.Tick, Strike: r.Strike, StepClock: r.StepClock,
		Refusal: r.Refusal, Lacks: r.Lacks, Commands: r.Commands, Drawing: r.Drawing, Leftovers: r.Leftovers,
	}
}

// Start implements sim.Server. The cell has elected its first replica when the world begins.
func (r *Replica) Start(sim.Setup) {
	r.raft, r.db, r.known = newConsensus(r.id, len(r.cell.replicas)), newDatabase(), map[string]int64{}
	r.db.flaws = r.cell.flaws
	r.db.applied = 1
	if int(r.id) == len(r.cell.replicas) {
		r.cell.boot()
	}
}

// Close is sim.Parts.Close. A call that waits on the connection is given up.
func (r *Replica) Close(_ int64, c sim.ConnID, out *sim.Effects) {
	if r.master != nil {
		r.master.hungUp(c, out)
	}
}

// Commands is sim.Parts.Commands.
func (*Replica) Commands() []string { return slices.Sorted(slices.Values(calls)) }

// Lacks is sim.Parts.Lacks.
func (*Replica) Lacks(f model.FaultSpec) string {
	const has = "; it has a restart with its data, a stall, an isolation and a step of its wall clock"
	switch {
	case f.Kind == model.FaultKey:
		return "has no operator who removes locks" + has
	case f.Kind != model.FaultServer:
		return ""
	case f.Server == model.ServerRestart && !f.KeepData:
		return "does not start again as the same replica without its data" + has
	case f.Server == model.ServerFailover:
		return "fails over by itself when the master is gone" + has
	case f.Server == model.ServerFlushScripts:
		return "runs no scripts" + has
	}
	return ""
}

// Strike is sim.Parts.Strike.
func (r *Replica) Strike(nowNs int64, f model.FaultSpec, out *sim.Effects) {
	switch f.Server {
	case model.ServerStall:
		r.stalledNs = max(r.stalledNs, nowNs+int64(f.For))
	case model.ServerRestart:
		r.master, r.applying = nil, false
		r.life++
		r.raft.restart(nowNs, r.db.applied)
		out.Changed = true
	default:
		panic("chubby: a server fault of unknown kind " + string(f.Server))
	}
}

// StepClock is sim.Parts.StepClock. A replica measures only durations, by a clock that does not
// step.
func (*Replica) StepClock(int64, time.Duration, *sim.Effects) {}

// Next is sim.Parts.Next.
func (r *Replica) Next() (atNs int64, ok bool) {
	at := r.raft.tickNs
	if r.master != nil {
		at = min(at, r.master.nextNs())
	}
	// A timer has this resolution. It never ends early.
	const grain = int64(100 * time.Microsecond)
	return (max(at, r.stalledNs) + grain - 1) / grain * grain, at < math.MaxInt64
}

// Tick is sim.Parts.Tick.
func (r *Replica) Tick(nowNs int64, out *sim.Effects) {
	if nowNs >= r.raft.tickNs {
		r.raft.tickNs = nowNs + int64(tick)
		r.raft.node.Tick()
		r.expireByItself(nowNs)
	}
	r.advance(nowNs, out)
	if r.master != nil {
		r.master.elapse(nowNs, out)
		r.advance(nowNs, out)
	}
}

// Receive is sim.Parts.Receive.
func (r *Replica) Receive(nowNs int64, message any, out *sim.Effects) {
	r.raft.step(nowNs, message.(envelope))
	r.advance(nowNs, out)
}

// Handle implements sim.Server.
func (r *Replica) Handle(nowNs int64, c sim.ConnID, q *sim.Request, out *sim.Effects) (sim.Reply, bool) {
	out.Write(sim.ObjectServer)
	request, err := parse(q.Words[len(q.Words)-1])
	if err != nil {
		return answer(Reply{Error: Invalid}), true
	}
	r.rule(nowNs, out)
	if r.master == nil {
		return answer(r.redirect()), true
	}
	reply, done := r.master.handle(nowNs, c, request, out)
	r.advance(nowNs, out)
	return answer(reply), done
}

// redirect tells a client that the replica is not the master.
func (r *Replica) redirect() Reply {
	out := Reply{Error: NotMaster}
	if lead := r.raft.soft.Lead; lead != 0 && lead != r.id {
		out.Master = r.cell.replicas[lead-1].addr
	}
	return out
}

// advance does the work that raft has ready for the replica: it writes, sends and applies.
func (r *Replica) advance(nowNs int64, out *sim.Effects) {
	r.raft.ready(nowNs, func(to uint64, e envelope) {
		out.SendTo(r.cell.replicas[to-1].addr, r.ways[to-1], e)
	})
	r.applyNext(nowNs, out)
	r.rule(nowNs, out)
	out.Changed = true // the instant of the next tick, at least
}

// applyNext applies one entry of the log. Each has an event of its own, so that the world sees the
// state after each.
func (r *Replica) applyNext(nowNs int64, out *sim.Effects) {
	if len(r.raft.committed) == 0 || r.applying {
		return
	}
	e := r.raft.committed[0]
	r.raft.committed = r.raft.committed[1:]
	r.apply(nowNs, e.GetIndex(), e.GetData(), out)
	if len(r.raft.committed) == 0 {
		return
	}
	r.applying = true
	life := r.life
	out.Plan(max(nowNs, r.stalledNs), sim.ClassDelivery, func(nowNs int64, out *sim.Effects) {
		if r.life == life {
			r.applying = false
			r.advance(nowNs, out)
		}
	})
}

// apply applies an entry of the log.
func (r *Replica) apply(nowNs int64, index uint64, data []byte, out *sim.Effects) {
	r.db.applied = index
	if len(data) == 0 {
		return // the first entry of a term
	}
	c := decodeCommand(data)
	reply := r.db.apply(c)
	if r.master != nil {
		r.master.applied(nowNs, c, reply, out)
	}
}

// rule makes the replica the master, or ends that.
func (r *Replica) rule(nowNs int64, out *sim.Effects) {
	leads := r.raft.leads(r.db.applied)
	if r.master != nil {
		leads = r.raft.soft.RaftState == leader && r.raft.term == r.master.epoch
	}
	masters := leads && r.leased(nowNs)
	switch {
	case masters && r.master == nil:
		r.master = newMaster(r, nowNs)
		r.cell.observe(r.master)
		out.Changed = true
	case !masters && r.master != nil:
		old := r.master
		r.master = nil
		old.resign(out)
		out.Changed = true
	}
}

// leased reports whether the replica may serve as the master at an instant.
func (r *Replica) leased(nowNs int64) bool {
	return nowNs < r.raft.leaseNs(len(r.cell.replicas)) || r.cell.flaws.withoutLease
}

// propose appends a command to the log.
func (r *Replica) propose(c command) (id uint64) {
	r.commands++
	c.By, c.ID = r.id, r.commands
	// A leader accepts every command. If the replica is no longer the leader, its clients get
	// NotMaster.
	_ = r.raft.node.Propose(encodeCommand(c))
	return c.ID
}

// Leftovers is sim.Parts.Leftovers. Only one replica reports them for the cell. The file of a lock
// may stay.
func (r *Replica) Leftovers(out *sim.Effects) {
	if r.id != 1 {
		return
	}
	db := r.cell.newest()
	for _, id := range db.ids() {
		out.Record(model.Event{Kind: model.KindLeft, Key: id})
	}
	for _, name := range db.names() {
		if l := db.locks[name]; len(l.Holders) > 0 || l.Delayed != "" {
			out.Record(model.Event{Kind: model.KindLeft, Key: name})
		}
	}
}
