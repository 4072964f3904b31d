package redistest_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// watched is a setnx whose watchdog renews the lease until the unlock.
type watched struct {
	lock  setnx         // which has no TryLock here
	once  bool          // the first error ends the renewals
	quit  bool          // the first error closes lost, too
	idle  bool          // it never renews, and closes lost shortly before the lease is over
	bare  bool          // it renews by PEXPIRE, without its value
	asks  bool          // it compares its value before, by a command of its own
	anew  bool          // it takes a free lock again, too
	again bool          // it sends a renewal without an answer again, once
	tell  bool          // it counts the lease from the last request that began or renewed it, and closes lost at the end
	rest  time.Duration // from one renewal to the next; 0: a third of the lease
	stop  context.CancelFunc
	lost  chan struct{} // closed by a renewal that meets another's hold, or none
}

func (l *watched) Lock(ctx context.Context) error {
	err := l.lock.Lock(ctx)
	if err == nil {
		var held context.Context
		held, l.stop = context.WithCancel(context.Background())
		l.lost = make(chan struct{})
		go l.renew(held, l.lock.value, l.lost)
	}
	return err
}

func (l *watched) renew(held context.Context, value string, lost chan struct{}) {
	if l.idle {
		select {
		case <-held.Done():
		case <-time.After(lease - time.Second):
			close(lost)
		}
		return
	}
	renewed := func(time.Time) {}
	tell := sync.OnceFunc(func() { close(lost) })
	if l.tell {
		var end context.CancelFunc
		held, end = context.WithCancel(held)
		over := time.AfterFunc(time.Until(l.lock.asked.Add(lease)), func() { end(); tell() })
		renewed = func(asked time.Time) { over.Reset(time.Until(asked.Add(lease))) }
		defer over.Stop()
	}
	for {
		select {
		case <-held.Done():
			return
		case <-time.After(cmp.Or(l.rest, lease/3)):
			asked := time.Now()
			if l.asks {
				if v, err := l.lock.rdb.Get(held, l.lock.name).Result(); v != value {
					if err == nil || err == redis.Nil || errors.Is(err, redis.ErrClosed) {
						return
					}
					continue
				}
			}
			if l.bare {
				if ok, err := l.lock.rdb.PExpire(held, l.lock.name, lease).Result(); !ok && err == nil || errors.Is(err, redis.ErrClosed) {
					return
				}
				continue
			}
			script := compareAndExpire
			if l.anew {
				script = takeAgain
			}
			send := func() (int, error) {
				return l.lock.rdb.Eval(held, script, []string{l.lock.name}, value, lease.Milliseconds()).Int()
			}
			n, err := send()
			if err != nil && l.again && held.Err() == nil {
				n, err = send()
			}
			if err == nil && n == 0 || err != nil && l.quit && held.Err() == nil {
				tell()
				return
			}
			if err == nil && held.Err() == nil {
				renewed(asked)
			}
			if l.once && err != nil || errors.Is(err, redis.ErrClosed) {
				return
			}
		}
	}
}

func (l *watched) Unlock(ctx context.Context) error {
	if l.stop != nil {
		l.stop()
	}
	return l.lock.Unlock(ctx)
}

// A renewal is about the lock whose value it carries. Without that a history has the
// lease end while the watchdog keeps it, and a hold longer than two leases breaks it.
func TestARenewedLock(t *testing.T) {
	locktest.Run(t, renewedSubject("renewed", func(l *watched) locktest.Lock { return l }), locktest.Options{Runs: 50, Faults: "none"})
}

// renewedSubject is a lock with a watchdog.
func renewedSubject(name string, as func(*watched) locktest.Lock) locktest.Subject {
	s := subjectOf(name, false)
	s.Renewed = true
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		opt := redistest.Options(p, 0)
		opt.ReadTimeout = lease / 10 // so that a renewal that got no answer is followed by another in time
		return anyClient{redis.NewClient(opt), func(rdb *redis.Client, name string) locktest.Lock {
			return as(&watched{lock: setnx{rdb: rdb, name: name}})
		}}, nil
	}
	return s
}

// telling is a watched that tells its holder what the watchdog learns.
type telling struct{ *watched }

func (l telling) Lost() <-chan struct{} { return l.lost }

// mute is one that never tells anything. Its channels are nil, or new ones.
type mute struct {
	*watched
	none bool
}

func (l mute) Lost() <-chan struct{} {
	if l.none {
		return nil
	}
	return make(chan struct{})
}

// timid is one that gives a hold up after half of a lease, although it renews the lease.
type timid struct{ *watched }

func (timid) Lost() <-chan struct{} {
	lost := make(chan struct{})
	time.AfterFunc(lease/2, func() { close(lost) })
	return lost
}

// A holder that is told of the end of its hold believes in it no longer.
func TestALockThatTells(t *testing.T) {
	locktest.Run(t, renewedSubject("tells", func(l *watched) locktest.Lock { l.tell = true; return telling{l} }), locktest.Options{Runs: longtest.Size(t, 15, 300), Faults: "operator,server"})
}

// A lock that loses its hold to one renewal that failed is wrong, unless it renews no more
// often than once a lease.
func TestALockThatRenewsUntilAnError(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "renews until an error", nil, "-lockstep.runs=1")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "renews until an error breaks mutual-exclusion: ", "renewal-that-fails-once")
	for _, name := range []string{"renews twice in a lease until an error", "renews four times in a lease until an error"} {
		text, _ := outcome(t, t.TempDir(), name, nil, "-lockstep.runs=1", "-test.run=^TestJudged$/stories")
		mustContain(t, text, "--- FAIL: TestJudged/stories/renewal-that-fails-once")
	}
	s := wrong["renews until an error"]
	s.RenewEvery = s.Lease
	locktest.Run(t, s, locktest.Options{Runs: 1, Faults: "none"})
}

// A lock that renews its lease when it is almost over loses its hold with one message.
func TestALockThatRenewsLate(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "renews late", nil, "-lockstep.runs=1")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "renews late breaks want: ", "fingerprint: story.renewal-that-fails-once.want",
		"hint: the first renewal was sent 4.38s after the hold began, and by RenewEvery one is due each 1.67s; a lock that renews at least twice in its lease of 5s can lose one and keep its hold")
	s := wrong["renews late"]
	s.RenewEvery = lease * 7 / 8
	locktest.Run(t, s, locktest.Options{Runs: 1, Faults: "none"})
}

// A client that waits for the answer to a lost renewal until the lease is over loses the hold, too. Renewals that end with an
// error do so without a wait.
func TestALockThatWaitsForALostRenewal(t *testing.T) {
	const hint = " was lost, and the next was sent only 6.67s later, as if the client had waited for the answer; give the client a shorter time limit, such as the ReadTimeout of go-redis, or"
	text, passed := outcome(t, t.TempDir(), "waits for a lost renewal", nil, "-lockstep.runs=1")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "fingerprint: story.renewal-that-fails-once.", hint)
	text, _ = outcome(t, t.TempDir(), "renews until an error", nil, "-lockstep.runs=1")
	if strings.Contains(text, "as if the client had waited") {
		t.Errorf("a hint about a client that does not wait:\n%s", text)
	}
}

// The same lock is wrong if its channel closes while the server keeps the hold.
func TestALockThatTellsOfAnEndThatIsNone(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "gives up at half of the lease", nil, "-lockstep.runs=8")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "gives up at half of the lease breaks lease: ", "and the server held it since", "nothing had disturbed it", "told-of-a-hold-that-stays")
}

// A lock is wrong if it never renews a hold, and tells its holder in time that it has none.
func TestALockThatNeverRenewsAndTells(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "never renews and tells", nil, "-lockstep.runs=1")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "never renews and tells breaks lease: ", "and the server held it since", "nothing had disturbed it", "fingerprint: story.hold-of-three-leases.lease")
}

// So is one that gives its hold up after one renewal that failed, while the server keeps the hold,
// unless it renews too seldom to send another.
func TestALockThatTellsAfterAnError(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "tells after an error", nil, "-lockstep.runs=1")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "tells after an error breaks want: ", "wanted [released unknown], got not_held", "fingerprint: story.renewal-that-fails-once.want")
	s := wrong["tells after an error"]
	s.RenewEvery = s.Lease
	locktest.Run(t, s, locktest.Options{Runs: 1, Faults: "none"})
}

// A lock that gives its hold up after two errors keeps it if one message is lost. It is wrong, since its process may be cut off
// for less than half of a lease.
func TestALockThatTellsAfterTwoErrors(t *testing.T) {
	text, _ := outcome(t, t.TempDir(), "tells after two errors", nil, "-lockstep.runs=1")
	mustContain(t, text, "tells after two errors breaks want: ", "wanted [released unknown], got not_held", "fingerprint: story.holder-that-is-cut-off-for-a-while.want")
	if n := strings.Count(text, "fingerprint: "); n != 1 {
		t.Errorf("%d findings, and the story makes one:\n%s", n, text)
	}
	right := renewedSubject("sends a renewal again", func(l *watched) locktest.Lock { l.again, l.tell = true, true; return telling{l} })
	locktest.Run(t, right, locktest.Options{Runs: 1, Faults: "none"})
}

// The same lock is wrong if its channel stays open.
func TestALockThatSaysThatItTellsAndDoesNot(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "tells nothing", nil, "-lockstep.runs=1")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "tells nothing breaks lease: ", "was not told that the hold was gone", "fingerprint: story.hold-that-is-gone.lease",
		"hint: the channel that Lost returned for the hold of a/1 stayed open. Lost is asked once after each grant")
}
