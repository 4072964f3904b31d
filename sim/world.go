package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"lockstep/model"
)

// ErrInterrupted is the cause of a context that Thread.Interrupt cancelled.
var ErrInterrupted = errors.New("interrupted")

// Config is a world before it starts.
type Config struct {
	Chooser Chooser
	// Orders, unless nil, puts the world in a mode without latencies.
	Orders *Orders
	// LatencyMin and LatencyMax bound the time that a message takes one way. If they are equal,
	// nothing is drawn.
	LatencyMin, LatencyMax time.Duration
	// Nodes are the servers of the world. Each process can dial each of them.
	Nodes     []Node
	Processes []ProcessConfig
	// A fault strikes the nodes that it names, or all nodes if it names none.
	Faults    []model.FaultSpec
	Resources map[string]int64
	// Name returns the meaning of the words of a request: the role of its script, the locks, and
	// the owners. The author is unknown unless Lineage is set.
	Name func(words []string, by Author) Command
	// Lineage lets the world find the author of a request by the goroutine that writes
	// it, for clients that do not call Process.Sending.
	Lineage bool
	// State returns the state that the servers together hold for a lock, if a lock is kept on
	// several nodes; nil: the node that has a lock among its Locks keeps it alone. The holder and
	// the waiters in the state are values that the lock wrote. The world learns which threads they
	// stand for, for which it needs Lineage. Locks are the locks whose state is recorded.
	State func(nowNs int64, lock string) *model.LockState
	Locks []string
	// Quiet is the time without a fault or a step after which all clients leave.
	Quiet time.Duration
	// Settle takes the place of Quiet when every thread is done and nobody waits.
	Settle time.Duration
	// Drain is the time for which the world goes on after all clients have left, so that leases
	// end.
	Drain time.Duration
	// MaxEvents ends a run that never comes to rest; 0: MostSteps does, or Host.MostSteps.
	MaxEvents int
	Params    model.Params
}

// ProcessConfig is one process of a world.
type ProcessConfig struct {
	Name     string
	Threads  int
	Offset   time.Duration // of its wall clock
	DriftPPM int64
}

// Command is the meaning of a request, which Config.Name returns.
type Command struct {
	Script model.Role
	Locks  []string // of which locks
	Owners []string // for whom, as process/thread; parallel to Locks or empty
}

// EpochMs is the time at which every bubble begins, in Unix milliseconds. Servers
// read it at the start of a run.
var EpochMs = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// World is a running world. Unless a comment says otherwise, only the setup function
// and threads call its methods.
type World struct {
	cfg     Config
	start   time.Time
	nowNs   int64 // see now
	chooser Chooser
	rec     *model.Record

	sched     schedule
	orders    *orders                     // nil: messages have latencies
	lineage   *lineage                    // nil: clients say which operation a request belongs to
	owners    *Owners                     // nil: states name threads
	held      map[string]*model.LockState // the last result of Config.State
	read      int                         // of the states of locks: see mostRead
	began     map[string]*message         // by lock, the request that made it held last
	helped    []helped                    // the requests that helpers wrote
	lookNs    int64                       // when the locks of Config.State are read next; 0: no time is planned
	writers   map[int][]Site              // see Result; nil if the host is not traced
	processes []*Process
	threads   [threadDone + 1]int // of the processes that live, by state
	nodes     []*node
	rules     []*rule
	waiting   []*rule    // the rules that wait for something that has not happened
	forgets   bool       // a fault may remove keys
	ran       []*message // the requests that servers executed, if a fault may remove keys
	resources *Resources
	msgs      int
	conns     []*conn // those with a number, in its order
	ops       int
	calm      bool
	leaving   bool
	// orphans are the calls of dead processes' threads that are open when all leave.
	orphans   []*call
	seats     uint64 // the seed of the keys of seats
	alive     *pulse
	over      bool  // connections are gone, nothing is recorded
	faultsDue int   // timed faults that have not ended
	moved     int64 // the last time a thread took a step or a fault began or ended
	endAt     int64 // the end of the phase of leaving
	endedNs   int64 // the end of the run, when all that sleep have ended
	instants  int   // the number of Instants given out; guarded by mu
	// stirred reports that the scheduler or time may have woken a goroutine since all were blocked.
	// It is set after every event, except those that are known to wake no goroutine.
	stirred bool
	asking  bool // somebody had a turn or asked for one when the scheduler last took what was posted
	// lockPanics are the panics of the lock that are in the record.
	lockPanics []Panic

	mu    sync.Mutex // guards what other goroutines post
	posts []*Thread
	dirty []*socket
	asks  []*ask
	turn  *ask // the last one that got its turn, until its effects are collected
	// watches are the watches that have not ended. closed are the watches whose channel was
	// closed since the scheduler last looked.
	watches, closed []*watch
	panics          []panicked
	// noTurns is set at the end, when goroutines no longer wait for turns.
	noTurns bool
	bell    bell // rings when something is posted

	// The following fields are memory that is used again.
	gathered  []*Thread
	touched   []*socket
	collected []*conn
	requests  []Request
	pushed    []Push
	effects   []*Effects
}

// Result is what a run leaves behind.
type Result struct {
	Record *model.Record
	Steps  int // events that the scheduler let happen
	// Stopped reports that a Watcher ended the run early.
	Stopped bool
	// Writers has the code that wrote each message, by the number of the message. The innermost place
	// comes first. No place is in the standard library or in the world. Only a traced host notes them.
	Writers map[int][]Site
	// Panics are the panics of the lock under test, in the order of the record.
	Panics []Panic
	SimNs  int64 // simulated time from the start until all had left
}

// Run builds a world, calls setup inside it, which gives the threads their bodies, and plays it to
// its end. If the host is a guest, a panic of setup goes on in the caller, since the binary must
// not end. The world is then left as it is.
func Run(h *Host, cfg Config, setup func(*World)) Result {
	var res Result
	var panicked any
	var w *World
	alive := newPulse()
	left := h.bubble(alive, func() bool {
		w = newWorld(cfg)
		h.enter(w, alive)
		w.begin(h.NoShortcuts)
		if panicked = h.guard(func() { setup(w) }); panicked != nil {
			return false
		}
		w.loop(&res, h)
		w.end()
		return true
	})
	if panicked != nil {
		panic(panicked)
	}
	for _, g := range leftGoroutines(left, w.processes) {
		w.rec.Add(model.Event{AtNs: w.endedNs, Kind: model.KindLeft, Text: "goroutine " + g.Started, Goroutine: &g})
	}
	w.settle()
	w.rec.Events = eventSpace.moveOut(w.rec.Events)
	res.Record, res.Writers, res.Panics = w.rec, w.writers, w.lockPanics
	return res
}

// newWorld builds a world that has not begun.
func newWorld(cfg Config) *World {
	w := &World{
		cfg: cfg, chooser: cfg.Chooser,
		rec:       &model.Record{Params: cfg.Params, Events: eventSpace.take(0)},
		resources: NewResources(cfg.Resources),
		stirred:   true,
	}
	w.rec.Params.Faults = cfg.Faults
	if cfg.Orders != nil {
		w.orders = &orders{Orders: *cfg.Orders, w: w, lines: map[string]*line{}}
		w.sched.orders = w.orders
	}
	if cfg.Lineage {
		w.lineage = newLineage()
	}
	if cfg.State != nil {
		w.owners, w.held, w.began = NewOwners(), map[string]*model.LockState{}, map[string]*message{}
	}
	for i, pc := range cfg.Processes {
		p := &Process{w: w, index: i, cfg: pc, object: "process " + pc.Name, latencies: map[string]string{}, notes: map[string]*note{},
			cutUntil: make([]int64, len(cfg.Nodes))}
		p.entropy = w.chooser.Choose("entropy/"+pc.Name, 1<<62)
		p.addThreads()
		w.processes = append(w.processes, p)
	}
	for i, n := range cfg.Nodes {
		w.nodes = append(w.nodes, w.newNode(i, n))
	}
	return w
}

// begin starts the servers and plans the faults. Time counts from the instant at which all servers
// serve.
func (w *World) begin(noShortcuts bool) {
	for _, n := range w.nodes {
		if n.stream != nil {
			runIn(seat{key: w.seatKey("server " + n.Addr), draw: true}, func() { n.stream.boot(w.setupOf(n, noShortcuts), w.bell.ring, w.instant) })
			synctest.Wait()
		}
	}
	w.start = time.Now()
	w.setClocks()
	for _, n := range w.nodes {
		if n.stream != nil && n.stream.failed != nil {
			w.record(&model.Event{Kind: model.KindDefect, Unstarted: true, Text: fmt.Sprintf("the server at %s did not start: %v", n.Addr, n.stream.failed)})
		}
		n.Server.Start(w.setupOf(n, noShortcuts))
	}
	for _, n := range w.nodes {
		n.plan()
	}
	w.plan(w.cfg.Faults)
}

// setupOf returns the facts of the run that a node's server is given.
func (w *World) setupOf(n *node, noShortcuts bool) Setup {
	setup := Setup{Start: w.start, Orders: w.cfg.Orders, NoShortcuts: noShortcuts}
	for _, f := range w.cfg.Faults {
		if slices.Contains(w.struck(f), n) {
			setup.Faults = append(setup.Faults, f)
		}
	}
	return setup
}

// now returns the simulated time since the start in nanoseconds. Only the scheduler may call it. Other
// goroutines call Now.
func (w *World) now() int64 { return w.nowNs }

// Now returns the simulated time since the start. Any goroutine.
func (w *World) Now() time.Duration { return since(w.start) }

// readClock makes now return the present time. The scheduler calls it after time may have passed, which is
// when it slept.
func (w *World) readClock() { w.nowNs = int64(w.Now()) }

// record adds a copy of e, with the current time, to the record.
func (w *World) record(e *model.Event) {
	if w.over {
		return
	}
	e.AtNs = w.now()
	w.see(e.Kind)
	w.rec.Add(*e)
	if len(w.waiting) > 0 {
		w.heard(e)
	}
}

// relieveEvery is the number of steps after which a run checks its memory, and asks whether it
// should go on. It also does after so many reads of the states of locks, each of which takes memory.
const (
	relieveEvery = 1024
	relieveReads = 1_000_000
)

// MostSteps is the number of steps after which a run ends that never comes to rest. The longest runs of
// campaigns take some 20 000; a client that tries again at once, without end, takes any number. The
// record of so many steps takes some 150 MB.
const MostSteps = 100_000

// mostRead limits what a run reads of the states of locks, and with it the time and the memory of a run with
// thousands of locks or waiters. A state is 1, and each waiter in a state that is recorded is 10: some 200 MB in all.
// A campaign reads less than a twentieth of it.
const mostRead = 20_000_000

// loop is the scheduler.
func (w *World) loop(res *Result, h *Host) {
	limit := cmp.Or(w.cfg.MaxEvents, h.MostSteps, MostSteps)
	if h.MostSteps > 0 {
		limit = min(limit, h.MostSteps)
	}
	relief, reliefRead := relieveEvery-1, relieveReads
	for {
		w.gather()
		if res.Steps >= relief || w.read >= reliefRead {
			relief, reliefRead = res.Steps+relieveEvery, w.read+relieveReads
			garbage.relieve()
			if h.Stopped() {
				break
			}
		}
		aged := w.now() >= int64(model.LongestRun)
		if w.read >= cmp.Or(h.MostRead, mostRead) || aged && !w.leaving {
			limit = min(limit, max(res.Steps, 1))
		}
		if res.Steps >= limit && !w.leaving {
			text := fmt.Sprintf("the run did not come to rest within %d events", limit)
			if aged {
				text = "the run did not come to rest within 200 years"
			}
			w.record(&model.Event{Kind: model.KindDefect, Limit: limit, Text: text})
			w.leave()
		}
		if res.Steps >= 2*limit {
			break
		}
		e, at := w.sched.next(w.now())
		res.Steps += w.sched.takePassed()
		if wait, done := w.rest(e, at); done {
			break
		} else if wait > 0 {
			if wait >= slotNs {
				w.orders.settle()
			}
			w.sleep(wait)
			continue
		}
		res.Steps++
		w.alive.steps.Store(int64(res.Steps))
		w.stirred = true
		if e.choice {
			if w.sched.last = w.now(); !w.orders.choose() {
				res.Stopped = true
				break
			}
			w.stirred = true
			continue
		}
		w.sched.pop(max(at, w.now()))()
	}
	w.orders.settle()
	res.SimNs = w.now()
}

// rest returns the time to sleep before the next event, 0 if the event is due. done reports
// that the run is over. A run has three phases: with faults, calm, and leaving. A phase ends
// when no thread has taken a step for Quiet.
func (w *World) rest(e *event, at int64) (wait int64, done bool) {
	now := w.now()
	until := w.endAt
	if !w.leaving {
		until = w.moved + int64(w.cfg.Quiet)
		if w.allDone() {
			until = w.moved + int64(w.cfg.Settle)
		}
		if !w.idle() || w.faultsDue > 0 {
			until = math.MaxInt64
		}
	}
	switch {
	case now >= until && w.leaving:
		return 0, true
	case now >= until && w.calm:
		w.leave()
		return 1, false
	case now >= until:
		w.heal()
		return 1, false
	case e != nil && at <= until:
		return max(0, at-now), false
	case until == math.MaxInt64:
		// Steps are under way but no event is due: time belongs to the timers
		// of the code under test.
		return int64(time.Second), false
	default:
		return until - now, false
	}
}

// sleep lets simulated time pass until something is posted, at most d ns.
func (w *World) sleep(d int64) {
	w.bell.sleep(time.Duration(d))
	w.readClock()
	w.stirred = true
}

// gather waits until all other goroutines are blocked, and takes what they posted, in a stable
// order. It does not wait if no goroutine was woken or has posted anything since all were blocked.
func (w *World) gather() {
	for {
		if w.stirred || w.bell.rings() {
			synctest.Wait()
			w.alive.park()
			w.stirred = false
		}
		w.rests()
		if !w.bell.stop() { // nothing was posted
			if w.nextAsk() {
				continue
			}
			return
		}
		w.mu.Lock()
		threads, sockets := w.posts, w.dirty
		closed, panics := w.closed, w.panics
		w.closed, w.panics = nil, nil
		w.posts, w.dirty = w.gathered[:0], w.touched[:0]
		w.gathered, w.touched = threads, sockets
		w.asking = len(w.asks) > 0 || w.turn != nil
		for _, s := range sockets {
			s.posted = false
		}
		w.mu.Unlock()
		if len(closed) > 0 {
			w.recordTold(closed)
			w.stirred = true
		}
		slices.SortFunc(panics, func(a, b panicked) int { return cmp.Compare(a.p.index, b.p.index) })
		for _, x := range panics {
			w.defect(Panic{Process: x.p.cfg.Name, Value: x.value, Frames: x.frames}, "the client panicked when it was closed: "+x.value)
		}
		slices.SortFunc(threads, func(a, b *Thread) int {
			return cmp.Or(cmp.Compare(a.p.index, b.p.index), cmp.Compare(a.number, b.number))
		})
		for _, t := range threads {
			t.handle()
		}
		w.collect(sockets)
		w.endTurn()
	}
}

// idle reports whether no thread has a step before it: all are finished, dead or in a call.
func (w *World) idle() bool { return w.threads[threadStepping] == 0 }

func (w *World) allDone() bool { return w.idle() && w.threads[threadCalling] == 0 }

func (w *World) process(name string) *Process {
	for _, p := range w.processes {
		if p.cfg.Name == name {
			return p
		}
	}
	return nil
}

// Process returns the process with a name, or nil if there is none.
func (w *World) Process(name string) *Process { return w.process(name) }

// latency draws the time that a message of p is under way.
func (w *World) latency(p *Process, dir string) int64 {
	stream, ok := p.latencies[dir]
	if !ok {
		stream = "latency/" + p.cfg.Name + "/" + dir
		p.latencies[dir] = stream
	}
	return w.between(w.cfg.LatencyMin, w.cfg.LatencyMax, stream)
}

// between draws a length. It draws nothing if both bounds are equal, or in a world of Orders.
func (w *World) between(min, max time.Duration, stream string) int64 {
	lo, hi := int64(min), int64(max)
	if w.orders != nil {
		return 0
	}
	if hi <= lo {
		return lo
	}
	steps := uint64((hi-lo)/slotNs) + 1
	return lo + int64(w.chooser.Choose(stream, steps))*slotNs
}

// State returns the state that a server holds for a lock now, nil for none. It asks the first node
// that keeps the lock, or the first node of all if none does.
func (w *World) State(lock string) *model.LockState {
	if w.cfg.State != nil {
		return w.owners.Name(lock, w.cfg.State(w.now(), lock), nil)
	}
	if len(w.nodes) == 0 {
		return nil
	}
	at := max(0, slices.IndexFunc(w.nodes, func(n *node) bool { return slices.Contains(n.Locks, lock) }))
	return w.nodes[at].parts.State(w.now(), lock)
}

// OpReply returns the reply to the first or the last execution of a command in that role that an
// operation sent. ok is false if none was executed.
func (w *World) OpReply(op int, role model.Role, last bool) (reply string, ok bool) {
	for _, e := range w.rec.Events {
		if e.Kind == model.KindExec && e.Op == op && e.Script == role && e.Answer != model.NotRun {
			reply, ok = e.Reply, true
			if !last {
				return reply, ok
			}
		}
	}
	return reply, ok
}

type callKey struct{}

// callOf returns the operation for which ctx was made, or 0.
func callOf(ctx context.Context) int {
	op, _ := ctx.Value(callKey{}).(int)
	return op
}
