package results

import (
	"context"
	"log"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func dropped(ctx context.Context, m *redsync.Mutex, l *redislock.Lock, e *concurrency.Mutex) {
	defer m.Unlock()                     // want `the result of Unlock is dropped.* \(result-ignored\)`
	defer l.Release(ctx)                 // want `result-ignored`
	e.Unlock(ctx)                        // etcd does not say whether the key was still there
	m.Extend()                           // want `the work goes on after the lock is lost \(result-ignored\)`
	_, _ = m.Extend()                    // want `result-ignored`
	_ = l.Refresh(ctx, time.Second, nil) // want `result-ignored`
}

func looked(ctx context.Context, m *redsync.Mutex, l *redislock.Lock) error {
	if ok, err := m.Extend(); !ok || err != nil {
		return err
	}
	if ok, err := m.Unlock(); !ok {
		log.Print(err)
	}
	_ = l.Release(ctx) // the caller knows of the result
	return l.Refresh(ctx, time.Second, nil)
}

func local(m *sync.Mutex) { m.Unlock() }
