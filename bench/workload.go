package bench

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// plainLock and fairLock are the locks of measurements that take one lock.
const (
	plainLock = "redisson@4.7.0"
	fairLock  = "redisson-fair@4.7.0"
)

// mustParse reads a scenario of this package.
func mustParse(text string) *scenarios.Scenario {
	sc, err := scenarios.Parse("bench.yaml", []byte(text), subject.Find)
	if err != nil {
		panic("bench: a scenario of its own: " + err.Error())
	}
	return sc
}

// mustLock returns a registered lock.
func mustLock(name string) *subject.Subject {
	l, err := subject.Find(name)
	if err != nil {
		panic("bench: " + err.Error())
	}
	return l
}

// Floor plays n GETs through go-redis, a pipe in memory and miniredis, in a bubble.
// Nothing that uses these can be faster.
func Floor(h *sim.Host, n int) {
	h.Bubble(func() {
		m := miniredis.NewMiniRedis()
		pipe, err := m.Dial()
		if err != nil {
			panic("bench: miniredis did not start: " + err.Error())
		}
		c := redis.NewClient(&redis.Options{
			Addr: "192.0.2.1:6379", Dialer: func(context.Context, string, string) (net.Conn, error) { return pipe, nil },
			Protocol: 2, MaxRetries: -1, DisableIdentity: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		_ = m.Set("k", "v")
		ctx := context.Background()
		for range n {
			if c.Get(ctx, "k").Val() != "v" {
				panic("bench: miniredis lost a value")
			}
		}
		_ = c.Close()
		m.Close()
	})
}

// steps has one thread that locks and unlocks, n operations in all.
func steps(n int) *scenarios.Scenario {
	return mustParse(fmt.Sprintf(`
lockstep: 1
name: steps
about: One thread locks and unlocks.
locks: [redisson@4.7.0]
processes:
  a: {threads: 1}
steps:
  a/1:
    - repeat: {times: %d, steps: [{lock: x}, {unlock: x}]}
`, (n+1)/2))
}

// Step plays n locks and unlocks through the whole world. Each is recorded from the
// call of a thread to its return, and not judged. Step returns the number of commands
// that the server executed; an unlock has two.
func Step(h *sim.Host, n int) (commands int) {
	p := play.Play(h, steps(n), mustLock(plainLock), sim.NewSeeded(1))
	for _, e := range p.Record.Events {
		if e.Kind == model.KindExec {
			commands++
		}
	}
	return commands
}

// schedule has three processes with three critical sections each. The network
// fails each process in another way.
var schedule = mustParse(strings.ReplaceAll(`
lockstep: 1
name: schedule
about: Three processes, a bad network.
locks: [redisson@4.7.0, redisson-fair@4.7.0]
resources:
  stock: {start: 9}
processes:
  a: {threads: 1}
  b: {threads: 1}
  c: {threads: 1}
steps:
  a/1: [{repeat: {times: 3, steps: [SECTION]}}]
  b/1: [{repeat: {times: 3, steps: [SECTION]}}]
  c/1: [{repeat: {times: 3, steps: [SECTION]}}]
faults:
  - {when: {process: a, script: unlock, direction: reply, every: 2}, do: drop}
  - {when: {process: b, script: acquire, direction: request, nth: 2}, do: delay, for: 40ms}
  - {when: {process: c, direction: reply, nth: 9}, do: reset}
  - {at: 30ms, partition: [b], for: 100ms}
`, "SECTION", "{with_lock: {name: x, steps: [{use: {resource: stock, take: 1, for: 10ms}}]}}"))

// Schedule plays and judges n runs of schedule on a lock, each with its own seed.
// It returns the steps of all runs.
func Schedule(h *sim.Host, lock string, n int) (steps int) {
	l := mustLock(lock)
	for i := range n {
		steps += play.Run(h, schedule, l, uint64(i%50+1)).Played.Steps
	}
	return steps
}

var idleHour = mustParse(`
lockstep: 1
name: idle-hour
about: A lock is held for an hour.
locks: [redisson@4.7.0]
processes:
  a: {threads: 1}
steps:
  a/1: [{lock: x}, {sleep: 1h}, {unlock: x}]
`)

// IdleHour plays n hours in each of which one thread holds a lock and the watchdog
// renews it.
func IdleHour(h *sim.Host, n int) {
	for range n {
		play.Play(h, idleHour, mustLock(plainLock), sim.NewSeeded(1))
	}
}

// empty has the clients of schedule, without steps.
var empty = mustParse(`
lockstep: 1
name: empty
about: Three processes that do nothing.
locks: [redisson@4.7.0]
processes:
  a: {threads: 1}
  b: {threads: 1}
  c: {threads: 1}
steps:
  a/1: [{sleep: 1ms}]
`)
