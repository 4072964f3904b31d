package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/explore"
	"lockstep/internal/foreign"
	"lockstep/internal/input"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Run judges a lock. It replays the recordings that earlier failures left under
// testdata/lockstep, plays the stories of the literature that apply to the lock, and
// explores schedules under faults. A bug fails the test, see the package comment; a limit
// is logged. If a recording fails, nothing else is played, unless a flag asks for schedules.
//
// Run stops before the test meets the -timeout of go test, and shows what it found until then. Real time
// decides only how much is played, and not how it is judged. Run then fails the test even if it
// found nothing, since a pass would hide that a part was not played.
func Run(t *testing.T, s Subject, o Options) {
	t.Helper()
	run(t, s, o, callerOfRun(), timeLimitOf(t))
}

func run(t *testing.T, s Subject, o Options, at place, limit timeLimit) {
	t.Helper()
	showLabels()
	if err := s.check(); err != nil {
		say(t).Fatal("locktest:", err)
	}
	plan, err := o.plan(s.Name)
	if err != nil {
		say(t).Fatal("locktest:", err)
	}
	files, err := o.scenarioFiles()
	if err != nil {
		say(t).Fatal("locktest:", err)
	}
	r := newRunner(t, s, o, plan, at)
	r.limit = limit
	defer r.soFar.watch(foreign.NewTerminal(os.Stdout), s.Name, limit)()
	if !r.open() {
		return
	}
	r.serveLive()
	if file := *flags.replay; file != "" {
		t.Run("replay", func(t *testing.T) {
			t.Helper()
			r.on(t, func(h *sim.Host) {
				t.Helper()
				r.replay(t, h, file)
			})
		})
		if *flags.mended {
			t.Run("mended", func(t *testing.T) {
				t.Helper()
				r.on(t, func(h *sim.Host) {
					t.Helper()
					r.mended(t, h, file)
				})
			})
		}
		if runs := flags.live.value; runs > 0 {
			t.Run("live", func(t *testing.T) {
				t.Helper()
				r.live(t, file, runs)
			})
		}
		return
	}
	r.recordings()
	if t.Failed() && !asksToDraw() {
		say(t).Logf("locktest: stories, scenario files and drawn schedules are played when no recording in %s fails, or with -lockstep.runs", r.dir)
		r.showSummary(t)
		return
	}
	t.Run("stories", func(t *testing.T) {
		t.Helper()
		for i, st := range story.Basic {
			if r.pointless != "" {
				say(t).Logf("n/a: the %d stories after %s: %s", len(story.Basic)-i, story.Basic[i-1].Name, r.pointless)
				return
			}
			t.Run(st.Name, func(t *testing.T) {
				t.Helper()
				r.story(t, st)
			})
		}
	})
	r.scenarios(files)
	t.Run("explore", func(t *testing.T) {
		t.Helper()
		if r.pointless != "" {
			say(t).Skip("n/a:", r.pointless)
		}
		r.on(t, func(h *sim.Host) {
			t.Helper()
			r.explore(t, h)
		})
	})
	if r.unplayed > 0 {
		r.errorf(t, "locktest: %d of the recordings, stories and scenarios of %s were not played: %s; give a larger one", r.unplayed, s.Name, limit.why())
	}
	for _, fingerprint := range o.Accept {
		if r.explored && !r.met[fingerprint] {
			say(t).Logf("locktest: the accepted finding %s did not occur; remove it from Options.Accept if it is mended", fingerprint)
		}
	}
	r.showSummary(t)
	r.close(t)
}

// showSummary logs the summary, if there is one.
func (r *runner) showSummary(t *testing.T) {
	t.Helper()
	if text := r.summary(); text != "" {
		say(t).Log("locktest: " + text)
	}
}

// runner is one Run.
type runner struct {
	t        *testing.T
	s        Subject
	o        Options
	plan     explore.Plan
	at       place // where the judging was asked for
	dir      string
	offers   offers
	lock     *subject.Subject
	met      map[string]bool     // fingerprints
	broken   map[string][]string // by judge, the fingerprints of the failures, in the order in which they were shown
	holds    map[string]bool     // the recordings in which the lock holds now
	panicked map[string]bool     // the places of panics that were shown
	shown    []shownFailure
	said     map[string]bool // the judges of further bugs of failures that were said in a line
	explored bool            // to the end
	limit    timeLimit
	tested   tested
	soFar    soFar
	unplayed int // recordings, stories and scenarios for which no time remained
	// pointless is the reason why nothing else can be judged; "": go on.
	pointless string
}

func newRunner(t *testing.T, s Subject, o Options, plan explore.Plan, at place) *runner {
	return &runner{t: t, s: s, o: o, plan: plan, at: at, dir: filepath.Join("testdata", "lockstep", folder(t.Name())), met: map[string]bool{}, broken: map[string][]string{}, holds: map[string]bool{}, panicked: map[string]bool{}, said: map[string]bool{}, limit: timeLimit{now: time.Now}}
}

// open finds out what the lock offers. It fails the test and returns false if the lock
// cannot be opened.
func (r *runner) open() bool {
	r.t.Helper()
	offers, err := r.probe()
	if err != nil {
		r.errorf(r.t, "locktest: %s cannot be opened: %v", r.s.Name, err)
		return false
	}
	r.offers, r.lock = offers, r.s.compile(offers)
	r.servers().tested = true
	return true
}

// on runs f with a host, and turns a panic of a world into a failure of the test.
func (r *runner) on(t *testing.T, f func(*sim.Host)) {
	t.Helper()
	p := recovered(t, func() {
		t.Helper()
		f(r.host(t))
	})
	if hung, ok := p.(*sim.Hung); ok {
		if r.servers().reading.Swap(false) {
			hung.Cause = "its State does not return; State must read the servers that it is given, such as by redistest.Keys, and ask nobody through a client"
		}
		r.errorf(t, "locktest: %s cannot be judged: %v\n\n%s", r.s.Name, hung, hung.LockFrames())
		r.pointless = "a world of the lock stood still"
	} else if p != nil {
		r.errorf(t, "locktest: %s cannot be judged: %v", r.s.Name, p)
	}
}

// recovered runs f and returns the value of its panic. An error that is reported while a function
// panics is shown at the line of that function.
func recovered(t *testing.T, f func()) (panicked any) {
	t.Helper()
	defer func() { panicked = recover() }()
	f()
	return nil
}

func (r *runner) host(t *testing.T) *sim.Host {
	h := sim.GuestHost(t)
	h.StillAfter = r.limit.standing(flags.hang.value)
	return h
}

func (r *runner) probe() (o offers, err error) {
	defer func() {
		p := recover()
		if hung, ok := p.(*sim.Hung); ok {
			err = fmt.Errorf("%v\n\n%s", hung, hung.LockFrames())
		} else if p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	return probe(r.host(r.t), r.s)
}

// recordings replays what earlier failures left.
func (r *runner) recordings() {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, "*.lockstep"))
	if err != nil {
		say(r.t).Fatal("locktest:", err)
	}
	// First those of the plainest story, as the failures were shown when they were recorded.
	slices.SortStableFunc(files, func(a, b string) int {
		return cmp.Compare(storyRank(fingerprintOf(a)), storyRank(fingerprintOf(b)))
	})
	for _, file := range files {
		r.t.Run("recording/"+strings.TrimSuffix(filepath.Base(file), ".lockstep"), func(t *testing.T) {
			t.Helper()
			r.skipIfLate(t)
			r.on(t, func(h *sim.Host) {
				t.Helper()
				r.replay(t, h, file)
			})
		})
	}
}

// read reads a recording. It ends the test if the recording is not of this lock.
func (r *runner) read(t *testing.T, file string) (*play.Recording, *scenarios.Scenario, *subject.Subject) {
	t.Helper()
	text, err := input.Read(file, "-lockstep.replay takes a recording, such as testdata/lockstep/TEST/FINGERPRINT.lockstep", play.RecordingMost)
	if err != nil {
		say(t).Fatal("locktest:", err)
	}
	rec, sc, lock, err := play.ReadRecordingOf(file, text, func(name string) (*subject.Subject, error) {
		if name != r.lock.Name {
			hint := "; name the subject as before, or delete the recording"
			if _, err := subject.Find(name); err == nil {
				hint = fmt.Sprintf("; simrun replay %s plays it, since that lock is built in", file)
			}
			return nil, fmt.Errorf("the recording is of the lock %q, and the test's is %q%s", name, r.lock.Name, hint)
		}
		return r.lock, nil
	})
	var overlaid *play.OtherOverlayError
	if errors.As(err, &overlaid) {
		say(t).Fatalf("locktest: %v; replay it with: %s", err, r.replayWith(!sim.Overlaid, file))
	}
	var other *play.WrongWorldError
	if err != nil && !(errors.As(err, &other) && other.Loads) {
		say(t).Fatal("locktest:", err)
	}
	if err := play.Applies(sc, lock); err != nil {
		say(t).Skipf("n/a: %v", err)
	}
	return rec, sc, lock
}

// replay plays a recording. It fails the test if the lock still breaks a promise.
func (r *runner) replay(t *testing.T, h *sim.Host, file string) {
	t.Helper()
	rec, sc, lock := r.read(t, file)
	r.playing("the recording " + file)
	v, diverged := play.Replay(h, rec, sc, lock)
	fingerprint := fingerprintOf(file)
	schedule := "the schedule that broke it before"
	switch {
	case rec.World != sim.Version:
		schedule = fmt.Sprintf("a schedule near the one that broke it before (it was recorded in world version %d, and this one is %d)", rec.World, sim.Version)
	case diverged != "":
		schedule = fmt.Sprintf("a schedule near the one that broke it before (the lock no longer sends what it sent then: %s)", diverged)
	}
	same := true // as when it was recorded
	if v.Digest() != rec.Digest {
		if where := rec.Explain(h, sc, lock, v.Played.Result); where != "" {
			same = false
			r.errorf(t, "locktest: %s is nondeterministic: the schedule of %s gives different records, %s", r.s.Name, file, where)
		}
	}
	f, found := firstBug(v, sc.Expect[lock.Name].Judges...) // what the recording was made for
	if !found && !same {
		return // the lock may hold in some runs and not in others
	}
	if v.Word == play.VerdictUndecided {
		r.rest(t, v)
		return
	}
	if !found {
		r.holds[file] = true
		say(t).Logf("locktest: %s holds in %s; the verdict is %s. Keep the recording: it is a test now. If this test was wrong then, and not the lock, you may delete it", r.s.Name, schedule, v.Word)
		return
	}
	if *flags.explain != "" {
		r.explain(t, h, v, f, file)
		return
	}
	r.fail(t, failure{fingerprint: fingerprint, verdict: v, finding: f, file: file, story: storyOf(fingerprint), how: "it was recorded in " + file})
}

// inStory returns the fingerprint of the failures of a judge in a story.
func inStory(name, judge string) string { return ofStory + "." + name + "." + judge }

// storyOf returns the story in the fingerprint of a failure; "": it is of no story.
func storyOf(fingerprint string) string {
	if parts := strings.Split(fingerprint, "."); parts[0] == ofStory && len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// storyRank is the place in the order of stories of the story that is in a fingerprint, or a later one.
func storyRank(fingerprint string) int {
	i := slices.IndexFunc(story.Basic, func(s story.Story) bool { return s.Name == storyOf(fingerprint) })
	if i < 0 {
		return len(story.Basic)
	}
	return i
}

// story plays one story.
func (r *runner) story(t *testing.T, st story.Story) {
	t.Helper()
	if why := st.Lacks(r.told()); why != "" {
		r.tested.skip(st.Name, errors.New(why))
		say(t).Skip("n/a:", why)
	}
	sc := st.Scenario(r.told())
	if err := play.Applies(sc, r.lock); err != nil { // such as a fault that its servers do not have
		r.tested.skip(st.Name, err)
		say(t).Skip("n/a:", err)
	}
	r.skipIfLate(t)
	r.playing("the story " + st.Name)
	r.on(t, func(h *sim.Host) {
		t.Helper()
		h.MostSteps = storySteps
		v := play.RunTwice(h, sc, r.lock, 1)
		why := r.misfit(v)
		if why == "" && st.Name == story.Basic[0].Name {
			why = r.heldUnasked(h)
		}
		if why == "" && (v.Word == play.VerdictNondeterministic || v.Played.Record != nil && len(prolonging(v.Played.Record)) > 0) {
			why = r.renewsInALongHold(h)
		}
		if why != "" {
			r.errorf(t, "locktest: %s cannot be judged: %s", r.s.Name, why)
			if v.Word == play.VerdictNondeterministic && r.servers().panicked == "" {
				r.rest(t, v)
			}
			r.pointless = "the subject does not fit the lock"
			return
		}
		r.tested.run(v)
		f, found := firstBug(v)
		if found && f.Judge == model.JudgeWant && v.Service.Broken() {
			return // the story wants an answer of a lock that is granted
		}
		if d := v.Played.Trace; found && d != nil && len(d.Defects) > 0 { // the rest of the run may follow from it
			text := judges.JudgeHarness + ": " + d.Defects[0].Text
			if len(v.Played.Panics) > 0 {
				text = r.panicText(v.Played.Panics[0])
			}
			r.errorf(t, "locktest: %s is %s: %s", r.s.Name, play.VerdictUndecided, text)
			return
		}
		if found && v.Word != play.VerdictNondeterministic {
			r.fail(t, failure{fingerprint: inStory(st.Name, f.Judge), verdict: v, finding: f, story: st.Name, how: "the story " + st.Name + ": " + st.About})
			return
		}
		if len(v.Unmet) > 0 && v.Word == play.VerdictUndecided {
			say(t).Logf("the lock does not do what the story is about: %s", v.Why)
			return
		}
		r.rest(t, v)
	})
}

// told returns the facts about the lock that stories depend on.
func (r *runner) told() story.Lock { return story.Of(r.lock, 0) }

// storySteps limits a story, which has some hundred steps, or some thousand if waiters ask often.
const storySteps = sim.MostSteps

// servers returns the servers of the lock, which learn of some mistakes in its subject.
func (r *runner) servers() *servers { return r.lock.Servers.(*servers) }

// scenarios plays scenario files.
func (r *runner) scenarios(files []string) {
	r.t.Helper()
	for _, file := range files {
		r.t.Run("scenario/"+strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			t.Helper()
			if r.pointless != "" {
				say(t).Skip("n/a:", r.pointless)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				say(t).Fatal("locktest:", err)
			}
			sc, err := scenarios.Parse(file, text, r.named)
			if err != nil {
				say(t).Fatal("locktest:", err)
			}
			if !slices.Contains(sc.Locks, r.lock.Name) {
				for _, name := range sc.Locks {
					if !subject.Known(name) { // it may be a misspelt name of the test's lock
						say(t).Fatalf("locktest: %s names the lock %q, which is unknown, and not the lock of this test, %q; name this lock in locks, or leave the file out of Options.Scenarios", file, name, r.lock.Name)
					}
				}
				say(t).Skipf("n/a: %s is of the locks %s", file, strings.Join(sc.Locks, ", "))
			}
			if err := play.Plays(sc, r.lock); err != nil {
				say(t).Skip("n/a:", err)
			}
			r.skipIfLate(t)
			r.on(t, func(h *sim.Host) {
				t.Helper()
				for seed := sc.SeedFirst; seed <= sc.SeedLast; seed++ {
					if seed > sc.SeedFirst && r.limit.over() {
						r.errorf(t, "locktest: %s was not played with the seeds from %d to %d: %s; give a larger one", file, seed, sc.SeedLast, r.limit.why())
						return
					}
					r.playing(fmt.Sprintf("the scenario %s, seed %d", file, seed))
					r.scenario(t, play.RunTwice(h, sc, r.lock, seed))
				}
			})
		})
	}
}

// named returns the lock of a name in a scenario file. Other locks than the test's are not
// known here.
func (r *runner) named(name string) (*subject.Subject, error) {
	if name == r.lock.Name {
		return r.lock, nil
	}
	return scenarios.AnyLock(name)
}

// scenario tells how a run of a scenario file came out.
func (r *runner) scenario(t *testing.T, v play.Verdict) {
	t.Helper()
	if v.AsExpected {
		for _, f := range v.Findings {
			say(t).Logf("as expected, %s: %s", f.Judge, sentence.Finding(f))
		}
		if shown := report.Shortened(r.page(v, ""), timelineEvents); shown != "" {
			say(t).Log("\n" + shown)
		}
		return
	}
	if f, found := firstBug(v); found && v.Word != play.VerdictNondeterministic {
		r.fail(t, failure{fingerprint: ofScenario + "." + v.Scenario.Name + "." + f.Judge, verdict: v, finding: f,
			how: fmt.Sprintf("the scenario %s, seed %d: expected was %s", v.Scenario.File, v.Seed, v.Expected)})
		return
	}
	r.errorf(t, "locktest: %s, seed %d: expected was %s, and %s is %s", v.Scenario.File, v.Seed, v.Expected, r.s.Name, strings.TrimSuffix(fmt.Sprintf("%s: %s", v.Word, r.why(v)), ": "))
	for _, f := range v.Findings {
		say(t).Logf("%s, %s: %s", f.Class, f.Judge, sentence.Finding(f))
	}
}

// rest tells of a run without a bug.
func (r *runner) rest(t *testing.T, v play.Verdict) {
	t.Helper()
	switch v.Word {
	case play.VerdictNondeterministic:
		r.pointless = "the lock is nondeterministic"
		fallthrough
	case play.VerdictUndecided:
		if saysNothing(v) {
			return
		}
		r.errorf(t, "locktest: %s is %s: %s", r.s.Name, v.Word, r.why(v))
	case play.VerdictLimit:
		v.ShowLimits(r.host(t))
		for _, f := range v.Findings {
			var excuses []string
			for _, e := range f.Excuses {
				excuses = append(excuses, sentence.Excuse(e))
			}
			say(t).Logf("limit, %s: %s. Its excuse: %s", f.Judge, sentence.Finding(f), sentence.Join(strings.Join(excuses, "; "), sentence.Control(f.Control)))
		}
	}
}

// firstBug returns the first bug of a run, or the first one that a preferred judge finds, if there is one.
func firstBug(v play.Verdict, preferred ...string) (judges.Finding, bool) {
	i := slices.IndexFunc(v.Findings, func(f judges.Finding) bool { return isBug(f) && slices.Contains(preferred, f.Judge) })
	if i < 0 {
		i = slices.IndexFunc(v.Findings, isBug)
	}
	if i < 0 {
		return judges.Finding{}, false
	}
	return v.Findings[i], true
}

func isBug(f judges.Finding) bool { return f.Class == judges.ClassBug && f.Verdict != judges.Undecided }

// playing notes what is played from now on, for a stack of the lock and for a test that does not end.
func (r *runner) playing(what string) {
	playing(what)
	r.soFar.begin(what, time.Now())
}

// replayOf returns the command that replays a recording.
func (r *runner) replayOf(file string) string {
	return r.replayWith(sim.Overlaid, file)
}

// replayWith is replayOf for a test that is built with the overlay, or without it.
func (r *runner) replayWith(overlaid bool, file string) string {
	return fmt.Sprintf("%s %s-run '%s' -lockstep.replay=%s", testCommand(overlaid), testedPackage(), patternOf(r.t.Name()), file)
}

// testCommand returns the command that builds a test with the overlay, or without it, and runs it.
func testCommand(overlaid bool) string {
	if overlaid {
		return "simrun test"
	}
	return "go test"
}
