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

// How far two tellings of a drawn story may be apart. A story whose outcome hangs on an
// order that lies within these bounds has several outcomes, and each of them agrees.
const (
	// drawnShift is how late an act may begin. A telling of the library in which one
	// began later, or a call that waits for nobody took longer, is told again.
	drawnShift = 60 * time.Millisecond
	// drawnLatency is how long an answer or a message may take.
	drawnLatency = 8 * time.Millisecond
)

// drawnTolerance is how far two instants at which a call came back, or two times to live, may be
// apart, in ms: the lateness of an act, a tick of the timers' wheel, and a busy machine.
var drawnTolerance = flag.Int64("tolerance", 250, "how far instants and times to live of drawn stories may be apart, in ms")

// drawnTellings is how often the port tells a story, each time with other chances: at first, and
// where none of these tellings is the library's.
var drawnTellings = []int{1, 8, 40, 400}

// chancesOf gives the chances of a story from one telling to before another. Where the library's
// telling says how late its acts were, every other telling of the port has its acts as late.
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

// late gives how late the acts of a telling were; known is false where it does not say so.
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

// parted gives the place of the first act on which two tellings of a drawn story do not agree; -1
// for none.
func (x timedTelling) parted(y timedTelling) int {
	for i, a := range x.Told {
		if !a.agreesWithin(y.Told[i], *drawnTolerance, *drawnTolerance) {
			return i
		}
	}
	return -1
}

// drawnDifference shows where the telling of the port that went furthest with the library's parts
// from it.
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
	// drawnKept is how many tellings of the library are kept for each release and kind of lock.
	drawnKept = 25
)

func drawnPath(version string) string {
	return filepath.Join("testdata", "timed", "drawn-"+version+".jsonl")
}

// The port tells the kept drawn stories in a bubble as the library told them.
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

// tellDrawn has the port tell the story of each seed until a telling is the library's, and gives
// what differs.
func tellDrawn(t *testing.T, rel *redisson.Release, kind string, seeds []int, library []timedTelling) (c drawnCount, apart map[int]string) {
	t.Helper()
	tellings := make([][]timedTelling, len(seeds)) // of the port
	var open []int                                 // places of the stories that have no telling like the library's
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
