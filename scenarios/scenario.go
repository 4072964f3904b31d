package scenarios

import (
	"iter"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/scenarios/subject"
)

// Duration is a length of simulated time. In a file it is written as Go writes
// durations (1500ms, 2s, 1m30s); a bare 0 is allowed.
type Duration = time.Duration

// Range is an inclusive range of durations; Min == Max says an exact value.
type Range struct{ Min, Max Duration }

// Position is where in a scenario file something stands; line and column
// count from 1.
type Position struct {
	File         string
	Line, Column int
}

// Scenario is one scenario file, checked: every process, thread, resource and
// lock that it names exists.
type Scenario struct {
	File    string // as given on the command line, or builtin/NAME.yaml
	Text    string // the bytes of the file, kept in recordings
	Name    string
	About   string
	Source  string
	Locks   []string // canonical names, in the file's order
	Latency Range    // one way; 0 was written as 100us (spec: too small to move a millisecond)
	// Watchdog is the watchdog timeout of every client.
	Watchdog  Duration
	Resources []Resource // in the file's order
	Processes []Process  // in the file's order
	Threads   []Script   // by process in the file's order, then thread number
	Faults    []Fault    // in the file's order
	Expect    map[string]Expectation
	Reach     []string
	SeedFirst uint64
	SeedLast  uint64
	Server    Server
}

// Server is the `server:` block: replicas and the way to them, one way; without
// a lag the network's latency.
type Server struct {
	Replicas int
	Lag      Range
}

// Resource is what the lock guards: a number on a server of its own.
type Resource struct {
	Name       string
	Start      int64
	NeverBelow *int64
	End        *int64
	// Fence is the lock whose fencing token the resource asks for; "": none. It refuses a
	// token smaller than the greatest it has seen.
	Fence string
}

// Process is one client with its threads.
type Process struct {
	Name          string
	Threads       int
	PerCall       bool // lock_objects: per_call
	WallOffset    Duration
	WallDriftPPM  int64
	ClientOptions subject.ClientOptions
}

// Script is the steps of one thread.
type Script struct {
	Process string
	Thread  int
	Steps   []Step
}

// StepKind names a step as the file does.
type StepKind string

// The steps.
const (
	StepAt          StepKind = "at"
	StepSleep       StepKind = "sleep"
	StepLock        StepKind = "lock"
	StepTryLock     StepKind = "try_lock"
	StepWithLock    StepKind = "with_lock"
	StepUnlock      StepKind = "unlock"
	StepForceUnlock StepKind = "force_unlock"
	StepRead        StepKind = "read"
	StepPublished   StepKind = "published"
	StepUse         StepKind = "use"
	StepInterrupt   StepKind = "interrupt"
	StepRepeat      StepKind = "repeat"
	StepClose       StepKind = "close"
)

// Step is one step of a thread. Which fields mean something depends on Kind.
type Step struct {
	Kind StepKind
	Pos  Position
	// D is the instant of `at`, the length of `sleep`.
	D Duration
	// Name is the lock (or, for `use`, the resource).
	Name string
	// Lease is nil when the file has none.
	Lease *Duration
	// Wait is nil when the file has none.
	Wait *Duration
	// Interruptible is nil for the lock's own default.
	Interruptible *bool
	// UnitSeconds is `unit: seconds`.
	UnitSeconds bool
	// Want is empty when anything will do.
	Want []string
	// Reply is the script's reply wanted: "nil" or a decimal number; "" for any.
	Reply string
	// UnlockAlways is `unlock: always` of with_lock.
	UnlockAlways bool
	Steps        []Step // of with_lock and repeat
	// Take and For belong to `use`.
	Take int64
	For  Duration
	// Target is whom `interrupt` interrupts, and to whose channel `published`
	// counts ("b/1" or "all").
	Target string
	Count  int64 // of published
	// Times or Until bound `repeat`; exactly one is set.
	Times int
	Until *Duration
	Read  *Read
}

// Read is what a `read` step expects the server to hold; nil fields are not
// looked at.
type Read struct {
	Holds     *int64
	Locked    *bool
	TTL       *TTL
	Queue     *[]string        // threads in order
	Deadlines map[string]Range // thread -> since the start; nil: not looked at
}

// TTL is what `ttl` of a read expects: a range, or one of the two words.
type TTL struct {
	Range   Range
	Free    bool // `free`: there is no key
	Endless bool // `endless`: the key has no expiry
}

// Fault is one entry of `faults`.
type Fault struct {
	model.FaultSpec
	// Servers are the numbers, from 1, of the servers that the fault strikes; none: all.
	// A lock on one server has only the first.
	Servers []int
	Pos     Position
}

// Class is the class of an outcome.
type Class string

// The classes an expectation can name.
const (
	Held  Class = "held"
	Bug   Class = "bug"
	Limit Class = "limit"
	Not   Class = "not"
)

// Expectation is what one lock must come to in this scenario.
type Expectation struct {
	Class  Class
	Judges []string // bug, limit: all must be broken; not: none may be
	Reach  []string // beside the scenario's own
	// Some: one of the seeds at least; otherwise each.
	Some bool
}

// All iterates over the steps of all threads, each before the steps within it.
func (sc *Scenario) All() iter.Seq2[*Script, *Step] {
	return func(yield func(*Script, *Step) bool) {
		var visit func(t *Script, steps []Step) bool
		visit = func(t *Script, steps []Step) bool {
			for i := range steps {
				if !yield(t, &steps[i]) || !visit(t, steps[i].Steps) {
					return false
				}
			}
			return true
		}
		for i := range sc.Threads {
			if !visit(&sc.Threads[i], sc.Threads[i].Steps) {
				return
			}
		}
	}
}

// String writes a range as a file does.
func (r Range) String() string {
	if r.Min == r.Max {
		return r.Min.String()
	}
	return r.Min.String() + ".." + r.Max.String()
}

// String writes what a read expects as a file does.
func (t TTL) String() string {
	switch {
	case t.Free:
		return "free"
	case t.Endless:
		return "endless"
	}
	return t.Range.String()
}

// String writes an expectation in a few words.
func (e Expectation) String() string {
	s := string(e.Class)
	if len(e.Judges) > 0 {
		s += " " + strings.Join(e.Judges, ", ")
	}
	if e.Some {
		s += " (some)"
	}
	return s
}
