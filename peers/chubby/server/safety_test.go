package server

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/sim"
)

// delay is the lock-delay of the test's lock, which is named file.
const (
	delay = 20 * time.Second
	file  = "x"
)

// The promises of a cell. The test compares each with the answers to clients, or with the database
// of the replicas, and not with the memory of the master.
const (
	oneMaster  = "one master"           // two replicas never serve as the master at one instant
	sessions   = "sessions last"        // a session lasts until the lease in the answer to its client is over
	generation = "generations grow"     // each hold has a greater generation than the one before
	closed     = "lock-delay"           // after the failure of a holder, no session has the lock before the lock-delay is over
	one        = "one database"         // after the faults, all replicas have the same database
	durable    = "nothing told is lost" // the cell knows each session that it opened
)

// trial is a run of a cell with drawn faults and clients, and what it broke.
type trial struct {
	c      *cell
	broken map[string]string // by promise, how it was first broken
	// The knowledge of the clients.
	ends   map[string]int64 // by session, the end of the lease in the answer to its client
	leaves map[string]bool  // sessions that release or close by themselves
	opened int
	grants int
	// The last state of the database of the replicas.
	holder     string
	number     uint64 // the number of its acquire
	generation uint64
	freeNs     int64 // the end of the lock-delay of the last failed holder
}

func (x *trial) breaks(what, how string, args ...any) {
	if x.broken[what] == "" {
		x.broken[what] = fmt.Sprintf(how, args...)
	}
}

// check checks the cell. The world calls it whenever something may have changed.
func (x *trial) check(nowNs int64) {
	now := time.Duration(nowNs)
	var serve []uint64
	for _, r := range x.c.replicas {
		if r.master != nil && r.leased(nowNs) {
			serve = append(serve, r.id)
		}
	}
	if len(serve) > 1 {
		x.breaks(oneMaster, "replicas %v serve at %v", serve, now)
	}
	db := x.c.newest()
	for _, id := range slices.Sorted(maps.Keys(x.ends)) {
		if end := x.ends[id]; nowNs < end && db.sessions[id] == nil && !x.leaves[id] {
			x.breaks(sessions, "%s is gone at %v, and its client has it until %v", id, now, time.Duration(end))
		}
	}
	l := db.locks[file]
	if l == nil {
		return
	}
	var holder string
	var number uint64
	if len(l.Holders) > 0 {
		holder, number = l.Holders[0].Session, l.Holders[0].Number
	}
	if holder == x.holder && number == x.number {
		return
	}
	if x.holder != "" && !x.leaves[x.holder] {
		x.freeNs = x.ends[x.holder] + int64(delay)
	}
	if holder != "" {
		if nowNs < x.freeNs {
			x.breaks(closed, "%s has the lock at %v, and the lock-delay lasts until %v", holder, now, time.Duration(x.freeNs))
		}
		if l.Generation <= x.generation {
			x.breaks(generation, "%s has generation %d at %v, as %s had before", holder, l.Generation, now, x.holder)
		}
		x.generation = l.Generation
	}
	x.holder, x.number = holder, number
}

// caller is a client of the cell.
type caller struct {
	x      *trial
	w      *sim.World
	thread *sim.Thread
	conn   net.Conn
	master int
	epoch  uint64
	sentNs int64 // when it sent the last request that was answered
}

// ask asks one replica after the other until the master answers, for 15 s at most.
func (c *caller) ask(q Request) (r Reply, answered bool) {
	for until := c.now() + int64(15*time.Second); c.now() < until; {
		q.Epoch = c.epoch
		r, err := c.try(q)
		switch {
		case err == nil && r.Error == WrongEpoch:
			c.epoch = r.Epoch
			continue
		case err == nil && r.Error != NotMaster && r.Error != Refused:
			return r, true
		}
		if c.conn != nil {
			_ = c.conn.Close()
			c.conn = nil
		}
		c.master = (c.master + 1) % replicas
		if i := slices.IndexFunc(c.x.c.replicas, func(o *Replica) bool { return o.addr == r.Master }); i >= 0 {
			c.master = i
		}
		c.thread.Sleep(300 * time.Millisecond)
	}
	return r, false
}

func (c *caller) now() int64 { return int64(c.w.Now()) }

func (c *caller) try(q Request) (r Reply, err error) {
	if c.conn == nil {
		if c.conn, err = c.thread.Process().DialContext(context.Background(), "tcp", c.x.c.replicas[c.master].addr); err != nil {
			c.conn = nil
			return r, err
		}
	}
	c.sentNs = c.now()
	_ = c.conn.SetReadDeadline(time.Now().Add(12 * time.Second))
	if _, err := c.conn.Write(Encode(q)); err != nil {
		return r, err
	}
	return ReadReply(c.conn)
}

// extend notes the lease in a reply.
func (c *caller) extend(session string, r Reply) {
	c.x.ends[session] = max(c.x.ends[session], c.sentNs+int64(r.Held+r.Lease))
}

// session opens a session, takes the lock if it can, keeps it for a while, and ends the hold in one
// of several ways.
func (c *caller) session(chance *rand.Rand) {
	r, ok := c.ask(Request{Do: OpenSession})
	if !ok || r.Error != "" {
		return
	}
	id := r.Session
	c.epoch = r.Epoch
	c.x.opened++
	c.extend(id, r)
	keep := func() bool {
		r, ok := c.ask(Request{Do: KeepAlive, Session: id})
		if ok && r.Error == "" {
			c.extend(id, r)
		}
		return ok && r.Error == ""
	}
	if r, ok := c.ask(Request{Do: Open, Session: id, Lock: file, Delay: delay}); !ok || r.Error != "" {
		return
	}
	for n := range uint64(1 + chance.IntN(3)) {
		r, ok := c.ask(Request{Do: Acquire, Session: id, Lock: file, Number: n + 1, Try: true})
		if !ok {
			return
		}
		for range chance.IntN(3) {
			if !keep() {
				return
			}
		}
		if r.Error != "" {
			continue
		}
		c.x.grants++
		switch chance.IntN(4) {
		case 0: // it fails
			c.thread.Sleep(time.Duration(chance.IntN(20)) * time.Second)
			return
		case 1:
			c.x.leaves[id] = true
			c.ask(Request{Do: CloseSession, Session: id})
			return
		}
		c.x.leaves[id] = true
		released, ok := c.ask(Request{Do: Release, Session: id, Lock: file, Generation: r.Generation})
		if !ok || released.Error != "" {
			return
		}
		c.x.leaves[id] = false
	}
}

// play plays a trial.
func play(t *testing.T, seed uint64, planted flaws) *trial {
	nodes := Servers().Nodes()
	x := &trial{c: nodes[0].Server.(*Replica).cell, broken: map[string]string{}, ends: map[string]int64{}, leaves: map[string]bool{}}
	x.c.flaws = planted
	chance := rand.New(rand.NewPCG(seed, 0))
	var faults []model.FaultSpec
	for range 8 {
		f := model.FaultSpec{Kind: model.FaultServer, At: time.Duration(chance.IntN(100)) * time.Second,
			For: time.Duration(1+chance.IntN(20)) * time.Second, Nodes: []string{nodes[chance.IntN(replicas)].Addr, nodes[chance.IntN(replicas)].Addr}}
		switch chance.IntN(3) {
		case 0:
			f.Server = model.ServerStall
		case 1:
			f.Server = model.ServerIsolate
		default:
			f.Server, f.KeepData, f.For = model.ServerRestart, true, 0
		}
		faults = append(faults, f)
	}
	cfg := sim.Config{
		Chooser: sim.NewSeeded(seed), LatencyMin: time.Millisecond, LatencyMax: time.Millisecond, Lineage: true, Faults: faults,
		Nodes: nodes, Processes: []sim.ProcessConfig{{Name: "a", Threads: 3}}, Locks: []string{file},
		Name:  func([]string, sim.Author) sim.Command { return sim.Command{} },
		State: func(nowNs int64, _ string) *model.LockState { x.check(nowNs); return nil },
		Quiet: 40 * time.Second, Settle: 40 * time.Second, Drain: time.Second, MaxEvents: 100_000,
	}
	sim.Run(sim.GuestHost(t), cfg, func(w *sim.World) {
		for _, thread := range w.Process("a").Threads() {
			own := rand.New(rand.NewPCG(seed, uint64(thread.Number())))
			c := &caller{x: x, w: w, thread: thread}
			thread.Start(func() {
				for c.now() < int64(110*time.Second) {
					c.session(own)
					thread.Sleep(time.Duration(own.IntN(4000)) * time.Millisecond)
				}
			})
		}
	})
	for _, r := range x.c.replicas[1:] {
		if !reflect.DeepEqual(r.db, x.c.replicas[0].db) {
			x.breaks(one, "replica %d differs from the first: %+v, %+v", r.id, r.db, x.c.replicas[0].db)
		}
	}
	if x.opened == 0 || x.c.newest().opened < x.opened {
		x.breaks(durable, "%d sessions were opened, and the cell knows of %d", x.opened, x.c.newest().opened)
	}
	return x
}

// runs is the number of trials of a cell.
const runs = 30

func TestACellKeepsWhatItPromises(t *testing.T) {
	opened, grants := 0, 0
	for seed := uint64(1); seed <= runs; seed++ {
		x := play(t, seed, flaws{})
		for what, how := range x.broken {
			t.Errorf("seed %d: %s: %s", seed, what, how)
		}
		opened, grants = opened+x.opened, grants+x.grants
	}
	if opened < 10*runs || grants < 3*runs {
		t.Errorf("the trials show too little: %d sessions and %d grants", opened, grants)
	}
}

// Each flaw breaks its promise within the trials of TestACellKeepsWhatItPromises.
func TestPlantedFlawsAreFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		planted flaws
		breaks  string
	}{
		{"the master serves although its lease is over", flaws{withoutLease: true}, oneMaster},
		{"a lock has one generation for ever", flaws{sameGeneration: true}, generation},
		{"a lock whose holder failed is free at once", flaws{noLockDelay: true}, closed},
		{"a follower ends sessions by its own clock", flaws{expiresByItself: true}, sessions},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed <= runs; seed++ {
				x := play(t, seed, c.planted)
				if how := x.broken[c.breaks]; how != "" {
					t.Logf("seed %d: %s: %s", seed, c.breaks, how)
					return
				}
				if len(x.broken) > 0 {
					t.Logf("seed %d breaks %s", seed, strings.Join(slices.Sorted(maps.Keys(x.broken)), ", "))
				}
			}
			t.Errorf("%d trials do not break %q", runs, c.breaks)
		})
	}
}
