package single

import "database/sql"

// A pool with one connection unlocks on the connection that locked.
func pooled(db *sql.DB) {
	db.SetMaxOpenConns(1)
	db.Exec("SELECT pg_advisory_lock(7)")
}

func unlock(db *sql.DB) { db.Exec("SELECT pg_advisory_unlock(7)") }
