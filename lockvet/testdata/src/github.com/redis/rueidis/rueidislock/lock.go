// Package rueidislock has the signatures of rueidislock that the tests need.
package rueidislock

import "context"

type Locker interface {
	WithContext(ctx context.Context, name string) (context.Context, context.CancelFunc, error)
}
