package survey

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"lockstep/explore/draw"
)

// lockOf returns a lock whose cells all have the word held, except those that but names as
// promise/faults.
func lockOf(name string, cost Cost, but map[string]Word) Lock {
	l := Lock{Name: name, About: name, Cost: cost}
	for _, p := range Promises {
		for _, c := range Campaigns() {
			word := Held
			for _, key := range []string{p.Name + "/" + c, p.Name + "/"} {
				if w, ok := but[key]; ok {
					word = w
				}
			}
			l.Cells = append(l.Cells, Cell{Promise: p.Name, Faults: c, Word: word, Runs: 100, Broken: map[bool]int{true: 3}[word == Limit]})
		}
	}
	return l
}

// A survey shows the policy of a lock that has one.
func TestASurveyShowsThePolicy(t *testing.T) {
	open := lockOf("open", Cost{}, nil)
	open.Policy = "Each thread has a session."
	for _, c := range []struct {
		locks []Lock
		want  int
	}{{[]Lock{open, lockOf("closed", Cost{}, nil)}, 1}, {[]Lock{lockOf("closed", Cost{}, nil)}, 0}} {
		var markdown, page bytes.Buffer
		s := Survey{Locks: c.locks}
		if err := errors.Join(s.WriteMarkdown(&markdown), s.WritePage(&page)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(markdown.String(), "*Policy:* "+open.Policy); got != c.want || strings.Count(markdown.String(), "*Policy:*") != c.want {
			t.Errorf("the policy is %d times in the text, want %d:\n%s", got, c.want, markdown.String())
		}
		if got := strings.Count(page.String(), "<i>Policy:</i> "+open.Policy); got != c.want || strings.Count(page.String(), "Policy:") != c.want {
			t.Errorf("the policy is %d times in the page, want %d", got, c.want)
		}
	}
}

// The cells and the costs of a lock say which needs it meets. A bug leaves a lock out only if the need uses the
// promise: early breaks one owner at a time, and meets the needs of a token and of order.
func TestALockMeetsANeedByItsCells(t *testing.T) {
	cheap := Cost{Acquire: Exchange{1, 2}, Unlock: Exchange{1, 2}, HandOverMs: 42}
	slow := Cost{Acquire: Exchange{3, 6}, Unlock: Exchange{1, 2}, HandOverMs: 4}
	plain := map[string]Word{"fencing/": NotPromised, "fair/": NotPromised, "one owner at a time/" + string(draw.ClassServer): Limit}
	fenced := lockOf("fenced", slow, map[string]Word{"fair/network": Limit})
	fenced.ServerFaults = []string{"restart with data", "stall"}
	s := Survey{OnlySimulated: []string{"fenced"}, Locks: []Lock{
		fenced,
		lockOf("cheap", cheap, plain),
		lockOf("cheaper", Cost{Acquire: Exchange{1, 2}, Unlock: Exchange{1, 2}, HandOverMs: 40}, map[string]Word{"fencing/server": Limit, "fair/": Bug, "lost hold told/": NotPromised}),
		lockOf("early", slow, map[string]Word{"one owner at a time/stories": Bug}),
		lockOf("unleased", cheap, map[string]Word{"lease kept/network": Bug, "fencing/": NotPromised, "fair/": NotJudged, "lost hold told/": NotPromised}),
		lockOf("forgetting", cheap, map[string]Word{"no waiter is forgotten/network": Bug, "lost hold told/": Bug}),
	}}
	s.Locks[1].WaitsMs = 8000
	want := [][]Choice{
		{{"cheap", "a waiter may wait 8s by design"}, {"cheaper", "bug: fair"}, {"unleased", "bug: lease kept"}},
		{{"cheaper", "limit: server 3 of 100; bug: fair"}, {"fenced", "only simulated"}, {"early", "bug: one owner at a time"}},
		{{"cheap", "limit: server 3 of 100"}, {"fenced", "only simulated"}},
		{{"fenced", "only simulated; limit: network 3 of 100"}, {"early", "bug: one owner at a time"}},
		{{"fenced", "only simulated"}},
		{
			{"cheaper", "bug: fair"}, {"unleased", "bug: lease kept"}, {"forgetting", "bug: no waiter is forgotten, lost hold told"},
			{"fenced", "only simulated; met: restart with data, stall"}, {"early", "bug: one owner at a time"},
		},
	}
	for _, l := range s.Locks {
		reasons := strings.Join(l.Reasons(), "\n")
		if strings.Contains(reasons, "may not get a free lock for 8s") != (l.Name == "cheap") {
			t.Errorf("%s: the reasons are %q", l.Name, reasons)
		}
	}
	if got := (Summary{Word: Limit, Campaigns: []string{NoFaults, "pause"}, broken: []string{"2 of 100", "5 of 100"}}).Counted(); got != "limit without a fault in 2 of 100" {
		t.Errorf("a limit that comes without a fault is %q", got)
	}
	for i, n := range Needs {
		if got := s.Met(n); !slices.Equal(got, want[i]) {
			t.Errorf("%s: %q, want %q", n.Name, got, want[i])
		}
	}
	var markdown, page bytes.Buffer
	if err := s.WriteMarkdown(&markdown); err != nil {
		t.Fatal(err)
	}
	if err := s.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	if line := "| fair, not freed by another, no waiter is forgotten: held, or limit | [`fenced`](#fenced) (only simulated; limit: network 3 of 100), "; !strings.Contains(markdown.String(), line) {
		t.Errorf("%q is missing in:\n%s", line, markdown.String())
	}
	if cell := `<td>fair, not freed by another, no waiter is forgotten: held, or limit</td><td><a href="#fenced">fenced</a> (only simulated; limit: network 3 of 100), `; !strings.Contains(page.String(), cell) {
		t.Errorf("%q is missing in the page", cell)
	}
	if err := (Survey{Locks: s.Locks[4:5]}).WriteMarkdown(&markdown); err != nil || !strings.Contains(markdown.String(), noLock) {
		t.Errorf("a need that no lock meets: %v\n%s", err, markdown.String())
	}
}
