// Simrun runs lock code in a simulated world and says what it promised and
// what it kept. See simrun help.
package main

import (
	_ "lockstep/bench/benchcmd"
	"lockstep/locktest"
	_ "lockstep/scenarios/subject/builtin"
)

func main() { locktest.Main() }
