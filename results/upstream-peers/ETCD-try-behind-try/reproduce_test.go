package lockreport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
)

// TryLock is refused because of another TryLock that is refused, too.
//
// A tries while C has the lock. Its try is refused, and its key goes late. C gives the lock up, and the try of B
// finds the key of A in front of its own and is refused, too.
//
// The rest of this file is what the test needs to open the library, to play the story and to check it.
func TestETCDTryBehindTry(t *testing.T) {
	for try := range 3 {
		t.Run(fmt.Sprint(try+1), func(t *testing.T) {
			s := NewStory(t, etcdMutex, 1)
			n := s.Network(Bytes)
			n.Latency(200 * time.Millisecond)
			s.Client("a")
			s.Client("b")
			s.Client("c")
			s.Thread("a/1", func(t *Thread) {
				t.At(2 * time.Second)
				t.TryLock("x")
			})
			s.Thread("b/1", func(t *Thread) {
				t.At(4500 * time.Millisecond)
				t.TryLock("x")
			})
			s.Thread("c/1", func(t *Thread) {
				t.At(500 * time.Millisecond)
				t.Lock("x")
				t.At(3 * time.Second)
				t.Unlock("x")
			})
			n.Rule(Rule{Client: "a", Direction: "request", From: 2700 * time.Millisecond, Do: Delay(4 * time.Second)})
			s.Play(9 * time.Second)
			s.AssertCallIsNot("b/1", 1, ErrBusy)
		})
	}
}

// etcdMutex is concurrency.Mutex, with a session for each acquire that lasts as long as its client.
var etcdMutex = Library{
	Serve: func(t *testing.T) Server {
		any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
		c := embed.NewConfig()
		c.Dir, c.LogLevel, c.LogOutputs = t.TempDir(), "error", []string{"/dev/null"}
		c.ListenClientUrls, c.ListenPeerUrls = any, any
		e, err := embed.StartEtcd(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		<-e.Server.ReadyNotify()
		return etcdServer{e}
	},
	Open: func(addrs []string) (func(name string) Lock, error) {
		c, err := clientv3.New(clientv3.Config{Endpoints: addrs})
		if err != nil {
			return nil, err
		}
		c.ActiveConnection().Connect()
		return func(name string) Lock { return &mutex{c: c, name: name} }, nil
	},
}

type etcdServer struct{ *embed.Etcd }

func (e etcdServer) Addr() string { return e.Clients[0].Addr().String() }

type mutex struct {
	c       *clientv3.Client
	name    string
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (m *mutex) acquire(take func(own *concurrency.Mutex) error) error {
	s, err := concurrency.NewSession(m.c, concurrency.WithTTL(8))
	if err != nil {
		return err
	}
	own := concurrency.NewMutex(s, m.name)
	if err := take(own); err != nil {
		return err
	}
	m.session, m.mutex = s, own
	return nil
}

func (m *mutex) Lock(ctx context.Context) error {
	return m.acquire(func(own *concurrency.Mutex) error { return own.Lock(ctx) })
}

func (m *mutex) TryLock(ctx context.Context) error {
	err := m.acquire(func(own *concurrency.Mutex) error { return own.TryLock(ctx) })
	if errors.Is(err, concurrency.ErrLocked) {
		return ErrBusy
	}
	return err
}

func (m *mutex) Unlock(ctx context.Context) error {
	if m.mutex == nil {
		return ErrNotHeld
	}
	return m.mutex.Unlock(ctx)
}

func (m *mutex) Lost() <-chan struct{} { return m.session.Done() }

// A Library is the lock that a story plays.
type Library struct {
	// Serve starts a server, which ends with the test.
	Serve func(t *testing.T) Server
	// Open opens a client of the servers at these addresses, and returns what makes its locks.
	Open func(addrs []string) (func(name string) Lock, error)
}

// A Server is a program that the test starts.
type Server interface {
	Addr() string
}

// A Lock is the lock of one name, for one thread. A Lock whose holder is told of a loss also has a method Lost,
// and one that can be prolonged has a method Extend.
type Lock interface {
	Lock(ctx context.Context) error
	TryLock(ctx context.Context) error // ErrBusy: another has it
	Unlock(ctx context.Context) error  // ErrNotHeld: the caller does not have it
}

// ErrBusy is the answer of a lock that another has.
var ErrBusy = errors.New("busy")

// ErrNotHeld is the answer of a lock that the caller does not have.
var ErrNotHeld = errors.New("not held")

// A Story is some clients of some servers, and what their threads do. Instants are since its start.
type Story struct {
	t       *testing.T
	library Library
	servers []Server
	clients map[string]func(name string) Lock
	threads []*Thread
	through func(client string, server int, addr string) string // nil: clients connect to the servers themselves

	mu    sync.Mutex // guards the rest, the calls of all threads, and rules
	begun time.Time
}

// NewStory starts the servers of a story.
func NewStory(t *testing.T, library Library, servers int) *Story {
	s := &Story{t: t, library: library, clients: map[string]func(string) Lock{}, begun: time.Now()}
	for range servers {
		s.servers = append(s.servers, library.Serve(t))
	}
	return s
}

// Client opens a client.
func (s *Story) Client(name string) {
	s.t.Helper()
	var addrs []string
	for i, x := range s.servers {
		addr := x.Addr()
		if s.through != nil {
			addr = s.through(name, i+1, addr)
		}
		addrs = append(addrs, addr)
	}
	var err error
	if s.clients[name], err = s.library.Open(addrs); err != nil {
		s.t.Fatalf("client %s: %v; the test did not work", name, err)
	}
}

// Thread adds a thread, such as a/1, which is the first of client a. do is what it does.
func (s *Story) Thread(name string, do func(t *Thread)) {
	s.threads = append(s.threads, &Thread{s: s, name: name, do: do, locks: map[string]Lock{}})
}

// Play plays the story until all threads have ended, or for so long.
func (s *Story) Play(length time.Duration) {
	s.mu.Lock()
	s.begun = time.Now()
	s.mu.Unlock()
	var threads sync.WaitGroup
	for _, t := range s.threads {
		threads.Go(func() { t.do(t) })
	}
	done := make(chan struct{})
	go func() {
		threads.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(length):
	}
}

// now is the time since the start.
func (s *Story) now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since()
}

// since is now for a caller that has mu.
func (s *Story) since() time.Duration { return time.Since(s.begun).Round(time.Millisecond) }

// A Thread makes one call after the other.
type Thread struct {
	s     *Story
	name  string
	do    func(t *Thread)
	locks map[string]Lock
	// Story.mu guards the rest.
	calls  []*call
	cancel context.CancelFunc // ends the context of the call under way
}

// client is the name of the client of a thread.
func (t *Thread) client() string {
	name, _, _ := strings.Cut(t.name, "/")
	return name
}

// call is a call of the library.
type call struct {
	role string // acquire, unlock or renew
	lock string
	from time.Duration
	to   time.Duration
	over bool          // false: it is under way
	lost time.Duration // when the holder was told that it has lost the lock; 0: it was not
	err  error
}

func (c call) String() string {
	return fmt.Sprintf("%s of %s from %v to %v", c.role, c.lock, c.from, c.to)
}

// At waits for an instant.
func (t *Thread) At(d time.Duration) { time.Sleep(d - t.s.now()) }

// Lock waits for a lock, and reports whether it was granted.
func (t *Thread) Lock(name string) bool { return t.acquire(name, t.lock(name).Lock) }

// TryLock asks for a lock once.
func (t *Thread) TryLock(name string) bool { return t.acquire(name, t.lock(name).TryLock) }

// Unlock gives a lock up.
func (t *Thread) Unlock(name string) bool {
	return t.call("unlock", name, t.lock(name).Unlock).err == nil
}

// lock returns what the thread has of a lock.
func (t *Thread) lock(name string) Lock {
	if t.locks[name] == nil {
		t.locks[name] = t.s.clients[t.client()](name)
	}
	return t.locks[name]
}

func (t *Thread) acquire(name string, ask func(ctx context.Context) error) bool {
	c := t.call("acquire", name, ask)
	if l, ok := t.lock(name).(interface{ Lost() <-chan struct{} }); ok && c.err == nil {
		lost := l.Lost()
		go func() {
			<-lost
			t.s.mu.Lock()
			defer t.s.mu.Unlock()
			c.lost = t.s.since()
		}()
	}
	return c.err == nil
}

// call makes a call.
func (t *Thread) call(role, lock string, ask func(ctx context.Context) error) *call {
	ctx, cancel := context.WithCancel(t.s.t.Context())
	defer cancel()
	c := &call{role: role, lock: lock, from: t.s.now()}
	t.s.mu.Lock()
	t.calls, t.cancel = append(t.calls, c), cancel
	t.s.mu.Unlock()
	err := ask(ctx)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	c.to, c.err, c.over = t.s.since(), err, true
	return c
}

// AssertCallIsNot fails if the n-th call of a thread, counted from 1, comes to an answer.
func (s *Story) AssertCallIsNot(thread string, n int, answer error) {
	s.t.Helper()
	if c := s.nth(thread, n); c.over && errors.Is(c.err, answer) {
		s.t.Errorf("call %d of %s (%v) came to %q", n, thread, c, answer)
	}
}

// nth returns the n-th call of a thread, counted from 1. A call that is under way has its end now.
func (s *Story) nth(thread string, n int) call {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.threads {
		if t.name == thread && len(t.calls) >= n {
			c := *t.calls[n-1]
			if !c.over {
				c.to = s.since()
			}
			return c
		}
	}
	s.t.Fatalf("%s has not made call %d; the test did not work", thread, n)
	return call{}
}

// A Rule is what happens to some messages. A field that is zero fits each message.
type Rule struct {
	Client    string
	Direction string
	Command   string
	If        func(m *Message) bool // called with Story.mu
	From      time.Duration
	Until     time.Duration
	Nth       int                   // of the messages that fit, counted from 1
	Do        func(m *Message) bool // reports whether the message goes on
	met       int
}

// Rule adds a rule. The first one that fits a message strikes it.
func (n *Network) Rule(r Rule) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.rules = append(n.rules, &r)
	n.strike = n.apply
}

func (n *Network) apply(m *Message) bool {
	n.s.mu.Lock()
	var found *Rule
	for _, r := range n.rules {
		if r.fits(m, n.s.since()) {
			r.met++
			if found == nil && (r.Nth == 0 || r.met == r.Nth) {
				found = r
			}
		}
	}
	n.s.mu.Unlock()
	return found == nil || found.Do(m)
}

func (r *Rule) fits(m *Message, now time.Duration) bool {
	return r.From <= now && (r.Until == 0 || now < r.Until) &&
		(r.Client == "" || r.Client == m.link.client) &&
		(r.Direction == "" || r.Direction == m.Direction) &&
		(r.Command == "" || r.Command == m.Command) &&
		(r.If == nil || r.If(m))
}

// Delay delays a message, and so those behind it.
func Delay(d time.Duration) func(m *Message) bool {
	return func(m *Message) bool {
		m.at = m.at.Add(d)
		return true
	}
}

// A Protocol takes the bytes of a connection apart.
type Protocol struct {
	// Request reads a request and the name of its command, which is Idle for one that no lock needs.
	Request func(in *bufio.Reader) (raw []byte, name string, err error)
	// Reply reads a reply. Its name is Push for one that answers no request.
	Reply func(in *bufio.Reader) (raw []byte, name string, err error)
}

// Push is the name of a reply that answers no request.
const Push = "push"

// Bytes is any protocol: a message is what a side writes at once, and has no name.
var Bytes = Protocol{Request: piece, Reply: piece}

func piece(in *bufio.Reader) (raw []byte, name string, err error) {
	if _, err := in.Peek(1); err != nil {
		return nil, "", err
	}
	raw = make([]byte, in.Buffered())
	_, err = io.ReadFull(in, raw)
	return raw, "", err
}

// A Message is on its way between a client and a server.
type Message struct {
	Direction string // request, reply, or Push
	Command   string // of the request, or of the one that is answered
	raw       []byte // nil: the sender has closed the connection
	at        time.Time
	link      *link
}

// A Network has a proxy between each client and each server.
type Network struct {
	s        *Story
	protocol Protocol
	latency  time.Duration
	// Story.mu guards the rest.
	strike func(m *Message) bool // reports whether a message goes on; nil: each does
	rules  []*Rule
}

// Network puts proxies between the clients that are added from now on and the servers.
func (s *Story) Network(protocol Protocol) *Network {
	n := &Network{s: s, protocol: protocol}
	s.through = n.listen
	return n
}

// Latency is how long each message travels in one direction.
func (n *Network) Latency(d time.Duration) { n.latency = d }

// listen begins a proxy, and returns its address.
func (n *Network) listen(client string, server int, addr string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.s.t.Fatal(err)
	}
	n.s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			if up, err := net.Dial("tcp", addr); err != nil {
				_ = down.Close()
			} else {
				n.connect(&link{n: n, client: client, server: server, up: up, down: down})
			}
		}
	}()
	return l.Addr().String()
}

// link is a connection of a client, and that of its proxy to the server.
type link struct {
	n          *Network
	client     string
	server     int      // counted from 1
	up         net.Conn // to the server
	down       net.Conn // to the client
	toClient   chan *Message
	unanswered chan string // the commands that the server has got and not answered
	answered   string      // the command that it has answered last
}

func (n *Network) connect(l *link) {
	const most = 1 << 16 // messages on their way
	toServer := make(chan *Message, most)
	l.toClient, l.unanswered = make(chan *Message, most), make(chan string, most)
	go deliver(l.up, toServer)
	go deliver(l.down, l.toClient)
	go l.carry(l.down, toServer, "request", n.protocol.Request)
	go l.carry(l.up, l.toClient, "reply", n.protocol.Reply)
}

// deliver writes messages in their order, each at its instant.
func deliver(to net.Conn, messages <-chan *Message) {
	for m := range messages {
		time.Sleep(time.Until(m.at))
		if _, err := to.Write(m.raw); err != nil || m.raw == nil {
			_ = to.Close()
			return
		}
	}
}

// carry sends messages on their way.
func (l *link) carry(from net.Conn, to chan<- *Message, direction string, read func(in *bufio.Reader) ([]byte, string, error)) {
	in := bufio.NewReader(from)
	for {
		raw, name, err := read(in)
		m := &Message{Direction: direction, Command: name, raw: raw, at: time.Now().Add(l.n.latency), link: l}
		if err != nil {
			m.raw = nil // what is late still arrives
			to <- m
			return
		}
		switch {
		case name == Push:
			m.Direction = Push
		case direction == "reply":
			select {
			case l.answered = <-l.unanswered:
			default: // more of the last answer
			}
			m.Command = l.answered
		}
		l.n.s.mu.Lock()
		strike := l.n.strike
		l.n.s.mu.Unlock()
		if strike != nil && !strike(m) {
			continue
		}
		if direction == "request" {
			l.unanswered <- name
		}
		to <- m
	}
}
