package zookeepertest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"lockstep/locktest"
	"lockstep/peers/zookeepertest"
)

const timeout = 10 * time.Second

// lock is held by whoever has the node with the lowest number, until its session is over.
type lock struct {
	sessions *zookeepertest.Sessions
	name     string
	node     string // of the newest try; "": it is gone
}

// Lock ends the session if it fails, and with it the node.
func (l *lock) Lock(ctx context.Context) error {
	conn, err := l.sessions.Connect(timeout, nil)
	if err != nil {
		return err
	}
	if err = l.take(ctx, conn); err != nil {
		l.sessions.Close()
	}
	return err
}

func (l *lock) take(ctx context.Context, conn *zk.Conn) error {
	parent := "/" + l.name
	if _, err := conn.Create(parent, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	node, err := conn.CreateProtectedEphemeralSequential(parent+"/n-", nil, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	l.node = node[len(parent)+1:]
	for {
		nodes, _, err := conn.Children(parent)
		if err != nil {
			return err
		}
		slices.SortFunc(nodes, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
		place := slices.Index(nodes, l.node)
		switch {
		case place < 0:
			return errors.New("the session is over")
		case place == 0:
			return nil
		}
		exists, _, gone, err := conn.ExistsW(parent + "/" + nodes[place-1])
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// number returns the number with which the server ends the name of a node.
func number(node string) string { return node[strings.LastIndexByte(node, '-')+1:] }

func (l *lock) Unlock(context.Context) error {
	conn := l.sessions.Conn()
	if conn == nil || l.node == "" {
		return locktest.ErrNotHeld
	}
	err := conn.Delete("/"+l.name+"/"+l.node, -1)
	if errors.Is(err, zk.ErrNoNode) {
		l.node = ""
		return locktest.ErrNotHeld
	}
	if err != nil {
		l.sessions.Close()
	}
	l.node = ""
	return err
}

type client struct{ *zookeepertest.Client }

func (c client) Lock(name string) (locktest.Lock, error) {
	return &lock{sessions: c.ForLock(name), name: name}, nil
}

var orders = locktest.Subject{
	Name: "orders", Servers: zookeepertest.Servers(), State: zookeepertest.First(nil),
	Lease: zookeepertest.Lease(timeout), Renewed: true, RenewEvery: zookeepertest.RenewEvery(timeout),
	Promises: locktest.Promises{NotWaitBound: "the requests of the library take no context"},
	Kept:     func(lock string) []string { return []string{"/" + lock} },
	Open:     func(p *locktest.Process) (locktest.Client, error) { return client{zookeepertest.NewClient(p)}, nil },
}

// The library has both: a client that has seen more than its server, which lost its data, never comes back; and a
// session that is closed without a connection ends with its timeout.
var accepted = []string{"liveness.bug.acquire.agreed", "liveness.bug.acquire.lost-message", "tidy.bug.acquire.agreed"}

func TestOrders(t *testing.T) { locktest.Run(t, orders, locktest.Options{Runs: 100, Accept: accepted}) }
