// Package subject describes a lock to the code that runs and judges it. A [Subject]
// opens the lock in a process of a world, gives each of its commands a role, reads the
// state that the server holds for it, and lists its promises. Anybody can build one,
// and pass it to scenarios/play or register it under its name. The locks of this
// repository do the same in scenarios/subject/builtin.
//
// The package knows no lock, no scenario and no judge.
package subject

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// A Subject is a lock under test. Name, Open, State and Keys are required, and Parties
// where there are Scripts; every other field may be left zero. Check names a required
// field that is missing. Do not change a subject that has been played or registered.
type Subject struct {
	// Name is the name in scenarios, verdicts and folders. A lock of a library with
	// releases is called FAMILY@RELEASE. A lock that is configured for more than a
	// single server is called FAMILY@RELEASE+SETUP.
	Name  string
	About string // one line for people

	model.Traits
	// Promises are the promises that differ from those that the traits imply.
	Promises model.Promises
	// Times returns the timing of the lock in a world with that watchdog timeout.
	// Timing fills in fields that stay 0. Nil: a hold without a lease lasts for the
	// watchdog timeout.
	Times func(watchdog time.Duration) model.Timing

	// Open makes the client of a process of a world. It has the client closed with
	// the process, see sim.Process.OnClose. The client is not nil where the error is.
	Open func(p *sim.Process, o Options) (lockimpl.Client, error)
	// Servers makes the servers; nil: one Redis server, which Protocol describes.
	Servers Servers
	Protocol

	// Lacks lists the parts of a scenario that the lock does not offer.
	Lacks Lacks
	// Interruptible reports whether an interrupt ends lock() where a scenario does
	// not say.
	Interruptible bool
	// Release is the version of the library that the lock is a part of; "": none.
	Release string
	// Replicated reports whether the lock is configured for more than a single server.
	Replicated bool
	// SendsAgain reports whether an acquire or an unlock whose reply is lost is sent
	// again.
	SendsAgain bool
	// Replies reports whether the replies that a scenario expects of a step are
	// replies of the lock's scripts. Other locks are not asked for them.
	Replies bool
	// Control reports whether the lock is a control, on which any finding is a fault
	// of Lockstep.
	Control bool
	// Base is the lock in which a bug was planted on purpose to make this one; nil:
	// no bug was planted.
	Base *Subject
	// Unlisted reports whether All leaves the lock out, so that nobody chooses it by
	// chance.
	Unlisted bool
	Campaign Campaign
}

// Protocol describes the commands that a lock sends to its server, and the state that
// the server holds for it. Locks are named as in the scenario, owners are
// process/thread.
type Protocol struct {
	// Scripts are the texts that the lock sends, each with its role.
	Scripts map[string]model.Role
	// Parties returns the locks that a script with these keys and arguments is about,
	// and the owner for each of them. There is at least one key, but there may be no
	// argument. The last parameter names the locks of the scenario. Nil only if there
	// are no Scripts.
	Parties func(role model.Role, keys, argv, locks []string) (about, owners []string)
	// Command describes a command that runs no script. Nil: no such command is of
	// interest.
	Command func(words []string) sim.Command
	// State reads the server's state of a lock. Deadlines are in milliseconds since
	// the start, which is at sim.EpochMs. A nil state is that of a free lock.
	State func(keys simredis.Keyspace, lock string) *model.LockState
	// Keys returns the keys in which the server keeps a lock, as globs.
	Keys func(lock string) []string
	// Kept returns the keys that may stay when all have left. Nil: none may.
	Kept func(lock string) []string
	// Channel returns the channel on which a release of the lock is published to one
	// waiter (process/thread), or to "all"; "": none. Nil: nothing is published.
	Channel func(lock, to string) string
}

// Campaign steers what a campaign draws for the lock. The zero value fits any lock.
type Campaign struct {
	// ShortWaits keeps waits short. Waiters of the lock ask the server so often that
	// long waits make long runs.
	ShortWaits bool
	// NoReentry keeps even the wildest callers from entering a lock that they hold.
	// They would only wait for themselves.
	NoReentry bool
	// Commands are the commands that a client of the lock sends, for rules on
	// messages. Nil: the commands that run scripts, subscribe and delete.
	Commands []string
	// Channels returns globs of the channels of a lock, for rules on messages; at
	// least one. Nil: all channels, and the one on which the lock publishes to all.
	Channels func(lock string) []string
}

// Options are the settings of a process's client.
type Options struct {
	Addr     string        // of the first server
	Addrs    []string      // of all servers
	Watchdog time.Duration // of the world
	ClientOptions
}

// ClientOptions overrides what a client does by default; nil means the lock's own.
type ClientOptions struct {
	ResponseTimeout *time.Duration
	RetryAttempts   *int
	PoolSize        *int
	FairWait        *time.Duration
}

// The defaults of Timing. A client that waits three seconds for an answer has sent its
// command again, or given it up, after two and a half times as long.
const (
	defaultResponseTimeout = 3 * time.Second
	defaultGiveUp          = 25 * time.Second
)

// Timing returns the timing of the lock in a world with that watchdog timeout. Where
// Times leaves them 0, Watchdog is that timeout, ResponseTimeout is 3 s, Resend is two
// and a half times ResponseTimeout, and GiveUp is 25 s. A lock that renews its holds does
// so after a third of Watchdog. The other fields stay 0.
func (s *Subject) Timing(watchdog time.Duration) model.Timing {
	var t model.Timing
	if s.Times != nil {
		t = s.Times(watchdog)
	}
	t.Watchdog = cmp.Or(t.Watchdog, watchdog)
	t.ResponseTimeout = cmp.Or(t.ResponseTimeout, defaultResponseTimeout)
	t.Resend = cmp.Or(t.Resend, t.ResponseTimeout*5/2)
	t.GiveUp = cmp.Or(t.GiveUp, defaultGiveUp)
	if !s.NoWatchdog {
		t.RenewalPeriod = cmp.Or(t.RenewalPeriod, t.Watchdog/3)
	}
	return t
}

// Family returns the name of the lock without its release.
func (s *Subject) Family() string { return model.Family(s.Name) }

// Unplanted returns the lock in which the bug of s is planted, or s itself where no bug
// is.
func (s *Subject) Unplanted() *Subject {
	if s.Base != nil {
		return s.Base
	}
	return s
}

// Check returns an error that names the subject if a required field is missing, or if a
// script has a role that does not exist. Register and scenarios/play call it.
func (s *Subject) Check() error {
	if s == nil {
		return errors.New("subject is nil")
	}
	for _, field := range []struct {
		name    string
		present bool
	}{
		{"Name", s.Name != ""}, {"Open", s.Open != nil}, {"Parties", s.Parties != nil || len(s.Scripts) == 0},
		{"State", s.State != nil || s.Servers != nil}, {"Keys", s.Keys != nil},
	} {
		if !field.present {
			return fmt.Errorf("subject %q has no %s", s.Name, field.name)
		}
	}
	for _, role := range slices.Sorted(maps.Values(s.Scripts)) {
		if role != "" && !slices.Contains(model.Roles, role) {
			return fmt.Errorf("subject %q gives a script the unknown role %q; the roles are %s", s.Name, role, roleNames())
		}
	}
	return nil
}

func roleNames() string {
	names := make([]string, len(model.Roles))
	for i, role := range model.Roles {
		names[i] = string(role)
	}
	return strings.Join(names, ", ")
}

// Commands returns a function that tells a world the role of a command, the locks that
// it is about, and the owners that it speaks for. The parameter names the locks of the
// scenario.
func (s *Subject) Commands(locks []string) func(words []string) sim.Command {
	roles := make(map[string]model.Role, 2*len(s.Scripts)) // by text and by SHA
	for text, role := range s.Scripts {
		roles[text], roles[hash(text)] = role, role
	}
	return func(words []string) sim.Command {
		if cmd := strings.ToUpper(words[0]); cmd != "EVAL" && cmd != "EVALSHA" {
			if s.Command == nil {
				return sim.Command{}
			}
			return s.Command(words)
		}
		if len(words) <= 3 {
			return sim.Command{}
		}
		c := sim.Command{Script: roles[words[1]]}
		n, err := strconv.Atoi(words[2])
		if err != nil || n < 1 || 3+n > len(words) || s.Parties == nil {
			return c
		}
		c.Locks, c.Owners = s.Parties(c.Script, words[3:3+n], words[3+n:], locks)
		return c
	}
}

// hashes caches the SHA of each script by its text.
var hashes sync.Map

func hash(text string) string {
	if sha, ok := hashes.Load(text); ok {
		return sha.(string)
	}
	sha := redis.NewScript(text).Hash()
	hashes.Store(text, sha)
	return sha
}
