// Package rueidis has the client of rueidis that the tests need.
package rueidis

import (
	"context"

	"github.com/redis/rueidis/internal/cmds"
)

type Client interface {
	B() cmds.Builder
	Do(ctx context.Context, cmd cmds.Completed) Reply
}

type Reply struct{}

func (Reply) Error() error { return nil }

type Lua struct{}

func (*Lua) Exec(ctx context.Context, c Client, keys, args []string) Reply { return Reply{} }
