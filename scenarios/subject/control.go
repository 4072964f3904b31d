package subject

import (
	"cmp"
	"slices"
)

// Controls returns the registered controls of the same kind as the lock, the most similar first. Locks are of
// one kind if both are fair or neither is, and the same holds of holders who are told of the end of their
// hold, of renewals, of holds without a lease, of extensions by a call, and if each has a single server. Each
// control has fencing tokens, which a lock without them does not miss.
func Controls(l *Subject) []*Subject {
	single := func(s *Subject) bool { return !s.Replicated && s.Servers.Count() == 1 }
	registry.Lock()
	var alike []*Subject
	for _, c := range registry.all {
		if c.Control && c.Fair == l.Fair && c.Watched == l.Watched && c.NoWatchdog == l.NoWatchdog && c.Endless == l.Endless && (c.Extends || !l.Extends) {
			alike = append(alike, c)
		}
	}
	registry.Unlock()
	alike = slices.DeleteFunc(alike, func(c *Subject) bool { return single(c) != single(l) })
	unlike := func(c *Subject) (n int) {
		for _, differs := range []bool{c.Uncounted != l.Uncounted, c.PerGrant != l.PerGrant} {
			if differs {
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(alike, func(a, b *Subject) int { return cmp.Compare(unlike(a), unlike(b)) })
	return alike
}
