package scenarios

import (
	"strings"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// bareKind is a lock that keeps its owner's name in one string: SET, DEL, and
// scripts whose first key is the lock and whose last argument is the owner. A
// lock of that kind that is none of the bare ones embeds it, and has a client
// and scripts of its own (own_lock_test.go).
type bareKind lockimpl.Bare

func (k bareKind) client(p *sim.Process, _ *Scenario, opt ClientOptions) lockimpl.Client {
	ro := redisOptions(p, opt)
	retries(ro, opt)
	rdb := goredis.NewClient(p, ro)
	c := lockimpl.NewBareClient(lockimpl.Bare(k), rdb, p.Name())
	p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
	return c
}

func (bareKind) scripts() map[string]string { return lockimpl.BareScripts }

func (bareKind) command(words []string) sim.Command {
	switch cmd := strings.ToUpper(words[0]); {
	case cmd == "SET" && len(words) >= 3:
		return sim.Command{Script: model.RoleAcquire, Locks: words[1:2], Owners: ownersOf(words[2:3])}
	case cmd == "DEL" && len(words) == 2:
		return sim.Command{Script: model.RoleUnlock, Locks: words[1:2]}
	}
	return sim.Command{}
}

func (bareKind) whose(_ model.Role, keys, argv, _ []string) (of, owners []string) {
	return keys[:1], ownersOf(argv[len(argv)-1:])
}

func (bareKind) observe(keys simredis.Keyspace, lock string, _ int64) *model.LockState {
	s := &model.LockState{}
	if holder, ok := keys.String(lock); ok {
		s.Owner, s.Count, s.ExpiresMs = ownerName(holder), 1, keys.ExpiresMs(lock)
	}
	return s
}

func (bareKind) keys(lock string) []string { return []string{lock} }

func (bareKind) channel(string, string) string { return "" }
