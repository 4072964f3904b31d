// Package server runs NATS in a world: a single real nats-server, unmodified, with a bucket of
// JetStream's key-value store in files.
//
// A crash of the server (package disk) keeps every message that it has acknowledged: it writes
// a message to its file before it answers. It asks the system to flush its files every two
// minutes, as it does by default, so only a crash of the machine would lose messages. That is
// not simulated.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"lockstep/locktest"
	"lockstep/model"
	"lockstep/peers/disk"
	"lockstep/sim"
)

// port is where NATS serves clients.
const port = 4222

// accessUsers and accessDone are variables of the service that gives the time to the server's
// stores, rounded down to 100 ms. A program has one such service. It must follow the time of the
// world, so each world starts its own.
//
//go:linkname accessUsers github.com/nats-io/nats-server/v2/server/ats.refs
var accessUsers atomic.Int64

//go:linkname accessDone github.com/nats-io/nats-server/v2/server/ats.done
var accessDone chan struct{}

// createClient lets a server serve a connection, as the server's own accept loop does.
//
//go:linkname createClient github.com/nats-io/nats-server/v2/server.(*Server).createClient
func createClient(*server.Server, net.Conn) unsafe.Pointer

// Bucket is a bucket of the key-value store.
type Bucket struct {
	jetstream.KeyValueConfig
	// OnTime makes the revisions begin with the time at which the bucket is made, in milliseconds
	// since 1970, and not with 1. A bucket that is made again then repeats no revision, unless the
	// old one used more than one per millisecond.
	OnTime bool
}

// Servers returns one server that has this bucket.
func Servers(bucket Bucket) locktest.Servers {
	return locktest.Independent(1, port, func() sim.Server { return sim.Segments(&Server{bucket: bucket}) })
}

// Server is NATS. It implements sim.StreamServer.
type Server struct {
	bucket Bucket
	setup  sim.Setup

	mu   sync.Mutex // held for moments only
	now  *run       // nil: it does not serve
	seen map[string]Entry
	over bool
}

// run is NATS from one start to its end.
type run struct {
	dir   string
	nats  *server.Server
	from  net.Listener       // of its clients
	store server.StreamStore // of the bucket
}

// Entry is the value of a key of the bucket, with its revision and its end.
type Entry struct {
	Value    string
	Revision uint64
	// Ends is the end of the entry's TTL; zero: it has none. The server removes the entry then, or
	// up to 0.35 s later.
	Ends time.Time
}

// Parts implements sim.StreamServer. The locks of a subject are read with Entry.
func (s *Server) Parts() sim.Parts {
	return sim.Parts{Stop: s.Stop, Strike: s.Strike, Says: sim.SaysWhole(says), Lacks: s.Lacks, Leftovers: s.Leftovers}
}

// Boot implements sim.StreamServer.
func (s *Server) Boot(setup sim.Setup) error {
	s.setup, s.seen = setup, map[string]Entry{}
	accessUsers.Store(0)
	accessDone = make(chan struct{}, 1)
	ats.Register()
	// The service ticks every 100 ms from now on. The timers of a store must not fire at the
	// same instants, where either may be the first.
	time.Sleep(12_345_678)
	dir, err := disk.New("nats")
	if err != nil {
		return err
	}
	return s.begin(dir)
}

// options returns the options of a server that was started with -js and a directory. Only
// settings that depend on the machine, or on chance that cannot be seeded, differ.
func options(dir string) *server.Options {
	return &server.Options{
		ServerName: "nats", JetStream: true, StoreDir: dir, DontListen: true, NoLog: true, NoSigs: true,
		JetStreamMaxMemory: 1 << 30, JetStreamMaxStore: 1 << 30,
		// The server draws the time of the first PING to a client.
		PingInterval: time.Hour, DisableShortFirstPing: true,
	}
}

// begin starts NATS on a directory. It makes the bucket if it does not exist.
func (s *Server) begin(dir string) error {
	l := s.setup.Listen()
	r, err := open(dir, l, s.bucket, s.setup.Changed)
	if err != nil {
		return err
	}
	s.mu.Lock()
	over := s.over
	if !over {
		s.now = r
	}
	s.mu.Unlock()
	if over {
		r.end()
		return nil
	}
	go r.serve()
	s.setup.Changed()
	return nil
}

// open starts NATS on a directory for the clients of l.
func open(dir string, l net.Listener, bucket Bucket, changed func()) (*run, error) {
	n, err := server.NewServer(options(dir))
	if err != nil {
		return nil, fmt.Errorf("NATS: %w", err)
	}
	n.Start()
	r := &run{dir: dir, nats: n, from: l}
	if err := r.provide(bucket); err != nil {
		return nil, fmt.Errorf("NATS: making the bucket: %w", err)
	}
	r.store = storeOf(n, streamOf(bucket))
	watch(r.store, changed)
	return r, nil
}

// serve accepts clients until the listener is closed.
func (r *run) serve() {
	for {
		c, err := r.from.Accept()
		if err != nil {
			return
		}
		createClient(r.nats, c)
	}
}

// provide makes the bucket if it does not exist, as an operator does before clients come.
func (r *run) provide(bucket Bucket) error {
	nc, err := nats.Connect("", nats.InProcessServer(r.nats))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := js.KeyValue(ctx, bucket.Bucket); !errors.Is(err, jetstream.ErrBucketNotFound) {
		return err
	}
	if _, err := js.CreateKeyValue(ctx, bucket.KeyValueConfig); err != nil || !bucket.OnTime {
		return err
	}
	// Only a stream takes a first sequence number. So the stream is made with the configuration of
	// the bucket's stream.
	stream, err := js.Stream(ctx, streamOf(bucket))
	if err != nil {
		return err
	}
	config := stream.CachedInfo().Config
	config.FirstSeq = uint64(time.Now().UnixMilli())
	if err := js.DeleteStream(ctx, config.Name); err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, config)
	return err
}

// streamOf returns the name of the stream behind a bucket.
func streamOf(b Bucket) string { return "KV_" + b.Bucket }

// field returns a field of the structure that v points to. NATS does not export it.
func field(v reflect.Value, name string) reflect.Value {
	f := v.Elem().FieldByName(name)
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// storeOf returns the store with the messages of a stream.
func storeOf(n *server.Server, stream string) server.StreamStore {
	streams := field(field(reflect.ValueOf(n.GlobalAccount()), "js"), "streams")
	return field(streams.MapIndex(reflect.ValueOf(stream)), "store").Interface().(server.StreamStore)
}

// watch calls changed after each change of a store, such as the end of an entry.
func watch(store server.StreamStore, changed func()) {
	told := field(reflect.ValueOf(store), "scb")
	tell := told.Interface().(server.StorageUpdateHandler)
	told.Set(reflect.ValueOf(server.StorageUpdateHandler(func(msgs, bytes int64, seq uint64, subj string) {
		tell(msgs, bytes, seq, subj)
		changed()
	})))
}

// end stops NATS and removes its directory.
func (r *run) end() {
	_ = r.from.Close()
	r.nats.Shutdown()
	r.nats.WaitForShutdown()
	_ = os.RemoveAll(r.dir)
}

// Stop is sim.Parts.Stop.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	now := s.now
	go func() {
		if now != nil {
			now.end()
		}
		ats.Unregister()
	}()
}

// Lacks is sim.Parts.Lacks.
func (*Server) Lacks(f model.FaultSpec) string {
	const has = "; it has a restart with its data and one without"
	switch {
	case f.Kind == model.FaultKey:
		return "has no operator who removes keys" + has
	case f.Server == model.ServerFailover:
		return "stands alone and has nothing to fail over to" + has
	case f.Server == model.ServerFlushScripts:
		return "runs no scripts" + has
	}
	return ""
}

// Strike is sim.Parts.Strike: a crash, after which the server starts again with
// what it had written to its directory, or with an empty directory.
func (s *Server) Strike(_ int64, f model.FaultSpec, out *sim.Effects) {
	s.mu.Lock()
	old := s.now
	s.now = nil
	if !f.KeepData {
		s.seen = map[string]Entry{}
	}
	s.mu.Unlock()
	if old == nil {
		return // it is starting again already
	}
	if !f.KeepData {
		for _, key := range old.keys(s.bucket) {
			e, _ := old.entry(s.bucket, key)
			out.Remove(published(s.bucket.Bucket, key, e.Value))
		}
	}
	disk.Crash("nats", old.dir, f.KeepData, old.end, s.begin)
}

// Entry returns the value of a key; false: it has none. While the server is down, it returns the
// value that the key had before.
func (s *Server) Entry(key string) (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		e, ok := s.seen[key]
		return e, ok
	}
	e, ok := s.now.entry(s.bucket, key)
	if ok {
		s.seen[key] = e
	} else {
		delete(s.seen, key)
	}
	return e, ok
}

// subject returns the subject of a key.
func subject(bucket, key string) string { return "$KV." + bucket + "." + key }

// published returns the bytes by which a request that publishes the value of a key is known: the value, or the subject if
// the value is empty.
func published(bucket, key, value string) string {
	if value == "" {
		return " " + subject(bucket, key) + " "
	}
	return "\r\n" + value + "\r\n"
}

func (r *run) entry(bucket Bucket, key string) (Entry, bool) {
	m, err := r.store.LoadLastMsg(subject(bucket.Bucket, key), nil)
	if err != nil {
		return Entry{}, false
	}
	v := reflect.ValueOf(m).Elem()
	header := nats.Header{}
	if b := v.FieldByName("hdr").Bytes(); len(b) > 0 {
		if header, err = nats.DecodeHeadersMsg(b); err != nil {
			panic(fmt.Sprintf("NATS: a message has a header that cannot be read: %v", err))
		}
	}
	if header.Get("KV-Operation") != "" || header.Get(jetstream.MarkerReasonHeader) != "" {
		return Entry{}, false // the message marks that the key is gone
	}
	e := Entry{Value: string(v.FieldByName("msg").Bytes()), Revision: v.FieldByName("seq").Uint()}
	life := bucket.TTL
	if own, err := time.ParseDuration(header.Get(jetstream.MsgTTLHeader)); err == nil {
		life = own
	}
	if life > 0 {
		e.Ends = time.Unix(0, v.FieldByName("ts").Int()).Add(life)
	}
	return e, true
}

// Leftovers is sim.Parts.Leftovers.
func (s *Server) Leftovers(out *sim.Effects) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return
	}
	for _, key := range s.now.keys(s.bucket) {
		out.Record(model.Event{Kind: model.KindLeft, Key: key})
	}
}

// keys returns the keys that have a value, in order.
func (r *run) keys(bucket Bucket) (keys []string) {
	for subj := range r.store.SubjectsState(subject(bucket.Bucket, ">")) {
		key := strings.TrimPrefix(subj, subject(bucket.Bucket, ""))
		if _, ok := r.entry(bucket, key); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Show lets a server that has not been started return these entries, by key.
func (s *Server) Show(entries map[string]Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = entries
}
