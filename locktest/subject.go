package locktest

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"lockstep/internal/counted"
	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Subject is a lock under test.
type Subject struct {
	// Name is the name of the lock in verdicts and folders.
	Name  string
	About string // one line for people
	// Advice says in a sentence or two when to take the lock and when not. A survey shows it.
	Advice string
	// Policy says in a sentence what the code around the library does where the library leaves it open:
	// which session a hold has, what is tried again, and what follows a failure. A survey shows it.
	Policy string
	// OnlySimulated reports whether no program starts the servers of the lock, which exist only in
	// the world.
	OnlySimulated bool
	// Servers are the servers that the world has, such as redistest.Servers(1).
	Servers Servers
	// Open makes the client of a process. It is called once for each process. It may ask
	// the servers, under whatever faults there are; the calls of the process wait for it,
	// and have an unknown outcome if it fails.
	Open func(*Process) (Client, error)
	// Lease is the time after its grant at which a hold ends unless it is renewed; 0: no
	// lease. Then an unlock ends a hold, or the end of its session, or nothing, and the
	// Expires of its State is negative.
	Lease time.Duration
	// Recovery is the time for which servers may serve nobody after a fault that interrupts them, for
	// example because they elect another master and clients look for it. 0: the time that its Servers
	// know, or they serve again when the fault is over.
	Recovery time.Duration
	// Reconnect is the longest time that a client waits before it connects again, after a fault
	// that met its connections is over. A client whose waits grow with each attempt that fails
	// has their limit here. 0: the time that its Servers know, or it connects within seconds.
	Reconnect time.Duration
	// Waits is the longest time, by the lock's design, for which a waiter does not get a lock that is
	// free, such as its pause between two tries, or a lease that it counts from its own look at the
	// server. A lock whose release wakes one waiter needs it, too: that waiter may die, or be given up, and the others
	// sleep until they ask by themselves. The judge of liveness adds it to each of its bounds. 0: a waiter gets a free lock within a second.
	Waits time.Duration
	// Parts is the number of keys of a hold, if a lock has several keys on one server. The
	// owner needs the majority of them. 0 means one key per server.
	Parts int
	// Renewed reports whether the lock itself renews the lease of a live holder.
	Renewed bool
	// RenewEvery is the longest time between two renewals of a hold, if the lock is Renewed; 0
	// means a third of Lease. It is a bug to lose a hold whose holder was undisturbed for longer
	// than that before its lease ended. So a lock that loses or gives up a hold after one renewal
	// that failed has such a bug, unless RenewEvery is more than half of its Lease.
	RenewEvery time.Duration
	// Fair reports whether waiters are served in the order in which they came.
	Fair bool
	// Reentrant reports whether a thread may take a lock that it holds, and gives it up
	// with as many unlocks. State must then give the Count of levels.
	Reentrant bool
	// Idempotent reports whether a thread that holds the lock and takes it again is granted at once
	// although nothing counts the grants: one unlock ends the hold. A lock whose hold belongs to a
	// session is often so. A lock is not Idempotent and Reentrant.
	Idempotent bool
	// Promises switches judges off. The zero value promises what the traits imply.
	Promises Promises
	// State returns what the servers hold for a lock; nil: nothing. The judges of mutual
	// exclusion, misdelete, lease, liveness, tidiness, order and linearizability ask it.
	State func(s Snapshot, lock string) *State
	// NoState says why a lock has no State. These judges are then not asked, and a test
	// that passes says little. A subject has either State or NoState.
	NoState string
	// Kept returns the keys of a lock that may stay when everybody has left, such as a
	// counter of fencing tokens; nil: none may.
	Kept func(lock string) []string
}

// State is what the servers hold for one lock. Owner and Queue are the values that the
// lock wrote to mark a holder or a waiter. Lockstep learns from the run which thread
// wrote a value.
type State struct {
	Owner string // "": the lock is free, or Closed. A lock that writes no value gives another mark of the hold, such as its session
	Count int    // levels of the hold, if the lock is Reentrant; 0 counts as 1
	// Closed: nobody holds the lock, and nobody can have it before Expires, such as in the
	// time for which a lock stays closed when its last holder has failed.
	Closed bool
	// Expires is the time since the start at which the hold ends, or the time in which the lock
	// is closed; negative: the hold has no end. Whole milliseconds count.
	Expires time.Duration
	Token   int64    // the newest fencing token; 0: none
	Queue   []string // waiters, the next one first
}

// Servers makes the servers of a world. Packages for one kind of server, such as
// redistest, implement it.
type Servers interface {
	// Count returns the number of servers, which know nothing of one another.
	Count() int
	// Nodes returns the servers of a new world and the addresses at which they answer.
	Nodes() []sim.Node
}

// Checked is Servers that may have been described in a wrong way. The subject is then refused when it is judged.
type Checked interface {
	Servers
	// Check returns an error that says what is wrong, and what to do.
	Check() error
}

// Timed is Servers that know the Recovery and the Reconnect of their locks. A subject gets each that it leaves 0.
type Timed interface {
	Servers
	Times() (recovery, reconnect time.Duration)
}

// Ticking is Servers that end holds at the ticks of a clock. A hold may last for up to a tick less than its lease.
type Ticking interface {
	Servers
	Tick() time.Duration
}

// Snapshot gives State the servers as they are at one instant.
type Snapshot struct {
	nowNs int64
	nodes []sim.Node
}

// Servers returns the number of servers.
func (s Snapshot) Servers() int { return len(s.nodes) }

// Server returns the server with that number, counted from 0. A package for its kind of
// server, such as redistest, reads it.
func (s Snapshot) Server(i int) sim.Server {
	checkServer(i, len(s.nodes))
	return s.nodes[i].Server
}

// checkServer panics if there is no server with a number.
func checkServer(i, n int) {
	if i < 0 || i >= n {
		panic(fmt.Sprintf("locktest: there is no server %d; they count from 0, and the subject has %s", i, counted.Of(n, "server")))
	}
}

// Now returns the simulated time since the start.
func (s Snapshot) Now() time.Duration { return time.Duration(s.nowNs) }

// Start returns the wall clock of the start. If a lock writes the end of a hold by a wall clock, Expires is the
// time from Start to that end.
func (s Snapshot) Start() time.Time {
	if r, ok := s.Server(0).(interface{ StartMs() int64 }); ok { // a server that also shows instants before the present one
		return time.UnixMilli(r.StartMs())
	}
	return time.Now().Add(-s.Now())
}

// Promises are the judges that a lock does not answer to, each with the reason, such as
//
//	Promises{NotTraffic: "a waiter asks every 20 ms, so that it gets the lock soon"}
//
// An empty reason leaves the judge on.
type Promises struct {
	NotMutualExclusion string // at most one owner at a time
	NotMisdelete       string // an unlock of somebody else's hold is refused
	NotLinearizable    string // all answers fit one order of grants and releases
	NotLease           string // a hold ends with its lease and not before
	NotLiveness        string // a free lock is given to a waiter
	NotWaitBound       string // a timed try ends with its wait
	NotTraffic         string // a waiter does not ask without a pause
	NotTidy            string // nothing stays behind
	NotFIFO            string // waiters of a fair lock are served as they came
	NotFencing         string // the token of a hold is greater than all before
}

// byJudge lists the switches with their judges.
func (p Promises) byJudge() map[string]string {
	return map[string]string{
		model.JudgeMutualExclusion: p.NotMutualExclusion, model.JudgeMisdelete: p.NotMisdelete, model.JudgeLinearizable: p.NotLinearizable,
		model.JudgeLease: p.NotLease, model.JudgeLiveness: p.NotLiveness, model.JudgeWaitBound: p.NotWaitBound,
		model.JudgeTraffic: p.NotTraffic, model.JudgeTidy: p.NotTidy, model.JudgeFIFO: p.NotFIFO, model.JudgeFencing: p.NotFencing,
	}
}

// serverJudges are the judges that ask what the server holds.
var serverJudges = []string{
	model.JudgeMisdelete, model.JudgeLease, model.JudgeLiveness, model.JudgeTidy, model.JudgeFIFO, model.JudgeHoldCount, model.JudgeLinearizable, model.JudgeMutualExclusion,
}

// Process is one process of a world. Its methods may be called by any goroutine.
type Process struct {
	p     *sim.Process
	addrs []string
	// astray is told of each address that the process dialled and that is none of addrs.
	astray func(addr string)
	rand   *rand.Rand
	close  []func() // added by Open

	mu     sync.Mutex
	values map[string]string // by the values in whose place they stand
}

// Name returns the name of the process, which no other process of the world has.
func (p *Process) Name() string { return p.p.Name() }

// DialContext opens a connection to a server of the world. Any client with a dial hook
// can use it.
func (p *Process) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if !slices.Contains(p.addrs, addr) {
		p.astray(addr)
	}
	return p.p.DialContext(ctx, network, addr)
}

// Addr returns the address, as host:port, of the server with that number, counted from 0.
func (p *Process) Addr(i int) string {
	checkServer(i, len(p.addrs))
	return p.addrs[i]
}

// Now reads the wall clock of the process, which faults of the class clock set apart from the clocks
// of the servers and of other processes. In a test that is built without the overlay they do not change
// time.Now, which is one clock for all processes: a lock that trusts the wall clock of its client must read
// this one.
func (p *Process) Now() time.Time { return p.p.Now() }

// Rand returns the source of chance of the process. It repeats with the seed.
func (p *Process) Rand() *rand.Rand { return p.rand }

// Asks says that the calling goroutine asks for a request of these words. It is for
// clients that write the requests of several goroutines in one goroutine of their own.
// Without it a request belongs to the goroutine that writes it. From the first call on, a
// request of the process that nobody asked for, such as a PING, belongs to nobody.
//
// Goroutines that ask at one instant go on one by one, in an order that repeats. No
// simulated time passes. The caller holds no mutex.
func (p *Process) Asks(words ...string) { p.p.Asks(words) }

// AsksToSend is Asks for a request whose content says more than its words, such as a message of gRPC, whose
// word is its method. Goroutines that ask for the same words at one instant go on in the order of the
// contents. No timeline shows a content.
func (p *Process) AsksToSend(content string, words ...string) { p.p.AsksToSend(content, words) }

// Keeper returns a function that is Asks for requests that renew the hold of the calling thread on
// a lock, and belong to no call. It is for clients that renew the holds of all threads in one
// goroutine. Other requests belong to the goroutines that write them, as long as nobody calls Asks.
func (p *Process) Keeper(lock string) func(words ...string) {
	asks := p.p.Keeper(lock)
	return func(words ...string) { asks(words) }
}

// Value replaces a value that a library draws at random, such as the value of a holder from
// math/rand/v2, by one that is the same in each run with the same seed. Equal drawn values
// have equal replacements, and different ones have different replacements. An adapter that
// can change the requests of its library sends the replacement.
func (p *Process) Value(drawn string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.values == nil {
		p.values = map[string]string{}
	}
	if p.values[drawn] == "" {
		p.values[drawn] = crand.Text()
	}
	return p.values[drawn]
}

// Serves runs f, which starts a client that the calling thread has for one lock, such as a session. A
// request of that client's goroutines belongs to the call that the thread is in when it is written.
// Outside of calls it renews the hold that the thread has, if it has one. Without Serves, what these
// goroutines send belongs to the call that started them while it lasts, and to no call after that.
func (p *Process) Serves(lock string, f func()) { p.p.Serves(lock, f) }

// Keeps is Serves for a client whose requests belong to no call, even while the thread is in one. It is for
// requests that the server answers much later.
func (p *Process) Keeps(lock string, f func()) { p.p.Keeps(lock, f) }

// Turn is Asks for requests that belong to no thread. It is for clients of a server that
// speaks a stream.
func (p *Process) Turn() { p.p.Turn() }

// TurnToSend is Turn for a request with a content, as in AsksToSend.
func (p *Process) TurnToSend(content string) { p.p.TurnToSend(content) }

// OnClose adds a function that runs when the process ends in order, after the Close of
// its client. Only Open may call it.
func (p *Process) OnClose(f func()) { p.close = append(p.close, f) }

// Sim returns the process as package sim has it, for packages that adapt a client
// library.
func (p *Process) Sim() *sim.Process { return p.p }

// check returns an error that names the subject and a field that is missing or wrong.
func (s Subject) check() error {
	wrong := ""
	checked, ok := s.Servers.(Checked)
	switch {
	case s.Name == "":
		return errors.New("a subject has no Name; give it one, such as \"orders\"")
	case s.Open == nil:
		wrong = "has no Open; give it a function that makes the client of a process"
	case s.Servers == nil:
		wrong = "has no Servers; give it redistest.Servers(1), or those of another server package"
	case s.Servers.Count() < 1:
		wrong = fmt.Sprintf("has %d servers; give it at least one, such as by redistest.Servers(1)", s.Servers.Count())
	case ok && checked.Check() != nil:
		wrong = "has wrong Servers: " + checked.Check().Error()
	case s.State == nil && s.NoState == "":
		wrong = "has no State, without which most judges cannot be asked, that of mutual exclusion among them; give it one, such as redistest.Value(nil) for a key of Redis, or say in NoState why it has none"
	case s.State != nil && s.NoState != "":
		wrong = "has a State and says in NoState why it has none; take one of them away"
	case s.Parts < 0:
		wrong = fmt.Sprintf("has %d Parts; give it the number of keys of a hold, or 0 for one per server", s.Parts)
	case s.Lease < 0:
		wrong = fmt.Sprintf("has the negative Lease %v; give it the time after which a hold ends by itself, or 0 if it does not", s.Lease)
	case s.Recovery < 0:
		wrong = fmt.Sprintf("has the negative Recovery %v; give it the time in which its servers may elect a master, or 0", s.Recovery)
	case s.Reconnect < 0:
		wrong = fmt.Sprintf("has the negative Reconnect %v; give it the longest wait of a client before it connects again, or 0", s.Reconnect)
	case s.Waits < 0:
		wrong = fmt.Sprintf("has the negative Waits %v; give it the longest time for which a waiter may not get a free lock, or 0", s.Waits)
	case s.Idempotent && s.Reentrant:
		wrong = "is Reentrant and Idempotent; leave Reentrant if a hold ends after as many unlocks as grants, and Idempotent if one unlock ends it"
	case s.Lease == 0 && s.Renewed:
		wrong = "is Renewed and has no Lease; give it the Lease that is renewed, or take Renewed away"
	case s.RenewEvery != 0 && !s.Renewed:
		wrong = "has a RenewEvery and is not Renewed; set Renewed, or take RenewEvery away"
	case s.RenewEvery < 0 || s.RenewEvery > s.Lease:
		wrong = fmt.Sprintf("has the RenewEvery %v; give it a time of its Lease of %v at most, or 0 for a third of it", s.RenewEvery, s.Lease)
	case s.Lease > 0 && s.Lease < time.Millisecond:
		wrong = fmt.Sprintf("has the Lease %v; give it one millisecond at least", s.Lease)
	default:
		return nil
	}
	return fmt.Errorf("subject %q %s", s.Name, wrong)
}

// renewEvery returns the longest time between two renewals, or between two extensions by a caller.
func (s Subject) renewEvery() time.Duration {
	if s.Renewed {
		return cmp.Or(s.RenewEvery, s.Lease/3)
	}
	return s.Lease
}

// compile returns the subject as the rest of Lockstep has it. offers says what its locks
// offer.
func (s Subject) compile(offers offers) *subject.Subject {
	servers := &servers{of: s}
	out := &subject.Subject{
		Name: s.Name, About: s.About, Advice: s.Advice, Policy: s.Policy, OnlySimulated: s.OnlySimulated,
		Traits: model.Traits{Parts: s.Parts, Fair: s.Fair, Uncounted: !s.Reentrant, Idempotent: s.Idempotent, PerGrant: true, NoWatchdog: !s.Renewed, Watched: offers.watched, Fenced: offers.fenced, Extends: offers.extends, Endless: s.Lease == 0},
		Times: func(time.Duration) model.Timing {
			t := model.Timing{Watchdog: s.Lease, RenewalPeriod: s.renewEvery(), Recovery: s.Recovery, Reconnect: s.Reconnect, Waits: s.Waits}
			if timed, ok := s.Servers.(Timed); ok {
				recovery, reconnect := timed.Times()
				t.Recovery, t.Reconnect = cmp.Or(t.Recovery, recovery), cmp.Or(t.Reconnect, reconnect)
			}
			if ticking, ok := s.Servers.(Ticking); ok {
				t.Tick = ticking.Tick()
			}
			return t
		},
		Open: func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
			return s.open(p, o.Addrs, servers.dialled)
		},
		Servers:       servers,
		Keys:          func(string) []string { return []string{"*"} },
		Kept:          s.Kept,
		Lacks:         subject.Lacks{Leases: true, ForceUnlock: true, SingleTry: !offers.try, State: s.State == nil},
		Interruptible: true,
		Unlisted:      true,
		Campaign:      subject.Campaign{ShortWaits: true, NoReentry: !s.Reentrant},
		Promises:      model.Promises{},
	}
	if offers.fenced {
		out.Token = func(l lockimpl.Lock, o lockimpl.Owner) (int64, error) {
			token, ok := l.(lockimpl.Fenced).Token(o)
			if !ok {
				return 0, lockimpl.ErrNotHeld
			}
			return int64(token), nil
		}
	}
	if s.State == nil {
		for _, judge := range serverJudges {
			out.Promises[judge] = model.Promise{Waived: true, Unjudged: true, Source: s.NoState}
		}
	}
	if !s.Reentrant {
		out.Promises[model.JudgeHoldCount] = model.Promise{Waived: true, Source: "the lock has no re-entry to count"}
	}
	for judge, reason := range s.Promises.byJudge() {
		if reason != "" {
			out.Promises[judge] = model.Promise{Waived: true, Source: reason}
		}
	}
	return out
}

// open makes the client of a process. For astray see Process.
func (s Subject) open(p *sim.Process, addrs []string, astray func(addr string)) (lockimpl.Client, error) {
	process := &Process{p: p, addrs: addrs, astray: astray, rand: p.Rand()}
	p.Astray(astray)
	a := &adapter{opened: make(chan struct{}), handles: map[handleKey]Lock{}}
	var stack []byte // of a panic; it does not repeat, so calls do without
	go func() {
		defer close(a.opened)
		defer p.Opens()()
		defer func() {
			if p := recover(); p != nil {
				a.panicked, stack = fmt.Sprintf("its Open panicked: %v", p), debug.Stack()
			}
		}()
		if a.client, a.err = s.Open(process); a.err == nil && a.client == nil {
			a.err = errors.New("neither a client nor an error came from Open")
		}
	}()
	p.Settle(a.opened)
	select {
	case <-a.opened:
		if stack != nil {
			return nil, fmt.Errorf("%s\n\n%s", a.panicked, stack)
		}
		if a.err != nil {
			return nil, a.err
		}
	default: // it asks a server, which takes simulated time
	}
	p.OnClose(func() {
		<-a.opened
		_ = a.Close()
		for _, f := range process.close {
			f()
		}
	})
	return a, nil
}
