package cli

import (
	"testing"

	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
	"lockstep/internal/longtest"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
)

// means are the means of the program under test. A test that changes them sets them back.
var means = frame.Means{Shrinking: longtest.Limit(35), Others: []frame.Other{{Name: "etcd-mutex"}, {Name: "redislock"}, {Name: "redsync-1"}, {Name: "chubby", OnlySimulated: true}}}

// testProgram returns the program that the tests call.
func testProgram() frame.Program {
	p := Program()
	p.Means = means
	return p
}

// call runs simrun as a shell would.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return frametest.Call(t, testProgram(), args...)
}

// A campaign starts this program again to play its runs. Here the program is the test, which is
// simrun when its first argument is a command.
func TestMain(m *testing.M) {
	frametest.AsProgram(func() { frame.Main(testProgram()) })
	for _, l := range means.Others {
		subject.Elsewhere(l.Name)
	}
	m.Run()
}
