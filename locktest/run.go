package locktest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/renameio/v2"

	"lockstep/explore"
	explored "lockstep/explore/failure"
	"lockstep/internal/counted"
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
		for _, st := range story.Basic {
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
	if r.pointless != "" {
		say(t).Skip("n/a:", r.pointless)
	}
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
		if why == "" && v.Word == play.VerdictNondeterministic {
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
			r.fail(t, failure{fingerprint: ofStory + "." + st.Name + "." + f.Judge, verdict: v, finding: f, story: st.Name, how: "the story " + st.Name + ": " + st.About})
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

// mendCalls says how to let the calls work.
const mendCalls = "Mend the lock, its adapter, or the options of its client, so that the call works when nothing fails"

// misfit returns a mistake in the subject that the run of a story shows; "": none. Each judge would
// accuse the lock of something else.
func (r *runner) misfit(v play.Verdict) string {
	if s := r.servers(); s.panicked != "" {
		return "its State panicked: " + s.panicked
	} else if s.ends != 0 {
		return fmt.Sprintf("it has no Lease, and its State shows a hold that ends at %v; give it the Lease, or return a negative Expires", s.ends)
	}
	if v.Played.Record == nil {
		return ""
	}
	sent, returned, granted, held, token := false, false, false, false, false
	failed := "" // the first error of an acquire
	var closed *model.Event
	for _, e := range v.Played.Record.Events {
		switch {
		case e.Kind == model.KindSend:
			sent = true
		case e.Kind == model.KindReturn && e.Outcome != model.Waiting:
			returned = true
			granted = granted || e.Outcome == model.Granted
			if e.Action.Acquires() {
				failed = cmp.Or(failed, e.Error)
			}
			token = token || e.Token > 0
		case e.Kind == model.KindState && e.State.Held():
			held = true
		case e.Kind == model.KindState && e.State != nil && e.State.ClosedMs != 0 && closed == nil:
			closed = &e
		}
	}
	switch {
	case v.Played.Steps >= storySteps:
		return fmt.Sprintf("the story %s did not end within %d steps; a story waits for leases, and a Lease of %v is too long for a lock that asks so often. Judge it with a shorter one", v.Scenario.Name, storySteps, r.s.Lease)
	case !sent && r.servers().astray.Load() != nil:
		return fmt.Sprintf("its client dials %s, where no server is, and nothing comes to the servers of the world; it must dial the addresses of Process.Addr", *r.servers().astray.Load())
	case returned && !sent && len(v.Played.Panics) == 0: // else the panic may have come before the first request
		return "its calls return, and it sends nothing to the servers of the world; its client must dial with Process.DialContext, as that of redistest.NewClient does"
	case len(v.Unsimulated) > 0: // what followed says nothing of the subject, either
		return ""
	case granted && !held && r.servers().showsNameless() && v.Scenario.Name == story.Basic[0].Name:
		return "its Lock returns without an error, and its State returns a hold without an Owner; Owner must be the value that the lock wrote for the holder, or, if it writes none, another mark of the hold, such as its session or its revision"
	case granted && !held && r.s.State != nil && v.Scenario.Name == story.Basic[0].Name:
		return "its Lock returns without an error, and its State shows no hold; State must read the key that the lock writes, and a Lock that wrote none must return an error"
	case granted && !token && r.lock.Fenced && v.Scenario.Name == story.Basic[0].Name:
		return "its Lock returns without an error, and its Token then reports that the hold has none; Token must return the token that the lock was granted with, or the lock must have no method Token"
	}
	if v.Scenario.Name == story.Basic[0].Name {
		if why := wrongExpires(v.Played.Record); why != "" {
			return why
		}
		if why := r.otherLease(v.Played.Record); why != "" {
			return why
		}
		switch {
		case returned && !granted && failed != "":
			return fmt.Sprintf("in the story %s, in which nothing fails, no call was granted the lock; the first error is %q. %s", v.Scenario.Name, failed, mendCalls)
		case len(v.Service.Useless()) > 0:
			return fmt.Sprintf("in the story %s, in which nothing fails, %s. %s", v.Scenario.Name, sentence.Useless(v.Service.Useless()[0]), mendCalls)
		case closed != nil:
			return fmt.Sprintf("its State says Closed at %.3fs, and nothing had failed; a lock is Closed if nobody can have it for a while because its last holder failed", time.Duration(closed.AtNs).Seconds())
		}
	}
	return r.renewsUnsaid(v.Played.Record)
}

// wrongExpires says that a hold of a run, in which nothing fails, was over when it began, or that its end comes nearer as time
// goes on; "": none does. A hold that goes on after its end may be that of a server which ends holds at its ticks.
func wrongExpires(rec *model.Record) string {
	const meaning = "Expires is the time since the start at which the hold ends, or negative if it has no end"
	last := map[string]model.Event{}
	for _, e := range rec.Events {
		if e.Kind != model.KindState {
			continue
		}
		before, s := last[e.Lock], e.State
		last[e.Lock] = e
		if !s.Held() || s.ExpiresMs < 0 {
			continue
		}
		now, ends := time.Duration(e.AtNs), time.Duration(s.ExpiresMs)*time.Millisecond
		if !before.State.Held() || before.State.Owner != s.Owner {
			if s.ExpiresMs < now.Milliseconds() {
				return fmt.Sprintf("its State shows a hold that begins at %.3fs and has the Expires %v, which was over then; %s", now.Seconds(), ends, meaning)
			}
			continue
		}
		since, sooner := now-time.Duration(before.AtNs), time.Duration(before.State.ExpiresMs)*time.Millisecond-ends
		if since > 100*time.Millisecond && (since-sooner).Abs() <= time.Millisecond {
			return fmt.Sprintf("its State shows the Expires %v at %.3fs, and %v at %.3fs, as if it were the rest of the lease; %s",
				ends+sooner, (now - since).Seconds(), ends, now.Seconds(), meaning)
		}
	}
	return ""
}

// otherLease says that the holds of a run, in which nothing fails, last for another time than the Lease;
// "": they do not. A fifth and a second more may be the margin of the lock, or the ticks of its server. So may be
// as much less of a lock that renews a session, which can be older than the hold. Another lock's hold that ends
// sooner lets its holder believe in what is gone.
func (r *runner) otherLease(rec *model.Record) string {
	longest, lease := longestHold(rec), r.s.Lease
	less := lease/20 + time.Second
	if r.s.Renewed {
		less = lease/5 + time.Second
	}
	if longest > 0 && lease > 0 && (longest-lease > lease/5+time.Second || lease-longest > less) {
		return fmt.Sprintf("its Lease is %v, and its State shows holds that last for %v; give it the Lease for which the lock asks", lease, longest.Round(10*time.Millisecond))
	}
	return ""
}

// renewsUnsaid says that a command which no call sent prolonged a hold, although the subject is not
// Renewed; "": none did.
func (r *runner) renewsUnsaid(rec *model.Record) string {
	if r.s.Renewed {
		return ""
	}
	sent, last := map[int]model.Event{}, map[string]*model.LockState{}
	extending := map[string]int{} // by process, the extensions under way, for which a goroutine of the client may have sent it
	for _, e := range rec.Events {
		switch e.Kind {
		case model.KindInvoke, model.KindReturn:
			if e.Action == model.ActExtend && e.Kind == model.KindInvoke {
				extending[e.Process]++
			} else if e.Action == model.ActExtend {
				extending[e.Process]--
			}
		case model.KindSend:
			sent[e.Msg] = e
		case model.KindState:
			before, by := last[e.Lock], sent[e.Msg]
			if e.Msg > 0 && by.Op == 0 && extending[by.Process] == 0 && before.Held() && e.State.Owner == before.Owner && e.State.ExpiresMs > before.ExpiresMs && before.ExpiresMs >= 0 {
				return fmt.Sprintf("it is not Renewed, and a command that no call sent (%s, sent at %.3fs) prolonged a hold; set Renewed: true", by.Command, time.Duration(by.AtNs).Seconds())
			}
			last[e.Lock] = e.State
		}
	}
	return ""
}

// renewsInALongHold is renewsUnsaid for one play of story.LongHold. A lock of which two plays differ is not
// played further, so a later story cannot show that the subject is wrong, too.
func (r *runner) renewsInALongHold(h *sim.Host) string {
	if r.s.Renewed || r.s.Lease == 0 {
		return ""
	}
	return r.renewsUnsaid(play.Play(h, story.LongHold.Scenario(r.told()), r.lock, sim.NewSeeded(1)).Record)
}

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
	next := func(index int) {
		h.StillAfter = r.limit.standing(flags.hang.value)
		r.playing(fmt.Sprintf("schedule number %d of -lockstep.seed=%d -lockstep.profile=%s", index+1, r.plan.Seed, r.plan.Profile))
	}
	var runs []explore.Run
	var crowded int // goroutines, if there were too many
	whole := true
	next(0)
	for family := 0; whole && family < r.plan.Families(); family++ {
		if whole = r.limit.before(most); !whole {
			break
		}
		err := player.Family(family, nil, func(one explore.Run) error {
			r.soFar.add(one)
			switch runs = append(runs, one); {
			case len(runs) == r.plan.Runs:
			case !r.limit.before(most):
				return errTimeOver
			case runtime.NumGoroutine() > mostGoroutines:
				return errCrowded
			}
			next(len(runs))
			return nil
		})
		switch {
		case errors.Is(err, errTimeOver):
			whole = false
		case errors.Is(err, errCrowded):
			whole, crowded = false, runtime.NumGoroutine()
		case err != nil:
			say(t).Fatal("locktest:", err)
		}
	}
	total := explore.Sum(r.plan, runs)
	r.tested.exploration(total)
	several := ""
	if len(total.Groups) > 0 {
		several = " (a schedule with several findings counts once here, by the worst, and below with each of them)"
	}
	say(t).Logf("%s of %s with the profile %s: %s%s", counted.Of(total.Runs, "schedule"), r.s.Name, r.plan.Profile, cmp.Or(words(total.Words), "none was played"), several)
	switch {
	case crowded > 0:
		r.errorf(t, "locktest: played %d of %s: %d goroutines are left over by the runs until then, which makes each run longer than the one before. %s", len(runs), counted.Of(r.plan.Runs, "schedule"), crowded, r.tested.leftover())
	case !whole:
		r.errorf(t, "locktest: played %d of %s: %s; give a larger one, or ask for fewer schedules with -lockstep.runs", len(runs), counted.Of(r.plan.Runs, "schedule"), r.limit.why())
	}
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
		if text, fails := longText(r.s.Name, long, len(runs)); fails {
			r.errorf(t, "locktest: %s", text)
		} else {
			say(t).Log(text)
		}
	}
	for _, one := range total.Odd { // one line for all that are alike
		key, text := oddOf(one), one.Why
		if p, ok := firstPanic(one); ok {
			text = r.panicText(p)
		}
		switch n := alike[key]; {
		case n > 1:
			r.errorf(t, "locktest: %d of %s of %s, number %d the first, are %s: %s", n, counted.Of(len(runs), "schedule"), r.s.Name, one.Index+1, one.Word, text)
		case n == 1:
			r.errorf(t, "locktest: schedule number %d of %s is %s: %s", one.Index+1, r.s.Name, one.Word, text)
		}
		delete(alike, key)
	}
	var failures []failure
	if s := r.servers(); s.panicked != "" {
		r.errorf(t, "locktest: %s cannot be judged: its State panicked: %s", r.s.Name, s.panicked)
		return
	}
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
	r.explored = whole
}

// mostGoroutines is the number of goroutines after which no further schedule is drawn. Servers and clients
// of a run have some hundreds, which end with it.
const mostGoroutines = 10_000

// errCrowded ends an exploration whose runs leave so many goroutines behind that it would not end.
var errCrowded = errors.New("too many goroutines are left over")

// playing notes what is played from now on, for a stack of the lock and for a test that does not end.
func (r *runner) playing(what string) {
	playing(what)
	r.soFar.begin(what, time.Now())
}

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
