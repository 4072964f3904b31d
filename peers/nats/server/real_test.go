package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// These tests start the real server on a socket, in real time. They show without the worlds what
// the worlds show.

// start starts a server on a directory and a port; 0 is any.
func start(t *testing.T, dir string, port int) *server.Server {
	t.Helper()
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: max(port, -1), JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	if !n.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return n
}

// connect returns the bucket LOCKS, which it makes if it does not exist.
func connect(t *testing.T, n *server.Server, config jetstream.KeyValueConfig, options ...nats.Option) jetstream.KeyValue {
	t.Helper()
	nc, err := nats.Connect(n.ClientURL(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	config.Bucket = "LOCKS"
	kv, err := js.CreateOrUpdateKeyValue(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// end stops a server.
func end(n *server.Server) {
	n.Shutdown()
	n.WaitForShutdown()
}

// A server that starts again without its data counts revisions from 1. A holder from before then
// renews, and deletes, the key of the next holder.
func TestARevisionComesAgainAfterTheDataIsLost(t *testing.T) {
	first := start(t, t.TempDir(), -1)
	port := first.Addr().(*net.TCPAddr).Port
	config := jetstream.KeyValueConfig{TTL: time.Minute}
	a, err := connect(t, first, config).Create(t.Context(), "orders", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	end(first)

	second := start(t, t.TempDir(), port)
	defer end(second)
	kv := connect(t, second, config)
	b, err := kv.Create(t.Context(), "orders", []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Fatalf("a has the revision %d and b %d", a, b)
	}
	if _, err := kv.Update(t.Context(), "orders", []byte("a"), a); err != nil {
		t.Errorf("the renewal of a: %v; want it to overwrite the key of b", err)
	}
	if _, err := kv.Update(t.Context(), "orders", []byte("b"), b); !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		t.Errorf("the renewal of b: %v; want it refused", err)
	}
}

// losing is a connection that loses the first request that contains a text, and then calls lost.
type losing struct {
	net.Conn
	text string
	lost func()
}

func (l *losing) Write(b []byte) (int, error) {
	if l.lost != nil && bytes.Contains(b, []byte(l.text)) {
		l.lost()
		l.lost = nil
		return len(b), nil
	}
	return l.Conn.Write(b)
}

// Dial implements nats.CustomDialer.
func (l *losing) Dial(network, addr string) (c net.Conn, err error) {
	l.Conn, err = net.Dial(network, addr)
	return l, err
}

// Create sends a second request if the last message of a key says that the key is deleted. If that
// request has no answer, it reports that the key exists.
func TestCreateSaysThatADeletedKeyExists(t *testing.T) {
	n := start(t, t.TempDir(), -1)
	defer end(n)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := &losing{text: "DIRECT.GET", lost: cancel}
	kv := connect(t, n, jetstream.KeyValueConfig{TTL: time.Minute}, nats.SetCustomDialer(l))
	if _, err := kv.Create(t.Context(), "orders", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Create(ctx, "orders", []byte("b")); !errors.Is(err, jetstream.ErrKeyExists) {
		t.Errorf("Create: %v; want %v", err, jetstream.ErrKeyExists)
	}
	if _, err := kv.Get(t.Context(), "orders"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("Get: %v; want %v", err, jetstream.ErrKeyNotFound)
	}
}

// An update writes the key again, without the TTL that Create gave it.
func TestAnUpdateTakesTheTTLOfAKeyAway(t *testing.T) {
	n := start(t, t.TempDir(), -1)
	defer end(n)
	kv := connect(t, n, jetstream.KeyValueConfig{LimitMarkerTTL: time.Second})
	for _, key := range []string{"left", "updated"} {
		if _, err := kv.Create(t.Context(), key, []byte("a"), jetstream.KeyTTL(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := kv.Get(t.Context(), "updated")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Update(t.Context(), "updated", []byte("a"), e.Revision()); err != nil {
		t.Fatal(err)
	}
	for range 100 { // until the server has removed the key that was not updated
		if _, err = kv.Get(t.Context(), "left"); err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Fatalf("the key with its TTL: %v; want it gone", err)
	}
	time.Sleep(time.Second)
	if _, err := kv.Get(t.Context(), "updated"); err != nil {
		t.Errorf("the updated key: %v; want it to stay", err)
	}
}

// Of many clients that update a revision of a key at the same time, exactly one succeeds. Issue
// 3375 of nats-server is about this.
func TestOneOfManyUpdatesOfARevisionSucceeds(t *testing.T) {
	const clients, rounds = 50, 100
	for name, storage := range map[string]jetstream.StorageType{"files": jetstream.FileStorage, "memory": jetstream.MemoryStorage} {
		t.Run(name, func(t *testing.T) {
			n := start(t, t.TempDir(), -1)
			defer end(n)
			var kvs []jetstream.KeyValue
			for range clients {
				kvs = append(kvs, connect(t, n, jetstream.KeyValueConfig{TTL: time.Minute, Storage: storage}))
			}
			revision, err := kvs[0].Create(t.Context(), "orders", nil)
			if err != nil {
				t.Fatal(err)
			}
			for round := range rounds {
				var won, next atomic.Uint64
				var all sync.WaitGroup
				for i, kv := range kvs {
					all.Go(func() {
						if r, err := kv.Update(t.Context(), "orders", fmt.Append(nil, i), revision); err == nil {
							won.Add(1)
							next.Store(r)
						}
					})
				}
				all.Wait()
				if won.Load() != 1 {
					t.Fatalf("round %d: %d updates of the revision %d succeeded; want 1", round, won.Load(), revision)
				}
				revision = next.Load()
			}
		})
	}
}
