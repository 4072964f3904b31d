package etcdtest

import (
	"context"
	"net"
	_ "unsafe" // for go:linkname

	"google.golang.org/grpc"

	"lockstep/locktest"
)

// never is a channel of the client that is never closed. It is made outside any world, so time
// stands still in a world whose goroutines wait for it. A nil channel takes its place, which is
// never closed either.
//
//go:linkname never go.etcd.io/etcd/client/v3.valCtxCh
var never chan struct{}

func init() { never = nil }

// dialer lets gRPC dial in the world.
func dialer(p *locktest.Process) grpc.DialOption {
	return grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return p.DialContext(ctx, "tcp", addr)
	})
}
