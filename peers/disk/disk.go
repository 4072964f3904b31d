// Package disk has the data directories of real servers in worlds.
//
// A directory is in a file system in memory if the machine has one. Only the process of a server
// crashes, and not the machine: everything that the server had written to its directory is kept,
// flushed or not. Everything that it writes while it ends is lost.
package disk

import (
	"fmt"
	"os"
)

// New makes a directory for a server of that name.
func New(server string) (string, error) {
	pattern := "lockstep-" + server + "-"
	const memory = "/dev/shm"
	if dir, err := os.MkdirTemp(memory, pattern); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", pattern)
}

// Crash ends a server that has a directory, and starts it again on another directory: a copy of the
// first one as it is now, or an empty one if keep is false. It waits neither for the end nor for
// the start. end removes the first directory. If the server does not start again, Crash panics in a
// goroutine of its own.
func Crash(server, dir string, keep bool, end func(), begin func(dir string) error) {
	next, err := New(server)
	if err == nil && keep {
		err = os.CopyFS(next, os.DirFS(dir))
	}
	go func() {
		go end()
		if err == nil {
			err = begin(next)
		}
		if err != nil {
			panic(fmt.Sprintf("%s does not start again: %v", server, err))
		}
	}()
}
