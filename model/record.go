package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind says what an event is.
type Kind string

// The kinds of events.
const (
	KindInvoke   Kind = "invoke"   // a thread calls an operation
	KindReturn   Kind = "return"   // the call returned; Outcome
	KindSend     Kind = "send"     // a command left a process; Msg
	KindExec     Kind = "exec"     // the server executed Msg; Reply
	KindDeliver  Kind = "deliver"  // Msg's reply, or a published message, reached its process
	KindLost     Kind = "lost"     // Msg (Dir request, reply or push) will never arrive; Why
	KindPublish  Kind = "publish"  // the server published on Channel, to Count subscribers
	KindState    Kind = "state"    // what the server holds of Lock changed
	KindExpire   Kind = "expire"   // Key ran out
	KindFault    Kind = "fault"    // a fault (Fault, its index) starts; Text
	KindFaultEnd Kind = "heal"     // it ends
	KindHit      Kind = "hit"      // rule Fault met message Msg; Text says how
	KindUse      Kind = "use"      // a critical section: Phase
	KindCheck    Kind = "check"    // a want, reply or read was looked at; Met
	KindCalm     Kind = "calm"     // every fault is over
	KindLeave    Kind = "leave"    // all leave; calls still open are interrupted
	KindClose    Kind = "close"    // a process's client was closed in order
	KindTold     Kind = "told"     // a thread learned that its hold on Lock is gone
	KindDone     Kind = "done"     // a thread has no steps left
	KindLeft     Kind = "left"     // inventory at the very end: Key, Channel or Text
	KindDefect   Kind = "defect"   // the harness itself went wrong; Text
	KindResource Kind = "resource" // a resource was read or written: Phase, Value
)

// Event is one thing that happened. Fields that mean nothing for its kind are
// zero and left out of the JSON.
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
	Msg     int      `json:"msg,omitempty"` // numbered from 1 in order of sending
	Conn    int      `json:"conn,omitempty"`
	Dir     string   `json:"dir,omitempty"` // request, reply, push
	Command string   `json:"command,omitempty"`
	Script  Role     `json:"script,omitempty"` // what the command is for
	Args    []string `json:"args,omitempty"`   // without the text of a script
	Owners  []string `json:"owners,omitempty"` // for whom a command speaks, as process/thread
	Locks   []string `json:"locks,omitempty"`  // of which locks
	Reply   string   `json:"reply,omitempty"`
	Channel string   `json:"channel,omitempty"`
	Count   int64    `json:"count,omitempty"`
	Why     string   `json:"why,omitempty"`

	State *LockState `json:"state,omitempty"`

	// The rest.
	Key   string `json:"key,omitempty"`
	Fault int    `json:"fault,omitempty"` // index into the scenario's faults, from 1
	Text  string `json:"text,omitempty"`
	Phase string `json:"phase,omitempty"`
	Value int64  `json:"value,omitempty"`
	Met   bool   `json:"met,omitempty"`

	// Facts for programs that the digest does not cover: Text, Command, Args and Reply
	// say the same.
	Check    *Check    `json:"-"` // of KindCheck
	Do       string    `json:"-"` // of KindHit: what the fault did, as FaultSpec.Do
	Listens  Listening `json:"-"` // of KindSend and KindExec
	Channels []string  `json:"-"` // of KindSend and KindExec: the channels that the command names
	Answer   Answer    `json:"-"` // of KindExec
	Program  bool      `json:"-"` // of KindSend and KindExec: the command carries a program that the server runs
}

// Listening says what a command does to the channels that its connection listens to.
type Listening string

// The values of Listening.
const (
	ListensNot  Listening = ""      // the command neither starts nor stops it
	ListenStart Listening = "start" // the server sends what is published on Channels from now on
	ListenStop  Listening = "stop"  // no longer; on no channel at all if Channels is empty
)

// Action is what an operation asks for.
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

// Acquires says whether the action may end in a hold.
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
	// Failed: an error came back and the call surely did nothing.
	Failed Outcome = "error"
	// Unknown: it came back without the server's answer.
	Unknown Outcome = "unknown"
	// Waiting: it was still open when everybody left.
	Waiting Outcome = "waiting"
)

// LockState is what a server holds of one lock. Owners are process/thread.
type LockState struct {
	Owner string `json:"owner,omitempty"` // "": free
	Count int    `json:"count,omitempty"`
	// ExpiresMs is the last millisecond of simulated time since the start in which
	// the hold lives; -1 when it has no expiry. Meaningless when free. It moves when
	// the wall clock of the server jumps.
	ExpiresMs int64    `json:"expires_ms,omitempty"`
	Token     int64    `json:"token,omitempty"` // the newest fencing token; 0: none
	Queue     []string `json:"queue,omitempty"` // head first
	// Deadlines are the waiters' in milliseconds since the start.
	Deadlines map[string]int64 `json:"deadlines,omitempty"`
}

// Held says whether somebody holds the lock.
func (s *LockState) Held() bool { return s != nil && s.Owner != "" }

// Answer is the kind of a server's reply to a command.
type Answer string

// The values of Answer.
const (
	Answered Answer = ""        // the command ran
	Refused  Answer = "refused" // the server answered an error
	// NotRun: the server does not know the program that the command names. It did
	// nothing.
	NotRun Answer = "not_run"
)

// ThreadName is the thread as people write it.
func (e *Event) ThreadName() string { return ThreadName(e.Process, e.Thread) }

// ThreadName is process/thread.
func ThreadName(process string, thread int) string { return fmt.Sprintf("%s/%d", process, thread) }

// ProcessOf returns the process of a thread's name, see ThreadName.
func ProcessOf(thread string) string {
	return thread[:max(strings.LastIndexByte(thread, '/'), 0)]
}

// Params is what the judges must know of a run beside its events.
type Params struct {
	Lock string // the name of the lock under test
	Traits
	Timing
	Promises Promises // those that differ from what the traits imply
	// Kept are the keys that may stay when all have left: a fencing counter, and
	// the queue, whose entries are looked at one by one.
	Kept []string
	// Processes are those that exist, in order.
	Processes []ProcessParams
	// Servers is the number of servers that the lock asks, which know nothing of one
	// another; 0 counts as 1.
	Servers int
	// Faults are the faults of the run; an event's Fault is an index into them,
	// counted from 1.
	Faults []FaultSpec
}

// Fault returns the fault with that number, counted from 1. The number after the
// last one belongs to what a chooser did to a message, in a world that lets it.
func (p *Params) Fault(number int) FaultSpec {
	switch {
	case 0 < number && number <= len(p.Faults):
		return p.Faults[number-1]
	case number == len(p.Faults)+1:
		return FaultSpec{Kind: FaultFate}
	}
	return FaultSpec{}
}

// ProcessParams is one process.
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
		r.Events = slices.Grow(r.Events, max(n, 256)) // append alone would copy a long record oftener
	}
	r.Events = append(r.Events, e)
}

// Digest is the hex SHA-256 of the events as JSON lines. The same seed in the
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

// At writes an instant of a record for people: seconds since the start.
func At(ns int64) string {
	s := fmt.Sprintf("%.6f", float64(ns)/1e9)
	return s[:len(s)-3] + "s"
}
