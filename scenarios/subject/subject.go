// Package subject describes a lock to the code that runs and judges it. A [Subject]
// opens the lock in a process of a world, makes its servers, and lists its promises.
// Anybody can build a Subject, and pass it to scenarios/play or register it under its
// name. Package scenarios/subject/builtin does the same for the locks of this repository.
//
// The package knows no lock, no server, no scenario and no judge.
package subject

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/sim"
)

// A Subject is a lock under test. Name, Open, Servers and Keys are required. Every other
// field may be left zero. Check names a required field that is missing. Do not change a
// subject that has been played or registered.
type Subject struct {
	// Name is the name in scenarios, verdicts and folders. A lock of a library with
	// releases is called FAMILY@RELEASE. A lock that is configured for more than a
	// single server is called FAMILY@RELEASE+SETUP.
	Name  string
	About string // one line for people
	// Advice says in a sentence or two when to take the lock and when not. A survey shows
	// it.
	Advice string
	// Policy says in a sentence how the lock is used where its library leaves it open: which session a
	// hold has, what is tried again, and what follows a failure. A survey shows it. "": nothing is open.
	Policy string
	// OnlySimulated reports whether no program starts the servers of the lock, which exist only in
	// the world.
	OnlySimulated bool

	model.Traits
	// Promises are the promises that differ from those that the traits imply.
	Promises model.Promises
	// Times returns the timing of the lock in a world with that watchdog timeout.
	// Timing fills in fields that are 0. Nil: a hold without a lease lasts for the
	// watchdog timeout.
	Times func(watchdog time.Duration) model.Timing

	// Open makes the client of a process of a world. It registers the closing of the
	// client with sim.Process.OnClose. If the error is nil, the client is not nil.
	Open func(p *sim.Process, o Options) (lockimpl.Client, error)
	// Servers makes the servers of the lock and reads the commands that the lock sends.
	Servers Servers
	// Keys returns globs of the keys in which the servers keep a lock.
	Keys func(lock string) []string
	// Kept returns the keys that may remain after all clients have left. If Kept is nil,
	// no key may remain.
	Kept func(lock string) []string
	// Token returns the fencing token of the hold that an owner has, as its client knows it. Nil:
	// the lock returns no tokens.
	Token func(l lockimpl.Lock, o lockimpl.Owner) (int64, error)
	// Channel returns the channel on which a release of the lock is published to one
	// waiter (process/thread), or to "all". It returns "" if there is no such channel. If
	// Channel is nil, the lock publishes nothing.
	Channel func(lock, to string) string

	// Lacks lists the parts of a scenario that the lock does not offer.
	Lacks Lacks
	// Interruptible reports whether an interrupt ends lock() in a step that does not say
	// whether it is interruptible.
	Interruptible bool
	// Library identifies the code that the lock runs. Known defects are looked up by it,
	// and not by Name, which anybody may choose. It is "" for a lock that no list of
	// defects is about.
	Library string
	// Release is the version of that library. It is "" if the library has no releases.
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
	// Setups are the setups of real servers for which Open makes a client, besides that of a world:
	// see Options.Setup.
	Setups []string
	// Handles is the name of the same lock taken by handles, whose holders watch the contexts of their
	// holds, if the threads of this lock do not watch them. A survey judges on it the promise that a
	// holder is told of the loss of its hold. "": there is no such lock.
	Handles string
	// Port is the lock that stands for this one in a simulated world, if this one runs
	// on real servers only. Scenarios expect of this lock what they expect of its port.
	// Nil: the lock runs in a simulated world.
	Port *Subject
	// Base is the lock from which this one was made by planting a bug. Nil: no bug was
	// planted.
	Base *Subject
	// Planted is the bug that was planted in this lock, or nil.
	Planted *PlantedBug
	// Unlisted reports whether All leaves the lock out, so that nobody chooses it by
	// chance.
	Unlisted bool
	Campaign Campaign
}

// Expected returns the name under which a scenario has its expectation of the lock.
func (s *Subject) Expected() string {
	if s.Port != nil {
		return s.Port.Name
	}
	return s.Name
}

// Campaign steers the drawing of scenarios for the lock. The zero value fits any lock.
type Campaign struct {
	// ShortWaits keeps waits short. Waiters of the lock ask the server so often that
	// long waits make long runs.
	ShortWaits bool
	// NoReentry keeps even the wildest callers from entering a lock that they hold.
	// They would only wait for themselves.
	NoReentry bool
	// Commands are the commands that a client of the lock sends, for rules on messages.
	// Nil: those of the servers' sim.Drawing. If the servers know none of them, a rule may
	// name any command that they know.
	Commands []string
	// Channels returns globs of the channels of a lock, for rules on messages; at
	// least one. Nil: all channels, and the one on which the lock publishes to all.
	Channels func(lock string) []string
}

// Options are the settings of a process's client.
type Options struct {
	Addrs    []string      // of the servers, or of those that Setup says
	Watchdog time.Duration // of the world
	// Setup says how the servers at Addrs form a whole. "": they know nothing of one another. A
	// world has no other setup. See Subject.Setups.
	Setup string
	ClientOptions
}

// ClientOptions overrides the defaults of a client. A field that is nil keeps the lock's own
// default.
type ClientOptions struct {
	ResponseTimeout *time.Duration
	RetryAttempts   *int
	PoolSize        *int
	FairWait        *time.Duration
}

// The defaults of Timing. The default of Resend assumes that a client has sent its command
// again, or given it up, after two and a half times ResponseTimeout.
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

// Commands returns the names of the commands that the servers of the lock know, each once and in
// order. It returns nil if a server does not list its commands.
func (s *Subject) Commands() []string {
	if s.Servers == nil {
		return nil
	}
	var all []string
	for _, n := range s.Servers.New(nil, ServerOptions{}).Nodes {
		commands := n.Server.Parts().Commands
		if commands == nil {
			return nil
		}
		all = append(all, commands()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Drawing returns what campaigns draw for clients, from the first server of the lock that says so.
// It returns zero if none does.
func (s *Subject) Drawing() sim.Drawing {
	if s.Servers != nil {
		for _, n := range s.Servers.New(nil, ServerOptions{}).Nodes {
			if drawing := n.Server.Parts().Drawing; drawing != nil {
				return drawing()
			}
		}
	}
	return sim.Drawing{}
}

// Family returns the name of the lock without its release.
func (s *Subject) Family() string { return model.Family(s.Name) }

// Unplanted returns the lock from which s was made by planting a bug. It returns s itself
// if s has no planted bug.
func (s *Subject) Unplanted() *Subject {
	if s.Base != nil {
		return s.Base
	}
	return s
}

// Check returns an error that names the subject if a required field is missing, or if
// its Servers lack something. Register and scenarios/play call it.
func (s *Subject) Check() error {
	if s == nil {
		return errors.New("subject is nil")
	}
	for _, field := range []struct {
		name    string
		present bool
	}{
		{"Name", s.Name != ""}, {"Open", s.Open != nil}, {"Servers", s.Servers != nil}, {"Keys", s.Keys != nil},
	} {
		if !field.present {
			return fmt.Errorf("subject %q has no %s", s.Name, field.name)
		}
	}
	if err := s.Servers.Check(); err != nil {
		return fmt.Errorf("subject %q %w", s.Name, err)
	}
	return nil
}
