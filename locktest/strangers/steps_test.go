package strangers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/sim"
)

// stepped is a lock of which each call is a function of a go-redis client.
type stepped struct {
	rdb          *redis.Client
	name, value  string
	levels       int
	take, unlock func(ctx context.Context, l *stepped) (bool, error)
	renew        func(ctx context.Context, l *stepped) (bool, error) // nil: nothing renews the hold
	version      atomic.Int64                                        // of the value, by the answers to the renewals
	byHand       bool                                                // Extend renews the hold
	stop         context.CancelFunc
}

// extendable is a stepped that its holder renews by Extend.
type extendable struct{ *stepped }

func (l extendable) Extend(ctx context.Context) error {
	ok, err := l.renew(ctx, l.stepped)
	if err == nil && !ok {
		err = locktest.ErrNotHeld
	}
	return err
}

func (l *stepped) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.take(ctx, l)
	if ok && l.renew != nil && !l.byHand {
		renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
		l.stop = stop
		go l.renewals(renewing)
	}
	return ok, err
}

func (l *stepped) Lock(ctx context.Context) error {
	for {
		if ok, err := l.TryLock(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *stepped) renewals(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lease / 3):
			l.renew(ctx, l)
		}
	}
}

func (l *stepped) Unlock(ctx context.Context) error {
	if l.stop != nil {
		l.stop()
	}
	ok, err := l.unlock(ctx, l)
	if err == nil && !ok {
		err = locktest.ErrNotHeld
	}
	return err
}

type steppedClient struct {
	rdb          *redis.Client
	take, unlock func(ctx context.Context, l *stepped) (bool, error)
	renew        func(ctx context.Context, l *stepped) (bool, error)
	byHand       bool
}

func (c steppedClient) Lock(name string) (locktest.Lock, error) {
	l := &stepped{rdb: c.rdb, name: name, value: rand.Text(), take: c.take, unlock: c.unlock, renew: c.renew, byHand: c.byHand}
	if c.byHand {
		return extendable{l}, nil
	}
	return l, nil
}

func (c steppedClient) Close() error { return c.rdb.Close() }

func script(text string) func(ctx context.Context, l *stepped) (bool, error) {
	s := redis.NewScript(text)
	return func(ctx context.Context, l *stepped) (bool, error) {
		n, err := s.Run(ctx, l.rdb, []string{l.name}, l.value, lease.Milliseconds()).Int()
		return n == 1, err
	}
}

func takePlain(ctx context.Context, l *stepped) (bool, error) {
	return l.rdb.SetNX(ctx, l.name, l.value, lease).Result()
}

// takeAgain sends a request once more if no answer comes, and says that the lock is taken by another if it is taken, which is
// unknown if only the second request was answered.
func takeAgain(careless bool) func(ctx context.Context, l *stepped) (bool, error) {
	return func(ctx context.Context, l *stepped) (bool, error) {
		ok, lost := takePlain(ctx, l)
		if lost == nil {
			return ok, nil
		}
		ok, err := takePlain(ctx, l)
		if err == nil && !ok && !careless {
			err = lost
		}
		return ok, err
	}
}

// unlockWatched deletes in a transaction. The value is compared behind WATCH, or too early.
func unlockWatched(early bool) func(ctx context.Context, l *stepped) (bool, error) {
	return func(ctx context.Context, l *stepped) (ok bool, err error) {
		mine := func(c redis.Cmdable) bool { return c.Get(ctx, l.name).Val() == l.value }
		if early && !mine(l.rdb) {
			return false, nil
		}
		err = l.rdb.Watch(ctx, func(tx *redis.Tx) error {
			if !early && !mine(tx) {
				return nil
			}
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Del(ctx, l.name).Err() })
			ok = err == nil
			return err
		}, l.name)
		if errors.Is(err, redis.TxFailedErr) {
			err = nil
		}
		return ok, err
	}
}

// prolong begins the lease of a hold anew, and says whether the hold is there.
var (
	prolong      = script(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	deleteIfMine = script(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

// unlockProlonged prolongs the hold, and ends it by another request.
func unlockProlonged(end func(ctx context.Context, l *stepped) (bool, error)) func(ctx context.Context, l *stepped) (bool, error) {
	return func(ctx context.Context, l *stepped) (bool, error) {
		if ok, err := prolong(ctx, l); !ok {
			return false, err
		}
		return end(ctx, l)
	}
}

func deleteBlindly(ctx context.Context, l *stepped) (bool, error) {
	n, err := l.rdb.Del(ctx, l.name).Result()
	return n > 0, err
}

// The value of a lock that counts its renewals has their number, after a colon.
var (
	deleteVersion = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	extendVersion = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`).Run
	unlockMarked  = script(`
local value = redis.call('GET', KEYS[1])
if not value or string.match(value, '[^:]+') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`)
	renewCounted = redis.NewScript(`
local value = redis.call('GET', KEYS[1])
if not value or string.match(value, '[^:]+') ~= ARGV[1] then return -1 end
local version = string.match(value, ':(%d+)') + 1
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. version, 'PX', ARGV[2])
return version`)
)

func takeVersion(ctx context.Context, l *stepped) (bool, error) {
	l.version.Store(0)
	return l.rdb.SetNX(ctx, l.name, l.value+":0", lease).Result()
}

func renewVersion(ctx context.Context, l *stepped) (bool, error) {
	n, err := renewCounted.Run(ctx, l.rdb, []string{l.name}, l.value, lease.Milliseconds()).Int64()
	if n > 0 {
		l.version.Store(n)
	}
	return n > 0, err
}

// unlockVersion deletes the key if it has the version of the last renewal that was answered.
func unlockVersion(ctx context.Context, l *stepped) (bool, error) {
	n, err := deleteVersion.Run(ctx, l.rdb, []string{l.name}, fmt.Sprintf("%s:%d", l.value, l.version.Load())).Int()
	return n == 1, err
}

// takeVersionAgain sends a request of the next version if no answer comes. If it finds its own hold, it renews the version that
// the lost request left, or the next one.
func takeVersionAgain(next bool) func(ctx context.Context, l *stepped) (bool, error) {
	return func(ctx context.Context, l *stepped) (bool, error) {
		ok, err := takeVersion(ctx, l)
		if err == nil {
			return ok, nil
		}
		ok, err = l.rdb.SetNX(ctx, l.name, l.value+":1", lease).Result()
		if ok || err != nil {
			l.version.Store(1)
			return ok, err
		}
		if next {
			l.version.Store(1)
			value, err := l.rdb.Get(ctx, l.name).Result()
			return strings.HasPrefix(value, l.value+":"), err
		}
		return prolongVersion(ctx, l)
	}
}

// prolongVersion renews a hold that keeps its version.
func prolongVersion(ctx context.Context, l *stepped) (bool, error) {
	return extendVersion(ctx, l.rdb, []string{l.name}, fmt.Sprintf("%s:%d", l.value, l.version.Load()), lease.Milliseconds()).Bool()
}

func versioned(s locktest.Snapshot, name string) *locktest.State {
	keys := redistest.Keys(s, 0)
	value, ok := keys.String(name)
	if !ok {
		return nil
	}
	owner, _, _ := strings.Cut(value, ":")
	return &locktest.State{Owner: owner, Expires: time.Duration(keys.ExpiresMs(name)) * time.Millisecond}
}

// The value of a lock whose key never expires has the end of the lease, after a colon.
var (
	takeDated = script(`
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local value = redis.call('GET', KEYS[1])
if value and tonumber(string.match(value, ':(%d+)')) > ms then return 0 end
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. (ms + ARGV[2]))
return 1`)
	// endDated keeps the name of the last holder.
	endDated = script(`
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local owner, over = string.match(redis.call('GET', KEYS[1]) or '', '(.*):(%d+)')
if owner ~= ARGV[1] or tonumber(over) <= ms then return 0 end
redis.call('SET', KEYS[1], owner .. ':' .. ms, 'PX', ARGV[2])
return 1`)
	readDated = redis.NewScript(`
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local value = redis.call('GET', KEYS[1]) or ''
if tonumber(string.match(value, ':(%d+)') or 0) > ms then return {} end
return {ARGV[1] .. ':' .. (ms + ARGV[2]), value}`)
	replaceSeen = redis.NewScript(`
local value = redis.call('GET', KEYS[1])
if value ~= ARGV[1] and (ARGV[3] == 'end' or not value or string.match(value, '[^:]+') ~= string.match(ARGV[1], '[^:]+')) then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`)
)

// takeDatedIfSeen takes the place of a hold that it saw to be over if the owner, or the owner and the end, are as it saw them.
func takeDatedIfSeen(compared string) func(ctx context.Context, l *stepped) (bool, error) {
	return func(ctx context.Context, l *stepped) (bool, error) {
		mine, value, err := seeDated(ctx, l)
		if mine == "" || err != nil {
			return false, err
		}
		if value == "" {
			return l.rdb.SetNX(ctx, l.name, mine, 0).Result()
		}
		return replaceSeen.Run(ctx, l.rdb, []string{l.name}, value, mine, compared).Bool()
	}
}

// takeDatedInTwo compares the end of the lease itself.
func takeDatedInTwo(ctx context.Context, l *stepped) (bool, error) {
	mine, value, err := seeDated(ctx, l)
	if mine == "" || err != nil {
		return false, err
	}
	if value == "" {
		return l.rdb.SetNX(ctx, l.name, mine, 0).Result()
	}
	err = l.rdb.Set(ctx, l.name, mine, 0).Err()
	return err == nil, err
}

// seeDated returns the value of a hold from now on, and the value that the key has, if that hold is over. If it is not, mine is "".
func seeDated(ctx context.Context, l *stepped) (mine, value string, err error) {
	seen, err := readDated.Run(ctx, l.rdb, []string{l.name}, l.value, lease.Milliseconds()).StringSlice()
	if err != nil || len(seen) == 0 {
		return "", "", err
	}
	return seen[0], seen[1], nil
}

func dated(s locktest.Snapshot, name string) *locktest.State {
	keys := redistest.Keys(s, 0)
	value, _ := keys.String(name)
	owner, end, ok := strings.Cut(value, ":")
	ms, _ := strconv.ParseInt(end, 10, 64)
	if at := time.Duration(ms-keys.StartMs()) * time.Millisecond; ok && at > s.Now() {
		return &locktest.State{Owner: owner, Expires: at}
	}
	return nil
}

// The key of a re-entrant lock is a hash with its levels by value.
var (
	takeLevel = script(`
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)
	unlockLevel = script(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) == 0 then redis.call('DEL', KEYS[1]) end
return 1`)
)

// takeLevelBlindly relies on what the handle remembers once it has the lock.
func takeLevelBlindly(ctx context.Context, l *stepped) (ok bool, err error) {
	if l.levels == 0 {
		ok, err = takeLevel(ctx, l)
	} else {
		_, err = l.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.HIncrBy(ctx, l.name, l.value, 1)
			return pipe.PExpire(ctx, l.name, lease).Err()
		})
		ok = err == nil
	}
	if ok {
		l.levels++
	}
	return ok, err
}

func levelled(s locktest.Snapshot, name string) *locktest.State {
	keys := redistest.Keys(s, 0)
	levels := keys.Hash(name)
	owners := slices.Sorted(maps.Keys(levels))
	if len(owners) == 0 {
		return nil
	}
	count, _ := strconv.Atoi(levels[owners[0]])
	return &locktest.State{Owner: owners[0], Count: count, Expires: time.Duration(keys.ExpiresMs(name)) * time.Millisecond}
}

// A story finds what a lock does between two requests of a call, and does not accuse its right twin.
func TestStoriesBetweenRequests(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		name, stories string // stories is a glob of the names of the stories that find the wrong lock
		wrong, right  func(ctx context.Context, l *stepped) (bool, error)
		take, unlock  func(ctx context.Context, l *stepped) (bool, error) // nil: wrong or right
		state         func(locktest.Snapshot, string) *locktest.State
		reentrant     bool
		renew         func(ctx context.Context, l *stepped) (bool, error) // nil: nothing renews the hold
		byHand        bool                                                // Extend renews the hold
	}{
		{"compares-before-watch", "other-holder-before-request-*", unlockWatched(true), unlockWatched(false), takePlain, nil, redistest.Value(nil), false, nil, false},
		{"prolongs-before-delete", "request-*-of-an-unlock-in-the-next-hold", unlockProlonged(deleteBlindly), unlockProlonged(deleteIfMine), takePlain, nil, redistest.Value(nil), false, prolong, false},
		{"remembers-version", "unlock-after-a-renewal-without-an-answer", unlockVersion, unlockMarked, takeVersion, nil, versioned, false, renewVersion, false},
		{"remembers-version-by-hand", "unlock-after-an-extension-without-an-answer", unlockVersion, unlockMarked, takeVersion, nil, versioned, false, renewVersion, true},
		{"takes-over-in-two", "two-take-over-at-request-*", takeDatedInTwo, takeDated, nil, unlockMarked, dated, false, nil, false},
		{"compares-the-owner", "last-holder-before-request-*", takeDatedIfSeen("owner"), takeDatedIfSeen("end"), nil, endDated, dated, false, nil, false},
		{"takes-itself-for-another", "lost-answer-to-a-try", takeAgain(true), takeAgain(false), nil, deleteIfMine, redistest.Value(nil), false, nil, false},
		{"renews-the-next-version", "long-hold-after-lost-answer-*", takeVersionAgain(true), takeVersionAgain(false), nil, unlockVersion, versioned, false, prolongVersion, false},
		{"remembers-levels", "re-entry-after-the-lease", takeLevelBlindly, takeLevel, nil, unlockLevel, levelled, true, nil, false},
	} {
		for _, wrong := range []bool{false, true} {
			client, name := steppedClient{take: c.take, unlock: c.unlock, renew: c.renew, byHand: c.byHand}, c.name
			changed := &client.take
			if c.unlock == nil {
				changed = &client.unlock
			}
			if *changed = c.right; wrong {
				*changed = c.wrong
				name += "-wrong"
			}
			lock, err := register(h, locktest.Subject{
				Name: name, Servers: redistest.Servers(1), Lease: lease, State: c.state, Reentrant: c.reentrant, Renewed: c.renew != nil && !c.byHand,
				Open: func(p *locktest.Process) (locktest.Client, error) {
					client := client
					client.rdb = redistest.NewClient(p, 0)
					return client, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			told, accused := story.Of(lock, 0), ""
			for _, s := range story.All {
				if !sim.Match(c.stories, s.Name) || s.Lacks(told) != "" {
					continue
				}
				sc := s.Scenario(told)
				accuse(play.RunTwice(h, sc, lock, sc.SeedFirst), s.Name, func(a Accusation) bool {
					accused += "\n" + a.String()
					return true
				})
			}
			if wrong != (accused != "") {
				t.Errorf("%s is accused of: %s", name, accused)
			}
		}
	}
}
