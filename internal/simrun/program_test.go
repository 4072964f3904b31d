package simrun

import (
	"runtime/debug"
	"testing"
)

func TestTheProgramIsCalledAsItWasBuilt(t *testing.T) {
	installed := &debug.BuildInfo{Main: debug.Module{Path: "example.com/you/lockstep", Version: "v0.1.0", Sum: "h1:x"}}
	inClone := &debug.BuildInfo{Main: debug.Module{Path: "lockstep", Version: "(devel)"}}
	for _, c := range []struct {
		info *debug.BuildInfo
		ok   bool
		want string
	}{{installed, true, "simrun"}, {inClone, true, "go run ./cmd/simrun"}, {nil, false, "go run ./cmd/simrun"}} {
		if got := programOf(c.info, c.ok); got != c.want {
			t.Errorf("%+v: %s, want %s", c.info, got, c.want)
		}
	}
}
