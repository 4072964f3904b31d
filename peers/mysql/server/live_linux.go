package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
			_, ok := sim.Streaming(s).(*Server)
			return ok
		},
		Begin: func(o external.Options) (live.Observed, error) {
			r := &realServer{o: o, changed: make(chan struct{}, 1)}
			return r, r.begin(true)
		},
	})
}

// realServer is MariaDB in a live run. It implements live.Observed.
type realServer struct {
	o       external.Options
	starts  int // with an empty folder
	version string
	process *external.Process
	db      *sql.DB
	changed chan struct{}
	stopped chan struct{}
	polled  sync.WaitGroup

	mu    sync.Mutex // also held while the server is read
	locks []string
	lives int                  // how often it has started
	names map[uint32]*userLock // by session
	asked int                  // the number of names
}

// userLock is the name of a session that has a user lock or waits for one: see Server.Holder.
type userLock struct{ name, lock string }

// begin starts the program, with the data that it had or without.
func (r *realServer) begin(empty bool) (err error) {
	if empty {
		r.starts++
	}
	dir := filepath.Join(r.o.Dir, program+"-"+strconv.Itoa(r.starts))
	if empty {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := install(dir, r.o.Log, r.o.Spawn); err != nil {
			return err
		}
	}
	if r.process, r.db, err = launch(dir, r.o.Addr, r.o.Log, r.o.Spawn); err != nil {
		return err
	}
	if err := r.db.QueryRow("SELECT VERSION()").Scan(&r.version); err != nil {
		r.process.Kill()
		return err
	}
	r.version, _, _ = strings.Cut(r.version, "-")
	r.mu.Lock()
	r.lives++
	r.names = map[uint32]*userLock{}
	r.mu.Unlock()
	r.stopped = make(chan struct{})
	stopped := r.stopped
	r.polled.Go(func() { r.poll(stopped) })
	return nil
}

// pollEvery is how often the run looks whether the server holds something else.
const pollEvery = 20 * time.Millisecond

// poll tells the run when the server holds something else, until stop is closed.
func (r *realServer) poll(stop <-chan struct{}) {
	last := ""
	for {
		select {
		case <-stop:
			return
		case <-time.After(pollEvery):
		}
		r.mu.Lock()
		locks := r.locks
		view, err := r.look(locks)
		r.mu.Unlock()
		if err != nil {
			continue // the server is stopped, or ends
		}
		now := fmt.Sprint(view.Holders, view.Waiting)
		for _, lock := range locks {
			row := view.Rows[lock]
			now += fmt.Sprint(row.Owner, row.Expires > 0, row.Token)
		}
		if now != last {
			last = now
			select {
			case r.changed <- struct{}{}:
			default:
			}
		}
	}
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
			return view, err
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
	rows, err = r.db.QueryContext(ctx, "SELECT ID, INFO FROM information_schema.PROCESSLIST WHERE STATE = 'User lock' ORDER BY ID")
	if err != nil {
		return view, err
	}
	for rows.Next() {
		var session uint32
		var statement sql.NullString
		if err := rows.Scan(&session, &statement); err != nil {
			return view, err
		}
		if m := getLock.FindStringSubmatch(statement.String); m != nil && !there[session] {
			there[session] = true
			view.Waiting[m[1]] = append(view.Waiting[m[1]], r.nameOf(session, m[1]))
		}
	}
	for session := range r.names {
		if !there[session] {
			delete(r.names, session)
		}
	}
	return view, rows.Err()
}

// nameOf names a session that has a user lock or waits for one, after its turn to ask. Guarded by
// mu.
func (r *realServer) nameOf(session uint32, lock string) string {
	if u := r.names[session]; u != nil && u.lock == lock {
		return u.name
	}
	r.asked++
	u := &userLock{fmt.Sprintf("%d.%d.%d", r.lives, session, r.asked), lock}
	r.names[session] = u
	return u.name
}

// Addr implements live.Server.
func (r *realServer) Addr() string { return r.o.Addr }

// Version implements live.Server.
func (r *realServer) Version() string { return program + " " + r.version }

// Pid implements live.Server.
func (r *realServer) Pid() int { return r.process.Cmd.Process.Pid }

// Restart implements live.Server.
func (r *realServer) Restart(keepData bool) error {
	r.end()
	return r.begin(!keepData)
}

func (r *realServer) end() {
	if r.stopped != nil {
		close(r.stopped)
		r.stopped = nil // it may not start again, and is stopped then
	}
	r.process.Kill()
	r.polled.Wait()
	_ = r.db.Close()
}

// Stop implements live.Server.
func (r *realServer) Stop() {
	r.end()
	_ = r.o.Log.Close()
}

// Settle implements live.Observed. A statement that waits for a user lock has no answer in time.
func (*realServer) Settle() live.Settle {
	return live.Settle{First: 40 * time.Millisecond, Quiet: 3 * time.Millisecond, Most: 200 * time.Millisecond}
}

// AsksNothing implements live.Observed.
func (*realServer) AsksNothing([]byte) bool { return false }

// Changed implements live.Observed.
func (r *realServer) Changed() <-chan struct{} { return r.changed }

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
func (*realServer) Show(of sim.Server, view any, _ int64) {
	sim.Streaming(of).(*Server).shown = view.(*shown)
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
			_, e := r.db.Exec("KILL ?", session)
			err = errors.Join(err, e)
		}
	}
	return err
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
