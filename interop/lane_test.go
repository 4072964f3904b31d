//go:build interop

package interop

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisson"
)

// lane runs one sequence at a time on both sides, with clients of its own.
type lane struct {
	rel           *redisson.Release
	library, port *side
	played        int
	dead          bool // a call on it never came back
}

// watchdogMS is lockWatchdogTimeout, where the release has it: no renewal
// comes within a sequence.
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
		switch a.Exception() {
		case "":
			done(a.Value())
		case "IllegalMonitorStateException":
			done(replyNotHeld)
		case "InterruptedException":
			done(replyInterrupted)
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

// newLane makes the clients of a lane; n tells it from others on the server.
func newLane(t testing.TB, server *Server, w *watch, l *Library, rel *redisson.Release, n int) *lane {
	t.Helper()
	la := &lane{rel: rel}
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
	watchdog := ""
	for _, c := range clientNames {
		a, err := l.Ask("client", Fields{"client", party.client(c), "address", server.Addr, "database", 0, "watchdog", watchdogMS})
		if err != nil {
			t.Fatal(err)
		}
		watchdog = a.Value()
		for _, thread := range threadIDs {
			a, err := l.Ask("thread", Fields{"client", party.client(c), "thread", thread})
			if err != nil {
				t.Fatal(err)
			}
			la.library.owners[a.Owner()] = fmt.Sprintf("%s:%d", c, thread)
		}
	}

	la.port, _ = newSide(fmt.Sprintf("g%d", n), 1)
	clients := map[string]*redisson.Client{}
	timeout, err := time.ParseDuration(watchdog + "ms")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clientNames {
		id := fmt.Sprintf("port%d%s", n, c)
		clients[c] = redisson.NewClient(connect(1), redisson.Config{Release: rel, ID: id, WatchdogTimeout: timeout})
		t.Cleanup(func() { _ = clients[c].Close() })
		for _, thread := range threadIDs {
			la.port.owners[fmt.Sprintf("%s:%d", id, thread)] = fmt.Sprintf("%s:%d", c, thread)
		}
	}
	la.port.party = newPort(clients, func() { time.Sleep(5 * time.Millisecond) })
	return la
}

// disagreement is where the two sides parted.
type disagreement struct {
	what    string
	at      int
	library []Step
	port    []Step
	// stalled: an operation took so long that times may differ for no other
	// reason.
	stalled bool
}

func (d disagreement) String() string {
	var b strings.Builder
	for i := range d.library {
		fmt.Fprintf(&b, "%2d %v\n     library: %v\n", i+1, d.library[i].Op, d.library[i])
		if i < len(d.port) {
			fmt.Fprintf(&b, "     port:    %v\n", d.port[i])
		}
	}
	fmt.Fprintf(&b, "the %s differ at %d\n", d.what, d.at+1)
	return b.String()
}

// stall is how long an operation may take, of which none waits for long.
// (The library's subscription took two to three seconds now and then, seen of 3.21.3.)
const stall = time.Second

// play runs a sequence on both sides, operation by operation, up to where they
// part. An error means that the lane is of no more use.
func (la *lane) play(seq Sequence) (steps []Step, d *disagreement, err error) {
	la.played++
	la.library.begin(seq.Kind, fmt.Sprintf("%s.%d.", la.library.world.(*ear).tag, la.played))
	la.port.begin(seq.Kind, fmt.Sprintf("%s.%d.", la.port.world.(*ear).tag, la.played))
	la.port.party.(*port).forget()
	var ours []Step
	stalled := false
	for i, op := range seq.Ops {
		began := time.Now()
		var theirs, mine Step
		var errs [2]error
		if op.Do == doInterrupt {
			// The library's threads can be looked at: they tell what an interrupt did.
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
				return steps, nil, fmt.Errorf("%s: %w\n%v", [2]string{"library", "port"}[who], e, disagreement{what: "sides", at: i, library: steps, port: ours})
			}
		}
		stalled = stalled || time.Since(began) > stall
		if what := theirs.difference(mine); what != "" {
			d = &disagreement{what, i, steps, ours, stalled}
			break
		}
	}
	for _, s := range []*side{la.library, la.port} {
		if err := s.finish(); err != nil {
			return steps, d, err
		}
		s.world.(*ear).forget()
	}
	return steps, d, nil
}
