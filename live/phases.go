//go:build linux

package live

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
)

// run takes the run through its phases.
func (s *session) run(ctx context.Context) {
	stop := make(chan struct{})
	var beside sync.WaitGroup
	if s.bytes {
		for _, n := range s.nodes {
			beside.Go(func() { s.watchChanges(n, stop) })
		}
	} else {
		beside.Go(func() { s.watchEnds(stop) })
	}
	beside.Go(func() { s.beat(stop) })
	defer beside.Wait()
	defer close(stop)
	struck := s.plan(ctx)
	defer struck()
	length := play.LengthsOf(s.sc, s.lock)
	s.o.Report("playing the steps and the faults")
	if s.rest(ctx, length) {
		s.mu.Lock()
		s.heal()
		s.mu.Unlock()
		s.o.Report("waiting until calls have returned and renewals have stopped")
		s.rest(ctx, length)
	}
	s.o.Report("waiting until no lock is held any more")
	s.leave(ctx, length)
}

// brief is the time for which a run goes on when nothing can happen any more.
const brief = 200 * time.Millisecond

// rest waits until the run may pass on to its next phase. It reports false when ctx is over
// or the run has failed.
func (s *session) rest(ctx context.Context, length play.Lengths) bool {
	for {
		s.mu.Lock()
		quiet := time.Duration(s.now() - s.movedNs)
		need := length.Quiet
		if s.allDone() {
			need = s.settle(length)
		}
		idle := s.idle() && s.faultsDue == 0
		failed := s.failed
		s.mu.Unlock()
		switch {
		case failed != nil:
			return false
		case idle && quiet >= need:
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// settle returns the time for which the run goes on when every thread is done. A simulated run waits
// until any client would have given up a command. A live client that waits for no answer has none to
// give up, so the run waits only for renewals of holds. Guarded by mu.
func (s *session) settle(length play.Lengths) time.Duration {
	for _, r := range s.rules {
		if r.held > 0 {
			return length.Settle
		}
	}
	if !s.calm {
		return brief // the run waits again in the calm
	}
	if period := s.lock.Timing(s.sc.Watchdog).RenewalPeriod; period > 0 {
		return min(length.Settle, period+time.Second)
	}
	return min(length.Settle, time.Second)
}

// idle reports whether each thread is in a call or has finished. Guarded by mu.
func (s *session) idle() bool { return !s.any(stepping) }

// allDone reports whether each thread has finished. Guarded by mu.
func (s *session) allDone() bool { return !s.any(stepping) && !s.any(calling) }

func (s *session) any(state threadState) bool {
	return slices.ContainsFunc(s.sides, func(c *side) bool { return !c.dead && slices.Contains(c.threads, state) })
}

// beat measures for how long the parent stood still.
func (s *session) beat(stop <-chan struct{}) {
	tick := time.NewTicker(BeatEvery)
	defer tick.Stop()
	last := s.now()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := s.now()
		s.mu.Lock()
		s.gapNs = max(s.gapNs, now-last-int64(BeatEvery))
		s.mu.Unlock()
		last = now
	}
}

// leave ends the run for the threads. Then it waits until no lock is held, or until every lease must be
// over.
func (s *session) leave(ctx context.Context, length play.Lengths) {
	s.mu.Lock()
	if !s.calm {
		s.heal()
	}
	s.leaving = true
	s.record(model.Event{Kind: model.KindLeave}, nil)
	s.mu.Unlock()
	for _, c := range s.sides {
		c.tell(down{Leave: true})
	}
	for end := time.Now().Add(length.Drain); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		free := s.failed != nil || !s.any(calling) && !slices.ContainsFunc(s.sides, func(c *side) bool { return !c.dead && !c.left })
		for _, lock := range play.LockNames(s.sc) {
			free = free && (s.failed != nil || !s.present(lock).Held())
		}
		s.mu.Unlock()
		if free {
			break
		}
	}
	time.Sleep(brief)
	s.lookAtAll()
	s.leftovers()
}

// leftovers records the keys that the server still has and that have no end.
func (s *session) leftovers() {
	var channels []string
	var err error
	if s.bytes {
		s.recordLeft()
		return
	}
	for _, n := range s.struck(scenarios.Fault{}) {
		found, e := n.redis.rdb.PubSubChannels(context.Background(), "*").Result()
		channels, err = append(channels, found...), errors.Join(err, e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = errors.Join(s.failed, err); s.failed != nil {
		return
	}
	var keys []string
	for _, all := range s.keys() {
		for name, k := range all {
			if k.endMs < 0 {
				keys = append(keys, s.bare(name))
			}
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		s.record(model.Event{Kind: model.KindLeft, Key: k}, nil)
	}
	slices.Sort(channels)
	channels = slices.DeleteFunc(channels, ofSentinels)
	for _, ch := range channels {
		if s.o.Address == "" {
			s.record(model.Event{Kind: model.KindLeft, Channel: ch}, nil)
		}
	}
}
