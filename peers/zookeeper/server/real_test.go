package server

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lockstep/internal/longtest"
	"lockstep/lockimpl/redisserver"
	"lockstep/peers/external"
	"lockstep/sim"
)

// zookeeper starts the real program for the time of the test, as a single server with ticks of
// tickMs, and returns its address.
func zookeeper(t *testing.T, tickMs int) string {
	t.Helper()
	p := newProgram(t, tickMs)
	p.start()
	return p.addr
}

// program is the real program, with an address and a data directory that outlive it.
type program struct {
	t               *testing.T
	java, addr, dir string
	tickMs          int
	running         *external.Process
	said            strings.Builder
}

func newProgram(t *testing.T, tickMs int) *program {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		redisserver.Missing(t, "java", "default-jre-headless")
	}
	if _, err := os.Stat(jar); err != nil {
		redisserver.Missing(t, "zookeeper", "zookeeper")
	}
	addr := freePort(t)
	p := &program{t: t, java: java, addr: addr, dir: t.TempDir(), tickMs: tickMs}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Log(p.said.String())
		}
	})
	return p
}

// start starts the program and waits until it serves.
func (p *program) start() {
	p.t.Helper()
	var err error
	p.running, err = launch(p.java, p.dir, p.addr, p.tickMs, &p.said, (*exec.Cmd).Start,
		"-Dzookeeper.forceSync=no", "-Dznode.container.checkIntervalMs=3600000") // empty containers stay, however long the test takes
	if err != nil {
		p.t.Fatalf("%v:\n%s", err, p.said.String())
	}
}

// kill ends the program without an orderly shutdown.
func (p *program) kill() {
	if p.running != nil {
		p.running.Kill()
		p.running = nil
	}
}

// freePort returns a free address whose port the system does not give to clients. Otherwise a
// client that connects to an address at which nothing listens yet might connect to itself.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// here is a server of the world without a network.
type here struct {
	s     *Server
	start time.Time
	wrote map[sim.ConnID][]byte // what connections have not read yet
	ended map[sim.ConnID]bool
	next  sim.ConnID
}

func newHere() *here {
	h := &here{s: New(), start: time.Now(), wrote: map[sim.ConnID][]byte{}, ended: map[sim.ConnID]bool{}}
	h.s.Start(sim.Setup{Start: h.start})
	return h
}

// send sends a frame.
func (h *here) send(c sim.ConnID, frame []byte) {
	r, rest, err := h.s.Decode(string(frame))
	if err != nil || rest != "" {
		panic("a test sends a frame at a time")
	}
	var out sim.Effects
	reply, _ := h.s.Handle(int64(time.Since(h.start)), c, &r, &out)
	h.wrote[c] = append(h.wrote[c], reply.Bytes...)
	for _, p := range h.s.Pushed(nil) {
		h.wrote[p.Conn] = append(h.wrote[p.Conn], p.Bytes...)
	}
	for _, ended := range out.HungUp() {
		h.end(ended)
	}
	if reply.Closes {
		h.end(c)
	}
}

func (h *here) end(c sim.ConnID) {
	h.ended[c] = true
	h.s.Close(0, c, &sim.Effects{})
}

// hear returns what a connection has not read yet.
func (h *here) hear(c sim.ConnID) []byte {
	text := h.wrote[c]
	delete(h.wrote, c)
	return text
}

// client is a connection of one client with both servers.
type client struct {
	t     *testing.T
	h     *here
	there net.Conn
	id    sim.ConnID
	xid   int32

	session  int64
	password []byte
	seen     int64     // the last transaction that it saw in an answer
	told     *[]string // the requests and answers of all clients of a sequence
}

// dial connects a client with both.
func dial(t *testing.T, addr string, h *here, told *[]string) *client {
	t.Helper()
	there, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	h.next++
	return &client{t: t, h: h, there: there, id: h.next, password: make([]byte, 16), told: told}
}

// open begins a session, or continues the session of c.
func (c *client) open(timeoutMs int32, readOnly bool) {
	c.t.Helper()
	var w writer
	w.int32(0)
	w.int64(c.seen)
	w.int32(timeoutMs)
	w.int64(c.session)
	w.buffer(c.password)
	if readOnly {
		w.bool(false)
	}
	_, _ = c.there.Write(w.frame())
	got, err := c.readFrame()
	if err == nil {
		in := &reader{left: string(got[4:])}
		in.int32()
		in.int32()
		id := in.int64()
		if c.session == 0 {
			c.h.s.nextID = id // the real id comes from the clock of the machine
		}
		if c.session = id; id != 0 {
			c.password = in.buffer()
		}
	}
	c.h.send(c.id, w.frame())
	c.same("connect", got, c.h.hear(c.id))
	if c.h.ended[c.id] {
		c.ends("connect")
	}
}

// ends checks that the real program, too, has closed the connection.
func (c *client) ends(what string) {
	c.t.Helper()
	_ = c.there.SetReadDeadline(time.Now().Add(5 * time.Second))
	if b, err := c.readFrame(); err == nil || os.IsTimeout(err) {
		c.fail(fmt.Sprintf("%s: zookeeper does not close the connection: %q, %v", what, b, err))
	}
}

func (c *client) fail(why string) {
	c.t.Helper()
	c.t.Fatalf("%s\n%s", strings.Join((*c.told)[max(0, len(*c.told)-20):], "\n"), why)
}

// readFrame reads a frame, with its length.
func (c *client) readFrame() ([]byte, error) {
	_ = c.there.SetReadDeadline(time.Now().Add(10 * time.Second))
	head := make([]byte, 4)
	if _, err := io.ReadFull(c.there, head); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head))
	_, err := io.ReadFull(c.there, body)
	return append(head, body...), err
}

// same compares what both have sent, except the times of nodes.
func (c *client) same(what string, there, here []byte) {
	c.t.Helper()
	*c.told = append(*c.told, fmt.Sprintf("%d: %s\n   zookeeper %q\n   here      %q", c.id, what, there, here))
	if string(timeless(there)) != string(timeless(here)) {
		c.fail("they differ")
	}
}

// timeless replaces each time of about now, in milliseconds, by zeros.
func timeless(b []byte) []byte {
	b = append([]byte{}, b...)
	for i := 0; i+8 <= len(b); i++ {
		if ms := int64(binary.BigEndian.Uint64(b[i:])); max(ms-time.Now().UnixMilli(), time.Now().UnixMilli()-ms) < 600_000 {
			clear(b[i : i+8])
		}
	}
	return b
}

// ask sends a request to both, and compares everything that they send up to the answer.
func (c *client) ask(what string, op int32, body writer) (code int32) {
	c.t.Helper()
	c.xid++
	xid := c.xid
	if op == opPing {
		xid = -2
	}
	var w writer
	w.int32(xid)
	w.int32(op)
	w = append(w, body...)
	_, _ = c.there.Write(w.frame())
	c.h.send(c.id, w.frame())
	var got []byte
	for {
		frame, err := c.readFrame()
		if err != nil {
			got = fmt.Appendf(got, " %v", err)
			break
		}
		got = append(got, frame...)
		in := &reader{left: string(frame[4:])}
		if n := in.int32(); n == xid {
			c.seen = in.int64()
			code = in.int32()
			break
		}
	}
	c.same(what, got, c.h.hear(c.id))
	if c.h.ended[c.id] {
		c.ends(what)
	}
	return code
}

// drawer draws requests under a node of its own.
type drawer struct {
	*rand.Rand
	root string
	made []string // names of sequential nodes, which are not known beforehand
}

func (d *drawer) one(of ...string) string { return of[d.IntN(len(of))] }

func (d *drawer) path() string {
	switch d.IntN(14) {
	case 0:
		return d.one("", "/", "a", "//", "/a/", d.root+"/", d.root+"//a", d.root+"/a/./b", d.root+"/a\x00", d.root+"/..", d.root+"/\x7f", "/zookeeper", "/zookeeper/config", "/zookeeper/quota", "/none/a", d.root+"/é")
	case 1, 2:
		if len(d.made) > 0 {
			return d.made[d.IntN(len(d.made))]
		}
	}
	return d.root + d.one("", "/a", "/a", "/b", "/c", "/a/b", "/a/b/c", "/a/d", "/b/a")
}

func (d *drawer) data(w *writer) {
	w.buffer([][]byte{nil, {}, []byte("x"), []byte("owner")}[d.IntN(4)])
}

func (d *drawer) acl(w *writer) {
	if d.IntN(12) > 0 {
		w.acls(anyone)
		return
	}
	w.acls([][]acl{{}, {{1, "world", "anyone"}}, {{30, "world", "anyone"}}, {{31, "none", "x"}}, {{31, "world", "me"}}, {{31, "world", "anyone"}, {31, "world", "anyone"}, {1, "world", "anyone"}}, {{23, "world", "anyone"}}}[d.IntN(7)])
}

func (d *drawer) version(w *writer) { w.int32(int32(max(d.IntN(8)-5, -1))) }

// create draws the fields of a create.
func (d *drawer) create(w *writer, op int32, inMulti bool) (path string, mode int32) {
	path, mode = d.path(), []int32{0, 0, 1, 1, 2, 3, 3}[d.IntN(7)]
	switch {
	case mode >= 2 && d.IntN(5) > 0:
		path = d.root + d.one("", "/a", "/b") + d.one("/lock-", "/lock-", "/_c_guid-lock-", "/")
	case op == opCreateContainer:
		mode = 4
	case d.IntN(40) == 0 && !inMulti:
		mode = []int32{5, 6, 7, -1}[d.IntN(4)]
	}
	w.text(path)
	d.data(w)
	d.acl(w)
	w.int32(mode)
	return path, mode
}

// write draws a request that is a transaction.
func (d *drawer) write(inMulti bool) (what string, op int32, w writer) {
	op = []int32{opCreate, opCreate, opCreate, opCreate, opCreate, opCreate2, opCreate2, opCreateContainer, opDelete, opDelete, opDelete, opSetData, opSetData, opCheck}[d.IntN(14)]
	switch op {
	case opCreate, opCreate2, opCreateContainer:
		path, mode := d.create(&w, op, inMulti)
		return fmt.Sprintf("%s %q mode %d", names[op], path, mode), op, w
	}
	path := d.path()
	w.text(path)
	if op == opSetData {
		d.data(&w)
	}
	d.version(&w)
	return fmt.Sprintf("%s %q", names[op], path), op, w
}

// request draws a request.
func (d *drawer) request() (what string, op int32, w writer) {
	switch d.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8:
		if what, op, w = d.write(false); op != opCheck {
			return what, op, w
		}
		return d.request() // only a multi has this operation
	case 9:
		what = "MULTI"
		for range 1 + d.IntN(4) {
			one, op, body := d.write(true)
			what += " " + one
			w.int32(op)
			w.bool(false)
			w.int32(-1)
			w = append(w, body...)
		}
		w.int32(-1)
		w.bool(true)
		w.int32(-1)
		return what, opMulti, w
	case 10:
		path := d.path()
		w.text(path)
		switch d.IntN(4) {
		case 0:
			d.acl(&w)
			d.version(&w)
			return fmt.Sprintf("SETACL %q", path), opSetACL, w
		case 1:
			return fmt.Sprintf("SYNC %q", path), opSync, w
		}
		return fmt.Sprintf("GETACL %q", path), opGetACL, w
	case 11:
		var count int
		w.int64(int64(d.IntN(3) * 1_000_000))
		for range 3 {
			var paths []string
			for range d.IntN(3) {
				paths = append(paths, d.root+d.one("", "/a", "/b", "/c", "/a/b"))
			}
			count += len(paths)
			w.texts(paths)
		}
		return fmt.Sprintf("SETWATCHES %d", count), opSetWatches, w
	case 12:
		if d.IntN(8) == 0 {
			w.texts([]string{"", "", ""}) // any three buffers
			w.int64(-1)
			return "RECONFIG", opReconfig, w[4:]
		}
		w.text(d.root + "/t")
		w.buffer(nil)
		w.acls(anyone)
		w.int32(int32(5 + d.IntN(2)))
		w.int64(1000)
		return "CREATETTL", opCreateTTL, w
	}
	op = []int32{opExists, opGetData, opGetChildren, opGetChildren2}[d.IntN(4)]
	path, wait := d.path(), d.IntN(2) == 0
	w.text(path)
	w.bool(wait)
	return fmt.Sprintf("%s %q %v", names[op], path, wait), op, w
}

// For drawn sequences of requests by several clients, the server of the world answers as the real
// program does, byte by byte. The comparison includes the ids and passwords of sessions, the
// numbers of transactions, and the order of children and of events of watches.
func TestTheServerAnswersAsZooKeeperDoes(t *testing.T) {
	const tickMs = 200_000 // no session ends, however busy the machine is
	addr, h := zookeeper(t, tickMs), newHere()
	h.s.tickMs = tickMs
	requests, refused, told := 0, 0, 0
	sequences := longtest.Size(t, 200, 1000)
	for sequence := range sequences {
		d := &drawer{Rand: rand.New(rand.NewPCG(uint64(sequence), 1)), root: fmt.Sprintf("/s%d", sequence)}
		var log []string
		var clients []*client
		for range 2 + d.IntN(2) {
			c := dial(t, addr, h, &log)
			c.open([]int32{4_000_000, 10_000_000, 3_000_000}[d.IntN(3)], d.IntN(2) == 0)
			clients = append(clients, c)
		}
		for _, path := range []string{"", "/a", "/b", "/a/b"}[:1+d.IntN(4)] {
			var w writer
			w.text(d.root + path)
			w.buffer(nil)
			w.acls(anyone)
			w.int32(modePersistent)
			clients[0].ask("CREATE "+d.root+path, opCreate, w)
		}
		for range 10 + d.IntN(20) {
			i := d.IntN(len(clients))
			c := clients[i]
			switch d.IntN(40) {
			case 0: // the client comes back on another connection
				old := c
				c = dial(t, addr, h, &log)
				c.session, c.password, c.seen, c.xid = old.session, old.password, old.seen, old.xid
				if d.IntN(5) == 0 {
					c.password = make([]byte, 16)
				}
				if d.IntN(5) == 0 {
					c.seen += 1000
				}
				if again := d.IntN(2) == 0; again {
					_ = old.there.Close()
					h.end(old.id)
				}
				c.open(4_000_000, d.IntN(2) == 0)
				if h.ended[old.id] {
					_ = old.there.Close()
				}
				if h.ended[c.id] {
					if !h.ended[old.id] {
						continue // the client still has the old connection
					}
					c = dial(t, addr, h, &log)
					c.open(4_000_000, false)
				}
				clients[i] = c
				continue
			case 1:
				c.ask("CLOSE", opClose, nil)
				clients[i] = dial(t, addr, h, &log)
				clients[i].open(4_000_000, false)
				c = clients[i]
			}
			what, op, body := d.request()
			requests++
			if c.ask(what, op, body) != 0 {
				refused++
			}
			for path := range h.s.tree.nodes {
				if _, name := split(path); strings.HasPrefix(path, d.root) && strings.Contains(name, "0000") && len(d.made) < 100 {
					d.made = append(d.made, path)
				}
			}
			for _, other := range clients {
				if other != c {
					told += (len(h.wrote[other.id]) + 99) / 100
					other.ask("PING, after "+what, opPing, nil)
				}
			}
		}
		for _, c := range clients {
			c.ask("CLOSE", opClose, nil)
			_ = c.there.Close()
		}
	}
	t.Logf("%d sequences, %d requests, %d of them refused, %d notices of changes at least", sequences, requests, refused, told)
}
