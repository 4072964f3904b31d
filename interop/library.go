//go:build interop

package interop

import (
	"errors"
	"os/exec"
	"testing"

	"lockstep/interop/library"
	"lockstep/lockimpl/redisserver"
)

type (
	// Library is a release of the library in a JVM.
	Library = library.Library
	// Answer is the answer of its driver to a command.
	Answer = library.Answer
	// Fields are a command's words: key, value, key, value, ...
	Fields = library.Fields
)

// StartLibrary starts a release of the library, which ends with the test. Without Java or
// Maven the test is skipped, see Missing.
func StartLibrary(t testing.TB, version string) *Library {
	t.Helper()
	return startLibrary(t, version, 0)
}

// startLibrary is StartLibrary with a heap of heapMB, see library.Options.
func startLibrary(t testing.TB, version string, heapMB int) *Library {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		redisserver.Missing(t, "java", "openjdk-17-jdk-headless")
	}
	classpath, err := library.Classpath(version)
	if errors.Is(err, exec.ErrNotFound) {
		redisserver.Missing(t, "mvn", "maven")
	}
	if err != nil {
		t.Fatalf("build of the driver with redisson %s: %v", version, err)
	}
	l, err := library.Start(version, library.Options{Java: java, Classpath: classpath, HeapMB: heapMB})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	return l
}
