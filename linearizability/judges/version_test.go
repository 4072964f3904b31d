package judges

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"lockstep/model"
	"lockstep/model/trace"
)

// The newest version matters to some lock, or results that older judges wrote would count as new.
func TestTheNewestVersionMatters(t *testing.T) {
	newest := 0
	for _, traits := range []model.Traits{{}, {Watched: true}, {Uncounted: true}, {Fair: true, PerGrant: true}, {PerGrant: true, Extends: true, NoWatchdog: true}} {
		v := VersionOf(traits)
		if v > Version {
			t.Errorf("%+v has version %d, and the newest is %d", traits, v, Version)
		}
		newest = max(newest, v)
	}
	if newest != Version {
		t.Errorf("version %d matters to no lock: write into VersionOf to which it does", Version)
	}
}

// TestTheVersionOfTheJudges fails if the judges find something else in the same records. The
// sentences do not count: they may be reworded.
func TestTheVersionOfTheJudges(t *testing.T) {
	const version, want = 25, "f17352baeec11ac6"
	rng := rand.New(rand.NewPCG(20, 9))
	sum := sha256.New()
	said := map[string]int{}
	for range 3000 {
		data := make([]byte, 20+rng.IntN(400))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		for _, watched := range []bool{false, true} {
			rec := fuzzRecord(data)
			rec.Params.Watched = watched
			for _, f := range Judge(trace.New(rec), []Resource{{Name: "stock", Start: 10}}).Findings {
				said[f.Judge+" "+string(f.Class)]++
				_, _ = fmt.Fprintln(sum, f.Judge, f.Verdict, f.Class, f.AtNs)
				for _, op := range f.Ops {
					_, _ = fmt.Fprintln(sum, op.Process, op.Thread, op.Op, op.CallNs, op.ReturnNs)
				}
			}
			_, _ = fmt.Fprintln(sum)
		}
	}
	if len(said) < 10 {
		t.Errorf("the records show too little: %v", said)
	}
	switch got := fmt.Sprintf("%x", sum.Sum(nil)[:8]); {
	case got != want && Version == version:
		t.Errorf("the judges say something else of the same records: raise the number judges.Version, then put it and %s here", got)
	case Version != version:
		t.Errorf("put %d and %s here", Version, got)
	}
}
