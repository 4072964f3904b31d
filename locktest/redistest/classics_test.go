package redistest_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// watching is a setnx that watches its key, reads it and deletes it, and has a transaction for that unless
// it is bare.
type watching struct {
	setnx
	bare bool
}

func (l *watching) Unlock(ctx context.Context) error {
	return l.whileMine(ctx, l.bare, func(c redis.Cmdable) error { return c.Del(ctx, l.name).Err() })
}

// whileMine watches the key, reads it, and does what changes it if it has the value of the holder: in a transaction, unless
// it is bare.
func (l *setnx) whileMine(ctx context.Context, bare bool, do func(redis.Cmdable) error) error {
	return l.rdb.Watch(ctx, func(tx *redis.Tx) error {
		switch value, err := tx.Get(ctx, l.name).Result(); {
		case err == redis.Nil || err == nil && value != l.value:
			return locktest.ErrNotHeld
		case err != nil:
			return err
		case bare:
			return do(tx)
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return do(p) })
		if errors.Is(err, redis.TxFailedErr) {
			return locktest.ErrNotHeld
		}
		return err
	}, l.name)
}

// prolonging is a setnx that watches its key, reads it and prolongs its lease, as watching deletes it.
type prolonging struct {
	setnx
	bare bool
}

func (l *prolonging) Extend(ctx context.Context) error {
	return l.whileMine(ctx, l.bare, func(c redis.Cmdable) error { return c.PExpire(ctx, l.name, lease).Err() })
}

// numbered is a setnx that draws its token when it has the key. If it is not hasty, it gives up a hold of
// which most is over by then.
type numbered struct {
	setnx
	hasty bool
	fades bool // the counter has an end: a bug
	token uint64
}

func (l *numbered) TryLock(ctx context.Context) (bool, error) {
	if ok, err := l.setnx.TryLock(ctx); !ok {
		return false, err
	}
	n, err := l.rdb.Incr(ctx, counter(l.name)).Uint64()
	if err == nil && l.fades {
		err = l.rdb.PExpire(ctx, counter(l.name), 3*lease).Err()
	}
	if err == nil && !l.hasty && time.Since(l.asked) > lease*9/10 {
		err = errors.New("the lease is nearly over")
	}
	l.token = n
	return err == nil, err
}

func (l *numbered) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *numbered) Token() (uint64, bool) { return l.token, l.token > 0 }

func numberedSubject(name string, hasty, fades bool) locktest.Subject {
	s := unrenewed(name, each(func(l setnx) locktest.Lock { return &numbered{setnx: l, hasty: hasty, fades: fades} }))
	s.Kept = func(lock string) []string { return []string{counter(lock)} }
	return s
}

// tellingOnce is a watched that tells its holder of the end of its first hold alone.
type tellingOnce struct {
	*watched
	first <-chan struct{}
}

func (l *tellingOnce) Lost() <-chan struct{} {
	if l.first == nil {
		l.first = l.lost
	}
	return l.first
}

// lonely is a watched that renews the last hold of its process alone.
type lonely struct {
	*watched
	last *atomic.Pointer[watched]
}

func (l lonely) Lock(ctx context.Context) error {
	err := l.watched.Lock(ctx)
	if err == nil {
		if before := l.last.Swap(l.watched); before != nil && before != l.watched {
			before.stop()
		}
	}
	return err
}

// endsRenewals is a watched whose Unlock ends the renewals of the last hold of its process, whoever calls it.
type endsRenewals struct{ lonely }

func (l endsRenewals) Lock(ctx context.Context) error {
	err := l.watched.Lock(ctx)
	if err == nil {
		l.last.Store(l.watched)
	}
	return err
}

func (l endsRenewals) Unlock(ctx context.Context) error {
	if last := l.last.Load(); last != nil {
		last.stop()
	}
	if l.stop == nil {
		return locktest.ErrNotHeld
	}
	return l.watched.Unlock(ctx)
}

// extending is a watched with an Extend, which ends the renewals if it is hasty.
type extending struct {
	*watched
	hasty bool
}

func (l extending) Extend(ctx context.Context) error {
	if l.stop == nil {
		return locktest.ErrNotHeld
	}
	if l.hasty {
		l.stop()
	}
	n, err := l.lock.rdb.Eval(ctx, compareAndExpire, []string{l.lock.name}, l.lock.value, lease.Milliseconds()).Int()
	if err == nil && n == 0 {
		l.stop()
		return locktest.ErrNotHeld
	}
	return err
}

// overwriting is a setnx that has a new value before it has the lock with it.
type overwriting struct{ setnx }

func (l *overwriting) TryLock(ctx context.Context) (bool, error) {
	l.value = rand.Text()
	return l.take(ctx, l.value)
}

func (l *overwriting) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

// stamped is a setnx whose value is the time, and whose handle keeps it after an unlock.
type stamped struct{ setnx }

func (l *stamped) TryLock(ctx context.Context) (bool, error) {
	value := strconv.FormatInt(time.Now().UnixMilli(), 10)
	ok, err := l.take(ctx, value)
	if ok {
		l.value = value
	}
	return ok, err
}

func (l *stamped) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

// woken is a setnx whose unlock publishes a message, by which it wakes its waiters. A waiter that is hasty
// asks how long the lease lasts, listens, and does not ask for the lock again before it waits.
type woken struct {
	setnx
	hasty bool
}

const deleteAndPublish = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("publish", ARGV[2], "free")
return redis.call("del", KEYS[1])`

func (l *woken) channel() string { return l.name + ":free" }

func (l *woken) Lock(ctx context.Context) error {
	if ok, err := l.TryLock(ctx); ok || err != nil {
		return err
	}
	left, err := l.rdb.PTTL(ctx, l.name).Result()
	if err != nil {
		return err
	}
	sub := l.rdb.Subscribe(ctx, l.channel())
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	messages := sub.Channel()
	for hasty := l.hasty; ; hasty = false {
		if !hasty {
			if ok, err := l.TryLock(ctx); ok || err != nil {
				return err
			}
			left = 500 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-messages:
		case <-time.After(max(left, time.Millisecond)):
		}
	}
}

func (l *woken) Unlock(ctx context.Context) error {
	n, err := l.rdb.Eval(ctx, deleteAndPublish, []string{l.name}, l.value, l.channel()).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

// listening is a woken that waits for a message as long as the lease lasts. It is hasty if it asks for the lock before
// the server has said that it listens.
type listening struct{ woken }

func (l *listening) Lock(ctx context.Context) error {
	sub := l.rdb.Subscribe(ctx, l.channel())
	defer sub.Close()
	if !l.hasty {
		if _, err := sub.Receive(ctx); err != nil {
			return err
		}
	}
	messages := sub.Channel()
	for {
		if ok, err := l.TryLock(ctx); ok || err != nil {
			return err
		}
		left, err := l.rdb.PTTL(ctx, l.name).Result()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-messages:
		case <-time.After(max(left, time.Millisecond)):
		}
	}
}

// inTurn is a lock whose calls take turns in their process, or only those that lock.
type inTurn struct {
	*watched
	turn chan struct{}
	all  bool
}

func (l *inTurn) Lock(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return locktest.ErrBusy
	}
	defer func() { <-l.turn }()
	return l.watched.Lock(ctx)
}

func (l *inTurn) Unlock(ctx context.Context) error {
	if l.all {
		l.turn <- struct{}{}
		defer func() { <-l.turn }()
	}
	return l.watched.Unlock(ctx)
}

// listed is a setnx whose unlock deletes the keys that a pattern lists: all that begin with the name, if it is hasty.
type listed struct {
	setnx
	hasty bool
}

const deleteListed = `
if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
for _, key in ipairs(redis.call("keys", ARGV[2])) do redis.call("del", key) end
return 1`

func (l *listed) Unlock(ctx context.Context) error {
	pattern := l.name
	if l.hasty {
		pattern += "*"
	}
	n, err := l.rdb.Eval(ctx, deleteListed, []string{l.name}, l.value, pattern).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

// unchanged is a setnx whose handle has one value for all its holds.
type unchanged struct {
	setnx
	mine string
}

func (l *unchanged) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.take(ctx, l.mine)
	if ok {
		l.value = l.mine
	}
	return ok, err
}

func (l *unchanged) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

// persistent is a setnx that sends an unlock whose outcome it does not know again, a second later each time: with the value
// that its handle has by then, if it is hasty.
type persistent struct {
	setnx
	hasty bool
}

func (l *persistent) Unlock(ctx context.Context) error {
	mine := l.value
	err := l.end(ctx, mine)
	if err != nil && !errors.Is(err, locktest.ErrNotHeld) {
		go func() {
			for range 5 {
				time.Sleep(time.Second)
				value := mine
				if l.hasty {
					value = l.value
				}
				if err := l.end(context.WithoutCancel(ctx), value); err == nil || errors.Is(err, locktest.ErrNotHeld) {
					return
				}
			}
		}()
	}
	return err
}

func (l *persistent) end(ctx context.Context, value string) error {
	n, err := l.rdb.Eval(ctx, compareAndDelete, []string{l.name}, value).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

// owned is a setnx that grants the lock to whoever has the value of its holder. Without a value of its own it draws one for
// each try.
type owned struct {
	setnx
	mine string
}

const takeOrHave = `
if redis.call("get", KEYS[1]) == ARGV[1] then return 1 end
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end
return 0`

func (l *owned) TryLock(ctx context.Context) (bool, error) {
	value := cmp.Or(l.mine, rand.Text())
	n, err := l.rdb.Eval(ctx, takeOrHave, []string{l.name}, value, lease.Milliseconds()).Int()
	if n == 1 {
		l.value = value
	}
	return n == 1, err
}

func (l *owned) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func unrenewed(name string, lock func() func(*redis.Client, string) locktest.Lock) locktest.Subject {
	s := subjectOf(name, false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), lock()}, nil
	}
	return s
}

// each returns a lock that is made anew for each name.
func each(lock func(setnx) locktest.Lock) func() func(*redis.Client, string) locktest.Lock {
	return func() func(*redis.Client, string) locktest.Lock {
		return func(rdb *redis.Client, name string) locktest.Lock { return lock(setnx{rdb: rdb, name: name}) }
	}
}

// perProcess returns a lock that has something in common with the others of its process.
func perProcess[T any](common func() T, lock func(setnx, T) locktest.Lock) func() func(*redis.Client, string) locktest.Lock {
	return func() func(*redis.Client, string) locktest.Lock {
		c := common()
		return func(rdb *redis.Client, name string) locktest.Lock { return lock(setnx{rdb: rdb, name: name}, c) }
	}
}

// renewedPerProcess returns a renewed lock that has something in common with the others of its process.
func renewedPerProcess[T any](name string, common func() T, as func(*watched, T) locktest.Lock) locktest.Subject {
	s := renewedSubject(name, nil)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		opt := redistest.Options(p, 0)
		opt.ReadTimeout = lease / 10
		return anyClient{redis.NewClient(opt), perProcess(common, func(l setnx, c T) locktest.Lock { return as(&watched{lock: l}, c) })()}, nil
	}
	return s
}

// turns returns a renewed lock whose calls take turns in their process, or only those that lock.
func turns(name string, all bool) locktest.Subject {
	return renewedPerProcess(name, func() chan struct{} { return make(chan struct{}, 1) },
		func(l *watched, turn chan struct{}) locktest.Lock { return &inTurn{l, turn, all} })
}

// polling is a lock that tries in a goroutine until it has the lock or its caller has left.
type polling struct {
	setnx
	goesOn bool // it tries on when its caller has left: a bug
}

func (l *polling) Lock(ctx context.Context) error {
	polls, stop := context.WithCancel(ctx)
	if l.goesOn {
		polls, stop = context.WithTimeout(context.WithoutCancel(ctx), 2*lease)
	}
	done := make(chan error, 1)
	go func() {
		defer stop()
		done <- l.setnx.Lock(polls)
	}()
	if !l.goesOn {
		return <-done
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// classics are locks with a failure for which locks are known, each with its neighbour without it.
var classics = []struct {
	wrong, right   locktest.Subject
	story, finding string
}{
	{renewedSubject("renews in two commands", func(l *watched) locktest.Lock { l.bare, l.asks = true, true; return l }),
		renewedSubject("renews in one command", func(l *watched) locktest.Lock { return l }),
		"other-holder-before-request-2-of-a-renewal", "breaks misdelete: renew of a/1 (PEXPIRE, "},
	{fencedSubject("draws its token before it waits", true, false),
		fencedSubject("draws its token with the lock", false, false),
		"other-hold-before-request-2-of-an-acquire", "breaks fencing: a/1 was told the token 1 "},
	{unrenewed("watches without a transaction", each(func(l setnx) locktest.Lock { return &watching{l, true} })),
		unrenewed("watches with a transaction", each(func(l setnx) locktest.Lock { return &watching{l, false} })),
		"other-holder-before-request-3-of-an-unlock", "breaks mutual-exclusion: c/1 was granted "},
	{unrenewed("listens after the message", each(func(l setnx) locktest.Lock { return &woken{l, true} })),
		unrenewed("asks again once it listens", each(func(l setnx) locktest.Lock { return &woken{l, false} })),
		"release-after-request-2-of-a-waiter", "breaks liveness: b/1 waited for "},
	{unrenewed("asks before it listens", each(func(l setnx) locktest.Lock { return &listening{woken{l, true}} })),
		unrenewed("asks when it listens", each(func(l setnx) locktest.Lock { return &listening{woken{l, false}} })),
		"release-before-request-1-of-a-waiter", "breaks liveness: b/1 waited for "},
	{standingSubject("takes the lock apart from its queue", true), standingSubject("takes the lock with its queue", false),
		"first-waiter-late-at-request-2", "breaks mutual-exclusion: c/1 was granted "},
	{unrenewed("has a new value before it has the lock", each(func(l setnx) locktest.Lock { return &overwriting{l} })),
		unrenewed("has a new value with the lock", each(func(l setnx) locktest.Lock { return &l })),
		"try-of-the-holder", "breaks linearizable: orders: a/1 release "},
	{renewedPerProcess("ends the renewals of another thread", func() *atomic.Pointer[watched] { return new(atomic.Pointer[watched]) },
		func(l *watched, last *atomic.Pointer[watched]) locktest.Lock { return endsRenewals{lonely{l, last}} }),
		renewedSubject("ends its own renewals", func(l *watched) locktest.Lock { return l }),
		"unlock-of-another-thread-during-renewals", "breaks mutual-exclusion: b/1 was granted "},
	{renewedSubject("ends its renewals with an extension", func(l *watched) locktest.Lock { return extending{l, true} }),
		renewedSubject("goes on with its renewals", func(l *watched) locktest.Lock { return extending{l, false} }),
		"extension-of-a-renewed-hold", "breaks mutual-exclusion: b/1 was granted "},
	{unrenewed("has the time for a value", each(func(l setnx) locktest.Lock { return &stamped{l} })),
		unrenewed("has a value of chance", each(func(l setnx) locktest.Lock { return &l })),
		"two-at-one-instant-and-an-unlock-too-many", "breaks mutual-exclusion: c/1 was granted "},
	{turns("lets an unlock wait for a waiter of its process", true), turns("lets waiters of a process take turns", false),
		"two-threads-of-one-process-at-once", "breaks liveness: "},
	{unrenewed("grants a process what it has", perProcess(rand.Text, func(l setnx, mine string) locktest.Lock { return &owned{l, mine} })),
		unrenewed("grants a try what it has", each(func(l setnx) locktest.Lock { return &owned{l, ""} })),
		"two-threads-of-one-process-at-once", "breaks mutual-exclusion: a/2 was granted "},
	{unrenewed("reads and deletes", each(func(l setnx) locktest.Lock { return &twoSteps{l} })),
		unrenewed("reads and deletes at once", each(func(l setnx) locktest.Lock { return &l })),
		"other-holder-before-request-2-of-an-unlock", "breaks mutual-exclusion: c/1 was granted orders at "},
	{unrenewed("extends without a transaction", each(func(l setnx) locktest.Lock { return &prolonging{l, true} })),
		unrenewed("extends with a transaction", each(func(l setnx) locktest.Lock { return &prolonging{l, false} })),
		"other-holder-before-request-3-of-an-extension", "breaks mutual-exclusion: a/1 extended its hold "},
	{numberedSubject("forgets its last token", false, true), numberedSubject("keeps its last token", false, false),
		"token-after-a-long-time", "breaks fencing: b/1 was told the token 1 "},
	{unrenewed("deletes all that begins with its name", each(func(l setnx) locktest.Lock { return &listed{l, true} })),
		unrenewed("deletes what has its name", each(func(l setnx) locktest.Lock { return &listed{l, false} })),
		"names-that-begin-alike", "breaks mutual-exclusion: c/1 was granted orders2 "},
	{unrenewed("has one value for all holds", each(func(l setnx) locktest.Lock { return &unchanged{l, rand.Text()} })),
		unrenewed("has a value for each hold", each(func(l setnx) locktest.Lock { return &l })),
		"unlock-given-up-that-comes-in-the-next-hold", "breaks mutual-exclusion: b/1 was granted "},
	{unrenewed("sends a failed unlock again with its newest value", each(func(l setnx) locktest.Lock { return &persistent{l, true} })),
		unrenewed("sends a failed unlock again with the value of its hold", each(func(l setnx) locktest.Lock { return &persistent{l, false} })),
		"failed-unlock-sent-again-in-a-hold-of-its-thread", "breaks mutual-exclusion: b/1 was granted "},
	{numberedSubject("draws its token after its lease", true, false), numberedSubject("gives up a hold that is nearly over", false, false),
		"other-holder-after-request-1-of-an-acquire", "breaks fencing: b/1 was told the token 2 "},
	{renewedPerProcess("ends the renewals of the last hold", func() *atomic.Pointer[watched] { return new(atomic.Pointer[watched]) },
		func(l *watched, last *atomic.Pointer[watched]) locktest.Lock { return endsRenewals{lonely{l, last}} }),
		renewedSubject("ends the renewals of what it unlocks", func(l *watched) locktest.Lock { return l }),
		"unlock-again-in-the-hold-of-another-thread", "breaks mutual-exclusion: b/1 was granted "},
	{renewedPerProcess("ends renewals when it asks for the lock", func() *atomic.Pointer[watched] { return new(atomic.Pointer[watched]) },
		func(l *watched, last *atomic.Pointer[watched]) locktest.Lock { return displacing{lonely{l, last}} }),
		renewedSubject("renews whoever asks", func(l *watched) locktest.Lock { return l }),
		"long-hold-beside-another-thread", "breaks mutual-exclusion: "},
	{digestedSubject("unlocks by a digest", true, false), digestedSubject("unlocks by a digest or a script", false, false),
		"lock-after-a-restart", "breaks want: b/1 at "},
	{digestedSubject("extends by a digest", true, true), digestedSubject("extends by a digest or a script", false, true),
		"extension-after-a-restart", "breaks want: a/1 at "},
	{hubSubject("listens until an error", true), hubSubject("listens again after an error", false),
		"wake-up-long-after-the-connections-ended", "breaks liveness: b/1 waited for "},
	{quorumSubject("renews with one server of three", 1, true), quorumSubject("renews with two servers of three", 2, true),
		"holder-that-is-cut-off-from-a-majority", "breaks lease: a/1 believed to hold orders until "},
	{quorumSubject("extends with one server of three", 1, false), quorumSubject("extends with two servers of three", 2, false),
		"extension-by-less-than-a-majority", "breaks mutual-exclusion: b/1 was granted "},
	{renewedSubject("tells of its first hold", func(l *watched) locktest.Lock { l.tell = true; return &tellingOnce{watched: l} }),
		renewedSubject("tells of each hold", func(l *watched) locktest.Lock { l.tell = true; return telling{l} }),
		"hold-that-is-gone", "breaks lease: a/1 believed to hold orders until "},
	{renewedPerProcess("renews the last hold of a process", func() *atomic.Pointer[watched] { return new(atomic.Pointer[watched]) },
		func(l *watched, last *atomic.Pointer[watched]) locktest.Lock { return lonely{l, last} }),
		renewedSubject("renews each hold of a process", func(l *watched) locktest.Lock { return l }),
		"hold-of-three-leases", "breaks mutual-exclusion: b/1 was granted "},
	{unrenewed("tries on when its caller has left", each(func(l setnx) locktest.Lock { return &polling{l, true} })),
		unrenewed("stops when its caller leaves", each(func(l setnx) locktest.Lock { return &polling{l, false} })),
		"try-that-gave-up", "breaks tidy: b took orders at "},
}

func init() {
	for _, c := range classics {
		wrong[c.wrong.Name] = c.wrong
		wrong[c.wrong.Name+neighbour] = c.right
	}
}

// neighbour ends the name under which TestJudged knows the lock without the failure.
const neighbour = ", without the failure"

// A story finds each of the classic failures, whatever traits the lock claims. Its neighbour without the
// failure keeps its promises in all stories. A short test tells it that story alone.
func TestEachClassicFailureHasAStory(t *testing.T) {
	for _, c := range classics {
		t.Run(c.wrong.Name, func(t *testing.T) {
			story := "-test.run=^TestJudged$/^stories$/^" + c.story + "$"
			text, passed := outcome(t, t.TempDir(), c.wrong.Name, nil, story)
			if passed {
				t.Errorf("%s passes:\n%s", c.wrong.Name, text)
			}
			mustContain(t, text, "--- FAIL: TestJudged/stories/"+c.story+" ", c.wrong.Name+" "+c.finding)
			if longtest.Asked() {
				locktest.Run(t, c.right, locktest.Options{Runs: 1, Faults: "none"})
			} else if text, passed := outcome(t, t.TempDir(), c.wrong.Name+neighbour, nil, story); !passed {
				t.Errorf("without the failure:\n%s", text)
			}
		})
	}
}
