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
	lasting context.Context
	blind   bool // it does not compare the revision
	unclear bool // a renewal had no answer
	stop    chan struct{}
	over    chan struct{}
	lost    chan struct{}
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
			l.unclear, l.stop, l.over, l.lost = false, make(chan struct{}), make(chan struct{}), make(chan struct{})
			go l.renew(sent.Add(ttl))
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

// renew renews the hold until stop or the time at which it may be over.
func (l *renewed) renew(until time.Time) {
	defer close(l.over)
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(min(ttl/4, time.Until(until))):
		}
		sent := time.Now()
		if !sent.Before(until) {
			close(l.lost)
			return
		}
		ctx, cancel := context.WithTimeout(l.lasting, min(ttl/4, until.Sub(sent)))
		if kv, err := l.conn.KeyValue(ctx); err == nil {
			var revision uint64
			if l.blind {
				revision, err = kv.Put(ctx, l.key, []byte("renewed"))
			} else {
				revision, err = kv.Update(ctx, l.key, []byte("renewed"), l.revision)
			}
			if l.unclear = err != nil; err == nil {
				l.revision, until = revision, sent.Add(ttl)
			}
		}
		cancel()
	}
}

func (l *renewed) Unlock(ctx context.Context) error {
	if l.revision == 0 {
		return locktest.ErrNotHeld
	}
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	<-l.over
	err := l.lock.Unlock(ctx)
	if errors.Is(err, locktest.ErrNotHeld) && l.unclear {
		return errors.New("a renewal had no answer, and may have changed the revision")
	}
	return err
}

func (l *renewed) Lost() <-chan struct{} { return l.lost }

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
