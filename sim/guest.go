package sim

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// GuestHost makes the host of a test in a program with other tests, which may belong to anybody and
// may run in parallel.
//
// Unlike NewHost it leaves the program as it is: global settings change only while a world runs.
// These are GOMAXPROCS, which is 1 during a run; the garbage collector, which is off during a run
// and up to 50 ms longer; and the sources of chance that Host.Chance names. Worlds of one program
// take turns. A world that hangs panics in the goroutine that called Run, with a *Hung, and later
// worlds run.
//
// The host has Chance set. The test fails if it is in a process in which no world can run.
func GuestHost(t *testing.T) *Host {
	t.Helper()
	if why := Unsuited(); why != "" {
		t.Fatal("lockstep: " + why)
	}
	return &Host{t: t, StillAfter: stillAfter, Chance: true, guest: true}
}

// turn is held while a bubble runs.
var turn sync.Mutex

// unended reports that a world of this program did not end. Its goroutines may go on beside a later world.
var unended atomic.Bool

// settled reports that the program belongs to its worlds: NewHost and Main set GOMAXPROCS for the
// rest of the process.
var settled atomic.Bool

// settle sets GOMAXPROCS to 1 for the rest of the process.
func settle() {
	settled.Store(true)
	runtime.GOMAXPROCS(1)
}

// oneProcessor sets GOMAXPROCS to 1 until back is called.
func oneProcessor() (back func()) {
	was := runtime.GOMAXPROCS(0) // asking costs less than setting, which stops the program
	if was == 1 {
		return func() {}
	}
	runtime.GOMAXPROCS(1)
	return func() {
		if !settled.Load() {
			runtime.GOMAXPROCS(was)
		}
	}
}

// pulse lets an observer outside a bubble see that its world still moves.
type pulse struct {
	steps atomic.Int64
	// parked is never closed. It is made outside the bubble, so time stands still in the bubble of
	// a goroutine that waits for it.
	parked    chan struct{}
	abandoned atomic.Bool
	seeded    atomic.Bool // the world has begun chance of its own
}

func newPulse() *pulse { return &pulse{parked: make(chan struct{})} }

// park stops the caller for ever if its world was given up. A hung goroutine may continue later,
// and its world must not run beside another.
func (p *pulse) park() {
	if p.abandoned.Load() {
		<-p.parked
	}
}

// Hung is the error of a world in which nothing happened for too long in real time.
// Simulated time passes only when every goroutine of the world waits for another one of
// the world, or for time.
//
// The goroutines of the world stay behind and wait. A goroutine that computes without end cannot be
// stopped, and goes on using a processor. If the program has only one, other goroutines run slowly
// beside it.
type Hung struct {
	// After is the real time without a step.
	After time.Duration
	// Cause is a sentence about the wait of a goroutine that simulated time cannot see.
	Cause string
	// Stacks are the stacks of the goroutines that keep time from passing.
	Stacks string
	// Others are the stacks of the other goroutines of the world, which wait for time. One of them may
	// hold the mutex for which a goroutine of Stacks waits.
	Others string
}

// Error names the likely cause.
func (h *Hung) Error() string {
	return fmt.Sprintf("the world stood still for %v: %s", h.After, h.Cause)
}

// newHung looks for the goroutine that keeps time from passing in a bubble.
func newHung(after time.Duration, bubble string) *Hung {
	found, others := notDurable(bubble)
	h := &Hung{After: after, Stacks: strings.Join(found, "\n\n") + "\n", Others: strings.Join(others, "\n\n") + "\n"}
	if len(found) == 0 {
		h.Cause = "no goroutine that keeps simulated time from passing is left; perhaps the machine was asleep"
		return h
	}
	// The runtime lists goroutines in an order that differs from run to run.
	first := slices.MinFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(likely(waitsFor(a)), likely(waitsFor(b))), cmp.Compare(standsIn(a), standsIn(b)), cmp.Compare(a, b))
	})
	h.Cause = "in " + standsIn(first) + " a goroutine " + waits[likely(waitsFor(first))].does
	return h
}

// waits are the states in which a goroutine keeps simulated time from passing, the
// most likely first. The last one is any other.
var waits = []struct {
	states []string
	does   string
}{
	{[]string{"sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock"},
		"waits for a sync.Mutex or sync.RWMutex, and simulated time does not pass meanwhile; most likely another goroutine holds it over a call of a server or over a sleep. Run the test with simrun test in place of go test, with whose overlay of the standard library time passes; or unlock the mutex before that; or put a channel in its place: make(chan struct{}, 1), made with the client"},
	{[]string{"IO wait", "syscall"},
		"waits for the operating system, and simulated time does not pass meanwhile; most likely for a file, a pipe, a process, or a connection that was not dialled through the world"},
	{[]string{"chan receive", "chan send", "select", "semacquire", "sync.WaitGroup.Wait"},
		"waits for a channel or a sync.WaitGroup that was made outside of the world, and simulated time does not pass meanwhile"},
	{[]string{"running", "runnable"},
		"computes without an end; nothing can stop it, and it goes on"},
	{nil, "waits in a way that simulated time cannot see"},
}

func likely(state string) int {
	i := slices.IndexFunc(waits, func(w struct {
		states []string
		does   string
	}) bool {
		return slices.Contains(w.states, state)
	})
	if i < 0 {
		return len(waits) - 1
	}
	return i
}

// waitsFor returns the state in the first line of a stack.
func waitsFor(stack string) string {
	head, _, _ := strings.Cut(stack, "\n")
	_, state, _ := strings.Cut(head, "[")
	state, _, _ = strings.Cut(state, ",")
	return state
}

// standsIn returns the innermost function of a stack that does not belong to the
// standard library.
func standsIn(stack string) string {
	lines := strings.Split(stack, "\n")
	for i := 1; i < len(lines); i += 2 {
		if name := functionOf(lines[i]); !inLibrary(name) {
			return name
		}
	}
	if len(lines) > 1 {
		return functionOf(lines[1])
	}
	return "an unknown function"
}

// functionOf returns the function in a line of a stack.
func functionOf(line string) string {
	line = strings.TrimPrefix(line, "created by ")
	line, _, _ = strings.Cut(line, " in goroutine")
	if i := strings.LastIndex(line, "("); i > 0 && strings.HasSuffix(line, ")") {
		line = line[:i]
	}
	return line
}

// inLibrary reports whether a function belongs to a package of the standard library in
// which goroutines wait.
func inLibrary(function string) bool {
	first := strings.FieldsFunc(function, func(r rune) bool { return r == '/' || r == '.' })
	return len(first) > 0 && slices.Contains([]string{"bufio", "bytes", "context", "crypto", "database", "internal", "io", "net", "os",
		"poll", "runtime", "strings", "sync", "syscall", "testing", "time", "vendor"}, first[0])
}
