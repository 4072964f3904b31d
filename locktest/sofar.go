package locktest

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"lockstep/explore"
	"lockstep/linearizability/judges"
)

// soFar is what a test has found until now. A test whose run does not end is ended by its -timeout, which shows no
// log of it.
type soFar struct {
	mu     sync.Mutex
	doing  string // what is played
	since  time.Time
	shown  []string // the texts of failures
	drawn  []string // failures of drawn schedules, which are not made small yet
	groups map[string]bool
}

// begin notes what is played from now on.
func (s *soFar) begin(what string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing, s.since = what, now
}

// show notes the text of a failure.
func (s *soFar) show(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = append(s.shown, strings.TrimSpace(text))
}

// add notes the bugs of a drawn schedule, the first of each kind.
func (s *soFar) add(r explore.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range r.Failures {
		if f.Class != judges.ClassBug || s.groups[f.Fingerprint()] {
			continue
		}
		if s.groups == nil {
			s.groups = map[string]bool{}
		}
		s.groups[f.Fingerprint()] = true
		s.drawn = append(s.drawn, fmt.Sprintf("%s in schedule number %d: %s", f.Judge, r.Index+1, f.Why))
	}
}

// watch writes what was found, if the test still plays when half of the time that stays free after its limit is
// over. The function that it returns ends the watch.
func (s *soFar) watch(out io.Writer, name string, limit timeLimit) (stop func() bool) {
	if limit.latest.IsZero() {
		return func() bool { return false }
	}
	return time.AfterFunc(limit.latest.Add(limit.free/2).Sub(limit.now()), func() {
		_, _ = fmt.Fprint(out, s.text(name, limit, time.Now()))
	}).Stop
}

// text says at an instant what was found, and what is still played.
func (s *soFar) text(name string, limit timeLimit, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "locktest: %s: the test is about to meet its -timeout of %v: %s has not ended for %v. ", name, limit.timeout, s.doing, now.Sub(s.since).Round(time.Second))
	if len(s.shown)+len(s.drawn) == 0 {
		return b.String() + "Nothing was found until then.\n"
	}
	b.WriteString("Until then it found:\n\n")
	for _, text := range s.shown {
		b.WriteString(text + "\n\n")
	}
	for _, text := range s.drawn {
		fmt.Fprintf(&b, "%s breaks %s\n", name, text)
	}
	return b.String()
}
