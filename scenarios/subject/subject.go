// Package subject says what a lock is to whoever runs and judges it: how it is
// opened in a process of a world, what its commands are for, what the server holds
// for it, and what it promises. Anybody can build a [Subject], and pass it to
// scenarios/play or register it under its name; the locks of this repository do the
// same in scenarios/subject/builtin.
//
// The package knows no lock, no scenario and no judge.
package subject

import (
	"cmp"
	"fmt"
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

// A Subject is a lock under test. Do not change one that has been played or
// registered.
type Subject struct {
	// Name is the name in scenarios, verdicts and folders. A lock of which there are
	// releases is called FAMILY@RELEASE, and FAMILY@RELEASE+SETUP where it is
	// configured for other servers than a single one.
	Name  string
	About string // one line for people

	model.Traits
	// Promises are those that differ from what the traits imply.
	Promises model.Promises
	// Times returns the timing of the lock in a world with that watchdog timeout. A
	// field that stays 0 has a default, see Timing. Nil: all of them have.
	Times func(watchdog time.Duration) model.Timing

	// Open makes the client of a process of a world. It has the client closed with
	// the process, see sim.Process.OnClose.
	Open func(p *sim.Process, o Options) (lockimpl.Client, error)
	Protocol

	// Interruptible says what lock() does when a scenario does not say.
	Interruptible bool
	// Release is the version of the library that the lock is a part of; "": none.
	Release string
	// Replicated: the lock is configured for more than a single server.
	Replicated bool
	// SendsAgain: an acquire or an unlock whose reply is lost is sent again.
	SendsAgain bool
	// Replies: the replies that scenarios want of a step are those of its scripts.
	Replies bool
	// Control: nothing is to be found on the lock.
	Control bool
	// Base is the lock that this one is but for a bug that was planted on purpose;
	// nil: this is no such lock.
	Base *Subject
	// Unlisted: All leaves it out, since nobody is to choose it by chance.
	Unlisted bool
	Campaign Campaign
}

// Protocol is what a lock says to its server, and what the server holds for it. Locks
// are named as in the scenario, owners are process/thread.
type Protocol struct {
	// Scripts are the texts that the lock sends, each with its role.
	Scripts map[string]model.Role
	// Parties returns the locks and owners that a script with these keys and
	// arguments is about; locks are those of the scenario.
	Parties func(role model.Role, keys, argv, locks []string) (of, owners []string)
	// Command says what a command is that runs no script. Nil: none is of interest.
	Command func(words []string) sim.Command
	// State reads what the server holds of a lock. Deadlines are in milliseconds
	// since the start, which is at sim.EpochMs.
	State func(keys simredis.Keyspace, lock string) *model.LockState
	// Keys are the keys in which the server keeps a lock, as globs.
	Keys func(lock string) []string
	// Kept are those of the keys that may stay when all have left. Nil: none may.
	Kept func(lock string) []string
	// Channel is the channel on which a release of the lock is published to one
	// waiter (process/thread), or to "all"; "": none. Nil: nothing is published.
	Channel func(lock, to string) string
}

// Campaign steers what a campaign draws for the lock. The zero value fits any lock.
type Campaign struct {
	// ShortWaits: waiters ask the server so often that long waits make long runs.
	ShortWaits bool
	// NoReentry: even the wildest callers do not enter a lock that they hold, which
	// only makes them wait for themselves.
	NoReentry bool
	// Commands are those that a client of the lock sends, for rules on messages. Nil:
	// those that run scripts, subscribe and delete.
	Commands []string
	// Channels are globs of the channels of a lock, for rules on messages. Nil: all,
	// and the one on which it publishes to all.
	Channels func(lock string) []string
}

// Options are the settings of a process's client.
type Options struct {
	Addr     string        // of the server
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

// The timing of a lock that does not say it. A client that waits three seconds for
// an answer has sent its command again, or given it up, after two and a half times
// as long.
const (
	defaultResponseTimeout = 3 * time.Second
	defaultGiveUp          = 25 * time.Second
)

// Timing returns the timing of the lock in a world with that watchdog timeout.
func (s *Subject) Timing(watchdog time.Duration) model.Timing {
	t := model.Timing{Watchdog: watchdog}
	if s.Times != nil {
		t = s.Times(watchdog)
	}
	t.ResponseTimeout = cmp.Or(t.ResponseTimeout, defaultResponseTimeout)
	t.Resend = cmp.Or(t.Resend, t.ResponseTimeout*5/2)
	t.GiveUp = cmp.Or(t.GiveUp, defaultGiveUp)
	return t
}

// Family returns the name of the lock without its release.
func (s *Subject) Family() string { return model.Family(s.Name) }

// Unplanted returns the lock in which the bug of s is planted; s itself where there
// is none.
func (s *Subject) Unplanted() *Subject {
	if s.Base != nil {
		return s.Base
	}
	return s
}

// check says what a subject lacks.
func (s *Subject) check() error {
	for _, field := range []struct {
		name string
		is   bool
	}{
		{"Name", s.Name != ""}, {"Open", s.Open != nil}, {"Parties", s.Parties != nil || len(s.Scripts) == 0},
		{"State", s.State != nil}, {"Keys", s.Keys != nil},
	} {
		if !field.is {
			return fmt.Errorf("subject %q has no %s", s.Name, field.name)
		}
	}
	return nil
}

// Commands returns what tells a world which role a command has, which locks it is
// about, and for whom it speaks; locks are those of the scenario.
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

// hashes are the SHAs of the scripts that were played, by text.
var hashes sync.Map

func hash(text string) string {
	if sha, ok := hashes.Load(text); ok {
		return sha.(string)
	}
	sha := redis.NewScript(text).Hash()
	hashes.Store(text, sha)
	return sha
}
