package sim

import (
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
)

// Traced returns a host whose worlds note the functions that write each message.
func (h *Host) Traced() *Host {
	other := *h
	other.traced = true
	return &other
}

// writers returns the functions on the stack of the caller, the innermost first, one per
// package and none of the standard library or of this package.
func writers() []string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var list []string
	before := ""
	for {
		frame, more := frames.Next()
		if pkg := packageOf(frame.Function); pkg != before && pkg != here && !standard(frame) {
			list, before = append(list, frame.Function), pkg
		}
		if !more {
			return list
		}
	}
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
	first, _, _ := strings.Cut(frame.File, "/")
	return !strings.Contains(first, ".")
}
