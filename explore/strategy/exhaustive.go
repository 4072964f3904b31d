// Package strategy chooses schedules. TaPCT is the chooser of one run. Search plays all
// schedules of a small scenario. States returns the abstract states that a run reached, by
// which a campaign knows a run that came to something new. A random schedule needs no
// strategy: its chooser is sim.Seeded. The package draws no scenario and knows no campaign.
package strategy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Search plays all schedules of a small scenario.
//
// # What a schedule is
//
// The world is one of sim.Orders: everything under way is equally near, and a decision
// says what comes next. One schedule stands for all assignments of latencies below a
// millisecond under which things arrive in its order, so as far as the order goes, all
// latencies are covered. Beyond that, one message of a run may be lost (LoseOne), or late
// by one of Late. The decisions are
//
//   - order: which line is next. A line is one direction of a connection, the steps of
//     one thread, its visits to a resource, or one way between the server and a replica.
//     A line keeps its order.
//   - fate: whether the next message arrives, is lost or is late.
//
// These are no decisions, and are the same in every run: ids (they are random, and no lock
// may depend on them); the jitter of waits, which comes from the same numbers, in whole
// milliseconds; timers, leases and the faults of the scenario, which come at their time,
// when nothing else is left to come; and everything that is sent after all have left. A
// message that takes longer than a timer is a late one.
//
// # Which schedules are visited once
//
// A choice and its consequences at its instant (the client's code runs until it waits, the
// server answers) are one indivisible step. The effect of the step lists the objects of
// the world that it read and wrote. A delivery to a process, or a step of one of its
// threads, writes that process. An arrival at the server reads and writes the keys and
// channels that the command, and the commands of its script, were seen to name; a command
// of unknown effects writes the whole server. Where the order of writes matters, for a
// failover that loses the last of them or a WAIT that counts them, each write writes that
// order, too. An arrival at a stalled server writes the queue of requests that the server
// executes afterwards. Putting a message on a line writes the end of that line, so two
// that send to one line have an order; taking the first message from it does not. Near
// replicas (NearReplicas) have every write before the next choice, so a WAIT has the same
// answer whenever it comes, and writes need no order for its sake.
//
// Two steps depend on each other if they are of one line, if one sent the message that the
// other takes, if one writes an object that the other reads or writes, or if a judge can
// tell their order: a call and a return, or a change of a lock's state and either. (Two
// returns, or two calls, make no difference. Judges ask whether one operation was over
// before another began.) Two neighbouring steps that do not depend on each other lead, in
// either order, to the same state of every process, of the server and of every line,
// because neither reads what the other writes; and each has the same effect in both
// orders. Instants differ by nanoseconds, which no clock of the world shows. So schedules
// that differ in the order of such steps have the same outcome.
//
// The search plays one of them, by source sets and sleep sets (Abdulla, Aronis, Jonsson,
// Sagonas: Optimal Dynamic Partial Order Reduction, POPL 2014). After a run it looks for
// pairs of steps that depend on each other, with no step between them that forces their
// order, and tries the later one before the earlier one. Lines take the place of the
// processes of the paper. A line may have several fates, which does not matter: wherever a
// line is tried, each of its fates is. Losing a message depends, beside its line, only on
// losing another message, since only one may be lost. A line that has something to take
// keeps it until it is taken, which is the paper's condition on enabled steps.
//
// Time needs no place in this. It passes when no line has anything left, at the same point
// in every schedule of a class, and its consequences come before the next choice. So steps
// between which time passed cannot change places.
//
// Plain turns all of this off and plays every order. Tests compare both.
type Search struct {
	Scenario *scenarios.Scenario
	Lock     *subject.Subject
	// LoseOne reports whether any one message of a run may be lost, in either direction.
	LoseOne bool
	// Late lists the delays by which one message may be late instead.
	Late []time.Duration
	// NearReplicas makes the way between server and replicas no choice, which makes a
	// case with replicas small.
	NearReplicas bool
	// Plain visits all orders, even those that cannot make a difference.
	Plain bool
	// MaxRuns bounds the search; 0: no bound. MaxSteps bounds a run; 0: 5000 choices.
	MaxRuns, MaxSteps int
}

// Coverage says how far a search came.
type Coverage struct {
	// Schedules is the number of schedules that were played to their end and judged. No
	// two of them are the same.
	Schedules int `json:"schedules"`
	// Disturbed is the number of schedules in which a message was lost or late. How is the word for it.
	Disturbed int    `json:"disturbed"`
	How       string `json:"how,omitempty"`
	// NearReplicas reports whether the scenario has replicas, each of which had every write
	// before anything else came. No schedule has a replica that lags.
	NearReplicas bool `json:"near_replicas,omitempty"`
	// Pruned is the number of runs that were given up: all continuations had been played
	// elsewhere, in an order that makes no difference.
	Pruned int `json:"pruned"`
	// Cut is the number of runs that reached MaxSteps.
	Cut int `json:"cut"`
	// Open is the number of choices that were known and not made when MaxRuns was reached.
	// Each leads to at least one schedule.
	Open int `json:"open"`
	// Longest is the largest number of choices in a schedule.
	Longest int `json:"longest"`
	// Complete reports whether there is no other schedule.
	Complete bool `json:"complete"`
	// Diverged says where a run did not repeat the beginning of an earlier one: a defect of
	// Lockstep, or a lock that uses randomness of its own. It is "" if all runs did.
	Diverged string `json:"diverged,omitempty"`
}

// String returns the coverage in a sentence.
func (c Coverage) String() string {
	s := fmt.Sprintf("%d schedules", c.Schedules)
	if c.Complete {
		s = "covered all " + s
	}
	if c.NearReplicas {
		s += " with replicas that keep up"
	}
	if c.Disturbed > 0 {
		s += fmt.Sprintf(" (%d of them with one message %s)", c.Disturbed, c.How)
	}
	if c.Cut > 0 {
		s += fmt.Sprintf(" and %d more that were too long", c.Cut)
	}
	if c.Open > 0 {
		s += fmt.Sprintf(", not all: %d choices are open", c.Open)
	}
	if c.Diverged != "" {
		s += ", not all: " + c.Diverged
	}
	return s
}

// SmallCase is the smallest scenario worth covering: two clients take a lock
// and give it up once each.
func SmallCase(l *subject.Subject) string {
	var b strings.Builder
	fmt.Fprintf(&b, "lockstep: 1\nname: small\nabout: Two clients take the lock and give it up, once each.\nlocks: [%s]\n", l.Name)
	if l.Replicated {
		b.WriteString("server: {replicas: 1}\n")
	}
	b.WriteString("processes: {a: {}, b: {}}\nsteps:\n")
	for _, p := range []string{"a", "b"} {
		fmt.Fprintf(&b, "  %s/1:\n    - with_lock: {name: x, steps: []}\n", p)
	}
	return b.String()
}

// Orders returns the mode of the worlds of the search.
func (s *Search) Orders() *sim.Orders {
	return &sim.Orders{Lose: s.LoseOne, Late: s.Late, NearReplicas: s.NearReplicas}
}

func (s *Search) lossWords() string {
	switch {
	case len(s.Late) == 0:
		return "lost"
	case !s.LoseOne:
		return "late"
	}
	return "lost or late"
}

// Run plays all schedules. It calls each for every one, numbered from 1, until each
// returns false.
func (s *Search) Run(h *sim.Host, each func(n int, v play.Verdict) bool) Coverage {
	t := &tree{plain: s.Plain, maxSteps: s.MaxSteps}
	if t.maxSteps == 0 {
		t.maxSteps = 5000
	}
	cov := Coverage{How: s.lossWords(), NearReplicas: s.NearReplicas && s.Scenario.Server.Replicas > 0}
	for runs := 1; ; runs++ {
		t.begin()
		p := play.PlayIn(h, s.Scenario, s.Lock, t, s.Orders())
		cov.Longest = max(cov.Longest, t.at)
		goOn := true
		switch {
		case t.diverged != "":
			cov.Diverged = t.diverged
			return cov
		case t.tooLong:
			cov.Cut++
		case p.Stopped:
			cov.Pruned++
		default:
			cov.Schedules++
			if slices.ContainsFunc(p.Decisions["fate"], func(fate uint64) bool { return fate > 0 }) {
				cov.Disturbed++
			}
			goOn = each(cov.Schedules, play.Judge(h, s.Scenario, s.Lock, uint64(cov.Schedules), p))
		}
		t.races()
		if !goOn || s.MaxRuns > 0 && runs >= s.MaxRuns {
			cov.Open = t.open()
			cov.Complete = cov.Open == 0 && cov.Cut == 0
			return cov
		}
		if !t.advance() {
			cov.Complete = cov.Cut == 0
			return cov
		}
	}
}

// move is one way in which a choice can be made.
type move struct {
	line string
	nth  int
	fate int
}

// node is one choice in the present run.
type node struct {
	burst  int
	among  []sim.Candidate
	wanted map[string]bool // the lines to try here
	asleep map[move]sim.Effect
	done   map[move]sim.Effect // the moves that were tried here, and the present one
	move   move
}

func (n *node) effect() sim.Effect { return n.done[n.move] }

// awake returns the first move that is wanted and neither tried nor asleep.
func (n *node) awake() (move, bool) {
	for _, c := range n.among {
		if !n.wanted[c.Line] {
			continue
		}
		if m, ok := n.awakeOf(c); ok {
			return m, true
		}
	}
	return move{}, false
}

func (n *node) awakeOf(c sim.Candidate) (move, bool) {
	for fate := range c.Fates {
		m := move{c.Line, c.Nth, fate}
		if _, done := n.done[m]; done {
			continue
		}
		if _, asleep := n.asleep[m]; !asleep {
			return m, true
		}
	}
	return move{}, false
}

// tree is the state of the search: the choices of the run that began last. It is the
// chooser of the runs.
type tree struct {
	plain    bool
	maxSteps int
	path     []*node
	at       int // choices made in this run
	fresh    int // the index of the first choice in path whose move is new
	tooLong  bool
	diverged string
}

func (t *tree) begin() {
	t.at, t.tooLong = 0, false
	t.fresh = max(0, len(t.path)-1)
}

// Offer implements sim.Watcher.
func (t *tree) Offer(burst int, among []sim.Candidate) bool {
	if t.at == t.maxSteps {
		t.tooLong = true
		return false
	}
	if t.at < len(t.path) { // this choice repeats an earlier run
		n := t.path[t.at]
		if t.diverged == "" && !slices.Equal(n.among, among) {
			t.diverged = fmt.Sprintf("choice %d was among %v, and then among %v: the same decisions gave another run", t.at+1, n.among, among)
			return false
		}
		t.at++
		return true
	}
	n := &node{burst: burst, among: among, wanted: map[string]bool{}, asleep: t.sleep(burst), done: map[move]sim.Effect{}}
	for _, c := range among {
		if m, ok := n.awakeOf(c); ok && (t.plain || len(n.wanted) == 0) {
			if n.wanted[c.Line] = true; len(n.wanted) == 1 {
				n.move = m
			}
		}
	}
	if len(n.wanted) == 0 {
		return false
	}
	t.path = append(t.path, n)
	t.at++
	return true
}

// sleep returns the moves that need not be tried after the last choice: they were tried
// before it, and it does not depend on them.
func (t *tree) sleep(burst int) map[move]sim.Effect {
	if t.plain || len(t.path) == 0 || t.path[len(t.path)-1].burst != burst {
		return nil
	}
	last := t.path[len(t.path)-1]
	asleep := map[move]sim.Effect{}
	for _, tried := range []map[move]sim.Effect{last.asleep, last.done} {
		for m, e := range tried {
			if m.line != last.move.line && !conflict(e, last.effect()) {
				asleep[m] = e
			}
		}
	}
	return asleep
}

// Took implements sim.Watcher.
func (t *tree) Took(e sim.Effect) {
	n := t.path[t.at-1]
	n.done[n.move] = e
}

// Choose implements sim.Chooser.
func (t *tree) Choose(stream string, n uint64) uint64 {
	switch stream {
	case "order":
		now := t.path[t.at-1]
		return uint64(slices.IndexFunc(now.among, func(c sim.Candidate) bool { return c.Line == now.move.line }))
	case "fate":
		return uint64(t.path[t.at-1].move.fate)
	}
	return 0
}

// advance makes the next run differ from all runs before. It reports false if there is no
// such run.
func (t *tree) advance() bool {
	for len(t.path) > 0 {
		n := t.path[len(t.path)-1]
		if m, ok := n.awake(); ok {
			n.move = m
			return true
		}
		t.path = t.path[:len(t.path)-1]
	}
	return false
}

// open counts the moves that are known to be left.
func (t *tree) open() (left int) {
	for _, n := range t.path {
		for _, c := range n.among {
			for fate := range c.Fates {
				m := move{c.Line, c.Nth, fate}
				_, done := n.done[m]
				_, asleep := n.asleep[m]
				if n.wanted[c.Line] && !done && !asleep {
					left++
				}
			}
		}
	}
	return left
}

// races looks in the new part of the last run for choices that could have come in another order,
// and adds that order to those that are to be tried.
func (t *tree) races() {
	if t.plain {
		return
	}
	path := t.path[:t.at]
	for begin := 0; begin < len(path); {
		end := begin + 1
		for end < len(path) && path[end].burst == path[begin].burst {
			end++
		}
		if end > t.fresh {
			racesIn(path[begin:end], t.fresh-begin)
		}
		begin = end
	}
}

// racesIn does the work of races for one burst, whose choices from fresh on are new.
func racesIn(burst []*node, fresh int) {
	// before[j][i] says that i must come before j, direct that this is so because of the two
	// themselves, and sent that there would be no j without i.
	before := make([][]bool, len(burst))
	for j, b := range burst {
		before[j] = make([]bool, j)
		for i := j - 1; i >= 0; i-- {
			a := burst[i]
			if before[j][i] {
				continue
			}
			same := a.move.line == b.move.line
			sent := slices.Contains(a.effect().Sent, sim.Place{Line: b.move.line, Nth: b.move.nth})
			if !same && !sent && !conflict(a.effect(), b.effect()) {
				continue
			}
			// Nothing between them forces their order, or before[j][i] were set.
			if j >= fresh && !same && !sent {
				reverse(burst, before, i, j)
			}
			before[j][i] = true
			for k := range i {
				before[j][k] = before[j][k] || before[i][k]
			}
		}
	}
}

// reverse adds another move to try in place of i, after which j can come before i.
func reverse(burst []*node, before [][]bool, i, j int) {
	n := burst[i]
	// rest has the steps between i and j that do not need i, and then j.
	var rest []int
	for k := i + 1; k < j; k++ {
		if !before[k][i] {
			rest = append(rest, k)
		}
	}
	rest = append(rest, j)
	var firsts []string // the lines with which rest can begin
	for at, k := range rest {
		if slices.ContainsFunc(rest[:at], func(x int) bool { return before[k][x] }) {
			continue
		}
		if _, asleep := n.asleep[burst[k].move]; asleep || n.wanted[burst[k].move.line] {
			return
		}
		firsts = append(firsts, burst[k].move.line)
	}
	n.wanted[firsts[len(firsts)-1]] = true
}

// conflict reports whether the order of two steps can make a difference.
func conflict(a, b sim.Effect) bool {
	return observable(a, b) || observable(b, a) || touch(a, b)
}

// touch reports whether one of two steps wrote an object that the other read or wrote.
func touch(a, b sim.Effect) bool {
	return meets(a.Writes, b.Writes) || meets(a.Writes, b.Reads) || meets(b.Writes, a.Reads)
}

// observable reports whether a judge could tell that b came after a.
func observable(a, b sim.Effect) bool {
	return a.Returns && b.Calls
}

func meets(a, b map[string]bool) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for x := range a {
		if b[x] {
			return true
		}
	}
	return false
}
