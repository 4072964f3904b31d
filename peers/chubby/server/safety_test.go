package server

import (
	"context"
	"math/rand/v2"
	"net"
	"reflect"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/sim"
)

// At no instant do two replicas have the lease of a master, and after the faults all replicas
// have the same sessions and locks, with nothing lost that a client was told.
func TestOneMasterAndOneDatabase(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		nodes := Servers().Nodes()
		c := nodes[0].Server.(*Replica).cell
		chance := rand.New(rand.NewPCG(seed, 0))
		var faults []model.FaultSpec
		for range 6 {
			f := model.FaultSpec{Kind: model.FaultServer, At: time.Duration(chance.IntN(60)) * time.Second,
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
		opened := 0
		cfg := sim.Config{
			Chooser: sim.NewSeeded(seed), LatencyMin: time.Millisecond, LatencyMax: time.Millisecond, Lineage: true, Faults: faults,
			Nodes: nodes, Processes: []sim.ProcessConfig{{Name: "a", Threads: 1}}, Locks: []string{"x"},
			Name: func([]string, sim.Author) sim.Command { return sim.Command{} },
			State: func(nowNs int64, _ string) *model.LockState {
				serving := 0
				for _, r := range c.replicas {
					if r.master != nil && r.leased(nowNs) {
						serving++
					}
				}
				if serving > 1 {
					t.Errorf("seed %d: %d masters at %v", seed, serving, time.Duration(nowNs))
				}
				return nil
			},
			Quiet: 40 * time.Second, Settle: 40 * time.Second, Drain: time.Second, MaxEvents: 100_000,
		}
		sim.Run(sim.GuestHost(t), cfg, func(w *sim.World) {
			p := w.Process("a")
			thread := p.Threads()[0]
			thread.Start(func() {
				for i := range 40 {
					conn, err := p.DialContext(context.Background(), "tcp", nodes[i%replicas].Addr)
					if err != nil {
						panic(err)
					}
					if ask(conn).Session != "" {
						opened++
					}
					_ = conn.Close()
					thread.Sleep(2 * time.Second)
				}
			})
		})
		for _, r := range c.replicas[1:] {
			if !reflect.DeepEqual(r.db, c.replicas[0].db) {
				t.Errorf("seed %d: replica %d differs from the first: %+v, %+v", seed, r.id, r.db, c.replicas[0].db)
			}
		}
		if opened == 0 || c.newest().opened < opened {
			t.Errorf("seed %d: %d sessions were opened, and the cell knows of %d", seed, opened, c.newest().opened)
		}
	}
}

// ask opens a session.
func ask(conn net.Conn) Reply {
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Second))
	if _, err := conn.Write(Encode(Request{Do: OpenSession})); err != nil {
		return Reply{}
	}
	reply, err := ReadReply(conn)
	if err != nil {
		return Reply{}
	}
	return reply
}
