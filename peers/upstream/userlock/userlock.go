// Package userlock opens the user locks of MariaDB for the stories of package upstream.
package userlock

import (
	"context"
	"database/sql"
	"os/exec"
	"path/filepath"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	. "lockstep/live/upstream/gostory"
)

// userLock is GET_LOCK and RELEASE_LOCK on a connection of its own.
var userLock = Library{
	Serve: func(t *testing.T) Server {
		return StartProgram(t, "mariadbd", "mariadb-server", func(dir, port string) *exec.Cmd {
			data := "--datadir=" + filepath.Join(dir, "data")
			install := exec.Command("mariadb-install-db", "--no-defaults", "--user=root", data, "--auth-root-authentication-method=normal", "--skip-test-db", "--innodb-log-file-size=4M")
			if out, err := install.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v; the test did not work", out, err)
			}
			return exec.Command("mariadbd", "--no-defaults", "--user=root", data, "--innodb-log-file-size=4M", "--skip-name-resolve",
				"--bind-address=127.0.0.1", "--port="+port, "--socket="+filepath.Join(dir, "socket"), "--pid-file="+filepath.Join(dir, "pid"))
		})
	},
	Open: func(addrs []string) (func(name string) Lock, error) {
		db, err := openDB(addrs[0])
		return func(name string) Lock { return &session{db: db, name: name} }, err
	},
	Places: userLockPlaces,
}

func openDB(addr string) (*sql.DB, error) {
	return sql.Open("mysql", "root@tcp("+addr+")/?interpolateParams=true")
}

type session struct {
	db   *sql.DB
	name string
	conn *sql.Conn
}

func (s *session) Lock(ctx context.Context) error { return s.acquire(ctx, 60) }

func (s *session) TryLock(ctx context.Context) error { return s.acquire(ctx, 0) }

func (s *session) acquire(ctx context.Context, seconds int) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	var got bool
	if err := c.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", s.name, seconds).Scan(&got); err != nil {
		return err // the driver has closed the connection
	}
	if !got {
		_ = c.Close()
		return ErrBusy
	}
	s.conn = c
	return nil
}

func (s *session) Unlock(ctx context.Context) error {
	if s.conn == nil {
		return ErrNotHeld
	}
	defer func() { _ = s.conn.Close() }()
	var released bool
	if err := s.conn.QueryRowContext(ctx, "SELECT RELEASE_LOCK(?)", s.name).Scan(&released); err != nil {
		return err
	}
	if !released {
		return ErrNotHeld
	}
	return nil
}

// userLockPlaces counts the connections that have a user lock or wait for one. There is one lock.
func userLockPlaces(addr, lock string) (n int, err error) {
	db, err := openDB(addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	err = db.QueryRow("SELECT (IS_USED_LOCK(?) IS NOT NULL) + COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'", lock).Scan(&n)
	return n, err
}

// libraryOf returns the lock.
func libraryOf(string) Library { return userLock }

var _ = libraryOf
