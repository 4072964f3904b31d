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
	write := func(id, tries string) map[string]string {
		t.Helper()
		if code, _, stderr := call(t, "upstream", id, "--tries", tries, "--results", t.TempDir(), "--out", dir); code != exitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		return filetest.Contents(t, filepath.Join(dir, id))
	}
	project, script := write("R-token-lease", "2"), write("R-4818", "1")
	const shows = "((RFencedLock) lock).lockAndGetToken(2000, MILLISECONDS)"
	const expires = `"lease_ms": 500`
	for _, x := range []struct {
		rule          string
		project       map[string]string
		text, instead string
		tries, failed int
	}{
		{"the defect", project, shows, shows, 2, 2},
		{"none", project, shows, "lock.lock(2000, MILLISECONDS)", 2, 0},
		{"the defect of a story", script, expires, expires, 1, 1},
	} {
		files := map[string][]byte{}
		found := false
		for name, text := range x.project {
			files[name] = []byte(strings.ReplaceAll(text, x.text, x.instead))
			found = found || strings.Contains(text, x.text)
		}
		if !found {
			t.Errorf("%s: the project lacks %s", x.rule, x.text)
		}
		got, err := runMaven(t.Context(), files)
		if err != nil {
			t.Fatal(err)
		}
		if got.Tries != x.tries || got.Failed != x.failed || got.Errors != 0 {
			t.Errorf("%s: %+v, want %d tries of which %d fail", x.rule, got, x.tries, x.failed)
		}
	}
}
