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
	insert = "INSERT IGNORE INTO locks (name, owner, expires, token) VALUES (?, ?, TIMESTAMPADD(SECOND, 8, NOW(6)), 1)"
	take   = "UPDATE locks SET owner = ?, expires = TIMESTAMPADD(SECOND, 8, NOW(6)), token = token + 1 WHERE name = ? AND expires <= NOW(6)"
	read   = "SELECT token FROM locks WHERE name = ? AND owner = ?"
	free   = "UPDATE locks SET expires = NOW(6) WHERE name = ? AND owner = ? AND expires > NOW(6)"
)

// lock is a row of the table of locks. It is held until its expiry is over.
type lock struct {
	db    *sql.DB
	name  string
	owner string // of the newest try
	token uint64 // of the newest hold; 0: none yet
}

// changes reports whether a statement has changed the row.
func (l *lock) changes(ctx context.Context, statement string, args ...any) (bool, error) {
	r, err := l.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// try reports whether it took the row.
func (l *lock) try(ctx context.Context) (bool, error) {
	taken, err := l.changes(ctx, take, l.owner, l.name)
	if err == nil && !taken {
		taken, err = l.changes(ctx, insert, l.name, l.owner)
	}
	return taken, err
}

func (l *lock) Lock(ctx context.Context) error {
	l.owner = rand.Text()
	for {
		taken, err := l.try(ctx)
		if err != nil {
			return err // a row that was taken ends with its expiry
		}
		if taken {
			return l.db.QueryRowContext(ctx, read, l.name, l.owner).Scan(&l.token)
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (l *lock) Unlock(ctx context.Context) error {
	freed, err := l.changes(ctx, free, l.name, l.owner)
	if err == nil && !freed {
		return locktest.ErrNotHeld
	}
	return err
}

func (l *lock) Token() (uint64, bool) { return l.token, l.token > 0 }

type client struct{ *sql.DB }

func (c client) Lock(name string) (locktest.Lock, error) { return &lock{db: c.DB, name: name}, nil }

var orders = locktest.Subject{
	Name: "orders", Servers: mysqltest.Servers(), State: mysqltest.Row(nil), Lease: 8 * time.Second,
	Open: func(p *locktest.Process) (locktest.Client, error) { return client{mysqltest.NewDB(p)}, nil },
}

func TestOrders(t *testing.T) { locktest.Run(t, orders, locktest.Options{Runs: 100}) }
