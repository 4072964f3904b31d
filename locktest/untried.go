package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/internal/counted"
	"lockstep/internal/foreign"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
)

// tested is what the runs of a test showed besides the findings of the judges.
type tested struct {
	service     play.Service
	unsimulated []string
	drawn       play.Service        // the part of service that drawn schedules showed
	skipped     map[string][]string // the stories that were not played, by the reason
	anonymous   bool                // a client wrote requests of which nobody knows for which thread of its process they are
	left        *model.Goroutine    // the first goroutine that a story left over; nil: none did
	reasons     []string            // the keys of skipped, in the order in which they came
}

// run adds what one run showed.
func (x *tested) run(v play.Verdict) {
	for _, f := range v.Findings {
		if d, ok := f.Detail.(judges.Leftover); ok && d.Goroutine != nil && x.left == nil {
			x.left = d.Goroutine
		}
	}
	x.anonymous = x.anonymous || v.Played.Trace != nil && len(v.Played.Trace.Anonymous) > 0
	x.service.Add(v.Service)
	x.unsimulated = append(x.unsimulated, v.Unsimulated...)
}

// exploration adds what drawn schedules showed.
func (x *tested) exploration(o explore.Tally) {
	x.drawn.Add(o.Service)
	x.service.Add(o.Service)
	x.unsimulated = append(x.unsimulated, o.Unsimulated...)
}

// leftover says which function leaves goroutines behind.
func (x *tested) leftover() string {
	switch g := x.left; {
	case g == nil:
		return "The judge tidy names the function in which they stand"
	case g.Started == "":
		return "The first one stands in " + g.Stands
	default:
		return fmt.Sprintf("The first one stands in %s, and %s had started it", cmp.Or(g.Stands, "the standard library"), g.Started)
	}
}

// skip notes that a story was not played.
func (x *tested) skip(name string, reason error) {
	text := reason.Error()
	var m *play.Misfit
	if errors.As(reason, &m) {
		text = m.Lacks
	}
	if x.skipped == nil {
		x.skipped = map[string][]string{}
	}
	if x.skipped[text] == nil {
		x.reasons = append(x.reasons, text)
	}
	x.skipped[text] = append(x.skipped[text], name)
}

// saysNothing reports whether a run is undecided for a reason that is told once for all runs, by unjudged.
func saysNothing(v play.Verdict) bool {
	return v.Word == play.VerdictUndecided && v.Why == "" && (len(v.Unsimulated) > 0 || v.Service.Broken())
}

// runSaysNothing is saysNothing for a drawn run.
func runSaysNothing(r explore.Run) bool {
	return r.Word == play.VerdictUndecided && r.Doubtful == nil && !r.TooLong() && len(r.Unsimulated) > 0
}

// unjudged returns the reasons why a test that found nothing has shown nothing, each with its remedy.
func (x *tested) unjudged() (why []string) {
	if met := slices.Compact(slices.Sorted(slices.Values(x.unsimulated))); len(met) > 0 {
		why = append(why, sentence.Unsimulated(met)+
			". What follows in such a run says nothing of the lock; let the lock do without it, or judge the lock on real servers (docs/live.md)")
	}
	text := sentence.Denied(x.service)
	switch {
	case len(why) > 0: // what follows may be the servers' doing
	case text == "":
		for _, k := range x.service.Useless() {
			why = append(why, sentence.Useless(k)+". What such a call would break was not tried. "+mendCalls)
		}
	case x.service.Granted == 0:
		why = append(why, text+". A lock that grants nothing breaks no promise; mend the lock, its adapter, or the options of its client, so that it is granted when nothing fails")
	default:
		why = append(why, text+". Unlock, or the end of the lease, must free the lock for others")
	}
	return why
}

// untried returns what the test did not try, a line each.
func (r *runner) untried() (lines []string) {
	if r.s.State == nil {
		lines = append(lines, fmt.Sprintf("what the servers hold: there is no State (%s), so these judges were not asked: %s", r.s.NoState, strings.Join(serverJudges, ", ")))
	}
	off := r.s.Promises.byJudge()
	for _, judge := range judgeOrder(off) {
		lines = append(lines, fmt.Sprintf("%s: Subject.Promises switches the judge off (%s)", judge, off[judge]))
	}
	x := &r.tested
	if x.anonymous {
		lines = append(lines, fmt.Sprintf("several threads in one process: the client writes the requests of several threads in a goroutine of its own, and nobody says whose each is (Process.Asks), "+
			"so these judges were not asked about runs in which that shows: %s", strings.Join(judges.NeedThreads, ", ")))
	}
	switch {
	case x.service.Asked > 0 && x.service.Followers == 0:
		lines = append(lines, "a hand-over: nobody asked for a lock after the hold of another was over, before the first fault of a run")
	case x.service.Asked == 0:
		lines = append(lines, "an acquire without a fault: none ended before the first fault of its run")
	}
	if found, gone := x.service.Contended, x.service.Impatient; found > 0 && 10*gone >= 9*found {
		lines = append(lines, fmt.Sprintf("waiters: of %s that found the lock held, %d returned without it before the hold was over (the first: %q); Lock must wait until its context ends", counted.Of(found, "Lock"), gone, cmp.Or(x.service.Impatience, "busy")))
	}
	for _, k := range x.service.Untold() {
		lines = append(lines, fmt.Sprintf("what the calls of %s say: %d worked, and none returned nil; the first error is %q, after which no judge asks what the call did", k.Action, k.Worked, k.Text))
	}
	if quiet, wait := play.LengthsOf(story.Basic[0].Scenario(r.told()), r.lock).Quiet, r.lock.Timing(0).Reconnect; wait >= quiet {
		lines = append(lines, fmt.Sprintf("a call that asks no more when it has lost its connection: its client may take %v to connect again (Reconnect), and a run ends when nothing has happened for %v", wait, quiet))
	}
	if waits := r.s.Waits; r.s.Lease > 0 && waits >= r.s.Lease {
		lines = append(lines, fmt.Sprintf("a waiter that nobody wakes: it may wait for a free lock for %v by design (Waits), which is no less than the Lease of %v", waits, r.s.Lease))
	}
	if x.drawn.Threads == 1 {
		lines = append(lines, fmt.Sprintf("several threads in one process: drawn schedules had one thread per process, as the profile %s has; Options.Profile orderly and full draw more", r.plan.Profile))
	}
	if !r.explored {
		lines = append(lines, "drawn schedules: none, or not all of them, were played")
	}
	lines = append(lines, r.untriedFaults()...)
	for _, reason := range x.reasons {
		names := x.skipped[reason]
		lines = append(lines, fmt.Sprintf("%s %s: %s", either(len(names), "the story", "the stories"), strings.Join(names, ", "), reason))
	}
	return lines
}

// either returns one of two words, the first for a single thing.
func either(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// judgeOrder returns the judges that are switched off, in the order of their names.
func judgeOrder(off map[string]string) (judges []string) {
	for judge, reason := range off {
		if reason != "" {
			judges = append(judges, judge)
		}
	}
	slices.Sort(judges)
	return judges
}

// untriedFaults returns the faults that no drawn schedule could have.
func (r *runner) untriedFaults() (lines []string) {
	var unasked, lacking []string
	for _, c := range draw.Classes {
		switch {
		case !slices.Contains(r.plan.Faults, c):
			unasked = append(unasked, string(c))
		case !draw.Meets(r.lock, c):
			lacking = append(lacking, string(c))
		}
	}
	if len(unasked) > 0 {
		lines = append(lines, fmt.Sprintf("faults of %s %s in drawn schedules: Options.Faults leaves them out", either(len(unasked), "the class", "the classes"), strings.Join(unasked, ", ")))
	}
	for _, c := range lacking {
		why := "no server of the lock has them"
		if c == string(draw.ClassWatchdog) && !r.s.Renewed {
			why = "the lock renews nothing"
		}
		lines = append(lines, fmt.Sprintf("faults of the class %s: %s", c, why))
	}
	if slices.Contains(r.plan.Faults, draw.ClassServer) && draw.Meets(r.lock, draw.ClassServer) {
		if lacks := draw.LackedServerFaults(r.lock); len(lacks) > 0 {
			lines = append(lines, "these faults of servers, which the servers of the lock do not have: "+strings.Join(lacks, ", "))
		}
	}
	return lines
}

// close ends a test: it fails the test if the test has shown nothing, and says what was not tried. go test does
// not show the log of a test that passes, so the lines of such a test go to the standard output.
func (r *runner) close(t *testing.T) {
	t.Helper()
	if r.pointless == "" {
		for _, why := range r.tested.unjudged() {
			r.errorf(t, "locktest: %s cannot be judged: %s", r.s.Name, why)
		}
	}
	var text strings.Builder
	for _, line := range r.untried() {
		fmt.Fprintf(&text, "locktest: %s: not tried: %s\n", r.s.Name, line)
	}
	switch {
	case text.Len() == 0 || r.pointless != "":
	case t.Failed():
		say(t).Log("\n" + text.String())
	default:
		_, _ = fmt.Fprint(foreign.NewTerminal(os.Stdout), text.String())
	}
}
