package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server has written a file when it crashes, and writes another one while it ends.
func TestACrashKeepsWhatWasWritten(t *testing.T) {
	for _, c := range []struct {
		name string
		keep bool
		want string
	}{
		{"with its data", true, "before"},
		{"without its data", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, err := New("test")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			write := func(name string) error { return os.WriteFile(filepath.Join(dir, name), nil, 0o600) }
			if err := write("before"); err != nil {
				t.Fatal(err)
			}
			ended, begun := make(chan error), make(chan string)
			Crash("test", dir, c.keep, func() { ended <- write("late") }, func(next string) error { begun <- next; return nil })
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			next := <-begun
			defer os.RemoveAll(next)
			files, err := os.ReadDir(next)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range files {
				names = append(names, f.Name())
			}
			if got := strings.Join(names, " "); next == dir || got != c.want {
				t.Errorf("it begins again on %s after %s, with %q; want %q on another one", next, dir, got, c.want)
			}
		})
	}
}

func TestADirectoryIsInMemory(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err != nil {
		t.Skip("n/a: the system has no /dev/shm")
	}
	dir, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if filepath.Dir(dir) != "/dev/shm" {
		t.Errorf("the directory is %s", dir)
	}
}
