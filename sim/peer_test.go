package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model"
)

// gossip is an echo that sends words to other servers. "tell WORD" sends the word to each, which
// takes 5 ms, and they keep it as if they were set to it. "late WORD" sets the word 50 ms later,
// and is answered then, even if its connection has ended meanwhile and keeps is set.
type gossip struct {
	*echo
	others []string
	ways   []*Way
	heard  []string // each word with the time
	late   map[ConnID]bool
	keeps  bool
}

func (g *gossip) Handle(nowNs int64, c ConnID, r *Request, out *Effects) (Reply, bool) {
	switch r.Name {
	case "tell":
		for i, other := range g.others {
			out.SendTo(other, g.ways[i], r.Words[1])
		}
		return says("told"), true
	case "late":
		g.late[c] = true
		out.Plan(nowNs+int64(50*ms), ClassDelivery, func(nowNs int64, out *Effects) {
			if g.late[c] {
				g.set(nowNs, r.Words[1], out)
				out.Answer(c, says("done"))
			}
		})
		return Reply{}, false
	}
	return g.echo.Handle(nowNs, c, r, out)
}

func (g *gossip) set(nowNs int64, word string, out *Effects) {
	g.word, g.endsNs, out.Changed = word, nowNs+lease, true
}

func (g *gossip) Close(nowNs int64, c ConnID, out *Effects) {
	g.echo.Close(nowNs, c, out)
	switch {
	case !g.late[c]:
	case g.keeps:
		out.Keep(c)
	default:
		delete(g.late, c)
	}
}

func (g *gossip) Parts() Parts {
	p := g.echo.Parts()
	p.Close, p.Receive = g.Close, g.Receive
	return p
}

func (g *gossip) Receive(nowNs int64, message any, out *Effects) {
	word := message.(string)
	g.heard = append(g.heard, fmt.Sprintf("%s@%v", word, time.Duration(nowNs).Round(100*time.Microsecond)))
	g.set(nowNs, word, out)
}

// gossips returns n servers that know each other.
func gossips(n int) []*gossip {
	var all []*gossip
	for i := range n {
		g := &gossip{echo: &echo{}, late: map[ConnID]bool{}}
		for j := range n {
			if j != i {
				line := fmt.Sprintf("%d to %d", i+1, j+1)
				g.others = append(g.others, addr(j+1))
				g.ways = append(g.ways, &Way{Line: line, Stream: line, Min: 5 * ms, Max: 5 * ms})
			}
		}
		all = append(all, g)
	}
	return all
}

// playGossip runs a world with these servers and one thread.
func playGossip(t *testing.T, servers []*gossip, faults []model.FaultSpec, body func(*Thread)) Result {
	t.Helper()
	cfg := Config{
		Chooser: NewSeeded(1), LatencyMin: oneWay, LatencyMax: oneWay, Faults: faults, Processes: []ProcessConfig{{Name: "a", Threads: 1}},
		Name:  func([]string, Author) Command { return Command{} },
		Quiet: 30 * time.Second, Settle: time.Second, Drain: time.Second, MaxEvents: 10_000,
	}
	for i, s := range servers {
		cfg.Nodes = append(cfg.Nodes, Node{Addr: addr(i + 1), Server: s, Locks: []string{fmt.Sprint("word", i+1)}})
	}
	return Run(NewHost(t), cfg, func(w *World) {
		th := w.processes[0].threads[0]
		th.Start(func() { body(th) })
	})
}

// telling lets the first server tell a word at each of these times.
func telling(at ...time.Duration) func(*Thread) {
	return func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		for _, at := range at {
			th.At(at)
			c.talk(fmt.Sprintf("tell %v\n", at))
		}
		th.At(time.Second)
	}
}

func isolation(servers ...int) model.FaultSpec {
	f := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerIsolate, At: 100 * ms, For: 100 * ms}
	for _, s := range servers {
		f.Nodes = append(f.Nodes, addr(s))
	}
	return f
}

// A message from another server changes a server's state at that instant, and the world asks for
// its next tick.
func TestAServerTellsAnother(t *testing.T) {
	r := playGossip(t, gossips(2), nil, telling(10*ms))
	equal(t, "recorded", events(r, model.KindState, model.KindExpire), "state word2 10ms@16ms, expire word@1.016s, state word2@1.016s")
}

func TestAnIsolationKeepsServersApart(t *testing.T) {
	// A word that is told at 95 ms leaves before the isolation and arrives within it. A word that
	// is told at 196 ms leaves within it and would arrive after it.
	times := []time.Duration{50 * ms, 95 * ms, 150 * ms, 196 * ms, 250 * ms}
	const all = "50ms@56ms 95ms@101ms 150ms@156ms 196ms@202ms 250ms@256ms"
	const apart = "50ms@56ms 250ms@256ms"
	for _, c := range []struct {
		rule     string
		faults   []model.FaultSpec
		of2, of3 string
	}{
		{"no fault", nil, all, all},
		{"the second is isolated", []model.FaultSpec{isolation(2)}, apart, all},
		{"two that are isolated together hear each other", []model.FaultSpec{isolation(1, 2)}, all, apart},
		{"the first is isolated", []model.FaultSpec{isolation(1)}, apart, apart},
		{"each from each", []model.FaultSpec{isolation()}, apart, apart},
	} {
		servers := gossips(3)
		r := playGossip(t, servers, c.faults, telling(times...))
		equal(t, c.rule+": the second heard", strings.Join(servers[1].heard, " "), c.of2)
		equal(t, c.rule+": the third heard", strings.Join(servers[2].heard, " "), c.of3)
		equal(t, c.rule+": clients were answered", len(strings.Split(events(r, model.KindDeliver), ", ")), len(times))
	}
}

// The messages of one way arrive in order.
func TestAStallPutsOffWhatAServerHears(t *testing.T) {
	servers := gossips(3)
	stall := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerStall, At: 100 * ms, For: 100 * ms, Nodes: []string{addr(2)}}
	playGossip(t, servers, []model.FaultSpec{stall}, telling(120*ms, 150*ms))
	equal(t, "the second heard", strings.Join(servers[1].heard, " "), "120ms@200ms 150ms@200ms")
	equal(t, "the third heard", strings.Join(servers[2].heard, " "), "120ms@126ms 150ms@156ms")
}

func TestOnlyAServerWithPeersCanBeIsolated(t *testing.T) {
	equal(t, "an echo", Lacks(&echo{}, isolation()), "has no other servers to be isolated from")
	equal(t, "a gossip", Lacks(gossips(1)[0], isolation()), "")
}

// A request that waits has its effect when it is answered. Its server says whether it outlives
// its connection.
func TestARequestMayOutliveItsConnection(t *testing.T) {
	for _, c := range []struct {
		keeps, hangsUp bool
		want           string
	}{
		{false, false, "send late x@0s, exec late x done@51ms, state word1 x@51ms, deliver@52ms, state word1@1.051s"},
		{false, true, "send late x@0s, lost connection closed@11ms"},
		{true, true, "send late x@0s, exec late x done@51ms, state word1 x@51ms, lost nobody waits for it@52ms, state word1@1.051s"},
	} {
		servers := gossips(1)
		servers[0].keeps = c.keeps
		r := playGossip(t, servers, nil, func(th *Thread) {
			conn := mustDial(th, 1)
			_, _ = conn.Write([]byte("late x\n"))
			th.At(10 * ms)
			if c.hangsUp {
				_ = conn.Close()
			}
			th.At(500 * ms)
			_ = conn.Close()
		})
		equal(t, fmt.Sprintf("keeps %t, hangs up %t", c.keeps, c.hangsUp), events(r, model.KindSend, model.KindExec, model.KindState, model.KindLost, model.KindDeliver), c.want)
		made := slices.IndexFunc(r.Record.Events, func(e model.Event) bool { return e.Kind == model.KindState })
		if made >= 0 && r.Record.Events[made].Msg == 0 {
			t.Errorf("keeps %t, hangs up %t: no request made the change", c.keeps, c.hangsUp)
		}
	}
}

func TestTheFirstTickNeedsNoRequest(t *testing.T) {
	g := gossips(1)[0]
	g.word, g.endsNs = "x", int64(300*ms)
	r := playGossip(t, []*gossip{g}, nil, func(th *Thread) { th.At(time.Second) })
	equal(t, "recorded", events(r, model.KindExpire), "expire word@300ms")
}

// If no request led a server to hold a value, the value belongs to the thread that first sent it.
func TestAValueWithoutARequestBelongsToWhoSentIt(t *testing.T) {
	servers := gossips(2)
	cfg := Config{
		Chooser: NewSeeded(1), LatencyMin: oneWay, LatencyMax: oneWay, Lineage: true, Processes: []ProcessConfig{{Name: "a", Threads: 2}},
		Name:  func([]string, Author) Command { return Command{} },
		State: servers[1].State, Locks: []string{"word"},
		Quiet: 30 * time.Second, Settle: time.Second, Drain: time.Second, MaxEvents: 10_000,
	}
	for i, s := range servers {
		cfg.Nodes = append(cfg.Nodes, Node{Addr: addr(i + 1), Server: s})
	}
	r := Run(NewHost(t), cfg, func(w *World) {
		for _, th := range w.processes[0].threads {
			th.Start(func() {
				th.At(time.Duration(th.Number()) * 100 * ms)
				lockCall(th, func(context.Context) { mustDial(th, 1).talk("tell x\n") })
			})
		}
	})
	var holders []string
	for _, e := range r.Record.Events {
		if e.Kind == model.KindState {
			holders = append(holders, e.State.Owner)
		}
	}
	equal(t, "the holders", strings.Join(holders, ","), "a/1,a/1,")
}

// After its death a process does nothing more, so an open call of it is not a goroutine that the
// lock leaves behind.
func TestTheCallsOfADeadProcessEnd(t *testing.T) {
	for _, dies := range []bool{true, false} {
		var faults []model.FaultSpec
		if dies {
			faults = append(faults, model.FaultSpec{Kind: model.FaultCrash, At: 10 * ms, Processes: []string{"a"}})
		}
		r := playGossip(t, gossips(1), faults, func(th *Thread) {
			th.Call(Operation{Action: model.ActTryLock, Lock: "word1"}, func(ctx context.Context) (model.Outcome, error) {
				<-ctx.Done()
				return model.Unknown, ctx.Err()
			})
		})
		equal(t, fmt.Sprintf("left behind, dies %t", dies), events(r, model.KindLeft), "")
	}
}
