package zookeepertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"lockstep/locktest"
	"lockstep/peers/zookeepertest"
)

const sessionTime = 10 * time.Second

func path(lock string) string { return "/lock-of-" + lock }

// single is held by the session that has created its node.
type single struct {
	sessions *zookeepertest.Sessions
	path     string
	session  int64 // of the newest hold
}

func (l *single) Lock(ctx context.Context) error {
	conn, err := l.sessions.Connect(sessionTime, nil)
	if err != nil {
		return err
	}
	for {
		_, err := conn.Create(l.path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if err == nil {
			l.session = conn.SessionID()
			return nil
		}
		if !errors.Is(err, zk.ErrNodeExists) {
			l.sessions.Close() // and with it the node, if there is one
			return err
		}
		there, _, gone, err := conn.ExistsW(l.path)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return locktest.ErrBusy
		}
	}
}

func (l *single) Unlock(context.Context) error {
	conn := l.sessions.Conn()
	if conn == nil {
		return locktest.ErrNotHeld
	}
	err := l.free(conn)
	if errors.Is(err, zk.ErrNoNode) {
		return locktest.ErrNotHeld
	}
	if err != nil {
		l.sessions.Close()
	}
	return err
}

// free deletes the node if this handle has created it. The session may be another by now.
func (l *single) free(conn *zk.Conn) error {
	there, node, err := conn.Exists(l.path)
	if err != nil {
		return err
	}
	if !there || node.EphemeralOwner != l.session {
		return zk.ErrNoNode
	}
	return conn.Delete(l.path, -1)
}

type singleClient struct{ *zookeepertest.Client }

func (c singleClient) Lock(name string) (locktest.Lock, error) {
	return &single{sessions: c.ForLock(name), path: path(name)}, nil
}

var singles = locktest.Subject{
	Name: "single", Servers: zookeepertest.Servers(), State: zookeepertest.Single(path),
	Lease: zookeepertest.Lease(sessionTime), Renewed: true, RenewEvery: zookeepertest.RenewEvery(sessionTime),
	Promises: locktest.Promises{NotWaitBound: "the requests of the library take no context"},
	Open: func(p *locktest.Process) (locktest.Client, error) {
		return singleClient{zookeepertest.NewClient(p)}, nil
	},
}

// neverBack is of the library: a client that has seen more than its server, which lost its data, never comes back.
const neverBack = "liveness.bug.acquire.agreed"

func TestSingle(t *testing.T) {
	locktest.Run(t, singles, locktest.Options{Runs: 100, Accept: []string{neverBack}})
}
