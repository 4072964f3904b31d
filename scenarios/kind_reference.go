package scenarios

import (
	"strconv"
	"time"

	"lockstep/lockimpl"
	"lockstep/lockimpl/reference"
	"lockstep/model"
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// referenceKind is a lock of our own.
type referenceKind struct {
	fair    bool
	through through
}

func (k referenceKind) client(p *sim.Process, sc *Scenario, opt ClientOptions) lockimpl.Client {
	ro := redisOptions(p, opt)
	retries(ro, opt)
	if opt.PoolSize == nil {
		ro.PoolSize = 64 // as many as Redisson's
	}
	cfg := reference.Config{ID: p.Name(), WatchdogTimeout: max(sc.Watchdog, time.Second), Environment: environment(p)}
	if opt.FairWait != nil {
		cfg.Heartbeat = max(*opt.FairWait, time.Second)
	}
	rdb := goredis.NewClient(p, ro)
	c, err := reference.NewClient(k.through.on(rdb), cfg)
	if err != nil {
		panic("scenarios: " + err.Error()) // every setting is within its bounds
	}
	p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
	if k.fair {
		return fairReference{c}
	}
	return c
}

type fairReference struct{ *reference.Client }

func (c fairReference) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.NewFairLock(name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (referenceKind) scripts() map[string]string { return reference.Scripts() }

func (referenceKind) command([]string) sim.Command { return sim.Command{} }

func (referenceKind) whose(role model.Role, keys, argv, _ []string) (of, owners []string) {
	if role == model.RoleForceUnlock {
		return keys[:1], nil
	}
	return keys[:1], ownersOf(argv[:1])
}

func (k referenceKind) observe(keys simredis.Keyspace, lock string, epochMs int64) *model.LockState {
	s := &model.LockState{}
	if hash := keys.Hash(lock); len(hash) > 0 {
		s.Owner, s.ExpiresMs = ownerName(hash["owner"]), keys.ExpiresMs(lock)
		s.Count, _ = strconv.Atoi(hash["count"])
		s.Token, _ = strconv.ParseInt(hash["token"], 10, 64)
	}
	if k.fair {
		observeQueue(s, keys, reference.QueueName(lock), reference.DeadlinesName(lock), epochMs)
	}
	return s
}

func (k referenceKind) keys(lock string) []string {
	keys := []string{lock, reference.MemoryName(lock, "*"), reference.TokenName(lock)}
	if k.fair {
		keys = append(keys, reference.QueueName(lock), reference.DeadlinesName(lock))
	}
	return keys
}

func (referenceKind) channel(lock, to string) string {
	if to == "all" {
		return reference.ChannelName(lock)
	}
	return ""
}
