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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/lockimpl/redisson"
)

var (
	storiesFlag  = flag.Int("stories", 30, "drawn stories to compare for each release and kind of lock")
	underFlag    = flag.Int("under", 60, "drawn stories under way at once")
	togetherFlag = flag.Int("together", 60, "drawn stories that a JVM tells before another takes its place")
	againFlag    = flag.Bool("again", true, "have the library tell stories that differ again, few at a time")
	toldFlag     = flag.String("told", "", "folder for what the library tells of drawn stories; what is there is not told again, unless it was disturbed")
	kindFlag     = flag.String("kind", "", "tell drawn stories of this kind of lock only, plain or fair")
	seedsFlag    = flag.String("seeds", "", "tell only the drawn stories of these seeds, with commas between them, whatever -stories says")
)

// drawnHeapMB is the heap of a JVM that plays drawn stories. The JVM stands still while its heap is
// collected, and in early releases clients that were shut down leave memory behind.
const drawnHeapMB = 2048

// drawnFirst is the seed of the first drawn story.
const drawnFirst = 2_000_000

// The port and the library record the same for a drawn story. With -record the test keeps the
// records of the first stories on which they agree.
func TestLibraryAndPortTellTheSame(t *testing.T) {
	kinds := []string{plain, fair}
	if *kindFlag != "" {
		if !slices.Contains(kinds, *kindFlag) || *recordFlag {
			t.Fatalf("-kind %s: drawn stories are of the plain or of the fair lock, and -record keeps both", *kindFlag)
		}
		kinds = []string{*kindFlag}
	}
	seeds := drawnSeeds(t)
	tellers := map[*redisson.Release]*drawnTeller{}
	library := map[*redisson.Release]map[string][]timedTelling{}
	for _, rel := range releases(t) {
		server := StartServer(t)
		tellers[rel] = &drawnTeller{rel: rel, server: server, pace: startPace(t, server, rel), keep: map[string]func([]timedTelling){}}
		library[rel] = map[string][]timedTelling{}
	}
	// The port plays only when no library does: the port needs processors, and the library needs
	// time.
	t.Run("library", func(t *testing.T) {
		for rel, teller := range tellers {
			t.Run(rel.Version, func(t *testing.T) {
				t.Parallel()
				for _, kind := range kinds {
					began := time.Now()
					teller.disturbed = map[string]int{}
					library[rel][kind] = teller.tellOrRead(t, kind, seeds)
					t.Logf("redisson %s, %s: told in %v, disturbed tellings: %v; %v", rel.Version, kind, time.Since(began).Round(time.Second), teller.disturbed, skippedIn(library[rel][kind]))
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
				if *againFlag && len(apart) > 0 {
					apart = tellers[rel].tellAgain(t, kind, apart, &count)
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

// drawnSeeds gives the seeds of the drawn stories that the flags ask for.
func drawnSeeds(t *testing.T) (seeds []int) {
	t.Helper()
	if *seedsFlag == "" {
		for n := range *storiesFlag {
			seeds = append(seeds, drawnFirst+n)
		}
		return seeds
	}
	if *recordFlag {
		t.Fatal("-seeds: -record keeps the first stories that agree, not chosen ones")
	}
	for word := range strings.SplitSeq(*seedsFlag, ",") {
		seed, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("-seeds %s: %v", *seedsFlag, err)
		}
		seeds = append(seeds, seed)
	}
	return seeds
}

// drawnTeller plays drawn stories on the library of one release.
type drawnTeller struct {
	rel       *redisson.Release
	server    *Server
	pace      *pace
	lib       *Library
	told      int                             // number of stories that this JVM has played
	keep      map[string]func([]timedTelling) // by kind; each writes the records of stories into the folder -told
	tags      atomic.Int64
	disturbed map[string]int // number of disturbed records, by reason
}

// start starts a JVM in place of the one before, and lets it use the library's classes for the first
// time, which takes long.
func (d *drawnTeller) start(t *testing.T) {
	t.Helper()
	if d.lib != nil {
		d.lib.Stop()
	}
	d.lib, d.told = startLibrary(t, d.rel.Version, drawnHeapMB), 0
	if err := d.pace.hear(d.lib); err != nil {
		t.Fatal(err)
	}
	var warming sync.WaitGroup
	for _, kind := range []string{plain, fair} {
		for n := range 4 {
			warming.Go(func() { _, _, _ = d.once(drawStory(kind, n+1)) })
		}
	}
	warming.Wait()
}

func (d *drawnTeller) once(s timedStory) (timedTelling, lateness, error) {
	return tellByLibrary(d.lib, d.server, d.rel, s.kinds[0], s, fmt.Sprint("drawn", d.tags.Add(1)), d.pace)
}

// drawnTries is the number of tries after which a story is given up because the machine disturbs
// it.
const drawnTries = 5

// tell plays stories on the library, and plays a story again that the machine disturbed. under
// stories are under way at once. If told is not nil, it gets the records of each JVM.
func (d *drawnTeller) tell(t *testing.T, kind string, seeds []int, under int, told func([]timedTelling)) []timedTelling {
	t.Helper()
	all := make([]timedTelling, len(seeds))
	var left []int // places in both
	for i, seed := range seeds {
		s := drawStory(kind, seed)
		all[i] = timedTelling{Story: s.name, Kind: kind, WatchdogMS: timedWatchdog(d.rel, s), Disturbed: true}
		left = append(left, i)
	}
	for range drawnTries {
		for these := range slices.Chunk(left, *togetherFlag) {
			if d.lib == nil || d.told+len(these) > *togetherFlag {
				d.start(t)
			}
			d.told += len(these)
			d.tellTogether(t, kind, seeds, these, all, under)
			if told != nil {
				var now []timedTelling
				for _, i := range these {
					now = append(now, all[i])
				}
				told(now)
			}
		}
		left = slices.DeleteFunc(left, func(i int) bool { return !all[i].Disturbed })
	}
	return all
}

// tellTogether plays the stories at some places on the library, once.
func (d *drawnTeller) tellTogether(t *testing.T, kind string, seeds, places []int, all []timedTelling, under int) {
	t.Helper()
	enough := make(chan bool, under)
	var failed atomic.Bool
	var mu sync.Mutex
	var telling sync.WaitGroup
	for _, i := range places {
		enough <- true
		telling.Go(func() {
			defer func() { <-enough }()
			x, late, err := d.once(drawStory(kind, seeds[i]))
			switch {
			case err != nil:
				t.Errorf("redisson %s, %s, seed %d: %v", d.rel.Version, kind, seeds[i], err)
				failed.Store(true)
			case late.long <= drawnShift:
				all[i] = x
			default:
				mu.Lock()
				d.disturbed[late.why]++
				mu.Unlock()
			}
		})
	}
	telling.Wait()
	if failed.Load() {
		t.FailNow()
	}
}

// tellOrRead reads the records that were kept, and plays the other stories on the library. It keeps
// the records of a JVM before the next JVM begins.
func (d *drawnTeller) tellOrRead(t *testing.T, kind string, seeds []int) []timedTelling {
	t.Helper()
	if *toldFlag == "" {
		return d.tell(t, kind, seeds, *underFlag, nil)
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
	d.keep[kind] = func(all []timedTelling) {
		for _, x := range all {
			told[x.Story] = x
		}
		sorted := slices.SortedFunc(maps.Values(told), func(x, y timedTelling) int { return strings.Compare(x.Story, y.Story) })
		if err := d.recording(t, sorted).write(path); err != nil {
			t.Fatal(err)
		}
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
	d.tell(t, kind, missing, *underFlag, d.keep[kind])
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

const (
	// againTries is how often the library plays a story again before a difference counts.
	againTries = 3
	// againUnder is the number of stories that are then under way at once.
	againUnder = 4
)

// tellAgain plays the stories that differ again on the library, few at a time. It returns the
// stories for which no record of the port agrees with any record of the library.
func (d *drawnTeller) tellAgain(t *testing.T, kind string, apart map[int]string, count *drawnCount) map[int]string {
	count.again = len(apart)
	still := maps.Clone(apart)
	d.lib = nil // the JVM ended with the test that began it
	for range againTries {
		seeds := slices.Sorted(maps.Keys(still))
		for these := range slices.Chunk(seeds, *togetherFlag) {
			tellings := d.tell(t, kind, these, againUnder, nil)
			_, left := tellDrawn(t, d.rel, kind, these, tellings)
			var agree []timedTelling
			for i, seed := range these {
				if how, differs := left[seed]; differs {
					still[seed] = how
				} else if !tellings[i].Disturbed {
					agree = append(agree, tellings[i])
					delete(still, seed)
				}
			}
			if keep := d.keep[kind]; keep != nil && len(agree) > 0 {
				keep(agree)
			}
		}
	}
	count.inOneOrder += count.apart - len(still)
	count.apart = len(still)
	return still
}

// skipped counts the acts that were left out.
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
