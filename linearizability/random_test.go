package linearizability

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lockstep/internal/longtest"
	"lockstep/model"
)

// simLock is a correct lock that plays in small whole milliseconds.
type simLock struct {
	owner   string
	count   int
	token   int64
	expires int64 // -1: never
	lease   *Op   // the operation that started the current lease
	queue   []*simCall
}

type simCall struct {
	op      *Op
	arrive  int64
	giveUp  int64
	effect  bool
	unknown bool
}

// simulate plays up to most operations on a correct lock, and returns the history of its clients.
// If settled is set, the history has the true ends of the leases.
func simulate(rng *rand.Rand, most int, plain, settled, fair bool) []Op {
	l := &simLock{expires: -1}
	var ops []*Op
	threads := make([]*simCall, 2+rng.IntN(2))
	var strays []*simCall // calls for which nobody waits any more
	at := func(t int64) *int64 { t *= bruteUnit; return &t }
	leases := rng.IntN(3) > 0
	free := func(t int64) {
		if l.lease != nil && settled {
			l.lease.NeverExpires = true
		}
		l.owner, l.count, l.expires, l.lease = "", 0, -1, nil
	}
	starts := func(t int64, op *Op) {
		if l.lease != nil && settled {
			l.lease.NeverExpires = true
		}
		l.lease, l.expires = nil, -1
		if op.LeaseMs != nil {
			l.lease, l.expires = op, t+*op.LeaseMs
		}
	}
	expire := func(t int64) {
		if settled {
			l.lease.ExpireNs = at(t)
		}
		l.lease = nil
		free(t)
	}
	begin := func(t int64, thread int) *simCall {
		op := &Op{Process: string(rune('a' + thread)), Thread: 1, Lock: "l", CallNs: t * bruteUnit}
		c := &simCall{op: op, arrive: t + rng.Int64N(2), giveUp: t + rng.Int64N(6)}
		held := l.owner == op.owner()
		if !plain && leases && rng.IntN(2) == 0 {
			lease := 1 + rng.Int64N(4)
			op.LeaseMs = &lease
		}
		k := rng.IntN(12)
		switch {
		case plain && held, k < 4 && held:
			op.Op = OpRelease
			if plain {
				op.LeaseMs = nil
			}
		case plain || k < 7:
			op.Op = OpAcquire
		case k == 7:
			op.Op = OpRelease
		case k == 8:
			op.Op = OpRenew
			lease := 1 + rng.Int64N(4)
			op.LeaseMs = &lease
		case k == 9:
			op.Op, op.LeaseMs = OpForceRelease, nil
		case k == 10:
			op.Op, op.LeaseMs = OpIsLocked, nil
		default:
			op.Op, op.LeaseMs = OpHoldCount, nil
		}
		ops = append(ops, op)
		return c
	}
	take := func(t int64, c *simCall) { // c.op may take effect at t
		op := c.op
		mine := l.owner == op.owner()
		say := func(outcome string) {
			op.Outcome = outcome
			c.effect = true
			l.queue = slices.DeleteFunc(l.queue, func(q *simCall) bool { return q == c })
		}
		switch op.Op {
		case OpAcquire:
			if !slices.Contains(l.queue, c) {
				l.queue = append(l.queue, c)
				c.arrive, op.ArrivedNs = t, at(t)
			}
			// The head of the queue is the owner that arrived first.
			head := true
			for _, q := range l.queue {
				if fair && q != c && q.arrive < c.arrive {
					head = false
				}
			}
			switch {
			case mine:
				l.count++
				op.Token = new(int64)
				*op.Token = l.token
				starts(t, op)
				say(model.AnswerGranted)
			case l.owner == "" && head:
				l.owner, l.count = op.owner(), 1
				l.token++
				op.Token = new(int64)
				*op.Token = l.token
				starts(t, op)
				say(model.AnswerGranted)
			case !plain && !c.unknown && t >= c.giveUp && rng.IntN(4) == 0:
				say(model.AnswerFailed)
				op.ReturnNs = at(t)
			case !plain && t >= c.giveUp:
				say(model.AnswerBusy)
			}
		case OpRelease:
			switch {
			case !mine:
				say(model.AnswerNotHeld)
			case l.count > 1:
				l.count--
				if op.LeaseMs != nil {
					starts(t, op)
				}
				say(model.AnswerStillHeld)
			default:
				free(t)
				say(model.AnswerReleased)
			}
		case OpRenew:
			if mine {
				starts(t, op)
				say(model.AnswerRenewed)
			} else {
				say(model.AnswerNotHeld)
			}
		case OpForceRelease:
			if l.owner != "" {
				free(t)
				say(model.AnswerReleased)
			} else {
				say(model.AnswerNotHeld)
			}
		case OpIsLocked:
			say(fmt.Sprint(l.owner != ""))
		case OpHoldCount:
			count := int64(0)
			if mine {
				count = int64(l.count)
			}
			op.Count = &count
			say(model.AnswerOK)
		}
	}
	for t := int64(0); t < 14; t++ {
		late := rng.IntN(2) == 0
		if l.expires == t && !late {
			expire(t)
		}
		if !plain && len(ops) < most && rng.IntN(30) == 0 {
			ops = append(ops, &Op{Op: OpLost, Lock: "l", CallNs: at0(max(0, t-rng.Int64N(2))), ReturnNs: at(t + rng.Int64N(2))})
			free(t)
		}
		for range 2 {
			for _, i := range rng.Perm(len(threads)) {
				c := threads[i]
				if c == nil {
					if len(ops) < most && rng.IntN(2) == 0 {
						threads[i] = begin(t, i)
					}
					continue
				}
				if !c.effect && t >= c.arrive {
					take(t, c)
				}
				reads := c.op.Op == OpIsLocked || c.op.Op == OpHoldCount
				switch {
				case c.effect && c.op.Outcome == model.AnswerFailed:
					threads[i] = nil
				case !plain && !settled && !reads && rng.IntN(12) == 0: // its reply is lost
					c.unknown = true
					if !c.effect {
						strays = append(strays, c)
					}
					threads[i] = nil
				case c.effect && rng.IntN(2) == 0:
					c.op.ReturnNs = at(t)
					threads[i] = nil
				}
			}
			for _, c := range strays {
				if !c.effect && t >= c.arrive && rng.IntN(3) == 0 {
					take(t, c)
				}
			}
		}
		if l.expires == t {
			expire(t)
		}
	}
	for _, c := range threads {
		if c == nil {
			continue
		}
		if c.effect {
			c.op.ReturnNs = at(14)
		} else {
			c.unknown = true
		}
		if c.unknown {
			strays = append(strays, c)
		}
	}
	if l.lease != nil && settled {
		l.lease.NeverExpires = true
	}
	var seen []Op
	for _, op := range ops {
		if op.Outcome == "" && op.Op != OpLost || op.ReturnNs == nil {
			op.Outcome, op.ReturnNs, op.Token = model.AnswerUnknown, nil, nil
			if plain || op.Op == OpIsLocked || op.Op == OpHoldCount {
				continue
			}
		}
		if op.Op == OpAcquire && rng.IntN(5) == 0 {
			op.ArrivedNs = nil
		}
		seen = append(seen, *op)
	}
	slices.SortStableFunc(seen, func(a, b Op) int { return int(a.CallNs - b.CallNs) })
	return seen
}

func at0(t int64) int64 { return t * bruteUnit }

// mutate changes one thing of a history: an outcome, a time, a lease, an owner.
func mutate(rng *rand.Rand, ops []Op) {
	if len(ops) == 0 {
		return
	}
	op := &ops[rng.IntN(len(ops))]
	if op.Op == OpLost {
		op.Op, op.Process, op.Thread, op.Outcome = OpForceRelease, "a", 1, model.AnswerNotHeld
		return
	}
	switch rng.IntN(6) {
	case 0, 1, 2:
		words := outcomes[op.Op]
		if op.ReturnNs == nil {
			return
		}
		op.Outcome = words[rng.IntN(len(words))]
		if op.Outcome == model.AnswerUnknown {
			op.ReturnNs = nil
		}
		if op.Op == OpHoldCount {
			*op.Count = rng.Int64N(3)
		}
	case 3:
		if op.ReturnNs != nil {
			r := max(op.CallNs, *op.ReturnNs-at0(rng.Int64N(3)))
			op.ReturnNs = &r
			if op.ArrivedNs != nil && *op.ArrivedNs > r {
				op.ArrivedNs = nil
			}
		}
	case 4:
		op.LeaseMs, op.ExpireNs = nil, nil
		if rng.IntN(2) == 0 && (op.Op == OpAcquire || op.Op == OpRelease) {
			lease := 1 + rng.Int64N(3)
			op.LeaseMs = &lease
		}
	case 5:
		op.Process = string(rune('a' + rng.IntN(3)))
	}
}

// random returns a history that no lock produced.
func random(rng *rand.Rand) []Op {
	var ops []Op
	for range 1 + rng.IntN(6) {
		op := Op{Process: string(rune('a' + rng.IntN(3))), Thread: 1, Lock: "l", CallNs: at0(rng.Int64N(8))}
		ret := op.CallNs + at0(rng.Int64N(4))
		op.ReturnNs = &ret
		op.Op = []string{OpAcquire, OpAcquire, OpAcquire, OpRelease, OpRelease, OpRenew, OpForceRelease, OpIsLocked, OpHoldCount, OpLost, OpCrash}[rng.IntN(11)]
		if words := outcomes[op.Op]; words != nil {
			op.Outcome = words[rng.IntN(len(words))]
			if rng.IntN(2) == 0 {
				op.Outcome = words[0]
			}
		}
		if (op.Op == OpAcquire || op.Op == OpRelease) && rng.IntN(3) == 0 || op.Op == OpRenew {
			lease := 1 + rng.Int64N(4)
			op.LeaseMs = &lease
			op.Watchdog = op.Op == OpAcquire && rng.IntN(3) == 0
		}
		if op.startsLease() && op.Outcome != model.AnswerUnknown && !op.Watchdog && rng.IntN(8) == 0 {
			e := op.CallNs + at0(rng.Int64N(4))
			op.ExpireNs = &e
			op.NeverExpires = rng.IntN(3) == 0
		}
		if op.Op == OpAcquire {
			if rng.IntN(2) == 0 {
				token := rng.Int64N(4)
				op.Token = &token
			}
			if rng.IntN(2) == 0 {
				a := op.CallNs + at0(rng.Int64N((ret-op.CallNs)/bruteUnit+1))
				op.ArrivedNs = &a
			}
			op.Evicted = rng.IntN(10) == 0
		}
		if op.Op == OpHoldCount {
			count := rng.Int64N(3)
			op.Count = &count
		}
		if op.Outcome == model.AnswerUnknown {
			op.ReturnNs = nil
		}
		ops = append(ops, op)
	}
	slices.SortStableFunc(ops, func(a, b Op) int { return int(a.CallNs - b.CallNs) })
	return ops
}

// randomPlain returns plain holds of three threads at random times, some with re-entries. Every
// second history also has busy answers.
func randomPlain(rng *rand.Rand) []Op {
	busy := rng.IntN(2) == 0
	var ops []Op
	for thread := range 2 + rng.IntN(2) {
		t, levels := rng.Int64N(4), 0
		for range 1 + rng.IntN(4) {
			op := Op{Process: string(rune('a' + thread)), Thread: 1, Lock: "l", CallNs: at0(t), Op: OpRelease, Outcome: model.AnswerReleased}
			switch {
			case busy && levels == 0 && rng.IntN(2) == 0:
				op.Op, op.Outcome = OpAcquire, model.AnswerBusy
			case levels == 0 || rng.IntN(5) == 0:
				op.Op, op.Outcome = OpAcquire, model.AnswerGranted
				levels++
			case levels > 1:
				op.Outcome = model.AnswerStillHeld
				levels--
			default:
				levels--
			}
			t += rng.Int64N(4)
			ret := at0(t)
			op.ReturnNs = &ret
			t += rng.Int64N(2)
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, func(a, b Op) int { return int(a.CallNs - b.CallNs) })
	return ops
}

type tally struct{ histories, ok, broken, convicted, exact, busy, cut int }

// judge compares brute force, porcupine, monitor and Check on one history.
func (n *tally) judge(t *testing.T, ops []Op, specName string) (linearizable bool) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		for i, op := range ops {
			t.Logf("%d: %+v %s lease %v token %v arrived %v count %v expires %v never %v evicted %v watchdog %v", i, op.Process, op,
				deref(op.LeaseMs), deref(op.Token), deref(op.ArrivedNs), deref(op.Count), deref(op.ExpireNs), op.NeverExpires, op.Evicted, op.Watchdog)
		}
		t.Fatalf("history %d, %s: "+format, append([]any{n.histories, specName}, args...)...)
	}
	want := bruteForce(ops, specName, forever)
	n.histories++
	if want {
		n.ok++
	} else {
		n.broken++
	}
	spec, _ := model.SpecNamed(specName)
	opt := Options{Spec: specName, StepLimit: StepLimitDefault}
	crashes := map[string][]int64{}
	for _, op := range ops {
		if op.Op == OpCrash {
			crashes[op.Process] = append(crashes[op.Process], op.CallNs)
		}
	}
	if part := sorted(ops); len(part) > 0 {
		h := &history{lock: "l", ops: part, spec: spec, opt: opt, crashes: crashes, free: spec.Init()}
		if got := h.search(forever).verdict; (got == OK) != want || got == Undecided {
			fail("porcupine says %s, the brute force %v", got, want)
		}
		c, exact := h.monitor()
		if c != nil {
			n.convicted++
			if want {
				fail("the monitor convicts a history that is linearizable: %+v", c.overlap())
			}
		}
		if exact {
			n.exact++
			if slices.ContainsFunc(ops, func(op Op) bool { return op.Outcome == model.AnswerBusy }) {
				n.busy++
			}
			if (c == nil) != want {
				fail("the exact monitor found %v, the brute force %v", c, want)
			}
		}
	}
	for _, opt.stretchMin = range []int{stretchMin, 1} { // uncut, and cut wherever possible
		r := Check(ops, opt)
		if (r.Verdict() == OK) != want {
			fail("Check says %+v, the brute force %v; stretches of %d", r, want, opt.stretchMin)
		}
		if !want {
			n.prefix(ops, specName, r.Locks[0], fail)
		}
	}
	cut, _ := cuts(ops, specName)
	n.cut += cut
	return want
}

// sorted returns the operations of a history of one lock, in order of call.
func sorted(ops []Op) []*Op {
	var part []*Op
	for i := range ops {
		if ops[i].Op != OpCrash {
			part = append(part, &ops[i])
		}
	}
	slices.SortStableFunc(part, func(a, b *Op) int { return cmp.Compare(a.CallNs, b.CallNs) })
	return part
}

// cuts returns how often a history of one lock is cut if it is cut wherever possible, and how many
// of the cuts come while somebody waits.
func cuts(ops []Op, spec string) (all, waiting int) {
	c := NewChecker(Options{Spec: spec, stretchMin: 1})
	var l *lockHistory
	for i := range ops { // in order of call already
		before := math.MinInt
		if l != nil {
			before = len(l.ops)
		}
		c.Add(&ops[i])
		if l = c.locks[ops[i].Lock]; l != nil && len(l.ops) < before+1 && ops[i].Op != OpCrash && l.result.Verdict == OK {
			all++
			if len(l.ops) > 1 {
				waiting++
			}
		}
	}
	return all, waiting
}

// prefix compares the explanation of a broken history with the brute force: there must be an order
// up to the first operation that no order can place, and none with this operation.
func (n *tally) prefix(ops []Op, specName string, r LockResult, fail func(string, ...any)) {
	if r.First == nil || r.Reason == (Reason{}) {
		fail("nothing explains %+v", r)
	}
	before, at := 0, 0
	for _, op := range ops {
		if op.ExpireNs != nil {
			return // the end of a settled lease may come before the return
		}
		if op.Op == OpCrash || op.Outcome == model.AnswerFailed || op.open() {
			continue
		}
		if op.ret() < r.First.ret() {
			before++
		}
		if op.ret() == r.First.ret() {
			at++
		}
	}
	if at > 1 {
		return // either may count as the first
	}
	if r.Prefix != before {
		fail("the prefix is %d operations, %d returned before %s", r.Prefix, before, r.First)
	}
	if !bruteForce(ops, specName, r.First.ret()) {
		fail("what came before %s is broken already: %+v", r.First, r)
	}
	if bruteForce(ops, specName, r.First.ret()+1) {
		fail("%s can be placed: %+v", r.First, r)
	}
}

func deref(p *int64) any {
	if p == nil {
		return "-"
	}
	return *p
}

func TestBruteForcePorcupineAndMonitorAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 1))
	rounds := longtest.Size(t, 4_000, 26_000)
	var n tally
	for i := range rounds {
		spec := model.Specs[i%3]
		ops := simulate(rng, 6, i%5 == 0, i%4 == 1, spec == "fair")
		if i%3 != 1 { // the lock is fair; only then arrivals have a meaning
			for k := range ops {
				ops[k].ArrivedNs = nil
			}
		}
		if !n.judge(t, ops, spec) {
			n.judgeValid(t, ops, spec)
		}
		mutate(rng, ops)
		n.judge(t, ops, spec)
		n.judge(t, random(rng), spec)
		n.judge(t, randomPlain(rng), spec)
	}
	t.Logf("%d histories agreed: %d linearizable, %d broken; the monitor convicted %d and was exact on %d, %d with busy answers; %d cuts",
		n.histories, n.ok, n.broken, n.convicted, n.exact, n.busy, n.cut)
	if n.histories < 7*rounds/2 || n.broken < n.histories/5 || n.ok < n.histories/5 || n.convicted < rounds/6 || n.exact < rounds/3 || n.busy < rounds/30 || n.cut < rounds/8 {
		t.Errorf("the histories are too few or too much alike: %+v", n)
	}
}

// judgeValid checks that the history of a correct lock is linearizable.
func (n *tally) judgeValid(t *testing.T, ops []Op, spec string) {
	t.Helper()
	for _, l := range Check(ops, Options{Spec: spec}).Locks {
		t.Log(Sentence(l.Reason, model.Seconds))
	}
	for _, op := range ops {
		t.Logf("%s lease %v arrived %v expires %v never %v", op, deref(op.LeaseMs), deref(op.ArrivedNs), deref(op.ExpireNs), op.NeverExpires)
	}
	t.Fatalf("history %d, %s: what a right lock did is called broken", n.histories, spec)
}

// crashing gives some leases of a history a watchdog, and crashes processes, whose calls may still
// continue.
func crashing(rng *rand.Rand, ops []Op) []Op {
	for i := range ops {
		if op := &ops[i]; op.Op == OpAcquire && op.LeaseMs != nil && rng.IntN(2) == 0 {
			op.Watchdog = true
		}
	}
	for range 1 + rng.IntN(3) {
		of := ops[rng.IntN(len(ops))]
		ops = append(ops, Op{Process: of.Process, Op: OpCrash, CallNs: of.CallNs + rng.Int64N(3)*bruteUnit})
	}
	return ops
}

// The crash that bounds a lease may become known only later: the lease of a/1 may have ended before
// its release, which may therefore be placed after its next acquire.
func TestACrashIsHeededThatComesLater(t *testing.T) {
	ops := parse(t, `
		a/1 acquire 0..1 granted lease=9 watchdog
		c/1 is_locked 2..3 true
		a crash 5
		a/1 release 6..10 released
		a/1 acquire 10..40 granted
		b/1 acquire 12..14 granted
		b/1 release 20..22 released
		a/1 release 50..51 not_held`)
	for _, least := range []int{stretchMin, 1} {
		if r := Check(ops, Options{stretchMin: least}); r.Verdict() != OK {
			t.Errorf("in stretches of %d: %+v", least, r.Locks)
		}
	}
}

// TestCutsChangeNoVerdict compares the verdicts on longer histories, uncut and cut wherever
// possible. The brute force is too slow for them.
func TestCutsChangeNoVerdict(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	type count struct{ cuts, waiting, broken, ok int }
	got := map[string]*count{}
	rounds := longtest.Size(t, 2_000, 12_000)
	for i := range rounds {
		spec := model.Specs[i%3]
		n := got[spec]
		if n == nil {
			n = &count{}
			got[spec] = n
		}
		var ops []Op
		switch i / 3 % 4 {
		case 0:
			ops = contending(2+rng.IntN(4), 20+rng.IntN(40), rng.IntN(2) == 0, rng.IntN(3) == 0)
			for k := range rng.IntN(3) {
				mutate(rng, ops[k*len(ops)/3:])
			}
		default:
			ops = simulate(rng, 10+rng.IntN(30), i%5 == 0, i%4 == 1, spec == "fair")
			if rng.IntN(2) == 0 {
				mutate(rng, ops)
			}
		}
		if rng.IntN(4) == 0 {
			ops = crashing(rng, ops)
		}
		slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(a.CallNs, b.CallNs) })
		whole := Check(ops, Options{Spec: spec, StepLimit: 200_000})
		cut := Check(ops, Options{Spec: spec, StepLimit: 200_000, stretchMin: 1})
		if whole.Verdict() != Undecided && whole.Verdict() != cut.Verdict() {
			for i, op := range ops {
				t.Logf("%d: %s lease %v token %v arrived %v expires %v never %v", i, op, deref(op.LeaseMs), deref(op.Token), deref(op.ArrivedNs), deref(op.ExpireNs), op.NeverExpires)
			}
			t.Fatalf("history %d, %s: whole %+v\ncut %+v", i, spec, whole, cut)
		}
		for k := range whole.Locks {
			if whole.Verdict() != Undecided && whole.Locks[k].Ops != cut.Locks[k].Ops {
				t.Fatalf("history %d, %s: %d operations whole and %d cut", i, spec, whole.Locks[k].Ops, cut.Locks[k].Ops)
			}
		}
		if whole.Verdict() == OK {
			n.ok++
		} else {
			n.broken++
		}
		all, waiting := cuts(ops, spec)
		n.cuts += all
		n.waiting += waiting
	}
	for _, spec := range model.Specs {
		n := got[spec]
		t.Logf("%s: %d held, %d did not; %d cuts, %d of them with somebody waiting", spec, n.ok, n.broken, n.cuts, n.waiting)
		if n.cuts < 5*rounds/12 || n.waiting < rounds/6 || n.broken < rounds/60 || n.ok < rounds/12 {
			t.Errorf("%s: too few of a kind", spec)
		}
	}
}
