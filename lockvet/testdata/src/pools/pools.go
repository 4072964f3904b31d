package pools

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5/pgxpool"
)

const take = "SELECT pg_try_advisory_lock($1)"

func pooled(ctx context.Context, db *sql.DB, pool *pgxpool.Pool) {
	db.ExecContext(ctx, take, 1)                      // want `the unlock may go to another one.* \(pool-lock\)`
	db.QueryRow("SELECT GET_LOCK('orders', 10)")      // want `pool-lock`
	pool.Exec(ctx, "SELECT pg_advisory_lock(7)")      // want `pool-lock`
	pool.Exec(ctx, "SELECT pg_advisory_xact_lock(7)") // want `the transaction of this statement ends with it.* \(pool-lock\)`
	pool.Exec(ctx, "WITH held AS (SELECT pg_advisory_xact_lock(7)) INSERT INTO orders SELECT 1 FROM held")
	db.Exec("INSERT INTO budget_lock (id) VALUES ($1)", 1)
}

type store struct{ *sql.DB }

func (s store) lock() {
	s.Exec("SELECT GET_LOCK('orders', 10)") // want `pool-lock`
}

func unlock(ctx context.Context, db *sql.DB) {
	db.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", 1)
}

func connected(ctx context.Context, db *sql.DB, pool *pgxpool.Pool) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	conn.ExecContext(ctx, take, 1)
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	c.Exec(ctx, take, 1)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	tx.Exec("SELECT pg_advisory_xact_lock(7)")
	return tx.Commit()
}

// A statement and a key that are made of themselves.
func grow(db *sql.DB) {
	s := "SELECT 1"
	var t string
	for range 3 {
		t = t + s
		db.Exec(t)
	}
	u := "a"
	func() { u := u + u; db.Exec(u) }()
}
