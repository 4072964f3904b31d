// Package overlay changes files of Go's standard library for one build, so that a whole Go program can run in
// a world: a goroutine that waits for a mutex lets simulated time pass, chance repeats, and each process has
// its wall clock and its pauses. "go build -overlay" takes the changed files in place of those of GOROOT.
// Each change is a small edit of the file that is there, found by its text.
package overlay

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Tag is the build tag with which package sim uses the changed files.
const Tag = "lockstep_overlay"

// marker is a package that only the overlay has. Package sim imports it if the tag is set, so that a build
// without the overlay ends with its name before anything compiles.
const marker = "overlay_missing_use_simrun_test"

// Version is the version of what the overlay has for package sim, which knows the version that it needs. It is
// raised by hand whenever package sim needs another overlay, or the same decisions give another record with it.
const Version = 1

// Known are the oldest and the newest release with which the overlay is known to work.
var Known = [2]string{"go1.26.0", "go1.26.8"}

// These are the files that the overlay adds to packages. SIM stands for the path of package sim.
var (
	//go:embed files/runtime.go.txt
	runtimeFile []byte
	//go:embed files/net.go.txt
	netFile []byte
)

// simPath is the path of package sim, which is beside this package.
var simPath = path.Join(path.Dir(reflect.TypeFor[Toolchain]().PkgPath()), "sim")

// A Toolchain is a Go that is installed.
type Toolchain struct {
	Release string // such as go1.26.8
	Root    string // GOROOT
}

// InUse returns the toolchain that the go command uses in the current folder.
func InUse() (Toolchain, error) {
	var stderr bytes.Buffer
	c := exec.Command("go", "env", "-json", "GOROOT", "GOVERSION")
	c.Stderr = &stderr
	out, err := c.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return Toolchain{}, errors.New("the command go is not in PATH; the overlay changes files of the Go that builds the tests, so put its folder bin into PATH")
	case err != nil:
		return Toolchain{}, fmt.Errorf("go env: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	var env struct{ GOROOT, GOVERSION string }
	if err := json.Unmarshal(out, &env); err != nil {
		return Toolchain{}, fmt.Errorf("go env -json: %w", err)
	}
	return Toolchain{Release: env.GOVERSION, Root: env.GOROOT}, nil
}

// An UnknownReleaseError reports a file of the standard library that the overlay cannot change.
type UnknownReleaseError struct {
	Release, File string
	Text          string // what was looked for
	Times         int    // how often it is there
}

// Error names the releases that work.
func (e *UnknownReleaseError) Error() string {
	line, _, _ := strings.Cut(strings.TrimSpace(e.Text), "\n")
	return fmt.Sprintf("the overlay does not know %s: it looks for a text that begins with %q in %s, which has it %d times and not once. "+
		"It is known to work with %s to %s; use one of these, as with GOTOOLCHAIN=%s", e.Release, line, e.File, e.Times, Known[0], Known[1], Known[1])
}

// files returns the files of the overlay, by their path below GOROOT/src.
func (t Toolchain) files() (map[string][]byte, error) {
	all := map[string][]byte{
		"runtime/lockstep.go":  bytes.ReplaceAll(runtimeFile, []byte("SIM"), []byte(simPath)),
		"net/lockstep.go":      bytes.ReplaceAll(netFile, []byte("SIM"), []byte(simPath)),
		marker + "/release.go": fmt.Appendf(nil, "package %s\n\nconst (\n\tRelease = %q\n\tVersion = %d\n)\n", marker, t.Release, Version),
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		var err error
		if all[name], err = t.edited(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// edited returns a file of the standard library with its edits.
func (t Toolchain) edited(name string) ([]byte, error) {
	source := filepath.Join(t.Root, "src", filepath.FromSlash(name))
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, fmt.Errorf("GOROOT cannot be read, and the overlay is made from its files: %w; go env GOROOT says where it is looked for", err)
	}
	for _, e := range edits[name] {
		if n := bytes.Count(text, []byte(e.old)); n != 1 {
			return nil, &UnknownReleaseError{Release: t.Release, File: source, Text: e.old, Times: n}
		}
		text = bytes.Replace(text, []byte(e.old), []byte(e.new), 1)
	}
	if text, err = format.Source(text); err != nil {
		return nil, fmt.Errorf("the overlay does not know %s: %s: %w", t.Release, source, err)
	}
	return text, nil
}

// Write writes the overlay into a folder of its own below dir, unless it is there, and returns the path of the
// file for "go build -overlay".
func (t Toolchain) Write(dir string) (file string, err error) {
	all, err := t.files()
	if err != nil {
		return "", err
	}
	names := slices.Sorted(maps.Keys(all))
	sum := sha256.New()
	for _, name := range names {
		_, _ = fmt.Fprintf(sum, "%s %s %d\n%s", t.Root, name, len(all[name]), all[name]) // a hash never fails
	}
	folder := filepath.Join(dir, fmt.Sprintf("%s-%x", t.Release, sum.Sum(nil)[:8]))
	file = filepath.Join(folder, "overlay.json")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	failed := func(err error) (string, error) {
		return "", fmt.Errorf("the overlay cannot be written: %w; make the folder writable, or name another one by XDG_CACHE_HOME", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return failed(err)
	}
	made, err := os.MkdirTemp(dir, "making-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(made) }()
	replace := map[string]string{}
	for _, name := range names {
		flat := strings.ReplaceAll(name, "/", "_")
		if err := os.WriteFile(filepath.Join(made, flat), all[name], 0o644); err != nil {
			return failed(err)
		}
		replace[filepath.Join(t.Root, "src", filepath.FromSlash(name))] = filepath.Join(folder, flat)
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return failed(err)
	}
	if err := os.WriteFile(filepath.Join(made, "overlay.json"), append(text, '\n'), 0o644); err != nil {
		return failed(err)
	}
	if err := os.Rename(made, folder); err != nil && !errors.Is(err, fs.ErrExist) {
		return failed(err)
	}
	return file, nil
}

// CacheFolder returns the folder of the user's cache in which overlays are kept.
func CacheFolder() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("the overlay needs a folder for caches: %w; set one of these variables", err)
	}
	return filepath.Join(dir, "lockstep", "overlay"), nil
}
