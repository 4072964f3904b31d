package mysqltest_test

import (
	"database/sql"
	"testing"
	"time"

	"lockstep/locktest"
	"lockstep/peers/mysqltest"
)

// lockRow begins a transaction that asks for the lock of a row, as MySQL gives it until the
// transaction ends.
func lockRow(db *sql.DB) (*sql.Tx, error) {
	tx, err := db.Begin()
	if err == nil {
		var owner string
		err = tx.QueryRow("SELECT owner FROM locks WHERE name = 'probe' FOR UPDATE").Scan(&owner)
	}
	return tx, err
}

// docs/servers.md says that the server locks no rows. If it does one day, locks that rely on it can be
// judged.
func TestTheServerLocksNoRows(t *testing.T) {
	tried := false
	s := userLocks
	s.Name = "row-locks"
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		db := mysqltest.NewDB(p)
		if p.Name() == "a" {
			tried = true
			if _, err := db.Exec("INSERT INTO locks (name, owner, expires, token) VALUES ('probe', '', NOW(6), 0)"); err != nil {
				return nil, err
			}
			first, err := lockRow(db)
			if err != nil {
				return nil, err
			}
			begun := time.Now()
			second, err := lockRow(db)
			if err != nil {
				return nil, err
			}
			if waited := time.Since(begun); waited > time.Second {
				t.Errorf("a row that another transaction has was given after %v", waited)
			}
			for _, tx := range []*sql.Tx{first, second} {
				if err := tx.Commit(); err != nil {
					return nil, err
				}
			}
		}
		return &userClient{DB: db}, nil
	}
	locktest.Run(t, s, locktest.Options{Runs: 1, Faults: "none"})
	if !tried {
		t.Error("nothing was tried")
	}
}
