package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model"
)

// lineageWorld runs threads that call operations and write on plain connections, which
// carry no operation. It returns the operation of each request, and what the record
// says of the holder. The world has a server, and more, whose state nobody sees.
func lineageWorld(t *testing.T, threads int, body func(th *Thread, serving chan<- string), more ...Node) (ops map[string]int, holders []string) {
	t.Helper()
	ops = map[string]int{}
	for _, e := range lineageRecord(t, threads, body, more...).Events {
		switch e.Kind {
		case model.KindSend:
			ops[strings.Join(append([]string{e.Command}, e.Args...), " ")] = e.Op
		case model.KindState:
			holders = append(holders, e.State.Owner)
		case model.KindDefect:
			t.Error(e.Text)
		}
	}
	return ops, holders
}

func lineageRecord(t *testing.T, threads int, body func(th *Thread, serving chan<- string), more ...Node) *model.Record {
	t.Helper()
	e := &echo{}
	cfg := Config{
		Chooser: NewSeeded(1), LatencyMin: oneWay, LatencyMax: oneWay, Lineage: true,
		Nodes:     append([]Node{{Addr: addr(1), Server: e}}, more...),
		Processes: []ProcessConfig{{Name: "a", Threads: threads}},
		Name:      func([]string, Author) Command { return Command{} },
		State:     e.State, Locks: []string{"word"},
		Quiet: 30 * time.Second, Settle: time.Second, Drain: time.Second, MaxEvents: 10_000,
	}
	res := Run(NewHost(t), cfg, func(w *World) {
		p := w.processes[0]
		serving := make(chan string)
		go func() { // serves the whole process, as the writer of a pipeline does
			c, err := p.DialContext(context.Background(), "tcp", addr(1))
			if err != nil {
				panic(err)
			}
			for text := range serving {
				_, _ = c.Write([]byte(text))
			}
		}()
		p.OnClose(func() { close(serving) })
		for _, th := range p.threads {
			th.Start(func() { body(th, serving) })
		}
	})
	return res.Record
}

func lockCall(th *Thread, f func(ctx context.Context)) int {
	op, _ := th.Call(Operation{Action: model.ActLock, Lock: "word", WaitNs: -1}, func(ctx context.Context) (model.Outcome, error) {
		f(ctx)
		return model.Granted, nil
	})
	return op
}

func TestARequestBelongsToTheCallInWhoseGoroutineItIsWritten(t *testing.T) {
	called := map[int]int{}
	ops, holders := lineageWorld(t, 2, func(th *Thread, _ chan<- string) {
		called[th.Number()] = lockCall(th, func(context.Context) {
			mustDial(th, 1).talk(fmt.Sprintf("set own%d\n", th.Number()))
			done := make(chan struct{})
			go func() {
				defer close(done)
				written := make(chan struct{})
				go func() {
					defer close(written)
					time.Sleep(ms)
					mustDial(th, 1).talk(fmt.Sprintf("grandchild %d\n", th.Number()))
				}()
				<-written // a goroutine that ends leaves its descendants without a forebear
			}()
			<-done
		})
	})
	for n := 1; n <= 2; n++ {
		for _, request := range []string{fmt.Sprintf("set own%d", n), fmt.Sprintf("grandchild %d", n)} {
			if ops[request] == 0 || ops[request] != called[n] {
				t.Errorf("%q was sent in operation %d, and the world says %d", request, called[n], ops[request])
			}
		}
	}
	if want := []string{"a/1", "a/2", ""}; !slices.Equal(holders, want) {
		t.Errorf("the holders are %q, want %q", holders, want)
	}
}

// A goroutine that first writes when its call is over, such as a watchdog, sends in no call. One that writes in its call and
// goes on, such as the writer of a client's connection, sends in the call that is under way.
func TestAGoroutineThatOutlivesItsCall(t *testing.T) {
	ops, _ := lineageWorld(t, 1, func(th *Thread, _ chan<- string) {
		lockCall(th, func(context.Context) {
			renewing, writing := mustDial(th, 1), mustDial(th, 1)
			go func() {
				time.Sleep(40 * ms)
				renewing.talk("renew\n")
				time.Sleep(60 * ms)
				renewing.talk("again\n")
			}()
			go func() {
				writing.talk("early\n")
				time.Sleep(100 * ms)
				writing.talk("late\n")
			}()
			time.Sleep(10 * ms)
		})
		th.Sleep(50 * ms)
		lockCall(th, func(context.Context) { time.Sleep(200 * ms) })
	})
	if want := map[string]int{"renew": 0, "again": 0, "early": 1, "late": 2}; !maps.Equal(ops, want) {
		t.Errorf("the operations are %v, want %v", ops, want)
	}
}

// Only a goroutine that goes on after its call, or writes several requests, may write for other calls of its process.
func TestWhetherAGoroutineWritesForOthersIsKnownAtTheEnd(t *testing.T) {
	rec := lineageRecord(t, 2, func(th *Thread, _ chan<- string) {
		lockCall(th, func(context.Context) {
			ending, staying, several := mustDial(th, 1), mustDial(th, 1), mustDial(th, 1)
			time.Sleep(10 * ms) // the other calls begin, too
			go func() {
				ending.talk(fmt.Sprintf("own%d once\n", th.Number()))
				ending.talk(fmt.Sprintf("own%d once\n", th.Number()))
			}()
			go func() {
				several.talk(fmt.Sprintf("batch%d 1\n", th.Number()))
				several.talk(fmt.Sprintf("batch%d 2\n", th.Number()))
			}()
			go func() {
				staying.talk(fmt.Sprintf("first%d it\n", th.Number()))
				time.Sleep(100 * ms)
				staying.talk(fmt.Sprintf("late%d\n", th.Number()))
			}()
			time.Sleep(50 * ms)
		})
		th.Sleep(200 * ms)
	})
	guessed := map[string]bool{}
	for _, e := range rec.Events {
		if e.Kind == model.KindSend {
			guessed[e.Command] = guessed[e.Command] || e.Guessed
		}
	}
	if want := map[string]bool{"own1": false, "own2": false, "batch1": true, "batch2": true, "first1": true, "first2": true, "late1": false, "late2": false}; !maps.Equal(guessed, want) {
		t.Errorf("the calls of these requests are guessed: %v, want %v", guessed, want)
	}
}

// A client of a single thread writes in the goroutines that it started at first, in each call of
// the thread.
func TestAGoroutineThatServesAThreadSendsInTheCallOfThatThread(t *testing.T) {
	ops, _ := lineageWorld(t, 2, func(th *Thread, _ chan<- string) {
		texts := make(chan string)
		defer close(texts)
		lockCall(th, func(context.Context) {
			th.p.Serves("word", func() {
				go func() {
					c := mustDial(th, 1)
					defer c.Close()
					for text := range texts {
						_, _ = c.Write([]byte(text))
					}
				}()
			})
			texts <- fmt.Sprintf("first %d\n", th.Number())
			time.Sleep(ms)
		})
		lockCall(th, func(context.Context) {
			texts <- fmt.Sprintf("second %d\n", th.Number())
			time.Sleep(ms)
		})
		texts <- fmt.Sprintf("between %d\n", th.Number())
		th.Sleep(ms)
	})
	seen := map[int]bool{}
	for n := 1; n <= 2; n++ {
		for _, request := range []string{"first", "second"} {
			op := ops[fmt.Sprintf("%s %d", request, n)]
			if op == 0 || seen[op] {
				t.Errorf("the operations are %v, want another one for each call", ops)
			}
			seen[op] = true
		}
		if ops[fmt.Sprintf("between %d", n)] != 0 {
			t.Errorf("the operations are %v, want none between calls", ops)
		}
	}
}

func TestARequestOfAServingGoroutineBelongsToTheOnlyCall(t *testing.T) {
	ops, holders := lineageWorld(t, 2, func(th *Thread, serving chan<- string) {
		if th.Number() == 1 {
			lockCall(th, func(context.Context) {
				serving <- "set alone\n"
				time.Sleep(10 * ms)
			})
			return
		}
		th.Sleep(50 * ms)
		lockCall(th, func(context.Context) { time.Sleep(ms) })
	})
	if ops["set alone"] != 1 {
		t.Errorf("the operations are %v", ops)
	}
	if want := []string{"a/1", ""}; !slices.Equal(holders, want) {
		t.Errorf("the holders are %q, want %q", holders, want)
	}
}

// Two calls are under way, and a goroutine that serves both sends. Nobody knows for whom, until one
// of the two calls is granted the lock that has the value.
func TestAValueOfAnUnknownAuthorBelongsToTheCallThatIsGranted(t *testing.T) {
	ops, holders := lineageWorld(t, 2, func(th *Thread, serving chan<- string) {
		lockCall(th, func(context.Context) {
			if th.Number() == 2 {
				serving <- "set either\n"
				time.Sleep(10 * ms)
				return
			}
			time.Sleep(2000 * ms)
		})
	})
	if ops["set either"] != 0 {
		t.Errorf("the operations are %v", ops)
	}
	if want := []string{"a/2", ""}; !slices.Equal(holders, want) {
		t.Errorf("the holders are %q, want %q", holders, want)
	}
}

// A value that a call's goroutine wrote belongs to the call, even if another call is granted the lock first, unless
// the goroutine goes on to write, or the other call has no value of its own.
func TestAValueOfAGoroutineOfACallBelongsToItsThread(t *testing.T) {
	for _, c := range []struct {
		rule   string
		goesOn bool
		asks   string
		more   []Node
		want   []string
	}{
		{"it writes once", false, "set other", nil, []string{"a/1", "a/2", ""}},
		{"it goes on to write", true, "asks", nil, []string{"a/2", ""}},
		{"it takes the lock for a call that asks for nothing", false, "", nil, []string{"a/2", ""}},
		{"it takes the lock for a call that asks otherwise", false, "asks", nil, []string{"a/2", ""}},
		{"another server may have what the other call asked for", false, "asks", []Node{{Addr: addr(2), Server: &echo{}}}, []string{"a/1", ""}},
		{"it takes the lock of two servers for a call that asks for nothing", false, "", []Node{{Addr: addr(2), Server: &echo{}}}, []string{"a/2", ""}},
	} {
		_, holders := lineageWorld(t, 2, func(th *Thread, _ chan<- string) {
			lockCall(th, func(context.Context) {
				time.Sleep(10 * ms)
				if th.Number() == 2 {
					time.Sleep(20 * ms)
					if c.asks != "" {
						mustDial(th, 1).talk(c.asks + "\n")
					}
					time.Sleep(100 * ms)
				} else {
					conn := mustDial(th, 1)
					go func() {
						conn.talk("set mine\n")
						if c.goesOn {
							time.Sleep(2000 * ms)
							conn.talk("late\n")
						}
					}()
					time.Sleep(990 * ms)
				}
			})
			th.Sleep(2000 * ms)
		}, c.more...)
		if !slices.Equal(holders, c.want) {
			t.Errorf("%s: the holders are %q, want %q", c.rule, holders, c.want)
		}
	}
}

// A hold that a call left, and of which its thread was never told, belongs to the call of its process that finds it with
// the same value, as a session's.
func TestAHoldThatACallLeftBelongsToTheCallThatFindsIt(t *testing.T) {
	for _, c := range []struct {
		rule    string
		outcome model.Outcome // of the call that wrote the value
		lasts   time.Duration // of that call
		asks    string        // "": nothing, and a goroutine of the first call wrote the value
		want    []string
	}{
		{"its thread was not told", model.Unknown, 10 * ms, "set shared", []string{"a/2", ""}},
		{"its thread was told", model.Granted, 10 * ms, "set shared", []string{"a/1", ""}},
		{"its thread waits for an answer", model.Unknown, 3000 * ms, "set shared", []string{"a/1", ""}},
		{"the other call has another value", model.Unknown, 10 * ms, "asks", []string{"a/1", ""}},
		{"the other call sends nothing", model.Unknown, 10 * ms, "", []string{"a/2", ""}},
		{"the other call sends nothing, and the thread was told", model.Granted, 10 * ms, "", []string{"a/1", ""}},
		{"the other call has a hold of its own", model.Unknown, 10 * ms, "set own", []string{"a/1", "a/2", ""}},
	} {
		_, holders := lineageWorld(t, 2, func(th *Thread, _ chan<- string) {
			if th.Number() == 2 {
				th.Sleep(20 * ms)
				lockCall(th, func(context.Context) {
					if c.asks != "" {
						mustDial(th, 1).talk(c.asks + "\n")
					}
				})
				return
			}
			_, _ = th.Call(Operation{Action: model.ActLock, Lock: "word", WaitNs: -1}, func(context.Context) (model.Outcome, error) {
				conn := mustDial(th, 1)
				if c.asks == "" {
					go conn.talk("set shared\n")
				} else {
					conn.talk("set shared\n")
				}
				time.Sleep(c.lasts)
				return c.outcome, nil
			})
			th.Sleep(2000 * ms)
		})
		if holders = slices.Compact(holders); !slices.Equal(holders, c.want) {
			t.Errorf("%s: the holders are %q, want %q", c.rule, holders, c.want)
		}
	}
}

// Requests that a thread's client sends outside its calls belong to no call, even while the thread
// is in one.
func TestAGoroutineThatKeepsSendsInNoCall(t *testing.T) {
	ops, holders := lineageWorld(t, 1, func(th *Thread, _ chan<- string) {
		texts := make(chan string)
		defer close(texts)
		lockCall(th, func(context.Context) {
			th.p.Keeps("word", func() {
				go func() {
					c := mustDial(th, 1)
					defer c.Close()
					for text := range texts {
						_, _ = c.Write([]byte(text))
					}
				}()
			})
			texts <- "set kept\n"
			mustDial(th, 1).talk("called\n")
		})
	})
	if ops["set kept"] != 0 || ops["called"] == 0 {
		t.Errorf("the operations are %v", ops)
	}
	if want := []string{"a/1", ""}; !slices.Equal(holders, want) {
		t.Errorf("the holders are %q, want %q", holders, want)
	}
}

// The roots of all threads differ, whatever they call, and no other goroutine has one.
func TestARootTellsAThread(t *testing.T) {
	if _, ok := ownRoot(); ok {
		t.Error("the goroutine of this test has a root")
	}
	const threads = 1<<rootBits + 2
	seen := map[root]int{}
	rootless, children := 0, 0
	lineageWorld(t, threads, func(th *Thread, _ chan<- string) {
		first, ok := ownRoot()
		lockCall(th, func(context.Context) {
			if again, okAgain := ownRoot(); again != first || okAgain != ok {
				t.Errorf("thread %d has two roots", th.Number())
			}
			deep(90, func() {
				if again, okAgain := ownRoot(); okAgain && again != first {
					t.Errorf("deep in its stack thread %d has another root", th.Number())
				}
			})
		})
		if !ok {
			rootless++
			return
		}
		if other, found := seen[first]; found {
			t.Errorf("the threads %d and %d have one root", other, th.Number())
		}
		seen[first] = th.Number()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, ok := ownRoot(); ok {
				children++
			}
		}()
		<-done
	})
	equal(t, "threads with a root", len(seen), 1<<rootBits)
	equal(t, "threads without a root", rootless, threads-1<<rootBits)
	equal(t, "goroutines of threads with a root", children, 0)
}

// deep calls f with n frames of its own in the stack.
//
//go:noinline
func deep(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	deep(n-1, f)
}
