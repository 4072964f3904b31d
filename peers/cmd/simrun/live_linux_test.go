package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/cli/frame/frametest"
	"lockstep/lockimpl/redisserver"
)

// onRealServers are locks on each kind of server that this program starts, with the programs that
// must be installed, each with its Debian package.
var onRealServers = []struct {
	lock     string
	programs [][2]string
}{
	{"etcd-mutex", nil},
	{"nats-kv", nil},
	{"memcached-cas", [][2]string{{"memcached", "memcached"}}},
	{"zookeeper", [][2]string{{"java", "default-jre-headless"}, {"/usr/share/java/zookeeper.jar", "zookeeper"}}},
	{"mysql-row", [][2]string{{"mariadbd", "mariadb-server"}}},
}

// needs skips the test if a program is missing.
func needs(t *testing.T, programs [][2]string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p[0]); err == nil {
			continue
		}
		if _, err := os.Stat(p[0]); err != nil {
			redisserver.Missing(t, p[0], p[1])
		}
	}
}

const handOver = `lockstep: 1
name: hand-over
about: The holder gives the lock up, and a waiter gets it.
locks: [none]
network: {latency: 1ms}
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: orders, want: granted}}, {at: 3s}, {unlock: {name: orders, want: released}}]
  b/1: [{at: 1s}, {lock: {name: orders, want: granted}}, {unlock: {name: orders, want: released}}]
`

// A lock on each kind of server plays live. A verdict may be undecided on a machine that stands
// still, and is then played again.
func TestLocksOnOtherServersPlayLive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hand-over.yaml")
	if err := os.WriteFile(file, []byte(handOver), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range onRealServers {
		t.Run(c.lock, func(t *testing.T) {
			t.Parallel() // it mostly waits
			needs(t, c.programs)
			for try := 1; ; try++ {
				code, out, stderr := frametest.Start(t, "live", file, "--lock", c.lock)
				if code == 0 && strings.Contains(out, " held ") {
					return
				}
				if try == 3 || code != 2 && code != 0 {
					t.Fatalf("try %d: exit %d: %s%s", try, code, out, stderr)
				}
				t.Logf("try %d is repeated: %s", try, out)
			}
		})
	}
}

// A message names what a real server cannot do before anything starts.
func TestWhatIsNotPossibleOnOtherServersIsSaid(t *testing.T) {
	for _, c := range []struct{ lock, fault, want string }{
		{"etcd-mutex", "{at: 1s, server: restart, keep_data: false}", "server 1 of etcd-mutex does not start again as the same member without its data"},
		{"etcd-mutex", "{when: {command: GET}, do: drop}", "in which commands have no names"},
		{"memcached-cas", "{when: {process: a}, do: error, with: x}", "the proxy does not know the protocol, and cannot answer in the place of the server"},
		{"memcached-cas", "{at: 1s, server: wall_clock, step: 1h}", "the wall clock of a real server is the machine's"},
		{"zookeeper", "{at: 1s, key: \"*\", do: expire}", "server 1 of zookeeper has no nodes that expire"},
		{"nats-kv", "{at: 1s, server: failover}", "server 1 of nats-kv stands alone and has nothing to fail over to"},
	} {
		file := filepath.Join(t.TempDir(), "own.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(handOver, "[none]", "["+c.lock+"]", 1)+"faults:\n  - "+c.fault+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := frametest.Start(t, "live", file)
		if code != 64 || !strings.Contains(stderr, "own.yaml:11: ") || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %s: exit %d: %s%s", c.lock, c.fault, code, out, stderr)
		}
	}
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte(handOver), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := frametest.Start(t, "live", file, "--lock", "etcd-mutex", "--address", "127.0.0.1:1"); code != 64 || !strings.Contains(stderr, "etcd-mutex is not on Redis, and --address is for a Redis server") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}

// below returns the processes whose working directory is in a folder.
func below(t *testing.T, dir string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if cwd, err := os.Readlink(link); err == nil && cwd == dir {
			status, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "status"))
			if !strings.Contains(string(status), "(zombie)") {
				pids = append(pids, filepath.Base(filepath.Dir(link)))
			}
		}
	}
	return pids
}

// When the program is killed, its servers and clients end, whatever kind they are.
func TestNoServerOutlivesTheProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "hand-over.yaml")
	if err := os.WriteFile(file, []byte(handOver), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range onRealServers {
		t.Run(c.lock, func(t *testing.T) {
			t.Parallel() // it mostly waits
			needs(t, c.programs)
			dir := t.TempDir()
			cmd := exec.Command(self, "live", file, "--lock", c.lock)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for began := time.Now(); len(below(t, dir)) < 4; time.Sleep(20 * time.Millisecond) { // the program, a server and two clients
				if time.Since(began) > 2*time.Minute {
					t.Errorf("it has the processes %v after two minutes", below(t, dir))
					break
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			for began := time.Now(); len(below(t, dir)) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Since(began) > 30*time.Second {
					t.Fatalf("%v are left", below(t, dir))
				}
			}
		})
	}
}
