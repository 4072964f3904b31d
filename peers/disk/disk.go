// Package disk has the data directories of real servers in worlds.
//
// A directory lies in a file system in memory where there is one. A crash is that of the
// server's process: what the server had written to its directory is kept, flushed or not, and
// what it writes while it ends is lost.
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

// Crash ends a server that has a directory, and begins it again on another one: a copy of the
// first as it is now, or an empty one unless keep. It waits for neither; end removes the first
// directory. Crash panics, in a goroutine of its own, if the server does not begin again.
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
