package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
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

	"lockstep/internal/longtest"
	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

func init() { redis.SetLogger(silent{}) }

// silent drops the messages that go-redis logs about connections closed at the end of a test.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Every release of the table has a recording, and every recording has a release.
func TestEveryReleaseIsRecorded(t *testing.T) {
	var versions []string
	for _, rel := range redisson.Releases {
		versions = append(versions, rel.Version)
		r, err := readRecording(rel.Version)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, kind := range kindsOf(rel) {
			n := 0
			for _, s := range r.Sequences {
				if s.Kind == kind {
					n++
				}
			}
			if n < 100 {
				t.Errorf("%s has %d sequences of the %s lock, not 100", recordingPath(rel.Version), n, kind)
			}
		}
	}
	files, err := filepath.Glob(recordingPath("*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if v := strings.TrimSuffix(filepath.Base(f), ".jsonl"); !slices.Contains(versions, v) {
			t.Errorf("%s is of a release that the table lacks; known: %s", f, strings.Join(versions, ", "))
		}
	}
}

// The recordings contain the situations that make a comparison worthwhile.
func TestRecordingsHoldWhatMatters(t *testing.T) {
	for _, rel := range redisson.Releases {
		r, err := readRecording(rel.Version)
		if err != nil {
			t.Fatal(err)
		}
		counts := map[string]int{}
		for _, s := range r.Sequences {
			for _, step := range s.Steps {
				counts[s.Kind+" "+step.Reply]++
				for _, e := range step.Ended {
					counts[s.Kind+" came back "+e.Reply]++
				}
				if step.Op.Outlasts && step.Reply == "ok" {
					counts[s.Kind+" outlasted"]++
				}
				if step.State != nil {
					for _, l := range step.State.Locks {
						if len(l.Queue) > 1 {
							counts[s.Kind+" two queue"]++
						}
					}
				}
			}
		}
		for _, kind := range kindsOf(rel) {
			for _, what := range []string{"ok", "true", "false", "blocked", "not_held", "came back ok", "came back interrupted"} {
				if counts[kind+" "+what] < 10 {
					t.Errorf("redisson %s: only %d times %s %s", rel.Version, counts[kind+" "+what], kind, what)
				}
			}
		}
		if n := counts["plain came back ok"]; n < 30 {
			t.Errorf("redisson %s: only %d times handed over", rel.Version, n)
		}
		if n := counts["fair two queue"]; n < 10 {
			t.Errorf("redisson %s: only %d times a queue of two", rel.Version, n)
		}
	}
}

// eachRecording visits the recording of each release: all of its sequences in a long test, and
// every tenth in a short one.
func eachRecording(t *testing.T, f func(t *testing.T, rel *redisson.Release, r Recording)) {
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			r, err := readRecording(rel.Version)
			if err != nil {
				t.Fatal(err)
			}
			every := 10 / longtest.Size(t, 1, 10)
			var part []Recorded
			for i := 0; i < len(r.Sequences); i += every {
				part = append(part, r.Sequences[i])
			}
			r.Sequences = part
			f(t, rel, r)
		})
	}
}

// On miniredis, in a bubble, the port answers as the library did on Redis.
func TestPortAnswersAsRecorded(t *testing.T) {
	eachRecording(t, func(t *testing.T, rel *redisson.Release, r Recording) {
		// go-redis keeps timers in a package-level pool; a timer of one bubble
		// kills the next one. Two collections empty the pool.
		runtime.GC()
		runtime.GC()
		synctest.Test(t, func(t *testing.T) {
			m := miniredis.NewMiniRedis()
			m.ClockTTL(true)
			for i, recorded := range r.Sequences {
				if err := playInBubble(m, rel, r.WatchdogMS, i, recorded); err != nil {
					t.Errorf("redisson %s, %s, seed %d: %v", rel.Version, recorded.Kind, recorded.Seed, err)
				}
			}
			m.Close()
			time.Sleep(time.Hour) // whatever was still to come
		})
	})
}

func playInBubble(m *miniredis.Miniredis, rel *redisson.Release, watchdogMS int64, n int, recorded Recorded) error {
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
	rdb := connect()
	b := &bubble{}
	ps := rdb.PSubscribe(context.Background(), "*")
	if _, err := ps.Receive(context.Background()); err != nil {
		return err
	}
	go b.listen(ps)
	s := &side{names: names{owners: map[string]string{}}, rdb: rdb, world: b, bell: func() {}, parks: parks(rel.Version)}
	clients := portClients(rel, "", watchdogMS, false, lockimpl.Environment{}, s.owners, connect)
	s.party = newPort(clients, func() {})
	err := replay(s, fmt.Sprintf("%d.", n), recorded)
	for _, c := range clients {
		_ = c.Close()
	}
	_ = ps.Close()
	for _, c := range open {
		_ = c.Close()
	}
	synctest.Wait()
	return err
}

// replay plays the recorded operations and compares the outcomes.
func replay(s *side, prefix string, recorded Recorded) error {
	s.begin(recorded.Kind, prefix)
	var steps []Step
	for _, want := range recorded.Steps {
		ends := slices.ContainsFunc(want.Ended, func(e Ended) bool { return e.Thread == want.Op.thread() })
		st, err := s.step(want.Op, &ends)
		if err != nil {
			return err
		}
		steps = append(steps, st)
		if want.difference(st, toleranceMS) != "" {
			break
		}
	}
	if err := s.finish(); err != nil {
		return err
	}
	if d := parted(recorded.Steps, steps, toleranceMS); d != nil {
		return fmt.Errorf("the port does not do as the library did:\n%v", d)
	}
	return nil
}

// slow is a connection whose answers to scripts take some time. Otherwise a waiter that is told to
// ask again at once would stop the time of the bubble.
type slow struct {
	net.Conn
	script atomic.Bool
	late   func(limit time.Duration) time.Duration // the delay of every answer and message; nil: none
}

func (c *slow) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("\r\neval")) {
		c.script.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *slow) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.script.CompareAndSwap(true, false) {
		time.Sleep(50 * time.Microsecond)
	}
	if c.late != nil {
		time.Sleep(c.late(drawnLatency))
	}
	return n, err
}

// bubble is a world whose time passes at once.
type bubble struct {
	mu       sync.Mutex
	messages []*redis.Message
}

func (b *bubble) listen(ps *redis.PubSub) {
	for {
		m, err := ps.ReceiveMessage(context.Background())
		if err != nil {
			return
		}
		b.mu.Lock()
		b.messages = append(b.messages, m)
		b.mu.Unlock()
	}
}

func (b *bubble) settle(s *side) error {
	for range 10_000 {
		time.Sleep(time.Millisecond) // of the bubble: many round trips
		synctest.Wait()
		if !slices.ContainsFunc(s.open, func(c *call) bool { return c.mustEnd && !c.done }) {
			return nil
		}
	}
	return errUnsettled
}

func (b *bubble) heard() []*redis.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.messages
	b.messages = nil
	return m
}

func (b *bubble) pass(_ *side, ttl time.Duration) error {
	time.Sleep(ttl + time.Millisecond)
	return nil
}

func (b *bubble) nowMS() int64 { return time.Now().UnixMilli() }

// On redis-server the port answers as the library did. The test does not sleep: it ends leases by
// making their keys older.
func TestPortOnRedisAnswersAsRecorded(t *testing.T) {
	server := StartServer(t)
	w := startWatch(t, server)
	next := 0
	eachRecording(t, func(t *testing.T, rel *redisson.Release, r Recording) {
		var queue []Recorded
		for _, recorded := range r.Sequences {
			// An interrupt must come while the call waits, and without a clock the test cannot know
			// that the call does.
			if !slices.ContainsFunc(recorded.Steps, func(s Step) bool { return s.Op.Do == doInterrupt && s.Reply == "ok" }) {
				queue = append(queue, recorded)
			}
		}
		t.Logf("redisson %s: %d of %d sequences are without an interrupt", rel.Version, len(queue), len(r.Sequences))
		play := func(queue []Recorded, players int, unsettled func(Recorded, error)) {
			sequences := make(chan Recorded, len(queue))
			for _, q := range queue {
				sequences <- q
			}
			close(sequences)
			var work sync.WaitGroup
			for range players {
				next++
				tag := fmt.Sprintf("p%d", next)
				connect := func() redis.UniversalClient {
					rdb := redis.NewClient(redisson.Options(&redis.Options{
						Addr: server.Addr, Protocol: 2, PoolSize: 16, DisableIdentity: true,
						MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
					}))
					t.Cleanup(func() { _ = rdb.Close() })
					return rdb
				}
				rdb := connect()
				e := w.join(tag, rdb)
				var older atomic.Int64
				e.offset = func() time.Duration { return time.Duration(older.Load()) }
				e.age = func(s *side, ttl time.Duration) error {
					older.Add(int64(ttl))
					return age(rdb, s.prefix, ttl)
				}
				s := &side{names: names{owners: map[string]string{}}, rdb: rdb, world: e, bell: e.ring, parks: parks(rel.Version)}
				clients := portClients(rel, tag, r.WatchdogMS, false, lockimpl.Environment{Now: func() time.Time { return time.Now().Add(e.offset()) }}, s.owners, connect)
				work.Go(func() {
					for n := 0; ; n++ {
						recorded, ok := <-sequences
						if !ok {
							break
						}
						s.party = newPort(clients, nil)
						err := replay(s, fmt.Sprintf("%s.%d.", tag, n), recorded)
						if errors.Is(err, errUnsettled) {
							unsettled(recorded, err)
							break // its calls are still under way
						}
						if err != nil {
							t.Errorf("redisson %s, %s, seed %d: %v", rel.Version, recorded.Kind, recorded.Seed, err)
						}
						e.forget()
					}
					for _, c := range clients {
						_ = c.Close()
					}
				})
			}
			work.Wait()
			for q := range sequences {
				unsettled(q, errors.New("nobody was left to play it"))
			}
		}
		// The test sees a waiter's last attempt, but not the moment at which it joins the waiters
		// of its process. On a busy machine it may join late, so that another waiter gets the
		// message. Such a sequence is tried once more, alone.
		var mu sync.Mutex
		var again []Recorded
		play(queue, 4, func(q Recorded, err error) {
			mu.Lock()
			defer mu.Unlock()
			t.Logf("redisson %s, %s, seed %d, to be tried again: %v", rel.Version, q.Kind, q.Seed, err)
			again = append(again, q)
		})
		for _, q := range again {
			play([]Recorded{q}, 1, func(q Recorded, err error) {
				t.Errorf("redisson %s, %s, seed %d: %v", rel.Version, q.Kind, q.Seed, err)
			})
		}
	})
}

// age makes the keys of a sequence older.
func age(rdb redis.UniversalClient, prefix string, by time.Duration) error {
	ctx := context.Background()
	keys, err := rdb.Keys(ctx, "*"+prefix+"*").Result()
	if err != nil {
		return err
	}
	for _, k := range keys {
		ttl, err := rdb.PTTL(ctx, k).Result()
		if err != nil {
			return err
		}
		if ttl >= 0 {
			if err := rdb.PExpire(ctx, k, ttl-by).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
