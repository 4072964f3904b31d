package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
)

// ErrInexpressible says that a test in one process cannot play a scenario, or cannot check for what a
// judge found.
var ErrInexpressible = errors.New("a test in one process cannot express it")

func inexpressible(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInexpressible, fmt.Sprintf(format, args...))
}

// A dialect is the language of a test. Its methods return statements, one per line.
type dialect interface {
	// depth is the number of indents before a statement of the test.
	depth() int
	indent() string
	latency(l scenarios.Range) string // "": too little for a statement
	client(sc *scenarios.Scenario, p scenarios.Process) ([]string, error)
	// thread returns the text before and after the steps of threads that do the same. There are several threads only
	// if together says that the language has a loop for them.
	thread(names []string) (begin, end string)
	together() bool
	at(d time.Duration) string
	sleep(d time.Duration) string
	// acquire returns an expression that asks for a lock, and that is true if the lock was granted.
	acquire(s scenarios.Step) (string, error)
	statement(expression string) string
	ifSo(expression string) string
	until(d time.Duration) string
	times(n int) string
	unlock(name string) string
	// A language may lack some of the following.
	extend(name string) (string, error)
	forceUnlock(name string) (string, error)
	interrupt(thread string) string
	shut(process string) (string, error)
	fault(f scenarios.Fault) ([]string, error)
	play(length time.Duration, locks []string) string
	// assertion returns the statement after the story that fails if the library did what the finding says, and a
	// statement that it needs before the story; "": none.
	assertion(g *generator) (before, after string, err error)
}

// generator writes a scenario as a test.
type generator struct {
	dialect
	sc    *scenarios.Scenario
	t     *trace.Run
	f     judges.Finding
	out   strings.Builder
	depth int
}

func (g *generator) line(text string) {
	fmt.Fprintf(&g.out, "%s%s\n", strings.Repeat(g.indent(), g.dialect.depth()+g.depth), text)
}

func (g *generator) lines(all []string, err error) error {
	for _, text := range all {
		g.line(text)
	}
	return err
}

// method names the test after the promise that is broken.
func (g *generator) method() string {
	words := strings.Split(g.f.Judge, "-")
	for i := 1; i < len(words); i++ {
		words[i] = capital(words[i])
	}
	return strings.Join(words, "")
}

func (g *generator) body() (string, error) {
	before, after, err := g.assertion(g)
	if err != nil {
		return "", err
	}
	if g.sc.Server.Replicas > 0 {
		return "", inexpressible("the story has replicas")
	}
	if text := g.latency(g.sc.Latency); text != "" {
		g.line(text)
	}
	for _, p := range g.sc.Processes {
		if err := g.lines(g.client(g.sc, p)); err != nil {
			return "", err
		}
	}
	threads, err := g.threads()
	if err != nil {
		return "", err
	}
	for _, t := range threads {
		begin, end := g.thread(t.names)
		g.line(begin)
		g.out.WriteString(t.body)
		g.line(end)
	}
	for _, f := range g.sc.Faults {
		if err := g.lines(g.fault(f)); err != nil {
			return "", err
		}
	}
	if before != "" {
		g.line(before)
	}
	g.line(g.play(g.length(), play.LockNames(g.sc)))
	g.line(after)
	return g.out.String(), nil
}

// likeThreads are threads that do the same.
type likeThreads struct {
	names []string
	body  string
}

// threads returns the threads of the scenario. It joins threads that do the same if the language has a loop for them.
func (g *generator) threads() (all []likeThreads, err error) {
	for _, t := range g.sc.Threads {
		one := generator{dialect: g.dialect, sc: g.sc, t: g.t, f: g.f, depth: g.depth + 1}
		if err := one.steps(t.Process, t.Steps); err != nil {
			return nil, err
		}
		name, body := model.ThreadName(t.Process, t.Thread), one.out.String()
		if i := slices.IndexFunc(all, func(x likeThreads) bool { return x.body == body }); i >= 0 && g.together() {
			all[i].names = append(all[i].names, name)
			continue
		}
		all = append(all, likeThreads{[]string{name}, body})
	}
	return all, nil
}

// length is how long the test plays the story: until the instant of the finding, and a little longer.
func (g *generator) length() time.Duration {
	end := g.f.AtNs
	for _, o := range g.f.Ops {
		end = max(end, o.CallNs)
	}
	return (time.Duration(end) + 4*time.Second).Round(time.Second)
}

func (g *generator) steps(process string, steps []scenarios.Step) error {
	for _, s := range steps {
		if err := g.step(process, s); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) step(process string, s scenarios.Step) error {
	switch s.Kind {
	case scenarios.StepAt:
		g.line(g.at(s.D))
	case scenarios.StepSleep:
		g.line(g.sleep(s.D))
	case scenarios.StepUse:
		if s.For > 0 {
			g.line(g.sleep(s.For))
		}
	case scenarios.StepLock, scenarios.StepTryLock:
		text, err := g.acquire(s)
		if err != nil {
			return err
		}
		g.line(g.statement(text))
	case scenarios.StepUnlock:
		g.line(g.unlock(s.Name))
	case scenarios.StepExtend:
		return g.one(g.extend(s.Name))
	case scenarios.StepForceUnlock:
		return g.one(g.forceUnlock(s.Name))
	case scenarios.StepInterrupt:
		g.line(g.interrupt(s.Target))
	case scenarios.StepClose:
		return g.one(g.shut(process))
	case scenarios.StepRead, scenarios.StepPublished: // they look, and do nothing
	case scenarios.StepWithLock:
		text, err := g.acquire(s)
		if err != nil {
			return err
		}
		if s.UnlockAlways {
			g.line(g.statement(text))
			if err := g.steps(process, s.Steps); err != nil {
				return err
			}
			g.line(g.unlock(s.Name))
			return nil
		}
		g.line(g.ifSo(text))
		g.depth++
		if err := g.steps(process, s.Steps); err != nil {
			return err
		}
		g.line(g.unlock(s.Name))
		g.depth--
		g.line("}")
	case scenarios.StepRepeat:
		if s.Until != nil {
			g.line(g.until(*s.Until))
		} else {
			g.line(g.times(s.Times))
		}
		g.depth++
		if err := g.steps(process, s.Steps); err != nil {
			return err
		}
		g.depth--
		g.line("}")
	default:
		return inexpressible("line %d has the step %s", s.Pos.Line, s.Kind)
	}
	return nil
}

// one writes a statement that the language may lack.
func (g *generator) one(text string, err error) error {
	if err == nil {
		g.line(text)
	}
	return err
}

// waited returns how long a waiter may have to wait before the judge says that it was forgotten,
// and whether the lock is free on the server at that time.
func (g *generator) waited() (bound time.Duration, free bool) {
	since := int64(0)
	for _, o := range g.f.Ops {
		since = max(since, o.CallNs)
	}
	for _, c := range g.t.Changes(g.f.Lock) {
		if c.AtNs < g.f.AtNs && c.Ended() {
			since = max(since, c.AtNs)
		}
	}
	return max(time.Second, time.Duration(g.f.AtNs-since).Round(time.Millisecond)), !g.t.StateAt(g.f.Lock, g.f.AtNs).Held()
}

// call returns the call of the run that ref names, its thread, and its number among the calls of this thread, counted
// from 1.
func (g *generator) call(ref judges.OpRef) (who string, number int, c *trace.Call, err error) {
	who = model.ThreadName(ref.Process, ref.Thread)
	for _, s := range g.sc.Threads {
		if model.ThreadName(s.Process, s.Thread) == who && slices.ContainsFunc(s.Steps, func(x scenarios.Step) bool { return x.Kind == scenarios.StepRepeat }) {
			return "", 0, nil, inexpressible("the call is one of several in a loop")
		}
	}
	var mine []*trace.Call
	for _, c := range g.t.Calls {
		if c.Caller == who {
			mine = append(mine, c)
		}
	}
	slices.SortFunc(mine, func(a, b *trace.Call) int { return cmp.Compare(a.AtNs, b.AtNs) })
	i := slices.IndexFunc(mine, func(c *trace.Call) bool { return c.AtNs == ref.CallNs })
	if i < 0 {
		return "", 0, nil, inexpressible("the finding names no call of %s", who)
	}
	return who, i + 1, mine[i], nil
}
