package strategy

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"lockstep/model"
	index "lockstep/model/trace"
)

// States returns the abstract states that a run went through, each as a hash,
// sorted. A state describes one lock at one instant: whether its owner lives, how often
// it entered, how many threads wait, how much of the lease is left, whether it is
// being renewed, and which commands are under way. Names and times do not matter.
func States(t *index.Run) []uint64 {
	a := &abstraction{trace: t, gone: map[string]bool{}, locks: map[string]*lockView{}, ended: map[int]bool{}, seen: map[uint64]bool{}}
	for i := range t.Record.Events {
		a.event(&t.Record.Events[i])
	}
	return slices.Sorted(maps.Keys(a.seen))
}

// lockView is the state of one lock at one instant.
type lockView struct {
	state   *model.LockState
	renewed int64 // when the server last answered a renewal; 0: never
	flying  map[flight]int
}

// flight is a kind of command under way in one direction.
type flight struct {
	toServer bool
	kind     string
}

func (f flight) String() string {
	if f.toServer {
		return "to " + f.kind
	}
	return "from " + f.kind
}

// abstraction walks through a run.
type abstraction struct {
	trace *index.Run
	gone  map[string]bool // the processes that crashed or closed their clients
	locks map[string]*lockView
	ended map[int]bool // the commands whose exchange is over
	seen  map[uint64]bool
}

func (a *abstraction) lock(name string) *lockView {
	v := a.locks[name]
	if v == nil {
		v = &lockView{state: new(model.LockState), flying: map[flight]int{}}
		a.locks[name] = v
	}
	return v
}

// event applies one event and notes the states of the locks that it touches.
func (a *abstraction) event(e *model.Event) {
	m := a.trace.Command(e.Msg)
	if a.ended[e.Msg] {
		m = nil
	}
	touched := e.Locks
	switch e.Kind {
	case model.KindSend:
		a.move(m, true, 1)
	case model.KindExec:
		if m == nil {
			return
		}
		a.move(m, true, -1)
		a.move(m, false, 1)
		if m.Script == model.RoleRenew {
			for _, name := range m.Locks {
				a.lock(name).renewed = e.AtNs
			}
		}
		touched = m.Locks
	case model.KindDeliver, model.KindLost:
		if m == nil {
			return
		}
		a.ended[e.Msg] = true
		a.move(m, e.Kind == model.KindLost && e.Dir == "request", -1)
		touched = m.Locks
	case model.KindState:
		a.lock(e.Lock).state = cmp.Or(e.State, new(model.LockState))
		touched = []string{e.Lock}
	case model.KindClose:
		a.gone[e.Process] = true
	case model.KindFault:
		if a.trace.Record.Params.Fault(e.Fault).Kind == model.FaultCrash {
			a.gone[e.Process] = true
		}
	default:
		return
	}
	for _, name := range touched {
		a.seen[hashOf(a.view(name, e.AtNs))] = true
	}
}

// move adds by to the number of commands like m that are under way in one direction.
func (a *abstraction) move(m *index.Command, toServer bool, by int) {
	for _, name := range m.Locks {
		a.lock(name).flying[flight{toServer, cmp.Or(string(m.Script), m.Command)}] += by
	}
}

// view returns the state of a lock as text.
func (a *abstraction) view(name string, now int64) string {
	v := a.lock(name)
	var flying []string
	for f, count := range v.flying {
		if count > 0 {
			flying = append(flying, fmt.Sprintf("%s %d", f, min(count, 2)))
		}
	}
	slices.Sort(flying)
	owner := "free"
	switch {
	case v.state.ClosedMs > 0:
		owner = "closed"
	case v.state.Held():
		process := model.ProcessOf(v.state.Owner)
		renewed := v.renewed != 0 && now-v.renewed <= a.trace.Record.Params.Watchdog.Nanoseconds()/2
		owner = fmt.Sprintf("held %d dead=%v renewed=%v left %s", min(v.state.Count, 3), a.gone[process], renewed, leftOf(v.state.ExpiresMs, now))
	}
	return fmt.Sprintf("%s queue %d: %s", owner, min(len(v.state.Queue), 3), strings.Join(flying, ", "))
}

// leftOf says roughly how much of a lease is left.
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
