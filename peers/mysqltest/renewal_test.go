package mysqltest_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/mysqltest"
)

const (
	ttl     = 8 * time.Second
	look    = "SELECT token FROM locks WHERE name = ? AND owner = ? AND expires > NOW(6)"
	prolong = "UPDATE locks SET expires = TIMESTAMPADD(SECOND, 8, NOW(6)) WHERE name = ? AND expires > NOW(6)"
)

// renewed is a row that its holder renews. It looks whether the row is still its own, and prolongs it in
// another statement.
type renewed struct {
	*lock
	*drawntest.Renewals
	blind bool // the second statement does not compare the owner
}

func (l *renewed) Lock(ctx context.Context) error {
	l.owner = rand.Text()
	for {
		sent := time.Now()
		taken, err := l.try(ctx)
		if err != nil {
			return err // a row that was taken ends with its expiry
		}
		if taken {
			l.Renewals = drawntest.Renew(ttl/4, ttl, sent, l.renew)
			return nil
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (l *renewed) renew(until time.Time) bool {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	var token uint64
	if l.db.QueryRowContext(ctx, look, l.name, l.owner).Scan(&token) != nil {
		return false
	}
	query, args := prolong, []any{l.name}
	if !l.blind {
		query, args = prolong+" AND owner = ?", append(args, l.owner)
	}
	renewed, err := l.changes(ctx, query, args...)
	return err == nil && renewed
}

func (l *renewed) Unlock(ctx context.Context) error {
	l.End()
	return l.lock.Unlock(ctx)
}

type renewing struct {
	*sql.DB
	blind bool
	all   *[]*renewed
}

func (c renewing) Lock(name string) (locktest.Lock, error) {
	l := &renewed{lock: &lock{db: c.DB, name: name}, blind: c.blind}
	*c.all = append(*c.all, l)
	return l, nil
}

func (c renewing) Close() error {
	for _, l := range *c.all {
		l.End()
	}
	return c.DB.Close()
}

// The second statement of a renewal comes late. It prolongs the hold of another if it does not compare the owner.
func TestARenewalInTwoStatements(t *testing.T) {
	for _, blind := range []bool{false, true} {
		broken := drawntest.Broken(t, locktest.Subject{
			Name: map[bool]string{false: "compares", true: "prolongs"}[blind], Servers: mysqltest.Servers(), State: mysqltest.Row(nil), Lease: ttl, Renewed: true, Waits: 200 * time.Millisecond,
			Open: func(p *locktest.Process) (locktest.Client, error) {
				return renewing{mysqltest.NewDB(p), blind, &[]*renewed{}}, nil
			},
		})
		if !blind && broken != nil {
			t.Errorf("a lock that compares the owner breaks %q", broken)
		}
		if found := slices.ContainsFunc(broken, func(b string) bool {
			return strings.HasPrefix(b, "late-request-") && strings.HasSuffix(b, " misdelete")
		}); found != blind {
			t.Errorf("the second statement compares the owner: %t; the lock breaks %q", !blind, broken)
		}
	}
}
