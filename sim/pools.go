package sim

import (
	"runtime"
	_ "unsafe" // for go:linkname
)

// The runtime empties the pools of a program, every sync.Pool, when two collections have begun. These
// functions do the same without the collections, for which a short run would take as long again as for
// itself. Go keeps them for packages outside of the standard library, see go.dev/issue/67401.

//go:linkname poolCleanup sync.poolCleanup
func poolCleanup()

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// emptyPools empties all pools of the program. A library may keep timers in a package-level pool, and
// a timer of one bubble kills the next one.
func emptyPools() {
	// Nothing else may use a pool meanwhile. On the only processor nothing else runs, as long as the
	// caller keeps the processor.
	procPin()
	alone := runtime.GOMAXPROCS(0) == 1
	if alone {
		poolCleanup()
		poolCleanup()
	}
	procUnpin()
	if !alone { // another test has just asked for more processors
		runtime.GC()
		runtime.GC()
	}
}
