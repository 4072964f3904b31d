package play

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"lockstep/scenarios/scenariotest"

	"lockstep/internal/longtest"
	"lockstep/internal/waking"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

func stories(t *testing.T) []*scenarios.Scenario {
	t.Helper()
	all, err := scenarios.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A record is the same whichever interpreter runs the scripts.
func TestScriptsRunByMiniredisGiveTheSameRecord(t *testing.T) {
	h := sim.NewHost(t)
	slow := sim.NewHost(t)
	slow.NoShortcuts = true
	for i, sc := range stories(t) {
		if sc.Name == "inventory" {
			continue // long
		}
		name := sc.Locks[i%len(sc.Locks)]
		l := scenariotest.Lock(t, name)
		got := Play(h, sc, l, sim.NewSeeded(1)).Record.Digest()
		want := Play(slow, sc, l, sim.NewSeeded(1)).Record.Digest()
		if got != want {
			t.Errorf("%s on %s: %.12s, and %.12s with miniredis's own", sc.Name, name, got, want)
		}
	}
}

// Another test compares all verdicts with those in results/. This test says what each
// scenario is for.
func TestEveryScenarioSaysWhatItShows(t *testing.T) {
	for _, sc := range stories(t) {
		t.Run(sc.Name, func(t *testing.T) {
			if path.Base(sc.File) != sc.Name+".yaml" {
				t.Errorf("scenario %s is in %s", sc.Name, sc.File)
			}
			if sc.About == "" || sc.Source == "" {
				t.Error("about and source must say what the story is and where it comes from")
			}
			wants, expected, reach := 0, len(sc.Expect), len(sc.Reach)
			for _, s := range sc.All() {
				wants += len(s.Want)
				if s.Read != nil || s.Reply != "" {
					wants++
				}
			}
			if wants+expected == 0 {
				t.Error("nothing in it can fail: no want, no read, no expectation")
			}
			if reach == 0 && expected == 0 {
				t.Error("it does not say what it must reach")
			}
		})
	}
}

// The order of goroutines does not change a record.
func TestWhatRunsBesideDoesNotMatter(t *testing.T) {
	h := sim.NewHost(t)
	every := 3 / longtest.Size(t, 1, 3)
	alone := map[string]string{}
	for _, busy := range []bool{false, true} {
		if busy {
			defer waking.Start()()
		}
		for _, sc := range stories(t) {
			if sc.Name == "inventory" {
				continue // large
			}
			for i := 0; i < len(sc.Locks); i += every {
				name := sc.Locks[i]
				digest := Run(h, sc, scenariotest.Lock(t, name), sc.SeedFirst).Digest()
				if busy && alone[sc.Name+" on "+name] != digest {
					t.Errorf("%s on %s, seed %d: other goroutines change the record", sc.Name, name, sc.SeedFirst)
				}
				alone[sc.Name+" on "+name] = digest
			}
		}
	}
}

func TestTheSameDecisionsGiveTheSameRecord(t *testing.T) {
	h := sim.NewHost(t)
	seeds := []uint64{1, 2, 3, 99, 12345}
	seeds = seeds[:longtest.Size(t, 2, len(seeds))]
	for _, sc := range stories(t) {
		if sc.Name == "inventory" || strings.HasPrefix(sc.Name, "fair-dead") {
			continue // long; results/ repeats them
		}
		for _, name := range sc.Locks {
			l := scenariotest.Lock(t, name)
			for _, seed := range seeds {
				first := Play(h, sc, l, sim.NewSeeded(seed))
				again := Play(h, sc, l, sim.NewSeeded(seed))
				if a, b := first.Record.Digest(), again.Record.Digest(); a != b {
					t.Errorf("%s on %s, seed %d: two runs gave %.12s and %.12s", sc.Name, name, seed, a, b)
				}
				if len(first.Record.Events) == 0 {
					t.Fatal("an empty record")
				}
				for _, e := range first.Record.Events {
					if e.Kind == "defect" || e.Kind == "left" && e.Text != "" {
						t.Errorf("%s on %s, seed %d: %s %s", sc.Name, name, seed, e.Kind, e.Text)
					}
				}
			}
		}
	}
}

func TestARecordingReplays(t *testing.T) {
	h := sim.NewHost(t)
	sc, err := scenarios.Find("misdelete")
	if err != nil {
		t.Fatal(err)
	}
	v := Run(h, sc, scenariotest.Lock(t, "setnx-del"), 3)
	var b bytes.Buffer
	if err := v.Recording().Write(&b, []string{"for people"}); err != nil {
		t.Fatal(err)
	}
	rec, sc2, l, err := ReadRecording("x.lockstep", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	again, diverged := Replay(h, rec, sc2, l)
	if again.Digest() != v.Digest() || diverged != "" || again.Word != VerdictBug {
		t.Errorf("replay: digest %.12s (want %.12s), %s, diverged %q", again.Digest(), v.Digest(), again.Word, diverged)
	}

	rec.Decisions["latency/a/request"][0] ^= 1
	if changed, _ := Replay(h, rec, sc2, l); changed.Digest() == v.Digest() {
		t.Error("another latency gave the same digest")
	}
	delete(rec.Decisions, "latency/b/reply")
	if _, diverged := Replay(h, rec, sc2, l); !strings.Contains(diverged, "latency/b/reply") {
		t.Errorf("a missing stream is not noticed: %q", diverged)
	}
}

// The scenario of a recording may name locks that this program does not have.
func TestARecordingNeedsOnlyItsOwnLock(t *testing.T) {
	sc, err := scenarios.Find("misdelete")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Run(sim.NewHost(t), sc, scenariotest.Lock(t, "setnx-del"), 3).Recording().Write(&b, nil); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(b.String(), "setnx-cad", "elsewhere")
	_, sc, l, err := ReadRecording("x.lockstep", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "setnx-del" || !slices.Contains(sc.Locks, "elsewhere") {
		t.Errorf("a recording of %s whose scenario names %v, want setnx-del and elsewhere among them", l.Name, sc.Locks)
	}
}

func TestABadRecordingIsRefused(t *testing.T) {
	h := sim.NewHost(t)
	sc, err := scenarios.Find("misdelete")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Run(h, sc, scenariotest.Lock(t, "setnx-cad"), 1).Recording().Write(&b, []string{"one", "two"}); err != nil {
		t.Fatal(err)
	}
	whole := b.String()
	cases := []struct{ rule, text, want string }{
		{"empty", "", "x:1:1: the file is empty"},
		{"only comments", "# one\n", "x:2:1: the file ends before the recording begins"},
		{"cut off", whole[:len(whole)-40], "does not end; a test that finds the failure writes its recording again"},
		{"not JSON", "# c\nhello\n", "x:2:1: not a recording, which is a JSON object: invalid character 'h'"},
		{"an unknown field", "{\"lockstep_recording\":1,\"wat\":2}", `unknown field "wat"`},
		{"a wrong type", "{\"lockstep_recording\":1,\"world\":\"one\"}", "world cannot be a string"},
		{"another format", strings.Replace(whole, `"lockstep_recording":1`, `"lockstep_recording":9`, 1), "recording format 9; this program reads format 1"},
		{"an unknown lock", strings.Replace(whole, `"lock":"setnx-cad"`, `"lock":"setnx-cat"`, 1), `unknown lock "setnx-cat"; did you mean "setnx-cad"?`},
		{"a scenario that does not load", strings.Replace(whole, `lockstep: 1\n`, `lockstep: 7\n`, 1), "the scenario in the recording: builtin/misdelete.yaml:1:"},
		{"something behind it", whole + "more", "something follows"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			_, _, _, err := ReadRecording("x", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want …%s…", err, c.want)
			}
		})
	}
	t.Run("another world", func(t *testing.T) {
		_, _, _, err := ReadRecording("x", []byte(strings.Replace(whole, fmt.Sprintf(`"world":%d`, sim.Version), `"world":99`, 1)))
		var other *WrongWorldError
		if !errors.As(err, &other) || !strings.Contains(err.Error(), "world version 99") || !strings.Contains(err.Error(), "seed 1") {
			t.Errorf("got %v", err)
		}
	})
}

func TestLocksAreFoundByName(t *testing.T) {
	for name, want := range map[string]string{
		"redisson": "redisson@4.7.0", "redisson-fair": "redisson-fair@4.7.0", "redisson@3.43.0": "redisson@3.43.0", "none": "none",
	} {
		if l, err := subject.Find(name); err != nil || l.Name != want {
			t.Errorf("%s: %v, %v; want %s", name, l, err, want)
		}
	}
	if _, err := subject.Find("redisson@9"); err == nil || !strings.Contains(err.Error(), `did you mean "redisson@4.7.0"?`) {
		t.Errorf("of an unknown release the nearest must be named: %v", err)
	}
}

// A scenario wants answers of the locks that it names. Another lock may be played in it, too.
func TestAnswersAreWantedOfNamedLocks(t *testing.T) {
	sc, err := scenarios.Parse("t.yaml", []byte(`lockstep: 1
name: t
locks: [setnx-cad]
processes: {a: {}}
steps:
  a/1:
    - lock: {name: x, want: granted}
    - unlock: {name: x, want: not_held}
`), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Word{"setnx-cad": VerdictBug, "setnx-del": VerdictHeld} {
		l, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if v := Run(sim.NewHost(t), sc, l, 1); v.Word != want {
			t.Errorf("%s: %s, %+v; want %s", name, v.Word, v.Findings, want)
		}
	}
}

func TestAnUnmetExpectationIsTold(t *testing.T) {
	h := sim.NewHost(t)
	base := `lockstep: 1
name: t
locks: [setnx-cad]
processes: {a: {}}
steps:
  a/1:
    - lock: {name: x, want: granted}
    - unlock: {name: x, want: WANT}
`
	cases := []struct {
		rule, want, more string
		word             Word
		asExpected       bool
	}{
		{"held as expected", "released", "", VerdictHeld, true},
		{"a want that is not met is a bug", "not_held", "", VerdictBug, false},
		{"a bug that is expected", "not_held", "expect: {setnx-cad: {bug: [want]}}\n", VerdictBug, true},
		{"a bug of another judge", "not_held", "expect: {setnx-cad: {bug: [lease]}}\n", VerdictBug, false},
		{"a limit is no bug", "not_held", "expect: {setnx-cad: {limit: [want]}}\n", VerdictBug, false},
		{"not: others may be broken", "not_held", "expect: {setnx-cad: {not: [lease]}}\n", VerdictBug, true},
		{"not: these may not", "not_held", "expect: {setnx-cad: {not: [want]}}\n", VerdictBug, false},
		{"a bug that does not show", "released", "expect: {setnx-cad: {bug: [want]}}\n", VerdictHeld, false},
		{"what was not reached", "released", "reach: [lease_expired]\n", VerdictUndecided, false},
		{"what the lock's own expectation must reach", "released", "expect: {setnx-cad: {held: [], reach: [renewed]}}\n", VerdictUndecided, false},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			sc, err := scenarios.Parse("t.yaml", []byte(strings.Replace(base, "WANT", c.want, 1)+c.more), subject.Find)
			if err != nil {
				t.Fatal(err)
			}
			v := Run(h, sc, scenariotest.Lock(t, "setnx-cad"), 1)
			if v.Word != c.word || v.AsExpected != c.asExpected {
				t.Errorf("got %s, as expected %v; want %s, %v (%s)", v.Word, v.AsExpected, c.word, c.asExpected, v.Why)
			}
		})
	}
}

func TestALimitThatDoesNotVanishIsABug(t *testing.T) {
	h := sim.NewHost(t)
	// DEL ends b's hold whether or not a was paused. The pause excuses the overlap that
	// it causes, and not the overlap that the DEL causes.
	text := `lockstep: 1
name: t
locks: [setnx-del]
processes: {a: {}, b: {}, c: {}}
steps:
  a/1: [{lock: {name: x, lease: 2s}}, {sleep: 4s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: {name: x, lease: 20s}}, {sleep: 9s}, {unlock: x}]
  c/1: [{at: 3s}, {lock: {name: x, lease: 20s}}, {sleep: 1s}, {unlock: x}]
faults:
  - {at: 3500ms, pause: b, for: 1ms}
`
	sc, err := scenarios.Parse("t.yaml", []byte(text), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	v := Run(h, sc, scenariotest.Lock(t, "setnx-del"), 1)
	found := false
	for _, f := range v.Findings {
		if f.Judge == "mutual-exclusion" {
			found = true
			if f.Class != "bug" {
				t.Errorf("one millisecond of pause excuses nothing, got %s: %s", f.Class, f.Detail)
			}
		}
	}
	if !found {
		t.Error("mutual exclusion is not broken; the test shows nothing")
	}
}

// A failover loses a hold that has not reached the promoted replica, and keeps one
// that has, unless the lock asks for replicas.
func TestAFailoverOfAServerWithReplicas(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		rule, lag string
		word      Word
	}{
		{"the hold had reached no replica", "10s", VerdictLimit},
		{"the hold had reached one of them in time", "1ms..5ms", VerdictHeld},
	} {
		for _, lock := range []string{"setnx-cad", "redisson@4.7.0"} {
			t.Run(c.rule+", "+lock, func(t *testing.T) {
				text := "lockstep: 1\nname: t\nlocks: [" + lock + "]\nserver: {replicas: 2, lag: " + c.lag + "}\n" +
					"processes: {a: {}, b: {}}\nsteps:\n" +
					"  a/1:\n    - lock: {name: x, lease: 20s, want: granted}\n    - sleep: 10s\n    - unlock: x\n" +
					"  b/1:\n    - at: 5s\n    - try_lock: x\n" +
					"faults:\n  - {at: 4s, server: failover}\nreach: [failed_over]\n"
				sc, err := scenarios.Parse("t.yaml", []byte(text), subject.Find)
				if err != nil {
					t.Fatal(err)
				}
				l := scenariotest.Lock(t, lock)
				v := RunTwice(h, sc, l, 1)
				if v.Word != c.word {
					t.Errorf("%s (%s %v), want %s", v.Word, v.Why, v.Findings, c.word)
				}
				again, diverged := Replay(h, v.Recording(), sc, l)
				if again.Digest() != v.Digest() || diverged != "" {
					t.Errorf("the recording gives another run: %s", diverged)
				}
			})
		}
	}
}

// A client sends a command without an answer again as often as the scenario says. It
// never does so if the scenario says 0. If the scenario says nothing, the lock decides.
func TestRetryAttempts(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		locks, client string
		sent          int
	}{
		{"setnx-del, setnx-get-del, setnx-cad, string-reentrant", "", 1},
		{"setnx-del, setnx-get-del, setnx-cad, string-reentrant, redisson@3.21.3", ", retry_attempts: 0", 1},
		{"setnx-del, setnx-get-del, setnx-cad, string-reentrant, redisson@3.21.3", ", retry_attempts: 2", 3},
		{"redisson@3.21.3", "", 4},
	} {
		for name := range strings.SplitSeq(c.locks, ", ") {
			sc, err := scenarios.Parse("my.yaml", []byte(`lockstep: 1
name: mine
about: mine
locks: [`+name+`]
processes: {a: {client: {response_timeout: 1s`+c.client+`}}}
steps: {a/1: [{try_lock: x}]}
faults: [{when: {script: acquire, direction: reply}, do: drop}]
`), subject.Find)
			if err != nil {
				t.Fatal(err)
			}
			sent := 0
			for _, e := range Play(h, sc, scenariotest.Lock(t, name), sim.NewSeeded(1)).Record.Events {
				if e.Kind == model.KindSend && e.Script == "acquire" {
					sent++
				}
			}
			if sent != c.sent {
				t.Errorf("%s with client: {response_timeout: 1s%s} sent its acquire %d times, not %d", name, c.client, sent, c.sent)
			}
		}
	}
}

// A second entry begins the lease anew, whether the server counts it or not: a shorter lease ends the
// hold sooner. Only the count is wrong if the server keeps none.
func TestASecondEntryThatIsNotCountedBeginsTheLease(t *testing.T) {
	h := sim.NewHost(t)
	for name, want := range map[string][]string{"string-reentrant": {model.JudgeHoldCount}, "redisson@4.7.0": nil, "reference": nil} {
		for _, c := range []struct{ latency, first, second string }{
			{"50ms", "30s", "30ms"},
			{"1us", "30ms", "30ms"}, // the lease ends in the same millisecond as before
		} {
			sc := scenariotest.Parse(t, `lockstep: 1
name: mine
about: mine
locks: [`+name+`]
network: {latency: `+c.latency+`}
processes: {a: {}}
steps: {a/1: [{try_lock: {name: x, lease: `+c.first+`}}, {try_lock: {name: x, lease: `+c.second+`}}, {sleep: 50ms}, {unlock: x}]}
`)
			var got []string
			for _, f := range Run(h, sc, scenariotest.Lock(t, name), 1).Findings {
				got = append(got, f.Judge)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, leases of %s and %s: %v; want %v", name, c.first, c.second, got, want)
			}
		}
	}
}

// A hold has as many parts as the lock says, and at least one per server.
func TestARunKnowsTheParts(t *testing.T) {
	h := sim.NewHost(t)
	sc := scenariotest.Parse(t, "lockstep: 1\nname: parts\nabout: a lock\nlocks: [setnx-cad]\nprocesses: {a: {}}\nsteps:\n  a/1: [{lock: x}]\n")
	for parts, want := range map[int]int{0: 1, 3: 3} {
		l := *scenariotest.Lock(t, "setnx-cad")
		l.Parts = parts
		if got := Play(h, sc, &l, sim.NewSeeded(1)).Record.Params.Parts; got != want {
			t.Errorf("a lock of %d parts on one server: the record has %d, want %d", parts, got, want)
		}
	}
}

// A call may fail at the instant at which it is made. Steps that are repeated until an instant
// still come to an end.
func TestARepetitionWhoseCallsFailAtOnceEnds(t *testing.T) {
	v := Run(sim.NewHost(t), scenariotest.Parse(t, `lockstep: 1
name: t
locks: [setnx-cad]
processes: {a: {}}
steps:
  a/1: [{repeat: {until: 3s, steps: [{try_lock: {name: x, wait: 1s, lease: 8s}}]}}]
faults:
  - {at: 0s, partition: a, for: 5s}
`), scenariotest.Lock(t, "setnx-cad"), 1)
	calls := 0
	for _, e := range v.Played.Record.Events {
		if e.Kind == model.KindReturn {
			calls++
		}
	}
	if v.Word != "held" || calls < 200 || calls > 400 {
		t.Errorf("the run is %s with %d calls; want held, and about 300 of them: %s", v.Word, calls, v.Why)
	}
}
