package frame

import (
	"runtime/debug"
	"testing"
)

func TestTheProgramIsCalledAsItWasStarted(t *testing.T) {
	const (
		built  = "/tmp/go-build1/b001/exe/"
		cached = "/home/me/.cache/go-build/f6/f66046f8d984e19f2ec28bd9b35ce8630d29d2f5aa1922167c25d978a703e5e1-d/"
	)
	in := func(path string) *debug.BuildInfo {
		return &debug.BuildInfo{Path: path, Main: debug.Module{Path: "example.com/shop", Version: "(devel)"}}
	}
	downloaded := &debug.BuildInfo{Path: "example.com/you/lockstep/cmd/simrun", Main: debug.Module{Path: "example.com/you/lockstep", Version: "v0.1.0", Sum: "h1:x"}}
	inClone := &debug.BuildInfo{Path: "lockstep/cmd/simrun", Main: debug.Module{Path: "lockstep", Version: "(devel)"}}
	for _, c := range []struct {
		name   string
		info   *debug.BuildInfo
		called string
		want   string
	}{
		{"installed", downloaded, "simrun", "simrun"},
		{"installed, by its path", downloaded, "/home/me/go/bin/simrun", "/home/me/go/bin/simrun"},
		{"downloaded by go run", downloaded, built + "simrun", "go run example.com/you/lockstep/cmd/simrun@v0.1.0"},
		{"of a clone", inClone, built + "simrun", "go run ./cmd/simrun"},
		{"of a clone, from the cache", inClone, cached + "simrun", "go run ./cmd/simrun"},
		{"built in a clone", inClone, "./locks", "./locks"},
		{"in a folder with a blank", inClone, "/home/my name/it's", `'/home/my name/it'\''s'`},
		{"somebody's", in("example.com/shop/cmd/locks"), cached + "locks", "go run ./cmd/locks"},
		{"somebody's whole module", in("example.com/shop"), cached + "shop", "go run ."},
		{"files", &debug.BuildInfo{Path: "command-line-arguments"}, built + "locks", "go run locks.go"},
		{"of no build that is known", &debug.BuildInfo{}, "/usr/bin/simrun", "/usr/bin/simrun"},
		{"a test", in("example.com/shop/internal/simrun.test"), built[:len(built)-len("exe/")] + "simrun.test", "go run ./cmd/simrun"},
	} {
		if got := programOf(c.info, c.called, SimrunName); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// What stands in files is the same whatever path started the program, and works as it stands.
func TestACommandInAFileNamesNoFolder(t *testing.T) {
	info := &debug.BuildInfo{Path: "lockstep/cmd/simrun", Main: debug.Module{Path: "lockstep", Version: "(devel)"}}
	for called, want := range map[string]string{
		"simrun": "simrun", "./simrun": "simrun", "/home/me/bin/simrun": "simrun", "/home/my name/it's": `'it'\''s'`,
		"/tmp/go-build1/b001/exe/simrun": "go run ./cmd/simrun",
	} {
		if got := simrunOf(info, nameOf(called)); got != want {
			t.Errorf("%s: %s, want %s", called, got, want)
		}
	}
	if got, want := command("simrun", []string{"replay", "my orders.lockstep"}), "simrun replay 'my orders.lockstep'"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
