package interop

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"lockstep/lockimpl/redisson"
)

// Op is one operation of a sequence: a call of a lock's method on one thread
// of one client, or an interrupt of such a call.
type Op struct {
	Client string `json:"client"`
	Thread int    `json:"thread"`
	Do     string `json:"do"`
	Lock   string `json:"lock,omitempty"`
	// Fresh makes the call on a new lock object, not on the client's.
	Fresh   bool   `json:"fresh,omitempty"`
	WaitMS  int64  `json:"wait_ms,omitempty"`
	LeaseMS int64  `json:"lease_ms,omitempty"`
	Unit    string `json:"unit,omitempty"` // s: the caller counts in seconds
	// Unseen: the state after the operation is not read, since it changes by itself.
	Unseen bool `json:"unseen,omitempty"`
	// Outlasts: the call waits until the lease of the operation before ends.
	Outlasts bool `json:"outlasts,omitempty"`
}

// The operations, in the words of a sequence.
const (
	doLock              = "lock"
	doLockInterruptibly = "lock_interruptibly"
	doTryLock           = "try_lock"
	doTryLockTimed      = "try_lock_timed"
	doUnlock            = "unlock"
	doForceUnlock       = "force_unlock"
	doIsLocked          = "is_locked"
	doIsHeld            = "is_held"
	doHoldCount         = "hold_count"
	doRemainTTL         = "remain_ttl"
	doGetToken          = "get_token"
	doTryLockToken      = "try_lock_and_get_token" // takes a wait
	doInterrupt         = "interrupt"
)

// waitsLong reports whether the call returns only after another operation.
func (o Op) waitsLong() bool {
	return o.Do == doLock || o.Do == doLockInterruptibly || o.timed() && o.WaitMS >= longMS
}

func (o Op) timed() bool { return o.Do == doTryLockTimed || o.Do == doTryLockToken }

func (o Op) thread() string { return fmt.Sprintf("%s:%d", o.Client, o.Thread) }

func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", o.thread(), o.Do, o.Lock)
	if o.timed() {
		fmt.Fprintf(&b, " wait %d", o.WaitMS)
	}
	if o.LeaseMS != 0 {
		fmt.Fprintf(&b, " lease %d", o.LeaseMS)
	}
	for _, w := range []struct {
		word string
		on   bool
	}{{" in s", o.Unit == "s"}, {" fresh", o.Fresh}, {" unseen", o.Unseen}, {" outlasts", o.Outlasts}} {
		if w.on {
			b.WriteString(w.word)
		}
	}
	return b.String()
}

// Sequence is a list of operations for both sides.
type Sequence struct {
	Kind string `json:"kind"` // plain, fair or fenced
	Seed int    `json:"seed"` // of its draw
	Ops  []Op   `json:"ops"`
}

const (
	plain  = "plain"
	fair   = "fair"
	fenced = "fenced"
)

// kindsOf returns the kinds of lock whose sequences are drawn for a release.
func kindsOf(rel *redisson.Release) []string {
	kinds := []string{plain, fair}
	if rel.Fenced != nil {
		kinds = append(kinds, fenced)
	}
	return kinds
}

// A time in a sequence either ends before the state is read, or is far from ending, so that no
// sequence is a race against its own leases. Long times are seconds apart, so that a comparison
// notices if one takes the place of another.
const (
	shortMS     = 5
	tokenWaitMS = 25 // the wait of a try for a token
	longMS      = 10_000
)

var (
	longLeases = []int64{20_000, 50_000, 110_000}
	longWaits  = []int64{30_000, 70_000}
)

// Clients and threads of a sequence, and its locks.
var (
	clientNames = []string{"a", "b"}
	threadIDs   = []int{1, 2}
	lockNames   = []string{"x", "y"}
)

// Draw returns the sequence of a seed, which is always the same.
func Draw(kind string, seed int) Sequence {
	return Sequence{Kind: kind, Seed: seed, Ops: rapid.Custom(func(t *rapid.T) []Op { return drawOps(t, kind) }).Example(seed)}
}

// guess is an estimate of the state of a lock while a sequence is drawn. Thanks to it, holders unlock
// and waiters get the lock more often than by chance. It need not be right.
type guess struct {
	holder  string
	levels  int
	waiting []string
}

func drawOps(t *rapid.T, kind string) []Op {
	operations := drawnOps
	if kind == fenced {
		operations = drawnFencedOps
	}
	pick := func(what string, from []string) string { return rapid.SampledFrom(from).Draw(t, what) }
	chance := func(what string, percent int) bool { return rapid.IntRange(1, 100).Draw(t, what) <= percent }
	times := func(what string, from []int64) int64 { return rapid.SampledFrom(from).Draw(t, what) }

	fresh := map[string]int{"one object": 0, "an object each call": 100, "either": 50}[pick("objects", []string{"one object", "an object each call", "either"})]
	second := 0 // percent of operations on the second lock
	if chance("two locks", 40) {
		second = 35
	}
	guesses := map[string]*guess{}
	for _, n := range lockNames {
		guesses[n] = &guess{}
	}
	busy := func(thread string) bool {
		for _, g := range guesses {
			for _, w := range g.waiting {
				if w == thread {
					return true
				}
			}
		}
		return false
	}
	var ops []Op
	slept := int64(0)
	left := func(ms int64) bool { return slept+ms <= 50 }
	length := rapid.IntRange(6, 15).Draw(t, "length")
	for len(ops) < length {
		o := Op{Client: pick("client", clientNames), Thread: rapid.SampledFrom(threadIDs).Draw(t, "thread"), Lock: lockNames[0]}
		if chance("second lock", second) {
			o.Lock = lockNames[1]
		}
		g := guesses[o.Lock]
		o.Do = pick("operation", operations)
		if o.Do == doUnlock && g.holder != "" && chance("by the holder", 70) {
			o.Client, o.Thread = g.holder[:1], int(g.holder[2]-'0')
		}
		if o.Do == doInterrupt && len(g.waiting) > 0 {
			w := pick("whom", g.waiting)
			o.Client, o.Thread = w[:1], int(w[2]-'0')
		}
		if busy(o.thread()) != (o.Do == doInterrupt) && chance("another", 95) {
			continue
		}
		o.Fresh = o.Do != doInterrupt && chance("fresh", fresh)
		lease := func() {
			if chance("lease", 50) {
				o.LeaseMS = times("lease of", longLeases)
			}
		}
		outlasting := false
		switch o.Do {
		case doLock, doLockInterruptibly:
			lease()
		case doTryLockTimed, doTryLockToken:
			lease()
			waits := []int64{0, 0, 3, shortMS, 30_000, 30_000, 70_000}
			if o.Do == doTryLockToken {
				// A shorter wait would be a race against the acknowledgement of the subscription,
				// and in a long one another thread of the library receives the message.
				waits = []int64{0, tokenWaitMS}
			}
			o.WaitMS = times("wait", waits)
			if o.WaitMS < longMS && !left(o.WaitMS) {
				o.WaitMS = 0
			}
			if o.WaitMS%1000 == 0 && chance("seconds", 40) {
				o.Unit = "s"
			}
			if o.WaitMS < longMS {
				slept += o.WaitMS
			}
		case "expire":
			if !left(shortMS) {
				continue
			}
			slept += shortMS
			o.Do, o.LeaseMS = doTryLockTimed, shortMS
		case "outlast":
			if !left(4 * shortMS) {
				continue
			}
			slept += 4 * shortMS
			o.Do, o.LeaseMS, o.Unseen = doTryLockTimed, 4*shortMS, true
			outlasting = true
		}
		ops = append(ops, o)
		if outlasting {
			next := Op{Client: pick("client", clientNames), Thread: rapid.SampledFrom(threadIDs).Draw(t, "thread"), Do: doLock, Lock: o.Lock, Outlasts: true}
			if chance("timed", 40) {
				next.Do, next.WaitMS = doTryLockTimed, times("wait", longWaits)
			}
			if chance("lease", 50) {
				next.LeaseMS = times("lease of", longLeases)
			}
			next.Fresh = chance("fresh", fresh)
			g.holder, g.levels = "", 0
			g.note(next, true)
			ops = append(ops, next)
			continue
		}
		if o.LeaseMS == shortMS {
			if g.holder == "" || g.holder == o.thread() {
				g.holder, g.levels = "", 0
			}
			continue
		}
		g.note(o, o.waitsLong())
	}
	return ops
}

// drawnOps lists the operations that are drawn. An operation is drawn more often if it is listed more
// often. expire is an attempt with a lease that ends at once. outlast is such a hold, and a call by
// another thread that waits for its end.
var drawnOps = []string{
	doLock, doLock, doLock, doLock,
	doLockInterruptibly, doLockInterruptibly, doLockInterruptibly, doLockInterruptibly,
	doTryLock, doTryLock, doTryLock,
	doTryLockTimed, doTryLockTimed, doTryLockTimed, doTryLockTimed, doTryLockTimed,
	doUnlock, doUnlock, doUnlock, doUnlock, doUnlock, doUnlock, doUnlock, doUnlock, doUnlock,
	doForceUnlock,
	doIsLocked, doIsHeld, doHoldCount, doRemainTTL,
	doInterrupt, doInterrupt, doInterrupt,
	"expire", "expire",
	"outlast",
}

// drawnFencedOps are the operations that are drawn for a fenced lock.
var drawnFencedOps = append(slices.Clone(drawnOps), doGetToken, doTryLockToken, doTryLockToken, doTryLockToken)

// note updates the guess after an operation. waits reports that the operation waits if the lock is
// held.
func (g *guess) note(o Op, waits bool) {
	me := o.thread()
	switch o.Do {
	case doLock, doLockInterruptibly, doTryLock, doTryLockTimed, doTryLockToken:
		switch {
		case g.holder == me:
			g.levels++
		case g.holder == "":
			g.holder, g.levels = me, 1
		case waits:
			g.waiting = append(g.waiting, me)
		}
	case doUnlock:
		if g.holder != me {
			return
		}
		if g.levels--; g.levels == 0 {
			g.handOver()
		}
	case doForceUnlock:
		g.handOver()
	case doInterrupt:
		for i, w := range g.waiting {
			if w == me {
				g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
				return
			}
		}
	}
}

func (g *guess) handOver() {
	g.holder, g.levels = "", 0
	if len(g.waiting) > 0 {
		g.holder, g.levels = g.waiting[0], 1
		g.waiting = g.waiting[1:]
	}
}
