package gostory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// shows fails the test, and says in its attribute "defect" how it has shown the defect.
func (s *Story) shows(format string, args ...any) {
	s.t.Helper()
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	s.t.Attr("defect", text)
	s.t.Error(text)
}

// AssertCallFails fails if the n-th call of a thread, counted from 1, succeeds.
func (s *Story) AssertCallFails(thread string, n int) {
	s.t.Helper()
	if c := s.nth(thread, n); c.over && c.err == nil {
		s.shows("call %d of %s (%v) succeeded", n, thread, c)
	}
}

// AssertCallIsNot fails if the n-th call of a thread, counted from 1, comes to an answer.
func (s *Story) AssertCallIsNot(thread string, n int, answer error) {
	s.t.Helper()
	if c := s.nth(thread, n); c.over && errors.Is(c.err, answer) {
		s.shows("call %d of %s (%v) came to %q", n, thread, c, answer)
	}
}

// AssertReturnsWithin fails if the n-th call of a thread, counted from 1, takes longer.
func (s *Story) AssertReturnsWithin(thread string, n int, most time.Duration) {
	s.t.Helper()
	if c := s.nth(thread, n); c.to-c.from > most+slack {
		s.shows("call %d of %s (%v) took more than %v", n, thread, c, most)
	}
}

// nth returns the n-th call of a thread, counted from 1. A call that is under way has its end now.
func (s *Story) nth(thread string, n int) call {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.threads {
		if t.name == thread && len(t.calls) >= n {
			c := *t.calls[n-1]
			if !c.over {
				c.to = s.since()
			}
			return c
		}
	}
	s.t.Fatalf("%s has not made call %d; the test did not work", thread, n)
	return call{}
}

// slack is how much an instant may be off.
const slack = 60 * time.Millisecond

// hold is a time in which a thread believes that it has a lock.
type hold struct {
	thread string
	from   time.Duration
	to     time.Duration
}

// holds returns all holds of a lock. A hold goes from a call that succeeds to the next unlock, to the end of the lease,
// or to the instant at which the holder is told of a loss. A hold that goes on has its end in the future.
func (s *Story) holds(lock string) (all []hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const never = time.Hour
	for _, t := range s.threads {
		end := func(until time.Duration) {
			if n := len(all); n > 0 && all[n-1].thread == t.name {
				all[n-1].to = min(all[n-1].to, until)
			}
		}
		for _, c := range t.calls {
			switch {
			case c.lock != lock:
			case c.role == "unlock":
				end(c.from)
			case c.over && c.err == nil:
				end(c.to) // another hold begins
				all = append(all, hold{thread: t.name, from: c.to, to: never})
				if s.library.Lease > 0 {
					end(c.from + s.library.Lease)
				}
				if c.lost > 0 {
					end(c.lost)
				}
			}
		}
	}
	return all
}

// AssertOneOwner fails if two threads believe at one time that they have a lock.
func (s *Story) AssertOneOwner(lock string) {
	s.t.Helper()
	all := s.holds(lock)
	for i, a := range all {
		for _, b := range all[i+1:] {
			from, to := max(a.from, b.from), min(a.to, b.to, s.now())
			if a.thread != b.thread && to-from > slack {
				s.shows("%s and %s both believed to have %s from %v to %v", a.thread, b.thread, lock, from, to)
			}
		}
	}
}

// AssertWaiterIsServed fails if a thread waits for longer than the bound while nobody believes to have the lock.
func (s *Story) AssertWaiterIsServed(lock, thread string, bound time.Duration) {
	s.t.Helper()
	holds, now := s.holds(lock), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.threads {
		for _, c := range t.calls {
			if t.name != thread || c.role != "acquire" || c.lock != lock {
				continue
			}
			from, to := c.from, c.to
			if !c.over {
				to = now
			}
			for _, h := range holds {
				if h.from < to {
					from = max(from, h.to)
				}
			}
			if to-from > bound {
				s.shows("%s waited for %s from %v to %v, and nobody believed to have it", thread, lock, from, to)
			}
		}
	}
}

// AssertNoGhost fails if the server keeps more places for a lock than threads have it or wait for it, for a whole second.
// A thread has returned from its last call and does not have the lock.
func (s *Story) AssertNoGhost(lock, thread string, places func(addr, lock string) (int, error)) {
	s.t.Helper()
	var n int
	var in []string
	for range 10 {
		time.Sleep(100 * time.Millisecond)
		var err error
		if n, err = places(s.servers[0].Addr(), lock); err != nil {
			s.t.Fatalf("%v; the test did not work", err)
		}
		if in = s.interested(lock); n <= len(in) || slices.Contains(in, thread) {
			return
		}
	}
	s.shows("at %v the server has %d places for %s, but %s has returned, and the threads that have %s or wait for it are %q", s.now(), n, lock, thread, lock, in)
}

// interested returns the threads that have a lock or wait for it.
func (s *Story) interested(lock string) (names []string) {
	now := s.now()
	for _, h := range s.holds(lock) {
		if h.from <= now && now < h.to {
			names = append(names, h.thread)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.threads {
		if n := len(t.calls); n > 0 && !t.calls[n-1].over && t.calls[n-1].lock == lock && !slices.Contains(names, t.name) {
			names = append(names, t.name)
		}
	}
	return names
}

// AssertHoldEnds fails if the server never ends the hold of a lock by itself.
func (s *Story) AssertHoldEnds(lock string, timeToLive func(addr, lock string) (time.Duration, error)) {
	s.t.Helper()
	d, err := timeToLive(s.servers[0].Addr(), lock)
	switch {
	case err != nil:
		s.t.Fatalf("%v; the test did not work", err)
	case d == 0:
		s.shows("at %v the hold of %s has no time to live", s.now(), lock)
	}
}
