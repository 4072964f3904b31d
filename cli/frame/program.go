package frame

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
)

// SimrunName is the name of the program for people who judge locks.
const SimrunName = "simrun"

var buildInfo = sync.OnceValue(func() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return info
})

// Simrun returns the command that starts simrun, as the caller of this program can give it. A program with other
// commands names simrun, beside which it stands.
var Simrun = sync.OnceValue(func() string { return simrunOf(buildInfo(), os.Args[0]) })

// SimrunInFiles returns Simrun for recordings, tables and pages, which are read on other machines, too, and which are to
// be the same whatever path started the program: the command names no folder of this machine.
var SimrunInFiles = sync.OnceValue(func() string { return simrunOf(buildInfo(), nameOf(os.Args[0])) })

// nameOf returns the name of a program without its folder, unless go run has started it.
func nameOf(called string) string {
	if ranByGo(called) {
		return called
	}
	return filepath.Base(called)
}

// Command returns a command of simrun for a shell.
func Command(words ...string) string { return command(Simrun(), words) }

// CommandInFiles returns a command of simrun for a shell, with SimrunInFiles.
func CommandInFiles(words ...string) string { return command(SimrunInFiles(), words) }

func command(program string, words []string) string {
	for _, word := range words {
		program += " " + Quoted(word)
	}
	return program
}

func simrunOf(info *debug.BuildInfo, called string) string {
	if strings.HasSuffix(info.Path, "/"+FolderOf(EvidenceName)) && filepath.ToSlash(filepath.Dir(filepath.Dir(info.Path))) == info.Main.Path {
		return "go run ./" + FolderOf(SimrunName)
	}
	return programOf(info, called, SimrunName)
}

// EvidenceName is the name of the program of the maintainers.
const EvidenceName = "evidence"

// FolderOf returns the folder of a program in its module.
func FolderOf(name string) string { return "cmd/" + name }

// Called returns the command that starts this program again.
func (a *App) Called() string { return programOf(buildInfo(), os.Args[0], a.Name) }

// programOf returns the command for a program with this build information and path. go run leaves no
// program that could be called again, so the command names the package: its folder in its module, or the
// version that was downloaded. Any other program is called again by the same path, since its folder need
// not be in the PATH. A test of a command line is called by the name of its program.
func programOf(info *debug.BuildInfo, called, name string) string {
	folder, inside := strings.CutPrefix(info.Path, info.Main.Path+"/")
	switch {
	case strings.HasSuffix(info.Path, ".test"):
		return "go run ./" + FolderOf(name)
	case !ranByGo(called):
		return Quoted(called)
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

// Quoted returns a path as it is written in a command.
func Quoted(path string) string {
	if plain.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// goRun matches the paths by which go run starts a program: in a temporary folder when it has
// just built it, and from then on in the cache of the go command.
var goRun = regexp.MustCompile(`/(go-build[0-9]+/b[0-9]+/exe|[0-9a-f]{64}-d)/[^/]+$`)

func ranByGo(called string) bool { return goRun.MatchString(filepath.ToSlash(called)) }
