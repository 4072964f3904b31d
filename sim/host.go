package sim

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"lockstep/model"
)

// Version is the world version. It is raised by hand whenever the same decisions give
// another record. Recordings of another version are refused.
const Version = 7

// stillAfter is the default of Host.StillAfter.
const stillAfter = 30 * time.Second

// Host holds the parts of the testing package that a bubble needs. A test makes a Host of its
// *testing.T; a program gets one from Main.
type Host struct {
	t *testing.T
	// StillAfter is the real time without a step of the scheduler after which a run
	// counts as hung. Then the program ends with exit code 70, or Run panics with a
	// *Hung if the host is a guest's.
	StillAfter time.Duration
	// NoShortcuts turns the optimizations of servers off. It is for tests and benchmarks that
	// compare both.
	NoShortcuts bool
	// Chance seeds, from the chooser (stream "chance"), the random numbers that code under test
	// draws from the standard library while a world runs. A world with Config.Lineage is seeded on
	// any host. crypto/rand answers the goroutines of the world from a stream of the world, and all
	// others as usual. The top-level functions of math/rand have one source for the whole program,
	// which the world seeds at its start. A test that runs in parallel and draws from this source
	// changes the draws of the world. (A seed per step of the world does not prevent it, and made
	// runs seven times as slow.) A parallel test that called rand.Seed gets another sequence, since
	// after the world the source has a seed from the system.
	//
	// The following stay unseeded, and a record that depends on them does not repeat: the top-level
	// functions of math/rand/v2, hash/maphash, the order of a map, a select of several cases that
	// are ready, keys that packages of crypto make (they do not ask rand.Reader), and a copy of
	// rand.Reader from before package chance was initialized. In FIPS 140-3 mode crypto/rand stays
	// as it is.
	Chance bool

	// MostSteps ends a run that takes more steps, in place of the constant MostSteps; 0: the constant does.
	// Such a run has this number of steps or slightly more.
	MostSteps int
	// MostRead ends a run that reads more of the states of locks, in place of the constant; 0: the constant does.
	MostRead int
	// Stop is called now and then during a run, and once more at its end. If it reports true, the
	// run ends at once, and its record has no meaning. nil: no run is stopped.
	Stop func() bool

	guest  bool // see GuestHost
	traced bool // see Traced
}

// Stopped reports whether Stop ends the run under way.
func (h *Host) Stopped() bool { return h.Stop != nil && h.Stop() }

// NewHost makes the host of a test. It sets GOMAXPROCS to 1 for the rest of the process: with more
// processors one seed in hundreds does not repeat.
func NewHost(t *testing.T) *Host {
	settle()
	return &Host{t: t, StillAfter: stillAfter}
}

// Main runs program where bubbles can be made and ends the process with its
// result. It sets GOMAXPROCS to 1, and turns the profile of allocations off.
func Main(program func(*Host) int) {
	runtime.MemProfileRate = 0 // it takes a stack for every 512 KiB, and nobody reads them
	settle()
	args := os.Args
	os.Args = args[:1] // the testing package would read the program's flags
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "program",
		F: func(t *testing.T) {
			os.Args = args
			os.Exit(program(&Host{t: t, StillAfter: stillAfter}))
		},
	}}, nil, nil)
}

// bubble runs f as the root of a bubble, and waits until every goroutine of the bubble has ended or is
// durably blocked. left are the stacks of the blocked ones, which nothing will ever wake. If f reports
// false, it has failed: its goroutine is parked for ever, and nobody waits for the others.
func (h *Host) bubble(alive *pulse, f func() (whole bool)) (left []string) {
	makeResolver()
	turn.Lock()
	defer turn.Unlock()
	defer oneProcessor()()
	garbage.bubbleBegins()
	defer garbage.bubbleEnds()
	defer func() {
		if alive.seeded.Load() {
			endChance()
		}
	}()
	var name atomic.Pointer[string]
	done := make(chan bool, 1) // whether f succeeded
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			// synctest panics if goroutines are left.
			if r := recover(); r != nil {
				if bubble := name.Load(); bubble != nil {
					left = goroutinesOf(*bubble)
				}
				if len(left) == 0 {
					panic(r)
				}
			}
		}()
		synctest.Test(h.t, func(*testing.T) {
			bubble := bubbleOfCaller()
			name.Store(&bubble)
			whole := f()
			done <- whole
			if !whole {
				<-alive.parked
			}
		})
	}()
	// This is the only real clock in this package. It can end a hung run, but never change one.
	tick := time.NewTicker(h.StillAfter / 4)
	defer tick.Stop()
	last, still := int64(-1), 0
	for {
		select {
		case whole := <-done:
			if !whole {
				unended.Store(true)
			} else {
				<-ended
			}
			return left
		case <-tick.C:
			if now := alive.steps.Load(); now != last {
				last, still = now, 0
				continue
			}
			if still++; still < 4 {
				continue
			}
			alive.abandoned.Store(true)
			unended.Store(true)
			bubble := ""
			if p := name.Load(); p != nil {
				bubble = *p
			}
			hung := newHung(h.StillAfter, bubble)
			if h.guest {
				panic(hung)
			}
			fmt.Fprintf(os.Stderr, "lockstep: %v\n\n%s", hung, hung.Stacks)
			os.Exit(70)
		}
	}
}

// guard runs f in a bubble. It returns the value of a panic if the host is a guest: a panic
// must not unwind the bubble, since that ends the binary.
func (h *Host) guard(f func()) (panicked any) {
	if h.guest {
		defer func() { panicked = recover() }()
	}
	f()
	return nil
}

// enter binds a new world to this host. The world's root calls it.
func (h *Host) enter(w *World, alive *pulse) {
	w.alive = alive
	if h.traced {
		w.writers = map[int][]Site{}
	}
	w.beginSeats()
	if h.Chance || w.lineage != nil {
		beginChance(w.chooser, w.lineage)
		alive.seeded.Store(true)
	}
}

// Bubble runs f in a bubble without a world, and waits for it. Every goroutine that f starts must
// have ended when f returns.
func (h *Host) Bubble(f func()) {
	left := h.bubble(newPulse(), func() bool {
		f()
		return true
	})
	if len(left) > 0 {
		panic("sim: goroutines of a bubble without a world have not ended:\n" + strings.Join(left, "\n\n"))
	}
}

// notDurable returns the stacks of the goroutines in a bubble that keep its time from passing, and of the
// other goroutines of the bubble.
func notDurable(bubble string) (found, others []string) {
	for _, g := range strings.Split(strings.TrimSuffix(stacks(), "\n"), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		switch {
		case bubble == "" || bubbleOf(g) != bubble:
		case strings.Contains(head, "durable") || strings.Contains(head, "synctest.Wait"):
			others = append(others, g)
		default:
			found = append(found, g)
		}
	}
	return found, others
}

// goroutinesOf returns the stacks of the goroutines in a bubble.
func goroutinesOf(bubble string) []string {
	return slices.DeleteFunc(strings.Split(stacks(), "\n\n"), func(g string) bool { return bubbleOf(g) != bubble })
}

// leftGoroutines describes goroutines by their stacks. The runtime lists them in an order that
// differs from run to run, so they are sorted. Unlike a stack, a description has no addresses.
// processes are those of the world.
func leftGoroutines(stacks []string, processes []*Process) (left []model.Goroutine) {
	unopened := func(p *Process) bool { return p.opener.Load() > 0 }
	for _, stack := range stacks {
		g := model.Goroutine{Stands: ownPlace(stack), Started: starterOf(stack)}
		g.Calls = g.Started == here+".(*Thread).Start"
		own, _ := parentage([]byte(stack))
		g.Unopened = !g.Calls && slices.ContainsFunc(processes, unopened)
		for _, p := range processes {
			switch own {
			case p.closer.Load():
				g.Closes, g.Unopened = p.cfg.Name, unopened(p)
			case p.opener.Load():
				g.Opens, g.Unopened = p.cfg.Name, p.crashed
			}
		}
		left = append(left, g)
	}
	slices.SortFunc(left, func(a, b model.Goroutine) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.Closes, b.Closes), cmp.Compare(a.Stands, b.Stands))
	})
	return left
}

// starterOf returns the function that started a goroutine.
func starterOf(stack string) string {
	_, created, ok := strings.Cut(stack, "created by ")
	if !ok {
		return "unknown"
	}
	name, _, _ := strings.Cut(created, " in goroutine")
	return name
}

// ownPlace returns the innermost function of a stack that belongs neither to the standard library nor
// to the packages that play a run; "" if there is none.
func ownPlace(stack string) string {
	lines := strings.Split(stack, "\n")
	for i := 1; i < len(lines); i += 2 {
		if strings.HasPrefix(lines[i], "created by ") {
			break
		}
		name := functionOf(lines[i])
		if pkg := packageOf(name); !inLibrary(name) && pkg != here && pkg != path.Join(path.Dir(here), "locktest") {
			return name
		}
	}
	return ""
}

// stacks returns the stacks of all goroutines, the caller's first.
func stacks() string {
	// Where the buffer is too small, the runtime goes on through all stacks, and writes nothing.
	for size := max(64<<10, 2*int(stacksBefore.Load())); ; size *= 4 {
		buf := stackSpace.take(size)
		n := runtime.Stack(buf, true)
		text := string(buf[:n])
		stackSpace.giveBack(buf)
		if n < size {
			stacksBefore.Store(int64(n))
			return text
		}
	}
}

// stacksBefore is the length of the text that stacks returned last.
var stacksBefore atomic.Int64

// stackSpace is the memory into which stacks writes. eventSpace is the memory of the record of a
// run.
var (
	stackSpace space[byte]
	eventSpace space[model.Event]
)

// space is memory that is used by one run after another.
type space[T any] struct {
	mu   sync.Mutex
	list []T
}

// spaceMax is the size in bytes above which memory is not kept.
const spaceMax = 16 << 20

// take returns n elements of any content, with the full capacity.
func (s *space[T]) take(n int) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	if cap(list) < n {
		return make([]T, n)
	}
	return list[:n]
}

// moveOut returns a copy of list and takes list back.
func (s *space[T]) moveOut(list []T) []T {
	if s.large(list) {
		return list
	}
	out := slices.Clone(list)
	clear(list)
	s.giveBack(list)
	return out
}

func (*space[T]) large(list []T) bool {
	var one T
	return uintptr(cap(list))*unsafe.Sizeof(one) >= spaceMax
}

// giveBack keeps list for the next take, unless it is large.
func (s *space[T]) giveBack(list []T) {
	if s.large(list) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
}

// bubbleOf returns the name of the bubble in the first line of a stack, or "".
func bubbleOf(stack string) string {
	head, _, _ := strings.Cut(stack, "\n")
	_, after, ok := strings.Cut(head, "synctest bubble ")
	if !ok {
		return ""
	}
	if end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		after = after[:end]
	}
	return after
}

// For makes the host of a subtest.
func (h *Host) For(t *testing.T) *Host {
	other := *h
	other.t = t
	return &other
}
