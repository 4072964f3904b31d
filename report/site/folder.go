package site

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// listFile is the file that marks a folder as a site. It lists the files of the site.
const listFile = ".lockstep-site"

// listHead is the first line of the list.
const listHead = "simrun site wrote these files, and renews them.\n"

// A Folder is a folder that a site may be written into.
type Folder struct {
	root *os.Root
	// before are the files of an earlier site, and now those of this one.
	before, now map[string]bool
}

// Open makes the folder dir. It refuses a folder that has files and is no site. The caller must
// write one site into the folder, which closes it.
func Open(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{root: root, before: map[string]bool{}, now: map[string]bool{}}
	if err := f.claim(dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

func (f *Folder) claim(dir string) error {
	text, err := f.root.ReadFile(listFile)
	if err == nil {
		names, ours := strings.CutPrefix(string(text), listHead)
		if !ours {
			return fmt.Errorf("%s in %s is not the list of a site; name another folder", listFile, dir)
		}
		for name := range strings.Lines(names) {
			f.before[strings.TrimSuffix(name, "\n")] = true
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty, and no site was written there before; name a new folder", dir)
	}
	return f.list()
}

// list writes the list of the files that are in the folder.
func (f *Folder) list() error {
	names := maps.Clone(f.before)
	maps.Copy(names, f.now)
	var b strings.Builder
	b.WriteString(listHead)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		b.WriteString(name + "\n")
	}
	return f.root.WriteFile(listFile, []byte(b.String()), 0o644)
}

// write writes a file of the site. A file that has this text already is left alone.
func (f *Folder) write(name string, text []byte) error {
	if f.now[name] {
		return fmt.Errorf("two pages of the site have the name %s", name)
	}
	f.now[name] = true
	if old, err := f.root.ReadFile(name); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return f.root.WriteFile(name, text, 0o644)
}

// close ends the work. If the site is whole, it removes the files that only an earlier site had,
// and the folders that become empty.
func (f *Folder) close(whole bool) error {
	var bad []error
	for _, name := range slices.Sorted(maps.Keys(f.before)) {
		if !whole || f.now[name] {
			continue
		}
		if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			bad = append(bad, err)
			continue
		}
		delete(f.before, name)
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if f.root.Remove(folder) != nil { // other files are there
				break
			}
		}
	}
	return errors.Join(append(bad, f.list(), f.root.Close())...)
}
