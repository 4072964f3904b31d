package memcached_test

import (
	"context"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/memcached/server"
)

type pairs struct{ *memcache.Client }

func (c pairs) ForLock(string) func(ctx context.Context, key, value string) error {
	return func(_ context.Context, key, value string) error {
		return c.Set(&memcache.Item{Key: key, Value: []byte(value)})
	}
}

// An operator removes one of the keys of a hold that is being taken.
func TestAKeyThatIsRemoved(t *testing.T) {
	drawntest.Pairs{
		Servers: server.Servers(1),
		Get: func(s locktest.Snapshot, key string) string {
			if st := server.Value(s, key); st != nil {
				return st.Owner
			}
			return ""
		},
		Open: func(p *locktest.Process) (drawntest.PairClient, error) {
			c := memcache.New(p.Addr(0))
			c.DialContext = p.DialContext
			return pairs{c}, nil
		},
	}.Removed(t, "key: '*', do: delete")
}
