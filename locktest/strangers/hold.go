package strangers

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// renewAfter is the time between two renewals.
	renewAfter = lease / 3
	// tickEvery is the time between two looks of a goroutine that renews all holds.
	tickEvery = lease / 16
)

// hold is a hold that the server granted.
type hold struct {
	c      *client
	name   string
	value  string
	token  uint64
	lost   chan struct{}   // closed when the end of the hold is known
	ctx    context.Context // ends when the renewals end
	cancel context.CancelFunc

	mu      sync.Mutex    // held for moments only
	until   time.Time     // the end of the lease that is known
	next    time.Time     // of the next renewal
	stopped bool          // it is renewed no more
	over    bool          // its end is known, or it was given up
	told    bool          // lost is closed
	active  chan struct{} // closed at the end of the renewal that is under way; nil: none is
	expiry  *time.Timer
	timer   *time.Timer // of the next renewal, for Timer
	shared  *shared     // whose turn the hold has; nil: none
}

func (l *lock) newHold(value string, until time.Time) *hold {
	h := &hold{c: l.c, name: l.name, value: value, lost: make(chan struct{}), until: until, next: until.Add(renewAfter - lease), shared: l.shared}
	h.ctx, h.cancel = context.WithCancel(l.c.ctx)
	return h
}

// begin starts what goes with a hold that was granted.
func (h *hold) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c.p.knowsEnd() {
		h.expiry = time.AfterFunc(time.Until(h.until), h.expire)
	}
	if h.c.m == LostAtHalf {
		time.AfterFunc(lease/2, h.end)
	}
	switch h.c.p.Renewal {
	case Goroutine:
		h.c.start(h.keep)
	case Timer:
		h.timer = time.AfterFunc(time.Until(h.next), h.renewByTimer)
	case Ticker, Pipeline:
		h.c.mu.Lock()
		h.c.holds = append(h.c.holds, h)
		h.c.mu.Unlock()
	}
}

// knowsEnd reports whether a hold is over when the lease is over that its handle knows.
func (p Plumbing) knowsEnd() bool {
	return p.Wake != Head && (p.Lost || p.Renewal == Never)
}

// live reports whether the hold may still be there, and was not given up.
func (h *hold) live() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.over
}

// expire ends the hold if its lease is over.
func (h *hold) expire() {
	h.mu.Lock()
	left := time.Until(h.until)
	if left > 0 && !h.over {
		h.expiry.Reset(left)
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	h.end()
}

// heard notes that the server has the hold until that instant. It returns false if the hold is over.
func (h *hold) heard(until time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	if h.until.Before(until) {
		h.until = until
		h.next = until.Add(renewAfter - lease)
	}
	return true
}

// end says that the hold is over. The next hold has another value.
func (h *hold) end() {
	h.halt(false)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	h.over = true
	h.tell()
	if h.c.m != TurnKept {
		h.passTurn(false)
	}
}

func (h *hold) tell() {
	if !h.told && h.c.m != LostNever {
		h.told = true
		close(h.lost)
	}
}

// giveUp says that the thread has given the hold up. freed says that its unlock ended the hold for sure, so that
// the next hold may have its value.
func (h *hold) giveUp(freed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.expiry != nil {
		h.expiry.Stop()
	}
	h.passTurn(freed)
}

// passTurn lets the next thread of the process ask. The caller holds mu.
func (h *hold) passTurn(sameValue bool) {
	if h.shared == nil {
		return
	}
	if !sameValue && h.c.m != ValueKept {
		h.shared.value = ""
	}
	<-h.shared.turn
	h.shared = nil
}

// halt ends the renewals. With wait it returns after one that is under way; otherwise it cancels that.
func (h *hold) halt(wait bool) {
	h.mu.Lock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
	}
	active := h.active
	h.mu.Unlock()
	if wait && active != nil {
		<-active
	}
	h.cancel()
}

// enter reports whether the hold is to be renewed now. If so, the caller calls leave after the renewal. A hold that
// tells of its end is renewed no more from that instant on, whichever of the two timers runs first.
func (h *hold) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.expiry != nil && !time.Now().Before(h.until) {
		h.stopped = true
	}
	if h.stopped || h.ctx.Err() != nil {
		return false
	}
	h.active = make(chan struct{})
	return true
}

func (h *hold) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.active)
	h.active = nil
}

// renewed notes the result of a renewal that was sent at that instant.
func (h *hold) renewed(sent time.Time, kept, gone bool) {
	if h.c.m == LeaseFromReply {
		sent = time.Now()
	}
	switch {
	case kept:
		h.heard(sent.Add(lease - h.c.margin()))
	case gone:
		h.end()
	case h.c.m == RenewsUntilError:
		h.halt(false)
	default:
		h.mu.Lock()
		h.next = time.Now().Add(retryPause)
		h.mu.Unlock()
	}
}

// margin is what a lease is shorter for its holder than for the servers.
func (c *client) margin() time.Duration {
	if c.p.Servers > 1 && c.m != DriftIgnored {
		return drift
	}
	return 0
}

// renewOnce renews the hold.
func (h *hold) renewOnce() {
	if !h.enter() {
		return
	}
	defer h.leave()
	ctx, cancel := context.WithTimeout(h.ctx, requestTime)
	defer cancel()
	sent := time.Now()
	kept, gone, _ := h.c.renew(ctx, h.name, h.value)
	h.renewed(sent, kept, gone)
}

// due returns the time until the next renewal. It returns false if none follows.
func (h *hold) due() (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.next), !h.stopped && h.ctx.Err() == nil
}

// keep renews the hold until it ends.
func (h *hold) keep() {
	for {
		left, ok := h.due()
		if !ok {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-h.ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		h.renewOnce()
	}
}

// renewByTimer renews the hold, and sets the timer again.
func (h *hold) renewByTimer() {
	if !h.c.enter() {
		return
	}
	defer h.c.all.Done()
	h.renewOnce()
	if left, ok := h.due(); ok {
		h.timer.Reset(left)
	}
}

// tick renews all holds of a process.
func (c *client) tick() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-ticker.C:
		}
		if c.ctx.Err() != nil {
			return
		}
		var due []*hold
		c.mu.Lock()
		kept := c.holds[:0:0]
		for _, h := range c.holds {
			left, ok := h.due()
			if ok {
				kept = append(kept, h)
			}
			if ok && left <= 0 {
				due = append(due, h)
			}
		}
		c.holds = kept
		c.mu.Unlock()
		if c.p.Renewal == Pipeline {
			c.renewTogether(due)
			continue
		}
		for _, h := range due {
			h.renewOnce()
		}
	}
}

// renewTogether renews holds in one pipeline.
func (c *client) renewTogether(holds []*hold) {
	var in []*hold
	for _, h := range holds {
		if h.enter() {
			defer h.leave()
			in = append(in, h)
		}
	}
	if len(in) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, requestTime)
	defer cancel()
	sent := time.Now()
	pipe := c.nodes[0].Pipeline()
	var replies []*redis.Cmd
	for _, h := range in {
		replies = append(replies, pipe.Eval(ctx, c.p.renewScript(c.m), []string{h.name}, h.value, lease.Milliseconds()))
	}
	_, _ = pipe.Exec(ctx)
	for i, h := range in {
		n, err := replies[i].Int()
		h.renewed(sent, err == nil && n == 1, err == nil && n == 0)
	}
}
