package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisson"
)

// watch observes a server for all sides that run sequences on it: the attempts of each owner on
// each lock (through MONITOR), and the published messages.
type watch struct {
	mu   sync.Mutex
	ears map[string]*ear // by tag, the first word of their locks' names
}

// ear has what the watch observed for one side of a lane, by the tag of that side.
type ear struct {
	tag    string
	rdb    redis.UniversalClient
	offset func() time.Duration // of the side's clock
	// age, if set, makes keys older in place of letting time pass.
	age func(s *side, ttl time.Duration) error

	mu       sync.Mutex
	tried    map[string]int // by key and owner
	messages []*redis.Message
	unheard  int // messages that settle has not handled
	fences   [2]int
	fence    int
	bell     chan struct{}
}

func startWatch(t testing.TB, server *Server) *watch {
	t.Helper()
	w := &watch{ears: map[string]*ear{}}
	monitor(t, server, w.command)
	rdb := redis.NewClient(redisson.Options(&redis.Options{Addr: server.Addr, Protocol: 2}))
	ps := rdb.PSubscribe(context.Background(), "*")
	if _, err := ps.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			m, err := ps.ReceiveMessage(context.Background())
			if err != nil {
				return
			}
			w.message(m)
		}
	})
	t.Cleanup(func() {
		_ = ps.Close()
		_ = rdb.Close()
		reading.Wait()
	})
	return w
}

// monitor reads the lines of MONITOR until the test ends.
func monitor(t testing.TB, server *Server, each func(line string)) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReaderSize(conn, 1<<20)
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			each(line)
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		reading.Wait()
	})
}

// join makes an ear for locks whose names begin with tag and a dot.
func (w *watch) join(tag string, rdb redis.UniversalClient) *ear {
	e := &ear{tag: tag, rdb: rdb, offset: func() time.Duration { return 0 }, tried: map[string]int{}, bell: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ears[tag] = e
	return e
}

func (w *watch) ear(key string) *ear {
	tag, _, _ := strings.Cut(key, ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ears[tag]
}

// scriptRun has the keys and arguments of a script that MONITOR shows.
type scriptRun struct{ keys, args []string }

// monitored returns the words of a command in a line of MONITOR. Each is in quotes, and quotes
// inside are escaped.
func monitored(words string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(words), `"`), `" "`)
}

// parseScript reads EVAL or EVALSHA from a line of MONITOR, if it is one that
// a client sent and has a key.
func parseScript(line string) (scriptRun, bool) {
	_, line, _ = strings.Cut(line, "] ")
	if !strings.HasPrefix(line, `"EVAL`) && !strings.HasPrefix(line, `"eval`) {
		return scriptRun{}, false
	}
	word := monitored(line)
	if len(word) < 4 {
		return scriptRun{}, false
	}
	n, err := strconv.Atoi(word[2])
	if err != nil || n < 1 || len(word) < 3+n {
		return scriptRun{}, false
	}
	return scriptRun{word[3 : 3+n], word[3+n:]}, true
}

// command reads a line of MONITOR: time, [database address], then the words.
func (w *watch) command(line string) {
	_, words, ok := strings.Cut(line, "] ")
	if !ok {
		return
	}
	if strings.HasPrefix(words, `"publish" "fence `) {
		word := monitored(words)
		if e := w.ear(strings.TrimPrefix(word[1], "fence ") + "."); e != nil {
			e.passed(0, word[2])
		}
		return
	}
	run, ok := parseScript(line)
	if !ok {
		return
	}
	e := w.ear(run.keys[0])
	if e == nil {
		return
	}
	e.mu.Lock()
	for _, arg := range run.args {
		if strings.Contains(arg, ":") { // an owner
			e.tried[run.keys[0]+" "+arg]++
		}
	}
	e.mu.Unlock()
	e.ring()
}

func (w *watch) message(m *redis.Message) {
	if tag, ok := strings.CutPrefix(m.Channel, "fence "); ok {
		if e := w.ear(tag + "."); e != nil {
			e.passed(1, m.Payload)
		}
		return
	}
	_, name, _ := strings.Cut(m.Channel, "{")
	if e := w.ear(name); e != nil {
		e.mu.Lock()
		e.messages = append(e.messages, m)
		e.unheard++
		e.mu.Unlock()
		e.ring()
	}
}

func (e *ear) ring() {
	select {
	case e.bell <- struct{}{}:
	default:
	}
}

func (e *ear) passed(stream int, number string) {
	n, _ := strconv.Atoi(number)
	e.mu.Lock()
	e.fences[stream] = n
	e.mu.Unlock()
	e.ring()
}

func (e *ear) attempts(c *call) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tried[c.key+" "+c.owner]
}

// forget drops the counts of a sequence.
func (e *ear) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.tried)
	e.messages, e.unheard = nil, 0
}

func (e *ear) nowMS() int64 { return time.Now().Add(e.offset()).UnixMilli() }

func (e *ear) pass(s *side, ttl time.Duration) error {
	if e.age != nil {
		return e.age(s, ttl)
	}
	time.Sleep(ttl + time.Millisecond) // Redis keeps a key through the millisecond of its end
	return nil
}

func (e *ear) heard() []*redis.Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := e.messages
	e.messages, e.unheard = nil, 0
	return m
}

// settleLimit is the longest time that a call may take that has nothing to wait for. A subscription
// of the library that is sent again and again takes up to 17 s.
const settleLimit = 30 * time.Second

var errUnsettled = errors.New("neither came back nor came to wait for a message")

// settle waits until every call has returned or waits for a message. A call waits for a message
// when it has made all attempts that were due (two at its beginning, and one for each message to
// it) and none got the lock.
func (e *ear) settle(s *side) error {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	wait := func(what func() error) error {
		select {
		case <-e.bell:
			return nil
		case <-limit.C:
			return what()
		}
	}
	for {
		// Once MONITOR has shown the fence, it has shown every command that calls sent before.
		late, _ := e.unsettled(s)
		if late == nil {
			if err := e.putFence(wait); err != nil {
				return err
			}
			var quiet bool
			if late, quiet = e.unsettled(s); late == nil {
				if quiet {
					return nil
				}
				continue
			}
		}
		if err := wait(func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			var under []string
			for _, c := range s.open {
				under = append(under, fmt.Sprintf("%v: %d attempts of %d, reply %q", c.op, e.attempts(c)-c.before, c.due, c.reply))
			}
			return fmt.Errorf("%v: %w within %v; calls: %s", late.op, errUnsettled, settleLimit, strings.Join(under, "; "))
		}); err != nil {
			return err
		}
	}
}

// unsettled returns a call that is neither done nor waiting. quiet reports that no message came since
// its last call, and that no call was found to have the lock.
func (e *ear) unsettled(s *side) (late *call, quiet bool) {
	e.mu.Lock()
	fresh := slices.Clone(e.messages[len(e.messages)-e.unheard:])
	e.unheard = 0
	e.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range fresh {
		s.deliver(m.Channel)
	}
	var waiting []*call
	for _, c := range s.open {
		if c.done {
			continue
		}
		if c.mustEnd || e.attempts(c)-c.before < c.due {
			return c, false
		}
		waiting = append(waiting, c)
	}
	for _, c := range waiting {
		if held, err := e.rdb.HExists(context.Background(), c.key, c.owner).Result(); err == nil && held {
			c.mustEnd = true // the answer is on its way
			return c, false
		}
	}
	return nil, len(fresh) == 0
}

// deliver notes that a message wakes one waiter of each client that listens: the waiter that has
// waited longest, even if it has returned by now.
func (s *side) deliver(channel string) {
	woken := map[string]bool{}
	for _, c := range s.open {
		listens := channel == redisson.WaiterChannel(c.key, c.owner)
		if s.kind != fair {
			listens = channel == redisson.ChannelName(c.key)
		}
		if listens && c.op.waitsLong() && !woken[c.op.Client] {
			woken[c.op.Client] = true
			c.due++
		}
	}
}

func (e *ear) putFence(wait func(func() error) error) error {
	e.mu.Lock()
	e.fence++
	n := e.fence
	e.mu.Unlock()
	if err := e.rdb.Publish(context.Background(), "fence "+e.tag, n).Err(); err != nil {
		return err
	}
	for {
		e.mu.Lock()
		passed := e.fences[0] >= n && e.fences[1] >= n
		e.mu.Unlock()
		if passed {
			return nil
		}
		if err := wait(func() error { return errors.New("the observers of the server fell behind") }); err != nil {
			return err
		}
	}
}
