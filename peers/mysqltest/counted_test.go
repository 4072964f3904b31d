package mysqltest_test

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/mysqltest"
)

// counted is a lock whose token is in the answer to the statement that takes the row.
type counted struct {
	*lock
	next string // the next token, of which the answer has what is in LAST_INSERT_ID
}

func (l *counted) Lock(ctx context.Context) error {
	l.owner = rand.Text()
	for {
		r, err := l.db.ExecContext(ctx, strings.Replace(take, "token + 1", l.next, 1), l.owner, l.name)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); n > 0 || err != nil {
			token, _ := r.LastInsertId()
			l.token = uint64(token)
			return err
		}
		if made, err := l.changes(ctx, insert, l.name, l.owner); made || err != nil {
			l.token = 1
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(200 * time.Millisecond):
		}
	}
}

type counting struct {
	client
	next string
}

func (c counting) Lock(name string) (locktest.Lock, error) {
	return &counted{&lock{db: c.DB, name: name}, c.next}, nil
}

// An answer to an UPDATE has what LAST_INSERT_ID(expr) returned. A lock that takes the last token for the next one breaks
// fencing.
func TestATokenInTheAnswerToAnUpdate(t *testing.T) {
	for next, wrong := range map[string]bool{"LAST_INSERT_ID(token + 1)": false, "LAST_INSERT_ID(token) + 1": true} {
		broken := drawntest.Broken(t, locktest.Subject{
			Name: map[bool]string{false: "counts", true: "counts-too-late"}[wrong], Servers: mysqltest.Servers(), State: mysqltest.Row(nil), Lease: 8 * time.Second, Waits: 200 * time.Millisecond,
			Open: func(p *locktest.Process) (locktest.Client, error) {
				return counting{client{mysqltest.NewDB(p)}, next}, nil
			},
		})
		if !wrong && broken != nil {
			t.Errorf("%s: the lock breaks %q", next, broken)
		}
		if found := slices.ContainsFunc(broken, func(b string) bool { return strings.HasSuffix(b, " fencing") }); found != wrong {
			t.Errorf("%s: the lock breaks %q", next, broken)
		}
	}
}
