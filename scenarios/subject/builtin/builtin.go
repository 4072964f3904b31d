// Package builtin has the locks of this repository as subjects: the bare locks, the
// locks of each release of Redisson, the reference locks, and the locks in which a
// bug is planted. Importing it registers them.
package builtin

import (
	"lockstep/lockimpl/planted"
	"lockstep/scenarios/subject"
)

func init() {
	subject.Register(bareLocks()...)
	all := []original{referenceLock{}, referenceLock{fair: true}}
	for _, l := range redissonLocks() {
		all = append(all, l)
	}
	for _, l := range all {
		s := l.subject()
		originals[s.Name] = l
		subject.Register(s)
	}
	for _, b := range planted.Bugs {
		s, err := plant(b)
		if err != nil {
			panic("builtin: " + err.Error())
		}
		subject.Register(s)
	}
}

// original is a lock that another can be made of: one with a bug, one of a release
// that differs.
type original interface {
	subject() *subject.Subject
	// behind returns the lock with something between it and the server.
	behind(through) original
}

// originals are the reference locks and those of Redisson, by name.
var originals = map[string]original{}

// channels are the globs that campaigns draw for rules on messages: all channels,
// the one on which Redisson publishes to all, and that of one waiter.
func channels(lock string) []string {
	return []string{"*", "redisson_lock__channel:*" + lock + "*", "*:a:1"}
}

// plainCommands are those that campaigns draw for clients of other locks.
var plainCommands = []string{"SET", "GET", "DEL", "EVAL", "EVALSHA"}
