package subject

import (
	"lockstep/model"
	"lockstep/sim"
)

// Servers makes the servers of a lock, and knows how the lock uses them.
type Servers interface {
	// Check returns an error if something that a world needs is missing.
	Check() error
	// New makes the servers of one world. locks names the locks of the scenario.
	New(locks []string, o ServerOptions) World
	// Commands returns a function that tells a world the role of a request, the locks that
	// it is about, and the owners that it speaks for.
	Commands(locks []string) func(words []string, by sim.Author) sim.Command
}

// ServerOptions are the settings of the servers in a scenario.
type ServerOptions struct{}

// World is the servers of one world.
type World struct {
	Nodes []sim.Node
	// Lineage, State and Locks are those of sim.Config.
	Lineage bool
	State   func(nowNs int64, lock string) *model.LockState
	Locks   []string
}
