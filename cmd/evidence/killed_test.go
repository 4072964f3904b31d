//go:build interop && linux

package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/cli/frame/frametest"
	"lockstep/lockimpl/redisserver"
)

func TestMain(m *testing.M) {
	frametest.AsProgram(main)
	m.Run()
}

// below returns the names of the processes that have a mark in their environment or work below a folder, by
// their numbers. The folder finds a server that has overwritten its environment.
func below(mark, dir string) map[int]string {
	all := map[int]string{}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		text, _ := os.ReadFile(folder + "/environ")
		cwd, _ := os.Readlink(folder + "/cwd")
		if !strings.Contains(string(text), mark) && !strings.HasPrefix(cwd, dir+"/") {
			continue
		}
		var pid int
		_, _ = fmt.Sscanf(folder, "/proc/%d", &pid)
		name, _ := os.ReadFile(folder + "/comm")
		all[pid] = strings.TrimSpace(string(name))
	}
	return all
}

// The command that plays the tests of reports may be killed at any moment. It leaves neither a
// JVM nor a redis-server running, not even one that is stopped and cannot end by itself.
func TestNothingOutlivesUpstream(t *testing.T) {
	for _, p := range [][2]string{{"redis-server", "redis-server"}, {"java", "openjdk-17-jdk-headless"}, {"mvn", "maven"}} {
		if _, err := exec.LookPath(p[0]); err != nil {
			redisserver.Missing(t, p[0], p[1])
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, moment := range []struct {
		program string // the moment is when it runs
		later   time.Duration
	}{{"java", 0}, {"java", 700 * time.Millisecond}, {"redis-server", 0}, {"redis-server", 300 * time.Millisecond}, {"redis-server", 2 * time.Second}} {
		dir := t.TempDir()
		mark := fmt.Sprintf("LOCKSTEP_UPSTREAM_TEST=%d-%d", os.Getpid(), i)
		cmd := exec.Command(self, "upstream", "R-token-lease", "--runs", "1", "--tries", "20", "--results", dir)
		cmd.Env = append(os.Environ(), mark, "TMPDIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var seen map[int]string
		runs := func() bool {
			seen = below(mark, dir)
			names := slices.Collect(maps.Values(seen))
			return slices.Contains(names, "java") && slices.Contains(names, moment.program) // the server is first asked for its release
		}
		there := runs()
		for end := time.Now().Add(10 * time.Minute); !there && time.Now().Before(end); there = runs() {
			time.Sleep(20 * time.Millisecond) // Maven takes real time
		}
		if !there {
			t.Errorf("there is no %s, only %v", moment.program, seen)
		}
		time.Sleep(moment.later)
		if i%2 == 1 {
			for pid := range below(mark, dir) {
				if pid != cmd.Process.Pid {
					_ = syscall.Kill(pid, syscall.SIGSTOP)
				}
			}
		}
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		for end := time.Now().Add(30 * time.Second); len(below(mark, dir)) > 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				left := below(mark, dir)
				t.Errorf("killed %v after there was a %s, %v are left of %v", moment.later, moment.program, left, seen)
				for pid := range left {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				break
			}
		}
	}
}
