package losses

import (
	"context"

	"github.com/hashicorp/consul/api"
	"github.com/redis/rueidis/rueidislock"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func dropped(ctx context.Context, l rueidislock.Locker, c *api.Lock) {
	_, cancel, err := l.WithContext(ctx, "orders") // want `the first result of WithContext tells that the lock is lost.* \(loss-ignored\)`
	if err == nil {
		defer cancel()
	}
	c.Lock(nil)                            // want `loss-ignored`
	_, err = c.Lock(nil)                   // want `loss-ignored`
	if _, err := c.Lock(nil); err != nil { // want `loss-ignored`
		return
	}
}

func heard(ctx context.Context, l rueidislock.Locker, c *api.Lock) {
	held, cancel, err := l.WithContext(ctx, "orders")
	if err == nil {
		defer cancel()
		<-held.Done()
	}
	lost, err := c.Lock(nil)
	if err == nil {
		<-lost
	}
}

func session(ctx context.Context, client any) error {
	s, err := concurrency.NewSession(client)
	if err != nil {
		return err
	}
	return concurrency.NewMutex(s, "/orders").Lock(ctx) // want `nothing in this package reads Done of the session.* \(loss-ignored\)`
}
