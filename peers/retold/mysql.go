package retold

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"lockstep/locktest"
	"lockstep/peers/mysqltest"
)

// GoMySQLLock is the lock of github.com/sanketplus/go-mysql-lock: a user lock on a connection of its own, which is
// pinged every second.
var GoMySQLLock = locktest.Subject{
	Name: "go-mysql-lock", About: "go-mysql-lock, told again: a user lock on a connection of its own, which is pinged every second",
	Servers: mysqltest.Servers(), State: mysqltest.UserLock(nil),
	Policy: "Each hold has a connection of its own, which returns to the pool after an unlock and after an acquire that failed.",
	Open: func(p *locktest.Process) (locktest.Client, error) {
		return &mySQLClient{DB: mysqltest.NewDB(p)}, nil
	},
}

// mySQLHold is a lock of the library. lost ends when a ping fails, and at the release.
type mySQLHold struct {
	conn     *sql.Conn
	key      string
	lost     context.Context
	lose     context.CancelFunc
	unlocker chan struct{}
}

var (
	errMySQLTimeout  = errors.New("the time of GET_LOCK is over")
	errMySQLInternal = errors.New("GET_LOCK failed")
)

// mySQLObtain waits for the lock for some seconds.
func mySQLObtain(ctx context.Context, db *sql.DB, key string, seconds int) (*mySQLHold, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var got sql.NullInt32
	switch err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", key, seconds).Scan(&got); {
	case err == nil && !got.Valid:
		err = errMySQLInternal
		fallthrough
	case err != nil:
		_ = conn.Close()
		return nil, err
	case got.Int32 == 0:
		_ = conn.Close()
		return nil, errMySQLTimeout
	}
	h := &mySQLHold{conn: conn, key: key, unlocker: make(chan struct{})}
	h.lost, h.lose = context.WithCancel(context.Background())
	go h.refresh(time.Second)
	return h, nil
}

func (h *mySQLHold) refresh(every time.Duration) {
	defer h.lose()
	for {
		select {
		case <-h.unlocker:
			return
		case <-time.After(every):
		}
		ctx, cancel := context.WithTimeout(context.Background(), every)
		err := h.conn.PingContext(ctx)
		cancel()
		if err != nil {
			return
		}
	}
}

// release does not look at the answer of RELEASE_LOCK, and gives the connection back to the pool.
func (h *mySQLHold) release() error {
	close(h.unlocker)
	_, _ = h.conn.ExecContext(context.Background(), "DO RELEASE_LOCK(?)", h.key)
	return h.conn.Close()
}

type mySQLClient struct {
	*sql.DB
	locks []*mySQLLock
}

func (c *mySQLClient) Lock(name string) (locktest.Lock, error) {
	l := &mySQLLock{db: c.DB, name: name}
	c.locks = append(c.locks, l)
	return l, nil
}

// Close also releases the connections of holds, which Close of the pool does not close.
func (c *mySQLClient) Close() error {
	for _, l := range c.locks {
		if l.held != nil {
			_ = l.held.release()
		}
	}
	return c.DB.Close()
}

type mySQLLock struct {
	db   *sql.DB
	name string
	held *mySQLHold // nil: not held
	lost <-chan struct{}
}

func (l *mySQLLock) Lock(ctx context.Context) error {
	held, err := mySQLObtain(ctx, l.db, l.name, 5)
	if errors.Is(err, errMySQLTimeout) {
		return locktest.ErrBusy
	}
	if err == nil {
		l.held, l.lost = held, held.lost.Done()
	}
	return err
}

func (l *mySQLLock) Unlock(context.Context) error {
	if l.held == nil {
		return locktest.ErrNotHeld
	}
	held := l.held
	l.held = nil
	if held.lost.Err() != nil {
		_ = held.release()
		return errLost
	}
	return held.release()
}

// Lost implements locktest.Watched.
func (l *mySQLLock) Lost() <-chan struct{} { return l.lost }
