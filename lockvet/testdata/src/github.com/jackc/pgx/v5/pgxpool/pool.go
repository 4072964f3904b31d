// Package pgxpool has the signatures of pgx that the tests need.
package pgxpool

import "context"

type Pool struct{}

func (*Pool) Exec(ctx context.Context, sql string, args ...any) (any, error) { return nil, nil }
func (*Pool) Acquire(ctx context.Context) (*Conn, error)                     { return nil, nil }

type Conn struct{}

func (*Conn) Exec(ctx context.Context, sql string, args ...any) (any, error) { return nil, nil }
