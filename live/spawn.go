//go:build linux

package live

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawns starts child processes; see Spawn.
var spawns = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // never unlocked: the kernel kills the children when this thread ends
		for f := range work {
			f()
		}
	}()
	return work
})

// Spawn starts a command whose process the kernel kills when this program is gone, however it
// ended, and even if the process is stopped. The kernel watches the thread that made the process,
// so one thread that never ends makes all processes. The alternatives are weaker. A child that is
// stopped, or redis-server, would not notice that a pipe was closed. A process that guards the
// others may be killed itself, and must notice when the ID of a dead process is used again.
//
// The process gets a process group of its own, so that an interrupt from the terminal reaches only
// the parent.
func Spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return spawnInGroup(cmd)
}

// spawnInGroup is Spawn for a process in the group of this one, so that signals to the group
// reach both.
func spawnInGroup(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	spawns() <- func() { done <- cmd.Start() }
	return <-done
}
