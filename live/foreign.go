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

// A Foreign is a lock whose code is not Go. For each process of the scenario there is a child
// process, which starts a program that runs the client.
type Foreign struct {
	// Lock is registered under its name. Its Port is set, and its Open is not called.
	Lock *subject.Subject
	// Watchdog is the watchdog timeout of a lock that has no setting for it. It is 0 if the lock
	// has the setting.
	Watchdog time.Duration
	// NoFairWait says that the lock has no setting for the wait in the queue of a fair lock.
	NoFairWait bool
	// Needs are the programs that Build and Start run.
	Needs []Needed
	// Build prepares what the programs of a run need, such as compiled code. Start gets what it
	// returns. An error says what the machine lacks.
	Build func() (built string, err error)
	// Start starts the program of a client and connects it to the server. It returns when the
	// program has done the slow work that it does only once, such as loading its code. For that it
	// may use any lock; nothing of it is recorded.
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
	// The program calls Gap when it finds that it stood still between two instants of the monotonic
	// clock, in ns. It looks at the clock every BeatEvery, and calls Gap if more than BeatGap has
	// passed.
	Gap func(fromNs, toNs int64)
	// Reply returns the reply, as the record shows it, to the last command of a role that the
	// owner's present call has sent.
	Reply func(o lockimpl.Owner, role model.Role) (reply string, ok bool)
}

// A ForeignClient is a client of a Foreign.
type ForeignClient interface {
	lockimpl.Client
	// Owners returns the values that name the threads of the program in the server's keys, in the
	// order of the threads.
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
