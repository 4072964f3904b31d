package etcdtest_test

import (
	"context"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"lockstep/locktest"
	"lockstep/peers/etcdtest"
)

const ttl = 8 * time.Second

// lock is held by whoever created its key, until the lease of the key is over.
type lock struct {
	c        *clientv3.Client
	name     string
	lease    clientv3.LeaseID
	revision int64 // of the key that this handle created; 0: none
	stop     context.CancelFunc
}

func (l *lock) Lock(ctx context.Context) error {
	for {
		taken, err := l.try(ctx)
		if err == nil && taken > 0 {
			err = l.wait(ctx, taken+1)
		}
		if err != nil || taken == 0 {
			return err
		}
	}
}

// try takes the lock. If another has it, try returns a revision at which the other's key was there.
func (l *lock) try(ctx context.Context) (taken int64, err error) {
	granted, err := l.c.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return 0, err
	}
	free := clientv3.Compare(clientv3.CreateRevision(l.name), "=", 0)
	r, err := l.c.Txn(ctx).If(free).Then(clientv3.OpPut(l.name, "", clientv3.WithLease(granted.ID))).Commit()
	if err == nil && r.Succeeded {
		l.lease, l.revision = granted.ID, r.Header.Revision
		return 0, l.renew()
	}
	// If no answer came, the key may exist. It ends with its lease.
	clean, cancel := context.WithTimeout(l.c.Ctx(), time.Second)
	defer cancel()
	_, _ = l.c.Revoke(clean, granted.ID)
	if err != nil {
		return 0, err
	}
	return r.Header.Revision, nil
}

// wait returns when the key is deleted.
func (l *lock) wait(ctx context.Context, from int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for r := range l.c.Watch(ctx, l.name, clientv3.WithRev(from), clientv3.WithFilterPut()) {
		if len(r.Events) > 0 || r.Err() != nil {
			return r.Err()
		}
	}
	return ctx.Err()
}

// renew renews the lease until stop is called or the client is closed.
func (l *lock) renew() error {
	ctx, stop := context.WithCancel(l.c.Ctx())
	alive, err := l.c.KeepAlive(ctx, l.lease)
	if err != nil {
		stop()
		return err
	}
	over := make(chan struct{})
	l.stop = func() { stop(); <-over }
	go func() {
		defer close(over)
		for range alive {
		}
	}()
	return nil
}

func (l *lock) Unlock(ctx context.Context) error {
	if l.revision == 0 {
		return locktest.ErrNotHeld
	}
	l.stop()
	mine := clientv3.Compare(clientv3.CreateRevision(l.name), "=", l.revision)
	r, err := l.c.Txn(ctx).If(mine).Then(clientv3.OpDelete(l.name)).Commit()
	if err != nil {
		return err
	}
	l.revision = 0
	_, _ = l.c.Revoke(ctx, l.lease) // it also ends by itself
	if !r.Succeeded {
		return locktest.ErrNotHeld
	}
	return nil
}

func (l *lock) Token() (uint64, bool) { return uint64(l.revision), l.revision > 0 }

type client struct{ *etcdtest.Client }

func (c client) Lock(name string) (locktest.Lock, error) {
	return &lock{c: c.ForLock(name), name: name}, nil
}

var orders = locktest.Subject{
	Name: "orders", Servers: etcdtest.Servers(), State: etcdtest.Key(nil),
	Lease: ttl, Renewed: true, RenewEvery: etcdtest.RenewEvery(ttl), Recovery: etcdtest.Recovery, Reconnect: etcdtest.Reconnect,
	Open: func(p *locktest.Process) (locktest.Client, error) {
		c, err := etcdtest.NewClient(p)
		if err != nil {
			return nil, err
		}
		return client{c}, nil
	},
}

func TestOrders(t *testing.T) { locktest.Run(t, orders, locktest.Options{Runs: 30}) }
