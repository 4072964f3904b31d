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
	// uses lists the promises that the need uses: a lock meets it if all of them held, or broke with
	// an excuse. A bug in another promise stands behind the lock.
	uses []string
	// also says what else a lock must show, for people; "": nothing.
	also string
	// promise is the promise whose limits stand behind each lock that meets the need; "": none.
	promise string
	// servers lets the faults of its servers that a lock could meet stand behind it. The promises must
	// then have held under these faults, and only there.
	servers bool
	// waits lets the time that a waiter may wait by the design of the lock stand behind it.
	waits bool
	costs func(Cost) bool    // nil: any
	cost  func(Lock) float64 // locks are listed by it, the cheapest first
}

// The promises that needs use. Who has to wait must get the lock in the end, and each holder must be
// safe from others.
const (
	oneOwner  = "one owner at a time"
	notFreed  = "not freed by another"
	forgotten = "no waiter is forgotten"
)

// soon is the longest hand-over of a lock for short waits, in ms.
const soon = 10

// Needs are the needs that a survey answers, in order.
var Needs = []Need{
	{
		Name:  "It must be cheap, and a second owner now and then costs time and no data",
		uses:  []string{oneOwner, notFreed, forgotten},
		also:  "an acquire and an unlock of a round trip each",
		waits: true,
		costs: func(c Cost) bool { return c.Acquire.RoundTrips() == 1 && c.Unlock.RoundTrips() == 1 },
		cost: func(l Lock) float64 {
			return float64(l.Cost.Acquire.Requests+l.Cost.Unlock.Requests) + l.Cost.TenWaiters/1000
		},
	},
	{
		Name:    "A second owner must never do harm, as with payments: the resource checks a fencing token",
		uses:    []string{"fencing", notFreed, forgotten},
		promise: "fencing",
		cost:    acquireMs,
	},
	{
		Name:    "A job that a timetable such as cron starts on several machines must not run twice",
		uses:    []string{oneOwner, notFreed, "lost hold told"},
		also:    "a job that hears of the loss can stop",
		promise: oneOwner,
		cost:    acquireMs,
	},
	{
		Name:    "Waiters must be served in the order in which they came",
		uses:    []string{"fair", notFreed, forgotten},
		promise: "fair",
		cost:    acquireMs,
	},
	{
		Name:  "Waits must be short",
		uses:  []string{oneOwner, notFreed, forgotten},
		also:  fmt.Sprintf("a waiter has the lock within %d ms of the unlock, on a network of 1 ms", soon),
		waits: true,
		costs: func(c Cost) bool { return c.HandOverMs <= soon },
		cost:  func(l Lock) float64 { return l.Cost.HandOverMs },
	},
	{
		Name:    "It must survive the faults that its servers may have in the survey, such as a restart",
		uses:    []string{oneOwner, notFreed, forgotten, "lease kept"},
		promise: oneOwner,
		servers: true,
		cost:    acquireMs,
	},
}

// Asks says what a lock must show to meet the need, for people.
func (n Need) Asks() string {
	text := strings.Join(n.uses, ", ")
	if n.servers {
		text += ": held under faults of servers"
	} else {
		text += ": held, or limit"
	}
	if n.also != "" {
		text += "; " + n.also
	}
	return text
}

// meets reports whether a lock meets the need.
func (n Need) meets(l Lock) bool {
	for _, promise := range n.uses {
		if n.servers && l.Cell(promise, string(draw.ClassServer)).Word != Held || !n.servers && !l.kept(promise) {
			return false
		}
	}
	return n.costs == nil || n.costs(l.Cost)
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

// Met returns the locks that meet a need, the cheapest first.
func (s Survey) Met(n Need) (choices []Choice) {
	var locks []Lock
	for _, l := range s.Locks {
		if n.meets(l) {
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
	if waits := l.waits(); n.waits && waits > 0 {
		notes = append(notes, fmt.Sprintf("a waiter may wait %v by design", waits))
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
var needsAbout = "The cells and the costs below say which lock meets which need. A lock does not meet a need if it has a bug in a promise that the need uses; the second column names these. " +
	"Parentheses after a lock have its limits in the first promise of the row, with the number of runs that broke it, and the other promises in which it has a bug: read there whether they matter to you. " +
	"Chance decides whether a failure that is as rare as 1 of 100 comes in a campaign. So a similar lock without such a limit need not be safer. " +
	"simrun explore --lock LOCK --faults all plays more schedules: play it on a lock before you take it. " +
	"The last row compares locks whose servers can have different faults: a lock that met only restarts did not have to survive a failover. " +
	"Nobody can deploy a lock that is only simulated: its servers exist only in the simulation. " +
	"No lock alone keeps a job from running twice, since a machine that starts the job late may find the lock free again. So the job must also note in its data which period is done. " +
	"The section of each lock says in two sentences when to take it and when not."
