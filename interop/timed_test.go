package interop

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// timedStory has the acts on one lock, with their instants. Unlike a drawn sequence, it may test
// renewals, leases that end while a call waits, and the durations of calls.
type timedStory struct {
	name string
	// kinds of lock on which it is played; nil: plain and fair.
	kinds []string
	// watchdog is lockWatchdogTimeout; 3.4.2 always has 30 s.
	watchdog time.Duration
	acts     []act
}

// act is an action at one instant.
type act struct {
	at int64 // ms since the story began
	op Op
}

// The acts of a story besides the operations of sequences: an outsider removes the lock's key or
// its time to live, the state is read, or a client crashes.
const (
	doRemove  = "remove"
	doPersist = "persist"
	doLook    = "look"
	doCrash   = "crash"
)

// timedParty is a party whose calls can be interrupted at any stage, and whose clients
// can crash.
type timedParty interface {
	party
	// interruptNow interrupts the call that a thread is in.
	interruptNow(op Op) error
	// crash ends a client as the end of its process would: its connections close, and it sends
	// nothing more.
	crash(client string) error
}

// on makes an act of a thread: a1 is thread 1 of client a.
func on(at int64, thread, do string, set ...func(*Op)) act {
	o := Op{Client: thread[:1], Thread: int(thread[1] - '0'), Do: do, Lock: lockNames[0]}
	for _, f := range set {
		f(&o)
	}
	return act{at, o}
}

// to makes an act that no thread does.
func to(at int64, do string) act { return act{at, Op{Do: do, Lock: lockNames[0]}} }

func lease(ms int64) func(*Op) { return func(o *Op) { o.LeaseMS = ms } }
func wait(ms int64) func(*Op)  { return func(o *Op) { o.WaitMS = ms } }
func fresh(o *Op)              { o.Fresh = true }

const minute = 60_000

// In timedStories, two instants whose order matters are half a second apart, because each timer of
// the library is up to 100 ms late.
var timedStories = []timedStory{
	{name: "a renewal that finds no key, after a lease", watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doTryLockTimed, lease(minute)),
		to(200, doRemove),
		on(400, "a1", doTryLock),
		to(600, doLook),
		to(800, doRemove),
		on(2800, "a1", doTryLock), // the renewal came at 1400
		to(3000, doLook),
	}},
	{name: "a renewal that finds another's hold, after a lease", watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doTryLockTimed, lease(minute)),
		to(200, doRemove),
		on(400, "a1", doTryLock),
		to(600, doRemove),
		on(800, "b1", doTryLockTimed, lease(40_000)),
		to(2600, doRemove),
		on(2800, "a1", doTryLock),
		to(3000, doLook),
	}},
	{name: "a renewal that finds its hold, after a lease", watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doTryLockTimed, lease(minute)),
		to(200, doRemove),
		on(400, "a1", doTryLock),
		on(2200, "a1", doTryLock), // the renewal came at 1400
		to(2400, doLook),
	}},
	{name: "a renewal of one lock object, a lease of another", watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doTryLockTimed, lease(minute)),
		to(200, doRemove),
		on(400, "a1", doTryLock, fresh),
		to(600, doLook),
		to(800, doRemove),
		on(2800, "a1", doTryLock),
		to(3000, doLook),
	}},
	{name: "renewals that go on", watchdog: 1500 * time.Millisecond, acts: []act{
		on(0, "a1", doLock),
		on(4000, "b1", doTryLock),
		to(4200, doLook),
		on(4400, "a1", doUnlock),
		on(4600, "b1", doTryLock),
	}},
	{name: "lock() waits without bound and is interrupted, then the lock is unlocked", kinds: unbounded, watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock, lease(minute)),
		to(200, doPersist),
		on(400, "b1", doLock),
		on(900, "b1", doInterrupt),
		on(1500, "a1", doUnlock),
		to(2000, doLook),
		to(6500, doLook), // shows whether the hold was renewed
		on(6700, "b1", doUnlock),
		to(7000, doLook),
	}},
	{name: "lock(lease) waits without bound and is interrupted, then the lock is unlocked", kinds: unbounded, watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock, lease(minute)),
		to(200, doPersist),
		on(400, "b1", doLock, lease(minute)),
		on(900, "b1", doInterrupt),
		on(1500, "a1", doUnlock),
		to(2000, doLook),
		on(2200, "b1", doTryLock),
		to(2400, doLook),
	}},
	{name: "lock() waits without bound and is interrupted, then nothing happens", kinds: unbounded, watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock, lease(minute)),
		to(200, doPersist),
		on(400, "b1", doLock),
		on(900, "b1", doInterrupt),
		to(2000, doRemove), // publishes no message
		to(3000, doLook),
	}},
	{name: "lock() waits without bound, then the lock is unlocked", kinds: unbounded, watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock, lease(minute)),
		to(200, doPersist),
		on(400, "b1", doLock),
		on(1500, "a1", doUnlock),
		to(2000, doLook),
	}},
	{name: "lockInterruptibly() waits without bound and is interrupted", kinds: unbounded, watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock, lease(minute)),
		to(200, doPersist),
		on(400, "b1", doLockInterruptibly),
		on(900, "b1", doInterrupt),
		on(1500, "a1", doUnlock),
		to(2000, doLook),
	}},
	{name: "tryLock(wait) is told no bound and is interrupted", kinds: unbounded, watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock, lease(minute)),
		to(200, doPersist),
		on(400, "b1", doTryLockTimed, wait(4000)),
		on(900, "b1", doInterrupt),
		on(1500, "a1", doUnlock),
		to(2000, doLook),
	}},
	{name: "lock() is interrupted past the first time to live that it was told", watchdog: 1500 * time.Millisecond, acts: []act{
		on(0, "a1", doLock),
		on(300, "b1", doLock),
		on(3000, "b1", doInterrupt),
		on(3600, "a1", doUnlock),
		to(4800, doLook),
		on(5500, "b1", doUnlock),
		to(6000, doLook),
	}},
	{name: "lock() is interrupted within the time to live that it was told", watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock, lease(minute)),
		on(300, "b1", doLock),
		on(900, "b1", doInterrupt),
		on(1500, "a1", doUnlock),
		to(2000, doLook),
	}},
	// The fair lock of 3.12.4 and 3.21.3 may tell a waiter that asks at the end of the lease
	// to wait without bound: chance decides (see parks).
	{name: "a lease ends while another client waits", kinds: []string{plain}, watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock, lease(1000)),
		on(300, "b1", doTryLockTimed, wait(5000), lease(minute)),
		to(2000, doLook),
		on(2200, "a1", doUnlock),
		to(2400, doLook),
	}},
	{name: "waiters of two clients are served in order", kinds: []string{fair}, watchdog: 3 * time.Second, acts: []act{
		on(0, "a1", doLock),
		on(200, "b1", doTryLockTimed, wait(9000), lease(minute)),
		on(400, "a2", doLock),
		on(600, "b2", doTryLockTimed, wait(700)),
		to(800, doLook),
		on(2000, "a1", doUnlock),
		to(2500, doLook),
		on(3000, "b1", doUnlock),
		to(3500, doLook),
	}},
	{name: "a wait of several polls that runs out", watchdog: 900 * time.Millisecond, acts: []act{
		on(0, "a1", doLock),
		on(300, "b1", doTryLockTimed, wait(3000)),
		to(4500, doLook),
	}},
}

// unbounded are the kinds of lock on which a key without time to live makes a waiter wait
// without bound in every release. (The fair lock of 3.43.0 and 4.7.0 asks again at
// once, and chance decides where an interrupt meets it.)
var unbounded = []string{plain}

// told is the outcome of an act.
type told struct {
	AtMS  int64  `json:"at_ms"`
	Op    Op     `json:"op"`
	Reply string `json:"reply,omitempty"` // of a call; "" if it has not come back
	// BackMS is when the call came back, in ms since the story began.
	BackMS int64 `json:"back_ms,omitempty"`
	// LateMS is how much later than AtMS the act took effect: when the server saw the first command
	// of a call, or when another act began. It is 0 in recordings that do not have it.
	LateMS int64  `json:"late_ms,omitempty"`
	State  *State `json:"state,omitempty"` // of a look
}

func (x told) String() string {
	what := x.Op.String()
	switch {
	case x.Op.Client == "":
		what = x.Op.Do + " " + x.Op.Lock
	case x.Op.Do == doCrash:
		what = x.Op.Do + " of " + x.Op.Client
	}
	switch {
	case x.State != nil:
		return fmt.Sprintf("%4d ms %s: %v", x.AtMS, what, *x.State)
	case x.Reply != "":
		return fmt.Sprintf("%4d ms %s: %s at %d ms", x.AtMS, what, x.Reply, x.BackMS)
	}
	return fmt.Sprintf("%4d ms %s", x.AtMS, what)
}

// backToleranceMS is the largest difference between the returns of a call on the two sides: a few
// ticks of the library's timers, and a busy machine.
const backToleranceMS = 450

func (x told) agrees(y told) bool { return x.agreesWithin(y, backToleranceMS, toleranceMS) }

// agreesWithin compares two records of an act, with one tolerance for the returns of calls and one
// for the times of the state, in ms.
func (x told) agreesWithin(y told, back, state int64) bool {
	return x.AtMS == y.AtMS && x.Op == y.Op && sameReply(x.Op, x.Reply, y.Reply, toleranceMS) &&
		within(back)(x.BackMS, y.BackMS) &&
		(x.State == nil) == (y.State == nil) && (x.State == nil || x.State.equalWithin(*y.State, state))
}

// timedTelling is the record of one story on one kind of lock.
type timedTelling struct {
	Story      string `json:"story"`
	Kind       string `json:"kind"`
	WatchdogMS int64  `json:"watchdog_ms"` // the watchdog timeout of the party
	// Disturbed: the machine was too busy each time, and there is no record.
	Disturbed bool   `json:"disturbed,omitempty"`
	Told      []told `json:"told"`
}

func (x timedTelling) agrees(y timedTelling) bool {
	return x.WatchdogMS == y.WatchdogMS && slices.EqualFunc(x.Told, y.Told, told.agrees)
}

func (x timedTelling) String() string {
	var b strings.Builder
	for _, a := range x.Told {
		fmt.Fprintf(&b, "    %v\n", a)
	}
	return b.String()
}

// eachTimed calls f for each story and each of its kinds.
func eachTimed(f func(s timedStory, kind string)) {
	for _, s := range timedStories {
		of := s.kinds
		if of == nil {
			of = []string{plain, fair}
		}
		for _, kind := range of {
			f(s, kind)
		}
	}
}

// tellTimed plays the acts of a story at their instants, and returns the outcome up to half a
// second after the last one. If late is not nil, it returns how much later the act at an index
// begins.
func tellTimed(p timedParty, rdb redis.UniversalClient, n names, kind string, s timedStory, late func(int) time.Duration) (outcome, error) {
	var mu sync.Mutex
	out := make([]told, len(s.acts))
	x := outcome{under: map[string]Op{}}
	under := map[string]Op{} // calls under way, by thread; a reply after the end of the story changes it, too
	interrupted, crashed := map[string]bool{}, map[string]bool{}
	over := false
	began := time.Now()
	x.began = began
	since := func() int64 { return time.Since(began).Milliseconds() }
	ctx := context.Background()
	for i, a := range s.acts {
		due := began.Add(time.Duration(a.at) * time.Millisecond)
		if late != nil {
			due = due.Add(late(i))
		}
		time.Sleep(time.Until(due))
		acted := time.Now()
		thread, key := a.op.thread(), n.prefix+a.op.Lock
		mu.Lock()
		x.stall.note(acted.Sub(due), "an act began late")
		out[i] = told{AtMS: a.at, Op: a.op, LateMS: acted.Sub(due).Milliseconds()}
		_, busy := under[thread]
		mu.Unlock()
		var err error
		switch a.op.Do {
		case doRemove:
			err = rdb.Del(ctx, key).Err()
		case doPersist:
			err = rdb.Persist(ctx, key).Err()
		case doLook:
			var state State
			state, err = look(ctx, rdb, n, func() int64 { return time.Now().UnixMilli() })
			out[i].State = &state
		case doCrash:
			mu.Lock()
			crashed[a.op.Client] = true
			mu.Unlock()
			err = p.crash(a.op.Client)
		case doInterrupt:
			switch {
			case !busy:
				out[i].Reply = replyIdle
			case interrupted[thread]: // a second interrupt has no counterpart in Go
				out[i].Reply = replySkipped
			default:
				interrupted[thread] = true
				err = p.interruptNow(a.op)
			}
		default:
			if busy {
				out[i].Reply = replyBusy
				break
			}
			interrupted[thread] = false
			mu.Lock()
			under[thread] = a.op
			mu.Unlock()
			err = p.begin(kind, a.op, key, func(reply string) {
				mu.Lock()
				defer mu.Unlock()
				delete(under, thread)
				if over || crashed[a.op.Client] {
					return // publishes no message
				}
				out[i].Reply, out[i].BackMS = reply, since()
				if !a.op.mayWait() {
					x.stall.note(time.Since(acted), "a call that waits for nobody took long")
				}
			})
		}
		if err != nil {
			return outcome{}, fmt.Errorf("%v: %w", a.op, err)
		}
		mu.Lock()
		x.stall.note(time.Since(acted), "an act took long")
		mu.Unlock()
	}
	time.Sleep(500 * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	over = true
	x.told = out
	for thread, op := range under {
		if !crashed[op.Client] {
			x.under[thread] = op
		}
	}
	return x, nil
}

// outcome is the outcome of a story.
type outcome struct {
	told  []told
	began time.Time
	// stall is the longest time by which an act began too late, or for which an act lasted that
	// waits for nobody.
	stall lateness
	under map[string]Op // calls of living clients that are still under way, by thread
}

// lateness is the longest time by which the machine was late in a story, and the act at which that
// was.
type lateness struct {
	long time.Duration
	why  string
}

func (s *lateness) note(long time.Duration, why string) {
	if long > s.long {
		*s = lateness{long, why}
	}
}

// mayWait reports whether the call may wait for others.
func (o Op) mayWait() bool {
	return o.Do == doLock || o.Do == doLockInterruptibly || o.timed() && o.WaitMS > 0
}

const (
	timedFormat  = 1
	timedCommand = "go test -tags interop ./interop -run TestLibraryTellsAsKept -record"
)

func timedPath(version string) string { return filepath.Join("testdata", "timed", version+".jsonl") }

// timedRecording has the library's records of stories: a file in testdata/timed, with a header and one
// telling per line.
type timedRecording struct {
	Format      int    `json:"format"`
	WrittenBy   string `json:"written_by"`
	Redisson    string `json:"redisson"`
	RedisServer string `json:"redis_server"`
	tellings    []timedTelling
	path        string
}

func readTimed(path, version string) (timedRecording, error) {
	r := timedRecording{path: path}
	text, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("no stories of redisson %s; write them with `%s`: %w", version, timedCommand, err)
	}
	for i, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		if i == 0 {
			err = strictly(line, &r)
		} else {
			r.tellings = append(r.tellings, timedTelling{})
			err = strictly(line, &r.tellings[i-1])
		}
		if err != nil {
			return r, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	if r.Format != timedFormat || r.Redisson != version {
		return r, fmt.Errorf("%s is format %d of redisson %s, not %d of %s; write it anew with `%s`", path, r.Format, r.Redisson, timedFormat, version, timedCommand)
	}
	return r, nil
}

// find returns the kept record of a story, which must have the same acts.
func (r timedRecording) find(t *testing.T, s timedStory, kind string) timedTelling {
	t.Helper()
	for _, x := range r.tellings {
		if x.Story != s.name || x.Kind != kind {
			continue
		}
		if !x.Disturbed && !slices.EqualFunc(x.Told, s.acts, func(x told, a act) bool { return x.AtMS == a.at && x.Op == a.op }) {
			t.Fatalf("%s tells another story %q; write it anew with `%s`", r.path, s.name, r.WrittenBy)
		}
		return x
	}
	t.Fatalf("%s lacks the story %q of the %s lock; write it anew with `%s`", r.path, s.name, kind, r.WrittenBy)
	panic("unreachable")
}

// On miniredis, in a bubble, the port plays each story as the library did.
func TestPortTellsAsKept(t *testing.T) {
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			kept, err := readTimed(timedPath(rel.Version), rel.Version)
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			eachTimed(func(s timedStory, kind string) {
				want := kept.find(t, s, kind)
				got, err := tellInBubble(t, rel, kind, s)
				if err != nil {
					t.Fatalf("redisson %s, %s lock, %s: %v", rel.Version, kind, s.name, err)
				}
				if compared++; !got.agrees(want) {
					t.Errorf("redisson %s, %s lock, %s:\n  library:\n%v  port:\n%v", rel.Version, kind, s.name, want, got)
				}
			})
			if compared != len(kept.tellings) {
				t.Errorf("%s tells %d stories, and %d are known; write it anew with `%s`", timedPath(rel.Version), len(kept.tellings), compared, timedCommand)
			}
		})
	}
}

// timedWatchdog returns the watchdog timeout of a client of the release in a story.
func timedWatchdog(rel *redisson.Release, s timedStory) int64 {
	if rel.Watchdog == redisson.WatchdogTimer {
		return redisson.DefaultWatchdog.Milliseconds()
	}
	return s.watchdog.Milliseconds()
}

func tellInBubble(t *testing.T, rel *redisson.Release, kind string, s timedStory) (timedTelling, error) {
	all, err := tellAllInBubble(t, rel, kind, []timedStory{s}, func(int) []*chance { return []*chance{nil} })
	if err != nil {
		return timedTelling{}, err
	}
	return all[0][0], nil
}

// chance has the values that may differ between two runs of one story: when the timers' wheels
// began to turn, and, except in run 0, how late acts begin and how long answers take. Without a
// chance, timers are exact.
type chance struct {
	seed, telling uint64
	// late is how late each act begins; nil: drawn.
	late []time.Duration
}

// varies reports whether acts and answers may be late.
func (c *chance) varies() bool { return c != nil && c.telling > 0 }

// lengths returns a function that draws lengths up to its argument, for one user of chance.
func (c *chance) lengths(user int) func(limit time.Duration) time.Duration {
	r := rand.New(rand.NewPCG(c.seed, c.telling<<16+uint64(user)))
	var mu sync.Mutex
	return func(limit time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(r.Int64N(int64(limit)))
	}
}

// tellAllInBubble plays stories with the port on miniredis, in a bubble: each once for each of its
// chances.
func tellAllInBubble(t *testing.T, rel *redisson.Release, kind string, stories []timedStory, chances func(n int) []*chance) (all [][]timedTelling, err error) {
	// go-redis keeps timers in a package-level pool; a timer of one bubble
	// kills the next one. Two collections empty the pool.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(*testing.T) {
		for n, s := range stories {
			var tellings []timedTelling
			for _, c := range chances(n) {
				x, failed := tellByPort(rel, kind, s, c)
				if failed != nil {
					err = fmt.Errorf("redisson %s, %s lock, %s: %w", rel.Version, kind, s.name, failed)
				}
				tellings = append(tellings, x)
			}
			all = append(all, tellings)
		}
		time.Sleep(time.Hour) // whatever was still to come
	})
	return all, err
}

var wheelFlag = flag.Bool("wheel", true, "the port's timers fire at the ticks of a wheel, in drawn stories")

// tellByPort plays a story with the port. It must run in a bubble.
func tellByPort(rel *redisson.Release, kind string, s timedStory, c *chance) (timedTelling, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	var open []*redis.Client
	connect := func() redis.UniversalClient {
		client := len(open)
		var dialled atomic.Int64
		rdb := redis.NewClient(redisson.Options(&redis.Options{
			Addr: "192.0.2.1:6379", Protocol: 2, DisableIdentity: true, DialerRetries: 1,
			ReadBufferSize: 2048, WriteBufferSize: 2048, // there are many of them
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				conn, err := m.Dial()
				x := &slow{Conn: conn}
				// The first client reads the state, and is never late.
				if c.varies() && client > 0 {
					x.late = c.lengths(client<<8 + int(dialled.Add(1)))
				}
				return x, err
			},
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}))
		open = append(open, rdb)
		return rdb
	}
	x := timedTelling{Story: s.name, Kind: kind, WatchdogMS: timedWatchdog(rel, s)}
	n := names{owners: map[string]string{}, prefix: "timed."}
	rdb := connect()
	env := lockimpl.Environment{}
	if c != nil {
		draw := c.lengths(len(open) << 8)
		env.Jitter = func(_ lockimpl.Owner, limit time.Duration) time.Duration { return draw(limit) }
	}
	clients := portClients(rel, "", x.WatchdogMS, c != nil && *wheelFlag, env, n.owners, connect)
	var late func(int) time.Duration
	switch {
	case !c.varies():
	case c.late != nil:
		late = func(act int) time.Duration { return c.late[act] }
	default:
		draw := c.lengths(0)
		late = func(int) time.Duration { return draw(drawnShift) }
	}
	told, err := tellTimed(newPort(clients, func() {}), rdb, n, kind, s, late)
	x.Told = told.told
	for _, c := range clients {
		_ = c.Close()
	}
	for _, c := range open {
		_ = c.Close()
	}
	m.Close()
	return x, err
}
