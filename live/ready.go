//go:build linux

package live

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"lockstep/scenarios/subject"
)

// A Needed is a program that must be installed, and the Debian package that has it.
type Needed struct{ Program, Package string }

// Find returns the path of the program. The error says what to install.
func (n Needed) Find() (path string, err error) {
	if path, err = exec.LookPath(n.Program); err != nil {
		return "", unusablef("there is no %s here; install it: apt-get install %s", n.Program, n.Package)
	}
	return path, nil
}

// Ready returns an error that says what the machine lacks for live runs on these locks: a program, a
// release of it that is new enough, or the permission to signal processes. A caller asks before it
// starts a scenario, which would fail for such a reason only later.
func Ready(locks []*subject.Subject, o Options) error {
	var missing []error
	seen, asked := []Needed{}, []Kind{}
	for _, l := range locks {
		if k, err := kindOf(l); err == nil && o.Address == "" && !slices.Contains(asked, k) {
			asked = append(asked, k)
			if err := k.Ready(); err != nil {
				missing = append(missing, err)
			}
		}
		f := foreignOf(l)
		if f == nil {
			continue
		}
		for _, n := range f.Needs {
			if slices.Contains(seen, n) {
				continue
			}
			seen = append(seen, n)
			if _, err := n.Find(); err != nil {
				missing = append(missing, err)
			}
		}
	}
	if len(missing) > 0 {
		return unusable{errors.Join(missing...)}
	}
	return signals(o.Program)
}

// newEnough returns an error if a server is too old. If the program does not print its release as
// Redis does, the parent asks the server when it runs.
func newEnough(path string) error {
	text, err := exec.Command(path, "--version").Output()
	if err != nil {
		return unusablef("%s --version: %w", path, err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		if v, ok := strings.CutPrefix(word, "v="); ok {
			return checkVersion(v)
		}
	}
	return nil
}

// checkVersion returns an error if a release of the server is too old.
func checkVersion(version string) error {
	first, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(first); err != nil || n < oldest {
		return unusablef("the server is Redis %s; live needs %d or later, whose PEXPIRETIME says when a key ends", version, oldest)
	}
	return nil
}

// kill sends a signal to a process, or to a group. A test replaces it.
var kill = syscall.Kill

// signals returns an error if this program may not signal a process that it started, as faults do.
func signals(client []string) error {
	cmd := exec.Command(client[0], client[1:]...)
	in, err := cmd.StdinPipe() // the client waits for input
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if err := Spawn(cmd); err != nil {
		return unusablef("no process can be started: %w", err)
	}
	err = mayStop(-cmd.Process.Pid)
	_ = cmd.Process.Kill()
	_ = in.Close()
	_ = cmd.Wait()
	return err
}

// mayStop returns an error if this program may not stop a process, or the processes of a group.
func mayStop(pid int) error {
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := kill(pid, sig); err != nil {
			return unusable{fmt.Errorf("this program may not signal the processes that it starts, as pauses and crashes do: %w; run it where it may", err)}
		}
	}
	return nil
}
