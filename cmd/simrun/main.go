// Simrun runs lock code in a simulated world and says what it promised and
// what it kept. See simrun help.
package main

import (
	"lockstep/cmd/internal/others"
	"lockstep/live"
	"lockstep/lockmain"
	_ "lockstep/scenarios/subject/builtin"
)

func main() {
	lockmain.Main(lockmain.Options{Live: live.Player(), Others: others.Locks()})
}
