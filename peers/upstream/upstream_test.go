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
	memcached.Add, memcached.AddForever, memcached.CAS, zookeeper.Lock, zookeeper.Closing, etcd.Mutex, etcd.OneSession,
	nats.KV, nats.OnTime, nats.Blind, nats.KeyTTL, mysql.GetLock, mysql.GetLockPool, mysql.RowLock,
}

func TestMain(m *testing.M) {
	Register()
	os.Exit(m.Run())
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
	written := map[string]map[string][]byte{} // the modules
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
			for name, text := range files {
				if strings.Contains(string(text), "lockstep/") {
					t.Errorf("%s needs this repository", name)
				}
				if formatted, err := format.Source(text); strings.HasSuffix(name, ".go") && (err != nil || !bytes.Equal(formatted, text)) {
					t.Errorf("gofmt would change %s: %v", name, err)
				}
			}
			written[d.ID] = files
		})
	}
	for id, want := range map[string][]string{
		"REDSYNC-set-on-extend":      {`"lock": "redsync-5-set-on-extend"`, `"servers": 5`, `"that": "a call fails"`, `"call": 2`},
		"REDSYNC-interrupted-try":    {`"proxies": "plain"`, `"latency_ms": [ 100, 100 ]`, `"do": "cut", "for_ms": 2000, "client": "a", "servers": [ 3, 4, 5 ]`, `"do": "interrupt", "thread": "a/1"`},
		"REDSYNC-asks-often":         {`"proxies": "named"`, `"name": "b2/1"`, `"that": "a waiter asks seldom"`, `"most": 20`},
		"RUEIDISLOCK-gives-a-try-up": {`"that": "a waiter is served", "lock": "x", "thread": "a/1"`},
		"RUEIDISLOCK-deletes-first":  {`"do": "error"`, `"role": "renew"`, `"text": "ERR injected"`},
		"NATS-update-takes-ttl":      {`"lock": "nats-kv-key-ttl"`, `"do": "crash", "at_ms": 4000, "client": "a"`, `"that": "a hold ends"`},
		"ZK-close-unsent":            {`"lock": "zookeeper-closing"`, `"command": "GETCHILDREN2"`, `"that": "no ghost", "lock": "x", "thread": "a/1"`},
	} {
		script := strings.Join(strings.Fields(string(written[id]["story.json"])), " ")
		for _, text := range want {
			if !strings.Contains(script, text) {
				t.Errorf("the script of %s lacks %s:\n%s", id, text, script)
			}
		}
	}
	vet(t, written)
}

// vet looks at tests as go vet does, which compiles them, with the modules of this one.
func vet(t *testing.T, tests map[string]map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, text, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for id, files := range tests {
		for name, text := range files {
			if name != "go.mod" {
				write(filepath.Join(id, name), text)
			}
		}
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
