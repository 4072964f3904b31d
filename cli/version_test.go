package cli

import (
	"fmt"
	"runtime/debug"
	"testing"

	"lockstep/cli/frame"
	"lockstep/explore"
)

func TestVersion(t *testing.T) {
	v := explore.CurrentVersions()
	numbers := fmt.Sprintf("world: %d\njudges: %d\nnames: %d\ndrawing: %d\nstories: %d\n", v.World, v.Judges, v.Names, v.Draw, v.Stories)
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, c := range []struct {
		name string
		info debug.BuildInfo
		want string
	}{
		{"downloaded", debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, GoVersion: "go1.26.8"}, "simrun v0.1.0\ncommit: unknown\n" + numbers + "built with: go1.26.8\n"},
		{"of a clone", debug.BuildInfo{
			Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{setting("vcs.revision", "abc"), setting("vcs.modified", "false")},
		}, "simrun of an unknown version\ncommit: abc\n" + numbers},
		{"of a clone with changes", debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.revision", "abc"), setting("vcs.modified", "true")}},
			"simrun of an unknown version\ncommit: abc, modified\n" + numbers},
	} {
		if got := frame.VersionOf(frame.SimrunName, &c.info, v); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
	for _, args := range [][]string{{"version"}, {"--version"}, {"-v"}} {
		if code, out, stderr := call(t, args...); code != frame.ExitOK || out != (&frame.App{Program: testProgram()}).VersionText() || stderr != "" {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, stderr)
		}
	}
}
