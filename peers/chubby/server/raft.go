package server

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// The times of the consensus.
const (
	// tick is the time between two ticks of a replica. The leader sends heartbeats at each.
	tick = time.Second
	// electionTicks is the number of ticks without a word from the leader after which a replica may
	// vote for another. Each waits, by chance, up to as many more ticks before it stands for
	// election itself.
	electionTicks = 4
	// Election is the time within which some replica stands for election after the leader is gone.
	Election = 2 * electionTicks * tick
	// MasterLease is the time for which a master serves after it sent messages that a majority has
	// answered. A replica that has answered votes for nobody during that time. It counts whole
	// ticks, of which the first may be short.
	MasterLease = (electionTicks - 1) * tick
)

// consensus is a replica's part in raft. Its log and its vote are on a disk that a restart
// keeps.
type consensus struct {
	id     uint64
	disk   *raft.MemoryStorage
	node   *raft.RawNode
	soft   raft.SoftState
	term   uint64
	tickNs int64 // the next tick
	// silentNs is the instant until which a replica that has started again votes for nobody,
	// because it does not know its earlier promises.
	silentNs int64
	// As a follower: when the leader of this term sent its last message that has arrived.
	heardNs int64
	// As a leader: when it sent the last message that each replica has answered in this term.
	answeredNs map[uint64]int64
	committed  []*pb.Entry // not applied yet
}

// envelope is a message between replicas.
type envelope struct {
	message *pb.Message
	sentNs  int64
	// echoNs is the sentNs of the newest envelope that the sender has from the leader of its
	// term; 0: it has none.
	echoNs int64
}

// newConsensus makes the part of replica id in a new consensus of n replicas.
func newConsensus(id uint64, n int) *consensus {
	c := &consensus{id: id, disk: raft.NewMemoryStorage()}
	state := &pb.ConfState{}
	for i := range n {
		state.Voters = append(state.Voters, uint64(i+1))
	}
	first := &pb.Snapshot{Metadata: &pb.SnapshotMetadata{ConfState: state, Index: new(uint64(1)), Term: new(uint64(1))}}
	if err := c.disk.ApplySnapshot(first); err != nil {
		panic(fmt.Sprintf("chubby: the beginning of the log: %v", err))
	}
	c.start(0, 1)
	return c
}

// start starts the replica with what is on its disk. It has applied the log up to applied.
func (c *consensus) start(nowNs int64, applied uint64) {
	node, err := raft.NewRawNode(&raft.Config{
		ID: c.id, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: c.disk, Applied: applied,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, CheckQuorum: true, PreVote: true, Logger: silent{},
	})
	if err != nil {
		panic(fmt.Sprintf("chubby: replica %d does not start: %v", c.id, err))
	}
	c.node, c.soft, c.committed, c.heardNs, c.answeredNs = node, raft.SoftState{}, nil, 0, nil
	c.term = node.BasicStatus().GetTerm()
	// The replicas do not tick at one instant.
	c.tickNs = nowNs + int64(tick) + int64(c.id)*int64(10*time.Millisecond)
}

// restart starts the replica again.
func (c *consensus) restart(nowNs int64, applied uint64) {
	c.silentNs = nowNs + electionTicks*int64(tick)
	c.start(nowNs, applied)
}

// step takes a message of another replica.
func (c *consensus) step(nowNs int64, e envelope) {
	switch e.message.GetType() {
	case pb.MsgVote, pb.MsgPreVote:
		if nowNs < c.silentNs {
			return
		}
	}
	// raft refuses unfit messages, such as an answer of an unknown replica.
	_ = c.node.Step(e.message)
	c.look()
	from, term := e.message.GetFrom(), e.message.GetTerm()
	switch {
	case term != c.term:
	case c.soft.RaftState == raft.StateLeader:
		if e.echoNs > 0 {
			c.answeredNs[from] = max(c.answeredNs[from], e.echoNs)
		}
	case c.soft.Lead == from:
		c.heardNs = max(c.heardNs, e.sentNs)
	}
}

// look notices a new term or a new state.
func (c *consensus) look() {
	s := c.node.BasicStatus()
	if s.GetTerm() != c.term || s.RaftState != c.soft.RaftState || s.Lead != c.soft.Lead {
		c.heardNs, c.answeredNs = 0, map[uint64]int64{}
	}
	c.term, c.soft = s.GetTerm(), s.SoftState
}

// leads reports whether the replica is the leader and has applied all entries of earlier terms. It
// has if it has applied the first entry of its own term.
func (c *consensus) leads(applied uint64) bool {
	if c.soft.RaftState != raft.StateLeader || len(c.committed) > 0 {
		return false
	}
	term, err := c.disk.Term(applied)
	return err == nil && term == c.term
}

// leaseNs returns the end of the master's lease, if the replica is the leader. The replica
// itself is one of the majority.
func (c *consensus) leaseNs(replicas int) int64 {
	answered := slices.Sorted(maps.Values(c.answeredNs))
	others := replicas / 2
	if len(answered) < others {
		return 0
	}
	return answered[len(answered)-others] + int64(MasterLease)
}

// ready writes new entries to the disk, and hands over the messages to send and the commands
// to apply.
func (c *consensus) ready(nowNs int64, send func(to uint64, e envelope)) {
	c.look()
	for c.node.HasReady() {
		r := c.node.Ready()
		if r.HardState != nil {
			c.must(c.disk.SetHardState(r.HardState))
		}
		c.must(c.disk.Append(r.Entries))
		for _, m := range r.Messages {
			send(m.GetTo(), envelope{message: m, sentNs: nowNs, echoNs: c.heardNs})
		}
		c.committed = append(c.committed, r.CommittedEntries...)
		c.node.Advance(r)
		c.look()
	}
}

func (c *consensus) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("chubby: the disk of replica %d: %v", c.id, err))
	}
}

// silent is a logger for raft that writes nothing, but panics where raft asks for it.
type silent struct{}

func (silent) Debug(...any)                   {}
func (silent) Debugf(string, ...any)          {}
func (silent) Error(...any)                   {}
func (silent) Errorf(string, ...any)          {}
func (silent) Info(...any)                    {}
func (silent) Infof(string, ...any)           {}
func (silent) Warning(...any)                 {}
func (silent) Warningf(string, ...any)        {}
func (silent) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (silent) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (silent) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }
func (silent) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
