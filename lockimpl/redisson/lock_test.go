package redisson

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/proto"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/internal/oneprocessor"
	"lockstep/lockimpl"
)

func init() {
	oneprocessor.Set()
	redis.SetLogger(silent{})
}

// silent drops the messages that go-redis logs about the intended faults.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// bench is the set-up of all tests of this package: a miniredis behind in-memory pipes, in a bubble
// whose time passes at once. It records every command that a client writes, with its instant, and a
// test decides what happens to the answer.
type bench struct {
	t     *testing.T
	m     *miniredis.Miniredis
	start time.Time

	mu      sync.Mutex
	sent    []command
	unkept  bool               // sent stays empty: the test is long and never asks for its commands
	fate    func(command) fate // decides what happens to a command's answer
	deaf    map[string]bool    // clients that no published message reaches
	dialErr error
	conns   map[string][]*wire
	closers []func()

	deciding sync.Mutex // held during a call of fate, which may keep a count
}

// command is one command as it was written to a connection.
type command struct {
	at     time.Duration // since the bench began
	client string
	op     string // upper case
	script string // of EVAL and EVALSHA: the name of the script's file
	keys   []string
	args   []string // of any other command: all words after its name
}

// fate says what happens to an answer. The command is executed, unless never is set.
type fate struct {
	never bool          // the command does not arrive, and no answer comes
	lost  bool          // neither it nor anything after it arrives
	cut   bool          // the connection ends instead
	late  time.Duration // arrives later by this
	reply string        // arrives instead of the answer
}

// bubble runs f with a fresh bench in a bubble.
func bubble(t *testing.T, f func(*bench)) {
	t.Helper()
	// go-redis keeps timers in a package-level pool; a timer of one bubble
	// kills the next one. Two collections empty the pool.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, m: miniredis.NewMiniRedis(), start: time.Now(), deaf: map[string]bool{}, conns: map[string][]*wire{}}
		b.m.ClockTTL(true)
		defer b.m.Close()
		defer func() {
			synctest.Wait()
			for _, c := range b.closers {
				c()
			}
			time.Sleep(time.Minute) // delayed answers arrive
		}()
		f(b)
	})
}

// each runs f in a bubble for every release and both kinds of lock.
func each(t *testing.T, f func(b *bench, k kind)) {
	t.Helper()
	for _, rel := range Releases {
		for _, fair := range []bool{false, true} {
			k := kind{rel, fair}
			t.Run(k.String(), func(t *testing.T) { bubble(t, func(b *bench) { f(b, k) }) })
		}
	}
}

// eachRelease runs f in a bubble for every release.
func eachRelease(t *testing.T, f func(b *bench, rel *Release)) {
	t.Helper()
	for _, rel := range Releases {
		t.Run(rel.Version, func(t *testing.T) { bubble(t, func(b *bench) { f(b, rel) }) })
	}
}

// on runs f in a bubble for one release.
func on(t *testing.T, version string, f func(b *bench, rel *Release)) {
	t.Helper()
	t.Run(version, func(t *testing.T) {
		rel, err := Find(version)
		if err != nil {
			t.Fatal(err)
		}
		bubble(t, func(b *bench) { f(b, rel) })
	})
}

// byRelease is a rule that differs from release to release: a value for each,
// under its version or a list of versions.
type byRelease[T any] map[string]T

// forRelease returns the rule of a release. It fails the test if there is none.
func (rules byRelease[T]) forRelease(t *testing.T, rel *Release) T {
	t.Helper()
	for versions, rule := range rules {
		if slices.Contains(strings.Fields(versions), rel.Version) {
			return rule
		}
	}
	t.Fatalf("the test says nothing of %s: find out what it does, and put its version under the rule", rel.Version)
	panic("not reached")
}

// isOneOf reports whether a release is in a list of versions. It reports false for a release that
// the tests do not know yet; TestTableOfReleases names that release.
func (r *Release) isOneOf(versions string) bool {
	return slices.Contains(strings.Fields(versions), r.Version)
}

// A kind of lock is a release with its plain or its fair lock.
type kind struct {
	*Release
	fair bool
}

func (k kind) String() string {
	if k.fair {
		return k.Version + " fair"
	}
	return k.Version + " plain"
}

func (k kind) acquire() Script {
	if k.fair {
		return k.FairAcquire
	}
	return k.Acquire
}

func (k kind) unlock() Script {
	if k.fair {
		return k.FairUnlock
	}
	return k.Unlock
}

// client makes a client with a pool of its own. Its ids are 1, 2, and so on; its jitter is always
// half of the maximum.
func (b *bench) client(rel *Release, id string, change ...func(*Config)) *Client {
	cfg := Config{Release: rel, ID: id}
	ids := 0
	var mu sync.Mutex
	cfg.Environment.NewID = func(lockimpl.Owner) string {
		mu.Lock()
		defer mu.Unlock()
		ids++
		return fmt.Sprintf("%032d", ids)
	}
	cfg.Environment.Jitter = func(_ lockimpl.Owner, max time.Duration) time.Duration { return max / 2 }
	for _, f := range change {
		f(&cfg)
	}
	rdb := redis.NewClient(Options(&redis.Options{
		Addr:                     "192.0.2.1:6379", // a name would be resolved outside the bubble
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return b.dial(id) },
		DialerRetries:            1,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}))
	c := NewClient(rdb, cfg)
	b.closers = append(b.closers, func() {
		if err := c.Close(); err != nil {
			b.t.Errorf("close of client %s: %v", id, err)
		}
		_ = rdb.Close()
	})
	return c
}

func (b *bench) lock(c *Client, k kind, name string) lockimpl.Lock {
	b.t.Helper()
	get := c.GetLock
	if k.fair {
		get = c.GetFairLock
	}
	l, err := get(name)
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

func (b *bench) dial(client string) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dialErr != nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: b.dialErr}
	}
	inner, err := b.m.Dial()
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: buffered(inner), b: b, client: client}
	b.conns[client] = append(b.conns[client], w)
	return w, nil
}

// buffered returns a connection to the server at the other end of inner. As on a socket with room
// in its buffer, the server's writes never wait for the client. Otherwise they could deadlock: a
// server that publishes holds its mutex, and the subscriber may be writing a command that needs
// this mutex.
func buffered(inner net.Conn) net.Conn {
	client, server := net.Pipe()
	var mu sync.Mutex
	more := sync.NewCond(&mu)
	var waiting []byte
	ended := false
	go func() {
		_, _ = io.Copy(inner, server)
		_ = inner.Close()
	}()
	go func() {
		chunk := make([]byte, 4096)
		for {
			n, err := inner.Read(chunk)
			mu.Lock()
			waiting = append(waiting, chunk[:n]...)
			ended = err != nil
			more.Signal()
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer server.Close()
		for {
			mu.Lock()
			for len(waiting) == 0 && !ended {
				more.Wait()
			}
			out := waiting
			waiting = nil
			mu.Unlock()
			if len(out) == 0 {
				return
			}
			if _, err := server.Write(out); err != nil {
				return
			}
		}
	}()
	return client
}

// refuse makes dialling fail with err; nil lets it succeed again.
func (b *bench) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dialErr = err
}

// answer sets what happens to answers from now on.
func (b *bench) answer(f func(command) fate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fate = f
}

// deafen keeps published messages from a client.
func (b *bench) deafen(client string, deaf bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf[client] = deaf
}

// cut ends a client's connections that listen to a channel.
func (b *bench) cut(client string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.conns[client] {
		if w.listens {
			_ = w.Conn.Close()
		}
	}
}

// keepNone stops the record of commands. In a long test, it would take gigabytes.
func (b *bench) keepNone() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent, b.unkept = nil, true
}

// recorded returns the recorded commands for which f is true.
func (b *bench) recorded(f func(command) bool) (found []command) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unkept {
		b.t.Fatal("the test asks for its commands, and they are not kept")
	}
	for _, c := range b.sent {
		if f(c) {
			found = append(found, c)
		}
	}
	return found
}

// forget empties the record.
func (b *bench) forget() {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = nil
}

// commands returns the recorded commands of a client, without those of the connections' handshake.
func (b *bench) commands(client string) []command {
	b.t.Helper()
	return b.recorded(func(c command) bool { return c.client == client && c.op != "HELLO" && c.op != "CLIENT" })
}

// runs returns the recorded runs of a script by a client; "" is all clients.
func (b *bench) runs(client, script string) []command {
	b.t.Helper()
	return b.recorded(func(c command) bool { return (client == "" || c.client == client) && c.script == script })
}

// times returns the instants of commands.
func times(cs []command) []time.Duration {
	var at []time.Duration
	for _, c := range cs {
		at = append(at, c.at)
	}
	return at
}

// now is the time since the bench began.
func (b *bench) now() time.Duration { return time.Since(b.start) }

// until lets time pass up to an instant of the bench.
func (b *bench) until(at time.Duration) {
	time.Sleep(at - b.now())
	synctest.Wait()
}

// held returns the levels of each owner, read from the hash.
func (b *bench) held(name string) map[string]string {
	b.t.Helper()
	found := map[string]string{}
	keys, _ := b.m.HKeys(name)
	for _, k := range keys {
		found[k] = b.m.HGet(name, k)
	}
	return found
}

// scores returns a copy of a sorted set. (Miniredis.SortedSet returns the server's own map.)
func (b *bench) scores(name string) map[string]float64 {
	found := map[string]float64{}
	members, _ := b.m.ZMembers(name)
	for _, m := range members {
		found[m], _ = b.m.ZScore(name, m)
	}
	return found
}

// keys and channels return the keys and channels that exist once everything under way is done.
func (b *bench) keys() []string {
	synctest.Wait()
	return b.m.Keys()
}

func (b *bench) channels() []string {
	synctest.Wait()
	return b.m.PubSubChannels("*")
}

// keyspace returns the content of the database, one line per key.
func (b *bench) keyspace() []string {
	var lines []string
	for _, k := range b.m.Keys() {
		var v any
		switch typ := b.m.Type(k); typ {
		case "hash":
			v = b.held(k)
		case "list":
			v, _ = b.m.List(k)
		case "zset":
			v = b.scores(k)
		default:
			v, _ = b.m.Get(k)
		}
		lines = append(lines, fmt.Sprint(k, " = ", v, " for ", b.m.TTL(k)))
	}
	return lines
}

// call is a call of a lock that runs in a goroutine.
type call struct {
	b    *bench
	done chan struct{}
	at   time.Duration // when it ended
	ok   bool
	err  error
}

func (b *bench) begin(f func() (bool, error)) *call {
	c := &call{b: b, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.ok, c.err = f()
		c.at = b.now()
	}()
	synctest.Wait()
	return c
}

func (b *bench) beginLock(ctx context.Context, l lockimpl.Lock, o lockimpl.Owner, opt lockimpl.LockOptions) *call {
	return b.begin(func() (bool, error) { err := l.Lock(ctx, o, opt); return err == nil, err })
}

// ended reports whether the call has returned.
func (c *call) ended() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// wait waits for the call's end, but not for ever, since a ticking watchdog would keep the bubble
// running.
func (c *call) wait() {
	c.b.t.Helper()
	select {
	case <-c.done:
	case <-time.After(2 * time.Hour):
		c.b.t.Fatal("a call has not ended after two hours")
	}
}

// grantedAt waits for the call's end and checks that it acquired then.
func (c *call) grantedAt(at time.Duration) {
	c.b.t.Helper()
	c.wait()
	if c.err != nil || !c.ok || c.at != at {
		c.b.t.Fatalf("call ended at %v with %v, %v; want granted at %v", c.at, c.ok, c.err, at)
	}
}

// failedAt waits for the call's end and checks that it failed with an error then.
func (c *call) failedAt(at time.Duration, want error) {
	c.b.t.Helper()
	c.wait()
	if !errors.Is(c.err, want) || c.ok || c.at != at {
		c.b.t.Fatalf("call ended at %v with %v, %v; want error %q at %v", c.at, c.ok, c.err, want, at)
	}
}

// refusedAt waits for the call's end and checks that it was refused without error then.
func (c *call) refusedAt(at time.Duration) {
	c.b.t.Helper()
	c.wait()
	if c.err != nil || c.ok || c.at != at {
		c.b.t.Fatalf("call ended at %v with %v, %v; want false at %v", c.at, c.ok, c.err, at)
	}
}

// must ends the test on an error.
func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// released checks what an unlock gave.
func (b *bench) released(want lockimpl.Release) func(lockimpl.Release, error) {
	b.t.Helper()
	return func(got lockimpl.Release, err error) {
		b.t.Helper()
		if err != nil || got != want {
			b.t.Fatalf("unlock gave %v, %v; want %v", got, err, want)
		}
	}
}

// tried checks what a try gave.
func (b *bench) tried(want bool) func(bool, error) {
	b.t.Helper()
	return func(got bool, err error) {
		b.t.Helper()
		if err != nil || got != want {
			b.t.Fatalf("try gave %v, %v; want %v", got, err, want)
		}
	}
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	if g.Kind() == reflect.Slice && g.Len() == 0 && w.Len() == 0 {
		return // nil or empty is the same here
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// wire is a connection of a client: it records the commands that are written, and decides what
// happens to the answers.
type wire struct {
	net.Conn
	b       *bench
	client  string
	listens bool // under b.mu

	mu  sync.Mutex
	due fate // of the command under way
}

func (w *wire) Write(p []byte) (int, error) {
	rd := bufio.NewReader(bytes.NewReader(p))
	arrives := true
	for {
		raw, err := proto.Read(rd)
		if err != nil {
			break
		}
		words, err := proto.ReadStrings(raw)
		if err != nil {
			break
		}
		c := w.b.parse(w.client, words)
		w.b.mu.Lock()
		if !w.b.unkept {
			w.b.sent = append(w.b.sent, c)
		}
		w.listens = w.listens || c.op == "SUBSCRIBE"
		decide := w.b.fate
		w.b.mu.Unlock()
		if decide != nil && c.op != "HELLO" {
			w.mu.Lock()
			w.b.deciding.Lock()
			w.due = decide(c)
			w.b.deciding.Unlock()
			arrives = arrives && !w.due.never
			w.mu.Unlock()
		}
	}
	if !arrives {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

func (b *bench) parse(client string, words []string) command {
	c := command{at: b.now(), client: client, op: strings.ToUpper(words[0]), args: words[1:]}
	if c.op != "EVAL" && c.op != "EVALSHA" {
		return c
	}
	n, err := strconv.Atoi(words[2])
	if err != nil {
		panic("redisson: an EVAL without its number of keys: " + err.Error())
	}
	c.keys, c.args = words[3:3+n], words[3+n:]
	c.script = scriptNames()[words[1]]
	return c
}

// scriptNames has the name of each script by its text and by its digest.
var scriptNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, rel := range Releases {
		for _, s := range rel.Scripts() {
			names[s.Text], names[s.SHA] = s.Name, s.Name
		}
	}
	return names
})

func (w *wire) Read(p []byte) (int, error) {
	for {
		n, err := w.Conn.Read(p)
		if err != nil {
			return n, err
		}
		w.b.mu.Lock()
		deaf := w.b.deaf[w.client]
		w.b.mu.Unlock()
		if deaf && bytes.Contains(p[:n], []byte("$7\r\nmessage\r\n")) {
			continue
		}
		w.mu.Lock()
		due := w.due
		if !due.lost {
			w.due = fate{}
		}
		w.mu.Unlock()
		time.Sleep(due.late)
		switch {
		case due.lost:
			continue
		case due.cut:
			_ = w.Conn.Close()
			return 0, io.EOF
		case due.reply != "":
			return copy(p, due.reply), nil
		}
		return n, nil
	}
}

// loses makes every reply to a script get lost.
func loses(script string) func(command) fate {
	return func(c command) fate { return fate{lost: c.script == script} }
}

var background = context.Background()

// The hold count runs 0,1,2,1,0 over lock and unlock pairs.
func TestHoldCountFollowsLockAndUnlock(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		count := func(want int, ttl time.Duration) {
			b.t.Helper()
			n, err := l.HoldCount(background, 7)
			b.must(err)
			same(b.t, "hold count", n, want)
			held, err := l.IsHeldBy(background, 7)
			b.must(err)
			same(b.t, "is held by the owner", held, want > 0)
			locked, err := l.IsLocked(background)
			b.must(err)
			same(b.t, "is locked", locked, want > 0)
			got, err := l.RemainTimeToLive(background)
			b.must(err)
			same(b.t, "time to live", got, ttl)
			n, err = l.HoldCount(background, 8)
			b.must(err)
			same(b.t, "hold count of somebody else", n, 0)
		}
		const free = -2 * time.Millisecond
		count(0, free)
		b.must(l.Lock(background, 7, lockimpl.LockOptions{}))
		count(1, DefaultWatchdog)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:7": "1"})
		b.must(l.Lock(background, 7, lockimpl.LockOptions{}))
		count(2, DefaultWatchdog)
		b.released(lockimpl.StillHeld)(l.Unlock(background, 7))
		count(1, DefaultWatchdog)
		b.released(lockimpl.Released)(l.Unlock(background, 7))
		count(0, free)
		same(b.t, "keys left", b.keys(), []string(nil))
	})
}

func TestATTLOfAKeyWithoutExpiryIsMinusOne(t *testing.T) {
	each(t, func(b *bench, k kind) {
		b.m.HSet("x", "other:1", "1")
		got, err := b.lock(b.client(k.Release, "c1"), k, "x").RemainTimeToLive(background)
		b.must(err)
		same(b.t, "time to live", got, -time.Millisecond)
	})
}

// Ownership is by (client, owner), not by lock object.
func TestHoldsBelongToClientAndOwner(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c1, c2 := b.client(k.Release, "c1"), b.client(k.Release, "c2")
		b.tried(true)(b.lock(c1, k, "x").TryLock(background, 1))
		b.tried(true)(b.lock(c1, k, "x").TryLock(background, 1)) // another object, the same holder
		b.tried(false)(b.lock(c1, k, "x").TryLock(background, 2))
		b.tried(false)(b.lock(c2, k, "x").TryLock(background, 1))
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "2"})
		// After two calls of tryLock and one unlock, others are still excluded.
		b.released(lockimpl.StillHeld)(b.lock(c1, k, "x").Unlock(background, 1))
		b.tried(false)(b.lock(c1, k, "x").TryLock(background, 2))
	})
}

func TestUnlockByANonOwnerIsRefusedAndChangesNothing(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c1, c2 := b.client(k.Release, "c1"), b.client(k.Release, "c2")
		l := b.lock(c1, k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		before := b.keyspace()
		for _, by := range []struct {
			what string
			l    lockimpl.Lock
			o    lockimpl.Owner
		}{
			{"another owner of the holder's client", l, 2},
			{"the holder's number in another client", b.lock(c2, k, "x"), 1},
		} {
			if got, err := by.l.Unlock(background, by.o); !errors.Is(err, lockimpl.ErrNotHeld) || got != 0 {
				b.t.Errorf("%s: unlock gave %v, %v; want ErrNotHeld", by.what, got, err)
			}
		}
		synctest.Wait()
		same(b.t, "database", b.keyspace(), before)
	})
}

// RedissonLock refuses an unlock of a free lock since 3.10.6 (issue 2018). Before, it answered
// success and woke a waiter of each client. RedissonFairLock never refused it.
func TestUnlockOfAFreeLock(t *testing.T) {
	each(t, func(b *bench, k kind) {
		messages := b.m.NewSubscriber()
		defer messages.Close()
		messages.Psubscribe("*")
		heard := 0
		go func() {
			for range messages.Pmessages() {
				heard++
			}
		}()
		got, err := b.lock(b.client(k.Release, "c1"), k, "x").Unlock(background, 1)
		if accepted := k.fair || k.isOneOf("3.4.2"); accepted {
			b.released(lockimpl.Released)(got, err)
		} else if !errors.Is(err, lockimpl.ErrNotHeld) {
			b.t.Errorf("unlock gave %v, %v; want ErrNotHeld", got, err)
		}
		synctest.Wait()
		same(b.t, "keys left", b.keys(), []string(nil))
		published := 0
		if !k.fair && k.isOneOf("3.4.2") { // the fair lock has no head to wake
			published = 1
		}
		same(b.t, "messages", heard, published)
	})
}

// With a lease of 2 s, another client gets the lock within 2.02 s, and the late unlock of the first
// client is an error.
func TestLeaseEndsAndTheLateUnlockIsRefused(t *testing.T) {
	each(t, func(b *bench, k kind) {
		first, second := b.lock(b.client(k.Release, "c1"), k, "x"), b.lock(b.client(k.Release, "c2"), k, "x")
		b.must(first.Lock(background, 1, lockimpl.LockOptions{Lease: 2 * time.Second}))
		b.beginLock(background, second, 1, lockimpl.LockOptions{}).grantedAt(2 * time.Second)
		if _, err := first.Unlock(background, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
			b.t.Errorf("late unlock: %v; want ErrNotHeld", err)
		}
		same(b.t, "hash", b.held("x"), map[string]string{"c2:1": "1"})
		b.released(lockimpl.Released)(second.Unlock(background, 1))
	})
}

func TestTryVariants(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder, l := b.lock(b.client(k.Release, "c1"), k, "x"), b.lock(b.client(k.Release, "c2"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))

		b.tried(false)(l.TryLock(background, 1))
		same(b.t, "time after a single attempt", b.now(), 0)
		b.tried(false)(l.TryLockTimed(background, 1, lockimpl.TryOptions{}))
		same(b.t, "time after a try without wait", b.now(), 0)
		b.tried(false)(l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: 3 * time.Second}))
		same(b.t, "time after a try of 3 s", b.now(), 3*time.Second)
		same(b.t, "keys of a queue left", b.keys(), []string{"x"})
		same(b.t, "channels left", b.channels(), []string{})

		// The wait is longer than what is left of the lease.
		b.tried(true)(l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Minute, Lease: 4 * time.Second}))
		same(b.t, "time when the lease was over", b.now(), 10*time.Second)
		same(b.t, "time to live", b.m.TTL("x"), 4*time.Second)
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		b.tried(true)(l.TryLockTimed(background, 1, lockimpl.TryOptions{}))
		same(b.t, "time to live without a lease", b.m.TTL("x"), DefaultWatchdog)
	})
}

func TestAWaiterIsWokenByTheRelease(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder, l := b.lock(b.client(k.Release, "c1"), k, "x"), b.lock(b.client(k.Release, "c2"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		lock := b.beginLock(background, l, 1, lockimpl.LockOptions{})
		b.until(5 * time.Second)
		if lock.ended() {
			b.t.Fatal("the lock was acquired while it was held")
		}
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		lock.grantedAt(5 * time.Second)

		try := b.begin(func() (bool, error) {
			return holder.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Minute})
		})
		b.until(8 * time.Second)
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		try.grantedAt(8 * time.Second)
	})
}

// A lost wake-up does no lasting harm: a wait lasts at most for the time to live in the answer to
// the attempt.
func TestALostWakeUpIsBoundedByTheTTL(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder, l := b.lock(b.client(k.Release, "c1"), k, "x"), b.lock(b.client(k.Release, "c2"), k, "x")
		b.deafen("c2", true)
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		lock := b.beginLock(background, l, 1, lockimpl.LockOptions{})
		b.until(4 * time.Second)
		b.released(lockimpl.Released)(holder.Unlock(background, 1))
		b.until(10*time.Second - 1)
		if lock.ended() {
			b.t.Fatal("the waiter woke without a message before the time it was told")
		}
		lock.grantedAt(10 * time.Second)
		same(b.t, "attempts", times(b.runs("c2", k.acquire().Name)), []time.Duration{0, 0, 10 * time.Second})
	})
}

// For a key without expiry the answer is -1, and then only a message ends the wait.
func TestAWaiterOnAKeyWithoutTTLWaitsForAMessage(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		b.m.HSet("x", "other:1", "1")
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		lock := b.beginLock(background, l, 1, lockimpl.LockOptions{})
		b.m.Del("x")
		b.until(24 * time.Hour)
		if lock.ended() {
			b.t.Fatal("the waiter asked again without a message")
		}
		b.m.Publish(ChannelName("x"), "0")
		lock.grantedAt(24 * time.Hour)
	})
}

// Re-entry always rewrites the time to live.
func TestReentryResetsTheTTL(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 30 * time.Second}))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Second}))
		same(b.t, "time to live after a shorter re-entry", b.m.TTL("x"), time.Second)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		same(b.t, "time to live after a longer re-entry", b.m.TTL("x"), time.Minute)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "3"})
	})
}

// leaseSent is the lease of a client's last run of a script, in ms.
func (b *bench) leaseSent(client string, s Script) string {
	b.t.Helper()
	runs := b.runs(client, s.Name)
	if len(runs) == 0 {
		b.t.Fatalf("%s was not run", s.Name)
	}
	for i, name := range s.args {
		if name == "lease in ms" {
			return runs[len(runs)-1].args[i]
		}
	}
	b.t.Fatalf("%s takes no lease", s.Name)
	return ""
}

// Up to 3.14 an attempt sends its own lease, or the watchdog timeout. Whatever its outcome, it
// leaves this lease in the lock object, and an unlock sends it.
func TestTheLeaseFieldIsTheLastAttempts(t *testing.T) {
	each(t, func(b *bench, k kind) {
		if !k.isOneOf("3.4.2 3.11.0 3.12.4") {
			return // see TestTheLeaseFieldIsTheLastGrants
		}
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 50 * time.Second}))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease of an attempt without, after one with", b.leaseSent("c1", k.acquire()), "30000")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 50 * time.Second}))
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		same(b.t, "lease of an unlock after it", b.leaseSent("c1", k.unlock()), "50000")
		same(b.t, "time to live after it", b.m.TTL("x"), 50*time.Second)
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		same(b.t, "lease of a second unlock", b.leaseSent("c1", k.unlock()), "50000") // nothing resets it
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 50 * time.Second}))
		b.tried(false)(l.TryLockTimed(background, 2, lockimpl.TryOptions{Lease: 40 * time.Second}))
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		same(b.t, "lease of an unlock after another's failed attempt", b.leaseSent("c1", k.unlock()), "40000")
		same(b.t, "time to live after it", b.m.TTL("x"), 40*time.Second)
		b.tried(false)(l.TryLock(background, 2))
		b.tried(true)(l.TryLock(background, 1))
		b.released(lockimpl.StillHeld)(b.lock(c, k, "x").Unlock(background, 1))
		same(b.t, "lease of another object of that name", b.leaseSent("c1", k.unlock()), "30000")
	})
}

// An attempt writes the lease field when it is sent, not when it is answered. If two are under way
// together, the lease of the later one stays.
func TestTheLeaseFieldIsTheLastAttemptsThatWasSent(t *testing.T) {
	each(t, func(b *bench, k kind) {
		if !k.isOneOf("3.4.2 3.11.0 3.12.4") {
			return
		}
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.answer(func(command) fate { return fate{late: time.Second} })
		granted := b.beginLock(background, l, 1, lockimpl.LockOptions{Lease: 50 * time.Second})
		b.until(500 * time.Millisecond)
		refused := b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 2, lockimpl.TryOptions{Lease: 40 * time.Second})
		})
		granted.grantedAt(time.Second)
		refused.wait()
		b.answer(nil)
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		same(b.t, "lease of an unlock", b.leaseSent("c1", k.unlock()), "40000")
	})
}

// Since 3.15 the lease of a grant stays in the lock object. An attempt without a lease and an
// unlock send it. It stays until an unlock is answered: in 3.21.3 with anything (issue 5623), later
// with 1 or nil.
func TestTheLeaseFieldIsTheLastGrants(t *testing.T) {
	each(t, func(b *bench, k kind) {
		if k.isOneOf("3.4.2 3.11.0 3.12.4") {
			return // see TestTheLeaseFieldIsTheLastAttempts
		}
		afterPartial := byRelease[string]{"3.21.3": "30000", "3.43.0 4.7.0": "50000"}.forRelease(b.t, k.Release)
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x")
		lease := func() string { return b.leaseSent("c1", k.acquire()) }
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease at first", lease(), "30000")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 50 * time.Second}))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease after an attempt with lease", lease(), "50000")
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		same(b.t, "lease of an unlock", b.leaseSent("c1", k.unlock()), "50000")
		same(b.t, "time to live after it", b.m.TTL("x"), 50*time.Second)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease after an unlock that was answered 0", lease(), afterPartial)
		b.must(b.lock(c, k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease of another object of that name", lease(), "30000")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 50 * time.Second}))
		if _, err := l.Unlock(background, 2); !errors.Is(err, lockimpl.ErrNotHeld) {
			b.t.Fatal(err)
		}
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease after an unlock that was answered nil", lease(), "30000")

		// A failed attempt leaves the field alone.
		b.tried(false)(l.TryLockTimed(background, 2, lockimpl.TryOptions{Lease: 40 * time.Second}))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease after a failed attempt", lease(), "30000")

		// And an unlock answered 1 resets it.
		for range 6 {
			b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		}
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 50 * time.Second}))
		b.released(lockimpl.StillHeld)(b.lock(c, k, "x").Unlock(background, 1)) // another object's field
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease after an unlock that was answered 1", lease(), "30000")
	})
}

// Since 3.15 a forceUnlock resets the field, too, whether or not it freed anything. Before, it
// never did.
func TestTheLeaseFieldAfterAForceUnlock(t *testing.T) {
	each(t, func(b *bench, k kind) {
		want := byRelease[string]{"3.4.2 3.11.0 3.12.4": "50000", "3.21.3 3.43.0 4.7.0": "30000"}.forRelease(b.t, k.Release)
		c := b.client(k.Release, "c1")
		for _, free := range []bool{false, true} {
			l := b.lock(c, k, "x")
			b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 50 * time.Second}))
			if free {
				b.m.Del("x")
			}
			b.tried(!free)(l.ForceUnlock(background))
			_, _ = l.Unlock(background, 1) // it sends the field, whatever its outcome
			same(b.t, "lease of an unlock", b.leaseSent("c1", k.unlock()), want)
		}
	})
}

// A renewal that finds nothing resets the lease field of its lock object, in releases whose
// watchdog then drops the entry (interop: TestLibraryTellsAsKept).
func TestTheLeaseFieldAfterARenewalThatFoundNothing(t *testing.T) {
	each(t, func(b *bench, k kind) {
		want := byRelease[string]{"3.4.2 3.11.0 3.12.4 3.21.3 3.43.0": "30000", "4.7.0": "50000"}.forRelease(b.t, k.Release)
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: 50 * time.Second}))
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.m.Del("x")
		b.until(15 * time.Second)
		same(b.t, "renewals", len(b.renewals(k.Release, "c1")), 1)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "lease of an attempt", b.leaseSent("c1", k.acquire()), want)
	})
}

// KEYS and ARGV of the plain lock's scripts, and the DEL of the latch (since 3.24.0), for which
// nobody waits.
func TestKeysAndArgumentsOfThePlainLock(t *testing.T) {
	type run struct {
		script     string
		keys, args []string
	}
	for _, name := range []struct{ name, channel, latch string }{
		{"x", "redisson_lock__channel:{x}", "redisson_unlock_latch:{x}:"},
		{"a{b}c", "redisson_lock__channel:a{b}c", "redisson_unlock_latch:a{b}c:"},
	} {
		lock, channel, latch := []string{name.name}, []string{name.name, name.channel}, name.latch+fmt.Sprintf("%032d", 1)
		acquire := func(script string) []run {
			return []run{{script, lock, []string{"20000", "c1:7"}}, {script, lock, []string{"30000", "c1:8"}}}
		}
		unlock := func(script string) []run {
			return []run{{"force_unlock", channel, []string{"0"}}, {script, channel, []string{"0", "20000", "c1:7"}}}
		}
		latched := func(ms string) []run { // with half of the jitter
			return []run{
				{"DEL", nil, []string{latch}},
				{"force_unlock_command", channel, []string{"0", "PUBLISH"}},
				{"unlock_latch", []string{name.name, name.channel, latch}, []string{"0", "20000", "c1:7", "PUBLISH", ms}},
			}
		}
		want := byRelease[[]run]{
			"3.4.2":  slices.Concat(acquire("acquire_hset"), unlock("unlock_lenient")),
			"3.11.0": slices.Concat(acquire("acquire_hset"), unlock("unlock_owner")),
			"3.12.4": slices.Concat(acquire("acquire_hincrby"), unlock("unlock_owner")),
			"3.21.3": slices.Concat(acquire("acquire_merged"), unlock("unlock_owner")),
			"3.43.0": slices.Concat(acquire("acquire_merged"), latched("13500")),
			"4.7.0":  slices.Concat(acquire("acquire_merged"), latched("18000")),
		}
		t.Run(name.name, func(t *testing.T) {
			eachRelease(t, func(b *bench, rel *Release) {
				l := b.lock(b.client(rel, "c1"), kind{rel, false}, name.name)
				b.must(l.Lock(background, 7, lockimpl.LockOptions{Lease: 20 * time.Second}))
				b.released(lockimpl.Released)(l.Unlock(background, 7))
				b.tried(true)(l.TryLock(background, 8))
				b.tried(true)(l.ForceUnlock(background))
				var got []run
				for _, c := range b.commands("c1") {
					if c.op == "DEL" {
						got = append(got, run{"DEL", nil, c.args})
					}
					one := run{c.script, c.keys, c.args}
					again := func(r run) bool { return reflect.DeepEqual(r, one) } // EVALSHA around SCRIPT LOAD
					if c.script != "" && !slices.ContainsFunc(got, again) {
						got = append(got, one)
					}
				}
				// The DEL races with the next command, so their order means nothing.
				byName := func(x, y run) int {
					return strings.Compare(x.script+strings.Join(x.args, " "), y.script+strings.Join(y.args, " "))
				}
				wanted := slices.SortedFunc(slices.Values(want.forRelease(b.t, rel)), byName)
				slices.SortFunc(got, byName)
				same(b.t, "commands", got, wanted)
			})
		})
	}
}

// The latch (since 3.24.0) is deleted after any reply but not after an error. Each unlock has a
// request id of its own. Earlier releases delete nothing.
func TestTheLatchIsDeletedAfterTheReply(t *testing.T) {
	each(t, func(b *bench, k kind) {
		if !k.isOneOf("3.43.0 4.7.0") {
			l := b.lock(b.client(k.Release, "c1"), k, "x")
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
			b.released(lockimpl.Released)(l.Unlock(background, 1))
			same(b.t, "commands of lock and unlock", len(b.commands("c1")), 2)
			return
		}
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		dels := func() (keys []string) {
			for _, c := range b.commands("c1") {
				if c.op == "DEL" {
					keys = append(keys, c.args...)
				}
			}
			return keys
		}
		for range 2 {
			b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		}
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
		b.released(lockimpl.Released)(l.Unlock(background, 1))
		runs := b.runs("c1", k.unlock().Name)
		runs = runs[len(runs)-2:]
		var latches []string
		for _, r := range runs {
			latches = append(latches, r.keys[len(r.keys)-1])
		}
		if latches[0] == latches[1] {
			b.t.Errorf("two unlocks share the latch %s", latches[0])
		}
		deleted := dels()
		slices.Sort(deleted) // nobody waits for a DEL, so their order means nothing
		same(b.t, "deleted", deleted, latches)
		same(b.t, "keys left", b.keys(), []string(nil))

		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.forget()
		b.answer(loses(k.unlock().Name))
		if _, err := l.Unlock(background, 1); !errors.Is(err, lockimpl.ErrUnknownOutcome) {
			b.t.Fatal(err)
		}
		same(b.t, "deleted after a lost reply", dels(), []string(nil))
		same(b.t, "keys left after a lost reply", len(b.keys()), 1)
	})
}

func TestForceUnlockFreesWhoeverHolds(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l1, l2 := b.lock(b.client(k.Release, "c1"), k, "x"), b.lock(b.client(k.Release, "c2"), k, "x")
		b.tried(false)(l1.ForceUnlock(background))
		for range 2 {
			b.must(l1.Lock(background, 1, lockimpl.LockOptions{}))
		}
		waiter := b.beginLock(background, l1, 2, lockimpl.LockOptions{Lease: time.Minute})
		b.until(time.Second)
		b.tried(true)(l2.ForceUnlock(background))
		waiter.grantedAt(time.Second)
		if _, err := l1.Unlock(background, 1); !errors.Is(err, lockimpl.ErrNotHeld) {
			b.t.Errorf("unlock after somebody's force unlock: %v; want ErrNotHeld", err)
		}
	})
}

// The end of the context is Java's interrupt. lock() swallows it while waiting, and then waits its
// full time again; up to 3.10.5 it returns as if it had the lock (issue 1593).
func TestLockAndAnInterruptWhileWaiting(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder, l := b.lock(b.client(k.Release, "c1"), k, "x"), b.lock(b.client(k.Release, "c2"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
		ctx, cancel := context.WithCancel(background)
		lock := b.beginLock(ctx, l, 1, lockimpl.LockOptions{})
		b.until(4 * time.Second)
		cancel()
		if k.isOneOf("3.4.2") {
			lock.grantedAt(4 * time.Second)
			same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
			same(b.t, "channels left", b.channels(), []string{})
			return
		}
		lock.grantedAt(14 * time.Second)
		same(b.t, "hash", b.held("x"), map[string]string{"c2:1": "1"})
	})
}

// A wait without bound does not notice an interrupt, which then ends the next attempt: the caller
// gets an error although it holds the lock. (lock() of 3.4.2 returns at once.)
func TestAnInterruptOfAWaitWithoutBound(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		b.m.HSet("x", "other:1", "1") // without a time to live
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		ctx, cancel := context.WithCancel(background)
		lock := b.beginLock(ctx, l, 1, lockimpl.LockOptions{})
		b.until(4 * time.Second)
		cancel()
		b.until(8 * time.Second)
		if (kind{rel, false}).isOneOf("3.4.2") {
			lock.grantedAt(4 * time.Second)
			return
		}
		if lock.ended() {
			b.t.Fatal("the waiter noticed the interrupt")
		}
		b.m.Del("x")
		b.m.Publish(ChannelName("x"), "0")
		b.until(9 * time.Second)
		if !lock.ended() || !errors.Is(lock.err, lockimpl.ErrUnknownOutcome) || !errors.Is(lock.err, context.Canceled) {
			b.t.Errorf("lock ended: %v, with %v", lock.ended(), lock.err)
		}
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
	})
}

func TestLockInterruptiblyAndTryLockReturnAtAnInterrupt(t *testing.T) {
	for what, wait := range map[string]func(context.Context, lockimpl.Lock) (bool, error){
		"lockInterruptibly": func(ctx context.Context, l lockimpl.Lock) (bool, error) {
			err := l.Lock(ctx, 1, lockimpl.LockOptions{Interruptible: true})
			return err == nil, err
		},
		"tryLock": func(ctx context.Context, l lockimpl.Lock) (bool, error) {
			return l.TryLockTimed(ctx, 1, lockimpl.TryOptions{Wait: time.Minute})
		},
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				holder, l := b.lock(b.client(k.Release, "c1"), k, "x"), b.lock(b.client(k.Release, "c2"), k, "x")
				b.must(holder.Lock(background, 1, lockimpl.LockOptions{Lease: 10 * time.Second}))
				ctx, cancel := context.WithCancel(background)
				call := b.begin(func() (bool, error) { return wait(ctx, l) })
				b.until(4 * time.Second)
				cancel()
				call.failedAt(4*time.Second, context.Canceled)
				if errors.Is(call.err, lockimpl.ErrUnknownOutcome) {
					b.t.Errorf("nothing was under way, and yet: %v", call.err)
				}
				synctest.Wait()
				same(b.t, "channels left", b.channels(), []string{})
				if k.fair { // an interrupt does not leave the queue
					queue, _ := b.m.List(QueueName("x"))
					same(b.t, "queue", queue, []string{"c2:1"})
					same(b.t, "leave scripts", len(b.runs("c2", k.FairLeave.Name)), 0)
				}
			})
		})
	}
}

// Issues 2714 and 4368: the caller is gone, its attempt is granted, and the watchdog renews a hold
// of which nobody knows. In 3.4.2 the wait for a reply does not notice an interrupt, so the caller
// learns of its hold.
func TestAnInterruptedAttemptThatAcquiredIsRenewedForever(t *testing.T) {
	for what, attempt := range map[string]func(context.Context, lockimpl.Lock) (bool, error){
		"lock": func(ctx context.Context, l lockimpl.Lock) (bool, error) {
			err := l.Lock(ctx, 1, lockimpl.LockOptions{})
			return err == nil, err
		},
		"tryLock": func(ctx context.Context, l lockimpl.Lock) (bool, error) {
			return l.TryLockTimed(ctx, 1, lockimpl.TryOptions{Wait: time.Minute})
		},
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(b *bench, k kind) {
				l := b.lock(b.client(k.Release, "c1"), k, "x")
				b.answer(func(c command) fate {
					if c.script == k.acquire().Name {
						return fate{late: time.Second}
					}
					return fate{}
				})
				ctx, cancel := context.WithCancel(background)
				call := b.begin(func() (bool, error) { return attempt(ctx, l) })
				b.until(500 * time.Millisecond)
				cancel()
				if k.isOneOf("3.4.2") {
					call.grantedAt(time.Second)
					return
				}
				call.failedAt(500*time.Millisecond, lockimpl.ErrUnknownOutcome)
				if !errors.Is(call.err, context.Canceled) {
					b.t.Errorf("error %v does not tell that it was interrupted", call.err)
				}
				b.until(10 * time.Minute)
				same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
			})
		})
	}
}

func TestAnInterruptedUnlockRunsAllTheSame(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.answer(func(c command) fate { return fate{late: time.Second} })
		ctx, cancel := context.WithCancel(background)
		call := b.begin(func() (bool, error) { got, err := l.Unlock(ctx, 1); return got == lockimpl.Released, err })
		cancel()
		if k.isOneOf("3.4.2") { // it does not notice while it waits for the reply
			call.grantedAt(time.Second)
		} else {
			call.failedAt(0, lockimpl.ErrUnknownOutcome)
		}
		b.until(5 * time.Second)
		same(b.t, "keys left", b.keys(), []string(nil)) // the latch is gone too
		b.forget()
		b.until(time.Minute)
		same(b.t, "commands after it", len(b.commands("c1")), 0)
	})
}

func TestInvalidArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c := b.client(k.Release, "c1")
		for _, name := range []string{"", "a{b", "{", "}a{"} {
			for _, get := range []func(string) (lockimpl.Lock, error){c.GetLock, c.GetFairLock} {
				if l, err := get(name); !errors.Is(err, lockimpl.ErrInvalid) || l != nil {
					b.t.Errorf("lock named %q: %v, %v; want ErrInvalid", name, l, err)
				}
			}
		}
		l := b.lock(c, k, "x")
		for _, lease := range []time.Duration{-1, -time.Second, time.Millisecond - 1} {
			if err := l.Lock(background, 1, lockimpl.LockOptions{Lease: lease}); !errors.Is(err, lockimpl.ErrInvalid) {
				b.t.Errorf("lock with lease %v: %v; want ErrInvalid", lease, err)
			}
			if ok, err := l.TryLockTimed(background, 1, lockimpl.TryOptions{Lease: lease}); !errors.Is(err, lockimpl.ErrInvalid) || ok {
				b.t.Errorf("try with lease %v: %v, %v; want ErrInvalid", lease, ok, err)
			}
		}
		if ok, err := l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: -1}); !errors.Is(err, lockimpl.ErrInvalid) || ok {
			b.t.Errorf("try with a negative wait: %v, %v; want ErrInvalid", ok, err)
		}
		same(b.t, "commands", len(b.commands("c1")), 0)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Millisecond})) // the least lease
	})
}

// Critical sections of many clients never overlap, and none is lost.
func TestManyClientsExcludeEachOther(t *testing.T) {
	each(t, func(b *bench, k kind) {
		const clients, rounds = 6, 5
		inside, total := 0, 0
		var all sync.WaitGroup
		for i := range clients {
			l := b.lock(b.client(k.Release, fmt.Sprint("c", i)), k, "x")
			all.Go(func() {
				for range rounds {
					if err := l.Lock(background, 1, lockimpl.LockOptions{}); err != nil {
						b.t.Error(err)
						return
					}
					if inside++; inside != 1 { // also a data race, if two are inside
						b.t.Errorf("%d inside", inside)
					}
					time.Sleep(10 * time.Millisecond)
					inside--
					total++
					if _, err := l.Unlock(background, 1); err != nil {
						b.t.Error(err)
					}
				}
			})
		}
		all.Wait()
		same(b.t, "critical sections", total, clients*rounds)
		synctest.Wait()
		same(b.t, "keys left", b.keys(), []string(nil))
		same(b.t, "channels left", b.channels(), []string{})
	})
}

func TestCloseEndsCallsUnderWayAndLaterOnes(t *testing.T) {
	each(t, func(b *bench, k kind) {
		holder := b.lock(b.client(k.Release, "c1"), k, "x")
		b.must(holder.Lock(background, 1, lockimpl.LockOptions{}))
		c := b.client(k.Release, "c2")
		l, mine := b.lock(c, k, "x"), b.lock(c, k, "y")
		b.must(mine.Lock(background, 1, lockimpl.LockOptions{}))
		lock := b.beginLock(background, l, 1, lockimpl.LockOptions{})
		try := b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 2, lockimpl.TryOptions{Wait: time.Hour})
		})
		b.until(5 * time.Second)
		b.must(c.Close())
		b.must(c.Close()) // a second one does nothing
		lock.failedAt(5*time.Second, lockimpl.ErrClosed)
		try.failedAt(5*time.Second, lockimpl.ErrClosed)
		synctest.Wait()
		same(b.t, "channels left", b.channels(), []string{})

		b.forget()
		for what, err := range map[string]error{
			"lock":         l.Lock(background, 3, lockimpl.LockOptions{}),
			"try lock":     second(l.TryLock(background, 3)),
			"timed try":    second(l.TryLockTimed(background, 3, lockimpl.TryOptions{Wait: time.Second})),
			"unlock":       second(mine.Unlock(background, 1)),
			"force unlock": second(mine.ForceUnlock(background)),
			"is locked":    second(l.IsLocked(background)),
			"is held by":   second(l.IsHeldBy(background, 1)),
			"hold count":   second(l.HoldCount(background, 1)),
			"ttl":          second(l.RemainTimeToLive(background)),
		} {
			if !errors.Is(err, lockimpl.ErrClosed) {
				b.t.Errorf("%s on a closed client: %v; want ErrClosed", what, err)
			}
		}
		// Close unlocks nothing: the hold ends with its lease, which nobody renews any more.
		same(b.t, "hash", b.held("y"), map[string]string{"c2:1": "1"})
		b.until(30*time.Second - 1)
		same(b.t, "hash at the end of its lease", b.held("y"), map[string]string{"c2:1": "1"})
		b.until(30 * time.Second)
		same(b.t, "hash after it", b.held("y"), map[string]string{})
		same(b.t, "commands of a closed client", len(b.commands("c2")), 0)
	})
}

func second[T any](_ T, err error) error { return err }
