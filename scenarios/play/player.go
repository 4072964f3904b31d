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
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Thread plays the steps of one thread: a sim.Thread of a world, or a thread of a process in real
// time. It has the methods of sim.Thread.
type Thread interface {
	Number() int
	Name() string
	At(d time.Duration)
	Sleep(d time.Duration)
	Do(f func())
	Record(e model.Event)
	Call(what sim.Operation, f func(context.Context) (model.Outcome, error)) (op int, outcome model.Outcome)
	SetToken(token uint64)
	Watch(lock string, lost <-chan struct{}) (stop func())
	// Interrupt cancels the call that the thread of that name is in.
	Interrupt(thread string)
	Close()
	Use(resource string, take int64, work time.Duration, keep *int64) (sold bool)
	UseFenced(resource string, token, take int64, work time.Duration, keep *int64) (sold, refused bool)
}

// Place is where the steps of a scenario are played: a sim.World, or real servers.
type Place interface {
	Now() time.Duration // since the start
	State(lock string) *model.LockState
	OpReply(op int, role model.Role, last bool) (reply string, ok bool)
	// Published returns how many messages were published on a channel so far.
	Published(channel string) int64
}

// A Late place is not sure of lengths of time: a step may run later than the file says, and what
// the server tells of the time to live then differs by up to Slack.
type Late interface{ Slack() time.Duration }

// Open opens the lock in a process, and returns the function that plays the steps of one of
// its threads. prefix comes before the name of each lock when the client is asked for it.
func Open(sc *scenarios.Scenario, l *subject.Subject, p *sim.Process, addrs []string, prefix string, at Place) (run func(Thread), err error) {
	i := slices.IndexFunc(sc.Processes, func(x scenarios.Process) bool { return x.Name == p.Name() })
	var client lockimpl.Client
	p.Within(func() {
		client, err = open(l, p, subject.Options{Addrs: addrs, Watchdog: sc.Watchdog, ClientOptions: sc.Processes[i].ClientOptions})
	})
	if err != nil {
		return nil, err
	}
	ps := &player{sc: sc, lock: l, place: at, prefix: prefix, client: client, perCall: sc.Processes[i].PerCall, objects: map[string]lockimpl.Lock{}, holds: map[holdKey]*hold{}}
	if late, ok := at.(Late); ok {
		ps.slack = late.Slack()
	}
	return func(t Thread) { ps.run(t, stepsOf(sc, p.Name(), t.Number())) }, nil
}

// open calls the lock's Open. It returns an error if Open returns no client.
func open(l *subject.Subject, p *sim.Process, o subject.Options) (lockimpl.Client, error) {
	client, err := l.Open(p, o)
	if err == nil && client == nil {
		err = errors.New("neither a client nor an error came from Open")
	}
	return client, err
}

func stepsOf(sc *scenarios.Scenario, process string, thread int) []scenarios.Step {
	for _, s := range sc.Threads {
		if s.Process == process && s.Thread == thread {
			return s.Steps
		}
	}
	return nil
}

// player turns the steps of one process's threads into calls.
type player struct {
	sc      *scenarios.Scenario
	lock    *subject.Subject
	place   Place
	slack   time.Duration // of a Late place
	prefix  string        // of the names under which the client knows the locks
	client  lockimpl.Client
	perCall bool

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
	l, err := p.client.GetLock(p.prefix + name)
	if err != nil {
		panic(fmt.Sprintf("play: %s refuses the lock name %q: %v", p.lock.Name, name, err))
	}
	if l == nil {
		panic(fmt.Sprintf("play: GetLock(%q) of %s returned neither a lock nor an error", name, p.lock.Name))
	}
	p.objects[name] = l
	return l
}

func (p *player) run(t Thread, steps []scenarios.Step) {
	for _, s := range steps {
		p.step(t, s)
	}
}

func (p *player) step(t Thread, s scenarios.Step) {
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
			if p.lock.Channel != nil {
				got = p.place.Published(p.lock.Channel(p.prefix+s.Name, s.Target))
			}
			p.checkAbout(t, s, "published", s.Target, strconv.FormatInt(s.Count, 10), strconv.FormatInt(got, 10), got == s.Count)
		})
	case scenarios.StepUse:
		p.use(t, s)
	case scenarios.StepInterrupt:
		t.Interrupt(s.Target)
	case scenarios.StepRepeat:
		for i := 0; s.Until != nil || i < s.Times; i++ {
			begun := p.place.Now()
			if s.Until != nil && begun >= *s.Until {
				break
			}
			p.run(t, s.Steps)
			if s.Until != nil && p.place.Now()-begun < noTime {
				t.Sleep(pause)
			}
		}
	case scenarios.StepClose:
		t.Close()
	default:
		panic("play: a step of unknown kind " + string(s.Kind))
	}
}

// Steps that are repeated until an instant may all fail at once, as when no connection is possible.
// A repetition of less than noTime is followed by a pause. Otherwise time would never reach that
// instant.
const (
	noTime = 100 * time.Microsecond
	pause  = 10 * time.Millisecond
)

func value(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

func (p *player) acquire(t Thread, s scenarios.Step) model.Outcome {
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
func (p *player) watch(t Thread, lock string) {
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
func (p *player) leave(t Thread, lock string) {
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

func (p *player) unlock(t Thread, s scenarios.Step) {
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

func (p *player) call(t Thread, s scenarios.Step, act model.Action, lease, wait time.Duration, f func(context.Context, lockimpl.Lock) (model.Outcome, error)) (int, model.Outcome) {
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

func (p *player) want(t Thread, s scenarios.Step, got model.Outcome) {
	if len(s.Want) > 0 {
		t.Do(func() {
			p.check(t, s, string(s.Kind), fmt.Sprint(s.Want), string(got), slices.Contains(s.Want, string(got)))
		})
	}
}

func (p *player) reply(t Thread, s scenarios.Step, op int, role model.Role, last bool) {
	if s.Reply == "" || !p.lock.Replies {
		return
	}
	t.Do(func() {
		got, ok := p.place.OpReply(op, role, last)
		if !ok {
			got = "none"
		}
		p.check(t, s, string(s.Kind)+" reply", s.Reply, got, got == s.Reply || role == model.RoleAcquire && p.sameTTL(s.Reply, got))
	})
}

// check records whether a step met the expectation in the file.
func (p *player) check(t Thread, s scenarios.Step, what, want, got string, met bool) {
	p.checkAbout(t, s, what, "", want, got, met)
}

// checkAbout is check for an expectation about one thread.
func (p *player) checkAbout(t Thread, s scenarios.Step, what, thread, want, got string, met bool) {
	c := model.Check{What: what, Thread: thread, Of: s.Name, Want: want, Got: got}
	t.Record(model.Event{Kind: model.KindCheck, Lock: s.Name, Met: met, Check: &c, Text: fmt.Sprintf("%s:%d: %s", s.Pos.File, s.Pos.Line, c)})
}

func (p *player) use(t Thread, s scenarios.Step) {
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

func (p *player) read(t Thread, s scenarios.Step) {
	state := p.place.State(s.Name)
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
		p.checkAbout(t, s, "deadline", who, want.String(), shown, ok && p.within(got, want))
	}
}

func (p *player) ttl(state *model.LockState, want scenarios.TTL) (got string, met bool) {
	switch {
	case !state.Held():
		return "free", want.Free
	case state.ExpiresMs < 0:
		return "endless", want.Endless
	}
	left := time.Duration(state.ExpiresMs-p.place.Now().Milliseconds()) * time.Millisecond
	return left.String(), !want.Free && !want.Endless && p.within(left, want.Range)
}

// within reports whether a length of time that the server told is in the range of the file.
func (p *player) within(got time.Duration, want scenarios.Range) bool {
	return want.Min-p.slack <= got && got <= want.Max+p.slack
}

// sameTTL reports whether the reply to an acquire that was not granted, a time to live in ms, is the
// one of the file.
func (p *player) sameTTL(want, got string) bool {
	w, err1 := strconv.ParseInt(want, 10, 64)
	g, err2 := strconv.ParseInt(got, 10, 64)
	ms := time.Duration(w) * time.Millisecond
	return err1 == nil && err2 == nil && p.within(time.Duration(g)*time.Millisecond, scenarios.Range{Min: ms, Max: ms})
}
