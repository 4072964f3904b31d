package simrun

import (
	"runtime/debug"
	"testing"
)

func TestTheProgramIsCalledAsItWasBuilt(t *testing.T) {
	in := func(path string) *debug.BuildInfo {
		return &debug.BuildInfo{Path: path, Main: debug.Module{Path: "example.com/shop", Version: "(devel)"}}
	}
	installed := &debug.BuildInfo{Path: "example.com/you/lockstep/cmd/simrun", Main: debug.Module{Path: "example.com/you/lockstep", Version: "v0.1.0", Sum: "h1:x"}}
	inClone := &debug.BuildInfo{Path: "lockstep/cmd/simrun", Main: debug.Module{Path: "lockstep", Version: "(devel)"}}
	for _, c := range []struct {
		info *debug.BuildInfo
		ok   bool
		want string
	}{{installed, true, "simrun"}, {inClone, true, "go run ./cmd/simrun"}, {nil, false, "go run ./cmd/simrun"},
		{in("example.com/shop/cmd/locks"), true, "go run ./cmd/locks"}, {in("example.com/shop"), true, "go run ."},
		{in("example.com/shop/internal/simrun.test"), true, "go run ./cmd/simrun"}} {
		if got := programOf(c.info, c.ok); got != c.want {
			t.Errorf("%+v: %s, want %s", c.info, got, c.want)
		}
	}
}
