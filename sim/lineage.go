package sim

import (
	"bytes"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"lockstep/model"
)

// Author is the sender of a request, as far as the world can tell. The zero value is an
// unknown sender.
type Author struct {
	// Thread is process/thread; "": unknown.
	Thread string
	// Op is the operation in which the request was sent; 0: none, or unknown. Action and
	// Lock are those of the operation. If there is no operation, Lock is the lock for which a
	// value in the request was written, or else the lock that the thread took with a request of
	// the same words; "": none.
	Op     int
	Action model.Action
	Lock   string
	// Kept: without an operation, the request is about Lock if Thread holds it, and about no lock
	// otherwise. If Thread is unknown, it is like a request that prolonged a hold of Lock.
	Kept bool
	// Guessed: the goroutine that wrote the request works for no thread, and the operation is the only
	// one of its process that is under way; or Shared.
	Guessed bool
	// Shared: the operation began the goroutine that wrote the request, and others are under way in the process.
	// A client may write the requests of all in such a goroutine. At the end of the run the request may turn out to be
	// that of the operation.
	Shared bool

	in *helper // the goroutine, if the operation began it
}

// lineage finds the thread for which a goroutine works. A client that does not know Lockstep gives
// no operation with its commands. It sends them in the goroutine of its caller, in a goroutine that
// the caller started, or in one that serves the whole process. No record shows the number of a
// goroutine.
//
// Its methods may be called by any goroutine.
type lineage struct {
	mu    sync.Mutex
	roots map[root]*Thread       // by the root of its goroutine
	born  map[uint64]birth       // by goroutine
	calls map[*Thread]Author     // the calls under way
	open  map[*Process][]*Thread // the threads of the calls under way
}

// birth has the origin of a goroutine. The goroutine of a thread has no op. A goroutine without a
// thread serves the whole process.
type birth struct {
	thread *Thread
	op     int // the call under way in which the goroutine was first seen; -1: the thread's own goroutine
	// serves is the lock for which the goroutine, and the goroutines that it starts, serve the
	// thread, in any of its calls; "": none.
	serves string
	// keeps: it serves the thread outside its calls.
	keeps  bool
	helper *helper // it wrote in its op; nil otherwise
}

// helper is a goroutine that wrote in the call in which it began. It is common if it may write the requests of other
// calls, too: it went on to write after the call, or wrote several requests.
type helper struct{ common bool }

// newLineage makes the lineage of a world whose scheduler is the calling goroutine. The scheduler
// works for no thread.
func newLineage() *lineage {
	return &lineage{roots: map[root]*Thread{}, born: map[uint64]birth{ownNumber(): {}}, calls: map[*Thread]Author{}, open: map[*Process][]*Thread{}}
}

// register makes the calling goroutine the goroutine of a thread's body.
func (l *lineage) register(t *Thread) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.born[ownNumber()] = birth{thread: t, op: -1}
	if r, ok := ownRoot(); ok {
		l.roots[r] = t
	}
}

// serve makes the calling goroutine serve a thread for a lock. With keeps, it does so outside the
// calls of the thread.
func (l *lineage) serve(thread *Thread, lock string, keeps bool) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.born[ownNumber()] = birth{thread: thread, op: -1, serves: lock, keeps: keeps}
}

// caller returns the thread that the calling goroutine works for; nil if it is unknown.
func (l *lineage) caller() *Thread {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, b := l.find()
	return b.thread
}

// begins and ends bracket a call of a thread.
func (l *lineage) begins(t *Thread, op int, what Operation) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[t] = Author{Thread: t.name, Op: op, Action: what.Action, Lock: what.Lock}
	l.open[t.p] = append(l.open[t.p], t)
}

func (l *lineage) ends(t *Thread) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, t)
	var left []*Thread
	for _, other := range l.open[t.p] {
		if other != t {
			left = append(left, other)
		}
	}
	l.open[t.p] = left
}

// author returns the sender of what the calling goroutine writes on a connection of p.
// A goroutine that outlives the call in which it began, such as a watchdog, sends for
// its thread and for no operation. A goroutine of no thread, and one that wrote in its call and
// goes on after it, sends for the only call that is under way in the process.
func (l *lineage) author(p *Process) Author {
	if l == nil {
		return Author{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own, b := l.find()
	switch {
	case b.thread == nil:
	case b.serves != "":
		if a, ok := l.calls[b.thread]; ok && a.Lock == b.serves && !b.keeps {
			return a
		}
		return Author{Thread: b.thread.name, Lock: b.serves, Kept: true}
	case b.op < 0:
		if a, ok := l.calls[b.thread]; ok {
			return a
		}
		return Author{Thread: b.thread.name}
	default:
		a, ok := l.calls[b.thread]
		if ok && a.Op == b.op {
			if b.helper == nil {
				b.helper = &helper{}
				l.born[own] = b
			}
			a.Guessed, a.Shared, a.in = len(l.open[p]) > 1, len(l.open[p]) > 1, b.helper
			return a
		}
		if b.helper == nil {
			return Author{Thread: b.thread.name}
		}
		b.helper.common = true
	}
	if open := l.open[p]; len(open) == 1 {
		a := l.calls[open[0]]
		a.Guessed = true
		return a
	}
	return Author{}
}

// thread returns the name of the thread that the calling goroutine works for; "" if it is unknown.
func (l *lineage) thread() string {
	if t := l.caller(); t != nil {
		return t.name
	}
	return ""
}

// find returns the number and the origin of the calling goroutine; number 0 for that of a thread. It remembers the answer for the goroutine and
// for its forebears.
func (l *lineage) find() (own uint64, b birth) {
	if r, ok := ownRoot(); ok {
		if t := l.roots[r]; t != nil {
			return 0, birth{thread: t, op: -1}
		}
	}
	own, parent := parentage(ownStack())
	if b, ok := l.born[own]; ok {
		return own, b
	}
	b, ok := l.born[parent]
	if !ok {
		b = l.forebear(parent)
	}
	if b.thread != nil && b.op < 0 && b.serves == "" {
		b.op = l.calls[b.thread].Op
	}
	l.born[own] = b
	return own, b
}

// forebear looks for a known goroutine among the forebears of an unknown goroutine. It
// cannot find forebears that have ended.
func (l *lineage) forebear(g uint64) birth {
	parents := map[uint64]uint64{}
	for _, stack := range strings.Split(stacks(), "\n\n") {
		own, parent := parentage([]byte(stack))
		parents[own] = parent
	}
	for steps := 0; g != 0 && steps < 100; steps++ {
		if b, ok := l.born[g]; ok {
			return b
		}
		g = parents[g]
	}
	return birth{}
}

// A root is the outermost part of the stack of a thread's goroutine: the calls of numbered, which tell the
// threads of a world apart. To read it takes a twentieth of the time that the runtime takes to write a
// whole stack, whose first line alone has the number of the goroutine.
type root [rootBits + 2]uintptr

// rootBits is the number of bits of a number in a stack. Further threads have no root.
const rootBits = 8

// numbered calls f with n in the stack: each bit of n is one of two places at which numbered calls itself.
//
//go:noinline
func numbered(n, bits int, f func()) {
	switch {
	case bits == 0:
		f()
	case n%2 == 0:
		numbered(n/2, bits-1, f)
	default:
		numbered(n/2, bits-1, f)
	}
}

// innermost is the place at which numbered calls f.
var innermost = func() (place uintptr) {
	numbered(0, 0, func() {
		var calls [1]uintptr
		runtime.Callers(2, calls[:])
		place = calls[0]
	})
	return place
}()

// ownRoot returns the root of the calling goroutine, and false if it has none.
func ownRoot() (r root, ok bool) {
	var calls [128]uintptr
	n := runtime.Callers(0, calls[:])
	if n < len(r) || n == len(calls) || calls[n-len(r)] != innermost {
		return root{}, false
	}
	return root(calls[n-len(r) : n]), true
}

// ownStack returns the stack of the calling goroutine. The line that names its parent
// is the last but one.
func ownStack() []byte {
	for size := 8 << 10; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, false); n < size {
			return buf[:n]
		}
	}
}

// ownNumber returns the number of the calling goroutine.
func ownNumber() uint64 {
	var b [64]byte
	own, _ := parentage(b[:runtime.Stack(b[:], false)])
	return own
}

// parentage reads the number of a goroutine and of the one that started it out of the goroutine's
// stack. A number is 0 if the stack has none.
func parentage(stack []byte) (own, parent uint64) {
	head := bytes.TrimPrefix(stack, []byte("goroutine "))
	own = leadingNumber(head)
	const mark = " in goroutine "
	if i := bytes.LastIndex(stack, []byte(mark)); i >= 0 {
		parent = leadingNumber(stack[i+len(mark):])
	}
	return own, parent
}

func leadingNumber(b []byte) uint64 {
	end := 0
	for end < len(b) && '0' <= b[end] && b[end] <= '9' {
		end++
	}
	n, _ := strconv.ParseUint(string(b[:end]), 10, 64)
	return n
}
