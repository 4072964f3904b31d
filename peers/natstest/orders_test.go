package natstest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"lockstep/locktest"
	"lockstep/peers/natstest"
)

const ttl = 8 * time.Second

func key(lock string) string { return "shop." + lock }

// lock is held by whoever created its key, until the key is deleted or its time to live is over.
type lock struct {
	conn     *natstest.Connection
	key      string
	revision uint64 // of the key that this handle created; 0: none
}

func (l *lock) Lock(ctx context.Context) error {
	for {
		kv, err := l.conn.KeyValue(ctx)
		if err != nil {
			return err
		}
		l.revision, err = kv.Create(ctx, l.key, []byte(rand.Text()))
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		select {
		case <-ctx.Done():
			// Not ErrBusy: Create also says ErrKeyExists of a deleted key, if its second request gets no answer.
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (l *lock) Unlock(ctx context.Context) error {
	if l.revision == 0 {
		return locktest.ErrNotHeld
	}
	kv, err := l.conn.KeyValue(ctx)
	if err != nil {
		return err
	}
	err = kv.Delete(ctx, l.key, jetstream.LastRevision(l.revision))
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return locktest.ErrNotHeld
	}
	if err == nil {
		l.revision = 0
	}
	return err
}

func (l *lock) Token() (uint64, bool) { return l.revision, l.revision > 0 }

type client struct{ *natstest.Client }

func (c client) Lock(name string) (locktest.Lock, error) {
	return &lock{conn: c.ForLock(name), key: key(name)}, nil
}

var bucket = natstest.Bucket{KeyValueConfig: jetstream.KeyValueConfig{Bucket: "locks", TTL: ttl}, OnTime: true}

var orders = locktest.Subject{
	Name: "orders", Servers: natstest.Servers(bucket), State: natstest.Value(key), Lease: ttl,
	Open: func(p *locktest.Process) (locktest.Client, error) { return client{natstest.NewClient(p, "locks")}, nil },
}

func TestOrders(t *testing.T) { locktest.Run(t, orders, locktest.Options{Runs: 100}) }
