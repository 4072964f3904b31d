package gostory

import (
	"slices"
	"time"
)

// A Rule is what happens to some messages. A field that is zero fits each message.
type Rule struct {
	Client    string
	Direction string
	Command   string
	If        func(m *Message) bool // called with Story.mu
	From      time.Duration
	Until     time.Duration
	Nth       int                   // of the messages that fit, counted from 1
	Do        func(m *Message) bool // reports whether the message goes on
	met       int
}

// Rule adds a rule. The first one that fits a message strikes it.
func (n *Network) Rule(r Rule) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.rules = append(n.rules, &r)
	n.strike = n.apply
}

func (n *Network) apply(m *Message) bool {
	n.s.mu.Lock()
	var found *Rule
	for _, r := range n.rules {
		if r.fits(m, n.s.since()) {
			r.met++
			if found == nil && (r.Nth == 0 || r.met == r.Nth) {
				found = r
			}
		}
	}
	n.s.mu.Unlock()
	return found == nil || found.Do(m)
}

func (r *Rule) fits(m *Message, now time.Duration) bool {
	return r.From <= now && (r.Until == 0 || now < r.Until) &&
		(r.Client == "" || r.Client == m.link.client) &&
		(r.Direction == "" || r.Direction == m.Direction) &&
		(r.Command == "" || r.Command == m.Command) &&
		(r.If == nil || r.If(m))
}

// During fits what a client exchanges with a server while one of its threads is in such a call: acquire or unlock.
// Without a call, the client renews its holds.
func (s *Story) During(role string) func(m *Message) bool {
	return func(m *Message) bool {
		if m.Command == Idle {
			return false
		}
		now := "renew"
		for _, t := range s.threads {
			if n := len(t.calls); t.client() == m.link.client && n > 0 && !t.calls[n-1].over {
				now = t.calls[n-1].role
			}
		}
		return now == role
	}
}

// Delay delays a message, and so those behind it.
func Delay(d time.Duration) func(m *Message) bool {
	return func(m *Message) bool {
		m.at = m.at.Add(d)
		return true
	}
}

// HoldUntil delays a message until an instant.
func HoldUntil(at time.Duration) func(m *Message) bool {
	return func(m *Message) bool {
		m.at = time.Now().Add(at - m.link.n.s.now())
		return true
	}
}

// Reset resets the connection instead of carrying a message.
func Reset(m *Message) bool {
	m.link.reset()
	return false
}

// Drop loses a message. A connection that has lost something cannot go on: it is reset with the next request, or after a
// time.
func Drop(m *Message) bool {
	const most = 3200 * time.Millisecond
	m.link.n.Rule(Rule{Direction: "request", If: func(next *Message) bool { return next.link == m.link }, Do: Reset})
	time.AfterFunc(most, m.link.reset)
	return false
}

// Cut loses all messages of a client to and from some of the servers, counted from 1, for a time. The connections that have
// lost something are reset at its end. No servers: all.
func (n *Network) Cut(client string, at, length time.Duration, servers ...int) {
	there := func(m *Message) bool { return len(servers) == 0 || slices.Contains(servers, m.link.server) }
	n.Rule(Rule{Client: client, From: at, Until: at + length, If: there, Do: func(m *Message) bool {
		time.AfterFunc(at+length-n.s.now(), m.link.reset)
		return false
	}})
}

// Crash ends a client: nobody hears of it any more, and its connections are reset with the next message.
func (n *Network) Crash(client string, at time.Duration) {
	n.Rule(Rule{Client: client, From: at, Do: Reset})
}

// Restart restarts servers, counted from 1; none: all.
func (s *Story) Restart(at time.Duration, keepData bool, servers ...int) {
	s.Thread("", func(t *Thread) {
		t.At(at)
		for i, x := range s.servers {
			if len(servers) == 0 || slices.Contains(servers, i+1) {
				x.Restart(keepData)
			}
		}
	})
}

// Delete removes the keys that match a glob from all servers.
func (s *Story) Delete(at time.Duration, glob string) {
	s.Thread("", func(t *Thread) {
		t.At(at)
		for _, x := range s.servers {
			if err := s.library.Delete(x.Addr(), glob); err != nil {
				s.t.Errorf("delete %s: %v; the test did not work", glob, err)
			}
		}
	})
}

// CountRequests notes the requests that each client sends while one of its threads acquires a lock.
func (n *Network) CountRequests() {
	acquiring := n.s.During("acquire")
	n.sent = map[string][]time.Duration{}
	n.Rule(Rule{Direction: "request", If: func(m *Message) bool {
		if acquiring(m) {
			n.sent[m.link.client] = append(n.sent[m.link.client], n.s.since())
		}
		return false
	}})
}

// AssertAsksSeldom fails if a client sends more requests in a second.
func (n *Network) AssertAsksSeldom(most int) {
	n.s.t.Helper()
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	for client, sent := range n.sent {
		for i := range len(sent) - most {
			if last := sent[i+most]; last-sent[i] < time.Second {
				n.s.shows("client %s sent %d requests from %v to %v", client, most+1, sent[i], last)
				break
			}
		}
	}
}
