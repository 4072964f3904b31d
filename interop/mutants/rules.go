package main

import (
	"fmt"
	"slices"
	"strings"
)

// A rule is one thing that the library's client code does. A comparison shows that the port does it,
// too, if it catches a mutant that breaks the rule.
type rule struct {
	says     string
	releases string   // as in a mutant
	mutants  []string // IDs; each breaks the rule in its own way
	// seen names the test of package interop that compares the rule where no mutant breaks it.
	seen string
	// unproved says why nothing shows the rule on some of its releases.
	unproved string
}

// rules lists the rules of the client code. The rules of the scripts are not in the list:
// TestScriptsInRandomStates compares the scripts.
var rules = []rule{
	// Leases.
	{says: "An attempt without a lease sends the lease of the lock object (issue 4818).", releases: "3.21.3 on", mutants: []string{"attempt-sends-field"}},
	{says: "Every attempt, a failed one too, writes its lease to the lock object.", releases: "3.4.2 to 3.12.4", mutants: []string{"attempt-writes-field"}},
	{says: "A grant with a lease writes it to the lock object.", releases: "3.21.3 on", mutants: []string{"grant-writes-field"}},
	{says: "Of the negative leases only -1 ms means none.", releases: "3.4.2 to 3.12.4", mutants: []string{"minus-one"}},
	{says: "An unlock that leaves a level sets the lease of the lock object.", releases: "all", mutants: []string{"unlock-field"}},
	{says: "Every answer to an unlock resets the lease of the lock object.", releases: "3.21.3", mutants: []string{"unlock-resets-field"}},
	{says: "An unlock that released, or found nothing, resets the lease of the lock object.", releases: "3.43.0, 4.7.0", mutants: []string{"release-resets-field"}},
	{says: "An unlock that leaves a level does not reset the lease of the lock object.", releases: "3.43.0, 4.7.0", mutants: []string{"still-held-keeps-field"}},
	{says: "A forceUnlock resets the lease of the lock object.", releases: "3.21.3 on", mutants: []string{"force-resets-field"}},
	{says: "A renewal that finds nothing resets the lease of the lock object.", releases: "3.21.3, 3.43.0", mutants: []string{"zero-resets-field"}},

	// The watchdog.
	{says: "A hold without a lease is renewed, and one with a lease is not.", releases: "all", mutants: []string{"lease-not-renewed"}},
	{says: "The period of renewals is a third of the lease that they ask for.", releases: "all", mutants: []string{"renew-period", "renew-period-task"}},
	{says: "A renewal takes lease and period from the lock object.", releases: "3.4.2 to 3.12.4", mutants: []string{"renew-from-field"}},
	{says: "A renewal takes the watchdog timeout, whatever the lock object has.", releases: "3.21.3, 3.43.0", mutants: []string{"renew-from-config"}},
	{says: "A lock name has one renewal timer, of the thread that set it.", releases: "3.4.2", mutants: []string{"one-timer"}},
	{says: "A renewal names the first of the threads that hold the lock.", releases: "3.11.0 to 3.43.0", mutants: []string{"renews-first"}},
	{says: "Each entry of a thread queues it for renewal, and only its last unlock takes one out.", releases: "3.43.0", mutants: []string{"queue-by-entry"}},
	{says: "All holds of a client have one task and one tick.", releases: "4.7.0", mutants: []string{"one-task"}},
	{says: "A timer that is under way at the client's last unlock goes on if the client locks again.", releases: "4.7.0", mutants: []string{"timers-multiply"}},
	{says: "A renewal of several locks names each lock's own holder.", releases: "4.7.0", mutants: []string{"batch-owner"}},
	{says: "A renewal names at most 100 locks.", releases: "4.7.0", mutants: []string{"batch-size"}},
	{says: "The renewals of one tick are sent in turn, each after the answer to the one before.", releases: "4.7.0", mutants: []string{"chunks-in-turn"}},
	{says: "A renewal that failed ends the tick: the rest of its locks wait for the next one.", releases: "4.7.0", mutants: []string{"error-ends-tick"}},
	{says: "After a renewal that failed the next tick comes.", releases: "4.7.0", mutants: []string{"error-keeps-task"}},
	{says: "A renewal that failed drops the entry, so that a later hold is renewed.", releases: "3.21.3, 3.43.0", mutants: []string{"error-drops-entry"}},
	{says: "A renewal that finds nothing drops the entry, so that a later hold is renewed.", releases: "3.21.3, 3.43.0", mutants: []string{"zero-drops-entry"}},
	{says: "A renewal that failed or finds nothing leaves its entry without a timer (issues 3194, 3712).", releases: "3.11.0, 3.12.4", mutants: []string{"zero-leaves-entry"}},
	{says: "A renewal that finds nothing takes a level of that thread.", releases: "4.7.0", mutants: []string{"zero-takes-level"}},
	{says: "A renewal whose answer was lost is sent again.", releases: "3.11.0 on", mutants: []string{"renewal-resent", "renewal-resent-early"}},
	{says: "Only an unlock that released ends the renewal (issue 1602).", releases: "3.4.2", mutants: []string{"failed-unlock-renews"}},
	{says: "An unlock that failed takes a level from the watchdog.", releases: "3.12.4 on", mutants: []string{"stop-on-error"}},
	{says: "A forceUnlock ends the client's own renewal of the lock.", releases: "all", mutants: []string{"force-ends-renewal"}},

	// Attempts, waits and interrupts.
	{says: "A tryLock without arguments never enters the queue.", releases: "all", mutants: []string{"try-queues"}},
	{says: "After it has subscribed, lock() asks again before it waits.", releases: "all", mutants: []string{"ask-after-subscribing"}},
	{says: "An answer below 0 makes a waiter wait without bound.", releases: "all", mutants: []string{"endless-wait"}},
	{says: "A timed tryLock asks again when the time is over that it was told.", releases: "all", mutants: []string{"told-time"}},
	{says: "A timed tryLock takes the time that passed off its wait once.", releases: "all", mutants: []string{"elapsed-once"}},
	{says: "A timed tryLock measures its wait on the wall clock.", releases: "all", unproved: "no comparison steps the clock of a JVM"},
	{says: "A response timeout inside the loop of a timed tryLock becomes false.", releases: "4.7.0", mutants: []string{"timeout-is-false"}},
	{says: "A call that waits for an answer does not notice an interrupt.", releases: "3.4.2", mutants: []string{"patient-reply"}},
	{says: "What an attempt is granted is renewed, although its caller was interrupted (issues 2714, 4368).", releases: "3.11.0 on", mutants: []string{"background-grant"}},
	{says: "lock() comes back from an interrupted wait as if it had the lock (issue 1593).", releases: "3.4.2", mutants: []string{"returns-interrupted"}},
	{says: "lock() swallows an interrupt and waits its whole time anew.", releases: "3.11.0 on", mutants: []string{"waits-anew"}},
	{says: "An interrupt of a wait without bound meets the next attempt.", releases: "3.11.0 on", mutants: []string{"interrupt-pending"}},
	{says: "Renewals and the response timeout wait for a tick of the client's wheel.", releases: "all", unproved: "the tolerances of the comparisons are longer than a tick; drawn stories tell the two apart with a tolerance of 120 ms"},

	// Subscriptions and messages.
	{says: "The threads of a client share the subscription to a channel, and the last one leaves it.", releases: "all", mutants: []string{"first-leaves"}},
	{says: "A message wakes one waiting thread of a client.", releases: "all", mutants: []string{"one-waiter-wakes"}},
	{says: "A message that comes while nobody waits lets the next waiter ask at once.", releases: "all", mutants: []string{"stored-permit"}},
	{says: "A message that is stored lets a call for a token ask at once.", releases: "3.21.3 on", mutants: []string{"token-permit"}},
	{says: "lock() waits for its subscription for the response timeout and all retry delays.", releases: "3.4.2 to 3.12.4", mutants: []string{"subscription-limit"}},
	{says: "lock() waits 7.5 s for its subscription, whatever the response timeout is.", releases: "3.43.0, 4.7.0", mutants: []string{"subscription-timeout"}},
	{says: "A subscription that is not acknowledged within the response timeout is given up.", releases: "3.11.0, 3.21.3, 3.43.0, 4.7.0", mutants: []string{"late-subscription", "late-subscription-fails"}},
	{says: "When the time of the lock() that began a subscription is over, all who wait for it are told.", releases: "3.12.4, 3.43.0, 4.7.0", mutants: []string{"late-subscription-shared"}},
	{says: "Releases are published by SPUBLISH, and waiters subscribe by SSUBSCRIBE, in a cluster.", releases: "3.43.0, 4.7.0", mutants: []string{"spublish-in-cluster"}},
	{says: "Outside of a cluster releases are published by PUBLISH, and waiters subscribe by SUBSCRIBE.", releases: "3.43.0, 4.7.0", mutants: []string{"publish-elsewhere"}},

	// The fair queue.
	{says: "A waiter is queued with the client's wait, and leaves with it, whatever its own is.", releases: "3.4.2 to 3.12.4", mutants: []string{"client-wait"}},
	{says: "A timed tryLock that gives up leaves the fair queue.", releases: "all", mutants: []string{"leaves-queue"}},
	{says: "A timed tryLock leaves the fair queue with its own wait.", releases: "3.21.3 on", mutants: []string{"leave-wait"}},
	{says: "Without a lease the script is told the number of the wait as milliseconds, whatever its unit is (issue 4743).", releases: "3.21.3 on", mutants: []string{"wait-unit"}},
	{says: "A timed tryLock that is interrupted while it waits stays in the fair queue.", releases: "all", mutants: []string{"interrupted-stays-queued"}},
	{says: "Each waiter of a fair lock has a channel of its own.", releases: "all", mutants: []string{"waiter-channel"}},

	// The latch of an unlock.
	{says: "Each unlock has a request id of its own.", releases: "3.43.0, 4.7.0", mutants: []string{"request-fresh"}},
	{says: "The latch lives for the response timeout and a retry delay, as often as a command may be sent again.", releases: "3.43.0, 4.7.0", mutants: []string{"latch-life"}},
	{says: "The life of an unlock's latch counts at least one attempt.", releases: "3.43.0, 4.7.0", mutants: []string{"latch-floor"}},
	{says: "The latch is deleted after the unlock was answered.", releases: "3.43.0, 4.7.0", mutants: []string{"latch-deleted"}},

	// Lost answers.
	{says: "A command whose connection ended waits for the response timeout.", releases: "all", mutants: []string{"silent-connection"}},
	{says: "A command is sent again 3 times at most, by 4.7.0 4 times.", releases: "all", mutants: []string{"resend-attempts"}},
	{says: "Before it is sent again, the delay of the release passes.", releases: "all", mutants: []string{"resend-delay"}},
	{says: "The delay is drawn, and doubles up to 2 s.", releases: "4.7.0", mutants: []string{"retry-doubling"}},
	{says: "On a single server an unlock whose reply was lost is not sent again.", releases: "3.43.0, 4.7.0", mutants: []string{"unlock-sent-once"}},
	{says: "A script is sent by its digest, and loaded where the server does not know it.", releases: "4.7.0", mutants: []string{"script-cache"}},
	{says: "Which refusals make a client send a command again.", releases: "all", seen: "TestLostAnswers"},

	// Replicas.
	{says: "An answer with WAIT has a second more than the response timeout.", releases: "3.21.3 on", mutants: []string{"wait-time"}},
	{says: "Where there are replicas every script is sent again (issue 7367).", releases: "3.43.0, 4.7.0", mutants: []string{"replicas-resend-all"}},
	{says: "The number of replicas is asked for once.", releases: "3.43.0, 4.7.0", mutants: []string{"info-once"}},
	{says: "The number of replicas is asked for at each script.", releases: "3.21.3", mutants: []string{"info-each-time"}},
	{says: "An acquire that no replica had is given back.", releases: "3.21.3, 4.7.0", mutants: []string{"unsynced-gives-back"}},
	{says: "Acquire and unlock that no replica had are tried again.", releases: "3.21.3, 4.7.0", mutants: []string{"unsynced-tries-again"}},
	{says: "What no replica had is an error at once, and nothing is given back.", releases: "3.43.0", mutants: []string{"unsynced-thrown"}},
	{says: "An unlock that no replica had is tried again under the same request id.", releases: "4.7.0", mutants: []string{"request-kept"}},

	// Calls that return a token.
	{says: "A try for a token that names no wait waits without bound.", releases: "3.21.3 on", mutants: []string{"token-without-bound"}},
	{says: "What an interrupted call for a token is granted is given back.", releases: "3.21.3 on", mutants: []string{"token-given-back"}},
	{says: "A key without time to live is taken for a grant with the token -1.", releases: "3.21.3 on", mutants: []string{"token-minus-one"}},
	{says: "An interrupt ends a call for a token at once.", releases: "3.21.3 on", mutants: []string{"token-interrupt"}},
	{says: "lockAndGetToken ignores its lease.", releases: "3.21.3 on", mutants: []string{"token-lease"}},
	{says: "A wait for a token ends with its own time.", releases: "3.21.3 on", mutants: []string{"token-wait-ends"}},
}

// rule returns the rule that the mutant breaks.
func (m mutant) rule() rule {
	for _, r := range rules {
		if slices.Contains(r.mutants, m.id) {
			return r
		}
	}
	panic("no rule names the mutant " + m.id)
}

// verdict has the releases on which a comparison shows the rule, and those on which none does.
type verdict struct {
	proved, unproved, unplayed []string // releases
}

// verdict judges a rule by the results. A release is proved if every mutant that breaks the rule
// there is caught there.
func (r rule) verdict(all outcomes) (v verdict, err error) {
	releases, err := releasesNamed("the rule", r.releases)
	if err != nil {
		return v, err
	}
	for _, release := range releases {
		broken, passed, unplayed := r.seen != "", false, false
		for _, m := range mutants {
			has, err := m.brokenReleases()
			if err != nil {
				return v, err
			}
			if !slices.Contains(r.mutants, m.id) || !slices.Contains(has, release) {
				continue
			}
			broken = true
			switch result := all[m.id]; {
			case slices.Contains(result.caughtOn(), release):
			case result.complete():
				passed = true
			default:
				unplayed = true
			}
		}
		switch {
		case unplayed:
			v.unplayed = append(v.unplayed, release)
		case passed || !broken:
			v.unproved = append(v.unproved, release)
		default:
			v.proved = append(v.proved, release)
		}
	}
	return v, nil
}

// rulesTable returns a Markdown table with one row per rule.
func rulesTable(all outcomes) (string, error) {
	var b strings.Builder
	b.WriteString("| rule | releases | shown by | unproved |\n|---|---|---|---|\n")
	for _, r := range rules {
		v, err := r.verdict(all)
		if err != nil {
			return "", err
		}
		var by, open []string
		for _, id := range r.mutants {
			by = append(by, "`"+id+"`")
		}
		if r.seen != "" {
			by = append(by, "`"+r.seen+"`")
		}
		if len(v.unproved) > 0 {
			open = append(open, v.name(v.unproved)+": "+r.unproved)
		}
		if len(v.unplayed) > 0 {
			open = append(open, v.name(v.unplayed)+": not played")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.says, r.releases, orDash(by, ", "), orDash(open, "; "))
	}
	return b.String(), nil
}

// name lists some of the rule's releases.
func (v verdict) name(some []string) string {
	if len(some) == len(v.proved)+len(v.unproved)+len(v.unplayed) {
		return "all"
	}
	return strings.Join(some, ", ")
}

func orDash(parts []string, between string) string {
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, between)
}
