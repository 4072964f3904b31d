package upstream

import (
	"bytes"
	"errors"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	root "lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/live/upstream"
	"lockstep/locktest"
	"lockstep/peers/etcd"
	defects "lockstep/peers/known"
	"lockstep/peers/memcached"
	"lockstep/peers/mysql"
	"lockstep/peers/nats"
	"lockstep/peers/redsync"
	"lockstep/peers/rueidislock"
	"lockstep/peers/zookeeper"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

var locks = []locktest.Subject{
	redsync.Subject(1), redsync.Subject(5), redsync.SetOnExtend, rueidislock.Subject(1), rueidislock.Subject(2), rueidislock.Patient,
	memcached.Add, memcached.AddForever, memcached.CAS, zookeeper.Lock, zookeeper.Closing, etcd.Mutex,
	nats.KV, nats.OnTime, nats.Blind, nats.KeyTTL, mysql.GetLock, mysql.GetLockPool, mysql.RowLock,
}

// seedsMost is how many seeds of a story are tried: one of them shows a defect that is a matter of chance.
const seedsMost = 5

// Each known defect has a story that shows it in the world. If its library has code for a test, the test is
// written as Go that compiles.
func TestStoriesShowTheirDefect(t *testing.T) {
	h := sim.NewHost(t)
	if err := locktest.Register(h, locks...); err != nil {
		t.Fatal(err)
	}
	written := map[string][]byte{} // the tests
	for _, d := range defects.Defects {
		t.Run(d.ID, func(t *testing.T) {
			h := h.For(t)
			sc, err := upstream.Story(d.ID)
			if err != nil || sc == nil {
				t.Fatalf("no story: %v", err)
			}
			l, err := subject.Find(sc.Locks[0])
			if err != nil {
				t.Fatal(err)
			}
			var v play.Verdict
			var found *judges.Finding
			for n := uint64(0); n < seedsMost && found == nil; n++ {
				v = play.Run(h, sc, l, sc.SeedFirst+n)
				namer := root.NewNamer(h, v, defects.Defects)
				for _, f := range v.Findings {
					if f.Verdict == judges.Broken && f.Class == judges.ClassBug && namer.Name(f).ID == d.ID && slices.Contains(sc.Expect[l.Name].Judges, f.Judge) {
						found = &f
						break
					}
				}
			}
			if found == nil {
				t.Fatalf("no finding has the name of the defect: %v", v.Findings)
			}
			library := upstream.LibraryOf(d.ID)
			if library == nil || library.Source == nil {
				return
			}
			r := upstream.Report{Defect: upstream.Defect{ID: d.ID, Title: d.Title, Library: library}, Simulated: v, Finding: *found, Tries: 1}
			files, err := r.Project()
			if err != nil {
				t.Fatal(err)
			}
			text := files["reproduce_test.go"]
			if strings.Contains(string(text), "lockstep/") {
				t.Error("the test needs this repository")
			}
			if formatted, err := format.Source(text); err != nil || !bytes.Equal(formatted, text) {
				t.Errorf("gofmt would change the test: %v", err)
			}
			if n := bytes.Count(text, []byte("\n")); n > linesMost {
				t.Errorf("the test has %d lines, more than %d", n, linesMost)
			}
			written[d.ID] = text
		})
	}
	for _, c := range []struct {
		id   string
		has  []string
		lack []string
	}{
		{"REDSYNC-set-on-extend", []string{"s.AssertCallFails(\"a/1\", 2)", "func StartProgram("}, []string{"Network", "Resp", "Interrupt", "AssertOneOwner"}},
		{"REDSYNC-interrupted-try", []string{"n := s.Network(Bytes)", "n.Latency(100 * time.Millisecond)", "n.Cut(\"a\", 0*time.Second, 2*time.Second, 3, 4, 5)", "t.Interrupt(\"a/1\")"}, []string{"Resp", "Idle ="}},
		{"REDSYNC-asks-often", []string{"n := s.Network(Resp)", "range []string{\"b1\", \"b2\", \"b3\"", "range []string{\"b2/1\", \"c2/1\", \"d2/1\", \"e2/1\"} {\n", "n.CountRequests()", "n.AssertAsksSeldom(20)"}, []string{"Delay(", "Latency"}},
		{"RUEIDISLOCK-gives-a-try-up", []string{"n := s.Network(Bytes)", "s.AssertWaiterIsServed(\"x\", \"a/1\","}, []string{"Rule", "Resp"}},
		{"RUEIDISLOCK-deletes-first", []string{"n := s.Network(Resp)", "If: s.During(\"renew\")", "Do: Refuse(\"ERR injected\")"}, []string{"Drop", "Interrupt"}},
		{"NATS-update-takes-ttl", []string{"natsKeyTTL, 1)", "n.Crash(\"a\", 4*time.Second)", "s.AssertHoldEnds(\"x\", natsTimeToLive)"}, []string{"StartProgram", "natsLock", "AssertNoGhost"}},
		{"ETCD-key-stays", []string{"s.AssertNoGhost(\"x\", \"a/1\", etcdPlaces)"}, []string{"StartProgram", "type Rule"}},
		{"MYSQL-wait-goes-on", []string{"s.AssertNoGhost(\"x\", \"a/1\", userLockPlaces)"}, []string{"Network"}},
		{"ZK-close-unsent", []string{"zkClosing, 1)", "n := s.Network(zkProtocol)", "Command: \"GETCHILDREN2\"", "s.AssertNoGhost(\"x\", \"a/1\", zkPlaces)"}, []string{"zkLock", "Bytes", "Drop"}},
		{"ZK-229", []string{"zkLock, 1)", "Do: Drop"}, []string{"zkPlaces", "zkClosing"}},
	} {
		for _, want := range c.has {
			if !strings.Contains(string(written[c.id]), want) {
				t.Errorf("the test of %s lacks %q", c.id, want)
			}
		}
		for _, not := range c.lack {
			if strings.Contains(string(written[c.id]), not) {
				t.Errorf("the test of %s has %q, which its story does not need", c.id, not)
			}
		}
	}
	vet(t, written)
}

// linesMost is how long a test may be, of which half is the harness with a protocol and rules of messages.
const linesMost = 700

// vet looks at tests as go vet does, which compiles them, with the modules of this one.
func vet(t *testing.T, tests map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, text, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for id, text := range tests {
		write(filepath.Join(id, "reproduce_test.go"), text)
	}
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Replace { // this repository
		if err := errors.Join(mod.DropRequire(r.Old.Path), mod.DropReplace(r.Old.Path, r.Old.Version)); err != nil {
			t.Fatal(err)
		}
	}
	mod.Cleanup()
	if text, err = mod.Format(); err != nil {
		t.Fatal(err)
	}
	write("go.mod", text)
	write("go.sum", sums)
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

// Each story is of a defect.
func TestStoriesAreOfDefects(t *testing.T) {
	files, err := filepath.Glob("stories/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if !slices.ContainsFunc(defects.Defects, func(d root.Defect) bool { return d.ID == id }) {
			t.Errorf("%s is the story of no defect", file)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "name: report-"+strings.ToLower(id)+"\n") {
			t.Errorf("%s has another name in itself: %v", file, err)
		}
	}
}
