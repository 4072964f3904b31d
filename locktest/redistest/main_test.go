package redistest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"lockstep/lockmain"
	"lockstep/locktest"
)

// asProgram is the variable that makes this test the program of a lock with the name that
// it holds.
const asProgram = "LOCKSTEP_MAIN"

func TestMain(m *testing.M) {
	if name := os.Getenv(asProgram); name != "" {
		s := subjectOf(name, false)
		switch name {
		case "no open":
			s.Open = nil
		case "fenced":
			s = fencedSubject(name, false, false)
		}
		lockmain.Main(lockmain.Options{Locks: []locktest.Subject{s}})
		return
	}
	os.Exit(m.Run())
}

// A program of a lock has that lock beside the built-in ones, and says in a sentence what
// is wrong with it.
func TestAProgramOfALock(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"mine":    "\n  mine ",
		"none":    `simrun: subject "none" has the name of another lock; give it one of its own`,
		"no open": `simrun: subject "no open" has no Open; give it a function`,
	} {
		cmd := exec.Command(self, "list")
		cmd.Env = append(os.Environ(), asProgram+"="+name)
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), want) || (err == nil) != (name == "mine") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if name == "mine" && !strings.Contains(string(out), "\n  redisson@4.7.0 ") {
			t.Errorf("the built-in locks are missing:\n%s", out)
		}
	}
}
