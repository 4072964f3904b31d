package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// Classpath compiles the Java sources in dir (java/, of this folder) with a
// release of the library, unless that was done before, and gives the class path
// of them and of the library. What was compiled is kept in the user's cache, by
// what it was built from. Without Maven the error is exec.ErrNotFound.
func Classpath(dir, version string) (string, error) {
	built, err := build(dir, version)
	if err != nil {
		return "", err
	}
	return filepath.Join(built, "classes") + string(filepath.ListSeparator) + filepath.Join(built, "lib", "*"), nil
}

func build(sources, version string) (string, error) {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	print, err := fingerprint(sources)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "lockstep", "interop", version+"-"+print)
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return dir, nil
	}
	var out bytes.Buffer
	for _, mode := range []string{"-o", "-U"} { // what Maven has, before what it could fetch
		cmd := exec.Command(mvn, mode, "-q", "-B", "-Dredisson.version="+version, "-Dbuild.dir="+dir,
			"compiler:compile", "dependency:copy-dependencies")
		cmd.Dir = sources
		out.Reset()
		cmd.Stdout, cmd.Stderr = &out, &out
		if err = cmd.Run(); err == nil {
			return dir, os.WriteFile(complete, nil, 0o644)
		}
	}
	return "", fmt.Errorf("%w\n%s", err, out.String())
}

// fingerprint tells the contents of a folder from any other's.
func fingerprint(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "target" {
				return filepath.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.ToSlash(name), len(text))
		sum.Write(text)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)[:6]), err
}
