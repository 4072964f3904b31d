//go:build interop

package interop

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// lane runs one sequence at a time on both sides, with clients of its own.
type lane struct {
	rel           *redisson.Release
	server        *Server
	watchdogMS    int64 // the lockWatchdogTimeout of the library
	library, port *side
	played        int
	dead          bool // a call on the lane never returned
}

// watchdogMS is lockWatchdogTimeout in releases that have this setting. It is so long that no
// renewal comes within a sequence.
const watchdogMS = 3_600_000

// theLibrary is the library as a party.
type theLibrary struct {
	l    *Library
	lane string
}

func (p theLibrary) client(name string) string { return p.lane + name }

func (p theLibrary) begin(kind string, op Op, key string, done func(string)) error {
	f := Fields{"client", p.client(op.Client), "thread", op.Thread, "kind", kind, "lock", key}
	method := op.Do
	unit, in := "MILLISECONDS", int64(1)
	if op.Unit == "s" {
		unit, in = "SECONDS", 1000
	}
	if op.Do == doTryLockTimed {
		method = doTryLock
	}
	if op.timed() {
		f = append(f, "wait", op.WaitMS/in)
	}
	if op.LeaseMS != 0 {
		f = append(f, "lease", op.LeaseMS/in)
	}
	if op.Fresh {
		f = append(f, "object", "fresh")
	}
	answer := p.l.Send("call", append(f, "op", method, "unit", unit))
	go func() {
		a := <-answer
		switch {
		case a.Exception() == "":
			done(a.Value())
		case a.Exception() == "IllegalMonitorStateException":
			done(replyNotHeld)
		case a.Exception() == "InterruptedException":
			done(replyInterrupted)
		case a.InterruptedUnderWay():
			done(replyUnderWay)
		default:
			done("error " + a["error"] + ": " + a["message"])
		}
	}()
	return nil
}

func (p theLibrary) interrupt(op Op) (ends, known bool, err error) {
	a, err := p.l.Ask("interrupt", Fields{"client", p.client(op.Client), "thread", op.Thread, "where", "latch"})
	if err != nil {
		return false, false, err
	}
	if v := a.Value(); v != "ended" && v != "waits" {
		return false, false, fmt.Errorf("%v: the thread is %s", op, v)
	}
	return a.Value() == "ended", true, nil
}

// park waits until a call waits for a message. The answer to its attempt is not enough.
func (p theLibrary) park(op Op) error {
	a, err := p.l.Ask("waits", Fields{"client", p.client(op.Client), "thread", op.Thread})
	if err == nil && a.Value() != "true" {
		err = fmt.Errorf("%v: the thread does not wait for a message", op)
	}
	return err
}

// newLane makes the clients of a lane; n distinguishes it from other lanes on the server.
func newLane(t testing.TB, server *Server, w *watch, l *Library, rel *redisson.Release, n int) *lane {
	t.Helper()
	la := &lane{rel: rel, server: server}
	connect := func(db int) *redis.Client {
		rdb := redis.NewClient(redisson.Options(&redis.Options{Addr: server.Addr, DB: db, Protocol: 2, PoolSize: 16}))
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	newSide := func(tag string, db int) (*side, *ear) {
		rdb := connect(db)
		e := w.join(tag, rdb)
		return &side{names: names{owners: map[string]string{}}, rdb: rdb, world: e, bell: e.ring, parks: parks(rel.Version)}, e
	}

	party := theLibrary{l, fmt.Sprintf("%d", n)}
	la.library, _ = newSide(fmt.Sprintf("j%d", n), 0)
	la.library.party = party
	for _, c := range clientNames {
		a, err := l.Ask("client", Fields{"client", party.client(c), "address", server.Addr, "database", 0, "watchdog", watchdogMS})
		if err != nil {
			t.Fatal(err)
		}
		if la.watchdogMS, err = strconv.ParseInt(a.Value(), 10, 64); err != nil {
			t.Fatal(err)
		}
		for _, thread := range threadIDs {
			a, err := l.Ask("thread", Fields{"client", party.client(c), "thread", thread})
			if err != nil {
				t.Fatal(err)
			}
			la.library.owners[a.Owner()] = fmt.Sprintf("%s:%d", c, thread)
		}
	}

	la.port, _ = newSide(fmt.Sprintf("g%d", n), 1)
	clients := portClients(rel, fmt.Sprintf("port%d", n), la.watchdogMS, false, lockimpl.Environment{}, la.port.owners, func() redis.UniversalClient { return connect(1) })
	for _, c := range clients {
		t.Cleanup(func() { _ = c.Close() })
	}
	la.port.party = newPort(clients, func() { time.Sleep(5 * time.Millisecond) })
	return la
}

// No operation of a sequence waits for long. If one takes longer than stall, a difference is a reason
// to play the sequence again. A stall of a second spreads over two operations at most.
//
// Some stalls do not come from the machine. If the time of a try of 3.21.3 ends just as its
// subscription is acknowledged, it may leave with PUNSUBSCRIBE although it subscribed with SUBSCRIBE
// (MONITOR shows it). The answer that it waits for then never comes, and the client's next
// subscription to the channel waits for a response timeout, which is 3 s here. Seed 1000867 of the
// fenced lock shows it, in about one of four plays.
const stall = 400 * time.Millisecond

// plays is the largest number of plays of a sequence. The plays after strictPlays allow times to
// differ by the length of the stalls, so that a difference in them has another reason, such as a race
// of a short wait.
const (
	plays       = 20
	strictPlays = 4
)

// compare plays a sequence until the sides agree, until they differ without a stall, or until no
// play is left. again is the number of plays after the first.
func (la *lane) compare(seq Sequence) (steps []Step, d *disagreement, again int, err error) {
	for ; ; again++ {
		var stalled time.Duration
		steps, d, stalled, err = la.play(seq, again >= strictPlays)
		if err != nil || d == nil || stalled == 0 || again == plays-1 {
			return steps, d, again, err
		}
	}
}

// play runs a sequence on both sides, operation by operation, until they differ. stalled is the sum
// of the times of the operations that stalled. A lenient play allows times to differ by that much
// more. After an error the lane is of no further use.
func (la *lane) play(seq Sequence, lenient bool) (steps []Step, d *disagreement, stalled time.Duration, err error) {
	la.begin(seq)
	var ours []Step
	for i, op := range seq.Ops {
		began := time.Now()
		var theirs, mine Step
		var errs [2]error
		if op.Do == doInterrupt {
			// The state of the library's threads shows the effect of an interrupt.
			theirs, errs[0] = la.library.step(op, nil)
			ends := false
			for _, e := range theirs.Ended {
				ends = ends || e.Thread == op.thread()
			}
			mine, errs[1] = la.port.step(op, &ends)
		} else {
			var both sync.WaitGroup
			both.Go(func() { theirs, errs[0] = la.library.step(op, nil) })
			both.Go(func() { mine, errs[1] = la.port.step(op, nil) })
			both.Wait()
		}
		steps, ours = append(steps, theirs), append(ours, mine)
		for who, e := range errs {
			if e != nil {
				return steps, nil, stalled, fmt.Errorf("%s: %w\n%v", [2]string{"library", "port"}[who], e, disagreement{"sides", i, steps, ours, "library", "port"})
			}
		}
		took := time.Since(began)
		// A short wait for a token is a race against the acknowledgement of the subscription.
		race := op.Do == doTryLockToken && op.WaitMS == tokenWaitMS && theirs.Reply != mine.Reply
		if took > stall || race {
			stalled += took
		}
		tolerance := int64(toleranceMS)
		if lenient {
			tolerance += stalled.Milliseconds()
		}
		if d = parted(steps, ours, tolerance); d != nil {
			break
		}
	}
	return steps, d, stalled, la.finish()
}

func (la *lane) begin(seq Sequence) {
	la.played++
	for _, s := range []*side{la.library, la.port} {
		s.begin(seq.Kind, fmt.Sprintf("%s.%d.", s.world.(*ear).tag, la.played))
	}
	clear(la.port.party.(*port).objects)
}

func (la *lane) finish() error {
	for _, s := range []*side{la.library, la.port} {
		if err := s.finish(); err != nil {
			return err
		}
		s.world.(*ear).forget()
	}
	return nil
}
