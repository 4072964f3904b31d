package subject

import (
	"time"

	"lockstep/model"
	"lockstep/sim"
)

// Servers makes the servers of a lock, and knows how the lock uses them. Package onredis
// implements it for locks on Redis.
type Servers interface {
	// Check returns an error if something that a world needs is missing. Its text
	// follows the name of the subject: "has no State".
	Check() error
	// Count returns the number of servers, which know nothing of one another.
	Count() int
	// New makes the servers of one world. locks names the locks of the scenario.
	New(locks []string, o ServerOptions) World
	// Commands returns a function that tells a world the role of a request, the locks
	// that it is about, and the owners that it speaks for. locks names the locks of the
	// scenario.
	Commands(locks []string) func(words []string, by sim.Author) sim.Command
}

// ServerOptions are the settings of the servers in a scenario.
type ServerOptions struct {
	Replicas       int
	LagMin, LagMax time.Duration // of a message between a server and a replica
}

// World holds the servers of one world.
type World struct {
	Nodes []sim.Node // one per server
	// Published returns the number of messages that were published on a channel so far.
	// Nil: nothing is published.
	Published func(channel string) int64
	// Lineage, State and Locks are copied to sim.Config.
	Lineage bool
	State   func(nowNs int64, lock string) *model.LockState
	Locks   []string
}
