package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/explore/draw"
)

// A Need is what somebody needs of a lock. The cells and the costs of a survey say which locks meet
// it.
type Need struct {
	Name string // for people
	Asks string // what a lock must show to meet it, for people
	// promise is the promise whose limits stand behind each lock that meets the need; "": none.
	promise string
	// servers lets the faults of its servers that a lock could meet stand behind it.
	servers bool
	meets   func(Lock) bool
	cost    func(Lock) float64 // locks are listed by it, the cheapest first
}

// sound lists the promises that a lock must keep to meet any need: none of their cells may be a
// bug.
var sound = []string{"one owner at a time", "not freed by another", "no waiter is forgotten", "lease kept"}

// soon is the longest hand-over of a lock for short waits, in ms.
const soon = 10

// Needs are the needs that a survey answers, in order.
var Needs = []Need{
	{
		Name:  "It must be cheap, and a second owner now and then costs time and no data",
		Asks:  "an acquire and an unlock of a round trip each",
		meets: func(l Lock) bool { return l.Cost.Acquire.RoundTrips() == 1 && l.Cost.Unlock.RoundTrips() == 1 },
		cost: func(l Lock) float64 {
			return float64(l.Cost.Acquire.Requests+l.Cost.Unlock.Requests) + l.Cost.TenWaiters/1000
		},
	},
	{
		Name:    "A second owner must never do harm, as with payments: the resource checks a fencing token",
		Asks:    "fencing: held, or limit",
		promise: "fencing",
		meets:   func(l Lock) bool { return l.kept("fencing") },
		cost:    acquireMs,
	},
	{
		Name:    "A job that a timetable such as cron starts on several machines must not run twice",
		Asks:    "one owner at a time, and lost hold told: held, or limit. A job that hears of the loss can stop",
		promise: "one owner at a time",
		meets:   func(l Lock) bool { return l.kept("one owner at a time") && l.kept("lost hold told") },
		cost:    acquireMs,
	},
	{
		Name:    "Waiters must be served in the order in which they came",
		Asks:    "fair: held, or limit",
		promise: "fair",
		meets:   func(l Lock) bool { return l.kept("fair") },
		cost:    acquireMs,
	},
	{
		Name:  "Waits must be short",
		Asks:  fmt.Sprintf("a waiter has the lock within %d ms of the unlock, on a network of 1 ms", soon),
		meets: func(l Lock) bool { return l.Cost.HandOverMs <= soon },
		cost:  func(l Lock) float64 { return l.Cost.HandOverMs },
	},
	{
		Name:    "It must survive the faults that its servers may have in the survey, such as a restart",
		Asks:    "one owner at a time, not freed by another, no waiter is forgotten and lease kept: held under faults of servers. The faults that the lock met stand behind it",
		promise: "one owner at a time",
		servers: true,
		meets: func(l Lock) bool {
			return !slices.ContainsFunc(sound, func(promise string) bool { return l.Cell(promise, string(draw.ClassServer)).Word != Held })
		},
		cost: acquireMs,
	},
}

func acquireMs(l Lock) float64 { return l.Cost.Acquire.Ms }

// kept reports whether the lock makes a promise and broke it only where an excuse counts.
func (l Lock) kept(promise string) bool {
	word := l.Summary(promise).Word
	return word == Held || word == Limit
}

// A Choice is a lock that meets a need.
type Choice struct {
	Lock string
	// Note says what somebody must know before they take the lock; "": nothing.
	Note string
}

// Met returns the locks that meet a need, the cheapest first. A lock with a bug in one
// of the promises that every lock is to keep meets none.
func (s Survey) Met(n Need) (choices []Choice) {
	var locks []Lock
	for _, l := range s.Locks {
		broken := slices.ContainsFunc(sound, func(promise string) bool { return l.Summary(promise).Word == Bug })
		if !broken && n.meets(l) {
			locks = append(locks, l)
		}
	}
	slices.SortStableFunc(locks, func(a, b Lock) int { return cmp.Compare(n.cost(a), n.cost(b)) })
	for _, l := range locks {
		choices = append(choices, Choice{l.Name, s.note(n, l)})
	}
	return choices
}

// note returns the note of a lock that meets a need.
func (s Survey) note(n Need, l Lock) string {
	var notes, bugs []string
	if slices.Contains(s.OnlySimulated, l.Name) {
		notes = append(notes, "only simulated")
	}
	if faults := l.serverFaults(); n.servers && faults != nil {
		notes = append(notes, "met: "+strings.Join(faults, ", "))
	}
	for _, p := range Promises {
		sum := l.Summary(p.Name)
		switch {
		case sum.Word == Bug:
			bugs = append(bugs, p.Name)
		case sum.Word == Limit && p.Name == n.promise:
			notes = append(notes, sum.Counted())
		}
	}
	if bugs != nil {
		notes = append(notes, "bug: "+strings.Join(bugs, ", "))
	}
	return strings.Join(notes, "; ")
}

// NeedsHead is the head of the table of needs.
var NeedsHead = []string{"need", "what the lock shows here", "locks that show it, the cheapest first"}

// needsAbout explains the table of needs.
var needsAbout = "The cells and the costs below say which lock meets which need. A lock with a bug in one of these promises meets none: " + strings.Join(sound, ", ") + ". " +
	"Parentheses after a lock have its limits in the first promise of the row, with the number of runs that broke it, and the other promises in which it has a bug. " +
	"Chance decides whether a failure that is as rare as 1 of 100 comes in a campaign. So a similar lock without such a limit need not be safer. " +
	"simrun explore --lock LOCK --faults all plays more schedules: play it on a lock before you take it. " +
	"The last row compares locks whose servers can have different faults: a lock that met only restarts did not have to survive a failover. " +
	"Nobody can deploy a lock that is only simulated: its servers exist only in the simulation. " +
	"No lock alone keeps a job from running twice, since a machine that starts the job late may find the lock free again. So the job must also note in its data which period is done. " +
	"The section of each lock says in two sentences when to take it and when not."
