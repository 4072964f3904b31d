package sim

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/model"
)

// stream is a small real server: a goroutine per connection reads lines. "set WORD" keeps the word
// for one second and sends it to every connection that said "listen"; "get" answers the word; "bye"
// closes the connection; other lines come back. If it has a greeting, it greets each client that
// connects. It needs some time to start.
type stream struct {
	greeting string
	boot     time.Duration
	fails    error

	setup     Setup
	life      *streamLife
	listening []net.Conn
	ended     int // the number of connections that it knows to have ended
}

// streamLife is the server from one start to its end.
type streamLife struct{ word atomic.Value }

func (l *streamLife) now() string { return l.word.Load().(string) }

func (s *stream) Boot(setup Setup) error {
	s.setup = setup
	time.Sleep(s.boot)
	s.begin("")
	return s.fails
}

func (s *stream) begin(word string) {
	life, l := &streamLife{}, s.setup.Listen()
	life.word.Store(word)
	s.life = life
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(life, c)
		}
	}()
}

func (s *stream) serve(life *streamLife, c net.Conn) {
	defer func() { _ = c.Close() }()
	_, _ = c.Write([]byte(s.greeting))
	for in := bufio.NewScanner(c); in.Scan(); {
		switch name, word, _ := strings.Cut(in.Text(), " "); name {
		case "set":
			life.word.Store(word)
			_, _ = c.Write([]byte("o"))
			_, _ = c.Write([]byte("k\n"))
			for _, l := range s.listening {
				_, _ = l.Write([]byte("now " + word + "\n"))
			}
			time.AfterFunc(time.Second, func() {
				life.word.Store("")
				s.setup.Changed()
			})
		case "get":
			_, _ = c.Write([]byte(life.now() + "\n"))
		case "listen":
			s.listening = append(s.listening, c)
			_, _ = c.Write([]byte("ok\n"))
		case "bye":
			return
		default:
			_, _ = c.Write([]byte(in.Text() + "\n"))
		}
	}
	s.ended++
}

func (s *stream) Parts() Parts {
	return Parts{Stop: s.Stop, Strike: s.Strike, Describe: s.Describe, Lacks: s.Lacks, State: s.State, Leftovers: s.Leftovers}
}

func (s *stream) Stop() { s.setup.Listen() }

func (s *stream) Describe(f model.FaultSpec) string { return f.String() + " of a stream" }

func (s *stream) Strike(_ int64, f model.FaultSpec, _ *Effects) {
	s.listening = nil
	if f.KeepData {
		s.begin(s.life.now())
	} else {
		s.begin("")
	}
}

func (*stream) Lacks(f model.FaultSpec) string {
	if f.Server == model.ServerRestart {
		return ""
	}
	return "has a restart only"
}

func (s *stream) State(int64, string) *model.LockState {
	if s.life.now() == "" {
		return nil
	}
	return &model.LockState{Owner: s.life.now(), Count: 1}
}

func (s *stream) Leftovers(out *Effects) {
	if s.life.now() != "" {
		out.Record(model.Event{Kind: model.KindLeft, Key: s.life.now()})
	}
}

// playStream runs a world with processes a and b of one thread each and this server.
func playStream(t *testing.T, cfg Config, server StreamServer, bodies map[string]func(*Thread)) Result {
	t.Helper()
	cfg.LatencyMin, cfg.LatencyMax = oneWay, oneWay
	cfg.Chooser = NewSeeded(1)
	cfg.Processes = []ProcessConfig{{Name: "a", Threads: 1}, {Name: "b", Threads: 1}}
	if cfg.Name == nil {
		cfg.Name = func([]string, Author) Command { return Command{} }
	}
	cfg.Quiet, cfg.Settle, cfg.Drain, cfg.MaxEvents = 30*time.Second, time.Second, time.Second, 10_000
	cfg.Nodes = []Node{{Addr: addr(1), Server: Segments(server), Locks: []string{"word"}}}
	return Run(NewHost(t), cfg, func(w *World) {
		for _, p := range w.processes {
			for _, th := range p.threads {
				if body := bodies[p.Name()]; body != nil {
					th.Start(func() { body(th) })
				}
			}
		}
	})
}

// asking returns the body of a thread that connects, sends each of these lines 100 ms after the one
// before, and keeps the answers, with the time.
func asking(heard *[]string, lines ...string) func(*Thread) {
	return func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		for i, line := range lines {
			th.At(time.Duration(i) * 100 * ms)
			if line != "" {
				*heard = append(*heard, c.talk(line+"\n"))
			} else {
				*heard = append(*heard, c.hear())
			}
		}
	}
}

func joined(list []string) string { return strings.Join(list, ", ") }

// The server writes its answer in two pieces, which arrive as one segment.
func TestASegmentIsWhatOneSideWroteAtOneInstant(t *testing.T) {
	var heard []string
	r := playStream(t, Config{}, &stream{boot: 1500 * ms}, map[string]func(*Thread){"a": asking(&heard, "one", "set x", "get")})
	equal(t, "heard", joined(heard), "one@2ms, ok@102ms, x@202ms")
	equal(t, "recorded", events(r, model.KindSend, model.KindExec, model.KindState),
		"send SEGMENT 4 bytes@0s, exec SEGMENT 4 bytes@1ms, send SEGMENT 6 bytes@100ms, exec SEGMENT 6 bytes@101ms, state word x@101ms, "+
			"send SEGMENT 4 bytes@200ms, exec SEGMENT 4 bytes@201ms, state word@1.101s")
	for _, e := range r.Record.Events {
		if e.Kind == model.KindDeliver && e.Dir != "reply" {
			t.Errorf("an answer at the same instant is a %s", e.Dir)
		}
		if e.Kind == model.KindState && (e.Msg == 0) != (e.State.Owner == "") {
			t.Errorf("the state %v is of message %d", e.State, e.Msg)
		}
	}
}

func TestAStreamServerMaySpeakFirst(t *testing.T) {
	var heard []string
	r := playStream(t, Config{}, &stream{greeting: "welcome\n"}, map[string]func(*Thread){"a": asking(&heard, "", "one")})
	equal(t, "heard", joined(heard), "welcome@1ms, one@102ms")
	var dirs []string
	for _, e := range r.Record.Events {
		if e.Kind == model.KindDeliver {
			dirs = append(dirs, e.Dir)
		}
	}
	equal(t, "directions", joined(dirs), "push, reply")
}

func TestAStreamServerMayCloseAConnection(t *testing.T) {
	var heard []string
	playStream(t, Config{}, &stream{}, map[string]func(*Thread){"a": asking(&heard, "bye")})
	equal(t, "heard", joined(heard), "EOF@2ms")
}

func TestAStreamServerThatDoesNotStartIsADefect(t *testing.T) {
	r := playStream(t, Config{}, &stream{fails: errors.New("no room")}, nil)
	equal(t, "recorded", events(r, model.KindDefect), "defect the server at node:1 did not start: no room@0s")
}

// A segment that is written in a turn belongs to the author that has the turn. A segment for which
// nobody asked belongs to nobody, whichever goroutine wrote it.
func TestASegmentBelongsToWhoeverHasTheTurn(t *testing.T) {
	var by []string
	name := func(_ []string, by2 Author) Command {
		by = append(by, by2.Thread)
		return Command{}
	}
	playStream(t, Config{Lineage: true, Name: name}, &stream{}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		send := make(chan string)
		go func() { // writes for others
			for line := range send {
				_, _ = c.Write([]byte(line))
			}
		}()
		th.p.Asks(nil)
		send <- "one\n"
		c.hear()
		send <- "two\n"
		c.hear()
		close(send)
	}})
	equal(t, "authors", joined(by), "a/1, ")
}

// Two threads that write on one connection at one instant write two segments.
func TestTurnsMakeSegmentsOfTheirOwn(t *testing.T) {
	var heard []string
	r := playStream(t, Config{Lineage: true}, &stream{}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		for _, line := range []string{"one\n", "two\n"} {
			go func() {
				th.p.Asks([]string{line})
				_, _ = c.Write([]byte(line))
			}()
		}
		heard = append(heard, c.hear(), c.hear())
	}})
	equal(t, "heard", joined(heard), "one@2ms, two@2ms")
	equal(t, "sent", events(r, model.KindSend), "send SEGMENT 4 bytes@0s, send SEGMENT 4 bytes@0s")
	var asked []string
	for _, e := range r.Record.Events {
		if e.Kind == model.KindSend || e.Kind == model.KindExec {
			asked = append(asked, fmt.Sprintf("%s %q", e.Kind, e.Asked))
		}
	}
	equal(t, "asked", joined(asked), `send ["one\n"], send ["two\n"], exec ["one\n"], exec ["two\n"]`)
}

// saying is a stream server that reads for people which segment of its connection each is.
type saying struct{ stream }

func (s *saying) Parts() Parts {
	p := s.stream.Parts()
	p.Says = func() func(string) string {
		n := 0
		return func(segment string) string {
			n++
			return fmt.Sprintf("%d:%s", n, strings.TrimSpace(segment))
		}
	}
	return p
}

// Each connection has a reader of its own, which gets its segments in order. A record knows nothing of what it says.
func TestAReaderReadsTheSegmentsOfOneConnection(t *testing.T) {
	client := map[string]func(*Thread){"a": func(th *Thread) {
		one, other := mustDial(th, 1), mustDial(th, 1)
		defer one.Close()
		defer other.Close()
		for _, line := range []string{"x", "y"} {
			_, _ = one.Write([]byte(line + "\n"))
			one.hear()
			_, _ = other.Write([]byte(line + "!\n"))
			other.hear()
		}
	}}
	r, plain := playStream(t, Config{}, &saying{}, client), playStream(t, Config{}, &stream{}, client)
	var says []string
	for _, e := range r.Record.Events {
		if e.Kind == model.KindSend || e.Kind == model.KindExec {
			says = append(says, string(e.Kind)+" "+e.Says)
		}
	}
	equal(t, "said", joined(says), "send 1:x, exec 1:x, send 1:x!, exec 1:x!, send 2:y, exec 2:y, send 2:y!, exec 2:y!")
	equal(t, "digest", r.Record.Digest(), plain.Record.Digest())
}

// Of two goroutines of a thread that ask for the same words, the one whose call is over continues first,
// whichever asked first.
func TestTurnsOfAThreadGoByItsCalls(t *testing.T) {
	for _, ops := range [][]int{{2, 0}, {0, 2}} {
		r := playStream(t, Config{Lineage: true}, &stream{}, map[string]func(*Thread){"a": func(th *Thread) {
			c := mustDial(th, 1)
			defer c.Close()
			for _, op := range ops {
				go func() {
					by := Author{Thread: "a/1", Op: op}
					th.p.ask(by, by, "", nil)
					_, _ = c.Write([]byte(strings.Repeat("x", op) + "\n"))
				}()
			}
			c.hear()
			c.hear()
		}})
		equal(t, fmt.Sprint("sent, as asked by ", ops), events(r, model.KindSend), "send SEGMENT 1 bytes@0s, send SEGMENT 3 bytes@0s")
	}
}

// Goroutines that ask for the same words in the same call continue by what they send, whichever asked first.
func TestTurnsOfACallGoByTheContent(t *testing.T) {
	for _, sends := range [][]string{{"a long line", "b"}, {"b", "a long line"}} {
		r := playStream(t, Config{Lineage: true}, &stream{}, map[string]func(*Thread){"a": func(th *Thread) {
			c := mustDial(th, 1)
			defer c.Close()
			for _, content := range sends {
				go func() {
					th.p.AsksToSend(content, []string{"line"})
					_, _ = c.Write([]byte(content + "\n"))
				}()
				go func() {
					th.p.TurnToSend(content + " without an author")
					_, _ = c.Write([]byte(content + " without an author\n"))
				}()
			}
			for range 4 {
				c.hear()
			}
		}})
		equal(t, fmt.Sprint("sent, as asked by ", sends), events(r, model.KindSend),
			"send SEGMENT 30 bytes@0s, send SEGMENT 20 bytes@0s, send SEGMENT 12 bytes@0s, send SEGMENT 2 bytes@0s")
	}
}

// Goroutines that yield continue after everything else at that instant, by their ranks. What they write
// still belongs to the goroutine that writes it.
func TestYieldLetsOthersGoFirst(t *testing.T) {
	var by, order []string
	name := func(_ []string, author Author) Command {
		by = append(by, author.Thread)
		return Command{}
	}
	r := playStream(t, Config{Lineage: true, Name: name}, &stream{}, map[string]func(*Thread){"a": func(th *Thread) {
		c := mustDial(th, 1)
		defer c.Close()
		went := make(chan string)
		for _, rank := range []int{2, 1} {
			go func() {
				th.p.Yield(rank)
				went <- fmt.Sprint(rank)
			}()
		}
		go func() {
			for range 100 {
				runtime.Gosched()
			}
			went <- "other"
		}()
		for range 3 {
			order = append(order, <-went)
		}
		_, _ = c.Write([]byte("one\n"))
		c.hear()
	}})
	equal(t, "order", joined(order), "other, 1, 2")
	equal(t, "sent", events(r, model.KindSend), "send SEGMENT 4 bytes@0s")
	equal(t, "authors", joined(by), "a/1")
}

// A server says which faults it lacks. They include the rules that need a protocol.
func TestWhatAStreamServerLacks(t *testing.T) {
	for _, c := range []struct {
		fault model.FaultSpec
		want  string
	}{
		{model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart}, ""},
		{model.FaultSpec{Kind: model.FaultServer, Server: model.ServerFailover}, "has a restart only"},
		{model.FaultSpec{Kind: model.FaultServer, Server: model.ServerStall}, "has timers of its own"},
		{model.FaultSpec{Kind: model.FaultServer, Server: model.ServerWallClock}, "has no wall clock"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "error"}, "nobody else can answer; on its messages it has"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Command: "x"}}, "commands have no names"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Channel: "x"}}, "channels have no names"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "half_open"}, ""},
		{model.FaultSpec{Kind: model.FaultRule, Do: "hold", Awaits: &model.Condition{Published: "x"}}, "channels have no names; a rule can wait for granted"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "hold", Awaits: &model.Condition{Executed: &model.When{Channel: "x"}}}, "channels have no names; a rule can wait for granted"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "hold", Awaits: &model.Condition{Executed: &model.When{Command: "x"}}}, "commands have no names; a rule can wait for executed"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "hold", Awaits: &model.Condition{Granted: "a", Ended: "x", Executed: &model.When{Process: "a", Script: "renew"}}}, ""},
	} {
		got := Lacks(Segments(&stream{}), c.fault)
		if !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%v: %q, want %q", c.fault, got, c.want)
		}
	}
	if got := Lacks(&echo{}, model.FaultSpec{Kind: model.FaultRule, Do: "half_open"}); !strings.Contains(got, "takes messages one by one") {
		t.Errorf("half_open of a server by commands: %q", got)
	}
}

// bare is a server with no part.
type bare struct{ Server }

func (bare) Parts() Parts { return Parts{} }

// A server has the faults for which it has a part, and those that the world alone makes.
func TestAServerLacksTheFaultsWithoutAPart(t *testing.T) {
	for _, c := range []struct {
		fault model.FaultSpec
		want  string
	}{
		{model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart}, "has no faults of its own"},
		{model.FaultSpec{Kind: model.FaultServer, Server: model.ServerWallClock}, "has no wall clock"},
		{model.FaultSpec{Kind: model.FaultServer, Server: model.ServerIsolate}, "has no other servers to be isolated from"},
		{model.FaultSpec{Kind: model.FaultKey}, "has no faults of its own"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "error"}, "has no error with which a rule could answer in its place; it has delay, hold, drop and reset"},
		{model.FaultSpec{Kind: model.FaultRule, Do: "drop"}, ""},
	} {
		equal(t, c.fault.String(), Lacks(bare{}, c.fault), c.want)
	}
	equal(t, "a restart of an echo", Lacks(&echo{}, model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart}), "")
	equal(t, "an error of an echo", Lacks(&echo{}, model.FaultSpec{Kind: model.FaultRule, Do: "error"}), "")
	for _, c := range []struct{ do, command, want string }{
		{"error", "batch", "never refuses batch"}, {"error", "run", ""}, {"drop", "batch", ""},
	} {
		rule := model.FaultSpec{Kind: model.FaultRule, Do: c.do, When: model.When{Command: c.command}}
		equal(t, "a rule on "+c.command+" of an echo: "+c.do, Lacks(&echo{}, rule), c.want)
	}
}

// A request of one client reaches another that listens.
func TestASegmentToAnotherConnectionIsAPush(t *testing.T) {
	var a, b []string
	playStream(t, Config{}, &stream{}, map[string]func(*Thread){
		"a": asking(&a, "listen", ""),
		"b": asking(&b, "one", "set x"),
	})
	equal(t, "a heard", joined(a), "ok@2ms, now x@102ms")
}

// Each verdict on a segment. The client sends three lines, 100 ms apart.
func TestVerdictsOnSegments(t *testing.T) {
	until := 350 * ms
	second := func(direction, do string) model.FaultSpec {
		return model.FaultSpec{Kind: model.FaultRule, Do: do, When: model.When{Process: "a", Direction: direction, Nth: 2}, Until: &until}
	}
	delay := second("reply", "delay")
	delay.For = 30 * ms
	for _, c := range []struct {
		name        string
		fault       model.FaultSpec
		heard, lost string
		word        string // what the server holds at the end of the second line
	}{
		{"delay of a reply", delay, "1@2ms, ok@132ms, x@202ms", "", "x"},
		{"hold of a reply until the end of the rule", second("reply", "hold"), "1@2ms, ok@351ms, x@351ms", "", "x"},
		{"hold of a request: those behind it wait, too", second("request", "hold"), "1@2ms, ok@352ms, x@352ms", "", ""},
		{"reset instead of delivery", second("request", "reset"), "1@2ms, reset@100ms", "lost connection reset@100ms", ""},
		{"reset after delivery: the reply is lost", second("reply", "reset"), "1@2ms, reset@101ms", "lost connection reset@101ms", "x"},
		{"drop of a reply is the same", second("reply", "drop"), "1@2ms, reset@101ms", "lost dropped@101ms", "x"},
		{"half-open towards the client, then reset", second("reply", "half_open"), "1@2ms, reset@350ms",
			"lost connection reset@350ms, lost behind a lost one@350ms", "x"},
		{"half-open towards the server, then reset", second("request", "half_open"), "1@2ms, reset@350ms",
			"lost connection reset@350ms, lost behind a lost one@350ms", ""},
		{"a partition loses a segment, and the connection is reset when it is over",
			model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"a"}, At: 50 * ms, For: 300 * ms}, "1@2ms, reset@350ms", "lost partition@100ms, lost partition@200ms", ""},
		{"a partition in which nobody speaks leaves the connection",
			model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"a"}, At: 50 * ms, For: 40 * ms}, "1@2ms, ok@102ms, x@202ms", "", "x"},
		{"a restart of the server",
			model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart, At: 50 * ms}, "1@2ms, reset@50ms", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := &stream{}
			var heard []string
			word := ""
			r := playStream(t, Config{Faults: []model.FaultSpec{c.fault}}, server, map[string]func(*Thread){
				"a": func(th *Thread) {
					c := mustDial(th, 1)
					go func() {
						for said := ""; !strings.HasPrefix(said, "use of closed") && !strings.HasPrefix(said, "reset"); {
							said = c.hear()
							heard = append(heard, said)
						}
					}()
					for i, line := range []string{"1", "set x", "get"} {
						th.At(time.Duration(i) * 100 * ms)
						_, _ = c.Write([]byte(line + "\n"))
					}
					th.At(time.Second)
					_ = c.Close()
				},
				"b": func(th *Thread) {
					th.At(150 * ms)
					th.Do(func() { word = server.life.now() })
				},
			})
			equal(t, "heard", joined(slices.DeleteFunc(heard, func(h string) bool { return strings.HasPrefix(h, "use of closed") })), c.heard)
			equal(t, "lost", events(r, model.KindLost), c.lost)
			equal(t, "held by the server", word, c.word)
			equal(t, "connections of which the server knows that they ended", server.ended, 1)
		})
	}
}

// clockedStream is a stream with a wall clock. It notes each step, with the time.
type clockedStream struct {
	stream
	steps []string
}

func (s *clockedStream) Parts() Parts {
	p := s.stream.Parts()
	p.StepClock, p.Lacks = s.StepClock, s.Lacks
	return p
}

func (s *clockedStream) StepClock(nowNs int64, by time.Duration, _ *Effects) {
	s.steps = append(s.steps, by.String()+"@"+time.Duration(nowNs).Truncate(ms).String())
}

func (s *clockedStream) Lacks(f model.FaultSpec) string {
	if f.StepsServerClock() && f.Step < 0 {
		return "has a clock that goes forward only"
	}
	return ""
}

// A fault steps the clock of a stream server that has one, and the server may still refuse
// a step.
func TestAStreamServerMayHaveAWallClock(t *testing.T) {
	step := func(by time.Duration) model.FaultSpec {
		return model.FaultSpec{Kind: model.FaultServer, Server: model.ServerWallClock, At: 50 * ms, Step: by}
	}
	server := &clockedStream{}
	equal(t, "lacks a step forward", Lacks(Segments(server), step(time.Hour)), "")
	equal(t, "lacks a step back", Lacks(Segments(server), step(-time.Hour)), "has a clock that goes forward only")
	var heard []string
	playStream(t, Config{Faults: []model.FaultSpec{step(time.Hour)}}, server, map[string]func(*Thread){"a": asking(&heard, "set x", "get")})
	equal(t, "steps", joined(server.steps), "1h0m0s@50ms")
	equal(t, "heard", joined(heard), "ok@2ms, x@102ms")
}

// A server and the processes of its world share no instant. A server asks for one when it
// starts, before the world has begun.
func TestAStreamServerHasInstantsOfItsOwn(t *testing.T) {
	server := &waker{}
	var own, theirs time.Duration
	woken := func(th *Thread, i Instant) time.Duration {
		i.Wait()
		return time.Duration(th.p.w.Now() % slotNs)
	}
	playStream(t, Config{}, server, map[string]func(*Thread){"a": func(th *Thread) {
		own = woken(th, th.p.Instant())
		theirs = woken(th, server.atBoot)
		equal(t, "an instant waited for again", woken(th, server.atBoot), theirs)
		later := woken(th, server.setup.Instant())
		if own == theirs || own == later || later == theirs {
			t.Errorf("the instants %v of the process, %v and %v of the server are not three", own, theirs, later)
		}
	}})
	if own == 0 || theirs == 0 {
		t.Errorf("the process wakes at %v and the server at %v of a slot", own, theirs)
	}
}

// waker is a stream that asks for an instant when it starts.
type waker struct {
	stream
	atBoot Instant
}

func (s *waker) Boot(setup Setup) error {
	s.atBoot = setup.Instant()
	return s.stream.Boot(setup)
}

// Code of a server may run outside of a world, where the zero Instant does not wait.
func TestTheZeroInstantIsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		Instant{}.Wait()
		equal(t, "waited", time.Since(began), 0)
	})
}

// partial is a stream that notes the words that begin with an x.
type partial struct {
	*stream
	met []string
}

func (p *partial) Parts() Parts {
	parts := p.stream.Parts()
	parts.Unsimulated = p.Unsimulated
	return parts
}

func (p *partial) Unsimulated() []string {
	met := p.met
	p.met = nil
	if word := p.life.now(); strings.HasPrefix(word, "x") {
		met = append(met, word)
	}
	return met
}

// What a stream server met and does not simulate is in the record once, at the instant of the request.
func TestAStreamServerTellsWhatItDoesNotSimulate(t *testing.T) {
	var heard []string
	r := playStream(t, Config{}, &partial{stream: &stream{boot: 1500 * ms}}, map[string]func(*Thread){"a": asking(&heard, "set y", "set x", "get", "set xx")})
	equal(t, "met", joined(r.Record.Unsimulated()), "x, xx")
	equal(t, "recorded", events(r, model.KindUnsimulated), "unsimulated x@101ms, unsimulated xx@301ms")
}
