package server

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lockstep/internal/longtest"
	"lockstep/lockimpl/redisserver"
	"lockstep/sim"
)

// mariadb starts the real program for the time of the test.
func mariadb(t *testing.T) *sql.DB {
	t.Helper()
	const pkg = "mariadb-server"
	for _, program := range []string{"mariadbd", "mariadb-install-db"} {
		if _, err := exec.LookPath(program); err != nil {
			redisserver.Missing(t, program, pkg)
		}
	}
	dir := t.TempDir()
	if err := install(dir, io.Discard, (*exec.Cmd).Start); err != nil {
		t.Fatal(err)
	}
	p, db, err := launch(dir, "", io.Discard, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = db.Close()
		p.Kill()
	})
	return db
}

// ours starts the server of the world outside any world, in real time.
func ours(t *testing.T) *sql.DB {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{}
	if err := s.Boot(sim.Setup{Listen: func() net.Listener { return l }, Changed: func() {}, Instant: func() sim.Instant { return sim.Instant{} }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return connect(t, "tcp", l.Addr().String(), Database)
}

func connect(t *testing.T, network, addr, database string) *sql.DB {
	t.Helper()
	db, err := open(network, addr, database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// party is a server with a few sessions.
type party struct {
	db    *sql.DB
	conns []*sql.Conn
	ids   []string // of the sessions
}

func newParty(t *testing.T, db *sql.DB, n int) *party {
	t.Helper()
	p := &party{db: db, conns: make([]*sql.Conn, n), ids: make([]string, n)}
	for i := range n {
		p.open(t, i)
	}
	return p
}

func (p *party) open(t *testing.T, i int) {
	t.Helper()
	c, err := p.db.Conn(context.Background())
	if err == nil {
		err = c.QueryRowContext(context.Background(), "SELECT CONNECTION_ID()").Scan(&p.ids[i])
	}
	if err != nil {
		t.Fatal(err)
	}
	p.conns[i] = c
}

// reopen ends a session, and begins another in its place once the server has noticed.
func (p *party) reopen(t *testing.T, i int) {
	t.Helper()
	old := p.ids[i]
	_ = p.conns[i].Raw(func(any) error { return driver.ErrBadConn })
	_ = p.conns[i].Close()
	p.open(t, i)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		var left int
		if err := p.conns[i].QueryRowContext(context.Background(), "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", old).Scan(&left); err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Fatal("the session does not end")
		}
	}
}

// step is a statement of one session. With rows the answer is its rows, otherwise the number of
// rows that it changed.
type step struct {
	conn  int
	query string // "": the session ends and another begins
	rows  bool
}

func (s step) String() string { return fmt.Sprintf("%d: %s", s.conn, s.query) }

// do executes a step and returns the answer, in which a session is named by its place.
func (p *party) do(t *testing.T, s step) string {
	t.Helper()
	if s.query == "" {
		p.reopen(t, s.conn)
		return "reopened"
	}
	if !s.rows {
		r, err := p.conns[s.conn].ExecContext(context.Background(), s.query)
		if err != nil {
			return "error"
		}
		if do.MatchString(s.query) {
			return "done" // see unlike
		}
		n, _ := r.RowsAffected()
		return fmt.Sprint(n, " rows")
	}
	var x sql.NullString
	switch err := p.conns[s.conn].QueryRowContext(context.Background(), s.query).Scan(&x); {
	case errors.Is(err, sql.ErrNoRows):
		return "no row"
	case err != nil:
		return "error"
	case !x.Valid || x.String == "0" && strings.Contains(s.query, "SELECT RELEASE_LOCK"): // see unlike
		return "NULL"
	}
	if strings.Contains(s.query, "RELEASE_ALL_LOCKS") {
		return "released" // MariaDB counts levels, and the server of the world counts names
	}
	if strings.Contains(s.query, "IS_USED_LOCK") {
		for i, id := range p.ids {
			if id == x.String {
				return fmt.Sprint("session ", i)
			}
		}
	}
	return x.String
}

// draw draws a step that does not wait.
func draw(r *rand.Rand, conns int) step {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	s := step{conn: r.IntN(conns), rows: true}
	name := one("orders", "stock", "a b", "été", "it''s", strings.Repeat("n", 64))
	owner := one("a", "b", "c")
	future, any := one("100000000", "3600000000"), one("-1000000", "0", "100000000")
	switch r.IntN(17) {
	case 0, 1, 2, 3:
		s.query = "SELECT GET_LOCK('" + name + "', 0)"
	case 4, 5:
		s.query = "SELECT RELEASE_LOCK('" + name + "')"
	case 6:
		s.query = "SELECT IS_FREE_LOCK('" + name + "')"
	case 7:
		s.query = "SELECT IS_USED_LOCK('" + name + "')"
	case 8:
		s.query = "SELECT RELEASE_ALL_LOCKS()"
	case 9:
		if r.IntN(3) == 0 {
			s.query = "" // end the session
		} else {
			s.query = "SELECT " + one("RELEASE_LOCK(NULL)", "IS_FREE_LOCK('none')", "IS_USED_LOCK('none')", "RELEASE_LOCK('none')", "GET_LOCK('orders', 0) + GET_LOCK('orders', 0)")
		}
	case 10:
		s.query, s.rows = fmt.Sprintf(one("INSERT", "INSERT IGNORE")+" INTO locks (name, owner, expires, token) VALUES ('%s', '%s', TIMESTAMPADD(MICROSECOND, %s, NOW(6)), 1)", name, owner, any), false
	case 11, 12:
		s.query, s.rows = fmt.Sprintf("UPDATE locks SET owner = '%s', expires = TIMESTAMPADD(MICROSECOND, %s, NOW(6)), token = token + 1 WHERE name = '%s' AND expires <= NOW(6)", owner, any, name), false
	case 13:
		s.query, s.rows = fmt.Sprintf("UPDATE locks SET expires = TIMESTAMPADD(MICROSECOND, %s, NOW(6)) WHERE name = '%s' AND owner = '%s' AND expires > NOW(6)", future, name, owner), false
	case 14:
		s.query, s.rows = fmt.Sprintf("UPDATE locks SET expires = NOW(6), owner = '' WHERE name = '%s' AND owner = '%s' AND expires > NOW(6)", name, owner), false
	case 15:
		s.query = fmt.Sprintf("SELECT token FROM locks WHERE name = '%s' AND owner = '%s'", name, owner)
	case 16:
		s.query, s.rows = one("DO RELEASE_LOCK('"+name+"')", "do GET_LOCK('"+name+"', 0), RELEASE_LOCK('"+name+"')", "DO GET_LOCK('"+name+"', 0)", "DO NULL, 1 + 1", "DO"), false
	}
	return s
}

// These tests compare the server of the world with MariaDB. Starting MariaDB takes seconds, so one
// serves all tests.
func TestBesideMariaDB(t *testing.T) {
	real, world := mariadb(t), ours(t)
	t.Run("drawn statements are answered alike", func(t *testing.T) { drawn(t, real, world) })
	t.Run("the last inserted number is alike", func(t *testing.T) { insertedAlike(t, real, world) })
	t.Run("waits end alike", func(t *testing.T) { waits(t, real, world) })
	t.Run("what is not alike", func(t *testing.T) { unlike(t, real, world) })
}

func drawn(t *testing.T, mariadb, ours *sql.DB) {
	sequences := longtest.Size(t, 1000, 5000)
	const conns = 3
	real, world := newParty(t, mariadb, conns), newParty(t, ours, conns)
	statements := 0
	for seed := range sequences {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		var done []string
		for range 4 + r.IntN(16) {
			s := draw(r, 2+seed%2)
			want, got := real.do(t, s), world.do(t, s)
			done = append(done, fmt.Sprintf("%v: %s", s, want))
			statements++
			if got != want {
				t.Fatalf("sequence %d: MariaDB answers %q, the server of the world %q:\n%s", seed, want, got, strings.Join(done, "\n"))
			}
		}
		for _, p := range []*party{real, world} {
			for i := range conns {
				p.do(t, step{conn: i, query: "SELECT RELEASE_ALL_LOCKS()", rows: true})
			}
			p.do(t, step{query: "DELETE FROM locks"})
		}
	}
	t.Logf("%d sequences, %d statements", sequences, statements)
}

// insertedAlike compares the number that an answer tells the client, of which LAST_INSERT_ID(expr) is one.
func insertedAlike(t *testing.T, mariadb, ours *sql.DB) {
	for name, db := range map[string]*sql.DB{"MariaDB": mariadb, "the server of the world": ours} {
		p := newParty(t, db, 1)
		for _, c := range []struct {
			query string
			want  int64
		}{
			{"INSERT INTO locks VALUES ('orders', '', NOW(6), 4), ('stock', 'a', NOW(6), 8)", 0},
			{"UPDATE locks SET token = LAST_INSERT_ID(token + 1) WHERE name = 'orders'", 5},
			{"UPDATE locks SET token = LAST_INSERT_ID(token + 1) WHERE name = 'none'", 0},
			{"UPDATE locks SET token = IF(owner = '', LAST_INSERT_ID(token + 1), token) WHERE name = 'stock'", 0},
			{"UPDATE locks SET token = IF(owner = '', LAST_INSERT_ID(token + 1), token) WHERE name = 'orders'", 6},
			{"UPDATE locks SET token = LAST_INSERT_ID(token) WHERE name = 'orders'", 6},
			{"UPDATE locks SET token = token + 1 WHERE name = 'orders'", 0},
			{"UPDATE locks SET token = LAST_INSERT_ID() + 1 WHERE name = 'orders'", 0},
			{"UPDATE locks SET token = LAST_INSERT_ID(token + 1) ORDER BY name", 9},
			{"INSERT INTO locks VALUES ('orders', '', NOW(6), 1) ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(token + 1)", 9},
			{"INSERT INTO locks VALUES ('none', '', NOW(6), LAST_INSERT_ID(3))", 3},
			{"INSERT INTO locks VALUES ('new', '', NOW(6), 1) ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(token + 1)", 0},
			{"REPLACE INTO locks VALUES ('new', '', NOW(6), 1)", 0},
			{"REPLACE INTO locks VALUES ('new', '', NOW(6), LAST_INSERT_ID(7))", 7},
			{"CREATE TABLE holds (id BIGINT AUTO_INCREMENT PRIMARY KEY, token BIGINT)", 0},
			{"INSERT INTO holds (token) VALUES (LAST_INSERT_ID(9))", 1},
			{"UPDATE holds SET token = 1", 0},
			{"DROP TABLE holds", 0},
			{"DELETE FROM locks WHERE LAST_INSERT_ID(3) = 3", 0},
		} {
			r, err := p.conns[0].ExecContext(context.Background(), c.query)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, c.query, err)
			}
			if n, err := r.LastInsertId(); n != c.want || err != nil {
				t.Errorf("%s answers %s with the number %d, %v; want %d", name, c.query, n, err, c.want)
			}
		}
	}
}

// waits compares statements that wait for a user lock, in real time, until an unlock, the end of
// the session, or the end of the wait.
func waits(t *testing.T, mariadb, ours *sql.DB) {
	for _, c := range []struct {
		end  step // 200 ms after the wait began; conn 2: nothing ends the wait
		wait string
		want string
	}{
		{step{conn: 0, query: "SELECT RELEASE_LOCK('orders')", rows: true}, "5", "1"},
		{step{conn: 0, query: "SELECT RELEASE_ALL_LOCKS()", rows: true}, "5", "1"},
		{step{conn: 0}, "5", "1"},
		{step{conn: 2, query: "SELECT 1", rows: true}, "1", "0"},
	} {
		for name, db := range map[string]*sql.DB{"MariaDB": mariadb, "the server of the world": ours} {
			p := newParty(t, db, 3)
			if got := p.do(t, step{query: "SELECT GET_LOCK('orders', 0)", rows: true}); got != "1" {
				t.Fatalf("%s: a free lock answers %q", name, got)
			}
			answer := make(chan string)
			go func() {
				answer <- p.do(t, step{conn: 1, query: "SELECT GET_LOCK('orders', " + c.wait + ")", rows: true})
			}()
			time.Sleep(200 * time.Millisecond)
			p.do(t, c.end)
			if got := <-answer; got != c.want {
				t.Errorf("%s: after %v the wait answers %q; want %q", name, c.end, got, c.want)
			}
			for i := range p.conns {
				p.do(t, step{conn: i, query: "SELECT RELEASE_ALL_LOCKS()", rows: true})
			}
		}
	}
}

// unlike compares the statements whose answers differ. docs/servers.md lists them, and the
// sequences leave them out.
func unlike(t *testing.T, mariadb, ours *sql.DB) {
	real, world := newParty(t, mariadb, 1), newParty(t, ours, 1)
	for _, c := range []struct{ query, real, world string }{
		{"SELECT GET_LOCK('', 0)", "NULL", "1"},
		{"SELECT GET_LOCK('a', 0) + RELEASE_LOCK('a') + (RELEASE_LOCK('a') IS NULL)", "3", "2"},
		{"SELECT MICROSECOND(TIMESTAMP'2026-01-01 00:00:00.5' + INTERVAL 8 SECOND)", "500000", "0"},
		{"SELECT MICROSECOND(FROM_UNIXTIME(946684808810 / 1000))", "810000", "0"},
	} {
		s := step{query: c.query, rows: true}
		if got := real.do(t, s); got != c.real {
			t.Errorf("MariaDB answers %s with %q; want %q", c.query, got, c.real)
		}
		if got := world.do(t, s); got != c.world {
			t.Errorf("the server of the world answers %s with %q; want %q", c.query, got, c.world)
		}
	}
	for _, c := range []struct {
		name string
		conn *sql.Conn
		want int64
	}{{"MariaDB", real.conns[0], 0}, {"the server of the world", world.conns[0], 1}} {
		r, err := c.conn.ExecContext(context.Background(), "DO 1, 2")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if n, err := r.RowsAffected(); n != c.want || err != nil {
			t.Errorf("%s answers DO with %d rows, %v; want %d", c.name, n, err, c.want)
		}
	}
}
