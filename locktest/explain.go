package locktest

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"lockstep/explain"
	"lockstep/internal/foreign"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// The forms of -lockstep.explain.
const (
	formText = "text"
	formJSON = "json"
)

// explain fails the test for the failure in a recording, with its explanation. The object of the form json is a line of
// the output of the test.
func (r *runner) explain(t *testing.T, h *sim.Host, v play.Verdict, f judges.Finding, file string) {
	t.Helper()
	x := explain.Of(h, v, f, file, r.s.mistake(f, v.Played.Trace), r.commandsOf(file))
	if *flags.explain == formText {
		say(t).Error("\n" + x.Text())
		return
	}
	r.print(t, x)
	say(t).Errorf("locktest: %s breaks %s", r.s.Name, f.Judge)
}

// mended plays a recording and schedules near it, and fails the test if one of them breaks the promise that the
// recording broke.
func (r *runner) mended(t *testing.T, h *sim.Host, file string) {
	t.Helper()
	rec, sc, lock := r.read(t, file)
	if rec.World != sim.Version {
		say(t).Logf("locktest: %s was recorded in world version %d, and this one is %d: the schedule is one near it", file, rec.World, sim.Version)
	}
	m := explain.Mended(h, rec, sc, lock, file, judgeOfFingerprint(fingerprintOf(file)), func(played, of int) {
		r.playing(fmt.Sprintf("schedule %d of %d near the recording %s", played+1, of, file))
	})
	if *flags.explain == formJSON {
		r.print(t, m)
	}
	if m.Holds {
		say(t).Log("locktest: " + m.Text())
		return
	}
	say(t).Error("locktest: " + m.Text())
}

// print prints an object as one line of the output of the test.
func (r *runner) print(t *testing.T, object any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		say(t).Fatal("locktest:", err)
	}
	_, _ = fmt.Fprintf(foreign.NewTerminal(os.Stdout), "%s\n", text)
}

// commandsOf returns the commands about the recording of a failure. A test makes drawn failures small itself, and has no
// command for that.
func (r *runner) commandsOf(file string) explain.Commands {
	replay := r.replayOf(file)
	c := explain.Commands{Replay: replay, Page: replay + " -lockstep.report=pages", Mended: replay + " -lockstep.mended"}
	if r.o.Live != nil {
		c.Live = replay + " -lockstep.live=3"
	}
	return c
}
