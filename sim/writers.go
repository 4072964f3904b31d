package sim

import (
	"cmp"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Traced returns a host whose worlds note the code that writes each message.
func (h *Host) Traced() *Host {
	other := *h
	other.traced = true
	return &other
}

// A Site is a place in the code that was on the stack of a goroutine.
type Site struct {
	Function, File string
	Line           int
}

// writers returns the places on the stack of the caller, the innermost first, and none of the standard
// library or of this package.
func writers() (list []Site) {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		if packageOf(frame.Function) != here && !standard(frame) {
			list = append(list, Site{frame.Function, frame.File, frame.Line})
		}
		if !more {
			return list
		}
	}
}

// Functions returns the functions of places, the innermost of each package.
func Functions(places []Site) (list []string) {
	before := ""
	for _, at := range places {
		if pkg := packageOf(at.Function); pkg != before {
			list, before = append(list, at.Function), pkg
		}
	}
	return list
}

// LockSites returns the places of a lock and its adapter among those that wrote a message, the innermost
// first: every place of the main module, and the innermost place of each package of others. The
// client library is left out, which is the module of others that wrote to the connection.
func LockSites(places []Site) []Site {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	modules := []string{info.Main.Path}
	for _, m := range info.Deps {
		modules = append(modules, m.Path)
	}
	return lockSites(places, modules)
}

// OfThread reports whether the goroutine that stood at these places was that of a thread, which calls the lock, and
// not one that the lock or its client had started.
func OfThread(places []Site) bool {
	player := path.Join(path.Dir(here), "scenarios/play")
	return slices.ContainsFunc(places, func(at Site) bool { return packageOf(at.Function) == player })
}

// lockSites is LockSites for a program of these modules, of which the first is the main module.
func lockSites(places []Site, modules []string) (list []Site) {
	client, before := "", ""
	for _, at := range places {
		pkg := packageOf(at.Function)
		if playsRuns(pkg) {
			before = ""
			continue
		}
		module := moduleOf(pkg, modules)
		if client == "" {
			client = module
		}
		own := module == modules[0]
		if own || module != client && pkg != before {
			list = append(list, at)
		}
		before = pkg
	}
	return list
}

// moduleOf returns the module of a package. A test does not know the modules that it is built with, so a package of an
// unknown module is taken for one of the module that the first three parts of its path name.
func moduleOf(pkg string, modules []string) string {
	pkg = strings.TrimSuffix(pkg, "_test")
	best := ""
	for _, m := range modules {
		if within(pkg, m) && len(m) > len(best) {
			best = m
		}
	}
	parts := strings.Split(pkg, "/")
	return cmp.Or(best, strings.Join(parts[:min(3, len(parts))], "/"))
}

// OwnWriters returns the functions that belong to the main module of the program, but not to the
// world. They are code of the program's author.
func OwnWriters(functions []string) []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return ownWriters(functions, info.Main.Path)
}

func ownWriters(functions []string, module string) (own []string) {
	for _, f := range functions {
		if pkg := packageOf(f); within(pkg, module) && !within(pkg, here) {
			own = append(own, f)
		}
	}
	return own
}

// within reports whether a package has a path or is below it.
func within(pkg, path string) bool {
	return path != "" && (pkg == path || strings.HasPrefix(pkg, path+"/"))
}

// here is the import path of this package. It begins with the path of the module.
var here = reflect.TypeFor[Host]().PkgPath()

// packageOf returns the import path of a function's package.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	return function[:slash] + name
}

// sources is the folder of the standard library's source, or "" in a binary that was
// built without paths.
var sources = func() string {
	f := runtime.FuncForPC(reflect.ValueOf(strings.Contains).Pointer())
	file, _ := f.FileLine(f.Entry())
	return strings.TrimSuffix(file, "strings/strings.go")
}()

// standard reports whether a function belongs to the standard library.
func standard(frame runtime.Frame) bool {
	if sources != "" {
		return strings.HasPrefix(frame.File, sources)
	}
	return standardFile(frame.File, mainModule())
}

// standardFile is standard for the path of a file in a binary that was built without paths: go build puts the path of
// its module and a version in front of a file, or of the main module alone.
func standardFile(file, main string) bool {
	first, _, _ := strings.Cut(file, "/")
	return !strings.Contains(first, ".") && !strings.Contains(file, "@") && !within(file, main)
}

// mainModule returns the path of the main module of the program; "": it is not known.
var mainModule = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Path
})
