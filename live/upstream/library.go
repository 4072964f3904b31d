package upstream

import (
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
)

// A Library is somebody else's Go library or server that has defects.
type Library struct {
	Name    string
	Tracker string // where its issues are
	// Defects are the IDs of its known defects.
	Defects []string
	// Modules are the Go modules of a test, the library first.
	Modules []string
	// Form has the headings of its issue form.
	Form Form
	// Source is Go code that opens the library in a test; nil: there is no test. Value returns the Go expression of
	// the gostory.Library of a lock.
	Source fs.FS
	Value  func(lock string) string
	// The following are the names of declarations in the test; "": there is none. Protocol is a gostory.Protocol.
	// Refuse answers a request with an error. Places counts the places that the server keeps for a lock. TimeToLive
	// returns the time after which the server ends the hold of a lock.
	Protocol, Refuse, Places, TimeToLive string
	// Needs is the end of a sentence, and says what a test needs beside Go. Lacks says why there is no test; "" if
	// there is one.
	Needs, Lacks string
}

// Form has the headings of an issue form.
type Form struct{ Expected, Actual, Steps, Server, Library, Configuration string }

// form is the issue form of Redisson.
var form = Form{"Expected behavior", "Actual behavior", "Steps to reproduce or test case", "Redis version", "Redisson version", "Redisson configuration"}

// Plain is the form of a tracker that has none.
var Plain = Form{"Expected behavior", "Actual behavior", "Steps to reproduce", "Server version", "Library version", "Configuration"}

// libraries are the libraries of the program, beside Redisson.
var libraries []Library

// Register adds libraries, and stories of their defects. Call it while the program starts.
func Register(files fs.FS, all ...Library) {
	more, libraries = append(more, files), append(libraries, all...)
}

// LibraryOf returns the library that has a defect; nil: none.
func LibraryOf(id string) *Library {
	for i := range libraries {
		if slices.Contains(libraries[i].Defects, id) {
			return &libraries[i]
		}
	}
	return nil
}

// versions are the versions of the modules of a library in this program.
func (l *Library) versions() (all []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, m := range l.Modules {
		for _, d := range info.Deps {
			if d.Path == m {
				all = append(all, m+" "+d.Version)
			}
		}
	}
	return all
}

// module returns the files of a Go module with the test.
func (r *Report) module() (map[string][]byte, error) {
	if r.Library.Source == nil {
		return nil, inexpressible("%s", r.Library.Lacks)
	}
	text, err := r.goTest()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"go.mod": r.Library.goMod(), "reproduce_test.go": text}, nil
}

// goMod writes the go.mod of a test.
func (l *Library) goMod() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "module lockreport\n\ngo 1.25\n\nrequire (\n")
	for _, v := range l.versions() {
		fmt.Fprintf(&b, "\t%s\n", v)
	}
	fmt.Fprintf(&b, ")\n")
	return []byte(b.String())
}
