package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"lockstep/locktest"
	"lockstep/sim"
)

// rowLock is a lock in a row of the table of locks.
type rowLock struct {
	p    *locktest.Process
	db   *sql.DB
	name string
	// Tries and renewals that are due in one slot are sent at these instants, since chance would decide
	// their order.
	tries, renewals sim.Instant
	hold            *hold // nil: not held, as far as the handle knows
}

// hold is a hold of a row.
type hold struct {
	owner string
	token uint64
	lost  chan struct{}
	stop  context.CancelFunc // of the renewals
}

const (
	insert = "INSERT IGNORE INTO locks (name, owner, expires, token) VALUES (?, ?, TIMESTAMPADD(MICROSECOND, ?, NOW(6)), 1)"
	take   = "UPDATE locks SET owner = ?, expires = TIMESTAMPADD(MICROSECOND, ?, NOW(6)), token = token + 1 WHERE name = ? AND expires <= NOW(6)"
	extend = "UPDATE locks SET expires = TIMESTAMPADD(MICROSECOND, ?, NOW(6)) WHERE name = ? AND owner = ? AND expires > NOW(6)"
	free   = "UPDATE locks SET expires = NOW(6), owner = '' WHERE name = ? AND owner = ? AND expires > NOW(6)"
	read   = "SELECT token FROM locks WHERE name = ? AND owner = ?"
)

// errGone is the error of an acquire whose hold is gone before the token is read, since the lease
// is over, or an operator deleted the row. The lock may be free.
var errGone = errors.New("the row was taken, and is gone")

// errLate is the error of an acquire that took longer than a lease, for example since connecting
// took long. The holder counts its lease from the beginning, and would have to stop at once. The
// lease ends by itself.
var errLate = errors.New("the row was taken later than a lease after the call began")

const micros = int64(lease / time.Microsecond)

// did reports whether a statement changed a row.
func did(ctx context.Context, db *sql.DB, query string, args ...any) (bool, error) {
	r, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// TryLock implements locktest.TryLocker.
func (l *rowLock) TryLock(ctx context.Context) (bool, error) {
	owner, sent := rand.Text(), time.Now()
	got, err := did(ctx, l.db, take, owner, micros, l.name)
	if err == nil && !got {
		sent = time.Now()
		got, err = did(ctx, l.db, insert, l.name, owner, micros)
	}
	if err != nil || !got {
		return false, err
	}
	h := &hold{owner: owner, lost: make(chan struct{})}
	switch err := l.db.QueryRowContext(ctx, read, l.name, owner).Scan(&h.token); {
	case errors.Is(err, sql.ErrNoRows):
		return false, errGone
	case err != nil:
		return false, err // the lease ends by itself
	case time.Since(sent) >= lease:
		return false, errLate
	}
	renew, stop := context.WithCancel(context.Background())
	h.stop = stop
	l.hold = h
	l.p.Serves(l.name, func() { go l.keep(renew, h, sent) })
	return true, nil
}

func (l *rowLock) Lock(ctx context.Context) error {
	for {
		if got, err := l.TryLock(ctx); got || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(pause):
			l.tries.Wait()
		}
	}
}

// keep renews a hold every third of its lease until its context ends. A renewal without an answer
// is given up when the next one is due. If no renewal succeeded for a whole lease, or if the server
// says that the hold is gone, keep tells the holder.
func (l *rowLock) keep(ctx context.Context, h *hold, since time.Time) {
	defer h.stop()
	for next := since.Add(lease / 3); ; next = next.Add(lease / 3) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
			l.renewals.Wait()
		}
		limited, end := context.WithDeadline(ctx, earlier(next.Add(lease/3), since.Add(lease)))
		sent := time.Now()
		kept, err := did(limited, l.db, extend, micros, l.name, h.owner)
		end()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && kept:
			since = sent
		case err == nil, time.Since(since) >= lease:
			close(h.lost)
			return
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (l *rowLock) Unlock(ctx context.Context) error {
	if l.hold == nil {
		return locktest.ErrNotHeld
	}
	l.hold.stop()
	done, err := did(ctx, l.db, free, l.name, l.hold.owner)
	switch {
	case err != nil:
		return err // the caller may try to give the hold up again
	case !done:
		err = locktest.ErrNotHeld
	}
	l.hold = nil
	return err
}

// Lost implements locktest.Watched.
func (l *rowLock) Lost() <-chan struct{} { return l.hold.lost }

// Token implements locktest.Fenced.
func (l *rowLock) Token() (uint64, bool) { return l.hold.token, true }

func (l *rowLock) leave() {
	if l.hold != nil {
		l.hold.stop()
	}
}
