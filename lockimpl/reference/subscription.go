package reference

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// channels has the channels on which waiters of this client listen, by name. Each has a connection
// of its own.
type channels struct {
	client *Client
	mu     sync.Mutex
	open   map[string]*channel
}

// channel is a channel with its waiters. It is open while there are any.
type channel struct {
	name    string
	pubsub  *redis.PubSub
	waiters []*waiter // in order of arrival; guarded by channels.mu
}

// waiter is a call that waits. It keeps a message that comes while it asks the server.
type waiter struct {
	owner owner
	wake  chan struct{} // of capacity 1
}

// join begins to listen for a waiter. It wakes the waiter as soon as no later message can be
// missed.
func (s *channels) join(ctx context.Context, name string, o owner) (w *waiter, leave func()) {
	w = &waiter{owner: o, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.open[name]
	if ch == nil {
		ch = &channel{name: name, pubsub: s.client.rdb.Subscribe(context.WithoutCancel(ctx))}
		s.open[name] = ch
		go s.listen(context.WithoutCancel(ctx), ch, o)
	} else {
		w.wake <- struct{}{}
	}
	ch.waiters = append(ch.waiters, w)
	return w, func() { s.leave(ch, w) }
}

func (s *channels) leave(ch *channel, w *waiter) {
	s.mu.Lock()
	ch.waiters = slices.DeleteFunc(ch.waiters, func(other *waiter) bool { return other == w })
	last := len(ch.waiters) == 0 && s.open[ch.name] == ch
	if last {
		delete(s.open, ch.name)
	}
	s.mu.Unlock()
	if last {
		_ = ch.pubsub.Close()
	}
}

// listen hands messages to waiters. go-redis subscribes again after a lost connection, and reports
// that. Messages published in between are lost, so all waiters then ask, one after the other.
// Waiters ask now and then in any case, so errors do not matter here.
func (s *channels) listen(ctx context.Context, ch *channel, o owner) {
	err := ch.pubsub.Subscribe(ctx, ch.name)
	for failed := 0; ; {
		var msg any
		if err == nil {
			msg, err = ch.pubsub.Receive(ctx)
		}
		if err != nil {
			if errors.Is(err, redis.ErrClosed) || s.client.sleep(ctx, s.client.backoff(o, failed, retryMax)) != nil || !s.has(ch) {
				return
			}
			failed, err = failed+1, nil
			continue
		}
		failed = 0
		switch msg := msg.(type) {
		case *redis.Subscription:
			s.wakeAll(ch)
		case *redis.Message:
			s.wakeOne(ch, func(w *waiter) bool { return msg.Payload == "" || msg.Payload == w.owner.name })
		}
	}
}

func (s *channels) has(ch *channel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[ch.name] == ch
}

// wakeOne wakes the first waiter that matches and is not awake already. One is enough to take a
// lock.
func (s *channels) wakeOne(ch *channel, matches func(*waiter) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range ch.waiters {
		if matches(w) && w.awake() {
			return
		}
	}
}

// wakeAll wakes the first waiter at once, and each of the others a moment later: all at once would
// meet the lost connections, and meet again at every retry.
func (s *channels) wakeAll(ch *channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range ch.waiters {
		if i == 0 {
			w.awake()
			continue
		}
		time.AfterFunc(s.client.env.Jitter(w.owner.jitter, spread), func() { w.awake() })
	}
}

// awake wakes a waiter that is not awake already.
func (w *waiter) awake() (woken bool) {
	select {
	case w.wake <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *channels) closeAll() {
	s.mu.Lock()
	var open []*channel
	for _, ch := range s.open {
		open = append(open, ch)
	}
	clear(s.open)
	s.mu.Unlock()
	slices.SortFunc(open, func(a, b *channel) int { return strings.Compare(a.name, b.name) })
	for _, ch := range open {
		_ = ch.pubsub.Close()
	}
}

// wait waits until the waiter is woken, at most for d.
func (c *Client) wait(ctx context.Context, w *waiter, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.wake:
	case <-t.C:
	case <-ctx.Done():
	case <-c.closing.Done():
	}
	return c.reasonToStop(ctx) // select takes any of several ready cases
}
