package zookeepertest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/zookeepertest"
)

type pairs struct {
	*zookeepertest.Client
	flags int32
}

func (c pairs) ForLock(name string) func(ctx context.Context, key, value string) error {
	own := c.Client.ForLock(name)
	return func(_ context.Context, key, value string) error {
		conn, err := own.Connect(sessionTime, nil)
		if err == nil {
			_, err = conn.Create("/"+key+"-", []byte(value), c.flags, zk.WorldACL(zk.PermAll))
		}
		return err
	}
}

// An operator removes one of the nodes of a hold that is being taken.
func TestANodeThatIsRemoved(t *testing.T) {
	for _, flags := range []int32{0, zk.FlagSequence | zk.FlagEphemeral} {
		drawntest.Pairs{
			Servers: zookeepertest.Servers(),
			Get: func(s locktest.Snapshot, key string) string {
				for _, n := range zookeepertest.Children(s, "/") {
					if strings.HasPrefix(n.Path, "/"+key+"-") {
						return string(n.Data)
					}
				}
				return ""
			},
			Open: func(p *locktest.Process) (drawntest.PairClient, error) {
				return pairs{zookeepertest.NewClient(p), flags}, nil
			},
		}.Removed(t, "key: '*', do: delete")
	}
}
