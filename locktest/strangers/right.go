package strangers

import "slices"

// The choices of each dimension, the usual one first.
var (
	values   = []Value{Fresh, Handle, Process}
	renewals = []Renewal{Never, Goroutine, Timer, Ticker, Pipeline, Hook}
	stops    = []Stop{Waits, Leaves, After}
	releases = []Release{Script, Watch, Member}
	wakes    = []Wake{Poll, Publish, List, HandOver, Head}
	retries  = []Retry{Once, ByClient, ByLock}
	takings  = []Taking{Direct, Dispatched, InTwoLeases, CleansUp}
	levels   = []Levels{Flat, Counted, Idempotent}
	counts   = []int{1, 3}
	yesNo    = []bool{false, true}
)

// A rule says which plumbings are not combined, and why. What no rule forbids is right by the arguments of
// its parts.
type rule struct {
	why  string
	bars func(p Plumbing) bool
}

var rules = []rule{
	{"a hold that is never renewed has no renewals to stop, and any other has",
		func(p Plumbing) bool { return (p.Renewal == Never) != (p.Stop == "") }},
	{"the request that the client sent first may arrive after the unlock, and take or delete the next hold of the same value",
		func(p Plumbing) bool { return p.Retry != Once && p.Value != Fresh }},
	{"a pipeline renews the holds of other threads, too, so that an unlock cannot cancel it and must wait: else a renewal is sent after the unlock has returned",
		func(p Plumbing) bool { return p.Renewal == Pipeline && p.Stop == Leaves }},
	{"WATCH belongs to a connection, and a client that sends EXEC again does so on another",
		func(p Plumbing) bool { return p.Release == Watch && p.Retry == ByClient }},
	{"levels are part of the value: a comparison that is not a script would compare the level, too, which a request that arrives late may have changed",
		func(p Plumbing) bool { return p.Levels == Counted && p.Release != Script }},
	{"another value ends the count of levels, and the threads of a process would share it",
		func(p Plumbing) bool { return p.Levels != Flat && p.Value == Process }},
	{"the tokens of holds grow; whoever is granted a hold that it has gets the old token again",
		func(p Plumbing) bool { return p.Levels != Flat && p.Fenced }},
	{"a queue has a ticket per call, which no other call may have",
		func(p Plumbing) bool { return (p.Wake == HandOver || p.Wake == Head) && p.Value != Fresh }},
	{"the handle of a queue knows no levels: a ticket of the holder waits for the holder",
		func(p Plumbing) bool { return (p.Wake == HandOver || p.Wake == Head) && p.Levels != Flat }},
	{"the release of a queue is a script that hands the lock on, or the removal of the ticket",
		func(p Plumbing) bool { return (p.Wake == HandOver || p.Wake == Head) && p.Release != Script }},
	{"a hand-over gives a hold by the request of another, so that no counter of the own request numbers it",
		func(p Plumbing) bool { return p.Wake == HandOver && p.Fenced }},
	{"the hook sees the reply to a request of the handle, and not that another handed the lock over before a reply was lost",
		func(p Plumbing) bool { return p.Wake == HandOver && p.Renewal == Hook }},
	{"the ticket at the head has no lease: nothing is to be renewed, extended, numbered or lost. Its unlock asks until it gets an answer",
		func(p Plumbing) bool {
			return p.Wake == Head && (p.Renewal != Never || p.Lost || p.Fenced || p.Extends || p.Retry != ByLock)
		}},
	{"the counters of three servers are not one counter, their queues not one queue, and three channels wake a waiter three times",
		func(p Plumbing) bool { return p.Servers > 1 && (p.Fenced || p.Wake != Poll) }},
	{"of three servers some may have a level that others do not have",
		func(p Plumbing) bool { return p.Servers > 1 && p.Levels != Flat }},
	{"a clean-up that arrives late must not meet a value that is asked for again, so each try on three servers has a value of its own",
		func(p Plumbing) bool { return p.Servers > 1 && p.Value != Fresh }},
	{"a pipeline goes to one server; the hook sees one server's reply and no majority; WATCH on three servers is three transactions",
		func(p Plumbing) bool {
			return p.Servers > 1 && (p.Renewal == Pipeline || p.Renewal == Hook || p.Release == Watch || p.Retry != Once)
		}},
	{"the second lease of an acquire belongs to one key with a value, and a hook or a nested acquire would see the first one alone",
		func(p Plumbing) bool {
			return p.Taking == InTwoLeases && (p.Servers > 1 || p.Wake == HandOver || p.Wake == Head || p.Levels != Flat || p.Renewal == Hook)
		}},
	{"a request that is sent again could arrive after the second lease, and shorten it to the first one",
		func(p Plumbing) bool { return p.Taking == InTwoLeases && p.Retry != Once }},
	{"a queue and a majority clean up in the call",
		func(p Plumbing) bool {
			return p.Taking == CleansUp && (p.Servers > 1 || p.Wake == HandOver || p.Wake == Head)
		}},
	{"two hooks of one client depend on their order",
		func(p Plumbing) bool { return p.Taking == Dispatched && p.Renewal == Hook }},
	{"who renews by itself needs no extension by hand",
		func(p Plumbing) bool { return p.Extends && p.Renewal != Never }},
}

// Wrong returns why a plumbing is not known to be right; "": it is right.
func (p Plumbing) Wrong() string {
	for _, r := range rules {
		if r.bars(p) {
			return r.why
		}
	}
	return ""
}

// All returns all plumbings that are right, in an order that does not change.
func All() (all []Plumbing) {
	for _, value := range values {
		for _, renewal := range renewals {
			for _, stop := range append([]Stop{""}, stops...) {
				for _, release := range releases {
					for _, wake := range wakes {
						for _, retry := range retries {
							for _, taking := range takings {
								all = append(all, withTraits(Plumbing{Value: value, Renewal: renewal, Stop: stop, Release: release, Wake: wake, Retry: retry, Taking: taking})...)
							}
						}
					}
				}
			}
		}
	}
	return all
}

// withTraits returns the plumbings that are right with these parts.
func withTraits(p Plumbing) (right []Plumbing) {
	for _, p.Levels = range levels {
		for _, p.Servers = range counts {
			for traits := range 8 {
				p.Lost, p.Fenced, p.Extends = yesNo[traits&1], yesNo[traits>>1&1], yesNo[traits>>2&1]
				if p.Wrong() == "" {
					right = append(right, p)
				}
			}
		}
	}
	return right
}

// parts returns the choices of a plumbing as numbers. Choices of different dimensions have different numbers.
func (p Plumbing) parts() []int {
	traits := 0
	for i, has := range []bool{p.Lost, p.Fenced, p.Extends} {
		if has {
			traits |= 1 << i
		}
	}
	numbers := []int{
		slices.Index(values, p.Value), slices.Index(renewals, p.Renewal), slices.Index(stops, p.Stop) + 1, slices.Index(releases, p.Release), slices.Index(wakes, p.Wake),
		slices.Index(retries, p.Retry), slices.Index(levels, p.Levels), slices.Index(counts, p.Servers), traits & 1, traits >> 1 & 1, traits >> 2 & 1, slices.Index(takings, p.Taking),
	}
	for dimension := range numbers {
		numbers[dimension] += dimension * mostChoices
	}
	return numbers
}

const (
	mostChoices = 8
	allChoices  = 12 * mostChoices
)

// combinations returns a number for each set of so many of the parts.
func combinations(parts []int, size int) (sets []int) {
	if size == 0 {
		return []int{0}
	}
	for i, part := range parts {
		for _, rest := range combinations(parts[i+1:], size-1) {
			sets = append(sets, rest*allChoices+part)
		}
	}
	return sets
}

// Right returns right plumbings, so many that each combination of so many choices (1 to 3) that is right is in
// one of them.
func Right(size int) (right []Plumbing) {
	all := All()
	var sets [][]int // of each plumbing, those that no plumbing before has
	for _, p := range all {
		sets = append(sets, combinations(p.parts(), size))
	}
	met := map[int]bool{}
	// Plumbings with many new combinations come first, so that few are needed.
	for least := len(sets[0]); least > 0; least-- {
		for i, p := range all {
			if len(sets[i]) < least {
				continue
			}
			sets[i] = slices.DeleteFunc(sets[i], func(set int) bool { return met[set] })
			if len(sets[i]) < least {
				continue
			}
			for _, set := range sets[i] {
				met[set] = true
			}
			right = append(right, p)
		}
	}
	return right
}
