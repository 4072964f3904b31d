package drawntest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/locktest"
	"lockstep/sim"
)

// Written are the servers of locks whose holder writes the end of its hold, in milliseconds since 1970, behind its name.
type Written struct {
	Servers locktest.Servers
	Get     func(s locktest.Snapshot, key string) string // the value of a key; "": there is none
	Open    func(p *locktest.Process) (WrittenClient, error)
}

// WrittenClient replaces values.
type WrittenClient interface {
	ForLock(name string) Replacer
	Close() error
}

// Replacer replaces the value of a key, with a version of it.
type Replacer interface {
	Read(ctx context.Context, key string) (value string, version uint64, err error) // of no value: "" and 0
	Replace(ctx context.Context, key, value string, version uint64) (done bool, err error)
}

const writtenLease = 4 * time.Second

// Ends plays a hold that ends by itself. A waiter takes the lock over then, which breaks no promise, or a wrong one half a second too early.
func (s Written) Ends(t *testing.T) {
	t.Helper()
	h := sim.NewHost(t)
	for _, early := range []time.Duration{0, 500 * time.Millisecond} {
		l := find(t, h, locktest.Subject{
			Name: fmt.Sprintf("written-%v", early), Servers: s.Servers, Lease: writtenLease, Waits: 100 * time.Millisecond,
			State: func(snap locktest.Snapshot, lock string) *locktest.State {
				owner, end := read(s.Get(snap, lock))
				expires := end.Sub(snap.Start())
				if owner == "" || expires <= snap.Now() {
					return nil
				}
				return &locktest.State{Owner: owner, Expires: expires}
			},
			Kept: func(lock string) []string { return []string{lock} },
			Open: func(p *locktest.Process) (locktest.Client, error) {
				c, err := s.Open(p)
				return writtenClient{c, early}, err
			},
		})
		broken := ""
		for _, f := range findings(t, h, l, "{lock: {name: x}}, {sleep: 3s}", "{at: 1s}, {lock: {name: x}}, {sleep: 1s}, {unlock: {name: x}}", "") {
			if f.Class == judges.ClassBug {
				broken += " " + f.Judge
			}
		}
		if (broken != "") != (early > 0) {
			t.Errorf("a lock that is taken over %v before the end breaks %q", early, broken)
		}
	}
}

// read reads a value.
func read(value string) (owner string, end time.Time) {
	var ms int64
	_, _ = fmt.Sscan(value, &owner, &ms)
	return owner, time.UnixMilli(ms)
}

type writtenClient struct {
	WrittenClient
	early time.Duration
}

func (c writtenClient) Lock(name string) (locktest.Lock, error) {
	return &written{kv: c.ForLock(name), name: name, early: c.early}, nil
}

type written struct {
	kv    Replacer
	name  string
	early time.Duration
	owner string // of the newest hold
}

func (l *written) write(ctx context.Context, owner string, end time.Time, version uint64) (bool, error) {
	return l.kv.Replace(ctx, l.name, fmt.Sprint(owner, " ", end.UnixMilli()), version)
}

func (l *written) Lock(ctx context.Context) error {
	for {
		value, version, err := l.kv.Read(ctx, l.name)
		if err != nil {
			return err
		}
		if _, end := read(value); !time.Now().Add(l.early).Before(end) {
			owner := rand.Text()
			done, err := l.write(ctx, owner, time.Now().Add(writtenLease), version)
			if done || err != nil {
				l.owner = owner
				return err // if no answer came, the hold ends by itself
			}
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *written) Unlock(ctx context.Context) error {
	value, version, err := l.kv.Read(ctx, l.name)
	if err != nil {
		return err
	}
	owner, end := read(value)
	if owner == "" || owner != l.owner || !time.Now().Before(end) {
		return locktest.ErrNotHeld
	}
	done, err := l.write(ctx, owner, time.Now(), version)
	if err == nil && !done {
		return locktest.ErrNotHeld
	}
	return err
}
