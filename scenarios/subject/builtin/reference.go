package builtin

import (
	"context"
	"errors"
	"strconv"
	"time"

	"lockstep/lockimpl"
	"lockstep/lockimpl/reference"
	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// A referenceLock is a lock of package lockimpl/reference.
type referenceLock struct {
	fair    bool
	watched bool // its owners watch the contexts of their holds
	handles bool // it is taken and given up by handles, whose contexts are watched
	through through
}

func (l referenceLock) behind(t through) original {
	l.through = t
	return l
}

func (l referenceLock) subject() *subject.Subject {
	scripts := map[string]model.Role{}
	for text, role := range reference.Scripts() {
		scripts[text] = model.Role(role)
	}
	s := &subject.Subject{
		Name: "reference", About: "ours: requests that happen once, server time, fencing tokens",
		Advice: "Take it on one Redis server where a lost reply must not cost a level or a lease, and check its token at what the lock guards. " +
			"Do not take it where a failover may lose writes and nobody checks the token.",
		Traits: model.Traits{Fair: l.fair, Deadlines: l.fair, Fenced: true, Watched: l.watched || l.handles, Uncounted: l.handles, PerGrant: l.handles},
		Times: func(watchdog time.Duration) model.Timing {
			return model.Timing{Watchdog: watchdog, RenewalPeriod: watchdog / 3, FairWait: reference.DefaultHeartbeat, Memory: reference.Memory}
		},
		Open:          l.open,
		Servers:       &onredis.Protocol{Scripts: scripts, Parties: l.parties, State: l.state, Learned: l.handles},
		Keys:          l.keys,
		Channel:       l.channel,
		Token:         tokenOf,
		Interruptible: true, Control: true, Setups: []string{onredis.Sentinel, onredis.Cluster},
		Campaign: subject.Campaign{ShortWaits: true, NoReentry: true, Commands: plainCommands, Channels: channels},
	}
	if l.fair {
		s.Name, s.About = "reference-fair", "ours, serving waiters in the order of their first tries"
		s.Advice += " The fair lock serves waiters in order, and each waiter sends a heartbeat while it waits."
	}
	if l.watched {
		// It is the same lock, which tables show once.
		s.Name, s.About, s.Unlisted = "reference-watched", "ours, with owners that watch the contexts of their holds", true
	}
	if l.handles {
		s.Name, s.About, s.Unlisted = s.Name+"-handle", s.About+", by handles", true
	} else if !l.watched {
		s.Handles = s.Name + "-handle"
	}
	s.Promises = referencePromises(s.Traits)
	return s
}

// tokenOf returns the token of a hold. A lock behind which a bug is planted may tell none.
func tokenOf(l lockimpl.Lock, o lockimpl.Owner) (int64, error) {
	fenced, ok := l.(interface {
		Token(o lockimpl.Owner) (int64, error)
	})
	if !ok {
		return 0, lockimpl.ErrNotHeld
	}
	return fenced.Token(o)
}

func (l referenceLock) open(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
	ro := onredis.Options(p, o)
	onredis.Retries(ro, o)
	if o.PoolSize == nil {
		ro.PoolSize = 64 // as Redisson has
	}
	cfg := reference.Config{ID: p.Name(), WatchdogTimeout: max(o.Watchdog, time.Second), Environment: subject.Environment(p)}
	if o.FairWait != nil {
		cfg.Heartbeat = max(*o.FairWait, time.Second)
	}
	rdb := onredis.NewClient(p, o, ro)
	c, err := reference.NewClient(l.through.on(rdb), cfg)
	if err != nil {
		return nil, err
	}
	p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
	switch {
	case l.handles:
		open := c.NewLock
		if l.fair {
			open = c.NewFairLock
		}
		return newHandles(c, func(name string) (byHandles, error) { return referenceByHandles(open, name) }), nil
	case l.fair:
		return fairReference{c}, nil
	case l.watched:
		return watchedReference{c}, nil
	}
	return c, nil
}

// referenceByHandles opens a lock of package reference, which has handles of its own.
func referenceByHandles(open func(string) (*reference.Lock, error), name string) (byHandles, error) {
	l, err := open(name)
	if err != nil {
		return byHandles{}, err
	}
	return byHandles{
		Lock: l,
		acquire: func(ctx context.Context, _ lockimpl.Owner, lease time.Duration) (hold, error) {
			return l.Acquire(ctx, reference.WithLease(lease))
		},
		try: func(ctx context.Context, _ lockimpl.Owner, lease time.Duration) (hold, error) {
			return l.TryAcquire(ctx, reference.WithLease(lease))
		},
	}, nil
}

type fairReference struct{ *reference.Client }

func (c fairReference) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.NewFairLock(name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

type watchedReference struct{ *reference.Client }

func (c watchedReference) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.NewLock(name)
	if err != nil {
		return nil, err
	}
	return watchedLock{l}, nil
}

// A watchedLock tells its owners of the end of a hold by the context of the hold.
type watchedLock struct{ held }

// held is a lock of package reference. Its name differs from Lock, which is a method.
type held interface {
	lockimpl.Lock
	HoldContext(context.Context, lockimpl.Owner) (context.Context, error)
	Token(lockimpl.Owner) (int64, error)
}

// Lost implements lockimpl.Watched. The end of a client, or of the last level, is no loss.
func (l watchedLock) Lost(o lockimpl.Owner) <-chan struct{} {
	ctx, err := l.HoldContext(context.Background(), o)
	if err != nil { // it was lost since the grant
		lost := make(chan struct{})
		close(lost)
		return lost
	}
	return lossOf(ctx)
}

// lossOf returns a channel that is closed when the context of a hold ends because the hold is lost.
func lossOf(ctx context.Context) <-chan struct{} {
	lost := make(chan struct{})
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), lockimpl.ErrHoldLost) {
			close(lost)
		}
	})
	return lost
}

func (referenceLock) parties(role model.Role, keys, argv, _ []string) (of, owners []string) {
	if role == model.RoleForceUnlock {
		return keys[:1], nil
	}
	return keys[:1], onredis.Owners(argv[:1])
}

func (l referenceLock) state(keys simredis.Keyspace, lock string) *model.LockState {
	s, owner := &model.LockState{}, onredis.Owner
	if l.handles {
		owner = func(value string) string { return value }
	}
	if hash := keys.Hash(lock); len(hash) > 0 {
		s.Owner, s.ExpiresMs = owner(hash["owner"]), keys.ExpiresMs(lock)
		s.Count, _ = strconv.Atoi(hash["count"])
		s.Token, _ = strconv.ParseInt(hash["token"], 10, 64)
	}
	if l.fair {
		onredis.ReadQueue(s, keys, reference.QueueName(lock), reference.DeadlinesName(lock), owner)
	}
	return s
}

func (l referenceLock) keys(lock string) []string {
	keys := []string{lock, reference.MemoryName(lock, "*"), reference.TokenName(lock)}
	if l.fair {
		keys = append(keys, reference.QueueName(lock), reference.DeadlinesName(lock))
	}
	return keys
}

func (referenceLock) channel(lock, to string) string {
	if to == "all" {
		return reference.ChannelName(lock)
	}
	return ""
}
