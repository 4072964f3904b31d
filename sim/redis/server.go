package redis

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/model"
	"lockstep/sim"
)

// Config describes a server before it starts.
type Config struct {
	// Replicas is the number of replicas that the server has. LagMin and LagMax bound the
	// time that a message takes between the server and a replica, in one direction.
	Replicas       int
	LagMin, LagMax time.Duration
	// Observe reads the state of a lock from the server's keys. If Observe is nil, the
	// server reports no state.
	Observe func(keys Keyspace, lock string) *model.LockState
	// Release is the release of the server.
	Release Release
	// Notify is the initial value of the setting notify-keyspace-events.
	Notify string
	// Scripts are in the server's script cache from the start, as on a server
	// that has served other clients before. Their order has no meaning. A flush
	// empties the cache.
	Scripts []string
}

// Server is a Redis server of the world. It is miniredis with the clock of Redis, which counts
// whole milliseconds and keeps a key through the millisecond of its expiry. Server implements
// sim.Server.
type Server struct {
	cfg    Config
	m      *miniredis.Miniredis
	turns  int // the number of runs that m served, this one included
	start  time.Time
	orders bool // the world is in the mode of Orders, in which each command names the objects that it touches
	// lags is set when the arrivals at replicas are choices of Orders.
	lags        bool
	noShortcuts bool

	// ahead is how far the wall clock is ahead of simulated time, in whole milliseconds.
	ahead   time.Duration
	nowNs   int64        // the instant at which the current call began
	shown   Keyspace     // see Show
	out     *sim.Effects // the effects of the current call
	conns   map[sim.ConnID]*conn
	pushing pushing

	history   []snapshot
	keep      int // the number of snapshots to keep for failovers
	shards    shards
	published map[string]int64
	stallTill int64
	// executing is the client's command that the server executes now.
	executing *command
	woke      bool            // the command in executing may have woken a goroutine of miniredis, which has one per subscriber
	ending    []string        // keys that executing set to end with this millisecond
	running   *script         // the script that executing runs in a pooled state
	wrote     bool            // the command in executing may have changed the data
	foreign   bool            // a command may have changed more than keys, scripts and subscriptions
	cached    map[string]bool // scripts that are known to be in the cache, by SHA-1
	unloaded  []string        // scripts in the cache that miniredis does not have yet
	tracking  tracking

	replicas []*replica
	writes   int64    // the number of writes since the start that replicas get
	latest   snapshot // the data after the last of these writes
	spoke    bool     // something was published since the last of these writes
	term     int      // counts how often the replicas were connected again
	flushed  bool     // the script cache was emptied at least once
	waits    []*wait  // in order of arrival

	blocked   []*blocked      // the commands that wait for a key, in order of arrival
	ready     []string        // the keys for which some of them wait and which a command has changed, in order
	inQueue   bool            // EXEC executes a command of its queue
	passing   bool            // the next command goes to miniredis as it is
	notify    notifications   // the keyspace notifications that are on
	libraries []*library      // by name
	chosen    *int            // the number of the database with the data; nil: no command needed one yet
	met       map[string]bool // what is not simulated and has been recorded
}

// saidOf returns a command, in upper case, as the client wrote it.
func (c *command) saidOf(cmd string) string {
	if strings.EqualFold(c.said, cmd) {
		return c.said
	}
	return cmd
}

// command is a command of a client while it is executed.
type command struct {
	conn *conn
	name string // upper case
	said string // as the client wrote it
}

// New returns a server for one run.
func New(cfg Config) *Server { return &Server{cfg: cfg} }

// Parts implements sim.Server.
func (s *Server) Parts() sim.Parts {
	return sim.Parts{
		Stop: s.Stop, AtOnce: s.AtOnce, Open: s.Open, Close: s.Close, Pushed: s.Pushed, Next: s.Next, Tick: s.Tick,
		Strike: s.Strike, Describe: s.Describe, StepClock: s.StepClock, Commands: s.Commands, Drawing: s.Drawing,
		Refusal: s.Refusal, Refuses: s.Refuses, Refuse: s.Refuse, State: s.State, Leftovers: s.Leftovers,
	}
}

// Start implements sim.Server.
func (s *Server) Start(setup sim.Setup) {
	s.start, s.orders, s.noShortcuts = setup.Start, setup.Orders != nil, setup.NoShortcuts
	s.lags = s.orders && !setup.Orders.NearReplicas
	s.m, s.turns = takeMiniredis(setup.NoShortcuts)
	s.shards, s.published = shards{}, map[string]int64{}
	s.cached, s.unloaded, s.conns = map[string]bool{}, s.cfg.Scripts, map[sim.ConnID]*conn{}
	for i := range s.cfg.Replicas {
		s.replicas = append(s.replicas, s.newReplica(i))
	}
	for _, f := range setup.Faults {
		if f.Server == model.ServerFailover && s.cfg.Replicas == 0 {
			s.keep = max(s.keep, 1) + f.LoseLast
		}
	}
	s.m.SetTime(s.start)
	s.m.ClockTTL(true)
	for _, text := range s.cfg.Scripts {
		s.cached[scriptOf(text).sha] = true
	}
	s.m.Server().SetPreHook(s.hook)
	s.notify = notificationsOf(s.cfg.Notify)
}

// Stop is sim.Parts.Stop.
func (s *Server) Stop() {
	if s.noShortcuts || s.foreign || s.turns == turnsMax || len(s.m.PubSubChannels("")) > 0 || s.m.PubSubNumPat() > 0 {
		s.m.Close()
		return
	}
	s.m.Server().SetPreHook(nil)
	s.m.FlushAll()
	s.run("SCRIPT", "FLUSH")
	giveMiniredisBack(s.m, s.turns)
}

// begin notes the instant of a call from the world, and the place for its effects.
func (s *Server) begin(nowNs int64, out *sim.Effects) { s.nowNs, s.out = nowNs, out }

// run executes a command that no client sent, on a connection of its own.
func (s *Server) run(words ...string) (reply string) {
	var out bytes.Buffer
	peer := mserver.NewPeer(bufio.NewWriter(&out))
	s.m.Server().Dispatch(peer, words)
	peer.Flush()
	return out.String()
}

// runPart executes a command that is part of another one, in the context of a connection, and returns the reply.
func (s *Server) runPart(peer *mserver.Peer, words ...string) (reply string) {
	var out bytes.Buffer
	p := mserver.NewPeer(bufio.NewWriter(&out))
	p.Ctx, p.Resp3 = peer.Ctx, peer.Resp3
	s.m.Server().Dispatch(p, words)
	p.Flush()
	return out.String()
}

// quietly executes a command that no client sent, in the context of a connection, and returns the reply in RESP2.
func (s *Server) quietly(peer *mserver.Peer, words ...string) (reply string) {
	executing, resp3 := s.executing, peer.Resp3
	s.executing, peer.Resp3 = nil, false
	defer func() { s.executing, peer.Resp3 = executing, resp3 }()
	return s.runPart(peer, words...)
}

// hook sees every command before miniredis does, including the commands of scripts. It
// reports whether it answered the command.
func (s *Server) hook(peer *mserver.Peer, cmd string, args ...string) bool {
	if s.passing {
		s.passing = false
		return false
	}
	k := kinds[cmd]
	if cmd == "SCRIPT" {
		if len(args) > 0 && strings.EqualFold(args[0], "FLUSH") {
			clear(s.cached)
		}
		s.load()
	}
	s.foreign = s.foreign || k == 0
	if s.executing == nil {
		return false // a command of the server itself
	}
	s.wrote = s.wrote || !k.is(reads|keeps)
	if s.orders {
		s.touchCommand(cmd, args)
	}
	c := s.executing.conn
	direct := peer == c.peer
	if k == 0 || k.is(listed) {
		if refusal := s.unknown(s.executing.saidOf(cmd), cmd, args); refusal != "" && direct {
			c.refuse(refusal)
			return true
		} else if refusal != "" {
			peer.WriteError(refusal)
			return true
		}
	}
	switch {
	case direct && !s.inQueue && (c.multi == nil && onlyListens(c, cmd, args) || s.transact(c, cmd, args)):
		return true
	case cmd == "SELECT":
		return s.choose(peer, direct, args)
	case s.elsewhere(c, k, cmd):
		peer.WriteError(s.unsimulated(fmt.Sprintf("a command in database %d beside commands in database %d", c.database, *s.chosen)))
		return true
	case cmd == "SET" && len(args) > 3 && slices.ContainsFunc(args[2:], isCondition) && s.setIf(peer, args):
		return true
	}
	s.noteAccess(cmd, args)
	if len(s.blocked) > 0 && !k.is(reads|keeps) {
		s.signal(args)
	}
	switch {
	case !direct && s.refused(peer, cmd, args):
		return true
	case cmd == "SET" && s.setToNow(peer, args):
		return true
	case k.is(answers) && s.answerOwn(peer, direct, cmd, args):
		return true
	case !direct:
	case cmd == "EVAL" || cmd == "EVALSHA":
		if s.eval(peer, cmd, args) {
			return true
		}
		s.load()
	case cmd == "EVALSHA_RO":
		s.load()
	case cmd == "SCRIPT" && len(args) == 2 && strings.EqualFold(args[0], "LOAD"):
		scriptOf(args[1])
	}
	return s.follow(peer, k, cmd, args)
}

// answerOwn answers a command that this package knows, or counts it. It reports whether it answered the command.
func (s *Server) answerOwn(peer *mserver.Peer, direct bool, cmd string, args []string) bool {
	c := s.executing.conn
	switch k := kinds[cmd]; {
	case k.is(blocks):
		s.block(peer, cmd, args)
	case k.is(scriptless) && !direct:
		peer.WriteError("ERR This Redis command is not allowed from script")
	case cmd == "PUBLISH" || cmd == "SPUBLISH":
		if len(args) != 2 {
			peer.WriteError("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
			return true
		}
		s.spoke, s.woke = true, true
		s.published[args[0]]++
		s.out.Record(model.Event{Kind: model.KindPublish, Channel: args[0], Text: args[1]})
		if cmd == "PUBLISH" {
			return false
		}
		peer.WriteInt(s.shards.publish(args[0], args[1]))
	case cmd == "DELEX" || cmd == "DELIFEQ" || cmd == "DIGEST":
		s.deleteIf(peer, cmd, args)
	case cmd == "INFO":
		s.info(peer, args)
	case !direct:
		return false
	case cmd == "WAIT":
		s.startWait(peer, args)
	case cmd == "SSUBSCRIBE":
		s.shards.subscribe(c, args)
	case cmd == "SUNSUBSCRIBE":
		s.shards.unsubscribe(c, args)
	case cmd == "PUBSUB":
		return s.shards.asked(peer, args)
	case cmd == "CLIENT":
		return s.client(c, args)
	case cmd == "CLUSTER" || cmd == "READONLY" || cmd == "READWRITE" || cmd == "ASKING":
		noCluster(peer, cmd, args)
	case cmd == "CONFIG":
		s.configure(peer, args)
	case cmd == "FUNCTION":
		s.function(peer, args)
	default:
		s.callFunction(peer, cmd, args)
	}
	return true
}

// Handle implements sim.Server.
func (s *Server) Handle(nowNs int64, id sim.ConnID, r *sim.Request, out *sim.Effects) (sim.Reply, bool) {
	s.begin(nowNs, out)
	c := s.conns[id]
	s.setClock()
	s.snapshot()
	reply := s.execute(c, r)
	s.after()
	queued := string(reply) == "+QUEUED\r\n"
	if !queued {
		c.seen = s.writes
		if s.lags && len(s.replicas) > 0 && !c.subscribes && len(c.shards) == 0 {
			out.Read(objWrites) // a later WAIT reads it; a subscriber may not send WAIT
		}
	}
	out.Changed, out.Still = s.wrote, !s.woke
	if len(s.ready) > 0 {
		out.Next(s.serve)
	}
	if c.waits != nil || c.blocked != nil {
		return sim.Reply{}, false
	}
	answer := ReplyOf(reply)
	answer.Gathered = queued
	return answer, true
}

// after keeps what a command has changed for failovers and replicas.
func (s *Server) after() {
	s.letEnd()
	if s.wrote {
		s.snapshot()
	}
	if s.wrote || s.spoke {
		s.replicate()
	}
}

// execute lets miniredis execute a command, and returns the reply. A waiting command has no reply
// yet.
func (s *Server) execute(c *conn, r *sim.Request) []byte {
	c.await()
	s.wrote, s.woke = false, r.Program == "" && !kinds[r.Name].is(reads|writes|deletes)
	c.command = command{c, r.Name, r.Words[0]}
	s.executing = &c.command
	s.beginTracking()
	s.m.Server().Dispatch(c.peer, r.Words)
	s.executing = nil
	c.peer.Flush()
	reply := c.take()
	switch name := r.Name; {
	case name == "SUBSCRIBE" || name == "PSUBSCRIBE":
		c.subscribes = c.subscribes || !bytes.HasPrefix(reply, []byte("-"))
	case strings.HasSuffix(name, "UNSUBSCRIBE") && name != "SUNSUBSCRIBE" && bytes.HasSuffix(reply, []byte(":0\r\n")):
		c.subscribes = false
	case name == "HELLO" && !bytes.HasPrefix(reply, []byte("-")) && c.multi == nil:
		reply = s.greet(c, r.Words)
	}
	if r.Name != "CLIENT" {
		s.endTracking(c, ran(r.Name, reply))
	}
	return reply
}

// Close is sim.Parts.Close.
func (s *Server) Close(nowNs int64, id sim.ConnID, out *sim.Effects) {
	s.begin(nowNs, out)
	c := s.conns[id]
	s.hangUp(c)
	if c.blocked != nil {
		c.blocked.leave(s)
		if s.orders {
			out.Write(sim.ObjectServer)
		}
	}
	for len(c.shards) > 0 {
		s.shards.leave(c, c.shards[0])
	}
	if c.subscribes {
		c.subscribes = false
		s.m.Server().Dispatch(c.peer, []string{"UNSUBSCRIBE"})
		s.m.Server().Dispatch(c.peer, []string{"PUNSUBSCRIBE"})
		c.peer.Flush()
	}
	s.tracking.leave(c)
	c.take()
}

// Published returns the number of messages that were published on a channel so far.
func (s *Server) Published(channel string) int64 { return s.published[channel] }

// State is sim.Parts.State.
func (s *Server) State(nowNs int64, lock string) *model.LockState {
	keys := s.At(nowNs)
	if s.cfg.Observe == nil {
		return nil
	}
	return s.cfg.Observe(keys, lock)
}

// Scripts returns the scripts that are in the cache from the start, in order.
func (s *Server) Scripts() []string { return slices.Sorted(slices.Values(s.cfg.Scripts)) }

// Leftovers is sim.Parts.Leftovers.
func (s *Server) Leftovers(out *sim.Effects) {
	for _, k := range s.m.Keys() {
		out.Record(model.Event{Kind: model.KindLeft, Key: k})
	}
	for _, ch := range s.m.PubSubChannels("") {
		out.Record(model.Event{Kind: model.KindLeft, Channel: ch})
	}
	for _, ch := range s.shards.names() {
		out.Record(model.Event{Kind: model.KindLeft, Channel: ch})
	}
}

// Strike is sim.Parts.Strike.
func (s *Server) Strike(nowNs int64, f model.FaultSpec, out *sim.Effects) {
	s.begin(nowNs, out)
	s.setClock()
	keys, words := s.m.Keys(), map[string][]string{}
	for _, k := range keys {
		words[k] = s.words(k)
	}
	s.strike(nowNs, f)
	for _, k := range keys {
		left := s.words(k)
		out.Remove(slices.DeleteFunc(words[k], func(word string) bool { return slices.Contains(left, word) })...)
	}
}

func (s *Server) strike(nowNs int64, f model.FaultSpec) {
	if f.Kind == model.FaultKey {
		gone := s.remove(f.Key)
		for _, k := range gone {
			if f.KeyDo == "expire" {
				s.out.Record(model.Event{Kind: model.KindExpire, Key: k})
			}
		}
		if f.KeyDo == "expire" {
			s.sayGone(gone, notifyExpired, "expired")
		} else {
			s.sayGone(gone, notifyGeneric, "del")
		}
		s.snapshot()
		s.replicate()
		return
	}
	switch f.Server {
	case model.ServerStall:
		s.stallTill = max(s.stallTill, nowNs+int64(f.For))
		return
	case model.ServerFlushScripts:
		s.flushScripts()
		return
	case model.ServerFailover:
		if len(s.replicas) > 0 {
			s.promote(s.candidate())
			break
		}
		s.failover(f.LoseLast)
	case model.ServerRestart:
		if !f.KeepData {
			s.m.FlushAll()
			s.libraries = nil
			s.writes++
		}
		s.flushScripts()
		s.notify = notificationsOf(s.cfg.Notify)
		s.resync()
	default:
		panic("redis: a server fault of unknown kind " + string(f.Server))
	}
}

// remove deletes the keys that match a glob, as an operator or an eviction does. It
// returns the names of the keys.
func (s *Server) remove(glob string) []string {
	var gone []string
	for _, k := range s.m.Keys() {
		if sim.Match(glob, k) {
			s.m.Del(k)
			gone = append(gone, k)
		}
	}
	return gone
}
