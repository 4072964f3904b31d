package play

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Played is one run of a scenario: what happened, not yet judged.
type Played struct {
	sim.Result
	Trace     *trace.Run // the record, indexed; nil before the run is judged
	Decisions sim.Decisions
	// Strategy names the strategy that made the decisions; "" is random.
	Strategy string
	// Orders is the mode of the world, nil for one with latencies.
	Orders *sim.Orders
}

// Play runs a scenario on a lock with the decisions of a chooser.
func Play(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, chooser sim.Chooser) Played {
	return PlayIn(h, sc, l, chooser, nil)
}

// PlayIn is Play in a world of the given mode. It panics with the name of the subject if the
// subject does not pass Check, if the scenario does not apply to it (see Applies), or if
// it cannot be opened.
func PlayIn(h *sim.Host, sc *scenarios.Scenario, l *subject.Subject, chooser sim.Chooser, orders *sim.Orders) Played {
	if err := l.Check(); err != nil {
		panic("play: " + err.Error())
	}
	if err := Applies(sc, l); err != nil {
		panic("play: " + err.Error())
	}
	drawn := sim.NewRecorder(chooser)
	locks := lockNames(sc)
	params := paramsOf(sc, l, locks)
	cfg := sim.Config{
		Chooser: drawn, Orders: orders, LatencyMin: sc.Latency.Min, LatencyMax: sc.Latency.Max,
		Resources: map[string]int64{},
		Params:    params,
	}
	world := l.Servers.New(locks, subject.ServerOptions{Replicas: sc.Server.Replicas, LagMin: sc.Server.Lag.Min, LagMax: sc.Server.Lag.Max})
	cfg.Nodes, cfg.Lineage, cfg.State, cfg.Locks = world.Nodes, world.Lineage, world.State, world.Locks
	cfg.Name = l.Servers.Commands(locks)
	cfg.Params.Parts = max(cfg.Params.Parts, len(world.Nodes))
	var addrs []string
	for _, n := range cfg.Nodes {
		addrs = append(addrs, n.Addr)
	}
	for _, p := range sc.Processes {
		cfg.Processes = append(cfg.Processes, sim.ProcessConfig{Name: p.Name, Threads: p.Threads, Offset: p.WallOffset, DriftPPM: p.WallDriftPPM})
	}
	for _, r := range sc.Resources {
		cfg.Resources[r.Name] = r.Start
	}
	for _, f := range sc.Faults {
		for _, number := range f.Servers {
			f.Nodes = append(f.Nodes, addrs[number-1])
		}
		cfg.Faults = append(cfg.Faults, f.FaultSpec)
	}
	longest := max(params.Watchdog, longestLease(sc)) + putBack(sc)
	// The world settles for at least as long as a client takes to give a command up.
	cfg.Settle = max(longest, params.GiveUp+5*time.Second) + time.Second
	cfg.Quiet = cfg.Settle
	if l.Fair {
		cfg.Quiet += 2 * max(params.FairWait, longestWait(sc))
	}
	cfg.Drain = cfg.Settle
	if params.Memory > 0 {
		cfg.Drain = max(cfg.Drain, params.Memory+time.Second)
	}

	res := sim.Run(h, cfg, func(w *sim.World) {
		for i, p := range sc.Processes {
			ps := &player{sc: sc, lock: l, w: w, published: world.Published, process: w.Process(p.Name), perCall: p.PerCall, objects: map[string]lockimpl.Lock{}, holds: map[holdKey]*hold{}}
			client, err := open(l, ps.process, subject.Options{Addrs: addrs, Watchdog: sc.Watchdog, ClientOptions: sc.Processes[i].ClientOptions})
			if err != nil {
				panic(fmt.Sprintf("play: %s cannot be opened in process %s: %v", l.Name, p.Name, err))
			}
			ps.client = client
			for _, t := range ps.process.Threads() {
				steps := stepsOf(sc, p.Name, t.Number())
				t.Start(func() { ps.run(t, steps) })
			}
		}
	})
	res.Record.Params.Processes = skews(sc, res.SimNs)
	return Played{Result: res, Decisions: drawn.Drawn, Orders: orders}
}

// open calls the lock's Open. It returns an error if Open returns no client.
func open(l *subject.Subject, p *sim.Process, o subject.Options) (lockimpl.Client, error) {
	client, err := l.Open(p, o)
	if err == nil && client == nil {
		err = errors.New("neither a client nor an error came from Open")
	}
	return client, err
}

// paramsOf returns the parameters that the judges need for a run on those locks.
func paramsOf(sc *scenarios.Scenario, l *subject.Subject, locks []string) model.Params {
	p := model.Params{Lock: l.Name, Traits: l.Traits, Timing: l.Timing(sc.Watchdog), Promises: l.Promises}
	if l.Kept != nil {
		for _, name := range locks {
			p.Kept = append(p.Kept, l.Kept(name)...)
		}
	}
	var own []time.Duration
	for _, pr := range sc.Processes {
		if w := pr.ClientOptions.FairWait; w != nil {
			own = append(own, *w)
		}
	}
	if l.Fair && len(own) == len(sc.Processes) {
		p.FairWait = slices.Max(own)
	}
	return p
}

func stepsOf(sc *scenarios.Scenario, process string, thread int) []scenarios.Step {
	for _, s := range sc.Threads {
		if s.Process == process && s.Thread == thread {
			return s.Steps
		}
	}
	return nil
}

// lockNames returns the names of the locks that the steps use, sorted.
func lockNames(sc *scenarios.Scenario) []string {
	names := map[string]bool{}
	for _, s := range sc.All() {
		switch s.Kind {
		case scenarios.StepLock, scenarios.StepTryLock, scenarios.StepWithLock, scenarios.StepUnlock, scenarios.StepForceUnlock, scenarios.StepExtend, scenarios.StepRead, scenarios.StepPublished:
			names[s.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func longestLease(sc *scenarios.Scenario) (longest time.Duration) {
	for _, s := range sc.All() {
		if s.Lease != nil {
			longest = max(longest, *s.Lease)
		}
	}
	return longest
}

// putBack returns how far the faults put the clocks of servers back in all. A lease may
// end later by as much. It leaves out a step that is longer than anybody waits.
func putBack(sc *scenarios.Scenario) (all time.Duration) {
	for _, f := range sc.Faults {
		if f.StepsServerClock() && f.Step < 0 {
			all = min(all-f.Step, 10*time.Minute)
		}
	}
	return all
}

func longestWait(sc *scenarios.Scenario) (longest time.Duration) {
	for _, s := range sc.All() {
		if s.Wait != nil {
			longest = max(longest, *s.Wait)
		}
	}
	return longest
}

// skews returns the processes, each with the largest distance of its clock from the
// server's.
func skews(sc *scenarios.Scenario, simNs int64) []model.ProcessParams {
	var out []model.ProcessParams
	for _, p := range sc.Processes {
		at, worst := p.WallOffset, p.WallOffset.Abs()
		for _, f := range sc.Faults {
			if f.Kind == model.FaultWallClock && f.Processes[0] == p.Name {
				at += f.Step
				worst = max(worst, at.Abs())
			}
		}
		drift := time.Duration(float64(simNs) * float64(p.WallDriftPPM) / 1e6)
		out = append(out, model.ProcessParams{Name: p.Name, Threads: p.Threads, Skew: worst + drift.Abs()})
	}
	return out
}

// player turns the steps of one process's threads into calls.
type player struct {
	sc   *scenarios.Scenario
	lock *subject.Subject
	w    *sim.World
	// published is subject.World.Published.
	published func(channel string) int64
	process   *sim.Process
	client    lockimpl.Client
	perCall   bool

	mu      sync.Mutex
	objects map[string]lockimpl.Lock
	holds   map[holdKey]*hold // of a lock that is Watched
}

// object returns the lock object that a call uses.
func (p *player) object(name string) lockimpl.Lock {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.objects[name]; l != nil && !p.perCall {
		return l
	}
	l, err := p.client.GetLock(name)
	if err != nil {
		panic(fmt.Sprintf("play: %s refuses the lock name %q: %v", p.lock.Name, name, err))
	}
	if l == nil {
		panic(fmt.Sprintf("play: GetLock(%q) of %s returned neither a lock nor an error", name, p.lock.Name))
	}
	p.objects[name] = l
	return l
}

func (p *player) run(t *sim.Thread, steps []scenarios.Step) {
	for _, s := range steps {
		p.step(t, s)
	}
}

func (p *player) step(t *sim.Thread, s scenarios.Step) {
	switch s.Kind {
	case scenarios.StepAt:
		t.At(s.D)
	case scenarios.StepSleep:
		t.Sleep(s.D)
	case scenarios.StepLock, scenarios.StepTryLock:
		p.acquire(t, s)
	case scenarios.StepWithLock:
		granted := p.acquire(t, s) == model.Granted
		if granted {
			p.run(t, s.Steps)
		}
		if granted || s.UnlockAlways {
			p.unlock(t, scenarios.Step{Kind: scenarios.StepUnlock, Pos: s.Pos, Name: s.Name})
		}
	case scenarios.StepUnlock:
		p.unlock(t, s)
	case scenarios.StepForceUnlock:
		_, outcome := p.call(t, s, model.ActForceUnlock, 0, 0, func(ctx context.Context, l lockimpl.Lock) (model.Outcome, error) {
			freed, err := l.ForceUnlock(ctx)
			if freed {
				return model.Released, err
			}
			return ended(model.NotHeld, err)
		})
		p.want(t, s, outcome)
	case scenarios.StepExtend:
		_, outcome := p.call(t, s, model.ActExtend, 0, 0, func(ctx context.Context, l lockimpl.Lock) (model.Outcome, error) {
			return ended(model.Extended, l.(lockimpl.Extender).Extend(ctx, lockimpl.Owner(t.Number())))
		})
		p.want(t, s, outcome)
	case scenarios.StepRead:
		t.Do(func() { p.read(t, s) })
	case scenarios.StepPublished:
		t.Do(func() {
			var got int64
			if p.lock.Channel != nil && p.published != nil {
				got = p.published(p.lock.Channel(s.Name, s.Target))
			}
			p.checkAbout(t, s, "published", s.Target, strconv.FormatInt(s.Count, 10), strconv.FormatInt(got, 10), got == s.Count)
		})
	case scenarios.StepUse:
		p.use(t, s)
	case scenarios.StepInterrupt:
		t.Interrupt(p.thread(s.Target))
	case scenarios.StepRepeat:
		for i := 0; s.Until != nil || i < s.Times; i++ {
			if s.Until != nil && p.w.Now() >= *s.Until {
				break
			}
			p.run(t, s.Steps)
		}
	case scenarios.StepClose:
		t.Close()
	default:
		panic("play: a step of unknown kind " + string(s.Kind))
	}
}

func (p *player) thread(name string) *sim.Thread {
	process, n := splitThread(name)
	return p.w.Process(process).Threads()[n-1]
}

func splitThread(name string) (process string, n int) {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			n, _ = strconv.Atoi(name[i+1:])
			return name[:i], n
		}
	}
	return name, 0
}

func value(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

func (p *player) acquire(t *sim.Thread, s scenarios.Step) model.Outcome {
	lease, wait := value(s.Lease), value(s.Wait)
	var op int
	var outcome model.Outcome
	switch {
	case s.Kind == scenarios.StepTryLock && s.Lease == nil && s.Wait == nil:
		op, outcome = p.call(t, s, model.ActTryLock, 0, 0, func(ctx context.Context, l lockimpl.Lock) (model.Outcome, error) {
			ok, err := l.TryLock(ctx, lockimpl.Owner(t.Number()))
			return tried(ok, err)
		})
	case s.Kind == scenarios.StepTryLock || s.Wait != nil:
		unit := time.Millisecond
		if s.UnitSeconds {
			unit = time.Second
		}
		op, outcome = p.call(t, s, model.ActTryLockTimed, lease, wait, func(ctx context.Context, l lockimpl.Lock) (model.Outcome, error) {
			ok, err := l.TryLockTimed(ctx, lockimpl.Owner(t.Number()), lockimpl.TryOptions{Wait: wait, Lease: lease, Unit: unit})
			return tried(ok, err)
		})
	default:
		interruptible := p.lock.Interruptible
		if s.Interruptible != nil {
			interruptible = *s.Interruptible
		}
		op, outcome = p.call(t, s, model.ActLock, lease, -1, func(ctx context.Context, l lockimpl.Lock) (model.Outcome, error) {
			err := l.Lock(ctx, lockimpl.Owner(t.Number()), lockimpl.LockOptions{Lease: lease, Interruptible: interruptible})
			return ended(model.Granted, err)
		})
	}
	if outcome == model.Granted {
		p.watch(t, s.Name)
	}
	p.want(t, s, outcome)
	p.reply(t, s, op, model.RoleAcquire, false)
	return outcome
}

// holdKey names the hold of a thread on a lock.
type holdKey struct {
	thread int
	lock   string
}

// hold is the hold of a thread according to its calls.
type hold struct {
	levels int
	stop   func() // ends the watch of the hold
}

// watch makes the world record the instant at which the thread learns that the hold
// that it was just granted is gone.
func (p *player) watch(t *sim.Thread, lock string) {
	watched, ok := p.object(lock).(lockimpl.Watched)
	if !ok || !p.lock.Watched {
		return
	}
	key := holdKey{t.Number(), lock}
	p.mu.Lock()
	h := p.holds[key]
	if h == nil {
		h = &hold{}
		p.holds[key] = h
	}
	p.mu.Unlock()
	if h.stop != nil {
		h.stop()
	}
	if h.levels++; p.lock.Uncounted || p.lock.NonReentrant {
		h.levels = 1
	}
	h.stop = t.Watch(lock, watched.Lost(lockimpl.Owner(t.Number())))
}

// leave ends the watch of a hold whose last level the thread gives up.
func (p *player) leave(t *sim.Thread, lock string) {
	key := holdKey{t.Number(), lock}
	p.mu.Lock()
	h := p.holds[key]
	if h != nil && h.levels <= 1 {
		delete(p.holds, key)
	}
	p.mu.Unlock()
	if h == nil {
		return
	}
	if h.levels--; h.levels <= 0 {
		h.stop()
	}
}

func (p *player) unlock(t *sim.Thread, s scenarios.Step) {
	p.leave(t, s.Name)
	op, outcome := p.call(t, s, model.ActUnlock, 0, 0, func(ctx context.Context, l lockimpl.Lock) (model.Outcome, error) {
		r, err := l.Unlock(ctx, lockimpl.Owner(t.Number()))
		if r == lockimpl.StillHeld {
			return model.StillHeld, err
		}
		return ended(model.Released, err)
	})
	p.want(t, s, outcome)
	p.reply(t, s, op, model.RoleUnlock, true)
}

func (p *player) call(t *sim.Thread, s scenarios.Step, act model.Action, lease, wait time.Duration, f func(context.Context, lockimpl.Lock) (model.Outcome, error)) (int, model.Outcome) {
	what := sim.Operation{Action: act, Lock: s.Name, LeaseNs: int64(lease), WaitNs: int64(wait)}
	l := p.object(s.Name)
	return t.Call(what, func(ctx context.Context) (model.Outcome, error) {
		outcome, err := f(ctx, l)
		if fenced, ok := l.(lockimpl.Fenced); ok && p.lock.Fenced && act.Acquires() && outcome == model.Granted {
			if token, ok := fenced.Token(lockimpl.Owner(t.Number())); ok {
				t.SetToken(token)
			}
		}
		return outcome, err
	})
}

func tried(ok bool, err error) (model.Outcome, error) {
	if ok {
		return model.Granted, err
	}
	return ended(model.Busy, err)
}

// ended returns the outcome of a call that returned err. A nil err gives success.
func ended(success model.Outcome, err error) (model.Outcome, error) {
	switch {
	case err == nil:
		return success, nil
	case errors.Is(err, lockimpl.ErrUnknownOutcome):
		return model.Unknown, err
	case errors.Is(err, lockimpl.ErrNotHeld):
		return model.NotHeld, err
	default:
		return model.Failed, err
	}
}

func (p *player) want(t *sim.Thread, s scenarios.Step, got model.Outcome) {
	if len(s.Want) > 0 {
		t.Do(func() {
			p.check(t, s, string(s.Kind), fmt.Sprint(s.Want), string(got), slices.Contains(s.Want, string(got)))
		})
	}
}

func (p *player) reply(t *sim.Thread, s scenarios.Step, op int, role model.Role, last bool) {
	if s.Reply == "" || !p.lock.Replies {
		return
	}
	t.Do(func() {
		got, ok := p.w.OpReply(op, role, last)
		if !ok {
			got = "none"
		}
		p.check(t, s, string(s.Kind)+" reply", s.Reply, got, got == s.Reply)
	})
}

// check records whether a step met the expectation in the file.
func (p *player) check(t *sim.Thread, s scenarios.Step, what, want, got string, met bool) {
	p.checkAbout(t, s, what, "", want, got, met)
}

// checkAbout is check for an expectation about one thread.
func (p *player) checkAbout(t *sim.Thread, s scenarios.Step, what, thread, want, got string, met bool) {
	c := model.Check{What: what, Thread: thread, Of: s.Name, Want: want, Got: got}
	t.Record(model.Event{Kind: model.KindCheck, Lock: s.Name, Met: met, Check: &c, Text: fmt.Sprintf("%s:%d: %s", s.Pos.File, s.Pos.Line, c)})
}

func (p *player) use(t *sim.Thread, s scenarios.Step) {
	var resource scenarios.Resource
	for _, r := range p.sc.Resources {
		if r.Name == s.Name {
			resource = r
		}
	}
	var sold, refused bool
	if resource.Fence == "" {
		sold = t.Use(s.Name, s.Take, s.For, resource.NeverBelow)
	} else {
		token, err := p.lock.Token(p.object(resource.Fence), lockimpl.Owner(t.Number()))
		if err != nil {
			token = 0 // it holds nothing, and has no token to show
		}
		sold, refused = t.UseFenced(s.Name, token, s.Take, s.For, resource.NeverBelow)
	}
	if len(s.Want) > 0 {
		got := "sold_out"
		switch {
		case sold:
			got = "sold"
		case refused:
			got = "refused"
		}
		t.Do(func() { p.check(t, s, "use", fmt.Sprint(s.Want), got, slices.Contains(s.Want, got)) })
	}
}

func (p *player) read(t *sim.Thread, s scenarios.Step) {
	state := p.w.State(s.Name)
	if state == nil {
		state = &model.LockState{}
	}
	r := s.Read
	if r.Holds != nil {
		var got int64
		if state.Owner == t.Name() {
			got = int64(state.Count)
		}
		p.check(t, s, "holds", fmt.Sprint(*r.Holds), fmt.Sprint(got), got == *r.Holds)
	}
	if r.Locked != nil {
		p.check(t, s, "locked", fmt.Sprint(*r.Locked), fmt.Sprint(state.Held()), *r.Locked == state.Held())
	}
	if r.TTL != nil {
		got, met := p.ttl(state, *r.TTL)
		p.check(t, s, "ttl", r.TTL.String(), got, met)
	}
	if r.Queue != nil {
		p.check(t, s, "queue", fmt.Sprint(*r.Queue), fmt.Sprint(state.Queue), slices.Equal(*r.Queue, state.Queue))
	}
	for _, who := range slices.Sorted(maps.Keys(r.Deadlines)) {
		want := r.Deadlines[who]
		ms, ok := state.Deadlines[who]
		got := time.Duration(ms) * time.Millisecond
		shown := got.String()
		if !ok {
			shown = "none"
		}
		p.checkAbout(t, s, "deadline", who, want.String(), shown, ok && want.Min <= got && got <= want.Max)
	}
}

func (p *player) ttl(state *model.LockState, want scenarios.TTL) (got string, met bool) {
	switch {
	case !state.Held():
		return "free", want.Free
	case state.ExpiresMs < 0:
		return "endless", want.Endless
	}
	left := time.Duration(state.ExpiresMs-p.w.Now().Milliseconds()) * time.Millisecond
	return left.String(), !want.Free && !want.Endless && want.Range.Min <= left && left <= want.Range.Max
}
