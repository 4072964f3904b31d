package heard

import (
	"context"

	"go.etcd.io/etcd/client/v3/concurrency"
)

func session(ctx context.Context, client any) error {
	s, err := concurrency.NewSession(client)
	if err != nil {
		return err
	}
	if err := concurrency.NewMutex(s, "/orders").Lock(ctx); err != nil {
		return err
	}
	<-s.Done()
	return nil
}

type keeper struct{ session *concurrency.Session }

func (k *keeper) Lock(ctx context.Context, name string) error {
	return concurrency.NewMutex(k.session, "/locks/"+name).Lock(ctx) // want `two calls with one key in this process both get it.* \(shared-session\)`
}

// The key is fixed, and the caller sees that there is one.
func (k *keeper) Lead(ctx context.Context) error {
	return concurrency.NewMutex(k.session, "/leader").Lock(ctx)
}

// Each call has a session of its own.
func own(ctx context.Context, client any, name string) error {
	s, err := concurrency.NewSession(client)
	if err != nil {
		return err
	}
	return concurrency.NewMutex(s, name).Lock(ctx)
}

// A mutex that is made once is not taken here.
func (k *keeper) Make(name string) *concurrency.Mutex { return concurrency.NewMutex(k.session, name) }
