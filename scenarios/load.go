package scenarios

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"lockstep/internal/nearest"
	"lockstep/internal/quantity"
	"lockstep/model"
	"lockstep/scenarios/subject"
)

// Limits on a file, so that no input can make the loader slow or large.
const (
	maxText     = 1 << 20 // bytes
	maxThreads  = 4096    // of all processes together
	maxReplicas = 16
	maxSteps    = 100_000 // of all threads, repetitions included: a record keeps the outcome of each step
	maxErrors   = 20      // reported per file
	maxName     = 200     // characters: a folder is named after a scenario
	maxLockName = 1000    // bytes: a record has the name in each command
	maxClient   = 10_000  // of a client: connections, and attempts for a request
	maxDuration = quantity.Longest
)

// SeedsOfSome is the most seeds of a scenario that expects its outcome of some seed only (`in:
// some`). The verdicts on all of them are kept until one is as expected.
const SeedsOfSome = 100_000

const (
	formatVersion   = "1"
	defaultWatchdog = 30 * time.Second
	// Clients renew after a third of the watchdog timeout, in whole milliseconds. A third
	// of a shorter timeout is 0.
	minWatchdog = 3 * time.Millisecond
	minLease    = time.Millisecond // PEXPIRE counts in milliseconds
	zeroLatency = 100 * time.Microsecond

	minResponseTimeout = time.Millisecond
	maxDrift           = 999_999 // ppm
	defaultTake        = 1
)

// Shrunk ends the name of a scenario that was made small.
const Shrunk = "-shrunk"

var (
	scenarioName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)
	memberName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
)

// A FileError is an error at a place in a scenario file. Line and Column count from 1.
type FileError struct {
	File         string
	Line, Column int
	Msg          string
	Cause        error // nil: there is none but Msg
}

func (e *FileError) Unwrap() error { return e.Cause }

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// A loader fills one Scenario. It does not stop at an error: every method reports its
// errors through fail and goes on.
type loader struct {
	file      string
	knownLock func(string) (*subject.Subject, error)
	// partial reports that the loader leaves out the locks that knownLock does not know.
	partial bool
	errs    []*FileError
	s       *Scenario
	// subjects are the locks of the scenario.
	subjects []*subject.Subject
	// declared lists all threads as PROCESS/NUMBER, in the order of the file.
	declared []string
}

// AnyLock is a knownLock of Parse that takes every name as it is. It is for a caller that already
// has its lock, which need not be registered. The lock that it returns has only a name.
func AnyLock(name string) (*subject.Subject, error) { return &subject.Subject{Name: name}, nil }

// NameIn returns the name that the text of a scenario gives itself, even if the scenario cannot
// be read otherwise; "" if it gives none.
func NameIn(text string) string {
	var head struct{ Name string }
	_ = yaml.Unmarshal([]byte(text), &head)
	return head.Name
}

// Parse parses and checks one scenario. Errors carry the name file. knownLock returns a
// lock, such as redisson@4.7.0 for "redisson", or an error that lists the known locks;
// subject.Find is one. A rule may name a command that the servers of each lock know.
//
// The error is a *FileError, or several of them joined in the order of their lines. Use
// errors.As to get one.
func Parse(file string, text []byte, knownLock func(string) (*subject.Subject, error)) (*Scenario, error) {
	return parse(file, text, knownLock, false)
}

// parse is Parse. If partial is set, it leaves out the locks that knownLock does not know, which may be
// all of them.
func parse(file string, text []byte, knownLock func(string) (*subject.Subject, error), partial bool) (*Scenario, error) {
	l := &loader{file: file, knownLock: knownLock, partial: partial, s: &Scenario{
		File:      file,
		Text:      string(text),
		Latency:   Range{200 * time.Microsecond, 2 * time.Millisecond},
		Watchdog:  defaultWatchdog,
		SeedFirst: 1,
		SeedLast:  1,
	}}
	// After an error of document or version, any further error would be noise.
	if root := l.document(text); root != nil && l.version(root) {
		l.scenario(root)
	}
	if err := l.result(); err != nil {
		return nil, err
	}
	return l.s, nil
}

func (l *loader) version(root *yaml.Node) bool {
	const must = "must start with `lockstep: " + formatVersion + "`, the version of its format"
	if root.Kind != yaml.MappingNode {
		l.fail(root, "a scenario is a mapping of fields, not %s, and "+must, describe(root))
		return false
	}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		switch {
		case key.Value != "lockstep":
		case value.Value != formatVersion:
			l.fail(value, "this program reads format version %s; the file says %s", formatVersion, quote(value.Value))
			return false
		case i > 0:
			l.fail(key, "lockstep is not the first field; a scenario "+must)
			return false
		default:
			return true
		}
	}
	l.fail(root, "there is no lockstep field; a scenario "+must)
	return false
}

func (l *loader) scenario(root *yaml.Node) {
	f := l.fields(root, "a scenario", "lockstep", "name!", "about", "source", "locks!", "network", "watchdog",
		"resources", "processes!", "steps!", "faults", "expect", "reach", "seeds", "server")
	l.s.Name = l.name(f["name"], scenarioName, "letters, digits and dashes, and start with a letter or a digit")
	l.s.About = l.text(f["about"])
	l.s.Source = l.text(f["source"])
	l.locks(f["locks"])
	if n := l.fields(f["network"], "network", "latency!")["latency"]; n != nil {
		l.s.Latency = l.way(n, "latency")
	}
	l.server(f["server"])
	if n := f["watchdog"]; n != nil {
		l.s.Watchdog = l.durationFrom(minWatchdog)(n)
	}
	var fences []*yaml.Node
	for key, value := range l.pairs(f["resources"], "a mapping of resources, such as {stock: {start: 100}}") {
		r := l.fields(value, "a resource", "start!", "never_below", "end", "fence")
		l.s.Resources = append(l.s.Resources, Resource{
			Name:       l.member(key),
			Start:      l.integer(r["start"]),
			NeverBelow: optional(r["never_below"], l.integer),
			End:        optional(r["end"], l.integer),
			Fence:      l.lockName(r["fence"]),
		})
		fences = append(fences, r["fence"])
	}
	l.processes(f["processes"])
	l.scripts(f["steps"])
	for _, n := range fences {
		l.taken(n)
	}
	for _, n := range l.list(f["faults"], "a list of faults") {
		l.s.Faults = append(l.s.Faults, l.fault(n))
	}
	l.expect(f["expect"])
	l.s.Reach = l.words(f["reach"], "reach word", "reach", model.Reachable)
	l.seeds(f["seeds"])
}

// taken checks that a step takes the lock of a fence.
func (l *loader) taken(n *yaml.Node) {
	if n == nil || n.Value == "" {
		return
	}
	if names := l.s.taken(); !slices.Contains(names, n.Value) {
		l.unknown(n, "lock", n.Value, "steps", names)
	}
}

func (l *loader) locks(n *yaml.Node) {
	l.notEmpty(n, "name at least one lock")
	for _, n := range l.list(n, "a list of locks, such as [redisson, setnx-del]") {
		lock := l.lock(n)
		if lock == nil {
			continue
		}
		if slices.Contains(l.s.Locks, lock.Name) {
			l.fail(n, "%s is %s, which is listed already", quote(n.Value), lock.Name)
			continue
		}
		l.s.Locks = append(l.s.Locks, lock.Name)
		l.subjects = append(l.subjects, lock)
	}
}

// lock reads the name of a lock. It returns nil if the name is missing or unknown, or left out.
func (l *loader) lock(n *yaml.Node) *subject.Subject {
	text := l.filled(n)
	if text == "" {
		return nil
	}
	lock, err := l.knownLock(text)
	if err != nil && l.partial {
		return nil
	}
	if err != nil {
		l.fail(n, "%v", err)
		l.errs[len(l.errs)-1].Cause = err
		return nil
	}
	return lock
}

// way reads how long a message travels in one direction. It replaces 0 by zeroLatency.
func (l *loader) way(n *yaml.Node, what string) Range {
	r := l.span(n)
	for _, end := range []*Duration{&r.Min, &r.Max} {
		if *end == 0 {
			*end = zeroLatency
		}
	}
	if r.Min > r.Max {
		l.fail(n, "%s %s is %v..%v, since 0 stands for %v: the first is above the second",
			what, quote(n.Value), r.Min, r.Max, zeroLatency)
	}
	return r
}

func (l *loader) server(n *yaml.Node) {
	f := l.fields(n, "server", "replicas!", "lag")
	if f["replicas"] == nil {
		return
	}
	bad := len(l.errs)
	s := Server{Replicas: l.count(0)(f["replicas"])}
	switch lag := f["lag"]; {
	case s.Replicas > maxReplicas:
		l.fail(f["replicas"], "%d replicas; a server has at most %d", s.Replicas, maxReplicas)
	case lag != nil && s.Replicas == 0 && len(l.errs) == bad:
		l.fail(lag, "a lag without replicas: give replicas, or leave lag out")
	case lag != nil:
		s.Lag = l.way(lag, "lag")
	case s.Replicas > 0:
		s.Lag = l.s.Latency
	}
	l.s.Server = s
}

func (l *loader) processes(n *yaml.Node) {
	l.notEmpty(n, "without a process nothing runs")
	for key, value := range l.pairs(n, "a mapping of processes, such as {a: {threads: 1}}") {
		f := l.fields(value, "a process", "threads", "lock_objects", "wall_clock", "client")
		clock := l.fields(f["wall_clock"], "wall_clock", "offset", "drift_ppm")
		client := l.fields(f["client"], "client", "response_timeout", "retry_attempts", "pool_size", "fair_wait")
		p := Process{
			Name:         l.member(key),
			Threads:      1,
			PerCall:      l.word(f["lock_objects"], "word", "lock_objects", "shared", "per_call") == "per_call",
			WallOffset:   l.signed(clock["offset"]),
			WallDriftPPM: l.integer(clock["drift_ppm"]),
			ClientOptions: subject.ClientOptions{
				ResponseTimeout: optional(client["response_timeout"], l.durationFrom(minResponseTimeout)),
				RetryAttempts:   optional(client["retry_attempts"], l.countTo(0, maxClient)),
				PoolSize:        optional(client["pool_size"], l.countTo(1, maxClient)),
				FairWait:        optional(client["fair_wait"], l.duration),
			},
		}
		if p.WallDriftPPM < -maxDrift || p.WallDriftPPM > maxDrift {
			l.fail(clock["drift_ppm"], "a drift of %d ppm stops the clock or doubles it; stay within ±%d", p.WallDriftPPM, maxDrift)
		}
		if f["threads"] != nil {
			p.Threads = l.count(1)(f["threads"])
		}
		if left := maxThreads - len(l.declared); p.Threads > left {
			l.fail(value, "more than %d threads in one scenario", maxThreads)
			p.Threads = left
		}
		l.s.Processes = append(l.s.Processes, p)
		for i := range p.Threads {
			l.declared = append(l.declared, p.Name+"/"+strconv.Itoa(i+1))
		}
	}
}

// process reads the name of a declared process.
func (l *loader) process(n *yaml.Node) string {
	var known []string
	for _, p := range l.s.Processes {
		known = append(known, p.Name)
	}
	return l.word(n, "process", "processes", known...)
}

// thread reads the name of a declared thread, PROCESS/NUMBER.
func (l *loader) thread(n *yaml.Node) string {
	return l.word(n, "thread", "processes", l.declared...)
}

func (l *loader) scripts(n *yaml.Node) {
	const nothing = "without a step nothing is tested"
	l.notEmpty(n, nothing)
	type owned struct {
		key   string
		steps []Step
	}
	byThread := map[string]owned{}
	for key, value := range l.pairs(n, "a mapping of threads, such as {a/1: [...]}") {
		threads := []string{key.Value}
		if p, all := strings.CutSuffix(key.Value, "/*"); all {
			threads = l.threadsOf(key, p)
		} else if l.thread(key) == "" {
			threads = nil
		}
		steps := l.steps(value)
		for _, t := range threads {
			if other, twice := byThread[t]; twice {
				l.fail(key, "%s already has steps, under %s", t, other.key)
				break
			}
			byThread[t] = owned{key.Value, steps}
		}
	}
	for _, t := range l.declared {
		if own := byThread[t]; len(own.steps) > 0 {
			p, number, _ := strings.Cut(t, "/")
			i, _ := strconv.Atoi(number)
			// Several threads may have the same steps in the file. Each gets its own copy.
			l.s.Threads = append(l.s.Threads, Script{Process: p, Thread: i, Steps: cloneSteps(own.steps)})
		}
	}
	if len(l.s.Threads) == 0 && len(l.errs) == 0 {
		l.fail(n, "no thread has a step; %s", nothing)
	}
	left := maxSteps
	for _, t := range l.s.Threads {
		var past *Step
		if past, left = spend(t.Steps, left); past != nil {
			l.failAt(past.Pos.Line, past.Pos.Column, fmt.Sprintf("more than %d steps in one run: all threads together do that many up to here, repeats included, and a run keeps what each of them did; repeat less, and play more seeds", maxSteps))
			return
		}
	}
}

// spend subtracts the steps of a thread from the steps that are left. If there are too few left, past
// is the step that needs more.
func spend(steps []Step, most int) (past *Step, left int) {
	for i := range steps {
		s := &steps[i]
		n := s.done()
		if n > most && s.Kind == StepWithLock {
			if past, _ := spend(s.Steps, most-1); past != nil {
				return past, 0
			}
		}
		if n > most {
			return s, 0
		}
		most -= n
	}
	return nil, most
}

// done returns how many steps a thread does in a step, with the step itself. More than maxSteps count
// as one more. The steps that a repeat plays until an instant count once.
func (s *Step) done() int {
	within := 0
	for i := range s.Steps {
		within = min(within+s.Steps[i].done(), maxSteps+1)
	}
	if s.Times > 0 && within > maxSteps/s.Times {
		return maxSteps + 1
	}
	return min(1+within*max(1, s.Times), maxSteps+1)
}

// threadsOf returns all threads of a process. key is the `PROCESS/*` that names them.
func (l *loader) threadsOf(key *yaml.Node, process string) []string {
	name := *key
	name.Value = process
	if l.process(&name) == "" {
		return nil
	}
	var threads []string
	for _, t := range l.declared {
		if strings.HasPrefix(t, process+"/") {
			threads = append(threads, t)
		}
	}
	return threads
}

func (l *loader) expect(n *yaml.Node) {
	for key, value := range l.pairs(n, "a mapping of locks, such as {redisson: held}") {
		e := l.expectation(value)
		named := l.lock(key)
		if named == nil {
			continue
		}
		lock := named.Name
		if !slices.Contains(l.s.Locks, lock) {
			l.fail(key, "expect has %s, and locks has %s; name the same lock in both", quote(lock), cmp.Or(nearest.Clip(strings.Join(l.s.Locks, ", ")), "none"))
			continue
		}
		if _, twice := l.s.Expect[lock]; twice {
			l.fail(key, "%s is %s, which has an expectation already", quote(key.Value), lock)
			continue
		}
		if l.s.Expect == nil {
			l.s.Expect = map[string]Expectation{}
		}
		l.s.Expect[lock] = e
	}
}

func (l *loader) expectation(n *yaml.Node) Expectation {
	classes := []string{string(Held), string(Bug), string(Limit), string(Not)}
	if n.Kind == yaml.ScalarNode {
		class := l.word(n, "outcome", "expect", classes...)
		if class != "" && class != string(Held) {
			l.fail(n, "%s needs its judges: {%s: [misdelete]}", class, class)
		}
		return Expectation{Class: Held}
	}
	f := l.fields(n, "an expectation", append(classes, "reach", "in")...)
	e := Expectation{
		Class: Class(l.oneOf(n, f, "an expectation", classes...)),
		Reach: l.words(f["reach"], "reach word", "reach", model.Reachable),
		Some:  l.word(f["in"], "word", "in", "all", "some") == "some",
	}
	switch judges := f[string(e.Class)]; {
	case judges == nil:
	case e.Class != Held:
		l.notEmpty(judges, "judges: "+strings.Join(model.Judges, ", "))
		e.Judges = l.words(judges, "judge", string(e.Class), model.Judges)
	case judges.Tag == "!!null": // {held, reach: […]} is YAML for {held: null, …}
	case judges.Kind != yaml.SequenceNode || len(judges.Content) > 0:
		l.fail(judges, "held names no judge: write held: []")
	}
	return e
}

func (l *loader) seeds(n *yaml.Node) {
	text, ok := l.scalar(n, "a seed or a range of seeds, such as 1..50")
	if !ok {
		return
	}
	first, last, isRange := strings.Cut(text, "..")
	if !isRange {
		last = first
	}
	var err1, err2 error
	l.s.SeedFirst, err1 = strconv.ParseUint(first, 10, 64)
	l.s.SeedLast, err2 = strconv.ParseUint(last, 10, 64)
	switch {
	case err1 != nil || err2 != nil:
		l.fail(n, "%s is not a seed; write a whole number such as 1, or a range such as 1..50", quote(text))
	case l.s.SeedFirst > l.s.SeedLast:
		l.fail(n, "seeds %s: the first is above the last", quote(text))
	case l.s.SeedLast-l.s.SeedFirst >= uint64(quantity.Runs.Most):
		l.fail(n, "seeds %s: at most %d seeds, each of which is a run", quote(text), quantity.Runs.Most)
	case l.s.SeedLast-l.s.SeedFirst >= SeedsOfSome:
		for _, lock := range l.s.Locks {
			if l.s.Expect[lock].Some {
				l.fail(n, "seeds %s: %s is expected to show it in some of them, and the verdicts on all seeds are kept until one does: at most %d seeds", quote(text), lock, SeedsOfSome)
				break
			}
		}
	}
}
