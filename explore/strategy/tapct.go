package strategy

// NewTaPCT makes a PCT that knows which steps commute, for a world with latencies. Its decisions
// are only those messages whose order can make a difference to another process. The idea is of
// Kulahcioglu Ozkan, Majumdar and Oraee, Trace Aware Random Testing for Distributed Systems
// (OOPSLA 2019): if priorities change only at racy events, the number of racy events stands in
// the bound in the place of the number of all events.
//
// Search says which steps commute. What is delivered to a process writes that process and
// nothing else, so it commutes with every step of another process and with every arrival at a
// server. What arrives at a server, a replica or a resource may depend on whatever else arrives
// there. So the decisions are the messages to a server, to and from a resource, and between
// the parts of a server; and the first appearance of each actor, before its first message. An
// actor falls after the message of a decision has left, so that all that it waits for or sends
// from then on is slow: the steps between two decisions commute with those of others, so
// it makes no difference which of them are slow, too. A message that is no decision, such as a reply,
// takes the time that the place of its process gives.
//
// The bound is PCTBound with these decisions, under the conditions that PCT has in a world with
// latencies. The message that has to wait must be one of them. (In the paper the actors are chains of
// events that are found as the run goes on. The same authors' Randomized Testing of Distributed Systems
// with Probabilistic Guarantees, OOPSLA 2018, has the bound 1/(w²·n^(depth-1)) for chains, where w is the
// largest number of events of which none must come before another. Here the actors are known beforehand.)
func NewTaPCT(seed uint64, depth, estimate int) *PCT {
	p := NewPCT(seed, depth, estimate)
	p.aware = true
	return p
}

// arrives reports whether a message that goes a way of a process arrives where messages of other
// processes arrive.
func arrives(way string) bool { return way == "request" || way == "resource" }
