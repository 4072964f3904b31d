//go:build interop

package interop

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisson"
)

// storyWatchdog is the lockWatchdogTimeout of the stories; a third of it is
// the period.
const storyWatchdog = 900 * time.Millisecond

// stage is one player in a story. It notes its acts in words that are the same for the library and
// the port.
type stage struct {
	t    *testing.T
	rel  *redisson.Release
	p    player
	via  *Proxy
	rdb  *redis.Client // bypasses the proxy
	lock string
	kind string // of the lock; "": plain
	// watchdog is the client's lockWatchdogTimeout.
	watchdog time.Duration
	text     []string
}

func (s *stage) note(format string, args ...any) {
	s.text = append(s.text, fmt.Sprintf(format, args...))
}

// begin starts a call.
func (s *stage) begin(thread int, op string, with ...any) <-chan string {
	return s.p.do(thread, op, append(Fields{"kind", cmp.Or(s.kind, plain), "lock", s.lock}, with...))
}

// call makes a call and notes its result.
func (s *stage) call(thread int, op string, with ...any) {
	s.note("%d %s: %s", thread, op, await(s.t, s.begin(thread, op, with...)))
}

// renewals notes whether renewals come within five periods: none, one (a
// period's worth), or more.
func (s *stage) renewals() {
	if s.rel.Watchdog != redisson.WatchdogTimer { // the period of WatchdogTimer is ten seconds
		s.note("renewals: %s", []string{"none", "one", "go on"}[min(2, s.countRenewals(s.watchdog*5/3))])
	}
}

func (s *stage) countRenewals(during time.Duration) (n int) {
	from := len(s.via.Sent(0))
	time.Sleep(during)
	for _, c := range s.via.Sent(from) {
		if evals(1)(c.Words) {
			n++
		}
	}
	return n
}

// strike lets a fault meet the next renewals, as many as times says.
func (s *stage) strike(keys, times int, v Verdict) {
	n := 0
	s.via.Rule(func(c Sent) Verdict {
		if n >= times || !evals(keys)(c.Words) {
			return Verdict{}
		}
		n++
		return v
	})
}

// state notes the lock's holds, by thread.
func (s *stage) state() {
	var holds []string
	for owner, count := range s.rdb.HGetAll(context.Background(), s.lock).Val() {
		name := "somebody"
		for thread := 1; thread <= 3; thread++ {
			if s.p.owner(thread) == owner {
				name = fmt.Sprint(thread)
			}
		}
		holds = append(holds, name+" x"+count)
	}
	slices.Sort(holds)
	s.note("held %v", holds)
}

// leased notes whether the lock has a time to live beyond the watchdog timeout.
func (s *stage) leased() {
	s.note("a lease of its own: %v", s.rdb.PTTL(context.Background(), s.lock).Val() > s.watchdog)
}

// result notes whether a call returns within a time.
func (s *stage) result(what string, c <-chan string, within time.Duration) bool {
	select {
	case r := <-c:
		s.note("%s: %s", what, r)
		return true
	case <-time.After(within):
		s.note("%s: not back", what)
		return false
	}
}

type story struct {
	name string
	set  settings
	// known replaces the library's words by the port's for a difference that is known and left as
	// it is; nil: there is none.
	known *strings.Replacer
	tell  func(*stage)
}

// differsAsKnown reports whether the notes of the library and the port differ only by the known
// difference.
func (x story) differsAsKnown(library, port string) bool {
	return x.known != nil && x.known.Replace(library) == port
}

var watchdogStories = []story{
	{name: "a renewal answered with an error", tell: func(s *stage) {
		s.call(1, "lock")
		s.strike(1, 1, Verdict{Error: "ERR made up"})
		time.Sleep(storyWatchdog / 3)
		s.renewals()
		s.call(1, "unlock")
		s.call(1, "lock")
		s.renewals()
		s.call(1, "unlock")
		s.call(2, "lock")
		s.renewals()
	}},
	{name: "a renewal without an answer", set: settings{response: 300 * time.Millisecond, attempts: -1}, tell: func(s *stage) {
		s.call(1, "lock")
		s.strike(1, 1, Verdict{Delay: 400 * time.Millisecond})
		time.Sleep(storyWatchdog/3 + 500*time.Millisecond)
		s.renewals()
		s.via.Rule(nil)
		_ = s.rdb.Del(context.Background(), s.lock)
		s.call(1, "lock")
		s.renewals()
	}},
	{name: "deleted by an operator, and taken again by the same thread", tell: func(s *stage) {
		s.call(1, "lock")
		s.rdb.Del(context.Background(), s.lock)
		s.renewals()
		s.call(1, "lock")
		s.renewals()
		s.call(1, "unlock")
		s.renewals()
		s.call(2, "lock")
		s.renewals()
	}},
	{name: "deleted by an operator, and taken by another thread", tell: func(s *stage) {
		s.call(1, "lock")
		s.rdb.Del(context.Background(), s.lock)
		s.call(2, "lock")
		s.renewals()
		s.call(1, "unlock")
		s.renewals()
		s.state()
	}},
	{name: "an unlock answered with an error", tell: func(s *stage) {
		s.call(1, "lock")
		s.strike(keysOf(s.rel, "plain", "unlock"), 1, Verdict{Error: "ERR made up"})
		s.call(1, "unlock")
		s.renewals()
		s.state()
		s.call(1, "unlock")
		s.call(1, "lock")
		s.renewals()
	}},
	{name: "an unlock answered with an error, of a hold entered twice", tell: func(s *stage) {
		s.call(1, "lock")
		s.call(1, "lock")
		s.strike(keysOf(s.rel, "plain", "unlock"), 1, Verdict{Error: "ERR made up"})
		s.call(1, "unlock")
		s.renewals()
		s.call(1, "unlock")
		s.renewals()
		s.state()
	}},
	{name: "an unlock without an answer", set: settings{response: 400 * time.Millisecond, attempts: -1}, tell: func(s *stage) {
		s.call(1, "lock")
		s.strike(keysOf(s.rel, "plain", "unlock"), 1, Verdict{Delay: 600 * time.Millisecond})
		s.call(1, "unlock")
		time.Sleep(300 * time.Millisecond)
		s.renewals()
		s.state()
		s.call(1, "lock")
		s.renewals()
	}},
	{name: "an unlock of a lost hold", tell: func(s *stage) {
		s.call(1, "lock")
		ctx := context.Background()
		s.rdb.Del(ctx, s.lock)
		s.rdb.HSet(ctx, s.lock, "somebody:1", 1)
		s.call(1, "unlock")
		s.renewals()
	}},
	{name: "in, in, out, out, then another thread", tell: func(s *stage) {
		s.call(1, "lock")
		s.call(1, "lock")
		s.call(1, "unlock")
		s.renewals()
		s.call(1, "unlock")
		s.call(2, "lock")
		s.renewals()
		s.state()
	}},
	{name: "force unlocked by its own client", tell: func(s *stage) {
		s.call(1, "lock")
		s.call(1, "lock")
		s.call(2, "force_unlock")
		s.renewals()
		s.call(2, "lock")
		s.renewals()
		s.call(2, "unlock")
		s.renewals()
	}},
	{name: "a lease after a hold without one", tell: func(s *stage) {
		s.call(1, "lock")
		s.call(1, "lock", "lease", 60000)
		s.renewals()
		s.call(1, "unlock")
		s.renewals()
		s.call(1, "unlock")
		s.renewals()
	}},
	{name: "a lease first, then without", tell: func(s *stage) {
		s.call(1, "lock", "lease", 60000)
		s.call(1, "lock")
		s.renewals()
		s.call(1, "unlock")
		s.renewals()
		s.state()
	}},
	{name: "when the first renewal of a hold comes", set: settings{watchdog: 4500 * time.Millisecond}, tell: func(s *stage) {
		const period = 1500 * time.Millisecond
		first := func(what string, lock string) {
			from := len(s.via.Sent(0))
			begin := s.via.Now()
			for s.via.Now() < begin+2*period {
				for _, c := range s.via.Sent(from) {
					if strings.HasPrefix(strings.ToUpper(c.Words[0]), "EVAL") && slices.Contains(c.Words, lock) {
						s.note("%s: %v of a period", what, halves((c.At-begin)/(period/10)))
						return
					}
				}
				time.Sleep(5 * time.Millisecond)
			}
			s.note("%s: none in two periods", what)
		}
		s.call(1, "lock")
		first("of the first hold", s.lock)
		time.Sleep(period * 4 / 10)
		s.call(1, "unlock")
		s.call(1, "lock") // four tenths after the tick: the next is six tenths away
		first("of a hold taken between two ticks", s.lock)
		time.Sleep(period * 4 / 10)
		r := await(s.t, s.p.do(2, "lock", Fields{"kind", "plain", "lock", s.lock + "other"}))
		s.note("2 lock of another: %s", r)
		first("of another lock between two ticks", s.lock+"other")
		s.call(1, "unlock")
		s.note("2 unlock: %s", await(s.t, s.p.do(2, "unlock", Fields{"kind", "plain", "lock", s.lock + "other"})))
		time.Sleep(3 * period) // without holds the ticks end in some releases
		s.call(1, "lock")
		first("of a hold after a long rest", s.lock)
		time.Sleep(period / 10)
		// The library's timers have ticks of 100 ms: its periods are a little longer.
		s.note("one timer: %v", s.countRenewals(3*period) < 5)
	}},
	// In 4.7.0 each unlock leaves a timer behind; in the others it leaves none.
	{name: "timers left by unlocks", set: settings{watchdog: 4500 * time.Millisecond}, tell: func(s *stage) {
		const period = 1500 * time.Millisecond
		for range 3 {
			s.call(1, "lock")
			time.Sleep(period * 3 / 10)
			s.call(1, "unlock")
		}
		s.call(1, "lock") // at nine tenths of a period
		s.note("renewals in nearly three periods: %d", s.countRenewals(period*287/100))
	}},
}

// halves distinguishes a fixed phase (six tenths) from a new one (ten tenths).
func halves(tenths time.Duration) string {
	if tenths < 8 {
		return "0.6"
	}
	return "1"
}

// keptBack is how long answers are kept back while a call is interrupted.
const keptBack = 1200 * time.Millisecond

// subscribing replaces the library's notes about an interrupt of its subscription by those of the
// port, which unsubscribes and returns at once. docs/fidelity.md says why this difference stays.
// Nothing else may differ.
var subscribing = strings.NewReplacer(
	"before it is subscribed: not back; after it is subscribed: "+resultUnderWay, "before it is subscribed: "+resultInterrupted,
	"before it is subscribed: "+resultUnderWay, "before it is subscribed: "+resultInterrupted,
	"channels left open: 1", "channels left open: 0",
)

var interruptStories = func() (all []story) {
	defer func() {
		for i := range all {
			all[i].set.watchdog = 3 * keptBack
		}
	}()
	for _, op := range []struct {
		name string
		with []any
	}{
		{"lock", nil}, {"lock", []any{"lease", 60000}}, {"lock_interruptibly", nil}, {"try_lock", nil},
		{"try_lock", []any{"wait", 9000}}, {"try_lock", []any{"wait", 9000, "lease", 60000}},
	} {
		what := fmt.Sprint(op.name, op.with)
		all = append(all, story{name: what + " interrupted while its attempt is under way", tell: func(s *stage) {
			s.strike(1, 1, Verdict{Delay: keptBack})
			c := s.begin(1, op.name, op.with...)
			time.Sleep(keptBack / 4)
			s.p.interrupt(1)
			if !s.result("before the answer", c, keptBack/3) {
				s.result("after the answer", c, keptBack)
			}
			time.Sleep(keptBack)
			s.renewals()
			s.state()
		}})
		if op.name == "try_lock" && op.with == nil {
			continue
		}
		all = append(all, story{name: what + " interrupted while it subscribes", known: subscribing, tell: func(s *stage) {
			s.call(2, "lock")
			s.via.Rule(func(c Sent) Verdict {
				if subscribes(c.Words[0]) {
					return Verdict{Hold: keptBack}
				}
				return Verdict{}
			})
			c := s.begin(1, op.name, op.with...)
			time.Sleep(keptBack / 4)
			s.p.interrupt(1)
			back := s.result("before it is subscribed", c, keptBack/3)
			time.Sleep(keptBack)
			if !back {
				back = s.result("after it is subscribed", c, keptBack/4)
			}
			s.via.Rule(nil)
			s.call(2, "unlock")
			if !back {
				s.result("after the unlock", c, keptBack)
			}
			time.Sleep(keptBack / 4)
			s.state()
			time.Sleep(keptBack)
			s.note("channels left open: %d", channelsOpened(s.via.Sent(0)))
		}})
		all = append(all, story{name: what + " interrupted while it waits", tell: func(s *stage) {
			s.call(2, "lock")
			c := s.begin(1, op.name, op.with...)
			time.Sleep(keptBack / 2)
			s.p.interrupt(1)
			back := s.result("at once", c, keptBack/4)
			s.call(2, "unlock")
			if !back {
				s.result("after the unlock", c, keptBack)
			}
			time.Sleep(keptBack / 4)
			s.state()
			s.note("channels left open: %d", channelsOpened(s.via.Sent(0)))
		}})
		all = append(all, story{name: what + " interrupted while its second attempt is under way", tell: func(s *stage) {
			s.call(2, "lock")
			n := 0
			me := s.p.owner(1)
			s.via.Rule(func(c Sent) Verdict {
				if !evals(1)(c.Words) || !slices.Contains(c.Words, me) {
					return Verdict{}
				}
				if n++; n == 2 {
					return Verdict{Delay: keptBack}
				}
				return Verdict{}
			})
			c := s.begin(1, op.name, op.with...)
			time.Sleep(keptBack / 2)
			s.p.interrupt(1)
			back := s.result("before the answer", c, keptBack/4)
			time.Sleep(keptBack)
			s.call(2, "unlock")
			if !back {
				s.result("after the unlock", c, keptBack)
			}
			time.Sleep(keptBack / 4)
			s.state()
			s.note("channels left open: %d", channelsOpened(s.via.Sent(0)))
		}})
	}
	all = append(all, story{name: "unlock interrupted while it is under way", tell: func(s *stage) {
		s.call(1, "lock")
		s.strike(keysOf(s.rel, "plain", "unlock"), 1, Verdict{Delay: keptBack})
		c := s.begin(1, "unlock")
		time.Sleep(keptBack / 4)
		s.p.interrupt(1)
		if !s.result("before the answer", c, keptBack/3) {
			s.result("after the answer", c, keptBack)
		}
		time.Sleep(keptBack)
		s.renewals()
		s.state()
	}})
	return all
}()

// tokenStories are about the calls that return a token: their attempts in the background after an
// interrupt, and the answer for a key without a time to live.
var tokenStories = func() (all []story) {
	for _, op := range []struct {
		name string
		with []any
	}{
		{"lock_and_get_token", nil}, {"try_lock_and_get_token", nil},
		{"try_lock_and_get_token", []any{"wait", 9000}}, {"try_lock_and_get_token", []any{"wait", 9000, "lease", 60000}},
	} {
		what := fmt.Sprint(op.name, op.with)
		begin := func(s *stage) <-chan string {
			s.kind = fenced
			return s.begin(1, op.name, op.with...)
		}
		all = append(all, story{name: what + " interrupted while its attempt is under way", tell: func(s *stage) {
			s.strike(2, 1, Verdict{Delay: keptBack})
			c := begin(s)
			time.Sleep(keptBack / 4)
			s.p.interrupt(1)
			s.result("before the answer", c, keptBack/3)
			time.Sleep(keptBack * 3 / 2)
			s.state() // shows that the grant was given back
			s.call(1, "get_token")
		}}, story{name: what + " interrupted while it waits", tell: func(s *stage) {
			s.kind = fenced
			s.call(2, "lock")
			c := begin(s)
			time.Sleep(keptBack / 2)
			s.p.interrupt(1)
			s.result("at once", c, keptBack/4)
			s.note("channels open: %d", channelsOpened(s.via.Sent(0)))
			s.call(2, "unlock")
			time.Sleep(keptBack / 4)
			s.state()
			s.note("channels left open: %d", channelsOpened(s.via.Sent(0)))
			s.call(2, "get_token")
		}}, story{name: what + " on a key without time to live", tell: func(s *stage) {
			s.kind = fenced
			s.call(2, "lock", "lease", 60000)
			s.rdb.Persist(context.Background(), s.lock)
			s.result("its result", begin(s), keptBack)
			s.state()
		}})
	}
	lone := func(name string, tell func(s *stage)) {
		all = append(all, story{name: name, tell: func(s *stage) {
			s.kind = fenced
			tell(s)
		}})
	}
	lone("a wait for a token that runs out", func(s *stage) {
		s.call(2, "lock", "lease", 60000)
		c := s.begin(1, "try_lock_and_get_token", "wait", int(keptBack/time.Millisecond))
		if !s.result("within half its time", c, keptBack/2) {
			s.result("within three times its time", c, keptBack*5/2)
		}
		s.call(2, "unlock")
		s.state()
		s.call(1, "get_token")
	})
	for _, lease := range []int{0, 60000} {
		lone(fmt.Sprint("a wait for a token that is granted, with a lease of ", lease), func(s *stage) {
			s.call(2, "lock", "lease", 60000)
			// The answer to the unlock and the grant would write one object's lease field, in either order.
			with := []any{"wait", 9000, "object", "fresh"}
			if lease > 0 {
				with = append(with, "lease", lease)
			}
			c := s.begin(1, "try_lock_and_get_token", with...)
			time.Sleep(keptBack / 2)
			s.call(2, "unlock")
			s.result("after the unlock", c, keptBack)
			s.state()
			s.leased()
		})
	}
	lone("lockAndGetToken with a lease", func(s *stage) {
		s.call(1, "lock_and_get_token", "lease", 60000)
		s.leased()
	})
	lone("a message that wakes a wait for a token and a lock()", func(s *stage) {
		s.call(2, "lock", "lease", 60000)
		l := s.begin(1, "lock", "lease", 60000)
		time.Sleep(keptBack / 4)
		c := s.begin(3, "try_lock_and_get_token", "wait", 9000, "lease", 60000)
		time.Sleep(keptBack / 4)
		s.call(2, "unlock")
		s.result("the token", c, keptBack/2)
		s.result("the lock", l, keptBack/4)
		s.state()
		s.call(3, "unlock")
		s.result("the lock", l, keptBack)
	})
	all = append(all, story{name: "a message that comes while a call for a token asks", set: settings{idle: 6}, tell: func(s *stage) {
		s.kind = fenced
		// The server knows the script from now on, and each attempt is one command.
		s.call(1, "lock_and_get_token")
		s.call(1, "unlock")
		s.call(2, "lock", "lease", 60000)
		me := s.p.owner(1)
		var sent atomic.Int32
		s.via.Rule(func(c Sent) Verdict {
			if evals(2)(c.Words) && slices.Contains(c.Words, me) && sent.Add(1) == 2 {
				return Verdict{Delay: keptBack}
			}
			return Verdict{}
		})
		c := s.begin(1, "lock_and_get_token")
		eventually(s.t, "the second attempt", func(context.Context) bool { return sent.Load() >= 2 })
		time.Sleep(keptBack / 8) // until the server has refused it
		// Not by an unlock, whose answer may have to wait behind the one kept back.
		s.rdb.Del(context.Background(), s.lock)
		s.rdb.Publish(context.Background(), redisson.ChannelName(s.lock), 0)
		if !s.result("before the answer", c, keptBack/3) {
			s.result("after the answer", c, keptBack)
		}
	}})
	for i := range all {
		all[i].set.watchdog = 3 * keptBack
	}
	return all
}()

// TestTokens compares the calls that return a token.
func TestTokens(t *testing.T) {
	tellStoriesOf(t, tokenStories, func(rel *redisson.Release) bool { return rel.Fenced != nil })
}

// TestWatchdog compares when renewals come, and what ends them. It leaves out 3.4.2, whose watchdog
// timeout is always 30 s.
func TestWatchdog(t *testing.T) { tellStories(t, watchdogStories, "3.4.2") }

// TestInterrupts compares the effects of interrupts.
func TestInterrupts(t *testing.T) { tellStories(t, interruptStories, "") }

var storyFlag = flag.String("story", "", "play only the stories, losses and lines whose name has this in it")

// chosen reports whether a story is played.
func chosen(name string) bool { return strings.Contains(name, *storyFlag) }

// tellStories plays the stories on every release but one, and compares the notes of the two sides.
func tellStories(t *testing.T, stories []story, but string) {
	tellStoriesOf(t, stories, func(rel *redisson.Release) bool { return rel.Version != but })
}

func tellStoriesOf(t *testing.T, stories []story, of func(*redisson.Release) bool) {
	t.Parallel()
	stories = slices.DeleteFunc(slices.Clone(stories), func(x story) bool { return !chosen(x.name) })
	for _, rel := range redisson.Releases {
		if !of(rel) {
			continue
		}
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			lib := StartLibrary(t, rel.Version)
			servers := []*Server{StartServer(t), StartServer(t)}
			for i, side := range servers {
				p := StartProxy(t, side.Addr)
				if i == 0 {
					warm(t, newLibraryPlayer(t, lib, p, settings{}, 3), i)
				} else {
					warm(t, newPortPlayer(t, rel, p, settings{}), i)
				}
			}
			var mu sync.Mutex
			agreed, known := 0, 0
			var telling sync.WaitGroup
			enough := make(chan bool, 12)
			for i, x := range stories {
				telling.Go(func() {
					enough <- true
					defer func() { <-enough }()
					var want, got string
					if !realtime.Case(t, x.name, func(try int) string {
						var both sync.WaitGroup
						both.Go(func() { want = tell(t, rel, lib, servers[0], x, fmt.Sprintf("story%d-%d", i, try)) })
						both.Go(func() { got = tell(t, rel, nil, servers[1], x, fmt.Sprintf("story%d-%d", i, try)) })
						both.Wait()
						if want == got || x.differsAsKnown(want, got) {
							return ""
						}
						return bothSides(want, got)
					}) {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if want != got {
						known++
						t.Logf("%s, known: the library leaves the channel open, or waits for the acknowledgement first:\n%s", x.name, bothSides(want, got))
						return
					}
					agreed++
					t.Logf("%s:\n  both:    %s", x.name, got)
				})
			}
			telling.Wait()
			t.Logf("redisson %s: %d stories of %d agree, %d are known to differ", rel.Version, agreed, len(stories), known)
		})
	}
}

// bothSides writes the notes of the two sides one below the other.
func bothSides(library, port string) string {
	return fmt.Sprintf("  library: %s\n  port:    %s", library, port)
}

// tell plays a story on one side, and returns its notes. lib is nil for the port.
func tell(t *testing.T, rel *redisson.Release, lib *Library, server *Server, x story, lock string) string {
	via := StartProxy(t, server.Addr)
	set := x.set
	switch {
	case rel.Watchdog == redisson.WatchdogTimer:
		set.watchdog = 0
	case set.watchdog == 0:
		set.watchdog = storyWatchdog
	}
	s := &stage{t: t, rel: rel, via: via, lock: lock, watchdog: set.watchdog, rdb: redis.NewClient(&redis.Options{Addr: server.Addr})}
	defer func() { _ = s.rdb.Close() }()
	if lib != nil {
		s.p = newLibraryPlayer(t, lib, via, set, 3)
	} else {
		s.p = newPortPlayer(t, rel, via, set)
	}
	x.tell(s)
	return strings.Join(s.text, "; ")
}
