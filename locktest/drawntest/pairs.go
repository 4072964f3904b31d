package drawntest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/locktest"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Pairs are the servers of locks of two keys, which a lock takes one after the other.
type Pairs struct {
	Servers locktest.Servers
	Get     func(s locktest.Snapshot, key string) string // the value of a key; "": there is none
	Open    func(p *locktest.Process) (PairClient, error)
}

// PairClient writes keys.
type PairClient interface {
	// ForLock returns a function that writes a value to a key of the lock.
	ForLock(name string) func(ctx context.Context, key, value string) error
	Close() error
}

// Removed plays two locks, and checks what the judge of the order finds of a call under way when a fault strikes that
// removes keys. The lock that takes one key before and one after it has a limit. A lock that takes one key alone, after the fault,
// has a bug, although the fault removes keys of a call before.
func (s Pairs) Removed(t *testing.T, fault string) {
	t.Helper()
	h := sim.NewHost(t)
	for name, want := range map[string]judges.Class{"takes-both": judges.ClassLimit, "takes-one-late": judges.ClassBug} {
		l := find(t, h, locktest.Subject{
			Name: name, Servers: s.Servers,
			State: func(snap locktest.Snapshot, lock string) *locktest.State {
				value := s.Get(snap, lock+"-1")
				if value == "" || value != s.Get(snap, lock+"-2") {
					return nil
				}
				return &locktest.State{Owner: value, Expires: -1}
			},
			Open: func(p *locktest.Process) (locktest.Client, error) {
				c, err := s.Open(p)
				return pairs{c, name == "takes-both"}, err
			},
		})
		found := ""
		for _, f := range findings(t, h, l, "{lock: {name: x}}", "{at: 5s}, {lock: {name: y}}", "{at: 5500ms, "+fault+"}") {
			if f.Judge == model.JudgeLinearizable && f.Facts.Lock == "y" {
				found += string(f.Class)
			}
		}
		if found != string(want) {
			t.Errorf("%s: the order finds %q; want %q", name, found, want)
		}
	}
}

// findings plays the steps of two processes, and returns what the judges find.
func findings(t *testing.T, h *sim.Host, l *subject.Subject, a, b, faults string) []judges.Finding {
	t.Helper()
	text := fmt.Sprintf("lockstep: 1\nname: two\nabout: two\nlocks: [%s]\nnetwork: {latency: 1ms}\nprocesses: {a: {}, b: {}}\nsteps: {a/1: [%s], b/1: [%s]}\nfaults: [%s]\n", l.Name, a, b, faults)
	sc, err := scenarios.Parse("two.yaml", []byte(text), func(string) (*subject.Subject, error) { return l, nil })
	if err != nil {
		t.Fatal(err)
	}
	return play.Run(h, sc, l, 1).Findings
}

type pairs struct {
	PairClient
	both bool
}

func (c pairs) Lock(name string) (locktest.Lock, error) {
	return pair{c.ForLock(name), name, name == "y" && !c.both}, nil
}

type pair struct {
	put  func(ctx context.Context, key, value string) error
	name string
	late bool
}

func (l pair) Lock(ctx context.Context) error {
	value := rand.Text()
	if !l.late {
		if err := l.put(ctx, l.name+"-1", value); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	return l.put(ctx, l.name+"-2", value)
}

func (pair) Unlock(context.Context) error { return locktest.ErrNotHeld }
