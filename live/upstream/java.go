package upstream

import (
	"embed"
	"fmt"
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

// className returns the name of the test class of a defect.
func className(id string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(id, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String() + "Test"
}

// test writes the test class of a story. The simulated run of the story has the finding.
func test(id, title string, fair bool, v play.Verdict, f judges.Finding, tries int) (string, error) {
	g := &generator{dialect: java{}, sc: v.Scenario, t: v.Played.Trace, f: f}
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

// java is the dialect of a JUnit test.
type java struct{}

func (java) depth() int     { return 3 }
func (java) indent() string { return "    " }

func (java) latency(l scenarios.Range) string {
	if l.Max <= 200*time.Microsecond {
		return ""
	}
	return fmt.Sprintf("story.latency(%s, %s);", ms(l.Min), ms(l.Max))
}

func (java) thread(names []string) (begin, end string) {
	return fmt.Sprintf("story.thread(%q, t -> {", names[0]), "});"
}

func (java) together() bool { return false }

func (java) at(d time.Duration) string                { return fmt.Sprintf("t.at(%s);", ms(d)) }
func (java) sleep(d time.Duration) string             { return fmt.Sprintf("t.sleep(%s);", ms(d)) }
func (java) acquire(s scenarios.Step) (string, error) { return acquire(s), nil }
func (java) statement(expression string) string       { return expression + ";" }
func (java) ifSo(expression string) string            { return fmt.Sprintf("if (%s) {", expression) }
func (java) until(d time.Duration) string             { return fmt.Sprintf("while (t.before(%s)) {", ms(d)) }
func (java) times(n int) string                       { return fmt.Sprintf("for (int i = 0; i < %d; i++) {", n) }
func (java) unlock(name string) string                { return fmt.Sprintf("t.unlock(%q);", name) }
func (java) interrupt(thread string) string           { return fmt.Sprintf("story.interrupt(%q);", thread) }

func (java) forceUnlock(name string) (string, error) {
	return fmt.Sprintf("t.forceUnlock(%q);", name), nil
}

func (java) extend(string) (string, error) {
	return "", inexpressible("the library extends no hold by hand")
}

func (java) shut(process string) (string, error) {
	return fmt.Sprintf("%s.redisson.shutdown();", variable(process)), nil
}

func (java) play(length time.Duration, names []string) string {
	var locks []string
	for _, name := range names {
		locks = append(locks, fmt.Sprintf("%q", name))
	}
	return fmt.Sprintf("story.play(%d, %s);", length.Milliseconds(), strings.Join(locks, ", "))
}

func (java) client(sc *scenarios.Scenario, p scenarios.Process) (out []string, err error) {
	var set []string
	if sc.Watchdog != 30*time.Second {
		set = append(set, fmt.Sprintf("config.setLockWatchdogTimeout(%d);", sc.Watchdog.Milliseconds()))
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
	begin := fmt.Sprintf("Story.Client %s = story.client(%q, (config, server) -> {", variable(p.Name), p.Name)
	if len(set) == 0 {
		return []string{begin + "})" + end}, nil
	}
	out = append(out, begin)
	for _, s := range set {
		out = append(out, "    "+s)
	}
	return append(out, "})"+end), nil
}

// variable names the client of a process.
func variable(process string) string { return strings.ReplaceAll(process, "-", "_") }

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

func (java) fault(f scenarios.Fault) (out []string, err error) {
	switch f.Kind {
	case model.FaultCrash:
		out = append(out, fmt.Sprintf("story.at(%s, () -> %s.crash());", ms(f.At), variable(f.Processes[0])))
	case model.FaultPartition:
		for _, p := range f.Processes {
			out = append(out, fmt.Sprintf("story.at(%s, () -> %s.proxy.cut(%s));", ms(f.At), variable(p), ms(f.For)))
		}
	case model.FaultKey:
		if f.KeyDo != "delete" {
			return nil, inexpressible("line %d lets a key expire", f.Pos.Line)
		}
		out = append(out, fmt.Sprintf("story.at(%s, () -> story.delete(%q));", ms(f.At), f.Key))
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
		if w.After > 0 || f.Awaits != nil {
			return nil, inexpressible("line %d has the fault %s", f.Pos.Line, f.FaultSpec)
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
			return nil, inexpressible("line %d has a rule that does %s", f.Pos.Line, f.Do)
		}
		out = append(out, fmt.Sprintf("story.rule(%s);", rule))
	default:
		return nil, inexpressible("line %d has the fault %s", f.Pos.Line, f.FaultSpec)
	}
	return out, nil
}

func (java) assertion(g *generator) (before, after string, err error) {
	after, err = javaAssertion(g)
	return "", after, err
}

func javaAssertion(g *generator) (string, error) {
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
		return javaAnswer(g.call(f.Ops[0]))
	}
	return "", inexpressible("no assertion sees %s, form %q", f.Judge, f.Form)
}

// javaAnswer writes the assertion that a call does not come to the same as in the run.
func javaAnswer(who string, n int, c *trace.Call, err error) (string, error) {
	if err != nil {
		return "", err
	}
	outcome, ok := map[model.Outcome]string{
		model.Granted: "granted", model.Busy: "busy", model.Released: "released", model.StillHeld: "released", model.NotHeld: "not_held",
		model.Failed: "error", model.Unknown: "unknown",
	}[c.Outcome]
	if !ok {
		return "", inexpressible("the call came to %q", c.Outcome)
	}
	if outcome == "not_held" && c.Action == model.ActForceUnlock {
		outcome = "free"
	}
	return fmt.Sprintf("story.assertCallIsNot(%q, %d, %q);", who, n, outcome), nil
}
