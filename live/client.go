//go:build linux

package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"lockstep/live/proxy"
	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Client is the program of a child process, which plays one process of a scenario. It reads the
// messages of the parent from in, writes its own to out, and returns when in ends. The process
// must then end.
func Client(in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(max(2, runtime.NumCPU())) // nothing is simulated here
	c := &client{dec: gob.NewDecoder(in), enc: gob.NewEncoder(out), asks: map[int]chan answer{}, shut: make(chan struct{})}
	c.tell(up{Here: true})
	var first down
	err := c.dec.Decode(&first)
	if err == nil && first.Prepare != nil {
		if err := c.prepare(*first.Prepare); err != nil {
			c.tell(up{Err: err.Error()})
			return nil
		}
		c.tell(up{Prepared: &prepared{Owners: c.foreign.Owners(), Pid: c.foreign.Pid()}})
		err = c.dec.Decode(&first)
	}
	if err != nil {
		return fmt.Errorf("live: only a live run starts a client: %w", err)
	}
	if first.Begin == nil {
		return errors.New("live: the first message of the parent does not begin a run")
	}
	run, err := c.open(*first.Begin)
	if err != nil {
		c.tell(up{Err: err.Error()})
		return nil
	}
	c.tell(up{Ready: true})
	go c.beat()
	for _, t := range c.threads {
		go c.play(t, run)
	}
	c.listen()
	return nil
}

// client is a process of a scenario.
type client struct {
	name    string
	begin   began
	process *sim.Process
	threads []*thread
	foreign ForeignClient // nil: the lock is Go code
	// servers are the servers of the world, by the addresses of their proxies, if the proxies read
	// frames; nil: the proxies read requests.
	servers map[string]sim.Server
	start   atomic.Int64 // on the monotonic clock; 0: not begun

	names connNames

	dec     *gob.Decoder
	writing sync.Mutex // of enc
	enc     *gob.Encoder

	mu      sync.Mutex
	ops     int
	nextAsk int
	asks    map[int]chan answer
	leaving bool
	closed  bool
	shut    chan struct{} // closed when the client of the lock has shut down
}

// read returns the lock, the scenario and the process that the parent names.
func (b began) read() (l *subject.Subject, sc *scenarios.Scenario, p scenarios.Process, err error) {
	if l, err = subject.Find(b.Lock); err != nil {
		return nil, nil, p, err
	}
	if sc, err = scenarios.Parse(b.File, []byte(b.Scenario), subject.Find); err != nil {
		return nil, nil, p, err
	}
	i := slices.IndexFunc(sc.Processes, func(p scenarios.Process) bool { return p.Name == b.Process })
	return l, sc, sc.Processes[i], nil
}

// prepare starts the program of a Foreign.
func (c *client) prepare(b began) error {
	l, sc, p, err := b.read()
	if err != nil {
		return err
	}
	o := ForeignOptions{
		Options: subject.Options{Addrs: b.Addrs, Watchdog: sc.Watchdog, ClientOptions: p.ClientOptions},
		Built:   b.Built, Threads: p.Threads, Spawn: spawnInGroup, Gap: c.gap, Reply: c.replyOf,
	}
	for _, name := range play.LockNames(sc) {
		o.Locks = append(o.Locks, b.Prefix+name)
	}
	c.foreign, err = foreignOf(l).Start(o)
	return err
}

// replyOf is ForeignOptions.Reply.
func (c *client) replyOf(o lockimpl.Owner, role model.Role) (reply string, ok bool) {
	c.mu.Lock()
	x := c.threads[o-1].call
	c.mu.Unlock()
	if x == nil {
		return "", false
	}
	return place{c}.OpReply(x.op, role, true)
}

func (c *client) open(b began) (run func(play.Thread), err error) {
	l, sc, p, err := b.read()
	if err != nil {
		return nil, err
	}
	c.begin, c.name = b, p.Name
	c.start.Store(b.StartNs)
	start := time.Now().Add(time.Duration(b.StartNs - Monotonic()))
	c.process = sim.NewOutside(sim.ProcessConfig{Name: p.Name, Threads: p.Threads, Offset: b.Offset, DriftPPM: b.DriftPPM}, b.Index, b.Seed, start, c.dial)
	for n := 1; n <= p.Threads; n++ {
		c.threads = append(c.threads, &thread{c: c, number: n, name: model.ThreadName(p.Name, n), start: start})
	}
	if c.foreign != nil {
		opened := *l
		opened.Open = func(p *sim.Process, _ subject.Options) (lockimpl.Client, error) {
			p.OnClose(func() { _ = c.foreign.Close() })
			return c.foreign, nil
		}
		l = &opened
	}
	if b.Setup != "" {
		opened, plain := *l, l.Open
		opened.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
			o.Setup = b.Setup
			return plain(p, o)
		}
		l = &opened
	}
	if b.Bytes {
		c.servers = map[string]sim.Server{}
		for i, n := range l.Servers.New(nil, subject.ServerOptions{}).Nodes {
			c.servers[b.Addrs[i]] = n.Server
			if sim.Streaming(n.Server) != nil {
				c.process.TakesTurns()
			}
		}
	}
	return play.Open(sc, l, c.process, b.Addrs, b.Prefix, place{c})
}

// now is the time since the start of the run.
func (c *client) now() int64 { return Monotonic() - c.begin.StartNs }

// tell sends a message to the parent. A client whose parent is gone ends.
func (c *client) tell(u up) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.enc.Encode(u); err != nil {
		os.Exit(1)
	}
}

func (c *client) record(e model.Event) {
	e.AtNs = c.now()
	c.tell(up{Event: &e})
}

// A process looks at its clock every BeatEvery, and reports a gap that is longer than BeatGap.
const (
	BeatEvery = 5 * time.Millisecond
	BeatGap   = 20 * time.Millisecond
)

// beat reports the times in which the process stood still.
func (c *client) beat() {
	for last := Monotonic(); ; {
		time.Sleep(BeatEvery)
		now := Monotonic()
		if gap := now - last - int64(BeatEvery); gap > int64(BeatGap) {
			c.gap(last, now)
		}
		last = now
	}
}

// gap tells of a time in which the process or the program of a Foreign did not run.
func (c *client) gap(fromNs, toNs int64) {
	if start := c.start.Load(); start > 0 {
		c.tell(up{Gap: &gapped{FromNs: fromNs - start, ToNs: toNs - start}})
	}
}

// listen handles the messages of the parent until the parent is gone.
func (c *client) listen() {
	for {
		var d down
		if c.dec.Decode(&d) != nil {
			return
		}
		switch {
		case d.Answer != nil:
			c.mu.Lock()
			ch := c.asks[d.Answer.ID]
			delete(c.asks, d.Answer.ID)
			c.mu.Unlock()
			ch <- *d.Answer
		case d.Interrupt > 0:
			c.threads[d.Interrupt-1].interrupt()
		case d.Step != 0:
			c.process.StepWallClock(d.Step)
		case d.Leave:
			go c.leave()
		}
	}
}

// ask asks the parent.
func (c *client) ask(a ask) answer {
	ch := make(chan answer, 1)
	c.mu.Lock()
	c.nextAsk++
	a.ID = c.nextAsk
	c.asks[a.ID] = ch
	c.mu.Unlock()
	c.tell(up{Ask: &a})
	return <-ch
}

// calledOff is how long a call may take to end by itself when its client is closed, before it
// is cancelled.
const calledOff = 50 * time.Millisecond

// leave ends the run for the process: open calls are recorded as waiting, the client closes
// without unlocking, and calls that are still open are interrupted.
func (c *client) leave() {
	c.mu.Lock()
	c.leaving = true
	var open []*call
	for _, t := range c.threads {
		if t.call != nil {
			c.record(model.Event{Kind: model.KindReturn, Process: c.name, Thread: t.number, Op: t.call.op,
				Action: t.call.what.Action, Lock: t.call.what.Lock, Outcome: model.Waiting})
			open = append(open, t.call)
		}
		t.call = nil
	}
	c.mu.Unlock()
	c.close()
	time.Sleep(calledOff)
	for _, x := range open {
		x.cancel(sim.ErrInterrupted)
	}
	select {
	case <-c.shut:
	case <-time.After(shutMost):
	}
	c.tell(up{Left: true})
}

// shutMost is how long the client of a lock may take to shut down before the run goes on
// without it.
const shutMost = 10 * time.Second

// close shuts the client of the lock down, once.
func (c *client) close() {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return
	}
	c.record(model.Event{Kind: model.KindClose, Process: c.name})
	go func() {
		defer close(c.shut)
		defer func() {
			if r := recover(); r != nil {
				c.record(model.Event{Kind: model.KindDefect, Process: c.name, Text: fmt.Sprintf("the client panicked when it was closed: %v", r)})
			}
		}()
		c.process.CloseClients()
	}()
}

// play plays the steps of a thread.
func (c *client) play(t *thread, run func(play.Thread)) {
	defer func() {
		if r := recover(); r != nil {
			c.record(model.Event{Kind: model.KindDefect, Process: c.name, Thread: t.number, Text: fmt.Sprintf("the lock panicked: %v", r)})
		}
	}()
	c.process.Enters(t.number)
	t.At(0)
	run(t)
	t.Record(model.Event{Kind: model.KindDone})
}

// place answers the questions that steps have about the servers.
type place struct{ c *client }

func (p place) Now() time.Duration { return time.Duration(p.c.now()) }

func (p place) State(lock string) *model.LockState {
	return p.c.ask(ask{What: askState, Lock: lock}).State
}

// Slack implements play.Late. A step may be late by as much as a process may stand still in a run that
// counts.
func (place) Slack() time.Duration { return still }

func (p place) OpReply(op int, role model.Role, last bool) (reply string, ok bool) {
	a := p.c.ask(ask{What: askReply, Op: op, Role: role, Last: last})
	return a.Reply, a.Found
}

func (p place) Published(channel string) int64 {
	return p.c.ask(ask{What: askPublished, Channel: channel}).Number
}

// thread plays the steps of a thread in real time. It implements play.Thread.
type thread struct {
	c      *client
	number int
	name   string
	start  time.Time
	token  uint64
	call   *call // guarded by c.mu
}

type call struct {
	op     int
	what   sim.Operation
	cancel context.CancelCauseFunc
}

func (t *thread) Number() int        { return t.number }
func (t *thread) Name() string       { return t.name }
func (t *thread) At(d time.Duration) { time.Sleep(time.Until(t.start.Add(d))) }

func (*thread) Sleep(d time.Duration) { time.Sleep(d) }

func (*thread) Do(f func()) { f() }

// Record adds an event of the thread to the record. A thread that has left adds none.
func (t *thread) Record(e model.Event) {
	e.Process, e.Thread = t.c.name, t.number
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.c.leaving {
		return
	}
	t.c.record(e)
}

func (t *thread) Call(what sim.Operation, f func(context.Context) (model.Outcome, error)) (int, model.Outcome) {
	c := t.c
	c.mu.Lock()
	if c.leaving {
		c.mu.Unlock()
		runtime.Goexit()
	}
	c.ops++
	x := &call{op: c.ops, what: what}
	ctx, cancel := context.WithCancelCause(sim.OutsideCall(context.Background(), x.op))
	x.cancel = cancel
	defer cancel(nil)
	t.call = x
	c.process.Begins(t.number, x.op, what)
	c.record(model.Event{Kind: model.KindInvoke, Process: c.name, Thread: t.number, Op: x.op, Action: what.Action, Lock: what.Lock, LeaseNs: what.LeaseNs, WaitNs: what.WaitNs})
	c.mu.Unlock()
	t.token = 0
	outcome, err := f(ctx)
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process.Ends(t.number)
	if t.call != x { // the run has ended for all threads
		runtime.Goexit()
	}
	t.call = nil
	c.record(model.Event{Kind: model.KindReturn, Process: c.name, Thread: t.number, Op: x.op, Action: what.Action, Lock: what.Lock,
		LeaseNs: what.LeaseNs, WaitNs: what.WaitNs, Outcome: outcome, Error: text, Token: t.token})
	return x.op, outcome
}

func (t *thread) SetToken(token uint64) { t.token = token }

// interrupt cancels the call that the thread is in.
func (t *thread) interrupt() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.call != nil {
		t.call.cancel(sim.ErrInterrupted)
	}
}

func (t *thread) Interrupt(target string) {
	t.c.ask(ask{What: askInterrupt, Thread: t.number, Target: target})
}

func (t *thread) Close() { t.c.close() }

func (t *thread) Watch(lock string, lost <-chan struct{}) (stop func()) {
	ended := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(ended) }) }
	go func() {
		select {
		case <-lost:
			select {
			case <-ended:
			default:
				t.c.mu.Lock()
				closed := t.c.closed
				t.c.mu.Unlock()
				if !closed {
					t.Record(model.Event{Kind: model.KindTold, Lock: lock})
				}
			}
		case <-ended:
		}
	}()
	return end
}

func (t *thread) Use(resource string, take int64, work time.Duration, keep *int64) bool {
	sold, _ := sim.Work(t, t.visit, resource, take, work, keep, nil)
	return sold
}

func (t *thread) UseFenced(resource string, token, take int64, work time.Duration, keep *int64) (sold, refused bool) {
	return sim.Work(t, t.visit, resource, take, work, keep, &token)
}

func (t *thread) visit(v sim.Visit) model.Event {
	return t.c.ask(ask{What: askVisit, Thread: t.number, Visit: v}).Event
}

// dial connects to the proxy.
func (c *client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if proxied, ok := c.begin.Routes[addr]; ok {
		addr = proxied
	}
	var d net.Dialer
	x, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if err := proxy.Knock(x); err != nil {
		_ = x.Close()
		if errors.Is(err, proxy.ErrRefused) { // as in a world: the process is cut off
			err = &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
		}
		return nil, err
	}
	if server := c.servers[addr]; server != nil {
		return &framed{TCPConn: x.(*net.TCPConn), c: c, name: c.names.next(x.LocalAddr().String(), x.RemoteAddr().String()), server: server}, nil
	}
	return &socket{TCPConn: x.(*net.TCPConn), c: c, name: c.names.next(x.LocalAddr().String(), x.RemoteAddr().String())}, nil
}

// socket tells the parent which operation a request belongs to, before it writes the request. It
// has all methods of a TCP connection, since go-redis needs them to see whether an idle
// connection has ended.
type socket struct {
	*net.TCPConn
	c    *client
	name string

	mu   sync.Mutex
	sent int    // the number of requests so far
	rest []byte // the beginning of a request that is not complete
}

func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, b...)
	for len(s.rest) > 0 {
		raw, words, err := proxy.ReadRequest(bufio.NewReader(bytes.NewReader(s.rest)))
		if err != nil {
			break
		}
		s.rest = s.rest[len(raw):]
		by, op := s.c.process.SenderOf(words)
		s.c.tell(up{Sent: &sent{Conn: s.name, Index: s.sent, AtNs: s.c.now(), Op: op, By: by, Words: words}})
		s.sent++
	}
	return s.TCPConn.Write(b)
}

// framed is a connection to a proxy that reads frames. A frame is a request as the servers of the
// world read it, or, for a server that reads a stream, the bytes of one Write.
type framed struct {
	*net.TCPConn
	c      *client
	name   string
	server sim.Server

	mu   sync.Mutex
	sent int    // the number of messages so far
	rest string // the beginning of a request that is not complete
}

// Write implements net.Conn.
func (f *framed) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest += string(b)
	for f.rest != "" {
		r, rest, err := f.server.Decode(f.rest)
		if err != nil {
			break
		}
		raw := f.rest[:len(f.rest)-len(rest)]
		f.rest = rest
		s := sent{Conn: f.name, Index: f.sent, AtNs: f.c.now(), Request: &r, Asked: r.Words}
		if sim.Streaming(f.server) != nil {
			s.By, s.Asked = f.c.process.SpeakerOf()
			s.Op = s.By.Op
		} else {
			s.By, s.Op = f.c.process.SenderOf(r.Words)
		}
		f.c.tell(up{Sent: &s})
		f.sent++
		if _, err := f.TCPConn.Write(proxy.Frame([]byte(raw))); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
