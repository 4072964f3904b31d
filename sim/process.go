package sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing/synctest"
	"time"

	"lockstep/model"
)

// Process is one process of the world: a name, clients with their connections, a
// wall clock and threads.
type Process struct {
	w       *World
	index   int
	cfg     ProcessConfig
	object  string // its name among the objects of Effect
	threads []*Thread
	entropy uint64
	// latencies are the streams of latencies, by direction. Only the scheduler uses them.
	latencies map[string]string

	conns       []*conn // in the order of dialling; numbered when they first speak; guarded by w.mu
	spoken      int     // the number of numbered connections
	cut         int     // the number of connections that the end of the run has cut
	dead        bool
	closed      bool
	opener      atomic.Uint64 // the goroutine that makes the client, see Opens; 0: there is none, or it is done
	closer      atomic.Uint64 // the goroutine in which close runs; 0: it does not run
	crashed     bool          // dead before the end of the run
	pausedUntil int64
	pauses      [][2]int64
	cutUntil    []int64 // by node, the end of a partition; guarded by w.mu
	held        []func()
	jump        time.Duration // steps of the wall clock so far
	seat        seatProcess
	astray      func(addr string) // see Astray
	close       func()
	dial        Dialer        // of a process that is in no world, see NewOutside
	turns       chan struct{} // see TakesTurns; nil: nobody waits for a turn
	talks       *talk         // whose turn it is; guarded by w.mu

	rand  *rand.Rand        // made by Rand; guarded by w.mu
	ids   map[int64]uint64  // draws so far, by thread; guarded by w.mu
	notes map[string]*note  // by words, the first one; guarded by w.mu
	asked map[string]Author // by words, who asked for them last; nil until somebody asked; guarded by w.mu
	// askedForAll reports whether a request that nobody asked for has no author; guarded by w.mu.
	askedForAll bool
	// alike is the number of notes that have a goroutine. While it is 0, connections do
	// not ask which goroutine writes.
	alike atomic.Int32
}

// note has the operation that is sending a request of certain words.
type note struct {
	op int
	// goroutine sends the request, and sends it again. It is "" if no other operation was sending
	// the same words at the beginning.
	goroutine string
	next      *note // the next one of the same words
}

// addThreads adds the threads that the configuration counts.
func (p *Process) addThreads() {
	for n := 1; n <= p.cfg.Threads; n++ {
		t := &Thread{p: p, nth: p.w.threads[threadNew] + n - 1, number: n, name: model.ThreadName(p.cfg.Name, n), resume: make(chan struct{})}
		t.done = func() {
			t.resume <- struct{}{}
			p.w.stirred = true
		}
		p.threads = append(p.threads, t)
	}
	p.w.threads[threadNew] += p.cfg.Threads
}

// Name returns the process's name.
func (p *Process) Name() string { return p.cfg.Name }

// Threads returns the process's threads.
func (p *Process) Threads() []*Thread { return p.threads }

// Now reads the process's wall clock, in whole milliseconds. Any goroutine.
func (p *Process) Now() time.Time {
	ns := int64(p.w.Now())
	drift := time.Duration(float64(ns) * float64(p.cfg.DriftPPM) / 1e6)
	p.w.mu.Lock()
	jump := p.jump
	p.w.mu.Unlock()
	return p.w.start.Round(0).Add(time.Duration(ns) + p.cfg.Offset + drift + jump).Truncate(time.Millisecond)
}

// draw returns the next number of a thread of this process. It does not depend on the draws of
// other threads. Any goroutine.
func (p *Process) draw(thread int64) uint64 {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.ids == nil {
		p.ids = map[int64]uint64{}
	}
	k := p.ids[thread]
	p.ids[thread] = k + 1
	// The index of the process makes ids unique, whatever the chooser drew.
	return mix(p.entropy ^ mix(uint64(p.index)<<48^uint64(thread)<<32^k))
}

// NewID returns the next request id of a thread: 32 hexadecimal digits. Any
// goroutine.
func (p *Process) NewID(thread int64) string { return hexID(p.draw(thread)) }

// Jitter returns the next length in [0, max) of a thread. Any goroutine.
func (p *Process) Jitter(thread int64, max time.Duration) time.Duration {
	if max <= 0 {
		return 0
	}
	d := time.Duration(p.draw(thread) % uint64(max))
	if p.w.orders != nil {
		return d.Truncate(time.Millisecond) // timers of Orders fire at the same place in their millisecond
	}
	return d
}

// Astray sets a function that is told of each address that code of the process dials without a dialer of the
// world and at which no server is. Only a program that is built with the overlay knows of such dials.
func (p *Process) Astray(f func(addr string)) { p.astray = f }

// Settle waits until done is closed, or until nothing more can happen without the scheduler of the
// world. A process that is in no world waits only for done.
func (p *Process) Settle(done <-chan struct{}) {
	if p.dial != nil {
		<-done
		return
	}
	synctest.Wait()
}

// Opens says that the calling goroutine makes the client of the process, until it calls over.
func (p *Process) Opens() (over func()) {
	p.opener.Store(ownNumber())
	return func() { p.opener.Store(0) }
}

// OnClose sets the function that shuts the process's clients down in order.
func (p *Process) OnClose(f func()) { p.close = f }

func (p *Process) closeClient() {
	if p.closed {
		return
	}
	p.closed = true
	p.w.record(&model.Event{Kind: model.KindClose, Process: p.cfg.Name})
	if p.close != nil {
		go p.runClose() // it may wait for events that only the scheduler can make
	}
}

// runClose shuts the clients down, and turns their panics into events.
func (p *Process) runClose() {
	defer func() {
		if r := recover(); r != nil {
			w := p.w
			w.mu.Lock()
			w.panics = append(w.panics, panicked{p, fmt.Sprint(r), LockFrames(string(debug.Stack()))})
			w.mu.Unlock()
			w.bell.ring()
		}
	}()
	p.sit(p.cfg.Name + " closes")
	p.closer.Store(ownNumber())
	p.close()
	p.closer.Store(0)
}

// panicked is a panic of the client of a process.
type panicked struct {
	p             *Process
	value, frames string
}

// DialContext opens a connection to the node at addr. It takes no simulated time: a client may hold
// a mutex meanwhile, and simulated time cannot see a wait for a mutex. A partitioned process gets
// an error; a dead one gets a connection that never answers. Any goroutine.
func (p *Process) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if p.dial != nil {
		return p.dial(ctx, network, addr)
	}
	w := p.w
	n := w.node(addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case n == nil:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	case !p.dead && !w.leaving && p.cutUntil[n.index] > int64(w.Now()):
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
	}
	s := newSocket(p, n)
	p.conns = append(p.conns, s.c)
	if n.stream != nil { // the server may speak first
		s.posted = true
		w.dirty = append(w.dirty, s)
		w.bell.ring()
	}
	return s, nil
}

// Sending ties the words of a request to the operation of ctx until over is called, since the world
// sees only bytes. The words are joined by zero bytes. Any goroutine.
func (p *Process) Sending(ctx context.Context, words string) (over func()) {
	n := &note{op: callOf(ctx)}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if before := p.notes[words]; before == nil {
		p.notes[words] = n
	} else {
		n.goroutine = goroutine()
		p.alike.Add(1)
		for before.next != nil {
			before = before.next
		}
		before.next = n
	}
	return func() { p.sent(words, n) }
}

// sent ends the note of a request.
func (p *Process) sent(words string, n *note) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if n.goroutine != "" {
		p.alike.Add(-1)
	}
	first := p.notes[words]
	switch {
	case first != n:
		for before := first; before != nil; before = before.next {
			if before.next == n {
				before.next = n.next
			}
		}
	case n.next != nil:
		p.notes[words] = n.next
	default:
		delete(p.notes, words)
	}
}

// ask is a goroutine that waits for its turn. One that yields has no caller, author or words.
type ask struct {
	p      *Process
	caller Author
	by     Author // for whom it writes
	words  string
	sends  string // the content of the request, which no record shows
	yields bool
	rank   int // of a goroutine that yields
	turn   chan struct{}
}

// Asks makes the author of the calling goroutine the author of requests of these words, whichever
// goroutine writes them, and whenever. From the first call on, a request of the process for which
// no goroutine asked has no author.
//
// The world does not know the words of a segment. If the process never asks, the author of a
// segment is the author of the goroutine that writes it. From the first call of Asks on, it is the
// author whose turn it is. Words that are values of a lock then determine the hold that the segment
// is about.
//
// Asks waits until the world lets the caller continue. Goroutines that ask at one instant continue
// one by one, in the order of their threads, words and calls, whatever woke them. No simulated time
// passes. Any goroutine but the world's own, without a mutex.
func (p *Process) Asks(words []string) { p.AsksToSend("", words) }

// AsksToSend is Asks for a request whose content says more than its words. Goroutines that ask for the same
// words in the same call continue in the order of the contents. No record shows a content.
func (p *Process) AsksToSend(content string, words []string) {
	by := p.w.lineage.author(p)
	p.askForAll(by, by, content, words)
}

// Keeper returns a function that is Asks for requests that keep the hold of the calling thread on a
// lock, whichever goroutine calls the function. They belong to no call. The authors of other requests
// stay what they are.
func (p *Process) Keeper(lock string) func(words []string) {
	var by Author
	if t := p.w.lineage.caller(); t != nil {
		by = Author{Thread: t.name, Lock: lock, Kept: true}
	}
	return func(words []string) { p.ask(by, by, "", words) }
}

// Turn is Asks for requests that belong to no thread: the segments that are written in the
// turn have no author.
func (p *Process) Turn() { p.TurnToSend("") }

// TurnToSend is Turn for a request with a content, as in AsksToSend.
func (p *Process) TurnToSend(content string) {
	p.askForAll(p.w.lineage.author(p), Author{}, content, nil)
}

// Yield lets everything else that can happen at this instant happen first. Goroutines of the process that
// yield at one instant continue one by one, in the order of their ranks. No simulated time passes. The
// authors of requests stay what they are, unlike those after Asks. Any goroutine but the world's own,
// without a mutex.
func (p *Process) Yield(rank int) {
	p.w.await(&ask{p: p, yields: true, rank: rank, turn: make(chan struct{})})
}

// askForAll is ask, after which a request that nobody asked for has no author.
func (p *Process) askForAll(caller, by Author, content string, words []string) {
	p.w.mu.Lock()
	p.askedForAll = true
	p.w.mu.Unlock()
	p.ask(caller, by, content, words)
}

// ask waits for the turn of caller, which then writes a request with a content for by.
func (p *Process) ask(caller, by Author, content string, words []string) {
	w := p.w
	a := &ask{p: p, caller: caller, by: by, words: strings.Join(words, "\x00"), sends: content, turn: make(chan struct{})}
	w.mu.Lock()
	if p.asked == nil {
		p.asked = map[string]Author{}
	}
	p.asked[a.words] = a.by
	w.mu.Unlock()
	w.await(a)
	if p.turns != nil {
		p.takeTurn(by, words)
	}
}

// await waits for the turn of a.
func (w *World) await(a *ask) {
	w.mu.Lock()
	if w.noTurns {
		close(a.turn)
	} else {
		w.asks = append(w.asks, a)
	}
	w.mu.Unlock()
	w.bell.ring()
	<-a.turn
}

// Serves runs f, which starts a client that the calling thread has for one lock. A request
// of the goroutines that f starts belongs to the call on the lock that the thread is in at
// that time. If the thread is in no call, they write for the thread, and their requests
// renew its hold, if it has one. Any goroutine.
func (p *Process) Serves(lock string, f func()) { p.serve(lock, false, f) }

// Keeps is Serves for requests that belong to no call, even if the thread is in a call. An
// example are requests that the server answers much later. Any goroutine.
func (p *Process) Keeps(lock string, f func()) { p.serve(lock, true, f) }

func (p *Process) serve(lock string, keeps bool, f func()) {
	l := p.w.lineage
	t, done := l.caller(), make(chan struct{})
	go func() {
		defer close(done)
		if t != nil {
			l.serve(t, lock, keeps)
		}
		f()
	}()
	<-done
}

// nextAsk ends the current turn, and lets the first of the goroutines that ask continue. It reports
// false if there is none.
func (w *World) nextAsk() bool {
	if !w.asking {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn = nil
	if w.asking = len(w.asks) > 0; !w.asking {
		return false
	}
	first := slices.MinFunc(w.asks, func(a, b *ask) int {
		return cmp.Or(cmp.Compare(a.p.index, b.p.index), cmp.Compare(a.caller.Thread, b.caller.Thread), cmp.Compare(a.words, b.words),
			cmp.Compare(a.caller.Op, b.caller.Op), cmp.Compare(a.rank, b.rank), cmp.Compare(a.sends, b.sends))
	})
	w.asks = slices.DeleteFunc(w.asks, func(a *ask) bool { return a == first })
	w.turn = first
	close(first.turn)
	w.stirred = true
	return true
}

// endTurn ends the current turn.
func (w *World) endTurn() {
	if !w.asking {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn = nil
}

// endTurns lets every caller of Asks continue at once, from now on.
func (w *World) endTurns() {
	w.asking = true
	for w.nextAsk() {
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noTurns = true
}

// asksForAll reports whether a request that nobody asked for has no author.
func (p *Process) asksForAll() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.askedForAll
}

// asker returns the author that asked for a request of these words. If nobody asked for it, it
// returns the author that wrote the request, unless the process asks for all its requests.
func (p *Process) asker(words []string, writer Author) Author {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	by, ok := p.asked[strings.Join(words, "\x00")]
	if !ok && !p.askedForAll {
		return writer
	}
	return by
}

// speaker returns the author whose turn it is to write on a stream, and the words that it asked
// for. If it is nobody's turn, it returns the author that wrote, unless the process asks for all its
// requests.
func (p *Process) speaker(writer Author) (Author, []string) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	switch {
	case p.w.turn != nil && p.w.turn.p == p && !p.w.turn.yields:
		var words []string
		if p.w.turn.words != "" {
			words = strings.Split(p.w.turn.words, "\x00")
		}
		return p.w.turn.by, words
	case !p.askedForAll:
		return writer, nil
	}
	return Author{}, nil
}

// opOf returns the operation that sent these words. If several send the same words, it is the
// operation whose goroutine wrote them, since a client sends a request, and sends it again, in the
// goroutine of its caller.
func (p *Process) opOf(words []string, writer string) int {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	var joined [256]byte
	b := joined[:0]
	for i, word := range words {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, word...)
	}
	first := p.notes[string(b)]
	if first == nil {
		return 0
	}
	sentBy := func(goroutine string) *note {
		n := first
		for n != nil && n.goroutine != goroutine {
			n = n.next
		}
		return n
	}
	// The operation that began when no other was sending these words has no goroutine.
	return cmp.Or(sentBy(writer), sentBy(""), first).op
}

// goroutine returns the name of the calling goroutine, such as "goroutine 7". No
// record may show it.
func goroutine() string {
	var b [32]byte
	line := b[:runtime.Stack(b[:], false)]
	name, _, _ := bytes.Cut(line, []byte(" ["))
	return string(name)
}

// pause stops the world of p for d.
func (p *Process) pause(d int64) {
	w := p.w
	// Rounded down to a slot: the event that ends the pause must not come early.
	until := (w.now() + d) / slotNs * slotNs
	if until <= p.pausedUntil {
		return
	}
	p.pauses = append(p.pauses, [2]int64{w.now(), until})
	p.pausedUntil = until
	p.seat.pausedUntil, p.seat.held = w.start.UnixNano()+until, 0
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

// pausedBetween returns the time within [from, to] for which p was paused.
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
func (p *Process) afterPause(c Class, f func()) {
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

// crash kills p: its connections are cut, and its threads take no further step.
func (p *Process) crash() {
	if p.dead {
		return
	}
	p.dead = true
	for _, t := range p.threads {
		p.w.threads[t.state]--
	}
	p.w.mu.Lock()
	slices.SortStableFunc(p.conns, func(a, b *conn) int { // connections dialled together are in any order
		return cmp.Compare(uint(a.id-1), uint(b.id-1))
	})
	conns := slices.Clone(p.conns)
	p.w.mu.Unlock()
	for _, c := range conns {
		p.w.closeBehind(c, "cut")
	}
}

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

// afterPauseNow is afterPause, but without an event of its own if p is awake.
func (p *Process) afterPauseNow(c Class, f func()) {
	if p.paused() {
		p.afterPause(c, f)
		return
	}
	f()
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
