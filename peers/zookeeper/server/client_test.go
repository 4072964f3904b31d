package server

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/sim"
)

// socketed is a server of the world that serves connections outside any world, in real time.
type socketed struct {
	addr string

	mu    sync.Mutex // the server has no mutex of its own
	s     *Server
	start time.Time
	conns map[sim.ConnID]net.Conn
	next  sim.ConnID
}

func newSocketed(t *testing.T, tickMs int64) *socketed {
	t.Helper()
	l, err := net.Listen("tcp", freePort(t))
	if err != nil {
		t.Fatal(err)
	}
	k := &socketed{addr: l.Addr().String(), s: New(), start: time.Now(), conns: map[sim.ConnID]net.Conn{}}
	k.s.tickMs = tickMs
	k.s.Start(sim.Setup{Start: k.start})
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		_ = l.Close()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go k.serve(c)
		}
	}()
	go func() { // sessions end at ticks
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			k.do(func(nowNs int64, out *sim.Effects) {
				if at, ok := k.s.Next(); ok && at <= nowNs {
					k.s.Tick(nowNs, out)
				}
			})
		}
	}()
	return k
}

// do calls the server, and then sends the messages and ends the connections that the effects ask
// for.
func (k *socketed) do(f func(nowNs int64, out *sim.Effects)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out sim.Effects
	f(int64(time.Since(k.start)), &out)
	for _, p := range k.s.Pushed(nil) {
		if c := k.conns[p.Conn]; c != nil {
			_, _ = c.Write(p.Bytes)
		}
	}
	for _, id := range out.HungUp() {
		k.end(id)
	}
}

// end ends a connection. The caller holds k.mu.
func (k *socketed) end(id sim.ConnID) {
	if c := k.conns[id]; c != nil {
		delete(k.conns, id)
		_ = c.Close()
		k.s.Close(0, id, &sim.Effects{})
	}
}

func (k *socketed) serve(c net.Conn) {
	k.mu.Lock()
	k.next++
	id := k.next
	k.conns[id] = c
	k.mu.Unlock()
	b, buffer := make([]byte, 64<<10), ""
	for {
		n, err := c.Read(b)
		buffer += string(b[:n])
		for err == nil && buffer != "" {
			r, rest, unfinished := k.s.Decode(buffer)
			if unfinished != nil {
				break
			}
			buffer = rest
			k.do(func(nowNs int64, out *sim.Effects) {
				if k.conns[id] == nil {
					return // a restart has ended it
				}
				reply, _ := k.s.Handle(nowNs, id, &r, out)
				_, _ = c.Write(reply.Bytes)
				if reply.Closes {
					k.end(id)
				}
			})
		}
		if err != nil {
			k.do(func(int64, *sim.Effects) { k.end(id) })
			return
		}
	}
}

// restart ends the program and starts it with its data.
func (k *socketed) restart() {
	k.do(func(nowNs int64, out *sim.Effects) {
		k.s.Strike(nowNs, model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart, KeepData: true}, out)
		for id, c := range k.conns {
			delete(k.conns, id)
			_ = c.Close()
		}
	})
}

// quiet is the logger of a client.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// user is the program of a user: a session of the client with one server.
type user struct {
	*zk.Conn
	dead    atomic.Bool // its process has ended without telling the server
	socket  atomic.Pointer[net.Conn]
	watches []<-chan zk.Event
}

func newUser(addr string, timeout time.Duration) (*user, error) {
	u := &user{}
	var err error
	u.Conn, _, err = zk.Connect([]string{addr}, timeout, zk.WithLogger(quiet{}), zk.WithLogInfo(false),
		zk.WithDialer(func(network, addr string, timeout time.Duration) (net.Conn, error) {
			if u.dead.Load() {
				return nil, errors.New("the process is dead")
			}
			c, err := net.DialTimeout(network, addr, timeout)
			u.socket.Store(&c)
			return c, err
		}))
	return u, err
}

// die ends the process of the user.
func (u *user) die() {
	u.dead.Store(true)
	if c := u.socket.Load(); c != nil && *c != nil {
		_ = (*c).Close()
	}
}

// patient repeats a call until the client has a connection.
func patient[T any](call func() (T, error)) (T, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		v, err := call()
		lost := errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer)
		if !lost || time.Since(began) > 2*time.Minute {
			return v, err
		}
	}
}

// side is one server in a sequence.
type side struct {
	root  string
	users []*user
}

// op is a call of a user.
type op struct {
	user           int
	call           string
	path, data     string
	flags, version int32
	watch          bool
}

// do makes a call of the client, and writes its result. It leaves the root out of paths.
func (s *side) do(o op) string {
	u, path := s.users[o.user], s.root+o.path
	say := func(format string, args ...any) string {
		return strings.ReplaceAll(fmt.Sprintf(format, args...), s.root, "")
	}
	switch o.call {
	case "create":
		made, err := u.Create(path, []byte(o.data), o.flags, zk.WorldACL(zk.PermAll))
		return say("%s %v", made, err)
	case "delete":
		return say("%v", u.Delete(path, o.version))
	case "set":
		stat, err := u.Set(path, []byte(o.data), o.version)
		return say("%s %v", s.stat(stat), err)
	case "get":
		data, stat, err := u.Get(path)
		if o.watch {
			var events <-chan zk.Event
			if data, stat, events, err = u.GetW(path); err == nil {
				u.watches = append(u.watches, events)
			}
		}
		return say("%q %s %v", data, s.stat(stat), err)
	case "children":
		names, stat, err := u.Children(path)
		if o.watch {
			var events <-chan zk.Event
			if names, stat, events, err = u.ChildrenW(path); err == nil {
				u.watches = append(u.watches, events)
			}
		}
		slices.Sort(names)
		return say("%q %s %v", names, s.stat(stat), err)
	}
	there, stat, err := u.Exists(path)
	if o.watch {
		var events <-chan zk.Event
		if there, stat, events, err = u.ExistsW(path); err == nil {
			u.watches = append(u.watches, events)
		}
	}
	return say("%v %s %v", there, s.stat(stat), err)
}

// stat writes the facts about a node that are the same on both servers. It leaves out its times,
// and names its owner by the user. It also leaves out the numbers of transactions, which depend on
// other sequences.
func (s *side) stat(x *zk.Stat) string {
	if x == nil {
		return "-"
	}
	owner := "nobody"
	for i, u := range s.users {
		if x.EphemeralOwner != 0 && x.EphemeralOwner == u.SessionID() {
			owner = fmt.Sprint("user ", i)
		}
	}
	if owner == "nobody" && x.EphemeralOwner != 0 {
		owner = "a session that is over"
	}
	return fmt.Sprintf("version %d, children's %d, of %s, length %d, %d children", x.Version, x.Cversion, owner, x.DataLength, x.NumChildren)
}

// heard lists the watches of the living users that have fired, with their events. It reads
// something first: when the answer comes, everything that the server sent before it has come, too.
func (s *side) heard() string {
	text := ""
	for i, u := range s.users {
		if u.dead.Load() {
			continue
		}
		_, _ = patient(func() (bool, error) { there, _, err := u.Exists(s.root); return there, err })
		for n, w := range u.watches {
			select {
			case e := <-w:
				text += fmt.Sprintf(" %d.%d: %v of %q, %v;", i, n, e.Type, strings.ReplaceAll(e.Path, s.root, ""), e.Err)
				u.watches[n] = nil
			default:
			}
		}
	}
	return text
}

// tree writes all nodes of the sequence.
func (s *side) tree(path string) string {
	data, stat, err := s.users[0].Get(s.root + path)
	text := fmt.Sprintf("%q: %q %s %v\n", path, data, s.stat(stat), err)
	names, _, _ := s.users[0].Children(s.root + path)
	slices.Sort(names)
	for _, name := range names {
		text += s.tree(path + "/" + name)
	}
	return text
}

// drawOp draws a call of one of the users.
func drawOp(r *rand.Rand, users int) op {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	o := op{user: r.IntN(users), call: one("create", "create", "create", "delete", "set", "get", "children", "exists"), data: one("", "x", "owner"), version: int32(max(r.IntN(6)-3, -1))}
	o.path = one("/a", "/b", "/a/c", "/a/d", "/a/lock-0000000000", "/a/lock-0000000001", "/b/lock-0000000000", "")
	o.watch = r.IntN(2) == 0
	if o.call == "create" {
		o.path, o.flags = one("/a", "/b", "/a/c", "/a/d", "/a/lock-", "/a/lock-", "/b/lock-"), int32(r.IntN(4))
		if strings.HasSuffix(o.path, "lock-") {
			o.flags |= zk.FlagSequence
		}
		if o.path == "/a" || o.path == "/b" {
			o.flags = 0 // an ephemeral node has no children
		}
	}
	return o
}

// disturbed reports whether an answer shows that the client lost its connection or its session,
// since the machine was too busy.
func disturbed(answer string) bool {
	return slices.ContainsFunc([]error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired}, func(err error) bool { return strings.Contains(answer, err.Error()) })
}

// For drawn sequences of calls by three users, the client of the locks returns the same on both
// servers. In each sequence a process dies, the server restarts with its data, and the session of
// the dead process ends by itself, in real time. Many sequences run side by side. A sequence that a
// stall of the machine disturbed is played again with another number.
func TestTheClientIsToldTheSame(t *testing.T) {
	const (
		tickMs    = 1000
		mortal    = 2 * time.Second  // two ticks, the least timeout that a session may have
		living    = 20 * time.Second // twenty ticks
		patiently = 2 * time.Minute
	)
	real, world := newProgram(t, tickMs), newSocketed(t, tickMs)
	real.start()
	var calls, expired, fired, alike, stalled atomic.Int32
	sequences := longtest.Size(t, 20, 1000)
	together := min(sequences, 50)
	for batch := 0; int(alike.Load()) < sequences && batch < 3*sequences && !t.Failed(); batch += together {
		var before, after sync.WaitGroup
		restarted := make(chan struct{})
		before.Add(together)
		for i := range together {
			after.Go(func() {
				number := batch + i
				r := rand.New(rand.NewPCG(uint64(number), 3))
				waiting := true
				defer func() {
					if waiting {
						before.Done()
					}
				}()
				root := fmt.Sprintf("/client%d", number)
				sides := []*side{{root: root}, {root: root}}
				defer func() {
					for _, s := range sides {
						for _, u := range s.users {
							u.Close()
						}
					}
				}()
				for n, addr := range []string{real.addr, world.addr} {
					for _, timeout := range []time.Duration{living, living, mortal} {
						u, err := newUser(addr, timeout)
						if err != nil {
							t.Error(err)
							return
						}
						sides[n].users = append(sides[n].users, u)
					}
					for _, path := range []string{"", "/a"} {
						if _, err := patient(func() (string, error) {
							return sides[n].users[0].Create(root+path, nil, 0, zk.WorldACL(zk.PermAll))
						}); err != nil && !errors.Is(err, zk.ErrNodeExists) {
							t.Error(err)
							return
						}
					}
					for u := range sides[n].users { // each has a session, and the mortal user has a node
						if _, err := patient(func() (bool, error) { there, _, err := sides[n].users[u].Exists(root); return there, err }); err != nil {
							t.Error(err)
							return
						}
					}
				}
				ids := map[*user]int64{}
				for _, s := range sides {
					for _, u := range s.users {
						ids[u] = u.SessionID()
					}
				}
				ended := func() bool { // whether the session of a living user ended, since a stall was longer than its timeout
					for u, id := range ids {
						if !u.dead.Load() && u.SessionID() != id {
							return true
						}
					}
					return false
				}
				var log []string
				same := func(what string, ask func(*side) string) bool {
					want, got := ask(sides[0]), ask(sides[1])
					if disturbed(want) || disturbed(got) || want != got && ended() {
						stalled.Add(1)
						return false
					}
					log = append(log, fmt.Sprintf("%s\n   zookeeper %s\n   here      %s", what, want, got))
					if want != got {
						t.Errorf("sequence %d:\n%s", number, strings.Join(log, "\n"))
					}
					return want == got
				}
				play := func(n, users int) bool {
					for range n {
						o := drawOp(r, users)
						calls.Add(1)
						if !same(fmt.Sprintf("%+v", o), func(s *side) string { return s.do(o) }) {
							return false
						}
					}
					return same("watches", func(s *side) string {
						text := s.heard()
						fired.Add(int32(strings.Count(text, ";")))
						return text
					})
				}
				o := op{user: 2, call: "create", path: "/a/mortal", flags: zk.FlagEphemeral}
				if !same("the node of the dead", func(s *side) string { return s.do(o) }) || !play(6+r.IntN(10), 3) {
					return
				}
				for _, s := range sides {
					s.users[2].die()
				}
				before.Done()
				waiting = false
				<-restarted
				for n, s := range sides { // the sessions continue, and the session of the dead user ends
					_, _ = patient(func() (bool, error) { there, _, err := s.users[1].Exists(root); return there, err })
					gone := false
					for began := time.Now(); !gone && time.Since(began) < patiently; time.Sleep(50 * time.Millisecond) {
						there, err := patient(func() (bool, error) { there, _, err := s.users[0].Exists(root + "/a/mortal"); return there, err })
						gone = !there && err == nil
					}
					if !gone && ended() {
						stalled.Add(1)
						return
					}
					if !gone {
						t.Errorf("sequence %d: the session of the dead does not end on server %d", number, n)
						return
					}
				}
				expired.Add(1)
				if !same("watches after the restart", (*side).heard) || !same("tree", func(s *side) string { return s.tree("") }) {
					return
				}
				if play(4+r.IntN(8), 2) && same("tree", func(s *side) string { return s.tree("") }) {
					alike.Add(1)
				}
			})
		}
		before.Wait()
		real.kill()
		real.start()
		world.restart()
		close(restarted)
		after.Wait()
	}
	if int(alike.Load()) < sequences && !t.Failed() {
		t.Errorf("the machine is too busy: %d of %d sequences were played to their end, and stalls disturbed %d", alike.Load(), sequences, stalled.Load())
	}
	t.Logf("%d sequences, %d calls, %d watches fired, %d sessions ended by themselves, and as many restarts met; stalls disturbed %d more", alike.Load(), calls.Load(), fired.Load(), expired.Load(), stalled.Load())
}
