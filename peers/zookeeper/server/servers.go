package server

import (
	"lockstep/locktest"
	"lockstep/sim"
)

// Servers returns n servers that know nothing of one another. A subject with n below 1 is refused
// when it is judged.
func Servers(n int) locktest.Servers {
	return locktest.Independent(n, 2181, func() sim.Server { return New() })
}
