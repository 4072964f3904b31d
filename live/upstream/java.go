package upstream

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
)

// sources are the parts of a test that are the same for all defects.
//
//go:embed java/*.java java/pom.xml java/cases/*.java
var sources embed.FS

// ErrInexpressible says that a test in one JVM cannot make what a scenario has, or cannot see what
// a judge found.
var ErrInexpressible = errors.New("a test in one JVM cannot express it")

func inexpressible(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInexpressible, fmt.Sprintf(format, args...))
}

// className returns the name of the test class of a defect.
func className(id string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(id, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String() + "Test"
}

// test writes the test class of a story whose simulated run has that finding.
func test(id, title string, fair bool, v play.Verdict, f judges.Finding, tries int) (string, error) {
	g := &generator{sc: v.Scenario, t: v.Played.Trace, f: f}
	body, err := g.body()
	if err != nil {
		return "", err
	}
	kind := "getLock"
	if fair {
		kind = "getFairLock"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package lockreport;\n\nimport static java.util.concurrent.TimeUnit.MILLISECONDS;\nimport static java.util.concurrent.TimeUnit.SECONDS;\n\n")
	fmt.Fprintf(&b, "import org.junit.jupiter.api.RepeatedTest;\nimport org.redisson.api.RedissonClient;\n\n")
	fmt.Fprintf(&b, "/** %s */\nclass %s {\n", capital(title)+".", className(id))
	fmt.Fprintf(&b, "    @RepeatedTest(%d)\n    void %s() throws Exception {\n", tries, g.method())
	fmt.Fprintf(&b, "        try (Story story = new Story(RedissonClient::%s)) {\n%s        }\n    }\n}\n", kind, body)
	text := b.String()
	for _, unit := range []string{"MILLISECONDS", "SECONDS"} {
		line := "import static java.util.concurrent.TimeUnit." + unit + ";\n"
		if rest := strings.Replace(text, line, "", 1); !strings.Contains(rest, ", "+unit) {
			text = rest
		}
	}
	return strings.Replace(text, "lockreport;\n\n\n", "lockreport;\n\n", 1), nil
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// generator writes a scenario as Java.
type generator struct {
	sc    *scenarios.Scenario
	t     *trace.Run
	f     judges.Finding
	out   strings.Builder
	depth int
}

func (g *generator) line(format string, args ...any) {
	fmt.Fprintf(&g.out, "%s%s\n", strings.Repeat("    ", 3+g.depth), fmt.Sprintf(format, args...))
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
	assertion, err := g.assertion()
	if err != nil {
		return "", err
	}
	if g.sc.Server.Replicas > 0 {
		return "", inexpressible("the story has replicas")
	}
	if l := g.sc.Latency; l.Max > 200*time.Microsecond {
		g.line("story.latency(%s, %s);", ms(l.Min), ms(l.Max))
	}
	for _, p := range g.sc.Processes {
		g.client(p)
	}
	for _, t := range g.sc.Threads {
		g.line("story.thread(%q, t -> {", model.ThreadName(t.Process, t.Thread))
		g.depth++
		if err := g.steps(t.Process, t.Steps); err != nil {
			return "", err
		}
		g.depth--
		g.line("});")
	}
	for _, f := range g.sc.Faults {
		if err := g.fault(f); err != nil {
			return "", err
		}
	}
	var locks []string
	for _, name := range play.LockNames(g.sc) {
		locks = append(locks, fmt.Sprintf("%q", name))
	}
	g.line("story.play(%d, %s);", g.length().Milliseconds(), strings.Join(locks, ", "))
	g.line("%s", assertion)
	return g.out.String(), nil
}

// length is how long the story must be watched: until what the judge found, and a little.
func (g *generator) length() time.Duration {
	end := g.f.AtNs
	for _, o := range g.f.Ops {
		end = max(end, o.CallNs)
	}
	return (time.Duration(end) + 4*time.Second).Round(time.Second)
}

func (g *generator) client(p scenarios.Process) {
	var set []string
	if g.sc.Watchdog != 30*time.Second {
		set = append(set, fmt.Sprintf("config.setLockWatchdogTimeout(%d);", g.sc.Watchdog.Milliseconds()))
	}
	if d := p.ClientOptions.FairWait; d != nil {
		set = append(set, fmt.Sprintf("config.setFairLockWaitTimeout(%d);", d.Milliseconds()))
	}
	if d := p.ClientOptions.ResponseTimeout; d != nil {
		set = append(set, fmt.Sprintf("server.setTimeout(%d);", d.Milliseconds()))
	}
	if n := p.ClientOptions.RetryAttempts; n != nil {
		set = append(set, fmt.Sprintf("server.setRetryAttempts(%d);", *n))
	}
	if n := p.ClientOptions.PoolSize; n != nil {
		set = append(set, fmt.Sprintf("server.setConnectionPoolSize(%d);", *n))
	}
	end := ";"
	if p.PerCall {
		end = ".objectPerCall();"
	}
	if len(set) == 0 {
		g.line("Story.Client %s = story.client(%q, (config, server) -> {})%s", variable(p.Name), p.Name, end)
		return
	}
	g.line("Story.Client %s = story.client(%q, (config, server) -> {", variable(p.Name), p.Name)
	for _, s := range set {
		g.line("    %s", s)
	}
	g.line("})%s", end)
}

// variable names the client of a process.
func variable(process string) string { return strings.ReplaceAll(process, "-", "_") }

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
		g.line("t.at(%s);", ms(s.D))
	case scenarios.StepSleep:
		g.line("t.sleep(%s);", ms(s.D))
	case scenarios.StepUse:
		if s.For > 0 {
			g.line("t.sleep(%s);", ms(s.For))
		}
	case scenarios.StepLock, scenarios.StepTryLock:
		g.line("%s;", acquire(s))
	case scenarios.StepUnlock:
		g.line("t.unlock(%q);", s.Name)
	case scenarios.StepForceUnlock:
		g.line("t.forceUnlock(%q);", s.Name)
	case scenarios.StepInterrupt:
		g.line("story.interrupt(%q);", s.Target)
	case scenarios.StepClose:
		g.line("%s.redisson.shutdown();", variable(process))
	case scenarios.StepRead, scenarios.StepPublished: // they look, and do nothing
	case scenarios.StepWithLock:
		if s.UnlockAlways {
			g.line("%s;", acquire(s))
			if err := g.steps(process, s.Steps); err != nil {
				return err
			}
			g.line("t.unlock(%q);", s.Name)
			return nil
		}
		g.line("if (%s) {", acquire(s))
		g.depth++
		if err := g.steps(process, s.Steps); err != nil {
			return err
		}
		g.line("t.unlock(%q);", s.Name)
		g.depth--
		g.line("}")
	case scenarios.StepRepeat:
		if s.Until != nil {
			g.line("while (t.before(%s)) {", ms(*s.Until))
		} else {
			g.line("for (int i = 0; i < %d; i++) {", s.Times)
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

// acquire writes the call of the library's method.
func acquire(s scenarios.Step) string {
	lease, leaseMs := "", "0"
	if s.Lease != nil && *s.Lease != 0 {
		lease, leaseMs = ms(*s.Lease), ms(*s.Lease)
	}
	unit, per := "MILLISECONDS", time.Millisecond
	if s.UnitSeconds {
		unit, per = "SECONDS", time.Second
		if lease != "" {
			lease = fmt.Sprint(int64(*s.Lease / per))
		}
	}
	if s.Kind == scenarios.StepTryLock || s.Wait != nil {
		call := "tryLock()"
		switch {
		case s.Wait == nil && lease != "":
			call = fmt.Sprintf("tryLock(0, %s, %s)", lease, unit)
		case s.Wait != nil && lease != "":
			call = fmt.Sprintf("tryLock(%d, %s, %s)", int64(*s.Wait/per), lease, unit)
		case s.Wait != nil:
			call = fmt.Sprintf("tryLock(%d, %s)", int64(*s.Wait/per), unit)
		}
		return fmt.Sprintf("t.tryLock(%q, %s, lock -> lock.%s)", s.Name, leaseMs, call)
	}
	method := "lock"
	if s.Interruptible != nil && *s.Interruptible {
		method = "lockInterruptibly"
	}
	if lease != "" {
		return fmt.Sprintf("t.lock(%q, %s, lock -> lock.%s(%s, %s))", s.Name, leaseMs, method, lease, unit)
	}
	return fmt.Sprintf("t.lock(%q, 0, lock -> lock.%s())", s.Name, method)
}

func (g *generator) fault(f scenarios.Fault) error {
	switch f.Kind {
	case model.FaultCrash:
		g.line("story.at(%s, () -> %s.crash());", ms(f.At), variable(f.Processes[0]))
	case model.FaultPartition:
		for _, p := range f.Processes {
			g.line("story.at(%s, () -> %s.proxy.cut(%s));", ms(f.At), variable(p), ms(f.For))
		}
	case model.FaultKey:
		if f.KeyDo != "delete" {
			return inexpressible("line %d lets a key expire", f.Pos.Line)
		}
		g.line("story.at(%s, () -> story.delete(%q));", ms(f.At), f.Key)
	case model.FaultRule:
		w := f.When
		rule := "new Proxy.Rule()"
		if w.Process != "" {
			rule += fmt.Sprintf(".of(%q)", w.Process)
		}
		switch w.Direction {
		case "request":
			rule += ".requests()"
		case "reply":
			rule += ".replies()"
		}
		for _, x := range []struct{ method, value string }{{"command", w.Command}, {"script", string(w.Script)}, {"channel", w.Channel}} {
			if x.value != "" {
				rule += fmt.Sprintf(".%s(%q)", x.method, x.value)
			}
		}
		if w.Nth > 0 {
			rule += fmt.Sprintf(".nth(%d)", w.Nth)
		}
		if w.Every > 0 {
			rule += fmt.Sprintf(".every(%d)", w.Every)
		}
		if f.From > 0 {
			rule += fmt.Sprintf(".from(%s)", ms(f.From))
		}
		if f.Until != nil {
			rule += fmt.Sprintf(".until(%s)", ms(*f.Until))
		}
		switch f.Do {
		case "drop", "hold", "reset":
			rule += fmt.Sprintf(".%s()", f.Do)
		case "delay":
			rule += fmt.Sprintf(".delay(%s)", ms(f.For))
		case "error":
			rule += fmt.Sprintf(".error(%q)", f.With)
		default:
			return inexpressible("line %d has a rule that does %s", f.Pos.Line, f.Do)
		}
		g.line("story.rule(%s);", rule)
	default:
		return inexpressible("line %d has the fault %s", f.Pos.Line, f.FaultSpec)
	}
	return nil
}

// assertion writes what the library should do, which the finding says that it does not.
func (g *generator) assertion() (string, error) {
	f := g.f
	who := fmt.Sprintf("%q, %q", f.Lock, f.Thread)
	switch f.Judge {
	case model.JudgeMutualExclusion:
		return fmt.Sprintf("story.assertOneOwner(%q);", f.Lock), nil
	case model.JudgeFIFO:
		return fmt.Sprintf("story.assertOrder(%q);", f.Lock), nil
	case model.JudgeHoldCount:
		return fmt.Sprintf("story.assertCount(%s);", who), nil
	case model.JudgeTraffic:
		return fmt.Sprintf("story.assertAsksSeldom(%s);", who), nil
	case model.JudgeTidy:
		if f.Form == model.FormGhost {
			return fmt.Sprintf("story.assertNoGhost(%s);", who), nil
		}
	case model.JudgeLiveness:
		if f.Form == model.FormForgotten {
			bound, free := g.waited()
			if free {
				return fmt.Sprintf("story.assertFreeLockIsGiven(%s, %s);", who, ms(bound)), nil
			}
			return fmt.Sprintf("story.assertNoHoldForNobody(%s, %s);", who, ms(bound)), nil
		}
	case model.JudgeLease:
		switch f.Form {
		case model.FormUnrenewed, model.FormUndone:
			return fmt.Sprintf("story.assertHoldStays(%s);", who), nil
		case model.FormLongLease, model.FormEndless:
			return fmt.Sprintf("story.assertLeaseIsNotLonger(%s, %d);", who, g.sc.Watchdog.Milliseconds()), nil
		case model.FormLateRenewal:
			return fmt.Sprintf("story.assertNoRenewalAfterUnlock(%s);", who), nil
		}
	case model.JudgeLinearizable, model.JudgeWant:
		if len(f.Ops) == 0 {
			return "", inexpressible("the finding names no call")
		}
		return g.answer(f.Ops[0])
	}
	return "", inexpressible("no assertion sees %s, form %q", f.Judge, f.Form)
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

// answer writes that a call comes to something else than in the run.
func (g *generator) answer(ref judges.OpRef) (string, error) {
	who := model.ThreadName(ref.Process, ref.Thread)
	for _, s := range g.sc.Threads {
		if model.ThreadName(s.Process, s.Thread) == who && slices.ContainsFunc(s.Steps, func(x scenarios.Step) bool { return x.Kind == scenarios.StepRepeat }) {
			return "", inexpressible("the call is one of several in a loop")
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
		return "", inexpressible("the finding names no call of %s", who)
	}
	outcome, ok := map[model.Outcome]string{
		model.Granted: "granted", model.Busy: "busy", model.Released: "released", model.StillHeld: "released", model.NotHeld: "not_held",
		model.Failed: "error", model.Unknown: "unknown",
	}[mine[i].Outcome]
	if !ok {
		return "", inexpressible("the call came to %q", mine[i].Outcome)
	}
	if outcome == "not_held" && mine[i].Action == model.ActForceUnlock {
		outcome = "free"
	}
	return fmt.Sprintf("story.assertCallIsNot(%q, %d, %q);", who, i+1, outcome), nil
}
