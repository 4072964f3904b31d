package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model"
)

const ms = time.Millisecond

// echo is a small server: it has one word and answers lines. "set WORD" keeps the word for one
// second and tells every connection that said "listen"; "get" answers the word; "wait" answers when
// the word is next set; "hi" is answered at once; "hush" has no answer; "bye" closes the
// connection, and "last" answers first; "all" closes the connections that listen. Other lines come
// back. After "batch" they come back with the next "run", or not at all if one of them was refused.
type echo struct {
	batches   map[ConnID]*batch
	word      string
	endsNs    int64 // of the word
	open      map[ConnID]bool
	listening []ConnID
	waiting   []ConnID
	pushes    []Push
	closed    []ConnID
	lag       Way // to a copy of the word
	copied    string
}

// batch has the lines since "batch".
type batch struct {
	lines   []string
	spoiled bool
}

const lease = int64(time.Second)

func (e *echo) Start(Setup) {
	e.open, e.batches = map[ConnID]bool{}, map[ConnID]*batch{}
	e.lag = Way{Line: "copy", Stream: "lag", Min: 5 * ms, Max: 5 * ms}
}

func (e *echo) Parts() Parts {
	return Parts{
		AtOnce: e.AtOnce, Open: e.Open, Close: e.Close, Pushed: e.Pushed, Next: e.Next, Tick: e.Tick, Strike: e.Strike, Describe: e.Describe,
		Refusal: e.Refusal, Refuses: e.Refuses, Refuse: e.Refuse, State: e.State, Leftovers: e.Leftovers,
	}
}

func (*echo) AtOnce(written []byte) (reply, rest []byte) {
	if rest, ok := bytes.CutPrefix(written, []byte("hi\n")); ok {
		return []byte("hello\n"), rest
	}
	return nil, written
}

func (*echo) Decode(text string) (Request, string, error) {
	line, rest, ok := strings.Cut(text, "\n")
	if !ok {
		return Request{}, text, ErrUnfinished
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return Request{}, rest, errors.New("an empty line")
	}
	return Request{Name: words[0], Words: words, Shown: words[1:], Marks: words[0] == "listen", Stays: words[0] == "listen",
		Gathers: words[0] == "batch", Blocks: words[0] == "wait"}, rest, nil
}

func (*echo) Refusal(text string) []byte { return []byte("no: " + text + "\n") }

func (*echo) Refuses(command string) bool { return command != "batch" }

func (e *echo) Refuse(c ConnID, _ *Request, text string) []byte {
	if b := e.batches[c]; b != nil {
		b.spoiled = true
	}
	return e.Refusal(text)
}

func (e *echo) Open(c ConnID) { e.open[c] = true }

func (e *echo) Close(_ int64, c ConnID, _ *Effects) {
	e.closed = append(e.closed, c)
	delete(e.open, c)
	is := func(o ConnID) bool { return o == c }
	e.waiting, e.listening = slices.DeleteFunc(e.waiting, is), slices.DeleteFunc(e.listening, is)
}

func says(text string) Reply { return Reply{Bytes: []byte(text + "\n"), Shown: text} }

func (e *echo) Handle(nowNs int64, c ConnID, r *Request, out *Effects) (Reply, bool) {
	b := e.batches[c]
	switch r.Name {
	case "batch":
		e.batches[c] = &batch{}
		return says("ok"), true
	case "run":
		delete(e.batches, c)
		if b.spoiled {
			return says("spoiled"), true
		}
		return says("ran " + strings.Join(b.lines, "+")), true
	}
	if b != nil {
		b.lines = append(b.lines, strings.Join(r.Words, " "))
		reply := says("later")
		reply.Gathered = true
		return reply, true
	}
	switch r.Name {
	case "set":
		e.word, e.endsNs, out.Changed = r.Words[1], nowNs+lease, true
		out.Write("word")
		out.Record(model.Event{Kind: model.KindPublish, Text: e.word})
		for _, l := range e.listening {
			e.pushes = append(e.pushes, Push{Conn: l, Channel: "words", Bytes: []byte("now " + e.word + "\n")})
		}
		for _, w := range e.waiting {
			out.Answer(w, says("set to "+e.word))
		}
		e.waiting = nil
		word := e.word
		out.Send(&e.lag, func(int64, *Effects) { e.copied = word })
		return says("ok"), true
	case "get":
		out.Read("word")
		return says(e.word), true
	case "listen":
		e.listening = append(e.listening, c)
		return says("ok"), true
	case "wait":
		e.waiting = append(e.waiting, c)
		return Reply{}, false
	case "hush":
		return Reply{None: true}, true
	case "bye":
		return Reply{None: true, Closes: true}, true
	case "all":
		for _, l := range e.listening {
			out.HangUp(l)
		}
		return says("ok"), true
	case "last":
		reply := says("last")
		reply.Closes = true
		return reply, true
	}
	return says(strings.Join(r.Words, " ")), true
}

func (e *echo) Pushed(list []Push) []Push {
	list = append(list, e.pushes...)
	e.pushes = nil
	return list
}

func (e *echo) Next() (int64, bool) { return e.endsNs, e.word != "" }

func (e *echo) Tick(nowNs int64, out *Effects) {
	if nowNs >= e.endsNs && e.word != "" {
		e.word = ""
		out.Record(model.Event{Kind: model.KindExpire, Key: "word"})
	}
}

func (e *echo) Describe(f model.FaultSpec) string { return f.String() + " of an echo" }

func (e *echo) Strike(_ int64, f model.FaultSpec, _ *Effects) {
	if f.LosesData() {
		e.word = ""
	}
}

func (e *echo) State(int64, string) *model.LockState {
	if e.word == "" {
		return nil
	}
	return &model.LockState{Owner: e.word, Count: 1, ExpiresMs: e.endsNs / int64(ms)}
}

func (e *echo) Leftovers(out *Effects) {
	if e.word != "" {
		out.Record(model.Event{Kind: model.KindLeft, Key: e.word})
	}
}

// oneWay is the time that a message takes in a test's network.
const oneWay = ms

// talker is a connection on which a thread writes lines.
type talker struct {
	net.Conn
	t *Thread
}

// talk writes lines and returns what comes back for them in one read, with the time
// at which it came.
func (c talker) talk(text string) string {
	if _, err := c.Write([]byte(text)); err != nil {
		return kindOf(err)
	}
	return c.hear()
}

func (c talker) hear() string {
	buf := make([]byte, 1000)
	n, err := c.Read(buf)
	if err != nil {
		return kindOf(err) + "@" + clock(c.t)
	}
	return strings.TrimSuffix(string(buf[:n]), "\n") + "@" + clock(c.t)
}

func kindOf(err error) string {
	switch {
	case strings.Contains(err.Error(), "reset"), strings.Contains(err.Error(), "broken pipe"):
		return "reset"
	case strings.Contains(err.Error(), "no route to host"):
		return "unreachable"
	}
	return err.Error()
}

// clock returns the time since the start, rounded to the precision of the tests.
func clock(t *Thread) string { return t.p.w.Now().Round(100 * time.Microsecond).String() }

// play runs a world with processes a and b of one thread each and these servers, at
// the addresses node:1, node:2 and so on.
func play(t *testing.T, cfg Config, servers []*echo, bodies map[string]func(*Thread)) Result {
	t.Helper()
	return playOn(NewHost(t), cfg, servers, bodies)
}

// playOn is play on a host.
func playOn(h *Host, cfg Config, servers []*echo, bodies map[string]func(*Thread)) Result {
	cfg.LatencyMin, cfg.LatencyMax = oneWay, oneWay
	if cfg.Chooser == nil {
		cfg.Chooser = NewSeeded(1)
	}
	cfg.Processes = []ProcessConfig{{Name: "a", Threads: 1}, {Name: "b", Threads: 1}}
	cfg.Name = func([]string, Author) Command { return Command{} }
	cfg.Quiet, cfg.Settle, cfg.Drain, cfg.MaxEvents = 30*time.Second, time.Second, time.Second, 10_000
	for i, s := range servers {
		cfg.Nodes = append(cfg.Nodes, Node{Addr: addr(i + 1), Server: s, Locks: []string{fmt.Sprint("word", i+1)}})
	}
	return Run(h, cfg, func(w *World) {
		for _, p := range w.processes {
			for _, th := range p.threads {
				if body := bodies[p.Name()]; body != nil {
					th.Start(func() { body(th) })
				}
			}
		}
	})
}

func addr(i int) string { return fmt.Sprintf("node:%d", i) }

// dial opens a connection to a node.
func dial(th *Thread, node int) (talker, error) {
	c, err := th.p.DialContext(context.Background(), "tcp", addr(node))
	return talker{c, th}, err
}

func mustDial(th *Thread, node int) talker {
	c, err := dial(th, node)
	if err != nil {
		panic(err)
	}
	return c
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// events writes the events of some kinds, each with its time.
func events(r Result, kinds ...model.Kind) string {
	var out []string
	for _, e := range r.Record.Events {
		if !slices.Contains(kinds, e.Kind) {
			continue
		}
		text := string(e.Kind)
		for _, part := range []string{e.Lock, e.Command, strings.Join(e.Args, " "), e.Reply, e.Key, e.Channel, string(e.Why), e.Text} {
			if part != "" {
				text += " " + part
			}
		}
		if e.State != nil {
			text += " " + e.State.Owner
		}
		out = append(out, fmt.Sprintf("%s@%v", strings.TrimSpace(text), time.Duration(e.AtNs).Round(100*time.Microsecond)))
	}
	return strings.Join(out, ", ")
}

func TestARequestGoesInAndAReplyComesOut(t *testing.T) {
	var got []string
	r := play(t, Config{}, []*echo{{}}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		got = append(got, c.talk("hi\n"), c.talk("hi\none\n"), c.hear(), c.talk("set x\n"), c.talk("get\n"))
	}})
	equal(t, "heard", strings.Join(got, ", "), "hello@0s, hello@0s, one@2ms, ok@4ms, x@6ms")
	equal(t, "executed", events(r, model.KindExec), "exec one one@1ms, exec set x ok@3ms, exec get x@5ms")
}

func TestARequestMayComeInPiecesAndGarbageIsADefect(t *testing.T) {
	var got string
	r := play(t, Config{}, []*echo{{}}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		_, _ = c.Write([]byte("\nha"))
		th.Sleep(10 * ms)
		got = c.talk("lf\n")
	}})
	equal(t, "heard", got, "half@12ms")
	equal(t, "recorded", events(r, model.KindSend, model.KindDefect), "defect an empty line@0s, send half@10ms")
}

func TestARequestMayHaveNoAnswer(t *testing.T) {
	var got string
	r := play(t, Config{}, []*echo{{}}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		_, _ = c.Write([]byte("hush\n"))
		th.Sleep(10 * ms)
		got = c.talk("one\n")
	}})
	equal(t, "heard", got, "one@12ms")
	equal(t, "answered", events(r, model.KindExec, model.KindDeliver), "exec hush@1ms, exec one one@11ms, deliver@12ms")
}

// Messages sent before the server closed the connection arrive. Messages sent to it later are lost.
func TestAServerMayCloseAConnection(t *testing.T) {
	for request, want := range map[string]string{"bye": "EOF@2ms", "last": "last@2ms, EOF@2ms"} {
		var got []string
		server, closed := &echo{}, 0
		r := play(t, Config{}, []*echo{server}, map[string]func(*Thread){"a": func(th *Thread) {
			c := mustDial(th, 1)
			defer c.Close()
			_, _ = c.Write([]byte(request + "\n"))
			th.Sleep(ms + ms/2)
			_, _ = c.Write([]byte("late\n")) // the end is on its way
			for len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "EOF") {
				got = append(got, c.hear())
			}
			th.Do(func() { closed = len(server.closed) })
			if _, err := c.Write([]byte("later\n")); err == nil {
				t.Error("a write to a closed connection succeeds")
			}
		}})
		equal(t, "heard", strings.Join(got, ", "), want)
		equal(t, "lost", events(r, model.KindLost), "lost connection reset@2.5ms")
		equal(t, "connections that the server knows to be closed", closed, 1)
	}
}

func TestAServerMayCloseConnectionsOfOthers(t *testing.T) {
	var got []string
	server := &echo{}
	play(t, Config{}, []*echo{server}, map[string]func(*Thread){
		"a": func(th *Thread) {
			c := mustDial(th, 1)
			defer c.Close()
			got = append(got, c.talk("listen\n"), c.hear())
		},
		"b": func(th *Thread) {
			th.At(10 * ms)
			c := mustDial(th, 1)
			defer c.Close()
			c.talk("all\n")
		},
	})
	equal(t, "heard", strings.Join(got, ", "), "ok@2ms, EOF@12ms")
}

func TestALeaseEndsAtItsTick(t *testing.T) {
	r := play(t, Config{}, []*echo{{}}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		c.talk("set x\n")
		th.At(500 * ms)
		c.talk("set x\n") // again, so that the first tick is not the end
		th.At(3 * time.Second)
	}})
	equal(t, "recorded", events(r, model.KindExpire, model.KindState),
		"state word1 x@1ms, state word1 x@501ms, expire word@1.501s, state word1@1.501s")
}

func TestAReplyMayComeLater(t *testing.T) {
	var got []string
	r := play(t, Config{}, []*echo{{}}, map[string]func(*Thread){
		"a": func(th *Thread) {
			c := mustDial(th, 1)
			defer c.Close()
			_, _ = c.Write([]byte("wait\n"))
			th.Sleep(10 * ms)
			got = append(got, c.talk("behind\n"), c.hear())
		},
		"b": func(th *Thread) {
			c := mustDial(th, 1)
			defer c.Close()
			th.At(100 * ms)
			c.talk("set x\n")
		},
	})
	equal(t, "heard", strings.Join(got, ", "), "set to x@102ms, behind@102ms")
	equal(t, "executed", events(r, model.KindExec), "exec wait set to x@101ms, exec set x ok@101ms, exec behind behind@101ms")
}

func TestAConnectionThatEndsWhileItWaitsLosesItsRequests(t *testing.T) {
	server := &echo{}
	r := play(t, Config{}, []*echo{server}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		_, _ = c.Write([]byte("wait\n"))
		th.Sleep(10 * ms)
		_, _ = c.Write([]byte("behind\n"))
		th.Sleep(10 * ms)
		_ = c.Close()
		th.Sleep(10 * ms)
	}})
	equal(t, "lost", events(r, model.KindLost), "lost connection closed@21ms, lost connection closed@21ms")
	equal(t, "who waits", len(server.waiting), 0)
}

func TestAPushReachesItsConnection(t *testing.T) {
	var got []string
	drop := model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Channel: "wo*", Nth: 2}}
	r := play(t, Config{Faults: []model.FaultSpec{drop}}, []*echo{{}}, map[string]func(*Thread){
		"a": func(th *Thread) {
			c := mustDial(th, 1)
			defer c.Close()
			got = append(got, c.talk("listen\n"), c.hear(), c.hear())
		},
		"b": func(th *Thread) {
			c := mustDial(th, 1)
			defer c.Close()
			for i := range 3 {
				th.At(time.Duration(i+1) * 100 * ms)
				c.talk(fmt.Sprintf("set %d\n", i))
			}
		},
	})
	equal(t, "heard", strings.Join(got, ", "), "ok@2ms, now 0@102ms, now 2@302ms")
	equal(t, "lost", events(r, model.KindLost), "lost words dropped@201ms")
}

func TestAMessageWithinAServerTakesItsWay(t *testing.T) {
	server := &echo{}
	var copies []string
	play(t, Config{}, []*echo{server}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		c.talk("set x\n")
		th.Do(func() { copies = append(copies, server.copied) })
		th.Sleep(10 * ms)
		th.Do(func() { copies = append(copies, server.copied) })
	}})
	equal(t, "the copy at 2 ms and 12 ms", strings.Join(copies, ","), ",x")
}

// noting is a watcher that chooses the first candidate and records its calls.
type noting struct {
	lines []string
	took  []Effect
}

func (*noting) Choose(string, uint64) uint64 { return 0 }

func (n *noting) Offer(_ int, among []Candidate) bool {
	n.lines = append(n.lines, among[0].Line)
	return true
}

func (n *noting) Took(e Effect) { n.took = append(n.took, e) }

func TestWhatAServerTouchesIsToldToTheWatcher(t *testing.T) {
	watcher := &noting{}
	play(t, Config{Chooser: watcher, Orders: &Orders{}}, []*echo{{}, {}}, map[string]func(*Thread){"a": func(th *Thread) {
		for node := range 2 {
			c := mustDial(th, node+1)
			defer c.Close()
			c.talk("set x\n")
		}
	}})
	for node, want := range []string{"node:1 word", "node:2 word"} {
		if !slices.ContainsFunc(watcher.took, func(e Effect) bool { return e.Writes[want] && e.Reads[addr(node+1)+" "+ObjectServer] }) {
			t.Errorf("no choice wrote %s: %v", want, watcher.took)
		}
	}
	if !slices.Contains(watcher.lines, "node:1 copy") {
		t.Errorf("the way to the copy is no line: %v", watcher.lines)
	}
}

// A fault that names no node strikes all; any other strikes the nodes that it names.
func TestAFaultStrikesTheNodesThatItNames(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		name  string
		fault model.FaultSpec
		want  [2]string // the answers of node 1 and node 2
	}{
		{"a partition from all", model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"a"}, For: second}, [2]string{"unreachable", "unreachable"}},
		{"a partition from one", model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"a"}, For: second, Nodes: []string{"node:2"}}, [2]string{"x", "unreachable"}},
		{"a restart of all", model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart}, [2]string{"reset", "reset"}},
		{"a restart of one", model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart, Nodes: []string{"node:1"}}, [2]string{"reset", "x"}},
		{"a stall of one", model.FaultSpec{Kind: model.FaultServer, Server: model.ServerStall, For: 600 * ms, Nodes: []string{"node:2"}}, [2]string{"x", "x late"}},
		{"a rule on one", model.FaultSpec{Kind: model.FaultRule, Do: "error", With: "busy", When: model.When{Command: "get"}, Nodes: []string{"node:2"}}, [2]string{"x", "no: busy"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fault.At = 100 * ms
			var got [2]string
			play(t, Config{Faults: []model.FaultSpec{c.fault}}, []*echo{{}, {}}, map[string]func(*Thread){"a": func(th *Thread) {
				conns := []talker{mustDial(th, 1), mustDial(th, 2)}
				for _, conn := range conns {
					conn.talk("set x\n")
				}
				for i, conn := range conns {
					th.At(time.Duration(i+2) * 100 * ms)
					if _, err := dial(th, i+1); err != nil {
						got[i] = kindOf(err)
						continue
					}
					answer, when, _ := strings.Cut(conn.talk("get\n"), "@")
					if took, err := time.ParseDuration(when); err == nil && took > 350*ms {
						answer += " late"
					}
					got[i] = answer
				}
			}})
			equal(t, "node 1", got[0], c.want[0])
			equal(t, "node 2", got[1], c.want[1])
		})
	}
}

func TestADialOfAnAddressWithoutANodeIsRefused(t *testing.T) {
	var err error
	play(t, Config{}, []*echo{{}}, map[string]func(*Thread){"a": func(th *Thread) { _, err = dial(th, 2) }})
	if err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("err = %v", err)
	}
}

func TestAServerSaysWhatAFaultWillDo(t *testing.T) {
	restart := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart, At: 10 * ms}
	one := play(t, Config{Faults: []model.FaultSpec{restart}}, []*echo{{}}, nil)
	equal(t, "one node", events(one, model.KindFault), "fault server restart without its data of an echo@10ms")
	two := play(t, Config{Faults: []model.FaultSpec{restart}}, []*echo{{}, {}}, nil)
	equal(t, "two nodes", events(two, model.KindFault), "fault server restart without its data@10ms")
}
