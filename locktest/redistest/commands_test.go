package redistest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// waiting is a lock whose waiters block in BLPOP. A holder that lets go pushes a signal.
type waiting struct {
	setnx
	forever bool // the waiter does not ask for the time that the hold has left: a bug
	leaves  bool // the holder pushes no signal: a bug
}

var signal = redis.NewScript(`
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("del", KEYS[1], KEYS[2])
redis.call("rpush", KEYS[2], 1)
redis.call("pexpire", KEYS[2], 1000)
return 1`)

func (l *waiting) Lock(ctx context.Context) error {
	for {
		ok, err := l.TryLock(ctx)
		if ok || err != nil {
			return err
		}
		left, err := l.rdb.PTTL(ctx, l.name).Result()
		if err != nil {
			return err
		}
		if l.forever {
			left = 0
		} else if left <= 0 {
			continue
		}
		if err := l.rdb.BLPop(ctx, left, l.name+":signal").Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
}

func (l *waiting) Unlock(ctx context.Context) error {
	if l.leaves {
		return l.setnx.Unlock(ctx)
	}
	n, err := signal.Run(ctx, l.rdb, []string{l.name, l.name + ":signal"}, l.value).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

// compared is a lock that gives up and extends its hold with one command.
type compared struct {
	setnx
	unlock func(ctx context.Context, l *compared) (int64, error)
	extend func(ctx context.Context, l *compared) (bool, error)
}

func (l *compared) Unlock(ctx context.Context) error {
	n, err := l.unlock(ctx, l)
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

func (l *compared) Extend(ctx context.Context) error {
	ok, err := l.extend(ctx, l)
	if err == nil && !ok {
		return locktest.ErrNotHeld
	}
	return err
}

// extends reads the answer to a SET: nil if its condition did not hold.
func extends(err error) (bool, error) {
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func delex(ctx context.Context, l *compared) (int64, error) {
	return l.rdb.Do(ctx, "DELEX", l.name, "IFEQ", l.value).Int64()
}

func setIfEq(ctx context.Context, l *compared) (bool, error) {
	return extends(l.rdb.Do(ctx, "SET", l.name, l.value, "IFEQ", l.value, "PX", lease.Milliseconds()).Err())
}

// owners is a library of Redis functions.
const owners = `#!lua name=owners
redis.register_function("free", function(keys, args)
	if redis.call("get", keys[1]) ~= args[1] then return 0 end
	return redis.call("del", keys[1])
end)
redis.register_function("extend", function(keys, args)
	if redis.call("get", keys[1]) ~= args[1] then return 0 end
	return redis.call("pexpire", keys[1], args[2])
end)`

// called calls a function, and loads its library if the server does not have it.
func called(ctx context.Context, l *compared, name string, args ...any) (int64, error) {
	n, err := l.rdb.FCall(ctx, name, []string{l.name}, args...).Int64()
	if err != nil && strings.Contains(err.Error(), "Function not found") {
		if err := l.rdb.FunctionLoadReplace(ctx, owners).Err(); err != nil {
			return 0, err
		}
		n, err = l.rdb.FCall(ctx, name, []string{l.name}, args...).Int64()
	}
	return n, err
}

// notified is a lock whose waiters listen to the events of its key.
type notified struct{ setnx }

func (l *notified) Lock(ctx context.Context) error {
	ok, err := l.TryLock(ctx)
	if ok || err != nil {
		return err
	}
	sub := l.rdb.Subscribe(ctx, "__keyspace@0__:"+l.name)
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	for {
		if ok, err := l.TryLock(ctx); ok || err != nil {
			return err
		}
		if err := ended(ctx, sub); err != nil {
			return err
		}
	}
}

// ended waits until a message says that the hold has ended. A message may be lost, so it waits no longer than a
// lease.
func ended(ctx context.Context, sub *redis.PubSub) error {
	for {
		got, err := sub.ReceiveTimeout(ctx, lease)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil {
			return nil
		}
		if m, ok := got.(*redis.Message); err != nil || ok && (m.Payload == "del" || m.Payload == "expired") {
			return err
		}
	}
}

// onCommands is the subject of a lock that l makes of a setnx.
func onCommands(name string, servers locktest.Servers, l func(setnx) locktest.Lock) locktest.Subject {
	s := subjectOf(name, false)
	s.Servers = servers
	s.Kept = func(lock string) []string { return []string{lock + ":signal"} }
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		opt := redistest.Options(p, 0)
		opt.ContextTimeoutEnabled = true // a command that blocks ends with its context
		return anyClient{redis.NewClient(opt), func(rdb *redis.Client, name string) locktest.Lock {
			return l(setnx{rdb: rdb, name: name})
		}}, nil
	}
	return s
}

// Locks on commands that not every server has: the right one passes.
func TestLocksOnNewCommandsAreRight(t *testing.T) {
	for name, c := range rightOnCommands {
		t.Run(name, func(t *testing.T) {
			s := onCommands(name, c.servers, c.lock)
			if name == "BLPOP" {
				s.Waits = lease // a waiter may be given up with the signal, and then another sleeps until the lease is over
			}
			locktest.Run(t, s, locktest.Options{Runs: longtest.Size(t, 40, 400)})
		})
	}
}

type onServers struct {
	servers locktest.Servers
	lock    func(setnx) locktest.Lock
}

var rightOnCommands = map[string]onServers{
	"BLPOP": {redistest.Servers(1), func(l setnx) locktest.Lock { return &waiting{setnx: l} }},
	"DELEX and SET IFEQ": {redistest.Servers(1, redistest.Release("8.4")), func(l setnx) locktest.Lock {
		return &compared{l, delex, setIfEq}
	}},
	"DELIFEQ and SET IFEQ": {redistest.Servers(1, redistest.Release("valkey 9.0")), func(l setnx) locktest.Lock {
		return &compared{l, func(ctx context.Context, l *compared) (int64, error) {
			return l.rdb.Do(ctx, "DELIFEQ", l.name, l.value).Int64()
		}, setIfEq}
	}},
	"functions": {redistest.Servers(1, redistest.Release("7.0")), func(l setnx) locktest.Lock {
		return &compared{l, func(ctx context.Context, l *compared) (int64, error) { return called(ctx, l, "free", l.value) },
			func(ctx context.Context, l *compared) (bool, error) {
				n, err := called(ctx, l, "extend", l.value, lease.Milliseconds())
				return n == 1, err
			}}
	}},
	"keyspace events": {redistest.Servers(1, redistest.Notify("Kgx")), func(l setnx) locktest.Lock { return &notified{l} }},
}

// The neighbours with one thing wrong are found.
func TestLocksOnNewCommandsAreWrong(t *testing.T) {
	for name, want := range map[string]string{
		"BLPOP without an end":      " breaks liveness: ",
		"BLPOP without a signal":    " breaks liveness: ",
		"BLPOP without its Waits":   " breaks liveness: ",
		"DELEX without a condition": " breaks misdelete: ",
		"SET XX extends":            " breaks ",
		"events that are off":       " breaks liveness: ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, passed := outcome(t, t.TempDir(), name, nil, fmt.Sprint("-lockstep.runs=", longtest.Size(t, 15, 40)))
			if passed {
				t.Errorf("it passed:\n%s", text)
			}
			mustContain(t, text, name+want)
		})
	}
}

func init() {
	for name, c := range map[string]onServers{
		"BLPOP without an end":   {redistest.Servers(1), func(l setnx) locktest.Lock { return &waiting{setnx: l, forever: true} }},
		"BLPOP without a signal": {redistest.Servers(1), func(l setnx) locktest.Lock { return &waiting{setnx: l, leaves: true} }},
		// A signal that is lost with the waiter who got it wakes nobody.
		"BLPOP without its Waits": {redistest.Servers(1), func(l setnx) locktest.Lock { return &waiting{setnx: l} }},
		"DELEX without a condition": {redistest.Servers(1, redistest.Release("8.4")), func(l setnx) locktest.Lock {
			return &compared{l, func(ctx context.Context, l *compared) (int64, error) {
				return l.rdb.Do(ctx, "DELEX", l.name).Int64()
			}, setIfEq}
		}},
		"SET XX extends": {redistest.Servers(1), func(l setnx) locktest.Lock {
			return &compared{l, delex, func(ctx context.Context, l *compared) (bool, error) {
				return extends(l.rdb.SetArgs(ctx, l.name, l.value, redis.SetArgs{Mode: "XX", TTL: lease}).Err())
			}}
		}},
		"events that are off": {redistest.Servers(1), func(l setnx) locktest.Lock { return &notified{l} }},
	} {
		wrong[name] = onCommands(name, c.servers, c.lock)
	}
}

// asks is a lock that tries DELEX before it unlocks.
type asks struct {
	setnx
	errs *[]string
}

func (l *asks) Unlock(ctx context.Context) error {
	err := l.rdb.Do(ctx, "DELEX", l.name, "IFEQ", l.value).Err()
	*l.errs = append(*l.errs, err.Error())
	return l.setnx.Unlock(ctx)
}

// A server of a release answers a command of a later one as it answers any unknown command.
func TestAReleaseLacksTheCommandsOfALaterOne(t *testing.T) {
	var errs []string
	s := onCommands("asks", redistest.Servers(1, redistest.Release("7.2")), func(l setnx) locktest.Lock { return &asks{l, &errs} })
	locktest.Run(t, s, locktest.Options{Runs: 1, Faults: "network"})
	if !slices.ContainsFunc(errs, func(text string) bool {
		return strings.HasPrefix(text, "ERR unknown command 'DELEX', with args beginning with: ")
	}) {
		t.Errorf("answers: %q", errs)
	}
}

// database is a lock whose client selects a database.
func database(name string, of func(p *locktest.Process) int) locktest.Subject {
	s := subjectOf(name, false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		o := redistest.Options(p, 0)
		o.DB = of(p)
		return client{rdb: redis.NewClient(o)}, nil
	}
	return s
}

func init() {
	wrong["uses two databases"] = database("uses two databases", func(p *locktest.Process) int {
		return map[string]int{"a": 3}[p.Name()]
	})
}

// A lock may be in any database. A world has one.
func TestADatabase(t *testing.T) {
	locktest.Run(t, database("database 3", func(*locktest.Process) int { return 3 }), locktest.Options{Runs: longtest.Size(t, 40, 400), Profile: "orderly"})
	text, passed := outcome(t, t.TempDir(), "uses two databases", nil, "-lockstep.runs=1")
	if passed {
		t.Errorf("it passed:\n%s", text)
	}
	mustContain(t, text, "uses two databases cannot be judged: ", "a command in database ", " beside commands in database ")
}

// member is a lock whose holder is the member of a set.
type member struct{ setnx }

var (
	join = redis.NewScript(`
if redis.call("exists", KEYS[1]) == 1 then return 0 end
redis.call("sadd", KEYS[1], ARGV[1])
return redis.call("pexpire", KEYS[1], ARGV[2])`)
	part = redis.NewScript(`return redis.call("srem", KEYS[1], ARGV[1])`)
)

func (l *member) TryLock(ctx context.Context) (bool, error) {
	value := rand.Text()
	n, err := join.Run(ctx, l.rdb, []string{l.name}, value, lease.Milliseconds()).Int()
	if n == 1 {
		l.value = value
	}
	return n == 1, err
}

func (l *member) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *member) Unlock(ctx context.Context) error {
	n, err := part.Run(ctx, l.rdb, []string{l.name}, l.value).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

// State may read the members of a set, also after a failover.
func TestALockInASet(t *testing.T) {
	s := onCommands("set", redistest.Servers(1), func(l setnx) locktest.Lock { return &member{l} })
	s.State = func(at locktest.Snapshot, lock string) *locktest.State {
		keys := redistest.Keys(at, 0)
		if holders := keys.Set(lock); len(holders) > 0 {
			return &locktest.State{Owner: holders[0], Expires: time.Duration(keys.ExpiresMs(lock)) * time.Millisecond}
		}
		return nil
	}
	locktest.Run(t, s, locktest.Options{Runs: longtest.Size(t, 40, 400), Profile: "orderly"})
}
