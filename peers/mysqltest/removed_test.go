package mysqltest_test

import (
	"context"
	"database/sql"
	"testing"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/mysqltest"
)

type pairs struct{ *sql.DB }

func (c pairs) ForLock(string) func(ctx context.Context, key, value string) error {
	return func(ctx context.Context, key, value string) error {
		_, err := c.ExecContext(ctx, insert, key, value)
		return err
	}
}

// An operator, or a restart without data, removes one of the keys of a hold that is being taken.
func TestAKeyThatIsRemoved(t *testing.T) {
	for _, fault := range []string{"key: '*', do: delete", "server: restart, keep_data: false"} {
		drawntest.Pairs{
			Servers: mysqltest.Servers(),
			Get: func(s locktest.Snapshot, key string) string {
				if st := mysqltest.Row(nil)(s, key); st != nil {
					return st.Owner
				}
				return ""
			},
			Open: func(p *locktest.Process) (drawntest.PairClient, error) { return pairs{mysqltest.NewDB(p)}, nil },
		}.Removed(t, fault)
	}
}
