//go:build interop && linux

package simrun

import (
	"bytes"
	"context"
	"os/exec"
	"testing"

	"lockstep/live/upstream"
	"lockstep/lockimpl/redisserver"
)

// Maven builds a folder that upstream wrote, and its test shows the defect. The same test with a
// call that keeps its lease shows none.
func TestAReportRunsOnItsOwn(t *testing.T) {
	for _, p := range [][2]string{{"redis-server", "redis-server"}, {"java", "openjdk-17-jdk-headless"}, {"mvn", "maven"}} {
		if _, err := exec.LookPath(p[0]); err != nil {
			redisserver.Missing(t, p[0], p[1])
		}
	}
	setLive(t, &fakeLive{})
	var c *upstream.Case
	for i := range upstream.Cases {
		if upstream.Cases[i].ID == "R-token-lease" {
			c = &upstream.Cases[i]
		}
	}
	r := upstream.Report{Defect: upstream.Defect{ID: c.ID, Title: c.Title, Release: upstream.CasesRelease, Case: c}, Tries: 2}
	for _, x := range []struct {
		rule, call string
		failed     int
	}{
		{"the defect", "((RFencedLock) lock).lockAndGetToken(2000, MILLISECONDS)", 2},
		{"none", "lock.lock(2000, MILLISECONDS)", 0},
	} {
		files, err := r.Project()
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			files[name] = bytes.ReplaceAll(text, []byte("((RFencedLock) lock).lockAndGetToken(2000, MILLISECONDS)"), []byte(x.call))
		}
		dir := t.TempDir()
		if err := writeFiles(dir, files); err != nil {
			t.Fatal(err)
		}
		got, err := runMaven(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if got.Tries != 2 || got.Failed != x.failed || got.Errors != 0 {
			t.Errorf("%s: %+v, want 2 tries of which %d fail", x.rule, got, x.failed)
		}
	}
}
