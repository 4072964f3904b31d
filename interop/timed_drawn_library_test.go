//go:build interop

package interop

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/lockimpl/redisson"
)

var (
	storiesFlag = flag.Int("stories", 30, "drawn stories to compare for each release and kind of lock")
	underFlag   = flag.Int("under", 60, "drawn stories under way at once")
	// Clients that were shut down leave memory behind in early releases, and after 160 of them the
	// heap is full.
	togetherFlag = flag.Int("together", 60, "drawn stories that a JVM tells before another takes its place")
	aloneFlag    = flag.Bool("alone", true, "have the library tell stories that differ again, alone")
	toldFlag     = flag.String("told", "", "folder for what the library tells of drawn stories; what is there is not told again, unless it was disturbed")
	kindFlag     = flag.String("kind", "", "tell drawn stories of this kind of lock only, plain or fair")
)

// drawnFirst is the seed of the first drawn story.
const drawnFirst = 2_000_000

// The port and the library give the same record of a drawn story. With -record the tellings of the
// first stories on which they agree are kept.
func TestLibraryAndPortTellTheSame(t *testing.T) {
	kinds := []string{plain, fair}
	if *kindFlag != "" {
		if !slices.Contains(kinds, *kindFlag) || *recordFlag {
			t.Fatalf("-kind %s: drawn stories are of the plain or of the fair lock, and -record keeps both", *kindFlag)
		}
		kinds = []string{*kindFlag}
	}
	var seeds []int
	for n := range *storiesFlag {
		seeds = append(seeds, drawnFirst+n)
	}
	tellers := map[*redisson.Release]*drawnTeller{}
	library := map[*redisson.Release]map[string][]timedTelling{}
	for _, rel := range releases(t) {
		tellers[rel] = &drawnTeller{rel: rel, server: StartServer(t), lib: StartLibrary(t, rel.Version)}
		library[rel] = map[string][]timedTelling{}
	}
	// The port tells when no library does: it is a matter of processors, the library of time.
	t.Run("library", func(t *testing.T) {
		for rel, teller := range tellers {
			t.Run(rel.Version, func(t *testing.T) {
				t.Parallel()
				for _, kind := range kinds {
					began := time.Now()
					library[rel][kind] = teller.tellOrRead(t, kind, seeds)
					t.Logf("redisson %s, %s: told in %v, %d tellings were disturbed; %v", rel.Version, kind, time.Since(began).Round(time.Second), teller.disturbed.Swap(0), skippedIn(library[rel][kind]))
				}
			})
		}
	})
	for _, rel := range releases(t) {
		t.Run(rel.Version, func(t *testing.T) {
			var keep []timedTelling
			for _, kind := range kinds {
				tellings := library[rel][kind]
				if len(tellings) < len(seeds) {
					t.Fatalf("the library did not tell all stories of the %s lock", kind)
				}
				count, apart := tellDrawn(t, rel, kind, seeds, tellings)
				kept := 0
				for i, seed := range seeds {
					if _, differs := apart[seed]; kept < drawnKept && !differs && !tellings[i].Disturbed {
						keep = append(keep, tellings[i])
						kept++
					}
				}
				if *aloneFlag {
					apart = tellers[rel].tellAlone(t, kind, apart, &count)
				}
				t.Logf("redisson %s, %s: %v", rel.Version, kind, count)
				for seed, how := range apart {
					t.Errorf("redisson %s, %s lock, seed %d: the port does not tell the story as the library does: %s", rel.Version, kind, seed, how)
				}
			}
			if *recordFlag {
				if err := tellers[rel].recording(t, keep).write(drawnPath(rel.Version)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// drawnTeller is the library of one release as a teller of drawn stories.
type drawnTeller struct {
	rel       *redisson.Release
	server    *Server
	lib       *Library
	warm      bool
	told      int // stories by this JVM
	tags      atomic.Int64
	disturbed atomic.Int64 // tellings
}

// warmUp lets the library use its classes for the first time, which takes long.
func (d *drawnTeller) warmUp() {
	if d.warm {
		return
	}
	d.warm = true
	for _, kind := range []string{plain, fair} {
		var warming sync.WaitGroup
		for n := range 4 {
			warming.Go(func() { _, _, _ = d.once(drawStory(kind, n+1)) })
		}
		warming.Wait()
	}
}

func (d *drawnTeller) once(s timedStory) (timedTelling, time.Duration, error) {
	return tellByLibrary(d.lib, d.server, d.rel, s.kinds[0], s, fmt.Sprint("drawn", d.tags.Add(1)))
}

// drawnTries is how often the library tells a story before it is given up because the machine
// disturbs it.
const drawnTries = 5

// tell has the library tell stories, and one that the machine disturbed again.
func (d *drawnTeller) tell(t *testing.T, kind string, seeds []int) (all []timedTelling) {
	t.Helper()
	for these := range slices.Chunk(seeds, *togetherFlag) {
		if d.told += len(these); d.told > *togetherFlag {
			d.lib.Stop()
			d.lib, d.warm, d.told = StartLibrary(t, d.rel.Version), false, len(these)
		}
		all = append(all, d.tellTogether(t, kind, these)...)
	}
	return all
}

func (d *drawnTeller) tellTogether(t *testing.T, kind string, seeds []int) []timedTelling {
	t.Helper()
	d.warmUp()
	all := make([]timedTelling, len(seeds))
	enough := make(chan bool, *underFlag)
	var failed atomic.Bool
	var telling sync.WaitGroup
	for i, seed := range seeds {
		enough <- true
		telling.Go(func() {
			defer func() { <-enough }()
			for range drawnTries {
				x, stall, err := d.once(drawStory(kind, seed))
				if err != nil {
					t.Errorf("redisson %s, %s, seed %d: %v", d.rel.Version, kind, seed, err)
					failed.Store(true)
					return
				}
				if stall <= drawnShift {
					all[i] = x
					return
				}
				d.disturbed.Add(1)
			}
			s := drawStory(kind, seed)
			all[i] = timedTelling{Story: s.name, Kind: kind, WatchdogMS: timedWatchdog(d.rel, s), Disturbed: true}
		})
	}
	telling.Wait()
	if failed.Load() {
		t.FailNow()
	}
	return all
}

// tellOrRead reads what the library told before, where it is kept, and has it tell the rest. The
// records of a JVM are kept before the next JVM begins.
func (d *drawnTeller) tellOrRead(t *testing.T, kind string, seeds []int) []timedTelling {
	t.Helper()
	if *toldFlag == "" {
		return d.tell(t, kind, seeds)
	}
	path := filepath.Join(*toldFlag, d.rel.Version+"-"+kind+".jsonl")
	kept, err := readTimed(path, d.rel.Version)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	told := map[string]timedTelling{}
	for _, x := range kept.tellings {
		told[x.Story] = x
	}
	var missing []int
	for _, seed := range seeds {
		name := drawStory(kind, seed).name
		if x, is := told[name]; !is || x.Disturbed {
			missing = append(missing, seed)
		} else {
			kept.find(t, drawStory(kind, seed), kind) // the story is the same
		}
	}
	for these := range slices.Chunk(missing, *togetherFlag) {
		for _, x := range d.tell(t, kind, these) {
			told[x.Story] = x
		}
		all := slices.SortedFunc(maps.Values(told), func(x, y timedTelling) int { return strings.Compare(x.Story, y.Story) })
		if err := d.recording(t, all).write(path); err != nil {
			t.Fatal(err)
		}
	}
	var all []timedTelling
	for _, seed := range seeds {
		all = append(all, told[drawStory(kind, seed).name])
	}
	return all
}

func (d *drawnTeller) recording(t *testing.T, all []timedTelling) timedRecording {
	t.Helper()
	version, err := d.server.Version()
	if err != nil {
		t.Fatal(err)
	}
	return timedRecording{Format: timedFormat, WrittenBy: drawnCommand, Redisson: d.rel.Version, RedisServer: version, tellings: all}
}

// aloneTries is how often the library tells a story alone before a difference counts.
const aloneTries = 3

// tellAlone has the library tell the stories that differ again, one at a time, and gives those
// that the port tells in none of the orders that the library shows.
func (d *drawnTeller) tellAlone(t *testing.T, kind string, apart map[int]string, count *drawnCount) map[int]string {
	still := map[int]string{}
	d.told = *togetherFlag // the last JVM ended with the test that began it
	for seed, how := range apart {
		still[seed] = how
		for range aloneTries {
			x := d.tell(t, kind, []int{seed})
			again, left := tellDrawn(t, d.rel, kind, []int{seed}, x)
			if again.disturbed > 0 {
				continue
			}
			if again.apart == 0 {
				count.apart--
				count.inOneOrder++
				delete(still, seed)
				break
			}
			still[seed] = left[seed]
		}
	}
	return still
}

// skipped counts the acts that were not done.
type skipped map[string]int

func skippedIn(all []timedTelling) skipped {
	s := skipped{}
	for _, x := range all {
		for _, a := range x.Told {
			if slices.Contains([]string{replyBusy, replyIdle, replySkipped}, a.Reply) {
				s[a.Reply]++
			}
			s["acts"]++
		}
	}
	return s
}

func (s skipped) String() string {
	return fmt.Sprintf("%d acts, of which %d were left out because the thread was in a call, %d interrupts met no call, and %d were a second one of a call", s["acts"], s[replyBusy], s[replyIdle], s[replySkipped])
}
