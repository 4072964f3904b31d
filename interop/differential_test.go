//go:build interop

package interop

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/lockimpl/redisson"
)

var (
	sequencesFlag = flag.Int("sequences", 2000, "sequences to compare for each release and kind of lock")
	firstFlag     = flag.Int("first", 1_000_000, "seed of the first of them")
	lanesFlag     = flag.Int("lanes", 12, "sequences under way at once")
	releaseFlag   = flag.String("release", "", "compare this release only")
)

func releases(t *testing.T) []*redisson.Release {
	t.Helper()
	if *releaseFlag == "" {
		return redisson.Releases
	}
	rel, err := redisson.Find(*releaseFlag)
	if err != nil {
		t.Fatal(err)
	}
	return []*redisson.Release{rel}
}

// lanes starts a server and the library, and returns lanes on them.
func lanes(t *testing.T, rel *redisson.Release, count int) []*lane {
	t.Helper()
	server := StartServer(t)
	l := StartLibrary(t, rel.Version)
	w := startWatch(t, server)
	all := make([]*lane, count)
	for i := range all {
		all[i] = newLane(t, server, w, l, rel, i)
	}
	// Some releases send the first use of a script twice, because of the script cache.
	for _, kind := range kindsOf(rel) {
		for range 2 {
			_, _, _, err := all[0].play(Sequence{Kind: kind, Ops: warmUp}, false)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// warmUp makes both sides send each of their scripts.
var warmUp = []Op{
	{Client: "a", Thread: 1, Do: doLock, Lock: "x"},
	{Client: "a", Thread: 2, Do: doTryLockTimed, Lock: "x", WaitMS: 3},
	{Client: "a", Thread: 2, Do: doTryLock, Lock: "x"},
	{Client: "a", Thread: 1, Do: doUnlock, Lock: "x"},
	{Client: "a", Thread: 1, Do: doForceUnlock, Lock: "x"},
}

// For each request, the library and the port return the same reply, publish the same messages and
// leave the same state.
func TestLibraryAndPortDoTheSame(t *testing.T) {
	t.Parallel()
	for _, rel := range releases(t) {
		t.Run(rel.Version, func(t *testing.T) {
			all := lanes(t, rel, *lanesFlag)
			for _, kind := range kindsOf(rel) {
				compareMany(t, rel, kind, all)
			}
		})
	}
}

func compareMany(t *testing.T, rel *redisson.Release, kind string, all []*lane) {
	began := time.Now()
	var next, agreed, ops, again atomic.Int64
	var mu sync.Mutex
	var apart []Sequence
	var work sync.WaitGroup
	for _, la := range all {
		if la.dead {
			continue
		}
		work.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= *sequencesFlag {
					return
				}
				seq := Draw(kind, *firstFlag+n)
				steps, d, tries, err := la.compare(seq)
				again.Add(int64(tries))
				ops.Add(int64(len(steps)))
				switch {
				case err != nil:
					t.Errorf("redisson %s, %s, seed %d: %v", rel.Version, kind, seq.Seed, err)
					la.dead = true
					return
				case d != nil:
					mu.Lock()
					if apart = append(apart, seq); len(apart) <= 3 {
						t.Errorf("redisson %s, %s, seed %d: the library and the port do not agree:\n%v", rel.Version, kind, seq.Seed, shrink(la, seq, d))
					}
					mu.Unlock()
				default:
					agreed.Add(1)
				}
			}
		})
	}
	work.Wait()
	text := fmt.Sprintf("redisson %s, %s: %d of %d sequences agreed (%d operations, %d asked again after a stall, %v)", rel.Version, kind, agreed.Load(), *sequencesFlag, ops.Load(), again.Load(), time.Since(began).Round(time.Second))
	t.Log(text)
	if agreed.Load() != int64(*sequencesFlag) {
		t.Errorf("%s; seeds: %v", text, seeds(apart))
	}
}

func seeds(all []Sequence) (s []int) {
	for _, q := range all {
		s = append(s, q.Seed)
	}
	slices.Sort(s)
	return s
}

// shrink leaves out operations for as long as the two sides still differ.
func shrink(la *lane, seq Sequence, d *disagreement) *disagreement {
	seq.Ops = seq.Ops[:d.at+1]
	for again := true; again; {
		again = false
		for i := len(seq.Ops) - 1; i >= 0; i-- {
			fewer := seq
			fewer.Ops = slices.Delete(slices.Clone(seq.Ops), i, i+1)
			_, smaller, _, err := la.compare(fewer)
			if err != nil {
				return d
			}
			if smaller != nil {
				fewer.Ops = fewer.Ops[:smaller.at+1]
				seq, d, again = fewer, smaller, true
				break
			}
		}
	}
	return d
}
