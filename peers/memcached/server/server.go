// Package server is a Memcached server for worlds of package locktest. It speaks the text protocol
// and keeps the clock of memcached 1.6. The clock ticks once a second, and items end at a tick. So an
// item may end up to a second before the expiry that was asked for.
//
// A test sends the same requests to the real program, and compares each answer byte by byte.
package server

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
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
	if s.oldestTime == 0 || s.oldestTime > s.clock.at(nowNs) {
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
	if s.oldestTime > s.clock.at(nowNs) && it.stored <= s.oldestTime {
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

const lineEnd = "\r\n"

// The errors of the protocol.
const (
	errUnknown  = "ERROR"
	errFormat   = "CLIENT_ERROR bad command line format"
	errChunk    = "CLIENT_ERROR bad data chunk"
	errExptime  = "CLIENT_ERROR invalid exptime argument"
	errDelta    = "CLIENT_ERROR invalid numeric delta argument"
	errNoNumber = "CLIENT_ERROR cannot increment or decrement non-numeric value"
	errDelete   = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"
	errTooLarge = "SERVER_ERROR object too large for cache"
)

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

// execution is the execution of one request.
type execution struct {
	s       *Server
	nowNs   int64
	out     *sim.Effects
	words   []string // of the line
	data    string   // the data block
	noReply bool     // the client asked for no answer
	closes  bool     // the server closes the connection
}

// count reports whether the number of words, the name included, is between least and most.
func (x *execution) count(least, most int) bool {
	return least <= len(x.words) && len(x.words) <= most
}

// mayBeSilent notes whether the last word is noreply.
func (x *execution) mayBeSilent() { x.noReply = x.words[len(x.words)-1] == "noreply" }

// run executes the request and returns the answer without the end of its last line.
func (x *execution) run(r *sim.Request) string {
	if r.Name == endless {
		x.closes = true
		return ""
	}
	x.words = split(r.Words[0])
	if len(r.Words) > 1 {
		x.data = r.Words[1]
	}
	if len(x.words) == 0 || len(x.words[0]) < 2 {
		return errUnknown
	}
	if execute := commands[x.words[0]]; execute != nil {
		return execute(x)
	}
	if !strings.ContainsAny(x.words[0][:1], "acdgimst") && strings.HasPrefix(x.words[len(x.words)-1], "HTTP/") {
		x.closes = true // the request comes from a browser
	}
	return errUnknown
}

// commands are the commands by their names.
var commands = map[string]func(*execution) string{
	"get": (*execution).retrieve, "bget": (*execution).retrieve, "gets": (*execution).retrieve, "gat": (*execution).getAndTouch, "gats": (*execution).getAndTouch,
	"set": (*execution).store, "add": (*execution).store, "replace": (*execution).store, "append": (*execution).store, "prepend": (*execution).store, "cas": (*execution).store,
	"delete": (*execution).delete, "touch": (*execution).touch, "incr": (*execution).add, "decr": (*execution).add, "flush_all": (*execution).flush,
	"version": (*execution).version, "verbosity": (*execution).verbosity, "stats": (*execution).stats, "quit": (*execution).quit,
}

// commandNames are the names of the commands in the form of Request.Name, in order.
var commandNames = func() []string {
	var names []string
	for name := range commands {
		names = append(names, strings.ToUpper(name))
	}
	slices.Sort(names)
	return names
}()

// retrieve executes get, bget and gets. The last answers with the number of each item.
func (x *execution) retrieve() string { return x.get(1, x.words[0] == "gets") }

func (*execution) version() string { return "VERSION " + Version }

func (x *execution) quit() string {
	x.closes = true
	return ""
}

// find returns the item of a key; nil if there is none, or it has ended.
func (x *execution) find(key string) *item {
	x.out.Read(keyObject(key))
	return x.s.find(x.nowNs, key)
}

// newID returns a new id.
func (x *execution) newID() uint64 {
	x.out.Write("ids")
	x.s.cas++
	return x.s.cas
}

// link stores a fresh item under a key.
func (x *execution) link(key string, it item) {
	x.out.Write(keyObject(key))
	x.out.Changed = true
	it.cas, it.stored = x.newID(), x.s.clock.at(x.nowNs)
	x.s.items[key] = &it
}

// unlink removes a key.
func (x *execution) unlink(key string) {
	x.out.Write(keyObject(key))
	x.out.Changed = true
	delete(x.s.items, key)
}

// get answers with the items of the keys, which begin at a word.
func (x *execution) get(from int, ids bool) string {
	if len(x.words) <= from {
		return errUnknown
	}
	return x.values(x.words[from:], ids, func(*item) {})
}

// values answers with the items of keys, and calls each for every item.
func (x *execution) values(keys []string, ids bool, each func(*item)) string {
	var b bytes.Buffer
	for _, key := range keys {
		if len(key) > maxKey {
			return errFormat
		}
		it := x.find(key)
		if it == nil {
			continue
		}
		each(it)
		fmt.Fprintf(&b, "VALUE %s %d %d", key, it.flags, len(it.data))
		if ids {
			fmt.Fprintf(&b, " %d", it.cas)
		}
		b.WriteString(lineEnd)
		b.Write(it.data)
		b.WriteString(lineEnd)
	}
	b.WriteString("END")
	return b.String()
}

// getAndTouch executes gat and gats.
func (x *execution) getAndTouch() string {
	if len(x.words) < 2 {
		return errUnknown
	}
	exptime, ok := parseInt(x.words[1])
	if !ok {
		return errExptime
	}
	return x.values(x.words[2:], x.words[0] == "gats", func(it *item) { x.setEnd(it, exptime) })
}

// setEnd gives an item a new end.
func (x *execution) setEnd(it *item, exptime int64) {
	x.out.Changed = true
	x.out.Write(sim.ObjectServer)
	it.ends = x.s.clock.rel(x.nowNs, int32(exptime))
}

// store executes the commands that have a data block.
func (x *execution) store() string {
	h, errText := readHead(x.words)
	if errText != errUnknown {
		x.mayBeSilent()
	}
	if errText != "" {
		return errText
	}
	old := x.find(h.key)
	if !fits(h.key, h.flags, h.size) {
		if x.words[0] == "set" && old != nil {
			x.unlink(h.key) // so that no outdated item remains
		}
		return errTooLarge
	}
	if len(x.data) != h.size {
		return errChunk
	}
	fresh := item{flags: h.flags, data: []byte(x.data), ends: x.s.clock.rel(x.nowNs, h.exptime)}
	switch x.words[0] {
	case "add":
		if old != nil {
			return notStored
		}
	case "replace":
		if old == nil {
			return notStored
		}
	case "append", "prepend":
		if old == nil || !fits(h.key, old.flags, len(old.data)+h.size) {
			return notStored
		}
		data := [][]byte{old.data, fresh.data}
		if x.words[0] == "prepend" {
			slices.Reverse(data)
		}
		fresh = item{flags: old.flags, data: bytes.Join(data, nil), ends: old.ends}
	case "cas":
		if old == nil {
			return notFound
		}
		if old.cas != h.cas {
			return "EXISTS"
		}
	}
	x.link(h.key, fresh)
	return "STORED"
}

const (
	notStored = "NOT_STORED"
	notFound  = "NOT_FOUND"
)

// fits reports whether an item is small enough.
func fits(key string, flags uint32, size int) bool {
	all := itemHead + len(key) + 1 + size + len(lineEnd)
	if flags != 0 {
		all += flagsSize
	}
	return all <= maxItem
}

// delete executes delete. A time of 0 may follow the key.
func (x *execution) delete() string {
	if !x.count(2, 4) {
		return errUnknown
	}
	key := x.words[1]
	if len(x.words) > 2 {
		x.mayBeSilent()
		zero := x.words[2] == "0"
		if len(x.words) == 3 && !zero && !x.noReply || len(x.words) == 4 && !(zero && x.noReply) {
			return errDelete
		}
	}
	if len(key) > maxKey {
		return errFormat
	}
	if x.find(key) == nil {
		return notFound
	}
	x.unlink(key)
	return "DELETED"
}

// touch executes touch.
func (x *execution) touch() string {
	if !x.count(3, 4) {
		return errUnknown
	}
	x.mayBeSilent()
	key := x.words[1]
	exptime, ok := parseInt(x.words[2])
	switch {
	case len(key) > maxKey:
		return errFormat
	case !ok:
		return errExptime
	}
	it := x.find(key)
	if it == nil {
		return notFound
	}
	x.setEnd(it, exptime)
	return "TOUCHED"
}

// add executes incr and decr. If the new number is shorter, spaces after it keep the length of the
// value.
func (x *execution) add() string {
	if !x.count(3, 4) {
		return errUnknown
	}
	x.mayBeSilent()
	key := x.words[1]
	if len(key) > maxKey {
		return errFormat
	}
	delta, ok := parseUint(x.words[2])
	if !ok {
		return errDelta
	}
	it := x.find(key)
	if it == nil {
		return notFound
	}
	n, ok := parseUint(string(it.data))
	switch {
	case !ok:
		return errNoNumber
	case x.words[0] == "incr":
		n += delta
	default:
		n -= min(n, delta)
	}
	text := strconv.FormatUint(n, 10)
	if len(text) > len(it.data) {
		x.link(key, item{flags: it.flags, data: []byte(text), ends: it.ends})
		return text
	}
	x.out.Write(keyObject(key))
	x.out.Changed = true
	it.cas = x.newID()
	it.data = fmt.Appendf(nil, "%-*s", len(it.data), text)
	return text
}

// flush executes flush_all.
func (x *execution) flush() string {
	if !x.count(1, 3) {
		return errUnknown
	}
	x.mayBeSilent()
	var exptime int64
	if bare := len(x.words) == 1 || len(x.words) == 2 && x.noReply; !bare {
		var ok bool
		if exptime, ok = parseInt(x.words[1]); !ok {
			return errExptime
		}
	}
	now := x.s.clock.at(x.nowNs)
	x.s.oldestTime = now - 1
	if int32(exptime) > 0 {
		x.s.oldestTime = x.s.clock.rel(x.nowNs, int32(exptime)) - 1
	}
	if x.s.oldestTime <= now {
		x.s.oldestCAS = x.newID()
	}
	x.out.Write(sim.ObjectServer)
	x.out.Changed = true
	return "OK"
}

// verbosity executes verbosity, which changes nothing that a client sees.
func (x *execution) verbosity() string {
	if !x.count(2, 3) {
		return errUnknown
	}
	x.mayBeSilent()
	if _, ok := parseUint(x.words[1]); !ok {
		return errFormat
	}
	return "OK"
}

// stats answers with the few statistics that exist in a world.
func (x *execution) stats() string {
	if len(x.words) > 1 {
		if x.words[1] == "reset" {
			return "RESET"
		}
		return errUnknown
	}
	s := x.s
	x.out.Read(sim.ObjectServer)
	return strings.Join([]string{
		fmt.Sprintf("STAT uptime %d", s.clock.at(x.nowNs)-atStart+2), fmt.Sprintf("STAT time %d", s.wall(x.nowNs)), "STAT version " + Version,
		fmt.Sprintf("STAT curr_items %d", len(s.items)), "END",
	}, lineEnd)
}
