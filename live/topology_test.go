//go:build linux

package live

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
)

// scenarioOf reads a scenario of testdata.
func scenarioOf(t *testing.T, name string) *scenarios.Scenario {
	t.Helper()
	file := "testdata/" + name + ".yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := scenarios.Parse(file, text, subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// The runs take real time, most of it waiting, so all are played at the same time. A short test
// plays only the first ones. A run that ended differently is played again, alone: a difference that
// came from a busy machine vanishes, and a real one comes again.
func TestServersThatKnowOfOneAnother(t *testing.T) {
	o := options(t)
	cases := []struct {
		scenario, lock, servers string
		word                    play.Word
		names                   string // the judges whose promise is broken
	}{
		{"failover-loses-a-grant", "redisson@3.4.2+replicas", "", play.VerdictLimit, "mutual-exclusion"},
		{"cluster-slot-moves", "redisson@4.7.0+cluster", onredis.Cluster, play.VerdictHeld, ""},
		{"failover-of-a-hold", "reference", onredis.Sentinel, play.VerdictHeld, ""},
		{"failover-loses-a-grant", "redisson@4.7.0+replicas", "", play.VerdictHeld, ""},
		{"failover-loses-a-grant", "redisson@3.4.2+replicas", onredis.Sentinel, play.VerdictLimit, "mutual-exclusion"},
		{"subscription-dies-with-its-node", "redisson@4.7.0+replicas", onredis.Sentinel, play.VerdictHeld, ""},
		{"subscription-dies-with-its-node", "reference", onredis.Cluster, play.VerdictHeld, ""},
		{"cluster-unlock-while-the-slot-moves", "setnx-cad", onredis.Cluster, play.VerdictHeld, ""},
	}
	cases = cases[:longtest.Size(t, 3, len(cases))]
	runs := make([]play.LiveRun, len(cases))
	errs := make([]error, len(cases))
	play1 := func(i int) {
		c, o := cases[i], o
		o.Servers = c.servers
		sc, l := scenarioOf(t, c.scenario), lockOf(t, c.lock)
		sc.Expect = map[string]scenarios.Expectation{l.Name: {Class: scenarios.Class(c.word), Judges: strings.Fields(c.names)}}
		runs[i], errs[i] = Run(t.Context(), sc, l, 1, o)
	}
	asWanted := func(i int) bool { return errs[i] == nil && runs[i].Word == cases[i].word && runs[i].AsExpected }
	var all sync.WaitGroup
	for i := range cases {
		all.Go(func() { play1(i) })
	}
	all.Wait()
	for i, c := range cases {
		for round := 0; round < 2 && !asWanted(i); round++ {
			t.Logf("%s on %s %s is played again: %s (%s) %s %v", c.scenario, c.lock, c.servers, runs[i].Word, found(runs[i].Verdict), runs[i].Why, errs[i])
			play1(i)
		}
		r := runs[i]
		if errs[i] != nil {
			t.Errorf("%s on %s %s: %v", c.scenario, c.lock, c.servers, errs[i])
			continue
		}
		if !asWanted(i) {
			t.Errorf("%s on %s %s: %s (%s) %s, want %s %s", c.scenario, c.lock, c.servers, r.Word, found(r.Verdict), r.Why, c.word, c.names)
		}
		// A failover or a move is an event of the record.
		if !slices.ContainsFunc(r.Played.Record.Events, func(e model.Event) bool { return e.Kind == model.KindFault }) {
			t.Errorf("%s on %s %s: the record has no fault", c.scenario, c.lock, c.servers)
		}
	}
}

// A stalled server does not hold up the others: a client that asks all gets the answers of the rest.
func TestAStalledServerDoesNotHoldUpTheOthers(t *testing.T) {
	s := newSession(parse(t, overstay), lockOf(t, "setnx-del"), Options{})
	a, b := &node{turn: make(chan struct{}, 1)}, &node{index: 1, turn: make(chan struct{}, 1)}
	s.nodes, s.serving = []*node{a, b}, []int{0, 1}
	a.turn <- struct{}{} // a request is under way at the stalled server
	ran := false
	s.alone(b, func() { ran = true })
	if !ran {
		t.Error("nothing ran at the other server")
	}
}

// The nodes of a cluster stand for one server of a simulated world. Only nodes that take writes
// count.
func TestTheKeysOfAClusterAreThoseOfItsMasters(t *testing.T) {
	s := testSession(t)
	s.group = &group{}
	s.nodes = []*node{{index: 0}, {index: 1}, {index: 2}}
	s.serving = []int{0, 2}
	s.looks = []look{
		{node: 0, keys: map[string]key{"orders": {value: []string{"old"}}}},
		{node: 1, keys: map[string]key{"other": {value: []string{"of a replica"}}}},
		{node: 2, keys: map[string]key{"orders": {value: []string{"new"}}}},
		{node: 0, blind: true},
	}
	all := s.byServer(s.keys())
	if len(all) != 1 || len(all[0]) != 1 || all[0]["orders"].value[0] != "new" {
		t.Errorf("the keys are %v, want orders as the last node has it", all)
	}
}
