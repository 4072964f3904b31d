package etcdtest_test

import (
	"context"
	"testing"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/etcdtest"
)

type pairs struct{ *etcdtest.Client }

func (c pairs) ForLock(name string) func(ctx context.Context, key, value string) error {
	own := c.Client.ForLock(name)
	return func(ctx context.Context, key, value string) error {
		_, err := own.Put(ctx, key, value)
		return err
	}
}

// An operator removes one of the keys of a hold that is being taken.
func TestAKeyThatIsRemoved(t *testing.T) {
	drawntest.Pairs{
		Servers: etcdtest.Servers(),
		Get: func(s locktest.Snapshot, key string) string {
			if len(etcdtest.Entries(s, key)) > 0 {
				return "written"
			}
			return ""
		},
		Open: func(p *locktest.Process) (drawntest.PairClient, error) {
			c, err := etcdtest.NewClient(p)
			return pairs{c}, err
		},
	}.Removed(t, "key: '*', do: delete")
}
