// Package etcdtest lets clients of go.etcd.io/etcd/client/v3 run in a world, whatever lock uses them.
// A subject of package locktest gets its server, its clients and its State from here.
//
// A client that only dials with [locktest.Process.DialContext] does not run in a world. It has a
// goroutine that waits for a channel from outside of the world, and it sends its headers, its
// renewals and its watches in the order of maps. [NewClient] mends both.
package etcdtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"lockstep/locktest"
	"lockstep/peers/etcd/server"
	"lockstep/sim"
)

// Servers returns one server of one member: the real etcd, unmodified.
func Servers() locktest.Servers { return servers{server.Servers()} }

type servers struct{ locktest.Servers }

// Times implements locktest.Timed.
func (servers) Times() (recovery, reconnect time.Duration) { return Recovery, Reconnect }

// Recovery is how long a server without others may take to elect itself after a restart. It serves
// nobody before, and then every lease begins anew (server/v3 3.7.3, lease/lessor.go, Promote). The
// default election timeout is a second, and raft waits for up to twice that.
const Recovery = 2 * time.Second

// Reconnect is the longest time that a client waits before it connects again.
var Reconnect = backoff.DefaultConfig.MaxDelay

// RenewEvery returns how long KeepAlive of the client goes without a renewal of a lease. The client
// plans the next renewal a third of the lease after each answer, and checks every 500 ms which are due
// (client/v3 3.7.3, lease.go, lines 542, 593 and 86). It sends a renewal without an answer again at the
// next check, and on another stream 500 ms after the stream broke (line 489).
func RenewEvery(lease time.Duration) time.Duration { return lease/3 + 500*time.Millisecond }

// Entry is a key under a prefix.
type Entry = server.Entry

// Entries returns the keys under a prefix, the oldest first. While the server is down, these are the
// keys that it had before.
func Entries(s locktest.Snapshot, prefix string) []Entry {
	return sim.Streaming(s.Server(0)).(*server.Server).Entries(prefix)
}

// Key returns the State of a lock that is held while one key exists. A hold is known by the revision
// at which its key was created. key returns the key of a lock; nil: the name of the lock.
func Key(key func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	if key == nil {
		key = func(lock string) string { return lock }
	}
	return func(s locktest.Snapshot, lock string) *locktest.State {
		for _, e := range Entries(s, key(lock)) {
			if e.Key == "" { // not a longer key that begins like this one
				return hold(s, e, strconv.FormatInt(e.CreateRevision, 10))
			}
		}
		return nil
	}
}

// Oldest returns the State of a lock for which each caller has a key. The oldest key has the lock, and
// the others wait in the order of their age. A key is known by the part after the prefix. prefix
// returns the prefix of a lock, which ends with a separator.
func Oldest(prefix func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	return oldest(prefix, func(e Entry) string { return e.Key })
}

// OldestCreated is Oldest for a key that comes again when its caller asks again, such as the key of a session
// that several holds share. A key is known by the part after the prefix and the revision at which it was created.
func OldestCreated(prefix func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	return oldest(prefix, func(e Entry) string { return e.Key + "." + strconv.FormatInt(e.CreateRevision, 10) })
}

// oldest returns the State of Oldest. name returns the name of a key.
func oldest(prefix func(lock string) string, name func(Entry) string) func(locktest.Snapshot, string) *locktest.State {
	return func(s locktest.Snapshot, lock string) *locktest.State {
		var st *locktest.State
		for _, e := range Entries(s, prefix(lock)) {
			if st != nil {
				st.Queue = append(st.Queue, name(e))
				continue
			}
			st = hold(s, e, name(e))
		}
		return st
	}
}

// hold returns the hold of an owner whose key is e.
func hold(s locktest.Snapshot, e Entry, owner string) *locktest.State {
	st := &locktest.State{Owner: owner, Expires: -1}
	if e.Leased {
		st.Expires = s.Now() + e.Expires
	}
	return st
}

// Client is a client in a world.
type Client struct {
	*clientv3.Client
	p       *locktest.Process
	keepers *sync.Map // by the ID of a lease, the Keeper of the thread that asked for the lease
}

// ForLock returns the client that the lock of one thread uses. The world takes a renewal of a lease
// that this client has granted for a renewal of the thread's hold on that lock. A renewal of another
// lease by KeepAlive belongs to nobody. One by KeepAliveOnce belongs to the call in which it is sent.
//
// The client ends with c. Nobody closes it.
func (c *Client) ForLock(name string) *clientv3.Client {
	own := clientv3.NewCtxClient(c.Ctx())
	own.Cluster, own.KV, own.Watcher, own.Auth, own.Maintenance = c.Cluster, c.KV, c.Watcher, c.Auth, c.Maintenance
	own.Lease = leases{c.Client.Lease, c, name}
	return own
}

// leases are the leases for the holds on one lock.
type leases struct {
	clientv3.Lease
	c    *Client
	lock string
}

// Grant implements clientv3.Lease.
func (l leases) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	granted, err := l.Lease.Grant(ctx, ttl)
	if err == nil {
		l.c.keepers.Store(int64(granted.ID), l.c.p.Keeper(l.lock))
	}
	return granted, err
}

// NewClient returns a client of p, which dials in the world. The world learns the caller of each
// request. The caller closes the client, or embeds it in a [locktest.Client], whose Close it then is.
func NewClient(p *locktest.Process) (*Client, error) {
	steady := backoff.DefaultConfig
	steady.Jitter = 0 // its random numbers cannot be seeded
	keepers := &sync.Map{}
	own, renews := p.Sim().Instant(), p.Sim().Instant()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + p.Addr(0)}, Logger: zap.NewNop(),
		// The jitter of a pause comes from chance that cannot be seeded. With 0 the client would take its
		// default. This fraction is less than half of the step from 1 to the next float64, so a pause
		// times 1 plus the jitter is the pause.
		BackoffJitterFraction: 1e-17,
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: steady, MinConnectTimeout: 20 * time.Second}),
			dialer(p),
			grpc.WithStatsHandler(delayed{p, keepers}),
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				takeTurn(p, method, req)
				return invoke(inOrder(ctx), method, req, reply, cc, opts...)
			}),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				ctx = inOrder(ctx)
				if method != keepAlive || ctx.Value(onceKey{}) != nil {
					takeTurnIn(ctx, p, keepers, method)
					s, err := open(ctx, desc, cc, method, opts...)
					if err != nil || method == keepAlive {
						return s, err // a renewal of KeepAliveOnce is written at once
					}
					return asking{s, p, method}, nil
				}
				// The loop that sends renewals and the loop that gives leases up would tick at the
				// same instants, at which either may be first.
				own.Wait()
				takeTurn(p, method, nil)
				s, err := open(ctx, desc, cc, method, opts...)
				if err != nil {
					return nil, err
				}
				r := &renewals{ClientStream: s, keepers: keepers, own: renews, due: make(chan struct{}, 1)}
				go r.send()
				return r, nil
			}),
		},
	})
	if err != nil {
		return nil, err
	}
	c.Watcher, c.Lease = watchers{c.Watcher, c}, onceLeases{c.Lease}
	c.ActiveConnection().Connect()
	return &Client{c, p, keepers}, nil
}

// takeTurn waits for the turn of the caller to send a request of this method. A new lease belongs
// to no lock yet, since the key of its session decides the place of a waiter. The stream of
// renewals is for the sessions of all threads. Requests of a thread that are due at one instant are
// sent in the order of their methods and contents. A timeline shows a method of etcd without its package,
// such as KV/Txn. sends is the message; nil: it is not known yet.
func takeTurn(p *locktest.Process, method string, sends any) {
	content := ""
	if m, ok := sends.(proto.Message); ok {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			panic("etcdtest: " + err.Error()) // the client could not send it either
		}
		content = string(b)
	}
	if method == leaseGrant || method == keepAlive {
		p.TurnToSend(content)
		return
	}
	p.AsksToSend(content, server.MethodName(method))
}

// takeTurnIn waits for the turn of the caller whose context this is, before a stream is opened or when it has a connection. A
// renewal by KeepAliveOnce belongs to the call that sends it. Outside of calls, it renews the hold for which the lease was granted,
// or else that of the caller's thread.
func takeTurnIn(ctx context.Context, p *locktest.Process, keepers *sync.Map, method string) {
	id, once := ctx.Value(onceKey{}).(clientv3.LeaseID)
	if !once {
		takeTurn(p, method, nil)
		return
	}
	lease := strconv.FormatInt(int64(id), 16)
	if keeper, ok := keepers.Load(int64(id)); ok && !p.Sim().InCall() {
		keeper.(func(...string))(lease)
		return
	}
	p.AsksToSend(lease, server.MethodName(method))
}

// delayed takes the turns of requests that waited for a connection. Otherwise they would be sent
// in any order, since all of them go on at the instant at which the client has one.
type delayed struct {
	p       *locktest.Process
	keepers *sync.Map
}

type methodKey struct{}

// TagRPC implements stats.Handler.
func (delayed) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, methodKey{}, info.FullMethodName)
}

// HandleRPC implements stats.Handler. The goroutine of the request calls it.
func (d delayed) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.DelayedPickComplete); ok {
		takeTurnIn(ctx, d.p, d.keepers, ctx.Value(methodKey{}).(string))
	}
}

// TagConn implements stats.Handler.
func (delayed) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (delayed) HandleConn(context.Context, stats.ConnStats) {}

// inOrder returns a context whose request has the headers of ctx in the order of their names. gRPC
// would send them in the order of a map, which changes how far they can be compressed.
func inOrder(ctx context.Context) context.Context {
	headers, _ := metadata.FromOutgoingContext(ctx)
	ctx = metadata.NewOutgoingContext(ctx, nil)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			ctx = metadata.AppendToOutgoingContext(ctx, name, value)
		}
	}
	return ctx
}

// watchers gives each watch a Watcher, and so a stream, of its own. Watches that share a stream begin
// anew in the order of a map when it breaks.
type watchers struct {
	clientv3.Watcher
	c *clientv3.Client
}

// Watch implements clientv3.Watcher.
func (w watchers) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return clientv3.NewWatcher(w.c).Watch(ctx, key, opts...)
}

// asking is a stream that asks for its turn before it sends.
type asking struct {
	grpc.ClientStream
	p      *locktest.Process
	method string
}

// SendMsg implements grpc.ClientStream.
func (a asking) SendMsg(m any) error {
	takeTurn(a.p, a.method, m)
	return a.ClientStream.SendMsg(m)
}

// onceLeases lets the streams of KeepAliveOnce be told from the stream of renewals, by a context that has their lease.
type onceLeases struct{ clientv3.Lease }

type onceKey struct{} // its value is the clientv3.LeaseID

// KeepAliveOnce implements clientv3.Lease.
func (l onceLeases) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	return l.Lease.KeepAliveOnce(context.WithValue(ctx, onceKey{}, id), id)
}

// leaseGrant is the method that asks for a lease. keepAlive opens the stream of renewals. A client has
// one such stream, and sends the renewals of all its sessions on it.
const (
	leaseGrant = "/etcdserverpb.Lease/LeaseGrant"
	keepAlive  = "/etcdserverpb.Lease/LeaseKeepAlive"
)

// renewals is the stream that keepAlive opens. A client of etcd sends the renewals of an instant in the
// order of a map. The stream keeps them until the instant is over, and sends them in the order of their
// sessions. A renewal belongs to the keys of its session.
type renewals struct {
	grpc.ClientStream
	keepers *sync.Map // by the ID of a session, the Keeper of its thread
	own     sim.Instant

	mu   sync.Mutex
	kept []*etcdserverpb.LeaseKeepAliveRequest
	err  error // of the last renewal that was sent
	due  chan struct{}
}

// SendMsg implements grpc.ClientStream. Its error is that of an earlier renewal.
func (r *renewals) SendMsg(m any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, m.(*etcdserverpb.LeaseKeepAliveRequest))
	select {
	case r.due <- struct{}{}:
	default:
	}
	return r.err
}

// send sends the kept renewals until the stream ends.
func (r *renewals) send() {
	for {
		select {
		case <-r.Context().Done():
			return
		case <-r.due:
		}
		r.own.Wait()
		r.mu.Lock()
		kept := r.kept
		r.kept = nil
		r.mu.Unlock()
		slices.SortFunc(kept, func(a, b *etcdserverpb.LeaseKeepAliveRequest) int { return cmp.Compare(a.ID, b.ID) })
		for _, m := range kept {
			if keeper, ok := r.keepers.Load(m.ID); ok {
				keeper.(func(...string))(strconv.FormatInt(m.ID, 16))
			}
			if err := r.ClientStream.SendMsg(m); err != nil {
				r.mu.Lock()
				r.err = err
				r.mu.Unlock()
			}
		}
	}
}
