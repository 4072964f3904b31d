package upstream

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
// written as well-formed Go, or the reason why it cannot be is given.
func TestStoriesShowTheirDefect(t *testing.T) {
	h := sim.NewHost(t)
	if err := locktest.Register(h, locks...); err != nil {
		t.Fatal(err)
	}
	inexpressible := []string{"NATS-update-takes-ttl", "REDSYNC-asks-often", "ZK-close-unsent"}
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
			if cannot := slices.Contains(inexpressible, d.ID); cannot != errors.Is(err, upstream.ErrInexpressible) {
				t.Errorf("it cannot be expressed: %v; %v", cannot, err)
			}
			if err == nil && strings.Contains(string(files["reproduce_test.go"]), "lockstep/") {
				t.Error("the test needs this repository")
			}
		})
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
