package strategy

import (
	"math"
	"strings"

	"lockstep/sim"
)

// TaPCT is a chooser after Burckhardt, Kothari, Musuvathi and Nagarakatte, A Randomized
// Scheduler with Probabilistic Guarantees of Finding Bugs (ASPLOS 2010), that knows which steps
// commute. Every actor, which is a process or a replica, has a random priority. At depth-1
// decisions, which are drawn beforehand among the first estimate decisions, an actor falls below all
// actors that have not fallen. The lower a process stands, the longer its messages take: the highest
// has the shortest latency, the lowest the longest, and the others are in even steps between them.
// Everything else (ids, and the jitter that comes from them) is drawn at random from the seed.
//
// # Decisions
//
// That priorities need to change only at racy events is the idea of Kulahcioglu Ozkan, Majumdar and
// Oraee, Trace Aware Random Testing for Distributed Systems (OOPSLA 2019): the number of racy events
// stands in the bound in the place of the number of all events. Search says which steps commute. A
// delivery to a process writes that process and nothing else, so it commutes with every step of
// another process and with every arrival at a server. An arrival at a server, a replica or a resource
// may depend on every other arrival there. So the decisions are the messages to a server, to and from
// a resource, and between the parts of a server; and the first appearance of each actor, before its
// first message. An actor falls when the message of the decision has left, so that all that it waits
// for or sends from then on is slow. The steps between two decisions commute with those of others, so
// it makes no difference which of them are slow, too.
//
// # The bound
//
// Suppose that a bug shows in all schedules that keep to some set of depth orderings (this message
// before that one). Then one run shows it with at least the probability of TaPCTBound, for the number
// of actors and estimate decisions, if the run has no more decisions than that. These
// are the conditions. The orderings must be between messages of different processes that are
// decisions. Each must come about whenever the process that has to wait stands lowest from the
// message before on: its message must be under way together with those that have to overtake it, and
// the distance between neighbouring latencies, (max-min)/(actors-1), must be enough for them. There
// is no bound for a bug that needs more time than this range, or that depends on the order of
// two messages of one process, or on a latency in the middle. If a bug needs a loss, a fault or a
// lapse of time besides, the probability holds for runs that have these.
//
// (In the paper of 2019 the actors are chains of events, which are found as the run goes on.
// Kulahcioglu Ozkan and others, Randomized Testing of Distributed Systems with Probabilistic Guarantees,
// OOPSLA 2018, have the bound 1/(w²·n^(depth-1)) for chains of n events, of which at most w are
// without an order. The processes of a world are known beforehand.)
type TaPCT struct {
	random   *sim.Seeded
	falls    map[int]float64 // by the number of the decision, from 1: the priority to which the actor falls
	priority map[string]float64
	made     int
}

// NewTaPCT makes the chooser of a run for orderings of that depth, at least 1, in runs of about
// estimate decisions.
func NewTaPCT(seed uint64, depth, estimate int) *TaPCT {
	t := &TaPCT{random: sim.NewSeeded(seed), falls: map[int]float64{}, priority: map[string]float64{}}
	for i := 1; i < depth; i++ {
		// If two falls are at one decision, the lower priority counts.
		at := 1 + int(t.random.Choose("pct/fall", uint64(max(estimate, 1))))
		if _, taken := t.falls[at]; !taken {
			t.falls[at] = float64(i - depth)
		}
	}
	return t
}

// TaPCTBound returns the least probability with which one run of TaPCT finds a bug that depends on
// depth orderings. The comment of TaPCT says for which bugs it holds.
func TaPCTBound(actors, decisions, depth int) float64 {
	return 1 / (float64(max(actors, 1)) * math.Pow(float64(max(decisions, 1)), float64(depth-1)))
}

// Actors returns the number of actors that the run had until now.
func (t *TaPCT) Actors() int { return len(t.priority) }

// Decisions returns the number of decisions until now.
func (t *TaPCT) Decisions() int { return t.made }

// Choose implements sim.Chooser.
func (t *TaPCT) Choose(stream string, n uint64) uint64 {
	kind, name, _ := strings.Cut(stream, "/")
	switch kind {
	case "entropy":
		t.meet(name) // all processes are known before the first message
	case "latency":
		actor, way, _ := strings.Cut(name, "/")
		return t.latency(actor, n, way == "request" || way == "resource")
	case "lag":
		replica, _, _ := strings.Cut(name, "/")
		return t.latency("replica "+replica, n, true)
	}
	return t.random.Choose(stream, n)
}

// meet gives a new actor its priority, between 0 and 1, which is above all that fell. It may fall
// at once.
func (t *TaPCT) meet(actor string) {
	if _, known := t.priority[actor]; !known {
		t.priority[actor] = float64(t.random.Choose("pct/"+actor, 1<<52)+1) / (1 << 52)
		t.decide(actor)
	}
}

// decide counts a decision, after which the actor may fall.
func (t *TaPCT) decide(actor string) {
	t.made++
	if to, falls := t.falls[t.made]; falls {
		t.priority[actor] = to
	}
}

// latency returns the place of the actor among all actors, of n; the highest has 0. decision says
// that the message is a decision.
func (t *TaPCT) latency(actor string, n uint64, decision bool) uint64 {
	t.meet(actor)
	above := 0
	for _, other := range t.priority {
		if other > t.priority[actor] {
			above++
		}
	}
	others := len(t.priority) - 1
	if decision {
		t.decide(actor)
	}
	if above == 0 {
		return 0
	}
	return uint64(math.Round(float64(n-1) * float64(above) / float64(others)))
}
