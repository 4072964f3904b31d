package evidence

import (
	"strings"
	"testing"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
	"lockstep/cli/livetest"
	"lockstep/internal/longtest"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// means are the means of the program under test. A test that changes them sets them back.
var means = frame.Means{Shrinking: longtest.Limit(20), Others: []frame.Other{{Name: "redislock"}, {Name: "chubby", OnlySimulated: true}}}

// testProgram returns the program that the tests call.
func testProgram() frame.Program {
	p := cli.Program()
	p.Means = means
	return program(p)
}

// call runs a command of evidence, or of simrun as evidence calls it.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return frametest.Call(t, both(testProgram()), args...)
}

// A command starts this program again to do a part of it. Here the program is the test, which is
// evidence when its first argument is a command.
func TestMain(m *testing.M) {
	frametest.AsProgram(func() { frame.Main(testProgram()) })
	for _, l := range means.Others {
		subject.Elsewhere(l.Name)
	}
	m.Run()
}

func setLive(t *testing.T, p *livetest.Player) {
	p.Host = sim.NewHost(t)
	means.Live = p
	t.Cleanup(func() { means.Live = nil })
}

// recorded makes a folder of results with one failing run in a new working directory.
func recorded(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "run", "misdelete", "--lock", "setnx-del", "--seed", "1", "--out", "r"); code != frame.ExitOK {
		t.Fatal(stderr)
	}
}

// squeeze returns a text with one blank between its words.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
