//go:build linux

package live

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// spawns starts child processes, see Spawn.
var spawns = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // for good: the kernel watches this thread
		for f := range work {
			f()
		}
	}()
	return work
})

// Spawn starts a command whose process the kernel kills when this program is gone, whatever
// ended it, and also if the process is stopped. The kernel watches the thread that made the
// process, so one thread that never ends makes all of them. The alternatives are weaker: a
// pipe that a child watches says nothing to a child that is stopped and nothing to
// redis-server, and a process that guards the others may be killed itself, and must know when
// the number of a process belongs to another.
//
// The process gets a process group of its own: an interrupt of the terminal is for the parent.
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
