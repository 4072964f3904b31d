package etcdtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"

	"lockstep/locktest"
	"lockstep/peers/etcdtest"
)

// TestTheServiceOfLocks judges the locks that etcd serves itself. Each hold has a lease of its own.
func TestTheServiceOfLocks(t *testing.T) {
	locktest.Run(t, locktest.Subject{
		Name:       "etcd-v3lock",
		Servers:    etcdtest.Servers(),
		Open:       openServed,
		State:      etcdtest.Oldest(func(lock string) string { return lock + "/" }),
		Lease:      ttl,
		Renewed:    true,
		RenewEvery: etcdtest.RenewEvery(ttl),
		Fair:       true,
	}, locktest.Options{Runs: 100, Accept: []string{
		// An operator deletes the key of a hold, of which the lease goes on, and the service does not say so.
		"story.hold-of-another-thread.linearizable", "story.queue-that-is-deleted.linearizable", "linearizable.bug.unlock.delete-of-a-key",
	}})
}

type servedClient struct{ *etcdtest.Client }

func openServed(p *locktest.Process) (locktest.Client, error) {
	c, err := etcdtest.NewClient(p)
	return servedClient{c}, err
}

func (c servedClient) Lock(name string) (locktest.Lock, error) {
	return &served{c: c.ForLock(name), serve: v3lockpb.NewLockClient(c.ActiveConnection()), name: name}, nil
}

// served is a lock of the service v3lock.
type served struct {
	c     *clientv3.Client
	serve v3lockpb.LockClient
	name  string
	lease clientv3.LeaseID
	stop  context.CancelFunc
	key   []byte // of the hold; nil: none
}

func (l *served) Lock(ctx context.Context) error {
	granted, err := l.c.Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return err
	}
	living, stop := context.WithCancel(l.c.Ctx())
	alive, err := l.c.KeepAlive(living, granted.ID)
	if err != nil {
		stop()
		return err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range alive {
		}
	}()
	l.lease, l.stop = granted.ID, func() { stop(); <-over }
	r, err := l.serve.Lock(ctx, &v3lockpb.LockRequest{Name: []byte(l.name), Lease: int64(granted.ID)})
	if err != nil {
		stop()
		clean, cancel := context.WithTimeout(l.c.Ctx(), time.Second)
		defer cancel()
		_, _ = l.c.Revoke(clean, granted.ID) // it also ends by itself
		return err
	}
	l.key = r.Key
	return nil
}

// Unlock ends the hold. The service does not say whether there was one; the end of the lease does.
func (l *served) Unlock(ctx context.Context) error {
	if l.key == nil {
		return locktest.ErrNotHeld
	}
	l.stop()
	if _, err := l.serve.Unlock(ctx, &v3lockpb.UnlockRequest{Key: l.key}); err != nil {
		return err
	}
	_, err := l.c.Revoke(ctx, l.lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		err = locktest.ErrNotHeld
	}
	if err == nil || errors.Is(err, locktest.ErrNotHeld) {
		l.key = nil
	}
	return err
}
