package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"lockstep/cli/frame"
)

// Something kills the processes that look for the second bug. The row of the first one stays.
func TestAKilledProcessTakesNoRowWithIt(t *testing.T) {
	for deaths, want := range map[int]int{1: frame.ExitOK, 9: frame.ExitDefect} {
		done := make(chan bool)
		var killer sync.WaitGroup
		killer.Go(func() {
			seen := map[int]bool{}
			for {
				select {
				case <-done:
					return
				default:
				}
				files, _ := filepath.Glob("/proc/self/task/*/children")
				for _, file := range files {
					text, _ := os.ReadFile(file)
					for word := range strings.FieldsSeq(string(text)) {
						var pid int
						_, _ = fmt.Sscan(word, &pid)
						if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); seen[pid] || !strings.Contains(string(line), killWorker) {
							continue
						}
						if seen[pid] = true; len(seen) > 1 && len(seen) <= 1+deaths {
							_ = syscall.Kill(pid, syscall.SIGKILL)
						}
					}
				}
			}
		})
		code, out, stderr := call(t, "kill", "acquire-without-lease", "unlock-by-anyone", "--seeds", "1", "--jobs", "1")
		close(done)
		killer.Wait()
		if code != want || !strings.Contains(out, "| acquire-without-lease |") || strings.Contains(out, "| unlock-by-anyone |") != (want == frame.ExitOK) {
			t.Errorf("%d deaths: exit %d\n%s%s", deaths, code, out, stderr)
		}
	}
}
