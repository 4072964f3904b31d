package natstest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/natstest"
)

// renewed is a lock whose renewals write one word over the value of the hold.
type renewed struct {
	*lock
	*drawntest.Renewals
	lasting context.Context
	blind   bool // it does not compare the revision
	unclear bool // a renewal had no answer
}

func (l *renewed) Lock(ctx context.Context) error {
	for {
		kv, err := l.conn.KeyValue(ctx)
		if err != nil {
			return err
		}
		sent := time.Now()
		l.revision, err = kv.Create(ctx, l.key, []byte(rand.Text()))
		if err == nil {
			l.unclear = false
			l.Renewals = drawntest.Renew(ttl/4, ttl, sent, l.renew)
			return nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (l *renewed) renew(until time.Time) bool {
	ctx, cancel := context.WithTimeout(l.lasting, min(ttl/4, time.Until(until)))
	defer cancel()
	kv, err := l.conn.KeyValue(ctx)
	if err != nil {
		return false
	}
	var revision uint64
	if l.blind {
		revision, err = kv.Put(ctx, l.key, []byte("renewed"))
	} else {
		revision, err = kv.Update(ctx, l.key, []byte("renewed"), l.revision)
	}
	if l.unclear = err != nil; err == nil {
		l.revision = revision
	}
	return err == nil
}

func (l *renewed) Unlock(ctx context.Context) error {
	if l.revision == 0 {
		return locktest.ErrNotHeld
	}
	l.End()
	err := l.lock.Unlock(ctx)
	if errors.Is(err, locktest.ErrNotHeld) && l.unclear {
		return errors.New("a renewal had no answer, and may have changed the revision")
	}
	return err
}

type renewing struct {
	client
	lasting context.Context
	end     context.CancelFunc
	blind   bool
}

func (c renewing) Lock(name string) (locktest.Lock, error) {
	return &renewed{lock: &lock{conn: c.ForLock(name), key: key(name)}, lasting: c.lasting, blind: c.blind}, nil
}

func (c renewing) Close() error {
	c.end()
	return c.client.Close()
}

// A renewal by a revision that its holder wrote continues the hold, whatever it writes. One that does not compare the revision takes
// the hold of another away.
func TestARenewalMayWriteAnotherValue(t *testing.T) {
	for _, blind := range []bool{false, true} {
		s := orders
		s.Name, s.Renewed, s.RenewEvery = map[bool]string{false: "compares", true: "does not compare"}[blind], true, ttl/4
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			lasting, end := context.WithCancel(context.Background())
			return renewing{client{natstest.NewClient(p, "locks")}, lasting, end, blind}, nil
		}
		broken := drawntest.Broken(t, s)
		if !blind && broken != nil {
			t.Errorf("a lock that compares the revision breaks %q", broken)
		}
		if found := slices.Contains(broken, "pause-past-the-lease misdelete"); found != blind {
			t.Errorf("it %s the revision, and breaks %q", s.Name, broken)
		}
	}
}
