//go:build linux

package live

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockstep/live/proxy"
	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// session is the parent's side of a run.
type session struct {
	o    Options
	sc   *scenarios.Scenario
	lock *subject.Subject
	// purpose returns the role, the locks and the owners of a request.
	purpose func(words []string, by sim.Author) sim.Command
	// reading reads the states of locks. owners learns which thread each value in them belongs to;
	// it is nil if the states name threads themselves.
	reading reading
	owners  *sim.Owners
	bytes   bool          // the servers are Observed
	world   subject.World // reads states from the views of Observed servers
	prefix  string        // of the keys of the run
	logs    string        // the folder of the logs, if they are kept
	kind    Kind
	nodes   []*node // the servers, by node
	group   *group  // the group that the nodes form; nil: they form none
	serving []int   // the indexes of the nodes that take writes; guarded by mu
	// foreign is the lock if it is not Go code. called replaces each of its owners by the name
	// that the port would give it.
	foreign *Foreign
	built   string // what Foreign.Build returned
	called  *strings.Replacer
	base    time.Time // the start
	// baseNs is the start on the monotonic clock, and startMs in Unix milliseconds.
	baseNs, startMs int64

	sides []*side // by process, in the scenario's order

	mu        sync.Mutex
	events    []event
	messages  []*message
	byConn    map[connKey]*message
	begun     bool // the time of the run has started; no record has earlier events
	looks     []look
	viewed    map[string]*model.LockState // of a run with Observed servers: the newest states, with values
	appeared  map[appearance]bool         // of such a run: the values that a view had
	valued    map[string]*model.LockState // the states of the last look, with values; nil without owners
	rules     []*rule
	resources *sim.Resources
	published map[string]int64
	calm      bool
	leaving   bool
	faultsDue int
	movedNs   int64
	gapNs     int64 // the longest time for which a process stood still without a fault
	skewNs    int64 // the largest distance between the server's clock and that of the start
	rng       *rand.Rand
	failed    error
	nextEnd   int64         // when a key ends next, in ns since the start; 0: none
	poke      chan struct{} // nextEnd has changed
}

// event is an event whose numbers are the process's own.
type event struct {
	model.Event
	msg *message
}

// message is a request of a client, or a message that the server pushed.
type message struct {
	side    *side
	conn    string
	request sim.Request
	cmd     sim.Command
	author  sim.Author    // if there are owners
	known   chan struct{} // closed when the child has told of the request
	channel string        // of a push
	push    bool
	hidden  bool // no record has it: see greets
	came    bool // it has reached the proxy

	sentNs int64
	op     int // the process's own number
	told   bool
	fromNs int64 // when it went to the server
	cameNs int64 // when the last bytes of its reply came, of an Observed server; 0: none came
	look   int   // the index of the look that followed it; -1: it was not executed
	reply  sim.Reply
}

// connKey names a request. The index counts the requests of the connection.
type connKey struct {
	process, conn string
	index         int
}

// look is a reading of the keys of a node by the parent, with the cause of the reading.
type look struct {
	node         int   // its index
	fromNs, toNs int64 // the change after the last look happened between these instants
	atNs         int64 // the instant of the change, as the server says; 0: it does not say
	readNs       int64 // when the server read the keys
	msg          *message
	fault        int // the number of the fault that struck
	text         string
	removed      []string // the keys that the fault let expire
	missed       []string // the keys to which the command gave an end that came before the look
	published    []model.Event
	keys         map[string]key                // of the node
	views        []map[string]*model.LockState // of Observed servers: the states by lock, with values
	before       int64                         // the instant of the last look at the node
	causes       map[string]*message           // by lock, the earlier message that carried a new value
	after        *message                      // it may have made the changes that no other message made
	first        bool
	serving      []int // the nodes that take writes from here on; nil: the same as before
	moved        bool  // keys may have moved to or from another node
	blind        bool  // the node takes no writes, and its keys were not read
}

// now is the time since the start of the run.
func (s *session) now() int64 { return Monotonic() - s.baseNs }

func (s *session) at(t time.Time) int64 { return int64(t.Sub(s.base)) }

// play plays the scenario. It returns when all processes have ended.
func (s *session) play(ctx context.Context, dir string) (err error) {
	s.o.Report("starting the processes")
	if err := s.serve(dir); err != nil {
		return err
	}
	defer s.stop()
	for _, n := range s.masters() {
		if n.redis == nil {
			continue // it has no scripts
		}
		// A server that has served other clients before knows the scripts.
		for _, text := range s.reading.servers[n.world].Scripts() {
			if err := n.redis.rdb.ScriptLoad(ctx, text).Err(); err != nil {
				return err
			}
		}
	}
	if s.o.Address != "" {
		defer s.clean()
	}
	if s.foreign = foreignOf(s.lock); s.foreign != nil {
		if s.built, err = s.foreign.Build(); err != nil {
			return unusable{err}
		}
	}
	if err := s.begin(dir); err != nil {
		s.end()
		return err
	}
	defer s.end()
	s.run(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failed, ctx.Err())
}

// serve starts the servers, or uses the server of Options.Address.
func (s *session) serve(dir string) error {
	var servers []Server
	if s.o.Servers != "" {
		return s.serveGroup(dir)
	}
	if s.o.Address == "" {
		kind, err := kindOf(s.lock)
		if err != nil {
			return unusable{err}
		}
		s.kind = kind
		if servers, err = kind.Start(StartOptions{Scenario: s.sc, Lock: s.lock, Dir: dir, Free: redisserver.FreeAddr, Spawn: Spawn}); err != nil {
			return err
		}
	} else {
		server, err := useServer(s.o.Address)
		if err != nil {
			return err
		}
		servers = []Server{server}
	}
	for i, server := range servers {
		s.nodes = append(s.nodes, newNode(i, server))
		s.serving = append(s.serving, i)
	}
	return nil
}

// stop ends the servers.
func (s *session) stop() {
	if s.group != nil {
		defer s.group.stop()
	}
	for _, n := range s.nodes {
		n.Stop()
	}
}

// programs returns the programs of the servers with their versions, each once.
func (s *session) programs() (all []string) {
	for _, n := range s.nodes {
		if n.sentinel {
			continue
		}
		if v := n.Version(); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// struck returns the nodes that run and take writes, for each server that a fault strikes.
func (s *session) struck(f scenarios.Fault) (all []*node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.masters() {
		if (len(f.Servers) == 0 || slices.Contains(f.Servers, n.world+1)) && !n.down {
			all = append(all, n)
		}
	}
	return all
}

// masters returns the nodes that take writes. Guarded by mu.
func (s *session) masters() (all []*node) {
	for _, i := range s.serving {
		all = append(all, s.nodes[i])
	}
	return all
}

// opening is how long before the start of the run the parent tells the children to begin. They open
// the lock in this time.
const opening = 400 * time.Millisecond

// begin starts the children and then the time of the run.
func (s *session) begin(dir string) error {
	for i, p := range s.sc.Processes {
		c := &side{s: s, index: i, process: p, over: make(chan struct{}), here: make(chan struct{}), ready: make(chan error, 1), threads: make([]threadState, p.Threads), ops: map[int]model.Event{}}
		s.sides = append(s.sides, c)
		for _, n := range s.nodes {
			g := &gate{side: c, node: n, conns: map[int]string{}, torn: map[int]bool{}}
			welcome := g.welcome
			if s.foreign != nil {
				welcome = nil // its client does not read a first byte
			}
			o := proxy.Options{Addr: "127.0.0.1:0", Handler: g, Patience: patience, Welcome: welcome, Dial: n.dial}
			if n.observed != nil {
				g.streams = map[int]bool{}
				settle := n.observed.Settle()
				settle.Stands = func() bool { return s.stands(n) }
				o.Handler, o.Settle = &bytesGate{g, map[int]*message{}}, &settle
			}
			var err error
			g.proxy, err = proxy.Start(o)
			if err != nil {
				return err
			}
			c.gates = append(c.gates, g)
		}
		if err := c.start(dir); err != nil {
			return err
		}
	}
	for _, c := range s.sides { // a large program starts slowly
		select {
		case <-c.here:
		case <-c.over:
			return fmt.Errorf("the client of process %s ended before it began; see its log", c.process.Name)
		case <-time.After(patience):
			return fmt.Errorf("the client of process %s does not start", c.process.Name)
		}
	}
	if s.foreign != nil {
		if err := s.prepare(); err != nil {
			return err
		}
	}
	// The start is at a whole millisecond of the wall clock, by which the server counts.
	s.base = time.Now().Add(opening)
	for _, n := range s.nodes {
		if t, ok := n.observed.(Ticking); ok {
			var err error
			if s.base, err = t.Tick(opening); err != nil {
				return err
			}
		}
	}
	wait := time.Duration(1e6 - s.base.UnixNano()%1e6)
	s.base = s.base.Add(wait)
	s.baseNs = Monotonic() + int64(time.Until(s.base))
	s.startMs = s.base.UnixMilli()
	s.mu.Lock()
	s.begun = true
	s.mu.Unlock()
	for _, c := range s.sides {
		b := s.began(c)
		b.StartNs = s.baseNs
		c.tell(down{Begin: &b})
	}
	for _, c := range s.sides {
		if err := c.begins(); err != nil {
			return err
		}
	}
	if late := s.now(); late > 0 {
		s.gapNs = late
	}
	for _, n := range s.masters() { // a client that was late to begin may have a request there already
		s.alone(n, func() { s.look(nil, look{node: n.index, first: true, fromNs: s.now(), serving: s.serving}) })
	}
	return nil
}

// began returns the message that begins a child, without the instant of the start.
func (s *session) began(c *side) began {
	var addrs []string
	var routes map[string]string
	if s.group != nil {
		addrs, routes = s.group.ways(c)
	} else {
		for _, g := range c.gates {
			addrs = append(addrs, g.proxy.Addr())
		}
	}
	return began{
		File: s.sc.File, Scenario: s.sc.Text, Lock: s.lock.Name, Process: c.process.Name, Index: c.index,
		Addrs: addrs, Routes: routes, Setup: s.o.Servers, Prefix: s.prefix, Seed: s.rng.Uint64(),
		Offset: c.process.WallOffset, DriftPPM: c.process.WallDriftPPM, Built: s.built, Bytes: s.bytes,
	}
}

// preparing lets only one run at a time start its programs. They keep the processors busy for seconds,
// and would make other runs of this process late.
var preparing sync.Mutex

// prepare lets each child start the program of a Foreign, and removes the keys that these programs
// leave on the server.
func (s *session) prepare() error {
	preparing.Lock()
	defer preparing.Unlock()
	for _, c := range s.sides {
		b := s.began(c)
		c.tell(down{Prepare: &b})
	}
	var called []string
	for _, c := range s.sides {
		if err := c.begins(); err != nil {
			return err
		}
		for i, owner := range c.program.Owners {
			called = append(called, owner, onredis.OwnerField(model.ThreadName(c.process.Name, i+1)))
		}
	}
	s.mu.Lock()
	s.called = strings.NewReplacer(called...)
	s.mu.Unlock()
	s.clean()
	for _, n := range s.nodes {
		if _, _, _, err := n.redis.look(s.glob()); err != nil { // discards what MONITOR showed until here
			return err
		}
	}
	return nil
}

// dial connects to the server. If the server is starting again, dial waits for it, unless another
// server may take its place.
func (n *node) dial() (net.Conn, error) {
	if n.member != nil || n.sentinel {
		return net.DialTimeout("tcp", n.Addr(), patience)
	}
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", n.Addr(), patience)
		if err == nil || time.Now().After(end) {
			return c, err
		}
	}
}

// record adds an event of the parent. Guarded by mu.
func (s *session) record(e model.Event, m *message) {
	if e.AtNs == 0 {
		e.AtNs = s.now()
	}
	s.events = append(s.events, event{e, m})
}

// message returns the request at a place of a connection, and makes it at the first call: the child and
// the proxy tell of it in either order. Guarded by mu.
func (s *session) message(c *side, conn string, index int, words []string) *message {
	key := connKey{c.process.Name, conn, index}
	m := s.byConn[key]
	if m == nil {
		m = &message{side: c, conn: conn, look: -1, known: make(chan struct{})}
		words = s.names(words)
		m.request = simredis.RequestOf(words)
		m.hidden = !s.begun || m.request.Name == "HELLO" && !m.request.Streams
		if s.owners == nil {
			s.describe(m, sim.Author{})
		}
		s.byConn[key] = m
		s.messages = append(s.messages, m)
	}
	return m
}

// describe fills in the purpose of a request. Guarded by mu.
func (s *session) describe(m *message, by sim.Author) {
	m.cmd = s.purpose(m.request.Words, by)
	for i, lock := range m.cmd.Locks {
		m.cmd.Locks[i] = s.bare(lock)
	}
}

// author notes the sender and the words of a request, as a world does. Guarded by mu.
func (s *session) author(m *message, by sim.Author, words []string) {
	by = s.owners.Sends(by, words, s.bytes, func(lock string) string {
		if held := s.valued[lock]; held != nil {
			return s.owners.Name(lock, held, nil).Owner
		}
		return ""
	})
	m.author = by
	s.describe(m, by)
}

// learn looks at the keys after a request, and notes to whom new values belong. The request is nil if
// none led to these keys. Guarded by mu.
func (s *session) learn(m *message, l look) {
	if s.owners == nil {
		return
	}
	by := m.writer()
	for _, lock := range play.LockNames(s.sc) {
		before := s.valued[lock]
		s.valued[lock] = s.read(l.readNs, s.keysOf(l), lock)
		s.owners.Follows(lock, before, s.valued[lock], by)
		s.owners.Name(lock, s.valued[lock], by)
	}
}

// writer returns the sender of a request; nil for no request.
func (m *message) writer() *sim.Writer {
	if m == nil {
		return nil
	}
	return m.author.Writer(m.side.process.Name, m.request, m.reply.Shown)
}

// bare returns a name without the prefix of the run.
func (s *session) bare(name string) string {
	if s.prefix == "" {
		return name
	}
	return strings.Replace(name, s.prefix, "", 1)
}

// glob matches the keys of the run.
func (s *session) glob() string {
	if s.prefix == "" {
		return "*"
	}
	return "*" + s.prefix + "*"
}

// names replaces the owners in words by the names that a port gives them.
func (s *session) names(words []string) []string {
	if s.called == nil {
		return words
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = s.called.Replace(w)
	}
	return out
}

// namesIn is names for keys and their values.
func (s *session) namesIn(keys map[string]key) map[string]key {
	if s.called == nil {
		return keys
	}
	out := map[string]key{}
	for name, k := range keys {
		k.value = s.names(k.value)
		out[s.called.Replace(name)] = k
	}
	return out
}

// travel waits for the rest of the time that a message is on its way. It reports false when gone is
// closed.
func (s *session) travel(already time.Duration, gone <-chan struct{}) bool {
	t := time.NewTimer(s.latency() - already)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-gone:
		return false
	}
}

// latency draws the time that a message is on its way.
func (s *session) latency() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	min, max := s.sc.Latency.Min, s.sc.Latency.Max
	if max <= min {
		return min
	}
	return min + time.Duration(s.rng.Int64N(int64(max-min)+1))
}

// clean removes the keys of the run.
func (s *session) clean() {
	for _, n := range s.nodes {
		keys, _, _, err := n.redis.look(s.glob())
		if err != nil {
			continue
		}
		for name := range keys {
			_ = n.redis.rdb.Del(context.Background(), name).Err()
		}
	}
}

// end ends the children and the proxies.
func (s *session) end() {
	for _, c := range s.sides {
		if c.cmd != nil && c.cmd.Process != nil {
			_ = c.signal(syscall.SIGKILL)
			_ = c.in.Close() // the child then ends even if no signal reaches it
			<-c.over
		}
		for _, g := range c.gates {
			g.proxy.Close()
		}
	}
}
