package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
)

// subscriptions are the channels a client listens to: one entry per channel, shared by all threads
// that wait there. Each has a connection of its own, whereas Redisson puts up to five channels on
// one connection.
type subscriptions struct {
	client  *Client
	mu      sync.Mutex
	entries map[string]*subscription
}

// subscription is RedissonLockEntry: a reference counter, a counting semaphore
// and a promise that completes at the server's acknowledgement.
type subscription struct {
	channel string
	users   int
	pubsub  *redis.PubSub

	ready chan struct{} // closed when acknowledged or failed
	err   error         // set before ready closes
	empty chan struct{} // closed when nobody waits there any more
	// Under the mutex of the client's subscriptions:
	settled bool // whether ready is closed
	late    bool // given up, since it was not acknowledged within the response timeout
	leaving bool // the server was told that the client leaves the channel

	mu        sync.Mutex
	permits   int
	waiting   []chan struct{} // FIFO
	listeners []chan struct{} // FIFO, of calls that wait in the background
}

var errSubscribeTimeout = errors.New("no subscribe acknowledgement in time")

// subscribe joins the channel's entry, or opens it: first says which. The caller must unsubscribe in
// any case.
func (s *subscriptions) subscribe(ctx context.Context, channel string) (e *subscription, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[channel]; e != nil {
		e.users++
		return e, false
	}
	if s.entries == nil {
		s.entries = map[string]*subscription{}
	}
	e = &subscription{channel: channel, users: 1, ready: make(chan struct{}), empty: make(chan struct{})}
	s.entries[channel] = e
	// It connects with the first channel.
	if s.client.sharded() {
		e.pubsub = s.client.rdb.SSubscribe(context.WithoutCancel(ctx))
	} else {
		e.pubsub = s.client.rdb.Subscribe(context.WithoutCancel(ctx))
	}
	go s.listen(context.WithoutCancel(ctx), e)
	switch s.client.rel.LateSubscription {
	case SubscriptionLeft, SubscriptionFails, SubscriptionFailsLate:
		go s.giveUp(e)
	}
	return e, true
}

// giveUp gives the entry up unless it is acknowledged within the response timeout.
func (s *subscriptions) giveUp(e *subscription) {
	if !s.outlasts(e, s.client.response) {
		return
	}
	s.mu.Lock()
	e.late = !e.settled
	s.mu.Unlock()
	if s.client.rel.LateSubscription == SubscriptionFails {
		s.fail(e, errResponseTimeout)
	}
}

// givenUp reports whether giveUp has given the entry up.
func (s *subscriptions) givenUp(e *subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.late
}

// acknowledge tells all waiters of the entry that the server knows it. It reports false if the
// entry was given up before.
func (s *subscriptions) acknowledge(e *subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.late {
		return false
	}
	if !e.settled {
		e.settled = true
		close(e.ready)
	}
	return true
}

// fail makes all waits for the entry fail, and closes the entry, so that nobody joins it any more.
// It does nothing if the entry is settled.
func (s *subscriptions) fail(e *subscription, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.settled {
		return
	}
	e.settled = true
	e.err = fmt.Errorf("subscribe to %s: %w", e.channel, err)
	if s.entries[e.channel] == e {
		delete(s.entries, e.channel)
	}
	close(e.ready)
	_ = e.pubsub.Close()
}

// outlasts waits for a timer of the wheel, and reports whether the entry is still open then:
// neither acknowledged, failed nor left.
func (s *subscriptions) outlasts(e *subscription, d time.Duration) bool {
	// The wheel counts only timers that fire.
	for _, wait := range []func() time.Duration{func() time.Duration { return d }, func() time.Duration { return s.client.wheel.until(0) }} {
		t := time.NewTimer(wait())
		defer t.Stop()
		select {
		case <-t.C:
		case <-e.ready:
			return false
		case <-e.empty:
			return false
		case <-s.client.closing.Done():
			return false
		}
	}
	return true
}

// leave tells the server, once, that the client leaves the channel.
func (s *subscriptions) leave(e *subscription) {
	s.mu.Lock()
	told := e.leaving
	e.leaving = true
	s.mu.Unlock()
	if told {
		return
	}
	unsubscribe := e.pubsub.Unsubscribe
	if s.client.sharded() {
		unsubscribe = e.pubsub.SUnsubscribe
	}
	_ = unsubscribe(context.Background(), e.channel)
}

// failAfterLeaving fails the entry if the server does not say within the response timeout
// that the client has left the channel.
func (s *subscriptions) failAfterLeaving(e *subscription) {
	if s.outlasts(e, s.client.response) {
		s.fail(e, errResponseTimeout)
	}
}

// listen opens the channel and gives one permit per message, until the entry is closed. go-redis
// subscribes again after a lost connection; messages that were published in between are lost.
func (s *subscriptions) listen(ctx context.Context, e *subscription) {
	subscribe := e.pubsub.Subscribe
	if s.client.sharded() {
		subscribe = e.pubsub.SSubscribe
	}
	err := subscribe(ctx, e.channel)
	acknowledged := false
	for backoff := 10 * time.Millisecond; ; {
		var msg any
		if err == nil {
			msg, err = e.pubsub.Receive(ctx)
		}
		switch {
		case err == nil:
			backoff = 10 * time.Millisecond
			switch msg.(type) {
			case *redis.Subscription:
				failsLate := s.client.rel.LateSubscription == SubscriptionFailsLate
				switch inTime := s.acknowledge(e); {
				case inTime:
				case !acknowledged:
					s.leave(e)
					if failsLate {
						go s.failAfterLeaving(e)
					}
				case failsLate: // the client has left the channel
					s.fail(e, errResponseTimeout)
					return
				}
				acknowledged = true
			case *redis.Message:
				if !s.givenUp(e) {
					e.release()
				}
			}
		case !acknowledged:
			s.fail(e, err)
			return
		case errors.Is(err, redis.ErrClosed) || !s.has(e):
			return
		default:
			if !s.client.sleep(backoff) {
				return
			}
			backoff = min(2*backoff, time.Second)
			err = nil
		}
	}
}

func (s *subscriptions) has(e *subscription) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[e.channel] == e
}

// unsubscribe leaves the entry; the last one closes it.
func (s *subscriptions) unsubscribe(e *subscription) {
	s.mu.Lock()
	e.users--
	last := e.users == 0 && s.entries[e.channel] == e
	if last {
		delete(s.entries, e.channel)
	}
	s.mu.Unlock()
	if !last {
		return
	}
	close(e.empty)
	if s.client.closing.Err() == nil { // a closing client ends the connection, which is enough
		s.leave(e)
	}
	_ = e.pubsub.Close()
}

func (s *subscriptions) closeAll() {
	s.mu.Lock()
	open := make([]*subscription, 0, len(s.entries))
	for _, e := range s.entries {
		open = append(open, e)
	}
	s.entries = map[string]*subscription{}
	s.mu.Unlock()
	slices.SortFunc(open, func(a, b *subscription) int { return strings.Compare(a.channel, b.channel) })
	for _, e := range open {
		_ = e.pubsub.Close()
	}
}

// subscribed waits for the server's acknowledgement as lock() does. first reports whether the call
// began the subscription.
func (c *Client) subscribed(ctx context.Context, e *subscription, first bool) error {
	limit := c.response + time.Duration(c.attempts)*c.rel.RetryDelay.Fixed
	if c.rel.LateSubscription == SubscriptionFailsLate {
		limit = SubscriptionTimeout // it has a setting of its own
	}
	err := c.acknowledged(ctx, e, limit)
	if !errors.Is(err, errSubscribeTimeout) {
		return err
	}
	switch c.rel.LateSubscription {
	case SubscriptionFailsLate:
		if err := c.acknowledged(ctx, e, c.wheel.until(0)); !errors.Is(err, errSubscribeTimeout) {
			return err
		}
		err = fmt.Errorf("subscribe to %s: %w", e.channel, errResponseTimeout)
		if first {
			c.channels.fail(e, errResponseTimeout)
		}
	case SubscriptionShared:
		if first {
			c.channels.fail(e, errSubscribeTimeout)
		}
	}
	return err
}

// acknowledged waits for the server's acknowledgement, at most for limit.
func (c *Client) acknowledged(ctx context.Context, e *subscription, limit time.Duration) error {
	interrupted := func() error { return fmt.Errorf("subscribe to %s: %w", e.channel, context.Cause(ctx)) }
	if ctx.Err() != nil {
		return interrupted()
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-e.ready:
		return e.err
	case <-t.C:
		return fmt.Errorf("subscribe to %s: %w", e.channel, errSubscribeTimeout)
	case <-c.closing.Done():
		return lockimpl.ErrClosed
	case <-ctx.Done():
		return interrupted()
	}
}

// wakeTime is the delay of a thread behind a listener that the same message wakes. In the library
// the listener sends its attempt before the message gives the thread its permit.
const wakeTime = 100 * time.Microsecond

// release tells the first listener, and gives one permit to the waiter that has waited
// longest. If nobody waits, the permit stays.
func (e *subscription) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.listeners) == 0 {
		e.permit()
		return
	}
	close(e.listeners[0])
	e.listeners = e.listeners[1:]
	time.AfterFunc(wakeTime, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.permit()
	})
}

// permit gives one permit. The caller has locked e.mu.
func (e *subscription) permit() {
	if len(e.waiting) == 0 {
		e.permits++
		return
	}
	close(e.waiting[0])
	e.waiting = e.waiting[1:]
}

// acquire takes a permit. It waits for limit at most, or without bound if limit is negative. It
// also returns nil if the time is up: the caller asks Redis in both cases.
func (c *Client) acquire(ctx context.Context, e *subscription, limit time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.mu.Lock()
	if e.permits > 0 {
		e.permits--
		e.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	e.waiting = append(e.waiting, turn)
	e.mu.Unlock()

	var over <-chan time.Time
	if limit >= 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	var err error
	select {
	case <-turn:
		return nil
	case <-over:
	case <-c.closing.Done():
		err = lockimpl.ErrClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.waiting, turn); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
	} else if err != nil {
		e.permits++ // the permit came in the same instant; give it to the next waiter
	}
	return err
}

// hear takes a permit, or waits as a listener for a message, for limit at most. It reports false if
// the client was closed.
func (c *Client) hear(e *subscription, limit time.Duration) bool {
	e.mu.Lock()
	if e.permits > 0 {
		e.permits--
		e.mu.Unlock()
		return true
	}
	told := make(chan struct{})
	e.listeners = append(e.listeners, told)
	e.mu.Unlock()

	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-told:
		return true
	case <-t.C:
	case <-c.closing.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := slices.Index(e.listeners, told); i >= 0 {
		e.listeners = slices.Delete(e.listeners, i, i+1)
	}
	return c.closing.Err() == nil
}
