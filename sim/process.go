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
		// The end of a connection arrives after what was written before it.
		at := max(p.w.now()+p.w.latency(p, "cut"), c.lastOut)
		p.w.sched.addTo(c.outLine, at, ClassDelivery, func() { p.w.disconnect(c) }, nil)
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
