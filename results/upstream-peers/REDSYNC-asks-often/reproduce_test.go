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
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	rs "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// A waiter sends each server up to 22 commands a second.
//
// Many threads wait for the lock that A has. Each asks after 50 to 250 ms.
//
// The rest of this file is what the test needs to open the library, to play the story and to check it.
func TestREDSYNCAsksOften(t *testing.T) {
	for try := range 3 {
		t.Run(fmt.Sprint(try+1), func(t *testing.T) {
			s := NewStory(t, redsyncWith(), 1)
			n := s.Network(Resp)
			s.Client("a1")
			for _, name := range []string{"b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8"} {
				s.Client(name)
			}
			for _, name := range []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"} {
				s.Client(name)
			}
			for _, name := range []string{"d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8"} {
				s.Client(name)
			}
			for _, name := range []string{"e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"} {
				s.Client(name)
			}
			s.Thread("a1/1", func(t *Thread) {
				t.Lock("x")
				t.Sleep(8 * time.Second)
			})
			for _, name := range []string{"b1/1", "c1/1", "d1/1", "e1/1"} {
				s.Thread(name, func(t *Thread) {
					t.At(510 * time.Millisecond)
					t.Lock("x")
					t.Unlock("x")
				})
			}
			for _, name := range []string{"b2/1", "c2/1", "d2/1", "e2/1"} {
				s.Thread(name, func(t *Thread) {
					t.At(520 * time.Millisecond)
					t.Lock("x")
					t.Unlock("x")
				})
			}
			for _, name := range []string{"b3/1", "c3/1", "d3/1", "e3/1"} {
				s.Thread(name, func(t *Thread) {
					t.At(530 * time.Millisecond)
					t.Lock("x")
					t.Unlock("x")
				})
			}
			for _, name := range []string{"b4/1", "c4/1", "d4/1", "e4/1"} {
				s.Thread(name, func(t *Thread) {
					t.At(540 * time.Millisecond)
					t.Lock("x")
					t.Unlock("x")
				})
			}
			for _, name := range []string{"b5/1", "c5/1", "d5/1", "e5/1"} {
				s.Thread(name, func(t *Thread) {
					t.At(550 * time.Millisecond)
					t.Lock("x")
					t.Unlock("x")
				})
			}
			for _, name := range []string{"b6/1", "c6/1", "d6/1", "e6/1"} {
				s.Thread(name, func(t *Thread) {
					t.At(560 * time.Millisecond)
					t.Lock("x")
					t.Unlock("x")
				})
			}
			for _, name := range []string{"b7/1", "c7/1", "d7/1", "e7/1"} {
				s.Thread(name, func(t *Thread) {
					t.At(570 * time.Millisecond)
					t.Lock("x")
					t.Unlock("x")
				})
			}
			for _, name := range []string{"b8/1", "c8/1", "d8/1", "e8/1"} {
				s.Thread(name, func(t *Thread) {
					t.At(580 * time.Millisecond)
					t.Lock("x")
					t.Unlock("x")
				})
			}
			n.CountRequests()
			s.Play(6 * time.Second)
			n.AssertAsksSeldom(20)
		})
	}
}

// redsyncWith is redsync's mutex with options.
func redsyncWith(options ...redsync.Option) Library {
	return Library{
		Serve: ServeRedis,
		Open: func(addrs []string) (func(name string) Lock, error) {
			var pools []rs.Pool
			for _, addr := range addrs {
				pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})))
			}
			r := redsync.New(pools...)
			return func(name string) Lock { return mutex{r.NewMutex(name, options...)} }, nil
		},
		Lease: 8 * time.Second,
	}
}

type mutex struct{ *redsync.Mutex }

func (m mutex) Lock(ctx context.Context) error { return busy(m.LockContext(ctx)) }

func (m mutex) Unlock(ctx context.Context) error {
	_, err := m.UnlockContext(ctx)
	if errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return ErrNotHeld
	}
	return err
}

// busy translates the answer of servers that another has the lock.
func busy(err error) error {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return ErrBusy
	}
	return err
}

// ServeRedis starts redis-server, which keeps no data.
func ServeRedis(t *testing.T) Server {
	return StartProgram(t, "redis-server", "redis-server", func(_, port string) *exec.Cmd {
		return exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	})
}

// Resp is the protocol of Redis.
var Resp = Protocol{
	Request: func(in *bufio.Reader) (raw []byte, name string, err error) {
		raw, words, err := respValue(in)
		if len(words) > 0 {
			name = strings.ToUpper(words[0])
		}
		if slices.Contains([]string{"PING", "HELLO", "CLIENT", "AUTH", "SELECT"}, name) {
			name = Idle
		}
		return raw, name, err
	},
	Reply: func(in *bufio.Reader) (raw []byte, name string, err error) {
		raw, _, err = respValue(in)
		if len(raw) > 0 && raw[0] == '>' {
			name = Push
		}
		return raw, name, err
	},
}

// respValue reads a value, with the texts in it.
func respValue(in *bufio.Reader) (raw []byte, words []string, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, nil, err
	}
	raw, text := []byte(line), strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(text)
	switch line[0] {
	case '$', '=', '!':
		if n < 0 {
			return raw, nil, nil
		}
		body := make([]byte, n+len("\r\n"))
		_, err = io.ReadFull(in, body)
		return append(raw, body...), []string{string(body[:n])}, err
	case '*', '~', '>', '%', '|':
		if line[0] == '%' || line[0] == '|' {
			n *= 2
		}
		for range n {
			more, inner, err := respValue(in)
			raw, words = append(raw, more...), append(words, inner...)
			if err != nil {
				return raw, words, err
			}
		}
		return raw, words, nil
	case '+', '-', ':', '_', ',', '#', '(':
		return raw, []string{text}, nil
	}
	return raw, nil, fmt.Errorf("%q is not of the protocol of Redis", line)
}

// A Library is the lock that a story plays.
type Library struct {
	// Serve starts a server, which ends with the test.
	Serve func(t *testing.T) Server
	// Open opens a client of the servers at these addresses, and returns what makes its locks.
	Open func(addrs []string) (func(name string) Lock, error)
	// Lease is the time after which a hold ends that nobody renews; 0: the library renews holds.
	Lease time.Duration
}

// A Server is a program that the test starts.
type Server interface {
	Addr() string
}

// A Lock is the lock of one name, for one thread. A Lock whose holder is told of a loss also has a method Lost,
// and one that can be prolonged has a method Extend.
type Lock interface {
	Lock(ctx context.Context) error
	Unlock(ctx context.Context) error // ErrNotHeld: the caller does not have it
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

// Sleep waits.
func (t *Thread) Sleep(d time.Duration) { time.Sleep(d) }

// Lock waits for a lock, and reports whether it was granted.
func (t *Thread) Lock(name string) bool { return t.acquire(name, t.lock(name).Lock) }

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

// A Program is a server that runs in a process of its own.
type Program struct {
	t       *testing.T
	addr    string
	dir     string // of its data
	command func(dir, port string) *exec.Cmd
	running *exec.Cmd
}

// StartProgram starts a server that ends with the test. It skips the test if the machine lacks the program.
func StartProgram(t *testing.T, program, pkg string, command func(dir, port string) *exec.Cmd) *Program {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%v; install %s", err, pkg)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	p := &Program{t: t, addr: l.Addr().String(), dir: t.TempDir(), command: command}
	p.start()
	t.Cleanup(p.end)
	return p
}

// Addr is the address of the program.
func (p *Program) Addr() string { return p.addr }

func (p *Program) start() {
	_, port, _ := net.SplitHostPort(p.addr)
	p.running = p.command(p.dir, port)
	if err := p.running.Start(); err != nil {
		p.t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", p.addr)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(begun) > time.Minute {
			p.t.Fatalf("%v; the test did not work", err)
		}
	}
}

func (p *Program) end() {
	_ = p.running.Process.Kill()
	_ = p.running.Wait()
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

// During fits what a client exchanges with a server while one of its threads is in such a call: acquire or unlock.
// Without a call, the client renews its holds.
func (s *Story) During(role string) func(m *Message) bool {
	return func(m *Message) bool {
		if m.Command == Idle {
			return false
		}
		now := "renew"
		for _, t := range s.threads {
			if n := len(t.calls); t.client() == m.link.client && n > 0 && !t.calls[n-1].over {
				now = t.calls[n-1].role
			}
		}
		return now == role
	}
}

// CountRequests notes the requests that each client sends while one of its threads acquires a lock.
func (n *Network) CountRequests() {
	acquiring := n.s.During("acquire")
	n.sent = map[string][]time.Duration{}
	n.Rule(Rule{Direction: "request", If: func(m *Message) bool {
		if acquiring(m) {
			n.sent[m.link.client] = append(n.sent[m.link.client], n.s.since())
		}
		return false
	}})
}

// AssertAsksSeldom fails if a client sends more requests in a second.
func (n *Network) AssertAsksSeldom(most int) {
	n.s.t.Helper()
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	for client, sent := range n.sent {
		for i := range len(sent) - most {
			if last := sent[i+most]; last-sent[i] < time.Second {
				n.s.t.Errorf("client %s sent %d requests from %v to %v", client, most+1, sent[i], last)
				break
			}
		}
	}
}

// A Protocol takes the bytes of a connection apart.
type Protocol struct {
	// Request reads a request and the name of its command, which is Idle for one that no lock needs.
	Request func(in *bufio.Reader) (raw []byte, name string, err error)
	// Reply reads a reply. Its name is Push for one that answers no request.
	Reply func(in *bufio.Reader) (raw []byte, name string, err error)
}

// Idle is the name of a request that no lock needs.
const Idle = "idle"

// Push is the name of a reply that answers no request.
const Push = "push"

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
	sent   map[string][]time.Duration // by client
}

// Network puts proxies between the clients that are added from now on and the servers.
func (s *Story) Network(protocol Protocol) *Network {
	n := &Network{s: s, protocol: protocol}
	s.through = n.listen
	return n
}

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
