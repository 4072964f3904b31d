package handsout

import (
	"context"

	"go.etcd.io/etcd/client/v3/concurrency"
)

// The caller gets the session, and may look at it.
func Lock(ctx context.Context, client any) (*concurrency.Session, error) {
	s, err := concurrency.NewSession(client)
	if err != nil {
		return nil, err
	}
	return s, concurrency.NewMutex(s, "/orders").Lock(ctx)
}
