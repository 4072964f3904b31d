package play

import (
	"bytes"
	"errors"
	"testing"

	"lockstep/scenarios"
	"lockstep/sim"
)

// FuzzReadRecording checks that any input is a recording or an error with its place,
// and that a recording is the same after it is written and read again.
func FuzzReadRecording(f *testing.F) {
	whole := func() []byte {
		var b bytes.Buffer
		r := Recording{Format: recordingFormat, World: sim.Version, Lock: "setnx-del", Seed: 1, File: "f", Scenario: fuzzScenario}
		if err := r.Write(&b, nil); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}()
	for _, seed := range [][]byte{
		whole, whole[:len(whole)/2], nil, []byte("#"), []byte("# only a comment\n"), []byte("{}"), []byte("[]"), []byte(`{"format":1`),
		append(bytes.Clone(whole), "more"...), bytes.Replace(whole, []byte("setnx-del"), []byte("no-such-lock"), 1),
		bytes.Replace(whole, []byte("lockstep: 1"), []byte("lockstep: 9"), 1), {0xff, '\n'},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, sc, l, err := ReadRecording("f", text)
		var at *scenarios.FileError
		var world *WrongWorldError
		switch {
		case errors.As(err, &world), errors.As(err, new(*OtherOverlayError)):
			return
		case err != nil:
			// An error in the scenario has its place in the text of the scenario.
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 || at.Msg == "" {
				t.Fatalf("error without a place: %v", err)
			}
			if r != nil || sc != nil || l != nil {
				t.Fatalf("something beside %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := r.Write(&b, []string{"again"}); err != nil {
			t.Fatal(err)
		}
		again, _, _, err := ReadRecording("f", b.Bytes())
		if err != nil || again.Scenario != r.Scenario || again.Seed != r.Seed || again.Lock != r.Lock {
			t.Fatalf("again: %v, %+v; first %+v", err, again, r)
		}
	})
}

const fuzzScenario = `lockstep: 1
name: f
about: one lock
source: a test
locks: [setnx-del]
processes: {a: {}}
steps:
  a/1:
    - lock: x
    - unlock: x
`
