package mysqltest_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"lockstep/locktest"
	"lockstep/peers/mysqltest"
)

// inShop returns the name of the user lock for a lock. The names are those of the whole server.
func inShop(lock string) string { return "shop." + lock }

// userLock is a user lock on a connection that is kept for the hold.
type userLock struct {
	db   *sql.DB
	name string
	conn *sql.Conn // nil: not held
}

func (l *userLock) Lock(ctx context.Context) error {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	for {
		var got sql.NullBool
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 0)", l.name).Scan(&got); err != nil {
			_ = conn.Close()
			return err
		}
		if got.Bool {
			l.conn = conn
			return nil
		}
		select {
		case <-ctx.Done():
			_ = conn.Close()
			return locktest.ErrBusy
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (l *userLock) Unlock(ctx context.Context) error {
	if l.conn == nil {
		return locktest.ErrNotHeld
	}
	conn := l.conn
	l.conn = nil
	defer func() { _ = conn.Close() }()
	var done sql.NullBool
	err := conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", l.name).Scan(&done)
	if err == nil && !done.Bool {
		return locktest.ErrNotHeld
	}
	return err
}

type userClient struct {
	*sql.DB
	locks []*userLock
}

func (c *userClient) Lock(name string) (locktest.Lock, error) {
	l := &userLock{db: c.DB, name: inShop(name)}
	c.locks = append(c.locks, l)
	return l, nil
}

// Close also closes the connections that are kept for a hold, which Close of the pool does not.
func (c *userClient) Close() error {
	for _, l := range c.locks {
		if l.conn != nil {
			_ = l.conn.Close()
		}
	}
	return c.DB.Close()
}

var userLocks = locktest.Subject{
	Name: "user-lock", Servers: mysqltest.Servers(), State: mysqltest.UserLock(inShop),
	Open: func(p *locktest.Process) (locktest.Client, error) { return &userClient{DB: mysqltest.NewDB(p)}, nil },
}

func TestUserLock(t *testing.T) { locktest.Run(t, userLocks, locktest.Options{Runs: 100}) }
