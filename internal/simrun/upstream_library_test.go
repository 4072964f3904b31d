//go:build interop && linux

package simrun

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/internal/filetest"
	"lockstep/lockimpl/redisserver"
)

// Maven builds a project that upstream --out wrote, and its test shows the defect. The same test with a
// call that keeps its lease shows none.
func TestAReportRunsOnItsOwn(t *testing.T) {
	for _, p := range [][2]string{{"redis-server", "redis-server"}, {"java", "openjdk-17-jdk-headless"}, {"mvn", "maven"}} {
		if _, err := exec.LookPath(p[0]); err != nil {
			redisserver.Missing(t, p[0], p[1])
		}
	}
	fakeLibrary(t)
	setLive(t, &fakeLive{})
	dir := t.TempDir()
	if code, _, stderr := call(t, "upstream", "R-token-lease", "--tries", "2", "--results", t.TempDir(), "--out", dir); code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	project := filetest.Contents(t, filepath.Join(dir, "R-token-lease"))
	const shows = "((RFencedLock) lock).lockAndGetToken(2000, MILLISECONDS)"
	for _, x := range []struct {
		rule, call string
		failed     int
	}{
		{"the defect", shows, 2},
		{"none", "lock.lock(2000, MILLISECONDS)", 0},
	} {
		files := map[string][]byte{}
		for name, text := range project {
			files[name] = []byte(strings.ReplaceAll(text, shows, x.call))
		}
		got, err := runMaven(t.Context(), files)
		if err != nil {
			t.Fatal(err)
		}
		if got.Tries != 2 || got.Failed != x.failed || got.Errors != 0 {
			t.Errorf("%s: %+v, want 2 tries of which %d fail", x.rule, got, x.failed)
		}
	}
}
