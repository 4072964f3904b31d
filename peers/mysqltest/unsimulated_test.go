package mysqltest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"lockstep/locktest"
	"lockstep/peers/mysqltest"
)

// byStatement is a userLock that releases by another statement.
type byStatement struct {
	*userLock
	statement string // with a %s in the place of the name
}

func (l byStatement) Unlock(ctx context.Context) error {
	if l.conn == nil {
		return locktest.ErrNotHeld
	}
	conn := l.conn
	l.conn = nil
	defer func() { _ = conn.Close() }()
	_, err := conn.ExecContext(ctx, fmt.Sprintf(l.statement, l.name))
	if _, refused := errors.AsType[*mysql.MySQLError](err); refused {
		return nil // as a library does that takes a statement for granted
	}
	return err
}

type statementClient struct {
	*userClient
	statement string
}

func (c statementClient) Lock(name string) (locktest.Lock, error) {
	l, err := c.userClient.Lock(name)
	return byStatement{l.(*userLock), c.statement}, err
}

// statements release a user lock. MariaDB has each of them.
var statements = map[string]string{
	"do":      "DO RELEASE_LOCK('%s')",
	"execute": "EXECUTE IMMEDIATE 'DO RELEASE_LOCK(''%s'')'", // the engine does not know it
}

// rows read the row of a lock. MySQL also locks it until the end of the transaction for the second statement.
var rows = map[string]string{
	"read":       "SELECT owner FROM locks WHERE name = '%s'",
	"for-update": "SELECT owner FROM locks WHERE name = '%s' FOR UPDATE",
}

// byRow is a userLock that also reads a row.
type byRow struct {
	*userLock
	statement string // with a %s in the place of the name
}

func (l byRow) Lock(ctx context.Context) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(l.statement, l.name)); err != nil {
		return err
	}
	return l.userLock.Lock(ctx)
}

type rowClient struct {
	*userClient
	statement string
}

func (c rowClient) Lock(name string) (locktest.Lock, error) {
	l, err := c.userClient.Lock(name)
	return byRow{l.(*userLock), c.statement}, err
}

const judged = "LOCKSTEP_TEST_SUBJECT"

// TestJudged judges the lock that another test asks for.
func TestJudged(t *testing.T) {
	s := userLocks
	name := os.Getenv(judged)
	if name == "" {
		t.Skip("n/a: another test runs this one")
	}
	if statement, ok := statements[name]; ok {
		s.Name = name
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			return statementClient{&userClient{DB: mysqltest.NewDB(p)}, statement}, nil
		}
	}
	if statement, ok := rows[name]; ok {
		s.Name = name
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			return rowClient{&userClient{DB: mysqltest.NewDB(p)}, statement}, nil
		}
	}
	locktest.Run(t, s, locktest.Options{Runs: 3, Faults: "none"})
}

// A lock whose statement the engine does not know, and MySQL does, cannot be judged: what follows is the
// engine's doing. It knows FOR UPDATE, and locks no rows.
func TestAStatementThatTheEngineDoesNotKnowIsTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]string{
		"execute":    "execute cannot be judged: a server of the world met the statement EXECUTE IMMEDIATE ?, which it does not simulate and the real one has",
		"for-update": "for-update cannot be judged: a server of the world met the statement SELECT owner FROM locks WHERE name = ? FOR UPDATE, which it does not simulate and the real one has",
		"do":         "",
		"read":       "",
		"select":     "",
	} {
		cmd := exec.Command(self, "-test.run=^TestJudged$")
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GITHUB_ACTIONS=", judged+"="+subject)
		out, err := cmd.CombinedOutput()
		if text := string(out); (err == nil) != (want == "") || !strings.Contains(text, want) || strings.Contains(text, " breaks ") {
			t.Errorf("%s: %v\n%s", subject, err, text)
		}
	}
}
