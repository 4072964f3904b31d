//go:build interop

package interop

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisson"
)

// wheelWait is a wait of the library. The test checks whether it ends at a tick of the client's
// wheel.
type wheelWait struct {
	name string
	long time.Duration // the requested length
	set  settings
	// measure returns how long the wait took; ok is false if the release has no such wait.
	measure func(p *libraryPlayer, via *Proxy, lock string) (took time.Duration, ok bool)
	// onWheel: the wait ends at a tick. With ticks of 100 ms its median lateness is half a tick or
	// more.
	onWheel bool
	exact   bool // it never waits for a tick
}

// scriptsOf returns the scripts among the commands.
func scriptsOf(sent []Sent) (scripts []Sent) {
	for _, s := range sent {
		if s.Is("EVAL") || s.Is("EVALSHA") {
			scripts = append(scripts, s)
		}
	}
	return scripts
}

func timeOf(p *libraryPlayer, op string, f Fields) time.Duration {
	began := time.Now()
	<-p.do(1, op, f)
	return time.Since(began)
}

func withhold(name string) func(Sent) Verdict {
	return func(s Sent) Verdict {
		if s.Is(name) {
			return Verdict{Hold: 20 * time.Second} // longer than any wait
		}
		return Verdict{}
	}
}

var wheelWaits = []wheelWait{
	{
		name: "the period of renewals", long: 500 * time.Millisecond, set: settings{watchdog: 1500 * time.Millisecond},
		onWheel: true,
		measure: func(p *libraryPlayer, via *Proxy, lock string) (time.Duration, bool) {
			<-p.do(1, "lock", Fields{"kind", plain, "lock", lock})
			from := len(via.Sent(0))
			time.Sleep(1500 * time.Millisecond)
			s := scriptsOf(via.Sent(from))
			if len(s) < 2 {
				return 0, false // in 3.4.2 the period is always 10 s
			}
			return s[1].At - s[0].At, true
		},
	},
	{
		name: "the response timeout", long: 1500 * time.Millisecond, set: settings{response: 1500 * time.Millisecond, attempts: -1},
		onWheel: true,
		measure: func(p *libraryPlayer, via *Proxy, lock string) (time.Duration, bool) {
			via.Rule(func(s Sent) Verdict { return Verdict{Drop: s.Is("EVAL") || s.Is("EVALSHA")} })
			return timeOf(p, "try_lock", Fields{"kind", plain, "lock", lock}), true
		},
	},
	{
		name: "lock() waits for its subscription", long: 7500 * time.Millisecond,
		measure: func(p *libraryPlayer, via *Proxy, lock string) (time.Duration, bool) {
			via.Rule(withhold("SUBSCRIBE"))
			return timeOf(p, "lock", Fields{"kind", plain, "lock", lock}), true
		},
	},
	{
		name: "tryLock(1200) waits for its subscription", long: 1200 * time.Millisecond,
		measure: func(p *libraryPlayer, via *Proxy, lock string) (time.Duration, bool) {
			via.Rule(withhold("SUBSCRIBE"))
			return timeOf(p, "try_lock", Fields{"kind", plain, "lock", lock, "wait", 1200}), true
		},
	},
	{
		name: "tryLock(1200) waits for a message", long: 1200 * time.Millisecond, exact: true,
		measure: func(p *libraryPlayer, via *Proxy, lock string) (time.Duration, bool) {
			return timeOf(p, "try_lock", Fields{"kind", plain, "lock", lock, "wait", 1200}), true
		},
	},
}

// Renewals and the response timeout end at a tick of the client's wheel, but a wait for a message
// does not.
func TestTimersOfTheLibrary(t *testing.T) {
	t.Parallel()
	const samples = 10
	for _, rel := range releases(t) {
		t.Run(rel.Version, func(t *testing.T) {
			server := StartServer(t)
			lib := StartLibrary(t, rel.Version)
			holder := newLibraryPlayer(t, lib, StartProxy(t, server.Addr), settings{watchdog: time.Hour}, 1)
			for _, w := range wheelWaits {
				realtime.Case(t, fmt.Sprintf("redisson %s, %s", rel.Version, w.name), func(try int) string {
					var mu sync.Mutex
					var late []time.Duration
					var all sync.WaitGroup
					for i := range samples {
						via := StartProxy(t, server.Addr)
						p := newLibraryPlayer(t, lib, via, w.set, 1)
						lock := fmt.Sprintf("%s %d.%d", w.name, i, try)
						if w.set.watchdog == 0 {
							<-holder.do(1, "lock", Fields{"kind", plain, "lock", lock, "lease", 60_000})
						}
						all.Go(func() {
							time.Sleep(time.Duration(i) * 37 * time.Millisecond)
							took, ok := w.measure(p, via, lock)
							mu.Lock()
							defer mu.Unlock()
							if ok {
								late = append(late, took-w.long)
							}
						})
					}
					all.Wait()
					slices.Sort(late)
					text := ""
					for _, d := range late {
						text += fmt.Sprint(" ", d.Milliseconds())
					}
					t.Logf("redisson %s: %s: late by%s ms", rel.Version, w.name, text)
					if len(late) == 0 {
						return ""
					}
					middle := late[len(late)/2]
					if w.onWheel && rel.RetryDelay.Min == 0 && middle < 50*time.Millisecond {
						return fmt.Sprintf("late by %v in the middle, as if it did not wait for a tick", middle)
					}
					if w.exact && middle > 40*time.Millisecond {
						return fmt.Sprintf("late by %v in the middle, as if it waited for a tick", middle)
					}
					return ""
				})
			}
		})
	}
}

// On the wheel of 100 ms, renewals with a period of 666 ms come every 700 ms. The next timer is set
// when the answer comes. If that is more than 34 ms after the tick, the timer fires a tick later.
// Each late answer does that, and the delays add up.
func TestALateAnswerToARenewalCostsATick(t *testing.T) {
	t.Parallel()
	const want = "in tenths of a second: 7 between renewals that are answered at once, 8 after late answers"
	for _, rel := range releases(t) {
		if rel.Watchdog == redisson.WatchdogTimer || rel.RetryDelay.Min != 0 {
			continue // the period is ten seconds, or each client has a tick of its own
		}
		t.Run(rel.Version, func(t *testing.T) {
			server := StartServer(t)
			lib := StartLibrary(t, rel.Version)
			set := settings{watchdog: 2 * time.Second, wheel: true}
			for side, begin := range map[string]func(via *Proxy) player{
				"library": func(via *Proxy) player { return newLibraryPlayer(t, lib, via, set, 1) },
				"port":    func(via *Proxy) player { return newPortPlayer(t, rel, via, set) },
			} {
				realtime.Case(t, fmt.Sprintf("redisson %s, %s", rel.Version, side), func(try int) string {
					via := StartProxy(t, server.Addr)
					if got := tenthsBetweenRenewals(t, begin(via), via, fmt.Sprint(side, try)); got != want {
						return fmt.Sprintf("%s\nwanted:\n%s", got, want)
					}
					return ""
				})
			}
		})
	}
}

// tenthsBetweenRenewals notes the times between renewals. Three answers come at once, and three
// come late.
func tenthsBetweenRenewals(t *testing.T, p player, via *Proxy, lock string) string {
	await(t, p.do(1, "lock", Fields{"kind", plain, "lock", lock}))
	from := len(via.Sent(0))
	time.Sleep(3200 * time.Millisecond)
	atOnce := scriptsOf(via.Sent(from))
	via.Rule(func(s Sent) Verdict {
		if evals(1)(s.Words) {
			return Verdict{Delay: 60 * time.Millisecond}
		}
		return Verdict{}
	})
	from = len(via.Sent(0))
	time.Sleep(3400 * time.Millisecond)
	late := scriptsOf(via.Sent(from))
	return fmt.Sprintf("in tenths of a second: %d between renewals that are answered at once, %d after late answers", middleTenths(atOnce), middleTenths(late))
}

// middleTenths returns the middle one of the times between commands, in tenths of a second.
func middleTenths(sent []Sent) int64 {
	var apart []time.Duration
	for i := 1; i < len(sent); i++ {
		apart = append(apart, sent[i].At-sent[i-1].At)
	}
	if len(apart) == 0 {
		return 0
	}
	slices.Sort(apart)
	return apart[len(apart)/2].Round(100*time.Millisecond).Milliseconds() / 100
}
