package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/internal/longtest"
)

func inUse(t *testing.T) Toolchain {
	t.Helper()
	in, err := InUse()
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestTheOverlayIsMadeOnce(t *testing.T) {
	in, dir := inUse(t), t.TempDir()
	file, err := in.Write(filepath.Join(dir, "a", "cache"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var o struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	if n := len(edits) + 3; len(o.Replace) != n {
		t.Errorf("the overlay has %d files, want %d", len(o.Replace), n)
	}
	for old, changed := range o.Replace {
		if !strings.HasPrefix(old, filepath.Join(in.Root, "src")) {
			t.Errorf("%s is no file of the standard library", old)
		}
		if _, err := os.Stat(changed); err != nil {
			t.Error(err)
		}
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := in.Write(filepath.Join(dir, "a", "cache"))
	if err != nil || again != file {
		t.Fatalf("once %s, then %s, %v", file, again, err)
	}
	if after, err := os.Stat(file); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("it was written again, %v", err)
	}
	folders, err := os.ReadDir(filepath.Join(dir, "a", "cache"))
	if err != nil || len(folders) != 1 {
		t.Errorf("the cache has %v, %v", folders, err)
	}
}

// copied returns a toolchain with copies of the files that the overlay changes.
func copied(t *testing.T) Toolchain {
	t.Helper()
	in := inUse(t)
	out := Toolchain{Release: "go1.99.0", Root: t.TempDir()}
	for name := range edits {
		text, err := os.ReadFile(filepath.Join(in.Root, "src", name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(out.Root, "src", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestATextThatIsNotThereOnceIsRefused(t *testing.T) {
	changed := copied(t)
	if _, err := changed.Write(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(edits)) {
		file := filepath.Join(changed.Root, "src", name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range edits[name] {
			for times, with := range map[int]string{0: "", 2: e.old + e.old} {
				if err := os.WriteFile(file, []byte(strings.Replace(string(text), e.old, with, 1)), 0o644); err != nil {
					t.Fatal(err)
				}
				var unknown *UnknownReleaseError
				if _, err := changed.edited(name); !errors.As(err, &unknown) || unknown.File != file || unknown.Times != times {
					t.Errorf("%s, edit %d, %d times: %v", name, i, times, err)
				} else if says := err.Error(); !strings.Contains(says, "does not know go1.99.0") || !strings.Contains(says, Known[0]+" to "+Known[1]) {
					t.Errorf("the error is %q", says)
				}
			}
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatCannotBeReadOrWrittenIsTold(t *testing.T) {
	_, err := Toolchain{Release: "go1.26.8", Root: filepath.Join(t.TempDir(), "gone")}.Write(t.TempDir())
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "GOROOT cannot be read") {
		t.Errorf("of a GOROOT that is not there: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := inUse(t).Write(filepath.Join(file, "cache")); err == nil || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("into a folder that cannot be made: %v", err)
	}
	t.Setenv("PATH", "")
	if _, err := InUse(); err == nil || !strings.Contains(err.Error(), "not in PATH") {
		t.Errorf("without a go: %v", err)
	}
}

func TestTheTagWithoutTheOverlayIsRefusedBeforeAnythingCompiles(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-tags", Tag, "../sim").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "package "+marker+" is not in std") {
		t.Errorf("%v\n%s", err, out)
	}
}

// build runs go with the overlay, and short tests: the cases that long tests add run the same lines.
func build(t *testing.T, file string, args ...string) string {
	t.Helper()
	args = append([]string{args[0], "-overlay=" + file, "-tags=" + Tag}, args[1:]...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "LOCKSTEP_LONG=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// lifted are tests that say what happens without the overlay: chance that does not repeat, a clock of the process
// beside that of the system, a system call in which a world stands still, and replays by go test.
const lifted = "^(TestBadLocksAreExplained|TestTheClassClockStrikesTheClockOfTheProcess|TestAFailureSaysWhatWhenAndHowToReplay|" +
	"TestAFailureThatDoesNotRepeatWhenItIsSmallIsNoResult|TestAWorkflowIsToldOfAFailure|TestWrongSubjectsAreExplained|TestARenewalIsSaidBeforeWhatDiffers)$"

// The tests of these packages say what a world does with the overlay, and that it does the same as without the
// overlay where nothing that the overlay changes matters.
func TestTheWorldsOfTheOverlay(t *testing.T) {
	longtest.Only(t)
	dir, err := CacheFolder()
	if err != nil {
		t.Fatal(err)
	}
	file, err := inUse(t).Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	build(t, file, "test", "-vet=off", "-skip="+lifted, "../sim/...", "../scenarios/play", "../locktest/...")
	out := build(t, file, "test", "-vet=off", "-run=^TestNothingOfAPausedProcessFires$", "-v", "../sim")
	if !strings.Contains(out, "--- PASS: TestNothingOfAPausedProcessFires") {
		t.Errorf("the tests of the overlay did not run:\n%s", out)
	}
	// An overlay of another release is refused by the program that was built with it.
	other := inUse(t)
	other.Release = "go1.26.99"
	stale, err := other.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	says, err := exec.Command("go", "test", "-vet=off", "-overlay="+stale, "-tags="+Tag, "-run=^$", "../sim").CombinedOutput()
	if err == nil || !strings.Contains(string(says), "the overlay is made for go1.26.99") {
		t.Errorf("%v\n%s", err, says)
	}
}

// The module proxy serves the releases from the oldest to the newest that the overlay is said to know.
func TestEveryReleaseIsKnown(t *testing.T) {
	longtest.Only(t)
	var oldest, newest int
	for at, into := range map[string]*int{Known[0]: &oldest, Known[1]: &newest} {
		if _, err := fmt.Sscanf(at, "go1.26.%d", into); err != nil {
			t.Fatal(err)
		}
	}
	cache := t.TempDir()
	for n := oldest; n <= newest; n++ {
		t.Run(fmt.Sprint("go1.26.", n), func(t *testing.T) {
			t.Setenv("GOTOOLCHAIN", fmt.Sprint("go1.26.", n))
			t.Setenv("GOMODCACHE", cache)
			t.Setenv("GOFLAGS", "-modcacherw")
			in := inUse(t)
			if want := fmt.Sprint("go1.26.", n); in.Release != want {
				t.Fatalf("go is %s, want %s", in.Release, want)
			}
			if _, err := in.Write(t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
}
