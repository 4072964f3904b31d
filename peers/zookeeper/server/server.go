// Package server is a ZooKeeper server for worlds of package locktest: a standalone server, as
// ZooKeeper 3.8 is without other servers in its configuration. It has the tree of nodes, sessions,
// ephemeral, sequential and container nodes, watches, and multi.
//
// A test sends the same requests to the real program, and compares each answer byte by byte.
package server

import (
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/sim"
)

// The configuration of the server, which is the default one.
const (
	// Tick is the time between two instants at which sessions end. A client gets a session
	// timeout between two ticks and twenty.
	Tick = 2 * time.Second
	// containerCheck is the interval at which the server looks for empty containers.
	containerCheck = time.Minute
)

// Server is a ZooKeeper server of the world. It implements sim.Server.
type Server struct {
	start  time.Time
	ahead  time.Duration // how far the wall clock is ahead
	tickMs int64
	bootMs int64 // what the monotonic clock shows at the start of the world

	// The content of the log.
	tree     *tree
	sessions map[int64]*session

	nextID     int64 // of a session
	conns      map[sim.ConnID]*conn
	watches    watches
	pushes     []sim.Push
	stalledNs  int64 // the end of the last stall
	containers int64 // the instant at which empty containers are removed next

	// shown, if not nil, returns the nodes of a real server, which this one stands for in a live run.
	shown func(path string) []Node
}

// conn is a connection that has a session.
type conn struct {
	session   *session
	timeoutMs int32
}

// New returns a server for one run.
func New() *Server {
	return &Server{tickMs: Tick.Milliseconds(), bootMs: time.Hour.Milliseconds()}
}

// Parts implements sim.Server. Only the subject of a lock can read its state.
func (s *Server) Parts() sim.Parts {
	return sim.Parts{
		Close: s.Close, Pushed: s.Pushed, Next: s.Next, Tick: s.Tick, Strike: s.Strike, StepClock: s.StepClock,
		Refusal: s.Refusal, Lacks: s.Lacks, Commands: s.Commands, Drawing: s.Drawing, Leftovers: s.Leftovers,
	}
}

// Start implements sim.Server.
func (s *Server) Start(setup sim.Setup) {
	s.start = setup.Start
	s.boot(0, false)
}

// boot starts the program. Its log has the data and the sessions. Each session of the log gets its
// whole timeout again.
func (s *Server) boot(nowNs int64, keepData bool) {
	s.conns, s.watches, s.pushes = map[sim.ConnID]*conn{}, newWatches(), nil
	// A program takes longer to start than the simulated one, so that its clock gives a new first id.
	s.nextID = max(s.nextID, s.firstID(nowNs))
	s.containers = nowNs + int64(containerCheck)
	if !keepData {
		s.tree, s.sessions = newTree(), map[int64]*session{}
		return
	}
	for _, x := range s.sessions {
		x.conn = 0
		s.touch(nowNs, x, x.timeoutMs)
	}
}

// wallMs returns the Unix time in milliseconds by the wall clock of the server.
func (s *Server) wallMs(nowNs int64) int64 {
	return s.start.Add(time.Duration(nowNs) + s.ahead).UnixMilli()
}

// Close is sim.Parts.Close. The session lives on without the connection.
func (s *Server) Close(_ int64, c sim.ConnID, _ *sim.Effects) {
	s.watches.forget(c)
	if k := s.conns[c]; k != nil {
		delete(s.conns, c)
		if k.session.conn == c {
			k.session.conn = 0
		}
	}
}

// Pushed is sim.Parts.Pushed.
func (s *Server) Pushed(list []sim.Push) []sim.Push {
	list = append(list, s.pushes...)
	clear(s.pushes)
	s.pushes = s.pushes[:0]
	return list
}

// Lacks is sim.Parts.Lacks.
func (*Server) Lacks(f model.FaultSpec) string {
	const has = "; it has a restart, with and without its data, a stall, a step of its wall clock, and the removal of nodes"
	switch {
	case f.Kind == model.FaultKey && f.KeyDo == "expire":
		return "has no nodes that expire" + has
	case f.Kind != model.FaultServer:
		return ""
	case f.Server == model.ServerFailover:
		return "has no replica to fail over to" + has
	case f.Server == model.ServerFlushScripts:
		return "runs no scripts" + has
	}
	return ""
}

// Strike is sim.Parts.Strike. An operator deletes the nodes whose paths match. A node with
// children that do not match stays.
func (s *Server) Strike(nowNs int64, f model.FaultSpec, out *sim.Effects) {
	s.changed(out)
	if f.Kind == model.FaultKey {
		for _, path := range slices.Backward(s.tree.paths()) { // children before their parents
			if sim.Match(f.Key, path) || sim.Match("/"+f.Key, path) {
				n := s.tree.nodes[path]
				t := s.tree.begin(s.wallMs(nowNs), 0)
				if t.delete(path, anyVersion) == codeOK {
					out.Remove(written(path, n.data)...)
				}
				s.notify(t.changes)
			}
		}
		return
	}
	switch f.Server {
	case model.ServerStall:
		s.stalledNs = max(s.stalledNs, nowNs+int64(f.For))
	case model.ServerRestart:
		for _, path := range s.tree.paths() {
			if !f.KeepData {
				out.Remove(written(path, s.tree.nodes[path].data)...)
			}
		}
		s.boot(nowNs, f.KeepData)
	default:
		panic("zookeeper: a server fault of unknown kind " + string(f.Server))
	}
}

// written returns the bytes by which a request that wrote the data of a node is known. The path of a node whose name
// ends with a number may have got the number from the server.
func written(path string, data []byte) (words []string) {
	asked := path
	if len(path) > sequenceDigits {
		asked = path[:len(path)-sequenceDigits]
	}
	for _, path := range []string{path, asked} {
		var w writer
		w.text(path)
		w.buffer(data)
		words = append(words, string(w))
	}
	return words
}

// StepClock is sim.Parts.StepClock. Sessions end by another clock, which does not step. Only the
// times of nodes come from the wall clock.
func (s *Server) StepClock(_ int64, by time.Duration, _ *sim.Effects) { s.ahead += by }

// Next is sim.Parts.Next.
func (s *Server) Next() (atNs int64, ok bool) {
	atNs = math.MaxInt64
	for _, x := range s.sessions {
		atNs = min(atNs, s.endsNs(x))
	}
	if len(s.empty()) > 0 {
		atNs = min(atNs, max(s.containers, s.stalledNs))
	}
	return atNs, atNs < math.MaxInt64
}

// Tick is sim.Parts.Tick. It ends sessions whose clients were silent for too long, and removes
// empty containers.
func (s *Server) Tick(nowNs int64, out *sim.Effects) {
	for _, x := range s.inOrder() {
		if s.endsNs(x) > nowNs {
			continue
		}
		s.watches.forget(x.conn) // the connection ends, too
		for _, path := range s.end(nowNs, x, out) {
			out.Record(model.Event{Kind: model.KindExpire, Key: path})
		}
		if x.conn != 0 {
			out.HangUp(x.conn)
		}
	}
	if s.containers > nowNs {
		return
	}
	for _, path := range s.empty() {
		t := s.tree.begin(s.wallMs(nowNs), 0)
		t.remove(path)
		s.notify(t.changes)
		s.changed(out)
	}
	s.containers += (nowNs-s.containers)/int64(containerCheck)*int64(containerCheck) + int64(containerCheck)
}

// empty returns the containers that once had children and now have none, in order.
func (s *Server) empty() []string {
	var paths []string
	for path, n := range s.tree.nodes {
		if n.owner == containerOwner && n.created > 0 && n.count() == 0 {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// end ends a session and returns the paths of its nodes.
func (s *Server) end(nowNs int64, x *session, out *sim.Effects) []string {
	t := s.tree.begin(s.wallMs(nowNs), x.id)
	paths := t.endSession(x.id)
	delete(s.sessions, x.id)
	s.notify(t.changes)
	s.changed(out)
	return paths
}

// changed notes that a call changed what other requests see.
func (*Server) changed(out *sim.Effects) {
	out.Changed = true
	out.Write(sim.ObjectServer)
}

// notify notifies connections of the changes that they wait for.
func (s *Server) notify(changes []change) {
	for _, x := range changes {
		for _, c := range s.watches.fire(x) {
			s.push(c, x)
		}
	}
}

// push notifies a connection of a change.
func (s *Server) push(c sim.ConnID, x change) {
	if x.hidden {
		return
	}
	var w writer
	w.int32(-1)
	w.int64(-1)
	w.int32(0)
	w.int32(x.event)
	w.int32(3) // state: connected
	w.text(x.path)
	s.pushes = append(s.pushes, sim.Push{Conn: c, Channel: x.path, Bytes: w.frame()})
}

// Leftovers is sim.Parts.Leftovers. The nodes that every server has are no leftovers.
func (s *Server) Leftovers(out *sim.Effects) {
	for _, path := range s.tree.paths() {
		if !isSystem(path) {
			out.Record(model.Event{Kind: model.KindLeft, Key: path})
		}
	}
}

// Node is a node as a State may read it.
type Node struct {
	Path string
	Data []byte
	// Owner is the id of the session of an ephemeral node; 0 for other nodes.
	Owner int64
	// Ends is the time since the start at which that session ends unless its client sends something
	// before.
	Ends time.Duration
}

// Children returns the children of a node in the order of their paths.
func (s *Server) Children(path string) []Node {
	if s.shown != nil {
		return s.shown(path)
	}
	n := s.tree.nodes[path]
	if n == nil {
		return nil
	}
	var list []Node
	for _, name := range slices.Sorted(slices.Values(n.list())) {
		child := Node{Path: strings.TrimSuffix(path, "/") + "/" + name}
		n := s.tree.nodes[child.Path]
		child.Data, child.Owner = n.data, n.owner
		if x := s.sessions[n.owner]; x != nil {
			child.Ends = time.Duration(s.endsNs(x))
		}
		list = append(list, child)
	}
	return list
}

// Handle implements sim.Server.
func (s *Server) Handle(nowNs int64, c sim.ConnID, r *sim.Request, out *sim.Effects) (sim.Reply, bool) {
	s.Tick(nowNs, out)
	x := &execution{s: s, nowNs: nowNs, c: c, out: out}
	reply := x.run(r)
	// The server notifies a client of changes before it answers the request that made them.
	var before []byte
	s.pushes = slices.DeleteFunc(s.pushes, func(p sim.Push) bool {
		if p.Conn == c {
			before = append(before, p.Bytes...)
		}
		return p.Conn == c
	})
	if len(before) > 0 {
		reply.Bytes = append(before, reply.Bytes...)
	}
	return reply, true
}
