package retold

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"lockstep/locktest"
	"lockstep/peers/etcdtest"
	"lockstep/peers/zookeepertest"
)

// ValkeyrieEtcd is the lock of the etcd store of github.com/kvtools/valkeyrie: etcd's Mutex in a session of its own,
// whose holder writes a key beside it.
var ValkeyrieEtcd = locktest.Subject{
	Name: "valkeyrie-etcd", About: "kvtools/valkeyrie on etcd, told again: etcd's Mutex in a session of its own, whose holder writes a key beside it",
	Servers: etcdtest.Servers(), Lease: ttl, Renewed: true, RenewEvery: etcdtest.RenewEvery(ttl), Fair: true,
	State:  etcdtest.Oldest(func(lock string) string { return lock + "___lock/" }),
	Kept:   func(lock string) []string { return []string{lock} },
	Policy: "Each acquire has a session of its own, which the caller ends after an unlock, and after an acquire that failed.",
	Open: func(p *locktest.Process) (locktest.Client, error) {
		c, err := etcdtest.NewClient(p)
		return &valkeyrieClient{Client: c}, err
	},
}

// valkeyrieHold is a lock of the library. renew is the option RenewLock: the session ends when it is closed.
type valkeyrieHold struct {
	c       *clientv3.Client
	key     string
	mutex   *concurrency.Mutex
	session *concurrency.Session
	renew   chan struct{}
}

// valkeyrieNew makes a lock.
func valkeyrieNew(c *clientv3.Client, key string) (*valkeyrieHold, error) {
	s, err := concurrency.NewSession(c, concurrency.WithTTL(ttlSeconds))
	if err != nil {
		return nil, err
	}
	h := &valkeyrieHold{c, key, concurrency.NewMutex(s, key+"___lock"), s, make(chan struct{})}
	go func() {
		<-h.renew
		_ = s.Close()
	}()
	return h, nil
}

// acquire returns the channel that is closed when the hold is lost. If the caller gives up, it returns neither a
// channel nor an error. If the value cannot be written, the mutex stays locked.
func (h *valkeyrieHold) acquire(ctx context.Context) (<-chan struct{}, error) {
	switch err := h.mutex.Lock(ctx); {
	case errors.Is(err, context.Canceled):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if _, err := h.c.Put(ctx, h.key, "value"); err != nil {
		return nil, err
	}
	return h.session.Done(), nil
}

type valkeyrieClient struct {
	*etcdtest.Client
	locks []*valkeyrieLock
}

func (c *valkeyrieClient) Lock(name string) (locktest.Lock, error) {
	l := &valkeyrieLock{c: c.ForLock(name), name: name}
	c.locks = append(c.locks, l)
	return l, nil
}

// Close also ends the sessions of holds, which wait for nothing else.
func (c *valkeyrieClient) Close() error {
	for _, l := range c.locks {
		l.end()
	}
	return c.Client.Close()
}

type valkeyrieLock struct {
	c    *clientv3.Client
	name string
	held *valkeyrieHold // nil: not held
	lost <-chan struct{}
}

func (l *valkeyrieLock) Lock(ctx context.Context) error {
	h, err := valkeyrieNew(l.c, l.name)
	if err != nil {
		return err
	}
	lost, err := h.acquire(ctx)
	if lost == nil {
		close(h.renew)
		return errors.Join(err, ctx.Err())
	}
	l.end()
	l.held, l.lost = h, lost
	return nil
}

// end ends the session of the newest hold.
func (l *valkeyrieLock) end() {
	if l.held != nil {
		close(l.held.renew)
		l.held = nil
	}
}

var errLost = errors.New("the hold is lost, and the caller does not unlock it")

func (l *valkeyrieLock) Unlock(ctx context.Context) error {
	if l.held == nil {
		return locktest.ErrNotHeld
	}
	defer l.end()
	select {
	case <-l.lost:
		return errLost
	default:
		return l.held.mutex.Unlock(ctx)
	}
}

// Lost implements locktest.Watched.
func (l *valkeyrieLock) Lost() <-chan struct{} { return l.lost }

// ValkeyrieZooKeeper is the lock of the ZooKeeper store of the library: the Lock of go-zookeeper, whose holder
// writes the parent node and watches it.
var ValkeyrieZooKeeper = locktest.Subject{
	Name: "valkeyrie-zookeeper", About: "kvtools/valkeyrie on ZooKeeper, told again: the Lock of go-zookeeper, whose holder writes the parent node and watches it",
	Servers: zookeepertest.Servers(), Lease: zookeepertest.Lease(ttl), Renewed: true, RenewEvery: zookeepertest.RenewEvery(ttl),
	State:  zookeepertest.First(nil),
	Kept:   func(lock string) []string { return []string{"/" + lock} },
	Policy: "Each handle has a session of its own, which is closed after the first failure.",
	Open: func(p *locktest.Process) (locktest.Client, error) {
		return valkeyrieZooKeeperClient{zookeepertest.NewClient(p)}, nil
	},
	Promises: locktest.Promises{NotWaitBound: "the Lock of the library does not look at its context"},
}

// valkeyrieWatch closes lost when somebody writes the node, and when the session is over.
func valkeyrieWatch(ctx context.Context, c *zk.Conn, node string, lost chan struct{}) {
	defer close(lost)
	for {
		_, _, changed, err := c.GetW(node)
		if err != nil {
			return
		}
		select {
		case e := <-changed:
			if e.Type == zk.EventNotWatching || e.Type == zk.EventSession && e.State == zk.StateExpired || e.Type == zk.EventNodeDataChanged {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

type valkeyrieZooKeeperClient struct{ *zookeepertest.Client }

func (c valkeyrieZooKeeperClient) Lock(name string) (locktest.Lock, error) {
	return &valkeyrieZooKeeperLock{sessions: c.ForLock(name), node: "/" + name}, nil
}

type valkeyrieZooKeeperLock struct {
	sessions *zookeepertest.Sessions
	node     string
	zk       *zk.Lock // of the newest acquire
	lost     chan struct{}
	unwatch  context.CancelFunc
}

func (l *valkeyrieZooKeeperLock) Lock(context.Context) error {
	c, err := l.sessions.Connect(ttl, nil)
	if err != nil {
		return err
	}
	l.zk = zk.NewLock(c, l.node, zk.WorldACL(zk.PermAll))
	if err = l.zk.Lock(); err == nil {
		_, err = c.Set(l.node, []byte("value"), -1)
	}
	if err != nil {
		l.sessions.Close()
		return err
	}
	var ctx context.Context
	ctx, l.unwatch = context.WithCancel(context.Background())
	l.lost = make(chan struct{})
	go valkeyrieWatch(ctx, c, l.node, l.lost)
	return nil
}

func (l *valkeyrieZooKeeperLock) Unlock(context.Context) error {
	if l.zk == nil || l.sessions.Conn() == nil {
		return locktest.ErrNotHeld // the session was closed
	}
	if l.unwatch != nil {
		l.unwatch()
	}
	err := l.zk.Unlock()
	switch {
	case errors.Is(err, zk.ErrNotLocked), errors.Is(err, zk.ErrNoNode):
		return locktest.ErrNotHeld
	case err != nil:
		l.sessions.Close()
	}
	return err
}

// Lost implements locktest.Watched.
func (l *valkeyrieZooKeeperLock) Lost() <-chan struct{} { return l.lost }
