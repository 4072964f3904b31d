package play

import (
	"context"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios/scenariotest"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// lateBy is the time by which a lateLock tells too late that a hold is gone.
const lateBy = 2 * time.Second

// reference is a lock to embed. Its name differs from Lock, which is a method.
type reference interface{ lockimpl.Lock }

// A lateLock is the reference lock with two mistakes: it tells late, and it measures the wait of a try by the
// time that the server leaves to the hold of another.
type lateLock struct{ reference }

func (l lateLock) Lost(o lockimpl.Owner) <-chan struct{} {
	told, late := l.reference.(lockimpl.Watched).Lost(o), make(chan struct{})
	go func() {
		<-told
		time.Sleep(lateBy)
		close(late)
	}()
	return late
}

func (l lateLock) TryLockTimed(ctx context.Context, o lockimpl.Owner, opt lockimpl.TryOptions) (bool, error) {
	begun, err := l.RemainTimeToLive(ctx)
	for left := begun; err == nil && begun-left < opt.Wait; left, err = l.RemainTimeToLive(ctx) {
		if ok, err := l.TryLock(ctx, o); ok || err != nil {
			return ok, err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false, err
}

type lateClient struct{ lockimpl.Client }

func (c lateClient) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.Client.GetLock(name)
	return lateLock{l}, err
}

// late returns the lock of a name with the mistakes of a lateLock, and with other changes.
func late(t *testing.T, name string, changes ...func(*subject.Subject)) *subject.Subject {
	t.Helper()
	l := *scenariotest.Lock(t, name)
	open := l.Open
	l.Name, l.Control, l.Token, l.Fenced = "late", false, nil, false
	l.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
		c, err := open(p, o)
		return lateClient{c}, err
	}
	for _, change := range changes {
		change(&l)
	}
	return &l
}

// A limit is a bug if the control of the same kind keeps the promise where the same circumstance meets it. Each
// case but the first is a neighbour: what makes the first one a bug is missing.
func TestALimitIsTriedOnTheControls(t *testing.T) {
	const holder = `
watchdog: 6s
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {sleep: 15s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}, {sleep: 1s}, {unlock: x}]
faults:
`
	cutOff := holder + "  - {at: 3s, partition: a, for: 10s}"
	const try = `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: x, lease: 30s}}, {sleep: 15s}, {unlock: x}]
  b/1: [{at: 2s}, {try_lock: {name: x, wait: 2s}}]
faults:
`
	severalServers := func(l *subject.Subject) { l.Replicated = true }
	// longLease makes the lease of the control so long that it outlasts the partition.
	longLease := func(l *subject.Subject) {
		l.Times = func(time.Duration) model.Timing { return model.Timing{Watchdog: 20 * time.Second} }
	}
	h := sim.NewHost(t)
	for _, c := range []struct {
		about, scenario string
		lock            *subject.Subject
		judge           string
		class           judges.Class
		want            judges.ControlWord
		control         string
	}{
		{"cut off", cutOff, late(t, "reference-watched"), model.JudgeMutualExclusion, judges.ClassBug, judges.ControlKept, "reference-watched"},
		{"paused, as the control is", holder + "  - {at: 3s, pause: a, for: 10s}", late(t, "reference-watched"), model.JudgeMutualExclusion, judges.ClassLimit, judges.ControlBroke, "reference-watched"},
		{"the hold removed, also that of the control", holder + "  - {at: 3s, key: x, do: delete}", late(t, "reference-watched"), model.JudgeMutualExclusion, judges.ClassLimit, judges.ControlBroke, "reference-watched"},
		{"a partition that costs the control no hold", cutOff, late(t, "reference-watched", longLease), model.JudgeMutualExclusion, judges.ClassLimit, judges.ControlUnmet, ""},
		{"nobody is told", cutOff, late(t, "reference"), model.JudgeMutualExclusion, judges.ClassLimit, judges.ControlBroke, "reference"},
		{"no control", cutOff, late(t, "reference-watched", severalServers), model.JudgeMutualExclusion, judges.ClassLimit, judges.ControlMissing, ""},
		{"the server's clock steps in the try", try + "  - {at: 3s, server: wall_clock, step: -1s}", late(t, "reference"), model.JudgeWaitBound, judges.ClassBug, judges.ControlKept, "reference"},
		{"it steps again when the try of the control is over", try + "  - {at: 3s, server: wall_clock, step: -2s}\n  - {at: 5s, server: wall_clock, step: -1s}", late(t, "reference"), model.JudgeWaitBound, judges.ClassLimit, judges.ControlUnmet, ""},
	} {
		t.Run(c.about, func(t *testing.T) {
			sc := scenariotest.Parse(t, "lockstep: 1\nname: x\nlocks: [reference]\nnetwork: {latency: 1ms..3ms}"+c.scenario)
			v := Run(h.For(t), sc, c.lock, 7)
			before := v.Findings
			v.ShowLimits(h.For(t))
			found := false
			for i, f := range v.Findings {
				if f.Judge != c.judge {
					continue
				}
				found = true
				if f.Class != c.class || before[i].Class != c.class || f.Control.Word != c.want || f.Control.Lock != c.control {
					t.Errorf("it is a %s with %+v, want a %s: %s by %q", f.Class, f.Control, c.class, c.want, c.control)
				}
				if c.control != "" && (f.Control.Seed == 0 || f.Control.Watchdog != sc.Watchdog) {
					t.Errorf("the run of the control cannot be found: %+v", f.Control)
				}
			}
			if !found {
				t.Fatalf("the judge %s found nothing: %v", c.judge, v.Findings)
			}
		})
	}
}

// A control plays with the lease of the lock, whatever the watchdog timeout of the world is.
func TestAControlHasTheLeaseOfTheLock(t *testing.T) {
	l := late(t, "reference-watched")
	l.Times = func(time.Duration) model.Timing { return model.Timing{Watchdog: 4 * time.Second} }
	sc := scenariotest.Parse(t, "lockstep: 1\nname: x\nlocks: [reference]\nwatchdog: 30s\nprocesses: {a: {}}\nsteps: {a/1: [{lock: x}]}")
	if got := newControls(nil, sc, l, Played{}).scenario(); got.Watchdog != 4*time.Second || sc.Watchdog != 30*time.Second {
		t.Errorf("the control has %v, the scenario %v", got.Watchdog, sc.Watchdog)
	}
}
