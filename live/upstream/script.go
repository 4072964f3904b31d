package upstream

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/live/upstream/gostory"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
)

// ErrInexpressible says that a test in one process cannot play a scenario, or cannot check for what a
// judge found.
var ErrInexpressible = errors.New("a test in one process cannot express it")

func inexpressible(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInexpressible, fmt.Sprintf(format, args...))
}

// ms returns a length in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// msOf returns a length in milliseconds; nil: none.
func msOf(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	x := ms(*d)
	return &x
}

// scripted writes a scenario as a script for a test.
type scripted struct {
	r     *Report
	sc    *scenarios.Scenario
	t     *trace.Run
	f     judges.Finding
	apart bool // each thread has a client of its own, so that the requests of a client are the requests of one thread
}

// script returns the script of the test, as JSON.
func (r *Report) script() ([]byte, error) {
	s := scripted{r: r, sc: r.Simulated.Scenario, t: r.Simulated.Played.Trace, f: r.Finding}
	s.apart = r.Library != nil && s.f.Judge == model.JudgeTraffic
	x, err := s.script()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(x, "", "  ")
	return append(text, '\n'), err
}

func (s *scripted) script() (x gostory.Script, err error) {
	x = gostory.Script{Title: capital(s.r.Title), Tries: s.r.Tries, Fair: s.r.Fair, Servers: 1, LengthMs: ms(s.length()), Locks: play.LockNames(s.sc)}
	if s.sc.Server.Replicas > 0 {
		return x, inexpressible("the story has replicas")
	}
	little := 200 * time.Microsecond
	if s.r.Library != nil {
		// The steps of threads are much further apart.
		little = 5 * time.Millisecond
		x.Lock, x.Servers = s.r.Simulated.Lock.Name, s.r.Simulated.Lock.Servers.Count()
	} else {
		x.Watchdog = ms(s.sc.Watchdog)
	}
	if l := s.sc.Latency; l.Max > little {
		x.LatencyMs = [2]float64{ms(l.Min), ms(l.Max)}
	}
	x.Proxies = s.proxies(x.LatencyMs[1] > 0)
	check := s.javaCheck
	if s.r.Library != nil {
		check = s.goCheck
	}
	if x.Check, err = check(); err != nil {
		return x, err
	}
	for _, p := range s.sc.Processes {
		clients, err := s.clients(p)
		if err != nil {
			return x, err
		}
		x.Clients = append(x.Clients, clients...)
	}
	for _, t := range s.sc.Threads {
		steps, err := s.steps(t.Steps)
		if err != nil {
			return x, err
		}
		x.Threads = append(x.Threads, gostory.ThreadPart{Name: s.name(model.ThreadName(t.Process, t.Thread)), Steps: steps})
	}
	for _, f := range s.sc.Faults {
		faults, err := s.faults(f)
		if err != nil {
			return x, err
		}
		x.Faults = append(x.Faults, faults...)
	}
	return x, nil
}

// proxies returns the proxies that a Go test needs. They read the protocol only if the story has a rule about messages,
// or if each thread has a client of its own.
func (s *scripted) proxies(latency bool) string {
	if s.r.Library == nil {
		return ""
	}
	named := gostory.PlainProxies
	if s.r.Library.Protocol {
		named = gostory.NamedProxies
	}
	kind := ""
	if latency {
		kind = gostory.PlainProxies
	}
	for _, f := range s.sc.Faults {
		switch f.Kind {
		case model.FaultPartition, model.FaultCrash:
			kind = cmp.Or(kind, gostory.PlainProxies)
		case model.FaultRule:
			return named
		}
	}
	if s.apart {
		return named
	}
	return kind
}

// name is the name of a thread in the test: b2/1 instead of b/2 if each thread has a client of its own.
func (s *scripted) name(thread string) string {
	if client, number, ok := strings.Cut(thread, "/"); ok && s.apart {
		return model.ThreadName(client+number, 1)
	}
	return thread
}

// clients returns the client of a process, or the clients of its threads.
func (s *scripted) clients(p scenarios.Process) (all []gostory.ClientPart, err error) {
	o := p.ClientOptions
	if s.r.Library != nil && (!reflect.ValueOf(o).IsZero() || p.WallOffset != 0 || p.WallDriftPPM != 0) {
		return nil, inexpressible("process %s has settings of its own", p.Name)
	}
	if !s.apart {
		return []gostory.ClientPart{{
			Name: p.Name, PerCall: p.PerCall, FairWaitMs: msOf(o.FairWait), TimeoutMs: msOf(o.ResponseTimeout), Retries: o.RetryAttempts, PoolSize: o.PoolSize,
		}}, nil
	}
	for _, t := range s.sc.Threads {
		if t.Process == p.Name {
			client, _, _ := strings.Cut(s.name(model.ThreadName(t.Process, t.Thread)), "/")
			all = append(all, gostory.ClientPart{Name: client})
		}
	}
	return all, nil
}

func (s *scripted) steps(steps []scenarios.Step) (all []gostory.Step, err error) {
	for _, x := range steps {
		these, err := s.step(x)
		if err != nil {
			return nil, err
		}
		all = append(all, these...)
	}
	return all, nil
}

// step returns the steps of the test for a step of the scenario.
func (s *scripted) step(x scenarios.Step) ([]gostory.Step, error) {
	one := func(step gostory.Step) ([]gostory.Step, error) { return []gostory.Step{step}, nil }
	library := s.r.Library != nil
	switch x.Kind {
	case scenarios.StepAt:
		return one(gostory.Step{Do: "at", Ms: ms(x.D)})
	case scenarios.StepSleep:
		return one(gostory.Step{Do: "sleep", Ms: ms(x.D)})
	case scenarios.StepUse:
		if x.For == 0 {
			return nil, nil
		}
		return one(gostory.Step{Do: "sleep", Ms: ms(x.For)})
	case scenarios.StepRead, scenarios.StepPublished: // they look, and do nothing
		return nil, nil
	case scenarios.StepUnlock:
		return one(gostory.Step{Do: "unlock", Lock: x.Name})
	case scenarios.StepInterrupt:
		return one(gostory.Step{Do: "interrupt", Thread: s.name(x.Target)})
	case scenarios.StepExtend:
		if !library {
			return nil, inexpressible("the library extends no hold by hand")
		}
		return one(gostory.Step{Do: "extend", Lock: x.Name})
	case scenarios.StepForceUnlock:
		if library {
			return nil, inexpressible("the library has no unlock by force")
		}
		return one(gostory.Step{Do: "force_unlock", Lock: x.Name})
	case scenarios.StepClose:
		if library {
			return nil, inexpressible("the story closes a client")
		}
		return one(gostory.Step{Do: "close"})
	case scenarios.StepRepeat:
		steps, err := s.steps(x.Steps)
		repeat := gostory.Step{Do: "repeat", Times: x.Times, Steps: steps}
		if x.Until != nil {
			repeat.Times, repeat.UntilMs = 0, msOf(x.Until)
		}
		return []gostory.Step{repeat}, err
	case scenarios.StepLock, scenarios.StepTryLock, scenarios.StepWithLock:
		return s.acquire(x)
	}
	return nil, inexpressible("line %d has the step %s", x.Pos.Line, x.Kind)
}

// acquire returns the steps of the test for a step that asks for a lock.
func (s *scripted) acquire(x scenarios.Step) ([]gostory.Step, error) {
	if s.r.Library != nil && x.Lease != nil {
		return nil, inexpressible("line %d asks for a lease", x.Pos.Line)
	}
	ask := gostory.Step{
		Do: "acquire", Lock: x.Name, Try: x.Kind == scenarios.StepTryLock, WaitMs: msOf(x.Wait), Seconds: x.UnitSeconds,
		Interruptible: x.Interruptible != nil && *x.Interruptible,
	}
	if x.Lease != nil {
		ask.LeaseMs = ms(*x.Lease)
	}
	if x.Kind != scenarios.StepWithLock {
		return []gostory.Step{ask}, nil
	}
	steps, err := s.steps(x.Steps)
	steps = append(steps, gostory.Step{Do: "unlock", Lock: x.Name})
	if x.UnlockAlways {
		return append([]gostory.Step{ask}, steps...), err
	}
	ask.Steps = steps
	return []gostory.Step{ask}, err
}

// faults returns the faults of the test for a fault of the scenario.
func (s *scripted) faults(f scenarios.Fault) (all []gostory.FaultPart, err error) {
	library := s.r.Library
	switch {
	case s.apart:
		return nil, inexpressible("it does not tell the requests of the threads of a client apart")
	case f.Kind == model.FaultCrash:
		for _, p := range f.Processes {
			all = append(all, gostory.FaultPart{Do: "crash", Client: p, AtMs: ms(f.At)})
		}
		return all, nil
	case f.Kind == model.FaultPartition:
		for _, p := range f.Processes {
			all = append(all, gostory.FaultPart{Do: "cut", Client: p, AtMs: ms(f.At), ForMs: ms(f.For), Servers: f.Servers})
		}
		return all, nil
	case f.Kind == model.FaultKey && f.KeyDo == "delete" && (library == nil || library.Delete):
		return []gostory.FaultPart{{Do: "delete", Key: f.Key, AtMs: ms(f.At)}}, nil
	case f.Kind == model.FaultServer && library != nil && f.Server == "restart":
		return []gostory.FaultPart{{Do: "restart", AtMs: ms(f.At), KeepData: f.KeepData, Servers: f.Servers}}, nil
	case f.Kind != model.FaultRule || !s.follows(f):
		return nil, inexpressible("line %d has the fault %s", f.Pos.Line, f.FaultSpec)
	}
	w := f.When
	return []gostory.FaultPart{{
		Rule: true, Do: f.Do, ForMs: ms(f.For), Text: f.With, Client: w.Process, Direction: w.Direction, Command: s.command(w.Command), Role: string(w.Script), Channel: w.Channel,
		Nth: w.Nth, Every: w.Every, FromMs: ms(f.From), UntilMs: msOf(f.Until),
	}}, nil
}

// command is the name of a command, which Go tests write in capitals.
func (s *scripted) command(name string) string {
	if s.r.Library != nil {
		return strings.ToUpper(name)
	}
	return name
}

// follows reports whether a test can follow a rule.
func (s *scripted) follows(f scenarios.Fault) bool {
	w, library := f.When, s.r.Library
	if !slices.Contains([]string{"drop", "reset", "delay", "error", "hold"}, f.Do) || w.After > 0 || f.Awaits != nil {
		return false
	}
	if library == nil {
		return true
	}
	return (f.Do != "hold" || f.Until != nil) && (f.Do != "error" || library.Refuse) && (w.Channel == "" || w.Channel == "*") && w.Every == 0 &&
		(w.Command == "" && w.Channel == "" || library.Protocol)
}

// length is how long the test plays the story: until the instant of the finding, and a little longer.
func (s *scripted) length() time.Duration {
	end := s.f.AtNs
	for _, o := range s.f.Ops {
		end = max(end, o.CallNs)
	}
	return (time.Duration(end) + 4*time.Second).Round(time.Second)
}

// waited returns how long a waiter may have to wait before the judge says that it was forgotten,
// and whether the lock is free on the server at that time.
func (s *scripted) waited() (bound time.Duration, free bool) {
	since := int64(0)
	for _, o := range s.f.Ops {
		since = max(since, o.CallNs)
	}
	for _, c := range s.t.Changes(s.f.Lock) {
		if c.AtNs < s.f.AtNs && c.Ended() {
			since = max(since, c.AtNs)
		}
	}
	return max(time.Second, time.Duration(s.f.AtNs-since).Round(time.Millisecond)), !s.t.StateAt(s.f.Lock, s.f.AtNs).Held()
}

// call returns the call of the run that the finding names first, its thread, and its number among the calls of this
// thread, counted from 1.
func (s *scripted) call() (who string, number int, c *trace.Call, err error) {
	if len(s.f.Ops) == 0 {
		return "", 0, nil, inexpressible("the finding names no call")
	}
	ref := s.f.Ops[0]
	who = model.ThreadName(ref.Process, ref.Thread)
	for _, t := range s.sc.Threads {
		if model.ThreadName(t.Process, t.Thread) == who && slices.ContainsFunc(t.Steps, func(x scenarios.Step) bool { return x.Kind == scenarios.StepRepeat }) {
			return "", 0, nil, inexpressible("the call is one of several in a loop")
		}
	}
	var mine []*trace.Call
	for _, c := range s.t.Calls {
		if c.Caller == who {
			mine = append(mine, c)
		}
	}
	slices.SortFunc(mine, func(a, b *trace.Call) int { return cmp.Compare(a.AtNs, b.AtNs) })
	i := slices.IndexFunc(mine, func(c *trace.Call) bool { return c.AtNs == ref.CallNs })
	if i < 0 {
		return "", 0, nil, inexpressible("the finding names no call of %s", who)
	}
	return who, i + 1, mine[i], nil
}

// noCheck says that no check sees the finding.
func (s *scripted) noCheck() error {
	return inexpressible("no assertion sees %s, form %q", s.f.Judge, s.f.Form)
}

// goCheck returns the check of a Go test.
func (s *scripted) goCheck() (gostory.Check, error) {
	f, library := s.f, s.r.Library
	c := gostory.Check{Lock: f.Lock, Thread: s.name(f.Thread)}
	switch {
	case f.Judge == model.JudgeMutualExclusion:
		c.That = gostory.OneOwner
	case f.Judge == model.JudgeLiveness && f.Form == model.FormForgotten:
		bound, _ := s.waited()
		c.That, c.Ms = gostory.WaiterServed, ms(bound-bound/10)
	case f.Judge == model.JudgeTraffic:
		c.That, c.Most = gostory.AsksSeldom, judges.TrafficMost
	case f.Judge == model.JudgeTidy && f.Form == model.FormGhost && library.Places:
		c.That = gostory.NoGhost
	case f.Judge == model.JudgeLease && f.Form == model.FormEndless && library.TimeToLive:
		c.That = gostory.HoldEnds
	case f.Judge == model.JudgeLinearizable || f.Judge == model.JudgeWant || f.Judge == model.JudgeWaitBound:
		return s.goAnswer()
	default:
		return c, s.noCheck()
	}
	return c, nil
}

// goAnswer returns the check that a call does not come to the same as in the run.
func (s *scripted) goAnswer() (gostory.Check, error) {
	who, n, call, err := s.call()
	if err != nil {
		return gostory.Check{}, err
	}
	c := gostory.Check{Lock: s.f.Lock, Thread: who, Call: n, That: gostory.CallIsNot}
	switch {
	case s.f.Judge == model.JudgeWaitBound:
		c.That, c.Ms = gostory.ReturnsWithin, ms(time.Duration(call.WaitNs)+4*s.sc.Latency.Max)
	case call.Outcome == model.Granted || call.Outcome == model.Released || call.Outcome == model.Extended:
		c.That = gostory.CallFails
	case call.Outcome == model.Busy:
		c.Outcome = gostory.ErrBusy.Error()
	case call.Outcome == model.NotHeld:
		c.Outcome = gostory.ErrNotHeld.Error()
	default:
		return c, inexpressible("the call came to %q", call.Outcome)
	}
	return c, nil
}

// javaCheck returns the check of a JUnit test, which has the name of an assertion of Story.java.
func (s *scripted) javaCheck() (gostory.Check, error) {
	f := s.f
	c := gostory.Check{Lock: f.Lock, Thread: f.Thread}
	switch {
	case f.Judge == model.JudgeMutualExclusion:
		c.That = "assertOneOwner"
	case f.Judge == model.JudgeFIFO:
		c.That = "assertOrder"
	case f.Judge == model.JudgeHoldCount:
		c.That = "assertCount"
	case f.Judge == model.JudgeTraffic:
		c.That = "assertAsksSeldom"
	case f.Judge == model.JudgeTidy && f.Form == model.FormGhost:
		c.That = "assertNoGhost"
	case f.Judge == model.JudgeLiveness && f.Form == model.FormForgotten:
		bound, free := s.waited()
		c.That, c.Ms = "assertNoHoldForNobody", ms(bound)
		if free {
			c.That = "assertFreeLockIsGiven"
		}
	case f.Judge == model.JudgeLease && (f.Form == model.FormUnrenewed || f.Form == model.FormUndone):
		c.That = "assertHoldStays"
	case f.Judge == model.JudgeLease && (f.Form == model.FormLongLease || f.Form == model.FormEndless):
		c.That, c.Ms = "assertLeaseIsNotLonger", ms(s.sc.Watchdog)
	case f.Judge == model.JudgeLease && f.Form == model.FormLateRenewal:
		c.That = "assertNoRenewalAfterUnlock"
	case f.Judge == model.JudgeLinearizable || f.Judge == model.JudgeWant:
		return s.javaAnswer()
	default:
		return c, s.noCheck()
	}
	return c, nil
}

// javaAnswer returns the check that a call does not come to the same as in the run.
func (s *scripted) javaAnswer() (gostory.Check, error) {
	who, n, call, err := s.call()
	if err != nil {
		return gostory.Check{}, err
	}
	outcome, ok := map[model.Outcome]string{
		model.Granted: "granted", model.Busy: "busy", model.Released: "released", model.StillHeld: "released", model.NotHeld: "not_held",
		model.Failed: "error", model.Unknown: "unknown",
	}[call.Outcome]
	if !ok {
		return gostory.Check{}, inexpressible("the call came to %q", call.Outcome)
	}
	if outcome == "not_held" && call.Action == model.ActForceUnlock {
		outcome = "free"
	}
	return gostory.Check{That: "assertCallIsNot", Lock: s.f.Lock, Thread: who, Call: n, Outcome: outcome}, nil
}
