package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Search plays all schedules of a small scenario.
//
// # What a schedule is
//
// The world is one of sim.Orders: whatever is under way is equally near, and a
// decision says which comes next. One schedule stands for all assignments of
// latencies below a millisecond under which things arrive in its order, so the
// set of latencies is not small but whole, as far as the order goes; what a
// message may do besides is taken from a small set: it may be lost (LoseOne) or
// late by one of Late, one message of a run. The decisions are
//
//   - order: which line is next. A line is one direction of a connection, the
//     steps of one thread, its visits to a resource, one way between the server
//     and a replica. What is on a line keeps its order.
//   - fate: whether the message that is next arrives, is lost or is late.
//
// No decision, and the same in every run, are: ids (they are random, and no lock
// may depend on them); the jitter of waits, which comes from the same numbers,
// in whole milliseconds; timers, leases and the faults of the scenario, which
// come at their time, when nothing else is left to come; and what is sent after
// all left. A message that takes longer than a timer is one that is late.
//
// # Which schedules are visited once
//
// A choice, with all that comes of it at its instant (the client's code runs
// until it waits, the server answers), is one indivisible step: its effect says
// which objects of the world it read and wrote. A delivery to a process, or a
// step of one of its threads, writes that process. What arrives at the server
// reads and writes the keys and channels that the command and the commands of
// its script name, as they were seen to be executed; a command that is not known
// to touch less writes all of the server. Where the order of writes is kept, for
// a failover that loses the last of them or for a WAIT that counts them, each
// writes that too; and what meets a stalled server writes the queue of what will
// be executed at its end. Putting a message on a line writes the end of that
// line, so that two that send to one line have an order; taking the first from
// it does not. Replicas that are near (NearReplicas) have every write before the
// next choice, so that a WAIT is answered alike whenever it comes, and writes
// need no order for its sake.
//
// Two steps depend on each other when they are of one line, when one sent what
// the other takes, when one writes an object that the other reads or writes, and
// when they hold what a judge can tell apart in the other order: a call and a
// return, or a change of a lock's state and either. (Two returns, or two calls,
// make no difference: what is judged is whether one operation was over before
// the other began.) Two steps that come one after the other and do not depend
// on each other lead, in either order, to the same state of every process, of
// the server and of every line, because neither reads what the other writes; and
// each has the same effect as before. Instants differ by nanoseconds, below what
// any clock of the world shows. So schedules that differ in the order of such
// steps have the same outcome.
//
// Of these the search plays one, by the method of source sets and sleep sets
// (Abdulla, Aronis, Jonsson, Sagonas: Optimal Dynamic Partial Order Reduction,
// POPL 2014): after a run it looks for pairs of steps that depend on each other
// and had no other between them that forces their order, and has the later one
// tried before the earlier one. A line takes the place of their process. That it
// may have several fates does not matter: wherever a line is tried, each of its
// fates is. Losing a message depends, beside its line, only on losing another,
// for only one may be. A line that has something to take keeps it until it is
// taken, and nobody takes it away: their condition on what is enabled.
//
// Time needs no place in this. It passes when no line has anything left, in
// every schedule of a class at the same point, and what it brings comes before
// the next choice. So steps between which time passed cannot change places.
//
// Plain leaves all of this out and plays every order. Tests compare both.
type Search struct {
	Scenario *scenarios.Scenario
	Lock     *subject.Subject
	// LoseOne: one message of a run may be lost, any, in either direction.
	LoseOne bool
	// Late: or it may be late by one of these.
	Late []time.Duration
	// NearReplicas leaves the way between server and replicas out of the choices,
	// which makes a case with replicas small.
	NearReplicas bool
	// Plain visits all orders, those too that cannot make a difference.
	Plain bool
	// MaxRuns ends the search, MaxSteps a run; 0: no bound, and 5000 choices.
	MaxRuns, MaxSteps int
}

// Coverage is how far a search came.
type Coverage struct {
	// Schedules were played to their end and judged. They differ pairwise.
	Schedules int `json:"schedules"`
	// Disturbed are those of them in which a message was lost or late; How is the
	// word for it.
	Disturbed int    `json:"disturbed"`
	How       string `json:"how,omitempty"`
	// NearReplicas: the scenario has replicas, which had every write before anything
	// else came; those that lag are in no schedule.
	NearReplicas bool `json:"near_replicas,omitempty"`
	// Pruned were left on the way: all that could come next had been played
	// elsewhere in an order that makes no difference.
	Pruned int `json:"pruned"`
	// Cut reached MaxSteps.
	Cut int `json:"cut"`
	// Open is how many choices were known and not made when MaxRuns was reached;
	// each leads to one schedule at least.
	Open int `json:"open"`
	// Longest is the most choices that a schedule had.
	Longest int `json:"longest"`
	// Complete: there is no other schedule.
	Complete bool `json:"complete"`
	// Diverged says where a run did not repeat what one before it had begun; a
	// defect of ours, or of a lock with chance of its own.
	Diverged string `json:"diverged,omitempty"`
}

// String says it in a sentence.
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

// Orders is the mode of the worlds of the search.
func (s *Search) Orders() *sim.Orders {
	return &sim.Orders{Lose: s.LoseOne, Late: s.Late, NearReplicas: s.NearReplicas}
}

func (s *Search) how() string {
	switch {
	case len(s.Late) == 0:
		return "lost"
	case !s.LoseOne:
		return "late"
	}
	return "lost or late"
}

// Run plays all schedules and gives each to each, numbered from 1, until it
// returns false.
func (s *Search) Run(h *sim.Host, each func(n int, v play.Verdict) bool) Coverage {
	t := &tree{plain: s.Plain, maxSteps: s.MaxSteps}
	if t.maxSteps == 0 {
		t.maxSteps = 5000
	}
	cov := Coverage{How: s.how(), NearReplicas: s.NearReplicas && s.Scenario.Server.Replicas > 0}
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

// node is a choice of the present run.
type node struct {
	burst  int
	among  []sim.Candidate
	wanted map[string]bool // lines to be tried here
	asleep map[move]sim.Effect
	done   map[move]sim.Effect // tried here, the present one too
	move   move
}

func (n *node) effect() sim.Effect { return n.done[n.move] }

// awake gives the first move that is wanted and neither tried nor asleep.
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

// tree is the search's place: the choices of the run that was begun last. It is
// the chooser of the runs.
type tree struct {
	plain    bool
	maxSteps int
	path     []*node
	at       int // choices made in this run
	fresh    int // the first of path whose move is new
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
	if t.at < len(t.path) { // what was played before
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

// sleep gives the moves that need no trying after the last choice: they were
// tried before it, and it does not depend on them.
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

// advance makes the next run begin otherwise than those before; false: there is
// none.
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

// races looks at what is new in the run that was just played for choices that
// could have come in another order, and has that order tried.
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

// racesIn is races for one burst, whose choices from fresh on are new.
func racesIn(burst []*node, fresh int) {
	// before[j][i]: i must come before j. direct: because of the two themselves;
	// sent: because there would be no j without i.
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

// reverse has tried, in place of i, something with which j comes before i.
func reverse(burst []*node, before [][]bool, i, j int) {
	n := burst[i]
	// What came between and does not need i, then j.
	var rest []int
	for k := i + 1; k < j; k++ {
		if !before[k][i] {
			rest = append(rest, k)
		}
	}
	rest = append(rest, j)
	var firsts []string // lines with which that can begin
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

// conflict: the order of two steps can make a difference.
func conflict(a, b sim.Effect) bool {
	return told(a, b) || told(b, a) || meets(a.Writes, b.Writes) || meets(a.Writes, b.Reads) || meets(b.Writes, a.Reads)
}

// told: a judge could tell that b came after a.
func told(a, b sim.Effect) bool {
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

// Outcome is what a schedule came to, without instants and numbers: the verdict,
// what each thread's operations answered, which was over before which began,
// what the server held in turn, and what was left at the end. Schedules that
// differ only in what commutes have the same.
func Outcome(v play.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", v.Word)
	var findings []string
	for _, f := range v.Findings {
		findings = append(findings, fmt.Sprintf("%s %s %s", f.Judge, f.Verdict, f.Class))
	}
	slices.Sort(findings)
	fmt.Fprintf(&b, "%s\n", strings.Join(slices.Compact(findings), ", "))
	events := v.Played.Record.Events
	number := map[int]string{} // operation -> thread and number within it
	count := map[string]int{}
	ended := []string{}
	var lines, left []string
	states := map[string][]string{}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case model.KindInvoke:
			who := e.ThreadName()
			count[who]++
			number[e.Op] = fmt.Sprintf("%s.%d", who, count[who])
			after := slices.Clone(ended)
			slices.Sort(after)
			lines = append(lines, fmt.Sprintf("%s %s after %v", number[e.Op], e.Action, after))
		case model.KindReturn:
			ended = append(ended, number[e.Op])
			lines = append(lines, fmt.Sprintf("%s: %s", number[e.Op], e.Outcome))
		case model.KindState:
			states[e.Lock] = append(states[e.Lock], fmt.Sprintf("%q %d %v", e.State.Owner, e.State.Count, e.State.Queue))
		case model.KindLeft:
			left = append(left, e.Key+e.Channel+e.Text)
		}
	}
	slices.Sort(lines)
	fmt.Fprintf(&b, "%s\n%q\nleft %v\n", strings.Join(lines, "\n"), states, left)
	return b.String()
}
