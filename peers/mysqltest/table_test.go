package mysqltest_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"testing"
	"time"

	"lockstep/locktest"
	"lockstep/peers/mysqltest"
)

const (
	leases = "CREATE TABLE leases (resource VARCHAR(64) PRIMARY KEY, holder VARCHAR(64) NOT NULL, valid_until DATETIME(6) NOT NULL)"
	expire = "DELETE FROM leases WHERE resource = ? AND valid_until <= NOW(6)"
	begin  = "INSERT IGNORE INTO leases (resource, holder, valid_until) VALUES (?, ?, TIMESTAMPADD(SECOND, 8, NOW(6)))"
	end    = "DELETE FROM leases WHERE resource = ? AND holder = ? AND valid_until > NOW(6)"
	show   = "SELECT holder, valid_until FROM leases WHERE resource = ?"
)

// lease is a row of a table of its own. It is there while the lock is held.
type lease struct {
	db     *sql.DB
	name   string
	holder string // of the newest try
}

func (l *lease) Lock(ctx context.Context) error {
	l.holder = rand.Text()
	for {
		if _, err := l.db.ExecContext(ctx, expire, l.name); err != nil {
			return err
		}
		r, err := l.db.ExecContext(ctx, begin, l.name, l.holder)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); n > 0 || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (l *lease) Unlock(ctx context.Context) error {
	r, err := l.db.ExecContext(ctx, end, l.name, l.holder)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); n > 0 || err != nil {
		return err
	}
	return locktest.ErrNotHeld
}

type leaseClient struct{ *sql.DB }

func (c leaseClient) Lock(name string) (locktest.Lock, error) {
	return &lease{db: c.DB, name: name}, nil
}

var leased = locktest.Subject{
	Name: "leases", Servers: mysqltest.Servers(leases), State: mysqltest.Select(show), Lease: 8 * time.Second,
	Open: func(p *locktest.Process) (locktest.Client, error) { return leaseClient{mysqltest.NewDB(p)}, nil },
}

func TestLeases(t *testing.T) { locktest.Run(t, leased, locktest.Options{Runs: 100}) }
