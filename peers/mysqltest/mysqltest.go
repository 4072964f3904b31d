// Package mysqltest lets clients of github.com/go-sql-driver/mysql run in a world, whatever lock uses
// them. A subject of package locktest gets its server, its pool of connections and its State from here.
//
// The runs of a pool that only dials with [locktest.Process.DialContext] differ from one program to the
// next: the driver tells the server the number of its process and the name of its platform. [Config]
// gives this message the same length for all of them.
package mysqltest

import (
	"context"
	"database/sql"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"lockstep/locktest"
	"lockstep/peers/mysql/server"
	"lockstep/sim"
)

// Table is the statement that has made the table of locks before clients connect. A free lock is a row
// whose expiry is over, or whose owner is empty, or no row.
const Table = server.Table

// Servers returns one server, with user locks (GET_LOCK) and the table of locks. It locks no rows:
// a lock whose statement asks for that, as SELECT ... FOR UPDATE does, cannot be judged.
//
// tables are statements that make tables of yours before clients connect. Servers panics if the server
// refuses one. With such tables no fault deletes keys, the judge tidy does not see which of your rows stay,
// and the lock cannot be played on a real server.
func Servers(tables ...string) locktest.Servers { return server.Servers(tables...) }

// UserLock returns the State of a lock that is a user lock of MySQL (GET_LOCK). Its hold has no lease.
// It is known by the statement with which it began. name returns the name of the user lock; nil: the
// name of the lock.
func UserLock(name func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	name = orSame(name)
	return func(s locktest.Snapshot, lock string) *locktest.State {
		owner, waiting := serverOf(s).Holder(name(lock))
		if owner == "" && len(waiting) == 0 {
			return nil
		}
		return &locktest.State{Owner: owner, Expires: -1, Queue: waiting}
	}
}

// Row returns the State of a lock that is a row of the table of locks. The lock is held while the row
// has an owner and its expiry is not over, by the wall clock of the server. name returns the name in the
// row; nil: the name of the lock.
func Row(name func(lock string) string) func(locktest.Snapshot, string) *locktest.State {
	name = orSame(name)
	return func(s locktest.Snapshot, lock string) *locktest.State {
		return held(s, serverOf(s).Row(name(lock)))
	}
}

// Select returns the State of a lock that is a row of a table of yours. query has a question mark in the
// place of the name of the lock. It selects the owner and the expiry of the row, the fencing token if
// the lock has one, and behind it the levels if it is Reentrant (NULL: no token). The expiry is a DATETIME or
// TIMESTAMP by the wall clock of the server, or a BIGINT of milliseconds since 1970 (of seconds if it is below
// 1e11); NULL: the lock has no lease. The lock is free if there is no row, if the owner is NULL or empty, or if
// the expiry is over.
func Select(query string) func(locktest.Snapshot, string) *locktest.State {
	return func(s locktest.Snapshot, lock string) *locktest.State {
		r, err := serverOf(s).Select(query, lock)
		if err != nil {
			panic(err) // a mistake in the subject
		}
		return held(s, r)
	}
}

// held returns the state of a lock whose row is r.
func held(s locktest.Snapshot, r *server.Row) *locktest.State {
	switch {
	case r == nil || r.Owner == "" || !r.Endless && r.Expires <= 0:
		return nil
	case r.Endless:
		return &locktest.State{Owner: r.Owner, Expires: -1, Token: int64(r.Token), Count: r.Levels}
	}
	return &locktest.State{Owner: r.Owner, Expires: s.Now() + r.Expires, Token: int64(r.Token), Count: r.Levels}
}

// orSame returns name, or a function that leaves a name as it is.
func orSame(name func(lock string) string) func(lock string) string {
	if name == nil {
		return func(lock string) string { return lock }
	}
	return name
}

func serverOf(s locktest.Snapshot) *server.Server {
	return sim.Streaming(s.Server(0)).(*server.Server)
}

// Config returns the configuration with which a client of p reaches the server. Arguments become part
// of a statement's text, so that a statement is one round trip.
func Config(p *locktest.Process) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", p.Addr(0), server.Database
	c.InterpolateParams, c.Logger = true, &mysql.NopLogger{}
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return p.DialContext(ctx, network, addr)
	}
	// The driver sends the process number and the platform of the program to the server. The
	// padding gives the message the same length for all of them.
	told := strconv.Itoa(os.Getpid()) + runtime.GOOS + runtime.GOARCH
	c.ConnectionAttributes = "pad:" + strings.Repeat("-", max(60-len(told), 0))
	return c
}

// NewDB returns a pool of connections of p. The caller closes it, or embeds it in a [locktest.Client],
// whose Close it then is.
//
// Its connections must not be limited (SetMaxOpenConns): package database/sql chooses by chance which
// of the callers that wait for a connection gets the next one.
func NewDB(p *locktest.Process) *sql.DB {
	connector, err := mysql.NewConnector(Config(p))
	if err != nil {
		panic(err) // the configuration is the same in every run
	}
	return sql.OpenDB(connector)
}
