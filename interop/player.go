//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// player is one client, of the library or of the port, behind a proxy of its own. Players of both
// kinds take the same calls, and return their results in the same words.
type player interface {
	// do makes a call on a thread. The channel gets the result when the call returns.
	do(thread int, op string, f Fields) <-chan string
	// interrupt interrupts the call that a thread is in.
	interrupt(thread int)
	// owner returns the owner that the server has for the thread.
	owner(thread int) string
	// proxies carry its messages: one proxy, or one for each node.
	proxies() []*Proxy
}

// The words for results that are not values.
const (
	resultNotHeld     = "not held"
	resultReentry     = "held already"
	resultInterrupted = replyInterrupted
	resultUnderWay    = replyUnderWay
	resultTimeout     = "no answer in time"
	resultLost        = "connection lost"
	resultNotSynced   = "not synced"
	resultNoSubscribe = "no subscription in time"
)

// settings are the settings of a client. Zero values mean the defaults of the release.
type settings struct {
	watchdog time.Duration
	response time.Duration
	attempts int
	wheel    bool     // the port's timers are on a wheel
	idle     int      // connections that are kept open; 0: one
	replicas []*Proxy // proxies of the replicas of the server behind via
	topology redisson.Topology
}

// libraryPlayer is a client of the library.
type libraryPlayer struct {
	l      *Library
	name   string
	owners map[int]string
	via    []*Proxy
}

var playerNames struct {
	sync.Mutex
	n int
}

func newLibraryPlayer(t testing.TB, l *Library, via *Proxy, set settings, threads int) *libraryPlayer {
	t.Helper()
	playerNames.Lock()
	playerNames.n++
	name := "client" + strconv.Itoa(playerNames.n)
	playerNames.Unlock()
	f := Fields{"client", name, "address", via.Addr}
	add := func(key string, ms time.Duration) {
		if ms != 0 {
			f = append(f, key, ms.Milliseconds())
		}
	}
	add("watchdog", set.watchdog)
	add("response", set.response)
	if set.idle != 0 {
		f = append(f, "connections", set.idle, "idle", set.idle)
	}
	if set.attempts != 0 {
		f = append(f, "retry_attempts", max(set.attempts, 0))
	}
	p := &libraryPlayer{l: l, name: name, owners: map[int]string{}, via: []*Proxy{via}}
	switch set.topology {
	case redisson.Replicated:
		var addrs []string
		for _, r := range set.replicas {
			addrs = append(addrs, r.Addr)
			p.via = append(p.via, r)
		}
		f = append(f, "mode", "master_replica", "replicas", strings.Join(addrs, ","))
	case redisson.Cluster:
		f = append(f, "mode", "cluster")
		p.via = append(p.via, set.replicas...)
	}
	if _, err := l.Ask("client", f); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= threads; i++ {
		a, err := l.Ask("thread", Fields{"client", name, "thread", i})
		if err != nil {
			t.Fatal(err)
		}
		p.owners[i] = a.Owner()
	}
	return p
}

func (p *libraryPlayer) owner(thread int) string { return p.owners[thread] }
func (p *libraryPlayer) proxies() []*Proxy       { return p.via }

func (p *libraryPlayer) interrupt(thread int) {
	<-p.l.Send("interrupt", Fields{"client", p.name, "thread", thread, "where", "now"})
}

func (p *libraryPlayer) do(thread int, op string, f Fields) <-chan string {
	out := make(chan string, 1)
	answer := p.l.Send("call", append(Fields{"client", p.name, "thread", thread, "op", op}, f...))
	go func() { out <- libraryResult(op, <-answer) }()
	return out
}

func libraryResult(op string, a Answer) string {
	if a["error"] == "" {
		return a.Value()
	}
	taking := strings.Contains(op, "lock") && !strings.Contains(op, "unlock")
	switch a.Exception() {
	case "IllegalMonitorStateException":
		if taking {
			return resultReentry
		}
		return resultNotHeld
	case "InterruptedException":
		return resultInterrupted
	case "RedisTimeoutException", "RedisResponseTimeoutException":
		if strings.HasPrefix(a["message"], "Subscribe timeout") {
			return resultNoSubscribe
		}
		return resultTimeout
	}
	switch {
	case strings.Contains(a["message"], "slaves were synced") || strings.HasSuffix(a["cause"], "NoSyncedSlavesException"),
		strings.HasSuffix(a["cause"], ".IllegalStateException"): // up to 3.43.0
		return resultNotSynced
	case a.InterruptedUnderWay():
		return resultUnderWay
	case strings.HasSuffix(a["cause"], "TimeoutException"):
		return resultTimeout
	}
	return "error " + firstWord(a["message"])
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// portPlayer is a client of the port.
type portPlayer struct {
	c     *redisson.Client
	plain map[string]lockimpl.Lock // by kind and name
	via   []*Proxy

	mu      sync.Mutex
	cancels map[int]context.CancelFunc
}

func newPortPlayer(t testing.TB, rel *redisson.Release, via *Proxy, set settings) *portPlayer {
	t.Helper()
	opt := redisson.Options(&redis.Options{Addr: via.Addr, ReadTimeout: set.response, DisableIdentity: true, MinIdleConns: 1})
	var rdb redis.UniversalClient
	if set.topology == redisson.Cluster {
		rdb = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{via.Addr}, MaxRedirects: -1, MaxRetries: -1, ReadTimeout: opt.ReadTimeout, DisableIdentity: true,
		})
	} else {
		rdb = redis.NewClient(opt)
	}
	c := redisson.NewClient(rdb, redisson.Config{
		Release: rel, Topology: set.topology, WatchdogTimeout: set.watchdog, ResponseTimeout: set.response,
		RetryAttempts: set.attempts, UncheckedArguments: true, TimerWheel: set.wheel,
	})
	t.Cleanup(func() {
		_ = c.Close()
		_ = rdb.Close()
	})
	return &portPlayer{c: c, plain: map[string]lockimpl.Lock{}, via: append([]*Proxy{via}, set.replicas...), cancels: map[int]context.CancelFunc{}}
}

func (p *portPlayer) owner(thread int) string { return fmt.Sprintf("%s:%d", p.c.ID(), thread) }
func (p *portPlayer) proxies() []*Proxy       { return p.via }

func (p *portPlayer) interrupt(thread int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.cancels[thread]; cancel != nil {
		cancel()
	}
}

// lock returns the lock object of a name, or a fresh object that is not kept.
func (p *portPlayer) lock(kind, name string, fresh bool) (lockimpl.Lock, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.plain[kind+" "+name]; l != nil && !fresh {
		return l, nil
	}
	var l lockimpl.Lock
	var err error
	switch kind {
	case "plain":
		l, err = p.c.GetLock(name)
	case "fair":
		l, err = p.c.GetFairLock(name)
	case "fenced":
		l, err = p.c.GetFencedLock(name)
	case "nonreentrant":
		l, err = p.c.GetNonReentrantLock(name)
	case "nonreentrant_fair":
		l, err = p.c.GetNonReentrantFairLock(name)
	default:
		err = fmt.Errorf("unknown kind of lock %s", kind)
	}
	if !fresh {
		p.plain[kind+" "+name] = l
	}
	return l, err
}

func (p *portPlayer) do(thread int, op string, f Fields) <-chan string {
	out := make(chan string, 1)
	words := map[string]string{}
	for i := 0; i+1 < len(f); i += 2 {
		words[fmt.Sprint(f[i])] = fmt.Sprint(f[i+1])
	}
	l, err := p.lock(words["kind"], words["lock"], words["object"] == "fresh")
	if err != nil {
		out <- "error " + err.Error()
		return out
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.mu.Lock()
	p.cancels[thread] = cancel
	p.mu.Unlock()
	go func() {
		defer cancel()
		value, err := portCall(ctx, l, lockimpl.Owner(thread), op, words)
		if err != nil {
			value = portResult(err)
		}
		out <- value
	}()
	return out
}

func portCall(ctx context.Context, l lockimpl.Lock, o lockimpl.Owner, op string, words map[string]string) (string, error) {
	unit := time.Millisecond
	if words["unit"] == "SECONDS" {
		unit = time.Second
	}
	number := func(key string) time.Duration {
		n, _ := strconv.ParseInt(words[key], 10, 64)
		if key == "lease" && n == -1 {
			return 0 // Java's value for none
		}
		return time.Duration(n) * unit
	}
	_, timed := words["wait"]
	lock := lockimpl.LockOptions{Lease: number("lease"), Interruptible: op == "lock_interruptibly"}
	try := lockimpl.TryOptions{Wait: number("wait"), Lease: number("lease"), Unit: unit}
	fenced, _ := l.(redisson.FencedLock)
	switch op {
	case "lock", "lock_interruptibly":
		return "ok", l.Lock(ctx, o, lock)
	case "try_lock":
		if timed {
			return yes(l.TryLockTimed(ctx, o, try))
		}
		return yes(l.TryLock(ctx, o))
	case "unlock":
		_, err := l.Unlock(ctx, o)
		return "ok", err
	case "force_unlock":
		return yes(l.ForceUnlock(ctx))
	case "is_locked":
		return yes(l.IsLocked(ctx))
	case "is_held":
		return yes(l.IsHeldBy(ctx, o))
	case "hold_count":
		n, err := l.HoldCount(ctx, o)
		return strconv.Itoa(n), err
	case "remain_ttl":
		d, err := l.RemainTimeToLive(ctx)
		return strconv.FormatInt(d.Milliseconds(), 10), err
	case "lock_and_get_token":
		n, err := fenced.LockAndGetToken(ctx, o, lock)
		return strconv.FormatInt(n, 10), err
	case "try_lock_and_get_token":
		n, ok, err := int64(0), false, error(nil)
		if timed {
			n, ok, err = fenced.TryLockTimedAndGetToken(ctx, o, try)
		} else {
			n, ok, err = fenced.TryLockAndGetToken(ctx, o)
		}
		if !ok {
			return "null", err
		}
		return strconv.FormatInt(n, 10), err
	case "get_token":
		n, err := fenced.Token(ctx)
		return strconv.FormatInt(n, 10), err
	}
	return "", fmt.Errorf("unknown operation %s", op)
}

func yes(b bool, err error) (string, error) { return strconv.FormatBool(b), err }

func portResult(err error) string {
	unknown := errors.Is(err, lockimpl.ErrUnknownOutcome)
	switch {
	case errors.Is(err, lockimpl.ErrNotHeld):
		return resultNotHeld
	case errors.Is(err, lockimpl.ErrReentry):
		return resultReentry
	case errors.Is(err, redisson.ErrNotSynced):
		return resultNotSynced
	case errors.Is(err, context.Canceled) && unknown:
		return resultUnderWay
	case errors.Is(err, context.Canceled):
		return resultInterrupted
	case strings.Contains(err.Error(), "no subscribe acknowledgement"):
		return resultNoSubscribe
	case strings.Contains(err.Error(), "no response in time"):
		return resultTimeout
	case unknown:
		return resultLost
	}
	text := err.Error()
	var answered redis.Error
	if errors.As(err, &answered) {
		text = answered.Error()
	}
	return "error " + firstWord(text)
}
