// Simrun is Lockstep's command line with other people's locks beside its own.
package main

import (
	"lockstep/known"
	"lockstep/lockmain"
	defects "lockstep/peers/known"
	"lockstep/peers/programs"
)

func main() {
	known.Register(defects.Defects...)
	lockmain.Main(programs.Options())
}
