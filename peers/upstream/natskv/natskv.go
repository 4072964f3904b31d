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

// natsLock is a key of a bucket with a time to live: Create takes it, and Delete with the revision gives it up.
var natsLock = natsWith(jetstream.KeyValueConfig{Bucket: "locks", TTL: 8 * time.Second}, func(kv jetstream.KeyValue, name string) Lock {
	return &entry{kv: kv, name: name}
})

// natsKeyTTL is a key with a time to live of its own, which its holder renews by Update.
var natsKeyTTL = natsWith(jetstream.KeyValueConfig{Bucket: "locks", LimitMarkerTTL: time.Second}, func(kv jetstream.KeyValue, name string) Lock {
	return &renewed{entry{kv: kv, name: name, options: []jetstream.KVCreateOpt{jetstream.KeyTTL(8 * time.Second)}}}
})

func natsWith(config jetstream.KeyValueConfig, lock func(kv jetstream.KeyValue, name string) Lock) Library {
	return Library{
		Serve: func(t *testing.T) Server {
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
				t.Fatal("the server is not ready; the test did not work")
			}
			js, err := connected(s.Addr().String())
			if err == nil {
				_, err = js.CreateKeyValue(t.Context(), config)
			}
			if err != nil {
				t.Fatal(err)
			}
			return natsServer{s}
		},
		Open: func(addrs []string) (func(name string) Lock, error) {
			js, err := connected(addrs[0])
			if err != nil {
				return nil, err
			}
			kv, err := js.KeyValue(context.Background(), config.Bucket)
			return func(name string) Lock { return lock(kv, name) }, err
		},
		Lease:      8 * time.Second,
		TimeToLive: natsTimeToLive,
	}
}

func connected(addr string) (jetstream.JetStream, error) {
	nc, err := nats.Connect("nats://"+addr, nats.IgnoreDiscoveredServers())
	if err != nil {
		return nil, err
	}
	return jetstream.New(nc)
}

type natsServer struct{ *server.Server }

func (s natsServer) Addr() string { return s.Server.Addr().String() }

func (natsServer) Restart(bool) { panic("no story restarts this server") }

type entry struct {
	kv       jetstream.KeyValue
	name     string
	options  []jetstream.KVCreateOpt
	revision uint64
}

func (e *entry) TryLock(ctx context.Context) error {
	revision, err := e.kv.Create(ctx, e.name, []byte("a holder"), e.options...)
	switch {
	case errors.Is(err, jetstream.ErrKeyExists):
		return ErrBusy
	case err != nil:
		return err
	}
	e.revision = revision
	return nil
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

// renewed is an entry that is renewed three times in its time to live.
type renewed struct{ entry }

func (r *renewed) Lock(ctx context.Context) error {
	err := r.entry.Lock(ctx)
	if err == nil {
		go r.renew(r.revision)
	}
	return err
}

func (r *renewed) renew(revision uint64) {
	for {
		time.Sleep(8 * time.Second / 3)
		next, err := r.kv.Update(context.Background(), r.name, []byte("a holder"), revision)
		if err != nil {
			return
		}
		revision = next
	}
}

func (*renewed) Unlock(context.Context) error { panic("no story unlocks it") }

// natsTimeToLive returns the time to live that a key has of its own; 0: none.
func natsTimeToLive(addr, lock string) (time.Duration, error) {
	js, err := connected(addr)
	if err != nil {
		return 0, err
	}
	defer js.Conn().Close()
	s, err := js.Stream(context.Background(), "KV_locks")
	if err != nil {
		return 0, err
	}
	m, err := s.GetLastMsgForSubject(context.Background(), "$KV.locks."+lock)
	if err != nil {
		return 0, err
	}
	ttl := m.Header.Get(jetstream.MsgTTLHeader)
	if ttl == "" {
		return 0, nil
	}
	return time.ParseDuration(ttl)
}

// libraryOf returns the lock of a name.
func libraryOf(lock string) Library {
	if lock == "nats-kv-key-ttl" {
		return natsKeyTTL
	}
	return natsLock
}

var _ = libraryOf
