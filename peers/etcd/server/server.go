// Package server runs etcd in a world: the real server, unmodified, with one member and its gRPC
// services, of which that of locks and that of elections are two, on a listener in memory.
//
// Its data directory (package disk) is not flushed.
package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/features"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"lockstep/locktest"
	"lockstep/model"
	"lockstep/peers/disk"
	"lockstep/sim"
)

// port is where etcd serves clients.
const port = 2379

func init() {
	// A file of the log is allocated before it is written to. 64 MB, which is the default,
	// take longer than a world.
	wal.SegmentSizeBytes = 1 << 20
}

// Servers returns one server of one member.
func Servers() locktest.Servers {
	return locktest.Independent(1, port, func() sim.Server { return sim.Segments(&Server{}) })
}

// Server is etcd. It implements sim.StreamServer.
type Server struct {
	setup sim.Setup

	mu   sync.Mutex         // held for moments only
	now  *member            // nil: it does not serve
	seen map[string][]Entry // by prefix, when it was read last
	show []Entry            // of a server that has not been started, with their whole keys
	over bool
}

// member is etcd from one start to its end.
type member struct {
	dir  string
	etcd *etcdserver.EtcdServer
	grpc *grpc.Server
	own  *clientv3.Client // of the services that are clients of etcd themselves
}

// Entry is a key under a prefix.
type Entry struct {
	Key            string // without the prefix
	Value          string
	CreateRevision int64
	Leased         bool
	Expires        time.Duration // from now until the lease of the key is over, if it has one; the server notices up to 0.5 s later
}

// Parts implements sim.StreamServer. The locks of a subject are read with Entries.
func (s *Server) Parts() sim.Parts {
	return sim.Parts{Stop: s.Stop, Strike: s.Strike, Says: says, Lacks: s.Lacks, Leftovers: s.Leftovers}
}

// Boot implements sim.StreamServer.
func (s *Server) Boot(setup sim.Setup) error {
	s.setup, s.seen = setup, map[string][]Entry{}
	dir, err := disk.New("etcd")
	if err != nil {
		return err
	}
	return s.begin(dir)
}

// begin starts a member on a directory, and waits until it serves.
func (s *Server) begin(dir string) error {
	l := s.setup.Listen()
	m, err := newMember(dir, configuration(dir))
	if err != nil {
		return err
	}
	s.mu.Lock()
	over := s.over
	if !over {
		s.now = m
	}
	s.mu.Unlock()
	if over {
		m.end()
		return nil
	}
	go func() { _ = m.grpc.Serve(l) }()
	if err := m.watch(func(int64) { s.setup.Changed() }); err != nil {
		return err
	}
	s.setup.Changed()
	return nil
}

// watch calls changed for each change of a key, such as the end of a lease. Its argument is the
// revision of the change, which the store may not have yet.
func (m *member) watch(changed func(revision int64)) error {
	watch := m.etcd.KV().NewWatchStream()
	if _, err := watch.Watch(context.Background(), 0, []byte{0}, []byte{}, 0); err != nil {
		return fmt.Errorf("etcd: watching its keys: %w", err)
	}
	go func() {
		defer watch.Close()
		for {
			select {
			case r := <-watch.Chan():
				revision := int64(0)
				for _, e := range r.Events {
					revision = max(revision, e.Kv.ModRevision)
				}
				changed(revision)
			case <-m.etcd.StopNotify():
				return
			}
		}
	}()
	return nil
}

// serve starts a member on a directory, which flushes its files and serves the clients of l.
func serve(dir string, l net.Listener) (*member, error) {
	c := configuration(dir)
	c.UnsafeNoFsync = false
	m, err := newMember(dir, c)
	if err != nil {
		return nil, err
	}
	go func() { _ = m.grpc.Serve(l) }()
	return m, nil
}

// newMember starts a member on a directory, and waits until it is ready.
func newMember(dir string, c config.ServerConfig) (*member, error) {
	etcd, err := etcdserver.NewServer(c)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	etcd.Start()
	<-etcd.ReadyNotify()
	m := &member{dir: dir, etcd: etcd, grpc: v3rpc.Server(etcd, nil, nil), own: v3client.New(etcd)}
	v3lockpb.RegisterLockServer(m.grpc, v3lock.NewLockServer(m.own))
	v3electionpb.RegisterElectionServer(m.grpc, v3election.NewElectionServer(m.own))
	return m, nil
}

// configuration returns the configuration of etcd with its default flags, except for the flushing
// of files.
func configuration(dir string) config.ServerConfig {
	urls := types.MustNewURLs([]string{"http://localhost:2380"})
	return config.ServerConfig{
		Name: "default", DataDir: filepath.Join(dir, "default.etcd"),
		ClientURLs: types.MustNewURLs([]string{"http://localhost:2379"}), PeerURLs: urls,
		InitialPeerURLsMap: types.URLsMap{"default": urls}, InitialClusterToken: "etcd-cluster", NewCluster: true,
		SnapshotCount: etcdserver.DefaultSnapshotCount, SnapshotCatchUpEntries: etcdserver.DefaultSnapshotCatchUpEntries,
		MaxSnapFiles: 5, MaxWALFiles: 5, BackendFreelistType: bolt.FreelistMapType,
		TickMs: 100, ElectionTicks: 10, InitialElectionTickAdvance: true, PreVote: true, StrictReconfigCheck: true,
		MaxTxnOps: 128, MaxRequestBytes: 3 << 19, MaxConcurrentStreams: math.MaxUint32,
		AuthToken: "simple", BcryptCost: 10, TokenTTL: 300,
		WarningApplyDuration: 100 * time.Millisecond, WarningUnaryRequestDuration: 300 * time.Millisecond,
		DowngradeCheckTime: 5 * time.Second, CompactHashCheckTime: time.Minute, MaxLearners: 1, Metrics: "basic",
		ServerFeatureGate: features.NewDefaultServerFeatureGate("default", zap.NewNop()),
		Logger:            zap.NewNop(), UnsafeNoFsync: true,
	}
}

// end stops a member and removes its directory.
func (m *member) end() {
	m.grpc.Stop()
	_ = m.own.Close()
	m.etcd.HardStop()
	_ = os.RemoveAll(m.dir)
}

// Stop is sim.Parts.Stop.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.now != nil {
		go s.now.end()
	}
}

// Lacks is sim.Parts.Lacks.
func (*Server) Lacks(f model.FaultSpec) string {
	const has = "; it has a restart with its data and the deletion of keys"
	switch {
	case f.Kind == model.FaultKey && f.KeyDo != "delete":
		return "has no operator who ends a lease" + has
	case f.Server == model.ServerRestart && !f.KeepData:
		return "does not start again as the same member without its data" + has
	case f.Server == model.ServerFailover:
		return "has one member and nothing to fail over to" + has
	case f.Server == model.ServerFlushScripts:
		return "runs no scripts" + has
	}
	return ""
}

// Strike is sim.Parts.Strike: a crash, after which the server starts again with
// what it had written to its directory, or an operator who deletes keys. A server that is down has nobody
// who could delete them.
func (s *Server) Strike(_ int64, f model.FaultSpec, out *sim.Effects) {
	s.mu.Lock()
	old := s.now
	if f.Kind == model.FaultKey {
		s.mu.Unlock()
		if old != nil {
			found, _ := old.matching(f.Key)
			for _, kv := range found {
				put, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&etcdserverpb.PutRequest{Key: kv.Key, Value: kv.Value, Lease: kv.Lease})
				out.Remove(string(put))
			}
			go func() { _ = old.delete(found) }() // it fails if the server is stopped meanwhile
		}
		return
	}
	s.now = nil
	s.mu.Unlock()
	if old == nil {
		return // it is starting again already
	}
	disk.Crash("etcd", old.dir, true, old.end, s.begin)
}

// Entries returns the keys under a prefix, in the order of their creation. While the server
// is down, these are the keys that it had before.
func (s *Server) Entries(prefix string) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.show != nil {
		return withPrefix(prefix, s.show)
	}
	if s.now == nil {
		return s.seen[prefix]
	}
	found, err := s.now.entries(prefix, 0)
	if err != nil && !errors.Is(err, context.Canceled) {
		panic(fmt.Sprintf("etcd: reading its own keys: %v", err))
	}
	s.seen[prefix] = found
	return s.seen[prefix]
}

// Show lets a server that has not been started have these entries, with their whole keys.
func (s *Server) Show(entries []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show = append([]Entry{}, entries...)
}

// withPrefix returns the entries whose keys have a prefix, without the prefix.
func withPrefix(prefix string, entries []Entry) (found []Entry) {
	for _, e := range entries {
		if key, ok := strings.CutPrefix(e.Key, prefix); ok {
			e.Key = key
			found = append(found, e)
		}
	}
	return found
}

// entries returns the keys under a prefix at a revision, in the order of their creation; 0: now.
func (m *member) entries(prefix string, revision int64) ([]Entry, error) {
	first, end := rangeOf(prefix)
	found, err := m.etcd.KV().Range(context.Background(), first, end, mvcc.RangeOptions{Rev: revision})
	if err != nil {
		return nil, err
	}
	lessor := m.lessor()
	var list []Entry
	for _, kv := range found.KVs {
		e := Entry{Key: strings.TrimPrefix(string(kv.Key), prefix), Value: string(kv.Value), CreateRevision: kv.CreateRevision}
		if l := lessor.Lookup(lease.LeaseID(kv.Lease)); l != nil {
			e.Expires, e.Leased = l.Remaining(), true
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int { return int(a.CreateRevision - b.CreateRevision) })
	return list, nil
}

// rangeOf returns the ends of the range of the keys with a prefix. All keys have the prefix "".
func rangeOf(prefix string) (first, end []byte) {
	if prefix == "" {
		return []byte{0}, []byte{}
	}
	end = []byte(prefix)
	end[len(end)-1]++
	return []byte(prefix), end
}

// lessor returns the keeper of the leases. The API of etcd does not show leases to the millisecond.
func (m *member) lessor() lease.Lessor {
	field := reflect.ValueOf(m.etcd).Elem().FieldByName("lessor")
	return *(*lease.Lessor)(unsafe.Pointer(field.UnsafeAddr()))
}

// Leftovers is sim.Parts.Leftovers.
func (s *Server) Leftovers(out *sim.Effects) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return
	}
	all, err := s.now.matching("*")
	if err != nil {
		return
	}
	for _, kv := range all {
		out.Record(model.Event{Kind: model.KindLeft, Key: string(kv.Key)})
	}
}

// matching returns the keys that match a glob, with their values, in order.
func (m *member) matching(glob string) ([]*mvccpb.KeyValue, error) {
	first, end := rangeOf("")
	found, err := m.etcd.KV().Range(context.Background(), first, end, mvcc.RangeOptions{})
	if err != nil {
		return nil, err
	}
	var list []*mvccpb.KeyValue
	for _, kv := range found.KVs {
		if sim.Match(glob, string(kv.Key)) {
			list = append(list, kv)
		}
	}
	return list, nil
}

// delete deletes keys, all in one transaction.
func (m *member) delete(keys []*mvccpb.KeyValue) error {
	if len(keys) == 0 {
		return nil
	}
	txn := &etcdserverpb.TxnRequest{}
	for _, kv := range keys {
		op := &etcdserverpb.RequestOp_RequestDeleteRange{RequestDeleteRange: &etcdserverpb.DeleteRangeRequest{Key: kv.Key}}
		txn.Success = append(txn.Success, &etcdserverpb.RequestOp{Request: op})
	}
	_, err := m.etcd.Txn(context.Background(), txn)
	return err
}
