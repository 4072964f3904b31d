package library

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// sources has the source files of the driver.
//
//go:embed java/pom.xml java/src
var sources embed.FS

// Classpath compiles the driver with a release of the library, unless an earlier call did so, and
// returns the class path of both. It keeps the compiled files in the user's cache, under a name
// that depends on the sources. Without Maven the error wraps exec.ErrNotFound.
func Classpath(version string) (string, error) {
	built, err := build(version)
	if err != nil {
		return "", err
	}
	return filepath.Join(built, "classes") + string(filepath.ListSeparator) + filepath.Join(built, "lib", "*"), nil
}

func build(version string) (string, error) {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	java, err := fs.Sub(sources, "java")
	if err != nil {
		return "", err
	}
	print, err := fingerprint(java)
	if err != nil {
		return "", err
	}
	all := filepath.Join(cache, "lockstep", "interop")
	dir := filepath.Join(all, version+"-"+print)
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return dir, nil
	}
	release, err := lock(all)
	if err != nil {
		return "", err
	}
	defer release()
	if _, err := os.Stat(complete); err == nil {
		return dir, nil // another process built it
	}
	from, err := os.MkdirTemp("", "lockstep-driver-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(from) }()
	if err := os.CopyFS(from, java); err != nil {
		return "", err
	}
	var out bytes.Buffer
	for _, mode := range []string{"-o", "-U"} { // use what Maven has before fetching anything
		cmd := exec.Command(mvn, mode, "-q", "-B", "-Dredisson.version="+version, "-Dbuild.dir="+dir,
			"compiler:compile", "dependency:copy-dependencies")
		cmd.Dir = from
		out.Reset()
		cmd.Stdout, cmd.Stderr = &out, &out
		if err = cmd.Run(); err == nil {
			return dir, os.WriteFile(complete, nil, 0o644)
		}
	}
	return "", fmt.Errorf("%w\n%s", err, out.String())
}

// lock makes a folder, and waits until no build of another process has it. Two builds at a time
// would write the same files, in the folder of the release and in Maven's own repository.
func lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), f.Close())
		}
	}
}

// fingerprint returns a hash of the names and contents of the files of a folder.
func fingerprint(dir fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", path, len(text))
		sum.Write(text)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}
