package server

import (
	"fmt"
	"strings"

	"lockstep/model"
	"lockstep/sim"
)

// execution is the execution of one request.
type execution struct {
	s     *Server
	nowNs int64
	c     sim.ConnID
	out   *sim.Effects
	conn  *conn
}

// hangUp closes the connection without an answer.
var hangUp = sim.Reply{None: true, Closes: true}

func (x *execution) run(r *sim.Request) sim.Reply {
	x.conn = x.s.conns[x.c]
	switch {
	case r.Name == brokenName:
		return hangUp
	case x.conn == nil:
		if r.Name != connectName {
			return hangUp
		}
		return x.connect(&reader{left: r.Words[2]})
	case x.s.sessions[x.conn.session.id] == nil:
		return sim.Reply{None: true} // the connection is about to end
	}
	x.out.Write(fmt.Sprintf("session %d", x.conn.session.id))
	if x.s.touch(x.nowNs, x.conn.session, x.conn.timeoutMs) {
		x.out.Changed = true
	}
	in := &reader{left: r.Words[2]}
	xid, op := in.int32(), in.int32()
	return x.answer(xid, op, in)
}

// connect begins a session, or continues one.
func (x *execution) connect(in *reader) sim.Reply {
	s := x.s
	in.int32()
	seen, timeoutMs, id := in.int64(), in.int32(), in.int64()
	pass := in.buffer()
	readOnly := len(in.left) > 0 // the client knows read-only servers
	if seen > s.tree.zxid {
		return hangUp // the client has seen transactions that this server has lost
	}
	s.changed(x.out)
	timeoutMs = int32(min(max(int64(timeoutMs), 2*s.tickMs), 20*s.tickMs))
	var own *session
	if id == 0 {
		own = &session{id: s.nextID, timeoutMs: timeoutMs}
		s.nextID++
		s.sessions[own.id] = own
		s.tree.begin(s.wallMs(x.nowNs), own.id)
	} else {
		if own = s.sessions[id]; own != nil && own.conn != 0 {
			x.out.HangUp(own.conn)
			s.Close(x.nowNs, own.conn, x.out)
		}
		if string(pass) != string(password(id)) {
			own = nil
		}
	}
	var w writer
	w.int32(0)
	if own == nil {
		w.int32(0)
		w.int64(0)
		w.buffer(make([]byte, 16))
	} else {
		own.conn = x.c
		s.touch(x.nowNs, own, timeoutMs)
		s.conns[x.c] = &conn{own, timeoutMs}
		w.int32(timeoutMs)
		w.int64(own.id)
		w.buffer(password(own.id))
	}
	if readOnly {
		w.bool(false)
	}
	if own == nil {
		return sim.Reply{Bytes: w.frame(), Shown: "no such session", Answer: model.Refused, Closes: true}
	}
	return sim.Reply{Bytes: w.frame(), Shown: fmt.Sprintf("session %#x", own.id)}
}

// result is the result of a request. The body of an error is empty.
type result struct {
	op    int32 // the type of a write
	err   code
	shown string
	body  writer
}

// answer executes a request of a connection that has a session.
func (x *execution) answer(xid, op int32, in *reader) sim.Reply {
	s := x.s
	if names[op] == "" {
		return x.reply(xid, result{err: codeUnimplemented}, true)
	}
	if op == opClose {
		s.end(x.nowNs, x.conn.session, x.out)
		return x.reply(xid, result{}, true)
	}
	read, known := reads[op]
	if known {
		r := read(x, in)
		if in.err != nil {
			return hangUp
		}
		return x.reply(xid, r, false)
	}
	s.changed(x.out)
	t := s.tree.begin(s.wallMs(x.nowNs), x.conn.session.id)
	var r result
	if op == opMulti {
		r = x.multi(t, in)
	} else {
		r = write(t, op, false, in)
	}
	if in.err != nil {
		return hangUp
	}
	s.notify(t.changes)
	return x.reply(xid, r, false)
}

// reply makes the answer to a request.
func (x *execution) reply(xid int32, r result, closes bool) sim.Reply {
	var w writer
	w.int32(xid)
	w.int64(x.s.tree.zxid)
	w.int32(int32(r.err))
	reply := sim.Reply{Shown: r.shown, Closes: closes}
	if r.err == codeOK {
		w = append(w, r.body...)
	} else {
		reply.Answer = model.Refused
		reply.Shown = fmt.Sprintf("error %d", r.err)
		if text := codeNames[r.err]; text != "" {
			reply.Shown = text
		}
	}
	reply.Bytes = w.frame()
	return reply
}

var codeNames = map[code]string{
	codeInconsistency: "not tried", codeUnimplemented: "unimplemented", codeBadArguments: "bad arguments", codeNoNode: "no node", codeNoAuth: "not allowed",
	codeBadVersion: "bad version", codeNoChildren: "no children for ephemeral nodes", codeNodeExists: "node exists", codeNotEmpty: "not empty", codeInvalidACL: "invalid ACL",
	codeReconfigOff: "reconfiguration is off",
}

// reads has the requests that are not transactions.
var reads = map[int32]func(*execution, *reader) result{
	opPing: func(*execution, *reader) result { return result{shown: "pong"} },
	opSync: func(_ *execution, in *reader) (r result) {
		r.body.text(in.text())
		return r
	},
	opExists: func(x *execution, in *reader) (r result) {
		path, wait := in.text(), in.bool()
		if strings.Contains(path, "\x00") {
			return result{err: codeBadArguments}
		}
		if wait {
			x.watch(x.s.watches.data, path)
		}
		n := x.s.tree.get(path)
		if n == nil {
			return result{err: codeNoNode}
		}
		r.body.stat(n.stat())
		r.shown = "there"
		return r
	},
	opGetData: func(x *execution, in *reader) (r result) {
		path, wait := in.text(), in.bool()
		n, err := x.s.tree.read(path)
		if err != codeOK {
			return result{err: err}
		}
		if wait {
			x.watch(x.s.watches.data, path)
		}
		r.body.buffer(n.data)
		r.body.stat(n.stat())
		r.shown = string(n.data)
		return r
	},
	opGetACL: func(x *execution, in *reader) (r result) {
		n := x.s.tree.get(in.text())
		switch {
		case n == nil:
			return result{err: codeNoNode}
		case !n.allows(permRead | permAdmin):
			return result{err: codeNoAuth}
		}
		r.body.acls(n.acl)
		r.body.stat(n.stat())
		return r
	},
	opGetChildren:  func(x *execution, in *reader) result { return x.list(in, false) },
	opGetChildren2: func(x *execution, in *reader) result { return x.list(in, true) },
	opSetWatches: func(x *execution, in *reader) result {
		since := in.int64()
		data, exist, children := in.texts(), in.texts(), in.texts()
		if in.err != nil {
			return result{}
		}
		x.rewatch(since, data, exist, children)
		return result{shown: fmt.Sprintf("%d", len(data)+len(exist)+len(children))}
	},
}

// read returns a node if everybody may read it.
func (t *tree) read(path string) (*node, code) {
	n := t.get(path)
	switch {
	case n == nil:
		return nil, codeNoNode
	case !n.allows(permRead):
		return nil, codeNoAuth
	}
	return n, codeOK
}

// watch lets the connection wait for a change.
func (x *execution) watch(on map[string]map[sim.ConnID]bool, path string) {
	x.out.Write(sim.ObjectServer)
	watch(on, path, x.c)
}

// list answers with the names of the children of a node.
func (x *execution) list(in *reader, withStat bool) (r result) {
	path, wait := in.text(), in.bool()
	n, err := x.s.tree.read(path)
	if err != codeOK {
		return result{err: err}
	}
	if wait {
		x.watch(x.s.watches.children, path)
	}
	names := n.list()
	r.body.texts(names)
	if withStat {
		r.body.stat(n.stat())
	}
	r.shown = strings.Join(names, " ")
	return r
}

// rewatch sets the watches of the session's earlier connection on a new connection. It notifies the
// client at once of nodes that have changed since.
func (x *execution) rewatch(since int64, data, exist, children []string) {
	s := x.s
	for _, path := range data {
		switch n := s.tree.get(path); {
		case n == nil:
			s.push(x.c, change{event: eventDeleted, path: path})
		case n.mzxid > since:
			s.push(x.c, change{event: eventChanged, path: path})
		default:
			x.watch(s.watches.data, path)
		}
	}
	for _, path := range exist {
		if s.tree.get(path) != nil {
			s.push(x.c, change{event: eventCreated, path: path})
		} else {
			x.watch(s.watches.data, path)
		}
	}
	for _, path := range children {
		switch n := s.tree.get(path); {
		case n == nil:
			s.push(x.c, change{event: eventDeleted, path: path})
		case n.pzxid > since:
			s.push(x.c, change{event: eventChildren, path: path})
		default:
			x.watch(s.watches.children, path)
		}
	}
}

// write executes a request that is a transaction, or an operation of a multi.
func write(t *transaction, op int32, inMulti bool, in *reader) (r result) {
	r.op = op
	switch op {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		path, data, list, mode := in.text(), in.buffer(), in.acls(), in.int32()
		if op == opCreateTTL {
			in.int64()
		}
		if in.err != nil {
			return r
		}
		if inMulti { // there the mode decides the type
			op = opCreate
			if mode == modeContainer {
				op = opCreateContainer
			}
		}
		if r.op = op; inMulti && op == opCreateContainer {
			r.op = opCreate2 // the type of its answer
		}
		if path, r.err = t.create(path, data, list, mode, op == opCreateContainer); r.err == codeOK {
			r.shown = path
			if r.body.text(path); op != opCreate {
				r.body.stat(t.nodes[path].stat())
			}
		}
	case opDelete:
		path, version := in.text(), in.int32()
		r.err = t.delete(path, version)
	case opSetData:
		path, data, version := in.text(), in.buffer(), in.int32()
		if r.err = t.set(path, data, version); r.err == codeOK {
			r.body.stat(t.nodes[path].stat())
		}
	case opSetACL:
		path, list, version := in.text(), in.acls(), in.int32()
		if r.err = t.setACL(path, list, version); r.err == codeOK {
			r.body.stat(t.nodes[path].stat())
		}
	case opCheck:
		path, version := in.text(), in.int32()
		r.err = t.check(path, version)
	case opReconfig:
		r.err = codeReconfigOff
	}
	return r
}

// multi executes several operations, or none of them.
func (x *execution) multi(t *transaction, in *reader) (r result) {
	var list []result
	before, failed := t.tree.clone(), false
	for {
		op, end := in.int32(), in.bool()
		in.int32()
		if in.err != nil || end {
			break
		}
		switch op {
		case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opSetData, opCheck:
		default:
			in.err = errShort // no length says where the next operation begins
		}
		one := write(t, op, true, in)
		if failed {
			one.err = codeInconsistency
		}
		failed = failed || one.err != codeOK
		list = append(list, one)
	}
	if failed || in.err != nil {
		*t.tree, t.changes = *before, nil
	}
	for _, one := range list {
		if failed {
			one.op, one.body = opError, nil
			one.body.int32(int32(one.err))
		}
		r.body.int32(one.op)
		r.body.bool(false)
		r.body.int32(int32(one.err))
		r.body = append(r.body, one.body...)
	}
	r.body.int32(-1)
	r.body.bool(true)
	r.body.int32(-1)
	r.shown = fmt.Sprintf("%d done", len(list))
	if failed {
		r.shown = "not done"
	}
	return r
}
