package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Spec is the sequential specification of a lock: its answers if calls come one at a time. The three
// specifications differ only in two rules, so they are one machine with two switches.
//
//   - reentrant: an owner may acquire the lock again while it holds it; a hold is given back
//     level by level.
//   - fair: like reentrant, but holds are granted in the order of arrival.
//   - fenced: like reentrant, but every new hold has a token greater than all before.
//
// A specification has no clock. Time enters as steps without a caller: the end of a lease is a
// [DoExpire] of the operation that started it. The checker of a history decides its place in the
// order.
type Spec struct {
	name   string
	fair   bool
	fenced bool
}

// Specs are the names of the specifications, the weakest first.
var Specs = []string{"reentrant", "fair", "fenced"}

// SpecNamed returns the specification of that name, one of [Specs].
func SpecNamed(name string) (Spec, bool) {
	if !slices.Contains(Specs, name) {
		return Spec{}, false
	}
	return Spec{name: name, fair: name == "fair", fenced: name == "fenced"}, true
}

// Name returns the name of the specification.
func (s Spec) Name() string { return s.name }

// Fair reports whether holds are granted in the order of arrival.
func (s Spec) Fair() bool { return s.fair }

// Fenced reports whether the tokens of new holds must grow.
func (s Spec) Fenced() bool { return s.fenced }

// Do is the action of one step of the machine.
type Do uint8

// The steps. The last six have no caller.
const (
	DoAcquire Do = iota + 1
	DoRelease
	DoRenew
	DoForceRelease
	DoIsLocked
	DoHoldCount
	DoLost   // somebody other than a client deleted the key
	DoExpire // the lease that operation Of started ends
	DoArrive // the first try of acquire Of reached the lock (fair)
	DoLeave  // acquire Of gave up without an effect (fair)
	DoEnd    // the history is over: optional steps may be skipped from here on
)

// Answers, as they stand in a history.
const (
	AnswerGranted   = "granted"
	AnswerBusy      = "busy"
	AnswerReleased  = "released"
	AnswerStillHeld = "still_held"
	AnswerNotHeld   = "not_held"
	AnswerRenewed   = "renewed"
	AnswerTrue      = "true"
	AnswerFalse     = "false"
	AnswerOK        = "ok"
	AnswerFailed    = "failed"
	AnswerUnknown   = "unknown"
)

// The values of [Input].Lease other than the id of a lease.
const (
	KeepLease = 0  // the current lease continues
	NoExpiry  = -1 // from here on the hold does not end by itself
)

// An Input is one step: a call together with its answer, or a step without a caller.
type Input struct {
	Do     Do
	ID     int    // the operation, above 0; names its lease and its place in the queue
	Owner  string // process/thread
	Answer string // of a call; AnswerUnknown: any answer
	Of     int    // DoExpire, DoArrive, DoLeave: the operation to which the step belongs

	Lease int   // the lease that runs after this step, or KeepLease, or NoExpiry
	Count int64 // DoHoldCount: the answer

	Token    int64 // of a granted acquire, when HasToken
	HasToken bool

	ArrivedNs  int64 // when the first try reached the lock, when HasArrival
	HasArrival bool
	Ordered    bool // nobody that arrived later may get a new hold before this acquire
	Queued     bool // a DoArrive of this acquire comes before it

	// Optional marks a step that need not happen: a call of unknown outcome, or the end of a lease
	// that it may have started. It takes place where it changes something, or not at all, which
	// means after DoEnd. To allow it earlier as a step without an effect would add no relevant
	// order, but would double the search with every such step.
	Optional bool

	// Tracked marks an operation whose lease may end before the operation has certainly taken
	// effect, and the DoExpire of that lease. The state then remembers that the operation came
	// first.
	Tracked bool
}

// A Waiter is an acquire that has arrived and not yet taken effect.
type Waiter struct {
	ID        int
	Owner     string
	ArrivedNs int64
	Ordered   bool
	// Refused: another owner held the lock at some instant since the waiter arrived. So the acquire
	// may answer busy, and keeps its place until then.
	Refused bool
}

// A State is the state of the lock between two steps. States are values: Step never changes its
// argument.
type State struct {
	Owner   string // process/thread, empty when free
	Count   int    // levels of re-entry, 0 when free
	Lease   int    // id of the operation whose lease is current, or NoExpiry; 0 when free
	Token   int64  // fenced: the greatest token so far
	Waiting []Waiter
	Begun   []int // tracked operations that took effect and whose lease has not ended
	Ended   bool  // DoEnd has happened
}

// Init returns the state of a lock that nobody has touched.
func (s Spec) Init() State { return State{Token: math.MinInt64} }

// Step returns the state after in, and whether st allows it. If it does not, the returned state has
// no meaning.
func (s Spec) Step(st State, in Input) (State, bool) {
	next, refusal := s.step(st, in)
	return next, refusal == Allowed
}

// Refusal returns the reason why st does not allow in.
func (s Spec) Refusal(st State, in Input) Refusal {
	_, refusal := s.step(st, in)
	return refusal
}

// Refusal is the rule by which a state does not allow a step.
type Refusal uint8

// The refusals.
const (
	Allowed        Refusal = iota
	Over                   // the history is over
	Held                   // the answer contradicts the holder of the lock
	NobodyWaits            // fair: the answer contradicts the holder of the lock, and no other acquire waits
	NotArrived             // fair: the first try of the acquire has not reached the lock
	OutOfTurn              // fair: another acquire arrived before, see Ahead
	TokenTooSmall          // fenced: the token is not greater than all before
	LeaseOverFirst         // its lease was over before it could take effect
)

func (s Spec) step(st State, in Input) (State, Refusal) {
	if st.Ended {
		if in.Optional {
			return st, Allowed
		}
		return st, Over
	}
	switch in.Do {
	case DoAcquire:
		return s.acquire(st, in)
	case DoRelease:
		return s.release(st, in)
	case DoRenew:
		if (in.Answer == AnswerNotHeld) == (st.Owner == in.Owner) {
			return st, Held
		}
		if in.Answer != AnswerNotHeld {
			st.Lease = lease(st.Lease, in.Lease)
			st = begun(st, in)
		}
		return st, Allowed
	case DoForceRelease:
		if (in.Answer == AnswerNotHeld) == (st.Owner != "") {
			return st, Held
		}
		return freed(st), Allowed
	case DoIsLocked:
		if (in.Answer == AnswerTrue) != (st.Owner != "") {
			return st, Held
		}
		return st, Allowed
	case DoHoldCount:
		count := 0
		if st.Owner == in.Owner {
			count = st.Count
		}
		if in.Count != int64(count) {
			return st, Held
		}
		return st, Allowed
	case DoLost:
		return freed(st), Allowed
	case DoExpire:
		return s.expire(st, in)
	case DoArrive:
		w := Waiter{ID: in.Of, Owner: in.Owner, ArrivedNs: in.ArrivedNs, Ordered: in.Ordered}
		st.Waiting = append(slices.Clip(st.Waiting), w)
		return refused(st), Allowed
	case DoLeave:
		if !waits(st, in.Of) {
			return st, NotArrived
		}
		return withoutWaiter(st, in.Of), Allowed
	case DoEnd:
		st.Ended = true
		return st, Allowed
	}
	panic(fmt.Sprintf("model: there is no step %d", in.Do))
}

func (s Spec) acquire(st State, in Input) (State, Refusal) {
	if in.Queued {
		if !waits(st, in.ID) {
			return st, NotArrived
		}
	}
	if in.Answer == AnswerBusy {
		other := st.Owner != "" && st.Owner != in.Owner
		if !other && !(s.fair && (othersWait(st, in.ID) || wasRefused(st, in.ID))) {
			if s.fair {
				return st, NobodyWaits
			}
			return st, Held
		}
		return withoutWaiter(st, in.ID), Allowed
	}
	switch st.Owner {
	case in.Owner:
		st.Count++
	case "":
		if s.fair && st.Ahead(in) != nil {
			return st, OutOfTurn
		}
		if s.fenced && in.HasToken {
			if in.Token <= st.Token {
				return st, TokenTooSmall
			}
			st.Token = in.Token
		}
		st.Owner, st.Count = in.Owner, 1
	default:
		return st, Held
	}
	st.Lease = lease(st.Lease, in.Lease)
	return refused(withoutWaiter(begun(st, in), in.ID)), Allowed
}

func (s Spec) release(st State, in Input) (State, Refusal) {
	if st.Owner != in.Owner {
		if in.Answer != AnswerNotHeld {
			return st, Held
		}
		return st, Allowed
	}
	switch in.Answer {
	case AnswerNotHeld:
		return st, Held
	case AnswerReleased:
		if st.Count != 1 {
			return st, Held
		}
	case AnswerStillHeld:
		if st.Count == 1 {
			return st, Held
		}
	}
	if st.Count == 1 {
		return freed(begun(st, in)), Allowed
	}
	st.Count--
	st.Lease = lease(st.Lease, in.Lease)
	return begun(st, in), Allowed
}

// expire ends the lease of operation in.Of if it is the current one. A lease that was replaced or
// given back ends without an effect.
func (s Spec) expire(st State, in Input) (State, Refusal) {
	if in.Tracked {
		i := slices.Index(st.Begun, in.Of)
		if i < 0 {
			return st, LeaseOverFirst
		}
		st.Begun = slices.Concat(st.Begun[:i], st.Begun[i+1:])
	}
	if st.Owner != "" && st.Lease == in.Of {
		return freed(st), Allowed
	}
	if in.Optional {
		return st, Held
	}
	return st, Allowed
}

func lease(running, next int) int {
	if next == KeepLease {
		return running
	}
	return next
}

func begun(st State, in Input) State {
	if in.Tracked {
		st.Begun = append(slices.Clip(st.Begun), in.ID)
	}
	return st
}

func freed(st State) State {
	st.Owner, st.Count, st.Lease = "", 0, 0
	return st
}

func withoutWaiter(st State, id int) State {
	for i, w := range st.Waiting {
		if w.ID == id {
			st.Waiting = slices.Concat(st.Waiting[:i], st.Waiting[i+1:])
			break
		}
	}
	return st
}

func waits(st State, id int) bool {
	return slices.ContainsFunc(st.Waiting, func(w Waiter) bool { return w.ID == id })
}

// refused marks the waiters of a held lock as refused, except its owner.
func refused(st State) State {
	cloned := false
	for i, w := range st.Waiting {
		if w.Refused || st.Owner == "" || st.Owner == w.Owner {
			continue
		}
		if !cloned {
			st.Waiting, cloned = slices.Clone(st.Waiting), true
		}
		st.Waiting[i].Refused = true
	}
	return st
}

func wasRefused(st State, id int) bool {
	return slices.ContainsFunc(st.Waiting, func(w Waiter) bool { return w.ID == id && w.Refused })
}

func othersWait(st State, id int) bool {
	return slices.ContainsFunc(st.Waiting, func(w Waiter) bool { return w.ID != id })
}

// Ahead returns the first waiter that arrived before in, or nil if there is none.
func (st State) Ahead(in Input) *Waiter {
	if !in.Queued || !in.HasArrival {
		return nil
	}
	var first *Waiter
	for i, w := range st.Waiting {
		if w.Ordered && w.ArrivedNs < in.ArrivedNs && w.ID != in.ID && (first == nil || w.ArrivedNs < first.ArrivedNs) {
			first = &st.Waiting[i]
		}
	}
	return first
}

// String writes the holder of the lock and its waiters.
func (st State) String() string {
	var b strings.Builder
	b.WriteString(st.Holder())
	for i, w := range st.Waiting {
		if i == 0 {
			b.WriteString(", waiting: ")
		} else {
			b.WriteString(" ")
		}
		b.WriteString(w.Owner)
	}
	return b.String()
}

// Holder writes the holder of the lock: free, held by a/1, or held by a/1 with 2 levels.
func (st State) Holder() string {
	switch {
	case st.Owner == "":
		return "free"
	case st.Count == 1:
		return "held by " + st.Owner
	}
	return fmt.Sprintf("held by %s with %d levels", st.Owner, st.Count)
}

// Equal reports whether the two states answer every step in the same way.
func (st State) Equal(other State) bool {
	return st.Owner == other.Owner && st.Count == other.Count && st.Lease == other.Lease &&
		st.Token == other.Token && st.Ended == other.Ended &&
		slices.Equal(st.Waiting, other.Waiting) && slices.Equal(st.Begun, other.Begun)
}

// Hash returns a number that is the same for equal states. It leaves the two lists out. The
// operations in them follow from the set of operations that have taken effect, and the search
// compares that set together with the state.
func (st State) Hash() uint64 {
	const prime = 1099511628211 // FNV-1a
	h := uint64(14695981039346656037)
	for i := range len(st.Owner) {
		h = (h ^ uint64(st.Owner[i])) * prime
	}
	for _, v := range [...]uint64{uint64(st.Count), uint64(st.Lease), uint64(st.Token)} {
		h = (h ^ v) * prime
		h ^= h >> 29
	}
	return h
}

// Seconds writes an instant in nanoseconds as seconds, exactly and with three
// decimals at least: 2.104s, 0.000000005s.
func Seconds(ns int64) string {
	sign, abs := "", uint64(ns)
	if ns < 0 {
		sign, abs = "-", -uint64(ns)
	}
	frac := strings.TrimRight(fmt.Sprintf("%09d", abs%1e9), "0")
	for len(frac) < 3 {
		frac += "0"
	}
	return fmt.Sprintf("%s%d.%ss", sign, abs/1e9, frac)
}
