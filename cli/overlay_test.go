package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
)

func TestTheOverlayIsWrittenIntoTheCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	code, out, stderr := call(t, "overlay")
	file := strings.TrimSpace(out)
	if code != frame.ExitOK || stderr != "" || !strings.HasPrefix(file, filepath.Join(dir, "lockstep", "overlay")) {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	t.Setenv("XDG_CACHE_HOME", file) // a file, in which no folder can be made
	if code, out, stderr := call(t, "overlay"); code != frame.ExitUsage || out != "" || !strings.Contains(stderr, "the overlay cannot be written") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}

func TestArgumentsOfATestWithTheOverlay(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"./...", "-vet=off -tags=lockstep_overlay ./..."},
		{"-run X -tags=a,b -v . -lockstep.runs=3", "-vet=off -tags=lockstep_overlay,a,b -run X -v . -lockstep.runs=3"},
		{"-vet=all .", "-vet=off -tags=lockstep_overlay -vet=all ."},
		{"--tags a .", "-vet=off -tags=lockstep_overlay,a ."},
		{". -args -tags x -overlay y", "-vet=off -tags=lockstep_overlay . -args -tags x -overlay y"},
	} {
		got, err := overlayArguments(strings.Fields(c.args))
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, %v; want %q", c.args, got, err, c.want)
		}
	}
	for args, want := range map[string]string{"-overlay=x .": "go test takes only one", "-overlay x": "go test takes only one", ". -tags": "-tags needs a value"} {
		if code, out, stderr := call(t, append([]string{"test"}, strings.Fields(args)...)...); code != frame.ExitUsage || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d\n%s%s", args, code, out, stderr)
		}
	}
	if code, out, _ := call(t, "test", "--help"); code != frame.ExitOK || !strings.Contains(out, "go test with the overlay") && !strings.Contains(out, "calls go test") {
		t.Errorf("exit %d\n%s", code, out)
	}
}
