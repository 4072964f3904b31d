package locktest

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"lockstep/explore/draw"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// seedInputs is the number of inputs that Fuzz begins with, and seedBytes their size.
const (
	seedInputs = 8
	seedBytes  = 4096
)

// Fuzz lets the fuzzer of go test look for a schedule that breaks a promise of the lock.
// The bytes of an input are the decisions: which callers and faults there are, and what
// happens next. When they are used up, every decision is the simplest. Without -fuzz the
// inputs under testdata/fuzz are played, and a few of Lockstep's own.
func Fuzz(f *testing.F, s Subject) {
	f.Helper()
	at := callerOfRun()
	if err := s.check(); err != nil {
		f.Fatal("locktest:", err)
	}
	plan, err := Options{}.plan(s.Name)
	if err != nil {
		f.Fatal("locktest:", err)
	}
	inputs := seedInputs
	if *flags.replay != "" {
		inputs = 1
	}
	for i := range inputs {
		input := make([]byte, seedBytes)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(input) // it never fails
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		t.Helper()
		r := newRunner(t, s, Options{}, plan, at)
		if !r.open() {
			return
		}
		if file := *flags.replay; file != "" {
			r.on(t, func(h *sim.Host) {
				t.Helper()
				r.replay(t, h, file)
			})
			return
		}
		decisions := &bytesChooser{left: input}
		sc := draw.New(decisions, r.lock, plan.Profile, plan.Faults).Scenario
		sc.SetFile("fuzz.yaml")
		r.on(t, func(h *sim.Host) {
			t.Helper()
			v := play.Judge(h, sc, r.lock, 0, play.Play(h, sc, r.lock, decisions))
			if f, found := firstBug(v); found {
				r.fail(t, failure{fingerprint: ofInput + "." + f.Judge, verdict: v, finding: f, how: "an input of the fuzzer does"})
				return
			}
			r.rest(t, v)
		})
	})
}

// bytesChooser decides by bytes, whatever the stream. Without any bytes left it decides
// for 0, the simplest.
type bytesChooser struct{ left []byte }

// Choose implements sim.Chooser.
func (c *bytesChooser) Choose(_ string, n uint64) uint64 {
	size := 1
	for ; size < 8 && n > 1<<(8*size); size++ {
	}
	var b [8]byte
	c.left = c.left[copy(b[:size], c.left):]
	return binary.LittleEndian.Uint64(b[:]) % n
}
