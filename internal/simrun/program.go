package simrun

import (
	"path"
	"runtime/debug"
	"strings"
	"sync"
)

// program returns the command that starts this program again. simrun prints it for the
// reader. A program that go install downloaded starts by its name. A program that was
// built in its own module starts with go run.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	return programOf(info, ok)
})

func programOf(info *debug.BuildInfo, ok bool) string {
	const ours = "cmd/simrun"
	if !ok {
		return "go run ./" + ours
	}
	folder, inside := strings.CutPrefix(info.Path, info.Main.Path+"/")
	switch {
	case info.Main.Sum != "": // only a module that was downloaded has one
		return path.Base(info.Path)
	case strings.HasSuffix(info.Path, ".test") || info.Path == "command-line-arguments":
		return "go run ./" + ours
	case info.Path == info.Main.Path:
		return "go run ."
	case inside:
		return "go run ./" + folder
	}
	return "go run " + info.Path
}
