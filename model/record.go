package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LongestRun is the simulated time after which a run is ended.
const LongestRun = 200 * 365 * 24 * time.Hour

// Kind is the kind of an event.
type Kind string

// The kinds of events.
const (
	KindInvoke   Kind = "invoke"   // a thread calls an operation
	KindReturn   Kind = "return"   // a call returned Outcome
	KindSend     Kind = "send"     // the command Msg left a process
	KindExec     Kind = "exec"     // the server executed Msg and answered Reply
	KindDeliver  Kind = "deliver"  // Msg's reply, or a published message, reached its process
	KindLost     Kind = "lost"     // Msg (Dir request, reply or push) will never arrive; Why is the reason
	KindPublish  Kind = "publish"  // the server published on Channel, to Count subscribers
	KindState    Kind = "state"    // the server's state of Lock changed
	KindExpire   Kind = "expire"   // Key ran out
	KindFault    Kind = "fault"    // the fault with the index Fault starts; Text describes it
	KindFaultEnd Kind = "heal"     // the fault with the index Fault ends
	KindHit      Kind = "hit"      // rule Fault met message Msg; Text describes the effect
	KindUse      Kind = "use"      // a critical section reached Phase, or a thread interrupted another
	KindCheck    Kind = "check"    // a want, reply or read was checked; Met is the result
	KindCalm     Kind = "calm"     // every fault is over
	KindLeave    Kind = "leave"    // all threads leave; open calls are interrupted
	KindClose    Kind = "close"    // a process closed its client
	KindTold     Kind = "told"     // a thread learned that its hold on Lock is gone
	KindDone     Kind = "done"     // a thread has no steps left
	KindLeft     Kind = "left"     // Key, Channel or Text is left over at the end of the run
	KindDefect   Kind = "defect"   // the harness itself failed; Text describes the failure
	KindResource Kind = "resource" // a resource was read or written (Phase); it holds Value
	// KindUnsimulated means that a server met Command, a few words for a command, an option or a syntax that it does not
	// simulate and that the real server has. It comes just before the KindExec of the message.
	KindUnsimulated Kind = "unsimulated"
)

// SegmentCommand is the command of a message on a connection whose protocol the world does not know: a
// piece of a stream.
const SegmentCommand = "SEGMENT"

// Event is one event of a run. Fields without a meaning for its kind are zero and left out of the
// JSON.
type Event struct {
	AtNs    int64  `json:"at_ns"` // simulated time since the start
	Kind    Kind   `json:"kind"`
	Process string `json:"process,omitempty"`
	Thread  int    `json:"thread,omitempty"`

	// Operations.
	Op      int     `json:"op,omitempty"` // numbered from 1 in order of invocation
	Action  Action  `json:"action,omitempty"`
	Lock    string  `json:"lock,omitempty"`
	LeaseNs int64   `json:"lease_ns,omitempty"` // 0: none
	WaitNs  int64   `json:"wait_ns,omitempty"`  // -1: without bound
	Outcome Outcome `json:"outcome,omitempty"`
	Error   string  `json:"error,omitempty"`
	Token   uint64  `json:"token,omitempty"` // of a return: the fencing token that the handle has; 0: none

	// Messages.
	Msg     int        `json:"msg,omitempty"` // numbered from 1 in order of sending
	Conn    int        `json:"conn,omitempty"`
	Dir     string     `json:"dir,omitempty"` // request, reply, push
	Command string     `json:"command,omitempty"`
	Script  Role       `json:"script,omitempty"` // the role of the command
	Args    []string   `json:"args,omitempty"`   // the arguments, without the text of a script
	Owners  []string   `json:"owners,omitempty"` // the owners that a command acts for, as process/thread
	Locks   []string   `json:"locks,omitempty"`  // the locks that a command acts on
	Reply   string     `json:"reply,omitempty"`
	Channel string     `json:"channel,omitempty"`
	Count   int64      `json:"count,omitempty"`
	Why     LostReason `json:"why,omitempty"`

	State *LockState `json:"state,omitempty"`

	// The rest.
	Key   string `json:"key,omitempty"`
	Fault int    `json:"fault,omitempty"` // index into the scenario's faults, from 1
	Text  string `json:"text,omitempty"`
	Phase string `json:"phase,omitempty"`
	Value int64  `json:"value,omitempty"`
	Met   bool   `json:"met,omitempty"`

	// The digest does not cover the following facts for programs. Text, Command, Args and
	// Reply state the same facts for people.
	Check    *Check    `json:"-"` // of KindCheck
	Do       string    `json:"-"` // of KindHit: the action of the fault, see FaultSpec.Do
	Listens  Listening `json:"-"` // of KindSend and KindExec
	Channels []string  `json:"-"` // of KindSend and KindExec: the channels that the command names
	Answer   Answer    `json:"-"` // of KindExec
	Program  string    `json:"-"` // of KindSend and KindExec: the digest of the program that the command has the server run; "": it has none
	Abridged bool      `json:"-"` // of KindSend and KindExec: Args lacks some words of the command, besides its program
	Greets   bool      `json:"-"` // of KindSend and KindExec: the client's library sent the command to get to know the server, whoever waited
	Blocks   bool      `json:"-"` // of KindSend: the server may keep the answer back, for as long as the client asks
	Asked    []string  `json:"-"` // of KindSend and KindExec of a SegmentCommand: the words with which its author asked for it, such as a method; nil: unknown
	Says     string    `json:"-"` // of KindSend and KindExec: the request and its key, or those in a segment, as the server reads them; "": unknown
	Guessed  bool      `json:"-"` // of KindSend: Op and Owners are those of the only call of the process that was under way, not those of the goroutine that wrote the command

	Removed []int `json:"-"` // of KindFault: the numbers of the requests that had written what the fault removed

	Unstarted bool `json:"-"` // of KindDefect: a server did not start, and Text says why

	Limit int `json:"-"` // of KindDefect: the number of events after which the world ended the run; 0: the harness or the lock failed

	Goroutine *Goroutine `json:"-"` // of KindLeft: the goroutine that Text names; nil: no goroutine is left over
}

// Goroutine is a goroutine that has not ended when a run is over.
type Goroutine struct {
	// Stands is the innermost function on its stack that belongs neither to the standard library nor
	// to the world; "": there is none.
	Stands  string
	Started string // the function that started it
	Closes  string // the process whose client it closes; "": it closes none
	Opens   string // the process whose client it makes; "": it makes none
	// Unopened reports that an Open did not return, and that the goroutine waits for it, or may belong to it, or runs it
	// in a process that has crashed. Nobody can close the client of such a process.
	Unopened bool
	Calls    bool // it is that of a thread, whose last call has not returned
}

// Listening is the effect of a command on the channels that its connection listens to.
type Listening string

// The values of Listening.
const (
	ListensNot  Listening = ""      // the command has no effect on them
	ListenStart Listening = "start" // the connection starts to listen to Channels
	ListenStop  Listening = "stop"  // the connection stops listening to Channels, or to all channels if Channels is empty
)

// Action is the kind of an operation.
type Action string

// The actions.
const (
	ActLock         Action = "lock"           // blocking
	ActTryLock      Action = "try_lock"       // the single attempt that never queues
	ActTryLockTimed Action = "try_lock_timed" // with a wait
	ActUnlock       Action = "unlock"
	ActForceUnlock  Action = "force_unlock"
	ActExtend       Action = "extend" // the holder asks for another lease
)

// Acquires reports whether the action may end in a hold.
func (a Action) Acquires() bool {
	return a == ActLock || a == ActTryLock || a == ActTryLockTimed
}

// Outcome is how a call ended.
type Outcome string

// The outcomes.
const (
	Granted   Outcome = "granted"
	Busy      Outcome = "busy"
	Released  Outcome = "released"
	StillHeld Outcome = "still_held"
	NotHeld   Outcome = "not_held"
	Extended  Outcome = "extended"
	// Failed means that the call returned an error and certainly did nothing.
	Failed Outcome = "error"
	// Unknown means that the call returned without the server's answer.
	Unknown Outcome = "unknown"
	// Waiting means that the call was still open when all threads left.
	Waiting Outcome = "waiting"
)

// LockState is the state that a server holds for one lock. Owners have the form
// process/thread.
type LockState struct {
	Owner string `json:"owner,omitempty"` // "": free
	Count int    `json:"count,omitempty"`
	// ExpiresMs is the last millisecond of simulated time since the start in which the hold lives.
	// It is -1 if the hold has no expiry. It has no meaning if the lock is free. It moves when the
	// wall clock of the server steps.
	ExpiresMs int64 `json:"expires_ms,omitempty"`
	// ClosedMs is the last millisecond of simulated time since the start in which nobody can take
	// the free lock, because its last holder failed; 0: the lock is not closed.
	ClosedMs int64    `json:"closed_ms,omitempty"`
	Token    int64    `json:"token,omitempty"` // the newest fencing token; 0: none
	Queue    []string `json:"queue,omitempty"` // head first
	// Deadlines are the deadlines of the waiters, in milliseconds since the start.
	Deadlines map[string]int64 `json:"deadlines,omitempty"`

	// Value marks the holder on the server, if the lock writes values of its own choice; "": nobody
	// knows. The digest does not cover it.
	Value string `json:"-"`
}

// Held reports whether somebody holds the lock.
func (s *LockState) Held() bool { return s != nil && s.Owner != "" }

// Equal reports whether two states are the same. Nil is the state of a free lock. For a free lock
// the time of expiry does not count.
func (s *LockState) Equal(other *LockState) bool {
	if s == nil {
		s = &LockState{}
	}
	if other == nil {
		other = &LockState{}
	}
	return s.Owner == other.Owner && s.Count == other.Count && s.Token == other.Token && s.ClosedMs == other.ClosedMs && (!s.Held() || s.ExpiresMs == other.ExpiresMs) &&
		slices.Equal(s.Queue, other.Queue) && maps.Equal(s.Deadlines, other.Deadlines)
}

// Answer is the kind of a server's reply to a command.
type Answer string

// The values of Answer.
const (
	Answered Answer = ""        // the command ran
	Refused  Answer = "refused" // the server answered an error
	// NotRun means that the server did nothing, because it does not know the program
	// that the command names.
	NotRun Answer = "not_run"
)

// ThreadName returns the name of the event's thread, process/thread.
func (e *Event) ThreadName() string { return ThreadName(e.Process, e.Thread) }

// ThreadName returns the name of a thread, process/thread.
func ThreadName(process string, thread int) string { return process + "/" + strconv.Itoa(thread) }

// ProcessOf returns the process of a thread's name, see ThreadName.
func ProcessOf(thread string) string {
	if NumberOf(thread) == 0 {
		return ""
	}
	return thread[:max(strings.LastIndexByte(thread, '/'), 0)]
}

// NumberOf returns the number of a thread within its process, see ThreadName; 0 if the name has
// none.
func NumberOf(thread string) int {
	n, _ := strconv.Atoi(thread[strings.LastIndexByte(thread, '/')+1:])
	return n
}

// Params holds the facts about a run that the judges need besides its events.
type Params struct {
	Lock string // the name of the lock under test
	Traits
	Timing
	Promises Promises // the promises that differ from those that the traits imply
	// Kept are the keys that may remain after all threads have left: a fencing counter,
	// and the queue. The judges check the entries of the queue one by one.
	Kept []string
	// Processes are the processes of the run, in order.
	Processes []ProcessParams
	// Uncertainty bounds the error of the instants of the record, and the lateness of a process
	// with each of its actions. It is 0 in a simulated world.
	Uncertainty time.Duration
	// Latency is the longest time that a message takes one way if no fault meets it; 0: unknown.
	Latency time.Duration
	// Faults are the faults of the run; an event's Fault is an index into them,
	// counted from 1.
	Faults []FaultSpec
}

// Fault returns the fault with that number, counted from 1. The number after the last
// fault stands for a message that a chooser lost or delayed, in a world that allows it.
func (p *Params) Fault(number int) FaultSpec {
	switch {
	case 0 < number && number <= len(p.Faults):
		return p.Faults[number-1]
	case number == len(p.Faults)+1:
		return FaultSpec{Kind: FaultFate}
	}
	return FaultSpec{}
}

// ProcessParams describes one process.
type ProcessParams struct {
	Name    string
	Threads int
	Skew    time.Duration // largest distance of its wall clock from the server's, steps and drift included
}

// Record is everything that happened in one run, in order.
type Record struct {
	Params Params
	Events []Event
}

// Add appends an event.
func (r *Record) Add(e Event) {
	if n := len(r.Events); n == cap(r.Events) {
		r.Events = slices.Grow(r.Events, max(n, 256)) // append alone would copy a long record more often
	}
	r.Events = append(r.Events, e)
}

// Unsimulated returns what the servers met and do not simulate, each once and in order: see KindUnsimulated.
func (r *Record) Unsimulated() (list []string) {
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == KindUnsimulated && !slices.Contains(list, e.Command) {
			list = append(list, e.Command)
		}
	}
	slices.Sort(list)
	return list
}

// Unstarted returns why a server did not start; "": each did. A run without a server says nothing about the lock.
func (r *Record) Unstarted() string {
	for i := range r.Events {
		if e := &r.Events[i]; e.Unstarted {
			return e.Text
		}
	}
	return ""
}

// Digest returns the hex SHA-256 of the events as JSON lines. The same seed in the
// same world gives the same digest on every machine.
func (r *Record) Digest() string {
	h := sha256.New()
	var enc encoder
	for i := range r.Events {
		enc.b = enc.b[:0]
		enc.event(&r.Events[i])
		h.Write(append(enc.b, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// At formats an instant of a record for people, in seconds since the start.
func At(ns int64) string {
	s := fmt.Sprintf("%.6f", float64(ns)/1e9)
	return s[:len(s)-3] + "s"
}
