package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
)

// dialled opens a bare connection for a thread of process a.
func dialled(t *testing.T, s *stage, b func(th *sim.Thread, c net.Conn)) sim.Result {
	t.Helper()
	return s.does("a/1", func(th *sim.Thread, _ *redis.Client) {
		c, err := dial(th)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		b(th, c)
	}).run(sim.NewHost(t))
}

// read returns the bytes of one Read, with the time.
func read(th *sim.Thread, c net.Conn) string {
	buf := make([]byte, 1000)
	n, err := c.Read(buf)
	text := fmt.Sprintf("%q", buf[:n])
	if err != nil {
		text = kindOf(err)
	}
	return fmt.Sprintf("%s@%v", text, clock(th))
}

const ping = "*1\r\n$4\r\nPING\r\n"

func TestHelloIsAnsweredAtOnceUnlessItAsksForRESP3(t *testing.T) {
	const refusal = `"-ERR unknown command 'hello'\r\n"@0s`
	for _, c := range []struct{ name, wrote, want string }{
		{"alone", "*2\r\n$5\r\nhello\r\n$1\r\n2\r\n", refusal},
		{"in capitals", "*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n", refusal},
		{"before another command", "*2\r\n$5\r\nhello\r\n$1\r\n2\r\n" + ping, refusal + ` "+PONG\r\n"@2ms`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			r := dialled(t, newStage(), func(th *sim.Thread, conn net.Conn) {
				_, _ = conn.Write([]byte(c.wrote))
				for range strings.Count(c.want, "@") {
					got = append(got, read(th, conn))
				}
			})
			equal(t, "read", strings.Join(got, " "), c.want)
			for _, e := range pick(r, ofKind(model.KindSend)) {
				equal(t, "sent", e.Command, "PING")
			}
		})
	}
}

func TestAClientOfAnyProtocolWorksFromItsFirstCommand(t *testing.T) {
	for protocol, want := range map[int]string{2: "ok@2ms", 3: "ok@4ms"} { // HELLO 3 is a command like any other
		var got string
		s := newStage().does("a/1", func(th *sim.Thread, c *redis.Client) {
			got = timed(th, func(ctx context.Context) error { return c.Ping(ctx).Err() })
		})
		s.client = func(o *redis.Options) { o.Protocol = protocol }
		s.run(sim.NewHost(t))
		equal(t, fmt.Sprint("protocol ", protocol), got, want)
	}
}

func TestACommandMayBeWrittenInPieces(t *testing.T) {
	var got string
	r := dialled(t, newStage(), func(th *sim.Thread, c net.Conn) {
		for i, piece := range []string{ping[:3], ping[3:9], ping[9:]} {
			th.At(time.Duration(i) * time.Second)
			_, _ = c.Write([]byte(piece))
		}
		got = read(th, c)
	})
	equal(t, "read", got, `"+PONG\r\n"@2.002s`)
	equal(t, "commands", len(pick(r, ofKind(model.KindExec))), 1)
}

func TestMessagesOfAConnectionKeepTheirOrder(t *testing.T) {
	h := sim.NewHost(t)
	for seed := range uint64(5) {
		s := newStage(model.FaultSpec{Kind: model.FaultRule, Do: "delay", For: 40 * time.Millisecond, When: model.When{Direction: "request", Nth: 4}})
		s.Chooser, s.LatencyMin, s.LatencyMax = sim.NewSeeded(seed), 0, 50*time.Millisecond
		var want, executed, delivered []int
		for i := range 20 {
			want = append(want, i+1)
		}
		s.does("a/1", func(th *sim.Thread, c *redis.Client) {
			_, err := c.Pipelined(context.Background(), func(p redis.Pipeliner) error {
				for range 20 {
					p.Incr(context.Background(), "n")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		for _, e := range s.run(h).Record.Events {
			switch e.Kind {
			case model.KindExec:
				executed = append(executed, e.Msg)
			case model.KindDeliver:
				delivered = append(delivered, e.Msg)
			}
		}
		equal(t, "executed", fmt.Sprint(executed), fmt.Sprint(want))
		equal(t, "delivered", fmt.Sprint(delivered), fmt.Sprint(want))
	}
}

func TestALatencyIsDrawnBetweenItsBounds(t *testing.T) {
	s := newStage()
	s.LatencyMin, s.LatencyMax = 3*time.Millisecond, 5*time.Millisecond
	s.does("a/1", func(th *sim.Thread, c *redis.Client) {
		for range 100 {
			c.Ping(context.Background())
		}
	})
	var ways []time.Duration
	last := int64(0)
	for _, e := range s.run(sim.NewHost(t)).Record.Events {
		switch e.Kind {
		case model.KindExec, model.KindDeliver:
			ways = append(ways, time.Duration(e.AtNs-last))
			fallthrough
		case model.KindSend:
			last = e.AtNs
		}
	}
	lo, hi := slices.Min(ways), slices.Max(ways)
	if lo < s.LatencyMin-slot || hi > s.LatencyMax+slot || lo > 3200*time.Microsecond || hi < 4800*time.Microsecond {
		t.Errorf("%d ways took %v to %v", len(ways), lo, hi)
	}
}

func TestAReadDeadline(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(th *sim.Thread, c net.Conn)
		want string
	}{
		{"ends a read", func(th *sim.Thread, c net.Conn) { c.SetReadDeadline(time.Now().Add(time.Second)) }, "timeout@1.002s"},
		{"set anew counts from there", func(th *sim.Thread, c net.Conn) {
			c.SetReadDeadline(time.Now().Add(time.Second))
			th.Sleep(500 * time.Millisecond)
			c.SetReadDeadline(time.Now().Add(time.Second))
		}, "timeout@1.502s"},
		{"set anew after it passed, counts again", func(th *sim.Thread, c net.Conn) {
			c.SetReadDeadline(time.Now().Add(time.Second))
			read(th, c)
			c.SetReadDeadline(time.Now().Add(time.Second))
		}, "timeout@2.002s"},
		{"in the past ends it at once", func(th *sim.Thread, c net.Conn) { c.SetReadDeadline(time.Now().Add(-time.Second)) }, "timeout@2ms"},
		{"taken back does not end it", func(th *sim.Thread, c net.Conn) {
			c.SetDeadline(time.Now().Add(time.Second))
			c.SetDeadline(time.Time{})
			_, _ = c.Write([]byte(ping))
		}, `"+PONG\r\n"@4ms`},
		{"yields to bytes that are there", func(th *sim.Thread, c net.Conn) {
			_, _ = c.Write([]byte(ping))
			c.SetReadDeadline(time.Now().Add(time.Second))
			th.Sleep(2 * time.Second)
		}, `"+PONG\r\n"@2.002s`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			dialled(t, newStage(), func(th *sim.Thread, conn net.Conn) {
				_, _ = conn.Write([]byte(ping))
				read(th, conn)
				c.do(th, conn)
				got = read(th, conn)
			})
			equal(t, "read", got, c.want)
		})
	}
}

func TestAClosedConnection(t *testing.T) {
	var got error
	var receivers [2]int64
	newStage().does("a/1", func(th *sim.Thread, _ *redis.Client) {
		c, _ := dial(th)
		_, _ = c.Write([]byte("*2\r\n$9\r\nSUBSCRIBE\r\n$2\r\nch\r\n"))
		go func() {
			time.Sleep(time.Second)
			_ = c.Close()
		}()
		for got == nil {
			_, got = c.Read(make([]byte, 100))
		}
	}).does("b/1", func(th *sim.Thread, c *redis.Client) {
		for i := range receivers {
			th.At(time.Second + time.Duration(i-1)*time.Millisecond*10 + 5*time.Millisecond)
			receivers[i] = c.Publish(context.Background(), "ch", "x").Val()
		}
	}).run(sim.NewHost(t))
	if !errors.Is(got, net.ErrClosed) || errors.Is(got, os.ErrDeadlineExceeded) {
		t.Errorf("a read that waits: %v", got)
	}
	equal(t, "subscribers before and after", receivers, [2]int64{1, 0})
}

func TestCommandsHeldByAStallKeepTheirOrder(t *testing.T) {
	var got string
	dialled(t, newStage(model.FaultSpec{Kind: model.FaultServer, Server: "stall", At: 10 * time.Millisecond, For: 10 * time.Millisecond}), func(th *sim.Thread, c net.Conn) {
		th.At(18500 * time.Microsecond)
		_, _ = c.Write([]byte("*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"))
		th.At(19 * time.Millisecond)
		_, _ = c.Write([]byte(ping))
		got = read(th, c) + " " + read(th, c)
	})
	equal(t, "replies", got, `":1\r\n"@21ms "+PONG\r\n"@21ms`)
}

func TestConnectionsDialledTogetherAreNumberedByTheirFirstBytes(t *testing.T) {
	h := sim.NewHost(t)
	for _, order := range [][]string{{"a", "b", "c"}, {"c", "a", "b"}, {"b", "c", "a"}} {
		r := newStage().does("a/1", func(th *sim.Thread, _ *redis.Client) {
			for _, key := range order {
				c, _ := dial(th)
				defer c.Close()
				_, _ = fmt.Fprintf(c, "*2\r\n$3\r\nGET\r\n$1\r\n%s\r\n", key)
			}
			th.Sleep(time.Second)
		}).run(h)
		var got []string
		for _, e := range pick(r, ofKind(model.KindSend)) {
			got = append(got, fmt.Sprint(e.Conn, e.Args))
		}
		equal(t, fmt.Sprint("numbers when written in the order ", order), strings.Join(got, " "), "1 [a] 2 [b] 3 [c]")
	}
}

// Several goroutines that wake together have the same connections in the record, in whatever order
// they continue.
func TestGoroutinesThatWakeTogetherMayGoOnInAnyOrder(t *testing.T) {
	const threads = 8
	h := sim.NewHost(t)
	play := func(yields func(thread int) int) sim.Result {
		s := newStage()
		s.LatencyMin, s.LatencyMax = time.Millisecond, 20*time.Millisecond // each connection has its own
		s.Processes = []sim.ProcessConfig{{Name: "a", Threads: threads}, {Name: "b", Threads: 1}}
		var gate chan struct{}
		for i := 1; i <= threads; i++ {
			s.does(fmt.Sprintf("a/%d", i), func(th *sim.Thread, c *redis.Client) {
				if i <= 3 { // as many connections are idle when the gate opens
					_ = operate(th, func(ctx context.Context) error { return c.Incr(ctx, fmt.Sprint("k", i)).Err() })
				}
				for range 3 {
					_ = operate(th, func(ctx context.Context) error {
						<-gate
						for range yields(i) {
							runtime.Gosched()
						}
						return c.Incr(ctx, fmt.Sprint("k", i)).Err()
					})
				}
			})
		}
		s.does("b/1", func(th *sim.Thread, _ *redis.Client) {
			th.Sleep(time.Second)
			_ = operate(th, func(context.Context) error { close(gate); return nil })
		})
		s.begin = func() { gate = make(chan struct{}) } // inside the bubble
		return s.run(h)
	}
	up := play(func(i int) int { return i })
	if n := len(pick(up, ofKind(model.KindSend))); n != 3+3*threads {
		t.Fatalf("%d commands were sent", n)
	}
	for name, yields := range map[string]func(int) int{
		"down":  func(i int) int { return threads - i },
		"mixed": func(i int) int { return i * 5 % threads },
	} {
		equal(t, name, play(yields).Record.Digest(), up.Record.Digest())
	}
}

// A connection that loses the only message under way stays: its client gives the command up, and closes it.
func TestAConnectionWithOneCommandOutlivesItsLoss(t *testing.T) {
	drop := model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Direction: "reply", Command: "GET", Nth: 1}}
	var err error
	var ended time.Duration
	s := newStage(drop).does("a/1", func(th *sim.Thread, c *redis.Client) {
		err = c.Get(context.Background(), "k").Err()
		ended = clock(th)
	})
	s.client = func(o *redis.Options) { o.ReadTimeout = time.Second }
	s.run(sim.NewHost(t))
	equal(t, "error", kindOf(err), "timeout")
	equal(t, "ended", ended, time.Second)
}

// The first words of a client on a connection, and the load of a script, are greetings.
func TestGreetingsAreKnown(t *testing.T) {
	for text, want := range map[string]bool{
		"HELLO 3": true, "CLIENT SETINFO LIB-NAME x": true, "INFO": true, "AUTH x": true, "SCRIPT LOAD x": true,
		"SCRIPT EXISTS x": false, "EVALSHA x 0": false, "GET k": false, "PING": false,
	} {
		equal(t, text, RequestOf(strings.Fields(text)).Greets, want)
	}
}

// Requests that a client of RESP2 writes one by one are answered in their order, too, whatever a rule holds.
func TestARuleThatHoldsOneOfTwoRequests(t *testing.T) {
	until := 300 * ms
	for direction, want := range map[string]string{
		"request": `":1\r\n"@302ms "+PONG\r\n"@302ms`,
		"reply":   `":1\r\n"@301ms "+PONG\r\n"@301ms`,
	} {
		var got []string
		s := newStage(model.FaultSpec{Kind: model.FaultRule, Do: "hold", Until: &until, When: model.When{Command: "INCR", Direction: direction, Nth: 1}})
		dialled(t, s, func(th *sim.Thread, c net.Conn) {
			for _, request := range []string{"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n", ping} {
				if _, err := c.Write([]byte(request)); err != nil {
					t.Error(err)
				}
				th.Sleep(10 * ms)
			}
			got = append(got, read(th, c), read(th, c))
		})
		equal(t, "answers to a held "+direction, strings.Join(got, " "), want)
	}
}

// EVAL and EVALSHA of one script have one digest.
func TestAScriptHasADigest(t *testing.T) {
	const digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // redis-cli SCRIPT LOAD "return 1"
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"EVAL", "return 1", "0"}, digest},
		{[]string{"evalsha", strings.ToUpper(digest), "0"}, digest},
		{[]string{"EVAL"}, "da39a3ee5e6b4b0d3255bfef95601890afd80709"}, // of no text; the server refuses it
		{[]string{"GET", "x"}, ""},
	} {
		equal(t, strings.Join(c.words, " "), RequestOf(c.words).Program, c.want)
	}
}
