package closes

import "database/sql"

// A lock with a pool of its own, which ends with the pool.
type mutex struct{ db *sql.DB }

func (m *mutex) Lock() { m.db.Exec("SELECT GET_LOCK('orders', 10)") }

func (m *mutex) Unlock() { m.db.Close() }
