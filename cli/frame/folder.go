package frame

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// Folder makes the folder of --out, unless dir is "", and keeps other processes from writing into
// it until release is called or this process ends. A command that this program runs itself may
// write into a folder that the program already has.
func (a *App) Folder(dir string) (release func(), err error) { return a.FolderOf("--out", dir) }

// FolderOf is folder for the folder that an option names.
func (a *App) FolderOf(option, dir string) (release func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	if err := OutputFolder(option, dir); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", option, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", option, err), f.Close())
	}
	if slices.ContainsFunc(a.folders, func(mine os.FileInfo) bool { return os.SameFile(mine, info) }) {
		return func() {}, f.Close()
	}
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(fmt.Errorf("another process writes into the folder %s; wait for its end, or name another folder", dir), f.Close())
	default: // a file system without such locks
		a.Warn("%s cannot be locked (%v); take care that no other process writes into it", dir, err)
	}
	a.folders = append(a.folders, info)
	return func() {
		a.folders = slices.DeleteFunc(a.folders, func(mine os.FileInfo) bool { return os.SameFile(mine, info) })
		_ = f.Close()
	}, nil
}
