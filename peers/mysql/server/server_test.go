package server

import (
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dolthub/go-mysql-server/sql"

	"lockstep/model"
	"lockstep/sim"
)

// silent is a listener to which nobody connects.
type silent struct{ closed chan struct{} }

func (l silent) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l silent) Close() error {
	close(l.closed)
	return nil
}

func (silent) Addr() net.Addr { return &net.TCPAddr{} }

func setup(changed func()) sim.Setup {
	return sim.Setup{
		Listen:  func() net.Listener { return silent{make(chan struct{})} },
		Changed: changed,
		Instant: func() sim.Instant { return sim.Instant{} },
	}
}

// The world reads the state at the end of the lease of each row, whatever row it read last.
func TestTheWorldIsToldOfTheEndOfEachLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		began := time.Now()
		s := &Server{}
		if err := s.Boot(setup(func() { told = append(told, time.Since(began)) })); err != nil {
			t.Fatal(err)
		}
		for name, seconds := range map[string]int{"orders": 1, "stock": 2} {
			s.must(s.now.run(fmt.Sprintf("INSERT INTO locks VALUES ('%s', 'a', TIMESTAMPADD(SECOND, %d, NOW(6)), 1)", name, seconds)))
		}
		for _, name := range []string{"orders", "stock", "orders", "stock"} {
			if r := s.Row(name); r == nil || r.Owner != "a" || r.Expires <= 0 {
				t.Fatalf("the row of %s is %v", name, r)
			}
		}
		time.Sleep(10 * time.Second)
		if got := fmt.Sprint(told); got != "[1s 2s]" {
			t.Errorf("the world is told at %s; want [1s 2s]", got)
		}
		s.Stop()
		synctest.Wait()
	})
}

// A statement that fails ends its transaction, as any other without BEGIN, and the commit of one that only looked writes nothing.
func TestWhatOthersWroteStays(t *testing.T) {
	db := ours(t)
	p := newParty(t, db, 2)
	for _, c := range []struct {
		conn        int
		query, want string
	}{
		{0, "INSERT INTO locks (name, owner, expires, token) VALUES ('x', 'a', NOW(6), 1)", "1 rows"},
		{1, "INSERT INTO locks (name, owner, expires, token) VALUES ('x', 'b', NOW(6), 1)", "error"},
		{0, "UPDATE locks SET owner = 'c' WHERE name = 'x'", "1 rows"},
		{1, "DELETE FROM locks WHERE owner = 'a'", "0 rows"},
		{1, "BEGIN", "0 rows"},
		{1, "SELECT owner FROM locks", "0 rows"},
		{0, "UPDATE locks SET owner = 'd' WHERE name = 'x'", "1 rows"},
		{1, "COMMIT", "0 rows"},
		{0, "DELETE FROM locks WHERE owner = 'd'", "1 rows"},
	} {
		if got := p.do(t, step{conn: c.conn, query: c.query}); got != c.want {
			t.Errorf("%s by session %d: %s; want %s", c.query, c.conn, got, c.want)
		}
	}
}

func TestSelectReadsAnyTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		s := &Server{schema: []string{"CREATE TABLE leases (resource VARCHAR(64), holder VARCHAR(64), until DATETIME(6), fence BIGINT)"}}
		if err := s.Boot(setup(func() { told++ })); err != nil {
			t.Fatal(err)
		}
		const query = "SELECT holder, until, fence FROM leases WHERE resource = ?"
		for _, values := range []string{
			"'it''s', 'a', TIMESTAMPADD(SECOND, 2, NOW(6)), 7", "'endless', 'b', NULL, 8", "'free', NULL, NULL, NULL", "'two', 'c', NULL, 1", "'two', 'd', NULL, 2", "'late', 'e', TIMESTAMPADD(SECOND, -1, NOW(6)), 9",
		} {
			s.must(s.now.run("INSERT INTO leases VALUES (" + values + ")"))
		}
		for _, c := range []struct {
			query, lock string
			want        *Row
			refused     string
		}{
			{query, "it's", &Row{Owner: "a", Expires: 2 * time.Second, Token: 7}, ""},
			{query, "endless", &Row{Owner: "b", Endless: true, Token: 8}, ""},
			{query, "free", &Row{Endless: true}, ""},
			{query, "late", &Row{Owner: "e", Expires: -time.Second, Token: 9}, ""},
			{"SELECT holder, until FROM leases WHERE resource = ?", "it's", &Row{Owner: "a", Expires: 2 * time.Second}, ""},
			{query, "nobody", nil, ""},
			{query, "two", nil, "returns 2 rows of 3 columns"},
			{"SELECT holder FROM leases WHERE resource = ?", "it's", nil, "returns 1 rows of 1 columns"},
			{"SELECT holder, CAST(UNIX_TIMESTAMP(NOW()) * 1000 + 1500 AS SIGNED), fence FROM leases WHERE resource = ?", "it's", &Row{Owner: "a", Expires: 1500 * time.Millisecond, Token: 7}, ""},
			{"SELECT holder, CAST(UNIX_TIMESTAMP(NOW()) + 3 AS SIGNED), fence FROM leases WHERE resource = ?", "it's", &Row{Owner: "a", Expires: 3 * time.Second, Token: 7}, ""},
			{"SELECT holder, holder FROM leases WHERE resource = ?", "it's", nil, "neither a DATETIME, such as CAST(... AS DATETIME(6)), nor a BIGINT"},
			{"SELECT holder, until, holder FROM leases WHERE resource = ?", "it's", nil, "the token"},
			{"SELECT holder, until, NULL, 3 FROM leases WHERE resource = ?", "it's", &Row{Owner: "a", Expires: 2 * time.Second, Levels: 3}, ""},
			{"SELECT holder, until, fence, holder FROM leases WHERE resource = ?", "it's", nil, "the levels"},
			{"SELECT owner, until FROM leases WHERE resource = ?", "it's", nil, "owner"},
		} {
			got, err := s.Select(c.query, c.lock)
			if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s for %s: %+v, %v; want %+v, %s", c.query, c.lock, got, err, c.want, c.refused)
			}
		}
		before := told
		time.Sleep(10 * time.Second)
		if told != before+1 {
			t.Errorf("the world is told %d times of the end of a lease", told-before)
		}
		if s.Lacks(model.FaultSpec{Kind: model.FaultKey, KeyDo: "delete"}) == "" {
			t.Error("an operator deletes keys of a table that the server does not know")
		}
		s.Stop()
		synctest.Wait()
	})
}

func TestAWrongSchemaIsRefused(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), "CREATE TABEL leases") {
			t.Errorf("Servers panics with %v", err)
		}
	}()
	Servers("CREATE TABEL leases (resource VARCHAR(64))")
}

// The engine locks no rows, so that two sessions write to one row at a time.
func TestAStatementThatWouldWaitForARowIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		if err := s.Boot(setup(func() {})); err != nil {
			t.Fatal(err)
		}
		sessions := map[string]*sql.Context{"a": s.now.session(), "b": s.now.session()}
		for name, id := range map[string]uint32{"a": 1, "b": 2} {
			sessions[name].Session.SetConnectionId(id)
		}
		for _, c := range []struct {
			rule, statements, want string // each statement with its session; in capitals in a transaction
		}{
			{"two transactions", "A INSERT IGNORE INTO locks VALUES (1)|B INSERT IGNORE INTO locks VALUES (1)", "the statement INSERT IGNORE INTO locks VALUES (1)"},
			{"one transaction", "A delete from `locks`|b UPDATE locks SET owner = 'b'", "the statement UPDATE locks SET owner = ?"},
			{"two tables", "A UPDATE stock SET n = 1|b UPDATE locks SET owner = 'b'", ""},
			{"one session", "A UPDATE locks SET owner = 'a'|A DELETE FROM locks", ""},
			{"one after the other", "A UPDATE locks SET owner = 'a'|a SELECT 1|B UPDATE locks SET owner = 'b'", ""},
			{"no transaction", "a UPDATE locks SET owner = 'a'|b UPDATE locks SET owner = 'b'", ""},
			{"a look", "A UPDATE locks SET owner = 'a'|b SELECT owner FROM locks", ""},
			{"a transaction that looks", "A SELECT owner FROM locks|b UPDATE locks SET owner = 'b'", ""},
			{"and writes then", "A SELECT owner FROM locks|b UPDATE locks SET owner = 'b'|A UPDATE stock SET n = 1", "the statement UPDATE stock SET n = 1"},
			{"or wrote before", "A UPDATE stock SET n = 1|A SELECT owner FROM locks|b UPDATE locks SET owner = 'b'", "the statement UPDATE locks SET owner = ?"},
			{"and writes in the next one", "A SELECT owner FROM locks|b UPDATE locks SET owner = 'b'|A COMMIT|A UPDATE stock SET n = 1", ""},
		} {
			for _, statement := range strings.Split(c.statements, "|") {
				who, query, _ := strings.Cut(statement, " ")
				ctx := sessions[strings.ToLower(who)]
				ctx.SetIgnoreAutoCommit(who == strings.ToUpper(who))
				s.now.asked.isolates(ctx, query)
			}
			if got := strings.Join(s.Unsimulated(), ", "); got != c.want {
				t.Errorf("%s: %q; want %q", c.rule, got, c.want)
			}
			for _, ctx := range sessions {
				ctx.SetIgnoreAutoCommit(false)
				s.now.asked.isolates(ctx, "COMMIT")
			}
		}
		s.Stop()
	})
}
