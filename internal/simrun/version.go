package simrun

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"lockstep/explore"
)

// versionText returns what simrun version prints.
var versionText = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info, explore.CurrentVersions())
})

// versionOf describes a program with this build information: the version of its module, the commit,
// and the versions that recordings and results name.
func versionOf(info *debug.BuildInfo, v explore.Versions) string {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	module := info.Main.Version
	if module == "" || module == "(devel)" {
		module = "of an unknown version"
	}
	commit := settings["vcs.revision"]
	switch {
	case commit == "":
		commit = "unknown"
	case settings["vcs.modified"] == "true":
		commit += ", modified"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "simrun %s\ncommit: %s\n", module, commit)
	fmt.Fprintf(&b, "world: %d\njudges: %d\nnames: %d\ndrawing: %d\nstories: %d\n", v.World, v.Judges, v.Names, v.Draw, v.Stories)
	if info.GoVersion != "" {
		fmt.Fprintf(&b, "built with: %s\n", info.GoVersion)
	}
	return b.String()
}

func (a *app) versionCommand() *cobra.Command {
	return a.command(guide{
		use: "version", short: "the versions of this program, its world and its judges",
		long: "Version prints the version of the module and the commit, where they are known, and five versions that recordings and results name. " +
			"A recording is played only in the world version in which it was made. Another version of the judges may judge the same run differently, " +
			"another version of the names may give a finding another known defect, another version of the drawing draws other scenarios from the same seed, " +
			"and another version of the stories tells other ones.",
		examples: []string{"version"},
	}, func(in invocation) (int, error) {
		if len(in.names) > 0 {
			return 0, usagef("version takes no argument, got %q", in.names[0])
		}
		_, err := io.WriteString(a.out, versionText())
		return exitOK, err
	})
}
