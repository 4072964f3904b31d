package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
	"lockstep/lockimpl/redisson"
)

// onServers runs f against miniredis on loopback, and against redis-server.
func onServers(t *testing.T, f func(t *testing.T, addr string)) {
	t.Run("miniredis", func(t *testing.T) {
		f(t, miniredis.RunT(t).Addr())
	})
	t.Run("redis-server", func(t *testing.T) {
		f(t, redisserver.Start(t, "redis-server").Addr)
	})
}

func dial(t *testing.T, addr string) *redis.Client {
	rdb := redis.NewClient(redisson.Options(&redis.Options{Addr: addr}))
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// nothingLeft checks that the keys are those of somebody else, and keys that end by themselves
// within seconds.
func nothingLeft(t *testing.T, rdb *redis.Client) {
	t.Helper()
	keys := rdb.Keys(t.Context(), "*").Val()
	if !slices.Contains(keys, "somebody:else") {
		t.Errorf("the key of somebody else is gone; there are %q", keys)
	}
	for _, key := range keys {
		ttl := rdb.PTTL(t.Context(), key).Val() // -2: gone meanwhile
		if key != "somebody:else" && (ttl == -1 || ttl > 30*time.Second) {
			t.Errorf("%s is left behind, for %v", key, ttl)
		}
	}
}

// call runs the program.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

func TestGuardedSalesBalance(t *testing.T) {
	onServers(t, func(t *testing.T, addr string) {
		rdb := dial(t, addr)
		if err := rdb.Set(t.Context(), "somebody:else", 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
		sells := func(lock, release, says string) {
			t.Run(lock+" "+release, func(t *testing.T) {
				code, out, stderr := call(t.Context(), "-addr", addr, "-lock", lock, "-release", release, "-workers", "8", "-orders", "60", "-stock", "40", "-pack", "0s")
				if want := "60 orders, 40 in stock, 8 workers, lock " + says + "\nsold 40, left 0, turned away 20: the books balance\n"; code != exitOK || out != want || stderr != "" {
					t.Errorf("exit %d\n%s%s\nwant %s", code, out, stderr, want)
				}
				nothingLeft(t, rdb)
			})
		}
		for _, rel := range redisson.Releases {
			for _, lock := range []string{"plain", "fair"} {
				sells(lock, rel.Version, lock+" (redisson "+rel.Version+")")
			}
		}
		sells("fenced", "", "fenced (redisson 4.7.0)")
	})
}

func TestFewOrders(t *testing.T) {
	addr := miniredis.RunT(t).Addr()
	for _, tt := range []struct{ orders, stock, want string }{
		{"0", "3", "sold 0, left 3, turned away 0: the books balance"},
		{"3", "0", "sold 0, left 0, turned away 3: the books balance"},
		{"3", "5", "sold 3, left 2, turned away 0: the books balance"},
	} {
		code, out, stderr := call(t.Context(), "-addr", addr, "-orders", tt.orders, "-stock", tt.stock)
		if code != exitOK || !strings.HasSuffix(out, "\n"+tt.want+"\n") {
			t.Errorf("%s of %s: exit %d\n%s%s", tt.orders, tt.stock, code, out, stderr)
		}
	}
}

// shopOn opens a shop as run does. pack returns the work between GET and SET.
func shopOn(t *testing.T, addr, lock string, stock int, pack func(*shop, *redisson.Client) func(context.Context) error) *shop {
	t.Helper()
	rdb := dial(t, addr)
	client := redisson.NewClient(rdb, redisson.Config{WatchHolds: true, RetryAttempts: -1})
	t.Cleanup(func() { _ = client.Close() })
	s := &shop{rdb: rdb, name: "test", log: slog.New(slog.DiscardHandler)}
	s.pack = pack(s, client)
	var err error
	if s.guard, err = newGuard(lock, client, s.lockName()); err != nil {
		t.Fatal(err)
	}
	if err := s.open(t.Context(), stock); err != nil {
		t.Fatal(err)
	}
	return s
}

// Both workers look before either books.
func TestWithoutALockItOversells(t *testing.T) {
	onServers(t, func(t *testing.T, addr string) {
		var both sync.WaitGroup
		both.Add(2)
		s := shopOn(t, addr, "none", 1, func(*shop, *redisson.Client) func(context.Context) error {
			return func(context.Context) error {
				both.Done()
				both.Wait()
				return nil
			}
		})
		b, err := s.serve(t.Context(), 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		left, err := s.left()
		if err != nil {
			t.Fatal(err)
		}
		text, balanced := b.balance(1, left)
		if want := "sold 2, left 0, turned away 0: OVERSOLD by 1 of 1"; text != want || balanced {
			t.Errorf("%s; want %s", text, want)
		}
	})
}

// The first order loses its hold while it packs. It books nothing, and the others go on.
func TestALostHoldStopsTheWork(t *testing.T) {
	for _, lock := range []string{"plain", "fair", "fenced"} {
		t.Run(lock, func(t *testing.T) {
			onServers(t, func(t *testing.T, addr string) {
				var once sync.Once
				s := shopOn(t, addr, lock, 10, func(s *shop, client *redisson.Client) func(context.Context) error {
					l, err := client.GetLock(s.lockName())
					if lock == "fair" {
						l, err = client.GetFairLock(s.lockName())
					}
					if err != nil {
						t.Fatal(err)
					}
					return func(ctx context.Context) (err error) {
						once.Do(func() {
							if _, err = l.ForceUnlock(t.Context()); err != nil { // not ctx, which it ends
								return
							}
							<-ctx.Done()
							err = context.Cause(ctx)
						})
						return err
					}
				})
				b, err := s.serve(t.Context(), 3, 5)
				if want := (books{sold: 4, givenUp: 1}); err != nil || b != want {
					t.Errorf("%+v, %v; want %+v", b, err, want)
				}
				if left, err := s.left(); err != nil || left != 6 {
					t.Errorf("left %d, %v; want 6", left, err)
				}
			})
		})
	}
}

func TestAStaleTokenBooksNothing(t *testing.T) {
	onServers(t, func(t *testing.T, addr string) {
		s := shopOn(t, addr, "fenced", 10, func(*shop, *redisson.Client) func(context.Context) error { return nil })
		if err := s.book(t.Context(), 8, 2); err != nil {
			t.Fatal(err)
		}
		if err := s.book(t.Context(), 9, 1); !errors.Is(err, errStale) {
			t.Errorf("an older hold's booking: %v; want %v", err, errStale)
		}
		if err := s.book(t.Context(), 7, 2); err != nil {
			t.Errorf("the same hold's next booking: %v", err)
		}
		if left, err := s.left(); err != nil || left != 7 {
			t.Errorf("left %d, %v; want 7", left, err)
		}
	})
}

func TestRedisGoesAway(t *testing.T) {
	server := miniredis.RunT(t)
	s := shopOn(t, server.Addr(), "plain", 10, func(*shop, *redisson.Client) func(context.Context) error {
		return func(context.Context) error {
			server.Close()
			return nil
		}
	})
	b, err := s.serve(t.Context(), 3, 5)
	if err == nil || b.sold > 0 {
		t.Errorf("%+v, %v; want nothing sold, and an error", b, err)
	}
	if _, err := s.left(); err == nil {
		t.Error("left is known without Redis")
	}
}

// interrupt cancels when the first sale is logged.
type interrupt struct {
	mu     sync.Mutex // an attempt that was given up may log after the end
	text   bytes.Buffer
	cancel context.CancelFunc
}

func (w *interrupt) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bytes.Contains(p, []byte("msg=sold ")) {
		w.cancel()
	}
	return w.text.Write(p)
}

func (w *interrupt) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func TestAnInterruptFinishesTheOrdersUnderWay(t *testing.T) {
	for _, lock := range guardNames[:3] {
		t.Run(lock, func(t *testing.T) {
			onServers(t, func(t *testing.T, addr string) {
				rdb := dial(t, addr)
				if err := rdb.Set(t.Context(), "somebody:else", 1, 0).Err(); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				stderr := &interrupt{cancel: cancel}
				var out bytes.Buffer
				code := run(ctx, []string{"-addr", addr, "-lock", lock, "-workers", "4", "-orders", "1000000", "-stock", "1000000", "-pack", "0s", "-v"}, &out, stderr)
				if code != exitInterrupted || !strings.Contains(stderr.String(), "stock: interrupted") {
					t.Errorf("exit %d\n%s%s", code, out.String(), stderr.String())
				}
				if !regexp.MustCompile(`\nsold [1-9]\d*, left 999\d+, turned away 0: the books balance\n$`).Match(out.Bytes()) {
					t.Errorf("it prints\n%s", out.String())
				}
				nothingLeft(t, rdb)
			})
		})
	}
}

func TestNoRedis(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call(t.Context(), "-addr", addr)
	if code != exitFailed || out != "" || !strings.Contains(stderr, "no Redis at "+addr) || !strings.Contains(stderr, "-addr host:port") {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}

func TestUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown lock \"fairy\"; known: plain, fair, fenced, none": {"-lock", "fairy"},
		"unknown redisson release \"9\"; known: 3.4.2":             {"-release", "9"},
		"redisson 3.12.4 has none":                                 {"-lock", "fenced", "-release", "3.12.4"},
		"unexpected argument \"now\"":                              {"now"},
		"-workers 0":                                               {"-workers", "0"},
		"-stock and -pack are not negative":                        {"-orders", "-1"},
		"flag provided but not defined: -port":                     {"-port", "1"},
		"invalid value \"many\"":                                   {"-workers", "many"},
	} {
		code, out, stderr := call(t.Context(), args...)
		if code != exitUsage || out != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "Usage of stock:") != 1 {
			t.Errorf("%v: exit %d, want %d and %q\n%s%s", args, code, exitUsage, want, out, stderr)
		}
	}
	if code, _, stderr := call(t.Context(), "-h"); code != exitOK || !strings.Contains(stderr, "Usage of stock:") {
		t.Errorf("-h: exit %d\n%s", code, stderr)
	}
}

func TestBalance(t *testing.T) {
	for _, tt := range []struct {
		books
		left     int
		want     string
		balanced bool
	}{
		{books{sold: 7, turnedAway: 1}, 3, "sold 7, left 3, turned away 1: the books balance", true},
		{books{sold: 7, givenUp: 2}, 3, "sold 7, left 3, turned away 0, given up 2: the books balance", true},
		{books{sold: 6, unknown: 1}, 3, "sold 6, left 3, turned away 0, unknown 1: the books balance, with those of which nobody knows", true},
		{books{sold: 5, unknown: 1}, 3, "sold 5, left 3, turned away 0, unknown 1: 2 of 10 are missing", false},
		{books{sold: 9}, 3, "sold 9, left 3, turned away 0: OVERSOLD by 2 of 10", false},
	} {
		if text, balanced := tt.balance(10, tt.left); text != tt.want || balanced != tt.balanced {
			t.Errorf("%s, %v; want %s, %v", text, balanced, tt.want, tt.balanced)
		}
	}
}
