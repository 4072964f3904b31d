// Package natskv opens a lock in a bucket of NATS for the stories of package upstream.
package natskv

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	. "lockstep/live/upstream/gostory"
)

// natsLock is a key of a bucket: Create takes it, and Delete with the revision gives it up.
var natsLock = Library{
	Serve: func(t *testing.T, n int) []Server {
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("the server is not ready")
		}
		nc, err := nats.Connect(s.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateKeyValue(context.Background(), jetstream.KeyValueConfig{Bucket: "locks", TTL: 8 * time.Second}); err != nil {
			t.Fatal(err)
		}
		return []Server{natsServer{s}}
	},
	Open: func(addrs []string) (Client, error) {
		nc, err := nats.Connect("nats://"+addrs[0], nats.IgnoreDiscoveredServers())
		if err != nil {
			return nil, err
		}
		js, err := jetstream.New(nc)
		if err != nil {
			return nil, err
		}
		kv, err := js.KeyValue(context.Background(), "locks")
		return bucket{kv}, err
	},
	Lease: 8 * time.Second,
}

type natsServer struct{ *server.Server }

func (s natsServer) Addr() string { return s.Server.Addr().String() }

func (natsServer) Restart(bool) { panic("no story restarts this server") }

type bucket struct{ jetstream.KeyValue }

func (b bucket) Lock(name string) Lock { return &entry{kv: b.KeyValue, name: name} }

type entry struct {
	kv       jetstream.KeyValue
	name     string
	revision uint64
}

func (e *entry) TryLock(ctx context.Context) (err error) {
	revision, err := e.kv.Create(ctx, e.name, []byte("a holder"))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return ErrBusy
	}
	if err == nil {
		e.revision = revision
	}
	return err
}

func (e *entry) Lock(ctx context.Context) error {
	for {
		err := e.TryLock(ctx)
		if !errors.Is(err, ErrBusy) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (e *entry) Unlock(ctx context.Context) error {
	return e.kv.Delete(ctx, e.name, jetstream.LastRevision(e.revision))
}

func (*entry) Lost() <-chan struct{} { return nil }

var _ = natsLock
