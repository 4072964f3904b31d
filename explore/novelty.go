package explore

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"lockstep/model"
)

// States are the abstract states that a run went through, each as a hash,
// sorted. What is told of a lock at an instant: whether its owner lives, how
// often it entered, how many wait, how much of the lease is left, whether it is
// being renewed, and what is under way. Names and times do not matter.
func States(r *model.Record) []uint64 {
	n := &abstraction{
		params: &r.Params, watchdog: r.Params.Watchdog.Nanoseconds(), dead: map[string]bool{},
		locks: map[string]*lockView{}, under: map[int]*model.Event{}, seen: map[uint64]bool{},
	}
	for i := range r.Events {
		n.event(&r.Events[i])
	}
	states := make([]uint64, 0, len(n.seen))
	for s := range n.seen {
		states = append(states, s)
	}
	slices.Sort(states)
	return states
}

type lockView struct {
	state   model.LockState
	renewed int64 // instant of the last renewal that was executed; 0: none
	flying  map[string]int
}

type abstraction struct {
	params   *model.Params
	watchdog int64
	dead     map[string]bool // processes
	locks    map[string]*lockView
	under    map[int]*model.Event // commands under way, as they were sent
	seen     map[uint64]bool
}

func (n *abstraction) lock(name string) *lockView {
	v := n.locks[name]
	if v == nil {
		v = &lockView{flying: map[string]int{}}
		n.locks[name] = v
	}
	return v
}

func (n *abstraction) event(e *model.Event) {
	touched := e.Locks
	switch e.Kind {
	case model.KindSend:
		n.under[e.Msg] = e
		n.move(e, "to", 1)
	case model.KindExec:
		sent := n.under[e.Msg]
		if sent == nil {
			return
		}
		n.move(sent, "to", -1)
		n.move(sent, "from", 1)
		if sent.Script == "renew" {
			for _, name := range sent.Locks {
				n.lock(name).renewed = e.AtNs
			}
		}
		touched = sent.Locks
	case model.KindDeliver, model.KindLost:
		sent := n.under[e.Msg]
		if sent == nil {
			return
		}
		delete(n.under, e.Msg)
		way := "from"
		if e.Kind == model.KindLost && e.Dir == "request" {
			way = "to"
		}
		n.move(sent, way, -1)
		touched = sent.Locks
	case model.KindState:
		n.lock(e.Lock).state = model.LockState{}
		if e.State != nil {
			n.lock(e.Lock).state = *e.State
		}
		touched = []string{e.Lock}
	case model.KindClose:
		n.dead[e.Process] = true
	case model.KindFault:
		if n.params.Fault(e.Fault).Kind == model.FaultCrash {
			n.dead[e.Process] = true
		}
	default:
		return
	}
	for _, name := range touched {
		n.seen[hashOf(n.view(name, e.AtNs))] = true
	}
}

// move counts a command of a kind to or from the server.
func (n *abstraction) move(sent *model.Event, way string, by int) {
	kind := sent.Script
	if kind == "" {
		kind = sent.Command
	}
	for _, name := range sent.Locks {
		n.lock(name).flying[way+" "+kind] += by
	}
}

// view is what is told of a lock.
func (n *abstraction) view(name string, now int64) string {
	v := n.lock(name)
	var flying []string
	for kind, count := range v.flying {
		if count > 0 {
			flying = append(flying, fmt.Sprintf("%s %d", kind, min(count, 2)))
		}
	}
	slices.Sort(flying)
	owner := "free"
	if v.state.Held() {
		process := model.ProcessOf(v.state.Owner)
		renewed := v.renewed != 0 && now-v.renewed <= n.watchdog/2
		owner = fmt.Sprintf("held %d dead=%v renewed=%v left %s", min(v.state.Count, 3), n.dead[process], renewed, leftOf(v.state.ExpiresMs, now))
	}
	return fmt.Sprintf("%s queue %d: %s", owner, min(len(v.state.Queue), 3), strings.Join(flying, ", "))
}

// leftOf is how much of a lease is left, roughly.
func leftOf(expiresMs, nowNs int64) string {
	left := expiresMs - nowNs/1_000_000
	switch {
	case expiresMs < 0:
		return "endless"
	case left < 100:
		return "nothing"
	case left < 1000:
		return "under a second"
	case left < 10_000:
		return "under ten"
	}
	return "more"
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
