package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// chatter is a server that answers each line with itself. It does not answer a line that begins
// with "quiet". After a line that begins with "more" it sends another line on its own, when the
// channel more says so.
func chatter(t *testing.T, more <-chan struct{}) string {
	return listen(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			line, err := in.ReadString('\n')
			switch {
			case err != nil, line == "end\n":
				return
			case strings.HasPrefix(line, "quiet"):
				continue
			}
			_, _ = io.WriteString(c, line)
			if strings.HasPrefix(line, "more") {
				<-more
				_, _ = io.WriteString(c, "on its own\n")
			}
		}
	})
}

// bytesHandler lets messages pass, one at a time, and keeps what it hears.
type bytesHandler struct {
	turn  chan struct{}
	later func(raw string) Fate

	mu    sync.Mutex
	heard []string
}

func (h *bytesHandler) note(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, text)
}

func (h *bytesHandler) Request(m *Message) Fate {
	h.note("request " + string(m.Raw))
	if bytes.HasPrefix(m.Raw, []byte("quiet free")) {
		return Fate{Free: true}
	}
	h.turn <- struct{}{}
	return Fate{}
}

func (h *bytesHandler) Answered(m *Message, raw []byte) Fate {
	h.note("answer " + string(raw))
	<-h.turn
	return h.fate(string(raw))
}

func (h *bytesHandler) Unanswered(*Message) {
	h.note("no answer")
	<-h.turn
}

func (h *bytesHandler) Pushed(_ *Conn, _ string, raw []byte) Fate {
	h.note("push " + string(raw))
	return h.fate(string(raw))
}

func (h *bytesHandler) fate(raw string) Fate {
	if h.later == nil {
		return Fate{}
	}
	return Fate{Later: func() Fate { return h.later(raw) }}
}

func (*bytesHandler) Closed(*Conn) {}

// unknown starts a proxy with a Settle, as for an unknown protocol, and connects to it.
func unknown(t *testing.T, h *bytesHandler, addr string) (client net.Conn, in *bufio.Reader) {
	t.Helper()
	h.turn = make(chan struct{}, 1)
	p, err := Start(Options{
		Addr: "127.0.0.1:0", Handler: h, Patience: time.Minute, Dial: func() (net.Conn, error) { return net.Dial("tcp", addr) },
		Settle: &Settle{First: 50 * time.Millisecond, Quiet: 5 * time.Millisecond, Most: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if client, err = net.Dial("tcp", p.Addr()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client, bufio.NewReader(client)
}

// say sends a frame.
func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write(Frame([]byte(text))); err != nil {
		t.Fatal(err)
	}
}

// hears fails the test unless the next line is the one that is wanted.
func hears(t *testing.T, in *bufio.Reader, want string) {
	t.Helper()
	if line, err := in.ReadString('\n'); err != nil || line != want+"\n" {
		t.Fatalf("got %q, %v; want %q", line, err, want)
	}
}

func TestBytesPassAsMessages(t *testing.T) {
	h, more := &bytesHandler{}, make(chan struct{})
	client, in := unknown(t, h, chatter(t, more))
	say(t, client, "one\n")
	hears(t, in, "one")
	say(t, client, "quiet\n") // settles without an answer
	say(t, client, "quiet free\n")
	say(t, client, "more\n")
	hears(t, in, "more")
	close(more)
	hears(t, in, "on its own")
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.turn) > 0 {
		t.Error("a message still has the turn")
	}
	want := []string{"request one\n", "answer one\n", "request quiet\n"}
	if len(h.heard) < 3 || !slices.Equal(h.heard[:3], want) || !slices.Contains(h.heard, "request more\n") || !slices.Contains(h.heard, "push on its own\n") {
		t.Errorf("heard %q; want %q, then more, and a push", h.heard, want)
	}
}

// An answer that a rule holds delays the answers after it on the same connection, and nothing else:
// the requests of the connection go on.
func TestABytesAnswerThatIsHeldKeepsTheOrder(t *testing.T) {
	release, second := make(chan struct{}), make(chan struct{})
	h := &bytesHandler{}
	h.later = func(raw string) Fate {
		if raw == "one\n" {
			<-second // the second answer is there
			<-release
		}
		return Fate{}
	}
	client, in := unknown(t, h, chatter(t, nil))
	say(t, client, "one\n")
	say(t, client, "two\n")
	for {
		h.mu.Lock()
		came := slices.Contains(h.heard, "answer two\n")
		h.mu.Unlock()
		if came {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(second)
	close(release)
	hears(t, in, "one")
	hears(t, in, "two")
}

func TestABytesAnswerIsCutAndLost(t *testing.T) {
	h := &bytesHandler{later: func(raw string) Fate { return Fate{Drop: raw == "lost\n", Cut: raw == "cut\n"} }}
	client, in := unknown(t, h, chatter(t, nil))
	say(t, client, "lost\n")
	say(t, client, "one\n")
	hears(t, in, "one")
	say(t, client, "cut\n")
	if _, err := in.ReadString('\n'); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
}

// The client sees that the server has closed the connection only after everything that the server
// sent.
func TestTheEndOfAServerPasses(t *testing.T) {
	h := &bytesHandler{later: func(string) Fate { return Fate{NotBefore: time.Now().Add(20 * time.Millisecond)} }}
	client, in := unknown(t, h, chatter(t, nil))
	say(t, client, "one\n")
	say(t, client, "end\n")
	hears(t, in, "one")
	if _, err := in.ReadString('\n'); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}

func TestFrames(t *testing.T) {
	in := bufio.NewReader(bytes.NewReader(append(Frame([]byte("one")), Frame(nil)...)))
	for _, want := range []string{"one", ""} {
		if got, err := ReadFrame(in); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if _, err := ReadFrame(in); err != io.EOF {
		t.Errorf("%v, want the end", err)
	}
	if _, err := ReadFrame(bufio.NewReader(strings.NewReader("\xff\xff\xff\xff"))); err == nil {
		t.Error("a frame of 4 GB is read")
	}
}
