package natstest_test

import (
	"context"
	"testing"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/natstest"
)

type pairs struct{ *natstest.Client }

func (c pairs) ForLock(name string) func(ctx context.Context, key, value string) error {
	own := c.Client.ForLock(name)
	return func(ctx context.Context, key, value string) error {
		kv, err := own.KeyValue(ctx)
		if err == nil {
			_, err = kv.Put(ctx, key, []byte(value))
		}
		return err
	}
}

// A restart without data removes one of the keys of a hold that is being taken.
func TestAKeyThatIsRemoved(t *testing.T) {
	drawntest.Pairs{
		Servers: natstest.Servers(bucket),
		Get: func(s locktest.Snapshot, key string) string {
			e, _ := natstest.Get(s, key)
			return e.Value
		},
		Open: func(p *locktest.Process) (drawntest.PairClient, error) {
			return pairs{natstest.NewClient(p, bucket.Bucket)}, nil
		},
	}.Removed(t, "server: restart, keep_data: false")
}
