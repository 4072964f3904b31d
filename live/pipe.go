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

// Monotonic reads the kernel's CLOCK_MONOTONIC in nanoseconds. All processes of the machine share this
// clock.
func Monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("live: the machine has no monotonic clock: " + err.Error())
	}
	return t.Nano()
}

// began is the first message of the parent to a client.
type began struct {
	File, Scenario string
	Lock           string
	Process        string
	Index          int
	Addrs          []string          // the addresses of the proxies, one per node; see subject.Options
	Routes         map[string]string // the proxy for each address that servers of a group give to clients
	Setup          string            // the setup of a group; see subject.Options
	Prefix         string            // the prefix of the names of locks
	Seed           uint64
	StartNs        int64         // when the run starts, on the monotonic clock
	Offset         time.Duration // the offset of the wall clock
	DriftPPM       int64
	Built          string // what Foreign.Build returned
	Bytes          bool   // the proxies read frames; see proxy.Settle
}

// down is a message of the parent to a client. One field is set.
type down struct {
	Prepare   *began // sent before Begin to a client of a Foreign; StartNs is not set
	Begin     *began
	Answer    *answer
	Interrupt int           // the number of the thread whose call ends
	Step      time.Duration // how far the wall clock jumps
	Leave     bool
}

// up is a message of a client to the parent. One field is set.
type up struct {
	Here     bool // the process runs, and waits for messages
	Prepared *prepared
	Ready    bool
	Err      string       // why the lock cannot be opened
	Event    *model.Event // the client itself counts its operations
	Sent     *sent
	Ask      *ask
	Left     bool // the client is closing, and no call is under way
	Gap      *gapped
}

// prepared says that the program of a Foreign is ready.
type prepared struct {
	Owners []string // see ForeignClient
	Pid    int
}

// gapped is a time in which the process, or the program of a Foreign, did not run.
type gapped struct{ FromNs, ToNs int64 }

// connNames gives a connection of a process the same name at both ends. The name has the address of the
// client, the address of the proxy, and the number of earlier connections with the same addresses.
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
	// Request is the request as the simulated servers read it; nil: the proxy reads it from Words. Asked
	// has the words with which the writer asked for its turn.
	Request *sim.Request
	Asked   []string
}

// question is a kind of ask.
type question string

const (
	askState     question = "state"
	askReply     question = "reply"
	askPublished question = "published"
	askVisit     question = "visit"
	askInterrupt question = "interrupt"
)

// ask is a question of a thread to the parent. The thread waits for the answer.
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
	Target  string // the thread to interrupt
}

// answer is the answer to an ask. Which fields are set depends on the question.
type answer struct {
	ID     int
	State  *model.LockState
	Reply  string
	Found  bool
	Number int64
	Event  model.Event
}
