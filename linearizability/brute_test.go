package linearizability

// The brute force tries every order, instant by instant, as directly as the specification reads. It
// shares only the type Op with the search: here a lease is not an operation, but a deadline that
// the clock reaches.

type bruteState struct {
	owner string
	count int
	lease int // index of the operation whose lease is current, -1: none
	token int64
	// refused has the waiting operations during which another owner held the lock.
	refused uint32
}

type bruteKey struct {
	t     int64
	taken uint32
	st    bruteState
}

type brute struct {
	ops   []Op
	spec  string
	until int64 // operations that return then or later may have no effect
	end   int64
	seen  map[bruteKey]bool
}

const bruteUnit = 1_000_000 // the clock of the brute force ticks in milliseconds

// bruteForce reports whether some order is right.
func bruteForce(ops []Op, spec string, until int64) bool {
	b := &brute{spec: spec, until: until, seen: map[bruteKey]bool{}}
	for _, op := range ops {
		if op.CallNs <= until {
			b.ops = append(b.ops, op)
			b.end = max(b.end, op.CallNs)
			if op.ReturnNs != nil {
				b.end = max(b.end, *op.ReturnNs)
			}
		}
	}
	return b.from(0, 0, bruteState{lease: -1, token: -1})
}

func (b *brute) from(t int64, taken uint32, st bruteState) bool {
	for i := range b.ops {
		if st.owner != "" && st.owner != b.name(i) && b.waits(t, taken, i) {
			st.refused |= 1 << i
		}
	}
	key := bruteKey{t, taken, st}
	if b.seen[key] {
		return false
	}
	b.seen[key] = true

	done := true
	for i := range b.ops {
		if taken&(1<<i) == 0 && b.ops[i].Op != "crash" && b.ops[i].Outcome != "failed" && !b.optional(i) {
			done = false
		}
	}
	if done {
		return true
	}
	if t > b.end {
		return false
	}
	// One of the operations takes effect now.
	for i := range b.ops {
		if taken&(1<<i) != 0 || b.ops[i].Outcome == "failed" || t < b.ops[i].CallNs || b.ops[i].Op == "crash" {
			continue
		}
		if !b.optional(i) && t > *b.ops[i].ReturnNs {
			continue
		}
		next, right := b.effect(t, taken, st, i)
		if right && b.from(t, taken|1<<i, next) {
			return true
		}
	}
	// The current lease ends now.
	last := false
	if st.lease >= 0 {
		lo, hi, ends := b.window(st.lease)
		if ends && lo <= t && t <= hi {
			if b.from(t, taken, bruteState{lease: -1, token: st.token, refused: st.refused}) {
				return true
			}
			last = t == hi
		}
	}
	// Nothing more happens at this instant.
	if last {
		return false
	}
	for i := range b.ops {
		if taken&(1<<i) == 0 && b.ops[i].Op != "crash" && b.ops[i].Outcome != "failed" && !b.optional(i) && *b.ops[i].ReturnNs == t {
			return false
		}
	}
	return b.from(t+bruteUnit, taken, st)
}

func (b *brute) optional(i int) bool {
	return b.ops[i].Outcome == "unknown" || *b.ops[i].ReturnNs >= b.until
}

func (b *brute) name(i int) string { return b.ops[i].owner() }

// window returns the interval in which the lease of operation i may end.
func (b *brute) window(i int) (lo, hi int64, ends bool) {
	op := b.ops[i]
	if op.NeverExpires {
		return 0, 0, false
	}
	if op.ExpireNs != nil {
		lo, hi = *op.ExpireNs, *op.ExpireNs
	} else if op.LeaseMs == nil {
		return 0, 0, false
	} else {
		lo = op.CallNs + *op.LeaseMs*bruteUnit
		if op.ReturnNs != nil {
			hi = *op.ReturnNs + *op.LeaseMs*bruteUnit
		}
		if op.Watchdog {
			ends = false
			for _, c := range b.ops {
				if c.Op == "crash" && c.Process == op.Process && c.CallNs >= op.CallNs && !ends {
					ends = true
					lo = c.CallNs
					hi = max(c.CallNs, hi-*op.LeaseMs*bruteUnit) + *op.LeaseMs*bruteUnit
				}
			}
			if !ends {
				return 0, 0, false
			}
		}
	}
	if b.optional(i) || hi >= b.until {
		hi = 1 << 62
	}
	return lo, hi, true
}

func (b *brute) effect(t int64, taken uint32, st bruteState, i int) (bruteState, bool) {
	op := b.ops[i]
	mine := st.owner != "" && st.owner == b.name(i)
	free := bruteState{lease: -1, token: st.token, refused: st.refused}
	starts := func() bool { // its lease runs from now on
		st.lease = i
		_, hi, ends := b.window(i)
		return !ends || t <= hi
	}
	switch op.Op {
	case "acquire":
		if b.spec == "fair" && op.ArrivedNs != nil && t < *op.ArrivedNs {
			return st, false
		}
		if op.Outcome == "busy" {
			return st, st.owner != "" && !mine || b.spec == "fair" && (st.refused&(1<<i) != 0 || b.anotherWaits(t, taken, i))
		}
		if st.owner != "" && !mine {
			return st, false
		}
		if !mine {
			if b.spec == "fair" && b.overtakes(taken, i) {
				return st, false
			}
			if b.spec == "fenced" && op.Token != nil {
				if *op.Token <= st.token {
					return st, false
				}
				st.token = *op.Token
			}
		}
		st.owner = b.name(i)
		st.count++
		return st, starts()
	case "release":
		switch op.Outcome {
		case "released":
			return free, mine && st.count == 1
		case "not_held":
			return st, !mine
		case "unknown":
			if mine && st.count == 1 {
				return free, true
			}
		}
		if !mine || st.count < 2 {
			return st, false
		}
		st.count--
		return st, op.LeaseMs == nil || starts()
	case "renew":
		if op.Outcome == "not_held" {
			return st, !mine
		}
		return st, mine && starts()
	case "force_release":
		if op.Outcome == "not_held" {
			return st, st.owner == ""
		}
		return free, st.owner != ""
	case "lost":
		return free, true
	case "is_locked":
		return st, (op.Outcome == "true") == (st.owner != "")
	case "hold_count":
		if mine {
			return st, *op.Count == int64(st.count)
		}
		return st, *op.Count == 0
	}
	panic(op.Op)
}

func (b *brute) anotherWaits(t int64, taken uint32, i int) bool {
	for k := range b.ops {
		if k != i && b.waits(t, taken, k) {
			return true
		}
	}
	return false
}

// waits reports whether the operation is an acquire that has arrived and not taken effect.
func (b *brute) waits(t int64, taken uint32, i int) bool {
	w := b.ops[i]
	if w.Op != "acquire" || taken&(1<<i) != 0 {
		return false
	}
	since := w.CallNs
	if w.ArrivedNs != nil {
		since = *w.ArrivedNs
	}
	return since <= t && (b.optional(i) || t <= *w.ReturnNs)
}

func (b *brute) overtakes(taken uint32, i int) bool {
	for k, w := range b.ops {
		if w.Op == "acquire" && taken&(1<<k) == 0 && (w.Outcome == "granted" || w.Outcome == "busy") &&
			w.ArrivedNs != nil && b.ops[i].ArrivedNs != nil && !w.Evicted && *w.ArrivedNs < *b.ops[i].ArrivedNs {
			return true
		}
	}
	return false
}
