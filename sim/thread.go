package sim

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"lockstep/model"
)

type threadState int

const (
	threadNew threadState = iota // it has no body yet, and perhaps never gets one
	threadStepping
	threadCalling
	threadDone
)

// Thread is one thread of a process. Its methods are called by its body.
type Thread struct {
	p      *Process
	nth    int // in the world, counted from 0
	number int
	name   string
	state  threadState
	resume chan struct{}
	killed bool
	call   *call
	token  uint64              // see SetToken; used only by the thread
	outbox []func(done func()) // guarded by w.mu, run by the scheduler
	spare  []func(done func()) // memory for outbox; guarded by w.mu
	done   func()              // see step
}

type call struct {
	op     int
	what   Operation
	cancel context.CancelCauseFunc
	// invoked is the number of events before the call.
	invoked int
}

// Operation is a call of a thread on a lock.
type Operation struct {
	Action  model.Action
	Lock    string
	LeaseNs int64
	WaitNs  int64 // -1: without bound
}

// Process is the thread's process.
func (t *Thread) Process() *Process { return t.p }

// Number is the thread's number within its process, from 1.
func (t *Thread) Number() int { return t.number }

// Name is process/thread.
func (t *Thread) Name() string { return t.name }

// enter changes the state of the thread.
func (t *Thread) enter(s threadState) {
	if w := t.p.w; !t.p.dead {
		w.threads[t.state]--
		w.threads[s]++
	}
	t.state = s
}

// Start gives the thread its body.
func (t *Thread) Start(body func()) {
	t.enter(threadStepping)
	w := t.p.w
	begin := func() {
		t.p.sit(t.name)
		w.lineage.register(t)
		t.step(func(done func()) { done() })
		defer t.recovered()
		body()
		t.post(func(func()) {
			t.enter(threadDone)
			w.moved = w.now()
			w.record(&model.Event{Kind: model.KindDone, Process: t.p.cfg.Name, Thread: t.number})
		})
	}
	if t.nth < 1<<rootBits {
		go numbered(t.nth, rootBits, begin)
	} else {
		go begin()
	}
}

// defect records a panic of the lock under test as an event with that text.
func (w *World) defect(p Panic, text string) {
	if w.over {
		return
	}
	p.AtNs = w.now()
	w.lockPanics = append(w.lockPanics, p)
	w.record(&model.Event{Kind: model.KindDefect, Process: p.Process, Thread: p.Thread, Text: text})
}

// recovered turns a panic of the lock under test into an event.
func (t *Thread) recovered() {
	r := recover()
	if r == nil {
		return
	}
	p := Panic{Process: t.p.cfg.Name, Thread: t.number, Value: fmt.Sprint(r), Frames: LockFrames(string(debug.Stack()))}
	t.post(func(func()) {
		t.enter(threadDone)
		if t.call != nil {
			p.Action, p.Lock = t.call.what.Action, t.call.what.Lock
		}
		t.call = nil
		t.p.w.defect(p, "the lock panicked: "+p.Value)
	})
}

// post hands f to the scheduler.
func (t *Thread) post(f func(done func())) {
	w := t.p.w
	w.mu.Lock()
	if len(t.outbox) == 0 {
		w.posts = append(w.posts, t)
	}
	t.outbox = append(t.outbox, f)
	w.mu.Unlock()
	w.bell.ring()
}

// handle runs the functions that the thread posted. The scheduler calls it.
func (t *Thread) handle() {
	t.p.w.mu.Lock()
	posts := t.outbox
	t.outbox, t.spare = t.spare[:0], posts
	t.p.w.mu.Unlock()
	for i, f := range posts {
		if posts[i] = nil; !t.killed {
			f(t.done)
		}
	}
}

// step lets the scheduler do f, and continues when f calls done.
func (t *Thread) step(f func(done func())) {
	t.post(f)
	<-t.resume
	if t.killed {
		runtime.Goexit()
	}
}

func (t *Thread) kill() {
	t.killed = true
	close(t.resume)
}

// at resumes the thread at an instant, as a step of its own.
func (t *Thread) at(ns int64, then func()) {
	w := t.p.w
	w.sched.addTo(t.Name(), max(ns, w.now()), classStep, func() {
		w.touch(objProcess(t.p), true)
		t.move(then)
	}, nil)
}

// move runs f as the next step of the thread, when the pause of its process has ended.
func (t *Thread) move(f func()) {
	p := t.p
	switch {
	case p.paused():
		p.afterPause(classStep, func() { t.move(f) })
	case !p.dead && !t.killed:
		p.w.moved = p.w.now()
		f()
	}
}

// At waits for an instant; it returns at once if that has passed.
func (t *Thread) At(d time.Duration) {
	t.step(func(done func()) { t.at(int64(d), done) })
}

// Sleep waits that long.
func (t *Thread) Sleep(d time.Duration) {
	t.step(func(done func()) { t.at(t.p.w.now()+int64(d), done) })
}

// Do runs f between two events of the world, as a step of this thread: f may read the world and add
// to its record.
func (t *Thread) Do(f func()) {
	t.step(func(done func()) {
		t.at(t.p.w.now(), func() {
			for _, n := range t.p.w.nodes {
				t.p.w.touch(n.object, true) // f may read anything
			}
			f()
			done()
		})
	})
}

// Record adds an event of this thread. Only within Do.
func (t *Thread) Record(e model.Event) {
	e.Process, e.Thread = t.p.cfg.Name, t.number
	t.p.w.record(&e)
}

// Call performs one operation: f with a context that an interrupt cancels.
// It returns the operation's number in the record and its outcome.
func (t *Thread) Call(what Operation, f func(context.Context) (model.Outcome, error)) (int, model.Outcome) {
	w := t.p.w
	var c *call
	var ctx context.Context
	t.step(func(done func()) {
		t.at(w.now(), func() {
			w.ops++
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(context.WithValue(context.Background(), callKey{}, w.ops))
			c = &call{op: w.ops, what: what, cancel: cancel, invoked: len(w.rec.Events)}
			t.call = c
			t.enter(threadCalling)
			w.lineage.begins(t, c.op, what)
			t.Record(model.Event{Kind: model.KindInvoke, Op: c.op, Action: what.Action, Lock: what.Lock, LeaseNs: what.LeaseNs, WaitNs: what.WaitNs})
			done()
		})
	})
	t.token = 0
	outcome, err := f(ctx)
	token := t.token
	text := ""
	if err != nil {
		text = err.Error()
	}
	t.step(func(done func()) {
		t.p.afterPauseNow(classStep, func() {
			if t.p.dead {
				return
			}
			t.enter(threadStepping)
			w.moved = w.now()
			w.lineage.ends(t)
			if outcome == model.Granted {
				w.granted(t, c.op, what.Lock, c.invoked)
			}
			if t.call == c {
				t.call = nil
				t.Record(model.Event{Kind: model.KindReturn, Op: c.op, Action: what.Action, Lock: what.Lock,
					LeaseNs: what.LeaseNs, WaitNs: what.WaitNs, Outcome: outcome, Error: text, Token: token})
			}
			c.cancel(nil)
			done()
		})
	})
	if w.leaving {
		runtime.Goexit() // all have left: no step follows
	}
	return c.op, outcome
}

// SetToken sets the fencing token in the return of the call under way. Only the call may call it.
func (t *Thread) SetToken(token uint64) { t.token = token }

// Interrupt cancels the call that another thread is in.
func (t *Thread) Interrupt(target *Thread) {
	t.Do(func() {
		met := target.call != nil && !target.p.dead
		t.Record(model.Event{Kind: model.KindUse, Phase: "interrupt", Text: target.Name(), Met: met})
		if met {
			t.p.w.touch(objProcess(target.p), true)
			target.call.cancel(ErrInterrupted)
		}
	})
}

// Close shuts the process's client down in order.
func (t *Thread) Close() { t.Do(t.p.closeClient) }

// Use works on a resource: it reads the value, works for some time and writes the value less what
// it takes. It reports false if less than keep would be left. The resource is a server of its own
// that no fault strikes.
func (t *Thread) Use(resource string, take int64, work time.Duration, keep *int64) bool {
	sold, _ := t.use(resource, take, work, keep, nil)
	return sold
}

// UseFenced is Use of a resource that refuses reads and writes with a token smaller than the
// greatest it has seen, or without one (0). refused reports whether it refused this request.
func (t *Thread) UseFenced(resource string, token, take int64, work time.Duration, keep *int64) (sold, refused bool) {
	return t.use(resource, take, work, keep, &token)
}

func (t *Thread) use(resource string, take int64, work time.Duration, keep, token *int64) (sold, refused bool) {
	return Work(t, func(v Visit) (e model.Event) {
		t.visit(func() {
			e = t.p.w.resources.Visit(v)
			t.Record(e)
		})
		return e
	}, resource, take, work, keep, token)
}

// visit lets f happen at another server, one latency away, and returns after another latency.
func (t *Thread) visit(f func()) {
	w, p := t.p.w, t.p
	t.step(func(done func()) {
		line := t.Name() + " resource"
		w.sched.addTo(line, w.now()+w.latency(p, "resource"), ClassDelivery, func() {
			w.touch(objUses, true)
			f()
			w.stirred = false // the resource has no goroutine
			w.sched.addTo(line, w.now()+w.latency(p, "resource"), ClassDelivery, func() {
				w.touch(objProcess(p), true)
				p.afterPauseNow(ClassDelivery, func() {
					if !p.dead && !t.killed {
						w.moved = w.now()
						done()
					}
				})
			}, nil)
		}, nil)
	})
}
