package scenarios

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// example is a scenario with comments that describe the format.
const example = `lockstep: 1                          # format version
name: misdelete                      # unique; letters, digits, dashes
about: A thread outlives its lease and unlocks; the next owner's hold must survive.
source: redisson 3.43.0              # where the story comes from (text, issue number, release)
locks: [redisson@3.43.0, redisson@4.7.0, setnx-del, setnx-cad]
network: {latency: 1ms..5ms}         # one way; a single value is exact; 0 is 100us, too small to move a millisecond; default 200us..2ms
watchdog: 30s                        # lockWatchdogTimeout; default 30s
resources:
  stock: {start: 100, never_below: 0, end: 99}
processes:
  a: {threads: 1}
  b: {threads: 1, wall_clock: {offset: 250ms, drift_ppm: 20}}
steps:
  a/1:
    - lock: {name: orders, lease: 3s, want: granted}
    - sleep: 5s
    - unlock: {name: orders}
  b/1:
    - at: 1s
    - lock: {name: orders, lease: 10s, want: granted}
    - use: {resource: stock, take: 1, for: 4s}
    - unlock: {name: orders}
faults:
  - {at: 2s, pause: a, for: 100ms}
expect:
  redisson@3.43.0: held
  setnx-del: {bug: [misdelete], reach: [stale_unlock]}
reach: [lease_expired, stale_unlock]
seeds: 1..50                         # each is a run; default 1
`

// shop knows the locks of the example; "redisson" is the newest release.
func shop(name string) (*subject.Subject, error) {
	switch name {
	case "redisson", "redisson@4.7.0":
		return &subject.Subject{Name: "redisson@4.7.0", Servers: known{"APPEND", "AUTH", "EVALSHA", "PEXPIRE", "SCRIPT"}}, nil
	case "redisson@3.43.0", "setnx-del", "setnx-cad":
		return &subject.Subject{Name: name}, nil
	case "doors":
		return &subject.Subject{Name: name, Servers: known{"CLOSE", "OPEN"}}, nil
	}
	return nil, fmt.Errorf("no lock %q; known: redisson, setnx-del, setnx-cad", name)
}

// known are servers that know these commands.
type known []string

func (known) Check() error                                             { return nil }
func (known) Count() int                                               { return 1 }
func (known) Commands([]string) func([]string, sim.Author) sim.Command { return nil }
func (k known) New([]string, subject.ServerOptions) subject.World {
	return subject.World{Nodes: []sim.Node{{Server: knowing{commands: k}}}}
}

type knowing struct {
	sim.Server
	commands []string
}

func (k knowing) Parts() sim.Parts {
	return sim.Parts{Commands: func() []string { return k.commands }}
}

func ptr[T any](v T) *T { return &v }

func TestTheExampleOfTheFormatParses(t *testing.T) {
	got, err := Parse("misdelete.yaml", []byte(example), shop)
	if err != nil {
		t.Fatal(err)
	}
	at := func(line, column int) Position { return Position{"misdelete.yaml", line, column} }
	want := &Scenario{
		File:      "misdelete.yaml",
		Text:      example,
		Name:      "misdelete",
		About:     "A thread outlives its lease and unlocks; the next owner's hold must survive.",
		Source:    "redisson 3.43.0",
		Locks:     []string{"redisson@3.43.0", "redisson@4.7.0", "setnx-del", "setnx-cad"},
		Latency:   Range{time.Millisecond, 5 * time.Millisecond},
		Watchdog:  30 * time.Second,
		Resources: []Resource{{Name: "stock", Start: 100, NeverBelow: ptr(int64(0)), End: ptr(int64(99))}},
		Processes: []Process{
			{Name: "a", Threads: 1},
			{Name: "b", Threads: 1, WallOffset: 250 * time.Millisecond, WallDriftPPM: 20},
		},
		Threads: []Script{
			{Process: "a", Thread: 1, Steps: []Step{
				{Kind: StepLock, Pos: at(15, 7), Name: "orders", Lease: ptr(3 * time.Second), Want: []string{"granted"}},
				{Kind: StepSleep, Pos: at(16, 7), D: 5 * time.Second},
				{Kind: StepUnlock, Pos: at(17, 7), Name: "orders"},
			}},
			{Process: "b", Thread: 1, Steps: []Step{
				{Kind: StepAt, Pos: at(19, 7), D: time.Second},
				{Kind: StepLock, Pos: at(20, 7), Name: "orders", Lease: ptr(10 * time.Second), Want: []string{"granted"}},
				{Kind: StepUse, Pos: at(21, 7), Name: "stock", Take: 1, For: 4 * time.Second},
				{Kind: StepUnlock, Pos: at(22, 7), Name: "orders"},
			}},
		},
		Faults: []Fault{
			{Pos: at(24, 5), FaultSpec: model.FaultSpec{Kind: model.FaultPause, At: 2 * time.Second, Processes: []string{"a"}, For: 100 * time.Millisecond}},
		},
		Expect: map[string]Expectation{
			"redisson@3.43.0": {Class: Held},
			"setnx-del":       {Class: Bug, Judges: []string{"misdelete"}, Reach: []string{"stale_unlock"}},
		},
		Reach:     []string{"lease_expired", "stale_unlock"},
		SeedFirst: 1,
		SeedLast:  50,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// base is a small scenario that the cases below change. Their expected positions count
// its lines.
const base = `lockstep: 1
name: base
locks: [redisson]
resources: {stock: {start: 5}}
processes: {a: {threads: 2}, b: {}}
steps:
  a/1:
    - lock: orders
`

// with appends lines to base. Lines indented by four spaces are further steps of a/1,
// by two spaces further threads, and by none further fields.
func with(lines string) string { return base + lines + "\n" }

func TestStepsAreReadAsWritten(t *testing.T) {
	s := time.Second
	cases := []struct {
		rule, yaml string
		want       Step
	}{
		{"short lock", "lock: orders", Step{Kind: StepLock, Name: "orders"}},
		{"short unlock", "unlock: orders", Step{Kind: StepUnlock, Name: "orders"}},
		{"short try_lock", "try_lock: orders", Step{Kind: StepTryLock, Name: "orders"}},
		{"short force_unlock", "force_unlock: orders", Step{Kind: StepForceUnlock, Name: "orders"}},
		{"short extend", "extend: orders", Step{Kind: StepExtend, Name: "orders"}},
		{"extend in full", "extend: {name: o, want: [extended, not_held, error, unknown]}",
			Step{Kind: StepExtend, Name: "o", Want: []string{"extended", "not_held", "error", "unknown"}}},
		{"close is a word", "close", Step{Kind: StepClose}},
		{"a bare 0 is a duration", "sleep: 0", Step{Kind: StepSleep}},
		{"a name in a closed brace", `lock: "{orders}:x"`, Step{Kind: StepLock, Name: "{orders}:x"}},
		{"lock in full", "lock: {name: o, lease: 3s, interruptible: true, want: [granted, error], reply: -2}",
			Step{Kind: StepLock, Name: "o", Lease: ptr(3 * s), Interruptible: ptr(true), Want: []string{"granted", "error"}, Reply: "-2"}},
		{"reply nil is a word", "lock: {name: o, reply: nil}", Step{Kind: StepLock, Name: "o", Reply: "nil"}},
		{"try_lock in full", "try_lock: {name: o, wait: 0, lease: 3s, unit: seconds, want: busy, reply: 2900}",
			Step{Kind: StepTryLock, Name: "o", Wait: ptr(0 * s), Lease: ptr(3 * s), UnitSeconds: true, Want: []string{"busy"}, Reply: "2900"}},
		{"unlock in full", "unlock: {name: o, want: [released, still_held, not_held, error, unknown], reply: 0}",
			Step{Kind: StepUnlock, Name: "o", Want: []string{"released", "still_held", "not_held", "error", "unknown"}, Reply: "0"}},
		{"force_unlock in full", "force_unlock: {name: o, want: not_held}", Step{Kind: StepForceUnlock, Name: "o", Want: []string{"not_held"}}},
		{"with_lock in full", "with_lock: {name: o, lease: 1ms, wait: 2s, unlock: always, steps: [close]}",
			Step{Kind: StepWithLock, Name: "o", Lease: ptr(time.Millisecond), Wait: ptr(2 * s), UnlockAlways: true, Steps: []Step{{Kind: StepClose}}}},
		{"read in full", "read: {name: o, holds: 0, locked: false, ttl: 29s..30s, queue: [b/1, a/2], deadlines: {b/1: 25s, a/2: 1s..2s}}",
			Step{Kind: StepRead, Name: "o", Read: &Read{Holds: ptr(int64(0)), Locked: ptr(false), TTL: &TTL{Range: Range{29 * s, 30 * s}},
				Queue: ptr([]string{"b/1", "a/2"}), Deadlines: map[string]Range{"b/1": {25 * s, 25 * s}, "a/2": {s, 2 * s}}}}},
		{"ttl free", "read: {name: o, ttl: free}", Step{Kind: StepRead, Name: "o", Read: &Read{TTL: &TTL{Free: true}}}},
		{"ttl endless", "read: {name: o, ttl: endless}", Step{Kind: StepRead, Name: "o", Read: &Read{TTL: &TTL{Endless: true}}}},
		{"an empty queue is looked at", "read: {name: o, queue: []}", Step{Kind: StepRead, Name: "o", Read: &Read{Queue: &[]string{}}}},
		{"published to one", "published: {name: o, to: b/1, count: 1}", Step{Kind: StepPublished, Name: "o", Target: "b/1", Count: 1}},
		{"published to all", "published: {name: o, to: all, count: 0}", Step{Kind: StepPublished, Name: "o", Target: "all"}},
		{"use takes 1 in no time", "use: {resource: stock}", Step{Kind: StepUse, Name: "stock", Take: 1}},
		{"use in full", "use: {resource: stock, take: 3, for: 4s, want: sold_out}",
			Step{Kind: StepUse, Name: "stock", Take: 3, For: 4 * s, Want: []string{"sold_out"}}},
		{"interrupt", "interrupt: b/1", Step{Kind: StepInterrupt, Target: "b/1"}},
		{"repeat times", "repeat: {times: 3, steps: [sleep: 1s]}", Step{Kind: StepRepeat, Times: 3, Steps: []Step{{Kind: StepSleep, D: s}}}},
		{"repeat until, nested at", "repeat: {until: 9s, steps: [at: 1m30s]}",
			Step{Kind: StepRepeat, Until: ptr(9 * s), Steps: []Step{{Kind: StepAt, D: 90 * s}}}},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got, err := Parse("f", []byte(with("    - "+c.yaml)), shop)
			if err != nil {
				t.Fatal(err)
			}
			step := got.Threads[0].Steps[1]
			if want := (Position{"f", 9, 7}); step.Pos != want {
				t.Errorf("position %v, want %v", step.Pos, want)
			}
			step.Pos = Position{}
			for i := range step.Steps {
				step.Steps[i].Pos = Position{}
			}
			if !reflect.DeepEqual(step, c.want) {
				t.Errorf("got  %+v\nwant %+v", step, c.want)
			}
		})
	}
}

func TestFaultsAreReadAsWritten(t *testing.T) {
	s := time.Second
	cases := []struct {
		rule, yaml string
		want       model.FaultSpec
	}{
		{"crash", "{at: 1s, crash: a}", model.FaultSpec{Kind: model.FaultCrash, At: s, Processes: []string{"a"}}},
		{"partition of two", "{at: 0, partition: [a, b], for: 1s}", model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"a", "b"}, For: s}},
		{"partition of one", "{at: 0, partition: b, for: 1s}", model.FaultSpec{Kind: model.FaultPartition, Processes: []string{"b"}, For: s}},
		{"the wall clock goes back", "{at: 1s, wall_clock: b, step: -3s}", model.FaultSpec{Kind: model.FaultWallClock, At: s, Processes: []string{"b"}, Step: -3 * s}},
		{"restart", "{at: 1s, server: restart, keep_data: true}", model.FaultSpec{Kind: model.FaultServer, At: s, Server: "restart", KeepData: true}},
		{"failover", "{at: 1s, server: failover, lose_last: 2}", model.FaultSpec{Kind: model.FaultServer, At: s, Server: "failover", LoseLast: 2}},
		{"script flush", "{at: 1s, server: flush_scripts}", model.FaultSpec{Kind: model.FaultServer, At: s, Server: "flush_scripts"}},
		{"a slot moves", "{at: 1s, server: move_slot, slot_of: orders, for: 2s}", model.FaultSpec{Kind: model.FaultServer, At: s, Server: "move_slot", Key: "orders", For: 2 * s}},
		{"stall", "{at: 1s, server: stall, for: 2s}", model.FaultSpec{Kind: model.FaultServer, At: s, Server: "stall", For: 2 * s}},
		{"the wall clock of a server", "{at: 1s, server: wall_clock, step: 10s}", model.FaultSpec{Kind: model.FaultServer, At: s, Server: "wall_clock", Step: 10 * s}},
		{"the wall clock of a server goes back", "{at: 1s, server: wall_clock, step: -1500ms}", model.FaultSpec{Kind: model.FaultServer, At: s, Server: "wall_clock", Step: -3 * s / 2}},
		{"operator", `{at: 1s, key: "ord*", do: expire}`, model.FaultSpec{Kind: model.FaultKey, At: s, Key: "ord*", KeyDo: "expire"}},
		{"crashed watchdog", "{when: {process: a, script: renew, direction: request}, do: drop}",
			model.FaultSpec{Kind: model.FaultRule, When: model.When{Process: "a", Script: "renew", Direction: "request"}, Do: "drop"}},
		{"one failed renewal", `{when: {script: renew, direction: request, nth: 1}, do: error, with: "ERR injected"}`,
			model.FaultSpec{Kind: model.FaultRule, When: model.When{Script: "renew", Direction: "request", Nth: 1}, Do: "error", With: "ERR injected"}},
		{"a rule on everything for a while", "{when: {}, from: 1s, until: 2s, do: delay, for: 2s}",
			model.FaultSpec{Kind: model.FaultRule, From: s, Until: ptr(2 * s), Do: "delay", For: 2 * s}},
		{"commands are in upper case", `{when: {command: pexpire, channel: "*", every: 2}, do: hold}`,
			model.FaultSpec{Kind: model.FaultRule, When: model.When{Command: "PEXPIRE", Channel: "*", Every: 2}, Do: "hold"}},
		{"all messages but the first", "{when: {process: a, after: 1}, do: drop}",
			model.FaultSpec{Kind: model.FaultRule, When: model.When{Process: "a", After: 1}, Do: "drop"}},
		{"until a thread is granted a lock", "{when: {nth: 2}, do: hold, until: {granted: a/1}}",
			model.FaultSpec{Kind: model.FaultRule, When: model.When{Nth: 2}, Do: "hold", Awaits: &model.Condition{Granted: "a/1"}}},
		{"until a hold ends and a thread of a process is granted", "{when: {}, from: 1s, do: hold, until: {ended: orders, granted: a}}",
			model.FaultSpec{Kind: model.FaultRule, From: s, Do: "hold", Awaits: &model.Condition{Ended: "orders", Granted: "a"}}},
		{"until a message is published", `{when: {}, do: drop, until: {published: "ord*"}}`,
			model.FaultSpec{Kind: model.FaultRule, Do: "drop", Awaits: &model.Condition{Published: "ord*"}}},
		{"until requests are executed", "{when: {}, do: hold, until: {executed: {process: b, command: pexpire, script: renew, nth: 2}}}",
			model.FaultSpec{Kind: model.FaultRule, Do: "hold", Awaits: &model.Condition{Executed: &model.When{Process: "b", Command: "PEXPIRE", Script: "renew", Nth: 2}}}},
		{"a glob has classes", `{at: 1s, key: "redisson_lock_*:{ord[e-s]?}", do: delete}`,
			model.FaultSpec{Kind: model.FaultKey, At: s, Key: "redisson_lock_*:{ord[e-s]?}", KeyDo: "delete"}},
		{"the longest", "{at: 87600h, pause: a, for: 87600h}",
			model.FaultSpec{Kind: model.FaultPause, At: 87600 * time.Hour, For: 87600 * time.Hour, Processes: []string{"a"}}},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got, err := Parse("f", []byte(with("faults:\n  - "+c.yaml)), shop)
			if err != nil {
				t.Fatal(err)
			}
			fault := got.Faults[0]
			if want := (Position{"f", 10, 5}); fault.Pos != want {
				t.Errorf("position %v, want %v", fault.Pos, want)
			}
			if !reflect.DeepEqual(fault.FaultSpec, c.want) {
				t.Errorf("got  %+v\nwant %+v", fault, c.want)
			}
		})
	}
}

func TestFieldsOfAScenario(t *testing.T) {
	us, ms, s := time.Microsecond, time.Millisecond, time.Second
	cases := []struct {
		rule, yaml string
		get        func(*Scenario) any
		want       any
	}{
		{"latency by default", "about: x", func(s *Scenario) any { return s.Latency }, Range{200 * us, 2 * ms}},
		{"one latency is exact", "network: {latency: 50us}", func(s *Scenario) any { return s.Latency }, Range{50 * us, 50 * us}},
		{"latency 0 is 100us", "network: {latency: 0}", func(s *Scenario) any { return s.Latency }, Range{100 * us, 100 * us}},
		{"latency from 0", "network: {latency: 0..1ms}", func(s *Scenario) any { return s.Latency }, Range{100 * us, ms}},
		{"watchdog by default", "about: x", func(s *Scenario) any { return s.Watchdog }, 30 * s},
		{"the shortest watchdog", "watchdog: 3ms", func(s *Scenario) any { return s.Watchdog }, 3 * ms},
		{"seed by default", "about: x", func(s *Scenario) any { return [2]uint64{s.SeedFirst, s.SeedLast} }, [2]uint64{1, 1}},
		{"one seed", "seeds: 7", func(s *Scenario) any { return [2]uint64{s.SeedFirst, s.SeedLast} }, [2]uint64{7, 7}},
		{"replicas", "server: {replicas: 2, lag: 5ms}", func(s *Scenario) any { return s.Server }, Server{2, Range{5 * ms, 5 * ms}}},
		{"a range of lags", "server: {replicas: 1, lag: 1ms..10s}", func(s *Scenario) any { return s.Server }, Server{1, Range{ms, 10 * s}}},
		{"the lag by default is the latency", "network: {latency: 3ms}\nserver: {replicas: 16}", func(s *Scenario) any { return s.Server }, Server{16, Range{3 * ms, 3 * ms}}},
		{"the lag by default, before the latency", "server: {replicas: 1}\nnetwork: {latency: 3ms}", func(s *Scenario) any { return s.Server }, Server{1, Range{3 * ms, 3 * ms}}},
		{"lag 0 is 100us", "server: {replicas: 1, lag: 0}", func(s *Scenario) any { return s.Server.Lag }, Range{100 * us, 100 * us}},
		{"no replicas", "server: {replicas: 0}", func(s *Scenario) any { return s.Server.Replicas }, 0},
		{"names are made canonical", "expect: {redisson: held}", func(s *Scenario) any { return s.Expect },
			map[string]Expectation{"redisson@4.7.0": {Class: Held}}},
		{"held with a reach", "expect: {redisson: {held: [], reach: [renewed]}}", func(s *Scenario) any { return s.Expect["redisson@4.7.0"] },
			Expectation{Class: Held, Reach: []string{"renewed"}}},
		{"held without its list", "expect: {redisson: {held, reach: [renewed]}}", func(s *Scenario) any { return s.Expect["redisson@4.7.0"] },
			Expectation{Class: Held, Reach: []string{"renewed"}}},
		{"limit in some seed", "expect: {redisson: {limit: [mutual-exclusion, tidy], in: some}}", func(s *Scenario) any { return s.Expect["redisson@4.7.0"] },
			Expectation{Class: Limit, Judges: []string{"mutual-exclusion", "tidy"}, Some: true}},
		{"not, in all seeds", "expect: {redisson: {not: [fifo], in: all}}", func(s *Scenario) any { return s.Expect["redisson@4.7.0"] },
			Expectation{Class: Not, Judges: []string{"fifo"}}},
		{"threads by process, then number", "  b/1: [close]\n  a/2: [close]", func(s *Scenario) any {
			var names []string
			for _, t := range s.Threads {
				names = append(names, fmt.Sprintf("%s/%d", t.Process, t.Thread))
			}
			return names
		}, []string{"a/1", "a/2", "b/1"}},
		{"a thread without steps is left out", "  b/1: []", func(s *Scenario) any { return len(s.Threads) }, 1},
		{"a star is every thread", "  b/*: [close]", func(s *Scenario) any { return s.Threads[1].Process }, "b"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			got, err := Parse("f", []byte(with(c.yaml)), shop)
			if err != nil {
				t.Fatal(err)
			}
			if v := c.get(got); !reflect.DeepEqual(v, c.want) {
				t.Errorf("got %v, want %v", v, c.want)
			}
		})
	}
}

func TestFieldsOfAProcess(t *testing.T) {
	text := strings.Replace(base, "b: {}", `b_2: {threads: 3, lock_objects: per_call, wall_clock: {offset: -250ms, drift_ppm: -20},
  client: {response_timeout: 3s, retry_attempts: 0, pool_size: 1, fair_wait: 5s}}`, 1) + "  b_2/*: [close]\n"
	got, err := Parse("f", []byte(text), shop)
	if err != nil {
		t.Fatal(err)
	}
	want := Process{Name: "b_2", Threads: 3, PerCall: true, WallOffset: -250 * time.Millisecond, WallDriftPPM: -20,
		ClientOptions: subject.ClientOptions{ResponseTimeout: ptr(3 * time.Second), RetryAttempts: ptr(0), PoolSize: ptr(1), FairWait: ptr(5 * time.Second)}}
	if !reflect.DeepEqual(got.Processes[1], want) {
		t.Errorf("got %+v, want %+v", got.Processes[1], want)
	}
	if len(got.Threads) != 4 {
		t.Errorf("%d threads have steps, want 4", len(got.Threads))
	}
}

func TestBadInputIsRefusedWithItsPlace(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(base, old) {
			t.Fatalf("base has no %q", old)
		}
		return strings.Replace(base, old, new, 1)
	}
	step := func(yaml string) string { return with("    - " + yaml) }
	fault := func(yaml string) string { return with("faults:\n  - " + yaml) }
	cases := []struct {
		rule, text string
		at         string // line:column
		says       string
	}{
		// The file.
		{"empty", "", "1:1", "the file is empty; a scenario starts with `lockstep: 1`"},
		{"only a comment", "# nothing\n", "1:1", "the file is empty"},
		{"only a null", "---\n", "1:1", "the file is empty"},
		{"a second document", with("---\nlockstep: 1"), "9:1", "one scenario a file"},
		{"an empty second document", with("---"), "9:1", "one scenario a file"},
		{"a list", "- lockstep: 1\n", "1:1", "a scenario is a mapping of fields, not a list"},
		{"too long", strings.Repeat("#", maxText+1), "1:1", "at most 1048576"},
		{"not UTF-8", "lockstep: 1\nname: \xff\n", "2:1", "invalid"},
		{"UTF-16", "\xff\xfea\x00", "1:1", "not UTF-8"},
		{"a control character", "lockstep: 1\nname: a\n\nabout: \x01\n", "4:1", "control characters"},
		{"a tab as indentation", "lockstep: 1\nprocesses:\n\ta: {}\n", "3:2", "not valid YAML: found character that cannot start any token"},
		{"a misaligned key", with("  b/1:\n    - close\n   - close"), "11:4", "not valid YAML"},
		{"a misaligned field", base + "seeds: 1\n  name: x\nreach: []\n", "10:3", "not valid YAML"},
		{"an open brace", with("    - lock: {name: x\nfaults: []\nseeds: 1"), "9:5", "not valid YAML: did not find expected ',' or '}'"},
		{"an open quote", with("about: \"x\nseeds: 1"), "9:1", "not valid YAML: found unexpected end of stream"},
		{"a line without a colon", with("about\nseeds: 1"), "9:1", "not valid YAML"},
		{"two colons", "lockstep: 1\nname: a\nabout: b: c\nlocks: []\n", "3:1", "not valid YAML: mapping values are not allowed"},
		{"an unknown anchor", "lockstep: 1\nname: a\nabout: *x\n", "3:1", "unknown anchor 'x'"},
		{"an alias", with("about: &x y\nsource: *x"), "9:8", "the anchor &x: write the value out"},
		{"a merge key", with("server: {<<: {replicas: 1}}"), "9:10", "a merge key <<"},
		{"a tag", with("about: !!str x"), "9:8", "the tag !!str"},
		{"a tag of one's own", with("server: !x {replicas: 1}"), "9:9", "the tag !x"},
		{"a field twice", with("name: again"), "9:1", `"name" is here twice; first on line 2`},
		{"a nested field twice", with("server: {replicas: 1, replicas: 2}"), "9:23", `"replicas" is here twice`},
		{"a key that is no word", with("? [a]\n: b"), "9:3", "a key must be a word, not a list"},

		// The top.
		{"no version", "name: x\n", "1:1", "there is no lockstep field"},
		{"another version", "lockstep: 2\nfuture: yes\n", "1:11", `this program reads format version 1; the file says "2"`},
		{"the version is not first", "name: x\nlockstep: 1\n", "2:1", "lockstep is not the first field"},
		{"an unknown field", with("wachdog: 3s"), "9:1", `unknown field "wachdog" in a scenario; did you mean "watchdog"? known: lockstep, name`},
		{"no name", replace("name: base\n", ""), "1:1", `a scenario needs "name"`},
		{"a name with a space", replace("base", "a b"), "2:7", `name "a b" must have letters, digits and dashes`},
		{"a name like an option", replace("base", "-x"), "2:7", "start with a letter or a digit"},
		{"text that is a list", with("about: [x]"), "9:8", "this must be text, not a list"},
		{"no value", with("about:"), "9:7", "this must be text, not nothing"},
		{"no lock", replace("[redisson]", "[]"), "3:8", "this is empty; name at least one lock"},
		{"locks that are a word", replace("[redisson]", "redisson"), "3:8", `a list of locks, such as [redisson, setnx-del], not "redisson"`},
		{"an unknown lock", replace("[redisson]", "[redison]"), "3:9", `no lock "redison"; known: redisson`},
		{"a lock under two names", replace("[redisson]", "[redisson, redisson@4.7.0]"), "3:19", "redisson@4.7.0, which is listed already"},
		{"an unknown network field", with("network: {latencey: 1ms}"), "9:11", `did you mean "latency"?`},
		{"a range upside down", with("network: {latency: 2ms..1ms}"), "9:20", "the first is above the second"},
		{"a range below the stand-in for 0", with("network: {latency: 0..50us}"), "9:20", "0 stands for 100µs"},
		{"a negative latency", with("network: {latency: -1ms}"), "9:20", "too short: at least 0s"},
		{"a duration without a unit", with("watchdog: 5"), "9:11", `"5" is not a duration, since it has no unit; write 5s, 5ms or 5us`},
		{"a range without a unit", with("network: {latency: 1..5ms}"), "9:20", `"1" is not a duration, since it has no unit`},
		{"a duration of words", with("watchdog: soon"), "9:11", `"soon" is not a duration`},
		{"a name too long", strings.Replace(with(""), "name: ", "name: "+strings.Repeat("x", 200), 1), "2:7", "has more than 200 characters"},
		{"a duration too long for 64 bits", with("watchdog: 9999999h"), "9:11", "too long: at most 87600h, ten years"},
		{"a duration beyond what is simulated", with("watchdog: 87601h"), "9:11", "too long: at most 87600h, ten years"},
		{"a watchdog too short", with("watchdog: 2ms"), "9:11", "at least 3ms"},
		{"seeds upside down", with("seeds: 5..1"), "9:8", "the first is above the last"},
		{"seeds without an end", with("seeds: 1..9223372036854775807"), "9:8", "at most 1000000000 seeds"},
		{"seeds that are words", with("seeds: many"), "9:8", "such as 1..50"},
		{"a negative seed", with("seeds: -1"), "9:8", "is not a seed"},
		{"an unknown reach", with("reach: [renewd]"), "9:9", `did you mean "renewed"?`},
		{"a server without replicas", with("server: {lag: 1ms}"), "9:9", `server needs "replicas"`},
		{"a negative number of replicas", with("server: {replicas: -1, lag: 1ms}"), "9:20", "-1 is not between 0"},
		{"half a replica", with("server: {replicas: 1.5}"), "9:20", `"1.5" is not a whole number`},
		{"too many replicas", with("server: {replicas: 17}"), "9:20", "17 replicas; a server has at most 16"},
		{"a lag without replicas", with("server: {replicas: 0, lag: 1ms}"), "9:28", "a lag without replicas"},
		{"a negative lag", with("server: {replicas: 1, lag: -1ms}"), "9:28", "too short"},
		{"a lag upside down", with("server: {replicas: 1, lag: 5ms..1ms}"), "9:28", "the first is above the second"},
		{"a lag upside down, since 0 stands for more", with("server: {replicas: 1, lag: 0..50us}"), "9:28", "lag \"0..50us\" is 100µs..50µs"},
		{"a lag that is no duration", with("server: {replicas: 1, lag: long}"), "9:28", `"long" is not a duration`},
		{"a list of servers", with("server: [1]"), "9:9", "server is a mapping of fields, not a list"},
		{"lost writes where replicas say what is lost", with("server: {replicas: 1}\nfaults:\n  - {at: 1s, server: failover, lose_last: 1}"), "11:43", "lose_last belongs to a server without replicas"},
		{"the same with the server below", with("faults:\n  - {at: 1s, server: failover, lose_last: 0}\nserver: {replicas: 1}"), "10:43", "lose_last belongs to a server without replicas"},
		{"a resource without a start", replace("{start: 5}", "{end: 5}"), "4:20", `a resource needs "start"`},
		{"a fraction", replace("start: 5", "start: 5.5"), "4:28", `"5.5" is not a whole number`},

		// Processes.
		{"no process", replace("{a: {threads: 2}, b: {}}", "{}"), "5:12", "without a process nothing runs"},
		{"a process that starts with a digit", replace("b: {}", "1b: {}"), "5:30", "start with a letter"},
		{"an unknown process field", replace("threads: 2", "thread: 2"), "5:17", `unknown field "thread" in a process; did you mean "threads"?`},
		{"a process without a value", replace("b: {}", "b: "), "5:33", "a process is a mapping of fields, not nothing"},
		{"no thread", replace("threads: 2", "threads: 0"), "5:26", "0 is not between 1 and"},
		{"too many threads", replace("threads: 2", "threads: 2000000000"), "5:16", "more than 4096 threads"},
		{"too many connections", replace("b: {}", "b: {client: {pool_size: 10001}}"), "5:54", "10001 is not between 1 and 10000"},
		{"too many attempts", replace("b: {}", "b: {client: {retry_attempts: 10001}}"), "5:59", "10001 is not between 0 and 10000"},
		{"an unknown word", replace("b: {}", "b: {lock_objects: percall}"), "5:48", `did you mean "per_call"?`},
		{"a drift that stops the clock", replace("b: {}", "b: {wall_clock: {drift_ppm: -1000000}}"), "5:58", "stops the clock"},
		{"an unknown client field", replace("b: {}", "b: {client: {timeout: 1s}}"), "5:43", `unknown field "timeout" in client`},

		// Steps.
		{"no steps", replace("\n  a/1:\n    - lock: orders", " {}"), "6:8", "without a step nothing is tested"},
		{"threads without steps", replace("\n    - lock: orders", " []\n  b/1: []"), "7:3", "no thread has a step"},
		{"too many repeats", step("repeat: {times: 1000000000, steps: [unlock: orders]}"), "9:7", "more than 100000 steps in one run"},
		{"too many repeats of repeats", step("repeat: {times: 400, steps: [{repeat: {times: 400, steps: [unlock: orders]}}]}"), "9:7", "more than 100000 steps in one run"},
		{"too many repeats within a lock", step("with_lock: {name: o, steps: [close, {repeat: {times: 100000, steps: [close]}}]}"), "9:43", "more than 100000 steps in one run"},
		{"too many repeats of two steps together", step("repeat: {times: 60000, steps: [close]}\n    - repeat: {times: 60000, steps: [close]}"), "10:7", "more than 100000 steps in one run"},
		{"too many repeats of all threads", replace("a/1:\n    - lock: orders", "a/*:\n    - repeat: {times: 50000, steps: [close]}"), "8:7", "more than 100000 steps in one run"},
		{"a thread that is not there", with("  a/3: [close]"), "9:3", `unknown thread "a/3" in processes; did you mean "a/1"? known: a/1, a/2, b/1`},
		{"a thread without a number", with("  a: [close]"), "9:3", `unknown thread "a"`},
		{"a thread with a leading zero", with("  a/02: [close]"), "9:3", `did you mean "a/2"?`},
		{"all threads of no process", with("  c/*: [close]"), "9:3", `unknown process "c"`},
		{"a thread under a star and a number", with("  a/*: [close]"), "9:3", "a/1 already has steps, under a/1"},
		{"steps that are a mapping", with("  a/2: {close: 1}"), "9:8", "this must be a list of steps, not a mapping"},
		{"an unknown step", step("lok: orders"), "9:7", `unknown step "lok" in steps; did you mean "lock"?`},
		{"an unknown word for a step", step("closed"), "9:7", `did you mean "close"?`},
		{"a word for a step with fields", step("unlock"), "9:7", "unlock needs a value"},
		{"close with fields", step("close: now"), "9:7", "write `- close`"},
		{"a step that is a list", step("[close]"), "9:7", "not a list"},
		{"an empty step", step("{}"), "9:7", "not a mapping"},
		{"two steps in one", step("sleep: 1s\n      unlock: orders"), "10:7", `"unlock" does not belong to the step sleep`},
		{"a misspelt field", step("lock: {name: o, leese: 3s}"), "9:23",
			`unknown field "leese" in lock; did you mean "lease"? known: name, lease, interruptible, want, reply`},
		{"a field of another step", step("lock: {name: o, wait: 3s}"), "9:23", `unknown field "wait" in lock`},
		{"a lock without a name", step("lock: {lease: 3s}"), "9:13", `lock needs "name"`},
		{"an empty lock name", step(`lock: ""`), "9:13", "must not be empty"},
		{"a lock name too long", step("lock: " + strings.Repeat("x", 1001)), "9:13", "has more than 1000 bytes"},
		{"a lock name with an open brace", step(`lock: "a{b"`), "9:13", "a brace that is not closed"},
		{"a list as a lock", step("lock: [a, b]"), "9:13", "lock is a mapping of fields, not a list"},
		{"no lease at all", step("lock: {name: o, lease: 0}"), "9:30", `"0" is too short: at least 1ms`},
		{"a lease too short", step("lock: {name: o, lease: 999us}"), "9:30", "at least 1ms"},
		{"a negative wait", step("try_lock: {name: o, wait: -1s}"), "9:33", "at least 0s"},
		{"a negative sleep", step("sleep: -1s"), "9:14", "at least 0s"},
		{"an unknown unit", step("try_lock: {name: o, unit: second}"), "9:33", `did you mean "seconds"?`},
		{"a value that is not true or false", step("lock: {name: o, interruptible: yes}"), "9:38", "known: true, false"},
		{"a want of another step", step("lock: {name: o, want: busy}"), "9:29", `unknown want "busy" in lock; did you mean "error"? known: granted, error, unknown`},
		{"a want of another step in a list", step("force_unlock: {name: o, want: [released, still_held]}"), "9:48", "known: released, not_held, error, unknown"},
		{"an empty want", step("unlock: {name: o, want: []}"), "9:31", "unlock can have: released, still_held"},
		{"sold is not a want", step("use: {resource: stock, want: sold}"), "9:36", `did you mean "sold_out"?`},
		{"a null reply", step("lock: {name: o, reply: null}"), "9:30", "an empty reply is written nil"},
		{"a reply with a unit", step("lock: {name: o, reply: 3s}"), "9:30", "write the milliseconds without a unit: 3000"},
		{"a reply that is a word", step("try_lock: {name: o, reply: ok}"), "9:34", "neither nil nor a whole number"},
		{"a reply that unlock cannot have", step("unlock: {name: o, reply: 2}"), "9:32", "known: nil, 0, 1"},
		{"a read of nothing", step("read: {name: o}"), "9:13", "read looks at nothing"},
		{"a misspelt ttl", step("read: {name: o, ttl: fre}"), "9:28", `did you mean "free"?`},
		{"a ttl without a unit", step("read: {name: o, ttl: 30}"), "9:28", "write 30s, 30ms"},
		{"a queue of strangers", step("read: {name: o, queue: [b/2]}"), "9:31", `unknown thread "b/2" in processes; did you mean`},
		{"a deadline of a stranger", step("read: {name: o, deadlines: {b/2: 1s}}"), "9:35", `unknown thread "b/2"`},
		{"published without a count", step("published: {name: o, to: all}"), "9:18", `published needs "count"`},
		{"published to a stranger", step("published: {name: o, to: al, count: 1}"), "9:32", `did you mean "all"?`},
		{"an unknown resource", step("use: {resource: stok}"), "9:23", `unknown resource "stok" in resources; did you mean "stock"?`},
		{"a fence that no step takes", strings.Replace(base, "{start: 5}", "{start: 5, fence: order}", 1), "4:38", `unknown lock "order" in steps; did you mean "orders"?`},
		{"a fence of several locks", strings.Replace(base, "{start: 5}", "{start: 5, fence: [orders]}", 1), "4:38", "not a list"},
		{"a refusal of a resource that refuses nobody", step("use: {resource: stock, want: refused}"), "9:36", "stock refuses nobody: give it a fence"},
		{"a resource where there is none", strings.Replace(step("use: {resource: x}"), base[strings.Index(base, "resources"):strings.Index(base, "processes")], "", 1),
			"8:23", "resources declares none"},
		{"interrupting a stranger", step("interrupt: c/1"), "9:18", `unknown thread "c/1"`},
		{"repeat without a bound", step("repeat: {steps: [close]}"), "9:15", "repeat needs one of times, until"},
		{"repeat with two bounds", step("repeat: {times: 1, until: 1s, steps: [close]}"), "9:15", "times and until; give one"},
		{"repeat without steps", step("repeat: {times: 1, steps: []}"), "9:33", "give the steps to repeat"},
		{"a bad step inside", step("repeat: {times: 1, steps: [{sleep: 5}]}"), "9:42", "write 5s"},
		{"a misspelt with_lock", step("with_lock: {name: o, unlock: never}"), "9:36", "known: when_granted, always"},

		// Faults.
		{"a fault that is a word", fault("crash"), "10:5", "a fault is a mapping of fields"},
		{"an unknown fault", fault("{at: 1s, crush: a}"), "10:14", `unknown field "crush" in a fault; did you mean "crash"?`},
		{"a fault that does nothing", fault("{at: 1s}"), "10:5", "a fault needs one of crash, pause"},
		{"two faults in one", fault("{at: 1s, crash: a, pause: a, for: 1s}"), "10:5", "crash and pause; give one"},
		{"a fault without an instant", fault("{crash: a}"), "10:5", `a crash fault needs "at"`},
		{"a field of another fault", fault("{at: 1s, crash: a, for: 1s}"), "10:24", `unknown field "for" in a crash fault`},
		{"a pause without a length", fault("{at: 1s, pause: a}"), "10:5", `a pause fault needs "for"`},
		{"a pause of no length", fault("{at: 1s, pause: a, for: 0}"), "10:29", "too short"},
		{"a crash of a stranger", fault("{at: 1s, crash: aa}"), "10:21", `unknown process "aa" in processes; did you mean "a"?`},
		{"a partition of nobody", fault("{at: 1s, partition: [], for: 1s}"), "10:25", "name the processes to cut off"},
		{"a partition of a stranger", fault("{at: 1s, partition: [a, c], for: 1s}"), "10:29", `unknown process "c"`},
		{"an unknown server fault", fault("{at: 1s, server: reboot}"), "10:22", "known: restart, failover, flush_scripts, stall, wall_clock"},
		{"keep_data of a failover", fault("{at: 1s, server: failover, keep_data: true}"), "10:32", `unknown field "keep_data" in server: failover`},
		{"a negative loss", fault("{at: 1s, server: failover, lose_last: -1}"), "10:43", "-1 is not between 0"},
		{"a stall without a length", fault("{at: 1s, server: stall}"), "10:5", `server: stall needs "for"`},
		{"a wall clock of a server without a step", fault("{at: 1s, server: wall_clock}"), "10:5", `server: wall_clock needs "step"`},
		{"a step of nothing", fault("{at: 1s, server: wall_clock, step: 0}"), "10:40", "a step of 0 changes nothing"},
		{"a step of less than a server sees", fault("{at: 1s, server: wall_clock, step: 1500us}"), "10:40", "the clock of a server counts whole milliseconds"},
		{"a step of a server without a unit", fault("{at: 1s, server: wall_clock, step: -5}"), "10:40", "write -5s"},
		{"a step that is too long", fault("{at: 1s, server: wall_clock, step: -2562047h}"), "10:40", "too long"},
		{"a step of a restart", fault("{at: 1s, server: restart, step: 1s}"), "10:31", `unknown field "step" in server: restart`},
		{"the wall clock of a server and of a process", fault("{at: 1s, server: wall_clock, wall_clock: a, step: 1s}"), "10:5", "give one"},
		{"an unknown deed of an operator", fault("{at: 1s, key: x, do: drop}"), "10:26", "known: delete, expire"},
		{"a rule at an instant", fault("{at: 1s, when: {}, do: drop}"), "10:6", `unknown field "at" in a when fault`},
		{"a rule without a deed", fault("{when: {}}"), "10:5", `a when fault needs "do"`},
		{"an unknown field of a rule", fault("{when: {proces: a}, do: drop}"), "10:13", `did you mean "process"?`},
		{"an unknown script", fault("{when: {script: renewal}, do: drop}"), "10:21", `did you mean "renew"?`},
		{"the nothingth message", fault("{when: {nth: 0}, do: drop}"), "10:18", "0 is not between 1"},
		{"nth and every", fault("{when: {nth: 1, every: 2}, do: drop}"), "10:28", "exclude each other"},
		{"every and after", fault("{when: {every: 1, after: 2}, do: drop}"), "10:30", "every and after exclude each other; give one"},
		{"after nothing", fault("{when: {after: 0}, do: drop}"), "10:20", "0 is not between 1"},
		{"a wait for nothing", fault("{when: {}, do: hold, until: {}}"), "10:33", "until waits for nothing; give an instant such as 5s, or granted, ended, published or executed"},
		{"a wait for an unknown thing", fault("{when: {}, do: hold, until: {grantd: a/1}}"), "10:34", `unknown field "grantd" in until; did you mean "granted"?`},
		{"a wait for a stranger", fault("{when: {}, do: hold, until: {granted: a/3}}"), "10:43", `unknown thread or process "a/3" in granted; did you mean "a/1"? known: a/1, a/2, b/1, a, b`},
		{"a wait for a thread that never locks", fault("{when: {}, do: hold, until: {granted: b/1}}"), "10:43", "b/1 takes no lock, so it is never granted one"},
		{"a wait for a process that never locks", fault("{when: {}, do: hold, until: {granted: b}}"), "10:43", "b takes no lock, so it is never granted one"},
		{"a wait for a lock that nobody takes", fault("{when: {}, do: hold, until: {ended: order}}"), "10:41", `unknown lock "order" in steps; did you mean "orders"?`},
		{"a wait for a bad channel", fault(`{when: {}, do: hold, until: {published: "[a"}}`), "10:45", "is no glob"},
		{"a wait for any request", fault("{when: {}, do: hold, until: {executed: {nth: 2}}}"), "10:44", "executed names no request; give process, command, script or channel"},
		{"a wait for a command that the server lacks", fault("{when: {}, do: hold, until: {executed: {command: pexpir}}}"), "10:54", `did you mean "PEXPIRE"?`},
		{"a wait for a direction", fault("{when: {}, do: hold, until: {executed: {direction: request}}}"), "10:45", `unknown field "direction" in executed`},
		{"a rule that ends before it begins", fault("{when: {}, from: 2s, until: 2s, do: drop}"), "10:33", "not after from 2s"},
		{"a delay without a length", fault("{when: {}, do: delay}"), "10:5", "do: delay needs for"},
		{"a drop with a length", fault("{when: {}, do: drop, for: 1s}"), "10:31", "for belongs to do: delay, not to do: drop"},
		{"an error without a text", fault("{when: {}, do: error}"), "10:5", "do: error needs with"},
		{"a drop with a text", fault("{when: {}, do: drop, with: x}"), "10:32", "with belongs to do: error"},

		{"a misspelt field of a fault that has others", fault("{at: 1s, pause: a, fro: 1s}"), "10:24", `unknown field "fro" in a pause fault; did you mean "for"?`},
		{"an instant without a unit", fault("{at: 1, crash: a}"), "10:10", "write 1s, 1ms or 1us"},
		{"an instant before the start", fault("{at: -1s, crash: a}"), "10:10", "at least 0s"},
		{"an instant that is a list", fault("{at: [1s], crash: a}"), "10:10", "a duration, such as 5s or 200ms, not a list"},
		{"an instant too far", fault("{at: 2562047h, crash: a}"), "10:10", "too long"},
		{"a crash of several", fault("{at: 1s, crash: [a, b]}"), "10:21", "this must be a word, not a list"},
		{"a crash of nobody", fault("{at: 1s, crash: }"), "10:21", "not nothing"},
		{"a pause of a stranger", fault("{at: 1s, pause: c, for: 1s}"), "10:21", `unknown process "c"`},
		{"a pause without a unit", fault("{at: 1s, pause: a, for: 5}"), "10:29", "write 5s, 5ms"},
		{"a negative pause", fault("{at: 1s, pause: a, for: -1s}"), "10:29", "too short"},
		{"a pause too long", fault("{at: 1s, pause: a, for: 2562047h}"), "10:29", "too long"},
		{"a partition of a lone stranger", fault("{at: 1s, partition: aa, for: 1s}"), "10:25", `did you mean "a"?`},
		{"a partition of a mapping", fault("{at: 1s, partition: {a: 1}, for: 1s}"), "10:25", "not a mapping"},
		{"a partition without a length", fault("{at: 1s, partition: [a]}"), "10:5", `a partition fault needs "for"`},
		{"a partition without an instant", fault("{partition: [a], for: 1s}"), "10:5", `a partition fault needs "at"`},
		{"a partition from no server", fault("{at: 1s, partition: a, for: 1s, servers: []}"), "10:46", "name the servers that the fault strikes, or leave the field out for all"},
		{"a server numbered 0", fault("{at: 1s, server: restart, servers: [0]}"), "10:41", "0 is not between 1 and"},
		{"a server twice", fault("{at: 1s, server: restart, servers: [2, 2]}"), "10:44", "2 is named already"},
		{"servers of a crash", fault("{at: 1s, crash: a, servers: [1]}"), "10:24", "servers"},
		{"a process cut off twice", fault("{at: 1s, partition: [a, a], for: 1s}"), "10:29", "a is named already"},
		{"a wall clock of a stranger", fault("{at: 1s, wall_clock: c, step: 1s}"), "10:26", `unknown process "c"`},
		{"a wall clock without a step", fault("{at: 1s, wall_clock: a}"), "10:5", `a wall_clock fault needs "step"`},
		{"a step without a unit", fault("{at: 1s, wall_clock: a, step: -5}"), "10:35", "write -5s"},
		{"a step too long", fault("{at: 1s, wall_clock: a, step: -99999h}"), "10:35", "too long"},
		{"a wall clock for a while", fault("{at: 1s, wall_clock: a, step: 1s, for: 1s}"), "10:39", `unknown field "for" in a wall_clock fault`},
		{"a misspelt server fault", fault("{at: 1s, server: fail_over}"), "10:22", `did you mean "failover"?`},
		{"a server that is a list", fault("{at: 1s, server: [restart]}"), "10:22", "not a list"},
		{"a server fault without an instant", fault("{server: restart}"), "10:5", `server: restart needs "at"`},
		{"keep_data without a value", fault("{at: 1s, server: restart, keep_data}"), "10:40", "this must be true or false, not nothing"},
		{"keep_data that is neither", fault("{at: 1s, server: restart, keep_data: yes}"), "10:42", "known: true, false"},
		{"a loss of a restart", fault("{at: 1s, server: restart, lose_last: 1}"), "10:31", `unknown field "lose_last" in server: restart`},
		{"a loss that is no number", fault("{at: 1s, server: failover, lose_last: all}"), "10:43", `"all" is not a whole number`},
		{"a flush for a while", fault("{at: 1s, server: flush_scripts, for: 1s}"), "10:37", `unknown field "for" in server: flush_scripts`},
		{"a stall of no length", fault("{at: 1s, server: stall, for: 0}"), "10:34", "too short"},
		{"an empty key", fault(`{at: 1s, key: "", do: delete}`), "10:19", "must not be empty"},
		{"keys as a list", fault("{at: 1s, key: [x], do: delete}"), "10:19", "this must be text, not a list"},
		{"a key that is no glob", fault(`{at: 1s, key: "x[ab", do: delete}`), "10:19", `"x[ab" is no glob: a class`},
		{"a key without a deed", fault("{at: 1s, key: x}"), "10:5", `a key fault needs "do"`},
		{"a key without an instant", fault("{key: x, do: delete}"), "10:5", `a key fault needs "at"`},
		{"a misspelt deed of an operator", fault("{at: 1s, key: x, do: exprie}"), "10:26", `unknown do "exprie" in a key fault; did you mean "expire"?`},
		{"a rule on a word", fault("{when: renew, do: drop}"), "10:12", `when is a mapping of fields, not "renew"`},
		{"a rule of a stranger", fault("{when: {process: c}, do: drop}"), "10:22", `unknown process "c"`},
		{"an unknown direction", fault("{when: {direction: replies}, do: drop}"), "10:24", `unknown direction "replies" in when; did you mean "reply"?`},
		{"an unknown command", fault("{when: {command: evalsa}, do: drop}"), "10:22", `unknown command "EVALSA" in when; did you mean "EVALSHA"? known: APPEND, AUTH`},
		{"a command of another server", strings.Replace(fault("{when: {command: evalsha}, do: drop}"), "locks: [redisson]", "locks: [doors]", 1), "10:22",
			`unknown command "EVALSHA" in when; did you mean "CLOSE"? known: CLOSE, OPEN`},
		{"a command that the servers of one lock do not know", strings.Replace(fault("{when: {command: opne}, do: drop}"), "locks: [redisson]", "locks: [setnx-del, doors]", 1), "10:22",
			`unknown command "OPNE" in when, for the servers of doors; did you mean "OPEN"?`},
		{"a command of two words", fault("{when: {command: script load}, do: drop}"), "10:22", `did you mean "SCRIPT"?`},
		{"an empty command", fault(`{when: {command: ""}, do: drop}`), "10:22", "must not be empty"},
		{"an empty channel", fault(`{when: {channel: ""}, do: drop}`), "10:22", "must not be empty"},
		{"a channel that is no glob", fault(`{when: {channel: "[]"}, do: drop}`), "10:22", "is no glob"},
		{"every nothingth message", fault("{when: {every: 0}, do: drop}"), "10:20", "0 is not between 1"},
		{"the n-th message", fault("{when: {nth: second}, do: drop}"), "10:18", `"second" is not a whole number`},
		{"a rule from no instant", fault("{when: {}, from: start, do: drop}"), "10:22", `"start" is not a duration`},
		{"a rule until the start", fault("{when: {}, until: 0, do: drop}"), "10:23", "too short"},
		{"a rule until no instant", fault("{when: {}, until: 5, do: drop}"), "10:23", "write 5s"},
		{"an unknown deed", fault("{when: {}, do: dorp}"), "10:20", `unknown do "dorp" in a rule; did you mean "drop"?`},
		{"a delay of no length", fault("{when: {}, do: delay, for: 0}"), "10:32", "too short"},
		{"a hold for a while", fault("{when: {}, do: hold, for: 1s}"), "10:31", "for belongs to do: delay, not to do: hold"},
		{"an empty error", fault(`{when: {}, do: error, with: ""}`), "10:33", "must not be empty"},
		{"an error of two lines", fault(`{when: {}, do: error, with: "ERR a\nb"}`), "10:33", "an error of the server is one line"},

		// Expectations.
		{"an expectation of an unknown lock", with("expect: {redison: held}"), "9:10", `no lock "redison"`},
		{"an expectation without locks", strings.Replace(with("expect: {setnx-del: held}"), "locks: [redisson]\n", "", 1), "1:1", `a scenario needs "locks"`},
		{"an expectation of a lock not listed", with("expect: {setnx-del: held}"), "9:10", `expect has "setnx-del", and locks has redisson@4.7.0; name the same lock in both`},
		{"two expectations of one lock", with("expect: {redisson: held, redisson@4.7.0: held}"), "9:26", "has an expectation already"},
		{"an unknown outcome", with("expect: {redisson: hold}"), "9:20", `did you mean "held"?`},
		{"a bug without judges", with("expect: {redisson: bug}"), "9:20", "bug needs its judges: {bug: [misdelete]}"},
		{"one seed of too many", with("expect: {redisson: {bug: [misdelete], in: some}}\nseeds: 1..100001"), "10:8", "at most 100000 seeds"},
		{"a bug with no judge", with("expect: {redisson: {bug: []}}"), "9:26", "judges: mutual-exclusion"},
		{"an unknown judge", with("expect: {redisson: {bug: [misdeleted]}}"), "9:27", `unknown judge "misdeleted" in bug; did you mean "misdelete"?`},
		{"held with a judge", with("expect: {redisson: {held: [fifo]}}"), "9:27", "write held: []"},
		{"two outcomes", with("expect: {redisson: {bug: [fifo], limit: [fifo]}}"), "9:20", "bug and limit; give one"},
		{"no outcome", with("expect: {redisson: {reach: [renewed]}}"), "9:20", "needs one of held, bug, limit, not"},
		{"in no known number of seeds", with("expect: {redisson: {bug: [fifo], in: any}}"), "9:38", "known: all, some"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			s, err := Parse("x.yaml", []byte(c.text), shop)
			var first *FileError
			if !errors.As(err, &first) {
				t.Fatalf("got %v, want a *FileError\n%s", err, c.text)
			}
			if s != nil {
				t.Error("a scenario comes with the error")
			}
			if place := "x.yaml:" + c.at + ": "; !strings.HasPrefix(first.Error(), place) || !strings.Contains(first.Error(), c.says) {
				t.Errorf("got  %v\nwant %s…%s", err, place, c.says)
			}
		})
	}
}

func TestEveryErrorIsReportedInTheOrderOfTheFile(t *testing.T) {
	_, err := Parse("f", []byte(with("    - lok: orders\nwatchdog: 5\nseeds: x")), shop)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d errors, want 3: %v", len(lines), err)
	}
	for i, place := range []string{"f:9:7: ", "f:10:11: ", "f:11:8: "} {
		if !strings.HasPrefix(lines[i], place) {
			t.Errorf("error %d is %q, want it at %s", i, lines[i], place)
		}
	}
}

func TestAFileFullOfErrorsReportsOnlySome(t *testing.T) {
	_, err := Parse("f", []byte(with(strings.Repeat("    - lok: orders\n", 10_000))), shop)
	if n := strings.Count(err.Error(), "\n") + 1; n != maxErrors {
		t.Errorf("%d errors, want %d", n, maxErrors)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", example, base, "lockstep: 1", "lockstep: 2", "---\n---\n", "a: &a [*a]", "{<<: {}}", "? {a: b}\n: c", "!!x y", "\xff", "\xff\xfe[\x00",
		with("    - repeat: {times: 1, steps: [read: {name: o, ttl: 1s..2s, queue: [b/1]}]}"),
		with("faults:\n  - {when: {nth: 1}, do: error, with: x}\n  - {at: 1s, server: stall, for: 1s}"),
		with("expect: {redisson: {held, reach: []}}\nserver: {replicas: 1}\nseeds: 3..4"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("f", text, shop)
		if (s == nil) == (err == nil) {
			t.Fatalf("scenario %v with error %v", s, err)
		}
		var at *FileError
		if err != nil && (!errors.As(err, &at) || at.Line < 1 || at.Column < 1 || at.Msg == "") {
			t.Fatalf("error without a place: %v", err)
		}
		// The text of an accepted scenario is accepted again and gives an equal scenario.
		if err == nil {
			again, err := Parse("f", []byte(s.Text), shop)
			if err != nil || !reflect.DeepEqual(s, again) {
				t.Fatalf("again: %v, %v; first %v", again, err, s)
			}
		}
	})
}

// A recording of another version may hold a scenario that this one refuses.
func TestTheNameOfAScenarioIsReadEvenIfTheRestIsNot(t *testing.T) {
	for text, want := range map[string]string{
		"lockstep: 99\nname: orders\nnew: [1, 2]\n": "orders",
		"name: \"two words\"\n":                     "two words",
		"about: nothing\n":                          "",
		"name: [":                                   "",
	} {
		if got := NameIn(text); got != want {
			t.Errorf("%q: %q; want %q", text, got, want)
		}
	}
}
