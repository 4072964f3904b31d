package interop

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockstep/internal/longtest"
	"lockstep/lockimpl/redisson"
)

// The largest differences between two records of a drawn story that agree. If the outcome of a
// story depends on an order of events that lie within these bounds, the story has several outcomes,
// and each is accepted.
const (
	// drawnShift is the largest lateness of an act. A story in which an act of the library began
	// later, or in which a call that waits for nobody took longer, is played again.
	drawnShift = 60 * time.Millisecond
	// drawnLatency is the longest time that an answer or a message takes.
	drawnLatency = 8 * time.Millisecond
)

// drawnTolerance is the largest difference, in ms, between two returns of a call, or between two
// times to live. It allows for the lateness of an act, a tick of the timers' wheel, and a busy
// machine.
var drawnTolerance = flag.Int64("tolerance", 250, "how far instants and times to live of drawn stories may be apart, in ms")

// drawnTellings is how often the port plays a story, each time with other chances: the first number
// at first, and each next one if no record so far agrees with the library's.
var drawnTellings = []int{1, 8, 40, 400}

// chancesOf returns the chances of the runs [from, to) of a story. If the record of the library
// says how late its acts were, every other run of the port has acts that are as late.
func chancesOf(seed, from, to int, library timedTelling) (all []*chance) {
	late, known := library.late()
	for n := from; n < to; n++ {
		c := &chance{seed: uint64(seed), telling: uint64(n)}
		if known && n%2 == 1 {
			c.late = late
		}
		all = append(all, c)
	}
	return all
}

// late returns how late the acts were; known is false if the record does not say so.
func (x timedTelling) late() (late []time.Duration, known bool) {
	for _, a := range x.Told {
		late = append(late, time.Duration(a.LateMS)*time.Millisecond)
		known = known || a.LateMS != 0
	}
	return late, known
}

func (x timedTelling) agreesAsDrawn(y timedTelling) bool {
	return x.WatchdogMS == y.WatchdogMS && len(x.Told) == len(y.Told) && x.parted(y) < 0
}

// parted returns the index of the first act on which two records of a drawn story do not agree; -1
// for none.
func (x timedTelling) parted(y timedTelling) int {
	for i, a := range x.Told {
		if !a.agreesWithin(y.Told[i], *drawnTolerance, *drawnTolerance) {
			return i
		}
	}
	return -1
}

// drawnDifference shows the difference between the library's record and the port's record that
// agrees with it for longest.
func drawnDifference(library timedTelling, port []timedTelling) string {
	best, most := port[0], -1
	for _, x := range port {
		if at := library.parted(x); at > most {
			best, most = x, at
		}
	}
	return fmt.Sprintf("watchdog %d ms; they part at act %d\n  library:\n%v  port:\n%v", library.WatchdogMS, most+1, library, best)
}

const (
	drawnCommand = "go test -tags interop ./interop -run TestLibraryAndPortTellTheSame -stories 40 -record -timeout 40m"
	// drawnKept is the number of records of the library that are kept for each release and kind of
	// lock.
	drawnKept = 25
)

func drawnPath(version string) string {
	return filepath.Join("testdata", "timed", "drawn-"+version+".jsonl")
}

// In a bubble, the port plays the kept drawn stories as the library did.
func TestPortTellsDrawnStoriesAsKept(t *testing.T) {
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			kept, err := readTimed(drawnPath(rel.Version), rel.Version)
			if errors.Is(err, fs.ErrNotExist) {
				t.Skipf("no drawn stories of redisson %s are kept; write them with `%s`", rel.Version, drawnCommand)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{plain, fair} {
				var seeds []int
				var library []timedTelling
				for _, x := range kept.tellings {
					if x.Kind != kind {
						continue
					}
					var seed int
					if _, err := fmt.Sscanf(x.Story, "seed %d", &seed); err != nil {
						t.Fatalf("%s: story %q: %v", kept.path, x.Story, err)
					}
					seeds = append(seeds, seed)
					library = append(library, kept.find(t, drawStory(kind, seed), kind))
				}
				if len(seeds) < drawnKept {
					t.Errorf("%s has %d stories of the %s lock, not %d; write it anew with `%s`", kept.path, len(seeds), kind, drawnKept, kept.WrittenBy)
				}
				n := longtest.Size(t, min(4, len(seeds)), len(seeds))
				_, apart := tellDrawn(t, rel, kind, seeds[:n], library[:n])
				for seed, how := range apart {
					t.Errorf("redisson %s, %s lock, seed %d: the port does not tell the story as the library does: %s", rel.Version, kind, seed, how)
				}
			}
		})
	}
}

// tellDrawn plays the story of each seed on the port until a record agrees with the library's. It
// returns the differences of the stories for which none does.
func tellDrawn(t *testing.T, rel *redisson.Release, kind string, seeds []int, library []timedTelling) (c drawnCount, apart map[int]string) {
	t.Helper()
	tellings := make([][]timedTelling, len(seeds)) // of the port
	var open []int                                 // places of the stories for which no record agrees with the library's
	for i, x := range library {
		if x.Disturbed {
			c.disturbed++
			continue
		}
		open = append(open, i)
	}
	c.stories = len(seeds)
	for _, most := range drawnTellings {
		var left []int
		for batch := range slices.Chunk(open, 1+40/most) {
			var stories []timedStory
			for _, i := range batch {
				stories = append(stories, drawStory(kind, seeds[i]))
			}
			all, err := tellAllInBubble(t, rel, kind, stories, func(n int) []*chance {
				i := batch[n]
				return chancesOf(seeds[i], len(tellings[i]), most, library[i])
			})
			if err != nil {
				t.Fatal(err)
			}
			for n, i := range batch {
				tellings[i] = append(tellings[i], all[n]...)
				if !slices.ContainsFunc(all[n], library[i].agreesAsDrawn) {
					left = append(left, i)
				}
			}
		}
		switch agreed := len(open) - len(left); most {
		case 1:
			c.atOnce += agreed
		default:
			c.inOneOrder += agreed
		}
		open = left
	}
	c.apart = len(open)
	apart = map[int]string{}
	for _, i := range open {
		apart[seeds[i]] = drawnDifference(library[i], tellings[i])
	}
	return c, apart
}

// drawnCount counts stories by how they compare.
type drawnCount struct{ stories, atOnce, inOneOrder, apart, disturbed, again int }

func (c drawnCount) String() string {
	return fmt.Sprintf("%d stories: %d agree at once, %d in one of several orders, %d differ, %d were not told because the machine was busy; the library told %d again", c.stories, c.atOnce, c.inOneOrder, c.apart, c.disturbed, c.again)
}
