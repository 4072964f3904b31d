package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
	"lockstep/lockimpl/reference"
	"lockstep/model"
	"lockstep/sim"
)

// bareBackoff is the wait between a bare client's own retries.
const bareBackoff = 8 * time.Millisecond

// Lock is one entry of the registry: a lock by its canonical name, and what
// the world and the judges must know of it.
type Lock struct {
	Name  string
	About string
	Fair  bool
	// Uncounted: re-entry is not counted, or not possible.
	Uncounted bool
	// NonReentrant: an owner that enters again gets an error.
	NonReentrant bool
	// NoWatchdog: a hold without lease has a fixed one.
	NoWatchdog bool
	// Interruptible is what lock() does when a scenario does not say.
	Interruptible bool

	rel      *redisson.Release // nil: no lock of Redisson's
	topology redisson.Topology
	object   func(*redisson.Client, string) (lockimpl.Lock, error) // makes a lock object
	bare     lockimpl.Bare
	ours     bool                   // the reference
	commands map[string]sim.Command // by script text and by SHA
	planted  *planting              // nil: as its author meant it
}

// Locks is the registry, in the order in which locks are listed.
var Locks = registry()

func registry() []*Lock {
	bare := func(kind lockimpl.Bare, about string) *Lock {
		l := &Lock{Name: string(kind), About: about, Uncounted: true, NoWatchdog: true, Interruptible: true, bare: kind}
		l.commands = map[string]sim.Command{}
		for text, script := range lockimpl.BareScripts {
			l.commands[text] = sim.Command{Script: script}
			l.commands[redis.NewScript(text).Hash()] = sim.Command{Script: script}
		}
		return l
	}
	all := []*Lock{
		bare(lockimpl.None, "grants everything: the control that must fail"),
		bare(lockimpl.SetNXDel, "SET NX PX, then DEL whoever holds it"),
		bare(lockimpl.SetNXGetDel, "SET NX PX, then GET, compare, DEL"),
		bare(lockimpl.SetNXCad, "SET NX PX, then compare and delete in one script"),
		bare(lockimpl.StringReentrant, "the owner's name in one string; re-entry is not counted"),
	}
	for _, l := range []*Lock{
		{Name: "reference", About: "ours: requests that happen once, server time, fencing tokens"},
		{Name: "reference-fair", About: "ours, serving waiters in the order of their first tries", Fair: true},
	} {
		l.Interruptible, l.ours, l.commands = true, true, map[string]sim.Command{}
		for text, script := range reference.Scripts() {
			l.commands[text] = sim.Command{Script: script}
			l.commands[redis.NewScript(text).Hash()] = sim.Command{Script: script}
		}
		all = append(all, l)
	}
	for _, f := range families {
		for _, rel := range redisson.Releases {
			if f.has != nil && !f.has(rel) {
				continue
			}
			for _, t := range topologies {
				if t.has != nil && (!f.everywhere || !t.has(rel)) {
					continue
				}
				l := &Lock{
					Name:  f.name + "@" + rel.Version + t.suffix,
					About: fmt.Sprintf("Redisson's %s as of %s%s", f.what, rel.Version, t.what),
					Fair:  f.fair, NonReentrant: f.once, rel: rel, topology: t.topology, object: f.object,
					commands: map[string]sim.Command{},
				}
				for _, s := range rel.Scripts() {
					c := sim.Command{Script: string(s.Kind)}
					l.commands[s.Text], l.commands[s.SHA] = c, c
				}
				all = append(all, l)
			}
		}
	}
	return all
}

// families are the kinds of Redisson's lock.
var families = []struct {
	name, what string
	fair       bool
	once       bool // not re-entrant
	everywhere bool // also in the topologies that are more than one server
	has        func(*redisson.Release) bool
	object     func(*redisson.Client, string) (lockimpl.Lock, error)
}{
	{name: "redisson", what: "lock", everywhere: true, object: (*redisson.Client).GetLock},
	{name: "redisson-fair", what: "fair lock", fair: true, everywhere: true, object: (*redisson.Client).GetFairLock},
	{name: "redisson-fenced", what: "fenced lock", has: func(r *redisson.Release) bool { return r.Fenced != nil },
		object: func(c *redisson.Client, name string) (lockimpl.Lock, error) { return c.GetFencedLock(name) }},
	{name: "redisson-nonreentrant", what: "non-reentrant lock", once: true, has: hasNonReentrant,
		object: (*redisson.Client).GetNonReentrantLock},
	{name: "redisson-nonreentrant-fair", what: "non-reentrant fair lock", fair: true, once: true, has: hasNonReentrant,
		object: (*redisson.Client).GetNonReentrantFairLock},
}

func hasNonReentrant(r *redisson.Release) bool { return r.NonReentrant != nil }

// topologies are the kinds of server, by the suffix of a lock's name.
var topologies = []struct {
	suffix, what string
	topology     redisson.Topology
	has          func(*redisson.Release) bool
}{
	{"", "", redisson.Single, nil},
	{"+replicas", ", with replicas", redisson.Replicated, func(*redisson.Release) bool { return true }},
	{"+cluster", ", in a cluster", redisson.Cluster, (*redisson.Release).Sharded},
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
func (l *Lock) Keys(name string) []string {
	keys := []string{name}
	if l.ours {
		keys = append(keys, reference.MemoryName(name, "*"), reference.TokenName(name))
		if l.Fair {
			keys = append(keys, reference.QueueName(name), reference.DeadlinesName(name))
		}
		return keys
	}
	if l.rel == nil {
		return keys
	}
	if l.Fair {
		keys = append(keys, redisson.QueueName(name), redisson.DeadlinesName(name))
	}
	if l.rel.Latched() {
		keys = append(keys, redisson.LatchName(name, "*"))
	}
	if l.fenced() {
		keys = append(keys, redisson.TokenName(name))
	}
	return keys
}

func (l *Lock) fenced() bool { return model.Family(l.promises()) == "redisson-fenced" }

// Canonical gives the name under which a lock is registered.
func Canonical(name string) (string, error) {
	l, err := FindLock(name)
	if err != nil {
		return "", err
	}
	return l.Name, nil
}

// client makes the lock's client in a process of a world.
func (l *Lock) client(p *sim.Process, sc *Scenario, opt ClientOptions) lockimpl.Client {
	ro := p.RedisOptions()
	if opt.ResponseTimeout != nil {
		ro.ReadTimeout = *opt.ResponseTimeout
	}
	if opt.PoolSize != nil {
		ro.PoolSize = *opt.PoolSize
	}
	if l.ours {
		return l.referenceClient(p, sc, opt, ro)
	}
	if l.rel == nil {
		if opt.RetryAttempts != nil {
			// Equal bounds: the jitter between them comes from global chance.
			ro.MaxRetries, ro.MinRetryBackoff, ro.MaxRetryBackoff = *opt.RetryAttempts, bareBackoff, bareBackoff
		}
		rdb := p.NewRedis(ro)
		c := lockimpl.NewBareClient(l.bare, rdb, p.Name())
		p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
		return c
	}
	rdb := p.NewRedis(redisson.Options(ro))
	cfg := redisson.Config{
		Release: l.rel, Topology: l.topology, ID: p.Name(), WatchdogTimeout: sc.Watchdog, ResponseTimeout: ro.ReadTimeout,
		Environment: environment(p),
	}
	if opt.FairWait != nil {
		cfg.FairWait = *opt.FairWait
	}
	if opt.RetryAttempts != nil {
		if cfg.RetryAttempts = *opt.RetryAttempts; cfg.RetryAttempts == 0 {
			cfg.RetryAttempts = -1
		}
	}
	c := redisson.NewClient(l.planted.server(rdb), cfg)
	p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
	return l.planted.client(lockClient{c, l.object})
}

// environment is what a process of a world gives to a lock.
func environment(p *sim.Process) lockimpl.Environment {
	return lockimpl.Environment{
		Now:    p.Now,
		NewID:  func(o lockimpl.Owner) string { return p.NewID(int64(o)) },
		Jitter: func(o lockimpl.Owner, max Duration) Duration { return p.Jitter(int64(o), max) },
	}
}

// referenceClient makes a client of our own locks.
func (l *Lock) referenceClient(p *sim.Process, sc *Scenario, opt ClientOptions, ro *redis.Options) lockimpl.Client {
	if opt.RetryAttempts != nil {
		ro.MaxRetries, ro.MinRetryBackoff, ro.MaxRetryBackoff = *opt.RetryAttempts, bareBackoff, bareBackoff
	}
	if opt.PoolSize == nil {
		ro.PoolSize = 64 // as many as Redisson's
	}
	cfg := reference.Config{ID: p.Name(), WatchdogTimeout: max(sc.Watchdog, time.Second), Environment: environment(p)}
	if opt.FairWait != nil {
		cfg.Heartbeat = max(*opt.FairWait, time.Second)
	}
	rdb := p.NewRedis(ro)
	c, err := reference.NewClient(l.planted.server(rdb), cfg)
	if err != nil {
		panic("scenarios: " + err.Error()) // every setting is within its bounds
	}
	p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
	if l.Fair {
		return l.planted.client(fairReference{c})
	}
	return l.planted.client(c)
}

type fairReference struct{ *reference.Client }

func (c fairReference) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.NewFairLock(name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// lockClient makes one kind of lock of a Redisson client.
type lockClient struct {
	*redisson.Client
	object func(*redisson.Client, string) (lockimpl.Lock, error)
}

func (c lockClient) GetLock(name string) (lockimpl.Lock, error) { return c.object(c.Client, name) }

// name says what a command is; locks are the names of the scenario's locks.
func (l *Lock) name(words []string, locks []string) sim.Command {
	switch cmd := strings.ToUpper(words[0]); {
	case cmd == "SET" && l.bare != "" && len(words) >= 3:
		return sim.Command{Script: "acquire", Locks: words[1:2], Owners: ownersOf(words[2:3])}
	case cmd == "DEL" && l.bare != "" && len(words) == 2:
		return sim.Command{Script: "unlock", Locks: words[1:2]}
	case (cmd == "EVAL" || cmd == "EVALSHA") && len(words) > 3:
		c := l.commands[words[1]]
		n, err := strconv.Atoi(words[2])
		if err != nil || n < 1 || 3+n > len(words) {
			return c
		}
		keys, argv := words[3:3+n], words[3+n:]
		c.Locks, c.Owners = l.whose(c.Script, keys, argv, locks)
		return c
	}
	return sim.Command{}
}

// whose finds locks and owners among a script's keys and arguments.
func (l *Lock) whose(script string, keys, argv, locks []string) (of, owners []string) {
	switch {
	case l.ours && script == "force_unlock":
		return keys[:1], nil
	case l.ours:
		return keys[:1], ownersOf(argv[:1])
	case l.rel == nil:
		return keys[:1], ownersOf(argv[len(argv)-1:])
	}
	switch script {
	case "renew":
		for i, k := range keys {
			if i+1 < len(argv) {
				of = append(of, k)
				owners = append(owners, ownersOf(argv[i+1:i+2])...)
			}
		}
		return of, owners
	case "leave":
		for _, name := range locks {
			if redisson.QueueName(name) == keys[0] {
				of = []string{name}
			}
		}
		return of, ownersOf(argv[:1])
	case "force_unlock":
		return keys[:1], nil
	case "unlock":
		return keys[:1], ownersOf(argv[2:3])
	default:
		return keys[:1], ownersOf(argv[1:2])
	}
}

// ownersOf turns CLIENT:OWNER, the client being named after its process, into
// process/thread.
func ownersOf(fields []string) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = ownerName(f)
	}
	return out
}

func ownerName(field string) string {
	if i := strings.LastIndexByte(field, ':'); i >= 0 {
		return field[:i] + "/" + field[i+1:]
	}
	return field
}

func ownerField(thread string) string { return strings.Replace(thread, "/", ":", 1) }

// observe reads a lock's state from the server's keys.
func (l *Lock) observe(keys sim.Keyspace, lock string, epochMs int64) *model.LockState {
	s := &model.LockState{}
	if l.ours {
		return l.observeReference(keys, lock, epochMs)
	}
	if l.rel == nil {
		if holder, ok := keys.String(lock); ok {
			s.Owner, s.Count, s.ExpiresMs = ownerName(holder), 1, keys.ExpiresMs(lock)
		}
		return s
	}
	if l.fenced() {
		token, _ := keys.String(redisson.TokenName(lock))
		s.Token, _ = strconv.ParseInt(token, 10, 64)
	}
	hash := keys.Hash(lock)
	// One field but where a fault put two; the smallest name speaks then.
	for field, count := range hash {
		if name := ownerName(field); s.Owner == "" || cmp.Less(name, s.Owner) {
			s.Owner = name
			s.Count, _ = strconv.Atoi(count)
			s.ExpiresMs = keys.ExpiresMs(lock)
		}
	}
	if !l.Fair {
		return s
	}
	observeQueue(s, keys, redisson.QueueName(lock), redisson.DeadlinesName(lock), epochMs)
	return s
}

func (l *Lock) observeReference(keys sim.Keyspace, lock string, epochMs int64) *model.LockState {
	s := &model.LockState{}
	if hash := keys.Hash(lock); len(hash) > 0 {
		s.Owner, s.ExpiresMs = ownerName(hash["owner"]), keys.ExpiresMs(lock)
		s.Count, _ = strconv.Atoi(hash["count"])
		s.Token, _ = strconv.ParseInt(hash["token"], 10, 64)
	}
	if l.Fair {
		observeQueue(s, keys, reference.QueueName(lock), reference.DeadlinesName(lock), epochMs)
	}
	return s
}

func observeQueue(s *model.LockState, keys sim.Keyspace, queue, deadlines string, epochMs int64) {
	s.Queue = ownersOf(keys.List(queue))
	for member, score := range keys.SortedSet(deadlines) {
		if s.Deadlines == nil {
			s.Deadlines = map[string]int64{}
		}
		s.Deadlines[ownerName(member)] = int64(score) - epochMs
	}
}

// scripts are the texts that the lock sends.
func (l *Lock) scripts() []string {
	switch {
	case l.planted != nil:
		return l.planted.scripts()
	case l.ours:
		return slices.Sorted(maps.Keys(reference.Scripts()))
	case l.rel == nil:
		return slices.Sorted(maps.Keys(lockimpl.BareScripts))
	}
	var texts []string
	for _, s := range l.rel.Scripts() {
		texts = append(texts, s.Text)
	}
	return texts
}

// channel is where a release of the lock is published: to one waiter
// (process/thread), or to "all".
func (l *Lock) channel(lock, to string) string {
	switch {
	case l.ours && to == "all":
		return reference.ChannelName(lock)
	case l.rel == nil:
		return ""
	case to == "all":
		return redisson.ChannelName(lock)
	default:
		return redisson.WaiterChannel(lock, ownerField(to))
	}
}

// params is what the judges must know.
func (l *Lock) params(sc *Scenario) model.Params {
	p := model.Params{
		Lock: l.promises(), Fair: l.Fair, Watchdog: sc.Watchdog, NoWatchdog: l.NoWatchdog, Uncounted: l.Uncounted,
	}
	if l.NoWatchdog {
		p.Watchdog = lockimpl.BareLease
	}
	for _, name := range sc.lockNames() {
		if l.Fair {
			p.Kept = append(p.Kept, redisson.QueueName(name), redisson.DeadlinesName(name))
		}
		if l.fenced() {
			p.Kept = append(p.Kept, redisson.TokenName(name))
		}
	}
	if l.Fair {
		p.FairWait = reference.DefaultHeartbeat
		if l.rel != nil {
			p.FairWait = l.rel.FairWait
		}
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
