package interop

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// timedStory is what happens to one lock at which instants. Unlike a drawn sequence
// it may be about renewals, about leases that end while somebody waits, and about how
// long a call takes.
type timedStory struct {
	name string
	// kinds of lock that it is told of; nil: plain and fair.
	kinds []string
	// watchdog is lockWatchdogTimeout; 3.4.2 has 30 s whatever is set.
	watchdog time.Duration
	acts     []act
}

// act is what happens at one instant.
type act struct {
	at int64 // ms since the story began
	op Op
}

// What a story has besides the operations of sequences: somebody else removes the
// lock's key or its time to live, or the state is looked at.
const (
	doRemove  = "remove"
	doPersist = "persist"
	doLook    = "look"
)

// on makes an act of a thread: a1 is thread 1 of client a.
func on(at int64, thread, do string, set ...func(*Op)) act {
	o := Op{Client: thread[:1], Thread: int(thread[1] - '0'), Do: do, Lock: lockNames[0]}
	for _, f := range set {
		f(&o)
	}
	return act{at, o}
}

// to makes an act of nobody's thread.
func to(at int64, do string) act { return act{at, Op{Do: do, Lock: lockNames[0]}} }

func lease(ms int64) func(*Op) { return func(o *Op) { o.LeaseMS = ms } }
func wait(ms int64) func(*Op)  { return func(o *Op) { o.WaitMS = ms } }
func fresh(o *Op)              { o.Fresh = true }

const minute = 60_000

// timedStories leave half a second between two instants whose order matters, because
// the library's timers are up to 100 ms late, each time.
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
		to(6500, doLook), // renewed, or not
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
		to(2000, doRemove), // tells nobody
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

// told is what came of an act.
type told struct {
	AtMS  int64  `json:"at_ms"`
	Op    Op     `json:"op"`
	Reply string `json:"reply,omitempty"` // of a call; "" if it has not come back
	// BackMS is when the call came back, in ms since the story began.
	BackMS int64  `json:"back_ms,omitempty"`
	State  *State `json:"state,omitempty"` // of a look
}

func (x told) String() string {
	what := x.Op.String()
	if x.Op.Client == "" {
		what = x.Op.Do
	}
	switch {
	case x.State != nil:
		return fmt.Sprintf("%4d ms %s: %v", x.AtMS, what, *x.State)
	case x.Reply != "":
		return fmt.Sprintf("%4d ms %s: %s at %d ms", x.AtMS, what, x.Reply, x.BackMS)
	}
	return fmt.Sprintf("%4d ms %s", x.AtMS, what)
}

// backToleranceMS is how far the instants may be apart at which a call comes back here
// and there: a few ticks of the library's timers, and a busy machine.
const backToleranceMS = 450

func (x told) agrees(y told) bool {
	return x.AtMS == y.AtMS && x.Op == y.Op && x.Reply == y.Reply &&
		max(x.BackMS-y.BackMS, y.BackMS-x.BackMS) <= backToleranceMS &&
		(x.State == nil) == (y.State == nil) && (x.State == nil || x.State.equal(*y.State))
}

// timedTelling is one story of one kind of lock, as it was told.
type timedTelling struct {
	Story      string `json:"story"`
	Kind       string `json:"kind"`
	WatchdogMS int64  `json:"watchdog_ms"` // that the teller has
	Told       []told `json:"told"`
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

// eachTimed gives each story of each kind.
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

// tellTimed does what a story says at its instants and gives what came of it until half
// a second after the last one.
func tellTimed(p party, rdb redis.UniversalClient, n names, kind string, s timedStory) ([]told, error) {
	var mu sync.Mutex
	out := make([]told, len(s.acts))
	began := time.Now()
	since := func() int64 { return time.Since(began).Milliseconds() }
	ctx := context.Background()
	for i, a := range s.acts {
		time.Sleep(time.Until(began.Add(time.Duration(a.at) * time.Millisecond)))
		mu.Lock()
		out[i] = told{AtMS: a.at, Op: a.op}
		mu.Unlock()
		key := n.prefix + a.op.Lock
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
		case doInterrupt:
			_, _, err = p.interrupt(a.op)
		default:
			err = p.begin(kind, a.op, key, func(reply string) {
				mu.Lock()
				defer mu.Unlock()
				if out != nil {
					out[i].Reply, out[i].BackMS = reply, since()
				}
			})
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", a.op, err)
		}
	}
	time.Sleep(500 * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	all := out
	out = nil // calls that come back later are not told of
	return all, nil
}

const (
	timedFormat  = 1
	timedCommand = "go test -tags interop ./interop -run TestLibraryTellsAsKept -record"
)

func timedPath(version string) string { return filepath.Join("testdata", "timed", version+".jsonl") }

// timedRecording is what the library told: a file in testdata/timed, a header and then a
// telling per line.
type timedRecording struct {
	Format      int    `json:"format"`
	WrittenBy   string `json:"written_by"`
	Redisson    string `json:"redisson"`
	RedisServer string `json:"redis_server"`
	tellings    []timedTelling
}

func readTimed(version string) (timedRecording, error) {
	var r timedRecording
	text, err := os.ReadFile(timedPath(version))
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
			return r, fmt.Errorf("%s:%d: %w", timedPath(version), i+1, err)
		}
	}
	if r.Format != timedFormat || r.Redisson != version {
		return r, fmt.Errorf("%s is format %d of redisson %s, not %d of %s; write it anew with `%s`", timedPath(version), r.Format, r.Redisson, timedFormat, version, timedCommand)
	}
	return r, nil
}

// find gives the kept telling of a story, which must be of the same acts.
func (r timedRecording) find(t *testing.T, s timedStory, kind string) timedTelling {
	t.Helper()
	for _, x := range r.tellings {
		if x.Story != s.name || x.Kind != kind {
			continue
		}
		if !slices.EqualFunc(x.Told, s.acts, func(x told, a act) bool { return x.AtMS == a.at && x.Op == a.op }) {
			t.Fatalf("%s tells another story %q; write it anew with `%s`", timedPath(r.Redisson), s.name, timedCommand)
		}
		return x
	}
	t.Fatalf("%s lacks the story %q of the %s lock; write it anew with `%s`", timedPath(r.Redisson), s.name, kind, timedCommand)
	panic("unreachable")
}

// The port tells each story on miniredis, in a bubble, as the library told it.
func TestPortTellsAsKept(t *testing.T) {
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			kept, err := readTimed(rel.Version)
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

// timedWatchdog is the watchdog timeout that a client of the release has in a story.
func timedWatchdog(rel *redisson.Release, s timedStory) int64 {
	if rel.Watchdog == redisson.WatchdogTimer {
		return redisson.DefaultWatchdog.Milliseconds()
	}
	return s.watchdog.Milliseconds()
}

func tellInBubble(t *testing.T, rel *redisson.Release, kind string, s timedStory) (x timedTelling, err error) {
	// go-redis keeps timers in a package-level pool; a timer of one bubble
	// kills the next one. Two collections empty the pool.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		var open []*redis.Client
		connect := func() redis.UniversalClient {
			rdb := redis.NewClient(redisson.Options(&redis.Options{
				Addr: "192.0.2.1:6379", Protocol: 2, DisableIdentity: true, DialerRetries: 1,
				Dialer: func(context.Context, string, string) (net.Conn, error) {
					c, err := m.Dial()
					return &slow{Conn: c}, err
				},
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			}))
			open = append(open, rdb)
			return rdb
		}
		x = timedTelling{Story: s.name, Kind: kind, WatchdogMS: timedWatchdog(rel, s)}
		n := names{owners: map[string]string{}, prefix: "timed."}
		rdb := connect()
		clients := portClients(rel, "", x.WatchdogMS, lockimpl.Environment{}, n.owners, connect)
		x.Told, err = tellTimed(newPort(clients, func() {}), rdb, n, kind, s)
		for _, c := range clients {
			_ = c.Close()
		}
		for _, c := range open {
			_ = c.Close()
		}
		m.Close()
		time.Sleep(time.Hour) // whatever was still to come
	})
	return x, err
}
