package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisclient"
	"lockstep/lockimpl/redisson"
)

// shop is a counter in Redis and the lock that guards it.
type shop struct {
	rdb   *redis.Client
	name  string // unique to this shop
	guard guard
	pack  func(context.Context) error
	log   *slog.Logger
}

// The braces put all keys of a shop into one slot of a cluster.
func (s *shop) lockName() string  { return "{" + s.name + "}:lock" }
func (s *shop) counter() string   { return "{" + s.name + "}:left" }
func (s *shop) lastToken() string { return "{" + s.name + "}:token" }

// open fills the shelves. The counter ends by itself within a day, in case this program does not
// live to remove it.
func (s *shop) open(ctx context.Context, stock int) error {
	if err := s.rdb.Set(ctx, s.counter(), stock, 24*time.Hour).Err(); err != nil {
		return fmt.Errorf("fill the shelves: %w", err)
	}
	return nil
}

// left counts the pieces on the shelves.
func (s *shop) left() (int, error) {
	ctx, cancel := atTheEnd()
	defer cancel()
	n, err := s.rdb.Get(ctx, s.counter()).Int()
	if err != nil {
		return 0, fmt.Errorf("count what is left: %w", err)
	}
	return n, nil
}

// settle waits for the commands that are still under way. An interrupted attempt may reach Redis
// after its caller has gone, and make keys again.
func (s *shop) settle() {
	ctx, cancel := atTheEnd()
	defer cancel()
	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	for {
		if pool := s.rdb.PoolStats(); pool.TotalConns == pool.IdleConns {
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			s.log.Warn("a command is under way still; it may leave keys behind")
			return
		}
	}
}

// clear removes the shop's keys, and the keys that the lock keeps for good. (Other keys of
// the lock end by themselves within seconds.)
func (s *shop) clear() {
	ctx, cancel := atTheEnd()
	defer cancel()
	lock := s.lockName()
	keys := []string{
		s.counter(), s.lastToken(), lock,
		redisson.QueueName(lock), redisson.DeadlinesName(lock), redisson.TokenName(lock),
	}
	if err := s.rdb.Del(ctx, keys...).Err(); err != nil {
		s.log.Error("keys are left behind", "keys", keys, "err", err)
	}
}

// atTheEnd returns a context for work that must be done even after an interrupt.
func atTheEnd() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Second)
}

// books are the outcomes of the orders.
type books struct {
	sold, turnedAway int
	givenUp          int // the hold was lost before anything was booked
	unknown          int // booked or not, nobody knows
}

// balance sums up the books. It reports false if they cannot be right.
func (b books) balance(stock, left int) (string, bool) {
	text := fmt.Sprintf("sold %d, left %d, turned away %d", b.sold, left, b.turnedAway)
	if b.givenUp > 0 {
		text += fmt.Sprintf(", given up %d", b.givenUp)
	}
	if b.unknown > 0 {
		text += fmt.Sprintf(", unknown %d", b.unknown)
	}
	over := b.sold + left - stock
	switch {
	case over > 0:
		return fmt.Sprintf("%s: OVERSOLD by %d of %d", text, over, stock), false
	case over < -b.unknown:
		return fmt.Sprintf("%s: %d of %d are missing", text, -over, stock), false
	case over < 0:
		return fmt.Sprintf("%s: the books balance, with those of which nobody knows", text), true
	}
	return text + ": the books balance", true
}

// The reasons why an order was not sold, besides the errors of the lock.
var (
	errSoldOut = errors.New("sold out")
	errUnknown = errors.New("booked or not, nobody knows")
	errStale   = errors.New("a later hold has booked already")
)

// add books the outcome of one order. It returns false if the shop must close.
func (b *books) add(sold bool, err error) bool {
	lost := errors.Is(err, lockimpl.ErrHoldLost) || errors.Is(err, errStale)
	switch {
	case sold: // err belongs to the unlock after the sale
		b.sold++
		return err == nil || lost
	case errors.Is(err, errSoldOut):
		b.turnedAway++
		return true
	case errors.Is(err, errUnknown):
		b.unknown++
		return false
	case lost:
		b.givenUp++
		return true
	default:
		return false
	}
}

// serve lets workers take orders until there are none, ctx ends or one fails.
func (s *shop) serve(ctx context.Context, workers, orders int) (books, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var mu sync.Mutex // guards b and failed
	var b books
	var failed error
	var taken atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		owner := lockimpl.Owner(w + 1)
		wg.Go(func() {
			for ctx.Err() == nil {
				order := taken.Add(1)
				if order > int64(orders) {
					return
				}
				sold, err := s.sell(ctx, owner)
				s.tell(ctx, order, owner, sold, err)
				mu.Lock()
				if !b.add(sold, err) && ctx.Err() == nil {
					failed = err
					cancel() // the others stop too
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return b, failed
}

func (s *shop) tell(ctx context.Context, order int64, o lockimpl.Owner, sold bool, err error) {
	log := s.log.With("order", order, "worker", o)
	switch {
	case sold && err == nil:
		log.Debug("sold")
	case errors.Is(err, errSoldOut):
		log.Debug("sold out")
	case sold:
		log.Warn("sold, and then", "err", err)
	case ctx.Err() != nil: // the order waited for the lock
		log.Debug("not sold", "err", err)
	default:
		log.Warn("not sold", "err", err)
	}
}

// sell sells one piece: look, pack, book. It may return an error although the piece is sold: then
// the unlock failed.
func (s *shop) sell(ctx context.Context, o lockimpl.Owner) (sold bool, err error) {
	err = s.guard(ctx, o, func(ctx context.Context, token int64) error {
		left, err := s.rdb.Get(ctx, s.counter()).Int()
		if err != nil {
			return s.failed(ctx, "look at the shelves", err)
		}
		if left == 0 {
			return errSoldOut
		}
		if err := s.pack(ctx); err != nil {
			return s.failed(ctx, "pack", err)
		}
		// The last check before the write. A lock cannot do better: a process that stops right here
		// for longer than its lease still writes, unless the resource checks the token.
		if err := context.Cause(ctx); err != nil {
			return err
		}
		err = s.book(ctx, left-1, token)
		sold = err == nil
		return err
	})
	return sold, err
}

// bookFenced writes the counter unless a later hold has already written it.
var bookFenced = redis.NewScript(`
-- KEYS: 1 counter, 2 newest token that wrote; ARGV: 1 pieces left, 2 token
if tonumber(redis.call('get', KEYS[2]) or 0) > tonumber(ARGV[2]) then
    return 0
end
redis.call('set', KEYS[1], ARGV[1], 'keepttl')
redis.call('set', KEYS[2], ARGV[2], 'ex', 86400)
return 1`)

func (s *shop) book(ctx context.Context, left int, token int64) error {
	var err error
	if token == 0 {
		err = s.rdb.Set(ctx, s.counter(), left, redis.KeepTTL).Err()
	} else {
		var written int
		written, err = bookFenced.Run(ctx, s.rdb, []string{s.counter(), s.lastToken()}, left, token).Int()
		if err == nil && written == 0 {
			return errStale
		}
	}
	if redisclient.MayHaveRun(err) {
		return fmt.Errorf("book a sale: %w: %w", errUnknown, err)
	}
	if err != nil {
		return s.failed(ctx, "book a sale", err)
	}
	return nil
}

// failed names the work that failed. If it failed because the hold is over, it says so.
func (s *shop) failed(ctx context.Context, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w", doing, cause)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
