package strangers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// The keys of a lock: the key of the hold, the counter of tokens, the queue of waiters, and the list
// that wakes them.
func (l *lock) keys() []string { return keysOf(l.name) }

func keysOf(name string) []string {
	return []string{name, name + ":tokens", name + ":queue", name + ":wake"}
}

func channelOf(name string) string { return name + ":free" }

// eval runs a script on server i.
func (c *client) eval(ctx context.Context, i int, script string, keys []string, args ...any) *redis.Cmd {
	return c.nodes[i].Eval(ctx, script, keys, args...)
}

// each asks all servers at once, and counts the replies that are yes and no.
func (c *client) each(ask func(i int) (bool, error)) (yes, no int, err error) {
	type answer struct {
		yes bool
		err error
	}
	answers := make([]answer, len(c.nodes))
	if len(c.nodes) == 1 {
		answers[0].yes, answers[0].err = ask(0)
	} else {
		done := make(chan struct{}, len(c.nodes))
		for i := range c.nodes {
			go func() {
				answers[i].yes, answers[i].err = ask(i)
				done <- struct{}{}
			}()
		}
		for range c.nodes {
			<-done
		}
	}
	for _, a := range answers {
		switch {
		case a.err != nil:
			err = errors.Join(err, a.err)
		case a.yes:
			yes++
		default:
			no++
		}
	}
	return yes, no, err
}

// own is the part of a script that reads the value of the holder, and its count.
func (p Plumbing) own() string {
	switch {
	case p.Levels == Counted:
		return `local own, count = string.match(redis.call('get', KEYS[1]) or '', '^(.*):(%d+)$')
`
	case p.Release == Member:
		return `local own = redis.call('hkeys', KEYS[1])[1]
`
	}
	return `local own = redis.call('get', KEYS[1])
`
}

// write is the part of a script that writes ARGV[1] as the holder.
func (p Plumbing) write() string {
	switch {
	case p.Levels == Counted:
		return `redis.call('set', KEYS[1], ARGV[1] .. ':' .. ARGV[3], 'PX', ARGV[2])
`
	case p.Release == Member:
		return `redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2])
`
	}
	return `redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])
`
}

// grantsAgain reports whether an acquire grants a value that has the lock.
func (p Plumbing) grantsAgain(m Mutation) bool {
	return (p.Retry != Once || p.Levels != Flat) && m != RetriedTakeRefused
}

// takeScript takes a free lock. It returns 0 if the lock is another's.
func (p Plumbing) takeScript(m Mutation) string {
	s := p.own()
	switch {
	case p.grantsAgain(m) && p.Levels == Counted && m == LevelsNotCounted:
		s += `if own == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end
`
	case p.grantsAgain(m) && p.Levels == Counted:
		s += `if own == ARGV[1] then ` + p.write() + ` return 1 end
`
	case p.grantsAgain(m) && p.Fenced:
		s += `if own == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return tonumber(redis.call('get', KEYS[2]) or 1) end
`
	case p.grantsAgain(m):
		s += `if own == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end
`
	}
	s += `if own then return 0 end
`
	if p.Levels == Counted {
		s += `if ARGV[3] ~= '1' then return -1 end
`
	}
	s += p.write()
	switch {
	case p.Fenced && m == TokenBeforeTake:
		return s + `return tonumber(ARGV[4])`
	case p.Fenced:
		return s + `return redis.call('incr', KEYS[2])`
	}
	return s + `return 1`
}

// handOverScript is takeScript for HandOver. ARGV[3] is the time after which an abandoned queue ends, and ARGV[4] says
// whether the caller waits.
const handOverScript = `
local own = redis.call('get', KEYS[1])
if own == ARGV[1] then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
local place = false
for _, v in ipairs(redis.call('lrange', KEYS[3], 0, -1)) do
  if v == ARGV[1] then place = true end
end
if ARGV[4] == '0' then
  if own or redis.call('exists', KEYS[3]) == 1 then return 0 end
elseif not place then
  redis.call('rpush', KEYS[3], ARGV[1])
end
if not own then
  own = redis.call('lpop', KEYS[3]) or ARGV[1]
  redis.call('set', KEYS[1], own, 'PX', ARGV[2])
end
if redis.call('exists', KEYS[3]) == 1 then redis.call('pexpire', KEYS[3], ARGV[3]) end
if own == ARGV[1] then return 1 end
return 0`

// next is the part of a script that gives the lock to the next waiter.
func next(m Mutation) string {
	pop := "lpop"
	if m == WakesTheLast {
		pop = "rpop"
	}
	return `
local next = redis.call('` + pop + `', KEYS[3])
if next then redis.call('set', KEYS[1], next, 'PX', ARGV[2]) else redis.call('del', KEYS[1]) end
`
}

// leaveScript takes a waiter out of the queue.
func leaveScript(m Mutation) string {
	return `redis.call('lrem', KEYS[3], 0, ARGV[1])
if redis.call('get', KEYS[1]) == ARGV[1] then` + next(m) + `end
return 1`
}

// lowerScript sets the number of levels to ARGV[2]. It returns 2 if it is that already.
const lowerScript = `
local own, count = string.match(redis.call('get', KEYS[1]) or '', '^(.*):(%d+)$')
if own ~= ARGV[1] then return 0 end
if count == ARGV[2] then return 2 end
redis.call('set', KEYS[1], own .. ':' .. ARGV[2], 'KEEPTTL')
return 1`

// renewScript sets the lease anew if the value has the lock.
func (p Plumbing) renewScript(m Mutation) string {
	end := `ARGV[2]`
	if m == LeaseGrows {
		end = `ARGV[2] + redis.call('pttl', KEYS[1])`
	}
	if m == RenewsBlindly {
		return `return redis.call('pexpire', KEYS[1], ` + end + `)`
	}
	return p.own() + `if own ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ` + end + `)`
}

// signal is the part of a script that wakes waiters.
func (p Plumbing) signal() string {
	switch p.Wake {
	case Publish:
		return ` redis.call('publish', ARGV[3], 'free')`
	case List:
		return ` redis.call('del', KEYS[4]) redis.call('rpush', KEYS[4], 1) redis.call('pexpire', KEYS[4], ARGV[2])`
	}
	return ""
}

// releaseScript deletes the key if the value has the lock.
func (p Plumbing) releaseScript(m Mutation) string {
	compare := p.own() + `if own ~= ARGV[1] then return 0 end
`
	if m == ReleasesBlindly {
		compare = `if redis.call('exists', KEYS[1]) == 0 then return 0 end
`
	}
	if p.Wake == HandOver {
		return compare + next(m) + `return 1`
	}
	if m == PublishesFirst {
		return compare + `redis.call('del', KEYS[1]) return 1`
	}
	return compare + `redis.call('del', KEYS[1])` + p.signal() + ` return 1`
}

// take asks for the lock once. It returns nil if the lock is another's.
func (l *lock) take(ctx context.Context, value string, wait bool) (*hold, error) {
	p, m := l.c.p, l.c.m
	token := int64(1)
	var before any = 0
	if m == TokenBeforeTake {
		n, err := l.c.nodes[0].Incr(ctx, l.name+":tokens").Result()
		if err != nil {
			return nil, err
		}
		before = n
	}
	sent := time.Now()
	h := l.newHold(value, sent.Add(lease-l.c.margin()))
	first := lease
	if p.Taking == InTwoLeases {
		first = shortLease
	}
	ctx = context.WithValue(ctx, startedHold{}, h)
	if p.Wake == HandOver { // a ticket that is given up on its way could arrive when the caller has left the queue
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		ctx = own
	}
	yes, _, err := l.c.each(func(i int) (bool, error) {
		switch {
		case p.Wake == HandOver:
			waits := 0
			if wait {
				waits = 1
			}
			n, err := l.c.eval(ctx, i, handOverScript, l.keys(), value, lease.Milliseconds(), (10 * lease).Milliseconds(), waits).Int()
			return n > 0, err
		case m == TakesInTwo:
			ok, err := l.c.nodes[i].SetNX(ctx, l.name, value, 0).Result()
			if err != nil || !ok {
				return false, err
			}
			//lockvet:ignore no-lease This is the mistake TakesInTwo.
			return l.c.nodes[i].PExpire(ctx, l.name, lease).Result()
		case m == NoLease:
			return l.c.nodes[i].SetNX(ctx, l.name, value, 0).Result()
		case p.takesByCommand(m):
			return l.c.nodes[i].SetNX(ctx, l.name, value, first).Result()
		}
		n, err := l.c.eval(ctx, i, p.takeScript(m), l.keys(), value, first.Milliseconds(), 1, before).Int64()
		token = n
		return n > 0, err
	})
	if p.Taking == InTwoLeases && yes > 0 {
		h.until = time.Now().Add(lease)
		var kept bool
		if kept, _, err = l.c.renew(ctx, l.name, value); !kept {
			h.halt(false)
			return nil, cmp.Or(err, errDoubt)
		}
	}
	if m == LeaseFromReply {
		h.until = time.Now().Add(lease)
	}
	switch {
	case yes >= l.c.majority() && time.Now().Before(h.until):
		h.token = uint64(token)
		h.begin()
		return h, nil
	case p.Servers > 1:
		h.halt(false)
		if m != PartsLeft && (yes > 0 || err != nil) {
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
			defer cancel()
			_, _ = l.c.release(clean, l.name, value)
		}
		if err != nil && (ctx.Err() != nil || errors.Is(err, redis.ErrClosed)) {
			return nil, err
		}
		return nil, nil
	case yes > 0: // the lease was over before the reply came
		h.halt(false)
		return nil, errDoubt
	}
	h.halt(false)
	return nil, err
}

// takesByCommand reports whether SET NX PX is all that an acquire needs.
func (p Plumbing) takesByCommand(m Mutation) bool {
	return p.Renewal != Hook && !p.grantsAgain(m) && !p.Fenced && p.Release != Member && p.Levels != Counted
}

// renew sets the lease of a value anew. gone says that the servers do not have the value.
func (c *client) renew(ctx context.Context, name, value string) (kept, gone bool, err error) {
	yes, no, err := c.each(func(i int) (bool, error) {
		if c.m == RenewsInTwo {
			now, err := c.nodes[i].Get(ctx, name).Result()
			if errors.Is(err, redis.Nil) || err == nil && now != value {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			return c.nodes[i].PExpire(ctx, name, lease).Result()
		}
		n, err := c.eval(ctx, i, c.p.renewScript(c.m), []string{name}, value, lease.Milliseconds()).Int()
		return n == 1, err
	})
	return yes >= c.majority(), no > len(c.nodes)-c.majority(), err
}

// release deletes a value everywhere. freed says that it deleted a majority, and an error that it may have deleted
// some.
func (c *client) release(ctx context.Context, name, value string) (freed bool, err error) {
	yes, no, err := c.each(func(i int) (bool, error) { return c.releaseAt(ctx, i, name, value) })
	switch {
	case yes >= len(c.nodes)/2+1:
		return true, nil
	case no == len(c.nodes):
		return false, nil
	case err != nil:
		return false, err
	}
	return false, errDoubt
}

func (c *client) releaseAt(ctx context.Context, i int, name, value string) (bool, error) {
	p, m, rdb := c.p, c.m, c.nodes[i]
	if m == PublishesFirst {
		if err := rdb.Publish(ctx, channelOf(name), "free").Err(); err != nil {
			return false, err
		}
	}
	switch {
	case p.Wake == Head:
		n, err := rdb.LRem(ctx, name, 0, value).Result()
		return n > 0, err
	case m == ReleasesInTwo:
		now, err := rdb.Get(ctx, name).Result()
		if errors.Is(err, redis.Nil) || err == nil && now != value {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		n, err := rdb.Del(ctx, name).Result()
		if err == nil && p.Wake == Publish {
			err = rdb.Publish(ctx, channelOf(name), "free").Err()
		}
		return n == 1, err
	case p.Release == Watch:
		return c.releaseWatched(ctx, rdb, name, value)
	case p.Release == Member && m != ReleasesBlindly && p.signal() == "":
		n, err := rdb.HDel(ctx, name, value).Result()
		return n == 1, err
	}
	n, err := c.eval(ctx, i, p.releaseScript(m), keysOf(name), value, lease.Milliseconds(), channelOf(name)).Int()
	return n == 1, err
}

var errOther = errors.New("strangers: the key has another value")

// releaseWatched releases by WATCH, MULTI and EXEC.
func (c *client) releaseWatched(ctx context.Context, rdb *redis.Client, name, value string) (bool, error) {
	for {
		err := rdb.Watch(ctx, func(tx *redis.Tx) error {
			now, err := tx.Get(ctx, name).Result()
			if errors.Is(err, redis.Nil) || err == nil && now != value {
				return errOther
			}
			if err != nil {
				return err
			}
			if c.m == WatchesWithoutMulti {
				return tx.Del(ctx, name).Err()
			}
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Del(ctx, name)
				switch c.p.Wake {
				case Publish:
					if c.m == PublishesFirst {
						break
					}
					pipe.Publish(ctx, channelOf(name), "free")
				case List:
					wake := keysOf(name)[3]
					pipe.Del(ctx, wake)
					pipe.RPush(ctx, wake, 1)
					pipe.PExpire(ctx, wake, lease)
				}
				return nil
			})
			return err
		}, name)
		switch {
		case errors.Is(err, redis.TxFailedErr) && ctx.Err() == nil:
		case errors.Is(err, errOther):
			return false, nil
		default:
			return err == nil, err
		}
	}
}

// cleanUp releases the value of an acquire that failed.
func (c *client) cleanUp(name, value string) {
	for range mostTries {
		ctx, cancel := context.WithTimeout(c.ctx, requestTime)
		var err error
		if c.m == CleansBlindly {
			err = c.nodes[0].Del(ctx, name).Err()
		} else {
			_, err = c.release(ctx, name, value)
		}
		cancel()
		if err == nil {
			return
		}
		timer := time.NewTimer(retryPause)
		select {
		case <-c.ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		if c.ctx.Err() != nil {
			return
		}
	}
}

// leave takes a waiter out of the queue. An error says that it may still be there.
func (l *lock) leave(value string) error {
	if l.c.m == LeaverStays {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	return l.c.eval(ctx, 0, leaveScript(l.c.m), l.keys(), value, lease.Milliseconds()).Err()
}

// waiter is what a waiter has beside its requests.
type waiter struct {
	sub      *redis.PubSub
	messages chan struct{} // has an element if a message came; closed when the subscription is broken
	done     chan struct{}
}

func (w *waiter) stop() {
	if w.sub != nil {
		_ = w.sub.Close()
		<-w.done
		w.sub = nil
	}
}

// await waits until the lock may be free, or ctx ends.
func (l *lock) await(ctx context.Context, w *waiter) {
	switch l.c.p.Wake {
	case Publish:
		l.awaitMessage(ctx, w)
	case List:
		for end := time.Now().Add(fallback); time.Now().Before(end) && ctx.Err() == nil; {
			l.pause(ctx, pollPause)
			if ctx.Err() == nil && l.c.nodes[0].LPop(ctx, l.keys()[3]).Err() == nil {
				return
			}
		}
	default:
		if l.c.m == PollsAtOnce {
			l.pause(ctx, time.Millisecond*4)
			return
		}
		l.pause(ctx, pollPause)
	}
}

// awaitMessage subscribes first, and returns at once so that the caller asks again.
func (l *lock) awaitMessage(ctx context.Context, w *waiter) {
	if w.sub == nil {
		sub := l.c.nodes[0].Subscribe(ctx, channelOf(l.name))
		if _, err := sub.ReceiveTimeout(ctx, requestTime); err != nil {
			_ = sub.Close()
			l.pause(ctx, retryPause)
			return
		}
		w.sub, w.messages, w.done = sub, make(chan struct{}, 1), make(chan struct{})
		go func() {
			defer close(w.done)
			defer close(w.messages)
			for {
				if _, err := sub.ReceiveMessage(context.Background()); err != nil {
					return
				}
				select {
				case w.messages <- struct{}{}:
				default:
				}
			}
		}()
		if l.c.m != SubscribesUnchecked {
			return
		}
	}
	longest := fallback
	if l.c.m == WaitsForMessages || l.c.m == SubscribesUnchecked || l.c.m == PublishesFirst {
		longest = 100 * lease
	}
	timer := time.NewTimer(longest + time.Duration(l.random.Int63n(int64(longest/4))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case _, ok := <-w.messages:
		if !ok { // the connection is gone: subscribe again
			w.stop()
			l.pause(ctx, retryPause)
		}
	}
}

// queue takes the lock by a ticket in a list, for Head. A ticket that is gone, because the server lost it, is
// appended again.
func (l *lock) queue(ctx context.Context) error {
	ticket, rdb := l.c.newValue(), l.c.nodes[0]
	// A ticket that is given up on its way would arrive when the call is over.
	whole := context.WithoutCancel(ctx)
	err := rdb.RPush(whole, l.name, ticket).Err()
	for err == nil {
		var tickets []string
		tickets, err = rdb.LRange(ctx, l.name, 0, -1).Result()
		switch place := slices.Index(tickets, ticket); {
		case err != nil:
		case place == 0:
			l.h = l.newHold(ticket, time.Time{})
			return nil
		case place < 0:
			err = rdb.RPush(whole, l.name, ticket).Err()
		}
		if err == nil {
			l.pause(ctx, pollPause)
			err = ctx.Err()
		}
	}
	if l.c.m != LeaverStays {
		err = errors.Join(err, l.removeTicket(ticket))
	}
	return err
}

func (l *lock) removeTicket(ticket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), mostTries*requestTime)
	defer cancel()
	for {
		err := l.c.nodes[0].LRem(ctx, l.name, 0, ticket).Err()
		if err == nil || ctx.Err() != nil || errors.Is(err, redis.ErrClosed) {
			return err
		}
		l.pause(ctx, retryPause)
	}
}
