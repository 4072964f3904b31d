package server

import (
	"lockstep/locktest"
	"lockstep/sim"
)

// Servers returns n servers that know nothing of one another. It panics if n is below 1.
func Servers(n int) locktest.Servers {
	return locktest.Independent(n, 2181, func() sim.Server { return New() })
}
