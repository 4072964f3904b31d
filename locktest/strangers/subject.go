package strangers

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// Subject returns the lock of a plumbing with a mutation.
func (p Plumbing) Subject(m Mutation) locktest.Subject {
	name := p.String()
	if m != Unchanged {
		name += "!" + string(m)
	}
	s := locktest.Subject{
		Name: name, Servers: redistest.Servers(p.Servers), Lease: lease, Renewed: p.Renewal != Never,
		Fair: p.Wake == HandOver || p.Wake == Head, Reentrant: p.Levels == Counted, Idempotent: p.Levels == Idempotent, State: p.state,
		Open: func(proc *locktest.Process) (locktest.Client, error) { return open(proc, p, m) },
		Kept: func(lock string) (kept []string) {
			keys := keysOf(lock)
			if p.Fenced {
				kept = append(kept, keys[1])
			}
			switch p.Wake {
			case List:
				kept = append(kept, keys[3])
			case HandOver: // with the tickets of processes that died
				kept = append(kept, keys[2])
			}
			return kept
		},
	}
	switch p.Wake {
	case Head:
		s.Lease = 0
	case Publish, List:
		s.Waits = fallback + fallback/4 + requestTime // a message is lost, and the waiter asks again after its longest pause
	}
	return s
}

// state reads what the servers hold.
func (p Plumbing) state(s locktest.Snapshot, lock string) *locktest.State {
	keys, names := redistest.Keys(s, 0), keysOf(lock)
	state := &locktest.State{}
	switch {
	case p.Wake == Head:
		if tickets := keys.List(lock); len(tickets) > 0 {
			state.Owner, state.Queue, state.Expires = tickets[0], tickets[1:], -1
		}
		return state
	case p.Release == Member:
		state.Owner, state.Expires = member(s, lock)
	default:
		if held := redistest.Value(nil)(s, lock); held != nil {
			state = held
		}
	}
	if p.Levels == Counted && state.Owner != "" {
		value, count, _ := strings.Cut(state.Owner, ":")
		state.Owner = value
		state.Count, _ = strconv.Atoi(count)
	}
	if p.Fenced {
		text, _ := keys.String(names[1])
		state.Token, _ = strconv.ParseInt(text, 10, 64)
	}
	if p.Wake == HandOver {
		state.Queue = keys.List(names[2])
	}
	return state
}

// member returns the one field of the hash that a majority of the servers has, and the instant at which the majority ends;
// "": there is none.
func member(s locktest.Snapshot, lock string) (value string, expires time.Duration) {
	ends := map[string][]int64{}
	for i := range s.Servers() {
		keys := redistest.Keys(s, i)
		for field := range keys.Hash(lock) {
			ends[field] = append(ends[field], keys.ExpiresMs(lock))
		}
	}
	majority := s.Servers()/2 + 1
	for field, at := range ends {
		if len(at) >= majority { // one field at most
			slices.Sort(at)
			return field, time.Duration(at[len(at)-majority]) * time.Millisecond
		}
	}
	return "", 0
}
