package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockstep/live"
	"lockstep/model"
	"lockstep/peers/external"
	"lockstep/sim"
)

func init() {
	live.RegisterKind(&external.Kind{
		Program: program, Needs: []live.Needed{{Program: program, Package: programPkg}, {Program: installer, Package: programPkg}},
		Is: func(s sim.Server) bool {
			own, ok := sim.Streaming(s).(*Server)
			return ok && len(own.schema) == 0 // it reads no other table than that of the locks
		},
		Begin: func(o external.Options) (live.Observed, error) {
			r := &realServer{}
			r.Options, r.Launch, r.Disconnect = o, r.launch, func() { _ = r.db.Close() }
			return r, r.Begin()
		},
	})
}

// realServer is MariaDB in a live run. It implements live.Observed.
type realServer struct {
	external.Running
	db *sql.DB

	mu    sync.Mutex // also held while the server is read
	locks []string
	lives int                  // how often it has started
	names map[uint32]*userLock // by session
	asked int                  // the number of names that were given
}

// userLock is the name of a session that has a user lock or waits for one: see Server.Holder.
type userLock struct{ name, lock string }

// launch starts the program, with the data that it had or without.
func (r *realServer) launch(empty bool) (p *external.Process, version string, err error) {
	dir, err := r.Folder(program, empty)
	if err != nil {
		return nil, "", err
	}
	if empty {
		if err := install(dir, r.Log, r.Spawn); err != nil {
			return nil, "", err
		}
	}
	if p, r.db, err = launch(dir, r.Addr(), r.Log, r.Spawn); err != nil {
		return nil, "", err
	}
	if err := r.db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		_ = r.db.Close()
		p.Kill()
		return nil, "", err
	}
	version, _, _ = strings.Cut(version, "-")
	r.mu.Lock()
	r.lives++
	r.names = map[uint32]*userLock{}
	r.mu.Unlock()
	last := ""
	r.Poll(pollEvery, func() bool {
		now, err := r.held()
		if err != nil || now == last { // after an error the server is stopped, or ends
			return false
		}
		last = now
		return true
	})
	return p, program + " " + version, nil
}

// pollEvery is how often the run looks whether the server holds something else.
const pollEvery = 20 * time.Millisecond

// held describes what the server holds, without instants.
func (r *realServer) held() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	view, err := r.look(r.locks)
	held := fmt.Sprint(view.Holders, view.Waiting)
	for _, lock := range r.locks {
		row := view.Rows[lock]
		held += fmt.Sprint(row.Owner, row.Expires > 0, row.Token)
	}
	return held, err
}

// patience is how long the server may take to answer the run.
const patience = 2 * time.Minute

// look reads what the server holds. Guarded by mu.
func (r *realServer) look(locks []string) (view shown, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	view = shown{Rows: map[string]Row{}, Holders: map[string]string{}, Waiting: map[string][]string{}}
	rows, err := r.db.QueryContext(ctx, "SELECT name, owner, TIMESTAMPDIFF(MICROSECOND, NOW(6), expires), token FROM locks")
	if err != nil {
		return view, err
	}
	for rows.Next() {
		var name string
		var row Row
		var micros int64
		if err := rows.Scan(&name, &row.Owner, &micros, &row.Token); err != nil {
			return view, errors.Join(err, rows.Close())
		}
		row.Expires = time.Duration(micros) * time.Microsecond
		view.Rows[name] = row
	}
	if err := rows.Err(); err != nil {
		return view, err
	}
	there := map[uint32]bool{}
	for _, lock := range locks {
		var session sql.NullInt64
		if err := r.db.QueryRowContext(ctx, "SELECT IS_USED_LOCK(?)", lock).Scan(&session); err != nil {
			return view, err
		}
		if session.Valid {
			there[uint32(session.Int64)] = true
			view.Holders[lock] = r.nameOf(uint32(session.Int64), lock)
		}
	}
	if len(view.Holders) > 0 { // otherwise nobody waits; reading the list of processes has crashed mariadbd
		if err := r.waiting(ctx, &view, there); err != nil {
			return view, err
		}
	}
	for session := range r.names {
		if !there[session] {
			delete(r.names, session)
		}
	}
	return view, nil
}

// waiting reads which sessions wait for user locks. It adds them to there. Guarded by mu.
func (r *realServer) waiting(ctx context.Context, view *shown, there map[uint32]bool) error {
	rows, err := r.db.QueryContext(ctx, "SELECT ID, INFO FROM information_schema.PROCESSLIST WHERE STATE = 'User lock' ORDER BY ID")
	if err != nil {
		return err
	}
	for rows.Next() {
		var session uint32
		var statement sql.NullString
		if err := rows.Scan(&session, &statement); err != nil {
			return errors.Join(err, rows.Close())
		}
		if m := getLock.FindStringSubmatch(statement.String); m != nil && !there[session] {
			there[session] = true
			view.Waiting[m[1]] = append(view.Waiting[m[1]], r.nameOf(session, m[1]))
		}
	}
	return rows.Err()
}

// nameOf returns the name of a session that has a user lock or waits for one. A session that asks for
// another lock gets a new name. Guarded by mu.
func (r *realServer) nameOf(session uint32, lock string) string {
	if u := r.names[session]; u != nil && u.lock == lock {
		return u.name
	}
	r.asked++
	u := &userLock{fmt.Sprintf("%d.%d.%d", r.lives, session, r.asked), lock}
	r.names[session] = u
	return u.name
}

// Settle implements live.Observed. A statement that waits for a user lock has no answer in time.
func (*realServer) Settle() live.Settle {
	return live.Settle{First: 40 * time.Millisecond, Quiet: 3 * time.Millisecond, Most: 200 * time.Millisecond}
}

// AsksNothing implements live.Observed.
func (*realServer) AsksNothing([]byte) bool { return false }

// Look implements live.Observed.
func (r *realServer) Look(locks []string) ([]any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.locks = slices.Clone(locks)
	view, err := r.look(locks)
	if err != nil {
		return nil, err
	}
	return []any{&view}, nil
}

// Show implements live.Observed.
func (*realServer) Show(server sim.Server, view any, _ int64) {
	sim.Streaming(server).(*Server).shown = view.(*shown)
}

// Strike implements live.Observed.
func (r *realServer) Strike(f model.FaultSpec) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	view, err := r.look(r.locks)
	if err != nil {
		return err
	}
	for name := range view.Rows {
		if sim.Match(f.Key, name) {
			_, e := r.db.Exec("DELETE FROM locks WHERE name = ?", name)
			err = errors.Join(err, e)
		}
	}
	for session, u := range r.names {
		if sim.Match(f.Key, u.lock) && view.Holders[u.lock] == u.name {
			err = errors.Join(err, r.kill(session, u.lock))
		}
	}
	return err
}

// kill ends a session that has a user lock. KILL returns before the session has given its locks up.
func (r *realServer) kill(session uint32, lock string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := r.db.ExecContext(ctx, "KILL ?", session); err != nil {
		return err
	}
	for {
		var has sql.NullInt64
		if err := r.db.QueryRowContext(ctx, "SELECT IS_USED_LOCK(?)", lock).Scan(&has); err != nil || !has.Valid || uint32(has.Int64) != session {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// Left implements live.Observed. A row of a lock that is free is no leftover.
func (r *realServer) Left() (keys []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	view, err := r.look(r.locks)
	for name, row := range view.Rows {
		if row.Owner != "" && row.Expires > 0 {
			keys = append(keys, name)
		}
	}
	return keys, err
}
