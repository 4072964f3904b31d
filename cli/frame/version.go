package frame

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/explore"
)

// VersionText returns the text of the command version.
func (a *App) VersionText() string {
	return VersionOf(a.Name, buildInfo(), explore.CurrentVersions())
}

// VersionOf describes a program with this name and build information: the version of its module, the
// commit, and the versions that recordings and results name.
func VersionOf(name string, info *debug.BuildInfo, v explore.Versions) string {
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
	fmt.Fprintf(&b, "%s %s\ncommit: %s\n", name, module, commit)
	fmt.Fprintf(&b, "world: %d\njudges: %d\nnames: %d\ndrawing: %d\nstories: %d\n", v.World, v.Judges, v.Names, v.Draw, v.Stories)
	if info.GoVersion != "" {
		fmt.Fprintf(&b, "built with: %s\n", info.GoVersion)
	}
	return b.String()
}

// VersionCommand returns the command version.
func (a *App) VersionCommand() *cobra.Command {
	return a.Command(Guide{
		Use: "version", Short: "the versions of this program, its world and its judges",
		Long: "Version prints the version of the module and the commit, where they are known, and five versions that recordings and results name. " +
			"A recording is played only in the world version in which it was made. Another version of the judges may judge the same run differently, " +
			"another version of the names may give a finding another known defect, another version of the drawing draws other scenarios from the same seed, " +
			"and another version of the stories tells other ones.",
		Examples: []string{"version"},
	}, func(in Invocation) (int, error) {
		if len(in.Names) > 0 {
			return 0, Usagef("version takes no argument, got %q", in.Names[0])
		}
		_, err := io.WriteString(a.Out, a.VersionText())
		return ExitOK, err
	})
}
