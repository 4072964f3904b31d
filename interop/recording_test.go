//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var recordFlag = flag.Bool("record", false, "write testdata/ anew")

// recordedPerKind is the number of sequences of each kind in a recording. Their seeds begin at 1.
const recordedPerKind = 120

// notable are seeds of sequences that once showed a fault of the port: it did
// not reset the lease field at forceUnlock (3.21.3 and later).
var notable = []int{1000700, 1001744, 1001747, 1001941}

// The library answers as it did when testdata/ was written. With -record the test writes its
// answers.
func TestLibraryAnswersAsRecorded(t *testing.T) {
	t.Parallel()
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
				for _, kind := range kindsOf(rel) {
					for seed := range recordedPerKind {
						asked = append(asked, Draw(kind, seed+1))
					}
					for _, seed := range notable {
						asked = append(asked, Draw(kind, seed))
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
				if d := parted(r.Steps, fresh.Sequences[i].Steps, toleranceMS); d != nil {
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

// ask plays a sequence on the library alone, and again if the machine stalled.
func (la *lane) ask(seq Sequence) (steps []Step, err error) {
	for range 10 {
		steps = nil
		stalled := false
		la.begin(seq)
		for _, op := range seq.Ops {
			began := time.Now()
			st, err := la.library.step(op, nil)
			if err != nil {
				return steps, err
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

func (r Recording) write() error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r.Header); err != nil {
		return err
	}
	for _, s := range r.Sequences {
		for _, step := range s.Steps {
			step.State.round()
		}
		if err := e.Encode(s); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		return err
	}
	temporary := recordingPath(r.Redisson) + ".new"
	if err := os.WriteFile(temporary, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, recordingPath(r.Redisson))
}

// round removes the influence of the machine's speed from the times.
func (s *State) round() {
	if s == nil {
		return
	}
	up := func(ms int64) int64 {
		if ms <= 0 {
			return ms
		}
		return (ms + 99) / 100 * 100
	}
	for name, l := range s.Locks {
		l.TTL = up(l.TTL)
		for who, ms := range l.Deadlines {
			l.Deadlines[who] = up(ms)
		}
		s.Locks[name] = l
	}
}
