package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/renameio/v2"

	"lockstep/explore"
	explored "lockstep/explore/failure"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// shrinkRuns bounds the runs in which one failure is made small. The time usually ends
// first.
const shrinkRuns = 3000

// odd groups the runs that the judges cannot decide, and those that differed when they were
// played twice. Runs with the same odd are reported together.
type odd struct {
	word  play.Word
	judge string
	facts string // the rule, the lock and the thread of the finding that nobody can decide, or the place of the panic
}

func oddOf(r explore.Run) odd {
	if p, ok := firstPanic(r); ok {
		return odd{r.Word, judges.JudgeHarness, placeOf(p)}
	}
	if f := r.Doubtful; f != nil {
		return odd{r.Word, f.Judge, fmt.Sprintf("%T %q %q", f.Detail, f.Lock, f.Thread)}
	}
	return odd{word: r.Word}
}

// explore draws schedules and plays them.
func (r *runner) explore(t *testing.T, h *sim.Host) {
	t.Helper()
	var spent time.Duration
	var began time.Time
	most := r.limit.shrinking(cmp.Or(r.o.Shrink, 10*time.Second))
	player := explore.HereOn(h, r.plan, r.lock, func() bool { return r.limit.over() || spent+r.limit.now().Sub(began) > most })
	defer player.Close()
	runs, why := r.draw(t, h, player, most)
	total := explore.Sum(r.plan, runs)
	r.tested.exploration(total)
	several := ""
	if len(total.Groups) > 0 {
		several = " (a schedule with several findings counts once here, by the worst, and below with each of them)"
	}
	say(t).Logf("%s of %s with the profile %s: %s%s", counted.Of(total.Runs, "schedule"), r.s.Name, r.plan.Profile, cmp.Or(words(total.Words), "none was played"), several)
	if why != "" {
		r.errorf(t, "locktest: played %d of %s: %s", len(runs), counted.Of(r.plan.Runs, "schedule"), why)
	}
	r.tellOdd(t, total, len(runs))
	if s := r.servers(); s.panicked != "" {
		r.errorf(t, "locktest: %s cannot be judged: its State panicked: %s", r.s.Name, s.panicked)
		return
	}
	var failures []failure
	for _, g := range total.Groups {
		if g.Class != judges.ClassBug {
			say(t).Logf("limit, %s (%s): %s. Its excuse: %s", g.Judge, counted.Of(g.Count, "run"), g.Why, g.Excused())
			continue
		}
		if r.limit.late() && g.Least.Recording != "" {
			r.unshown(t, g)
			continue
		}
		r.playing(fmt.Sprintf("schedule number %d of -lockstep.seed=%d -lockstep.profile=%s, which is made small", g.Least.Index+1, r.plan.Seed, r.plan.Profile))
		began = r.limit.now()
		small, err := player.Shrink(explore.ShrinkTask{Run: g.Least, Failed: g.Failed, Budget: shrinkRuns})
		spent += r.limit.now().Sub(began)
		if err != nil {
			say(t).Errorf("locktest: %v", err)
			continue
		}
		f, err := r.again(h, g, small)
		if err != nil {
			say(t).Errorf("locktest: %v", err)
			continue
		}
		f.schedules = explore.Like(runs, g.Failed)
		failures = merge(failures, f)
	}
	for _, f := range failures {
		f.how = f.drawn(len(runs))
		r.fail(t, f)
	}
	r.explored = why == ""
}

// draw plays the drawn schedules until the time that is left is needed to make failures small. why says for what
// reason it played fewer than the plan has; "": it played all.
func (r *runner) draw(t *testing.T, h *sim.Host, player explore.Player, shrinking time.Duration) (runs []explore.Run, why string) {
	t.Helper()
	next := func(index int) {
		h.StillAfter = r.limit.standing(flags.hang.value)
		r.playing(fmt.Sprintf("schedule number %d of -lockstep.seed=%d -lockstep.profile=%s", index+1, r.plan.Seed, r.plan.Profile))
	}
	late := func() string {
		return r.limit.why() + "; give a larger one, or ask for fewer schedules with -lockstep.runs"
	}
	next(0)
	for family := range r.plan.Families() {
		if !r.limit.before(shrinking) {
			return runs, late()
		}
		err := player.Family(family, nil, func(one explore.Run) error {
			r.soFar.add(one)
			switch runs = append(runs, one); {
			case len(runs) == r.plan.Runs:
			case !r.limit.before(shrinking):
				return errTimeOver
			case runtime.NumGoroutine() > mostGoroutines:
				return errCrowded
			}
			next(len(runs))
			return nil
		})
		switch {
		case errors.Is(err, errTimeOver):
			return runs, late()
		case errors.Is(err, errCrowded):
			return runs, fmt.Sprintf("%d goroutines are left over by the runs until then, which makes each run longer than the one before. %s", runtime.NumGoroutine(), r.tested.leftover())
		case err != nil:
			say(t).Fatal("locktest:", err)
		}
	}
	return runs, ""
}

// tellOdd tells of the runs that are neither right nor wrong, in one line for all that are alike.
func (r *runner) tellOdd(t *testing.T, total explore.Tally, played int) {
	t.Helper()
	alike := map[odd]int{}
	var long []explore.Run
	total.Odd = slices.DeleteFunc(total.Odd, runSaysNothing)
	for _, one := range total.Odd {
		if one.TooLong() {
			long = append(long, one)
			continue
		}
		alike[oddOf(one)]++
	}
	if len(long) > 0 {
		if text, fails := longText(r.s.Name, long, played); fails {
			r.errorf(t, "locktest: %s", text)
		} else {
			say(t).Log(text)
		}
	}
	for _, one := range total.Odd {
		key, text := oddOf(one), one.Why
		if p, ok := firstPanic(one); ok {
			text = r.panicText(p)
		}
		switch n := alike[key]; {
		case n > 1:
			r.errorf(t, "locktest: %d of %s of %s, number %d the first, are %s: %s", n, counted.Of(played, "schedule"), r.s.Name, one.Index+1, one.Word, text)
		case n == 1:
			r.errorf(t, "locktest: schedule number %d of %s is %s: %s", one.Index+1, r.s.Name, one.Word, text)
		}
		delete(alike, key)
	}
}

// mostGoroutines is the number of goroutines after which no further schedule is drawn. Servers and clients
// of a run have some hundreds, which end with it.
const mostGoroutines = 10_000

// errCrowded ends an exploration whose runs leave so many goroutines behind that it would not end.
var errCrowded = errors.New("too many goroutines are left over")

// unshown fails the test for a bug that no time remains to play again. It keeps the recording as it was found.
func (r *runner) unshown(t *testing.T, g explore.Found) {
	t.Helper()
	fingerprint := g.Fingerprint()
	again := r.met[fingerprint]
	r.met[fingerprint] = true
	if again || slices.Contains(r.o.Accept, fingerprint) {
		return
	}
	r.broken[g.Judge] = append(r.broken[g.Judge], fingerprint)
	file := r.fileOf(fingerprint)
	err := os.MkdirAll(r.dir, 0o755)
	if err == nil {
		err = renameio.WriteFile(file, []byte(g.Least.Recording), 0o644)
	}
	r.errorf(t, "locktest: %s breaks %s: %s\nschedule number %d does; it is as it was found, since %s\n%s",
		r.s.Name, g.Judge, g.Why, g.Least.Index+1, r.limit.why(), strings.TrimSuffix(r.nameOf(fingerprint, file, err), "\n"))
}

// longMost is the largest share of schedules that may take too many steps: one in so many.
const longMost = 10

// longText tells of the schedules among played ones that took too many steps to be judged. Some fault of
// such a schedule lasts, and no lock can prevent that callers try again. fails reports that there are too
// many.
func longText(name string, long []explore.Run, played int) (text string, fails bool) {
	return fmt.Sprintf("%d of %s of %s, number %d the first, took more than %d steps and were not judged: while a fault lasts, the callers or the client try again at once",
		len(long), counted.Of(played, "schedule"), name, long[0].Index+1, explore.MostSteps), len(long)*longMost > played
}

// again plays the least of a group of failures again, as it was made small.
func (r *runner) again(h *sim.Host, g explore.Found, small explore.Shrunk) (failure, error) {
	rec, sc, lock, err := play.ReadRecordingOf("shrunk", []byte(small.Recording), func(string) (*subject.Subject, error) { return r.lock, nil })
	if err != nil {
		return failure{}, fmt.Errorf("a failure cannot be read again: %w", err)
	}
	v, _ := play.Replay(h, rec, sc, lock)
	f, found := explored.First(v, g.Judge)
	if !found && v.Played.Record.Unstarted() != "" {
		return failure{}, fmt.Errorf("a failure of %s cannot be played again: %s", g.Judge, v.Why)
	}
	if !found {
		where := rec.Explain(h, sc, lock, v.Played.Result)
		if where == "" {
			where = "although further plays of this schedule were all the same"
		}
		return failure{}, fmt.Errorf("%s is nondeterministic: a failure of %s, first found in schedule number %d, does not repeat when the schedule is played again, %s",
			r.s.Name, g.Judge, g.First.Index+1, where)
	}
	return failure{fingerprint: small.Fingerprint(), verdict: v, finding: f, size: small.Size, unfinished: small.Unfinished}, nil
}

// merge adds a failure to those that were found. Failures that are the same once they
// are small count as one, and the smallest is shown.
func merge(failures []failure, f failure) []failure {
	i := slices.IndexFunc(failures, func(other failure) bool { return other.fingerprint == f.fingerprint })
	if i < 0 {
		return append(failures, f)
	}
	maps.Copy(f.schedules, failures[i].schedules)
	if failures[i].size <= f.size {
		f.verdict, f.finding, f.size, f.unfinished = failures[i].verdict, failures[i].finding, failures[i].size, failures[i].unfinished
	}
	failures[i] = f
	return failures
}

// words writes the numbers of verdicts.
func words(n map[string]int) string {
	var parts []string
	for _, w := range []play.Word{play.VerdictHeld, play.VerdictLimit, play.VerdictBug, play.VerdictUndecided, play.VerdictNondeterministic} {
		if n[string(w)] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[string(w)], w))
		}
	}
	return strings.Join(parts, ", ")
}
