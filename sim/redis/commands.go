package redis

import (
	"slices"
	"strings"
)

// Commands is sim.Parts.Commands. A rule can match each of them, but a HELLO only if it asks for
// RESP3.
func (*Server) Commands() []string { return commandNames }

// commandNames are the names of the commands that the server knows, in order.
var commandNames = func() (names []string) {
	for name, l := range catalogue {
		if l.simulated && !strings.Contains(name, "|") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}()
