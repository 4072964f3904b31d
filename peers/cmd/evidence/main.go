// Evidence is Lockstep's program for its maintainers, with other people's locks beside its own.
package main

import (
	"lockstep/internal/evidence"
	"lockstep/known"
	defects "lockstep/peers/known"
	"lockstep/peers/programs"
	"lockstep/peers/upstream"
)

func main() {
	known.Register(defects.Defects...)
	upstream.Register()
	evidence.Main(programs.Options())
}
