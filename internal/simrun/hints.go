package simrun

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// errNoLock is the error of a command that needs the option --lock.
func errNoLock() error { return fmt.Errorf("--lock is missing; %s list names the locks", program()) }

// PeersLocks are the locks of other people's libraries, which the program in peers/ registers.
var PeersLocks = []string{
	"redsync-1", "redsync-5", "redsync-5-set-on-extend", "redislock", "rueidislock-1", "rueidislock-2",
	"memcached-add", "memcached-add-forever", "memcached-cas", "zookeeper", "zookeeper-closing", "etcd-mutex",
	"nats-kv", "nats-kv-on-time", "nats-kv-blind", "nats-kv-key-ttl", "chubby", "chubby-without-delay",
	"mysql-get-lock", "mysql-get-lock-pool", "mysql-row",
}

// hinted returns the text of an error with its hints, on the same line if the text is one line.
func hinted(err error) string {
	text := err.Error()
	for _, hint := range hints(err) {
		switch {
		case strings.Contains(text, "\n"):
			text += "\n" + hint
		case strings.HasSuffix(text, "?"):
			text += " " + hint
		default:
			text += "; " + hint
		}
	}
	return text
}

// hints say where the names are found that an error does not know, each once. The packages below
// do not know by which command the program was called.
func hints(err error) (all []string) {
	add := func(format string, args ...any) {
		if hint := fmt.Sprintf(format, args...); !slices.Contains(all, hint) {
			all = append(all, hint)
		}
	}
	for _, err := range causes(err) {
		switch err := err.(type) {
		case *subject.UnknownError:
			if slices.Contains(PeersLocks, err.Name) {
				add("the program in peers/ knows %s: (cd peers && go run ./%s list) in a clone of this project", err.Name, ours)
			} else {
				add("%s list names all %d locks", program(), err.Known)
			}
		case *scenarios.UnknownError:
			add("%s list names all %d scenarios", program(), err.Known)
		}
	}
	return all
}

// causes returns the errors at the bottom of an error, which may have joined several.
func causes(err error) (all []error) {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, causes(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return causes(inner)
		}
	}
	return []error{err}
}
