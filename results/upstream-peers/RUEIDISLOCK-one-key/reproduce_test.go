package lockreport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// One key that is left is enough to refuse a try, although the majority is free.
func TestRUEIDISLOCKOneKey(t *testing.T) {
	for try := range 3 {
		t.Run(fmt.Sprint(try+1), func(t *testing.T) {
			s := NewStory(t, rueidislockWith(2, 0), 1)
			s.Latency(1 * time.Millisecond)
			s.Client("a")
			s.Client("b")
			s.Thread("a/1", func(t *Thread) {
				t.Lock("x")
				t.Sleep(1 * time.Second)
				t.Unlock("x")
			})
			s.Thread("b/1", func(t *Thread) {
				t.At(2 * time.Second)
				t.TryLock("x")
			})
			s.Rule(Rule{Client: "a", Direction: "request", Role: "unlock", Do: "error", With: "ERR injected", Nth: 1})
			s.Play(6 * time.Second)
			s.AssertCallIsNot("b/1", 1, "busy")
		})
	}
}

// rueidislockWith is rueidislock's locker with so many keys of which a majority counts, and so much time for each
// try; 0: the default.
func rueidislockWith(majority int32, tryNextAfter time.Duration) Library {
	return Library{
		Serve: ServeRedis,
		Open: func(addrs []string) (Client, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{
				KeyMajority: majority, TryNextAfter: tryNextAfter, NoLoopTracking: true,
				ClientOption: rueidis.ClientOption{InitAddress: addrs, ForceSingleClient: true},
			})
			return locker{l}, err
		},
		Split: Resp,
	}
}

type locker struct{ rueidislock.Locker }

func (l locker) Lock(name string) Lock { return &hold{l: l.Locker, name: name} }

type hold struct {
	l      rueidislock.Locker
	name   string
	lost   context.Context
	unlock context.CancelFunc
}

// take asks for a hold, which must not end with the context of the call.
func (h *hold) take(ctx context.Context, with func(context.Context, string) (context.Context, context.CancelFunc, error)) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	lost, unlock, err := with(own, h.name)
	stop()
	if err == nil {
		h.lost, h.unlock = lost, unlock
	}
	return err
}

func (h *hold) Lock(ctx context.Context) error { return h.take(ctx, h.l.WithContext) }

func (h *hold) TryLock(ctx context.Context) error {
	err := h.take(ctx, h.l.TryWithContext)
	if errors.Is(err, rueidislock.ErrNotLocked) {
		return ErrBusy
	}
	return err
}

func (h *hold) Unlock(context.Context) error {
	if h.unlock == nil {
		return ErrNotHeld
	}
	h.unlock()
	h.unlock = nil
	return nil
}

func (h *hold) Lost() <-chan struct{} { return h.lost.Done() }

var _ = rueidislockWith

// Await waits until somebody accepts connections at an address.
func Await(t *testing.T, addr string) {
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}

// A Split takes the bytes of a connection apart.
type Split struct {
	// Request reads a request and the name of its command.
	Request func(*bufio.Reader) (raw []byte, command string, err error)
	// Reply reads a reply. Answers reports whether it answers the oldest request that has no answer.
	Reply func(*bufio.Reader) (raw []byte, answers bool, err error)
	// Idle are commands that have nothing to do with locks.
	Idle []string
}

// A Rule is what happens to the messages that it matches. A field that is zero matches every message.
type Rule struct {
	Client    string
	Direction string // request, reply, or push, which answers no request
	Role      string // what the call under way is for: acquire, unlock; renew: none is under way
	Command   string
	From      time.Duration
	Until     time.Duration
	Nth       int // the only one of the messages that match
	// Do is drop, which resets the connection with the next request, since a stream loses no piece; delay;
	// hold, until the rule ends; reset; or error, which is the answer of the proxy.
	Do    string
	Delay time.Duration
	With  string

	met int
}

// proxy stands between a client and a server.
type proxy struct {
	s        *Story
	client   string
	server   string
	listener net.Listener
	mu       sync.Mutex
	conns    []net.Conn
	away     time.Time // the end of a cut
}

func newProxy(s *Story, client, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	p := &proxy{s: s, client: client, server: server, listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.carry(c)
		}
	}()
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.reset()
}

// reset resets all connections.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		abort(c)
	}
	p.conns = nil
}

func abort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// cut loses what is on its way for a time, and resets the connections at its end.
func (p *proxy) cut(length time.Duration) {
	p.mu.Lock()
	p.away = time.Now().Add(length)
	p.mu.Unlock()
	time.AfterFunc(length, p.reset)
}

func (p *proxy) isAway() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.away)
}

// sent is a message, with the instant at which it may arrive.
type sent struct {
	raw []byte
	at  time.Time
}

func (p *proxy) carry(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil || p.isAway() {
		abort(client)
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	asked := make(chan [2]string, 1<<16) // the role and the command of each request that the server gets
	var torn atomic.Bool                 // something was dropped
	up, down := make(chan sent, 1<<16), make(chan sent, 1<<16)
	go deliver(server, up)
	go deliver(client, down)
	go func() {
		defer close(up) // what is late still arrives
		in := bufio.NewReader(client)
		for {
			raw, command, err := p.request(in)
			if err != nil {
				return
			}
			role := ""
			if split := p.s.library.Split; split == nil || !slices.Contains(split.Idle, command) {
				role = p.s.asks(p.client)
			}
			if torn.Load() {
				abort(client)
				return
			}
			if p.pass(client, "request", role, command, raw, up, down, &torn) {
				asked <- [2]string{role, command}
			}
		}
	}()
	in := bufio.NewReader(server)
	last := [2]string{}
	for {
		raw, answers, err := p.reply(in)
		if err != nil {
			_ = client.Close()
			return
		}
		if !answers {
			p.pass(client, "push", "", "", raw, down, down, &torn)
			continue
		}
		select {
		case last = <-asked:
		default: // more of the answer before
		}
		p.pass(client, "reply", last[0], last[1], raw, down, down, &torn)
	}
}

func (p *proxy) request(in *bufio.Reader) ([]byte, string, error) {
	if split := p.s.library.Split; split != nil {
		return split.Request(in)
	}
	raw, err := piece(in)
	return raw, "", err
}

func (p *proxy) reply(in *bufio.Reader) ([]byte, bool, error) {
	if split := p.s.library.Split; split != nil {
		return split.Reply(in)
	}
	raw, err := piece(in)
	return raw, true, err
}

// piece reads what a side wrote at once.
func piece(in *bufio.Reader) ([]byte, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	raw := make([]byte, in.Buffered())
	_, err := io.ReadFull(in, raw)
	return raw, err
}

// asks notes a request of a client, and returns what it is for.
func (s *Story) asks(client string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	role := s.role(client)
	if role == "acquire" {
		p := s.clients[client]
		p.sent = append(p.sent, time.Since(s.begun))
	}
	return role
}

// tornMost is how long a connection may go on that has lost a message.
const tornMost = 3200 * time.Millisecond

// pass sends a message on its way, or does to it what a rule says. It reports whether it is on its way.
func (p *proxy) pass(client net.Conn, direction, role, command string, raw []byte, on, back chan<- sent, torn *atomic.Bool) bool {
	at := time.Now().Add(p.s.latency)
	if r := p.s.meet(p.client, direction, role, command); r != nil {
		switch r.Do {
		case "delay":
			at = at.Add(r.Delay)
		case "hold":
			p.s.mu.Lock()
			at = p.s.begun.Add(r.Until)
			p.s.mu.Unlock()
		case "drop":
			torn.Store(true)
			time.AfterFunc(tornMost, func() { abort(client) })
			return false
		case "error":
			back <- sent{[]byte("-" + r.With + "\r\n"), at}
			return false
		default:
			abort(client)
			return false
		}
	}
	if p.isAway() {
		return false
	}
	on <- sent{raw, at}
	return true
}

// meet returns the rule that strikes a message; nil: none.
func (s *Story) meet(client, direction, role, command string) (found *Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.begun)
	for _, r := range s.rules {
		if now < 0 || now < r.From || r.Until > 0 && now >= r.Until || r.Client != "" && r.Client != client || r.Direction != "" && r.Direction != direction ||
			r.Role != "" && r.Role != role || r.Command != "" && r.Command != command {
			continue
		}
		r.met++
		if found == nil && (r.Nth == 0 || r.met == r.Nth) {
			found = r
		}
	}
	return found
}

// deliver writes messages in their order, each at its instant.
func deliver(to net.Conn, messages <-chan sent) {
	defer func() { _ = to.Close() }()
	for m := range messages {
		time.Sleep(time.Until(m.at))
		if _, err := to.Write(m.raw); err != nil {
			return
		}
	}
}

// redisServer is a redis-server of its own.
type redisServer struct {
	t    *testing.T
	port string
	cmd  *exec.Cmd
}

// ServeRedis starts redis-server, which must be on the PATH.
func ServeRedis(t *testing.T, n int) (all []Server) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		_ = l.Close()
		r := &redisServer{t: t, port: port}
		r.start()
		t.Cleanup(r.end)
		all = append(all, r)
	}
	return all
}

func (r *redisServer) start() {
	r.cmd = exec.Command("redis-server", "--port", r.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	Await(r.t, r.Addr())
}

func (r *redisServer) end() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

func (r *redisServer) Addr() string { return "127.0.0.1:" + r.port }

// Restart starts an empty server; it keeps nothing.
func (r *redisServer) Restart(bool) {
	r.end()
	r.start()
}

// Resp takes the protocol of Redis apart.
var Resp = &Split{
	Request: func(in *bufio.Reader) ([]byte, string, error) {
		raw, words, _, err := respValue(in)
		command := ""
		if len(words) > 0 {
			command = strings.ToUpper(words[0])
		}
		return raw, command, err
	},
	Reply: func(in *bufio.Reader) ([]byte, bool, error) {
		raw, _, push, err := respValue(in)
		return raw, !push, err
	},
	Idle: []string{"PING", "HELLO", "CLIENT", "AUTH", "SELECT"},
}

// respValue reads a value, with the texts in it.
func respValue(in *bufio.Reader) (raw []byte, words []string, push bool, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, nil, false, err
	}
	raw = []byte(line)
	text := strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(text)
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return raw, nil, false, nil
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(in, body)
		return append(raw, body...), []string{string(body[:n])}, false, err
	case '*', '~', '>', '%', '|':
		if line[0] == '%' || line[0] == '|' {
			n *= 2
		}
		for range n {
			more, inner, _, err := respValue(in)
			raw, words = append(raw, more...), append(words, inner...)
			if err != nil {
				return raw, words, false, err
			}
		}
		return raw, words, line[0] == '>', nil
	case '+', '-', ':', '_', ',', '#', '(':
		return raw, []string{text}, false, nil
	}
	return raw, nil, false, fmt.Errorf("%q is not of the protocol of Redis", line)
}

// A Library is the lock that a story plays.
type Library struct {
	// Serve starts servers, each of which the kernel or the test ends.
	Serve func(t *testing.T, n int) []Server
	// Open opens a client that reaches the servers at these addresses.
	Open func(addrs []string) (Client, error)
	// Lease is the time after which a hold that nothing renews is over; 0: holds are renewed.
	Lease time.Duration
	// Split reads a request and a reply; nil: what a side writes at once is one.
	Split *Split
}

// A Server is a program that the test starts.
type Server interface {
	Addr() string
	// Restart ends the program and starts it at the same address, with its data or without.
	Restart(keepData bool)
}

// A Client is a process that uses the library.
type Client interface {
	Lock(name string) Lock
}

// A Lock is what a thread of a client has of a lock.
type Lock interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) error // ErrBusy: another has it
	Unlock(ctx context.Context) error  // ErrNotHeld: the caller does not have it
	// Lost is closed when the library tells that the hold is gone; nil: it does not.
	Lost() <-chan struct{}
}

// An Extender is a Lock whose holder asks for more time.
type Extender interface {
	Extend(ctx context.Context) error
}

// The answers of a lock.
var (
	ErrBusy    = errors.New("busy")
	ErrNotHeld = errors.New("not held")
)

// slack is how much an instant may be off.
const slack = 60 * time.Millisecond

// A Story is some clients and what they do. Instants are since its start.
type Story struct {
	t       *testing.T
	library Library
	servers []Server
	latency time.Duration
	clients map[string]*process
	threads []*Thread
	rules   []*Rule
	events  []event
	mu      sync.Mutex // of the beliefs and calls of all threads, and of rules
	begun   time.Time
	over    bool
}

type event struct {
	at time.Duration
	do func()
}

// process is a client with its proxies.
type process struct {
	name    string
	client  Client
	proxies []*proxy
	sent    []time.Duration // the instants of its requests in acquires; guarded by Story.mu
}

// NewStory starts the servers of a story.
func NewStory(t *testing.T, library Library, servers int) *Story {
	return &Story{t: t, library: library, servers: library.Serve(t, servers), clients: map[string]*process{}, begun: time.Now()}
}

// Latency is how long each message travels in one direction.
func (s *Story) Latency(d time.Duration) { s.latency = d }

// Client adds a client.
func (s *Story) Client(name string) {
	p := &process{name: name}
	s.clients[name] = p
	for _, server := range s.servers {
		p.proxies = append(p.proxies, newProxy(s, name, server.Addr()))
	}
}

// Thread adds a thread of a client, such as a/1, and what it does.
func (s *Story) Thread(name string, do func(*Thread)) {
	client, _, _ := strings.Cut(name, "/")
	s.threads = append(s.threads, &Thread{s: s, name: name, p: s.clients[client], do: do, locks: map[string]Lock{}})
}

// Rule adds a rule of the proxies.
func (s *Story) Rule(r Rule) { s.rules = append(s.rules, &r) }

// Cut cuts a client off from some of the servers, counted from 1; none: from all.
func (s *Story) Cut(client string, at, length time.Duration, servers ...int) {
	s.events = append(s.events, event{at, func() {
		for i, x := range s.clients[client].proxies {
			if len(servers) == 0 || slices.Contains(servers, i+1) {
				x.cut(length)
			}
		}
	}})
}

// Restart restarts servers, counted from 1; none: all.
func (s *Story) Restart(at time.Duration, keepData bool, servers ...int) {
	s.events = append(s.events, event{at, func() {
		for i, server := range s.servers {
			if len(servers) == 0 || slices.Contains(servers, i+1) {
				server.Restart(keepData)
			}
		}
	}})
}

// Play plays the story until all threads have ended, or for so long.
func (s *Story) Play(length time.Duration) {
	s.t.Helper()
	s.begun = time.Now().Add(time.Hour) // no rule strikes before the start
	for _, p := range s.clients {
		var addrs []string
		for _, x := range p.proxies {
			addrs = append(addrs, x.addr())
		}
		var err error
		if p.client, err = s.library.Open(addrs); err != nil {
			s.t.Fatalf("client %s: %v", p.name, err)
		}
	}
	s.mu.Lock()
	s.begun = time.Now()
	s.mu.Unlock()
	var threads sync.WaitGroup
	for _, w := range s.threads {
		w.ctx, w.cancel = context.WithCancel(context.Background())
		threads.Go(func() { w.do(w) })
	}
	for _, e := range s.events {
		time.AfterFunc(e.at, func() {
			if !s.ended() {
				e.do()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		threads.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Until(s.begun.Add(length))):
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	for _, p := range s.clients {
		for _, x := range p.proxies {
			x.close()
		}
	}
	for _, w := range s.threads {
		w.cancel()
	}
}

func (s *Story) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// now is the time since the start.
func (s *Story) now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.begun)
}

// A Thread is a thread of a client.
type Thread struct {
	s     *Story
	name  string
	p     *process
	do    func(*Thread)
	locks map[string]Lock
	ctx   context.Context
	// The rest is guarded by s.mu.
	cancel context.CancelFunc // of the call under way
	calls  []*call
	holds  []*belief
}

// call is a call of the library.
type call struct {
	role, lock, outcome string // outcome is "" while the call is under way
	from, to            time.Duration
	wait                time.Duration // -1: no bound
}

// belief is a time in which a thread believes that it has a lock.
type belief struct {
	lock     string
	from, to time.Duration // to is -1 while it goes on
	lease    time.Duration // when the lease ends; 0: it is renewed
}

// At waits for an instant.
func (t *Thread) At(d time.Duration) { time.Sleep(d - t.s.now()) }

// Before reports whether an instant is to come.
func (t *Thread) Before(d time.Duration) bool { return t.s.now() < d }

// Sleep waits.
func (t *Thread) Sleep(d time.Duration) { time.Sleep(d) }

// lock returns what the thread has of a lock.
func (t *Thread) lock(name string) Lock {
	if t.locks[name] == nil {
		t.locks[name] = t.p.client.Lock(name)
	}
	return t.locks[name]
}

// Lock waits for a lock, and reports whether it was granted.
func (t *Thread) Lock(name string) bool {
	return t.acquire(name, -1, t.lock(name).Lock)
}

// LockWithin waits for a lock for so long at most.
func (t *Thread) LockWithin(name string, wait time.Duration) bool {
	return t.acquire(name, wait, t.lock(name).Lock)
}

// TryLock asks for a lock once.
func (t *Thread) TryLock(name string) bool {
	return t.acquire(name, 0, t.lock(name).TryLock)
}

func (t *Thread) acquire(name string, wait time.Duration, ask func(context.Context) error) bool {
	c, err := t.call("acquire", name, wait, ask)
	if err != nil {
		return false
	}
	b := &belief{lock: name, from: c.to, to: -1}
	if l := t.s.library.Lease; l > 0 {
		b.lease = c.from + l
	}
	t.s.mu.Lock()
	t.holds = append(t.holds, b)
	t.s.mu.Unlock()
	if lost := t.locks[name].Lost(); lost != nil {
		go func() {
			<-lost
			t.believes(name, t.s.now())
		}()
	}
	return true
}

// believes ends the belief of a thread that it has a lock.
func (t *Thread) believes(name string, until time.Duration) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, b := range t.holds {
		if b.lock == name && b.to < 0 {
			b.to = until
		}
	}
}

// Unlock gives a lock up.
func (t *Thread) Unlock(name string) {
	t.believes(name, t.s.now())
	_, _ = t.call("unlock", name, -1, t.lock(name).Unlock)
}

// Extend asks for more time.
func (t *Thread) Extend(name string) {
	l, ok := t.lock(name).(Extender)
	if !ok {
		panic("the library extends no hold")
	}
	c, err := t.call("renew", name, -1, l.Extend)
	if err == nil {
		t.believes(name, c.to)
		t.s.mu.Lock()
		t.holds = append(t.holds, &belief{lock: name, from: c.to, to: -1, lease: c.from + t.s.library.Lease})
		t.s.mu.Unlock()
	}
}

// call makes a call that an interrupt ends.
func (t *Thread) call(role, name string, wait time.Duration, ask func(context.Context) error) (*call, error) {
	ctx, cancel := context.WithCancel(t.ctx)
	if wait > 0 {
		ctx, cancel = context.WithTimeout(t.ctx, wait)
	}
	defer cancel()
	c := &call{role: role, lock: name, from: t.s.now(), wait: wait}
	t.s.mu.Lock()
	t.cancel, t.calls = cancel, append(t.calls, c)
	t.s.mu.Unlock()
	err := ask(ctx)
	to := t.s.now()
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	c.to = to
	switch {
	case err == nil:
		c.outcome = map[string]string{"acquire": "granted", "unlock": "released", "renew": "extended"}[role]
	case errors.Is(err, ErrBusy):
		c.outcome = "busy"
	case errors.Is(err, ErrNotHeld):
		c.outcome = "not held"
	default:
		c.outcome = "error: " + err.Error()
	}
	return c, err
}

// Interrupt ends the context of the call that is under way in another thread.
func (t *Thread) Interrupt(name string) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, w := range t.s.threads {
		if w.name == name && w.cancel != nil {
			w.cancel()
		}
	}
}

// role is what the call under way of a client is for: acquire, unlock, or renew if there is none.
// Guarded by mu.
func (s *Story) role(client string) string {
	for _, w := range s.threads {
		if n := len(w.calls); w.p.name == client && n > 0 && w.calls[n-1].outcome == "" {
			return w.calls[n-1].role
		}
	}
	return "renew"
}

// until is when a belief ended.
func (b *belief) until(now time.Duration) time.Duration {
	to := b.to
	if to < 0 {
		to = now
	}
	if b.lease > 0 {
		to = min(to, b.lease)
	}
	return to
}

// AssertOneOwner fails if two threads believed to have a lock at one time.
func (s *Story) AssertOneOwner(lock string) {
	s.t.Helper()
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, v := range s.threads {
		for _, w := range s.threads[i+1:] {
			for _, a := range v.holds {
				for _, b := range w.holds {
					from, to := max(a.from, b.from), min(a.until(now), b.until(now))
					if a.lock == lock && b.lock == lock && to-from > slack {
						s.t.Errorf("%s and %s both believed to have %s from %v to %v", v.name, w.name, lock, tenths(from), tenths(to))
					}
				}
			}
		}
	}
}

// AssertCallIsNot fails if the n-th call of a thread, counted from 1, came to an outcome.
func (s *Story) AssertCallIsNot(thread string, n int, outcome string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.threads {
		if w.name != thread {
			continue
		}
		if len(w.calls) < n {
			s.t.Fatalf("%s has made %d calls; the test did not work", thread, len(w.calls))
		}
		if c := w.calls[n-1]; c.outcome == outcome {
			s.t.Errorf("call %d of %s (%s of %s, from %v to %v) came to %q", n, thread, c.role, c.lock, tenths(c.from), tenths(c.to), outcome)
		}
	}
}

// AssertWaiterIsServed fails if a thread waited for longer than the bound while nobody believed to
// have the lock.
func (s *Story) AssertWaiterIsServed(lock, thread string, bound time.Duration) {
	s.t.Helper()
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.threads {
		for _, c := range w.calls {
			if w.name != thread || c.role != "acquire" || c.lock != lock {
				continue
			}
			from, to := c.from, c.to
			if c.outcome == "" {
				to = now
			}
			for _, v := range s.threads {
				for _, b := range v.holds {
					if b.lock == lock && b.from < to {
						from = max(from, b.until(now))
					}
				}
			}
			if to-from > bound {
				s.t.Errorf("%s waited for %s from %v to %v, and nobody believed to have it", thread, lock, tenths(from), tenths(to))
			}
		}
	}
}

// AssertReturnsInTime fails if the n-th call of a thread returned later than its wait and a bound.
func (s *Story) AssertReturnsInTime(thread string, n int, bound time.Duration) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.threads {
		if w.name == thread && len(w.calls) >= n {
			if c := w.calls[n-1]; c.outcome != "" && c.to-c.from-c.wait > bound+slack {
				s.t.Errorf("call %d of %s took %v, and was to take %v and two round trips", n, thread, tenths(c.to-c.from), c.wait)
			}
		}
	}
}

// AssertAsksSeldom fails if a client sent more requests in a second in which a thread of it waited.
// The other threads of the client send none.
func (s *Story) AssertAsksSeldom(thread string, most int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	client, _, _ := strings.Cut(thread, "/")
	sent := s.clients[client].sent
	for i := range sent {
		if n := len(sent) - i; n > most {
			if last := sent[i+most]; last-sent[i] < time.Second {
				s.t.Errorf("client %s sent %d requests from %v to %v", client, most+1, tenths(sent[i]), tenths(last))
				return
			}
		}
	}
}

// tenths rounds an instant for people.
func tenths(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond)) }
