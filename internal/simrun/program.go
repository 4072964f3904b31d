package simrun

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
)

// program returns the command that starts this program again. Recordings, tables and replay
// lines show it to their reader.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return programOf(info, os.Args[0])
})

// ours is the folder of simrun in its module.
const ours = "cmd/simrun"

// programOf returns the command for a program with this build information and path. go run leaves no
// program that could be called again, so the command names the package: its folder in its module, or the
// version that was downloaded. Any other program is called again by the same path, since its folder need
// not be in the PATH. A test of the command line is called simrun.
func programOf(info *debug.BuildInfo, called string) string {
	folder, inside := strings.CutPrefix(info.Path, info.Main.Path+"/")
	switch {
	case strings.HasSuffix(info.Path, ".test"):
		return "go run ./" + ours
	case !ranByGo(called):
		return quoted(called)
	case info.Main.Sum != "": // only a downloaded module has a checksum
		return "go run " + info.Path + "@" + info.Main.Version
	case info.Path == info.Main.Path:
		return "go run ."
	case inside:
		return "go run ./" + folder
	}
	return "go run " + filepath.Base(called) + ".go" // go run names a program of files after the first file
}

// plain matches the paths that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted returns a path as it is written in a command.
func quoted(path string) string {
	if plain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// goRun matches the paths by which go run starts a program: in a temporary folder when it has
// just built it, and from then on in the cache of the go command.
var goRun = regexp.MustCompile(`/(go-build[0-9]+/b[0-9]+/exe|[0-9a-f]{64}-d)/[^/]+$`)

func ranByGo(called string) bool { return goRun.MatchString(filepath.ToSlash(called)) }
