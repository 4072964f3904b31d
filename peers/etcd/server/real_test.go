package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// These tests start the real server on a socket, in real time. They show without the worlds what
// the worlds show. None depends on how long anything takes.

// start starts a server that flushes its files, and returns its address.
func start(t *testing.T) string {
	t.Helper()
	_, addr := startMember(t)
	return addr
}

// startMember is start, and also returns the member that serves.
func startMember(t *testing.T) (m *member, addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, err = serve(t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.end)
	return m, l.Addr().String()
}

// connect returns a client and a session of it. The session lasts for a minute after its last
// renewal.
func connect(t *testing.T, addr string, options ...grpc.DialOption) (*clientv3.Client, *concurrency.Session) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop(), DialOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := concurrency.NewSession(c, concurrency.WithTTL(60))
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// deaf is a connection that receives nothing after it has sent a certain text.
type deaf struct {
	net.Conn
	text   []byte
	sent   func()
	silent atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (d *deaf) Write(b []byte) (int, error) {
	if bytes.Contains(b, d.text) && d.silent.CompareAndSwap(false, true) {
		defer d.sent()
	}
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.silent.Load() {
		<-d.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

// Lock deletes its key if it gives up while it waits for the keys in front. It does not delete it
// if it gives up while its transaction is under way. Then all others wait behind the key until the
// session is over.
func TestAnAcquireGivenUpInItsTransactionLeavesItsKey(t *testing.T) {
	addr := start(t)
	sent := make(chan struct{})
	_, a := connect(t, addr, grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		return &deaf{Conn: conn, text: []byte("orders/"), sent: func() { close(sent) }, closed: make(chan struct{})}, err
	}))
	other, b := connect(t, addr)
	written := other.Watch(t.Context(), "orders/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-written // the watch exists

	giveUp, cancel := context.WithCancel(t.Context())
	returned := make(chan error, 1)
	go func() { returned <- concurrency.NewMutex(a, "orders").Lock(giveUp) }()
	<-sent
	<-written // the transaction has run
	cancel()
	if err := <-returned; !errors.Is(err, context.Canceled) {
		t.Fatalf("Lock of a returned %v, want %v", err, context.Canceled)
	}

	m := concurrency.NewMutex(b, "orders")
	if err := m.TryLock(t.Context()); !errors.Is(err, concurrency.ErrLocked) {
		t.Errorf("TryLock of b: %v; want it refused, although nobody has the lock", err)
	}
	if _, err := other.Revoke(t.Context(), a.Lease()); err != nil { // the end of the session
		t.Fatal(err)
	}
	if err := m.TryLock(t.Context()); err != nil {
		t.Errorf("TryLock of b after the session of a: %v", err)
	}
}

// TryLock writes its key before it knows whether the lock is free, and deletes it when it is refused.
// A try that comes between the two is refused, too, although nobody has the lock.
func TestATryThatIsRefusedRefusesAnother(t *testing.T) {
	addr := start(t)
	_, h := connect(t, addr)
	deleting, goOn := make(chan struct{}), make(chan struct{})
	_, a := connect(t, addr, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*etcdserverpb.DeleteRangeRequest); ok {
			close(deleting)
			<-goOn // as with a slow network
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}))
	_, b := connect(t, addr)

	holder := concurrency.NewMutex(h, "orders")
	if err := holder.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() { refused <- concurrency.NewMutex(a, "orders").TryLock(t.Context()) }()
	<-deleting
	if err := holder.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := concurrency.NewMutex(b, "orders")
	if err := again.TryLock(t.Context()); !errors.Is(err, concurrency.ErrLocked) {
		t.Errorf("TryLock of b: %v; want it refused, although nobody has the lock", err)
	}
	close(goOn)
	if err := <-refused; !errors.Is(err, concurrency.ErrLocked) {
		t.Errorf("TryLock of a: %v, want %v", err, concurrency.ErrLocked)
	}
	if err := again.TryLock(t.Context()); err != nil {
		t.Errorf("TryLock of b after that of a: %v", err)
	}
}
