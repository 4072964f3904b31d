package sim

import (
	"bufio"
	"bytes"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/proto"
	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/model"
)

// Keyspace is how an observer reads the server's keys. Absent keys, and keys
// of another type, read as empty.
type Keyspace interface {
	String(key string) (string, bool)
	Hash(key string) map[string]string
	List(key string) []string
	SortedSet(key string) map[string]float64
	// ExpiresMs is the last millisecond since the start in which the key lives;
	// -1: it has no expiry, -2: there is no key.
	ExpiresMs(key string) int64
}

// server is miniredis with Redis's clock: whole milliseconds, and a key that
// lives through the millisecond of its expiry.
type server struct {
	w       *World
	m       *miniredis.Miniredis
	nextRun int64 // ms of the planned expiry, 0: none
	history []snapshot
	keep    int // snapshots to keep, for failovers
	shards  shards
	// executing is the command of a client that is being executed.
	executing *message
	running   *script         // of executing
	wrote     bool            // executing may have changed the data
	cached    map[string]bool // scripts that are in the cache, as far as is known here
	unloaded  []string        // scripts in the cache that miniredis has not been given yet

	replicas []*replica
	writes   int64    // since the start, that the replicas get
	latest   snapshot // the data after the last of them
	spoke    bool     // something was published since
	term     int      // counts connections of server and replicas
	flushed  bool     // the script cache was, once
	waits    []*wait  // in order of arrival
}

// message is a command on its way, its reply, or a published message.
type message struct {
	id    int
	conn  *conn
	words []string
	name  string // of the command, upper case
	cmd   Command
	op    int
	bytes []byte // reply or push
	ch    string // of a push
	there bool   // the server has it already and put it off
	// pipe is what it was written with; refused, the error that a rule gives it
	// in its place there.
	pipe    *pipeline
	refused string
}

// pipeline is commands that a client wrote at once. A connection carries them in
// order: what a rule does to one of them, the others behind it cannot pass.
type pipeline struct {
	lost map[string]int   // by direction, the first message lost: so are those behind it
	held map[string]*rule // by direction: those behind wait for the end of this rule
}

// behindLost says whether m is lost because one before it is.
func (m *message) behindLost(dir string) bool {
	return m.pipe != nil && m.pipe.lost[dir] != 0 && m.id > m.pipe.lost[dir]
}

func newPipeline() *pipeline {
	return &pipeline{lost: map[string]int{}, held: map[string]*rule{}}
}

// shown are a command's arguments for the record, without a script's text.
func (m *message) shown() []string {
	switch m.name {
	case "EVAL", "EVALSHA":
		return m.words[min(2, len(m.words)):]
	case "SCRIPT":
		return m.words[1:2]
	}
	return m.words[1:]
}

func newServer(w *World) *server {
	s := &server{w: w, m: miniredis.NewMiniRedis(), shards: shards{}, cached: map[string]bool{}, unloaded: w.cfg.Scripts}
	for range w.cfg.Replicas {
		s.replicas = append(s.replicas, &replica{})
	}
	pipe, err := s.m.Dial() // starts it without a listener
	if err != nil {
		panic("sim: miniredis did not start: " + err.Error())
	}
	_ = pipe.Close()
	s.m.SetTime(w.start)
	s.m.ClockTTL(true)
	for _, text := range w.cfg.Scripts {
		s.cached[scriptOf(text).sha] = true
	}
	s.m.Server().SetPreHook(s.hook)
	return s
}

// command executes a command of the world's own, on a connection of its own.
func (s *server) command(words ...string) (reply string) {
	var out bytes.Buffer
	peer := mserver.NewPeer(bufio.NewWriter(&out))
	s.m.Server().Dispatch(peer, words)
	peer.Flush()
	return out.String()
}

// blocking commands would block the scheduler.
var blocking = []string{"BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP", "XREAD", "XREADGROUP", "WAITAOF"}

// ours are the commands that the world answers, or counts, itself.
var ours = []string{"PUBLISH", "SPUBLISH", "SSUBSCRIBE", "SUNSUBSCRIBE", "WAIT", "INFO"}

// hook looks at every command before miniredis does, those of scripts included.
// True: it was answered.
func (s *server) hook(peer *mserver.Peer, cmd string, args ...string) bool {
	if slices.Contains(blocking, cmd) {
		peer.WriteError("ERR lockstep: " + cmd + " may block and is not simulated")
		return true
	}
	if cmd == "EXEC" || cmd == "SCRIPT" && len(args) > 0 && strings.EqualFold(args[0], "FLUSH") {
		clear(s.cached)
	}
	if cmd == "SCRIPT" {
		s.load()
	}
	if s.executing == nil {
		return false // the world's own
	}
	s.wrote = s.wrote || !reading[cmd] && !keeping[cmd]
	s.touchCommand(cmd, args)
	c := s.executing.conn
	direct := peer == c.peer
	if direct && !c.multi && onlyListens(c, cmd, args) {
		return true
	}
	switch {
	case !direct:
		if s.refused(peer, cmd, args) {
			return true
		}
	case cmd == "EVAL" || cmd == "EVALSHA":
		if s.eval(peer, cmd, args) {
			return true
		}
		s.load()
	case cmd == "EVALSHA_RO":
		s.load()
	case cmd == "SELECT":
		c.elsewhere = true
	case cmd == "SCRIPT" && len(args) == 2 && strings.EqualFold(args[0], "LOAD"):
		scriptOf(args[1])
	}
	if !slices.Contains(ours, cmd) {
		return cmd == "PUBSUB" && direct && !c.multi && s.shards.asked(peer, args)
	}
	if direct && c.multi {
		// miniredis would queue only what it knows. It knows scripts.
		s.m.Server().Dispatch(peer, append([]string{"EVAL", "return redis.call(unpack(ARGV))", "0", cmd}, args...))
		return true
	}
	switch {
	case strings.HasSuffix(cmd, "PUBLISH"):
		if len(args) != 2 {
			peer.WriteError("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
			return true
		}
		s.spoke = true
		s.w.published[args[0]]++
		s.w.record(model.Event{Kind: model.KindPublish, Channel: args[0], Text: args[1]})
		if cmd == "PUBLISH" {
			return false
		}
		peer.WriteInt(s.shards.publish(args[0], args[1]))
	case cmd == "INFO":
		s.info(peer, args)
	case !direct && (cmd != "WAIT" || s.executing.name != "EXEC"):
		peer.WriteError("ERR This Redis command is not allowed from script")
	case cmd == "WAIT":
		s.wait(peer, args)
	case cmd == "SSUBSCRIBE":
		s.shards.subscribe(c, args)
	default:
		s.shards.unsubscribe(c, args)
	}
	return true
}

// execute lets the server execute a command and gives its reply; none: it waits.
func (s *server) execute(m *message) []byte {
	m.conn.fromServer.await()
	s.wrote = false
	s.executing = m
	s.m.Server().Dispatch(m.conn.peer, m.words)
	s.executing = nil
	m.conn.peer.Flush()
	reply := m.conn.fromServer.take()
	switch name := m.name; {
	case name == "MULTI":
		m.conn.multi = m.conn.multi || string(reply) == "+OK\r\n"
	case name == "EXEC" || name == "DISCARD":
		m.conn.multi = false
	case name == "SUBSCRIBE" || name == "PSUBSCRIBE":
		m.conn.subscribes = m.conn.subscribes || !bytes.HasPrefix(reply, []byte("-"))
	case strings.HasSuffix(name, "UNSUBSCRIBE") && name != "SUNSUBSCRIBE" && bytes.HasSuffix(reply, []byte(":0\r\n")):
		m.conn.subscribes = false
	}
	return reply
}

func (s *server) nowMs() int64 { return s.w.now() / int64(time.Millisecond) }

// setClock moves the server's clock to this millisecond.
func (s *server) setClock() {
	s.m.SetTime(s.w.start.Add(time.Duration(s.nowMs()) * time.Millisecond))
}

// send takes a command from a client, which that goroutine of it wrote: the network's
// side of a message.
func (w *World) send(c *conn, words []string, writer string, pipe *pipeline) {
	w.msgs++
	c.unanswered++
	c.marked = c.marked || marks(words[0])
	m := &message{id: w.msgs, conn: c, words: words, name: strings.ToUpper(words[0]), cmd: w.cfg.Name(words), op: c.p.opOf(words, writer), pipe: pipe}
	if !c.p.dead {
		w.record(model.Event{Kind: model.KindSend, Process: c.p.cfg.Name, Op: m.op, Msg: m.id, Conn: c.id,
			Command: m.name, Script: m.cmd.Script, Args: m.shown(), Owners: m.cmd.Owners, Locks: m.cmd.Locks})
	}
	c.p.whenAwake(func() { w.transmit(m) })
}

// whenAwake does f now, or when the pause ends.
func (p *Process) whenAwake(f func()) {
	if p.paused() {
		p.held = append(p.held, f)
		return
	}
	f()
}

func (w *World) transmit(m *message) {
	c := m.conn
	switch {
	case c.p.dead:
		return
	case c.severed:
		w.lost(m, "request", model.LostReset)
	case w.partitioned(c.p):
		w.lost(m, "request", model.LostPartition)
	default:
		pass := func(delay int64) {
			w.travel(c.outLine, &c.lastOut, w.latency(c.p, "request")+delay, func() { w.arrive(m, false) }, w.fated(m, "request"))
		}
		w.meet(m, "request", pass, func(err string) {
			if m.pipe != nil { // its answer has a place among others
				m.refused = err
				pass(0)
				return
			}
			w.reply(m, []byte("-"+err+"\r\n"), true)
		})
	}
}

// travel lets f happen after a way of that length, and not before what
// travelled earlier the same way.
func (w *World) travel(line string, last *int64, length int64, f func(), p *parcel) {
	*last = max(w.now()+length, *last)
	w.sched.addTo(line, *last, classDelivery, f, p)
}

func (w *World) lost(m *message, dir, why string) {
	if p := m.pipe; p != nil && (p.lost[dir] == 0 || m.id < p.lost[dir]) {
		p.lost[dir] = m.id
	}
	w.record(model.Event{Kind: model.KindLost, Process: m.conn.p.cfg.Name, Op: m.op, Msg: m.id, Dir: dir, Script: m.cmd.Script,
		Owners: m.cmd.Owners, Locks: m.cmd.Locks, Channel: m.ch, Why: why})
}

// arrive is a command's arrival at the server; again: it was put off before.
func (w *World) arrive(m *message, again bool) {
	name := m.name
	w.touch(objServer, false)
	switch {
	case m.conn.severed:
		w.lost(m, "request", model.LostReset)
		return
	case m.conn.gone && strings.HasSuffix(name, "SUBSCRIBE") && !strings.Contains(name, "UNSUB"), m.conn.ended && name == "WAIT":
		w.lost(m, "request", model.LostClosed)
		return
	case m.conn.p.cutUntil > w.now() && !w.leaving && !m.there:
		w.lost(m, "request", model.LostPartition)
		return
	case m.behindLost("request"):
		w.lost(m, "request", model.LostBehindAnother)
		return
	case w.stallTill > w.now() || !again && m.conn.stalled > 0:
		w.touch(objStalled, true) // what was put off comes in the order in which it was
		w.putOff(m)
		return
	case m.conn.waits != nil:
		m.there = true
		m.conn.waits.held = append(m.conn.waits.held, m)
		return
	case m.refused != "":
		w.reply(m, []byte("-"+m.refused+"\r\n"), true)
		return
	}
	s := w.server
	s.setClock()
	s.snapshot()
	reply := s.execute(m)
	if s.wrote {
		s.snapshot()
	}
	if s.wrote || s.spoke {
		s.replicate()
	}
	if string(reply) != "+QUEUED\r\n" {
		m.conn.seen = s.writes
		if len(s.replicas) > 0 && !m.conn.subscribes && len(m.conn.shards) == 0 {
			w.touchReplication(objWrites, false) // for a WAIT, which none that listens may send
		}
	}
	if m.conn.waits == nil {
		w.executed(m, reply)
	}
}

// executed records that the server executed a command and sends its reply.
func (w *World) executed(m *message, reply []byte) {
	w.record(model.Event{Kind: model.KindExec, Process: m.conn.p.cfg.Name, Op: m.op, Msg: m.id, Conn: m.conn.id,
		Command: m.name, Script: m.cmd.Script, Args: m.shown(), Owners: m.cmd.Owners, Locks: m.cmd.Locks, Reply: shownReply(reply)})
	if w.server.wrote {
		w.observe(m.id)
		w.server.planExpiry()
	}
	w.reply(m, reply, false)
}

// putOff lets a command arrive again when the server goes on, behind those of
// its connection that wait already.
func (w *World) putOff(m *message) {
	m.conn.stalled++
	w.sched.add(max(w.now(), w.stallTill), classDelivery, func() {
		m.conn.stalled--
		w.arrive(m, true)
	})
}

// reply sends bytes back; injected: they come from a rule, not from the server.
func (w *World) reply(m *message, b []byte, injected bool) {
	if m.conn.p.dead {
		w.lost(m, "reply", model.LostProcessDead)
		return
	}
	m.bytes = b
	back := func(delay int64) {
		w.travel(m.conn.inLine, &m.conn.lastIn, w.latency(m.conn.p, "reply")+delay, func() { w.deliver(m, "reply", false) }, w.fated(m, "reply"))
	}
	switch {
	case m.conn.severed:
		w.lost(m, "reply", model.LostReset)
	case w.partitioned(m.conn.p):
		w.lost(m, "reply", model.LostPartition)
	case m.refused != "":
		w.passage(m, "reply", func() { back(0) })
	case injected:
		back(w.latency(m.conn.p, "request"))
	default:
		w.meet(m, "reply", back, func(err string) {
			m.bytes = []byte("-" + err + "\r\n")
			back(0)
		})
	}
}

// pushes sends published messages that miniredis wrote to c.
func (w *World) pushes(c *conn) {
	b := c.fromServer.take()
	if len(b) == 0 {
		return
	}
	for text := string(b); text != ""; {
		words, rest, ok := readCommand(text)
		if !ok { // not all are texts, as of what ends a subscription
			raw, err := proto.Read(bufio.NewReader(strings.NewReader(text)))
			if err != nil {
				break
			}
			rest = text[len(raw):]
			words, _ = proto.ReadStrings(raw)
		}
		raw := text[:len(text)-len(rest)]
		text = rest
		if len(words) < 3 {
			continue
		}
		w.msgs++
		m := &message{id: w.msgs, conn: c, words: []string{"MESSAGE"}, name: "MESSAGE", bytes: []byte(raw), ch: words[len(words)-2]}
		if c.p.dead || c.severed || w.partitioned(c.p) {
			why := model.LostPartition
			if c.p.dead {
				why = model.LostProcessDead
			} else if c.severed {
				why = model.LostReset
			}
			w.lost(m, "push", why)
			continue
		}
		w.meet(m, "push", func(delay int64) {
			w.travel(c.inLine, &c.lastIn, w.latency(c.p, "reply")+delay, func() { w.deliver(m, "push", false) }, w.fated(m, "push"))
		}, func(string) { w.lost(m, "push", "an error rule cannot answer a published message") })
	}
}

// deliver lets bytes reach a client; again: they were put off before.
func (w *World) deliver(m *message, dir string, again bool) {
	c := m.conn
	s := c.client
	s.mu.Lock()
	shut := s.shut
	s.mu.Unlock()
	w.touch(objProcess(c.p), true)
	switch {
	case w.orders != nil && m.behindLost(dir):
		w.lost(m, dir, model.LostBehindAnother) // which was on its way already
	case c.p.dead:
		w.lost(m, dir, model.LostProcessDead)
	case c.severed:
		w.lost(m, dir, model.LostReset)
	case w.partitioned(c.p):
		w.lost(m, dir, model.LostPartition)
	case shut:
		w.lost(m, dir, model.LostUnwanted)
	case c.p.paused() || !again && c.putOff > 0:
		// Behind those of this connection that wait already.
		c.putOff++
		w.sched.add(max(w.now(), c.p.pausedUntil), classDelivery, func() {
			c.putOff--
			w.deliver(m, dir, true)
		})
	default:
		w.record(model.Event{Kind: model.KindDeliver, Process: c.p.cfg.Name, Op: m.op, Msg: m.id, Conn: c.id, Dir: dir,
			Script: m.cmd.Script, Owners: m.cmd.Owners, Locks: m.cmd.Locks, Channel: m.ch})
		if dir == "reply" {
			c.unanswered--
		}
		s.mu.Lock()
		if len(s.in) == 0 {
			s.in = m.bytes
		} else {
			s.in = append(s.in, m.bytes...)
		}
		s.mu.Unlock()
		s.signal()
	}
}

// sever breaks a connection: nothing passes any more, and the client notices in
// an event of its own, because goroutines woken together go on in any order.
func (w *World) sever(c *conn) {
	if c.severed {
		return
	}
	c.severed = true
	w.touch(objProcess(c.p), true)
	w.server.disconnect(c)
	w.sched.add(w.now(), classDelivery, func() {
		c.client.cut(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})
	})
}

// disconnect is the end of a connection at the server.
func (s *server) disconnect(c *conn) {
	c.gone, c.ended = true, true
	s.w.touch(objServer, false)
	s.w.touch(objChannels, true)
	s.hangUp(c)
	for len(c.shards) > 0 {
		s.shards.leave(c, c.shards[0])
	}
	if c.subscribes {
		c.subscribes = false
		s.m.Server().Dispatch(c.peer, []string{"UNSUBSCRIBE"})
		s.m.Server().Dispatch(c.peer, []string{"PUNSUBSCRIBE"})
		c.peer.Flush()
	}
	c.fromServer.take()
}

// planExpiry plans the next moment at which a key runs out. It makes fresh
// expiries Redis's: a key with n ms to live is there while the clock says n ms
// later, and gone one later. (miniredis lets it go at n.) Half a millisecond
// more does it, and leaves PTTL alone.
func (s *server) planExpiry() {
	first, now := int64(math.MaxInt64), s.nowMs()
	for _, k := range s.m.Keys() {
		ttl := s.m.TTL(k)
		if ttl <= 0 {
			continue
		}
		if ttl%time.Millisecond == 0 {
			s.m.SetTTL(k, ttl+time.Millisecond/2)
		}
		first = min(first, now+int64(ttl/time.Millisecond)+1)
	}
	if first == math.MaxInt64 || first == s.nextRun {
		return
	}
	s.nextRun = first
	s.w.sched.add(first*int64(time.Millisecond), classExpiry, func() {
		if s.nextRun != first {
			return // planned anew since
		}
		s.nextRun = 0
		s.sweep()
		s.planExpiry()
	})
}

// sweep lets go what has run out.
func (s *server) sweep() {
	before := s.m.Keys()
	s.setClock()
	after := s.m.Keys()
	for _, k := range before {
		if !slices.Contains(after, k) {
			s.w.record(model.Event{Kind: model.KindExpire, Key: k})
		}
	}
	s.snapshot()
	s.replicate()
	s.w.observe(0)
}

// remove deletes the keys that match a glob, as an operator or an eviction
// would; expire lets them run out at once.
func (s *server) remove(pattern string) []string {
	s.setClock()
	var gone []string
	for _, k := range s.m.Keys() {
		if glob(pattern, k) {
			s.m.Del(k)
			gone = append(gone, k)
		}
	}
	return gone
}

func (s *server) String(key string) (string, bool) {
	v, err := s.m.Get(key)
	return v, err == nil
}

func (s *server) Hash(key string) map[string]string {
	fields, err := s.m.HKeys(key)
	if err != nil {
		return nil
	}
	h := make(map[string]string, len(fields))
	for _, f := range fields {
		h[f] = s.m.HGet(key, f)
	}
	return h
}

func (s *server) List(key string) []string {
	l, err := s.m.List(key)
	if err != nil {
		return nil
	}
	return slices.Clone(l) // miniredis gives its own
}

func (s *server) SortedSet(key string) map[string]float64 {
	z, err := s.m.SortedSet(key)
	if err != nil {
		return nil
	}
	return maps.Clone(z) // miniredis gives its own
}

func (s *server) ExpiresMs(key string) int64 {
	if !s.m.Exists(key) {
		return -2
	}
	ttl := s.m.TTL(key)
	if ttl <= 0 {
		return -1
	}
	return s.nowMs() + int64(ttl/time.Millisecond)
}

// snapshot is a copy of the data at an earlier instant.
type snapshot struct {
	keys []saved
}

type saved struct {
	key, kind string
	expiresMs int64
	str       string
	hash      map[string]string
	list      []string
	zset      map[string]float64
}

func (s *server) copyData() snapshot {
	var snap snapshot
	for _, k := range s.m.Keys() {
		v := saved{key: k, kind: s.m.Type(k), expiresMs: s.ExpiresMs(k)}
		switch v.kind {
		case "string":
			v.str, _ = s.String(k)
		case "hash":
			v.hash = s.Hash(k)
		case "list":
			v.list = s.List(k)
		case "zset":
			v.zset = s.SortedSet(k)
		case "set":
			v.list, _ = s.m.SMembers(k)
		default:
			s.w.record(model.Event{Kind: model.KindDefect, Text: "a failover cannot copy key " + k + " of type " + v.kind})
		}
		snap.keys = append(snap.keys, v)
	}
	return snap
}

func (a snapshot) equal(b snapshot) bool { return slices.EqualFunc(a.keys, b.keys, saved.equal) }

func (a saved) equal(b saved) bool {
	return a.key == b.key && a.kind == b.kind && a.expiresMs == b.expiresMs && a.str == b.str &&
		maps.Equal(a.hash, b.hash) && slices.Equal(a.list, b.list) && maps.Equal(a.zset, b.zset)
}

// snapshot keeps a copy of the data, after whatever may have changed it, where
// a failover will want one.
func (s *server) snapshot() {
	if s.keep == 0 {
		return
	}
	now := s.copyData()
	if n := len(s.history); n > 0 && s.history[n-1].equal(now) {
		return
	}
	s.w.touch(objHistory, true)
	s.history = append(s.history, now)
	if extra := len(s.history) - s.keep - 1; extra > 0 {
		s.history = s.history[extra:]
	}
}

// failover goes back to the data before the last n writes. Scripts are gone
// with the old master.
func (s *server) failover(n int) {
	s.setClock()
	s.snapshot()
	at := max(0, len(s.history)-1-n)
	s.restore(s.history[at])
	s.history = s.history[:at+1]
	s.flushScripts()
}

// restore makes the data what it was in a snapshot, less what has run out since.
func (s *server) restore(data snapshot) {
	s.m.FlushAll()
	for _, v := range data.keys {
		if v.expiresMs >= 0 && v.expiresMs < s.nowMs() {
			continue
		}
		switch v.kind {
		case "string":
			_ = s.m.Set(v.key, v.str)
		case "hash":
			for f, x := range v.hash {
				s.m.HSet(v.key, f, x)
			}
		case "list":
			_, _ = s.m.RPush(v.key, v.list...)
		case "set":
			_, _ = s.m.SAdd(v.key, v.list...)
		case "zset":
			for member, score := range v.zset {
				_, _ = s.m.ZAdd(v.key, score, member)
			}
		}
		if v.expiresMs >= 0 {
			s.m.SetTTL(v.key, time.Duration(v.expiresMs-s.nowMs())*time.Millisecond+time.Millisecond/2)
		}
	}
}

// flushScripts empties the script cache.
func (s *server) flushScripts() {
	s.flushed, s.unloaded = true, nil
	s.command("SCRIPT", "FLUSH")
}

// shownReply writes a RESP reply for the record: nil, a number, text,
// (error) text, or a list in brackets.
func shownReply(b []byte) string {
	v, rest := parseReply(string(b))
	_ = rest
	return v
}

func parseReply(s string) (shown, rest string) {
	line, rest, ok := strings.Cut(s, "\r\n")
	if !ok || line == "" {
		return "", ""
	}
	switch body := line[1:]; line[0] {
	case '-':
		return "(error) " + body, rest
	case '$':
		n, err := strconv.Atoi(body)
		if err != nil || n < 0 {
			return "nil", rest
		}
		return rest[:n], rest[n+2:]
	case '*', '>':
		n, err := strconv.Atoi(body)
		if err != nil || n < 0 {
			return "nil", rest
		}
		parts := make([]string, n)
		for i := range parts {
			parts[i], rest = parseReply(rest)
		}
		return "[" + strings.Join(parts, " ") + "]", rest
	default:
		return body, rest
	}
}
