package explore

import (
	"math"
	"strings"

	"lockstep/sim"
)

// PCT is the chooser of Burckhardt, Kothari, Musuvathi and Nagarakatte, A
// Randomized Scheduler with Probabilistic Guarantees of Finding Bugs (ASPLOS
// 2010). Every actor has a random priority; at depth-1 decisions, drawn
// beforehand among the first estimate ones, the actor that is about to go falls
// below all that had not fallen.
//
// In a world of sim.Orders the actors are the lines, the decisions are the
// choices, and the line of the highest priority goes. There the paper's theorem
// holds as it is: whatever goes wrong in all schedules that keep to some set of
// depth orderings (this before that) goes wrong in one run with at least the
// probability of PCTBound, for as many actors as there are lines and as many
// decisions as estimate says, when the run has no more choices than that. It
// says nothing of what takes a loss, a fault or a lapse of time to go wrong: of
// these the probability is given these.
//
// In a world with latencies the actors are the processes (and replicas), the
// decisions are the latencies drawn, and a message takes the longer the lower its
// process stands: the shortest latency for the highest, the longest for the
// lowest, others in even steps between them. The same bound holds of
// less: the orderings must be between messages of different processes, each must
// come about whenever the process that is to wait stands lowest from the message
// in question on, and so its message must be under way together with what is to
// overtake it, and the distance between the latencies of two that stand next to
// each other, (max-min)/(actors-1), must be more than all that needs. What takes
// longer than this range, or depends on the order of two messages of one
// process, or on a latency in the middle, has no bound at all.
//
// Everything else (ids, and the jitter that comes from them) is drawn at random
// from the seed.
type PCT struct {
	random   *sim.Seeded
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

// PCTBound is the least probability with which one run of PCT finds what
// depends on that many orderings; see PCT for what it is a bound of.
func PCTBound(actors, decisions, depth int) float64 {
	return 1 / (float64(max(actors, 1)) * math.Pow(float64(max(decisions, 1)), float64(depth-1)))
}

// Actors is how many actors the run had until now.
func (p *PCT) Actors() int { return len(p.priority) }

// Decisions is how many decisions the run had until now that a priority made.
func (p *PCT) Decisions() int { return p.made }

// meet gives an actor that is new its priority: between 0 and 1, above all
// that fell.
func (p *PCT) meet(actor string) {
	if _, known := p.priority[actor]; !known {
		p.priority[actor] = float64(p.random.Choose("pct/"+actor, 1<<52)+1) / (1 << 52)
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
		actor, _, _ := strings.Cut(name, "/")
		if kind == "lag" {
			actor = "replica " + actor
		}
		return p.latency(actor, n)
	}
	return p.random.Choose(stream, n)
}

// latency is the place of the actor among all, the highest having 0.
func (p *PCT) latency(actor string, n uint64) uint64 {
	p.meet(actor)
	p.made++
	if to, falls := p.falls[p.made]; falls {
		p.priority[actor] = to
	}
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
	p.among = among
	if p.made == 0 {
		clear(p.priority) // of the processes: here lines are the actors
	}
	for _, c := range among {
		p.meet(c.Line)
	}
	p.made++
	if to, falls := p.falls[p.made]; falls {
		p.priority[among[p.highest()].Line] = to
	}
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
