package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockstep/live"
	"lockstep/model"
	"lockstep/peers/external"
	"lockstep/sim"
)

// program is the real program, and its Debian package.
const program = "memcached"

func init() {
	live.RegisterKind(&external.Kind{
		Program: program, Needs: []live.Needed{{Program: program, Package: program}},
		Is: func(s sim.Server) bool {
			_, ok := s.(*Server)
			return ok
		},
		Begin: func(o external.Options) (live.Observed, error) {
			r := &realServer{}
			r.Options, r.Launch, r.Disconnect = o, r.launch, r.disconnect
			return r, r.Begin()
		},
	})
}

// realServer is memcached in a live run. It implements live.Observed.
type realServer struct {
	external.Running
	link   *link // of Look and Strike
	poller *link

	mu     sync.Mutex
	locks  []string
	uptime int64     // in seconds, when it was read last
	ticked time.Time // when the server began to show uptime, as far as it was seen
	ticks  int       // the number of ticks that were seen
}

// link is a connection of the run.
type link struct {
	net.Conn
	in *bufio.Reader
}

// patience is how long the server may take to answer the run.
const patience = 2 * time.Minute

// launch starts the program, which keeps nothing.
func (r *realServer) launch(bool) (*external.Process, string, error) {
	path, err := (live.Needed{Program: program, Package: program}).Find()
	if err != nil {
		return nil, "", err
	}
	p, err := launch(path, r.Addr(), r.Log, r.Spawn)
	if err != nil {
		return nil, "", err
	}
	version, err := r.meet()
	if err != nil {
		r.disconnect()
		p.Kill()
		return nil, "", err
	}
	last := map[string]string{}
	r.Poll(pollEvery, func() bool { return r.differs(last) })
	return p, program + " " + version, nil
}

// meet opens the connections of the run, and reads the version and the clock of the server, which begins to
// tick about when the program starts.
func (r *realServer) meet() (version string, err error) {
	if r.link, err = r.connect(); err != nil {
		return "", err
	}
	if r.poller, err = r.connect(); err != nil {
		return "", err
	}
	answer, err := r.link.ask("version\r\n", "VERSION ")
	if err != nil {
		return "", err
	}
	uptime, err := r.link.clock()
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	r.uptime, r.ticked, r.ticks = uptime, time.Now(), 0
	r.mu.Unlock()
	return strings.TrimSpace(strings.TrimPrefix(answer, "VERSION ")), nil
}

// disconnect closes the connections that there are.
func (r *realServer) disconnect() {
	for _, k := range []*link{r.link, r.poller} {
		if k != nil {
			_ = k.Close()
		}
	}
}

func (r *realServer) connect() (*link, error) {
	c, err := net.DialTimeout("tcp", r.Addr(), patience)
	if err != nil {
		return nil, err
	}
	return &link{c, bufio.NewReader(c)}, nil
}

// ask sends a request and returns the answer up to the line that begins with last.
func (k *link) ask(text, last string) (answer string, err error) {
	if err := k.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(k, text); err != nil {
		return "", err
	}
	for {
		line, err := k.in.ReadString('\n')
		answer += line
		if err != nil || strings.HasPrefix(line, last) {
			return answer, err
		}
	}
}

// item reads an item and the seconds after which it ends by the server's clock, negative: never.
func (k *link) item(key string) (value string, left int64, ok bool, err error) {
	if err := k.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", 0, false, err
	}
	if _, err := fmt.Fprintf(k, "mg %s v t\r\n", key); err != nil {
		return "", 0, false, err
	}
	line, err := k.in.ReadString('\n')
	if err != nil {
		return "", 0, false, err
	}
	words := strings.Fields(line)
	switch {
	case len(words) == 1 && words[0] == "EN":
		return "", 0, false, nil
	case len(words) != 3 || words[0] != "VA":
		return "", 0, false, fmt.Errorf("memcached answers %q to a meta get", line)
	}
	size, err := strconv.Atoi(words[1])
	if err != nil {
		return "", 0, false, err
	}
	if left, err = strconv.ParseInt(strings.TrimPrefix(words[2], "t"), 10, 64); err != nil {
		return "", 0, false, err
	}
	data := make([]byte, size+len(lineEnd))
	_, err = io.ReadFull(k.in, data)
	return string(data[:size]), left, true, err
}

// clock reads the seconds for which the server runs by its own clock, which ticks once a second.
func (k *link) clock() (int64, error) {
	answer, err := k.ask("stats\r\n", "END")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(answer) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "STAT uptime "); ok {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, errors.New("memcached tells no uptime")
}

// pollEvery is how often the run looks whether something has changed or the clock has ticked.
const pollEvery = 10 * time.Millisecond

// differs reports whether an item has begun, ended or changed since the last call. last has the items of
// that call, and gets the items of this one.
func (r *realServer) differs(last map[string]string) (changed bool) {
	uptime, err := r.poller.clock()
	if err != nil {
		return false // the server is stopped, or ends
	}
	r.mu.Lock()
	if uptime != r.uptime {
		r.uptime, r.ticked = uptime, time.Now()
		r.ticks++
	}
	locks := r.locks
	r.mu.Unlock()
	for _, lock := range locks {
		value, left, ok, err := r.poller.item(lock)
		if err != nil {
			return changed
		}
		now := ""
		if ok {
			now = fmt.Sprintf("%v %s", left < 0, value)
		}
		changed = changed || now != last[lock]
		last[lock] = now
	}
	return changed
}

// Tick implements live.Ticking.
func (r *realServer) Tick(in time.Duration) (time.Time, error) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(pollEvery) {
		r.mu.Lock()
		ticked, seen := r.ticked, r.ticks > 0
		r.mu.Unlock()
		if seen {
			whole := (time.Since(ticked) + in + time.Second - 1).Truncate(time.Second)
			return ticked.Add(whole), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: its clock does not tick", program)
}

// Settle implements live.Observed. Nearly each request has an answer.
func (*realServer) Settle() live.Settle {
	return live.Settle{First: 250 * time.Millisecond, Quiet: time.Millisecond, Most: 500 * time.Millisecond}
}

// AsksNothing implements live.Observed.
func (*realServer) AsksNothing([]byte) bool { return false }

// EndsWithin implements live.Vague. The program sees a tick of the clock after it has happened, and
// a busy server ticks late.
func (*realServer) EndsWithin() time.Duration { return 1500 * time.Millisecond }

// Shown is an item that a server of the world shows for a real one.
type Shown struct {
	Value string
	Left  time.Duration // until it ends
	Ends  bool
}

// Look implements live.Observed. An item ends at a tick of the server's clock.
func (r *realServer) Look(locks []string) (views []any, err error) {
	view := map[string]Shown{}
	uptime, err := r.link.clock()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.locks = slices.Clone(locks)
	tick := r.ticked.Add(time.Duration(uptime-r.uptime) * time.Second)
	r.mu.Unlock()
	for _, lock := range locks {
		value, left, ok, err := r.link.item(lock)
		if err != nil {
			return nil, err
		}
		if ok {
			view[lock] = Shown{value, time.Until(tick.Add(time.Duration(left) * time.Second)), left >= 0}
		}
	}
	return []any{view}, nil
}

// Show implements live.Observed.
func (*realServer) Show(server sim.Server, view any, nowNs int64) {
	server.(*Server).shown = func(key string) (value string, endsNs int64, ok bool) {
		x, ok := view.(map[string]Shown)[key]
		if !x.Ends {
			return x.Value, -1, ok
		}
		return x.Value, nowNs + int64(x.Left), ok
	}
}

// Strike implements live.Observed.
func (r *realServer) Strike(f model.FaultSpec) error {
	r.mu.Lock()
	locks := r.locks
	r.mu.Unlock()
	for _, lock := range locks {
		if !sim.Match(f.Key, lock) {
			continue
		}
		request, last := "delete "+lock, ""
		if f.KeyDo == "expire" {
			request = "touch " + lock + " -1"
		}
		if _, err := r.link.ask(request+lineEnd, last); err != nil {
			return err
		}
	}
	return nil
}

// Left implements live.Observed. It knows only the keys of locks.
func (r *realServer) Left() (keys []string, err error) {
	r.mu.Lock()
	locks := r.locks
	r.mu.Unlock()
	for _, lock := range locks {
		_, _, ok, err := r.link.item(lock)
		if err != nil {
			return nil, err
		}
		if ok {
			keys = append(keys, lock)
		}
	}
	return keys, nil
}
