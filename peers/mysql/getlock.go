package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"lockstep/locktest"
)

// held is a user lock with a connection of its own.
type held struct {
	db   *sql.DB
	name string
	conn *sql.Conn // nil: not held, as far as the handle knows
	// unclear: the session of the last hold was closed, and the server may not know it yet.
	unclear bool
	// open ends when the client is closed.
	open context.Context
	shut context.CancelFunc
}

func newHeld(db *sql.DB, name string) *held {
	l := &held{db: db, name: name}
	l.open, l.shut = context.WithCancel(context.Background())
	return l
}

// errUnclear is the error of an unlock that follows an unlock of unknown outcome.
var errUnclear = errors.New("the session was closed before, and the server may not know yet")

// acquire takes the lock by try, on a new connection. It ends when the client is closed, which does not end
// a statement that waits.
func (l *held) acquire(ctx context.Context, try func(context.Context, *sql.Conn) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(l.open, end)()
	c, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	switch err := try(ctx, c); {
	case err == nil:
		l.conn, l.unclear = c, false
		return nil
	case errors.Is(err, locktest.ErrBusy):
		_ = c.Close() // back to the pool
		return err
	default:
		drop(c)
		return err
	}
}

// drop closes a connection, which does not return to the pool. Its session ends.
func drop(c *sql.Conn) {
	_ = c.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.Close()
}

func (l *held) Lock(ctx context.Context) error {
	return l.acquire(ctx, func(ctx context.Context, c *sql.Conn) error {
		return retry(ctx, func() (bool, error) { return get(ctx, c, l.name, wait) })
	})
}

// TryLock implements locktest.TryLocker.
func (l *held) TryLock(ctx context.Context) (bool, error) {
	err := l.acquire(ctx, func(ctx context.Context, c *sql.Conn) error { return once(get(ctx, c, l.name, 0)) })
	if errors.Is(err, locktest.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

// once returns the error of a single try.
func once(got bool, err error) error {
	if err == nil && !got {
		return locktest.ErrBusy
	}
	return err
}

func (l *held) Unlock(ctx context.Context) error {
	if l.conn == nil {
		if l.unclear {
			return errUnclear
		}
		return locktest.ErrNotHeld
	}
	c := l.conn
	l.conn = nil
	err := release(ctx, c, l.name)
	if err == nil || errors.Is(err, locktest.ErrNotHeld) {
		_ = c.Close()
		return err
	}
	l.unclear = true
	drop(c)
	return err
}

func (l *held) leave() {
	l.shut()
	if l.conn != nil {
		drop(l.conn)
		l.conn = nil
	}
}

// pooled is a user lock whose statements go through the pool.
type pooled struct {
	db   *sql.DB
	name string
}

func (l *pooled) Lock(ctx context.Context) error {
	return retry(ctx, func() (bool, error) { return get(ctx, l.db, l.name, wait) })
}

// TryLock implements locktest.TryLocker.
func (l *pooled) TryLock(ctx context.Context) (bool, error) { return get(ctx, l.db, l.name, 0) }

func (l *pooled) Unlock(ctx context.Context) error { return release(ctx, l.db, l.name) }

func (*pooled) leave() {}
