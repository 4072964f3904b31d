//go:build interop

package interop

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/lockimpl/redisson"
)

var (
	storiesFlag = flag.Int("stories", 30, "drawn stories to compare for each release and kind of lock")
	underFlag   = flag.Int("under", 60, "drawn stories under way at once")
	toldFlag    = flag.String("told", "", "folder for what the library tells of drawn stories; what is there is not told again")
)

// What the library tells of a drawn story, the port tells, too.
func TestLibraryAndPortTellTheSame(t *testing.T) {
	for _, rel := range releases(t) {
		t.Run(rel.Version, func(t *testing.T) {
			teller := &drawnTeller{t: t, rel: rel}
			for _, kind := range []string{plain, fair} {
				var seeds []int
				for n := range *storiesFlag {
					seeds = append(seeds, drawnFirst+n)
				}
				began := time.Now()
				library := teller.tellOrRead(kind, seeds)
				told := time.Since(began)
				count, apart := tellDrawn(t, rel, kind, seeds, library)
				for seed, how := range apart {
					t.Logf("redisson %s, %s lock, seed %d, to be told again alone: %s", rel.Version, kind, seed, how)
				}
				again := teller.tellAlone(kind, apart, &count)
				t.Logf("redisson %s, %s: %v; %v; the library took %v, %d told again after a stall", rel.Version, kind, count, skippedIn(library), told.Round(time.Second), teller.stalls.Swap(0))
				for seed, how := range again {
					t.Errorf("redisson %s, %s lock, seed %d: the port does not tell the story as the library does: %s", rel.Version, kind, seed, how)
				}
			}
		})
	}
}

// drawnTeller is the library of one release as a teller of drawn stories. It starts when it is
// first asked.
type drawnTeller struct {
	t      *testing.T
	rel    *redisson.Release
	server *Server
	lib    *Library
	tags   atomic.Int64
	stalls atomic.Int64
}

func (d *drawnTeller) start() {
	if d.lib != nil {
		return
	}
	d.server = StartServer(d.t)
	d.lib = StartLibrary(d.t, d.rel.Version)
	for _, kind := range []string{plain, fair} { // a first use of the library's classes takes long
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

// drawnTries is how often the library tells a story that the machine disturbs.
const drawnTries = 3

// tell has the library tell stories, and one that the machine disturbed again.
func (d *drawnTeller) tell(kind string, seeds []int) []timedTelling {
	d.t.Helper()
	d.start()
	all := make([]timedTelling, len(seeds))
	enough := make(chan bool, *underFlag)
	var failed atomic.Bool
	var telling sync.WaitGroup
	for i, seed := range seeds {
		enough <- true
		telling.Go(func() {
			defer func() { <-enough }()
			for try := range drawnTries {
				x, stall, err := d.once(drawStory(kind, seed))
				if err != nil {
					d.t.Errorf("redisson %s, %s, seed %d: %v", d.rel.Version, kind, seed, err)
					failed.Store(true)
					return
				}
				if all[i] = x; stall <= drawnShift {
					return
				}
				if try < drawnTries-1 {
					d.stalls.Add(1)
				}
			}
		})
	}
	telling.Wait()
	if failed.Load() {
		d.t.FailNow()
	}
	return all
}

// tellOrRead gives what the library told before, where it is kept, else has it told.
func (d *drawnTeller) tellOrRead(kind string, seeds []int) []timedTelling {
	d.t.Helper()
	if *toldFlag == "" {
		return d.tell(kind, seeds)
	}
	path := drawnPath(*toldFlag, d.rel.Version, kind)
	kept, err := readTimed(path, d.rel.Version)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		d.t.Fatal(err)
	default:
		var all []timedTelling
		for _, seed := range seeds {
			all = append(all, kept.find(d.t, drawStory(kind, seed), kind))
		}
		return all
	}
	all := d.tell(kind, seeds)
	version, err := d.server.Version()
	if err == nil {
		err = timedRecording{Format: timedFormat, WrittenBy: drawnCommand, Redisson: d.rel.Version, RedisServer: version, tellings: all}.write(path)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// aloneTries is how often the library tells a story alone before a difference counts.
const aloneTries = 3

// tellAlone has the library tell the stories that differ again, one at a time, and gives those
// that the port tells in none of the orders that the library shows.
func (d *drawnTeller) tellAlone(kind string, apart map[int]string, count *drawnCount) map[int]string {
	still := map[int]string{}
	for seed, how := range apart {
		still[seed] = how
		for range aloneTries {
			x := d.tell(kind, []int{seed})
			again, left := tellDrawn(d.t, d.rel, kind, []int{seed}, x)
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
