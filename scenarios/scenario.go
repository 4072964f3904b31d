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

// Range is an inclusive range of durations. An exact value has Min equal to Max.
type Range struct{ Min, Max Duration }

// Position is a place in a scenario file. Line and Column count from 1.
type Position struct {
	File         string
	Line, Column int
}

// A Scenario is a checked scenario file. Every process, thread, resource and lock that it
// names exists.
type Scenario struct {
	File    string // as given on the command line, or in a collection, such as builtin/NAME.yaml
	Text    string // the bytes of the file, kept in recordings
	Name    string
	About   string
	Source  string
	Locks   []string // canonical names, in the file's order
	Latency Range    // in one direction; a 0 in the file is read as 100us
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

// Server is the `server:` block of a file. Lag is how long a message between the server and
// a replica travels in one direction. By default it is the network's latency.
type Server struct {
	Replicas int
	Lag      Range
}

// A Resource is guarded by a lock. It is a number on a server of its own.
type Resource struct {
	Name       string
	Start      int64
	NeverBelow *int64
	End        *int64
	// Fence is the lock whose fencing token the resource asks for; "": none. It refuses a
	// token smaller than the greatest it has seen.
	Fence string
}

// A Process is one client with its threads.
type Process struct {
	Name          string
	Threads       int
	PerCall       bool // lock_objects: per_call
	WallOffset    Duration
	WallDriftPPM  int64
	ClientOptions subject.ClientOptions
}

// A Script lists the steps of one thread.
type Script struct {
	Process string
	Thread  int
	Steps   []Step
}

// A StepKind is the kind of a step, named as in a file.
type StepKind string

// The kinds of steps.
const (
	StepAt          StepKind = "at"
	StepSleep       StepKind = "sleep"
	StepLock        StepKind = "lock"
	StepTryLock     StepKind = "try_lock"
	StepWithLock    StepKind = "with_lock"
	StepUnlock      StepKind = "unlock"
	StepForceUnlock StepKind = "force_unlock"
	StepExtend      StepKind = "extend"
	StepRead        StepKind = "read"
	StepPublished   StepKind = "published"
	StepUse         StepKind = "use"
	StepInterrupt   StepKind = "interrupt"
	StepRepeat      StepKind = "repeat"
	StepClose       StepKind = "close"
)

// A Step is one step of a thread. Kind determines which of the other fields are used.
type Step struct {
	Kind StepKind
	Pos  Position
	// D is the instant of `at` or the length of `sleep`.
	D Duration
	// Name is the lock (or, for `use`, the resource).
	Name string
	// Lease is nil when the file has none.
	Lease *Duration
	// Wait is nil when the file has none.
	Wait *Duration
	// Interruptible is nil for the lock's own default.
	Interruptible *bool
	// UnitSeconds reports whether the file has `unit: seconds`.
	UnitSeconds bool
	// Want lists the outcomes that the scenario accepts. Empty: it accepts all.
	Want []string
	// Reply is the expected reply of the script: "nil" or a decimal number. Empty: any.
	Reply string
	// UnlockAlways reports whether a with_lock has `unlock: always`.
	UnlockAlways bool
	Steps        []Step // of with_lock and repeat
	// Take and For belong to `use`.
	Take int64
	For  Duration
	// Target is the thread that `interrupt` interrupts, such as "b/1". For `published` it
	// is the thread whose channel is counted, or "all".
	Target string
	Count  int64 // the number of messages that `published` expects
	// Times or Until bound `repeat`; exactly one is set.
	Times int
	Until *Duration
	Read  *Read
}

// A Read is the state of a lock that a `read` step expects on the server. Fields that are
// nil are not compared.
type Read struct {
	Holds     *int64
	Locked    *bool
	TTL       *TTL
	Queue     *[]string        // threads in order
	Deadlines map[string]Range // by thread, since the start of the run
}

// TTL is the time to live that a `read` step expects: a range, or one of the words `free`
// and `endless`.
type TTL struct {
	Range   Range
	Free    bool // `free`: there is no key
	Endless bool // `endless`: the key has no expiry
}

// A Fault is one entry of `faults`.
type Fault struct {
	model.FaultSpec
	// Servers lists the numbers of the servers that the fault strikes. Empty: it strikes
	// all. Numbers start at 1. A lock on one server has only server 1.
	Servers []int
	Pos     Position
}

// A Class is the class of an outcome.
type Class string

// The classes that an expectation can name.
const (
	Held  Class = "held"
	Bug   Class = "bug"
	Limit Class = "limit"
	Not   Class = "not"
)

// An Expectation is the outcome that a scenario expects of one lock.
type Expectation struct {
	Class  Class
	Judges []string // with Bug and Limit all of them must be broken, with Not none may be
	Reach  []string // states to reach in addition to the scenario's Reach
	// Some reports whether one seed with the outcome is enough. Otherwise every seed must
	// have it.
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

// String writes an expected time to live as a file does.
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
