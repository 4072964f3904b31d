package subject

import (
	"fmt"
	"slices"

	"lockstep/model"
	"lockstep/sim"
)

// Lacks lists the parts of a scenario that a lock does not offer. A scenario that needs
// one of them does not apply to the lock, and a campaign does not draw them. The zero
// value lacks nothing.
type Lacks struct {
	Leases      bool // a call that asks for a lease of its own
	SingleTry   bool // a try that does not wait
	ForceUnlock bool
	State       bool // the state that the server holds for a lock, which a step reads
}

// LacksFault returns a sentence that says which server of the lock does not have a fault,
// and why; "" if the fault can strike. servers are the numbers of the servers that the
// fault names, counted from 1; none: all.
func (s *Subject) LacksFault(f model.FaultSpec, servers []int) string {
	return s.FaultCheck()(f, servers)
}

// FaultCheck returns LacksFault for many faults, which makes the servers only once.
func (s *Subject) FaultCheck() func(f model.FaultSpec, servers []int) string {
	var nodes []sim.Node
	return func(f model.FaultSpec, servers []int) string {
		for _, number := range servers {
			if n := s.Servers.Count(); number > n {
				return fmt.Sprintf("it strikes server %d, and %s has %d", number, s.Name, n)
			}
		}
		if f.Awaits != nil && f.Awaits.Ended != "" && s.Lacks.State {
			return fmt.Sprintf("it waits for the end of a hold, and %s does not say what the server holds for it", s.Name)
		}
		if f.Kind != model.FaultServer && f.Kind != model.FaultKey && f.Kind != model.FaultRule {
			return ""
		}
		if nodes == nil {
			nodes = s.Servers.New(nil, ServerOptions{}).Nodes
		}
		for i, n := range nodes {
			if len(servers) > 0 && !slices.Contains(servers, i+1) {
				continue
			}
			if lacks := sim.Lacks(n.Server, f); lacks != "" {
				return fmt.Sprintf("server %d of %s %s", i+1, s.Name, lacks)
			}
		}
		return ""
	}
}
