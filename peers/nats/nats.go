// Package nats judges locks that people write on the key-value store of NATS, with the
// client github.com/nats-io/nats.go, unmodified, on the real server.
//
// A lock is a key. The client that creates it has the lock. It renews the hold by updating the key
// with the revision that it wrote last, and deletes the key to give the lock up. The entry ends with
// the TTL of the bucket. This follows the documentation of NATS
// (https://docs.nats.io/nats-concepts/jetstream/key-value-store/kv_walkthrough), and the election of
// R.I. Pienaar (https://github.com/ripienaar/nats-kv-leader-elect). The periods come from the
// package nlock (https://github.com/akhenakh/nlock): a waiter tries again after 250 ms, and a holder
// renews after a third of the TTL and waits 500 ms for the answer. Both packages give a hold up when
// one renewal fails. Here the renewal is tried again every 250 ms, until another client has the key
// or the TTL is over.
//
// The promises of the locks, with their sources:
//
//   - One owner at a time: of all Create calls for a key one succeeds, until the key is deleted (the
//     documentation, section "Create (aka exclusive locking)", and nats.go 1.55.0, jetstream/kv.go,
//     lines 118 to 119).
//   - A hold ends with the TTL of the bucket, and an Update prolongs it (the documentation, section
//     "Atomic operations"). For a TTL of the key the comment of Update says the same: it resets the
//     TTL (kv.go, line 128). KeyTTL shows that it removes the TTL.
//   - An unlock and a renewal with the last revision change no key of another (kv.go, lines 125 to
//     127 and 136 to 138). Blind deletes without a revision.
//   - The holder is told when a renewal is refused, or when the TTL is over: nlock and
//     nats-kv-leader-elect do so.
//   - Fencing: a revision is the sequence number of the bucket's stream, which grows with each
//     message. No document promises that it still grows after a loss of the data.
package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"lockstep/locktest"
	"lockstep/peers/natstest"
)

const (
	bucket = "LOCKS"
	lease  = 8 * time.Second
	pause  = 250 * time.Millisecond
	answer = 2 * pause // the time for which a renewal waits
)

// KV is the lock whose key is deleted only if it has the revision of its holder.
var KV = subject("nats-kv", "ours, on NATS: create, update and delete with the last revision, in a bucket with a TTL", way{})

// Blind is KV with an unlock that deletes the key whatever its revision.
var Blind = subject("nats-kv-blind", "ours, on NATS: create and update, and delete without a revision", way{blind: true})

// KeyTTL is KV in a bucket without a TTL: the key has its own TTL, which an update removes.
var KeyTTL = subject("nats-kv-key-ttl", "ours, on NATS: create with a TTL of the key, update and delete with the last revision", way{ownTTL: true})

// OnTime is KV in a bucket whose revisions begin with the time at which the bucket is made, so that
// no revision is used again after the server has lost its data.
var OnTime = subject("nats-kv-on-time", "ours, on NATS: as nats-kv, in a bucket whose revisions begin with the time", way{onTime: true})

// way has the choices of a lock.
type way struct {
	blind  bool // delete without a revision
	ownTTL bool // the TTL is that of the key
	onTime bool // revisions begin with the time
}

func subject(name, about string, w way) locktest.Subject {
	b := natstest.Bucket{KeyValueConfig: jetstream.KeyValueConfig{Bucket: bucket, TTL: lease}, OnTime: w.onTime}
	if w.ownTTL {
		b.TTL, b.LimitMarkerTTL = 0, time.Second
	}
	return locktest.Subject{
		Name: name, About: about, Servers: natstest.Servers(b), Lease: lease, Renewed: true, RenewEvery: lease / 3, Waits: pause, State: natstest.Value(nil),
		Policy: "Each thread has a connection per lock, an acquire that failed is not tried again and leaves its key until the TTL, a renewal that failed is tried again every 250 ms, and an unlock that failed ends the renewals and may be called again.",
		Open: func(p *locktest.Process) (locktest.Client, error) {
			return client{natstest.NewClient(p, bucket), w}, nil
		},
	}
}

type client struct {
	*natstest.Client
	way way
}

func (c client) Lock(name string) (locktest.Lock, error) {
	return &lock{way: c.way, name: name, nats: c.ForLock(name)}, nil
}

type lock struct {
	way  way
	name string
	nats *natstest.Connection
	hold *hold // the newest one; nil: given up
}

// hold is the key from its creation to its end.
type hold struct {
	owner string        // the value of the key
	token uint64        // the revision with which it began
	lost  chan struct{} // closed when the holder has to stop
	stop  chan struct{} // closed to end the renewals
	done  chan struct{} // closed when the renewals have ended

	revision uint64    // the newest that is known; renewals have it until done is closed
	until    time.Time // the server keeps the key at least until then
}

// TryLock implements locktest.TryLocker.
func (l *lock) TryLock(ctx context.Context) (bool, error) {
	kv, err := l.nats.KeyValue(ctx)
	if err != nil {
		return false, err
	}
	var own []jetstream.KVCreateOpt
	if l.way.ownTTL {
		own = append(own, jetstream.KeyTTL(lease))
	}
	owner, sent := rand.Text(), time.Now()
	revision, err := kv.Create(ctx, l.name, []byte(owner), own...)
	if errors.Is(err, jetstream.ErrKeyExists) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.hold = &hold{
		owner: owner, token: revision, revision: revision, until: sent.Add(lease),
		lost: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go l.renew(l.hold)
	return true, nil
}

func (l *lock) Lock(ctx context.Context) error {
	for {
		if held, err := l.TryLock(ctx); held || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(pause):
		}
	}
}

// renew prolongs a hold until it is told to stop, or until the hold is lost.
func (l *lock) renew(h *hold) {
	defer close(h.done)
	next := time.Now().Add(lease / 3)
	for {
		select {
		case <-h.stop:
			return
		case <-time.After(time.Until(next)):
		}
		sent := time.Now()
		err := l.prolong(h)
		switch {
		case err == nil:
			h.until, next = sent.Add(lease), sent.Add(lease/3)
		case errors.Is(err, locktest.ErrNotHeld) || !time.Now().Before(h.until):
			close(h.lost)
			return
		default:
			next = earlier(time.Now().Add(pause), h.until)
		}
	}
}

// prolong renews a hold once.
func (l *lock) prolong(h *hold) error {
	ctx, cancel := context.WithDeadline(context.Background(), earlier(time.Now().Add(answer), h.until))
	defer cancel()
	return l.change(ctx, h, func(kv jetstream.KeyValue) (err error) {
		revision, err := kv.Update(ctx, l.name, []byte(h.owner), h.revision)
		if err == nil {
			h.revision = revision
		}
		return err
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// change makes a change that depends on the revision of a hold. If the key has another revision,
// such as that of a renewal whose answer was lost, but still the value of the hold, it makes the
// change once more. ErrNotHeld says that the key is gone, or that another client has it.
func (l *lock) change(ctx context.Context, h *hold, make func(jetstream.KeyValue) error) error {
	kv, err := l.nats.KeyValue(ctx)
	if err != nil {
		return err
	}
	err = make(kv)
	if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return err
	}
	e, err := kv.Get(ctx, l.name)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return locktest.ErrNotHeld
	case err != nil:
		return err
	case string(e.Value()) != h.owner:
		return locktest.ErrNotHeld
	}
	h.revision = e.Revision()
	return make(kv)
}

func (l *lock) Unlock(ctx context.Context) error {
	h := l.hold
	if h == nil {
		return locktest.ErrNotHeld
	}
	if h.isLost() && !l.way.blind {
		l.hold = nil
		return locktest.ErrNotHeld // another hold may have the revision by now
	}
	select {
	case <-h.stop: // an earlier unlock has failed
	default:
		close(h.stop)
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := l.change(ctx, h, func(kv jetstream.KeyValue) error {
		if l.way.blind {
			return kv.Delete(ctx, l.name)
		}
		return kv.Delete(ctx, l.name, jetstream.LastRevision(h.revision))
	})
	if err == nil || errors.Is(err, locktest.ErrNotHeld) {
		l.hold = nil
	}
	if err == nil && l.way.blind && h.isLost() {
		return errGone
	}
	return err
}

// isLost reports whether the holder has been told to stop.
func (h *hold) isLost() bool {
	select {
	case <-h.lost:
		return true
	default:
		return false
	}
}

// errGone is the error of a delete without a revision after the hold was lost, since the server
// does not say whether there was a key, and whose.
var errGone = errors.New("the key is gone, whoever had it")

// Lost implements locktest.Watched.
func (l *lock) Lost() <-chan struct{} { return l.hold.lost }

// Token implements locktest.Fenced: the revision with which the hold began.
func (l *lock) Token() (uint64, bool) {
	if l.hold == nil {
		return 0, false
	}
	return l.hold.token, true
}
