//go:build interop

package interop

import (
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var recordFlag = flag.Bool("record", false, "write testdata/ anew")

// The library answers what it answered when testdata/ was written. With
// -record its answers are what is written.
func TestLibraryAnswersAsRecorded(t *testing.T) {
	for _, rel := range releases(t) {
		t.Run(rel.Version, func(t *testing.T) {
			all := lanes(t, rel, *lanesFlag)
			version, err := all[0].server.Version()
			if err != nil {
				t.Fatal(err)
			}
			fresh := Recording{Header: Header{recordingFormat, recordingCommand, rel.Version, version, all[0].watchdogMS}}
			var asked []Sequence
			var kept Recording
			if *recordFlag {
				for _, kind := range kinds {
					for seed := range recordedPerKind {
						asked = append(asked, Draw(kind, seed+1))
					}
				}
			} else {
				if kept, err = readRecording(rel.Version); err != nil {
					t.Fatal(err)
				}
				for _, r := range kept.Sequences {
					asked = append(asked, r.Sequence())
				}
			}
			fresh.Sequences = make([]Recorded, len(asked))
			var next atomic.Int64
			var work sync.WaitGroup
			for _, la := range all {
				work.Go(func() {
					for {
						n := int(next.Add(1)) - 1
						if n >= len(asked) {
							return
						}
						steps, err := la.ask(asked[n])
						if err != nil {
							t.Errorf("redisson %s, %s, seed %d: %v", rel.Version, asked[n].Kind, asked[n].Seed, err)
							return
						}
						fresh.Sequences[n] = Recorded{asked[n].Kind, asked[n].Seed, steps}
					}
				})
			}
			work.Wait()
			if t.Failed() {
				return
			}
			if *recordFlag {
				if err := fresh.write(); err != nil {
					t.Fatal(err)
				}
				t.Logf("redisson %s: %d sequences recorded in %s", rel.Version, len(asked), recordingPath(rel.Version))
				return
			}
			if kept.RedisServer != fresh.RedisServer {
				t.Logf("recorded with redis-server %s, this one is %s", kept.RedisServer, fresh.RedisServer)
			}
			same := 0
			for i, r := range kept.Sequences {
				if d := parted(r.Steps, fresh.Sequences[i].Steps); d != nil {
					d.oneIs, d.otherIs = "kept", "fresh"
					t.Errorf("redisson %s, %s, seed %d: the library does not answer as recorded:\n%v", rel.Version, r.Kind, r.Seed, d)
					continue
				}
				same++
			}
			t.Logf("redisson %s: %d of %d recorded sequences answered again as they were", rel.Version, same, len(asked))
		})
	}
}

// ask has the library alone do a sequence, again where the machine stalled.
func (la *lane) ask(seq Sequence) (steps []Step, err error) {
	for range 10 {
		steps = nil
		stalled := false
		la.begin(seq)
		for _, op := range seq.Ops {
			began := time.Now()
			st, err := la.library.step(op, nil)
			if err != nil {
				return nil, err
			}
			steps = append(steps, st)
			stalled = stalled || time.Since(began) > stall
		}
		if err := la.finish(); err != nil {
			return nil, err
		}
		if !stalled {
			break
		}
	}
	return steps, nil
}
