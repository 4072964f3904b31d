package locktest

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Independent returns n servers that know nothing of one another. Each answers at that port of an
// address of its own. A subject with n below 1 is refused when it is judged.
func Independent(n, port int, server func() sim.Server) Servers {
	return independent{n, port, server}
}

type independent struct {
	n, port int
	server  func() sim.Server
}

// Count implements Servers.
func (s independent) Count() int { return s.n }

// Nodes implements Servers.
func (s independent) Nodes() []sim.Node {
	var nodes []sim.Node
	for i := range s.n {
		nodes = append(nodes, sim.Node{Addr: fmt.Sprintf("192.0.2.%d:%d", i+1, s.port), Server: s.server()})
	}
	return nodes
}

// servers are the servers of a subject, as the rest of Lockstep has them. No command needs an
// explanation: the world knows the call that sent it.
type servers struct {
	of Subject
	// tested reports that a test plays the lock, which asks for trouble once a run is over. Elsewhere a
	// State that panics ends the program.
	tested   bool
	panicked string      // the panic of State, with its stack; "": none
	reading  atomic.Bool // State has not returned
	// ends is the end of a hold that State showed although the subject has no lease; 0: none.
	ends time.Duration
	// nameless reports that State showed a hold without an Owner. A State whose Owner is empty and whose
	// Expires is negative, as that of a key that does not exist, is such a hold only if State shows a free
	// lock in another way.
	nameless, namelessIfFree, free bool
	// names are the keys that the servers had while State had shown no hold; shown reports that it showed one.
	names []string
	shown bool
	// astray is an address that a client dialled and at which no server is; nil: there is none.
	astray atomic.Pointer[string]
	// silent reports that a Lost returned nil for a hold that was granted.
	silent atomic.Bool
}

// dialled remembers an address at which no server is.
func (s *servers) dialled(addr string) { s.astray.Store(&addr) }

// look remembers whether a state is a hold without an Owner.
func (s *servers) look(state *State) {
	switch {
	case state == nil || state.Owner == "" && state.Count == 0 && state.Expires == 0:
		s.free = true
	case state.Owner != "" || state.Closed:
	case state.Expires > 0 || state.Count > 0:
		s.nameless = true
	default:
		s.namelessIfFree = true
	}
}

// showsNameless reports whether State showed a hold without an Owner.
func (s *servers) showsNameless() bool { return s.nameless || s.namelessIfFree && s.free }

// state returns what the servers hold for a lock.
func (s *servers) state(at Snapshot, lock string) *model.LockState {
	if s.tested {
		if s.panicked != "" {
			return nil
		}
		defer func() {
			if p := recover(); p != nil {
				s.panicked = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
			}
		}()
	}
	s.reading.Store(true)
	state := s.of.State(at, lock)
	s.reading.Store(false)
	s.look(state)
	if s.shown = s.shown || state != nil && state.Owner != ""; s.tested && !s.shown {
		s.list(at.nodes)
	}
	if state != nil && s.ends == 0 && s.of.Lease == 0 && state.Owner != "" && state.Expires > 0 {
		s.ends = state.Expires
	}
	return state.compile(s.of.Lease == 0)
}

// keyed is a server that can say which keys it has, and for which keys State asks.
type keyed interface {
	Names() []string
	// Note makes the server, which no world uses, note the keys for which State asks.
	Note() (asked func() []string)
}

// list adds the keys that servers have to the names.
func (s *servers) list(nodes []sim.Node) {
	for _, n := range nodes {
		if k, ok := n.Server.(keyed); ok {
			s.names = append(s.names, k.Names()...)
		}
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
}

// keysText says which keys the servers had, and which others State reads; "": the servers cannot say it.
func (s *servers) keysText(lock string) string {
	nodes := s.of.Servers.Nodes()
	var asked []func() []string
	for _, n := range nodes {
		if k, ok := n.Server.(keyed); ok {
			asked = append(asked, k.Note())
		}
	}
	if len(asked) == 0 || len(s.names) == 0 {
		return ""
	}
	s.of.State(Snapshot{0, nodes}, lock)
	var read []string
	for _, names := range asked {
		read = append(read, names()...)
	}
	slices.Sort(read)
	return fmt.Sprintf(". The servers had the %s, and State read %s", keysOf(s.names), cmp.Or(strings.Join(slices.Compact(read), ", "), "no key"))
}

// keysOf names keys.
func keysOf(names []string) string {
	const most = 5
	what := "key "
	if len(names) > 1 {
		what = "keys "
	}
	if len(names) > most {
		return what + strings.Join(names[:most], ", ") + " and others"
	}
	return what + strings.Join(names, ", ")
}

// Check implements subject.Servers.
func (*servers) Check() error { return nil }

// Count implements subject.Servers.
func (s *servers) Count() int { return s.of.Servers.Count() }

// New implements subject.Servers.
func (s *servers) New(locks []string, _ subject.ServerOptions) subject.World {
	nodes := s.of.Servers.Nodes()
	w := subject.World{Nodes: nodes, Lineage: true}
	if s.of.State != nil {
		w.Locks = locks
		w.State = func(nowNs int64, lock string) *model.LockState {
			return s.state(Snapshot{nowNs, nodes}, lock)
		}
	}
	return w
}

// compile returns a state as judges have it. A hold of a lock without leases ends at no
// time that is known before.
func (s *State) compile(endless bool) *model.LockState {
	if s == nil {
		return nil
	}
	out := &model.LockState{Owner: s.Owner, Token: s.Token, Queue: s.Queue}
	switch {
	case s.Closed:
		out.Owner, out.ClosedMs = "", max(s.Expires.Milliseconds(), 1)
	case s.Owner != "":
		out.Count, out.ExpiresMs = max(s.Count, 1), s.Expires.Milliseconds()
		if s.Expires < 0 || endless {
			out.ExpiresMs = -1
		}
	}
	return out
}

// Commands implements subject.Servers. A request within a call is for what the call is
// for, and a request of a thread that is in no call keeps its hold alive, if the lock
// renews leases. A request of an unknown thread does so if one like it did.
func (s *servers) Commands([]string) func(words []string, by sim.Author) sim.Command {
	return func(_ []string, by sim.Author) sim.Command {
		switch {
		case by.Thread == "" && by.Kept && s.of.Renewed:
			return sim.Command{Script: model.RoleRenew, Locks: []string{by.Lock}}
		case by.Thread == "":
			return sim.Command{}
		}
		c := sim.Command{Owners: []string{by.Thread}}
		if by.Lock != "" && (by.Op > 0 || s.of.Renewed) {
			c.Locks = []string{by.Lock}
		}
		switch {
		case by.Op == 0, by.Action == model.ActExtend:
			c.Script = model.RoleRenew
		case by.Action.Acquires():
			c.Script = model.RoleAcquire
		case by.Action == model.ActUnlock:
			c.Script = model.RoleUnlock
		}
		return c
	}
}

// offers says which parts of the interface a subject's locks have.
type offers struct{ try, watched, fenced, extends bool }

// patience is the simulated time that Open and the first Lock of a client may take in a world
// without a fault.
const patience = 10 * time.Minute

// probe opens the subject once in a world without steps, and asks what its locks offer.
func probe(h *sim.Host, s Subject) (o offers, err error) {
	nodes := s.Servers.Nodes()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	cfg := sim.Config{
		Chooser: sim.NewSeeded(1), Nodes: nodes, Processes: []sim.ProcessConfig{{Name: "probe", Threads: 1}},
		Lineage: true,
		Name:    func([]string, sim.Author) sim.Command { return sim.Command{} },
		Quiet:   time.Second, Settle: time.Second, Drain: time.Second,
	}
	answered := false
	sim.Run(h, cfg, func(w *sim.World) {
		client, openErr := s.open(w.Process("probe"), addrs, &servers{})
		if err = openErr; err != nil {
			return
		}
		a := client.(*adapter)
		asked := make(chan struct{})
		ask := func() {
			defer close(asked)
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("the client's Lock panicked: %v\n\n%s", p, debug.Stack())
				}
			}()
			var l Lock
			if l, err = a.handle(context.Background(), "probe", 1); err == nil {
				_, o.try = l.(TryLocker)
				_, o.watched = l.(Watched)
				_, o.fenced = l.(Fenced)
				_, o.extends = l.(Extender)
			}
		}
		w.Process("probe").Threads()[0].Start(func() {
			go ask()
			select {
			case <-asked:
				answered = true
			case <-time.After(patience):
			}
		})
	})
	if err == nil && !answered {
		return o, fmt.Errorf("its Open and the first Lock of the client take more than %v without a fault; let them wait for nothing but an answer of the servers", patience)
	}
	return o, err
}
