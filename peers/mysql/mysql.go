// Package mysql judges three locks that people write on MySQL, with the driver
// github.com/go-sql-driver/mysql and database/sql, unmodified.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"lockstep/locktest"
	"lockstep/peers/mysqltest"
)

// wait is the time for which a statement waits for a user lock. A caller that waits longer sends
// another. The server checks the lock every 100 µs, so a second costs 10 000 checks.
const wait = time.Second

const (
	lease = 8 * time.Second        // of a row
	pause = 200 * time.Millisecond // between two tries to get a row, each of two statements
)

// GetLock is a user lock of MySQL, GET_LOCK and RELEASE_LOCK, on a connection that is kept for the
// hold and closed if anything on it fails. It has no lease: a hold ends with an unlock or with the
// session.
//
// The promises come from the MySQL 8.4 Reference Manual, section "Locking Functions": while one
// session has the lock, no other can have it; RELEASE_LOCK or the end of the session ends a hold, and
// nothing else does; RELEASE_LOCK of a lock that another session has is refused with 0; the time for
// which GET_LOCK waits is bounded. The section promises no order among waiters. The holder is not
// told that its session is over.
var GetLock = locktest.Subject{
	Name: "mysql-get-lock", About: "go-mysql-server: GET_LOCK on a connection of its own",
	Policy:  "A hold has a connection of its own from its first GET_LOCK, which goes back to the pool after an unlock, and which is closed after an acquire or an unlock that failed.",
	Servers: mysqltest.Servers(), State: mysqltest.UserLock(nil),
	Open: func(p *locktest.Process) (locktest.Client, error) {
		return &client{DB: mysqltest.NewDB(p), handle: func(c *client, name string) handle { return newHeld(c.DB, name) }}, nil
	},
}

// GetLockPool is the same user lock, with each statement on any connection of the pool. This is a
// common mistake: raystack/frontier issue 1918, jackc/tern issue 146.
var GetLockPool = locktest.Subject{
	Name: "mysql-get-lock-pool", About: "go-mysql-server: GET_LOCK and RELEASE_LOCK through the pool",
	Policy:  "Each statement goes to any connection of the pool, nothing is tried again, and an unlock that failed may be called again.",
	Servers: mysqltest.Servers(), State: mysqltest.UserLock(nil),
	Open: func(p *locktest.Process) (locktest.Client, error) {
		return &client{DB: mysqltest.NewDB(p), handle: func(c *client, name string) handle { return &pooled{db: c.DB, name: name} }}, nil
	},
}

// RowLock is a row with an owner, an expiry by the server's clock, and a counter that is the fencing
// token. The statements come from ShedLock's provider for JDBC with the time of the database
// (github.com/lukas-krecan/ShedLock, MySqlMariaDbStatementsSource): insert the row if there is none,
// else update it if its expiry is over. The holder renews the expiry three times per lease, and is told
// if the renewals fail.
//
// The promises come from ShedLock's README, version 7.10.0: one owner at a time, if no hold is
// longer than lockAtMostFor (here the lease), after which the lock of a dead owner ends (section
// "Behavior", 2 and 5); the clock is that of the database (section "JdbcTemplate", usingDbTime); no
// operator deletes a row (section "Warning"). The renewal and the counter are ours: an owner is told if
// its renewals fail, before the lease is over, and the counter grows as long as the row is kept.
var RowLock = locktest.Subject{
	Name: "mysql-row", About: "ours, on go-mysql-server: a row with an owner, an expiry and a token",
	Policy:  "The lock has no session, an acquire that failed is not tried again and leaves its row until the expiry, a renewal that failed is tried again when the next one is due, and an unlock that failed ends the renewals and may be called again.",
	Servers: mysqltest.Servers(), Lease: lease, Renewed: true, RenewEvery: lease / 3, Waits: pause, State: mysqltest.Row(nil),
	Open: func(p *locktest.Process) (locktest.Client, error) {
		return &client{DB: mysqltest.NewDB(p), handle: func(c *client, name string) handle {
			return &rowLock{p: p, db: c.DB, name: name, tries: p.Sim().Instant(), renewals: p.Sim().Instant()}
		}}, nil
	},
}

// handle is a lock that can end its connections.
type handle interface {
	locktest.Lock
	leave()
}

type client struct {
	*sql.DB
	handle func(*client, string) handle
	locks  []handle
}

func (c *client) Lock(name string) (locktest.Lock, error) {
	l := c.handle(c, name)
	c.locks = append(c.locks, l)
	return l, nil
}

// Close ends the connections, even connections that are kept for a hold.
func (c *client) Close() error {
	for _, l := range c.locks {
		l.leave()
	}
	return c.DB.Close()
}

// queryer is a connection or a pool of them.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// get asks for a user lock, and waits for it for wait at most.
func get(ctx context.Context, q queryer, name string, wait time.Duration) (bool, error) {
	var got sql.NullInt64
	err := q.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", name, int(wait/time.Second)).Scan(&got)
	if err == nil && !got.Valid {
		err = errors.New("GET_LOCK failed") // NULL
	}
	return got.Int64 == 1, err
}

// release gives a user lock up. The error is ErrNotHeld if the session does not have it.
func release(ctx context.Context, q queryer, name string) error {
	var done sql.NullInt64
	err := q.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", name).Scan(&done)
	if err == nil && done.Int64 != 1 {
		return locktest.ErrNotHeld
	}
	return err
}

// retry tries until it gets the lock, a try fails, or ctx ends.
func retry(ctx context.Context, try func() (bool, error)) error {
	for {
		if got, err := try(); got || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return locktest.ErrBusy
		}
	}
}
