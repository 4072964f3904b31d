// Package etcd judges the mutex of etcd, go.etcd.io/etcd/client/v3/concurrency, unmodified,
// on the real server.
//
// The lock is a key under the name of the lock, one for each session. The session whose key
// was created first has the lock, and the others wait until the keys before theirs are
// gone. A session is a lease that its client keeps alive.
package etcd

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"lockstep/locktest"
	"lockstep/peers/etcd/server"
	"lockstep/sim"
)

// lease is the TTL of a session. A session of 60 s, which is the default, makes runs long.
const lease = 8 * time.Second

// renewEvery is how long a session goes without a renewal. The client plans the next renewal a
// third of the TTL after each answer, and checks every 500 ms which are due (client/v3 3.7.3,
// lease.go, lines 542, 593 and 86). It sends a renewal without an answer again at the next check,
// and on another stream 500 ms after the stream broke (line 489).
const renewEvery = lease/3 + 500*time.Millisecond

// election is how long a server without others may take to elect itself after a restart. It serves
// nobody before, and then every lease begins anew (server/v3 3.7.3, lease/lessor.go, Promote). The
// default election timeout is a second, and raft waits for up to twice that.
const election = 2 * time.Second

// Mutex is concurrency.Mutex, with a session for each acquire. The session is closed after the
// unlock. After a failed acquire or unlock the session is left to its lease, so that a key which
// may still exist ends with it.
//
// Its promises, with their sources:
//
//   - One owner at a time, until an unlock or the end of the lease: "API reference: concurrency",
//     service Lock, of etcd's documentation v3.6. The lease is a promise of time, so that a holder
//     that is paused past it meets another: "etcd versus other key-value stores", section "Notes on
//     the usage of lock and lease". Such a pause excuses two owners (limit).
//   - Waiters are served in the order of their keys: the oldest key has the lock (client/v3 3.7.3,
//     concurrency/mutex.go, lines 80 to 85 and 117), and an unlock hands it to the next waiter
//     (service Lock). So the lock is Fair.
//   - A wait ends with its context, and a Lock that gives up cleans up its key (mutex.go, lines 73
//     and 74). A TryLock returns at once after the necessary cleanup (line 50).
//   - The holder learns of a loss: Session.Done is closed when the lease expires or is no longer refreshed
//     (concurrency/session.go, lines 95 and 96).
//   - Fencing: the revision is the token, as the section "Notes on the usage of lock and lease" has
//     it. It is the one of Header (mutex.go, line 158).
var Mutex = locktest.Subject{
	Name: "etcd-mutex", About: "etcd: concurrency.Mutex, with a session for each acquire",
	Servers: server.Servers(), Lease: lease, Recovery: election, Reconnect: backoff.DefaultConfig.MaxDelay, Renewed: true, RenewEvery: renewEvery, Fair: true, State: state,
	Open: func(p *locktest.Process) (locktest.Client, error) {
		return newClient(p)
	},
}

// state reads the keys of a lock: the first one belongs to the holder, the others to
// waiters. A key is known by its session.
func state(s locktest.Snapshot, lock string) *locktest.State {
	var st *locktest.State
	for _, e := range sim.Streaming(s.Server(0)).(*server.Server).Entries(lock + "/") {
		if st != nil {
			st.Queue = append(st.Queue, e.Key)
			continue
		}
		st = &locktest.State{Owner: e.Key, Expires: -1}
		if e.Leased {
			st.Expires = s.Now() + e.Expires
		}
	}
	return st
}

// newClient makes a client that dials in the world. The world learns the caller of each request.
func newClient(p *locktest.Process) (*client, error) {
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
			grpc.WithStatsHandler(delayed{p}),
			grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				takeTurn(p, method)
				return invoke(inOrder(ctx), method, req, reply, cc, opts...)
			}),
			grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				ctx = inOrder(ctx)
				if method != keepAlive {
					takeTurn(p, method)
					s, err := open(ctx, desc, cc, method, opts...)
					if err != nil {
						return nil, err
					}
					return asking{s, p, method}, nil
				}
				// The loop that sends renewals and the loop that gives leases up would tick at the
				// same instants, at which either may be first.
				own.Wait()
				takeTurn(p, method)
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
	c.Watcher = watchers{c.Watcher, c}
	c.ActiveConnection().Connect()
	return &client{c, p, keepers}, nil
}

// takeTurn waits for the turn of the caller to send a request of this method. A new lease belongs
// to no lock yet, since the key of its session decides the place of a waiter. The stream of
// renewals is for the sessions of all threads. Requests of a thread that are due at one instant are
// sent in the order of their methods.
func takeTurn(p *locktest.Process, method string) {
	if method == leaseGrant || method == keepAlive {
		p.Turn()
		return
	}
	p.Asks(method)
}

// delayed takes the turns of requests that waited for a connection. Otherwise they would be sent
// in any order, since all of them go on at the instant at which the client has one.
type delayed struct{ p *locktest.Process }

type methodKey struct{}

// TagRPC implements stats.Handler.
func (delayed) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, methodKey{}, info.FullMethodName)
}

// HandleRPC implements stats.Handler. The goroutine of the request calls it.
func (d delayed) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.DelayedPickComplete); ok {
		takeTurn(d.p, ctx.Value(methodKey{}).(string))
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
	takeTurn(a.p, a.method)
	return a.ClientStream.SendMsg(m)
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

type client struct {
	*clientv3.Client
	p       *locktest.Process
	keepers *sync.Map
}

func (c *client) Lock(name string) (locktest.Lock, error) {
	return &lock{c: c, name: name}, nil
}

type lock struct {
	c       *client
	name    string
	session *concurrency.Session // of the newest hold
	mutex   *concurrency.Mutex   // nil: not held, as far as the handle knows
	unclear bool                 // an unlock of this hold has an unknown outcome
}

// begin makes a session and a mutex of it.
func (l *lock) begin(ctx context.Context) (*concurrency.Session, *concurrency.Mutex, error) {
	// Without a lease, NewSession would ask for one itself, and go on after the end of ctx.
	granted, err := l.c.Grant(ctx, int64(lease/time.Second))
	if err != nil {
		return nil, nil, err
	}
	l.c.keepers.Store(int64(granted.ID), l.c.p.Keeper(l.name))
	s, err := concurrency.NewSession(l.c.Client, concurrency.WithLease(granted.ID))
	if err != nil {
		return nil, nil, err
	}
	return s, concurrency.NewMutex(s, l.name), nil
}

// released is the key of a mutex after it has given its key up.
const released = "\x00"

// acquire takes the lock as take does.
func (l *lock) acquire(ctx context.Context, take func(*concurrency.Mutex) error) error {
	s, m, err := l.begin(ctx)
	if err != nil {
		return err
	}
	if err = take(m); err == nil {
		l.session, l.mutex, l.unclear = s, m, false
		return nil
	}
	s.Orphan() // a key that may exist ends with the lease
	if m.Key() == released {
		return locktest.ErrBusy
	}
	return err
}

func (l *lock) Lock(ctx context.Context) error {
	return l.acquire(ctx, func(m *concurrency.Mutex) error { return m.Lock(ctx) })
}

// TryLock implements locktest.TryLocker.
func (l *lock) TryLock(ctx context.Context) (bool, error) {
	err := l.acquire(ctx, func(m *concurrency.Mutex) error { return m.TryLock(ctx) })
	if errors.Is(err, locktest.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

func (l *lock) Unlock(ctx context.Context) error {
	if l.mutex == nil {
		return locktest.ErrNotHeld
	}
	if !l.unclear {
		select {
		case <-l.session.Done():
			return l.unlockLost(ctx)
		default:
		}
	}
	if err := l.mutex.Unlock(ctx); err != nil {
		l.unclear = true
		l.session.Orphan()
		return err
	}
	l.mutex = nil
	l.session.Orphan()
	_, _ = l.c.Revoke(ctx, l.session.Lease()) // the lease also ends by itself
	if l.unclear {
		return errGone
	}
	return nil
}

// unlockLost unlocks a hold whose session has ended for the client. The key may still exist, because
// the client also gives a session up when it hears no answer to its renewals.
func (l *lock) unlockLost(ctx context.Context) error {
	if err := l.c.Ctx().Err(); err != nil {
		return err // the client is closed, and the hold lasts until its lease is over
	}
	r, err := l.c.Txn(ctx).If(l.mutex.IsOwner()).Then(clientv3.OpDelete(l.mutex.Key())).Commit()
	if err != nil {
		l.unclear = true
		return err
	}
	l.mutex = nil
	if !r.Succeeded {
		return locktest.ErrNotHeld
	}
	return nil
}

// errGone is the error of an unlock after an unlock of unknown outcome, since Unlock does not
// report whether there was a key to delete.
var errGone = errors.New("the key is gone, by this unlock or by the one before")

// Lost implements locktest.Watched.
func (l *lock) Lost() <-chan struct{} { return l.session.Done() }

// Token implements locktest.Fenced: the revision of the store when the lock was acquired.
func (l *lock) Token() (uint64, bool) {
	return uint64(l.mutex.Header().Revision), true
}
