package strategy

import (
	"math"
	"strings"

	"lockstep/sim"
)

// PCT is the scheduler of Burckhardt, Kothari, Musuvathi and Nagarakatte, A Randomized
// Scheduler with Probabilistic Guarantees of Finding Bugs (ASPLOS 2010). Every actor has a
// random priority. At depth-1 decisions, which are drawn beforehand among the first
// estimate decisions, the actor that is about to go falls below all that had not fallen.
//
// In a world of sim.Orders the actors are the lines, the decisions are the
// choices, and the line of the highest priority goes. There the paper's theorem
// holds as it is: whatever goes wrong in all schedules that keep to some set of
// depth orderings (this before that) goes wrong in one run with at least the
// probability of PCTBound, for as many actors as there are lines and as many decisions as
// estimate says, if the run has no more choices than that. If a bug needs a loss, a fault
// or a lapse of time besides, the probability holds for runs that have these.
//
// In a world with latencies the actors are the processes (and replicas), the
// decisions are the latencies drawn, and a message takes the longer the lower its
// process stands: the shortest latency for the highest, the longest for the
// lowest, others in even steps between them. The bound then holds for fewer bugs. The
// orderings must be between messages of different processes. Each must come about
// whenever the process that has to wait stands lowest from that message on: its message
// must be under way together with those that have to overtake it, and the distance
// between neighbouring latencies, (max-min)/(actors-1), must be enough for them. There is
// no bound for a bug that needs more time than this range, or that depends on the order of
// two messages of one process, or on a latency in the middle.
//
// Everything else (ids, and the jitter that comes from them) is drawn at random
// from the seed.
type PCT struct {
	random   *sim.Seeded
	aware    bool            // of what depends on each other: see NewTaPCT
	falls    map[int]float64 // decision, from 1, to the priority to which it leads
	priority map[string]float64
	made     int
	among    []sim.Candidate
}

// NewPCT makes the chooser of a run for orderings of that depth, at least 1, in
// runs of about estimate decisions.
func NewPCT(seed uint64, depth, estimate int) *PCT {
	p := &PCT{random: sim.NewSeeded(seed), falls: map[int]float64{}, priority: map[string]float64{}}
	for i := 1; i < depth; i++ {
		// Of two at one decision the lower counts.
		at := 1 + int(p.random.Choose("pct/fall", uint64(max(estimate, 1))))
		if _, taken := p.falls[at]; !taken {
			p.falls[at] = float64(i - depth)
		}
	}
	return p
}

// PCTBound returns the least probability with which one run of PCT finds a bug that
// depends on that many orderings. PCT says for which bugs it holds.
func PCTBound(actors, decisions, depth int) float64 {
	return 1 / (float64(max(actors, 1)) * math.Pow(float64(max(decisions, 1)), float64(depth-1)))
}

// Actors returns the number of actors that the run had until now.
func (p *PCT) Actors() int { return len(p.priority) }

// Decisions returns the number of decisions that priorities made until now.
func (p *PCT) Decisions() int { return p.made }

// meet gives a new actor its priority, between 0 and 1, which is above all that fell.
func (p *PCT) meet(actor string) {
	if _, known := p.priority[actor]; !known {
		p.priority[actor] = float64(p.random.Choose("pct/"+actor, 1<<52)+1) / (1 << 52)
		if p.aware {
			p.decide(actor)
		}
	}
}

// Choose implements sim.Chooser.
func (p *PCT) Choose(stream string, n uint64) uint64 {
	kind, name, _ := strings.Cut(stream, "/")
	switch kind {
	case "order":
		if len(p.among) == int(n) {
			return uint64(p.highest())
		}
	case "entropy":
		p.meet(name) // all processes are known before the first message
	case "latency", "lag":
		actor, way, _ := strings.Cut(name, "/")
		if kind == "lag" {
			actor = "replica " + actor
		}
		p.meet(actor)
		if !p.aware {
			p.decide(actor)
		} else if kind == "lag" || arrives(way) {
			defer p.decide(actor)
		}
		return p.latency(actor, n)
	}
	return p.random.Choose(stream, n)
}

// decide counts a decision, at which the actor may fall.
func (p *PCT) decide(actor string) {
	p.made++
	if to, falls := p.falls[p.made]; falls {
		p.priority[actor] = to
	}
}

// latency returns the place of the actor among all actors; the highest has 0.
func (p *PCT) latency(actor string, n uint64) uint64 {
	above := 0
	for _, other := range p.priority {
		if other > p.priority[actor] {
			above++
		}
	}
	if above == 0 {
		return 0
	}
	return uint64(math.Round(float64(n-1) * float64(above) / float64(len(p.priority)-1)))
}

// Offer implements sim.Watcher.
func (p *PCT) Offer(_ int, among []sim.Candidate) bool {
	if p.among == nil {
		clear(p.priority) // of the processes: here lines are the actors
	}
	p.among = among
	for _, c := range among {
		p.meet(c.Line)
	}
	p.decide(among[p.highest()].Line)
	return true
}

func (p *PCT) highest() (best int) {
	for i, c := range p.among {
		if p.priority[c.Line] > p.priority[p.among[best].Line] {
			best = i
		}
	}
	return best
}

// Took implements sim.Watcher.
func (p *PCT) Took(sim.Effect) {}
