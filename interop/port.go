package interop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
)

// port is the port as a party.
type port struct {
	clients map[string]*redisson.Client
	objects map[string]lockimpl.Lock // client, kind and key

	mu      sync.Mutex
	cancels map[string]context.CancelFunc // by thread
	// calm lets a call proceed from the answer to its attempt to its wait.
	calm func()
}

// portClients makes the clients of a sequence; it enters their threads into owners.
func portClients(rel *redisson.Release, id string, watchdogMS int64, wheel bool, env lockimpl.Environment, owners map[string]string, connect func() redis.UniversalClient) map[string]*redisson.Client {
	clients := map[string]*redisson.Client{}
	for _, c := range clientNames {
		clients[c] = redisson.NewClient(connect(), redisson.Config{
			Release: rel, ID: id + c, WatchdogTimeout: time.Duration(watchdogMS) * time.Millisecond, TimerWheel: wheel, Environment: env,
		})
		for _, thread := range threadIDs {
			owners[fmt.Sprintf("%s%s:%d", id, c, thread)] = fmt.Sprintf("%s:%d", c, thread)
		}
	}
	return clients
}

func newPort(clients map[string]*redisson.Client, calm func()) *port {
	return &port{clients: clients, objects: map[string]lockimpl.Lock{}, cancels: map[string]context.CancelFunc{}, calm: calm}
}

func (p *port) lock(kind string, op Op, key string) (lockimpl.Lock, error) {
	c := p.clients[op.Client]
	get := c.GetLock
	switch kind {
	case fair:
		get = c.GetFairLock
	case fenced:
		get = func(name string) (lockimpl.Lock, error) { return c.GetFencedLock(name) }
	}
	if op.Fresh {
		return get(key)
	}
	id := op.Client + " " + kind + " " + key
	if l := p.objects[id]; l != nil {
		return l, nil
	}
	l, err := get(key)
	p.objects[id] = l
	return l, err
}

func (p *port) begin(kind string, op Op, key string, done func(string)) error {
	l, err := p.lock(kind, op, key)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.mu.Lock()
	p.cancels[op.thread()] = cancel
	p.mu.Unlock()
	go func() {
		reply := portReply(ctx, l, op)
		cancel()
		done(reply)
	}()
	return nil
}

func (p *port) interrupt(op Op) (ends, known bool, err error) {
	p.calm()
	return false, false, p.interruptNow(op)
}

func (p *port) interruptNow(op Op) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancels[op.thread()]()
	return nil
}

// crash closes a client, which then sends nothing more and unlocks nothing.
func (p *port) crash(client string) error { return p.clients[client].Close() }

// portReply makes the call, and returns its reply in the words of a sequence.
func portReply(ctx context.Context, l lockimpl.Lock, op Op) string {
	o := lockimpl.Owner(op.Thread)
	lease := time.Duration(op.LeaseMS) * time.Millisecond
	unit := time.Millisecond
	if op.Unit == "s" {
		unit = time.Second
	}
	reply := "ok"
	var err error
	yes := func(b bool, e error) { reply, err = strconv.FormatBool(b), e }
	switch op.Do {
	case doLock:
		err = l.Lock(ctx, o, lockimpl.LockOptions{Lease: lease})
	case doLockInterruptibly:
		err = l.Lock(ctx, o, lockimpl.LockOptions{Lease: lease, Interruptible: true})
	case doTryLock:
		yes(l.TryLock(ctx, o))
	case doTryLockTimed:
		yes(l.TryLockTimed(ctx, o, lockimpl.TryOptions{Wait: time.Duration(op.WaitMS) * time.Millisecond, Lease: lease, Unit: unit}))
	case doTryLockToken:
		var token int64
		var granted bool
		token, granted, err = l.(redisson.FencedLock).TryLockTimedAndGetToken(ctx, o, lockimpl.TryOptions{Wait: time.Duration(op.WaitMS) * time.Millisecond, Lease: lease, Unit: unit})
		reply = "null"
		if granted {
			reply = strconv.FormatInt(token, 10)
		}
	case doGetToken:
		var token int64
		token, err = l.(redisson.FencedLock).Token(ctx)
		reply = strconv.FormatInt(token, 10)
	case doUnlock:
		_, err = l.Unlock(ctx, o)
	case doForceUnlock:
		yes(l.ForceUnlock(ctx))
	case doIsLocked:
		yes(l.IsLocked(ctx))
	case doIsHeld:
		yes(l.IsHeldBy(ctx, o))
	case doHoldCount:
		var n int
		n, err = l.HoldCount(ctx, o)
		reply = strconv.Itoa(n)
	case doRemainTTL:
		var d time.Duration
		d, err = l.RemainTimeToLive(ctx)
		reply = strconv.FormatInt(d.Milliseconds(), 10)
	default:
		panic("interop: no such operation: " + op.Do)
	}
	switch {
	case err == nil:
		return reply
	case errors.Is(err, lockimpl.ErrNotHeld):
		return replyNotHeld
	case errors.Is(err, context.Canceled) && errors.Is(err, lockimpl.ErrUnknownOutcome):
		return replyUnderWay
	case errors.Is(err, context.Canceled):
		return replyInterrupted
	default:
		return fmt.Sprintf("error %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
}
