package strangers

import (
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
		Fair: p.Wake == HandOver || p.Wake == Head, Reentrant: p.Levels == Counted, State: p.state,
		Open: func(proc *locktest.Process) (locktest.Client, error) { return open(proc, p, m) },
		Kept: func(lock string) []string {
			keys := keysOf(lock)
			switch {
			case p.Fenced:
				return keys[1:2]
			case p.Wake == List:
				return keys[3:]
			}
			return nil
		},
	}
	if p.Wake == Head {
		s.Lease = 0
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
		for value := range keys.Hash(lock) { // there is one
			state.Owner, state.Expires = value, time.Duration(keys.ExpiresMs(lock))*time.Millisecond
		}
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
