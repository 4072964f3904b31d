package sim

import (
	cryptorand "crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/model"
)

// asStranger runs f in a program that is not settled and has two processors.
func asStranger(t *testing.T, f func()) {
	t.Helper()
	wasSettled, procs := settled.Load(), runtime.GOMAXPROCS(2)
	garbage.mu.Lock()
	c := &garbage
	if c.on != nil {
		c.on.Stop()
	}
	off, percent, limit := c.off, c.percent, c.limit
	c.off = false
	garbage.mu.Unlock()
	wasPercent, wasLimit := debug.SetGCPercent(100), debug.SetMemoryLimit(8<<30)
	settled.Store(false)
	defer func() {
		garbage.mu.Lock()
		c.on.Stop()
		c.off, c.percent, c.limit = off, percent, limit
		garbage.mu.Unlock()
		settled.Store(wasSettled)
		debug.SetGCPercent(wasPercent)
		debug.SetMemoryLimit(wasLimit)
		runtime.GOMAXPROCS(procs)
	}()
	f()
}

// gambler is the body of a thread that talks, sleeps and draws from every source that a
// world seeds.
func gambler(drawn *[]string) func(*Thread) {
	return func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		for range 5 {
			word := cryptorand.Text()
			c.talk("set " + word + "\n")
			pause := time.Duration(mathrand.Intn(int(time.Second)))
			*drawn = append(*drawn, word, pause.String())
			th.Sleep(pause)
		}
	}
}

// gamble plays one world of a gambler, and returns its draws and its record.
func gamble(h *Host, chooser Chooser) (drawn []string, record string) {
	r := playOn(h, Config{Chooser: chooser}, []*echo{{}}, map[string]func(*Thread){"a": gambler(&drawn)})
	return drawn, r.Record.Digest()
}

func TestAGuestLeavesTheProgramAsItIs(t *testing.T) {
	for _, setting := range []string{"", "randseednop=1"} {
		t.Setenv("GODEBUG", setting)
		if setting == "" {
			_ = os.Unsetenv("GODEBUG") // Setenv puts back what was set before
		}
		asStranger(t, func() {
			inside, random := 0, false
			playOn(GuestHost(t), Config{}, nil, map[string]func(*Thread){"a": func(*Thread) {
				inside = runtime.GOMAXPROCS(0)
				//lint:ignore SA1019 a guest must not change what a test seeds
				mathrand.Seed(5) // does nothing
				first := mathrand.Int63()
				//lint:ignore SA1019 a guest must not change what a test seeds
				mathrand.Seed(5)
				random = first != mathrand.Int63()
			}})
			equal(t, "processors of the world", inside, 1)
			equal(t, "processors after the world", runtime.GOMAXPROCS(0), 2)
			equal(t, "rand.Seed does nothing within the world", random, true)
			got, set := os.LookupEnv("GODEBUG")
			equal(t, "GODEBUG", got, setting)
			equal(t, "GODEBUG is set", set, setting != "")
			garbage.on.Stop()
			garbage.turnOn()
			equal(t, "GOGC", debug.SetGCPercent(100), 100)
			equal(t, "memory limit", debug.SetMemoryLimit(8<<30), 8<<30)
		})
	}
}

func TestAHostThatOwnsTheProgramKeepsOneProcessor(t *testing.T) {
	asStranger(t, func() {
		playOn(GuestHost(t), Config{}, nil, map[string]func(*Thread){"a": func(*Thread) { NewHost(t) }})
		equal(t, "processors", runtime.GOMAXPROCS(0), 1)
		runtime.GOMAXPROCS(2) // as another test may do
		inside := 0
		play(t, Config{}, nil, map[string]func(*Thread){"a": func(*Thread) { inside = runtime.GOMAXPROCS(0) }})
		equal(t, "processors of the world", inside, 1)
	})
}

func TestWorldsOfParallelTestsTakeTurnsAndRepeat(t *testing.T) {
	asStranger(t, func() {
		var bubbles atomic.Int32
		var over atomic.Bool
		var beside sync.WaitGroup // the work of other tests
		for range 2 {
			beside.Go(func() {
				seen := map[string]bool{}
				for !over.Load() {
					var group sync.WaitGroup
					group.Go(func() {}) // math/rand is shared: a draw here may change a world, see Host.Chance
					group.Wait()
					word := cryptorand.Text()
					if seen[word] {
						t.Errorf("%s was drawn before", word)
					}
					seen[word] = true
					time.Sleep(100 * time.Microsecond)
				}
			})
		}
		t.Run("all", func(t *testing.T) {
			for i := range 4 {
				t.Run(fmt.Sprint("worlds", i), func(t *testing.T) {
					t.Parallel()
					h := GuestHost(t)
					for seed := range 5 {
						var records []string
						for range 2 {
							host := h
							if i == 0 {
								host = &Host{t: t, StillAfter: stillAfter, Chance: true} // takes its turn as well
							}
							drawn, record := gamble(host, NewSeeded(uint64(seed)))
							records = append(records, record+strings.Join(drawn, " "))
						}
						if records[0] != records[1] {
							t.Errorf("seed %d played twice differs:\n%s\n%s", seed, records[0], records[1])
						}
					}
					h.Bubble(func() {
						equal(t, "bubbles at one time", bubbles.Add(1), 1)
						time.Sleep(time.Second)
						bubbles.Add(-1)
					})
				})
			}
		})
		over.Store(true)
		beside.Wait()
	})
}

func TestAWorldDoesNotTakeOtherGoroutinesForItsOwn(t *testing.T) {
	for name, host := range map[string]*Host{"of its own": NewHost(t), "guest": GuestHost(t)} {
		outside, gone := make(chan struct{}), make(chan struct{})
		go func() {
			<-outside
			close(gone)
		}()
		r := playOn(host, Config{}, nil, map[string]func(*Thread){"a": func(*Thread) {
			go time.Sleep(2 * time.Minute) // ends by itself, later than the first check
			close(outside)                 // the program has as many goroutines as before
			<-gone
		}})
		equal(t, name+": left", events(r, model.KindLeft), "")
	}
}

// hangs plays a world that must hang, and returns its error.
func hangs(t *testing.T, bodies map[string]func(*Thread)) (hung *Hung) {
	t.Helper()
	defer func() {
		err, _ := recover().(error)
		if !errors.As(err, &hung) {
			t.Fatalf("the world ended with %v", err)
		}
	}()
	h := GuestHost(t)
	h.StillAfter = 40 * time.Millisecond
	playOn(h, Config{}, nil, bodies)
	return nil
}

func TestAHungWorldOfAGuestPanics(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	var mu sync.Mutex
	var stop atomic.Bool
	defer stop.Store(true)
	outside := make(chan int)
	for _, c := range []struct {
		name   string
		bodies map[string]func(*Thread)
		want   string
	}{
		{"mutex", map[string]func(*Thread){
			"a": func(th *Thread) {
				mu.Lock()
				th.Sleep(time.Second)
				mu.Unlock()
			},
			"b": func(th *Thread) {
				th.Sleep(time.Millisecond)
				mu.Lock()
			},
		}, "waits for a sync.Mutex"},
		{"pipe", map[string]func(*Thread){"a": func(*Thread) { _, _ = in.Read(make([]byte, 1)) }}, "operating system"},
		{"channel", map[string]func(*Thread){"a": func(*Thread) { <-outside }}, "made outside"},
		{"loop", map[string]func(*Thread){"a": func(*Thread) {
			for !stop.Load() {
			}
		}}, "without an end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if Overlaid && c.name == "mutex" {
				t.Skip("with the overlay a goroutine may wait for a mutex")
			}
			asStranger(t, func() {
				stop.Store(false)
				hung := hangs(t, c.bodies)
				stop.Store(true)
				if text := hung.Error(); !strings.Contains(text, c.want) || !strings.Contains(text, "TestAHungWorldOfAGuestPanics") {
					t.Errorf("the error is %q", text)
				}
				if !strings.Contains(hung.Stacks, "guest_test.go") {
					t.Errorf("the stacks are %q", hung.Stacks)
				}
				equal(t, "processors", runtime.GOMAXPROCS(0), 2)
				drawn, _ := gamble(GuestHost(t), NewSeeded(1))
				equal(t, "draws of the next world", len(drawn), 10)
			})
		})
	}
}

func TestAHungWorldDoesNotGoOnLater(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	read, on := make(chan struct{}), make(chan struct{})
	hangs(t, map[string]func(*Thread){"a": func(th *Thread) {
		_, _ = in.Read(make([]byte, 1))
		close(read)
		th.Sleep(time.Millisecond)
		close(on)
	}})
	_ = out.Close()
	<-read
	playOn(GuestHost(t), Config{}, nil, map[string]func(*Thread){"a": func(th *Thread) {
		for range 100 {
			th.Sleep(time.Second)
		}
	}})
	select {
	case <-on:
		t.Error("a thread of the world that hung took another step")
	default:
	}
}

func TestChanceRepeats(t *testing.T) {
	one, record := gamble(GuestHost(t), NewSeeded(1))
	again, recordAgain := gamble(GuestHost(t), NewSeeded(1))
	if !slices.Equal(one, again) || record != recordAgain {
		t.Errorf("one seed drew %v and %v", one, again)
	}
	if other, _ := gamble(GuestHost(t), NewSeeded(2)); slices.Contains(other, one[0]) || slices.Contains(other, one[1]) {
		t.Errorf("two seeds drew %v and %v", one, other)
	}
	recorder := NewRecorder(NewSeeded(1))
	gamble(GuestHost(t), recorder)
	replayed, _ := gamble(GuestHost(t), NewReplayer(recorder.Drawn))
	if !slices.Equal(one, replayed) {
		t.Errorf("the recording of %v drew %v", one, replayed)
	}
}

func TestNothingIsSeededAfterAWorldNorBesideIt(t *testing.T) {
	draw := func() string { return fmt.Sprint(cryptorand.Text(), mathrand.Int63(), mathrand.Int63()) }
	var after, beside [2]string
	for i := range 2 {
		gamble(GuestHost(t), NewSeeded(1))
		after[i] = draw()
		ask, answer := make(chan struct{}), make(chan string, 1)
		go func() {
			<-ask
			answer <- cryptorand.Text()
		}()
		playOn(GuestHost(t), Config{}, nil, map[string]func(*Thread){"a": func(*Thread) {
			close(ask)
			beside[i] = <-answer
		}})
	}
	if after[0] == after[1] {
		t.Errorf("after two worlds of one seed both drew %s", after[0])
	}
	if beside[0] == beside[1] {
		t.Errorf("beside two worlds of one seed both drew %s", beside[0])
	}
}

func TestAHostThatOwnsTheProgramDrawsNoChance(t *testing.T) {
	recorder := NewRecorder(NewSeeded(1))
	one, _ := gamble(NewHost(t), recorder)
	two, _ := gamble(NewHost(t), NewSeeded(1))
	if _, drew := recorder.Drawn["chance"]; drew {
		t.Error("the chooser was asked for chance")
	}
	if !Overlaid && slices.Equal(one, two) {
		t.Errorf("chance repeats: %v", one)
	}
}

func TestAProcessHasChanceOfItsOwn(t *testing.T) {
	draw := func(chooser Chooser, bFirst bool) (a, b uint64) {
		playOn(NewHost(t), Config{Chooser: chooser}, nil, map[string]func(*Thread){
			"a": func(th *Thread) {
				if bFirst {
					th.Sleep(time.Second)
				}
				a = th.p.Rand().Uint64() ^ th.p.Rand().Uint64()>>1
			},
			"b": func(th *Thread) {
				th.Sleep(100 * ms)
				b = th.p.Rand().Uint64() ^ th.p.Rand().Uint64()>>1
			},
		})
		return a, b
	}
	a, b := draw(NewSeeded(1), false)
	if a2, b2 := draw(NewSeeded(1), true); a2 != a || b2 != b || a == b {
		t.Errorf("one seed drew %d %d and %d %d", a, b, a2, b2)
	}
	if a2, _ := draw(NewSeeded(2), false); a2 == a {
		t.Errorf("two seeds drew %d", a)
	}
	if a, b := draw(NewReplayer(nil), false); a == b {
		t.Errorf("two processes drew %d", a)
	}
}
