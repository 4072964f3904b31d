package redis

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// busy is a stage with many things at once: two processes of two threads, goroutines within a call,
// a small pool, subscriptions, scripts, contexts that run out and a fault of nearly every kind.
func busy(chooser sim.Chooser) *stage { return crowded(chooser, time.Microsecond) }

// crowded is busy with goroutines that a call starts some time apart.
func crowded(chooser sim.Chooser, apart time.Duration) *stage {

	s := newStage(
		model.FaultSpec{Kind: model.FaultRule, When: model.When{Command: "GET", Every: 7}, Do: "drop"},
		model.FaultSpec{Kind: model.FaultRule, When: model.When{Direction: "reply", Command: "INCR", Every: 9}, Do: "reset"},
		model.FaultSpec{Kind: model.FaultRule, When: model.When{Channel: "ch*", Every: 5}, Do: "delay", For: 30 * ms},
		model.FaultSpec{Kind: model.FaultPause, Processes: []string{"a"}, At: 100 * ms, For: 200 * ms},
		model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"b"}, At: 250 * ms, For: 100 * ms},
		model.FaultSpec{Kind: model.FaultServer, Server: "flush_scripts", At: 400 * ms},
		model.FaultSpec{Kind: model.FaultServer, Server: "failover", LoseLast: 3, At: 500 * ms},
		model.FaultSpec{Kind: model.FaultCrash, Processes: []string{"b"}, At: 900 * ms},
	)
	s.Chooser = chooser
	s.LatencyMin, s.LatencyMax = 200*time.Microsecond, 2*ms
	s.Processes = []sim.ProcessConfig{{Name: "a", Threads: 2}, {Name: "b", Threads: 2}}
	s.client = func(o *redis.Options) {
		o.PoolSize, o.PoolTimeout = 3, 50*ms
		o.ReadTimeout, o.ContextTimeoutEnabled = 60*ms, true
	}
	script := redis.NewScript("redis.call('publish', 'ch', ARGV[1]) return redis.call('incr', KEYS[1])")
	work := func(th *sim.Thread, c *redis.Client) {
		for range 6 {
			_ = operate(th, func(ctx context.Context) error {
				sub := c.Subscribe(ctx, "ch")
				defer sub.Close()
				var all sync.WaitGroup
				for i := range 5 {
					all.Go(func() {
						if apart > 0 {
							time.Sleep(time.Duration(i) * apart)
						}
						ctx, cancel := context.WithTimeout(ctx, time.Duration(10+i)*ms)
						defer cancel()
						c.Incr(ctx, fmt.Sprintf("n%d", i))
						c.Get(ctx, fmt.Sprintf("n%d", i))
						script.Run(ctx, c, []string{"n"}, th.Name())
					})
				}
				all.Wait()
				_, err := sub.ReceiveTimeout(ctx, 5*ms)
				c.Set(ctx, "lease:"+th.Name(), th.Process().NewID(int64(th.Number())), 20*ms)
				return err
			})
			th.Sleep(th.Process().Jitter(int64(th.Number()), 100*ms))
		}
	}
	for _, name := range []string{"a/1", "a/2", "b/1", "b/2"} {
		s.does(name, work)
	}
	return s
}

func TestASeedRepeatsItsRecordWhateverRanBefore(t *testing.T) {
	h := sim.NewHost(t)
	seeds := []uint64{1, 2, 3, 4, 5, 6, 7, 8}
	digests := map[uint64]string{}
	for _, seed := range seeds {
		r := busy(sim.NewSeeded(seed)).run(h)
		if n := len(r.Record.Events); n < 500 {
			t.Fatalf("seed %d: only %d events, the stage is not busy", seed, n)
		}
		digests[seed] = r.Record.Digest()
	}
	for range longtest.Size(t, 2, 4) { // forwards and backwards
		slices.Reverse(seeds)
		for _, seed := range seeds {
			equal(t, fmt.Sprint("digest of seed ", seed), busy(sim.NewSeeded(seed)).run(h).Record.Digest(), digests[seed])
		}
	}
}

func TestSeedsDiffer(t *testing.T) {
	h := sim.NewHost(t)
	seen := map[string]uint64{}
	for seed := range uint64(8) {
		d := busy(sim.NewSeeded(seed)).run(h).Record.Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("seeds %d and %d give the same record", other, seed)
		}
		seen[d] = seed
	}
}

func TestTheHostRunsOnOneProcessor(t *testing.T) {
	sim.NewHost(t)
	equal(t, "GOMAXPROCS", runtime.GOMAXPROCS(0), 1)
}

func TestStepsOfAThreadTakeTheTimeTheySay(t *testing.T) {
	var now []time.Duration
	s := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		see := func() { now = append(now, clock(th)) }
		th.Sleep(2 * time.Second)
		see()
		th.At(5 * time.Second)
		see()
		th.At(time.Second) // has passed
		see()
		th.Do(func() {})
		see()
		c.Ping(context.Background())
		see()
	})
	s.run(sim.NewHost(t))
	equal(t, "instants", fmt.Sprint(now), "[2s 5s 5s 5s 5.002s]")
}

func TestACallIsRecordedFromInvokeToReturn(t *testing.T) {
	r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		for _, end := range []error{nil, errors.New("no luck")} {
			_ = operate(th, func(ctx context.Context) error { c.Get(ctx, "k"); return end })
		}
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		c.Get(context.Background(), "k") // outside of any call
	}).run(sim.NewHost(t))
	var got []string
	for _, e := range pick(r, func(e model.Event) bool {
		return slices.Contains([]model.Kind{model.KindInvoke, model.KindSend, model.KindExec, model.KindDeliver, model.KindReturn}, e.Kind)
	}) {
		got = append(got, fmt.Sprintf("%s %s %d %v", e.Kind, e.Process, e.Op, at(e)))
	}
	want := []string{
		"send b 0 0s", "invoke a 1 0s", "send a 1 0s",
		"exec b 0 1ms", "exec a 1 1ms", "deliver b 0 2ms", "deliver a 1 2ms", "return a 1 2ms",
		"invoke a 2 2ms", "send a 2 2ms", "exec a 2 3ms", "deliver a 2 4ms", "return a 2 4ms",
	}
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "events", strings.Join(got, "\n"), strings.Join(want, "\n"))
	returns := pick(r, ofKind(model.KindReturn))
	equal(t, "first outcome", returns[0].Outcome, model.Granted)
	equal(t, "second outcome", returns[1].Outcome, model.Failed)
	equal(t, "second error", returns[1].Error, "no luck")
}

func TestARunPassesFromFaultsToCalmToLeaving(t *testing.T) {
	for _, c := range []struct {
		name  string
		body  body
		calm  time.Duration
		leave time.Duration
	}{
		{"everybody done: Settle after the last step", func(th *sim.Thread, c *redis.Client) { th.Sleep(time.Second) }, 4 * time.Second, 7 * time.Second},
		{"somebody waits: Quiet after the last step", func(th *sim.Thread, c *redis.Client) {
			th.Sleep(time.Second)
			_ = operate(th, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		}, 11 * time.Second, 21 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage().does("a/1", c.body)
			s.Quiet, s.Settle, s.Drain = 10*time.Second, 3*time.Second, 5*time.Second
			r := s.run(sim.NewHost(t))
			equal(t, "calm", at(pick(r, ofKind(model.KindCalm))[0]), c.calm)
			equal(t, "leave", at(pick(r, ofKind(model.KindLeave))[0]), c.leave)
			equal(t, "end", time.Duration(r.SimNs).Round(time.Millisecond), c.leave+s.Drain)
			equal(t, "clients closed in order", len(pick(r, ofKind(model.KindClose))), 2)
		})
	}
}

func TestACallStillOpenWhenAllLeaveIsWaitingAndInterrupted(t *testing.T) {
	var cause error
	r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		_ = operate(th, func(ctx context.Context) error { <-ctx.Done(); cause = context.Cause(ctx); return cause })
		t.Error("a step followed after all had left")
	}).run(sim.NewHost(t))
	equal(t, "cause", cause, sim.ErrInterrupted)
	returns := pick(r, ofKind(model.KindReturn))
	equal(t, "returns", len(returns), 1)
	equal(t, "outcome", returns[0].Outcome, model.Waiting)
}

func TestInterruptCancelsACallAndOnlyACall(t *testing.T) {
	var causes []error
	s := newStage()
	r := s.does("a/1", func(th *sim.Thread, c *redis.Client) {
		wait := func(d time.Duration) error {
			return operate(th, func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(d):
					return nil
				}
			})
		}
		causes = append(causes, wait(5*time.Second)) // met at 1 s
		th.At(3 * time.Second)                       // met by nothing at 2 s
		causes = append(causes, wait(time.Second))
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		target := s.world.Process("a").Threads()[0]
		th.At(time.Second)
		th.Interrupt(target)
		th.At(2 * time.Second)
		th.Interrupt(target)
	}).run(sim.NewHost(t))
	equal(t, "causes", fmt.Sprint(causes), fmt.Sprint([]error{sim.ErrInterrupted, nil}))
	equal(t, "first return", at(pick(r, ofKind(model.KindReturn))[0]), time.Second)
	var met []bool
	for _, e := range pick(r, func(e model.Event) bool { return e.Phase == "interrupt" }) {
		equal(t, "target", e.Text, "a/1")
		met = append(met, e.Met)
	}
	equal(t, "met", fmt.Sprint(met), "[true false]")
}

func TestALockThatPanicsIsADefectAndTheRunGoesOn(t *testing.T) {
	r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		_ = operate(th, func(context.Context) error { panic("nil lock") })
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		th.Sleep(time.Second)
	}).run(sim.NewHost(t))
	defects := pick(r, ofKind(model.KindDefect))
	if len(defects) != 1 {
		t.Fatalf("%d defects, want 1", len(defects))
	}
	equal(t, "who", defects[0].ThreadName(), "a/1")
	equal(t, "text", defects[0].Text, "the lock panicked: nil lock")
	equal(t, "others done", len(pick(r, func(e model.Event) bool { return e.Kind == model.KindDone && e.Process == "b" })), 1)
}

func TestALeftoverGoroutineIsListedByItsPlaceAndItsStarter(t *testing.T) {
	h := sim.NewHost(t)
	here := reflect.TypeFor[stage]().PkgPath()
	for name, leak := range map[string]func(){
		"blocked for ever": func() { select {} },
		"asleep for ever": func() {
			for {
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
				_ = operate(th, func(context.Context) error { go leak(); return nil })
			}).run(h.For(t))
			left := pick(r, ofKind(model.KindLeft))
			if len(left) != 1 || !strings.HasPrefix(left[0].Text, "goroutine "+here+".TestALeftoverGoroutine") {
				t.Fatalf("left: %+v", left)
			}
			if g := left[0].Goroutine; g == nil || !strings.HasPrefix(g.Stands, here+".TestALeftoverGoroutine") || "goroutine "+g.Started != left[0].Text || g.Stands == g.Started || g.Closes != "" {
				t.Errorf("the goroutine that is left: %+v", g)
			}
		})
	}
	r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) { c.Ping(context.Background()) }).run(h)
	equal(t, "left by a clean run after it", len(pick(r, ofKind(model.KindLeft))), 0)
}

func TestKeysAndChannelsThatStayAreListed(t *testing.T) {
	r := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		ctx := context.Background()
		c.Set(ctx, "stays", 1, 0)
		c.Set(ctx, "expires", 1, 500*time.Millisecond)
		sub := c.Subscribe(ctx, "gone")
		_, _ = sub.Receive(ctx)
		_ = sub.Close()
		// In a client that nobody closes.
		p := th.Process()
		_, _ = goredis.NewClient(p, goredis.Options(p, addr)).Subscribe(ctx, "forgotten").Receive(ctx)
	}).run(sim.NewHost(t))
	var left []string
	for _, e := range pick(r, ofKind(model.KindLeft)) {
		left = append(left, e.Key+e.Channel)
	}
	slices.Sort(left)
	equal(t, "left", fmt.Sprint(left), "[forgotten stays]")
}

func TestARunThatNeverRestsEndsAtMaxEventsWithADefect(t *testing.T) {
	for _, c := range []struct {
		name string
		body body
	}{
		{"a thread that sleeps for ever", func(th *sim.Thread, c *redis.Client) {
			for {
				th.Sleep(time.Millisecond)
			}
		}},
		{"a thread that calls for ever", func(th *sim.Thread, c *redis.Client) {
			for {
				_ = operate(th, func(ctx context.Context) error { return c.Ping(ctx).Err() })
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage().does("a/1", c.body)
			s.MaxEvents = 500
			r := s.run(sim.NewHost(t))
			defects := pick(r, ofKind(model.KindDefect))
			if len(defects) != 1 || defects[0].Text != "the run did not come to rest within 500 events" || defects[0].Limit != 500 {
				t.Errorf("defects: %+v", defects)
			}
			if n := at(defects[0]); n > 500*time.Millisecond {
				t.Errorf("500 events, each a millisecond at most, ended only at %v", n)
			}
			equal(t, "leaves after it", len(pick(r, ofKind(model.KindLeave))), 1)
		})
	}
}

func TestAResourceIsReadWorkedOnAndWritten(t *testing.T) {
	var sold []bool
	s := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		keep := int64(0)
		for range 3 {
			sold = append(sold, th.Use("seats", 2, 10*time.Millisecond, &keep))
		}
	})
	s.Resources = map[string]int64{"seats": 4}
	r := s.run(sim.NewHost(t))
	equal(t, "had enough", fmt.Sprint(sold), "[true true false]")
	var got []string
	for _, e := range pick(r, ofKind(model.KindResource)) {
		got = append(got, fmt.Sprint(e.Phase, " ", e.Value))
	}
	equal(t, "visits", strings.Join(got, ", "), "read 4, write 2, read 2, write 0, read 0")
}

// A resource refuses a token that is smaller than the greatest it has seen, even from readers, and
// every request without a token.
func TestAResourceRefusesAnOldToken(t *testing.T) {
	var got []string
	use := func(th *sim.Thread, token int64, work time.Duration) {
		sold, refused := th.UseFenced("seats", token, 1, work, nil)
		got = append(got, fmt.Sprint(th.Name(), " ", token, " ", sold, " ", refused))
	}
	s := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
		use(th, 33, time.Second) // b has read with 34 when a writes, and not written yet
		th.At(2 * time.Second)
		use(th, 33, 0)
		use(th, 34, 0) // the same is not smaller
		use(th, 0, 0)
		use(th, 35, 0)
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		th.At(500 * time.Millisecond)
		use(th, 34, time.Second)
	})
	s.Resources = map[string]int64{"seats": 9}
	r := s.run(sim.NewHost(t))
	equal(t, "uses", strings.Join(got, ", "), "a/1 33 false true, b/1 34 true false, a/1 33 false true, a/1 34 true false, a/1 0 false true, a/1 35 true false")
	var visits []string
	for _, e := range pick(r, ofKind(model.KindResource)) {
		visits = append(visits, strings.TrimSpace(fmt.Sprint(e.ThreadName(), " ", e.Phase, " ", e.Value, " ", e.Text)))
	}
	equal(t, "visits", strings.Join(visits, "\n"), strings.Join([]string{
		"a/1 read 9", "b/1 read 9", "a/1 refused 33 token 33, after 34", "b/1 write 8", "a/1 refused 33 token 33, after 34",
		"a/1 read 8", "a/1 write 7", "a/1 refused 0 token 0, after 34", "a/1 read 7", "a/1 write 6",
	}, "\n"))
}

// The world distinguishes operations that send the same words at the same time, even if the client
// sends them again: here it does so for the first operation, while the answers to the others are
// under way.
func TestACommandBelongsToTheOperationThatSendsItAgain(t *testing.T) {
	for name, command := range map[string]func(context.Context, *redis.Client) error{
		"alone": func(ctx context.Context, c *redis.Client) error { return c.Del(ctx, "x").Err() },
		"in a pipeline": func(ctx context.Context, c *redis.Client) error {
			_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.Echo(ctx, "first")
				p.Del(ctx, "x")
				return nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(
				model.FaultSpec{Kind: model.FaultRule, Do: "delay", For: 200 * ms, When: model.When{Command: "DEL", Direction: "reply", Nth: 1}},
				model.FaultSpec{Kind: model.FaultRule, Do: "delay", For: 50 * ms, When: model.When{Command: "DEL", Direction: "reply", Nth: 2}},
				model.FaultSpec{Kind: model.FaultRule, Do: "delay", For: 50 * ms, When: model.When{Command: "DEL", Direction: "reply", Nth: 3}},
			)
			s.Processes[0].Threads = 3
			s.client = func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = 100*ms, 1 }
			for i, at := range []time.Duration{0, 80 * ms, 90 * ms} {
				s.does(fmt.Sprintf("a/%d", i+1), func(th *sim.Thread, c *redis.Client) {
					time.Sleep(at)
					if err := operate(th, func(ctx context.Context) error { return command(ctx, c) }); err != nil {
						t.Error(err)
					}
				})
			}
			var sent []int
			for _, e := range pick(s.run(sim.NewHost(t)), ofKind(model.KindSend)) {
				if e.Command == "DEL" {
					sent = append(sent, e.Op)
				}
			}
			equal(t, "operations", fmt.Sprint(sent), "[1 2 3 1]")
		})
	}
}

// Two threads of a process wake at one instant, in either order, and send the same words. The world
// orders them by their operations.
func TestTheSameWordsOfOneInstantAreSentInTheOrderOfTheirOperations(t *testing.T) {
	for _, first := range []int{1, 2} {
		for _, idle := range []bool{true, false} {
			t.Run(fmt.Sprintf("a/%d waits first, idle connections: %v", first, idle), func(t *testing.T) {
				s := newStage()
				s.Processes[0].Threads = 2
				var begin chan struct{}
				s.begin = func() { begin = make(chan struct{}) }
				ask := func(th *sim.Thread, c *redis.Client) {
					get := func(ctx context.Context) error { return c.Get(ctx, "k").Err() }
					if idle {
						_ = operate(th, get)
					}
					_ = operate(th, func(ctx context.Context) error {
						if th.Number() != first {
							time.Sleep(time.Second)
						}
						<-begin
						return get(ctx)
					})
				}
				r := s.does("a/1", ask).does("a/2", ask).does("b/1", func(th *sim.Thread, _ *redis.Client) {
					th.Sleep(2 * time.Second)
					th.Do(func() { close(begin) })
				}).run(sim.NewHost(t))
				var sent []string
				for _, e := range pick(r, ofKind(model.KindSend)) {
					if at(e) >= 2*time.Second {
						sent = append(sent, fmt.Sprintf("operation %d on connection %d", e.Op, e.Conn))
					}
				}
				want := "operation 1 on connection 1, operation 2 on connection 2"
				if idle {
					want = "operation 3 on connection 1, operation 4 on connection 2"
				}
				equal(t, "sent", strings.Join(sent, ", "), want)
			})
		}
	}
}
