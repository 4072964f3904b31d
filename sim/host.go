package sim

import (
	"fmt"
	"os"
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
const Version = 6

// Host holds what a bubble needs of the testing package. A test makes a Host of its
// *testing.T; a program gets one from Main.
type Host struct {
	t *testing.T
	// stillAfter is the real time without a step of the scheduler after which a run
	// counts as hung.
	stillAfter time.Duration
	// guest reports whether the program is somebody else's: what a bubble changes in the
	// program is put back, and a world that stands still does not end the program.
	guest  bool
	traced bool // see Traced
	// NoShortcuts makes servers do without what only makes them faster. It is for
	// tests and benchmarks, which compare the two.
	NoShortcuts bool
}

// NewHost makes the host of a test. It sets GOMAXPROCS to 1: with more
// processors one seed in hundreds repeats differently.
func NewHost(t *testing.T) *Host {
	runtime.GOMAXPROCS(1)
	return &Host{t: t, stillAfter: 30 * time.Second}
}

// GuestHost makes the host of a test in somebody else's test binary. A world of it has
// GOMAXPROCS set to 1 while it runs, and not longer. Run panics with a *Hung if a world
// stands still. The goroutines of such a world stay behind.
func GuestHost(t *testing.T) *Host {
	return &Host{t: t, stillAfter: 10 * time.Second, guest: true}
}

// Hung is a world that stands still: a goroutine waits in a way that simulated time
// cannot see, or does not stop working.
type Hung struct {
	Stacks string // of the goroutines that block time
}

// Error names the likely cause.
func (h *Hung) Error() string {
	return "the world stands still. A goroutine waits in a way that simulated time cannot see, most likely for a sync.Mutex held over a call of a server:\n\n" + h.Stacks
}

// turn is held while a bubble runs: worlds of one program take turns.
var turn sync.Mutex

// Main runs program where bubbles can be made and ends the process with its
// result. It sets GOMAXPROCS to 1.
func Main(program func(*Host) int) {
	runtime.GOMAXPROCS(1)
	args := os.Args
	os.Args = args[:1] // the testing package would read the program's flags
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "program",
		F: func(t *testing.T) {
			os.Args = args
			os.Exit(program(&Host{t: t, stillAfter: 30 * time.Second}))
		},
	}}, nil, nil)
}

// bubble runs f as the root of a bubble and waits for it. f reports whether every
// goroutine of the bubble has ended. If not, the bubble would panic at its end, so it
// is parked for good. After the run, timers reports whether a timer of the bubble may
// be in a pool that outlives it.
func (h *Host) bubble(alive *atomic.Int64, f func() (clean bool), timers func() bool) {
	turn.Lock()
	defer turn.Unlock()
	if h.guest {
		before := runtime.GOMAXPROCS(1)
		defer runtime.GOMAXPROCS(before)
	}
	garbage.bubbleBegins()
	defer func() { garbage.bubbleEnds(timers()) }()
	done := make(chan struct{})
	parked := make(chan struct{}) // made outside: waiting on it is not durable
	go func() {
		synctest.Test(h.t, func(*testing.T) {
			clean := f()
			close(done)
			if !clean {
				<-parked
			}
		})
	}()
	// The only real clock in this package: it can end a hung run, never
	// change one.
	tick := time.NewTicker(h.stillAfter / 4)
	defer tick.Stop()
	last, still := int64(-1), 0
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if now := alive.Load(); now != last {
				last, still = now, 0
				continue
			}
			if still++; still >= 4 {
				hung := &Hung{notDurable()}
				if h.guest {
					panic(hung)
				}
				fmt.Fprintf(os.Stderr, "lockstep: %v", hung)
				os.Exit(70)
			}
		}
	}
}

// Bubble runs f in a bubble that holds no world, and waits for it. Whatever f
// starts must have ended when f returns.
func (h *Host) Bubble(f func()) {
	h.bubble(new(atomic.Int64), func() bool {
		f()
		return true
	}, func() bool { return true })
}

// notDurable returns the stacks of goroutines in bubbles that block time.
func notDurable() string {
	var found []string
	for _, g := range strings.Split(stacks(), "\n\n") {
		head, _, _ := strings.Cut(g, "\n")
		if strings.Contains(head, "synctest bubble") && !strings.Contains(head, "durable") && !strings.Contains(head, "synctest.Wait") {
			found = append(found, g)
		}
	}
	return strings.Join(found, "\n\n") + "\n"
}

// bubbleGoroutines returns the stacks of the goroutines in the caller's bubble,
// without the caller and the goroutines that make the bubble.
func bubbleGoroutines() []string {
	goroutines := strings.Split(stacks(), "\n\n")
	own := bubbleOf(goroutines[0]) // Stack prints the caller first
	var found []string
	for _, g := range goroutines[1:] {
		if own != "" && bubbleOf(g) == own && !strings.Contains(g, "testingSynctestTest(") && !strings.Contains(g, "internal/synctest.Run(") {
			found = append(found, g)
		}
	}
	return found
}

// stacks returns the stacks of all goroutines, the caller's first.
func stacks() string {
	for size := 64 << 10; ; size *= 4 {
		buf := stackSpace.take(size)
		n := runtime.Stack(buf, true)
		text := string(buf[:n])
		stackSpace.giveBack(buf)
		if n < size {
			return text
		}
	}
}

// stackSpace is the memory that stacks writes into. eventSpace is the memory of the
// record of a run.
var (
	stackSpace space[byte]
	eventSpace space[model.Event]
)

// space is memory that one run after another uses.
type space[T any] struct {
	mu   sync.Mutex
	list []T
}

// spaceMax is the size in bytes from which memory is not kept.
const spaceMax = 4 << 20

// take returns n elements of any content, with the capacity that there is.
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

func bubbleOf(stack string) string {
	head, _, _ := strings.Cut(stack, "\n")
	_, after, ok := strings.Cut(head, "synctest bubble ")
	if !ok {
		return ""
	}
	return strings.TrimRight(after, "]:")
}

// For makes the host of a subtest.
func (h *Host) For(t *testing.T) *Host {
	other := *h
	other.t = t
	return &other
}
