package interop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisson"
)

// Step is the outcome of one operation.
type Step struct {
	Op Op `json:"op"`
	// Reply is the call's result or exception, or blocked if the call waits for a message. An
	// operation that makes no sense at its place is left out: busy (the thread is in a call), idle
	// (there is nothing to interrupt), or skipped.
	Reply string `json:"reply"`
	// Ended has the calls of other threads that returned meanwhile.
	Ended     []Ended  `json:"ended,omitempty"`
	Published []string `json:"published,omitempty"` // channel and payload
	State     *State   `json:"state,omitempty"`     // nil: not read
}

// Ended is a blocked call that returned.
type Ended struct {
	Thread string `json:"thread"`
	Reply  string `json:"reply"`
}

const (
	replyBlocked = "blocked"
	replyBusy    = "busy"
	replyIdle    = "idle"
	replySkipped = "skipped"

	replyNotHeld     = "not_held"
	replyInterrupted = "interrupted"
	// replyUnderWay: the interrupt came during an attempt, whose script still runs.
	replyUnderWay = "interrupted while a command was under way"
)

// difference names the part in which two steps of one operation differ; "" means that they agree.
// Two times agree if they differ by at most ms.
func (s Step) difference(o Step, ms int64) string {
	switch {
	case !sameReply(s.Op, s.Reply, o.Reply, ms):
		return "replies"
	case !slices.Equal(s.Ended, o.Ended):
		return "calls that came back"
	case !slices.Equal(s.Published, o.Published):
		return "published messages"
	case (s.State == nil) != (o.State == nil) || s.State != nil && !s.State.equalWithin(*o.State, ms):
		return "states"
	}
	return ""
}

func sameReply(op Op, a, b string, ms int64) bool {
	switch op.Do {
	case doForceUnlock:
		if a == "ok" || b == "ok" {
			return true // 3.4.2: a method without result
		}
	case doRemainTTL:
		x, errX := strconv.ParseInt(a, 10, 64)
		y, errY := strconv.ParseInt(b, 10, 64)
		return errX == nil && errY == nil && within(ms)(x, y) && (x < 0) == (y < 0) || a == b
	}
	return a == b
}

func (s Step) String() string {
	var b strings.Builder
	b.WriteString(s.Reply)
	for _, e := range s.Ended {
		fmt.Fprintf(&b, "; %s came back: %s", e.Thread, e.Reply)
	}
	for _, p := range s.Published {
		fmt.Fprintf(&b, "; published %s", p)
	}
	if s.State != nil {
		fmt.Fprintf(&b, "; %v", *s.State)
	}
	return b.String()
}

// party is the side that runs the calls: the library or the port.
type party interface {
	// begin makes the call; done gets its reply, on any goroutine.
	begin(kind string, op Op, key string, done func(reply string)) error
	// interrupt interrupts a call that waits for a message, and reports whether this ended the
	// call. known is false if the party cannot know that before the call returns.
	interrupt(op Op) (ends, known bool, err error)
}

// world is the place where a party runs: a server that is watched, or a bubble.
type world interface {
	// settle returns when every open call has returned or waits for a message.
	settle(s *side) error
	// heard returns the messages since its last call.
	heard() []*redis.Message
	// pass lets time pass until a hold ends that has ttl left.
	pass(s *side, ttl time.Duration) error
	nowMS() int64
}

// side is one party in its world, in the middle of a sequence.
type side struct {
	names
	kind  string
	rdb   redis.UniversalClient
	party party
	world world

	mu   sync.Mutex // of the calls' outcome
	bell func()     // called when a call returns
	open []*call    // in the order in which they began
	last State
	prev Step
	// parks is the result of the function parks.
	parks bool
	// leased has the clients' own lock objects that were called with a lease.
	leased map[string]bool
}

// call is one call under way.
type call struct {
	op          Op
	key         string
	owner       string // as on the server
	mustEnd     bool
	interrupted bool
	before      int // attempts of the owner before the call
	due         int // attempts that the owner must have made before the call waits
	done        bool
	reply       string
}

func (s *side) ownerOf(thread string) string {
	for owner, name := range s.owners {
		if name == thread {
			return owner
		}
	}
	panic("interop: no owner for thread " + thread)
}

func (s *side) callOf(thread string) *call {
	for _, c := range s.open {
		if c.op.thread() == thread {
			return c
		}
	}
	return nil
}

func (s *side) waitsOn(lock string, but string) bool {
	return slices.ContainsFunc(s.open, func(c *call) bool { return c.op.Lock == lock && c.op.Client != but })
}

// begin forgets the sequence before and names the locks of the next one.
func (s *side) begin(kind, prefix string) {
	s.kind, s.prefix = kind, prefix
	s.last, s.prev, s.leased = State{}, Step{}, map[string]bool{}
}

// parks reports whether the fair lock of a release may park a waiter for ever. In 3.11.1 to 3.31.0 a
// queued waiter is told the remaining time of the hold that it found when it came. If it asks again
// just after that time, and just before the key is gone, the time is negative, and it waits for a
// message that may never come. So it is chance whether a waiter outlasts a lease.
func parks(version string) bool { return version == "3.12.4" || version == "3.21.3" }

// racesForField reports whether an unlock races with a waiter for the lease field of a lock object.
// The unlock resets the field when its answer comes. A waiter on the same object, which the message
// wakes, sends the field or writes its own lease there. Chance decides which comes first, in the
// library and in the port.
func (s *side) racesForField(op Op) bool {
	return op.Do == doUnlock && !op.Fresh && s.leased[op.Client+op.Lock] && slices.ContainsFunc(s.open, func(c *call) bool {
		return c.op.Client == op.Client && c.op.Lock == op.Lock && !c.op.Fresh
	})
}

// step plays one operation. ends says whether the interrupt ended the call on the other side; nil
// if that is unknown.
func (s *side) step(op Op, ends *bool) (Step, error) {
	st := Step{Op: op}
	var mine *call
	var err error
	switch busy := s.callOf(op.thread()); {
	case op.Do == doInterrupt && busy == nil:
		st.Reply = replyIdle
	case op.Do != doInterrupt && busy != nil:
		st.Reply = replyBusy
	case s.skips(op, busy):
		st.Reply = replySkipped
	case op.Do == doInterrupt:
		st.Reply = "ok"
		err = s.interrupt(op, busy, ends)
	default:
		st.Reply = replyBlocked
		mine, err = s.start(op)
	}
	if err != nil {
		return st, err
	}
	if err := s.world.settle(s); err != nil {
		return st, fmt.Errorf("%v: %w", op, err)
	}
	for _, c := range s.ended() {
		if c == mine {
			st.Reply = c.reply
		} else {
			st.Ended = append(st.Ended, Ended{c.op.thread(), c.reply})
		}
	}
	if p, ok := s.party.(interface{ park(Op) error }); ok && s.kind != fair {
		// The waiters of a client are woken in the order in which they began to wait.
		for _, c := range s.open {
			if err := p.park(c.op); err != nil {
				return st, err
			}
		}
	}
	for _, m := range s.world.heard() {
		st.Published = append(st.Published, s.plain(m.Channel)+" "+m.Payload)
	}
	if !op.Unseen {
		state, err := s.look()
		if err != nil {
			return st, err
		}
		s.last, st.State = state, &state
	}
	s.prev = st
	return st, nil
}

// skips reports whether chance would decide what an operation does. busy is the call that an interrupt meets.
func (s *side) skips(op Op, busy *call) bool {
	switch {
	case op.Do == doInterrupt:
		// Behind a dead waiter of a free fair lock, some releases ask again and again. Chance would
		// decide at which point the interrupt meets the call. A second interrupt makes lock() throw
		// IllegalStateException; a context ends only once.
		return len(s.last.Locks[busy.op.Lock].Holds) == 0 || busy.interrupted
	case op.waitsLong() && s.kind != fair && s.waitsOn(op.Lock, op.Client):
		// A message would wake one waiter of each client, and chance would decide which gets the
		// lock.
		return true
	case s.racesForField(op), op.Outlasts && s.kind == fair && s.parks:
		return true
	}
	return op.Outlasts && (s.prev.Reply != "true" || s.prev.Op.thread() == op.thread() || s.waitsOn(op.Lock, "") || len(s.last.Locks[op.Lock].Queue) > 0)
}

// interrupt interrupts the call busy; see step.
func (s *side) interrupt(op Op, busy *call, ends *bool) error {
	busy.interrupted = true
	end, known, err := s.party.interrupt(op)
	if err != nil {
		return err
	}
	if !known && ends != nil {
		end = *ends
		if !end {
			time.Sleep(20 * time.Millisecond) // the call may return although it should not
		}
	}
	busy.mustEnd = end
	// If the call waits again, it waits behind the others.
	s.open = append(slices.DeleteFunc(s.open, func(c *call) bool { return c == busy }), busy)
	return nil
}

// start begins the call of an operation.
func (s *side) start(op Op) (*call, error) {
	c := &call{op: op, key: s.prefix + op.Lock, owner: s.ownerOf(op.thread()), mustEnd: !op.waitsLong() || op.Outlasts, due: 2}
	if w, ok := s.world.(interface{ attempts(*call) int }); ok {
		c.before = w.attempts(c)
	}
	s.open = append(s.open, c)
	if op.LeaseMS != 0 && !op.Fresh {
		s.leased[op.Client+op.Lock] = true
	}
	return c, s.party.begin(s.kind, op, c.key, func(reply string) {
		s.mu.Lock()
		c.done, c.reply = true, reply
		s.mu.Unlock()
		s.bell()
	})
}

// ended removes the calls that are done from the open ones, and returns them.
func (s *side) ended() (done []*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []*call
	for _, c := range s.open {
		if c.done {
			done = append(done, c)
		} else {
			open = append(open, c)
		}
	}
	s.open = open
	return done
}

// look reads the state. Before, it waits until nothing in the state is about to change.
func (s *side) look() (State, error) {
	ctx := context.Background()
	for began := time.Now(); ; {
		state, err := look(ctx, s.rdb, s.names, s.world.nowMS)
		if err != nil {
			return state, err
		}
		switch {
		case state.soonOver():
			for _, l := range state.Locks {
				if len(l.Holds) > 0 && l.TTL < longMS/10 {
					if err := s.world.pass(s, time.Duration(l.TTL)*time.Millisecond); err != nil {
						return state, err
					}
				}
			}
		case hasLatch(state) && time.Since(began) < time.Second:
			// The latch is deleted in the background.
			if err := s.world.settle(s); err != nil {
				return state, err
			}
		default:
			return state, nil
		}
	}
}

// finish ends every call, and leaves no hold, no waiter and no renewal behind.
func (s *side) finish() error {
	for tries := 0; len(s.open) > 0; tries++ {
		if tries > 100 {
			return fmt.Errorf("%v of %v does not come back", s.open[0].op, s.prefix)
		}
		if err := s.drop(); err != nil {
			return err
		}
		c := s.open[0]
		for _, channel := range []string{redisson.ChannelName(c.key), redisson.WaiterChannel(c.key, c.owner)} {
			if err := s.rdb.Publish(context.Background(), channel, "0").Err(); err != nil {
				return err
			}
		}
		if err := s.world.settle(s); err != nil {
			return fmt.Errorf("at the end of the sequence %s: %w", s.prefix, err)
		}
		s.mu.Lock()
		s.open = slices.DeleteFunc(s.open, func(c *call) bool { return c.done })
		s.mu.Unlock()
	}
	for _, client := range clientNames {
		for _, lock := range lockNames {
			if _, err := s.step(Op{Client: client, Thread: threadIDs[0], Do: doForceUnlock, Lock: lock, Unseen: true}, nil); err != nil {
				return err
			}
		}
	}
	return s.drop()
}

func (s *side) drop() error {
	ctx := context.Background()
	keys, err := s.rdb.Keys(ctx, "*"+s.prefix+"*").Result()
	if err == nil && len(keys) > 0 {
		err = s.rdb.Del(ctx, keys...).Err()
	}
	return err
}

// disagreement is the first difference between two runs of a sequence.
type disagreement struct {
	what           string
	at             int
	one, other     []Step
	oneIs, otherIs string
}

// parted returns the first step in which the library and the port differ, or nil. Two times agree
// if they differ by at most ms.
func parted(library, port []Step, ms int64) *disagreement {
	for i := range library {
		if i >= len(port) {
			return nil
		}
		if what := library[i].difference(port[i], ms); what != "" {
			return &disagreement{what, i, library[:i+1], port[:i+1], "library", "port"}
		}
	}
	return nil
}

func (d disagreement) String() string {
	var b strings.Builder
	for i := range d.one {
		fmt.Fprintf(&b, "%2d %v\n     %-8s %v\n", i+1, d.one[i].Op, d.oneIs, d.one[i])
		if i < len(d.other) {
			fmt.Fprintf(&b, "     %-8s %v\n", d.otherIs, d.other[i])
		}
	}
	fmt.Fprintf(&b, "the %s differ at %d\n", d.what, d.at+1)
	return b.String()
}
