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
	Name  string // for people
	Asks  string // what a lock must show to meet it, for people
	meets func(Lock) bool
	cost  func(Lock) float64 // locks are listed by it, the cheapest first
}

// sound lists the promises that a lock must keep to meet any need: none of their cells may be a
// bug.
var sound = []string{"one owner at a time", "not freed by another", "live after a crash", "lease kept"}

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
		Name:  "A second owner must never do harm: the resource checks a fencing token",
		Asks:  "fencing: held",
		meets: func(l Lock) bool { return l.Summary("fencing").Word == Held },
		cost:  acquireMs,
	},
	{
		Name:  "Waiters must be served in the order in which they came",
		Asks:  "fair: held, or limit",
		meets: func(l Lock) bool { word := l.Summary("fair").Word; return word == Held || word == Limit },
		cost:  acquireMs,
	},
	{
		Name:  "Waits must be short",
		Asks:  fmt.Sprintf("a waiter has the lock within %d ms of the unlock, on a network of 1 ms", soon),
		meets: func(l Lock) bool { return l.Cost.HandOverMs <= soon },
		cost:  func(l Lock) float64 { return l.Cost.HandOverMs },
	},
	{
		Name: "It must survive the faults that its servers may have in the survey, such as a restart",
		Asks: "one owner at a time, not freed by another, live after a crash and lease kept: held under faults of servers",
		meets: func(l Lock) bool {
			return !slices.ContainsFunc(sound, func(promise string) bool { return l.Cell(promise, string(draw.ClassServer)).Word != Held })
		},
		cost: acquireMs,
	},
}

func acquireMs(l Lock) float64 { return l.Cost.Acquire.Ms }

// Met returns the names of the locks that meet a need, the cheapest first. A lock with a bug in one
// of the promises that every lock is to keep meets none.
func (s Survey) Met(n Need) (names []string) {
	var locks []Lock
	for _, l := range s.Locks {
		broken := slices.ContainsFunc(sound, func(promise string) bool { return l.Summary(promise).Word == Bug })
		if !broken && n.meets(l) {
			locks = append(locks, l)
		}
	}
	slices.SortStableFunc(locks, func(a, b Lock) int { return cmp.Compare(n.cost(a), n.cost(b)) })
	for _, l := range locks {
		names = append(names, l.Name)
	}
	return names
}

// NeedsHead is the head of the table of needs.
var NeedsHead = []string{"need", "what the lock shows here", "locks that show it, the cheapest first"}

// needsAbout explains the table of needs.
var needsAbout = "The cells and the costs below say which lock meets which need. A lock with a bug in one of these promises meets none: " + strings.Join(sound, ", ") + ". " +
	"The section of each lock says in two sentences when to take it and when not."
