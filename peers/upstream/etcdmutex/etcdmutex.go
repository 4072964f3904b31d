// Package etcdmutex opens the mutex of etcd's client for the stories of package upstream.
package etcdmutex

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"

	. "lockstep/live/upstream/gostory"
)

// etcdMutex is concurrency.Mutex, with a session for each acquire that lasts as long as its client.
var etcdMutex = Library{
	Serve: func(t *testing.T) Server {
		any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
		c := embed.NewConfig()
		c.Dir, c.LogLevel, c.LogOutputs = t.TempDir(), "error", []string{"/dev/null"}
		c.ListenClientUrls, c.ListenPeerUrls = any, any
		e, err := embed.StartEtcd(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		<-e.Server.ReadyNotify()
		return etcdServer{e}
	},
	Open: func(addrs []string) (func(name string) Lock, error) {
		c, err := clientv3.New(clientv3.Config{Endpoints: addrs})
		if err != nil {
			return nil, err
		}
		c.ActiveConnection().Connect()
		return func(name string) Lock { return &mutex{c: c, name: name} }, nil
	},
	Places: etcdPlaces,
}

type etcdServer struct{ *embed.Etcd }

func (e etcdServer) Addr() string { return e.Clients[0].Addr().String() }

func (etcdServer) Restart(bool) { panic("no story restarts this server") }

type mutex struct {
	c       *clientv3.Client
	name    string
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (m *mutex) acquire(take func(own *concurrency.Mutex) error) error {
	s, err := concurrency.NewSession(m.c, concurrency.WithTTL(8))
	if err != nil {
		return err
	}
	own := concurrency.NewMutex(s, m.name)
	if err := take(own); err != nil {
		return err
	}
	m.session, m.mutex = s, own
	return nil
}

func (m *mutex) Lock(ctx context.Context) error {
	return m.acquire(func(own *concurrency.Mutex) error { return own.Lock(ctx) })
}

func (m *mutex) TryLock(ctx context.Context) error {
	err := m.acquire(func(own *concurrency.Mutex) error { return own.TryLock(ctx) })
	if errors.Is(err, concurrency.ErrLocked) {
		return ErrBusy
	}
	return err
}

func (m *mutex) Unlock(ctx context.Context) error {
	if m.mutex == nil {
		return ErrNotHeld
	}
	return m.mutex.Unlock(ctx)
}

func (m *mutex) Lost() <-chan struct{} { return m.session.Done() }

// etcdPlaces counts the keys of a mutex.
func etcdPlaces(addr, lock string) (int, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := c.Get(ctx, lock+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(r.Count), nil
}

// libraryOf returns the lock.
func libraryOf(string) Library { return etcdMutex }

var _ = libraryOf
