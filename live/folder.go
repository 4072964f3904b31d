//go:build linux

package live

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// folderPrefix begins the names of the temporary folders of this package.
const folderPrefix = "lockstep-live-"

// Folder makes a temporary folder, which free removes. A program that is killed cannot remove its
// folders, so each call of Folder removes the folders of programs that are gone. A program holds a
// file lock on each of its folders, which the kernel releases when the program ends.
func Folder() (dir string, free func(), err error) {
	removeDeadFolders()
	for {
		dir, err := os.MkdirTemp("", folderPrefix)
		if err != nil {
			return "", nil, err
		}
		f, ok, err := hold(dir)
		if err != nil {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
		if !ok {
			continue // another program took it for the folder of a dead program, and removes it
		}
		return dir, func() {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}, nil
	}
}

// hold locks a folder until the file is closed. It reports false if another program holds the
// folder, or if the folder is gone.
func hold(dir string) (f *os.File, ok bool, err error) {
	f, err = os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		var here, there os.FileInfo
		if here, err = f.Stat(); err == nil {
			if there, err = os.Stat(dir); err == nil && os.SameFile(here, there) {
				return f, true, nil
			}
		}
	}
	_ = f.Close()
	if err == nil || errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return nil, false, err
}

// removeDeadFolders removes the temporary folders of programs that are gone.
func removeDeadFolders() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	if err != nil {
		return // the name of the folder for temporary files is a malformed pattern
	}
	for _, dir := range dirs {
		if f, ok, _ := hold(dir); ok {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}
