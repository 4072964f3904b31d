package heard

import (
	"context"
	"sync"

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

// A mutex of this process and a table of the keys keep two calls apart.
type table struct {
	mu      sync.Mutex
	session *concurrency.Session
	taken   map[string]*concurrency.Mutex
}

func (t *table) Lock(ctx context.Context, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.taken[name]; ok {
		return false
	}
	m := concurrency.NewMutex(t.session, "/locks/"+name)
	t.taken[name] = m
	return m.Lock(ctx) == nil
}

// The table is read, and the mutex is given up, before the lock is taken.
func (t *table) LockLater(ctx context.Context, name string) bool {
	t.mu.Lock()
	_, ok := t.taken[name]
	t.mu.Unlock()
	return !ok && concurrency.NewMutex(t.session, name).Lock(ctx) == nil // want `shared-session`
}

// The mutex ends with the call, and the lock does not.
func (t *table) LockInTurn(ctx context.Context, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return concurrency.NewMutex(t.session, name).Lock(ctx) == nil // want `shared-session`
}
