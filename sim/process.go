package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/model"
)

// Process is one process of the world: a name, one client with its
// connections, a wall clock and threads.
type Process struct {
	w       *World
	index   int
	cfg     ProcessConfig
	object  string // what a choice that changes it touches
	threads []*Thread
	entropy uint64

	conns       []*conn // in the order of dialling; numbered when they first speak
	spoken      int     // how many are numbered
	dead        bool
	closed      bool
	pausedUntil int64
	pauses      [][2]int64
	cutUntil    int64 // partitioned
	held        []func()
	jump        time.Duration // steps of the wall clock so far
	close       func()
	clients     []*redis.Client
	gaveUp      bool // a command whose context was over; guarded by w.mu

	ids   map[int64]uint64 // draws so far, by thread; guarded by w.mu
	notes map[string][]*note
	// alike is how many notes have a goroutine: only then is it asked who writes.
	alike atomic.Int32
}

// note says for which operation a command with these words is being sent.
type note struct {
	op int
	// goroutine sends it, and sends it again; "" where nobody else was sending the
	// same words when it began.
	goroutine string
}

// Name is the process's name.
func (p *Process) Name() string { return p.cfg.Name }

// Threads gives the process's threads.
func (p *Process) Threads() []*Thread { return p.threads }

// Now reads the process's wall clock, in whole milliseconds. Any goroutine.
func (p *Process) Now() time.Time {
	ns := p.w.now()
	drift := time.Duration(float64(ns) * float64(p.cfg.DriftPPM) / 1e6)
	p.w.mu.Lock()
	jump := p.jump
	p.w.mu.Unlock()
	return p.w.start.Round(0).Add(time.Duration(ns) + p.cfg.Offset + drift + jump).Truncate(time.Millisecond)
}

// draw gives the k-th number of a thread of this process, whatever other
// threads draw meanwhile. Any goroutine.
func (p *Process) draw(thread int64) uint64 {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.ids == nil {
		p.ids = map[int64]uint64{}
	}
	k := p.ids[thread]
	p.ids[thread] = k + 1
	// The process is in it too: whatever the chooser drew, ids are unique.
	return mix(p.entropy ^ mix(uint64(p.index)<<48^uint64(thread)<<32^k))
}

// NewID gives the next request id of a thread: 32 hexadecimal digits. Any
// goroutine.
func (p *Process) NewID(thread int64) string { return hexID(p.draw(thread)) }

// Jitter gives the next length in [0, max) of a thread. Any goroutine.
func (p *Process) Jitter(thread int64, max time.Duration) time.Duration {
	if max <= 0 {
		return 0
	}
	d := time.Duration(p.draw(thread) % uint64(max))
	if p.w.orders != nil {
		return d.Truncate(time.Millisecond) // see Orders: what is set fires at the same place
	}
	return d
}

// RedisOptions are the options with which a go-redis client lives in the
// world. The caller may set pool, timeouts and retries, and must not set
// MinIdleConns: nameless goroutines would dial.
func (p *Process) RedisOptions() *redis.Options {
	probe := p.w.probeResidue()
	return &redis.Options{
		Addr: "192.0.2.1:6379", // a name would be resolved outside the bubble
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := p.dial()
			if err != nil && isProbe() {
				time.Sleep(untilResidue(p.w.Now(), probe))
				return p.dial()
			}
			return conn, err
		},
		DialerRetries:            1,
		MaxRetries:               -1,
		Protocol:                 2,
		DisableIdentity:          true,
		ReadBufferSize:           bufferSize,
		WriteBufferSize:          bufferSize,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// bufferSize is less than go-redis's own 32 KiB: a run makes connections by the
// dozen and sends little. What is longer goes in pieces, at the same instant.
const bufferSize = 512

// NewRedis makes a go-redis client of the process.
func (p *Process) NewRedis(opt *redis.Options) *redis.Client {
	c := redis.NewClient(opt)
	c.AddHook(noteHook{p})
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.clients = append(p.clients, c)
	return c
}

// mayHaveWaited: a command may have waited for a connection of its client, for
// which go-redis takes a timer out of a pool of the whole program. Of waits that
// ended because the caller gave up its statistics do not tell.
func (p *Process) mayHaveWaited() bool {
	return p.gaveUp || len(p.clients) == 0 && len(p.conns) > 0 || slices.ContainsFunc(p.clients, func(c *redis.Client) bool {
		stats := c.PoolStats()
		return stats.WaitCount > 0 || stats.Timeouts > 0
	})
}

// OnClose says how the process's client shuts down in order.
func (p *Process) OnClose(f func()) { p.close = f }

func (p *Process) closeClient() {
	if p.closed {
		return
	}
	p.closed = true
	p.w.record(model.Event{Kind: model.KindClose, Process: p.cfg.Name})
	if p.close != nil {
		go p.close() // may wait for what only the scheduler can bring
	}
}

// dial opens a connection, at once: a dial that takes simulated time would
// hang go-redis's locks. A partitioned process gets an error, a dead one a
// connection that never answers.
func (p *Process) dial() (net.Conn, error) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if !p.dead && !w.leaving && p.cutUntil > w.now() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EHOSTUNREACH}
	}
	s := newSocket(p)
	p.conns = append(p.conns, s.c)
	return s, nil
}

// isProbe says whether the dial that is under way is one of those with which
// go-redis's pool finds out, once a second after as many failures as it is large,
// whether to dial again. They begin at the instant of a failure, as the next try of
// who failed does, so that they need a nanosecond of their own (see slotNs). Nobody
// waits for them, so that they may take time.
func isProbe() bool {
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, ".tryDial") {
			return true
		}
		if !more {
			return false
		}
	}
}

// noteHook ties commands to operations: it sees the context that a lock
// passed and the words that will soon arrive on some connection.
type noteHook struct{ p *Process }

func (h noteHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h noteHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		defer h.over(ctx)
		defer h.p.note(callOf(ctx), cmd)()
		return next(ctx, cmd)
	}
}

func (h noteHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		defer h.over(ctx)
		for _, cmd := range cmds {
			defer h.p.note(callOf(ctx), cmd)()
		}
		return next(ctx, cmds)
	}
}

// over notes that a command ended whose caller may have given it up.
func (h noteHook) over(ctx context.Context) {
	if ctx.Err() != nil {
		h.p.w.mu.Lock()
		h.p.gaveUp = true
		h.p.w.mu.Unlock()
	}
}

// note ties the words of a command to an operation until the command is over.
func (p *Process) note(op int, cmd redis.Cmder) (over func()) {
	b := make([]byte, 0, 256)
	for i, a := range cmd.Args() {
		if i > 0 {
			b = append(b, 0)
		}
		switch a := a.(type) {
		case string:
			b = append(b, a...)
		case int:
			b = strconv.AppendInt(b, int64(a), 10)
		case int64:
			b = strconv.AppendInt(b, a, 10)
		default:
			b = fmt.Append(b, a)
		}
	}
	key := string(b)
	n := &note{op: op}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if len(p.notes[key]) > 0 {
		n.goroutine = goroutine()
		p.alike.Add(1)
	}
	p.notes[key] = append(p.notes[key], n)
	return func() {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		if n.goroutine != "" {
			p.alike.Add(-1)
		}
		if i := slices.Index(p.notes[key], n); i >= 0 {
			p.notes[key] = slices.Delete(p.notes[key], i, i+1)
		}
		if len(p.notes[key]) == 0 {
			delete(p.notes, key)
		}
	}
}

// opOf gives the operation that sent these words. Where several send the same, it is
// that of the goroutine that wrote them: go-redis sends a command, and sends it
// again, in its caller's.
func (p *Process) opOf(words []string, writer string) int {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	notes := p.notes[strings.Join(words, "\x00")]
	if len(notes) == 0 {
		return 0
	}
	of := func(goroutine string) int {
		return slices.IndexFunc(notes, func(n *note) bool { return n.goroutine == goroutine })
	}
	i := of(writer)
	if i < 0 {
		i = of("") // the one that began when nobody else sent them
	}
	return notes[max(i, 0)].op
}

// goroutine names the goroutine that asks, which no record may show: "goroutine 7".
func goroutine() string {
	var b [32]byte
	line := b[:runtime.Stack(b[:], false)]
	name, _, _ := bytes.Cut(line, []byte(" ["))
	return string(name)
}

// pause stops the world of p for d.
func (p *Process) pause(d int64) {
	w := p.w
	// To the slot: the event that ends the pause must not come before its end.
	until := (w.now() + d) / slotNs * slotNs
	if until <= p.pausedUntil {
		return
	}
	p.pauses = append(p.pauses, [2]int64{w.now(), until})
	p.pausedUntil = until
	w.sched.add(until, classFault, func() {
		if w.now() < p.pausedUntil {
			return
		}
		held := p.held
		p.held = nil
		for _, f := range held {
			f()
		}
	})
}

// pausedBetween is how much of [from, to] p spent paused.
func (p *Process) pausedBetween(from, to int64) int64 {
	var sum, end int64
	for _, s := range p.pauses {
		begin := max(s[0], from, end)
		end = max(end, min(s[1], to))
		sum += max(0, end-begin)
	}
	return sum
}

func (p *Process) paused() bool { return p.pausedUntil > p.w.now() }

// afterPause runs f as an event of class c now, or when the pause of p ends.
func (p *Process) afterPause(c class, f func()) {
	w := p.w
	at := max(w.now(), p.pausedUntil)
	w.sched.add(at, c, func() {
		if p.paused() {
			p.afterPause(c, f)
			return
		}
		f()
	})
}

// crash kills p: its connections are cut, its threads take no further step.
func (p *Process) crash() {
	if p.dead {
		return
	}
	p.dead = true
	slices.SortStableFunc(p.conns, func(a, b *conn) int { // dialled together, in any order
		return cmp.Compare(uint(a.id-1), uint(b.id-1))
	})
	for _, c := range p.conns {
		// The end of a connection arrives after what was written before it.
		at := max(p.w.now()+p.w.latency(p, "cut"), c.lastOut)
		p.w.sched.addTo(c.outLine, at, classDelivery, func() { p.w.server.disconnect(c) }, nil)
	}
}

type threadState int

const (
	threadNew threadState = iota // without a body: nothing will come of it
	threadStepping
	threadCalling
	threadDone
)

// Thread is one thread of a process. Its methods are called by its body.
type Thread struct {
	p      *Process
	number int
	name   string
	state  threadState
	resume chan struct{}
	killed bool
	call   *call
	outbox []func() // guarded by w.mu, run by the scheduler
}

type call struct {
	op     int
	what   Operation
	cancel context.CancelCauseFunc
}

// Operation is what a thread asks of a lock.
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

// Start gives the thread its body.
func (t *Thread) Start(body func()) {
	t.state = threadStepping
	go func() {
		t.step(func(done func()) { done() })
		defer t.recovered()
		body()
		t.post(func() {
			t.state = threadDone
			t.p.w.moved = t.p.w.now()
			t.p.w.record(model.Event{Kind: model.KindDone, Process: t.p.cfg.Name, Thread: t.number})
		})
	}()
}

// recovered turns a panic of the lock under test into an event.
func (t *Thread) recovered() {
	r := recover()
	if r == nil {
		return
	}
	t.post(func() {
		t.state, t.call = threadDone, nil
		t.p.w.record(model.Event{Kind: model.KindDefect, Process: t.p.cfg.Name, Thread: t.number, Text: fmt.Sprintf("the lock panicked: %v", r)})
	})
}

// post hands f to the scheduler.
func (t *Thread) post(f func()) {
	w := t.p.w
	w.mu.Lock()
	if len(t.outbox) == 0 {
		w.posts = append(w.posts, t)
	}
	t.outbox = append(t.outbox, f)
	w.mu.Unlock()
	w.wake()
}

// handle runs what the thread posted; the scheduler calls it.
func (t *Thread) handle() {
	t.p.w.mu.Lock()
	posts := t.outbox
	t.outbox = nil
	t.p.w.mu.Unlock()
	for _, f := range posts {
		if !t.killed {
			f()
		}
	}
}

// step lets the scheduler do f, and goes on when f calls done.
func (t *Thread) step(f func(done func())) {
	t.post(func() { f(func() { t.resume <- struct{}{} }) })
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
		t.p.afterPauseNow(classStep, func() {
			if t.p.dead || t.killed {
				return
			}
			w.moved = w.now()
			then()
		})
	}, nil)
}

// afterPauseNow is afterPause without an event of its own when p is awake.
func (p *Process) afterPauseNow(c class, f func()) {
	if p.paused() {
		p.afterPause(c, f)
		return
	}
	f()
}

// At waits for an instant; it returns at once when that has passed.
func (t *Thread) At(d time.Duration) {
	t.step(func(done func()) { t.at(int64(d), done) })
}

// Sleep waits that long.
func (t *Thread) Sleep(d time.Duration) {
	t.step(func(done func()) { t.at(t.p.w.now()+int64(d), done) })
}

// Do runs f between two events of the world, as a step of this thread: f may
// look at the world and add to its record.
func (t *Thread) Do(f func()) {
	t.step(func(done func()) {
		t.at(t.p.w.now(), func() {
			t.p.w.touch(objServer, true) // nobody knows what f looks at
			f()
			done()
		})
	})
}

// Record adds an event of this thread. Only within Do.
func (t *Thread) Record(e model.Event) {
	e.Process, e.Thread = t.p.cfg.Name, t.number
	t.p.w.record(e)
}

// Call performs one operation: f with a context that an interrupt cancels.
// It gives the operation's number in the record and how it ended.
func (t *Thread) Call(what Operation, f func(context.Context) (model.Outcome, error)) (int, model.Outcome) {
	w := t.p.w
	var c *call
	var ctx context.Context
	t.step(func(done func()) {
		t.at(w.now(), func() {
			w.ops++
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(context.WithValue(context.Background(), callKey{}, w.ops))
			c = &call{op: w.ops, what: what, cancel: cancel}
			t.call, t.state = c, threadCalling
			t.Record(model.Event{Kind: model.KindInvoke, Op: c.op, Action: what.Action, Lock: what.Lock, LeaseNs: what.LeaseNs, WaitNs: what.WaitNs})
			done()
		})
	})
	outcome, err := f(ctx)
	text := ""
	if err != nil {
		text = err.Error()
	}
	t.step(func(done func()) {
		t.p.afterPauseNow(classStep, func() {
			if t.p.dead {
				return
			}
			t.state = threadStepping
			w.moved = w.now()
			if t.call == c {
				t.call = nil
				t.Record(model.Event{Kind: model.KindReturn, Op: c.op, Action: what.Action, Lock: what.Lock,
					LeaseNs: what.LeaseNs, WaitNs: what.WaitNs, Outcome: outcome, Error: text})
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

// Use works on a resource: reads it, works that long, writes back what is
// left. False when too little was left (below keep). The resource is a server
// of its own that no lock fault meets.
func (t *Thread) Use(resource string, take int64, work time.Duration, keep *int64) bool {
	w := t.p.w
	t.Do(func() { t.Record(model.Event{Kind: model.KindUse, Phase: "start", Key: resource}) })
	var seen int64
	t.visit(func() {
		seen = w.resources[resource]
		t.Record(model.Event{Kind: model.KindResource, Phase: "read", Key: resource, Value: seen})
	})
	left := seen - take
	if keep != nil && left < *keep {
		t.Do(func() { t.Record(model.Event{Kind: model.KindUse, Phase: "sold_out", Key: resource}) })
		return false
	}
	t.Sleep(work)
	t.visit(func() {
		w.resources[resource] = left
		t.Record(model.Event{Kind: model.KindResource, Phase: "write", Key: resource, Value: left, Count: take})
	})
	t.Do(func() { t.Record(model.Event{Kind: model.KindUse, Phase: "end", Key: resource, Value: take}) })
	return true
}

// visit lets f happen at another server, one latency away, and comes back.
func (t *Thread) visit(f func()) {
	w, p := t.p.w, t.p
	t.step(func(done func()) {
		line := t.Name() + " resource"
		w.sched.addTo(line, w.now()+w.latency(p, "resource"), classDelivery, func() {
			w.touch(objUses, true)
			f()
			w.sched.addTo(line, w.now()+w.latency(p, "resource"), classDelivery, func() {
				w.touch(objProcess(p), true)
				p.afterPauseNow(classDelivery, func() {
					if !p.dead && !t.killed {
						w.moved = w.now()
						done()
					}
				})
			}, nil)
		}, nil)
	})
}

// hello is how a RESP HELLO begins; go-redis sends one on every connection.
func isHello(b []byte) bool {
	_, rest, ok := bytes.Cut(b, []byte("\r\n"))
	return ok && len(rest) >= 11 && bytes.EqualFold(rest[:11], []byte("$5\r\nhello\r\n"))
}
