package server

import (
	"bytes"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// A caller writes segments as a client of gRPC does.
type caller struct {
	t       *testing.T
	out     bytes.Buffer
	frames  *http2.Framer
	block   bytes.Buffer
	headers *hpack.Encoder
}

func newCaller(t *testing.T) *caller {
	c := &caller{t: t}
	c.frames, c.headers = http2.NewFramer(&c.out, nil), hpack.NewEncoder(&c.block)
	return c
}

// segment returns what was written since the last segment.
func (c *caller) segment() string {
	defer c.out.Reset()
	return c.out.String()
}

// open begins a stream for a method, of the package etcdserverpb if it names none.
func (c *caller) open(stream uint32, method string) {
	c.block.Reset()
	path := "/etcdserverpb." + method
	if strings.Contains(method, ".") {
		path = "/" + method
	}
	for _, f := range [][2]string{{":method", "POST"}, {":path", path}, {"content-type", "application/grpc"}} {
		c.must(c.headers.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	c.must(c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.block.Bytes(), EndHeaders: true}))
}

// message returns a message with the head that gRPC gives it.
func (c *caller) message(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	c.must(err)
	return append([]byte{0, 0, 0, byte(len(b) >> 8), byte(len(b))}, b...)
}

func (c *caller) call(stream uint32, method string, m proto.Message) string {
	c.open(stream, method)
	c.must(c.frames.WriteData(stream, true, c.message(m)))
	return c.segment()
}

func (c *caller) must(err error) {
	if err != nil {
		c.t.Helper()
		c.t.Fatal(err)
	}
}

// txn puts a key if a condition is met.
func txn(key string, conditions ...*etcdserverpb.Compare) *etcdserverpb.TxnRequest {
	return &etcdserverpb.TxnRequest{Compare: conditions, Success: []*etcdserverpb.RequestOp{
		{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: &etcdserverpb.PutRequest{Key: []byte(key)}}},
		{Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: &etcdserverpb.RangeRequest{Key: []byte("orders")}}},
	}}
}

func TestSaysNamesCallsAndKeys(t *testing.T) {
	c, read := newCaller(t), says()
	c.out.WriteString(http2.ClientPreface)
	c.must(c.frames.WriteSettings())
	check := func(segment, want string) {
		t.Helper()
		if got := read(segment); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(c.segment(), "SETTINGS")
	for i, step := range []struct {
		method  string
		message proto.Message
		want    string
	}{
		{"Lease/LeaseGrant", &etcdserverpb.LeaseGrantRequest{TTL: 8}, "Lease/LeaseGrant 8s"},
		{"KV/Txn", txn("orders", &etcdserverpb.Compare{Key: []byte("orders"), Target: etcdserverpb.Compare_CREATE}), "KV/Txn put orders if absent"},
		// The encoder has the headers of this one in its table by now.
		{"KV/Txn", txn("orders", &etcdserverpb.Compare{Key: []byte("orders"), Target: etcdserverpb.Compare_CREATE, Result: etcdserverpb.Compare_NOT_EQUAL, TargetUnion: &etcdserverpb.Compare_CreateRevision{}}),
			"KV/Txn put orders if created ≠ 0"},
		{"KV/Txn", txn("a", &etcdserverpb.Compare{Key: []byte("b"), Target: etcdserverpb.Compare_MOD, TargetUnion: &etcdserverpb.Compare_ModRevision{ModRevision: 7}},
			&etcdserverpb.Compare{Key: []byte("a"), Target: etcdserverpb.Compare_VALUE, TargetUnion: &etcdserverpb.Compare_Value{Value: []byte("me")}}), "KV/Txn put a if b modified = 7 and value = me"},
		{"KV/Range", &etcdserverpb.RangeRequest{Key: []byte("orders/"), RangeEnd: []byte("orders0")}, "KV/Range orders/*"},
		{"KV/Range", &etcdserverpb.RangeRequest{Key: []byte("a"), RangeEnd: []byte("c")}, "KV/Range a..c"},
		{"KV/DeleteRange", &etcdserverpb.DeleteRangeRequest{Key: []byte("orders")}, "KV/DeleteRange orders"},
		{"Lease/LeaseRevoke", &etcdserverpb.LeaseRevokeRequest{ID: 0x1f}, "Lease/LeaseRevoke 1f"},
		{"Cluster/MemberList", &etcdserverpb.MemberListRequest{}, "Cluster/MemberList"},
		{"KV/Put", &etcdserverpb.LeaseRevokeRequest{ID: 5}, "KV/Put"},                      // no message of this method
		{"grpc.health.v1.Health/Check", &etcdserverpb.MemberListRequest{}, "Health/Check"}, // a package of several words
		{"v3lockpb.Lock/Lock", &v3lockpb.LockRequest{Name: []byte("orders"), Lease: 5}, "Lock/Lock orders"},
		{"v3lockpb.Lock/Unlock", &v3lockpb.UnlockRequest{Key: []byte("orders/5")}, "Lock/Unlock orders/5"},
	} {
		check(c.call(uint32(2*i+1), step.method, step.message), step.want)
	}

	// A stream stays open, and its next message comes in two segments.
	c.open(101, "Lease/LeaseKeepAlive")
	check(c.segment(), "Lease/LeaseKeepAlive")
	alive := c.message(&etcdserverpb.LeaseKeepAliveRequest{ID: 0x694d})
	c.must(c.frames.WriteData(101, false, alive))
	c.must(c.frames.WritePing(false, [8]byte{}))
	check(c.segment(), "Lease/LeaseKeepAlive 694d")
	c.must(c.frames.WriteData(101, false, alive[:4]))
	check(c.segment(), "")
	c.must(c.frames.WriteData(101, false, alive[4:]))
	check(c.segment(), "Lease/LeaseKeepAlive 694d")
	c.must(c.frames.WritePing(true, [8]byte{}))
	c.must(c.frames.WriteWindowUpdate(0, 9))
	c.must(c.frames.WritePing(true, [8]byte{}))
	frames := c.segment()
	check(frames[:20], "PING")
	check(frames[20:], "PING; WINDOW_UPDATE")
	c.must(c.frames.WriteRSTStream(101, http2.ErrCodeCancel))
	check(c.segment(), "gives up Lease/LeaseKeepAlive")
}

// Nobody knows what a client writes that does not speak the protocol, and the reader of one connection knows nothing of
// another.
func TestSaysReadsNoOtherBytes(t *testing.T) {
	c := newCaller(t)
	c.out.WriteString(http2.ClientPreface)
	first := c.call(1, "KV/Range", &etcdserverpb.RangeRequest{Key: []byte("orders")})
	second := c.call(3, "KV/Range", &etcdserverpb.RangeRequest{Key: []byte("orders")})
	read := says()
	for i, want := range []string{"KV/Range orders", "KV/Range orders"} {
		if got := read([]string{first, second}[i]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, segment := range []string{"", "GET / HTTP/1.1\r\n\r\n", http2.ClientPreface + second, http2.ClientPreface + "\x00\x00\x01\x01\x05\x00\x00\x00\x01\xff" + first} {
		if got := says()(segment); got != "" {
			t.Errorf("%q: %q", segment, got)
		}
	}
	for cut := range first {
		read := says()
		if got := read(first[:cut]); got != "" && got != "KV/Range" {
			t.Errorf("%d bytes: %q", cut, got)
		}
		if got := read(first[cut:]); got != "KV/Range orders" {
			t.Errorf("after %d bytes: %q", cut, got)
		}
	}
}
