package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// database has the sessions and locks upon which the replicas agree. Each replica has one, and the
// commands of the log change it. It knows no time: the master proposes the changes that time
// causes.
type database struct {
	applied  uint64 // the index of the last entry
	opened   int    // the number of sessions that were ever opened
	sessions map[string]*session
	locks    map[string]*lock
	flaws    flaws
}

// session is a session of a client.
type session struct {
	// Finished is the number of the last acquire whose hold is over. An acquire with this or a
	// smaller number is late.
	Finished uint64
}

// lock is a file that sessions hold. The file outlasts its holds.
type lock struct {
	Generation uint64 // counts how often the lock went from free to held
	Shared     bool
	Holders    []holder // in the order in which they came
	Delay      time.Duration
	// Failed says that a holder of this generation lost the lock by a failure.
	Failed bool
	// Delayed is the session that lost the lock, while the lock-delay keeps others off.
	Delayed string
}

// holder is a hold of a session.
type holder struct {
	Session string
	Number  uint64 // the number of the acquire
}

// command is an entry of the log.
type command struct {
	Request
	// ID is unique among the commands of a replica, and By is that replica.
	ID uint64 `json:"id"`
	By uint64 `json:"by"`
}

// The commands that the master proposes by itself.
const (
	expireSession = "EXPIRE_SESSION"
	endDelay      = "END_DELAY"
)

func newDatabase() *database {
	return &database{sessions: map[string]*session{}, locks: map[string]*lock{}}
}

func encodeCommand(c command) []byte {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("chubby: encoding a command: %v", err))
	}
	return text
}

func decodeCommand(text []byte) (c command) {
	if err := json.Unmarshal(text, &c); err != nil {
		panic(fmt.Sprintf("chubby: a command of the log is no JSON: %v", err))
	}
	return c
}

// apply executes a command.
func (d *database) apply(c command) Reply {
	s, l := d.sessions[c.Session], d.locks[c.Lock]
	if s == nil && c.Session != "" {
		return Reply{Error: Expired}
	}
	switch c.Do {
	case OpenSession:
		d.opened++
		id := fmt.Sprintf("session-%d", d.opened)
		d.sessions[id] = &session{}
		return Reply{Session: id}
	case CloseSession, expireSession:
		for _, l := range d.locks {
			if i := l.holding(c.Session); i >= 0 {
				l.leave(i, c.Do == expireSession && !d.flaws.noLockDelay)
			}
		}
		delete(d.sessions, c.Session)
		return Reply{}
	case Open:
		if l == nil {
			d.locks[c.Lock] = &lock{Delay: c.Delay}
		}
		return Reply{}
	}
	if l == nil {
		return Reply{Error: Invalid}
	}
	switch c.Do {
	case Acquire:
		return d.acquire(s, l, c)
	case Release:
		i := l.holding(c.Session)
		if i < 0 || l.Generation != c.Generation {
			return Reply{Error: NotHeld}
		}
		s.Finished = max(s.Finished, l.Holders[i].Number)
		l.leave(i, false)
	case SetLockDelay:
		l.Delay = c.Delay
	case endDelay:
		if l.Generation == c.Generation {
			l.Delayed = ""
		}
	default:
		panic("chubby: a command of unknown kind " + c.Do)
	}
	return Reply{}
}

// acquire grants a lock to a session if it may have it.
func (d *database) acquire(s *session, l *lock, c command) Reply {
	if i := l.holding(c.Session); i >= 0 {
		if l.Holders[i].Number == c.Number {
			return Reply{Generation: l.Generation}
		}
		return Reply{Error: Busy}
	}
	if c.Number <= s.Finished {
		return Reply{Error: NotHeld}
	}
	if !l.grantable(c.Shared) {
		return Reply{Error: Busy}
	}
	if len(l.Holders) == 0 {
		if !d.flaws.sameGeneration || l.Generation == 0 {
			l.Generation++
		}
		l.Shared, l.Failed = c.Shared, false
	}
	l.Holders = append(l.Holders, holder{c.Session, c.Number})
	return Reply{Generation: l.Generation}
}

// grantable reports whether a session that does not hold the lock can have it.
func (l *lock) grantable(shared bool) bool {
	return l.Delayed == "" && (len(l.Holders) == 0 || shared && l.Shared)
}

// holding returns the index of a session among the holders; -1 if it is none.
func (l *lock) holding(session string) int {
	return slices.IndexFunc(l.Holders, func(h holder) bool { return h.Session == session })
}

// leave ends a hold. The lock-delay begins when the last holder is gone and one of them
// failed.
func (l *lock) leave(i int, failed bool) {
	who := l.Holders[i].Session
	l.Holders = slices.Delete(l.Holders, i, i+1)
	l.Failed = l.Failed || failed
	if len(l.Holders) == 0 && l.Failed && l.Delay > 0 {
		l.Delayed = who
	}
}

// names returns the names of the locks, in order.
func (d *database) names() []string { return slices.Sorted(maps.Keys(d.locks)) }

// ids returns the sessions, in order.
func (d *database) ids() []string { return slices.Sorted(maps.Keys(d.sessions)) }
