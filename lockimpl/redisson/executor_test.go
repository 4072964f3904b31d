package redisson

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep/lockimpl"
)

// resends has the instants at which a release sends a command whose replies are lost, the first
// included, and the instant at which the call returns. (Jitter is half of its maximum: 750 ms, then
// 1500 ms.)
var resends = byRelease[struct {
	at     []time.Duration
	gaveUp time.Duration
}]{
	"3.4.2":         {seconds(0), 3 * time.Second},
	"3.11.0 3.12.4": {seconds(0, 3, 6, 9), 12 * time.Second},
	"3.21.3 3.43.0": {seconds(0, 4.5, 9, 13.5), 16500 * time.Millisecond},
	"4.7.0":         {seconds(0, 3.75, 8.25, 12.75, 17.25), 20250 * time.Millisecond},
}

// Which commands a release sends again when they were written and not answered, at which instants,
// and when the caller learns of the failure.
func TestResendsAfterALostReply(t *testing.T) {
	const (
		guarded   = "3.11.0 3.12.4 3.21.3" // later ones flag it "no retry"
		unguarded = "3.11.0 3.12.4 3.21.3 3.43.0 4.7.0"
		left      = "3.11.0 3.12.4 3.21.3 4.7.0" // F9 sends it again
	)
	hold := func(b *bench, c *Client, k kind) {
		b.must(b.lock(c, k, "x").Lock(background, 9, lockimpl.LockOptions{}))
	}
	for _, c := range []struct {
		what   string
		fair   bool
		script func(k kind) Script
		first  func(b *bench, c *Client, k kind) // before replies are lost
		call   func(l lockimpl.Lock) error
		resent string // by these releases
	}{
		{"acquire", false, kind.acquire, nil, func(l lockimpl.Lock) error { return l.Lock(background, 1, lockimpl.LockOptions{}) }, guarded},
		{"try", false, kind.acquire, nil, func(l lockimpl.Lock) error { return second(l.TryLock(background, 1)) }, guarded},
		{"fair acquire", true, kind.acquire, nil, func(l lockimpl.Lock) error { return l.Lock(background, 1, lockimpl.LockOptions{}) }, guarded},
		{"fair try", true, func(k kind) Script { return k.FairTryAcquire }, nil, func(l lockimpl.Lock) error { return second(l.TryLock(background, 1)) }, guarded},
		{"unlock", false, kind.unlock, hold, func(l lockimpl.Lock) error { return second(l.Unlock(background, 9)) }, guarded},
		{"fair unlock", true, kind.unlock, hold, func(l lockimpl.Lock) error { return second(l.Unlock(background, 9)) }, guarded},
		{"force unlock", false, func(k kind) Script { return k.ForceUnlock }, nil, func(l lockimpl.Lock) error { return second(l.ForceUnlock(background)) }, unguarded},
		{"fair force unlock", true, func(k kind) Script { return k.FairForceUnlock }, nil, func(l lockimpl.Lock) error { return second(l.ForceUnlock(background)) }, unguarded},
		{"leave", true, func(k kind) Script { return k.FairLeave }, hold, func(l lockimpl.Lock) error {
			return second(l.TryLockTimed(background, 1, lockimpl.TryOptions{}))
		}, left},
	} {
		t.Run(c.what, func(t *testing.T) {
			eachRelease(t, func(b *bench, rel *Release) {
				k := kind{rel, c.fair}
				client := b.client(rel, "c1", func(cfg *Config) { cfg.WatchdogTimeout = time.Hour })
				if c.first != nil {
					c.first(b, client, k)
				}
				b.forget()
				b.answer(loses(c.script(k).Name))
				l := b.lock(client, k, "x")
				call := b.begin(func() (bool, error) { return false, c.call(l) })
				want, end := seconds(0), 3*time.Second
				if rel.isOneOf(c.resent) {
					rule := resends.forRelease(b.t, rel)
					want, end = rule.at, rule.gaveUp
				}
				call.failedAt(end, lockimpl.ErrUnknownOutcome)
				if !errors.Is(call.err, errResponseTimeout) {
					b.t.Errorf("error %v does not say that the response was late", call.err)
				}
				b.until(5 * time.Minute)
				runs := b.runs("c1", c.script(k).Name)
				same(b.t, "sent", times(runs), want)
				for _, r := range runs { // each resend is the same command
					same(b.t, "keys of a resend", r.keys, runs[0].keys)
					same(b.t, "arguments of a resend", r.args, runs[0].args)
				}
			})
		})
	}
}

// The same for a renewal, for which no caller waits. Up to 3.43.0 the renewals end when the release
// gives up; in 4.7.0 the next tick comes a period after that.
func TestResendsOfARenewal(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		b.answer(loses(rel.Renew.Name))
		b.until(45 * time.Second)
		want := byRelease[[]time.Duration]{
			"3.4.2":         seconds(10),
			"3.11.0 3.12.4": seconds(10, 13, 16, 19),
			"3.21.3 3.43.0": seconds(10, 14.5, 19, 23.5),
			"4.7.0":         seconds(10, 13.75, 18.25, 22.75, 27.25, 40.25, 44),
		}
		same(b.t, "renewals", times(b.runs("c1", rel.Renew.Name)), want.forRelease(b.t, rel))
	})
}

func TestRetryAttempts(t *testing.T) {
	for _, c := range []struct {
		what     string
		attempts int
		sent     []time.Duration
	}{
		{"none when negative", -1, seconds(0)},
		{"one when named", 1, seconds(0, 4.5)},
		{"the release's when zero", 0, seconds(0, 4.5, 9, 13.5)},
	} {
		t.Run(c.what, func(t *testing.T) {
			on(t, "3.43.0", func(b *bench, rel *Release) {
				l := b.lock(b.client(rel, "c1", func(cfg *Config) { cfg.RetryAttempts = c.attempts }), kind{rel, false}, "x")
				b.answer(loses(rel.ForceUnlock.Name))
				if _, err := l.ForceUnlock(background); !errors.Is(err, lockimpl.ErrUnknownOutcome) {
					b.t.Fatal(err)
				}
				same(b.t, "sent", times(b.runs("c1", rel.ForceUnlock.Name)), c.sent)
			})
		})
	}
}

// An interrupt that came before a wait wins, even if the reply is there, too.
func TestAnInterruptGoesBeforeAReplyThatIsThere(t *testing.T) {
	rel, err := Find("4.7.0")
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(nil, Config{Release: rel})
	ctx, cancel := context.WithCancel(background)
	cancel()
	for range 100 { // select takes any case that is ready
		there := make(chan reply, 1)
		there <- reply{val: int64(1)}
		if _, err := c.await(ctx, "wait", there); !errors.Is(err, lockimpl.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
			t.Fatalf("a wait that was interrupted before gave %v", err)
		}
	}
}

// The library waits for the answer to a script with WAIT a second longer than the response timeout,
// and sends the script again after the retry delay.
func TestAnAnswerWithWaitHasASecondMore(t *testing.T) {
	on(t, "3.21.3", func(b *bench, rel *Release) {
		const told = "connected_slaves:1\r\n"
		b.answer(func(c command) fate {
			switch {
			case c.op == "INFO":
				return fate{reply: fmt.Sprintf("$%d\r\n%s\r\n", len(told), told)}
			case c.op == "WAIT": // and the script, which is written with it
				return fate{lost: true}
			}
			return fate{}
		})
		l := b.lock(b.client(rel, "c1", func(cfg *Config) { cfg.Topology = Replicated }), kind{rel, false}, "x")
		b.beginLock(background, l, 1, lockimpl.LockOptions{})
		b.until(5600 * time.Millisecond)
		same(b.t, "sent", times(b.runs("c1", rel.Acquire.Name)), []time.Duration{0, 5500 * time.Millisecond})
	})
}

// A connection that ends under a command leaves its outcome unknown, as a late reply does. The
// library does not notice: the command waits for the rest of the response timeout, and is sent
// again as after a lost reply.
func TestACutConnectionIsALostReply(t *testing.T) {
	each(t, func(b *bench, k kind) {
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.answer(func(c command) fate { return fate{cut: c.script == k.acquire().Name} })
		call := b.begin(func() (bool, error) { err := l.Lock(background, 1, lockimpl.LockOptions{}); return false, err })
		want, end := seconds(0), 3*time.Second
		if k.isOneOf("3.11.0 3.12.4 3.21.3") {
			rule := resends.forRelease(b.t, k.Release)
			want, end = rule.at, rule.gaveUp
		}
		call.failedAt(end, lockimpl.ErrUnknownOutcome)
		if !errors.Is(call.err, errResponseTimeout) {
			b.t.Errorf("error %v does not say that the response was late", call.err)
		}
		same(b.t, "sent", times(b.runs("c1", k.acquire().Name)), want)
	})
}

// After an acquire of unknown outcome, the hash may hold the caller as owner, without a watchdog,
// until the lease ends. The next acquire of that thread enters again. In releases that send every
// script again, each resend enters once more (issue 6025).
func TestAnUnknownAcquireThatRan(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		k := kind{rel, false}
		l := b.lock(b.client(rel, "c1"), k, "x")
		if rel.ScriptCache { // else the first EVALSHA is answered NOSCRIPT and did not run
			b.tried(true)(l.TryLock(background, 1))
			b.released(lockimpl.Released)(l.Unlock(background, 1))
		}
		b.answer(loses(rel.Acquire.Name))
		if err := l.Lock(background, 1, lockimpl.LockOptions{}); !errors.Is(err, lockimpl.ErrUnknownOutcome) {
			b.t.Fatal(err)
		}
		b.answer(nil)
		runs := byRelease[int]{"3.4.2 3.43.0 4.7.0": 1, "3.11.0 3.12.4 3.21.3": 4}.forRelease(b.t, rel)
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": fmt.Sprint(runs)})
		b.until(b.now() + 20*time.Second)
		same(b.t, "renewals", b.renewals(rel, "c1"), nil)
		b.must(l.Lock(background, 1, lockimpl.LockOptions{Lease: time.Minute}))
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": fmt.Sprint(runs + 1)})
		b.released(lockimpl.StillHeld)(l.Unlock(background, 1))
	})
}

// Every release sends a command again that was never written, whatever the command is.
func TestACommandThatWasNotWrittenIsSentAgain(t *testing.T) {
	refused := errors.New("connection refused")
	const constant = "3.4.2 3.11.0 3.12.4 3.21.3 3.43.0"
	each(t, func(b *bench, k kind) {
		gaveUp := byRelease[time.Duration]{constant: 4500 * time.Millisecond, "4.7.0": 5250 * time.Millisecond}.forRelease(b.t, k.Release)
		first := byRelease[time.Duration]{constant: 1500 * time.Millisecond, "4.7.0": 750 * time.Millisecond}.forRelease(b.t, k.Release)
		l := b.lock(b.client(k.Release, "c1"), k, "x")
		b.refuse(refused)
		call := b.begin(func() (bool, error) { err := l.Lock(background, 1, lockimpl.LockOptions{}); return err == nil, err })
		call.failedAt(gaveUp, refused)
		if errors.Is(call.err, lockimpl.ErrUnknownOutcome) {
			b.t.Errorf("nothing was sent, and yet: %v", call.err)
		}
		call = b.begin(func() (bool, error) { err := l.Lock(background, 1, lockimpl.LockOptions{}); return err == nil, err })
		b.until(gaveUp + 500*time.Millisecond)
		b.refuse(nil)
		call.grantedAt(gaveUp + first)
	})
}

// A release sends a command again after some refusals of the server, at certain instants, as the
// library was seen to do (interop, TestLostAnswers). All other refusals go to the caller.
func TestRefusalsThatAreAskedAgain(t *testing.T) {
	const early = "3.4.2 3.11.0 3.12.4"
	var (
		each1s    = seconds(0, 1, 2, 3)
		each1500  = seconds(0, 1.5, 3, 4.5)
		jittered  = seconds(0, 0.75, 2.25, 3.75, 5.25)
		onlyFirst = seconds(0)
	)
	always := byRelease[[]time.Duration]{early: each1s, "3.21.3 3.43.0": each1500, "4.7.0": jittered}
	since313 := byRelease[[]time.Duration]{early: onlyFirst, "3.21.3 3.43.0": each1500, "4.7.0": jittered}
	since322 := byRelease[[]time.Duration]{early + " 3.21.3": onlyFirst, "3.43.0": each1500, "4.7.0": jittered}
	nobody := byRelease[[]time.Duration]{early + " 3.21.3 3.43.0 4.7.0": onlyFirst}
	for _, c := range []struct {
		reply string
		sent  byRelease[[]time.Duration]
	}{
		{"LOADING Redis is loading the dataset in memory", always},
		{"TRYAGAIN Multiple keys request during rehashing of slot", always},
		{"MOVED 1 192.0.2.1:6379", always},
		{"ASK 1 192.0.2.1:6379", always},
		{"CLUSTERDOWN The cluster is down", since313},
		{"BUSY Redis is busy running a script.", since313},
		{"READONLY You can't write against a read only replica.", since322},
		{"ERR wrong number", nobody},
		{"NOPERM this user has no permissions", nobody},
	} {
		t.Run(c.reply, func(t *testing.T) {
			eachRelease(t, func(b *bench, rel *Release) {
				if rel.LoadingForever && strings.HasPrefix(c.reply, "LOADING") {
					return // never ends: see the next test
				}
				l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
				b.answer(func(k command) fate {
					if k.script == rel.Acquire.Name {
						return fate{reply: "-" + c.reply + "\r\n"}
					}
					return fate{}
				})
				err := l.Lock(background, 1, lockimpl.LockOptions{})
				if err == nil || errors.Is(err, lockimpl.ErrUnknownOutcome) {
					b.t.Errorf("lock gave %v; want the server's error", err)
				}
				same(b.t, "sent", times(b.runs("c1", rel.Acquire.Name)), c.sent.forRelease(b.t, rel))
			})
		})
	}
}

// 3.4.2 asks a loading server again at once, for as long as the server answers LOADING.
func TestLoadingIsAskedAgainWithoutEnd(t *testing.T) {
	on(t, "3.4.2", func(b *bench, rel *Release) {
		const refused = 500
		l, asked := b.lock(b.client(rel, "c1"), kind{rel, false}, "x"), 0
		b.answer(func(k command) fate {
			if k.script != rel.Acquire.Name || asked == refused {
				return fate{}
			}
			asked++
			return fate{reply: "-LOADING Redis is loading the dataset in memory\r\n"}
		})
		b.must(l.Lock(background, 1, lockimpl.LockOptions{}))
		same(b.t, "sent", times(b.runs("c1", rel.Acquire.Name)), make([]time.Duration, refused+1))
	})
}

// A response timeout in tryLock's loop, all resends lost too: 4.7.0 leaves the queue and answers
// false; the others throw, and leave a ghost in the queue (issue 5019). If it comes at the first
// attempt, all releases throw.
func TestAResponseTimeoutInsideTryLock(t *testing.T) {
	each(t, func(b *bench, k kind) {
		b.must(b.lock(b.client(k.Release, "c1"), k, "x").Lock(background, 1, lockimpl.LockOptions{}))
		l := b.lock(b.client(k.Release, "c2"), k, "x")
		attempts := 0
		b.answer(func(c command) fate {
			if c.client != "c2" || c.script != k.acquire().Name {
				return fate{}
			}
			attempts++
			return fate{lost: attempts >= 2}
		})
		call := b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 1, lockimpl.TryOptions{Wait: time.Minute})
		})
		gaveUp := byRelease[time.Duration]{
			"3.4.2 3.43.0 4.7.0": 3 * time.Second,
			"3.11.0 3.12.4":      12 * time.Second,
			"3.21.3":             16500 * time.Millisecond,
		}.forRelease(b.t, k.Release)
		left := k.isOneOf("4.7.0")
		if left {
			call.refusedAt(gaveUp)
		} else {
			call.failedAt(gaveUp, lockimpl.ErrUnknownOutcome)
		}
		b.answer(nil)
		if k.fair {
			queue, _ := b.m.List(QueueName("x"))
			same(b.t, "left the queue", len(queue) == 0, left)
		}

		b.answer(loses(k.acquire().Name))
		call = b.begin(func() (bool, error) {
			return l.TryLockTimed(background, 2, lockimpl.TryOptions{Wait: time.Minute})
		})
		call.failedAt(2*gaveUp, lockimpl.ErrUnknownOutcome)
	})
}

// The script cache (3.46.0 on): 4.7.0 sends the script's hash, and loads the text if the server
// does not know it; the other releases send the text each time.
func TestEvalAndEvalSha(t *testing.T) {
	play := func(b *bench, rel *Release) (ops []string) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		b.tried(true)(l.TryLock(background, 1))
		b.tried(true)(l.TryLock(background, 1))
		b.must(b.client(rel, "admin").rdb.ScriptFlush(background).Err()) // as after a failover
		b.tried(true)(l.TryLock(background, 1))
		for _, c := range b.commands("c1") {
			op := c.op
			if op == "SCRIPT" {
				op += " " + c.args[0]
			}
			ops = append(ops, op)
		}
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "3"})
		return ops
	}
	eachRelease(t, func(b *bench, rel *Release) {
		ops := play(b, rel)
		for i, op := range ops { // go-redis writes the subcommand in lower case
			ops[i] = strings.ToUpper(op)
		}
		same(b.t, "commands", ops, byRelease[[]string]{
			"3.4.2 3.11.0 3.12.4 3.21.3 3.43.0": {"EVAL", "EVAL", "EVAL"},
			"4.7.0": {
				"EVALSHA", "SCRIPT LOAD", "EVALSHA", "EVALSHA",
				"EVALSHA", "SCRIPT LOAD", "EVALSHA",
			},
		}.forRelease(b.t, rel))
	})
}

// Close does not hide the fact that a command was under way.
func TestCloseDuringACommand(t *testing.T) {
	each(t, func(b *bench, k kind) {
		c := b.client(k.Release, "c1")
		l := b.lock(c, k, "x")
		b.answer(loses(k.acquire().Name))
		call := b.begin(func() (bool, error) { err := l.Lock(background, 1, lockimpl.LockOptions{}); return err == nil, err })
		b.until(time.Second)
		b.must(c.Close())
		call.failedAt(3*time.Second, lockimpl.ErrUnknownOutcome) // and no resend
		if !errors.Is(call.err, lockimpl.ErrClosed) {
			b.t.Errorf("error %v does not say that the client was closed", call.err)
		}
	})
}

// A close between two attempts ends the call at once, since no command is under way.
func TestCloseBetweenResends(t *testing.T) {
	eachRelease(t, func(b *bench, rel *Release) {
		c := b.client(rel, "c1")
		l := b.lock(c, kind{rel, false}, "x")
		b.refuse(errors.New("connection refused"))
		call := b.begin(func() (bool, error) { err := l.Lock(background, 1, lockimpl.LockOptions{}); return err == nil, err })
		b.until(100 * time.Millisecond)
		b.must(c.Close())
		call.failedAt(100*time.Millisecond, lockimpl.ErrClosed)
	})
}

// EqualJitter: half of the full delay, and up to as much again.
func TestDelays(t *testing.T) {
	jitter := func(share float64) lockimpl.Environment {
		return lockimpl.Environment{Jitter: func(_ lockimpl.Owner, max time.Duration) time.Duration {
			return time.Duration(share * float64(max))
		}}
	}
	for _, c := range []struct {
		delay    Delay
		attempt  int
		min, max time.Duration
	}{
		{fixedRetry, 0, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{fixedRetry, 3, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{jitterRetry, 0, 500 * time.Millisecond, time.Second},
		{jitterRetry, 1, time.Second, 2 * time.Second},
		{jitterRetry, 3, time.Second, 2 * time.Second},
		{jitterRetry, 1000, time.Second, 2 * time.Second}, // no overflow
	} {
		same(t, "least delay", c.delay.draw(c.attempt, 0, jitter(0)), c.min)
		same(t, "greatest delay", c.delay.draw(c.attempt, 0, jitter(1)), c.max)
	}
}
