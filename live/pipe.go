//go:build linux

package live

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/model"
	"lockstep/sim"
)

// Monotonic reads the clock that all processes of the machine share, in nanoseconds: that of the
// kernel, CLOCK_MONOTONIC.
func Monotonic() int64 { return monotonic() }

// monotonic reads the clock that all processes of the machine share, in nanoseconds.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("live: the machine has no monotonic clock: " + err.Error())
	}
	return t.Nano()
}

// began is what the parent tells a client first.
type began struct {
	File, Scenario string
	Lock           string
	Process        string
	Index          int
	Addrs          []string          // of the proxies, one per node; see subject.Options
	Routes         map[string]string // the proxy for each address that servers of a group tell
	Setup          string            // of a group: see subject.Options
	Prefix         string            // of the names of locks
	Seed           uint64
	StartNs        int64         // on the monotonic clock
	Offset         time.Duration // of the wall clock
	DriftPPM       int64
	Built          string // for the program of a Foreign
	Bytes          bool   // the proxies read frames
}

// down is what the parent tells a client. One field is set.
type down struct {
	Prepare   *began // of a Foreign, before Begin; the start is not set
	Begin     *began
	Answer    *answer
	Interrupt int           // the number of the thread whose call ends
	Step      time.Duration // of the wall clock
	Leave     bool
}

// up is what a client tells the parent. One field is set.
type up struct {
	Here     bool // the process runs, and waits to be told
	Prepared *prepared
	Ready    bool
	Err      string       // why the lock cannot be opened
	Event    *model.Event // the number of its operation is the client's own
	Sent     *sent
	Ask      *ask
	Left     bool // the client is closing, and no call goes on
	Gap      *gapped
}

// prepared is what the program of a Foreign has become.
type prepared struct {
	Owners []string // see ForeignClient
	Pid    int
}

// gapped is a time in which the process did not run.
type gapped struct{ FromNs, ToNs int64 }

// connNames names the connections of a process at both ends: by the addresses of the client and of
// the proxy, and how often a connection had both.
type connNames struct {
	mu   sync.Mutex
	used map[string]int
}

func (n *connNames) next(client, proxy string) string {
	addr := client + ">" + proxy
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.used == nil {
		n.used = map[string]int{}
	}
	n.used[addr]++
	return fmt.Sprintf("%s#%d", addr, n.used[addr])
}

// sent is a request that a client is about to write.
type sent struct {
	Conn  string // see connNames
	Index int    // counts the requests of the connection from 0
	AtNs  int64
	Op    int
	By    sim.Author
	Words []string
	// Request, if not nil, is the request as the servers of the world read it, and Asked are the
	// words for which the turn of its writer is.
	Request *sim.Request
	Asked   []string
}

// question is what a client asks the parent.
type question string

const (
	askState     question = "state"
	askReply     question = "reply"
	askPublished question = "published"
	askVisit     question = "visit"
	askInterrupt question = "interrupt"
)

// ask is a question of a thread, which waits for the answer.
type ask struct {
	ID      int
	What    question
	Thread  int
	Lock    string
	Op      int
	Role    model.Role
	Last    bool
	Channel string
	Visit   sim.Visit
	Target  string // of an interrupt
}

// answer answers an ask. Its fields belong to the questions.
type answer struct {
	ID     int
	State  *model.LockState
	Reply  string
	Found  bool
	Number int64
	Event  model.Event
}
