//go:build linux

package live

import (
	"fmt"
	"os/exec"
	"sync"
	"time"

	"lockstep/live/proxy"
	"lockstep/live/topology"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A Kind is a kind of server that live runs start. This package has the kind of Redis. Others
// are registered.
type Kind interface {
	// Name is the name of the program in texts, such as redis-server.
	Name() string
	// Models reports whether a server of a world stands for a server of this kind.
	Models(sim.Server) bool
	// Ready reports what the machine lacks: a program, or a release of it that is new enough.
	// See Needed.
	Ready() error
	// Lacks returns why a part of the scenario is not possible on real servers of this kind; "":
	// all of it is. Check asks beforehand what is impossible on any real server.
	Lacks(sc *scenarios.Scenario, l *subject.Subject) string
	// LacksFault is Lacks for a fault of the server, of keys or of messages that servers of the
	// world have. The text follows the fault in a sentence.
	LacksFault(f model.FaultSpec) string
	// Start starts the servers of a run, one per node of a world, in that order. It returns when
	// they serve. If it returns an error, no process of it is left.
	Start(o StartOptions) ([]Server, error)
}

// StartOptions are the settings of the servers of a run.
type StartOptions struct {
	Scenario *scenarios.Scenario
	Lock     *subject.Subject
	// Dir is an empty folder for data and logs. It is removed after the run.
	Dir string
	// Free returns an address on loopback, as host:port, whose port nobody had a moment ago.
	Free func() (string, error)
	// Spawn starts a process that the kernel ends when this program is gone.
	Spawn func(*exec.Cmd) error
}

// A Server is a server of a run. Its methods are called by one goroutine at a time.
type Server interface {
	// Addr is its address on loopback, as host:port. Only a failover changes it.
	Addr() string
	// Version is the program with its version, such as "redis-server 7.0.15".
	Version() string
	// Pid is the process that a stall stops; 0: none may be stopped.
	Pid() int
	// Restart kills the server and starts it again at the same address, with the data that it
	// had written or without. It returns when the server serves.
	Restart(keepData bool) error
	// Stop ends the server, also if its process is stopped.
	Stop()
}

// A Settle says when a server has done what some bytes asked for. Stands is set by the run.
type Settle = proxy.Settle

// An Observed is a server whose protocol the parent does not know. One message at a time is at the
// server: what a client writes at once, or a request if the servers of the world take requests one
// by one. After each the parent looks.
type Observed interface {
	Server
	// Settle says how long the server may take to do what a message asks for.
	Settle() Settle
	// AsksNothing reports whether the server does nothing to locks for a message, and need not
	// answer it, such as one that says how much a client has read. It passes beside others.
	AsksNothing(message []byte) bool
	// Look reads what the server holds of locks, on a connection of its own. It returns what the
	// server held since the last Look, in its order; the last view is of an instant within the
	// call. A view that could not be read in between is left out.
	Look(locks []string) (views []any, err error)
	// Show lets the server of a world that stands for this one hold a view, so that the State of
	// a subject reads it. nowNs is the instant of the view.
	Show(of sim.Server, view any, nowNs int64)
	// Changed gets a value when the server may hold something else, such as after the end of a
	// lease. It is the same channel for the life of the server.
	Changed() <-chan struct{}
	// Strike does to keys what a fault of keys says.
	Strike(f model.FaultSpec) error
	// Left returns the keys that the server has at the end of a run.
	Left() ([]string, error)
}

// A Vague server is an Observed one that tells the ends of leases only roughly.
type Vague interface {
	Observed
	// EndsWithin is how wrong the first reading of the end of a lease may be. A later reading of the
	// same end is better.
	EndsWithin() time.Duration
}

// A Ticking server has a clock that shows whole steps. A run begins when the clock ticks, since the
// clock of a server of a world begins with the run.
type Ticking interface {
	Observed
	// Tick returns an instant at which the clock ticks, the first one after that time from now.
	Tick(in time.Duration) (time.Time, error)
}

// kinds are the kinds of servers by their registration.
var kinds struct {
	sync.Mutex
	list []Kind
}

// RegisterKind makes a kind of server known. It panics if its name is taken.
func RegisterKind(k Kind) {
	kinds.Lock()
	defer kinds.Unlock()
	for _, other := range kinds.list {
		if other.Name() == k.Name() {
			panic(fmt.Sprintf("live: two kinds of server have the name %s", k.Name()))
		}
	}
	kinds.list = append(kinds.list, k)
}

func init() { RegisterKind(redisKind{}) }

// kindOf returns the kind of a lock's servers. The error says why there is none.
func kindOf(l *subject.Subject) (Kind, error) {
	kinds.Lock()
	defer kinds.Unlock()
	nodes := l.Servers.New(nil, subject.ServerOptions{}).Nodes
	for _, k := range kinds.list {
		all := true
		for _, n := range nodes {
			all = all && k.Models(n.Server)
		}
		if all {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%s is on servers that this program cannot start", l.Name)
}

// node is a server of a run, with what the parent needs to look at it.
type node struct {
	index int
	world int // the index of the server of a world for which it stands
	Server
	// The rest of a member of a group, see group. member is nil for a sentinel.
	member   *topology.Node
	sentinel bool
	down     bool         // its process has ended; guarded by session.mu
	redis    *redisServer // the same; nil: its protocol is not known
	observed Observed     // the same; nil: it is a redis-server
	name     string       // the address that it began at, by which the record names it
	// turn is held by the request that is at the server, or by the parent.
	turn chan struct{}
	// stalls are the times in which a fault kept the server from executing anything, and stalled
	// says how many of them go on. Both are guarded by session.mu.
	stalls  [][2]int64
	stalled int
}

func newNode(index int, server Server) *node {
	redis, _ := server.(*redisServer)
	observed, _ := server.(Observed)
	return &node{index: index, world: index, Server: server, redis: redis, observed: observed, name: server.Addr(), turn: make(chan struct{}, 1)}
}

// StartEach starts a server at a time, and ends those before if one fails.
func StartEach(n int, start func(i int) (Server, error)) ([]Server, error) {
	var all []Server
	for i := range n {
		s, err := start(i)
		if err != nil {
			for _, s := range all {
				s.Stop()
			}
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
