// Package story has schedules under which locks are known to fail, told for any lock. A schedule is
// a scenario whose times are multiples of the lease.
package story

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// Version is the version of the stories. It is raised by hand whenever All, or what a campaign draws for
// a story, changes. The same seeds tell other schedules then.
const Version = 18

// Story is a schedule of the literature.
type Story struct {
	Name  string
	About string // for people
	// applies returns why the story does not apply to a lock; "": it does.
	applies func(Lock) string
	// steps and faults are parts of a scenario file. In them {N} is the lease times N, rounded to milliseconds, {N<D} is
	// the same but at most D, {key} is a key of the lock, {majority} are the numbers of a majority of the servers, and
	// {loss} is a fault that takes all data from the servers: a restart, or an operator who deletes them. eachServer is
	// a fault that each server has: {server} is its number.
	processes, steps, faults, eachServer string
}

// Lock has the facts about a lock that stories depend on.
type Lock struct {
	Name  string
	Lease time.Duration // of a hold for which the caller names none; 0: a hold has none
	// Renewed reports whether the client renews the lease, and RenewEvery how often.
	Renewed    bool
	RenewEvery time.Duration
	Servers    int
	Key        string // a glob of a key in which the servers keep the lock
	// Reentrant reports whether an owner may take the lock again, and Idempotent whether one unlock ends all its grants.
	Reentrant, Idempotent bool
	// Leases reports whether a caller may name a lease.
	Leases bool
	// Watched, Extends, Tries and Forces report whether the lock tells its holder of a loss,
	// extends a hold by a call, has a try that does not wait, and can be freed by anybody.
	Watched, Extends, Tries, Forces bool
	Fenced                          bool // whether a hold has a token
	// Durable reports whether the servers lose nothing in a restart, and have an operator who deletes keys.
	Durable bool
}

// Of returns the facts about a lock in a world with that watchdog timeout.
func Of(l *subject.Subject, watchdog time.Duration) Lock {
	t := l.Timing(watchdog)
	told := Lock{
		Name: l.Name, Lease: t.Watchdog, Renewed: !l.NoWatchdog, RenewEvery: t.RenewalPeriod, Servers: l.Servers.Count(), Key: l.Keys(LockName)[0],
		Reentrant: !l.Uncounted && !l.NonReentrant, Idempotent: l.Idempotent, Leases: !l.Lacks.Leases,
		Watched: l.Watched, Extends: l.Extends, Tries: !l.Lacks.SingleTry, Forces: !l.Lacks.ForceUnlock, Fenced: l.Fenced,
	}
	if l.Endless {
		told.Lease = 0
	}
	if l.Port == nil {
		lacks := l.FaultCheck()
		told.Durable = lacks(model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart}, nil) != "" &&
			lacks(model.FaultSpec{Kind: model.FaultKey, Key: "*", KeyDo: "delete"}, nil) == ""
	}
	return told
}

// AboutAKey reports whether a fault of the story is about a key of the lock.
func (s Story) AboutAKey() bool { return strings.Contains(s.faults, "{key}") }

// Lacks returns why the story does not apply to a lock; "": it does.
func (s Story) Lacks(l Lock) string { return s.applies(l) }

func always(Lock) string { return "" }

// leased returns why a story about a lease does not apply to a lock; "": it applies.
func leased(l Lock) string {
	if l.Lease == 0 {
		return "the story is about a lease, and the lock has none"
	}
	return ""
}

// renewed returns why a story about renewals does not apply to a lock; "": it applies.
func renewed(l Lock) string {
	if !l.Renewed {
		return "the lock does not renew its lease"
	}
	return ""
}

// renewedTwice returns why a story in which one renewal of a lease may fail does not apply to a lock; "": it applies.
func renewedTwice(l Lock) string {
	if l.Renewed && l.RenewEvery > l.Lease/2 {
		return "the lock renews too seldom to keep a hold when a renewal fails, by its RenewEvery"
	}
	return renewed(l)
}

// tries returns why a story with a try that does not wait does not apply to a lock; "": it applies.
func tries(l Lock) string {
	if !l.Tries {
		return "the lock has no TryLock"
	}
	return ""
}

// alone returns why a story in which the holder cannot take the lock again does not apply to a lock; "": it applies.
func alone(l Lock) string {
	if l.Reentrant || l.Idempotent {
		return "the lock can be taken again by its holder"
	}
	return ""
}

// several returns why a story about some of the servers of a lock does not apply to one; "": it applies.
func several(l Lock) string {
	if l.Servers < 2 {
		return "the lock has one server"
	}
	return ""
}

// extends lets a story, in which the holder extends its hold by a call, apply to locks that have Extend.
func extends(l Lock) string {
	if !l.Extends {
		return "the lock has no Extend"
	}
	return ""
}

// fenced returns why a story about tokens does not apply to a lock; "": it applies.
func fenced(l Lock) string {
	if !l.Fenced {
		return "the lock has no tokens"
	}
	return ""
}

// unrenewed returns why a story about a lease that nobody renews does not apply to a lock; "": it applies.
func unrenewed(l Lock) string {
	if l.Renewed {
		return "the lock renews its lease, so that a living holder is never late"
	}
	return leased(l)
}

// firstRenewalLost loses the first renewal of a hold, whenever it is sent. Some locks renew their session as
// soon as they have it, before the lock is granted; from leaves these renewals alone.
const firstRenewalLost = `
  - {servers: [{server}], when: {process: a, direction: request, script: renew, nth: 1}, from: {0.05}, do: drop}`

// LockName is the name of the lock of which stories are told.
const LockName = "orders"

// pace takes the place of the lease in stories for a lock without one.
const pace = 5 * time.Second

// leasePattern matches a multiple of the lease.
var leasePattern = regexp.MustCompile(`\{[0-9.]+(<[0-9a-z]+)?\}`)

// Scenario returns the scenario of the story, with the lease of the lock. It panics if the story is no
// scenario.
func (s Story) Scenario(l Lock) *scenarios.Scenario {
	sc, err := scenarios.Parse(s.Name+".yaml", []byte(s.text(l)), scenarios.AnyLock)
	if err != nil {
		panic("story: " + err.Error())
	}
	return sc
}

// text writes the story as a scenario file.
func (s Story) text(l Lock) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lockstep: 1\nname: %s\nabout: %q\nlocks: [%q]\nprocesses: %s\nsteps:%s\n", s.Name, s.About, l.Name, s.processes, s.steps)
	faults := s.faults
	for i := range l.Servers {
		faults += strings.ReplaceAll(s.eachServer, "{server}", strconv.Itoa(i+1))
	}
	if faults != "" {
		fmt.Fprintf(&b, "faults:%s\n", faults)
	}
	lease := l.Lease
	if lease == 0 {
		lease = pace
	}
	loss := "server: restart"
	if l.Durable {
		loss = `key: "*", do: delete`
	}
	majority := make([]string, l.Servers/2+1)
	for i := range majority {
		majority[i] = strconv.Itoa(i + 1)
	}
	return leases(strings.NewReplacer("{key}", l.Key, "{loss}", loss, "{majority}", "["+strings.Join(majority, ", ")+"]").Replace(b.String()), lease)
}

// leases replaces each {N}, where N is a decimal number, by the lease times N, and each {N<D} by that but at
// most D.
func leases(text string, lease time.Duration) string {
	return leasePattern.ReplaceAllStringFunc(text, func(part string) string {
		number, bound, bounded := strings.Cut(strings.Trim(part, "{}"), "<")
		times, err := strconv.ParseFloat(number, 64)
		length := time.Duration(times * float64(lease)).Round(time.Millisecond)
		if most, bad := time.ParseDuration(bound); bounded {
			length, err = min(length, most), errors.Join(err, bad)
		}
		if err != nil {
			panic("story: " + part + " is no multiple of a lease: " + err.Error())
		}
		return length.String()
	})
}
