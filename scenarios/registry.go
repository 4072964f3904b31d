package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
	"lockstep/model"
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// Lock is one entry of the registry: a lock by its canonical name, and what
// the world and the judges must know of it.
type Lock struct {
	Name  string
	About string
	model.Traits
	// Promises are those that differ from what the traits imply.
	Promises model.Promises
	// Interruptible is what lock() does when a scenario does not say.
	Interruptible bool

	// timing is that of the lock in a world with that watchdog timeout. What is 0
	// has a default.
	timing   func(watchdog Duration) model.Timing
	kind     kind
	commands map[string]sim.Command // by script text and by SHA
	rel      *redisson.Release      // nil: no lock of Redisson's
	topology redisson.Topology
	control  bool
}

// kind is what the world must know of a lock beside its name: how its client is
// made, what its commands are about, and how its state is read from the
// server's keys. A lock is named as in the scenario, an owner PROCESS/THREAD
// (ownerName).
type kind interface {
	// client makes the lock's client in a process of a world, and has it closed
	// with the process.
	client(p *sim.Process, sc *Scenario, opt ClientOptions) lockimpl.Client
	// scripts are the texts that the lock sends, each with what it is for:
	// acquire, unlock, renew, force_unlock or leave.
	scripts() map[string]string
	// whose are the locks and owners that a script with these keys and
	// arguments is about; locks are those of the scenario.
	whose(role model.Role, keys, argv, locks []string) (of, owners []string)
	// command says what a command is that runs no script; zero: none of the
	// lock's.
	command(words []string) sim.Command
	// observe reads a lock's state. Deadlines are counted from epochMs.
	observe(keys simredis.Keyspace, lock string, epochMs int64) *model.LockState
	// keys are the keys in which the server keeps a lock, as globs.
	keys(lock string) []string
	// channel is where a release of the lock is published: to one waiter
	// (process/thread), or to "all"; "" where it is not.
	channel(lock, to string) string
}

// Locks is the registry, in the order in which locks are listed.
var Locks = registry()

func registry() []*Lock {
	bare := func(kind lockimpl.Bare, about string) *Lock {
		return &Lock{Name: string(kind), About: about, Traits: model.Traits{Uncounted: true, NoWatchdog: true}, timing: bareTiming,
			Interruptible: true, kind: bareKind(kind)}
	}
	all := []*Lock{
		bare(lockimpl.None, "grants everything: the control that must fail"),
		bare(lockimpl.SetNXDel, "SET NX PX, then DEL whoever holds it"),
		bare(lockimpl.SetNXGetDel, "SET NX PX, then GET, compare, DEL"),
		bare(lockimpl.SetNXCad, "SET NX PX, then compare and delete in one script"),
		bare(lockimpl.StringReentrant, "the owner's name in one string; re-entry is not counted"),
	}
	for _, fair := range []bool{false, true} {
		l := &Lock{Name: "reference", About: "ours: requests that happen once, server time, fencing tokens",
			Traits: model.Traits{Fair: fair, Fenced: true}, timing: referenceTiming, Interruptible: true, control: true, kind: referenceKind{fair: fair}}
		if fair {
			l.Name, l.About = "reference-fair", "ours, serving waiters in the order of their first tries"
		}
		l.Promises = referencePromises(l.Traits)
		all = append(all, l)
	}
	all = append(all, redissonLocks()...)
	for _, l := range all {
		l.readScripts()
	}
	return all
}

// readScripts fills commands.
func (l *Lock) readScripts() {
	l.commands = map[string]sim.Command{}
	for text, script := range l.kind.scripts() {
		c := sim.Command{Script: model.Role(script)}
		l.commands[text], l.commands[redis.NewScript(text).Hash()] = c, c
	}
}

// FindLock gives a lock by its name; without a release, the newest. It knows
// the locks with a planted bug too (PlantedPrefix).
func FindLock(name string) (*Lock, error) {
	if l := registered(name); l != nil {
		return l, nil
	}
	if l := plantedLocks()[name]; l != nil {
		return l, nil
	}
	names := make([]string, len(Locks))
	for i, l := range Locks {
		names[i] = l.Name
	}
	return nil, fmt.Errorf("unknown lock %q; known: %s", name, strings.Join(names, ", "))
}

// registered finds a lock among Locks; nil for none.
func registered(name string) (found *Lock) {
	for _, l := range Locks {
		if l.Name == name || model.Family(l.Name) == name && l.topology == redisson.Single {
			found = l // the last of a family is the newest
		}
	}
	return found
}

// Control says that it is one of the reference locks, which nothing is to be
// found on.
func (l *Lock) Control() bool { return l.control && l.Unplanted() == l }

// Release is the release of Redisson that the lock is; "" for any other.
func (l *Lock) Release() string {
	if l.rel == nil {
		return ""
	}
	return l.rel.Version
}

// Replicated says whether the lock is configured for a server with replicas.
func (l *Lock) Replicated() bool { return l.topology != redisson.Single }

// SendsAgain says whether an acquire or an unlock whose reply is lost is sent
// again: up to 3.36.0, and wherever WAIT follows the script (issue 7367).
func (l *Lock) SendsAgain() bool {
	return l.rel != nil && (slices.Contains(l.rel.Resend, redisson.KindAcquire) || l.Replicated() && l.rel.Sync != redisson.SyncNone)
}

// Keys are the keys in which the server keeps the lock of that name, as globs.
func (l *Lock) Keys(name string) []string { return l.kind.keys(name) }

// Canonical gives the name under which a lock is registered.
func Canonical(name string) (string, error) {
	l, err := FindLock(name)
	if err != nil {
		return "", err
	}
	return l.Name, nil
}

// redisOptions are the connection's settings in a process, as the scenario has
// them.
func redisOptions(p *sim.Process, opt ClientOptions) *redis.Options {
	ro := goredis.Options(p, serverAddr)
	if opt.ResponseTimeout != nil {
		ro.ReadTimeout = *opt.ResponseTimeout
	}
	if opt.PoolSize != nil {
		ro.PoolSize = *opt.PoolSize
	}
	return ro
}

// bareBackoff is the wait between go-redis's own retries.
const bareBackoff = 8 * time.Millisecond

// retries lets go-redis itself send again, where the scenario says so.
func retries(ro *redis.Options, opt ClientOptions) {
	if opt.RetryAttempts != nil {
		// Equal bounds: the jitter between them comes from global chance. To go-redis
		// 0 is its default, which is 3.
		ro.MaxRetries, ro.MinRetryBackoff, ro.MaxRetryBackoff = cmp.Or(*opt.RetryAttempts, -1), bareBackoff, bareBackoff
	}
}

// environment is what a process of a world gives to a lock.
func environment(p *sim.Process) lockimpl.Environment {
	return lockimpl.Environment{
		Now:    p.Now,
		NewID:  func(o lockimpl.Owner) string { return p.NewID(int64(o)) },
		Jitter: func(o lockimpl.Owner, max Duration) Duration { return p.Jitter(int64(o), max) },
	}
}

// name says what a command is; locks are the names of the scenario's locks.
func (l *Lock) name(words []string, locks []string) sim.Command {
	if cmd := strings.ToUpper(words[0]); cmd != "EVAL" && cmd != "EVALSHA" {
		return l.kind.command(words)
	}
	if len(words) <= 3 {
		return sim.Command{}
	}
	c := l.commands[words[1]]
	n, err := strconv.Atoi(words[2])
	if err != nil || n < 1 || 3+n > len(words) {
		return c
	}
	c.Locks, c.Owners = l.kind.whose(c.Script, words[3:3+n], words[3+n:], locks)
	return c
}

// ownersOf turns CLIENT:OWNER, the client being named after its process, into
// process/thread; what a lock writes before it, with a colon, is left out.
func ownersOf(fields []string) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = ownerName(f)
	}
	return out
}

func ownerName(field string) string {
	i := strings.LastIndexByte(field, ':')
	if i < 0 {
		return field
	}
	client := field[:i]
	return client[strings.LastIndexByte(client, ':')+1:] + "/" + field[i+1:]
}

func ownerField(thread string) string { return strings.Replace(thread, "/", ":", 1) }

func observeQueue(s *model.LockState, keys simredis.Keyspace, queue, deadlines string, epochMs int64) {
	s.Queue = ownersOf(keys.List(queue))
	for member, score := range keys.SortedSet(deadlines) {
		if s.Deadlines == nil {
			s.Deadlines = map[string]int64{}
		}
		s.Deadlines[ownerName(member)] = int64(score) - epochMs
	}
}

// params is what the judges must know.
func (l *Lock) params(sc *Scenario) model.Params {
	p := model.Params{Lock: l.Unplanted().Name, Traits: l.Traits, Timing: l.Timing(sc.Watchdog), Promises: l.Promises}
	for _, name := range sc.lockNames() {
		if l.Fair {
			p.Kept = append(p.Kept, redisson.QueueName(name), redisson.DeadlinesName(name))
		}
		if l.Fenced && l.rel != nil {
			p.Kept = append(p.Kept, redisson.TokenName(name))
		}
	}
	if l.Fair {
		var own []Duration
		for _, pr := range sc.Processes {
			if w := pr.ClientOptions.FairWait; w != nil {
				own = append(own, *w)
			}
		}
		if len(own) == len(sc.Processes) {
			p.FairWait = slices.Max(own)
		}
	}
	return p
}

// Channel is where a release of a lock of that name is published: to one waiter, as
// process/thread, or to "all"; "" where it is not.
func (l *Lock) Channel(name, to string) string { return l.kind.channel(name, to) }

// Timing returns the timing of the lock in a world with that watchdog timeout.
func (l *Lock) Timing(watchdog Duration) model.Timing {
	t := l.timing(watchdog)
	t.ResponseTimeout = cmp.Or(t.ResponseTimeout, 3*time.Second)
	t.Resend = cmp.Or(t.Resend, t.ResponseTimeout*5/2)
	t.GiveUp = cmp.Or(t.GiveUp, 25*time.Second)
	return t
}
