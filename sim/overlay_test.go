//go:build lockstep_overlay

package sim

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
	mathrand "math/rand"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockstep/model"
)

func TestAGoroutineThatWaitsForAMutexLetsTimePass(t *testing.T) {
	for name, lock := range map[string]func() (first, second, unlock func()){
		"Mutex":                func() (_, _, _ func()) { var mu sync.Mutex; return mu.Lock, mu.Lock, mu.Unlock },
		"RWMutex, a writer":    func() (_, _, _ func()) { var mu sync.RWMutex; return mu.RLock, mu.Lock, mu.RUnlock },
		"RWMutex, a reader":    func() (_, _, _ func()) { var mu sync.RWMutex; return mu.Lock, mu.RLock, mu.Unlock },
		"RWMutex, two writers": func() (_, _, _ func()) { var mu sync.RWMutex; return mu.Lock, mu.Lock, mu.Unlock },
		"Once, whose first call": func() (_, _, _ func()) {
			var once sync.Once
			on := make(chan struct{})
			return func() { go once.Do(func() { <-on }) }, func() { once.Do(func() {}) }, func() { close(on) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			first, second, unlock := lock()
			play(t, Config{}, nil, map[string]func(*Thread){
				"a": func(th *Thread) {
					// A channel of the world wakes a goroutine of the world only.
					first, second, unlock = lock()
					first()
					th.Sleep(time.Hour)
					unlock()
				},
				"b": func(th *Thread) {
					th.Sleep(time.Second)
					second()
					got = clock(th)
				},
			})
			equal(t, "the second has it at", got, "1h0m0s")
		})
	}
}

// early are sources of chance that no world has made.
var (
	earlyV1     = mathrand.New(mathrand.NewSource(time.Now().UnixNano()))
	earlyPCG    = rand.New(rand.NewPCG(rand.Uint64(), 1))
	earlyChaCha = rand.NewChaCha8([32]byte{1})
	earlyCrypto = cryptorand.Reader
)

// chances draw from each source that the overlay seeds.
var chances = map[string]func() any{
	"math/rand/v2":             func() any { return rand.Uint64() },
	"an early math/rand":       func() any { return earlyV1.Int63() },
	"an early math/rand, read": func() any { b := make([]byte, 3); earlyV1.Read(b); return b },
	"an early PCG":             func() any { return earlyPCG.Uint64() },
	"an early ChaCha8":         func() any { b := make([]byte, 3); earlyChaCha.Read(b); return b },
	"a key":                    func() any { return cryptorand.Text() },
	"an early reader":          func() any { b := make([]byte, 3); _, _ = earlyCrypto.Read(b); return b },
	"maphash":                  func() any { var h maphash.Hash; return h.Sum64() },
	"select": func() any {
		a, b := make(chan int, 64), make(chan int, 64)
		for range 64 {
			a <- 0
			b <- 1
		}
		var s []int
		for range 64 {
			select {
			case x := <-a:
				s = append(s, x)
			case x := <-b:
				s = append(s, x)
			}
		}
		return s
	},
	"the order of a map": func() any {
		m := map[string]int{}
		for i := range 100 {
			m[fmt.Sprint("key ", i)] = i
		}
		var s []string
		for key := range m {
			s = append(s, key)
		}
		return s
	},
	"the order of a sync.Map": func() any {
		var m sync.Map
		for i := range 100 {
			m.Store(i, i)
		}
		var s []any
		m.Range(func(key, _ any) bool { s = append(s, key); return true })
		return s
	},
	"timers of one instant": func() any {
		var mu sync.Mutex
		var s []int
		done := make(chan struct{})
		for i := range 20 {
			time.AfterFunc(time.Second, func() {
				mu.Lock()
				defer mu.Unlock()
				if s = append(s, i); len(s) == 20 {
					close(done)
				}
			})
		}
		<-done
		return s
	},
	"a goroutine and a timer": func() any {
		c := make(chan uint64, 1)
		go func() { c <- rand.Uint64() }()
		first := <-c
		time.AfterFunc(time.Second, func() { c <- rand.Uint64() })
		return []uint64{first, <-c}
	},
}

func TestAllChanceRepeats(t *testing.T) {
	for name, draw := range chances {
		t.Run(name, func(t *testing.T) {
			drawn := func(seed uint64, others int) (s string) {
				play(t, Config{Chooser: NewSeeded(seed)}, nil, map[string]func(*Thread){
					"a": func(th *Thread) {
						th.Sleep(time.Second)
						s = fmt.Sprint(draw(), draw())
					},
					"b": func(*Thread) {
						for range others {
							draw()
						}
					},
				})
				return s
			}
			one, again, two := drawn(1, 0), drawn(1, 3), drawn(2, 0)
			if one != again {
				t.Errorf("one seed drew %s, and then %s", one, again)
			}
			if one == two && name != "the order of a sync.Map" || one == "" {
				t.Errorf("two seeds drew %s", one)
			}
		})
	}
}

func TestNoTwoGoroutinesDrawTheSame(t *testing.T) {
	var mu sync.Mutex
	var all []uint64
	draw := func() {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, rand.Uint64())
	}
	body := func(th *Thread) {
		for range 3 {
			draw()
			go func() { draw(); go draw() }()
			time.AfterFunc(time.Second, draw)
		}
		th.Sleep(2 * time.Second)
	}
	play(t, Config{}, nil, map[string]func(*Thread){"a": body, "b": body})
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); len(all) != 24 || n != 24 {
		t.Errorf("%d of %d draws differ", n, len(all))
	}
}

func TestASourceThatAWorldMadeIsAsWithoutTheOverlay(t *testing.T) {
	want := mathrand.New(mathrand.NewSource(7)).Int63()
	play(t, Config{}, nil, map[string]func(*Thread){"a": func(*Thread) {
		equal(t, "a source of the world", mathrand.New(mathrand.NewSource(7)).Int63(), want)
		equal(t, "a PCG of the world", rand.NewPCG(1, 2).Uint64(), 0xc4f5a58656eef510)
	}})
}

// clocked plays a world in which the processes a and b have these wall clocks.
func clocked(t *testing.T, a, b ProcessConfig, faults []model.FaultSpec, bodies map[string]func(*Thread)) {
	t.Helper()
	a.Name, b.Name, a.Threads, b.Threads = "a", "b", 1, 1
	cfg := Config{Chooser: NewSeeded(1), Processes: []ProcessConfig{a, b}, Faults: faults, LatencyMin: oneWay, LatencyMax: oneWay, Quiet: 30 * time.Second, Settle: time.Second, Drain: time.Second,
		Name: func([]string, Author) Command { return Command{} }}
	cfg.Nodes = []Node{{Addr: addr(1), Server: &echo{}}}
	Run(NewHost(t), cfg, func(w *World) {
		for _, p := range w.processes {
			for _, th := range p.threads {
				th.Start(func() { bodies[p.Name()](th) })
			}
		}
	})
}

func TestAProcessReadsItsWallClock(t *testing.T) {
	epoch := time.UnixMilli(EpochMs)
	wall := func() string { return time.Now().Round(0).Sub(epoch).Round(100 * time.Millisecond).String() }
	var a, b []string
	step := model.FaultSpec{Kind: model.FaultWallClock, Processes: []string{"a"}, At: 10 * time.Second, Step: -time.Hour}
	clocked(t, ProcessConfig{Offset: 90 * time.Second}, ProcessConfig{DriftPPM: 100_000}, []model.FaultSpec{step}, map[string]func(*Thread){
		"a": func(th *Thread) {
			began := time.Now()
			c := mustDial(th, 1)
			c.talk("a line\n")
			for range 3 {
				a = append(a, wall())
				equal(t, "time.Now and Process.Now", wall(), th.p.Now().Sub(epoch).Round(100*time.Millisecond).String())
				_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
				c.hear() // until the deadline
				time.Sleep(5 * time.Second)
			}
			equal(t, "by the monotonic clock", time.Since(began).Round(100*time.Millisecond), 21*time.Second)
			done := make(chan string)
			time.AfterFunc(time.Second, func() { done <- wall() })
			a = append(a, <-done)
			ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Minute))
			defer cancel()
			<-ctx.Done()
			equal(t, "after a deadline", th.p.w.Now().Round(time.Second), 82*time.Second)
		},
		"b": func(th *Thread) {
			th.Sleep(100 * time.Second)
			b = append(b, wall())
		},
	})
	equal(t, "the clock of a", strings.Join(a, " "), "1m30s 1m37s -58m16s -58m8s")
	equal(t, "the clock of b", strings.Join(b, " "), "1m50s")
}

func TestNothingOfAPausedProcessFires(t *testing.T) {
	run := func(said *[]string) func(th *Thread) {
		return func(th *Thread) {
			var mu sync.Mutex
			say := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				*said = append(*said, what+" "+clock(th))
			}
			go func() {
				every := time.NewTicker(3 * time.Second)
				defer every.Stop()
				for range 3 {
					<-every.C
					say("tick")
				}
			}()
			go func() { time.Sleep(4 * time.Second); say("slept") }()
			time.AfterFunc(5*time.Second, func() { say("func") })
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
				defer cancel()
				<-ctx.Done()
				say("context")
			}()
			go func() { <-time.After(7 * time.Second); say("after") }()
			stopped := time.AfterFunc(20*time.Second, func() { say("stopped") })
			reset := time.NewTimer(2 * time.Second)
			th.Sleep(time.Second)
			time.Sleep(8 * time.Second)
			say("woken")
			equal(t, "Stop", stopped.Stop(), true)
			reset.Reset(2 * time.Second)
			<-reset.C
			say("reset")
		}
	}
	var a, b []string
	pause := model.FaultSpec{Kind: model.FaultPause, Processes: []string{"a"}, At: 2500 * time.Millisecond, For: 13 * time.Second}
	play(t, Config{Faults: []model.FaultSpec{pause}}, nil, map[string]func(*Thread){"a": run(&a), "b": run(&b)})
	equal(t, "what the paused process does", strings.Join(a, ", "),
		"tick 15.5s, slept 15.5s, func 15.5s, context 15.5s, after 15.5s, woken 15.5s, reset 17.5s, tick 18s, tick 21s")
	equal(t, "what the other one does", strings.Join(b, ", "),
		"tick 3s, slept 4s, func 5s, tick 6s, context 6s, after 7s, tick 9s, woken 9s, reset 11s")
}

func TestWhatAPauseHasPutOffIsHereOneByOne(t *testing.T) {
	var at []time.Duration
	pause := func(from, length time.Duration) model.FaultSpec {
		return model.FaultSpec{Kind: model.FaultPause, Processes: []string{"a"}, At: from, For: length}
	}
	play(t, Config{Faults: []model.FaultSpec{pause(time.Second, 5*time.Second), pause(3*time.Second, 10*time.Second)}}, nil, map[string]func(*Thread){"a": func(th *Thread) {
		var mu sync.Mutex
		for range 10 {
			go func() {
				time.Sleep(2 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				at = append(at, th.p.w.Now())
			}()
		}
		th.Sleep(20 * time.Second)
	}})
	slices.Sort(at)
	if n := len(slices.Compact(slices.Clone(at))); n != 10 || at[0] < 13*time.Second || at[9] > 13*time.Second+time.Millisecond {
		t.Errorf("%d instants of 10: %v", n, at)
	}
}

func TestADialOfItsOwnReachesTheServersOfTheWorld(t *testing.T) {
	var astray []string
	play(t, Config{}, []*echo{{}}, map[string]func(*Thread){"a": func(th *Thread) {
		th.p.Astray(func(addr string) { astray = append(astray, addr) })
		for name, dial := range map[string]func() (net.Conn, error){
			"net.Dial": func() (net.Conn, error) { return net.Dial("tcp", addr(1)) },
			"net.Dialer": func() (net.Conn, error) {
				return (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp4", addr(1))
			},
			"DialTimeout": func() (net.Conn, error) { return net.DialTimeout("tcp", addr(1), time.Second) },
		} {
			c, err := dial()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := (talker{c, th}).talk("a line\n"); !strings.HasPrefix(got, "a line@") {
				t.Errorf("%s: the server says %q", name, got)
			}
			_ = c.Close()
		}
		_, err := net.Dial("tcp", "example.com:80")
		if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "no server of the world is at example.com:80") {
			t.Errorf("the dial of another address: %v", err)
		}
	}})
	equal(t, "the addresses without a server", strings.Join(astray, " "), "example.com:80")
}
