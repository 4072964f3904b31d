package bare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/internal/oneprocessor"
	"lockstep/lockimpl"
	"lockstep/lockimpl/redisclient"
)

func init() { oneprocessor.Set() }

var background = context.Background()

// bench is a miniredis behind in-memory pipes, in a bubble.
type bench struct {
	t       *testing.T
	m       *miniredis.Miniredis
	start   time.Time
	before  func(words string) // called before a command is sent
	lose    string             // the reply to a command that contains this is lost
	cutOff  bool               // no connection can be made any more
	clients []*redis.Client
}

func bubble(t *testing.T, f func(*bench)) {
	t.Helper()
	// go-redis keeps timers in a package-level pool; a timer of one bubble
	// kills the next one. Two collections empty the pool.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, m: miniredis.NewMiniRedis(), start: time.Now()}
		b.m.ClockTTL(true)
		defer func() {
			for _, c := range b.clients {
				_ = c.Close()
			}
			b.m.Close()
		}()
		f(b)
	})
}

func (b *bench) lock(kind Kind, id string) lockimpl.Lock { return b.lockRetrying(kind, id, -1) }

func (b *bench) lockRetrying(kind Kind, id string, retries int) lockimpl.Lock {
	b.t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr: "192.0.2.1:6379", Protocol: 2, MaxRetries: retries, DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if b.cutOff {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			c, err := b.m.Dial()
			return &lossy{Conn: c, b: b}, err
		},
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	b.clients = append(b.clients, rdb)
	rdb.AddHook(before{b})
	l, err := NewClient(kind, rdb, id).GetLock("x")
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

func (b *bench) now() time.Duration { return time.Since(b.start) }

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) holder(want string) {
	b.t.Helper()
	if got, _ := b.m.Get("x"); got != want {
		b.t.Fatalf("held by %q at %v; want %q", got, b.now(), want)
	}
}

// before calls the bench's function in front of each command.
type before struct{ b *bench }

func (h before) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f := h.b.before; f != nil {
			f(fmt.Sprint(cmd.Args()...))
		}
		return next(ctx, cmd)
	}
}

// lossy loses the replies that the bench wants lost.
type lossy struct {
	net.Conn
	b    *bench
	lost bool
}

func (c *lossy) Write(p []byte) (int, error) {
	c.lost = c.lost || c.b.lose != "" && bytes.Contains(p, []byte(c.b.lose))
	return c.Conn.Write(p)
}

func (c *lossy) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.lost {
			return n, err
		}
	}
}

// asking has the bare locks that send commands to Redis.
var asking = []Kind{SetNXDel, SetNXGetDel, SetNXCad, StringReentrant}

func eachBare(t *testing.T, f func(b *bench, kind Kind)) {
	t.Helper()
	for _, kind := range asking {
		t.Run(string(kind), func(t *testing.T) { bubble(t, func(b *bench) { f(b, kind) }) })
	}
}

func TestNoneGrantsEverythingAndAsksNobody(t *testing.T) {
	l, err := NewClient(None, nil, "a").GetLock("x")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Lock(background, 1, lockimpl.LockOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := l.TryLock(background, 2); !ok || err != nil {
		t.Errorf("try gave %v, %v", ok, err)
	}
	if r, err := l.Unlock(background, 3); r != lockimpl.Released || err != nil {
		t.Errorf("unlock gave %v, %v", r, err)
	}
}

func TestBareLocksExcludeAndAreFreed(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		a, c := b.lock(kind, "a"), b.lock(kind, "c")
		b.must(a.Lock(background, 1, lockimpl.LockOptions{}))
		b.holder("a:1")
		if ttl, err := a.RemainTimeToLive(background); err != nil || ttl != Lease {
			t.Errorf("time to live %v, %v; want %v", ttl, err, Lease)
		}
		for _, try := range []struct {
			l lockimpl.Lock
			o lockimpl.Owner
		}{{c, 1}, {a, 2}} {
			if ok, err := try.l.TryLock(background, try.o); ok || err != nil {
				t.Errorf("try of a held lock gave %v, %v", ok, err)
			}
		}
		held, err := a.IsHeldBy(background, 1)
		b.must(err)
		notHeld, err := c.IsHeldBy(background, 1)
		b.must(err)
		count, err := a.HoldCount(background, 1)
		b.must(err)
		if !held || notHeld || count != 1 {
			t.Errorf("held by a:1 %v, by c:1 %v, count %d; want true, false, 1", held, notHeld, count)
		}
		if r, err := a.Unlock(background, 1); r != lockimpl.Released || err != nil {
			t.Errorf("unlock gave %v, %v", r, err)
		}
		b.holder("")
		if _, err := a.Unlock(background, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
			t.Errorf("unlock of a free lock gave %v; want lockimpl.ErrNotHeld", err)
		}
		if locked, err := a.IsLocked(background); locked || err != nil {
			t.Errorf("is locked: %v, %v", locked, err)
		}
		b.must(c.Lock(background, 1, lockimpl.LockOptions{Lease: time.Second}))
		if freed, err := a.ForceUnlock(background); !freed || err != nil {
			t.Errorf("force unlock gave %v, %v", freed, err)
		}
		if freed, err := a.ForceUnlock(background); freed || err != nil {
			t.Errorf("force unlock of a free lock gave %v, %v", freed, err)
		}
	})
}

// The bare locks differ in their answer to an unlock by a thread that does not hold the lock.
func TestUnlockOfAnothersBareLock(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		a, c := b.lock(kind, "a"), b.lock(kind, "c")
		b.must(a.Lock(background, 1, lockimpl.LockOptions{Lease: time.Second}))
		time.Sleep(time.Second)
		b.must(c.Lock(background, 1, lockimpl.LockOptions{}))
		_, err := a.Unlock(background, 1)
		if kind == SetNXDel {
			b.must(err)
			b.holder("")
			return
		}
		if !errors.Is(err, lockimpl.ErrNotHeld) {
			t.Errorf("unlock gave %v; want lockimpl.ErrNotHeld", err)
		}
		b.holder("c:1")
	})
}

// Between GET and DEL the lease ends and another client gets the lock.
func TestTheHoleBetweenGetAndDel(t *testing.T) {
	for kind, want := range map[Kind]string{SetNXGetDel: "", SetNXCad: "c:1"} {
		t.Run(string(kind), func(t *testing.T) {
			bubble(t, func(b *bench) {
				a := b.lock(kind, "a")
				b.must(a.Lock(background, 1, lockimpl.LockOptions{Lease: time.Second}))
				b.before = func(words string) {
					if strings.HasPrefix(words, "del") || strings.HasPrefix(words, "evalsha") {
						b.before = nil
						time.Sleep(time.Second)
						b.must(b.lock(kind, "c").Lock(background, 1, lockimpl.LockOptions{}))
					}
				}
				_, err := a.Unlock(background, 1)
				if got := errors.Is(err, lockimpl.ErrNotHeld); got != (kind == SetNXCad) {
					t.Errorf("unlock gave %v", err)
				}
				b.holder(want)
			})
		})
	}
}

// One string has no place for a count: the first unlock of two frees it.
func TestReentryOfBareLocks(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		l := b.lock(kind, "a")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Second}))
		ok, err := l.TryLockTimed(background, 1, lockimpl.TryOptions{Lease: time.Minute})
		b.must(err)
		if ok != (kind == StringReentrant) {
			t.Fatalf("re-entry gave %v", ok)
		}
		if !ok {
			return
		}
		if got := b.m.TTL("x"); got != time.Minute {
			t.Errorf("time to live after re-entry %v", got)
		}
		if n, err := l.HoldCount(background, 1); n != 1 || err != nil {
			t.Errorf("hold count %v, %v", n, err)
		}
		if r, err := l.Unlock(background, 1); r != lockimpl.Released || err != nil {
			t.Errorf("unlock gave %v, %v", r, err)
		}
		b.holder("")
	})
}

// Waiters poll every 100 ms, and never past their wait.
func TestBareLocksPoll(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		a, c := b.lock(kind, "a"), b.lock(kind, "c")
		b.must(a.Lock(background, 1, lockimpl.LockOptions{Lease: 950 * time.Millisecond}))
		if ok, err := c.TryLockTimed(background, 1, lockimpl.TryOptions{}); ok || err != nil || b.now() != 0 {
			t.Errorf("one attempt gave %v, %v at %v", ok, err, b.now())
		}
		if ok, err := c.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 250 * time.Millisecond}); ok || err != nil || b.now() != 250*time.Millisecond {
			t.Errorf("a try of 250ms gave %v, %v at %v", ok, err, b.now())
		}
		b.must(c.Lock(background, 1, lockimpl.LockOptions{}))
		if b.now() != 950*time.Millisecond { // 250 ms + 7 polls
			t.Errorf("granted at %v; want 950ms", b.now())
		}
	})
}

func TestACancelledContextEndsAPoll(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		b.must(b.lock(kind, "a").Lock(background, 1, lockimpl.LockOptions{}))
		ctx, cancel := context.WithTimeout(background, 330*time.Millisecond)
		defer cancel()
		err := b.lock(kind, "c").Lock(ctx, 1, lockimpl.LockOptions{})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lockimpl.ErrUnknownOutcome) || b.now() != 330*time.Millisecond {
			t.Errorf("lock gave %v at %v", err, b.now())
		}
	})
}

// The command ran and its reply is lost. The caller learns that it may have run.
func TestALostReplyIsAnUnknownOutcome(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		l := b.lock(kind, "a")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		_, err := l.Unlock(background, 1)
		b.must(err)
		b.lose = "a:1"
		if err := l.Lock(background, 1, lockimpl.LockOptions{}); !errors.Is(err, lockimpl.ErrUnknownOutcome) {
			t.Errorf("lock gave %v; want lockimpl.ErrUnknownOutcome", err)
		}
		b.holder("a:1")
	})
}

// The last error belongs to an attempt that was never sent. The first attempt ran.
func TestOfAClientThatRetriesEveryFailureIsUnknown(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		l := b.lockRetrying(kind, "a", 1)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		_, err := l.Unlock(background, 1)
		b.must(err)
		b.lose = "a:1"
		b.before = func(string) { b.cutOff = true }
		if err := l.Lock(background, 1, lockimpl.LockOptions{}); !errors.Is(err, lockimpl.ErrUnknownOutcome) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("lock gave %v; want lockimpl.ErrUnknownOutcome of a refused connection", err)
		}
		b.holder("a:1")
	})
}

func TestAClosedBareClient(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		b.lock(kind, "a")
		c := NewClient(kind, b.clients[0], "a")
		l, err := c.GetLock("x")
		b.must(err)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.must(c.Close())
		if err := l.Lock(background, 2, lockimpl.LockOptions{}); !errors.Is(err, lockimpl.ErrClosed) {
			t.Errorf("lock gave %v; want lockimpl.ErrClosed", err)
		}
		if _, err := l.TryLock(background, 2); !errors.Is(err, lockimpl.ErrClosed) {
			t.Errorf("try gave %v; want lockimpl.ErrClosed", err)
		}
		if _, err := l.Unlock(background, 1); !errors.Is(err, lockimpl.ErrClosed) {
			t.Errorf("unlock gave %v; want lockimpl.ErrClosed", err)
		}
		b.holder("a:1") // nothing is unlocked
		b.must(b.clients[0].Ping(background).Err())
	})
}

func TestBareLocksRefuseInvalidArguments(t *testing.T) {
	eachBare(t, func(b *bench, kind Kind) {
		l := b.lock(kind, "a")
		b.before = func(words string) { t.Errorf("sent %s", words) }
		if err := l.Lock(background, 1, lockimpl.LockOptions{Lease: -1}); !errors.Is(err, lockimpl.ErrInvalid) {
			t.Errorf("lock gave %v; want lockimpl.ErrInvalid", err)
		}
		if _, err := l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: -1}); !errors.Is(err, lockimpl.ErrInvalid) {
			t.Errorf("try gave %v; want lockimpl.ErrInvalid", err)
		}
		if _, err := NewClient(kind, nil, "a").GetLock("a{"); !errors.Is(err, lockimpl.ErrInvalid) {
			t.Errorf("name gave %v; want lockimpl.ErrInvalid", err)
		}
	})
}

func TestChecks(t *testing.T) {
	for name, valid := range map[string]bool{
		"x": true, "a b": true, "a}": true, "{a}": true, "a{b}c": true, "a{}b": true,
		"": false, "{": false, "a{b": false, "}{": false,
	} {
		if err := lockimpl.CheckName(name); (err == nil) != valid || err != nil && !errors.Is(err, lockimpl.ErrInvalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	for lease, valid := range map[time.Duration]bool{
		0: true, time.Millisecond: true, time.Hour: true, -1: false, time.Millisecond - 1: false,
	} {
		if err := lockimpl.CheckLease(lease); (err == nil) != valid || err != nil && !errors.Is(err, lockimpl.ErrInvalid) {
			t.Errorf("lease %v: %v", lease, err)
		}
		if err := lockimpl.CheckTry(lockimpl.TryOptions{Lease: lease}); (err == nil) != valid {
			t.Errorf("try with lease %v: %v", lease, err)
		}
	}
	if err := lockimpl.CheckTry(lockimpl.TryOptions{Wait: -1}); !errors.Is(err, lockimpl.ErrInvalid) {
		t.Errorf("negative wait: %v", err)
	}
}

// MayHaveRun reports whether a command that failed may have run.
func TestMayHaveRun(t *testing.T) {
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	for _, c := range []struct {
		what string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"an error reply", redis.Nil, false},
		{"no connection free", redis.ErrPoolTimeout, false},
		{"the client was closed", redis.ErrClosed, false},
		{"not dialled", op("dial", syscall.ECONNREFUSED), false},
		{"not written", op("write", syscall.EPIPE), false},
		{"no reply in time", op("read", os.ErrDeadlineExceeded), true},
		{"connection reset", op("read", syscall.ECONNRESET), true},
		{"wrapped", fmt.Errorf("lock: %w", op("read", syscall.ECONNRESET)), true},
		{"end of the connection", io.EOF, true},
		{"an interrupt", context.Canceled, true},
	} {
		if got := redisclient.MayHaveRun(c.err); got != c.want {
			t.Errorf("%s: %v; want %v", c.what, got, c.want)
		}
	}
}

func TestEnvironmentDefaultsAreTheMachines(t *testing.T) {
	e := lockimpl.Environment{}.WithDefaults()
	if a, b := e.NewID(1), e.NewID(1); len(a) != 32 || strings.Trim(a, "0123456789abcdef") != "" || a == b {
		t.Errorf("ids %q and %q; want two of 32 hexadecimal digits", a, b)
	}
	for range 100 {
		if j := e.Jitter(1, 10); j < 0 || j >= 10 {
			t.Errorf("jitter %d; want it in [0, 10)", j)
		}
	}
	if j := e.Jitter(1, 0); j != 0 {
		t.Errorf("jitter %v of nothing", j)
	}
	if e.Now().IsZero() {
		t.Error("no clock")
	}
	fixed := time.Unix(1, 0)
	own := lockimpl.Environment{Now: func() time.Time { return fixed }}.WithDefaults()
	if !own.Now().Equal(fixed) || own.NewID == nil {
		t.Error("a field that was set was not kept, or another not filled")
	}
}

// Scripts has the purpose of each script, and each script names its KEYS and ARGV.
func TestBareScripts(t *testing.T) {
	if len(Scripts) != 2 {
		t.Fatalf("%d scripts", len(Scripts))
	}
	for text := range Scripts {
		for _, head := range []string{"-- KEYS: 1 lock\n", "-- ARGV: 1 ", "-- reply: "} {
			if !strings.Contains(text, head) {
				t.Errorf("the script has no line %q:\n%s", head, text)
			}
		}
	}
}

func TestAClosedBareClientAnswersNothing(t *testing.T) {
	c := NewClient(SetNXCad, nil, "c") // no call may reach Redis
	l, err := c.GetLock("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for name, call := range map[string]func() error{
		"Lock":             func() error { return l.Lock(ctx, 1, lockimpl.LockOptions{}) },
		"TryLock":          func() error { _, err := l.TryLock(ctx, 1); return err },
		"TryLockTimed":     func() error { _, err := l.TryLockTimed(ctx, 1, lockimpl.TryOptions{}); return err },
		"Unlock":           func() error { _, err := l.Unlock(ctx, 1); return err },
		"ForceUnlock":      func() error { _, err := l.ForceUnlock(ctx); return err },
		"IsLocked":         func() error { _, err := l.IsLocked(ctx); return err },
		"IsHeldBy":         func() error { _, err := l.IsHeldBy(ctx, 1); return err },
		"HoldCount":        func() error { _, err := l.HoldCount(ctx, 1); return err },
		"RemainTimeToLive": func() error { _, err := l.RemainTimeToLive(ctx); return err },
	} {
		if err := call(); !errors.Is(err, lockimpl.ErrClosed) {
			t.Errorf("%s: got %v, want lockimpl.ErrClosed", name, err)
		}
	}
}
