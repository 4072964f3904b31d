package server

import (
	"maps"
	"slices"

	"lockstep/sim"
)

// watches are the connections that wait for changes. A watch fires once.
type watches struct {
	data     map[string]map[sim.ConnID]bool // by path, even of nodes that do not exist
	children map[string]map[sim.ConnID]bool
}

func newWatches() watches {
	return watches{map[string]map[sim.ConnID]bool{}, map[string]map[sim.ConnID]bool{}}
}

func watch(on map[string]map[sim.ConnID]bool, path string, c sim.ConnID) {
	if on[path] == nil {
		on[path] = map[sim.ConnID]bool{}
	}
	on[path][c] = true
}

// fire returns the connections to notify of a change, in order, and ends their watches.
func (w *watches) fire(x change) []sim.ConnID {
	told := map[sim.ConnID]bool{}
	take := func(from map[string]map[sim.ConnID]bool) {
		maps.Copy(told, from[x.path])
		delete(from, x.path)
	}
	if x.event != eventChildren {
		take(w.data)
	}
	if x.event == eventChildren || x.event == eventDeleted {
		take(w.children)
	}
	return slices.Sorted(maps.Keys(told))
}

// forget ends the watches of a connection.
func (w *watches) forget(c sim.ConnID) {
	for _, on := range []map[string]map[sim.ConnID]bool{w.data, w.children} {
		for path, conns := range on {
			if delete(conns, c); len(conns) == 0 {
				delete(on, path)
			}
		}
	}
}
