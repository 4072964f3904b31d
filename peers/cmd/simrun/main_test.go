package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/cli/frame/frametest"
	"lockstep/internal/longtest"
	"lockstep/live"
	"lockstep/peers/programs"
)

// The tests call this program again, and so do campaigns, which start it to play their
// runs.
func TestMain(m *testing.M) {
	frametest.AsProgram(main)
	m.Run()
}

// For a lock of this module, Lockstep's own simrun names the program that knows it, and says whether
// the lock is possible live.
func TestSimrunKnowsTheNamesOfTheLocks(t *testing.T) {
	const list = "../../../cmd/internal/others/others.json"
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var known, want []frame.Other
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	for _, s := range programs.Locks() {
		want = append(want, frame.Other{Name: s.Name, OnlySimulated: s.OnlySimulated})
	}
	if !slices.Equal(known, want) {
		t.Errorf("%s has %v, and the locks are %v", list, known, want)
	}
}

// A lock is possible live unless it says that it is only simulated.
func TestWhichLocksArePossibleLive(t *testing.T) {
	if live.Player() == nil {
		t.Skip("nothing is possible live on this system")
	}
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(file, []byte("lockstep: 1\nname: one\nlocks: [none]\nprocesses: {a: {}}\nsteps: {a/1: [{lock: orders}, {unlock: orders}]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"live", file}
	for _, l := range programs.Locks() {
		args = append(args, "--lock", l.Name)
	}
	code, out, stderr := frametest.Start(t, args...)
	for _, l := range programs.Locks() {
		if refused := strings.Contains(stderr, "not possible live: "+l.Name+" is "); code != 64 || refused != l.OnlySimulated {
			t.Errorf("%s: possible live: %v; want %v. Exit %d: %s%s", l.Name, !refused, !l.OnlySimulated, code, out, stderr)
		}
	}
}

func TestOtherPeoplesLocksStandBesideTheBuiltIn(t *testing.T) {
	code, out, stderr := frametest.Start(t, "list")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, name := range []string{"redsync-1", "redsync-5", "redislock", "rueidislock-1", "rueidislock-2", "memcached-add", "memcached-add-forever", "memcached-cas", "etcd-mutex", "redisson@4.7.0", "reference-fair"} {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("%s is missing in:\n%s", name, out)
		}
	}
}

// A rule on messages may name any command that the servers of the lock know.
func TestARuleNamesACommandOfTheLocksServers(t *testing.T) {
	for _, c := range []struct{ locks, command, want string }{
		{"memcached-add", "add", ""},
		{"memcached-add", "ad", `s.yaml:7:32: unknown command "AD" in when; did you mean "ADD"? known: ADD, APPEND, BGET`},
		{"memcached-add", "set", ""},
		{"redsync-1", "add", `s.yaml:7:32: unknown command "ADD" in when; did you mean "SADD"?`},
		{"zookeeper", "create", ""},
		{"zookeeper", "setnx", `s.yaml:7:32: unknown command "SETNX" in when; did you mean "SETACL"?`},
		{"redsync-1, zookeeper", "set", `s.yaml:7:32: unknown command "SET" in when, for the servers of zookeeper`},
	} {
		file := filepath.Join(t.TempDir(), "s.yaml")
		text := "lockstep: 1\nname: one\nlocks: [" + c.locks + "]\nprocesses: {a: {}}\nsteps: {a/1: [{lock: orders}, {unlock: orders}]}\n" +
			"faults:\n  - {do: hold, when: {command: " + c.command + "}, until: 5s}\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := frametest.Start(t, "run", file)
		if c.want == "" && code != 0 || c.want != "" && (code != 64 || !strings.Contains(stderr, c.want)) {
			t.Errorf("%s of %s: exit %d: %s%s", c.command, c.locks, code, out, stderr)
		}
	}
}

func TestAScenarioThatALockCannotPlayIsNotApplicable(t *testing.T) {
	const reason = "misdelete.yaml:18: the step lock does not apply: redsync-1 takes no lease from its caller"
	code, out, _ := frametest.Start(t, "run", "misdelete", "--lock", "redsync-1", "--lock", "setnx-del")
	if code != 0 || !strings.Contains(out, "n/a") || !strings.Contains(strings.Join(strings.Fields(out), " "), reason) ||
		!strings.Contains(out, "5 runs of 1 pair of scenario and lock; 0 not as expected; 1 pair n/a") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	code, out, _ = frametest.Start(t, "run", "misdelete", "--lock", "redsync-1", "--json")
	var o struct {
		Verdict    string
		AsExpected bool `json:"as_expected"`
		Findings   []struct{ Finding, Why string }
	}
	if err := json.Unmarshal([]byte(out), &o); err != nil || code != 0 || o.Verdict != "n/a" || !o.AsExpected ||
		len(o.Findings) != 1 || o.Findings[0].Finding != "n/a" || !strings.Contains(o.Findings[0].Why, "takes no lease") {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	code, out, _ = frametest.Start(t, "run", "misdelete", "--lock", "redsync-1", "--format", "junit")
	if code != 0 || !strings.Contains(out, `skipped="1"`) || !strings.Contains(out, "takes no lease") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if code, out, _ = frametest.Start(t, "matrix", "misdelete", "--lock", "redsync-1", "--lock", "setnx-del"); code != 0 || !strings.Contains(out, "n/a") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// A fault that the server of a lock does not have is refused at its place in the file.
func TestAFaultThatAServerLacksIsRefused(t *testing.T) {
	const memcached, etcd, zookeeper, nats, mysql, chubby = "memcached-cas", "etcd-mutex", "zookeeper", "nats-kv", "mysql-row", "chubby"
	for _, c := range []struct{ lock, fault, want string }{
		{memcached, "{at: 1s, server: failover}", "server 1 of memcached-cas has no replica to fail over to; it has a restart without its data"},
		{memcached, "{at: 1s, server: flush_scripts}", "server 1 of memcached-cas runs no scripts; it has"},
		{memcached, "{at: 1s, server: restart, keep_data: true}", "server 1 of memcached-cas keeps nothing over a restart; it has"},
		{memcached, "{at: 1s, server: stall, for: 1s}", ""},
		{memcached, "{at: 1s, server: wall_clock, step: -1h}", ""},
		{memcached, "{at: 1s, server: restart, keep_data: false}", ""},
		{memcached, "{at: 1s, key: \"*\", do: delete}", ""},
		{memcached, "{at: 1s, key: orders, do: expire}", ""},
		{memcached, "{when: {process: a}, do: half_open}", "server 1 of memcached-cas takes messages one by one"},
		{etcd, "{at: 1s, server: restart}", "server 1 of etcd-mutex does not start again as the same member without its data; it has a restart with its data and the deletion of keys"},
		{etcd, "{at: 1s, server: stall, for: 1s}", "server 1 of etcd-mutex has timers of its own"},
		{etcd, "{at: 1s, server: wall_clock, step: 1h}", "server 1 of etcd-mutex has no wall clock"},
		{etcd, "{at: 1s, key: \"*\", do: delete}", ""},
		{etcd, "{at: 1s, key: \"*\", do: expire}", "server 1 of etcd-mutex has no operator who ends a lease; it has"},
		{etcd, "{when: {process: a}, do: error, with: x}", "server 1 of etcd-mutex speaks a stream that is not taken apart"},
		{etcd, "{when: {command: GET}, do: drop}", "server 1 of etcd-mutex speaks a stream that is not taken apart"},
		{etcd, "{when: {process: a, nth: 9}, do: half_open}", ""},
		{zookeeper, "{at: 1s, server: failover}", "server 1 of zookeeper has no replica to fail over to; it has a restart"},
		{zookeeper, "{at: 1s, key: \"*\", do: expire}", "server 1 of zookeeper has no nodes that expire; it has"},
		{nats, "{at: 1s, server: failover}", "server 1 of nats-kv stands alone and has nothing to fail over to; it has a restart"},
		{nats, "{at: 1s, server: flush_scripts}", "server 1 of nats-kv runs no scripts; it has"},
		{nats, "{at: 1s, key: \"*\", do: delete}", "server 1 of nats-kv has no operator who removes keys; it has"},
		{nats, "{when: {process: a}, do: error, with: x}", "server 1 of nats-kv speaks a stream that is not taken apart"},
		{mysql, "{at: 1s, server: failover}", "server 1 of mysql-row has no replica to fail over to; it has a restart"},
		{mysql, "{at: 1s, key: \"*\", do: expire}", "server 1 of mysql-row has no operator who ends a lease; it has"},
		{mysql, "{when: {command: GET}, do: drop}", "server 1 of mysql-row speaks a stream that is not taken apart"},
		{chubby, "{at: 1s, server: restart, servers: [2]}", "server 2 of chubby does not start again as the same replica without its data; it has"},
		{chubby, "{at: 1s, server: failover}", "server 1 of chubby fails over by itself when the master is gone; it has"},
		{chubby, "{at: 1s, key: \"*\", do: delete}", "server 1 of chubby has no operator who removes locks; it has"},
		{chubby, "{at: 1s, server: stall, for: 1s, servers: [6]}", "it strikes server 6, and chubby has 5"},
	} {
		file := filepath.Join(t.TempDir(), "own.yaml")
		text := "lockstep: 1\nname: own\nabout: x\nlocks: [" + c.lock + "]\nprocesses: {a: {}}\nsteps: {a/1: [lock: orders, unlock: orders]}\nfaults:\n  - " + c.fault + "\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := frametest.Start(t, "run", file)
		if c.want == "" && code != 0 || c.want != "" && (code != 64 || !strings.Contains(stderr, "own.yaml:8: the fault does not apply: "+c.want)) {
			t.Errorf("%s: %s: exit %d: %s%s", c.lock, c.fault, code, out, stderr)
		}
	}
}

// A campaign plays in processes of its own, which know the lock as well. Its recordings can be
// played again.
func TestACampaignOfSomebodysLock(t *testing.T) {
	dir := t.TempDir()
	code, out, stderr := frametest.Start(t, "explore", "--lock", "redsync-1", "--faults", "all", "--runs", "200", "--seed", "3", "--strategy", "plain", "--jobs", "2", "--out", dir)
	if code > 1 || !strings.Contains(out, "200 runs of redsync-1") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	recordings, err := filepath.Glob(filepath.Join(dir, "traffic.bug.acquire.REDSYNC-asks-often", "*.lockstep"))
	if err != nil || len(recordings) != 1 {
		t.Fatalf("recordings: %v, %v; %s", recordings, err, out)
	}
	code, out, stderr = frametest.Start(t, "replay", recordings[0])
	if code != 0 || !strings.Contains(out, "22 commands") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// The committed recordings of these locks replay.
func TestTheRecordingsAmongTheResultsReplay(t *testing.T) {
	t.Chdir("../..")
	for pattern, least := range map[string]int{"../results/peers/*/*/*.lockstep": 10, "../results/peers-recordings/*.lockstep": 30} {
		recordings, err := filepath.Glob(pattern)
		if err != nil || len(recordings) < least {
			t.Fatalf("%d recordings, %v", len(recordings), err)
		}
		replay(t, recordings)
	}
}

// The committed track record is the one that this program writes, each row comes out as it
// expects, and its recordings replay.
func TestTheTrackRecordIsWhatThisProgramWrites(t *testing.T) {
	t.Chdir("../..")
	const folder = "../results/peers-track-record"
	code, out, stderr := frametest.Start(t, "matrix", "--tag", "peers-track-record", "--format", "markdown")
	committed, err := os.ReadFile(folder + "/table.md")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out, "\n# ")
	_, want, _ := strings.Cut(string(committed), "\n# ")
	if got = strings.ReplaceAll(got, "`"+filepath.Base(self)+" matrix", "`go run ./cmd/simrun matrix"); code != 0 || got == "" || got != want {
		t.Errorf("exit %d: %s/table.md differs; write it with: go run ./cmd/evidence results ../results --only peers-track-record\n%s%s", code, folder, stderr, out)
	}
	recordings, err := filepath.Glob(folder + "/*/*/*.lockstep")
	if err != nil || len(recordings) < 8 {
		t.Fatalf("%d recordings, %v", len(recordings), err)
	}
	replay(t, recordings)
	for _, file := range recordings {
		if link := strings.TrimPrefix(filepath.ToSlash(file), folder+"/"); !strings.Contains(want, "]("+link+")") {
			t.Errorf("no row leads to %s", link)
		}
	}
}

// The recordings of the committed survey replay. It compares all locks that this program knows.
// A long test replays all of them, and a short test a sample.
func TestTheSurveysRecordingsReplay(t *testing.T) {
	t.Chdir("../..")
	recordings, err := filepath.Glob("../results/survey/*/*.lockstep")
	if err != nil || len(recordings) < 100 {
		t.Fatalf("%d recordings, %v", len(recordings), err)
	}
	every := len(recordings) / longtest.Size(t, 12, len(recordings))
	for i := 0; i < len(recordings); i += every {
		replay(t, recordings[i:i+1])
	}
}

// replay fails the test for each recording that is not the same when it is run again.
func replay(t *testing.T, recordings []string) {
	t.Helper()
	for _, file := range recordings {
		if code, out, stderr := frametest.Start(t, "replay", file); code != 0 {
			t.Errorf("%s: exit %d; if the same decisions are meant to give another record, raise the number sim.Version\n%s%s", file, code, out, stderr)
		}
	}
}

func TestEachLockSaysWhenToTakeIt(t *testing.T) {
	for _, s := range programs.Locks() {
		if s.Advice == "" {
			t.Errorf("%s says nothing", s.Name)
		}
	}
}

func TestEachLockHasAPolicyOfOneSentence(t *testing.T) {
	for _, s := range programs.Locks() {
		if !strings.HasSuffix(s.Policy, ".") || strings.Count(s.Policy, ". ") > 0 {
			t.Errorf("the policy of %s is no sentence: %q", s.Name, s.Policy)
		}
	}
}
