// Package concurrency has the signatures of etcd's package that the tests need.
package concurrency

import (
	"context"
	"sync"
)

type Session struct{}

func NewSession(client any) (*Session, error) { return nil, nil }
func (*Session) Done() <-chan struct{}        { return nil }

type Mutex struct{}

func NewMutex(s *Session, pfx string) *Mutex       { return nil }
func NewLocker(s *Session, pfx string) sync.Locker { return nil }
func (*Mutex) Lock(ctx context.Context) error      { return nil }
func (*Mutex) Unlock(ctx context.Context) error    { return nil }
