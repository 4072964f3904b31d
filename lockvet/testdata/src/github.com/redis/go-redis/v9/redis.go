// Package redis has the signatures of go-redis that the tests need.
package redis

import (
	"context"
	"time"
)

type Cmd[T any] struct{}

func (*Cmd[T]) Result() (v T, err error) { return }
func (*Cmd[T]) Val() (v T)               { return }
func (*Cmd[T]) Err() error               { return nil }
func (*Cmd[T]) Int64() (int64, error)    { return 0, nil }
func (*Cmd[T]) Time() (time.Time, error) { return time.Time{}, nil }

type SetArgs struct {
	Mode string
	TTL  time.Duration
}

type Pipeliner interface {
	SetNX(ctx context.Context, key string, value any, expiration time.Duration) *Cmd[bool]
	Del(ctx context.Context, keys ...string) *Cmd[int64]
	Expire(ctx context.Context, key string, expiration time.Duration) *Cmd[bool]
	Exec(ctx context.Context) ([]any, error)
}

type cmdable struct{}

func (cmdable) SetNX(ctx context.Context, key string, value any, expiration time.Duration) *Cmd[bool] {
	return nil
}
func (cmdable) SetArgs(ctx context.Context, key string, value any, a SetArgs) *Cmd[string] {
	return nil
}
func (cmdable) Get(ctx context.Context, key string) *Cmd[string]               { return nil }
func (cmdable) GetSet(ctx context.Context, key string, value any) *Cmd[string] { return nil }
func (cmdable) Set(ctx context.Context, key string, value any, expiration time.Duration) *Cmd[string] {
	return nil
}
func (cmdable) GetDel(ctx context.Context, key string) *Cmd[string] { return nil }
func (cmdable) Decr(ctx context.Context, key string) *Cmd[int64]    { return nil }
func (cmdable) Incr(ctx context.Context, key string) *Cmd[int64]    { return nil }
func (cmdable) Del(ctx context.Context, keys ...string) *Cmd[int64] { return nil }
func (cmdable) Expire(ctx context.Context, key string, expiration time.Duration) *Cmd[bool] {
	return nil
}
func (cmdable) Eval(ctx context.Context, script string, keys []string, args ...any) *Cmd[any] {
	return nil
}
func (cmdable) Pipeline() Pipeliner { return nil }
func (cmdable) TxPipelined(ctx context.Context, fn func(Pipeliner) error) ([]any, error) {
	return nil, nil
}

type Client struct{ cmdable }

func (*Client) Watch(ctx context.Context, fn func(*Tx) error, keys ...string) error { return nil }
func (*Client) Do(ctx context.Context, args ...any) *Cmd[any]                       { return nil }

type Tx struct{ cmdable }

type Scripter interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *Cmd[any]
}

type Script struct{}

func NewScript(src string) *Script { return nil }

func (*Script) Run(ctx context.Context, c Scripter, keys []string, args ...any) *Cmd[any] { return nil }
