package upstream

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"io/fs"
	"path"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"lockstep/live/upstream/gostory"
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
	// Source is Go code that opens the library in a test, by a function libraryOf that takes the name of a lock and returns a
	// gostory.Library; nil: there is no test.
	Source fs.FS
	// The following say which fields of the gostory.Library are set.
	Protocol, Refuse, Places, TimeToLive, Delete bool
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

// harness is the part of a Go test that is the same for all libraries.
//
//go:embed gostory/*.go
var harness embed.FS

// goTest is the Go test itself.
const goTest = `package lockreport

import (
	_ "embed"
	"testing"
)

//go:embed story.json
var story []byte

// TestStory fails if the library has the defect. The story, in story.json, says what the test does.
func TestStory(t *testing.T) { Reproduce(t, story, libraryOf) }
`

// module returns the files of a Go module with the test.
func (r *Report) module() (map[string][]byte, error) {
	if r.Library.Source == nil {
		return nil, inexpressible("%s", r.Library.Lacks)
	}
	script, err := r.script()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"go.mod": r.Library.goMod(), "reproduce_test.go": []byte(goTest), "story.json": script}
	for _, from := range []struct {
		fs   fs.FS
		glob string
	}{{r.Library.Source, "*.go"}, {harness, "gostory/*.go"}} {
		names, err := fs.Glob(from.fs, from.glob)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") || path.Base(name) == "doc.go" {
				continue
			}
			text, err := fs.ReadFile(from.fs, name)
			if err != nil {
				return nil, err
			}
			if files[path.Base(name)], err = inModule(text); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return files, nil
}

// packageClause is the package clause of a Go file.
var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// inModule returns a Go file as a file of the package of the test, which needs no import of package gostory.
func inModule(text []byte) ([]byte, error) {
	own := fmt.Sprintf("\t. %q\n", reflect.TypeFor[gostory.Script]().PkgPath())
	text = bytes.Replace(text, []byte(own), nil, 1)
	return format.Source(packageClause.ReplaceAll(text, []byte("package lockreport")))
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
