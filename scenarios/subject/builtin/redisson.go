package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"lockstep/lockimpl"
	lockhandle "lockstep/lockimpl/handle"
	"lockstep/lockimpl/redisson"
	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// A redissonLock is a kind of lock of one release of Redisson in one topology.
type redissonLock struct {
	*family
	topology topology
	rel      *redisson.Release
	handles  bool // it is taken and given up by handles, whose contexts are watched
	through  through
}

// redissonLocks returns the locks of each family, release and topology.
func redissonLocks() []redissonLock {
	var all []redissonLock
	for _, f := range families {
		for _, rel := range redisson.Releases {
			if f.has != nil && !f.has(rel) {
				continue
			}
			for _, t := range topologies {
				if t.has != nil && (!f.everywhere || !t.has(rel)) {
					continue
				}
				all = append(all, redissonLock{family: f, topology: t, rel: rel})
			}
		}
	}
	return all
}

// WithRelease returns the named lock of Redisson with a changed release. It calls change
// with a copy of the lock's release.
func WithRelease(name string, change func(*redisson.Release)) (*subject.Subject, error) {
	l, ok := originals[name].(redissonLock)
	if !ok {
		return nil, fmt.Errorf("%q is no lock of Redisson's", name)
	}
	return l.withChange(change).subject(), nil
}

func (l redissonLock) withChange(change func(*redisson.Release)) redissonLock {
	rel := *l.rel
	change(&rel)
	l.rel = &rel
	return l
}

func (l redissonLock) behind(t through) original {
	l.through = t
	return l
}

func (l redissonLock) replicated() bool { return l.topology.kind != redisson.Single }

// commands returns the commands that a client of the lock sends.
func (l redissonLock) commands() []string {
	all := []string{"EVAL", "EVALSHA", "SUBSCRIBE", "UNSUBSCRIBE", "DEL"}
	if l.replicated() {
		all = append(all, "SSUBSCRIBE", "WAIT", "INFO")
	}
	return all
}

func (l redissonLock) subject() *subject.Subject {
	scripts := map[string]model.Role{}
	for _, s := range l.rel.Scripts() {
		scripts[s.Text] = model.Role(s.Kind)
	}
	traits := l.traits
	if l.handles {
		traits.Watched, traits.Uncounted, traits.PerGrant = true, true, true
	}
	s := &subject.Subject{
		Name:     l.name + "@" + l.rel.Version + l.topology.suffix,
		About:    fmt.Sprintf("Redisson's %s as of %s%s", l.what, l.rel.Version, l.topology.what),
		Advice:   l.advice,
		Traits:   traits,
		Promises: redissonPromises(traits),
		Times:    l.times,
		Open:     l.open,
		Servers:  &onredis.Protocol{Scripts: scripts, Parties: l.parties, State: l.state},
		Keys:     l.keys, Kept: l.kept, Channel: l.channel,
		Library: "redisson", Release: l.rel.Version, Replicated: l.replicated(), Setups: l.topology.setups,
		// Releases from 3.11.0 to 3.36.0 send again. So does every client that sends WAIT
		// after the script (issue 7367).
		SendsAgain: slices.Contains(l.rel.Resend, redisson.KindAcquire) || l.replicated() && l.rel.Sync != redisson.SyncNone,
		Replies:    true,
		Campaign:   subject.Campaign{Commands: l.commands(), Channels: channels},
	}
	if l.handles { // it is the same lock, which tables show once
		s.Name, s.About, s.Unlisted = l.name+"-handle@"+l.rel.Version, s.About+", by handles", true
		s.Campaign.NoReentry = true
	}
	return s
}

// times returns the timing in a world with that lockWatchdogTimeout.
func (l redissonLock) times(watchdog time.Duration) model.Timing {
	return model.Timing{
		Watchdog: watchdog, RenewalPeriod: watchdog / 3, FairWait: l.rel.FairWait,
		ResponseTimeout: redisson.ResponseTimeout,
		Resend:          redisson.SubscriptionTimeout, // the longest of the client's waits
		GiveUp:          25 * time.Second,             // the resends of a renewal take 22 s
	}
}

func (l redissonLock) open(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
	ro := onredis.Options(p, o)
	rdb := onredis.NewClient(p, o, redisson.Options(ro))
	cfg := redisson.Config{
		Release: l.rel, Topology: l.topology.kind, ID: p.Name(), WatchdogTimeout: o.Watchdog, ResponseTimeout: ro.ReadTimeout,
		TimerWheel: true, WatchHolds: l.handles, Environment: subject.Environment(p),
	}
	if o.FairWait != nil {
		cfg.FairWait = *o.FairWait
	}
	if o.RetryAttempts != nil {
		cfg.RetryAttempts = cmp.Or(*o.RetryAttempts, -1) // in cfg 0 means the release's own number
	}
	c := redisson.NewClient(l.through.on(rdb), cfg)
	p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
	if l.handles {
		taken := &atomic.Int64{}
		return newHandles(c, func(name string) (byHandles, error) { return redissonByHandles(l.object, c, name, taken) }), nil
	}
	return lockClient{c, l.object}, nil
}

// redissonByHandles opens a lock of Redisson's to be taken by handles.
func redissonByHandles(object func(*redisson.Client, string) (lockimpl.Lock, error), c *redisson.Client, name string, taken *atomic.Int64) (byHandles, error) {
	l, err := object(c, name)
	if err != nil {
		return byHandles{}, err
	}
	of := func(o lockimpl.Owner) (*lockhandle.Lock, error) {
		handled, ok := l.(lockimpl.Handled)
		if !ok {
			return nil, fmt.Errorf("a %T is not taken by handles", l)
		}
		return lockhandle.New(ofThread{handled, o, taken})
	}
	return byHandles{
		Lock: l,
		acquire: func(ctx context.Context, o lockimpl.Owner, lease time.Duration) (hold, error) {
			l, err := of(o)
			if err != nil {
				return nil, err
			}
			return l.Acquire(ctx, lockhandle.WithLease(lease))
		},
		try: func(ctx context.Context, o lockimpl.Owner, lease time.Duration) (hold, error) {
			l, err := of(o)
			if err != nil {
				return nil, err
			}
			return l.TryAcquire(ctx, lockhandle.WithLease(lease))
		},
	}, nil
}

// ofThread is a lock that derives the numbers of new owners from the thread. The watchdog of a client
// renews the holds of several threads at once, so a command may name owners of other threads than its
// sender.
type ofThread struct {
	lockimpl.Handled
	thread lockimpl.Owner
	taken  *atomic.Int64
}

// ownersOfThread is the distance between two owners of a thread. No process has as many threads.
const ownersOfThread = 1_000_000

// NewOwner implements lockimpl.Handled.
func (l ofThread) NewOwner() lockimpl.Owner {
	return -(l.thread + lockimpl.Owner(l.taken.Add(1)*ownersOfThread))
}

// A family is one of Redisson's kinds of locks.
type family struct {
	name, what string
	advice     string // of its newest release
	traits     model.Traits
	handled    bool                         // its newest release is also played by handles
	everywhere bool                         // also in the topologies of more than one server
	has        func(*redisson.Release) bool // nil: all
	object     func(*redisson.Client, string) (lockimpl.Lock, error)
}

var families = []*family{
	{name: "redisson", what: "lock", handled: true, everywhere: true,
		advice: "Take it in Java where waiters are to be woken and a live holder is to keep the lock for as long as it works. " +
			"Do not mix holds with and without a lease on one lock object (issue 4818), and do not rely on it past a pause that is longer than the lease.",
		object: (*redisson.Client).GetLock},
	{name: "redisson-fair", what: "fair lock", handled: true,
		advice: "Take it where waiters should be served in order, though some schedules break it even without a fault, and where clients seldom die. " +
			"Do not take it where a dead waiter may not hold up the others: each one costs them its own wait (issue 4595).",
		traits: model.Traits{Fair: true, Deadlines: true}, everywhere: true, object: (*redisson.Client).GetFairLock},
	{name: "redisson-fenced", what: "fenced lock",
		advice: "Take it where the resource that the lock guards can refuse an old token: a holder that outlasts its lease does no harm then. " +
			"Without such a resource it is the plain lock at the same price.",
		traits: model.Traits{Fenced: true}, has: func(r *redisson.Release) bool { return r.Fenced != nil },
		object: func(c *redisson.Client, name string) (lockimpl.Lock, error) { return c.GetFencedLock(name) }},
	{name: "redisson-nonreentrant", what: "non-reentrant lock",
		advice: "Take it where a thread that asks for its own lock again is a mistake that should be an error. Otherwise it is the plain lock.",
		traits: model.Traits{NonReentrant: true}, has: hasNonReentrant,
		object: (*redisson.Client).GetNonReentrantLock},
	{name: "redisson-nonreentrant-fair", what: "non-reentrant fair lock",
		advice: "Take it where the fair lock fits and a thread that asks for its own lock again is to get an error.",
		traits: model.Traits{Fair: true, Deadlines: true, NonReentrant: true}, has: hasNonReentrant,
		object: (*redisson.Client).GetNonReentrantFairLock},
}

func hasNonReentrant(r *redisson.Release) bool { return r.NonReentrant != nil }

// A topology is a setup of servers that a lock is configured for. Its suffix ends the
// lock's name.
type topology struct {
	suffix, what string
	kind         redisson.Topology
	has          func(*redisson.Release) bool // nil: every release of every family has it
	setups       []string                     // of real servers
}

var topologies = []topology{
	{"", "", redisson.Single, nil, nil},
	{"+replicas", ", with replicas", redisson.Replicated, func(*redisson.Release) bool { return true }, []string{onredis.Sentinel}},
	{"+cluster", ", in a cluster", redisson.Cluster, (*redisson.Release).Sharded, []string{onredis.Cluster}},
}

// A lockClient is a Redisson client that makes locks of one kind.
type lockClient struct {
	*redisson.Client
	object func(*redisson.Client, string) (lockimpl.Lock, error)
}

func (c lockClient) GetLock(name string) (lockimpl.Lock, error) { return c.object(c.Client, name) }

// owner returns the function that names the process/thread of a CLIENT:OWNER.
func (l redissonLock) owner() func(field string) string {
	if l.handles {
		return func(field string) string { return onredis.ThreadOf(field, ownersOfThread) }
	}
	return onredis.Owner
}

func (l redissonLock) parties(role model.Role, keys, argv, locks []string) (of, owners []string) {
	owner := l.owner()
	switch role {
	case model.RoleRenew:
		for i, k := range keys {
			if i+1 < len(argv) {
				of = append(of, k)
				owners = append(owners, owner(argv[i+1]))
			}
		}
		return of, owners
	case model.RoleLeave:
		for _, name := range locks {
			if redisson.QueueName(name) == keys[0] {
				of = []string{name}
			}
		}
		return of, []string{owner(argv[0])}
	case model.RoleForceUnlock:
		return keys[:1], nil
	case model.RoleUnlock:
		return keys[:1], []string{owner(argv[2])}
	case "":
		if len(argv) < 2 {
			return nil, nil // the library asks the server by a script what it can do
		}
	}
	return keys[:1], []string{owner(argv[1])}
}

func (l redissonLock) state(keys simredis.Keyspace, lock string) *model.LockState {
	s := &model.LockState{}
	if l.traits.Fenced {
		token, _ := keys.String(redisson.TokenName(lock))
		s.Token, _ = strconv.ParseInt(token, 10, 64)
	}
	hash := keys.Hash(lock)
	owner := l.owner()
	// The hash has one field, unless a fault has led to several. Then the smallest name is
	// the owner.
	for field, count := range hash {
		name := owner(field)
		if s.Owner == "" || cmp.Less(name, s.Owner) {
			s.Owner = name
			s.Count, _ = strconv.Atoi(count)
			s.ExpiresMs = keys.ExpiresMs(lock)
		}
	}
	if l.traits.Fair {
		onredis.ReadQueue(s, keys, redisson.QueueName(lock), redisson.DeadlinesName(lock), owner)
	}
	return s
}

func (l redissonLock) keys(lock string) []string {
	keys := []string{lock}
	if l.traits.Fair {
		keys = append(keys, redisson.QueueName(lock), redisson.DeadlinesName(lock))
	}
	if l.rel.Latched() {
		keys = append(keys, redisson.LatchName(lock, "*"))
	}
	if l.traits.Fenced {
		keys = append(keys, redisson.TokenName(lock))
	}
	return keys
}

// kept returns the keys that may remain after their use: the two keys of the queue, whose
// entries are judged one by one, and the counter of tokens.
func (l redissonLock) kept(lock string) []string {
	var keys []string
	if l.traits.Fair {
		keys = append(keys, redisson.QueueName(lock), redisson.DeadlinesName(lock))
	}
	if l.traits.Fenced {
		keys = append(keys, redisson.TokenName(lock))
	}
	return keys
}

func (redissonLock) channel(lock, to string) string {
	if to == "all" {
		return redisson.ChannelName(lock)
	}
	return redisson.WaiterChannel(lock, onredis.OwnerField(to))
}
