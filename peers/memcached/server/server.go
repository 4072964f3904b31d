// Package server is a Memcached server for worlds of package locktest. It speaks the text protocol
// and keeps the clock of memcached 1.6. The clock ticks once a second, and items end at a tick. So an
// item may end up to a second before the expiry that was asked for.
//
// A test sends the same requests to the real program, and compares each answer byte by byte.
package server

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/sim"
)

// Version is the version that the server reports.
const Version = "1.6.18"

// Server is a Memcached server of the world. It implements sim.Server.
type Server struct {
	start time.Time
	ahead time.Duration // how far the wall clock is ahead
	clock clock
	items map[string]*item
	cas   uint64 // the last id that was used

	// Items that were stored at oldestTime or before, or got a smaller id than oldestCAS,
	// are flushed as soon as the clock shows oldestTime.
	oldestTime int64 // 0: nothing was flushed
	oldestCAS  uint64

	met []string // the commands that clients sent and only the real program knows

	// shown, if not nil, returns the items of a real server, which this one stands for in a live run.
	shown func(key string) (value string, endsNs int64, ok bool)
}

// item is a value of the cache.
type item struct {
	flags  uint32
	data   []byte
	cas    uint64
	stored int64 // by the clock
	ends   int64 // by the clock; 0: never
}

// New returns a server for one run.
func New() *Server { return &Server{} }

// Parts implements sim.Server. Only the subject of a lock can read its state. The server sends nothing
// without a request.
func (s *Server) Parts() sim.Parts {
	return sim.Parts{
		Next: s.Next, Tick: s.Tick, Strike: s.Strike, StepClock: s.StepClock, Refusal: s.Refusal, Lacks: s.Lacks,
		Commands: s.Commands, Drawing: s.Drawing, Leftovers: s.Leftovers,
	}
}

// Start implements sim.Server.
func (s *Server) Start(setup sim.Setup) {
	s.start = setup.Start
	s.boot(0)
}

// boot starts the program, without data.
func (s *Server) boot(nowNs int64) {
	s.clock = newClock(nowNs, s.wall(nowNs))
	s.items, s.cas, s.oldestTime, s.oldestCAS = map[string]*item{}, 0, 0, 0
}

// wall returns the Unix time by the wall clock of the server.
func (s *Server) wall(nowNs int64) int64 {
	return s.start.Add(time.Duration(nowNs) + s.ahead).Unix()
}

// Commands is sim.Parts.Commands.
func (*Server) Commands() []string { return commandNames }

// Lacks is sim.Parts.Lacks.
func (*Server) Lacks(f model.FaultSpec) string {
	const has = "; it has a restart without its data, a stall, a step of its wall clock, and the removal of keys"
	switch {
	case f.Kind != model.FaultServer:
		return ""
	case f.Server == model.ServerRestart && f.KeepData:
		return "keeps nothing over a restart" + has
	case f.Server == model.ServerFailover:
		return "has no replica to fail over to" + has
	case f.Server == model.ServerFlushScripts:
		return "runs no scripts" + has
	}
	return ""
}

// Strike is sim.Parts.Strike. The fault that deletes a key is an eviction, or an operator who
// removes the key. The fault that lets a key expire is an operator who touches it.
func (s *Server) Strike(nowNs int64, f model.FaultSpec, out *sim.Effects) {
	out.Changed = true
	out.Write(sim.ObjectServer)
	if f.Kind == model.FaultKey {
		for _, key := range s.keys() {
			if !sim.Match(f.Key, key) {
				continue
			}
			out.Remove(string(s.items[key].data))
			delete(s.items, key)
			if f.KeyDo == "expire" {
				out.Record(model.Event{Kind: model.KindExpire, Key: key})
			}
		}
		return
	}
	switch f.Server {
	case model.ServerStall:
		s.clock.stall(nowNs, nowNs+int64(f.For))
	case model.ServerRestart:
		for _, key := range s.keys() {
			out.Remove(string(s.items[key].data))
		}
		s.boot(nowNs)
	default:
		panic("memcached: a server fault of unknown kind " + string(f.Server))
	}
}

// StepClock is sim.Parts.StepClock. Items end by another clock, which does not step. Only a program
// that starts later notices the step.
func (s *Server) StepClock(_ int64, by time.Duration, _ *sim.Effects) { s.ahead += by }

// keys returns the keys in order.
func (s *Server) keys() []string { return slices.Sorted(maps.Keys(s.items)) }

// flushed reports whether a flush has removed an item.
func (s *Server) flushed(nowNs int64, it *item) bool {
	if s.oldestTime == 0 || s.oldestTime > s.clock.shownAt(nowNs) {
		return false
	}
	return it.stored <= s.oldestTime || it.cas < s.oldestCAS
}

// endsNs returns the instant at which an item ends; false if it has no end.
func (s *Server) endsNs(nowNs int64, it *item) (ns int64, ok bool) {
	if s.flushed(nowNs, it) {
		return nowNs, true
	}
	ns = math.MaxInt64
	if it.ends > 0 {
		ns = s.clock.reaches(it.ends)
	}
	if s.oldestTime > s.clock.shownAt(nowNs) && it.stored <= s.oldestTime {
		ns = min(ns, s.clock.reaches(s.oldestTime))
	}
	return ns, ns < math.MaxInt64
}

// Next is sim.Parts.Next.
func (s *Server) Next() (atNs int64, ok bool) {
	atNs = math.MaxInt64
	for _, it := range s.items {
		if it.ends > 0 {
			atNs = min(atNs, s.clock.reaches(it.ends))
		}
		if s.oldestTime > 0 && it.stored <= s.oldestTime {
			atNs = min(atNs, s.clock.reaches(s.oldestTime))
		}
	}
	return atNs, atNs < math.MaxInt64
}

// Tick is sim.Parts.Tick. It removes the items that have ended. The real program removes them
// when a request asks for them.
func (s *Server) Tick(nowNs int64, out *sim.Effects) {
	for _, key := range s.removeEnded(nowNs, out) {
		out.Record(model.Event{Kind: model.KindExpire, Key: key})
	}
}

// removeEnded removes the items that have ended and returns their keys.
func (s *Server) removeEnded(nowNs int64, out *sim.Effects) (gone []string) {
	for _, key := range s.keys() {
		if s.find(nowNs, key) == nil {
			delete(s.items, key)
			out.Write(keyObject(key))
			out.Changed = true
			gone = append(gone, key)
		}
	}
	return gone
}

// find returns the item of a key; nil if there is none, or if it has ended.
func (s *Server) find(nowNs int64, key string) *item {
	it := s.items[key]
	if it == nil {
		return nil
	}
	if at, ok := s.endsNs(nowNs, it); ok && at <= nowNs {
		return nil
	}
	return it
}

func keyObject(key string) string { return "key " + key }

// Item returns the value of a key at an instant, and the instant at which the key ends;
// negative: it has no end.
func (s *Server) Item(nowNs int64, key string) (value string, endsNs int64, ok bool) {
	if s.shown != nil {
		return s.shown(key)
	}
	it := s.find(nowNs, key)
	if it == nil {
		return "", 0, false
	}
	endsNs, ok = s.endsNs(nowNs, it)
	if !ok {
		endsNs = -1
	}
	return string(it.data), endsNs, true
}

// Leftovers is sim.Parts.Leftovers.
func (s *Server) Leftovers(out *sim.Effects) {
	for _, key := range s.keys() {
		out.Record(model.Event{Kind: model.KindLeft, Key: key})
	}
}

// Handle implements sim.Server.
func (s *Server) Handle(nowNs int64, _ sim.ConnID, r *sim.Request, out *sim.Effects) (sim.Reply, bool) {
	s.Tick(nowNs, out)
	x := &execution{s: s, nowNs: nowNs, out: out}
	text := x.run(r)
	s.removeEnded(nowNs, out) // the request ended these items; they did not run out
	switch {
	case x.closes:
		return sim.Reply{None: true, Closes: true}, true
	case x.noReply:
		return sim.Reply{None: true}, true
	}
	reply := sim.Reply{Bytes: []byte(text + lineEnd), Shown: strings.ReplaceAll(text, lineEnd, " ")}
	for _, prefix := range []string{"ERROR", "CLIENT_ERROR", "SERVER_ERROR"} {
		if strings.HasPrefix(text, prefix) {
			reply.Answer = model.Refused
		}
	}
	return reply, true
}
