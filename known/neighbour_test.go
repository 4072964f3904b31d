package known

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/scenarios/scenariotest"

	"lockstep/known/defect"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// A neighbour of a story is the same record without the effect of the defect's cause: the
// command did not run, or was answered at once; the call was on another lock; or the fault
// did not strike. The finding is the same, and must not be the defect. So the test fails
// for a defect that names a harmless cause, or that accepts a second cause.
func TestTheCauseIsWhatMatters(t *testing.T) {
	h := sim.NewHost(t)
	has := map[string]bool{}
	for _, c := range stories {
		for lock := range strings.SplitSeq(c.locks, ", ") {
			t.Run(lock+"/"+c.judge+": "+c.id, func(t *testing.T) {
				v := runStory(t, h.For(t), c, lock)
				has[c.id] = hasNeighbour(t, h.For(t), v, c.id, c.judge, "") || has[c.id]
			})
		}
	}
	for _, d := range All {
		if has[d.ID] {
			continue
		}
		t.Run("recording: "+d.ID, func(t *testing.T) {
			has[d.ID] = recordingHasNeighbour(t, h.For(t), d.ID)
		})
		if !has[d.ID] {
			t.Errorf("%s: neither a story nor a recording in results/ has a neighbour", d.ID)
		}
	}
}

// hasNeighbour makes neighbours of a run that shows a defect to a judge, until the finding is not
// the defect any more. why is the sentence of the finding, "" for the first one. It returns false
// if the finding is the defect only in the record of a replay.
func hasNeighbour(t *testing.T, h *sim.Host, v play.Verdict, id, judge, why string) bool {
	t.Helper()
	i := slices.IndexFunc(v.Findings, func(f judges.Finding) bool {
		return f.Judge == judge && f.Class == judges.ClassBug && (why == "" || sentence.Finding(f) == why)
	})
	if i < 0 || v.Findings[i].Convicted {
		return false
	}
	f := v.Findings[i]
	causes := map[string]bool{}
	for {
		named := NewNamer(h, v, All).Name(f)
		switch {
		case named.ID != id:
			return len(causes) > 0
		case named.Cause.InReplay:
			return false
		case causes[named.Cause.String()] || len(causes) == 20:
			t.Errorf("%s\nis %s still without %q", sentence.Finding(f), id, slices.Sorted(maps.Keys(causes)))
			return true
		}
		// A record may have the cause more than once, each with an effect of its own.
		causes[named.Cause.String()] = true
		v.Played.Record = removeEffect(v.Played.Record, *named.Cause)
		v.Played.Trace = trace.New(v.Played.Record)
	}
}

// recordingHasNeighbour is hasNeighbour for the recording of a defect in results/.
func recordingHasNeighbour(t *testing.T, h *sim.Host, id string) bool {
	t.Helper()
	file := "../results/recordings/" + id + ".lockstep"
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	r, sc, l, err := play.ReadRecording(file, text)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := play.Replay(h, r, sc, l)
	return slices.ContainsFunc(v.Findings, func(f judges.Finding) bool {
		return f.Class == judges.ClassBug && hasNeighbour(t, h, v, id, f.Judge, sentence.Finding(f))
	})
}

// runStory runs a story on a lock.
func runStory(t *testing.T, h *sim.Host, c story, lock string) play.Verdict {
	t.Helper()
	text := "lockstep: 1\nname: drawn\nabout: drawn\nlocks: [" + lock + "]\n" + c.steps[1:]
	if !strings.Contains(text, "network:") {
		text += "network: {latency: 100us}\n"
	}
	sc := scenariotest.Parse(t, text)
	v := play.Run(h, sc, scenariotest.Lock(t, lock), sc.SeedFirst)
	for _, f := range v.Findings {
		for _, c := range judges.Untrue(v.Played.Trace, f) {
			t.Errorf("%s\n\tsays what is not so: %+v", sentence.Finding(f), c)
		}
	}
	return v
}

// removeEffect returns a copy of the record that lacks the effect of a cause.
func removeEffect(rec *model.Record, c Cause) *model.Record {
	run := trace.New(rec)
	in := func(msg int) bool { return slices.Contains(c.Msgs, msg) }
	// did is the message that took effect at the instant of the cause.
	did := 0
	for _, number := range c.Msgs {
		if m := run.Command(number); did == 0 || m.Executed != nil && m.Executed.AtNs == c.AtNs {
			did = number
		}
	}
	out := &model.Record{Params: rec.Params}
	for _, e := range rec.Events {
		keep := true
		switch c.Kind {
		case defect.UnlockFailed, defect.UnlockFoundNone, defect.UnlockLeft, defect.ForcedInVain, defect.EndlessUnlock,
			defect.EnteredAgain, defect.LevelsMiscount, defect.KeptPlace, defect.ReturnedUnlocked:
			if e.Op == c.Op { // another lock's call
				if e.Lock != "" {
					e.Lock = "elsewhere"
				}
				if e.Locks != nil {
					e.Locks = []string{"elsewhere"}
				}
			}
		case defect.SleepsOn, defect.SleptAnew, defect.SleptLate, defect.SleepsOnDeadline, defect.SleepsForever, defect.SleepsUnqueued:
			if e.Kind == model.KindExec && run.Command(e.Msg) != nil && run.Command(e.Msg).Script == "acquire" && in(e.Msg) {
				e.Reply = "1"
			}
		case defect.ThrownAsleep: // with far deadlines
			if e.Kind == model.KindState {
				s := *e.State
				s.Deadlines = maps.Clone(s.Deadlines)
				for who := range s.Deadlines {
					s.Deadlines[who] += int64(time.Hour / time.Millisecond)
				}
				e.State = &s
			}
		case defect.OtherLease: // the same attempts without a lease, and no renewals
			if e.Kind == model.KindInvoke {
				e.LeaseNs = 0
			}
			m := run.Command(e.Msg)
			keep = m == nil || e.Kind == model.KindSend || m.Script != "renew" && e.Msg != did
		case defect.ToldZero:
			if e.Kind == model.KindExec && e.Reply == "0" {
				e.Reply = "1000"
			}
		case defect.ThrownByUnit: // the same call with a lease
			if e.Kind == model.KindInvoke && run.Command(did) != nil && slices.ContainsFunc(c.Msgs, func(n int) bool { return run.Command(n).Op == e.Op }) {
				e.LeaseNs = int64(rec.Params.Watchdog)
			}
		case defect.RenewalFailed, defect.RenewalPending, defect.RenewalUnderWay, defect.RenewalOfLast, defect.RenewalOfOther,
			defect.Unconfirmed, defect.UnsubscribedTry, defect.SendsAgain, defect.UnansweredTry, defect.ThrownUnsent:
			waits := run.Command(e.Msg) != nil && run.Command(e.Msg).WaitOf != nil && in(run.Command(e.Msg).WaitOf.Msg)
			keep = !(in(e.Msg) || waits) || e.Kind == model.KindSend || e.Kind == model.KindState
			if e.Kind == model.KindSend && (in(e.Msg) || waits) {
				ran, told := e, e
				ran.Kind, ran.Reply = model.KindExec, "1"
				if m := run.Command(e.Msg); m.Executed != nil && m.Script == "acquire" {
					ran.Reply = m.Executed.Reply
				}
				told.Kind, told.Dir = model.KindDeliver, "reply"
				out.Events = append(out.Events, e, ran, told)
				continue
			}
		case defect.NoDeadline, defect.NoPlace, defect.TwoPlaces:
			if e.Kind == model.KindState {
				s := *e.State
				s.Deadlines = maps.Clone(s.Deadlines)
				for _, who := range s.Queue {
					if _, ok := s.Deadlines[who]; !ok && s.Deadlines != nil {
						s.Deadlines[who] = 0
					} else if s.Deadlines == nil {
						s.Deadlines = map[string]int64{who: 0}
					}
				}
				s.Queue = nil
				s.Queue = append(s.Queue, slices.Sorted(maps.Keys(s.Deadlines))...)
				e.State = &s
			}
		default: // the command did not run, or time or a fault did not end the hold
			keep = !(in(did) && e.Msg == did && e.Kind != model.KindSend) &&
				!(len(c.Msgs) == 0 && e.Kind == model.KindState && e.AtNs == c.AtNs)
		}
		if c.Fault > 0 && e.Fault == c.Fault && e.Kind == model.KindFault {
			keep = false
		}
		if keep {
			out.Events = append(out.Events, e)
		}
	}
	return out
}

// overlaps names, by defect, the second defect whose cause each of its stories has, too. There
// the order of the list decides, and other findings of the story are not compared.
var overlaps = map[string]string{
	"R-5623":                 "R-partial-unlock-lease", // the object of the unlock has the watchdog's lease
	"R-watchdog-level-taken": "R-watchdog-levels-left", // an operator ended the hold
	"R-fair-ghost":           "R-fair-sleeps-unqueued", // the waiter behind the ghost lost its place
}

// The story of one defect resembles the stories of all others that the same judge sees on the same
// lock, and must not be taken for one of them. So the order of the list must not matter: the
// reversed list gives each finding the same name.
func TestAStoryIsOfOneDefect(t *testing.T) {
	backward := slices.Clone(All)
	slices.Reverse(backward)
	h := sim.NewHost(t)
	for _, c := range stories {
		for lock := range strings.SplitSeq(c.locks, ", ") {
			t.Run(lock+"/"+c.judge+": "+c.id, func(t *testing.T) {
				h := h.For(t)
				v := runStory(t, h, c, lock)
				forth, back := NewNamer(h, v, All), NewNamer(h, v, backward)
				for _, f := range v.Findings {
					if f.Class != judges.ClassBug || overlaps[c.id] != "" && f.Judge != c.judge {
						continue
					}
					if a, b := forth.Name(f).ID, back.Name(f).ID; a != b && overlaps[a] != b {
						t.Errorf("%s: %s\nis named %q, and %q by the list from its end", f.Judge, sentence.Finding(f), a, b)
					}
				}
			})
		}
	}
}

// A lookalike is a story whose finding a looser form of the defect's cause would accept: the same
// calls happen, but something else caused the finding.
var lookalikes = []struct {
	not   string // the defect that it resembles
	story        // id is the defect of its finding, "" for none
}{
	// The unlock that failed is that of an earlier hold. A lost renewal ended this one.
	{"R-watchdog-stopped-by-failed-unlock", story{"R-5698", "lease", "redisson@3.12.4, redisson@3.21.3", `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {at: 1s}, {unlock: x}, {at: 40s}, {lock: x}, {sleep: 60s}]
faults:
  - {when: {script: unlock, direction: request}, until: 39s, do: error, with: "ERR injected"}
  - {when: {script: renew, direction: request}, from: 41s, do: error, with: "ERR injected"}
`}},
	// One head left, and most of the time that the next waiter was told is that of the hold.
	{"R-fair-deadline-drift", story{"R-4705", "liveness", "redisson-fair@3.4.2", `
processes: {a: {}, b: {}, c: {}, d: {}}
steps:
  a/1: [{lock: {name: x, lease: 15s}}]
  b/1: [{at: 50ms}, {try_lock: {name: x, wait: 500ms}}]
  c/1: [{at: 100ms}, {try_lock: {name: x, wait: 3s}}]
  d/1: [{at: 2800ms}, {lock: x}]
`}},
	// The hold that began with a short lease is over. An unlock that left a level made this
	// one too long.
	{"R-4818", story{"R-5623", "lease", "redisson@3.21.3", `
processes: {a: {}}
steps:
  a/1:
    - lock: {name: x, lease: 5s}
    - sleep: 6s
    - lock: x
    - {unlock: x}
    - lock: {name: x, lease: 5s}
    - lock: {name: x, lease: 5s}
    - lock: {name: x, lease: 5s}
    - {unlock: x}
    - {unlock: x}
`}},
	// The harm of the misdelete is over. Later the answer to an unlock of the thread's own hold is
	// late.
	{"SETNX-misdelete", story{"SETNX-unlock-resend", "hold-count", "setnx-del", `
processes: {a: {client: {response_timeout: 80ms, retry_attempts: 1}}, b: {}}
steps:
  a/1: [{at: 1s}, {try_lock: x}, {unlock: x}, {at: 10s}, {try_lock: x}, {unlock: x}]
  b/1: [{lock: x}, {at: 2s}, {unlock: x}]
faults:
  - {when: {process: a, script: unlock, direction: reply, nth: 2}, do: delay, for: 100ms}
`}},
	{"SETNX-misdelete", story{"late-unlock", "mutual-exclusion", "setnx-del", `
network: {latency: 1ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{at: 1s}, {try_lock: x}, {unlock: x}, {at: 10s}, {lock: {name: x, lease: 4s}}, {unlock: x}, {at: 15s}, {lock: {name: x, lease: 30s}}, {at: 30s}]
  b/1: [{lock: x}, {at: 2s}, {unlock: x}, {at: 22s}, {try_lock: x}]
faults:
  - {when: {process: a, script: unlock, direction: request, nth: 2}, do: delay, for: 10s}
`}},
	// The owner that entered again has given up the hold. A late unlock ended a later one.
	{"STRING-reentry", story{"late-unlock", "mutual-exclusion", "string-reentrant", `
network: {latency: 1ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {lock: x}, {unlock: x}, {unlock: x}, {at: 10s}, {lock: {name: x, lease: 4s}}, {unlock: x}, {at: 15s}, {lock: {name: x, lease: 30s}}, {at: 30s}]
  b/1: [{at: 22s}, {try_lock: x}]
faults:
  - {when: {script: unlock, direction: request, nth: 3}, do: delay, for: 10s}
`}},
	// The unlock of the free lock came earlier. Then an attempt to lock was sent again.
	{"R-fair-free-unlock", story{"R-6025", "hold-count", "redisson-fair@3.21.3", `
processes: {a: {client: {response_timeout: 80ms, retry_attempts: 1}}}
steps:
  a/1: [{unlock: x}, {at: 1s}, {try_lock: x}]
faults:
  - {when: {script: acquire, direction: reply, nth: 1}, do: delay, for: 100ms}
`}},
	// When the unlock of the free lock is refused, a force_unlock that ran twice is left.
	{"R-fair-free-unlock", story{"R-force-unlock-resend", "linearizable", "redisson-fair@4.7.0", `
processes: {a: {}, b: {}}
steps:
  a/1: [{unlock: x}, {at: 1s}, {lock: x}]
  b/1: [{at: 2s}, {force_unlock: x}]
faults:
  - {when: {script: force_unlock, direction: reply, nth: 1}, do: drop}
`}},
}

// A waiter behind a dead head waits for the deadline of the head. That is the drift if heads that left
// put most of the deadline off.
func TestTheDeadlineOfADeadHeadDrifts(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct{ lock, until, want string }{
		{"redisson-fair@3.4.2", "9s", "R-fair-deadline-drift"},
		{"redisson-fair@3.4.2", "60ms", "R-2099"},
		{"redisson-fair@3.11.0", "9s", "R-2099"},
	} {
		v := runStory(t, h.For(t), story{steps: strings.ReplaceAll(`
processes: {a: {}, b: {}, c: {}, d: {}}
steps:
  a/1: [{lock: {name: x, lease: 14s}}]
  b/1: [{at: 50ms}, {repeat: {until: END, steps: [{try_lock: {name: x, wait: 500ms}}]}}, {at: 7s}, {lock: x}]
  c/1: [{at: 100ms}, {repeat: {until: END, steps: [{try_lock: {name: x, wait: 500ms}}]}}, {at: 7s}, {lock: x}]
  d/1: [{at: 10s}, {lock: x}]
faults:
  - {at: 8s, crash: b}
  - {at: 8s, crash: c}
`, "END", c.until)}, c.lock)
		// The test makes the finding, since the crashes excuse any that the judge has: d waits a second after
		// the hold of a has ended.
		f := judges.Finding{Judge: model.JudgeLiveness, Class: judges.ClassBug, AtNs: int64(15 * time.Second), Facts: model.Facts{Lock: "x", Thread: "d/1"}}
		if got := NewNamer(h, v, All).Name(f).ID; got != c.want {
			t.Errorf("%s until %s: it is named %q; want %q", c.lock, c.until, got, c.want)
		}
	}
}

func TestALookalikeIsNotTheDefect(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range lookalikes {
		for lock := range strings.SplitSeq(c.locks, ", ") {
			t.Run(lock+": "+c.not, func(t *testing.T) {
				h := h.For(t)
				v := runStory(t, h, c.story, lock)
				found := 0
				for _, f := range v.Findings {
					if f.Judge != c.judge || f.Class != judges.ClassBug {
						continue
					}
					found++
					n := NewNamer(h, v, All)
					if Find(c.not).Explains(n.caseOf(f)) != nil {
						t.Errorf("%s\nis taken for %s", sentence.Finding(f), c.not)
					}
					if got := n.Name(f).ID; got != c.id {
						t.Errorf("%s\nis named %q; want %q", sentence.Finding(f), got, c.id)
					}
				}
				if found == 0 {
					t.Errorf("%s found nothing: %v", c.judge, v.Findings)
				}
			})
		}
	}
}
