//go:build linux

package live

import (
	"fmt"
	"os/exec"
	"sync"
	"time"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios/subject"
)

// A Foreign is a lock whose code is not Go. Each client runs in a program that the child
// process of its scenario's process starts.
type Foreign struct {
	// Lock is registered under its name. Its Port is set, and its Open is not called.
	Lock *subject.Subject
	// Watchdog is the watchdog timeout if it is no setting of the lock; 0: it is one.
	Watchdog time.Duration
	// NoFairWait says that the wait in the queue of a fair lock is no setting of the lock.
	NoFairWait bool
	// Needs are the programs that Build and Start run.
	Needs []Needed
	// Build makes ready what the programs of a run need, and returns it for Start. An
	// error says what the machine lacks.
	Build func() (built string, err error)
	// Start starts the program of a client and connects it to the server. It returns when
	// the program has done what it does once and is slow at, such as loading its code. It
	// may use any lock meanwhile, of which nothing is recorded.
	Start func(o ForeignOptions) (ForeignClient, error)
}

// ForeignOptions are the settings of a client of a Foreign.
type ForeignOptions struct {
	subject.Options
	Built   string // see Foreign.Build
	Threads int    // their numbers are 1 to Threads
	Locks   []string
	// Spawn starts a process that ends with the child process, is paused with it, and
	// crashes with it.
	Spawn func(*exec.Cmd) error
	// Gap tells that the program stood still, between instants of the monotonic clock in ns.
	// It notes so every BeatEvery, if a gap is longer than BeatGap.
	Gap func(fromNs, toNs int64)
	// Reply returns the last reply that the server gave to a command of a role, as the
	// record shows it, of those that the owner's present call sent.
	Reply func(o lockimpl.Owner, role model.Role) (reply string, ok bool)
}

// A ForeignClient is a client of a Foreign.
type ForeignClient interface {
	lockimpl.Client
	// Owners returns how the program writes each thread on the server, from thread 1 on.
	Owners() []string
	// Pid is the process of the program.
	Pid() int
}

var foreigners struct {
	sync.Mutex
	byName map[string]*Foreign
}

// RegisterForeign makes locks known under their names. It panics if a name is taken.
func RegisterForeign(all ...*Foreign) {
	foreigners.Lock()
	defer foreigners.Unlock()
	if foreigners.byName == nil {
		foreigners.byName = map[string]*Foreign{}
	}
	for _, f := range all {
		if f.Lock.Port == nil {
			panic(fmt.Sprintf("live: %s has no port", f.Lock.Name))
		}
		subject.Register(f.Lock)
		foreigners.byName[f.Lock.Name] = f
	}
}

// foreignOf returns the Foreign of a lock, nil if the lock is Go code.
func foreignOf(l *subject.Subject) *Foreign {
	foreigners.Lock()
	defer foreigners.Unlock()
	return foreigners.byName[l.Name]
}
