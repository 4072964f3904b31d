package builtin

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockstep/lockimpl/planted"
	"lockstep/model"
	"lockstep/scenarios/subject"
)

// Each planted bug is one change of a listed lock and names its judge. Its own lock is
// unlisted.
func TestPlantedBugs(t *testing.T) {
	if n := len(planted.Bugs); n < 40 {
		t.Errorf("%d planted bugs", n)
	}
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
		l, err := subject.Find(subject.PlantedPrefix + b.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if again, _ := subject.Find(l.Name); again != l {
			t.Errorf("%s is another lock each time", l.Name)
		}
		if l.Unplanted().Name != b.Base || l.Traits != l.Base.Traits || !reflect.DeepEqual(l.Promises, l.Base.Promises) {
			t.Errorf("%s: planted in %s, with the promises %v; meant are those of %s", b.Name, l.Unplanted().Name, l.Promises, b.Base)
		}
		if slices.Contains(subject.All(), l) {
			t.Errorf("%s is listed", l.Name)
		}
	}
	for _, l := range subject.All() {
		if l.Unplanted() != l || strings.HasPrefix(l.Name, subject.PlantedPrefix) {
			t.Errorf("%s is listed", l.Name)
		}
	}
	if _, err := subject.Find("planted/nothing"); err == nil || strings.Contains(err.Error(), subject.PlantedPrefix+planted.Bugs[0].Name) {
		t.Errorf("an unknown lock: %v", err)
	}
}

// An edit that does not fit the scripts is an error.
func TestAnEditThatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		rule string
		edit planted.Edit
		says string
	}{
		{"a text that no script has", planted.Edit{Scripts: []string{"unlock"}, Old: "no such text"}, "stands in none of the scripts unlock"},
		{"one that a script has twice", planted.Edit{Scripts: []string{"unlock"}, Old: "redis.call"}, "times in the script unlock"},
		{"one of another script", planted.Edit{Scripts: []string{"unlock"}, Old: "redis.call('pttl'"}, "stands in none"},
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
