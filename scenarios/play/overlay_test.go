package play

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func TestARecordingNeedsTheOverlayWithWhichItWasMade(t *testing.T) {
	const pause = "faults:\n  - {at: 1s, pause: a, for: 1s}\n"
	const clock = "faults:\n  - {at: 1s, wall_clock: a, step: 1s}\n"
	for _, c := range []struct {
		name     string
		made     int
		scenario string
		want     string
	}{
		{"as this program", sim.OverlayVersion, fuzzScenario + pause, ""},
		{"with another overlay", sim.OverlayVersion + 1, fuzzScenario, "with"},
		{"without, and nothing differs", 0, fuzzScenario, ""},
		{"without, and with a pause", 0, fuzzScenario + pause, "without"},
		{"without, and with a step of a clock", 0, fuzzScenario + clock, "without"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "without" && !sim.Overlaid {
				c.want = ""
			}
			var b bytes.Buffer
			r := Recording{Format: recordingFormat, World: sim.Version, Lock: "setnx-del", Seed: 1, File: "f", Scenario: c.scenario, Overlay: c.made}
			if err := r.Write(&b, nil); err != nil {
				t.Fatal(err)
			}
			_, _, _, err := ReadRecording("f.lockstep", b.Bytes())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var other *OtherOverlayError
			if !errors.As(err, &other) || other.Made != c.made || other.Here != sim.OverlayVersion || !strings.Contains(err.Error(), "f.lockstep: the recording was made "+c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestARecordingNamesTheOverlay(t *testing.T) {
	lock, err := subject.Find("setnx-del")
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenarios.Parse("f", []byte(fuzzScenario), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	v := Verdict{Scenario: sc, Lock: lock}
	if got := v.Recording().Overlay; got != sim.OverlayVersion {
		t.Errorf("the recording names overlay %d, and the program has %d", got, sim.OverlayVersion)
	}
}
