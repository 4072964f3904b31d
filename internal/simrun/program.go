package simrun

import (
	"runtime/debug"
	"sync"
)

// program is how a reader of what simrun prints runs it again: a program that go install
// fetched is called by its name, and one that was built in a clone by go run.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	return programOf(info, ok)
})

func programOf(info *debug.BuildInfo, ok bool) string {
	if ok && info.Main.Sum != "" { // only a module that was downloaded has one
		return "simrun"
	}
	return "go run ./cmd/simrun"
}
