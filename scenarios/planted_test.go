package scenarios

import (
	"slices"
	"strings"
	"testing"

	"lockstep/lockimpl/planted"
	"lockstep/model"
)

// Each planted bug is one change of a lock that is listed, names its judge, and
// is a lock that is not.
func TestPlantedBugs(t *testing.T) {
	if n := len(planted.Bugs); n < 40 {
		t.Errorf("%d planted bugs", n)
	}
	sc := &Scenario{Processes: []Process{{Name: "a", Threads: 1}}}
	seen := map[string]bool{}
	for _, b := range planted.Bugs {
		changes := 0
		for _, is := range []bool{b.Edit != nil, b.Release != nil, b.Send != nil, b.Conn != nil, b.Call != nil} {
			if is {
				changes++
			}
		}
		if changes != 1 {
			t.Errorf("%s: %d changes", b.Name, changes)
		}
		if seen[b.Name] {
			t.Errorf("%s: twice", b.Name)
		}
		seen[b.Name] = true
		if !slices.Contains(model.Judges, b.Judge) || b.Runs < 1 || b.Seed < 1 {
			t.Errorf("%s: judge %q, runs %d, seed %d", b.Name, b.Judge, b.Runs, b.Seed)
		}
		l, err := FindLock(PlantedPrefix + b.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if again, _ := FindLock(l.Name); again != l {
			t.Errorf("%s is another lock each time", l.Name)
		}
		if l.Unplanted().Name != b.Base || l.params(sc).Lock != b.Base {
			t.Errorf("%s: planted in %s, judged by the promises of %s, and meant is %s", b.Name, l.Unplanted().Name, l.params(sc).Lock, b.Base)
		}
		if slices.Contains(Locks, l) {
			t.Errorf("%s is listed", l.Name)
		}
	}
	for _, l := range Locks {
		if l.Unplanted() != l || strings.HasPrefix(l.Name, PlantedPrefix) {
			t.Errorf("%s is listed", l.Name)
		}
	}
	if _, err := FindLock("planted/nothing"); err == nil || strings.Contains(err.Error(), PlantedPrefix+planted.Bugs[0].Name) {
		t.Errorf("an unknown lock: %v", err)
	}
}

// An edit that does not fit is an error, not another lock.
func TestAnEditThatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		rule string
		edit planted.Edit
		says string
	}{
		{"a text that no script has", planted.Edit{Of: []string{"unlock"}, Old: "no such text"}, "stands in none of the scripts unlock"},
		{"one that a script has twice", planted.Edit{Of: []string{"unlock"}, Old: "redis.call"}, "times in the script unlock"},
		{"one of another script", planted.Edit{Of: []string{"unlock"}, Old: "redis.call('pttl'"}, "stands in none"},
	} {
		_, err := plant(&planted.Bug{Name: "x", Base: "redisson@4.7.0", Edit: &c.edit})
		if err == nil || !strings.Contains(err.Error(), "planted bug x: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.rule, err)
		}
	}
	if _, err := plant(&planted.Bug{Name: "x", Base: "nothing@1"}); err == nil || !strings.Contains(err.Error(), `unknown lock "nothing@1"`) {
		t.Error(err)
	}
}
