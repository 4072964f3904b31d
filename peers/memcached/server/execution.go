package server

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/model"
	"lockstep/sim"
)

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
	x.missing(x.words[0])
	return errUnknown
}

// notSimulated are the commands of the real program, with its default options, that this server does not know.
var notSimulated = []string{"cache_memlimit", "lru", "lru_crawler", "ma", "md", "me", "mg", "mn", "ms", "slabs", "watch"}

// missing records, once in a run, that a client sent a command that only the real program knows.
func (x *execution) missing(command string) {
	if !slices.Contains(notSimulated, command) || slices.Contains(x.s.met, command) {
		return
	}
	x.s.met = append(x.s.met, command)
	x.out.Record(model.Event{Kind: model.KindUnsimulated, Command: "the command " + command})
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
	it.cas, it.stored = x.newID(), x.s.clock.shownAt(x.nowNs)
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
	now := x.s.clock.shownAt(x.nowNs)
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
		fmt.Sprintf("STAT uptime %d", s.clock.shownAt(x.nowNs)-atStart+2), fmt.Sprintf("STAT time %d", s.wall(x.nowNs)), "STAT version " + Version,
		fmt.Sprintf("STAT curr_items %d", len(s.items)), "END",
	}, lineEnd)
}
