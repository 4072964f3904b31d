package explore

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"lockstep/linearizability"
)

func TestGroupsAreTheSameInAnyOrder(t *testing.T) {
	kinds := []Group{
		{"misdelete", linearizability.ClassBug, "unlock", nil},
		{"misdelete", linearizability.ClassLimit, "unlock", nil},
		{"lease", linearizability.ClassBug, "acquire", []string{"pause"}},
		{"lease", linearizability.ClassBug, "acquire", []string{"crash", "pause"}},
		{"mutual-exclusion", linearizability.ClassBug, "acquire", []string{}},
	}
	type run struct {
		g Group
		m Member
	}
	chance := rand.New(rand.NewSource(1))
	var runs []run
	for i := range 200 {
		runs = append(runs, run{kinds[chance.Intn(len(kinds))], Member{Index: i, Seed: uint64(1000 + i), Size: 3 + chance.Intn(6), Recording: "r", Why: "w"}})
	}
	var want []Grouped
	for shuffle := range 20 {
		var shards [3]Groups
		for _, r := range runs {
			shards[chance.Intn(3)].Add(r.g, r.m)
		}
		var all Groups
		for _, i := range chance.Perm(3) {
			// As one process writes it and another reads it.
			text, err := json.Marshal(&shards[i])
			if err != nil {
				t.Fatal(err)
			}
			var read Groups
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			all.Merge(&read)
		}
		got := all.List()
		if shuffle == 0 {
			want = got
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nand\n%+v", got, want)
		}
		chance.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	}
	if len(want) != len(kinds) || want[0].Judge != "mutual-exclusion" || want[len(want)-1].Class != linearizability.ClassLimit {
		t.Errorf("%+v", want)
	}
	total := 0
	for _, g := range want {
		total += g.Runs
		for _, r := range runs {
			if r.g.Key() == g.Key() && (r.m.Index < g.First.Index || r.m.Size < g.Smallest.Size || r.m.Size == g.Smallest.Size && r.m.Index < g.Smallest.Index) {
				t.Errorf("%s: %+v is before %+v or smaller than %+v", g.Key(), r.m, g.First, g.Smallest)
			}
		}
	}
	if total != len(runs) {
		t.Errorf("%d runs of %d", total, len(runs))
	}
}

func TestKeysAreFoldersAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range []Group{
		{"misdelete", linearizability.ClassBug, "unlock", nil},
		{"misdelete", linearizability.ClassBug, "unlock", []string{"drop reply of unlock"}},
		{"misdelete", linearizability.ClassBug, "unlock", []string{"drop reply of unlock", "pause"}},
		{"want", linearizability.ClassBug, "deadline of b/1", nil},
		{"want", linearizability.ClassBug, "deadline", []string{strings.Repeat("a very long fault ", 20)}},
		{"want", linearizability.ClassBug, "deadline", []string{strings.Repeat("a very long fault ", 21)}},
	} {
		key := g.Key()
		if seen[key] || !regexp.MustCompile(`^[a-z0-9][a-z0-9._+-]*$`).MatchString(key) || len(key) > keyMost {
			t.Errorf("%s", key)
		}
		seen[key] = true
	}
}
