//go:build linux

package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/bad"
	"lockstep/internal/longtest"
	"lockstep/linearizability/judges"
	"lockstep/lockimpl/redisserver"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/scenarios/subject/onredis"
)

// The first argument of this program when it plays another part than the test's.
const (
	clientPart = "client"
	parentPart = "parent"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case clientPart:
			if err := Client(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case parentPart:
			sc, err := scenarios.Parse("killed.yaml", []byte(overstay), subject.Find)
			if err == nil {
				l, _ := subject.Find("setnx-del")
				_, err = Run(context.Background(), sc, l, 1, Options{Program: []string{os.Args[0], clientPart}})
			}
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
	os.Exit(m.Run())
}

// options returns the settings of a run whose clients are this program.
func options(t *testing.T) Options {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		redisserver.Missing(t, program, program)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Program: []string{self, clientPart}}
}

// These are scenarios of the track record with shorter times.
const (
	overstay = `lockstep: 1
name: overstay
locks: [setnx-del]
processes: {a: {}, b: {}}
steps:
  a/1: [lock: {name: orders, lease: 1500ms, want: granted}, sleep: 2500ms, unlock: orders]
  b/1: [at: 600ms, lock: {name: orders, lease: 6s, want: granted}, sleep: 3s, unlock: orders]
`
	paused = `lockstep: 1
name: paused
locks: [setnx-del]
processes: {a: {}, b: {}}
steps:
  a/1: [lock: {name: orders, lease: 2s, want: granted}, sleep: 1500ms, unlock: orders]
  b/1: [at: 600ms, lock: {name: orders, lease: 8s, want: granted}, sleep: 4s, unlock: orders]
faults: [{at: 900ms, pause: a, for: 3s}]
`
	pausedTwice = `lockstep: 1
name: paused-twice
locks: [setnx-del]
processes: {a: {}, b: {}}
steps:
  a/1: [lock: {name: orders, lease: 3s, want: granted}, sleep: 1500ms, unlock: orders]
  b/1: [at: 600ms, lock: {name: orders, lease: 8s, want: granted}, sleep: 4s, unlock: orders]
faults: [{at: 900ms, pause: a, for: 1s}, {at: 1s, pause: a, for: 4s}]
`
	crashed = `lockstep: 1
name: crashed
locks: [setnx-del]
watchdog: 6s
processes: {a: {}, b: {}}
steps:
  a/1: [lock: {name: orders, want: granted}, sleep: 10m]
  b/1: [at: 1s, lock: {name: orders, lease: 10s, want: granted}, unlock: {name: orders, want: released}]
faults: [{at: 5s, crash: a}]
`
	acquireReplyLost = `lockstep: 1
name: acquire-reply-lost
locks: [redisson@4.7.0]
processes: {a: {}, b: {}}
steps:
  a/1: [lock: {name: orders, lease: 8s, want: [granted, unknown]}, sleep: 500ms, unlock: orders]
  b/1: [at: 1s, lock: {name: orders, lease: 5s, want: granted}, unlock: orders]
faults: [{when: {process: a, script: acquire, direction: reply, nth: 1}, do: drop}]
`
	unlockReplyLost = `lockstep: 1
name: unlock-reply-lost
locks: [redisson@4.7.0]
processes: {a: {}, b: {}}
steps:
  a/1:
    - lock: {name: orders, lease: 20s, want: granted}
    - lock: {name: orders, lease: 20s, want: granted}
    - unlock: {name: orders, want: [unknown, still_held]}
    - read: {name: orders, holds: 1}
    - sleep: 1s
    - unlock: {name: orders, want: released}
  b/1: [at: 1s, lock: {name: orders, lease: 5s, want: granted}, unlock: orders]
faults: [{when: {process: a, script: unlock, direction: reply, nth: 1}, do: drop}]
`
	renewalFails = `lockstep: 1
name: one-failed-renewal-ends-it
locks: [redisson@4.7.0]
watchdog: 6s
processes: {a: {}, b: {}}
steps:
  a/1: [lock: {name: orders, want: granted}, sleep: 13s, unlock: orders]
  b/1: [at: 1s, lock: {name: orders, lease: 8s, want: granted}, sleep: 3s, unlock: orders]
faults: [{when: {process: a, script: renew, direction: request, nth: 2}, do: error, with: "ERR injected"}]
`
	serverFaults = `lockstep: 1
name: server-faults
locks: [redisson@4.7.0]
processes: {a: {}}
resources: {stock: {start: 3, never_below: 0, end: 1}}
steps:
  a/1:
    - lock: {name: orders, lease: 20s, want: granted}
    - use: {resource: stock, take: 2, for: 100ms}
    - at: 2s
    - read: {name: orders, holds: 1, ttl: 17s..19s}
    - unlock: {name: orders, want: [released, unknown]}
    - at: 8s
    - lock: {name: orders, lease: 20s, want: granted}
    - at: 10s
    - read: {name: orders, locked: false}
    - lock: {name: orders, lease: 20s, want: granted}
    - at: 12s
    - read: {name: orders, locked: false}
faults:
  - {at: 1s, server: restart, keep_data: true}
  - {at: 6s, server: flush_scripts}
  - {at: 7s, server: stall, for: 1500ms}
  - {at: 9500ms, server: restart, keep_data: false}
  - {at: 11s, key: "ord*", do: delete}
`
	crashedTwice = `lockstep: 1
name: crashed-twice
locks: [setnx-cad]
processes: {a: {}, b: {}}
steps:
  a/1: [lock: {name: orders, lease: 1s, want: granted}, sleep: 3s, unlock: orders]
  b/1: [at: 500ms, lock: {name: orders, lease: 1s, want: granted}, unlock: {name: orders, want: released}]
faults:
  - {at: 200ms, crash: a}
  - {at: 300ms, crash: a}
`
	cutOff = `lockstep: 1
name: cut-off
locks: [setnx-cad]
processes: {a: {}}
steps:
  a/1:
    - lock: {name: orders, lease: 20s, want: granted}
    - at: 2s
    - unlock: {name: orders, want: unknown}
    - unlock: {name: orders, want: error}
    - at: 11s
    - unlock: {name: orders, want: released}
faults: [{at: 1500ms, partition: [a], for: 8s}]
`
)

// found are the judges that a verdict names, each with its class.
func found(v play.Verdict) string {
	var names []string
	for _, f := range v.Findings {
		name := f.Judge + " " + string(f.Class)
		if f.Verdict == judges.Undecided {
			name = f.Judge + " undecided"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func parse(t *testing.T, text string) *scenarios.Scenario {
	t.Helper()
	sc, err := scenarios.Parse("test.yaml", []byte(text), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func lockOf(t *testing.T, name string) *subject.Subject {
	t.Helper()
	l, err := subject.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The runs take real time, and mostly wait, so that all are played at a time. A short test plays
// every other one.
func TestScenariosComeToTheSameAsInTheSimulatedWorld(t *testing.T) {
	o := options(t)
	cases := []struct {
		scenario, lock string
		word           play.Word
		names          string // the judges that must find a broken promise
	}{
		{overstay, "setnx-del", play.VerdictBug, "misdelete"},
		{overstay, "setnx-cad", play.VerdictHeld, ""},
		{overstay, "reference", play.VerdictHeld, ""},
		{paused, "setnx-del", play.VerdictBug, "misdelete"},
		{paused, "setnx-cad", play.VerdictLimit, "mutual-exclusion"},
		{pausedTwice, "setnx-del", play.VerdictBug, "misdelete"}, // the end of the first pause does not end the second
		{paused, "redisson@4.7.0", play.VerdictLimit, "mutual-exclusion"},
		{paused, "redisson@3.12.4", play.VerdictLimit, "mutual-exclusion"},
		{crashed, "redisson@4.7.0", play.VerdictHeld, ""},
		{crashed, "redisson@3.12.4", play.VerdictHeld, ""},
		{crashed, "reference", play.VerdictHeld, ""},
		{acquireReplyLost, "redisson@4.7.0", play.VerdictHeld, ""},
		{acquireReplyLost, "redisson@3.12.4", play.VerdictBug, "hold-count"},
		{acquireReplyLost, "reference", play.VerdictHeld, ""},
		{unlockReplyLost, "redisson@4.7.0", play.VerdictHeld, ""},
		{unlockReplyLost, "redisson@3.12.4", play.VerdictBug, "hold-count mutual-exclusion"},
		{unlockReplyLost, "reference", play.VerdictHeld, ""},
		{renewalFails, "redisson@4.7.0", play.VerdictHeld, ""},
		{renewalFails, "redisson@3.12.4", play.VerdictBug, "lease mutual-exclusion"},
		{renewalFails, "reference", play.VerdictHeld, ""},
		{serverFaults, "redisson@4.7.0", play.VerdictHeld, ""},
		{cutOff, "setnx-cad", play.VerdictHeld, ""},
		{crashedTwice, "setnx-cad", play.VerdictHeld, ""},
		// Locks that are wrong on purpose.
		{acquireReplyLost, "planted/acquire-without-lease", play.VerdictBug, "lease"},
		{overstay, "planted/unlock-by-anyone", play.VerdictBug, "misdelete"},
	}
	every := 3 / longtest.Size(t, 1, 3)
	some := cases[:0]
	for i := 0; i < len(cases); i += every {
		some = append(some, cases[i])
	}
	cases = some
	runs := make([]play.LiveRun, len(cases))
	errs := make([]error, len(cases))
	asWanted := func(i int) bool { return errs[i] == nil && runs[i].Word == cases[i].word && runs[i].AsExpected }
	for round := 1; round <= 2; round++ {
		var all sync.WaitGroup
		for i, c := range cases {
			if round == 2 && asWanted(i) {
				continue
			}
			if round == 2 { // a busy machine may have turned it; a real difference comes again
				t.Logf("%s is played again: %s (%s) %s %v", c.lock, runs[i].Word, found(runs[i].Verdict), runs[i].Why, errs[i])
			}
			sc, l := parse(t, c.scenario), lockOf(t, c.lock)
			sc.Expect = map[string]scenarios.Expectation{l.Name: {Class: scenarios.Class(c.word), Judges: strings.Fields(c.names)}}
			all.Go(func() { runs[i], errs[i] = Run(t.Context(), sc, l, 1, o) })
		}
		all.Wait()
	}
	for i, c := range cases {
		r := runs[i]
		if errs[i] != nil {
			t.Errorf("%s: %v", c.lock, errs[i])
			continue
		}
		if r.Note != "" {
			t.Logf("%s on %s was %s", r.Scenario.Name, c.lock, r.Note)
		}
		if !asWanted(i) {
			t.Errorf("%s on %s: %s (%s) %s, want %s %s", r.Scenario.Name, c.lock, r.Word, found(r.Verdict), r.Why, c.word, c.names)
			for _, f := range r.Findings {
				t.Logf("%s: %s", f.Judge, sentence.Finding(f))
			}
		}
		if len(r.Programs) != 1 || !strings.HasPrefix(r.Programs[0], program+" ") {
			t.Errorf("%s: the programs are %q", c.lock, r.Programs)
		}
	}
}

// processes returns the processes of a program. Each has a mark in its environment, or, since a
// server overwrites its environment, works below a folder.
func processes(mark, dir string) (pids []int) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		text, _ := os.ReadFile(folder + "/environ")
		cwd, _ := os.Readlink(folder + "/cwd")
		if strings.Contains(string(text), mark) || strings.HasPrefix(cwd, dir+"/") {
			var pid int
			_, _ = fmt.Sscanf(folder, "/proc/%d", &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestNoProcessOutlivesTheProgram(t *testing.T) {
	o := options(t)
	var all sync.WaitGroup
	most := make([]int, 10)
	dirs := make([]string, len(most))
	for i := range most {
		mark := fmt.Sprintf("LOCKSTEP_LIVE_TEST=%d-%d-%d", os.Getpid(), i, time.Now().UnixNano())
		cmd := exec.Command(o.Program[0], parentPart)
		dir := t.TempDir()
		dirs[i] = dir
		cmd.Env = append(os.Environ(), mark, "TMPDIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			// The children are stopped, too: a stopped process must not stay either.
			time.Sleep(time.Duration(i) * 250 * time.Millisecond)
			pids := processes(mark, dir)
			most[i] = len(pids)
			if i%2 == 1 {
				for _, pid := range pids {
					if pid != cmd.Process.Pid {
						_ = syscall.Kill(pid, syscall.SIGSTOP)
					}
				}
			}
			_ = cmd.Process.Signal(syscall.SIGKILL)
			_ = cmd.Wait()
			for end := time.Now().Add(20 * time.Second); len(processes(mark, dir)) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Errorf("killed after %d ms, %v are left of %d processes", i*250, processes(mark, dir), most[i])
					for _, pid := range processes(mark, dir) {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
					return
				}
			}
		})
	}
	all.Wait()
	if slices.Max(most) < 4 {
		t.Errorf("the programs had %v processes when they were killed; one with a server and two clients has 4", most)
	}
	left := 0
	for _, dir := range dirs {
		t.Setenv("TMPDIR", dir)
		left += len(folders(t))
		removeDeadFolders()
		if still := folders(t); len(still) > 0 {
			t.Errorf("%v of a program that was killed is not removed", still)
		}
	}
	if left == 0 {
		t.Error("no program left a folder, so that none could be removed")
	}
}

// folders returns the folders of this package in the folder for temporary files.
func folders(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFoldersOfDeadProgramsAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	mine, free, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(os.TempDir(), folderPrefix+"dead")
	if err := os.MkdirAll(filepath.Join(dead, "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(os.TempDir(), "somebody-elses")
	if err := os.Mkdir(other, 0o777); err != nil {
		t.Fatal(err)
	}
	removeDeadFolders()
	if got := folders(t); len(got) != 1 || got[0] != mine {
		t.Errorf("the folders are %v, want %s alone", got, mine)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	free()
	if got := folders(t); len(got) > 0 {
		t.Errorf("%v is left", got)
	}
}

func TestAStallOfTheMachineTurnsNoVerdict(t *testing.T) {
	o := options(t)
	const text = `lockstep: 1
name: stalled
locks: [setnx-cad]
processes: {a: {}}
steps:
  a/1: [lock: {name: orders, lease: 3s, want: granted}, sleep: 2500ms, unlock: {name: orders, want: released}]
`
	sc, l := parse(t, text), lockOf(t, "setnx-cad")
	stop := make(chan int)
	go func() { // stops the first client that there is for 3.5 s, as the machine would
		for {
			for _, pid := range childrenOf(os.Getpid()) {
				name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				if strings.HasSuffix(string(name), "\x00"+clientPart+"\x00") {
					time.Sleep(opening + time.Second)
					_ = syscall.Kill(pid, syscall.SIGSTOP)
					time.Sleep(3500 * time.Millisecond)
					_ = syscall.Kill(pid, syscall.SIGCONT)
					stop <- pid
					return
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	r, err := Run(t.Context(), sc, l, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	<-stop
	if r.Word == play.VerdictBug || r.Word == play.VerdictLimit {
		t.Errorf("%s (%s), want no finding", r.Word, found(r.Verdict))
	}
	if !strings.Contains(r.Note, "played twice, because in the first run the machine stood still for 3.") {
		t.Errorf("note %q, want it to say that the run was played twice", r.Note)
	}
}

// childrenOf returns the children of a process.
func childrenOf(parent int) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		var pid, ppid int
		var state string
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, _ = fmt.Sscanf(string(text), "%d", &pid)
		if _, rest, ok := strings.Cut(string(text), ") "); ok {
			_, _ = fmt.Sscanf(rest, "%s %d", &state, &ppid)
		}
		if ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestWhatCannotBePlayedIsSaidBeforeAnythingStarts(t *testing.T) {
	base := strings.Split(overstay, "steps:")
	with := func(lock, more string) *scenarios.Scenario {
		return parse(t, strings.Replace(base[0], "setnx-del", lock, 1)+more+"steps:"+base[1])
	}
	theirs := Options{Address: "127.0.0.1:1"}
	for _, c := range []struct {
		rule, lock, more string
		options          Options
		want             string
	}{
		{"the clock of the server", "setnx-del", "faults: [{at: 1s, server: wall_clock, step: 1s}]\n", Options{}, "test.yaml:5: not possible live: wall clock of the server steps by 1s: the wall clock of a real server is the machine's"},
		{"a rule that waits", "setnx-del", "faults: [{when: {process: b}, do: hold, until: {granted: a/1}}]\n", Options{}, "test.yaml:5: not possible live: hold of b until a/1 is granted a lock: only an instant ends a rule on a real server; give until an instant"},
		{"a failover", "setnx-del", "faults: [{at: 1s, server: failover, lose_last: 1}]\n", Options{}, "test.yaml:5: not possible live: failover"},
		{"replicas", "setnx-del", "server: {replicas: 1}\nfaults: [{at: 1s, server: failover}]\n", Options{}, ""},
		{"replicas of somebody else's server", "setnx-del", "server: {replicas: 1}\n", theirs, "this program starts no replicas beside the server of --address"},
		{"servers that there are not", "setnx-del", "", Options{Servers: "etcd"}, `there are no servers "etcd"; there are redis-sentinel and redis-cluster`},
		{"a lock that makes no client for a cluster", "redisson@4.7.0+replicas", "", Options{Servers: onredis.Cluster}, "redisson@4.7.0+replicas makes no client for redis-cluster"},
		{"more replicas than a cluster has", "setnx-del", "server: {replicas: 2}\n", Options{Servers: onredis.Cluster}, "the scenario has 2 replicas, and each master of the cluster has one"},
		{"a slot of a server alone", "setnx-del", "faults: [{at: 1s, server: move_slot, slot_of: orders, for: 1s}]\n", Options{}, "test.yaml:5: not possible live: move of the slot of key orders for 1s: only a cluster has slots (--servers redis-cluster)"},
		{"a stall under sentinels", "setnx-del", "faults: [{at: 1s, server: stall, for: 1s}]\n", Options{Servers: onredis.Sentinel}, "test.yaml:5: not possible live: server stall for 1s: servers that know of one another answer it with a failover; use server: failover"},
		{"a failover under sentinels", "setnx-del", "faults: [{at: 1s, server: failover}]\n", Options{Servers: onredis.Sentinel}, ""},
		{"a fault of somebody else's server", "setnx-del", "faults: [{at: 1s, server: stall, for: 1s}]\n", theirs, "test.yaml:5: not possible live: server stall for 1s: no fault strikes a server of --address"},
		{"somebody else's keys", "setnx-del", "faults: [{at: 1s, key: orders, do: delete}]\n", theirs, "no fault strikes a server of --address"},
		{"a fault that is possible", "setnx-del", "faults: [{at: 1s, server: stall, for: 1s}]\n", Options{}, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			sc := with(c.lock, c.more)
			err := Check(sc, lockOf(t, c.lock), c.options)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	o := options(t)
	sc, l := parse(t, overstay), lockOf(t, "setnx-del")
	full := redisserver.Start(t, program)
	tell := func(addr, command string) {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := fmt.Fprint(c, command+"\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "+OK\r\n" {
			t.Fatal(line, err)
		}
	}
	tell(full.Addr, "SET theirs 1")
	replica := redisserver.Start(t, program)
	tell(replica.Addr, "REPLICAOF 127.0.0.1 1")
	secret := redisserver.Start(t, program)
	tell(secret.Addr, "CONFIG SET requirepass secret")
	info := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	old := fakeServer(t, info("redis_version:6.2.14\r\n"))
	closed := redisserver.Start(t, program)
	tell(closed.Addr, "ACL SETUSER default -monitor")
	addresses := []struct{ rule, address, want string }{
		{"a server without MONITOR", closed.Addr, "the server refuses MONITOR: "},
		{"an address that does not answer", "127.0.0.1:1", "connection refused"},
		{"an address without a port", "localhost", "want HOST:PORT"},
		{"a server that is not empty", full.Addr, "the server has 1 keys; give one that is empty"},
		{"a replica", replica.Addr, "the server takes no writes: READONLY "},
		{"a server with a password", secret.Addr, "the server wants a password, and live gives none: NOAUTH "},
		{"a server with TLS", fakeServer(t, ""), "no Redis server answers there without TLS: "},
		{"a server of another kind", fakeServer(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), "no Redis server answers there without TLS: "},
		{"an answer that announces a thousand million parts", fakeServer(t, "*1000000000\r\n"), `no Redis server answers there without TLS: the answer to PING is "*1000000000`},
		{"an answer without an end", fakeServer(t, strings.Repeat("a", 1<<20)), "no Redis server answers there without TLS: EOF"},
		{"a node of a cluster", redisserver.Start(t, program, "--cluster-enabled", "yes").Addr, "the server is a node of a cluster, and has some of the keys only; live --servers redis-cluster starts a cluster"},
		{"a node of a cluster of Valkey", fakeServer(t, info("redis_version:7.2.4\r\nserver_mode:cluster\r\n")), "the server is a node of a cluster, "},
		{"a sentinel", fakeServer(t, info("redis_version:7.0.15\r\nredis_mode:sentinel\r\n")), "the server is a sentinel, and has no keys; live --servers redis-sentinel starts sentinels"},
		{"a server that is too old", old, "the server is Redis 6.2.14; live needs 7 or later, whose PEXPIRETIME"},
	}
	bad.Counted(t, "addresses of live servers", len(addresses))
	for _, x := range addresses {
		t.Run(x.rule, func(t *testing.T) {
			o := o
			o.Address = x.address
			_, err := Run(t.Context(), sc, l, 1, o)
			if _, bad := err.(interface{ Unusable() }); !bad || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want bad input: %q", err, x.want)
			}
		})
	}
}

// What the machine lacks is said before a server is started.
func TestWhatTheMachineLacksIsSaid(t *testing.T) {
	o := options(t)
	theirs := o
	theirs.Address = "127.0.0.1:1"
	port := lockOf(t, "setnx-del")
	foreign := *port
	foreign.Name, foreign.Port, foreign.Unlisted = "needs-programs", port, true
	RegisterForeign(&Foreign{Lock: &foreign, Needs: []Needed{{"no-such-program", "its-package"}, {"no-such-tool", "its-tools"}}})
	server, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	withServer := func(script string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	denied := func(int, syscall.Signal) error { return syscall.EPERM }
	for _, c := range []struct {
		rule string
		lock *subject.Subject
		o    Options
		path string
		kill func(int, syscall.Signal) error
		want []string // of the sentence; none: nothing is lacking
	}{
		{"nothing", port, o, filepath.Dir(server), syscall.Kill, nil},
		{"no server", port, o, "", syscall.Kill, []string{"there is no redis-server here; install it: apt-get install redis-server"}},
		{"no server, where it is somebody else's", port, theirs, "", syscall.Kill, nil},
		{"an old server", port, o, withServer("echo 'Redis server v=6.2.14 sha=0'"), syscall.Kill, []string{"the server is Redis 6.2.14; live needs 7 or later"}},
		{"a server that does not run", port, o, withServer("exit 1"), syscall.Kill, []string{"--version: exit status 1"}},
		{"programs of a lock", &foreign, theirs, "", syscall.Kill, []string{"no no-such-program here; install it: apt-get install its-package", "no no-such-tool here; install it: apt-get install its-tools"}},
		{"no permission to signal", port, o, filepath.Dir(server), denied, []string{"this program may not signal the processes that it starts", "operation not permitted"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			kill = c.kill
			defer func() { kill = syscall.Kill }()
			before := len(childrenOf(os.Getpid()))
			err := Ready([]*subject.Subject{c.lock}, c.o)
			if _, bad := err.(interface{ Unusable() }); bad != (c.want != nil) || !bad && err != nil {
				t.Fatalf("%v, want %q", err, c.want)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v lacks %q", err, want)
				}
			}
			if after := len(childrenOf(os.Getpid())); after != before {
				t.Errorf("there were %d children, and are %d", before, after)
			}
		})
	}
}

// A server that this program may not signal is told of before the scenario begins, and ended.
func TestAServerThatMayNotBeSignalled(t *testing.T) {
	o := options(t)
	kill = func(int, syscall.Signal) error { return syscall.EPERM }
	defer func() { kill = syscall.Kill }()
	_, err := Run(t.Context(), parse(t, paused), lockOf(t, "setnx-del"), 1, o)
	if _, bad := err.(interface{ Unusable() }); !bad || !strings.Contains(err.Error(), "may not signal") {
		t.Errorf("%v, want bad input", err)
	}
	if pids := childrenOf(os.Getpid()); len(pids) > 0 {
		t.Errorf("%v are left", pids)
	}
}

// A server whose port is in use is started at another one, and no longer than a few times.
func TestAPortInUse(t *testing.T) {
	options(t) // skips where there is no server
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, inUse := range []int{0, 2, 3} {
		asked := 0
		s, err := startServer(t.TempDir(), func() (string, error) {
			if asked++; asked <= inUse {
				return taken.Addr().String(), nil
			}
			return redisserver.FreeAddr()
		})
		if err == nil {
			s.Stop()
		}
		_, bad := err.(interface{ Unusable() })
		if inUse < 3 && (err != nil || asked != inUse+1) || inUse == 3 && (!bad || !strings.Contains(err.Error(), taken.Addr().String())) {
			t.Errorf("%d ports are in use: %v after %d", inUse, err, asked)
		}
	}
}

// fakeServer answers everything with one text, and returns its address.
func fakeServer(t *testing.T, text string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				in := bufio.NewReader(c)
				for {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					if strings.HasPrefix(line, "*") { // a command begins
						answer := text
						rest, _ := in.Peek(in.Buffered())
						switch command := strings.ToLower(string(rest)); {
						case strings.Contains(command, "hello"):
							answer = "-ERR unknown command\r\n"
						case strings.Contains(command, "ping") && strings.HasPrefix(text, "$"):
							answer = "+PONG\r\n"
						}
						_, _ = fmt.Fprint(c, answer)
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestAServerOfSomebodyElseKeepsNothingOfTheRun(t *testing.T) {
	o := options(t)
	server := redisserver.Start(t, program)
	o.Address = server.Addr
	sc := parse(t, strings.Replace(overstay, "unlock: orders]", "sleep: 1ms]", 1)) // a key is left
	r, err := Run(t.Context(), sc, lockOf(t, "setnx-cad"), 1, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Word != play.VerdictHeld {
		t.Errorf("%s (%s)", r.Word, found(r.Verdict))
	}
	for _, e := range r.Played.Record.Events {
		if slices.ContainsFunc(e.Locks, func(l string) bool { return l != "orders" }) {
			t.Errorf("the record has the locks %q, want the names of the scenario", e.Locks)
		}
	}
	s, err := useServer(server.Addr) // refuses a server that has keys
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
}

// A run on somebody else's server leaves the keys alone that others write while it plays, and its record
// does not have them.
func TestAKeyThatSomebodyElseWritesDuringTheRunStays(t *testing.T) {
	o := options(t)
	server := redisserver.Start(t, program)
	o.Address = server.Addr
	others := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2, DisableIdentity: true})
	defer func() { _ = others.Close() }()
	written := make(chan error, 1)
	go func() { // as soon as the run has a key
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			n, err := others.DBSize(t.Context()).Result()
			if err == nil && n > 0 {
				err = others.MSet(t.Context(), "orders", "theirs", "lockstep:theirs", "theirs").Err()
			}
			if err != nil || n > 0 {
				written <- err
				return
			}
		}
		written <- errors.New("the run has no key")
	}()
	r, err := Run(t.Context(), parse(t, overstay), lockOf(t, "setnx-cad"), 1, o)
	if err = errors.Join(err, <-written); err != nil {
		t.Fatal(err)
	}
	if r.Word != play.VerdictHeld {
		t.Errorf("%s (%s), want held", r.Word, found(r.Verdict))
	}
	for _, e := range r.Played.Record.Events {
		if e.State != nil && strings.Contains(e.State.Owner, "theirs") || strings.Contains(e.Key, "theirs") {
			t.Errorf("the record tells of the key of somebody else: %+v", e)
		}
	}
	keys, err := others.Keys(t.Context(), "*").Result()
	slices.Sort(keys)
	if err != nil || !slices.Equal(keys, []string{"lockstep:theirs", "orders"}) {
		t.Errorf("%v: the server has %q, want what somebody else wrote", err, keys)
	}
}
