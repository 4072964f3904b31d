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

// A Kind is a kind of server that live runs start. Redis is a kind of this package. Other packages
// register theirs.
type Kind interface {
	// Name is the name of the program in texts, such as redis-server.
	Name() string
	// Models reports whether a server of a world stands for a server of this kind.
	Models(sim.Server) bool
	// Ready reports what the machine lacks: a program, or a release of it that is new enough.
	// See Needed.
	Ready() error
	// Lacks returns why a part of the scenario is impossible on real servers of this kind; "": all parts
	// are possible. Check itself finds the parts that are impossible on every real server.
	Lacks(sc *scenarios.Scenario, l *subject.Subject) string
	// LacksFault is Lacks for one fault of the scenario. The error of Check names the fault, and then
	// has this text.
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
	// Free returns an address on loopback, as host:port. Its port was free a moment ago.
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
	// Stop ends the server, even if its process is stopped.
	Stop()
}

// A Settle says when a server has done what a message asks for. The run sets Stands.
type Settle = proxy.Settle

// An Observed is a server whose protocol the parent does not know. The parent lets one message at a time
// reach the server, and looks at the server after each. A message is a request if the servers of the
// world take requests one by one. Otherwise it is all that a client writes at once.
type Observed interface {
	Server
	// Settle says when the server has done what a message asks for.
	Settle() Settle
	// AsksNothing reports whether a message has no effect on locks and needs no answer. An example is a
	// message that says how much a client has read. Such a message need not wait for others.
	AsksNothing(message []byte) bool
	// Look reads the locks of the server, on a connection of its own. It returns the views that the
	// server had since the last Look, in order. The last view is of an instant within the call. Earlier
	// views may be missing, if the server did not tell them.
	Look(locks []string) (views []any, err error)
	// Show gives a view to the simulated server that stands for this one, so that the State of a subject
	// can read it. nowNs is the instant of the view.
	Show(server sim.Server, view any, nowNs int64)
	// Changed returns a channel, always the same one. It gets a value when the locks of the server may
	// have changed, such as after the end of a lease.
	Changed() <-chan struct{}
	// Strike makes a fault of keys happen.
	Strike(f model.FaultSpec) error
	// Left returns the keys that the server has at the end of a run.
	Left() ([]string, error)
}

// A Vague server is an Observed server that tells the ends of leases only roughly.
type Vague interface {
	Observed
	// EndsWithin returns the largest error of the first reading of the end of a lease. Later readings of
	// the same end are better.
	EndsWithin() time.Duration
}

// A Ticking server has a clock that moves in steps. A run begins at a step, since the clock of a
// simulated server begins with its run.
type Ticking interface {
	Observed
	// Tick returns the first instant, at least this time from now, at which the clock ticks.
	Tick(in time.Duration) (time.Time, error)
}

// kinds are the kinds of servers, in the order of their registration.
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
	// member and sentinel belong to a node of a group, see group. member is nil for a sentinel.
	member   *topology.Node
	sentinel bool
	down     bool         // its process has ended; guarded by session.mu
	redis    *redisServer // the Server, if it is a redis-server; else nil
	observed Observed     // the Server, if its protocol is not known; else nil
	name     string       // its first address, by which the record names it
	// turn has one place. The request at the server takes it, or the parent while it looks.
	turn chan struct{}
	// stalls are the times in which a fault kept the server from executing anything. stalled counts
	// the stalls that are under way. session.mu guards both.
	stalls  [][2]int64
	stalled int
}

func newNode(index int, server Server) *node {
	redis, _ := server.(*redisServer)
	observed, _ := server.(Observed)
	return &node{index: index, world: index, Server: server, redis: redis, observed: observed, name: server.Addr(), turn: make(chan struct{}, 1)}
}

// StartEach starts n servers, one after the other. If one fails, StartEach ends the others.
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
