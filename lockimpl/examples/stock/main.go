// Stock sells goods from a counter in Redis, with many workers at once. The counter is read by GET
// and written by SET: only the lock keeps two workers from selling the same piece.
//
//	go run ./lockimpl/examples/stock -addr localhost:6379 -workers 8 -orders 100
//	go run ./lockimpl/examples/stock -lock none # sells what it does not have
//
// It touches no key but its own, which carry a random id, and removes them.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisson"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // Redis failed, or the books do not balance
	exitUsage       = 64
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the options of the command line.
type options struct {
	addr    string
	workers int
	orders  int
	stock   int
	pack    time.Duration
	lock    string
	release string
	verbose bool
}

// parse reads the command line and tells stderr what is wrong with it.
func parse(args []string, stderr io.Writer) (options, *redisson.Release, error) {
	var o options
	f := flag.NewFlagSet("stock", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.addr, "addr", "localhost:6379", "`host:port` of Redis")
	f.IntVar(&o.workers, "workers", 8, "how many sell at once")
	f.IntVar(&o.orders, "orders", 100, "how many pieces are asked for")
	f.IntVar(&o.stock, "stock", 50, "how many pieces there are")
	f.DurationVar(&o.pack, "pack", time.Millisecond, "how long an order takes between GET and SET")
	f.StringVar(&o.lock, "lock", "plain", "what guards the counter: "+strings.Join(guardNames, ", "))
	f.StringVar(&o.release, "release", "", "which `version` of Redisson's lock; default: the newest")
	f.BoolVar(&o.verbose, "v", false, "log every sale, and what the lock's watchdog does")
	if err := f.Parse(args); err != nil {
		return o, nil, err // flag has printed it
	}
	release, err := redisson.Find(o.release)
	switch {
	case err != nil:
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.workers < 1 || o.workers > 1000:
		err = fmt.Errorf("-workers %d: between 1 and 1000 can work", o.workers)
	case o.orders < 0 || o.stock < 0 || o.pack < 0:
		err = errors.New("-orders, -stock and -pack are not negative")
	default:
		err = checkGuard(o.lock, release)
	}
	if err != nil {
		fmt.Fprintf(stderr, "stock: %v\n", err)
		f.Usage()
	}
	return o, release, err
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, release, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))

	// A worker needs a connection for its command, and one to wait on.
	rdb := redis.NewClient(redisson.Options(&redis.Options{Addr: o.addr, PoolSize: 2*o.workers + 8}))
	defer rdb.Close()
	redis.SetLogger(quiet{}) // what matters comes back as an error
	if err := ping(ctx, rdb); err != nil {
		fmt.Fprintf(stderr, "stock: no Redis at %s: %v\nstart one (redis-server --port 6379) or name another with -addr host:port\n", o.addr, err)
		return exitFailed
	}

	client := redisson.NewClient(rdb, redisson.Config{Release: release, WatchHolds: true, Log: log})
	s := &shop{rdb: rdb, name: "lockstep-stock-" + rand.Text(), log: log, pack: packing(o.pack)}
	defer func() {
		_ = client.Close() // so that nothing more is sent
		s.settle()
		s.clear()
	}()
	s.guard, err = newGuard(o.lock, client, s.lockName())
	if err == nil {
		err = s.open(ctx, o.stock)
	}
	if err != nil {
		fmt.Fprintf(stderr, "stock: %v\n", err)
		return exitFailed
	}

	fmt.Fprintf(stdout, "%d orders, %d in stock, %d workers, lock %s", o.orders, o.stock, o.workers, o.lock)
	if o.lock != "none" {
		fmt.Fprintf(stdout, " (redisson %s)", release.Version)
	}
	fmt.Fprintln(stdout)
	books, err := s.serve(ctx, o.workers, o.orders)
	if err != nil {
		fmt.Fprintf(stderr, "stock: %v\n", err)
	}
	left, leftErr := s.left()
	if leftErr != nil {
		fmt.Fprintf(stdout, "sold %d; how many are left is not known\n", books.sold)
		fmt.Fprintf(stderr, "stock: %v\n", leftErr)
		return exitFailed
	}
	verdict, balanced := books.balance(o.stock, left)
	fmt.Fprintln(stdout, verdict)
	switch {
	case err != nil || !balanced:
		return exitFailed
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "stock: interrupted; the orders under way were finished")
		return exitInterrupted
	}
	return exitOK
}

func ping(ctx context.Context, rdb *redis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return rdb.Ping(ctx).Err()
}

// packing is the work on a piece before it is booked.
func packing(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// quiet drops what go-redis logs by itself.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
