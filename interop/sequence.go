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

// drawing is a sequence while it is drawn.
type drawing struct {
	t       *rapid.T
	fresh   int   // percent of calls with an object of their own
	second  int   // percent of operations on the second lock
	slept   int64 // milliseconds for which the operations so far wait
	guesses map[string]*guess
	ops     []Op
}

func drawOps(t *rapid.T, kind string) []Op {
	operations := drawnOps
	if kind == fenced {
		operations = drawnFencedOps
	}
	d := drawing{t: t, guesses: map[string]*guess{}}
	for _, n := range lockNames {
		d.guesses[n] = &guess{}
	}
	d.fresh = map[string]int{"one object": 0, "an object each call": 100, "either": 50}[d.pick("objects", []string{"one object", "an object each call", "either"})]
	if d.chance("two locks", 40) {
		d.second = 35
	}
	for length := rapid.IntRange(6, 15).Draw(t, "length"); len(d.ops) < length; {
		if o, ok := d.op(operations); ok {
			d.add(o)
		}
	}
	return d.ops
}

func (d *drawing) pick(what string, from []string) string {
	return rapid.SampledFrom(from).Draw(d.t, what)
}

func (d *drawing) chance(what string, percent int) bool {
	return rapid.IntRange(1, 100).Draw(d.t, what) <= percent
}

func (d *drawing) ms(what string, from []int64) int64 { return rapid.SampledFrom(from).Draw(d.t, what) }

func (d *drawing) caller() Op {
	return Op{Client: d.pick("client", clientNames), Thread: rapid.SampledFrom(threadIDs).Draw(d.t, "thread")}
}

func (d *drawing) lease() int64 {
	if d.chance("lease", 50) {
		return d.ms("lease of", longLeases)
	}
	return 0
}

// sleep reports whether the sequence may wait for so long, and counts the time if it may.
func (d *drawing) sleep(ms int64) bool {
	if d.slept+ms > 50 {
		return false
	}
	d.slept += ms
	return true
}

func (d *drawing) waits(thread string) bool {
	for _, g := range d.guesses {
		if slices.Contains(g.waiting, thread) {
			return true
		}
	}
	return false
}

// op draws an operation. It reports false if it drew one that the sequence has no use for.
func (d *drawing) op(operations []string) (Op, bool) {
	o := d.caller()
	o.Lock = lockNames[0]
	if d.chance("second lock", d.second) {
		o.Lock = lockNames[1]
	}
	g := d.guesses[o.Lock]
	o.Do = d.pick("operation", operations)
	if o.Do == doUnlock && g.holder != "" && d.chance("by the holder", 70) {
		o.Client, o.Thread = g.holder[:1], int(g.holder[2]-'0')
	}
	if o.Do == doInterrupt && len(g.waiting) > 0 {
		w := d.pick("whom", g.waiting)
		o.Client, o.Thread = w[:1], int(w[2]-'0')
	}
	if d.waits(o.thread()) != (o.Do == doInterrupt) && d.chance("another", 95) {
		return o, false
	}
	o.Fresh = o.Do != doInterrupt && d.chance("fresh", d.fresh)
	switch o.Do {
	case doLock, doLockInterruptibly:
		o.LeaseMS = d.lease()
	case doTryLockTimed, doTryLockToken:
		o.LeaseMS = d.lease()
		waits := []int64{0, 0, 3, shortMS, 30_000, 30_000, 70_000}
		if o.Do == doTryLockToken {
			// A shorter wait would be a race against the acknowledgement of the subscription,
			// and in a long one another thread of the library receives the message.
			waits = []int64{0, tokenWaitMS}
		}
		o.WaitMS = d.ms("wait", waits)
		if o.WaitMS < longMS && !d.sleep(o.WaitMS) {
			o.WaitMS = 0
		}
		if o.WaitMS%1000 == 0 && d.chance("seconds", 40) {
			o.Unit = "s"
		}
	case "expire":
		o.Do, o.LeaseMS = doTryLockTimed, shortMS
		return o, d.sleep(o.LeaseMS)
	case "outlast":
		o.Do, o.LeaseMS, o.Unseen = doTryLockTimed, 4*shortMS, true
		return o, d.sleep(o.LeaseMS)
	}
	return o, true
}

// add adds an operation, and behind a hold that another call outlasts, that call.
func (d *drawing) add(o Op) {
	d.ops = append(d.ops, o)
	g := d.guesses[o.Lock]
	switch {
	case o.Unseen:
		next := d.caller()
		next.Do, next.Lock, next.Outlasts = doLock, o.Lock, true
		if d.chance("timed", 40) {
			next.Do, next.WaitMS = doTryLockTimed, d.ms("wait", longWaits)
		}
		next.LeaseMS = d.lease()
		next.Fresh = d.chance("fresh", d.fresh)
		g.holder, g.levels = "", 0
		g.note(next, true)
		d.ops = append(d.ops, next)
	case o.LeaseMS == shortMS:
		if g.holder == "" || g.holder == o.thread() {
			g.holder, g.levels = "", 0
		}
	default:
		g.note(o, o.waitsLong())
	}
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
