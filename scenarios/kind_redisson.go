package scenarios

import (
	"cmp"
	"fmt"
	"strconv"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
	"lockstep/model"
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// redissonKind is one lock of one release of Redisson.
type redissonKind struct {
	rel      *redisson.Release
	topology redisson.Topology
	fair     bool
	fenced   bool
	object   func(*redisson.Client, string) (lockimpl.Lock, error) // makes a lock object
	through  through
}

// redissonLocks are the rows of the registry for each family, release and
// topology.
func redissonLocks() []*Lock {
	var all []*Lock
	for _, f := range families {
		for _, rel := range redisson.Releases {
			if f.has != nil && !f.has(rel) {
				continue
			}
			for _, t := range topologies {
				if t.has != nil && (!f.everywhere || !t.has(rel)) {
					continue
				}
				traits := model.Traits{Fair: f.fair, Fenced: f.fenced, NonReentrant: f.once}
				all = append(all, &Lock{
					Name:   f.name + "@" + rel.Version + t.suffix,
					About:  fmt.Sprintf("Redisson's %s as of %s%s", f.what, rel.Version, t.what),
					Traits: traits, Promises: redissonPromises(traits), rel: rel, topology: t.topology,
					timing: func(watchdog Duration) model.Timing { return redissonTiming(rel, watchdog) },
					kind:   redissonKind{rel: rel, topology: t.topology, fair: f.fair, fenced: f.fenced, object: f.object},
				})
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
	fenced     bool
	everywhere bool // also in the topologies that are more than one server
	has        func(*redisson.Release) bool
	object     func(*redisson.Client, string) (lockimpl.Lock, error)
}{
	{name: "redisson", what: "lock", everywhere: true, object: (*redisson.Client).GetLock},
	{name: "redisson-fair", what: "fair lock", fair: true, everywhere: true, object: (*redisson.Client).GetFairLock},
	{name: "redisson-fenced", what: "fenced lock", fenced: true, has: func(r *redisson.Release) bool { return r.Fenced != nil },
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

func (k redissonKind) client(p *sim.Process, sc *Scenario, opt ClientOptions) lockimpl.Client {
	ro := redisOptions(p, opt)
	rdb := goredis.NewClient(p, redisson.Options(ro))
	cfg := redisson.Config{
		Release: k.rel, Topology: k.topology, ID: p.Name(), WatchdogTimeout: sc.Watchdog, ResponseTimeout: ro.ReadTimeout,
		Environment: environment(p),
	}
	if opt.FairWait != nil {
		cfg.FairWait = *opt.FairWait
	}
	if opt.RetryAttempts != nil {
		cfg.RetryAttempts = cmp.Or(*opt.RetryAttempts, -1) // 0 is the release's own number
	}
	c := redisson.NewClient(k.through.on(rdb), cfg)
	p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
	return lockClient{c, k.object}
}

// lockClient makes one kind of lock of a Redisson client.
type lockClient struct {
	*redisson.Client
	object func(*redisson.Client, string) (lockimpl.Lock, error)
}

func (c lockClient) GetLock(name string) (lockimpl.Lock, error) { return c.object(c.Client, name) }

func (k redissonKind) scripts() map[string]string {
	texts := map[string]string{}
	for _, s := range k.rel.Scripts() {
		texts[s.Text] = string(s.Kind)
	}
	return texts
}

func (redissonKind) command([]string) sim.Command { return sim.Command{} }

func (redissonKind) whose(role model.Role, keys, argv, locks []string) (of, owners []string) {
	switch role {
	case model.RoleRenew:
		for i, k := range keys {
			if i+1 < len(argv) {
				of = append(of, k)
				owners = append(owners, ownersOf(argv[i+1:i+2])...)
			}
		}
		return of, owners
	case model.RoleLeave:
		for _, name := range locks {
			if redisson.QueueName(name) == keys[0] {
				of = []string{name}
			}
		}
		return of, ownersOf(argv[:1])
	case model.RoleForceUnlock:
		return keys[:1], nil
	case model.RoleUnlock:
		return keys[:1], ownersOf(argv[2:3])
	default:
		return keys[:1], ownersOf(argv[1:2])
	}
}

func (k redissonKind) observe(keys simredis.Keyspace, lock string, epochMs int64) *model.LockState {
	s := &model.LockState{}
	if k.fenced {
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
	if k.fair {
		observeQueue(s, keys, redisson.QueueName(lock), redisson.DeadlinesName(lock), epochMs)
	}
	return s
}

func (k redissonKind) keys(lock string) []string {
	keys := []string{lock}
	if k.fair {
		keys = append(keys, redisson.QueueName(lock), redisson.DeadlinesName(lock))
	}
	if k.rel.Latched() {
		keys = append(keys, redisson.LatchName(lock, "*"))
	}
	if k.fenced {
		keys = append(keys, redisson.TokenName(lock))
	}
	return keys
}

func (redissonKind) channel(lock, to string) string {
	if to == "all" {
		return redisson.ChannelName(lock)
	}
	return redisson.WaiterChannel(lock, ownerField(to))
}
