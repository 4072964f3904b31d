package scenarios

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/model"
	"lockstep/sim"
)

// What the figures were, and what bounds them: docs/performance.md.

// inTest runs f in a test, because only a test can have a bubble. Time in a
// bubble is not real: the benchmark's timer is touched outside of it.
func inTest(b *testing.B, f func(t *testing.T)) {
	b.Helper()
	b.ReportAllocs()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	before := cpu()
	defer func() { b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op") }()
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{{Name: b.Name(), F: f}}) {
		b.Fail()
	}
}

// cpu is the processor time of this process in nanoseconds: on a machine that
// others use too it says more than the clock.
func cpu() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

func mustLoad(b *testing.B, text string) *Scenario {
	b.Helper()
	sc, err := Parse("bench.yaml", []byte(text), Canonical)
	if err != nil {
		b.Fatal(err)
	}
	return sc
}

// mustLock is a lock of the registry.
func mustLock(b *testing.B, name string) *Lock {
	b.Helper()
	l, err := FindLock(name)
	if err != nil {
		b.Fatal(err)
	}
	return l
}

// BenchmarkFloor is a GET through go-redis, a pipe in memory and miniredis: what
// nothing that uses these can be faster than.
func BenchmarkFloor(b *testing.B) {
	inTest(b, func(t *testing.T) {
		runtime.GC() // as a Host does
		runtime.GC()
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		synctest.Test(t, func(t *testing.T) {
			m := miniredis.NewMiniRedis()
			pipe, err := m.Dial()
			if err != nil {
				t.Fatal(err)
			}
			c := redis.NewClient(&redis.Options{
				Addr: "192.0.2.1:6379", Dialer: func(context.Context, string, string) (net.Conn, error) { return pipe, nil },
				Protocol: 2, MaxRetries: -1, DisableIdentity: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			_ = m.Set("k", "v")
			ctx := context.Background()
			for range b.N {
				if c.Get(ctx, "k").Val() != "v" {
					t.Fatal("no v")
				}
			}
			_ = c.Close()
			m.Close()
		})
	})
}

// BenchmarkStep is one lock or unlock through the whole world: from the call of a
// thread to its return, recorded and not judged. Some are more than one command.
func BenchmarkStep(b *testing.B) {
	l := mustLock(b, "redisson@4.7.0")
	inTest(b, func(t *testing.T) {
		sc := mustLoad(b, fmt.Sprintf(`
lockstep: 1
name: steps
about: One thread locks and unlocks.
locks: [redisson@4.7.0]
processes:
  a: {threads: 1}
steps:
  a/1:
    - repeat: {times: %d, steps: [{lock: x}, {unlock: x}]}
`, b.N/2+1))
		p := Play(sim.NewHost(t), sc, l, sim.NewSeeded(1))
		commands := 0
		for _, e := range p.Record.Events {
			if e.Kind == model.KindExec {
				commands++
			}
		}
		if commands < b.N {
			t.Errorf("only %d commands", commands)
		}
		b.ReportMetric(float64(commands)/float64(b.N), "commands/op")
	})
}

// schedule is three processes with three critical sections each, and a network
// that fails each of them in another way.
const schedule = `
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
`

func BenchmarkSchedule(b *testing.B) {
	sc := mustLoad(b, strings.ReplaceAll(schedule, "SECTION", "{with_lock: {name: x, steps: [{use: {resource: stock, take: 1, for: 10ms}}]}}"))
	for _, lock := range sc.Locks {
		l := mustLock(b, lock)
		for _, scripts := range []string{"pooled", "miniredis"} {
			b.Run(lock+"/"+scripts, func(b *testing.B) {
				inTest(b, func(t *testing.T) {
					h := sim.NewHost(t)
					h.MiniredisScripts = scripts == "miniredis"
					steps := 0
					for i := range b.N {
						steps += Run(h, sc, l, uint64(i%50+1)).Played.Steps
					}
					b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
				})
			})
		}
	}
}

// BenchmarkIdleHour is an hour in which one thread holds a lock and the watchdog
// renews it.
func BenchmarkIdleHour(b *testing.B) {
	sc := mustLoad(b, `
lockstep: 1
name: idle-hour
about: A lock is held for an hour.
locks: [redisson@4.7.0]
processes:
  a: {threads: 1}
steps:
  a/1: [{lock: x}, {sleep: 1h}, {unlock: x}]
`)
	l := mustLock(b, "redisson@4.7.0")
	inTest(b, func(t *testing.T) {
		h := sim.NewHost(t)
		for range b.N {
			Play(h, sc, l, sim.NewSeeded(1))
		}
	})
}
