package retold

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"lockstep/locktest"
	"lockstep/peers/etcdtest"
)

// Scalingo is the lock of github.com/Scalingo/go-etcd-lock/v5, by WaitAcquire. The lock is etcd's Mutex with a session
// of its own. A hold is given up after its time to live, however long its session would last.
var Scalingo = locktest.Subject{
	Name: "scalingo-etcd-lock", About: "Scalingo/go-etcd-lock, told again: etcd's Mutex in a session of its own, which is given up after its time to live",
	Servers: etcdtest.Servers(), Lease: ttl, Renewed: true, RenewEvery: etcdtest.RenewEvery(ttl),
	State: etcdtest.Oldest(func(lock string) string { return lock + "/" }),
	Open: func(p *locktest.Process) (locktest.Client, error) {
		c, err := etcdtest.NewClient(p)
		return scalingoClient{c}, err
	},
	Promises: locktest.Promises{
		NotWaitBound: "WaitAcquire takes no context, and waits for up to two minutes",
		NotLease:     "the library gives a hold up after its time to live, and the caller knows when",
	},
}

// The defaults of the library: how long one attempt waits, how long all of them do, and the pause between two.
const (
	scalingoTry   = 30 * time.Second
	scalingoMost  = 2 * time.Minute
	scalingoPause = time.Second
)

var errAlreadyLocked = errors.New("the key is locked")

// scalingoHold is a hold of the library.
type scalingoHold struct {
	mu      sync.Mutex
	mutex   *concurrency.Mutex
	session *concurrency.Session
}

// scalingoAcquire acquires the lock. An attempt that fails is made again with the same session.
func scalingoAcquire(c *clientv3.Client, key string) (*scalingoHold, error) {
	s, err := concurrency.NewSession(c, concurrency.WithTTL(ttlSeconds))
	if err != nil {
		return nil, err
	}
	m := concurrency.NewMutex(s, key)
	for end := time.Now().Add(scalingoMost); ; time.Sleep(scalingoPause) {
		if time.Now().After(end) {
			_ = s.Close()
			return nil, errors.Join(errAlreadyLocked, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), scalingoTry)
		err = m.Lock(ctx)
		cancel()
		if err == nil {
			break
		}
	}
	h := &scalingoHold{mutex: m, session: s}
	time.AfterFunc(ttl, func() { _ = h.release() })
	return h, nil
}

// release gives the hold up. It holds a mutex during its requests.
func (h *scalingoHold) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.mutex.Unlock(context.Background()), h.session.Close())
}

type scalingoClient struct{ *etcdtest.Client }

func (c scalingoClient) Lock(name string) (locktest.Lock, error) {
	return &scalingoLock{c: c.ForLock(name), name: name}, nil
}

type scalingoLock struct {
	c    *clientv3.Client
	name string
	held *scalingoHold
	lost chan struct{}
}

func (l *scalingoLock) Lock(context.Context) error {
	held, err := scalingoAcquire(l.c, l.name)
	if err != nil {
		return err
	}
	l.held, l.lost = held, make(chan struct{})
	go func(lost chan struct{}) { // the caller knows when its time is over
		select {
		case <-held.session.Done():
		case <-time.After(ttl):
		}
		close(lost)
	}(l.lost)
	return nil
}

func (l *scalingoLock) Unlock(context.Context) error {
	if l.held == nil {
		return locktest.ErrNotHeld
	}
	err := l.held.release()
	if errors.Is(err, concurrency.ErrLockReleased) {
		return locktest.ErrNotHeld
	}
	return err
}

// Lost implements locktest.Watched.
func (l *scalingoLock) Lost() <-chan struct{} { return l.lost }
