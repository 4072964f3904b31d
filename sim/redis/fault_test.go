package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
)

// kindOf returns a word for the outcome of a command.
func kindOf(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, redis.Nil):
		return "nil"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "reset"
	case errors.Is(err, syscall.EHOSTUNREACH):
		return "unreachable"
	default:
		return err.Error()
	}
}

// timed performs f as an operation, and returns its outcome and its duration.
func timed(th *sim.Thread, f func(context.Context) error) string {
	from := clock(th)
	kind := kindOf(operate(th, f))
	return fmt.Sprintf("%s@%v", kind, (clock(th) - from).Round(time.Millisecond))
}

func TestACrashedProcessTakesNoStepAndGetsNoMessage(t *testing.T) {
	r := newStage(model.FaultSpec{Kind: model.FaultCrash, At: time.Second, Processes: []string{"a"}}).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			th.At(time.Second - oneWay/2) // the request is under way at the crash
			_ = operate(th, func(ctx context.Context) error { return c.Incr(ctx, "n").Err() })
			t.Error("a call of a dead process returned to its thread")
		}).run(sim.NewHost(t))
	dead := pick(r, func(e model.Event) bool { return e.Process == "a" && at(e) >= time.Second })
	var got []string
	for _, e := range dead {
		got = append(got, fmt.Sprint(e.Kind, " ", e.Why))
	}
	// Commands that had left the process before are executed, but nothing comes back.
	equal(t, "events of a from the crash on", strings.Join(got, ", "), "fault , exec , lost process dead")
}

func TestWhatACrashedProcessSent(t *testing.T) {
	for _, c := range []struct {
		rule string
		sent time.Duration
		want string // what another process reads afterwards
	}{
		{"is executed when its answer was under way", time.Second - oneWay*3/2, "1"},
		{"is executed when it was under way itself", time.Second - oneWay/2, "1"},
		{"is not when a timer would send it afterwards", time.Second + oneWay, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got string
			newStage(model.FaultSpec{Kind: model.FaultCrash, At: time.Second, Processes: []string{"a"}}).
				does("a/1", func(th *sim.Thread, client *redis.Client) {
					_ = operate(th, func(ctx context.Context) error {
						time.Sleep(c.sent)
						return client.Incr(ctx, "n").Err()
					})
				}).
				does("b/1", func(th *sim.Thread, client *redis.Client) {
					th.At(2 * time.Second)
					got = client.Get(context.Background(), "n").Val()
				}).run(sim.NewHost(t))
			equal(t, "n", got, c.want)
		})
	}
}

func TestTheSubscriptionOfACrashedProcessEndsAtTheServer(t *testing.T) {
	var before, after int64
	newStage(model.FaultSpec{Kind: model.FaultCrash, At: time.Second, Processes: []string{"a"}}).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			_, _ = c.Subscribe(context.Background(), "ch").Receive(context.Background())
		}).
		does("b/1", func(th *sim.Thread, c *redis.Client) {
			th.At(900 * time.Millisecond)
			before = c.Publish(context.Background(), "ch", "x").Val()
			th.At(1100 * time.Millisecond)
			after = c.Publish(context.Background(), "ch", "x").Val()
		}).run(sim.NewHost(t))
	equal(t, "receivers before", before, 1)
	equal(t, "receivers after", after, 0)
}

func TestNoCallTimesOutInsideAPause(t *testing.T) {
	for _, c := range []struct {
		name     string
		sent     time.Duration // when the call is made
		rule     []model.FaultSpec
		pauses   []model.FaultSpec
		want     string
		returned time.Duration
	}{
		{"a reply that arrives in the pause is read at its end",
			time.Second - oneWay, nil, []model.FaultSpec{pause(time.Second, 10*time.Second)}, "ok", 11 * time.Second},
		{"a request made before the pause, executed within it",
			time.Second - oneWay/2, nil, []model.FaultSpec{pause(time.Second, 10*time.Second)}, "ok", 11 * time.Second},
		{"a step due in the pause waits for its end",
			2 * time.Second, nil, []model.FaultSpec{pause(time.Second, 10*time.Second)}, "ok", 11*time.Second + 2*oneWay},
		{"a read timeout counts only time without pause",
			500 * time.Millisecond, dropReplies, []model.FaultSpec{pause(time.Second, 10*time.Second)}, "timeout", 13500 * time.Millisecond},
		{"two pauses are both left out",
			500 * time.Millisecond, dropReplies, []model.FaultSpec{pause(time.Second, 10*time.Second), pause(12*time.Second, 5*time.Second)}, "timeout", 18500 * time.Millisecond},
		{"pauses that overlap count once",
			500 * time.Millisecond, dropReplies, []model.FaultSpec{pause(time.Second, 3*time.Second), pause(2*time.Second, 4*time.Second)}, "timeout", 8500 * time.Millisecond},
		{"a pause of another process changes nothing",
			500 * time.Millisecond, dropReplies, []model.FaultSpec{{Kind: model.FaultPause, Processes: []string{"b"}, At: time.Second, For: 10 * time.Second}}, "timeout", 3500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			s := newStage(append(c.rule, c.pauses...)...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				th.At(c.sent)
				got = kindOf(operate(th, func(ctx context.Context) error { return client.Incr(ctx, "n").Err() }))
			})
			s.client = func(o *redis.Options) { o.ReadTimeout = 3 * time.Second }
			r := s.run(sim.NewHost(t))
			equal(t, "ended", got, c.want)
			equal(t, "returned", at(pick(r, ofKind(model.KindReturn))[0]), c.returned)
		})
	}
}

func pause(from, length time.Duration) model.FaultSpec {
	return model.FaultSpec{Kind: model.FaultPause, Processes: []string{"a"}, At: from, For: length}
}

var dropReplies = []model.FaultSpec{{Kind: model.FaultRule, When: model.When{Direction: "reply", Command: "INCR"}, Do: "drop"}}

func TestWhatTimersOfAPausedProcessSendLeavesAtItsEnd(t *testing.T) {
	r := newStage(pause(time.Second, 4*time.Second)).does("a/1", func(th *sim.Thread, c *redis.Client) {
		_ = operate(th, func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			return c.Incr(ctx, "n").Err()
		})
	}).run(sim.NewHost(t))
	equal(t, "executed", at(pick(r, ofKind(model.KindExec))[0]), 5*time.Second+oneWay)
	equal(t, "returned", at(pick(r, ofKind(model.KindReturn))[0]), 5*time.Second+2*oneWay)
}

func TestAReturnWaitsForTheEndOfAPause(t *testing.T) {
	r := newStage(pause(time.Second, 4*time.Second)).does("a/1", func(th *sim.Thread, c *redis.Client) {
		_ = operate(th, func(context.Context) error { time.Sleep(2 * time.Second); return nil })
	}).run(sim.NewHost(t))
	equal(t, "returned", at(pick(r, ofKind(model.KindReturn))[0]), 5*time.Second)
}

func TestAPartition(t *testing.T) {
	cut := model.FaultSpec{Kind: model.FaultPartition, At: time.Second, For: 2 * time.Second, Processes: []string{"a"}}
	for _, c := range []struct {
		name string
		at   time.Duration
		warm bool // a connection exists already
		want string
		why  []string // what was lost
	}{
		{"a dial fails at once", 1500 * time.Millisecond, false, "unreachable@0s", nil},
		{"a request on an open connection is lost", 1500 * time.Millisecond, true, "timeout@100ms", []string{"request partition"}},
		{"a request under way is lost", time.Second - oneWay/2, true, "timeout@100ms", []string{"request partition"}},
		{"a reply under way is lost", time.Second - oneWay*3/2, true, "timeout@100ms", []string{"reply partition"}},
		{"a request of its last moment is lost", 3*time.Second - oneWay/2, true, "timeout@100ms", []string{"request partition"}},
		{"it heals", 3 * time.Second, true, "ok@2ms", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got, other string
			s := newStage(cut).does("a/1", func(th *sim.Thread, client *redis.Client) {
				if c.warm {
					client.Ping(context.Background())
				}
				th.At(c.at)
				got = timed(th, func(ctx context.Context) error { return client.Incr(ctx, "n").Err() })
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				th.At(c.at)
				other = timed(th, func(ctx context.Context) error { return client.Incr(ctx, "m").Err() })
			})
			s.client = func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond }
			r := s.run(sim.NewHost(t))
			equal(t, "a", got, c.want)
			equal(t, "b", other, "ok@2ms")
			var why []string
			for _, e := range pick(r, ofKind(model.KindLost)) {
				why = append(why, e.Dir+" "+string(e.Why))
			}
			equal(t, "lost", fmt.Sprint(why), fmt.Sprint(c.why))
			equal(t, "healed", at(pick(r, ofKind(model.KindFaultEnd))[0]), 3*time.Second)
		})
	}
}

// A client that tries every half second through a partition does so at the same instants at which
// go-redis's pool, after many failures, dials by itself. Which of them is first decides whether the
// next command fails.
func TestAPoolThatDialsByItselfDoesSoAtItsOwnInstants(t *testing.T) {
	h := sim.NewHost(t)
	records := map[string]int{}
	for range 20 {
		var said []string
		s := newStage(model.FaultSpec{Kind: model.FaultPartition, At: time.Second, For: 10 * time.Second, Processes: []string{"a"}})
		s.client = func(o *redis.Options) { o.PoolSize = 3 }
		r := s.does("a/1", func(th *sim.Thread, c *redis.Client) {
			th.At(2 * time.Second)
			_ = operate(th, func(ctx context.Context) error {
				for range 22 {
					said = append(said, fmt.Sprint(clock(th), " ", c.Incr(ctx, "n").Err()))
					time.Sleep(500 * ms)
				}
				return nil
			})
		}).run(h)
		records[r.Record.Digest()]++
		// The pool dials first some 3 s from the start, and then every second.
		if got := strings.Join(said[17:], "\n"); !strings.HasPrefix(got, "10.5s dial tcp: no route to host\n11s dial tcp: no route to host\n11.5s <nil>") {
			t.Fatal(got)
		}
	}
	if len(records) != 1 {
		t.Errorf("%d records of one seed: %v", len(records), records)
	}
}

func TestPartitionsOfSeveral(t *testing.T) {
	cut := func(from, length time.Duration, who ...string) model.FaultSpec {
		return model.FaultSpec{Kind: model.FaultPartition, At: from, For: length, Processes: who}
	}
	sec := time.Second
	for _, c := range []struct {
		rule   string
		faults []model.FaultSpec
		want   map[string]string // the answers from 1.5 s on, one per second
	}{
		{"one fault, two processes", []model.FaultSpec{cut(sec, sec, "a", "b")}, map[string]string{"a": "timeout ok ok ok", "b": "timeout ok ok ok"}},
		{"two that overlap end with the later one", []model.FaultSpec{cut(sec, 3*sec, "a"), cut(2*sec, sec, "a", "b")},
			map[string]string{"a": "timeout timeout timeout ok", "b": "ok timeout ok ok"}},
		{"two in a row", []model.FaultSpec{cut(sec, sec, "a"), cut(3*sec, sec, "a")}, map[string]string{"a": "timeout ok timeout ok", "b": "ok ok ok ok"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got := map[string][]string{}
			s := newStage(c.faults...)
			s.client = func(o *redis.Options) { o.ReadTimeout, o.MaxIdleConns = 100*ms, 1 }
			for name := range c.want {
				s.does(name+"/1", func(th *sim.Thread, client *redis.Client) {
					for i := range 4 {
						th.At(time.Duration(i)*sec + 500*ms)
						client.Ping(context.Background()) // dials when it can
						th.At(time.Duration(i)*sec + 1500*ms)
						kind := kindOf(client.Incr(context.Background(), "n").Err())
						if kind == "unreachable" { // the last failure cost the connection
							kind = "timeout"
						}
						got[name] = append(got[name], kind)
					}
				})
			}
			s.run(sim.NewHost(t))
			for name, want := range c.want {
				equal(t, name, strings.Join(got[name], " "), want)
			}
		})
	}
}

func TestAPublishedMessageIsLostInAPartition(t *testing.T) {
	var got []string
	newStage(model.FaultSpec{Kind: model.FaultPartition, At: time.Second, For: time.Second, Processes: []string{"a"}}).
		does("a/1", func(th *sim.Thread, c *redis.Client) { got = listen(th, c, "ch", 4*time.Second) }).
		does("b/1", func(th *sim.Thread, c *redis.Client) {
			// The third message leaves the server in the last moment of the partition.
			for i, at := range []time.Duration{500 * ms, 1500 * ms, 2*time.Second - oneWay*3/2, 2500 * ms} {
				th.At(at)
				c.Publish(context.Background(), "ch", i)
			}
		}).run(sim.NewHost(t))
	equal(t, "received", fmt.Sprint(got), "[0@502ms 3@2.502s]")
}

// listen subscribes, and returns the messages that arrive until an instant, with their times.
func listen(th *sim.Thread, c *redis.Client, channel string, until time.Duration) (got []string) {
	_ = operate(th, func(ctx context.Context) error {
		sub := c.Subscribe(ctx, channel)
		defer sub.Close()
		for clock(th) < until {
			m, err := sub.ReceiveTimeout(ctx, until-clock(th))
			if err != nil {
				return err
			}
			if m, ok := m.(*redis.Message); ok {
				got = append(got, fmt.Sprintf("%s@%v", m.Payload, clock(th)))
			}
		}
		return nil
	})
	return got
}

// TestARule plays INCR and GET in turn, three of each, half a second apart, in
// two processes: a from 1 s, b from 1.25 s.
func TestARule(t *testing.T) {
	until := 10 * time.Second
	ends := 2100 * time.Millisecond
	const fine = "ok ok ok ok ok ok"
	for _, c := range []struct {
		name string
		rule model.FaultSpec
		a, b string
		runs int // INCRs executed
	}{
		{"drop by process", model.FaultSpec{Do: "drop", When: model.When{Process: "a"}}, "timeout timeout timeout timeout timeout timeout", fine, 3},
		{"drop by direction request: not executed", model.FaultSpec{Do: "drop", When: model.When{Process: "a", Direction: "request", Command: "INCR"}}, "timeout ok timeout ok timeout ok", fine, 3},
		{"drop by direction reply: executed", model.FaultSpec{Do: "drop", When: model.When{Process: "a", Direction: "reply", Command: "INCR"}}, "timeout ok timeout ok timeout ok", fine, 6},
		{"drop by command", model.FaultSpec{Do: "drop", When: model.When{Command: "GET"}}, "ok timeout ok timeout ok timeout", "ok timeout ok timeout ok timeout", 6},
		{"drop by script", model.FaultSpec{Do: "drop", When: model.When{Script: "count", Direction: "request"}}, "timeout ok timeout ok timeout ok", "timeout ok timeout ok timeout ok", 0},
		{"another script meets nothing", model.FaultSpec{Do: "drop", When: model.When{Script: "other"}}, fine, fine, 6},
		{"the n-th of all that match", model.FaultSpec{Do: "drop", When: model.When{Command: "INCR", Direction: "request", Nth: 3}}, "ok ok timeout ok ok ok", fine, 5},
		{"the n-th of a process", model.FaultSpec{Do: "drop", When: model.When{Process: "b", Command: "INCR", Direction: "reply", Nth: 3}}, fine, "ok ok ok ok timeout ok", 6},
		{"every n-th", model.FaultSpec{Do: "drop", When: model.When{Process: "a", Direction: "request", Every: 2}}, "ok timeout ok timeout ok timeout", fine, 6},
		{"from", model.FaultSpec{Do: "drop", From: ends, When: model.When{Direction: "request"}}, "ok ok ok timeout timeout timeout", "ok ok timeout timeout timeout timeout", 3},
		{"until", model.FaultSpec{Do: "drop", Until: &ends, When: model.When{Direction: "request"}}, "timeout timeout timeout ok ok ok", "timeout timeout ok ok ok ok", 3},
		{"delay a request", model.FaultSpec{Do: "delay", For: 50 * time.Millisecond, When: model.When{Process: "a", Direction: "request", Nth: 1}}, "ok@52ms ok ok ok ok ok", fine, 6},
		{"delay a reply", model.FaultSpec{Do: "delay", For: 50 * time.Millisecond, When: model.When{Process: "a", Direction: "reply", Nth: 2}}, "ok ok@52ms ok ok ok ok", fine, 6},
		{"hold a request: executed at the rule's end", model.FaultSpec{Do: "hold", Until: &until, When: model.When{Process: "a", Direction: "request", Nth: 1}}, "timeout ok ok ok ok ok", fine, 6},
		{"reset on a request: not executed", model.FaultSpec{Do: "reset", When: model.When{Process: "a", Direction: "request", Nth: 1}}, "reset@0s ok ok ok ok ok", fine, 5},
		{"reset on a reply: executed", model.FaultSpec{Do: "reset", When: model.When{Process: "a", Direction: "reply", Nth: 1}}, "reset@1ms ok ok ok ok ok", fine, 6},
		{"error on a request: not executed", model.FaultSpec{Do: "error", With: "LOADING data", When: model.When{Process: "a", Direction: "request", Nth: 1}}, "LOADING data@2ms ok ok ok ok ok", fine, 5},
		{"error on a reply: executed", model.FaultSpec{Do: "error", With: "READONLY replica", When: model.When{Process: "a", Direction: "reply", Nth: 1}}, "READONLY replica@2ms ok ok ok ok ok", fine, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended := map[string][]string{}
			c.rule.Kind = model.FaultRule
			s := newStage(c.rule)
			s.Quiet, s.Settle = 20*time.Second, 20*time.Second
			s.client = func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond }
			for i, name := range []string{"a", "b"} {
				s.does(name+"/1", func(th *sim.Thread, client *redis.Client) {
					for k := range 6 {
						th.At(time.Second + time.Duration(i)*250*time.Millisecond + time.Duration(k)*500*time.Millisecond)
						how := timed(th, func(ctx context.Context) error {
							if k%2 == 0 {
								return client.Incr(ctx, "n").Err()
							}
							if err := client.Get(ctx, "n").Err(); err != redis.Nil {
								return err
							}
							return nil
						})
						how = strings.TrimSuffix(how, "@2ms")
						if c.rule.With != "" && strings.HasPrefix(how, c.rule.With) {
							how += "@2ms"
						}
						ended[name] = append(ended[name], strings.TrimSuffix(how, "@100ms"))
					}
				})
			}
			r := s.run(sim.NewHost(t))
			equal(t, "a", strings.Join(ended["a"], " "), c.a)
			equal(t, "b", strings.Join(ended["b"], " "), c.b)
			runs := pick(r, func(e model.Event) bool { return e.Kind == model.KindExec && e.Command == "INCR" })
			equal(t, "INCRs executed", len(runs), c.runs)
			if c.rule.Do == "hold" {
				equal(t, "the held one executed", at(runs[len(runs)-1]), until+oneWay)
			}
		})
	}
}

// A rule counts each time that a client sends a command again by itself.
func TestARuleCountsWhatAClientRepeats(t *testing.T) {
	for _, c := range []struct {
		rule string
		when model.When
		want string
		runs int
	}{
		{"the first request is lost, the second runs", model.When{Direction: "request", Nth: 1}, "ok@104ms", 1},
		{"the first reply is lost, the command runs again", model.When{Direction: "reply", Nth: 1}, "ok@104ms", 2},
		{"the second is none of the first command", model.When{Direction: "reply", Nth: 2}, "ok@2ms", 1},
		{"every one is lost, the repeats too", model.When{Direction: "reply"}, "timeout@304ms", 3},
		{"every second", model.When{Direction: "request", Every: 2}, "ok@2ms", 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got string
			s := newStage(model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: c.when}).does("a/1", func(th *sim.Thread, client *redis.Client) {
				got = timed(th, func(ctx context.Context) error { return client.Incr(ctx, "n").Err() })
			})
			s.client = func(o *redis.Options) {
				o.ReadTimeout, o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 100*ms, 2, 2*ms, 2*ms
			}
			r := s.run(sim.NewHost(t))
			equal(t, "ended", got, c.want)
			equal(t, "executed", len(pick(r, ofKind(model.KindExec))), c.runs)
		})
	}
}

func TestAHeldMessageGoesOnAtTheEndOfItsRule(t *testing.T) {
	for _, c := range []struct {
		direction string
		ran       time.Duration
		want      string
	}{
		{"request", time.Second + oneWay, "ok@502ms"},
		{"reply", 500*ms + oneWay, "ok@501ms"},
	} {
		t.Run(c.direction, func(t *testing.T) {
			var got, other string
			r := newStage(model.FaultSpec{Kind: model.FaultRule, Do: "hold", Until: new(time.Second), When: model.When{Process: "a", Direction: c.direction}}).
				does("a/1", func(th *sim.Thread, client *redis.Client) {
					th.At(500 * ms)
					got = timed(th, func(ctx context.Context) error { return client.Incr(ctx, "n").Err() })
				}).
				does("b/1", func(th *sim.Thread, client *redis.Client) {
					th.At(600 * ms)
					other = timed(th, func(ctx context.Context) error { return client.Ping(ctx).Err() })
				}).run(sim.NewHost(t))
			equal(t, "the held one", got, c.want)
			equal(t, "another process", other, "ok@2ms")
			equal(t, "executed", at(pick(r, func(e model.Event) bool { return e.Kind == model.KindExec && e.Process == "a" })[0]), c.ran)
		})
	}
}

// Process a listens from the start on, and again after its connection is lost. Process b publishes
// at 0.5 ms, 1 s, 2 s and 3 s.
func TestASubscriptionLostBeforeThePublish(t *testing.T) {
	rule := func(do string, when model.When) []model.FaultSpec {
		when.Process = "a"
		return []model.FaultSpec{{Kind: model.FaultRule, Do: do, When: when}}
	}
	for _, c := range []struct {
		name      string
		faults    []model.FaultSpec
		heard     string // received by process a
		receivers string // the number in the reply to process b
	}{
		{"nothing is lost", nil, "subscribed@2ms 0@2.5ms 1@1.002s 2@2.002s 3@3.002s", "[1 1 1 1]"},
		{"the SUBSCRIBE is dropped", rule("drop", model.When{Command: "SUBSCRIBE", Direction: "request"}), "timeout@5s", "[0 0 0 0]"},
		{"its acknowledgement is dropped", rule("drop", model.When{Command: "SUBSCRIBE", Direction: "reply"}), "0@2.5ms 1@1.002s 2@2.002s 3@3.002s", "[1 1 1 1]"},
		{"its acknowledgement resets the connection", rule("reset", model.When{Channel: "ch", Nth: 2}),
			"reset@1ms subscribed@3ms 1@1.002s 2@2.002s 3@3.002s", "[0 1 1 1]"},
		{"the server restarts", []model.FaultSpec{{Kind: model.FaultServer, Server: "restart", KeepData: true, At: 1500 * ms}},
			"subscribed@2ms 0@2.5ms 1@1.002s reset@1.5s subscribed@1.502s 2@2.002s 3@3.002s", "[1 1 1 1]"},
		{"the server restarts as b publishes", []model.FaultSpec{{Kind: model.FaultServer, Server: "restart", KeepData: true, At: 2*time.Second + oneWay/2}},
			"subscribed@2ms 0@2.5ms 1@1.002s reset@2.0005s subscribed@2.0025s 3@3.002s", "[1 1 reset 1]"},
		{"the server fails over", []model.FaultSpec{{Kind: model.FaultServer, Server: "failover", At: 1500 * ms}},
			"subscribed@2ms 0@2.5ms 1@1.002s reset@1.5s subscribed@1.502s 2@2.002s 3@3.002s", "[1 1 1 1]"},
		{"a message resets the connection", rule("reset", model.When{Channel: "c*", Direction: "reply", Nth: 3}),
			"subscribed@2ms 0@2.5ms reset@1.001s subscribed@1.003s 2@2.002s 3@3.002s", "[1 1 1 1]"},
		{"a partition, which nobody notices", []model.FaultSpec{{Kind: model.FaultPartition, Processes: []string{"a"}, At: 500 * ms, For: 2 * time.Second}},
			"subscribed@2ms 0@2.5ms 3@3.002s", "[1 1 1 1]"},
		{"messages are dropped", rule("drop", model.When{Channel: "ch", Direction: "reply", Every: 2}), "subscribed@2ms 1@1.002s 3@3.002s", "[1 1 1 1]"},
		{"a crash", []model.FaultSpec{{Kind: model.FaultCrash, Processes: []string{"a"}, At: 1500 * ms}}, "subscribed@2ms 0@2.5ms 1@1.002s", "[1 1 0 0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var heard, receivers []string
			s := newStage(c.faults...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				ctx := context.Background()
				sub := client.Subscribe(ctx, "ch")
				defer sub.Close()
				for end := 5 * time.Second; clock(th) < end; {
					m, err := sub.ReceiveTimeout(ctx, end-clock(th))
					if clock(th) > end {
						break // belongs to a dead process, at the end of the run
					}
					what := kindOf(err)
					switch m := m.(type) {
					case *redis.Subscription:
						what = "subscribed"
					case *redis.Message:
						what = m.Payload
					}
					heard = append(heard, fmt.Sprintf("%s@%v", what, clock(th)))
				}
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				for i, at := range []time.Duration{oneWay / 2, time.Second, 2 * time.Second, 3 * time.Second} {
					if i > 0 {
						th.At(at - 10*ms)
						client.Ping(context.Background()) // on a connection that a restart cut
					}
					th.At(at)
					n, err := client.Publish(context.Background(), "ch", i).Result()
					if err != nil {
						receivers = append(receivers, kindOf(err))
						continue
					}
					receivers = append(receivers, fmt.Sprint(n))
				}
			})
			s.run(sim.NewHost(t))
			text := strings.Join(heard, " ")
			if c.heard != "timeout@5s" {
				text = strings.TrimSuffix(text, " timeout@5s")
			}
			equal(t, "heard", text, c.heard)
			equal(t, "receivers", fmt.Sprint(receivers), c.receivers)
		})
	}
}

func TestARuleWithoutUntilEndsWithTheCalm(t *testing.T) {
	for _, do := range []string{"drop", "hold"} {
		t.Run(do, func(t *testing.T) {
			s := newStage(model.FaultSpec{Kind: model.FaultRule, Do: do, When: model.When{Process: "a", Direction: "request"}}).
				does("a/1", func(th *sim.Thread, c *redis.Client) {
					_ = operate(th, func(ctx context.Context) error {
						c.Incr(ctx, "n") // times out
						time.Sleep(9 * time.Second)
						return c.Incr(ctx, "n").Err()
					})
				})
			s.Quiet = 10 * time.Second
			s.client = func(o *redis.Options) { o.ReadTimeout = 3 * time.Second }
			r := s.run(sim.NewHost(t))
			calm := at(pick(r, ofKind(model.KindCalm))[0])
			var got []time.Duration
			for _, e := range pick(r, ofKind(model.KindExec)) {
				got = append(got, at(e))
			}
			want := []time.Duration{12*time.Second + oneWay}
			if do == "hold" {
				want = append([]time.Duration{calm + oneWay}, want...)
			}
			equal(t, "calm", calm, 10*time.Second)
			equal(t, "executed", fmt.Sprint(got), fmt.Sprint(want))
		})
	}
}

func TestARuleOnAChannelMeetsPublishedMessages(t *testing.T) {
	for _, c := range []struct {
		name string
		rule model.FaultSpec
		want string
	}{
		{"drop by a glob", model.FaultSpec{Do: "drop", When: model.When{Channel: "c*", Process: "a", Direction: "reply", Nth: 3}}, "[1@1.002s]"},
		{"of a process", model.FaultSpec{Do: "drop", When: model.When{Channel: "ch", Process: "a", Direction: "reply", Nth: 2}}, "[2@2.002s]"},
		{"another channel meets nothing", model.FaultSpec{Do: "drop", When: model.When{Channel: "other"}}, "[1@1.002s 2@2.002s]"},
		{"delay", model.FaultSpec{Do: "delay", For: 5 * time.Millisecond, When: model.When{Channel: "ch", Process: "a", Direction: "reply", Nth: 2}}, "[1@1.007s 2@2.002s]"},
		{"hold", model.FaultSpec{Do: "hold", Until: new(3 * time.Second), When: model.When{Channel: "ch", Process: "a", Direction: "reply", Nth: 2}}, "[2@2.002s 1@3.001s]"},
		{"the PUBLISH itself", model.FaultSpec{Do: "drop", When: model.When{Channel: "ch", Process: "b", Direction: "request", Nth: 1}}, "[2@2.002s]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			c.rule.Kind = model.FaultRule
			s := newStage(c.rule).
				does("a/1", func(th *sim.Thread, client *redis.Client) { got = listen(th, client, "ch", 5*time.Second) }).
				does("b/1", func(th *sim.Thread, client *redis.Client) {
					for i := 1; i <= 2; i++ {
						th.At(time.Duration(i) * time.Second)
						client.Publish(context.Background(), "ch", i)
					}
				})
			s.client = func(o *redis.Options) { o.ReadTimeout = 100 * time.Millisecond }
			s.run(sim.NewHost(t))
			equal(t, "received", fmt.Sprint(got), c.want)
		})
	}
}

func TestOfTwoRulesTheFirstThatWantsAMessageTakesIt(t *testing.T) {
	var got []string
	r := newStage(
		model.FaultSpec{Kind: model.FaultRule, Do: "error", With: "first", When: model.When{Command: "GET", Direction: "request", Nth: 2}},
		model.FaultSpec{Kind: model.FaultRule, Do: "error", With: "second", When: model.When{Command: "GET", Direction: "request", Every: 2}},
	).does("a/1", func(th *sim.Thread, c *redis.Client) {
		for range 4 {
			got = append(got, kindOf(operate(th, func(ctx context.Context) error { return c.Get(ctx, "k").Err() })))
		}
	}).run(sim.NewHost(t))
	equal(t, "ended", fmt.Sprint(got), "[nil first nil second]")
	var hits []int
	for _, e := range pick(r, ofKind(model.KindHit)) {
		hits = append(hits, e.Fault)
	}
	equal(t, "hits, by the fault's number", fmt.Sprint(hits), "[1 2]")
}

func TestAnOperatorDeletesOrExpiresKeys(t *testing.T) {
	for _, c := range []struct{ name, glob, do, left, expired string }{
		{"delete", "lock:a", "delete", "lock:b other", ""},
		{"delete by a glob", "lock:*", "delete", "other", ""},
		{"expire is recorded as one", "lock:*", "expire", "other", "lock:a lock:b"},
		{"no key matches", "nothing", "expire", "lock:a lock:b other", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var left []string
			r := newStage(model.FaultSpec{Kind: model.FaultKey, At: time.Second, Key: c.glob, KeyDo: c.do}).
				does("a/1", func(th *sim.Thread, client *redis.Client) {
					ctx := context.Background()
					for _, k := range []string{"lock:a", "lock:b", "other"} {
						client.Set(ctx, k, "v", 0)
					}
					th.At(2 * time.Second)
					left = client.Keys(ctx, "*").Val()
				}).run(sim.NewHost(t))
			slices.Sort(left)
			equal(t, "left", strings.Join(left, " "), c.left)
			var expired []string
			for _, e := range pick(r, ofKind(model.KindExpire)) {
				equal(t, "expired at", at(e), time.Second)
				expired = append(expired, e.Key)
			}
			equal(t, "expired", strings.Join(expired, " "), c.expired)
		})
	}
}

// The event of a fault has the requests that had written what the fault removed.
func TestAFaultTellsWhatItRemoves(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault model.FaultSpec
		want  string
	}{
		{"one key", model.FaultSpec{Kind: model.FaultKey, Key: "h", KeyDo: "delete"}, "[2]"},
		{"all keys", model.FaultSpec{Kind: model.FaultKey, Key: "*", KeyDo: "expire"}, "[1 2 3 4 5]"},
		{"no key", model.FaultSpec{Kind: model.FaultKey, Key: "nothing", KeyDo: "delete"}, "[]"},
		{"all data", model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart}, "[1 2 3 4 5]"},
		{"no data", model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart, KeepData: true}, "[]"},
		{"the last writes", model.FaultSpec{Kind: model.FaultServer, Server: model.ServerFailover, LoseLast: 2}, "[4 5]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fault.At = time.Second
			r := newStage(c.fault).does("a/1", func(_ *sim.Thread, client *redis.Client) {
				ctx := context.Background()
				client.Set(ctx, "s", "v", 0)
				client.HSet(ctx, "h", "f", "w")
				client.RPush(ctx, "l", "m")
				client.SAdd(ctx, "t", "n")
				client.XAdd(ctx, &redis.XAddArgs{Stream: "x", Values: []string{"f2", "e"}})
			}).run(sim.NewHost(t))
			equal(t, "removed", fmt.Sprint(pick(r, ofKind(model.KindFault))[0].Removed), c.want)
		})
	}
}

// A failover brings back the entries of a stream. It says that it cannot bring back the groups of one.
func TestAFailoverOfAStream(t *testing.T) {
	for _, groups := range []bool{false, true} {
		var left []redis.XMessage
		var err error
		r := newStage(model.FaultSpec{Kind: model.FaultServer, At: time.Second, Server: "failover", LoseLast: 1}).
			does("a/1", func(th *sim.Thread, client *redis.Client) {
				ctx := context.Background()
				for _, id := range []string{"1-1", "1-2", "1-3"} {
					client.XAdd(ctx, &redis.XAddArgs{Stream: "s", ID: id, Values: []string{"f", id}})
				}
				if groups {
					client.XGroupCreate(ctx, "s", "g", "0")
				}
				th.At(2 * time.Second)
				client.Ping(ctx) // the connection is dead
				left, err = client.XRange(ctx, "s", "-", "+").Result()
			}).run(sim.NewHost(t))
		if defects := pick(r, ofKind(model.KindDefect)); (len(defects) > 0) != groups {
			t.Errorf("with groups: %t; the defects are %v", groups, defects)
		}
		if !groups && (len(left) != 2 || left[1].ID != "1-2" || left[1].Values["f"] != "1-2") {
			t.Errorf("the entries are %v: %v", left, err)
		}
	}
}

// A failover brings a field of a hash back with its end, unless that is over, and loses an end that was set last.
func TestAFailoverOfAFieldThatRunsOut(t *testing.T) {
	for at, late := range map[time.Duration]map[string]string{
		500 * time.Millisecond: {"third": "3", "fourth": "4"},
		2 * time.Second:        {"fourth": "4"}, // what it loses is that the first field ran out
	} {
		var left [2]map[string]string
		newStage(model.FaultSpec{Kind: model.FaultServer, At: at, Server: "failover", LoseLast: 1}).
			does("a/1", func(th *sim.Thread, client *redis.Client) {
				ctx := context.Background()
				client.HSet(ctx, "h", "first", "1", "second", "2", "third", "3", "fourth", "4")
				client.HExpire(ctx, "h", time.Second, "first")
				client.HExpire(ctx, "h", 4*time.Second, "second")
				client.HExpire(ctx, "h", 4*time.Second, "third")
				th.At(3 * time.Second)
				client.Ping(ctx) // the connection is dead
				for i := range left {
					left[i] = client.HGetAll(ctx, "h").Val()
					th.At(5 * time.Second)
				}
			}).run(sim.NewHost(t))
		equal(t, fmt.Sprint("left in the hash after a failover at ", at), fmt.Sprint(left), fmt.Sprint([2]map[string]string{{"second": "2", "third": "3", "fourth": "4"}, late}))
	}
}

func TestAServerRestart(t *testing.T) {
	script := redis.NewScript("return 'run'")
	for _, c := range []struct {
		name  string
		fault model.FaultSpec
		keeps bool
	}{
		{"with its data", model.FaultSpec{Server: "restart", KeepData: true}, true},
		{"without its data", model.FaultSpec{Server: "restart"}, false},
		{"as a failover that loses nothing", model.FaultSpec{Server: "failover"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fault.Kind, c.fault.At = model.FaultServer, time.Second
			var inFlight, idle, sha, again, value string
			var ttl time.Duration
			var receivers int64
			newStage(c.fault).does("a/1", func(th *sim.Thread, client *redis.Client) {
				ctx := context.Background()
				client.Set(ctx, "k", "v", time.Minute)
				script.Run(ctx, client, nil)
				_, _ = client.Subscribe(ctx, "ch").Receive(ctx)
				th.At(time.Second - oneWay/2)
				inFlight = timed(th, func(ctx context.Context) error { return client.Incr(ctx, "n").Err() })
				th.At(2 * time.Second)
				sha = kindOf(script.EvalSha(ctx, client, nil).Err())
				again = kindOf(script.Run(ctx, client, nil).Err())
				value, ttl = client.Get(ctx, "k").Val(), client.PTTL(ctx, "k").Val()
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				client.Ping(context.Background())
				th.At(2 * time.Second)
				idle = timed(th, func(ctx context.Context) error { return client.Ping(ctx).Err() })
				th.At(3 * time.Second)
				receivers = client.Publish(context.Background(), "ch", "x").Val()
			}).run(sim.NewHost(t))
			equal(t, "a call in flight", inFlight, "reset@1ms")
			equal(t, "a call on a connection that was idle", idle, "reset@0s")
			equal(t, "EVALSHA", sha, "NOSCRIPT No matching script. Please use EVAL.")
			equal(t, "a script's Run", again, "ok")
			equal(t, "receivers of a publish", receivers, 0)
			if c.keeps {
				equal(t, "value", value, "v")
				equal(t, "time to live", ttl.Round(100*time.Millisecond), 58*time.Second)
			} else {
				equal(t, "value", value, "")
			}
		})
	}
}

func TestAFailoverLosesTheLastWrites(t *testing.T) {
	for lose, want := range map[int]string{
		0: "h=map[f:1] l=[x y] s=2 z=[m]",
		1: "h=map[f:1] l=[x y] s=2 z=[]",
		2: "h=map[f:1] l=[x] s=2 z=[]",
		3: "h=map[f:1] l=[] s=2 z=[]",
		4: "h=map[] l=[] s=2 z=[]",
		5: "h=map[] l=[] s=1 z=[]",
		6: "h=map[] l=[] s= z=[]",
		9: "h=map[] l=[] s= z=[]",
	} {
		t.Run(fmt.Sprint("the last ", lose), func(t *testing.T) {
			var got string
			newStage(model.FaultSpec{Kind: model.FaultServer, Server: "failover", At: time.Second, LoseLast: lose}).
				does("a/1", func(th *sim.Thread, c *redis.Client) {
					ctx := context.Background()
					c.Set(ctx, "s", 1, 0)
					c.Get(ctx, "s") // reads are not writes
					c.Set(ctx, "s", 2, 0)
					c.HSet(ctx, "h", "f", 1)
					c.RPush(ctx, "l", "x")
					c.RPush(ctx, "l", "y")
					c.Set(ctx, "s", 2, 0) // nor is a write that changes nothing
					c.ZAdd(ctx, "z", redis.Z{Score: 1, Member: "m"})
					th.At(2 * time.Second)
					got = kindOf(c.Ping(ctx).Err()) // may find its connection reset
					got = fmt.Sprintf("h=%v l=%v s=%v z=%v", c.HGetAll(ctx, "h").Val(), c.LRange(ctx, "l", 0, -1).Val(),
						c.Get(ctx, "s").Val(), c.ZRange(ctx, "z", 0, -1).Val())
				}).run(sim.NewHost(t))
			equal(t, "left", got, want)
		})
	}
}

func TestAFailoverUndoesChangesInPlace(t *testing.T) {
	for _, c := range []struct {
		rule, key string
		lose      int
		commands  []string
		left      string
	}{
		{"a score", "z", 1, []string{"zadd z 1 m", "zadd z 2 m"}, "[m 1]"},
		{"a member", "z", 1, []string{"zadd z 1 m", "zadd z 2 n"}, "[m 1]"},
		{"a removal", "z", 1, []string{"zadd z 1 m", "zadd z 2 n", "zrem z m"}, "[m 1 n 2]"},
		{"the last element", "l", 2, []string{"rpush l x y", "rpop l", "rpush l z"}, "[x y]"},
		{"an element", "l", 1, []string{"rpush l x y", "lset l 0 z"}, "[x y]"},
		{"the first element", "l", 1, []string{"rpush l x y", "lpop l"}, "[x y]"},
		{"a field", "h", 1, []string{"hset h f 1", "hset h f 2"}, "map[f:1]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got any
			newStage(model.FaultSpec{Kind: model.FaultServer, Server: "failover", At: time.Second, LoseLast: c.lose}).
				does("a/1", func(th *sim.Thread, client *redis.Client) {
					ctx := context.Background()
					for _, words := range c.commands {
						var args []any
						for _, w := range strings.Fields(words) {
							args = append(args, w)
						}
						if err := client.Do(ctx, args...).Err(); err != nil {
							t.Error(words, err)
						}
					}
					th.At(2 * time.Second)
					client.Ping(ctx) // may find its connection reset
					got = map[string]func() any{
						"z": func() any { return client.Do(ctx, "zrange", "z", 0, -1, "withscores").Val() },
						"l": func() any { return client.LRange(ctx, "l", 0, -1).Val() },
						"h": func() any { return client.HGetAll(ctx, "h").Val() },
					}[c.key]()
				}).run(sim.NewHost(t))
			equal(t, "left", fmt.Sprint(got), c.left)
		})
	}
}

// Each failover loses the last writes of the data that the one before it left. A change that no
// client made counts as a write, too.
func TestAFailoverAndWhatWasWrittenBefore(t *testing.T) {
	sec := time.Second
	del := func(key string, at time.Duration) model.FaultSpec {
		return model.FaultSpec{Kind: model.FaultKey, Key: key, KeyDo: "delete", At: at}
	}
	lose := func(n int, at time.Duration) model.FaultSpec {
		return model.FaultSpec{Kind: model.FaultServer, Server: "failover", LoseLast: n, At: at}
	}
	restart := model.FaultSpec{Kind: model.FaultServer, Server: "restart", At: sec}
	for _, c := range []struct {
		rule   string
		faults []model.FaultSpec
		left   string // of a, b, c and d, written in this order; c has 500 ms to live
	}{
		{"nothing is lost", []model.FaultSpec{lose(0, sec)}, "a b d"},
		{"a key that ran out is a write", []model.FaultSpec{lose(2, sec)}, "a b"},
		{"a second one loses what the first one left", []model.FaultSpec{lose(3, sec), lose(2, sec)}, ""},
		{"and a third", []model.FaultSpec{lose(3, sec), lose(1, sec), lose(1, sec)}, ""},
		{"a key that ran out and one that was deleted are two", []model.FaultSpec{del("a", sec), lose(2, 2*sec)}, "a b d"},
		{"what an operator deletes comes back", []model.FaultSpec{del("a", sec), lose(1, 2*sec)}, "a b d"},
		{"the last of two deletions comes back", []model.FaultSpec{del("a", sec), del("b", sec), lose(1, 2*sec)}, "b d"},
		{"both come back", []model.FaultSpec{del("a", sec), del("b", sec), lose(2, 2*sec)}, "a b d"},
		{"what a restart lost comes back", []model.FaultSpec{restart, lose(1, 2*sec)}, "a b d"},
		{"a restart and a deletion before it", []model.FaultSpec{del("a", sec), restart, lose(1, 2*sec)}, "b d"},
		{"a deletion of no key is no write", []model.FaultSpec{del("x", sec), lose(2, 2*sec)}, "a b"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			var got []string
			newStage(c.faults...).does("a/1", func(th *sim.Thread, client *redis.Client) {
				ctx := context.Background()
				for _, k := range []string{"a", "b"} {
					client.Set(ctx, k, 1, 0)
				}
				client.Set(ctx, "c", 1, 500*ms)
				client.Set(ctx, "d", 1, 0)
				th.At(4 * sec)
				client.Ping(ctx)
				got = client.Keys(ctx, "*").Val()
			}).run(sim.NewHost(t))
			equal(t, "left", strings.Join(got, " "), c.left)
		})
	}
}

func TestAFlushOfTheScriptCacheKeepsDataAndConnections(t *testing.T) {
	script := redis.NewScript("return redis.call('incr', KEYS[1])")
	var got []string
	s := newStage(model.FaultSpec{Kind: model.FaultServer, Server: "flush_scripts", At: time.Second}).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			ctx := context.Background()
			for i := range 3 {
				th.At(time.Duration(i) * time.Second * 3 / 4)
				got = append(got, kindOf(script.EvalSha(ctx, c, []string{"n"}).Err()), fmt.Sprint(c.Get(ctx, "n").Val()))
			}
		})
	s.Scripts = []string{"return redis.call('incr', KEYS[1])"}
	r := s.run(sim.NewHost(t))
	equal(t, "EVALSHA and value", fmt.Sprint(got), "[ok 1 ok 2 NOSCRIPT No matching script. Please use EVAL. 2]")
	for _, e := range pick(r, ofKind(model.KindExec)) {
		equal(t, "connection", e.Conn, 1)
	}
}

func TestAStalledServerAnswersAtTheEnd(t *testing.T) {
	var a, b string
	r := newStage(
		model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: time.Second, For: 2 * time.Second},
		model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: 1200 * ms, For: 500 * ms}). // ends during the first stall
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			th.At(1500 * time.Millisecond)
			a = timed(th, func(ctx context.Context) error { return c.Ping(ctx).Err() })
		}).
		does("b/1", func(th *sim.Thread, c *redis.Client) {
			th.At(time.Second - oneWay*3/2) // the reply is under way: it arrives
			b = timed(th, func(ctx context.Context) error { return c.Ping(ctx).Err() })
		}).run(sim.NewHost(t))
	equal(t, "a", a, "ok@1.501s")
	equal(t, "b", b, "ok@2ms")
	equal(t, "executed", at(pick(r, func(e model.Event) bool { return e.Kind == model.KindExec && e.Process == "a" })[0]), 3*time.Second)
}

// A client's timeout goes on during the stall of the server, and a command that it gave up still
// runs.
func TestAStallLongerThanTheReadTimeout(t *testing.T) {
	var got []string
	s := newStage(model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: time.Second, For: 2 * time.Second}).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			th.At(1500 * ms)
			for range 2 {
				got = append(got, timed(th, func(ctx context.Context) error { return c.Incr(ctx, "n").Err() }))
			}
			th.At(4 * time.Second)
			got = append(got, c.Get(context.Background(), "n").Val())
		})
	s.client = func(o *redis.Options) { o.ReadTimeout = time.Second }
	s.run(sim.NewHost(t))
	equal(t, "two INCRs, and the value", strings.Join(got, " "), "timeout@1s ok@501ms 2")
}

func TestTheWallClockOfAProcess(t *testing.T) {
	for _, c := range []struct {
		name   string
		config sim.ProcessConfig
		steps  []model.FaultSpec
		want   time.Duration // read 1000.5678 s after the start
	}{
		{"is the server's, in whole milliseconds", sim.ProcessConfig{}, nil, 1000567 * time.Millisecond},
		{"ahead by its offset", sim.ProcessConfig{Offset: time.Minute}, nil, 1060567 * time.Millisecond},
		{"behind by its offset", sim.ProcessConfig{Offset: -time.Minute}, nil, 940567 * time.Millisecond},
		{"drifts fast", sim.ProcessConfig{DriftPPM: 200}, nil, 1000767 * time.Millisecond},
		{"drifts slow", sim.ProcessConfig{DriftPPM: -200}, nil, 1000367 * time.Millisecond},
		{"steps forward", sim.ProcessConfig{}, []model.FaultSpec{{Step: time.Hour}}, 4600567 * time.Millisecond},
		{"steps add up", sim.ProcessConfig{Offset: time.Second}, []model.FaultSpec{{Step: time.Hour}, {Step: -2 * time.Hour}}, -2598433 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.steps {
				c.steps[i].Kind, c.steps[i].At, c.steps[i].Processes = model.FaultWallClock, time.Duration(1+i)*time.Second, []string{"a"}
			}
			s := newStage(c.steps...)
			var a, before, b time.Time
			s.does("a/1", func(th *sim.Thread, client *redis.Client) {
				before = th.Process().Now()
				th.At(1000567800 * time.Microsecond)
				a = th.Process().Now()
			}).does("b/1", func(th *sim.Thread, client *redis.Client) {
				th.At(1000567800 * time.Microsecond)
				b = th.Process().Now()
			})
			c.config.Name, c.config.Threads = "a", 1
			s.Processes[0] = c.config
			s.run(sim.NewHost(t))
			epoch := time.UnixMilli(sim.EpochMs)
			equal(t, "at the start", before.Sub(epoch), c.config.Offset)
			equal(t, "later", a.Sub(epoch), c.want)
			equal(t, "of another process", b.Sub(epoch), 1000567*time.Millisecond)
		})
	}
}

func TestAPauseEndsWhateverElseStrikesAtItsInstant(t *testing.T) {
	for name, faults := range map[string][]model.FaultSpec{
		"after another fault":  {{Kind: model.FaultWallClock, At: time.Second, Processes: []string{"b"}, Step: 1}, pause(time.Second, time.Second)},
		"for an uneven length": {pause(time.Second, time.Second+5*time.Microsecond)},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			newStage(faults...).does("a/1", func(th *sim.Thread, c *redis.Client) {
				th.At(500 * time.Millisecond)
				got = timed(th, func(ctx context.Context) error {
					time.Sleep(time.Second)
					return c.Incr(ctx, "n").Err()
				})
			}).run(sim.NewHost(t))
			equal(t, "a request made in the pause", got, "ok@1.502s")
		})
	}
}

func TestMessagesHeldByAPauseKeepTheirOrder(t *testing.T) {
	var got []string
	newStage(pause(15*time.Millisecond, 5*time.Millisecond)).
		does("a/1", func(th *sim.Thread, c *redis.Client) { got = listen(th, c, "ch", 2*time.Second) }).
		does("b/1", func(th *sim.Thread, c *redis.Client) {
			for i, at := range []time.Duration{17500 * time.Microsecond, 18 * time.Millisecond} {
				go func() {
					time.Sleep(at)
					c.Publish(context.Background(), "ch", i)
				}()
			}
			th.At(time.Second)
		}).run(sim.NewHost(t))
	equal(t, "received", fmt.Sprint(got), "[0@20ms 1@20ms]")
}

func TestACommandOnItsWayWhenItsConnectionEndsLeavesNoSubscription(t *testing.T) {
	h := sim.NewHost(t)
	for seed := range uint64(10) {
		var receivers int64
		s := newStage(model.FaultSpec{Kind: model.FaultCrash, At: time.Second, Processes: []string{"a"}}).
			does("a/1", func(th *sim.Thread, c *redis.Client) {
				th.At(time.Second - 100*time.Microsecond)
				_, _ = c.Subscribe(context.Background(), "ch").Receive(context.Background())
			}).
			does("b/1", func(th *sim.Thread, c *redis.Client) {
				th.At(2 * time.Second)
				receivers = c.Publish(context.Background(), "ch", 1).Val()
			})
		s.Chooser, s.LatencyMin, s.LatencyMax = sim.NewSeeded(seed), 200*time.Microsecond, 2*time.Millisecond
		s.run(h)
		equal(t, fmt.Sprint("receivers, seed ", seed), receivers, 0)
	}
}

func TestAPatternSubscriptionEndsWithItsConnection(t *testing.T) {
	var receivers int64
	newStage(model.FaultSpec{Kind: model.FaultCrash, At: time.Second, Processes: []string{"a"}}).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			_, _ = c.PSubscribe(context.Background(), "c*").Receive(context.Background())
		}).
		does("b/1", func(th *sim.Thread, c *redis.Client) {
			th.At(2 * time.Second)
			receivers = c.Publish(context.Background(), "ch", 1).Val()
		}).run(sim.NewHost(t))
	equal(t, "receivers", receivers, 0)
}

func TestAFailoverKeepsSets(t *testing.T) {
	var got []string
	newStage(model.FaultSpec{Kind: model.FaultServer, Server: "failover", At: time.Second}).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			ctx := context.Background()
			c.SAdd(ctx, "set", 1)
			th.At(2 * time.Second)
			c.Ping(ctx)
			got = c.Keys(ctx, "*").Val()
		}).run(sim.NewHost(t))
	equal(t, "keys", fmt.Sprint(got), "[set]")
}

func TestAFailoverCountsAWriteThatExpiredSince(t *testing.T) {
	var got []string
	newStage(model.FaultSpec{Kind: model.FaultServer, Server: "failover", At: time.Second, LoseLast: 2}).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			ctx := context.Background()
			c.Set(ctx, "first", 1, 0)
			c.Set(ctx, "second", 1, 10*time.Millisecond)
			th.Sleep(100 * time.Millisecond)
			c.Set(ctx, "third", 1, 0)
			th.At(2 * time.Second)
			c.Ping(ctx)
			got = c.Keys(ctx, "*").Val()
		}).run(sim.NewHost(t))
	equal(t, "left", fmt.Sprint(got), "[first]")
}

func TestARuleThatAlwaysHitsDoesNotPutOffTheCalm(t *testing.T) {
	s := newStage(model.FaultSpec{Kind: model.FaultRule, Do: "error", With: "LOADING", When: model.When{Process: "a"}}).
		does("a/1", func(th *sim.Thread, c *redis.Client) {
			_ = operate(th, func(ctx context.Context) error {
				for ctx.Err() == nil && c.Incr(ctx, "n").Err() != nil {
					time.Sleep(100 * time.Millisecond)
				}
				return ctx.Err()
			})
		})
	s.MaxEvents = 5000
	r := s.run(sim.NewHost(t))
	equal(t, "defects", len(pick(r, ofKind(model.KindDefect))), 0)
	equal(t, "outcome", pick(r, ofKind(model.KindReturn))[0].Outcome, model.Granted)
}

func TestAGlobMatchesAsRedisDoes(t *testing.T) {
	for glob, left := range map[string]string{
		"lock:*":     "other {lock:a}:queue",
		"*{lock:a}*": "lock:a lock:a/b lock:b other",
		"lock:?":     "lock:a/b other {lock:a}:queue",
		"lock:[b-z]": "lock:a lock:a/b other {lock:a}:queue",
		"lock:[^a]":  "lock:a lock:a/b other {lock:a}:queue",
		`lock\:a`:    "lock:a/b lock:b other {lock:a}:queue",
		"lock:a":     "lock:a/b lock:b other {lock:a}:queue",
		"Lock:*":     "lock:a lock:a/b lock:b other {lock:a}:queue",
		"*":          "",
	} {
		t.Run(glob, func(t *testing.T) {
			var got []string
			newStage(model.FaultSpec{Kind: model.FaultKey, KeyDo: "delete", Key: glob, At: time.Second}).
				does("a/1", func(th *sim.Thread, c *redis.Client) {
					for _, k := range []string{"lock:a", "lock:a/b", "lock:b", "{lock:a}:queue", "other"} {
						c.Set(context.Background(), k, 1, 0)
					}
					th.At(2 * time.Second)
					got = c.Keys(context.Background(), "*").Val()
				}).run(sim.NewHost(t))
			slices.Sort(got)
			equal(t, "left", strings.Join(got, " "), left)
		})
	}
}
