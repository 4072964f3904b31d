// Evidence writes and checks the results of a clone of Lockstep. See evidence help.
package main

import (
	"lockstep/cmd/internal/others"
	"lockstep/internal/evidence"
	"lockstep/live"
	"lockstep/lockmain"
	_ "lockstep/scenarios/subject/builtin"
)

func main() {
	evidence.Main(lockmain.Options{Live: live.Player(), Others: others.Locks()})
}
