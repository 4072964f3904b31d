// Package builtin registers the locks of this repository as subjects: the bare locks, the
// locks of each release of Redisson, the reference locks, and the locks with a planted
// bug. Importing the package registers them.
package builtin

import (
	"lockstep/lockimpl/planted"
	"lockstep/lockimpl/redisson"
	"lockstep/scenarios/subject"
)

func init() {
	subject.Register(bareLocks()...)
	all := []original{referenceLock{}, referenceLock{fair: true}, referenceLock{watched: true},
		referenceLock{handles: true}, referenceLock{fair: true, handles: true}}
	for _, l := range redissonLocks() {
		all = append(all, l)
		if newest := redisson.Releases[len(redisson.Releases)-1]; l.rel == newest && !l.replicated() && l.family.handled {
			l.handles = true
			all = append(all, l)
		}
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

// An original is a lock from which other locks are made: a lock with a planted bug, or a
// lock of a changed release.
type original interface {
	subject() *subject.Subject
	// behind returns the lock with a layer between it and the server.
	behind(through) original
}

// originals holds the reference locks and the locks of Redisson, by name.
var originals = map[string]original{}

// channels returns the globs that campaigns draw for rules on messages. They match all
// channels, the channel on which Redisson publishes to all, and the channel of one waiter.
func channels(lock string) []string {
	return []string{"*", "redisson_lock__channel:*" + lock + "*", "*:a:1"}
}

// plainCommands lists the commands that campaigns draw for clients of the bare and the
// reference locks.
var plainCommands = []string{"SET", "GET", "DEL", "EVAL", "EVALSHA"}
