package retold

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"lockstep/locktest"
	"lockstep/peers/etcdtest"
)

// Elector is the election of github.com/go-co-op/gocron-etcd-elector, told as a lock: an elector for each Lock, which
// waits until it leads. gocron asks IsLeader before each job.
var Elector = locktest.Subject{
	Name: "gocron-etcd-elector", About: "gocron-etcd-elector, told again: an elector for each Lock, which campaigns and observes the leader",
	Servers: etcdtest.Servers(), Lease: ttl, Renewed: true, RenewEvery: etcdtest.RenewEvery(ttl),
	State: etcdtest.Oldest(func(lock string) string { return lock + "/" }),
	Open: func(p *locktest.Process) (locktest.Client, error) {
		c, err := etcdtest.NewClient(p)
		return electorClient{c}, err
	},
	Promises: locktest.Promises{NotTidy: "an elector that has lost the election stays a candidate until it is stopped"},
}

// elector is an elector of the library.
type elector struct {
	ctx    context.Context
	c      *clientv3.Client
	id     string
	leader atomic.Bool
}

// start campaigns and observes until the context ends. If its session ends, it begins anew; it stops leading when it
// returns.
func (e *elector) start(path string) error {
	s, err := concurrency.NewSession(e.c, concurrency.WithTTL(ttlSeconds))
	if err != nil {
		return err
	}
	defer s.Close()
	election := concurrency.NewElection(s, path)
	go func() {
		for e.ctx.Err() == nil {
			if election.Campaign(e.ctx, e.id) != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	defer e.leader.Store(false)
	observed := election.Observe(e.ctx)
	for e.ctx.Err() == nil {
		select {
		case <-s.Done():
			return e.start(path)
		case r, ok := <-observed:
			if !ok {
				observed = nil // the library reads the closed channel again and again
				continue
			}
			for _, kv := range r.Kvs {
				e.leader.Store(string(kv.Value) == e.id)
			}
		case <-e.ctx.Done():
		}
	}
	return nil
}

type electorClient struct{ *etcdtest.Client }

func (c electorClient) Lock(name string) (locktest.Lock, error) {
	return &electorLock{c: c.ForLock(name), name: name}, nil
}

type electorLock struct {
	c    *clientv3.Client
	name string
	stop func()        // ends the elector, and waits for its end; nil: there is none
	lost chan struct{} // closed when the elector does not lead any more
}

func (l *electorLock) Lock(ctx context.Context) error {
	if l.stop != nil {
		l.stop()
	}
	run, cancel := context.WithCancel(l.c.Ctx())
	e, over := &elector{ctx: run, c: l.c, id: rand.Text()}, make(chan struct{})
	go func() {
		defer close(over)
		_ = e.start(l.name)
	}()
	l.stop = func() { cancel(); <-over; l.stop = nil }
	for !e.leader.Load() {
		select {
		case <-ctx.Done():
			l.stop()
			return ctx.Err()
		case <-over:
			l.stop()
			return errors.New("the elector has ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.lost = make(chan struct{})
	go func(lost chan struct{}) {
		for e.leader.Load() {
			time.Sleep(50 * time.Millisecond)
		}
		close(lost)
	}(l.lost)
	return nil
}

// Unlock ends the elector, which does not say whether its session was closed.
func (l *electorLock) Unlock(context.Context) error {
	if l.stop == nil {
		return locktest.ErrNotHeld
	}
	l.stop()
	return errors.New("the elector does not say what became of its session")
}

// Lost implements locktest.Watched.
func (l *electorLock) Lost() <-chan struct{} { return l.lost }
