package locktest

import (
	"path/filepath"
	"testing"
)

// A failure with the fingerprint of a recording in which the lock holds now does not overwrite it.
func TestARecordingInWhichTheLockHoldsStays(t *testing.T) {
	const fingerprint = "linearizable.bug.unlock.agreed"
	r := &runner{dir: "dir", holds: map[string]bool{}}
	for _, want := range []string{fingerprint, fingerprint + "~2", fingerprint + "~3"} {
		file := r.fileOf(fingerprint)
		if file != filepath.Join("dir", want+".lockstep") || fingerprintOf(file) != fingerprint {
			t.Errorf("%s, of the fingerprint %s; want %s", file, fingerprintOf(file), want)
		}
		r.holds[file] = true
	}
}
