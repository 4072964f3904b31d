package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockstep/internal/longtest"
	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/sim"
)

// memcached starts the real program for the time of the test and returns its address.
func memcached(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("memcached")
	if err != nil {
		redisserver.Missing(t, "memcached", "memcached")
	}
	addr, err := redisserver.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	p, err := launch(path, addr, io.Discard, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return addr
}

// ours is a direct connection to a server of the world.
type ours struct {
	s      *Server
	buffer string
	closed bool
}

// send sends bytes and returns the answer.
func (o *ours) send(nowNs int64, text string) (answer string) {
	if o.closed {
		return ""
	}
	o.buffer += text
	for o.buffer != "" && !o.closed {
		r, rest, err := o.s.Decode(o.buffer)
		if err != nil {
			break // the request is unfinished: there is no other error
		}
		o.buffer = rest
		reply, _ := o.s.Handle(nowNs, 1, &r, &sim.Effects{})
		answer += string(reply.Bytes)
		o.closed = reply.Closes
	}
	return answer
}

// drawer draws requests.
type drawer struct {
	*rand.Rand
	ids []string // ids in answers of the server
}

func (d *drawer) one(of ...string) string { return of[d.IntN(len(of))] }

func (d *drawer) key() string {
	if d.IntN(40) == 0 {
		return strings.Repeat("k", 249+d.IntN(3))
	}
	return d.one("a", "b", "c", "lock")
}

func (d *drawer) exptime() string {
	switch d.IntN(6) {
	case 0:
		return d.one("-1", "-2147483648", "2147483648", "4294967296", "99999999999", "1x", "", "x", "+5000")
	case 1:
		return strconv.FormatInt(time.Now().Unix()+int64(d.IntN(2)*2-1)*100_000, 10)
	case 2:
		return d.one("2592000", "2592001")
	}
	return d.one("0", "1000", "5000")
}

func (d *drawer) number() string {
	if d.IntN(5) == 0 {
		// Nothing of 2^63 or more: memcached looks for a minus sign after such a number, in memory
		// that held other values.
		return d.one("18446744073709551616", "-0", "-1", "+7", " 12", "12 ab", "ab", "0x1", "1\t", "-18446744073709551615", "00000000000000000000000000012")
	}
	return strconv.Itoa(d.IntN(1200))
}

// request draws a request.
func (d *drawer) request() string {
	noReply := ""
	if d.IntN(8) == 0 {
		noReply = d.one(" noreply", " noreply noreply", " x", " ")
	}
	end := "\r\n"
	if d.IntN(12) == 0 {
		end = "\n"
	}
	line := func(words ...string) string { return strings.Join(words, " ") + noReply + end }
	switch d.IntN(16) {
	case 0, 1:
		keys := []string{d.key()}
		for range d.IntN(3) {
			keys = append(keys, d.key())
		}
		if d.IntN(20) == 0 {
			keys = append(keys, strings.Fields(strings.Repeat("a b lock ", 15))...)
		}
		return d.one("get ", "gets ", "gets ", "bget ") + strings.Join(keys, " ") + end
	case 2:
		return line(d.one("gat", "gats"), d.exptime(), d.key(), d.key())
	case 3:
		return line("delete", d.key()) + ""
	case 4:
		return line("delete", d.key(), d.one("0", "1", "x"))
	case 5:
		return line("touch", d.key(), d.exptime())
	case 6, 7:
		return line(d.one("incr", "decr"), d.key(), d.number())
	case 8:
		return d.one("flush_all", "flush_all 0", "flush_all -1", "flush_all x", "flush_all 1 2 3", "version", "version x", "verbosity 1", "verbosity", "verbosity x", "mx", "x", "",
			" get a", "get\ta", "get a\x00b", "GET a", "set a 0 0", "incr a", "stats x", "stats reset", "gat 10", "gat", "get", "touch a", "cas a 0 0 1", "quit", "old HTTP/1.1", "get / HTTP/1.1", strings.Repeat("y", 1900)) + end
	}
	data := d.one("", "x", "owner-1", "owner-2", d.number(), d.number(), "two\r\nlines", "\x00")
	size := strconv.Itoa(len(data))
	if d.IntN(25) == 0 {
		size = d.one("-1", "0", "1", "7", "x", "2147483646", "2147483647", "4294967297")
	}
	if d.IntN(300) == 0 { // with a correct line, since the data after a wrong line must not be long
		data = strings.Repeat("z", 1_048_510+d.IntN(8))
		return fmt.Sprintf("%s %s %s 0 %d\r\n%s\r\n", d.one("set", "add", "append"), d.one("a", "b"), d.one("0", "7"), len(data), data)
	}
	words := []string{d.one("set", "set", "add", "add", "add", "replace", "append", "prepend", "cas", "cas", "cas"), d.key(),
		d.one("0", "0", "0", "7", "4294967295", "4294967296", "-1", "x"), d.exptime(), size}
	if words[0] == "cas" {
		id := d.one("0", "1", "-0", "x", "99999999")
		if len(d.ids) > 0 && d.IntN(5) > 0 {
			id = d.ids[max(0, len(d.ids)-1-d.IntN(4))]
		}
		words = append(words, id)
	}
	return line(words...) + data + "\r\n"
}

// learn notes the ids in an answer.
func (d *drawer) learn(answer string) {
	for _, l := range strings.Split(answer, "\r\n") {
		if words := strings.Fields(l); len(words) == 5 && words[0] == "VALUE" {
			d.ids = append(d.ids, words[4])
		}
	}
}

// For drawn sequences of requests on two connections, the server of the world answers as the real
// program does, byte by byte, ids included.
func TestTheServerAnswersAsMemcachedDoes(t *testing.T) {
	addr := memcached(t)
	server, start := New(), time.Now()
	server.Start(sim.Setup{Start: start})
	requests, silent := 0, 0
	for sequence := range longtest.Size(t, 1500, 10_000) {
		d := &drawer{Rand: rand.New(rand.NewPCG(uint64(sequence), 1))}
		var there [2]net.Conn
		var here [2]*ours
		for i := range there {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			there[i], here[i] = c, &ours{s: server}
		}
		var told []string
		for range 5 + d.IntN(25) {
			i := d.IntN(2)
			if here[i].closed {
				continue
			}
			text := d.request()
			requests++
			want := here[i].send(int64(time.Since(start)), text)
			if want == "" && !here[i].closed {
				silent++
				text += "version\r\n" // its answer shows that the request is done; or it ends the data block
				want = here[i].send(int64(time.Since(start)), "version\r\n")
			}
			d.learn(want)
			_, _ = there[i].Write([]byte(text))
			got := hear(there[i], len(want), here[i].closed)
			told = append(told, fmt.Sprintf("%d: %.300q\n   memcached %.300q\n   here      %.300q", i, text, got, want))
			if got != want {
				t.Fatalf("sequence %d:\n%s", sequence, strings.Join(told, "\n"))
			}
			if strings.HasPrefix(got, "VALUE") && !here[i].closed {
				// memcached has released the items of a request when it answers the next one. Until
				// then incr and decr give an item another length.
				_, _ = there[i].Write([]byte("version\r\n"))
				if got, want := hear(there[i], len(here[i].send(0, "version\r\n")), false), "VERSION "+Version+"\r\n"; got != want {
					t.Fatalf("sequence %d: %q, want %q", sequence, got, want)
				}
			}
		}
		for i := range there { // nothing may follow the answers
			_ = there[i].(*net.TCPConn).CloseWrite()
			if rest := hear(there[i], 0, true); rest != "" {
				t.Fatalf("sequence %d: memcached also says %q on connection %d:\n%s", sequence, rest, i, strings.Join(told, "\n"))
			}
			_ = there[i].Close()
		}
	}
	t.Logf("%d requests, %d without an answer", requests, silent)
}

// Requests that a drawn sequence does not have.
func TestRareRequestsAreAnsweredAsByMemcached(t *testing.T) {
	addr := memcached(t)
	server, start := New(), time.Now()
	server.Start(sim.Setup{Start: start})
	for i, text := range []string{
		"set k 0 0 2147483640\r\nabc\r\n", "set k 0 0 5 noreply\r\nhelloX\r\nversion\r\n", "set k 0 0 4\r\ninsert\r\n", "set k 0 0 1\r\nx\nget k\n",
		"set k 0 0 20\r\n18446744073709551615\r\nincr k 1\r\nget k\r\n", "set k 0 0 1\r\n0\r\nincr k 18446744073709551615\r\nget k\r\n",
		"set k 0 0 1\r\n5\r\ndecr k -18446744073709551615\r\nincr k -9223372036854775808\r\nincr k 9223372036854775808\r\nget k\r\n",
		"set k 0 0 22\r\n9223372036854775809 -1\r\nincr k 1\r\n", "set k 0 0 3\r\n9\x00a\r\nincr k 1\r\n",
		"get k\r", strings.Repeat("x", 2049), strings.Repeat(" ", 101) + "get " + strings.Repeat("k ", 1200), "get " + strings.Repeat("k ", 1200), "  gets " + strings.Repeat("k ", 1200) + "\r\n",
		"HTTP/1.1 x\r\n", "GET / HTTP/1.1\r\n", "get / HTTP/1.1\r\nversion\r\n", "version\r\nquit\r\nversion\r\n", "quit now\r\n", "\r\n\n", "set big 0 0 1\r\nx\r\nset big 0 0 2000000\r\n" + strings.Repeat("z", 2_000_000) + "\r\nget big\r\n",
		"set big 0 0 1\r\nx\r\nadd big 0 0 2000000 noreply\r\n" + strings.Repeat("z", 2_000_000) + "\r\nget big\r\n",
		"set big 0 0 1\r\nx\r\nappend big 0 0 1048515\r\n" + strings.Repeat("z", 1048515) + "\r\nappend big 0 0 1\r\nz\r\nversion\r\n",
		"set k 0 0 1\r\nx\r\nflush_all 100000\r\nget k\r\nflush_all\r\nget k\r\nset k 0 0 1\r\ny\r\nget k\r\n",
	} {
		here := &ours{s: server}
		want := here.send(int64(time.Since(start)), text)
		there, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = there.Write([]byte(text))
		if !here.closed {
			_ = there.(*net.TCPConn).CloseWrite()
		}
		if got := hear(there, 0, true); got != want {
			t.Errorf("%d: %.300q\n   memcached %.300q\n   here      %.300q", i, text, got, want)
		}
		_ = there.Close()
	}
}

// hear reads n bytes, or until the end of the connection.
func hear(c net.Conn, n int, toTheEnd bool) string {
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	var b bytes.Buffer
	if toTheEnd {
		_, err := io.Copy(&b, c)
		if err != nil {
			return b.String() + " " + err.Error()
		}
		return b.String()
	}
	if _, err := io.CopyN(&b, c, int64(n)); err != nil {
		return b.String() + " " + err.Error()
	}
	return b.String()
}

// timed is a request at a time after a tick of the clock.
type timed struct {
	at   time.Duration
	text string
}

// Items end at the same tick as in the real program. The sequences run side by side in real time,
// and send their requests halfway between two ticks. A sequence that differs is repeated, since a
// stall of the program delays its ticks.
func TestItemsEndWhenThoseOfMemcachedDo(t *testing.T) {
	longtest.Only(t)
	const sequences, programs = 300, 8 // each sequence that flushes has a program of its own
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var compared, late, requests atomic.Int32
	// run plays a sequence, and returns the answers up to a difference.
	run := func(addr string, number, try int, flushes bool, tick time.Time, uptime int64) (difference string) {
		nowNs := func(at time.Duration) int64 { return (uptime-2)*second + int64(at) }
		server := New()
		server.Start(sim.Setup{Start: tick.Add(-time.Duration(nowNs(0)))})
		here := &ours{s: server}
		there, err := net.Dial("tcp", addr)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = there.Close() }()
		d := &drawer{Rand: rand.New(rand.NewPCG(seed, uint64(number)))}
		var told []string
		for _, r := range d.sequence(fmt.Sprintf("key%d.%d", number, try), flushes, tick) {
			time.Sleep(time.Until(tick.Add(r.at)))
			if time.Since(tick.Add(r.at)) > 200*time.Millisecond {
				late.Add(1) // the machine is busy
				return ""
			}
			requests.Add(1)
			_, _ = there.Write([]byte(r.text))
			want := here.send(nowNs(r.at), r.text)
			got := hear(there, len(want), false)
			told = append(told, fmt.Sprintf("%v: %q\n   memcached %q\n   here      %q", r.at, r.text, got, want))
			if got != want {
				return fmt.Sprintf("sequence %d:\n%s", number, strings.Join(told, "\n"))
			}
		}
		compared.Add(1)
		return ""
	}
	var pending []int
	for number := range sequences + programs {
		pending = append(pending, number)
	}
	realtime.Case(t, "items", func(try int) string {
		byProgram := map[int][]int{} // 0: the program that no sequence flushes
		for _, number := range pending {
			program := max(0, number-sequences+1)
			byProgram[program] = append(byProgram[program], number)
		}
		var mu sync.Mutex
		var differences []string
		var running sync.WaitGroup
		pending = nil
		for program, numbers := range byProgram {
			addr := memcached(t)
			tick, uptime := nextTick(t, addr)
			for _, number := range numbers {
				running.Go(func() {
					if text := run(addr, number, try, program > 0, tick, uptime); text != "" {
						mu.Lock()
						defer mu.Unlock()
						pending, differences = append(pending, number), append(differences, text)
					}
				})
			}
		}
		running.Wait()
		return strings.Join(differences, "\n")
	})
	t.Logf("%d sequences of %d requests compared, %d given up because the machine was busy", compared.Load(), requests.Load(), late.Load())
	if compared.Load() < (sequences+programs)/2 {
		t.Error("too few sequences were compared")
	}
}

// sequence draws requests about one key, at most four in a second, for six seconds.
func (d *drawer) sequence(key string, flushes bool, tick time.Time) []timed {
	var list []timed
	exptime := func() string {
		if d.IntN(4) == 0 {
			return strconv.FormatInt(tick.Unix()+int64(d.IntN(5)), 10)
		}
		return d.one("1", "2", "3", "1", "2", "0", "-1")
	}
	for at := 1500 * time.Millisecond; at < 7*time.Second; at += time.Second {
		for range d.IntN(4) {
			text := ""
			switch k := d.IntN(9); {
			case k < 2:
				text = "get " + key
			case k < 5:
				text = fmt.Sprintf("%s %s 0 %s 1\r\n%d", d.one("set", "add", "add", "replace", "append"), key, exptime(), d.IntN(9))
			case k < 6:
				text = fmt.Sprintf("touch %s %s", key, exptime())
			case k < 7:
				text = fmt.Sprintf("gat %s %s", exptime(), key)
			case flushes && k < 8:
				text = "flush_all " + d.one("0", "1", "2", "2", "3")
				flushes = false // a second flush with a delay would bring back the items that the first one removed
			default:
				text = d.one("incr ", "decr ") + key + " 5"
			}
			list = append(list, timed{at, text + "\r\n"})
		}
	}
	return list
}

// nextTick waits for the next tick of the server's clock, and returns the uptime that the clock
// shows from then on.
func nextTick(t *testing.T, addr string) (tick time.Time, uptime int64) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	lines := bufio.NewScanner(c)
	ask := func() (n int64) {
		_, _ = fmt.Fprint(c, "stats\r\n")
		for lines.Scan() && lines.Text() != "END" {
			if text, ok := strings.CutPrefix(lines.Text(), "STAT uptime "); ok {
				n, _ = strconv.ParseInt(text, 10, 64)
			}
		}
		return n
	}
	for first := ask(); ; time.Sleep(2 * time.Millisecond) {
		if n := ask(); n != first {
			return time.Now(), n
		}
	}
}

// A restart also forgets ids, and a stall delays the ticks.
func TestTheClockOfTheServer(t *testing.T) {
	const ms = int64(time.Millisecond)
	server := New()
	server.Start(sim.Setup{Start: time.Unix(1e9, 0)})
	c := &ours{s: server}
	ends := func(nowNs int64, text string) time.Duration {
		t.Helper()
		if got := c.send(nowNs, "set k 0 "+text+" 1\r\nx\r\n"); got != "STORED\r\n" {
			t.Fatalf("set: %q", got)
		}
		_, at, ok := server.Item(nowNs, "k")
		if !ok {
			return 0
		}
		return time.Duration(at)
	}
	equal := func(what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	equal("at a tick", ends(0, "2"), 2*time.Second)
	equal("between two ticks", ends(900*ms, "2"), 2*time.Second)
	equal("an absolute time", ends(900*ms, "1000000005"), 5*time.Second)
	equal("without an end", ends(900*ms, "0"), -1)
	equal("long ago", ends(900*ms, "-1"), 0)

	stall := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerStall, For: 300 * time.Millisecond}
	server.Strike(1200*ms, stall, &sim.Effects{})
	equal("after a stall between two ticks", ends(1500*ms, "2"), 3*time.Second)
	server.Strike(1900*ms, stall, &sim.Effects{})
	equal("after a stall over a tick", ends(2200*ms, "2"), 4200*time.Millisecond)
	equal("before the next tick", ends(3100*ms, "1"), 3200*time.Millisecond)
	equal("after it", ends(3300*ms, "1"), 4200*time.Millisecond)

	server.StepClock(3300*ms, time.Hour, &sim.Effects{})
	equal("after a step of the wall clock", ends(3300*ms, "2"), 5200*time.Millisecond)
	equal("an absolute time after a step", ends(3300*ms, "1000000006"), 6200*time.Millisecond)
	server.Strike(3300*ms, model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart}, &sim.Effects{})
	equal("after a restart", ends(3300*ms, "2"), 5300*time.Millisecond)
	equal("an absolute time after a restart", ends(3300*ms, "1000003610"), 10300*time.Millisecond)
	if got := c.send(3300*ms, "gets k\r\n"); got != "VALUE k 0 1 2\r\nx\r\nEND\r\n" {
		t.Errorf("the ids begin anew with a restart: %q", got)
	}
}
