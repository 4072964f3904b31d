// Package server runs MySQL in a world: github.com/dolthub/go-mysql-server, unmodified, with its
// tables in memory, on a listener in memory.
package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	mysqlserver "github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/log"
	"github.com/sirupsen/logrus"

	"lockstep/locktest"
	"lockstep/model"
	"lockstep/sim"
)

// Database is the name of the only database.
const Database = "shop"

// port is where MySQL serves clients.
const port = 3306

func init() {
	// The library logs each connection. A world has thousands.
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.PanicLevel)
	quiet, quietf := func(...any) {}, func(string, ...any) {}
	log.Info, log.Warning, log.Error = quiet, quiet, quiet
	log.Infof, log.Warningf, log.Errorf = quietf, quietf, quietf
}

// Servers returns one server with the table of locks, and with what these statements make. It panics if
// the server refuses one of them.
func Servers(schema ...string) locktest.Servers {
	if len(schema) > 0 {
		if _, _, err := (&Server{schema: schema}).prepare(nil); err != nil {
			panic(err)
		}
	}
	return locktest.Independent(1, port, func() sim.Server { return sim.Segments(&Server{schema: schema}) })
}

// Table is the statement that makes the table of locks. A free lock is a row whose expiry
// is over, or no row.
const Table = "CREATE TABLE locks (name VARCHAR(64) NOT NULL PRIMARY KEY, owner VARCHAR(64) NOT NULL, expires DATETIME(6) NOT NULL, token BIGINT UNSIGNED NOT NULL)"

// Server is MySQL. It implements sim.StreamServer.
type Server struct {
	schema []string // statements that make more tables
	setup  sim.Setup
	starts int // how often it has started

	mu    sync.Mutex    // held for moments only
	ahead time.Duration // how far its wall clock is ahead
	data  *memory.Database
	now   *life                  // the present start
	holds map[string]hold        // by the name of a lock, when it was read last
	ends  map[string]*time.Timer // by the name of a lock, at the end of its lease
	// refused has the statements and waits that the server met since the world asked, and that it does not simulate.
	refused []string

	// shown, if not nil, has the locks of a real server, which this one stands for in a live run.
	shown *shown
}

// shown has the locks that a server holds, by their names.
type shown struct {
	Rows    map[string]Row
	Holders map[string]string
	Waiting map[string][]string
}

// life is the server from one start to its end.
type life struct {
	number   int
	engine   *sqle.Engine
	provider *memory.DbProvider
	server   *mysqlserver.Server
	asked    *statements
	session  func() *sql.Context
}

// hold is a user lock that a session has.
type hold struct {
	life    int
	session uint32
	name    string // see Holder
}

// Row is a row of the table of locks, or of another table.
type Row struct {
	Owner   string
	Expires time.Duration // from now, by the wall clock of the server; negative: it is over
	Endless bool          // it has no expiry
	Token   uint64
	Levels  int // 0: the table has none
}

// Parts implements sim.StreamServer. The locks of a subject are read with Holder and Row.
func (s *Server) Parts() sim.Parts {
	return sim.Parts{Stop: s.Stop, Strike: s.Strike, StepClock: s.StepClock, Unsimulated: s.Unsimulated, Says: says, Lacks: s.Lacks, Leftovers: s.Leftovers}
}

// Boot implements sim.StreamServer.
func (s *Server) Boot(setup sim.Setup) error {
	s.setup, s.holds, s.ends = setup, map[string]hold{}, map[string]*time.Timer{}
	return s.begin(nil)
}

// begin starts the server on the tables of data. Without data it makes them.
func (s *Server) begin(data *memory.Database) error {
	s.starts++
	data, l, err := s.prepare(data)
	if err != nil {
		return err
	}
	l.server, err = mysqlserver.NewServer(mysqlserver.Config{Listener: listener{s.setup.Listen(), s.setup.Changed}},
		l.engine, s.context, memory.NewSessionBuilder(l.provider), nil)
	if err != nil {
		return fmt.Errorf("mysql: %w", err)
	}
	s.mu.Lock()
	s.data, s.now = data, l
	s.mu.Unlock()
	go func() { _ = l.server.Start() }()
	return nil
}

// prepare makes what a start of the server needs before it serves: the tables, unless data has them, and
// the engine.
func (s *Server) prepare(data *memory.Database) (*memory.Database, *life, error) {
	fresh := data == nil
	if fresh {
		data = memory.NewDatabase(Database)
		data.EnablePrimaryKeyIndexes()
	}
	provider := memory.NewDBProvider(data)
	l := &life{number: s.starts, engine: sqle.NewDefault(provider), provider: provider}
	l.asked = &statements{ProcessList: l.engine.ProcessList, locks: l.engine.LS, instant: s.setup.Instant, last: map[uint32]*statement{}, open: map[uint32]*transaction{},
		refuse: s.refuse}
	l.engine.ProcessList = l.asked
	l.engine.Parser = parser{l.engine.Parser, s}
	l.engine.Analyzer.ExecBuilder = builder{l.engine.Analyzer.ExecBuilder}
	l.session = func() *sql.Context {
		ctx := s.context(context.Background(), sql.WithSession(memory.NewSession(sql.NewBaseSession(), provider)))
		ctx.SetCurrentDatabase(Database)
		return ctx
	}
	if fresh {
		for _, statement := range append([]string{Table}, s.schema...) {
			if err := l.run(statement); err != nil {
				return nil, nil, fmt.Errorf("mysql: %s: %w", statement, err)
			}
		}
	}
	return data, l, nil
}

// context makes the context of a statement, whose time is that of the server's wall clock.
func (s *Server) context(ctx context.Context, opts ...sql.ContextOption) *sql.Context {
	c := sql.NewContext(ctx, opts...)
	c.SetQueryTime(s.clock())
	return c
}

// clock reads the wall clock.
func (s *Server) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.ahead)
}

// run executes a statement that belongs to no session.
func (l *life) run(statement string) error {
	_, err := l.rows(statement)
	return err
}

// rows executes a statement that belongs to no session, and returns its rows.
func (l *life) rows(statement string) ([]sql.Row, error) {
	ctx := l.session()
	_, rows, _, err := l.engine.Query(ctx, statement)
	if err != nil {
		return nil, err
	}
	var list []sql.Row
	for {
		r, err := rows.Next(ctx)
		if err == io.EOF {
			return list, rows.Close(ctx)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
}

// end stops the server. It does not wait for the end.
func (l *life) end() {
	_ = l.server.Close()
	for _, id := range l.sessions() {
		_ = l.server.SessionManager().KillConnection(id)
	}
}

// sessions returns the numbers of the sessions.
func (l *life) sessions() []uint32 {
	var list []uint32
	_ = l.server.SessionManager().Iter(func(s sql.Session) (bool, error) {
		list = append(list, s.ID())
		return false, nil
	})
	slices.Sort(list)
	return list
}

// Stop is sim.Parts.Stop.
func (s *Server) Stop() {
	s.mu.Lock()
	l := s.now
	for _, t := range s.ends {
		t.Stop()
	}
	s.mu.Unlock()
	if l != nil {
		go l.end()
	}
}

// Lacks is sim.Parts.Lacks.
func (s *Server) Lacks(f model.FaultSpec) string {
	const has = "; it has a restart, a step of its wall clock and the deletion of keys"
	switch {
	case f.Kind == model.FaultKey && len(s.schema) > 0:
		return "has no operator who knows the keys of other tables than that of the locks; it has a restart and a step of its wall clock"
	case f.Kind == model.FaultKey && f.KeyDo != "delete":
		return "has no operator who ends a lease" + has
	case f.Server == model.ServerFailover:
		return "has no replica to fail over to" + has
	case f.Server == model.ServerFlushScripts:
		return "runs no scripts" + has
	}
	return ""
}

// Strike is sim.Parts.Strike. After a restart all sessions are over, and with them the user
// locks. The fault that deletes a key is an operator who deletes the row of that name, and kills
// the session that has the user lock of that name.
func (s *Server) Strike(_ int64, f model.FaultSpec, out *sim.Effects) {
	s.mu.Lock()
	l, data := s.now, s.data
	s.mu.Unlock()
	if f.Kind == model.FaultKey {
		for _, r := range s.table() {
			if name := r[0].(string); sim.Match(f.Key, name) {
				out.Remove(written(r[1])...)
				s.must(l.run("DELETE FROM locks WHERE name = '" + strings.ReplaceAll(name, "'", "''") + "'"))
			}
		}
		for _, id := range l.holding(f.Key) {
			_ = l.server.SessionManager().KillConnection(id)
		}
		return
	}
	go l.end()
	if !f.KeepData {
		for _, t := range data.Tables() {
			t := t.(*memory.Table)
			for _, r := range t.GetPartition("0") {
				for i, c := range t.Schema() {
					if !c.PrimaryKey {
						out.Remove(written(r[i])...)
					}
				}
			}
		}
		data = nil
	}
	s.must(s.begin(data))
}

// written returns the bytes by which a request that wrote a text, such as the owner of a row, is known: in a statement or
// for one that was prepared. A free row has no owner.
func written(value any) []string {
	text, _ := value.(string)
	if text == "" || len(text) >= 0x80 {
		return nil
	}
	return []string{"'" + text + "'", string(rune(len(text))) + text}
}

// must panics if the server cannot carry a fault out.
func (*Server) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("mysql: a fault of the server: %v", err))
	}
}

// holding returns the sessions that have a user lock whose name matches a glob.
func (l *life) holding(glob string) []uint32 {
	var list []uint32
	_ = l.server.SessionManager().Iter(func(s sql.Session) (bool, error) {
		return false, s.IterLocks(func(name string) error {
			if sim.Match(glob, name) {
				list = append(list, s.ID())
			}
			return nil
		})
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// StepClock is sim.Parts.StepClock.
func (s *Server) StepClock(_ int64, by time.Duration, _ *sim.Effects) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += by
}

// table returns the rows of the table of locks.
func (s *Server) table() []sql.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.data.Tables()["locks"].(*memory.Table)
	return t.GetPartition("0")
}

// Row returns the row of a lock, or nil if it has none. It makes the world read the state again
// when the lease of the row ends.
func (s *Server) Row(lock string) *Row {
	if s.shown != nil {
		if r, ok := s.shown.Rows[lock]; ok {
			return &r
		}
		return nil
	}
	rows := s.table()
	i := slices.IndexFunc(rows, func(r sql.Row) bool { return r[0] == lock })
	if i < 0 {
		return nil
	}
	r := rows[i]
	return &Row{Owner: r[1].(string), Expires: s.until(lock, r[2].(time.Time)), Token: r[3].(uint64)}
}

// until returns the time until the lease of a lock ends. The world reads the state again then.
func (s *Server) until(lock string, end time.Time) time.Duration {
	left := end.Sub(s.clock())
	if left > 0 {
		s.mu.Lock()
		if t := s.ends[lock]; t != nil {
			t.Stop()
		}
		s.ends[lock] = time.AfterFunc(left, s.setup.Changed)
		s.mu.Unlock()
	}
	return left
}

// Select returns the row of a lock in any table, or nil if it has none. query has a question mark in the
// place of the lock. It selects the owner, the expiry, and the token and the levels if there are any. Like Row it makes
// the world read the state again when the lease ends.
func (s *Server) Select(query, lock string) (*Row, error) {
	s.mu.Lock()
	l := s.now
	s.mu.Unlock()
	query = strings.Replace(query, "?", "'"+strings.ReplaceAll(lock, "'", "''")+"'", 1)
	rows, err := l.rows(query)
	if err != nil {
		return nil, fmt.Errorf("mysql: %s: %w", query, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	if len(rows) > 1 || len(rows[0]) < 2 || len(rows[0]) > 4 {
		return nil, fmt.Errorf("mysql: %s returns %d rows of %d columns; want one row: the owner, the expiry and, if there are any, the token and the levels", query, len(rows), len(rows[0]))
	}
	r, out := rows[0], &Row{}
	if r[0] != nil {
		out.Owner = fmt.Sprint(r[0])
	}
	switch end := r[1].(type) {
	case nil:
		out.Endless = true
	case time.Time:
		out.Expires = s.until(lock, end)
	case int64:
		if end < 1e11 {
			end *= 1000
		}
		out.Expires = s.until(lock, time.UnixMilli(end))
	default:
		return nil, fmt.Errorf("mysql: %s: the expiry is %v, a %T, and neither a DATETIME, such as CAST(... AS DATETIME(6)), nor a BIGINT", query, end, end)
	}
	if len(r) > 2 && r[2] != nil {
		if out.Token, err = strconv.ParseUint(fmt.Sprint(r[2]), 10, 64); err != nil {
			return nil, fmt.Errorf("mysql: %s: the token: %w", query, err)
		}
	}
	if len(r) > 3 && r[3] != nil {
		if out.Levels, err = strconv.Atoi(fmt.Sprint(r[3])); err != nil {
			return nil, fmt.Errorf("mysql: %s: the levels: %w", query, err)
		}
	}
	return out, nil
}

// Holder returns the owner of a user lock ("" for none), and its waiters in the order of their
// sessions. Each is named after the statement with which it asked: by the number of the server's
// start, of the session, and of the statement within the session.
func (s *Server) Holder(lock string) (owner string, waiting []string) {
	if s.shown != nil {
		return s.shown.Holders[lock], s.shown.Waiting[lock]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.now
	state, id := l.engine.LS.GetLockState(lock)
	if state != sql.LockInUse {
		delete(s.holds, lock)
	} else if h := s.holds[lock]; h.life != l.number || h.session != id {
		s.holds[lock] = hold{l.number, id, l.nameOf(id, l.asked.latest(id).number)}
	}
	for _, w := range l.asked.waitingFor(lock) {
		if w.session != id || state != sql.LockInUse {
			waiting = append(waiting, l.nameOf(w.session, w.number))
		}
	}
	return s.holds[lock].name, waiting
}

func (l *life) nameOf(session uint32, statement int) string {
	return fmt.Sprintf("%d.%d.%d", l.number, session, statement)
}

// Leftovers is sim.Parts.Leftovers. The row of a free lock is no leftover, since it has the
// newest token.
func (s *Server) Leftovers(out *sim.Effects) {
	now := s.clock()
	for _, r := range s.table() {
		if r[1] != "" && r[2].(time.Time).After(now) {
			out.Record(model.Event{Kind: model.KindLeft, Key: r[0].(string)})
		}
	}
}

// statement is the last statement of a session.
type statement struct {
	session uint32
	number  int    // within the session, from 1
	lock    string // the name in GET_LOCK; "": it is another statement
	runs    bool
	wait    sim.Instant
}

// statements is the list of processes of the server. It keeps the last statement of each session.
type statements struct {
	sql.ProcessList
	locks   *sql.LockSubsystem
	instant func() sim.Instant

	refuse func(what string) // notes what the server does not simulate

	mu   sync.Mutex // held for moments only
	last map[uint32]*statement
	open map[uint32]*transaction // by session
}

// writes finds the table to which a statement writes.
var writes = regexp.MustCompile("(?i)^\\s*(?:INSERT\\s+(?:IGNORE\\s+)?(?:INTO\\s+)?|REPLACE\\s+(?:INTO\\s+)?|UPDATE\\s+(?:IGNORE\\s+)?|DELETE\\s+(?:IGNORE\\s+)?FROM\\s+)[`]?([\\w.]+)")

// names finds the tables that a statement names.
var names = regexp.MustCompile("(?i)\\b(?:FROM|JOIN|INTO|UPDATE)\\s+(?:IGNORE\\s+)?[`]?([\\w.]+)")

// ends finds a statement that ends the open transaction.
var ends = regexp.MustCompile(`(?i)^\s*(?:COMMIT|ROLLBACK|BEGIN|START\s+TRANSACTION)\b`)

// transaction is the open transaction of a session. The engine gives it a copy of each table that it names, and
// writes all of them back with the commit.
type transaction struct {
	seen  map[string]bool // the tables that it named
	wrote map[string]bool // those to which it wrote
	stale bool            // whether another session has written to one since
}

// isolates makes the engine, which locks no rows, keep transactions apart. A transaction that failed, or that wrote
// nothing, leaves no trace. A statement is refused after which a commit would undo what another session wrote.
func (p *statements) isolates(ctx *sql.Context, query string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := ctx.Session.ID()
	on, _ := ctx.GetSessionVariable(ctx, sql.AutoCommitSessionVar)
	inside := ctx.GetIgnoreAutoCommit() || on != nil && fmt.Sprint(on) != "1" && fmt.Sprint(on) != "true"
	own := p.open[id]
	over := !inside || ends.MatchString(query)
	if !inside || over && own != nil && len(own.wrote) == 0 {
		ctx.SetTransaction(nil)
	}
	if over || own == nil {
		own = &transaction{seen: map[string]bool{}, wrote: map[string]bool{}}
	}
	p.open[id] = own
	if !inside {
		delete(p.open, id)
	}
	for _, m := range names.FindAllStringSubmatch(query, -1) {
		own.seen[strings.ToLower(m[1])] = true
	}
	m := writes.FindStringSubmatch(query)
	if m == nil {
		return
	}
	table := strings.ToLower(m[1])
	undoes, waits := own.stale, false
	own.wrote[table] = true
	for other, t := range p.open {
		if other != id && t.seen[table] {
			t.stale, undoes, waits = true, undoes || len(t.wrote) > 0, waits || t.wrote[table]
		}
	}
	switch {
	case waits:
		p.refuse("a possible wait of the statement " + withoutLiterals(query) + " for rows of another transaction")
	case undoes:
		p.refuse("the statement " + withoutLiterals(query) + " beside another transaction on the same tables")
	}
}

// getLock finds the name in a statement that asks for a user lock, and its timeout if that is 0.
var getLock = regexp.MustCompile(`(?i)\bGET_LOCK\(\s*'((?:[^'\\]|''|\\.)*)'(?:\s*,\s*(0\s*\))?)?`)

// waitsFor returns the user lock for which a statement may wait; "": none. With a timeout of 0 it does not wait.
func waitsFor(query string) string {
	if m := getLock.FindStringSubmatch(query); m != nil && m[2] == "" {
		return m[1]
	}
	return ""
}

// BeginQuery implements sql.ProcessList. A session that does not get its lock at once asks for it
// every 100 µs. It begins at an instant that no other session has, since two sessions that ask at
// the same instant would be served in any order.
func (p *statements) BeginQuery(ctx *sql.Context, query string) (*sql.Context, error) {
	p.isolates(ctx, query)
	id, lock := ctx.Session.ID(), waitsFor(query)
	p.mu.Lock()
	s := p.last[id]
	if s == nil {
		s = &statement{session: id, wait: p.instant()}
		p.last[id] = s
	}
	s.number++
	s.lock, s.runs = lock, true
	p.mu.Unlock()
	if state, owner := p.locks.GetLockState(lock); lock != "" && state == sql.LockInUse && owner != id {
		s.wait.Wait()
	}
	return p.ProcessList.BeginQuery(ctx, query)
}

// EndQuery implements sql.ProcessList.
func (p *statements) EndQuery(ctx *sql.Context) {
	p.mu.Lock()
	p.last[ctx.Session.ID()].runs = false
	p.mu.Unlock()
	p.ProcessList.EndQuery(ctx)
}

// RemoveConnection implements sql.ProcessList.
func (p *statements) RemoveConnection(id uint32) {
	p.mu.Lock()
	delete(p.last, id)
	delete(p.open, id)
	p.mu.Unlock()
	p.ProcessList.RemoveConnection(id)
}

// latest returns the last statement of a session.
func (p *statements) latest(session uint32) statement {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.last[session]; s != nil {
		return *s
	}
	return statement{session: session}
}

// waitingFor returns the statements that wait for a user lock, by session.
func (p *statements) waitingFor(lock string) []statement {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []statement
	for _, s := range p.last {
		if s.runs && s.lock == lock {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b statement) int { return cmp.Compare(a.session, b.session) })
	return list
}

// listener makes the world read the state when a connection is written to or closed, since a
// session may then have got its lock, or be over.
type listener struct {
	net.Listener
	changed func()
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn{c, l.changed}, nil
}

type conn struct {
	net.Conn
	changed func()
}

// Write implements net.Conn.
func (c conn) Write(b []byte) (int, error) {
	c.changed()
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c conn) Close() error {
	c.changed()
	return c.Conn.Close()
}
