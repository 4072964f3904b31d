// Package shrink makes failures small. Shrink plays smaller scenarios with fewer decisions, and
// returns the smallest failure that it finds that is still the same. WithoutFaults only removes the
// faults that a failure does not need.
package shrink

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"lockstep/explore/failure"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Phases are the parts of the work of shrinking one failure, in order.
type Phases []Phase

// Runs returns the number of runs that the phases took.
func (p Phases) Runs() (runs int) {
	for _, one := range p {
		runs += one.Runs
	}
	return runs
}

// Phase is one part of the work of shrinking.
type Phase struct {
	Name string
	Runs int
	Did  string // in a few words
}

// Shrink makes a failure smaller while the same judge is broken, as the same class, for the same
// cause, at the same kind of operation, and without a fault of another kind. A smaller failure of
// another group would be another bug. Budget bounds the number of runs; a long run counts once more
// for every longRun steps. Once expired reports true, Shrink returns the smallest failure so far;
// if expired is nil, its time never ends. The result is a scenario file that shows the failure by
// its seeds (Seeded, with the text in Verdict.Scenario.Text). If no seed shows it, the result is
// the run with its decisions, which must be recorded. A failure that does not occur again is
// returned as it was.
//
// Of two failures, the first difference in this list says which is smaller: a scenario
// file shows it; fewer processes, threads, steps, faults; fewer rules that meet more than
// one message; a smaller range of latencies; fewer events (failure.Size); fewer fields;
// rounder, then smaller numbers; fewer, then smaller decisions; a smaller seed; less text.
//
// A want of a step, or the end value of a resource, rests on the calls and times that
// its author wrote. If one of them is broken, these calls and times stay.
func Shrink(h *sim.Host, f failure.Failure, budget int, expired func() bool) (failure.Failure, Phases) {
	s := newShrinker(h, f, budget-lastRuns)
	s.expired = expired
	s.limit()
	return s.shrink()
}

// WithoutFaults removes faults from a failure one by one, as long as it stays the same. An
// interrupt and a skewed wall clock count as faults. It returns the failure with the faults that
// remain, and the number of runs that it took. Several failures of one run may share played, which
// caches the runs with faults left out. It may be nil for a single failure.
func WithoutFaults(h *sim.Host, f failure.Failure, played map[string]play.Verdict) (failure.Failure, int) {
	s := newShrinker(h, f, math.MaxInt)
	s.played = played
	if s.start() {
		s.leaveOut()
	}
	return failure.Failure{Verdict: s.best.verdict, Finding: s.best.finding, Seeded: s.best.decisions == nil}, s.runs[phaseAgain]
}

// longRun is a number of steps that most runs do not reach.
const longRun = 2000

// LongestRun is the number of steps of the longest run that Shrink can make small in a worker
// of a campaign, whose memory is limited. A step of a record takes some 1.5 KB, and two records
// are kept beside the one that is played.
const LongestRun = 40_000

// limit bounds the runs that are played. A smaller scenario may have a longer run than the
// failure, and even one that never ends.
func (s *shrinker) limit() {
	h := *s.host
	h.MostSteps = mostSteps(s.from.Verdict.Played.Steps)
	s.host = &h
}

// mostSteps bounds the steps of the runs that are played to make a failure small, whose own run has so
// many. A run that is four times as long is not smaller for its reader, whatever its scenario.
func mostSteps(steps int) int {
	return min(max(longRun, 4*steps), max(LongestRun, 2*steps))
}

// tooLong reports whether a run was ended early, so that it cannot be played again as it was.
func (s *shrinker) tooLong(p play.Played) bool {
	return s.host.MostSteps > 0 && p.Steps >= s.host.MostSteps
}

// The phases.
const (
	phaseAgain     = "again"
	phaseSeeds     = "seeds"
	phaseProcesses = "processes"
	phaseThreads   = "threads"
	phaseSteps     = "steps"
	phaseFaults    = "faults"
	phaseFields    = "fields"
	phaseTimes     = "times"
	phaseDecisions = "decisions"
	phaseFile      = "file"
)

var phaseNames = []string{
	phaseAgain, phaseSeeds, phaseProcesses, phaseThreads, phaseSteps, phaseFaults, phaseFields, phaseTimes, phaseDecisions, phaseFile,
}

const (
	// playedMost bounds the steps of the runs that are cached for other shrinkers.
	playedMost = 40_000
	// seedsTried bounds the seeds that are tried in place of recorded decisions.
	seedsTried = 10
	// seedsShown bounds the seeds of a file that shows the failure.
	seedsShown = 5
	// lastRuns are kept for playing the file itself.
	lastRuns = seedsShown + 1
)

func (s *shrinker) shrink() (failure.Failure, Phases) {
	if !s.begin() {
		return s.from, s.report()
	}
	first := s.best.measure
	// Faults go first: otherwise a failure that needs no fault could turn into one that does.
	s.in(phaseFaults, s.leaveOut)
	for s.left > 0 {
		before := s.best.measure
		s.round()
		if slices.Equal(before, s.best.measure) {
			break
		}
	}
	small := s.finish()
	s.tell(first)
	return small, s.report()
}

// shrinker makes one failure smaller.
type shrinker struct {
	host *sim.Host
	from failure.Failure
	op   string // the kind of operation
	// origin is the origin of the failure that is made small.
	origin failure.Origin
	// kinds are the kinds of the faults in the file.
	kinds []string
	// claim reports whether a want of the author is broken.
	claim bool
	// any reports whether a candidate that fails is kept even if it is larger.
	any  bool
	left int
	// expired reports whether the time for shrinking is over; if nil, there is no limit.
	expired func() bool
	seeds   uint64 // how many seeds are tried
	best    *candidate
	tried   map[string]bool
	// played caches the first runs of seeds for other shrinkers; nil if there are none.
	played map[string]play.Verdict
	phase  string
	runs   map[string]int
	did    map[string]string
	times  int // the amounts that were changed
}

// candidate is a scenario that shows the failure.
type candidate struct {
	tree      *yaml.Node
	seed      uint64
	decisions sim.Decisions // nil: the decisions of the seed
	verdict   play.Verdict
	finding   judges.Finding
	measure   []int64
}

func newShrinker(h *sim.Host, f failure.Failure, budget int) *shrinker {
	origin, _ := failure.OriginOf(failure.NewNamer(h, f.Verdict), f.Finding)
	return &shrinker{
		host: h, from: f, origin: origin, op: failure.OpOf(f.Verdict, f.Finding), kinds: failure.FaultsStated(f.Verdict.Scenario), claim: f.Finding.Judge == model.JudgeWant,
		left: budget, seeds: seedsTried, tried: map[string]bool{}, phase: phaseAgain, runs: map[string]int{}, did: map[string]string{},
	}
}

// load parses a scenario that applies to the lock.
func load(file, text string, l *subject.Subject) (*scenarios.Scenario, error) {
	sc, err := scenarios.Parse(file, []byte(text), scenarios.AnyLock)
	if err != nil {
		return nil, err
	}
	return sc, play.Applies(sc, l)
}

// bare returns the tree of the failure's scenario without its expectations and its story.
func (s *shrinker) bare() (*yaml.Node, error) {
	tree, err := document(s.from.Verdict.Scenario.Text)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"about", "source", "expect", "reach", "seeds"} {
		remove(tree, key)
	}
	set(tree, "locks", sequence(s.from.Verdict.Lock.Name))
	tidy(tree)
	return tree, nil
}

// decided returns the decisions of the failure; nil if its seed makes them.
func (s *shrinker) decided() sim.Decisions {
	if s.from.Seeded {
		return nil
	}
	return s.from.Verdict.Played.Decisions
}

// begin plays the bare scenario of the failure. It reports whether the bare scenario fails, too.
func (s *shrinker) begin() bool {
	tree, err := s.bare()
	return err == nil && s.consider(tree, s.from.Verdict.Seed, s.decided())
}

// start makes the failure, as it was played, the best candidate.
func (s *shrinker) start() bool {
	tree, err := s.bare()
	s.best = &candidate{tree: tree, seed: s.from.Verdict.Seed, decisions: s.decided(), verdict: s.from.Verdict, finding: s.from.Finding}
	if err != nil {
		return false
	}
	s.tried[keyOf(s.best.seed, s.best.decisions, source(tree))] = true
	return true
}

// leaveOut removes as many faults as it can.
func (s *shrinker) leaveOut() {
	s.any = true
	s.thin(needCuts)
	s.any = false
	s.kinds = failure.FaultsStated(s.best.verdict.Scenario)
}

// round tries once to make each part smaller.
func (s *shrinker) round() {
	s.in(phaseSeeds, s.sayable)
	s.in(phaseProcesses, func() {
		if !s.claim && !s.ends() {
			s.thin(processCuts)
		}
	})
	s.in(phaseThreads, func() {
		if !s.claim && !s.ends() {
			s.thin(threadCuts)
		}
	})
	s.in(phaseSteps, func() {
		// Wants go first: otherwise a failure that needs no want could turn into one that does.
		s.thin(claimCuts)
		s.thin(wishCuts)
		s.claim = s.claim || s.ends()
		if !s.claim {
			s.thin(stepCuts)
			s.each(unwrappings)
		}
	})
	s.in(phaseFaults, func() {
		s.thin(faultCuts)
		s.each(narrowings)
	})
	s.in(phaseFields, func() {
		if !s.claim {
			s.thin(optionCuts)
		}
	})
	s.in(phaseTimes, func() {
		if !s.claim {
			s.amounts()
		}
	})
	s.in(phaseSeeds, s.sayable)
	s.in(phaseDecisions, func() {
		if s.best.decisions == nil {
			s.seed()
		} else {
			s.decisions()
		}
	})
}

func (s *shrinker) in(phase string, work func()) {
	s.phase = phase
	work()
}

// ends reports whether the failure is about the end value of a resource.
func (s *shrinker) ends() bool {
	return s.from.Finding.Judge == model.JudgeWorkload && slices.ContainsFunc(s.best.verdict.Scenario.Resources, func(r scenarios.Resource) bool { return r.End != nil })
}

// consider plays a scenario that may be smaller than the best one. It keeps the scenario
// if it is smaller and still fails.
func (s *shrinker) consider(tree *yaml.Node, seed uint64, decisions sim.Decisions) bool {
	text := source(tree)
	key := keyOf(seed, decisions, text)
	if s.left <= 0 || s.tried[key] {
		return false
	}
	s.tried[key] = true
	sc, err := load(s.from.Verdict.Scenario.File, text, s.from.Verdict.Lock)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(failure.FaultsStated(sc), func(k string) bool { return !slices.Contains(s.kinds, k) }) {
		return false
	}
	c := &candidate{tree: tree, seed: seed, decisions: decisions}
	static := shape(sc, decisions != nil)
	if s.best != nil && !s.any && slices.Compare(static, s.best.measure[:len(static)]) > 0 {
		return false
	}
	var known bool
	if c.verdict, known = s.played[key]; !known {
		s.run(c, sc)
		if s.played != nil && decisions == nil && s.hasRoom(c.verdict) {
			s.played[key] = c.verdict
		}
	}
	if !s.shows(c) {
		return false
	}
	c.measure = append(static, int64(failure.SizeTo(c.verdict, c.finding)))
	c.measure = append(c.measure, details(c, text)...)
	if s.best != nil && !s.any && slices.Compare(c.measure, s.best.measure) >= 0 {
		return false
	}
	s.best = c
	return true
}

// hasRoom reports whether the run fits into the cache of played runs.
func (s *shrinker) hasRoom(v play.Verdict) bool {
	steps := v.Played.Steps
	for _, other := range s.played {
		steps += other.Played.Steps
	}
	return steps <= playedMost
}

// keyOf returns a key that no other candidate has.
func keyOf(seed uint64, d sim.Decisions, text string) string {
	return fmt.Sprint(seed, decisionsKey(d), text)
}

func decisionsKey(d sim.Decisions) uint64 {
	if d == nil {
		return 0
	}
	h := fnv.New64a()
	for _, stream := range slices.Sorted(maps.Keys(d)) {
		_, _ = fmt.Fprint(h, stream, d[stream])
	}
	return h.Sum64()
}

// play runs a candidate and looks for the failure in it.
func (s *shrinker) play(c *candidate, sc *scenarios.Scenario) bool {
	s.run(c, sc)
	return s.shows(c)
}

// run plays a candidate. It judges the run if it may show the failure.
func (s *shrinker) run(c *candidate, sc *scenarios.Scenario) {
	s.left--
	s.runs[s.phase]++
	lock := s.from.Verdict.Lock
	var chooser sim.Chooser = sim.NewSeeded(c.seed)
	switch {
	case c.decisions != nil && s.phase == phaseDecisions:
		chooser = sim.NewReplayer(c.decisions)
	case c.decisions != nil:
		chooser = sim.NewLenientReplayer(c.decisions)
	}
	var orders *sim.Orders
	strategy := ""
	if c.decisions != nil { // in the mode in which they were drawn; a seed draws latencies
		orders, strategy = s.from.Verdict.Played.Orders, s.from.Verdict.Played.Strategy
	}
	p := play.PlayIn(s.host, sc, lock, chooser, orders)
	p.Strategy = strategy
	c.verdict = play.Verdict{Scenario: sc, Lock: lock, Seed: c.seed, Played: p}
	// Other shrinkers ask a run that they share for other failures.
	if !s.tooLong(p) && (s.played != nil || play.Breaks(sc, p, s.from.Finding.Judge)) {
		c.verdict = play.Judge(s.host, sc, lock, c.seed, p)
	}
	s.left -= p.Steps / longRun
	if s.expired != nil && s.expired() {
		s.left = 0
	}
	if c.decisions != nil {
		c.decisions = p.Decisions
	}
}

// shows looks for the failure in a candidate that was played. The verdict of a run that was not judged
// has no findings.
func (s *shrinker) shows(c *candidate) bool {
	// A run that shows a bug and a limit stands for the bug: a smaller run may show the
	// limit alone.
	if word := c.verdict.Word; s.best != nil && word != s.best.verdict.Word && word != play.Word(s.from.Finding.Class) {
		return false
	}
	var ok bool
	c.finding, ok = s.same(c.verdict)
	return ok
}

// same looks in a run for a finding of the same judge and class, at the same kind of
// operation, for the same cause.
func (s *shrinker) same(v play.Verdict) (judges.Finding, bool) {
	f := s.from.Finding
	var n *known.Namer
	for _, g := range v.Findings {
		if g.Verdict != judges.Broken || g.Judge != f.Judge || g.Class != f.Class || failure.OpOf(v, g) != s.op ||
			g.Judge == model.JudgeWant && !sameClaim(f, g) {
			continue
		}
		if n == nil {
			n = failure.NewNamer(s.host, v)
		}
		if origin, _ := failure.OriginOf(n, g); s.origin.Covers(origin) {
			return g, true
		}
	}
	return judges.Finding{}, false
}

// sameClaim reports whether two findings of the judge want are about the same want of the same
// step, whatever the step returned.
func sameClaim(f, g judges.Finding) bool {
	a, b := *f.Check, *g.Check
	a.Got, b.Got = "", ""
	return a == b
}

// The places of the parts of a measure.
const (
	inProcesses = iota + 1
	inThreads
	inSteps
	inFaults
	inWide
	inWidth
	inEvents
	inFields
	inDigits
	inTotal
	inDrawn
)

// shape returns the part of a measure that is known before a candidate is played.
func shape(sc *scenarios.Scenario, recording bool) []int64 {
	var threads, steps int64
	for _, p := range sc.Processes {
		threads += int64(p.Threads)
	}
	for _, st := range sc.All() {
		steps++
		if st.Kind == scenarios.StepWithLock {
			steps++ // it locks and unlocks
		}
	}
	var only, wide int64
	for _, f := range sc.Faults {
		if f.Kind == model.FaultRule && f.When.Nth == 0 {
			wide++
		}
	}
	if recording {
		only = 1
	}
	width := sc.Latency.Max - sc.Latency.Min + sc.Server.Lag.Max - sc.Server.Lag.Min
	return []int64{only, int64(len(sc.Processes)), threads, steps, int64(len(sc.Faults)), wide, int64(width)}
}

// details returns the part of a measure that comes after the number of events.
func details(c *candidate, text string) []int64 {
	var fields, digits, total int64
	var count func(n *yaml.Node)
	count = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			fields++
		}
		for _, child := range n.Content {
			count(child)
		}
	}
	for _, key := range []string{"watchdog", "server", "resources", "processes", "steps", "faults"} {
		if n := get(c.tree, key); n != nil {
			count(n)
		}
	}
	for _, n := range amounts(c.tree) {
		if a, ok := amountOf(n.Value); ok {
			digits += a.digits()
			total = add(total, abs(a.n))
		}
	}
	var drawn, sum int64
	for _, values := range c.decisions {
		for _, v := range values {
			if v > 0 {
				drawn++
				sum = add(sum, int64(min(v, math.MaxInt64)))
			}
		}
	}
	return []int64{fields, digits, total, drawn, sum, int64(min(c.seed, math.MaxInt64)), int64(len(text))}
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func abs(n int64) int64 {
	if n < 0 {
		return -max(n, -math.MaxInt64)
	}
	return n
}

// try considers a changed copy of the best scenario.
func (s *shrinker) try(change func(root *yaml.Node)) bool {
	tree := clone(s.best.tree)
	change(tree)
	tidy(tree)
	return s.consider(tree, s.best.seed, s.best.decisions)
}

// thin removes as many parts of one kind as it can: all of them, halves, quarters, and
// so on down to single parts, from the end, until no part that is left can go.
func (s *shrinker) thin(cuts func(root *yaml.Node) []cut) {
	n := len(cuts(s.best.tree))
	for size := n; size > 0 && s.left > 0; {
		went := false
		for end := n; end > 0; end -= size {
			from := max(0, end-size)
			if s.try(func(root *yaml.Node) {
				for _, c := range slices.Backward(cuts(root)[from:end]) {
					c()
				}
			}) {
				// Removing a step removes the steps within it.
				n = len(cuts(s.best.tree))
				end = min(end, n+size)
				went = true
			}
		}
		if size == 1 && !went {
			return
		}
		size = max(1, min(size/2, n))
	}
}

// each tries changes one by one.
func (s *shrinker) each(changes func(root *yaml.Node) []cut) {
	for i := 0; i < len(changes(s.best.tree)) && s.left > 0; i++ {
		if s.try(func(root *yaml.Node) { changes(root)[i]() }) {
			i = -1
		}
	}
}

// amount is a number of a scenario, in nanoseconds where it is a time.
type amount struct {
	n    int64
	time bool
}

func amountOf(text string) (amount, bool) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && text != "0" {
		return amount{i, false}, true
	}
	d, err := time.ParseDuration(text)
	return amount{int64(d), true}, err == nil
}

func (a amount) String() string {
	d := time.Duration(a.n)
	switch {
	case !a.time:
		return strconv.FormatInt(a.n, 10)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	case d%time.Millisecond == 0:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d%time.Microsecond == 0:
		return fmt.Sprintf("%dus", d/time.Microsecond)
	}
	return d.String()
}

// digits returns the number of digits that a reader has to look at.
func (a amount) digits() int64 {
	s := strings.TrimRight(strings.Trim(a.String(), "-nums"), "0")
	return int64(len(s))
}

// rounder returns the amounts to try in place of one: smaller ones from 0 up, whole
// seconds, and neighbours with fewer digits.
func (a amount) rounder() (below, near []amount) {
	unit := int64(1)
	if a.time {
		unit = int64(time.Second)
		if abs(a.n) < unit {
			unit = int64(time.Millisecond)
		}
	}
	sign := int64(1)
	if a.n < 0 {
		sign = -1
	}
	below = append(below, amount{0, a.time})
	for decade := unit; decade < abs(a.n); decade *= 10 {
		for _, lead := range []int64{1, 2, 3, 4, 5, 6, 8} {
			if decade*lead < abs(a.n) {
				below = append(below, amount{sign * decade * lead, a.time})
			}
		}
		if decade > math.MaxInt64/100 {
			break
		}
	}
	beside := func(grain int64) (out []amount) {
		down := a.n / grain * grain
		out = append(out, amount{down, a.time})
		if abs(down) <= math.MaxInt64-grain {
			out = append(out, amount{down + sign*grain, a.time})
		}
		return out
	}
	for grain := unit; grain < abs(a.n) && grain < math.MaxInt64/20; grain *= 10 {
		near = append(beside(grain), near...)
	}
	if a.time && abs(a.n) > int64(time.Second) {
		for _, grain := range []time.Duration{100 * time.Millisecond, 10 * time.Millisecond, time.Millisecond} {
			near = append(near, beside(int64(grain))...)
		}
	}
	return below, near
}

// amounts makes times and numbers rounder and smaller.
func (s *shrinker) amounts() {
	for i := 0; i < len(amounts(s.best.tree)) && s.left > 0; i++ {
		a, ok := amountOf(amounts(s.best.tree)[i].Value)
		if !ok {
			continue
		}
		put := func(b amount) bool {
			ok := s.try(func(root *yaml.Node) { *amounts(root)[i] = *scalar(b.String()) })
			if ok {
				s.times++
			}
			return ok
		}
		below, near := a.rounder()
		// Find the smallest amount that fails, if all larger ones do.
		lo, hi := 0, len(below)
		if put(below[0]) {
			continue
		}
		for lo++; lo < hi; {
			mid := (lo + hi) / 2
			if put(below[mid]) {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		if hi == len(below) && a.digits() > 1 {
			for _, b := range near {
				if b.digits() < a.digits() && put(b) {
					break
				}
			}
		}
	}
}

// exact lists the single latencies that are tried in place of a range.
var exact = []string{"1ms", "2ms", "5ms", "10ms", "50ms"}

// sayable looks for a seed that shows the failure, in place of recorded decisions.
func (s *shrinker) sayable() {
	if s.best.decisions != nil {
		if said := s.said(); said != nil {
			s.sow(said)
		}
	}
	if s.best.decisions == nil {
		s.exactly()
	}
}

// said returns the scenario with a rule in place of the fate that the chooser gave to a
// message; nil if no rule has the same effect.
func (s *shrinker) said() *yaml.Node {
	hit := failure.FateOf(s.best.verdict)
	if hit == nil {
		return s.best.tree
	}
	rule := fateRule(s.best.verdict.Played.Record, hit)
	if rule == nil {
		return nil
	}
	said := clone(s.best.tree)
	if faults := get(said, "faults"); faults != nil {
		faults.Content = append(faults.Content, rule)
	} else {
		set(said, "faults", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{rule}})
	}
	if sc, err := load("", source(said), s.from.Verdict.Lock); err == nil { // the scenario of the run had this fault
		s.kinds = append(s.kinds, failure.FaultsStated(sc)...)
	}
	return said
}

// sow tries the first seeds.
func (s *shrinker) sow(said *yaml.Node) {
	for _, latency := range []string{"", exact[0]} {
		for seed := uint64(1); seed <= s.seeds && s.best.decisions != nil; seed++ {
			tree := clone(said)
			if latency != "" {
				set(tree, "network", mapping("latency", scalar(latency)))
			}
			s.consider(tree, seed, nil)
		}
	}
}

// fateRule returns a rule that loses the message that the chooser lost; nil if there is
// none.
func fateRule(r *model.Record, hit *model.Event) *yaml.Node {
	if hit.Do != "drop" || hit.Dir == "push" {
		return nil
	}
	same := func(a, b *model.Event) bool {
		return a.Process == b.Process && a.Script == b.Script && a.Command == b.Command
	}
	i := slices.IndexFunc(r.Events, func(e model.Event) bool { return e.Kind == model.KindSend && e.Msg == hit.Msg })
	if i < 0 {
		return nil
	}
	sent := &r.Events[i]
	nth := 1
	for j := range r.Events[:i] {
		if e := &r.Events[j]; e.Kind == model.KindSend && same(e, sent) {
			nth++
		}
	}
	when := mapping("process", scalar(sent.Process))
	if sent.Script != "" {
		set(when, "script", scalar(string(sent.Script)))
	} else {
		set(when, "command", scalar(sent.Command))
	}
	set(when, "direction", scalar(hit.Dir))
	set(when, "nth", scalar(fmt.Sprint(nth)))
	rule := mapping("when", when)
	set(rule, "do", scalar("drop"))
	return rule
}

// exactly replaces the range of latencies by one latency.
func (s *shrinker) exactly() {
	for _, ways := range [][]string{{"network", "latency"}, {"server", "lag"}} {
		for _, latency := range exact {
			r := s.best.verdict.Scenario.Latency
			if ways[0] == "server" {
				r = s.best.verdict.Scenario.Server.Lag
			}
			if r.Min == r.Max || s.try(func(root *yaml.Node) { setIn(root, ways, latency) }) {
				break
			}
		}
	}
}

func setIn(root *yaml.Node, keys []string, value string) {
	if inner := get(root, keys[0]); inner != nil {
		set(inner, keys[1], scalar(value))
	} else {
		set(root, keys[0], mapping(keys[1], scalar(value)))
	}
}

// seed makes the range of latencies smaller, with any seed that shows the failure then,
// and the seed itself.
func (s *shrinker) seed() {
	s.exactly()
	for s.left > 0 && s.narrower() {
	}
	for seed := uint64(1); seed <= s.seeds && seed < s.best.seed; seed++ {
		s.consider(s.best.tree, seed, nil)
	}
}

func (s *shrinker) narrower() bool {
	r := s.best.verdict.Scenario.Latency
	grain := time.Millisecond
	if r.Max-r.Min <= 2*time.Millisecond {
		grain = 100 * time.Microsecond
	}
	middle := (r.Min + (r.Max-r.Min)/2).Truncate(grain)
	for _, half := range []scenarios.Range{{Min: r.Min.Truncate(grain), Max: middle}, {Min: middle, Max: r.Max.Truncate(grain)}} {
		if half.Min <= 0 || half.Min >= half.Max || half.Max-half.Min >= r.Max-r.Min {
			continue
		}
		text := amount{int64(half.Min), true}.String() + ".." + amount{int64(half.Max), true}.String()
		for seed := uint64(0); seed <= s.seeds; seed++ {
			tree := clone(s.best.tree)
			setIn(tree, []string{"network", "latency"}, text)
			if s.consider(tree, cmp.Or(seed, s.best.seed), nil) {
				return true
			}
		}
	}
	return false
}

// decisions makes recorded decisions smaller: it sets whole streams to 0, then parts of
// all streams, and then makes single decisions 0 or smaller.
func (s *shrinker) decisions() {
	type place struct {
		stream string
		i      int
	}
	drawn := func() []place {
		var out []place
		for _, stream := range slices.Sorted(maps.Keys(s.best.decisions)) {
			for i, v := range s.best.decisions[stream] {
				if v > 0 {
					out = append(out, place{stream, i})
				}
			}
		}
		return out
	}
	lower := func(places []place, to func(uint64) uint64) bool {
		d := sim.Decisions{}
		for stream, values := range s.best.decisions {
			d[stream] = slices.Clone(values)
		}
		for _, p := range places {
			d[p.stream][p.i] = to(d[p.stream][p.i])
		}
		return s.consider(s.best.tree, s.best.seed, d)
	}
	none := func(uint64) uint64 { return 0 }
	for _, stream := range slices.Sorted(maps.Keys(s.best.decisions)) {
		lower(slices.DeleteFunc(drawn(), func(p place) bool { return p.stream != stream }), none)
	}
	for size := len(drawn()); size > 0 && s.left > 0; size /= 2 {
		for end := len(drawn()); end > 0; end -= size {
			if places := drawn(); end <= len(places) {
				lower(places[max(0, end-size):end], none)
			}
		}
	}
	for i := 0; i < len(drawn()) && s.left > 0; i++ {
		for lower(drawn()[i:i+1], func(v uint64) uint64 { return v / 2 }) && i < len(drawn()) {
		}
	}
}

// finish writes the best candidate as a file with its expectation, and plays the file.
func (s *shrinker) finish() failure.Failure {
	s.phase = phaseFile
	s.left += lastRuns
	best := s.best
	f := best.finding
	tree := clone(best.tree)
	name := best.verdict.Scenario.Name
	if !strings.HasSuffix(name, "-shrunk") {
		set(tree, "source", scalar(fmt.Sprintf("shrunk from %s (seed %d)", name, s.from.Verdict.Seed)))
		name += "-shrunk"
	} else {
		set(tree, "source", scalar(s.from.Verdict.Scenario.Source))
	}
	set(tree, "name", scalar(name))
	why := sentence.Finding(f)
	if f.Judge == model.JudgeWant {
		// The line number is left out, since it is another one in the file.
		why = f.Check.Claim()
	}
	set(tree, "about", scalar(fmt.Sprintf("%s of %s: %s.", f.Judge, best.verdict.Lock.Name, why)))
	class := string(f.Class)
	if best.verdict.Word == play.VerdictBug {
		class = string(scenarios.Bug) // the verdict of the run, which may come from another finding
	}
	set(tree, "expect", mapping(best.verdict.Lock.Name, mapping(class, sequence(f.Judge))))
	if best.decisions == nil {
		// The file gets the seeds from 1 on, up to the first one that does not show the failure.
		last := uint64(0)
		for seed := uint64(1); seed <= seedsShown && last == seed-1; seed++ {
			c := &candidate{tree: tree, seed: seed}
			if sc, err := load(s.from.Verdict.Scenario.File, source(tree), s.from.Verdict.Lock); err == nil && s.play(c, sc) {
				last = seed
			}
		}
		switch {
		case last == seedsShown:
			best.seed = 1
			set(tree, "seeds", scalar(fmt.Sprintf("1..%d", last)))
			s.did[phaseFile] = fmt.Sprintf("every seed of 1..%d shows it", last)
		default:
			set(tree, "seeds", scalar(fmt.Sprint(best.seed)))
			s.did[phaseFile] = fmt.Sprintf("seed %d shows it", best.seed)
		}
	} else {
		s.did[phaseFile] = "no seed shows it: these very decisions do"
	}
	sc, err := load(s.from.Verdict.Scenario.File, source(tree), s.from.Verdict.Lock)
	if err == nil {
		sc, err = load(sc.File, sc.Write(), s.from.Verdict.Lock)
	}
	if err != nil {
		panic("shrink: a shrunk scenario does not load: " + err.Error() + "\n" + source(tree))
	}
	sc.File = name + ".yaml"
	last := &candidate{tree: tree, seed: best.seed, decisions: best.decisions}
	if !s.play(last, sc) {
		// The file does not show the failure. Keep the run itself.
		return failure.Failure{Verdict: best.verdict, Finding: best.finding, Seeded: best.decisions == nil}
	}
	return failure.Failure{Verdict: last.verdict, Finding: last.finding, Seeded: best.decisions == nil}
}

// tell writes down what each phase did.
func (s *shrinker) tell(first []int64) {
	for phase, i := range map[string]int{
		phaseProcesses: inProcesses, phaseThreads: inThreads, phaseSteps: inSteps, phaseFaults: inFaults, phaseFields: inFields,
	} {
		s.did[phase] = fmt.Sprintf("%d, now %d", first[i], s.best.measure[i])
	}
	s.did[phaseAgain] = fmt.Sprintf("broken again: %s", s.from.Finding.Judge)
	s.did[phaseTimes] = fmt.Sprintf("%d changed", s.times)
	s.did[phaseSeeds] = "needs decisions of its own"
	if s.best.decisions == nil {
		s.did[phaseSeeds] = "a scenario can say it"
	}
	s.did[phaseDecisions] = fmt.Sprintf("%d that are not 0", s.best.measure[inDrawn])
	if l := s.best.verdict.Scenario.Latency; s.best.decisions == nil && l.Min == l.Max {
		s.did[phaseDecisions] = "an exact latency of " + l.String()
	} else if s.best.decisions == nil {
		s.did[phaseDecisions] = "latencies of " + l.String()
	}
}

func (s *shrinker) report() Phases {
	var out Phases
	for _, name := range phaseNames {
		if s.runs[name] > 0 {
			out = append(out, Phase{name, s.runs[name], s.did[name]})
		}
	}
	return out
}
