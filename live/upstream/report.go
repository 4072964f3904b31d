package upstream

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
)

// A Defect is the subject of a report.
type Defect struct {
	ID      string
	Title   string
	Story   string // what happens, and who is to blame
	Issues  []int  // the issues that are known to tell of it
	Release string
	Fair    bool
	// Case is set for a defect that no scenario can show; see Cases.
	Case *Case
	// Library is set for a defect of another library than Redisson.
	Library *Library
}

// A Case is a defect that no scenario can show, with a test of its own.
type Case struct {
	ID, Title, Story string
	Why              string // why no scenario can show it
	Steps            []string
	Expected         string
}

// CasesRelease is the release of Cases.
const CasesRelease = "4.7.0"

// Cases are the defects of CasesRelease that no scenario can show.
var Cases = []Case{
	{
		ID: "R-fair-async-leave", Title: "an asynchronous try of the fair lock that gives up takes 300 000 ms off the deadlines behind it, whatever its own wait was",
		Story: "tryLockAsync of the fair lock queues with its own wait, and leaves the queue with the default of 300 000 ms. The script that leaves takes that off the deadline of everybody behind, so that a waiter with a wait of 20 s has a deadline that is minutes ago. The next one that asks throws it out of the queue and goes first.",
		Why:   "scenarios make no asynchronous calls",
		Steps: []string{
			"A holds the lock until 5 s.", "B calls tryLockAsync with a wait of 1.5 s at 0.5 s, and C, behind it, tryLock with a wait of 20 s at 1 s.",
			"B gives up at 2 s. D calls tryLock with a wait of 20 s at 3.5 s.", "A unlocks at 5 s: D is granted the lock before C.",
		},
		Expected: "C is granted the lock before D, which came 2.5 s later.",
	},
	{
		ID: "R-token-lease", Title: "the fenced lock ignores the lease of lockAndGetToken",
		Story:    "RFencedLock.lockAndGetToken(leaseTime, unit) gives the lease of the watchdog and begins renewals, whatever lease it was called with.",
		Why:      "scenarios make no calls that tell a token",
		Steps:    []string{"A calls lockAndGetToken(2000, MILLISECONDS).", "The key has 30 s to live, and is renewed."},
		Expected: "The key has 2 s to live.",
	},
	{
		ID: "R-watchdog-multiplies", Title: "the watchdog multiplies when a client locks and unlocks often",
		Story:    "The task of the watchdog ends with the last hold of the client, but the timer that is under way does not. When the client locks again before it fires, there are two timers, and each renews all holds. A client that locks and unlocks often sends as many renewals in each period.",
		Why:      "no promise of a lock is broken, so that no judge finds it",
		Steps:    []string{"A locks and unlocks 20 times, with a watchdog timeout of 6 s, and locks once more.", "It counts the renewals that it sends until 15 s."},
		Expected: "A sends one renewal in 2 s.",
	},
}

// expected has the right behaviour of a lock, by the judge that finds the opposite.
var expected = map[string]string{
	model.JudgeMutualExclusion: "One thread at a time holds the lock.",
	model.JudgeLinearizable:    "Each call answers what is true of the lock while it is under way.",
	model.JudgeHoldCount:       "The server counts the levels that the thread has taken and not given up.",
	model.JudgeFIFO:            "Waiters of a fair lock are granted it in the order in which they asked.",
	model.JudgeLease:           "A hold is renewed as long as its owner holds the lock without a lease, has the lease that was asked for, and is not renewed when the lock was given up.",
	model.JudgeLiveness:        "A thread that waits for a lock that nobody holds is granted it.",
	model.JudgeTraffic:         "A thread that waits sends few commands.",
	model.JudgeWaitBound:       "A try returns when its time is over.",
	model.JudgeMisdelete:       "Nobody but its owner ends a hold.",
	model.JudgeTidy:            "A thread that does not wait has no place in the queue.",
	model.JudgeWant:            "The calls come to what their callers may expect.",
}

// A Report has the contents of the folder of a report.
type Report struct {
	Defect
	// Simulated is the run of the port that shows the defect, and Finding is its finding. They are
	// not set for a Case.
	Simulated play.Verdict
	Finding   judges.Finding
	// Live is a live run of the library that showed the defect; nil: none did. Shown is the finding of
	// this run; nil: the same as Finding.
	Live  *play.LiveRun
	Shown *judges.Finding
	// Reproduced of Runs live runs had the finding.
	Reproduced, Runs int
	// Tries is how often the test plays the story. Command is the command that writes its project.
	Tries   int
	Command string
	// Test is the result of the test; nil: it was not run.
	Test     *TestRun
	Programs []string // of the live runs, with their versions
}

// ShownAttribute is the attribute of a Go test that has shown the defect. Its value says how.
const ShownAttribute = "defect"

// A TestRun is the result of a test.
type TestRun struct {
	Failed int `json:"failed"` // tries that showed the defect
	Tries  int `json:"tries"`
	// Errors are tries in which the test itself went wrong.
	Errors  int    `json:"errors,omitempty"`
	Message string `json:"message,omitempty"` // of the first try that failed
}

// says returns a sentence about the outcome of the tries.
func (t *TestRun) says() string {
	switch {
	case t.Failed == 0 && t.Errors == 0:
		return "The test fails if the defect shows, which it did in none of the tries."
	case t.Failed == 0:
		return fmt.Sprintf("The test fails if the defect shows, which it did in none of the tries; %d went wrong.", t.Errors)
	case t.Failed < t.Tries:
		return "The test fails if the defect shows, which it did in some of the tries."
	}
	return "The test fails because of the defect."
}

// sources are the parts of a JUnit test that are the same for all defects.
//
//go:embed java/*.java java/pom.xml java/cases/*.java
var sources embed.FS

// Project returns the files of a Maven project, or of a Go module, that has the test, by their names. The
// error is ErrInexpressible if there is no such test.
func (r *Report) Project() (map[string][]byte, error) {
	if r.Library != nil {
		return r.module()
	}
	read := func(name string) []byte {
		text, err := sources.ReadFile("java/" + name)
		if err != nil {
			panic("upstream: " + err.Error())
		}
		return text
	}
	const dir = "src/test/java/lockreport"
	files := map[string][]byte{"pom.xml": bytes.ReplaceAll(read("pom.xml"), []byte("RELEASE"), []byte(r.Release))}
	for _, name := range []string{"Story.java", "Proxy.java", "Resp.java"} {
		files[path.Join(dir, name)] = read(name)
	}
	if r.Case != nil {
		name := className(r.ID) + ".java"
		files[path.Join(dir, name)] = bytes.ReplaceAll(read("cases/"+name), []byte("TRIES"), fmt.Append(nil, r.Tries))
		return files, nil
	}
	script, err := r.script()
	if err != nil {
		return nil, err
	}
	files[path.Join(dir, "StoryTest.java")] = read("StoryTest.java")
	files["src/test/resources/story.json"] = script
	return files, nil
}

// className returns the name of the test class of a Case.
func className(id string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(id, "-") {
		b.WriteString(capital(part))
	}
	return b.String() + "Test"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Text writes the report itself, with the headings of the form of the issue tracker.
func (r *Report) Text() []byte {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# %s\n\n", capital(r.Title))
	if len(r.Issues) > 0 {
		p("Issues that tell of it: %s.\n\n", Issues(r.Issues))
	}
	form := form
	if r.Library != nil {
		form = r.Library.Form
	}
	p("**%s**\n\n", form.Expected)
	switch {
	case r.Case != nil:
		p("%s\n\n", r.Case.Expected)
	default:
		p("%s\n\n", expected[r.Finding.Judge])
	}
	p("**%s**\n\n%s\n\n", form.Actual, r.Story)
	if r.Live != nil {
		for _, f := range r.Live.Findings {
			if r.Shown == nil && same(f, r.Finding) || r.Shown != nil && same(f, *r.Shown) {
				p("In a run of the library: %s.\n\n", sentence.Finding(f))
				break
			}
		}
	}
	if r.Test != nil && r.Test.Message != "" {
		p("In its test: %s.\n\n", strings.TrimSuffix(r.Test.Message, "."))
	}
	p("**%s**\n\n", form.Steps)
	steps := r.steps()
	for i, s := range steps {
		p("%d. %s\n", i+1, s)
	}
	if wire := r.wire(); len(wire) > 0 {
		p("\nWhat the server executed in that run (instant, client, command, reply):\n\n```\n%s\n```\n", strings.Join(wire, "\n"))
	}
	p("\n")
	if r.Test != nil {
		if r.Library != nil {
			p("The test is a Go module, which `%s` writes. There `go mod tidy && go test -v` plays it%s. %s\n\n", r.Command, r.Library.Needs, r.Test.says())
		} else {
			p("The test is a Maven project, which `%s` writes. There `mvn test` plays it, with `redis-server` on the PATH, or with `-Dredis.port=PORT` on an empty one. %s\n\n", r.Command, r.Test.says())
		}
		p("How often: %d of %d tries of the test.", r.Test.Failed, r.Test.Tries)
	}
	if r.Runs > 0 {
		p(" %d of %d runs of the library in processes of their own.", r.Reproduced, r.Runs)
	}
	release := r.Release
	if r.Library != nil {
		release = strings.Join(r.Library.versions(), ", ")
	}
	p("\n\n**%s**\n\n%s\n\n**%s**\n\n%s\n\n**%s**\n\n%s\n", form.Server, cmp.Or(strings.Join(r.Programs, ", "), "redis-server"), form.Library, release, form.Configuration, r.configuration())
	return b.Bytes()
}

// Issues returns the numbers of issues for people, or "" for none.
func Issues(numbers []int) string {
	var out []string
	for _, n := range numbers {
		out = append(out, fmt.Sprintf("#%d", n))
	}
	return strings.Join(out, ", ")
}

// same reports whether two findings break the same promise for the same thread.
func same(a, b judges.Finding) bool {
	return a.Judge == b.Judge && a.Form == b.Form && a.Lock == b.Lock && a.Thread == b.Thread
}

// Shows reports whether a verdict has the finding as a bug.
func Shows(v play.Verdict, f judges.Finding) bool {
	return slices.ContainsFunc(v.Findings, func(x judges.Finding) bool {
		return same(x, f) && x.Verdict == judges.Broken && x.Class == f.Class
	})
}

func (r *Report) steps() (out []string) {
	if r.Case != nil {
		return r.Case.Steps
	}
	sc := r.Simulated.Scenario
	out = append(out, fmt.Sprintf("%s %s", strings.Join(strings.Fields(sc.About), " "), processes(sc)))
	for _, t := range sc.Threads {
		out = append(out, fmt.Sprintf("Thread %s: %s.", model.ThreadName(t.Process, t.Thread), inWords(t.Steps)))
	}
	for _, f := range sc.Faults {
		if f.Kind == model.FaultRule {
			out = append(out, fmt.Sprintf("A proxy between the clients and the server: %s.", f.FaultSpec))
		} else {
			out = append(out, fmt.Sprintf("At %v: %s.", f.At, f.FaultSpec))
		}
	}
	return out
}

func processes(sc *scenarios.Scenario) string {
	var names []string
	for _, p := range sc.Processes {
		names = append(names, p.Name)
	}
	if len(names) == 1 {
		return "There is one client."
	}
	return fmt.Sprintf("The clients are %s.", strings.Join(names, ", "))
}

// inWords writes steps in words.
func inWords(steps []scenarios.Step) string {
	var out []string
	for _, s := range steps {
		switch s.Kind {
		case scenarios.StepAt:
			out = append(out, "at "+s.D.String())
		case scenarios.StepSleep:
			out = append(out, "sleep "+s.D.String())
		case scenarios.StepLock, scenarios.StepTryLock:
			out = append(out, method(s)+" on "+s.Name)
		case scenarios.StepWithLock:
			out = append(out, method(s)+" on "+s.Name, inWords(s.Steps), "unlock() on "+s.Name)
		case scenarios.StepUnlock:
			out = append(out, "unlock() on "+s.Name)
		case scenarios.StepForceUnlock:
			out = append(out, "forceUnlock() on "+s.Name)
		case scenarios.StepInterrupt:
			out = append(out, "interrupt "+s.Target)
		case scenarios.StepUse:
			out = append(out, "work "+s.For.String())
		case scenarios.StepRepeat:
			if s.Until != nil {
				out = append(out, fmt.Sprintf("until %v again and again: %s", *s.Until, inWords(s.Steps)))
			} else {
				out = append(out, fmt.Sprintf("%d times: %s", s.Times, inWords(s.Steps)))
			}
		}
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), ", ")
}

// method writes the call of the method of Redisson that asks for a lock.
func method(s scenarios.Step) string {
	unit, per := "MILLISECONDS", time.Millisecond
	if s.UnitSeconds {
		unit, per = "SECONDS", time.Second
	}
	var args []string
	tries := s.Kind == scenarios.StepTryLock || s.Wait != nil
	leased := s.Lease != nil && *s.Lease != 0
	switch {
	case s.Wait != nil:
		args = append(args, fmt.Sprint(int64(*s.Wait/per)))
	case tries && leased:
		args = append(args, "0")
	}
	if leased {
		args = append(args, fmt.Sprint(int64(*s.Lease/per)))
	}
	if len(args) > 0 {
		args = append(args, unit)
	}
	name := "lock"
	switch {
	case tries:
		name = "tryLock"
	case s.Interruptible != nil && *s.Interruptible:
		name = "lockInterruptibly"
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

// wireMost bounds the commands that a report shows.
const wireMost = 40

// wire lists the commands that the server executed for the lock in the live run.
func (r *Report) wire() (out []string) {
	if r.Live == nil {
		return nil
	}
	left := 0
	for _, e := range r.Live.Played.Record.Events {
		if e.Kind != model.KindExec || e.Script == "" || !slices.Contains(e.Locks, r.Finding.Lock) {
			continue
		}
		if len(out) == wireMost {
			left++
			continue
		}
		out = append(out, strings.TrimRight(fmt.Sprintf("%9s  %-4s %s (%s) %s → %s", model.At(e.AtNs), e.Process, e.Command, e.Script, strings.Join(e.Owners, " "), e.Reply), " "))
	}
	if left > 0 {
		out = append(out, fmt.Sprintf("and %d more", left))
	}
	return out
}

func (r *Report) configuration() string {
	switch {
	case r.Case != nil:
		return "One server; the rest is in the test."
	case r.Library != nil:
		return "As in the test."
	}
	sc := r.Simulated.Scenario
	var out []string
	if sc.Watchdog != 30*time.Second {
		out = append(out, fmt.Sprintf("lockWatchdogTimeout %d", sc.Watchdog.Milliseconds()))
	}
	for _, p := range sc.Processes {
		o := p.ClientOptions
		if o.FairWait != nil {
			out = append(out, fmt.Sprintf("fairLockWaitTimeout %d (client %s)", o.FairWait.Milliseconds(), p.Name))
		}
		if o.ResponseTimeout != nil {
			out = append(out, fmt.Sprintf("timeout %d (client %s)", o.ResponseTimeout.Milliseconds(), p.Name))
		}
		if o.RetryAttempts != nil {
			out = append(out, fmt.Sprintf("retryAttempts %d (client %s)", *o.RetryAttempts, p.Name))
		}
	}
	if len(out) == 0 {
		return "One server, defaults."
	}
	return "One server; " + strings.Join(out, ", ") + "."
}

// Inexpressible reports whether the error is ErrInexpressible. Its text says why there is no test.
func Inexpressible(err error) bool { return errors.Is(err, ErrInexpressible) }
