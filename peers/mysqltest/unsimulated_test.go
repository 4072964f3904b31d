package mysqltest_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"lockstep/locktest"
	"lockstep/peers/mysqltest"
)

// doLock is a userLock that releases by a statement which MySQL has and the engine has not.
type doLock struct{ userLock }

func (l *doLock) Unlock(ctx context.Context) error {
	if l.conn == nil {
		return locktest.ErrNotHeld
	}
	conn := l.conn
	l.conn = nil
	defer func() { _ = conn.Close() }()
	_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(?)", l.name)
	if _, refused := errors.AsType[*mysql.MySQLError](err); refused {
		return nil // as a library does that takes a statement for granted
	}
	return err
}

type doClient struct{ *sql.DB }

func (c doClient) Lock(name string) (locktest.Lock, error) {
	return &doLock{userLock{db: c.DB, name: inShop(name)}}, nil
}

const judged = "LOCKSTEP_TEST_SUBJECT"

// TestJudged judges the lock that another test asks for.
func TestJudged(t *testing.T) {
	s := userLocks
	switch os.Getenv(judged) {
	case "":
		t.Skip("n/a: another test runs this one")
	case "do":
		s.Name = "do"
		s.Open = func(p *locktest.Process) (locktest.Client, error) { return doClient{mysqltest.NewDB(p)}, nil }
	}
	locktest.Run(t, s, locktest.Options{Runs: 3, Faults: "none"})
}

// A lock whose statement the engine does not know, and MySQL does, cannot be judged: what follows is the
// engine's doing.
func TestAStatementThatTheEngineDoesNotKnowIsTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]string{
		"do":     "do cannot be judged: a server of the world met the statement DO RELEASE_LOCK(?), which it does not simulate and the real one has",
		"select": "",
	} {
		cmd := exec.Command(self, "-test.run=^TestJudged$")
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GITHUB_ACTIONS=", judged+"="+subject)
		out, err := cmd.CombinedOutput()
		if text := string(out); (err == nil) != (want == "") || !strings.Contains(text, want) || strings.Contains(text, " breaks ") {
			t.Errorf("%s: %v\n%s", subject, err, text)
		}
	}
}
